/* SPDX-License-Identifier: MIT */
/* SUMMARY: which clients and which users of a GPU descend from a process. A thread finds out: a tree of processes, and
 * what a driver lists, are as large as somebody makes them. */
#ifndef GP_DAEMON_TREE_H
#define GP_DAEMON_TREE_H

#include "daemon/daemon.h"

struct gp_tree {
	uint32_t agents;  /* clients that descend from it */
	uint32_t queues;  /* that drivers list for it and those that descend from it */
	bool is_listed;   /* a driver lists it, or one that descends from it */
	bool is_answered; /* until then all of this is the thread's */
};

/* Asks for a peer, who sees these clients only. sees_drivers: also what drivers list. NULL: no memory, or no thread.
 * Once it is answered the peer is served again (gp_fair_add()). */
struct gp_tree *gp_tree_ask(struct gp_daemon *daemon, struct gp_peer *peer, pid_t pid, bool sees_drivers);
void gp_tree_drop(struct gp_tree *tree); /* the peer wants it no more; NULL: does nothing */
void gp_trees_take(struct gp_daemon *daemon);
void gp_trees_fini(struct gp_daemon *daemon);

#endif
