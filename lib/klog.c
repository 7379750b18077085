/* SPDX-License-Identifier: MIT */
/* Owns the sentences of amdkfd and amdgpu, Linux 5.x to 6.x and DKMS. */
#include <string.h>
#include "lib/klog.h"

/* The first that fits counts. */
static const struct gp_klog_pattern klog_patterns[] = {
	{ "oversubscribed", NULL, GP_KLOG_OVERSUBSCRIBED, NULL },
	{ "queue preemption failed", NULL, GP_KLOG_PREEMPTION_FAILED,
	  .stops = true }, /* CPSCH; the queue is reset alone */
	{ "queues preemption failed", NULL, GP_KLOG_PREEMPTION_FAILED, .stops = true },
	{ "queue preemption time out", NULL, GP_KLOG_PREEMPTION_FAILED,
	  .stops = true }, /* HIQ's doorbell id is not 0 */
	{ "unsuccessful queues preemption", NULL, GP_KLOG_PREEMPTION_FAILED, .stops = true },
	{ "preemption failed", NULL, GP_KLOG_PREEMPTION_FAILED, NULL },
	{ "preemption time out", NULL, GP_KLOG_PREEMPTION_FAILED, NULL },
	{ "mes failed to respond to msg=", NULL, GP_KLOG_PREEMPTION_FAILED, .stops = true }, /* gfx11 and later */
	{ "mes might be in unrecoverable state", NULL, GP_KLOG_PREEMPTION_FAILED, .stops = true },
	{ "failed to remove hardware queue from mes", NULL, GP_KLOG_PREEMPTION_FAILED, .stops = true },
	{ "failed to remove hardware queue", NULL, GP_KLOG_PREEMPTION_FAILED, NULL },
	{ "failed to suspend all gangs from mes", NULL, GP_KLOG_PREEMPTION_FAILED, .stops = true },
	{ "failed to suspend gang", NULL, GP_KLOG_PREEMPTION_FAILED, NULL },
	{ "fence wait loop timeout", "qcm", GP_KLOG_PREEMPTION_FAILED, NULL },
	{ "hws hang", NULL, GP_KLOG_PREEMPTION_FAILED, NULL },
	{ "preempt queue", NULL, GP_KLOG_PREEMPTION_FAILED, NULL },
	{ "gpu reset begin", NULL, GP_KLOG_RESET, NULL },
	{ "mode1 reset", NULL, GP_KLOG_RESET, NULL },
	{ "evicting", "pasid", GP_KLOG_EVICTION, NULL },
	{ "evicting", "queues", GP_KLOG_EVICTION, NULL },
	{ "enable_mes", "=0", GP_KLOG_SCHEDULER, "CPSCH" },
	{ "enable_mes", "=1", GP_KLOG_SCHEDULER, "MES" },
	{ "mes", "scheduler enabled", GP_KLOG_SCHEDULER, "MES" },
	{ "cpsch", NULL, GP_KLOG_SCHEDULER, "CPSCH" },
	{ "kfd_ioctl_create_queue", NULL, GP_KLOG_QUEUE_CREATED, NULL },
	{ "creating queue", NULL, GP_KLOG_QUEUE_CREATED, NULL },
	{ "queue id", "was created successfully", GP_KLOG_QUEUE_CREATED, NULL },
};

const struct gp_klog_pattern *gp_klog_find(const char *line)
{
	for (size_t i = 0; i < sizeof(klog_patterns) / sizeof(klog_patterns[0]); i++) {
		const struct gp_klog_pattern *pattern = &klog_patterns[i];

		if (strcasestr(line, pattern->words) && (!pattern->also || strcasestr(line, pattern->also)))
			return pattern;
	}
	return NULL;
}

bool gp_klog_is_driver(const char *line)
{
	return strcasestr(line, "amdgpu") || strcasestr(line, "kfd") || strcasestr(line, "runlist");
}
