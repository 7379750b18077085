/* SPDX-License-Identifier: MIT */
/* Launch-bound: many kernels, each shorter than the call that launches it, and the device idle between them for more
 * than half of the time it is in use. Only gaps that launching can explain count: one long pause is not launching. */
#include "report/rules.h"

#define LAUNCH_BOUND_KERNELS 32u
#define LAUNCH_BOUND_PPM     300000u

static bool launch_bound_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(kernel);
	GP_RULE_TEXT(launch);
	GP_RULE_TEXT(gap);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(longest);
	uint64_t mean_launch;

	/* Gaps that kernels missing from the trace may have filled are no gaps. */
	if (gp_rule_joined_ppm(report) < 500000)
		return false;
	if (report->kernel_count < LAUNCH_BOUND_KERNELS || !report->launch_count || !report->kernel_gap.count)
		return false;
	mean_launch = report->launch_ns / report->launch_count;
	finding->share_ppm = gp_rule_ppm(report->launch_gap_ns, report->wall_ns);
	if (finding->share_ppm < LAUNCH_BOUND_PPM || report->launch_gap_ns < report->compute_ns ||
	    report->run.p50_ns > report->kernel_gap.p50_ns || report->run.p50_ns > 2 * mean_launch)
		return false;
	finding->share_ppm = finding->share_ppm > 1000000 ? 1000000 : finding->share_ppm;
	finding->title = "Launch-bound: kernels are shorter than the way to them";
	finding->confidence = gp_rule_is_whole(report) ? GP_CONFIDENCE_MEDIUM : GP_CONFIDENCE_LOW;
	(void)snprintf(finding->text, sizeof(finding->text),
		       "%" PRIu64
		       " kernels run for %s (median); launching one takes %s (mean), and the device waits %s "
		       "between two (median). Such gaps, up to %s each, are %s of the run.",
		       report->kernel_count, gp_rule_ns(report->run.p50_ns, kernel), gp_rule_ns(mean_launch, launch),
		       gp_rule_ns(report->kernel_gap.p50_ns, gap), gp_rule_ns(report->launch_gap_ns_max, longest),
		       gp_rule_percent(finding->share_ppm, share));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Put the sequence into a graph (%sGraphLaunch), fuse small kernels, or launch from a thread that does nothing "
		"else.",
		gp_rule_prefix(report));
	return true;
}

const struct gp_report_rule gp_rule_launch_bound = { "launch-bound", launch_bound_check };
