/* SPDX-License-Identifier: MIT */
/* Processes that use the GPU without an agent: listed, counted against slots and processes, paused if root wants it. */
#ifndef GP_DAEMON_UNMANAGED_H
#define GP_DAEMON_UNMANAGED_H

#include "daemon/daemon.h"

/* Parents that were read, for one question about many processes. */
#define GP_ANCESTRY_SIZE 4096u
struct gp_ancestry {
	pid_t pids[GP_ANCESTRY_SIZE], parents[GP_ANCESTRY_SIZE];
};

void gp_unmanaged_due(struct gp_daemon *daemon, uint64_t now_ns); /* looks when it is time */
void gp_unmanaged_want(struct gp_daemon *daemon);                 /* soon: a queue of ours came */
void gp_unmanaged_refresh(struct gp_daemon *daemon);              /* looks now, unless that was done just now */
void gp_unmanaged_take(struct gp_daemon *daemon);                 /* what another thread has read */
bool gp_unmanaged_is_read(struct gp_daemon *daemon);              /* another thread looks now */
void gp_unmanaged_write(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_text *text); /* NULL: all */
void gp_unmanaged_fini(struct gp_daemon *daemon);
/* adopt.c: an unmanaged process as a client without an agent. NULL: it cannot be one. */
struct gp_client *gp_adopt(struct gp_daemon *daemon, struct gp_driver_entry *driver, pid_t pid, uid_t uid,
			   const char *name);
void gp_adopt_begin(struct gp_client *client); /* its queues follow, each with gp_adopt_queue() */
void gp_adopt_queue(struct gp_daemon *daemon, struct gp_client *client, uint32_t queue_id, uint32_t gpu_id,
		    bool compute);
void gp_adopt_end(struct gp_daemon *daemon, struct gp_client *client); /* queues that did not follow are gone */
bool gp_adopt_is_paused(const struct gp_client *client);
/* Is pid, or one of its descendants, in the driver's list of processes, and how many queues do they have? */
bool gp_unmanaged_uses_gpu(struct gp_daemon *daemon, struct gp_ancestry *ancestry, pid_t pid, uint32_t *ret_queues);
#define GP_PROCESS_DEPTH 128        /* ancestors that are looked at */
pid_t gp_process_parent(pid_t pid); /* 0: it has none, or has gone */
/* Is pid the process ancestor or one that descends from it? */
bool gp_process_descends(struct gp_ancestry *ancestry, pid_t pid, pid_t ancestor);

#endif
