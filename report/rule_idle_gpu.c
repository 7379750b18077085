/* SPDX-License-Identifier: MIT */
/* The GPU is idle while the host computes: time without any traced call and without work on any engine, from 20 % of
 * the run on. */
#include "report/rules.h"

#define IDLE_GPU_PPM 200000u

static bool idle_gpu_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(idle);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(busy);

	finding->share_ppm = gp_rule_ppm(report->idle_alone_ns, report->wall_ns);
	if (!report->has_gpu || !report->layers[GP_REPORT_APPLICATION].is_traced || finding->share_ppm < IDLE_GPU_PPM)
		return false;
	/* What lies between the files of two runs was nobody's. */
	if (report->is_apart)
		return false;
	finding->title = "The GPU is idle while the host computes";
	finding->confidence = report->layers[GP_REPORT_HIP].is_traced ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_LOW;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"For %s (%s of the run) neither a traced call nor the GPU was active: the program computed, read or slept. "
		"The GPU was busy for %s in all.",
		gp_rule_ns(report->idle_alone_ns, idle), gp_rule_percent(finding->share_ppm, share),
		gp_rule_ns(report->gpu_busy_ns, busy));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Prepare the next step while the current one runs: launch first, compute after, wait last. ROCTX ranges in "
		"the program show what it does in these stretches.");
	return true;
}

const struct gp_rule gp_rule_idle_gpu = { "idle-gpu", idle_gpu_check };
