/* SPDX-License-Identifier: MIT */
/* What the files of the kfd backend share. */
#ifndef GP_DEVICE_KFD_KFD_H
#define GP_DEVICE_KFD_KFD_H

#include <gpreempt/kfd.h>
#include "device/device.h"
#include "lib/kfd.h"

struct gp_kfd_debugger;
struct gp_kfd_gate;
struct gp_kfd_reset;

/* Keys of its own, in own[] of the configuration. */
enum gp_kfd_own { GP_KFD_GRACE }; /* DBG_TRAP SUSPEND: 1K cycles */

struct gp_backend {
	struct gp_device_host host;
	struct gp_device_config config;
	int fd; /* /dev/kfd; -1: not opened */
	uint32_t version_major, version_minor;
	uint32_t usable;          /* GP_MECHANISM_BITs of the mechanisms that work, by the probe */
	struct gp_kfd_gate *gate; /* mechanism kernel; NULL: the driver lacks it, and the debugger may act */
	bool is_submit_only;      /* safety.c: running work must not be stopped */
	struct gp_kfd_debugger *debugger;
	struct gp_kfd_reset *reset;
};

/* The process of a client. The kernel may give the pid to another one later. */
struct gp_kfd_process {
	pid_t pid;
	int pidfd;
	uint32_t owner; /* its user, as in struct gp_device_client */
};

/* processes.c: the driver's own list. */
int gp_kfd_processes(pid_t *pids, uint32_t max);
int gp_kfd_process_queues(pid_t pid, struct gp_device_queue *queues, uint32_t max);
int gp_kfd_call(int fd, unsigned long request, void *args); /* repeats after EINTR and EAGAIN; 0.. or -errno */
int gp_kfd_dbg_trap(int fd, struct gp_kfd_dbg_trap *args);
int gp_kfd_runtime_enable(int fd, bool enable);

/* safety.c: reports what is known of these parts, and limits what the daemon does with them. Before the probe. */
void gp_kfd_safety(struct gp_backend *backend, const struct gp_kfd_node *nodes, struct gp_device_info *infos,
		   uint32_t count);

/* probe.c: what this kernel, this hardware and the daemon's rights allow; the findings say why. */
void gp_kfd_probe(struct gp_backend *backend, struct gp_device_info *infos, uint32_t count);

#endif
