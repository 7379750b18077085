/* SPDX-License-Identifier: MIT */
/* What the kernel's log says about AMD's driver: one table, for `report`, which reads logs, `doctor`, which looks at
 * the log of this machine, and the daemon, which follows it. */
#ifndef GP_LIB_KLOG_H
#define GP_LIB_KLOG_H

#include <stdbool.h>
#include <stddef.h>

enum gp_klog_kind {
	GP_KLOG_OVERSUBSCRIBED,    /* the runlist is oversubscribed */
	GP_KLOG_PREEMPTION_FAILED, /* a queue could not be stopped */
	GP_KLOG_RESET,             /* the device was reset */
	GP_KLOG_EVICTION,          /* the driver stopped a process's queues */
	GP_KLOG_SCHEDULER,         /* text: the scheduler in use */
	GP_KLOG_QUEUE_CREATED
};

struct gp_klog_pattern {
	const char *words, *also; /* both must be in the line, whatever their case; also NULL: the first alone */
	enum gp_klog_kind kind;
	const char *text; /* NULL: the line itself */
	bool stops; /* a queue could not be taken off the hardware and a reset is next: the daemon stops the GPU */
};

/* The first pattern that fits; NULL: none does. */
const struct gp_klog_pattern *gp_klog_find(const char *line);
bool gp_klog_is_driver(const char *line); /* the line names AMD's driver or the runlist */

#endif
