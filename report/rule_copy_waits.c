/* SPDX-License-Identifier: MIT */
/* Copy calls that are really waits: most of their time kernels ran that were launched before. Speaks from 10 % of the
 * run on, and if that is at least half of the time in calls that copy. Kernels of which the trace does not say the
 * process count if the others are not enough, with little confidence. */
#include "report/rules.h"

#define COPY_WAITS_PPM 100000u

static bool copy_waits_is_much(const struct gp_report *report, uint64_t wait)
{
	return gp_rule_ppm(wait, report->wall_ns) >= COPY_WAITS_PPM && wait * 2 >= report->copy_call_ns;
}

static bool copy_waits_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(wait_text);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(calls);
	uint64_t wait = report->copy_wait_ns < report->copy_call_ns ? report->copy_wait_ns : report->copy_call_ns;
	bool is_sure = copy_waits_is_much(report, wait);

	if (!is_sure) {
		wait += report->copy_wait_unknown_ns;
		wait = wait < report->copy_call_ns ? wait : report->copy_call_ns;
	}
	finding->share_ppm = gp_rule_ppm(wait, report->wall_ns);
	if (!report->kernel_count || !copy_waits_is_much(report, wait))
		return false;
	finding->title = "Calls that copy wait for kernels";
	finding->confidence = is_sure ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_LOW;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"Calls that copy took %s; for %s of that (%s of the run) kernels were running. The time is the kernels', "
		"not the transfer's.%s",
		gp_rule_ns(report->copy_call_ns, calls), gp_rule_ns(wait, wait_text),
		gp_rule_percent(finding->share_ppm, share),
		is_sure ? "" :
			  " This assumes that these kernels are of the processes that copy: the trace does not say "
			  "whose they are.");
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Do not optimise the copy. Fetch results later, from pinned memory and without blocking (.item() and "
		".cpu() block), or look at the kernels in front of it.");
	return true;
}

const struct gp_report_rule gp_rule_copy_waits = { "copy-waits", copy_waits_check };
