/* SPDX-License-Identifier: MIT */
/* Steps that repeat, as when a language model writes token by token: launches, then the host waits. Speaks if the GPU
 * is idle for 30 % of the time in such steps, and they are 30 % of the run. */
#include "report/rules.h"

#define STEP_GAPS_IDLE_PPM 300000u
#define STEP_GAPS_RUN_PPM  300000u

static bool step_gaps_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	uint64_t idle_ns = report->step.sum_ns > report->step_busy_ns ? report->step.sum_ns - report->step_busy_ns : 0;
	uint64_t idle_ppm = gp_rule_ppm(idle_ns, report->step.sum_ns);
	GP_RULE_TEXT(median);
	GP_RULE_TEXT(p99);
	GP_RULE_TEXT(idle);
	GP_RULE_TEXT(share);

	if (!report->step.count || idle_ppm < STEP_GAPS_IDLE_PPM ||
	    gp_rule_ppm(report->step.sum_ns, report->wall_ns) < STEP_GAPS_RUN_PPM)
		return false;
	finding->title = "Steps are bound by the host";
	finding->share_ppm = gp_rule_ppm(idle_ns, report->wall_ns);
	finding->share_ppm = finding->share_ppm > 1000000 ? 1000000 : finding->share_ppm;
	finding->confidence = gp_rule_is_whole(report) ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_MEDIUM;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"%" PRIu64 " steps of about %" PRIu64
		" kernels, each from one wait of the host to the next, take %s (median; p99 %s). In a step the GPU is idle "
		"for %s on average, %s of it: the host-bound share.",
		report->step.count, report->step_kernels, gp_rule_ns(report->step.p50_ns, median),
		gp_rule_ns(report->step.p99_ns, p99), gp_rule_ns(idle_ns / report->step.count, idle),
		gp_rule_percent(idle_ppm, share));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Capture the step as a graph, take more sequences per step, and do not fetch a value in each step "
		"(sample on the device, wait one step later).");
	return true;
}

const struct gp_report_rule gp_rule_step_gaps = { "step-gaps", step_gaps_check };
