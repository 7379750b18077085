/* SPDX-License-Identifier: MIT */
/* Processes that use the GPU without an agent: the daemon lists them, counts them against slots and processes, and
 * pauses them if root wants it. */
#ifndef GP_DAEMON_UNMANAGED_H
#define GP_DAEMON_UNMANAGED_H

#include "daemon/daemon.h"

void gp_unmanaged_due(struct gp_daemon *daemon, uint64_t now_ns); /* looks when it is time */
void gp_unmanaged_want(struct gp_daemon *daemon);                 /* looks soon: a client got a queue */
void gp_unmanaged_refresh(struct gp_daemon *daemon);              /* looks now, unless it has just looked */
void gp_unmanaged_take(struct gp_daemon *daemon);                 /* what another thread has read */
/* Other threads look now: for processes, or for the programs that new ones belong to. */
bool gp_unmanaged_is_read(struct gp_daemon *daemon);
void gp_unmanaged_joined(struct gp_daemon *daemon, const struct gp_client *client); /* its origin is known now */
void gp_unmanaged_write(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_text *text); /* NULL: all */
void gp_unmanaged_fini(struct gp_daemon *daemon);
/* adopt.c: an unmanaged process as a client without an agent. It has a copy of the identity. NULL: it cannot be one. */
struct gp_client *gp_adopt(struct gp_daemon *daemon, struct gp_driver_entry *driver, pid_t pid, uid_t uid,
			   const char *name, const struct gp_process_identity *identity);
void gp_adopt_begin(struct gp_client *client); /* its queues follow, each with gp_adopt_queue() */
void gp_adopt_queue(struct gp_daemon *daemon, struct gp_client *client, uint32_t queue_id, uint32_t gpu_id,
		    bool compute);
void gp_adopt_end(struct gp_daemon *daemon, struct gp_client *client); /* queues that did not follow are gone */
bool gp_adopt_is_paused(const struct gp_client *client);

#endif
