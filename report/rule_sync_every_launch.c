/* SPDX-License-Identifier: MIT */
/* Synchronisation after every launch: at least 10 launches, and 80 % of them directly followed by a call that waits,
 * and a device that is idle for 10 % of the run, if the trace shows it. A launch that brings many kernels (a graph) is
 * a step of its own, after which to wait is right. */
#include "report/rules.h"

#define SYNC_LAUNCHES 10u
#define SYNC_IDLE_PPM 100000u
#define SYNC_KERNELS  8u /* a launch with so many, in the mean, is a step */

static bool sync_every_launch_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	uint64_t idle_ns = report->wall_ns - report->gpu_busy_ns;
	GP_RULE_TEXT(idle);

	if (report->launch_count < SYNC_LAUNCHES || report->sync_after_launch_count * 10 < report->launch_count * 8)
		return false;
	if (report->joined_launch_count && report->joined_kernel_count >= SYNC_KERNELS * report->joined_launch_count)
		return false;
	if (report->has_gpu && gp_rule_ppm(idle_ns, report->wall_ns) < SYNC_IDLE_PPM)
		return false;
	finding->title = "The host waits after every launch";
	finding->share_ppm = report->has_gpu ? gp_rule_ppm(idle_ns, report->wall_ns) / 2 : 100000;
	/* Without the GPU's work nobody knows whether the waiting cost anything. */
	finding->confidence = !report->has_gpu         ? GP_CONFIDENCE_LOW :
			      gp_rule_is_whole(report) ? GP_CONFIDENCE_HIGH :
							 GP_CONFIDENCE_MEDIUM;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"%" PRIu64 " of %" PRIu64 " launches are directly followed by a call that waits for the device%s%s%s",
		report->sync_after_launch_count, report->launch_count, report->has_gpu ? ", which was idle for " : ".",
		report->has_gpu ? gp_rule_ns(idle_ns, idle) : "", report->has_gpu ? " of the run." : "");
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Launch ahead and wait once per step: work in one stream is in order by itself; use events between streams.");
	return true;
}

const struct gp_report_rule gp_rule_sync_every_launch = { "sync-every-launch", sync_every_launch_check };
