/* SPDX-License-Identifier: MIT */
/* SUMMARY: which clients and which users of a GPU descend from a process. A thread finds out, because users can make
 * trees of processes, and the lists of drivers, as large as they like. */
#ifndef GP_DAEMON_TREE_H
#define GP_DAEMON_TREE_H

#include "daemon/daemon.h"

struct gp_tree {
	uint32_t agents;                /* clients that descend from it */
	uint32_t queues;                /* that drivers list for it and its descendants */
	bool is_listed;                 /* a driver lists it, or a descendant */
	bool is_unknown;                /* the files of these processes did not open */
	struct tree_question *question; /* NULL: it is answered */
};

/* Asks for a peer about the clients that it may see; if the process is the peer's user's, or the peer is root, also
 * about what drivers list. NULL: no memory, or no thread. Once it is answered the peer is served again (gp_fair_add()).
 */
struct gp_tree *gp_tree_ask(struct gp_daemon *daemon, struct gp_peer *peer, pid_t pid);
void gp_tree_drop(struct gp_tree *tree); /* the peer wants it no more; NULL: does nothing */

#endif
