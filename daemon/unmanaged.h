/* SPDX-License-Identifier: MIT */
/* Processes that use the GPU without an agent: listed, counted against slots and processes, paused if root wants it. */
#ifndef GP_DAEMON_UNMANAGED_H
#define GP_DAEMON_UNMANAGED_H

#include "daemon/daemon.h"

void gp_unmanaged_due(struct gp_daemon *daemon, uint64_t now_ns); /* looks when it is time */
void gp_unmanaged_scan(struct gp_daemon *daemon);                 /* looks now */
void gp_unmanaged_write(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_text *text); /* NULL: all */
void gp_unmanaged_fini(struct gp_daemon *daemon);
/* Is pid, or one of its descendants, in the driver's list of processes? */
bool gp_unmanaged_uses_gpu(pid_t pid);
/* Is pid the process ancestor or one that descends from it? */
bool gp_process_descends(pid_t pid, pid_t ancestor);

#endif
