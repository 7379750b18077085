/* SPDX-License-Identifier: MIT */
/* Copy calls that are really waits: most of their time kernels ran that were launched before. Speaks from 10 % of the
 * run on, and if that is at least half of the time in calls that copy. */
#include "report/rules.h"

#define COPY_WAITS_PPM 100000u

static bool copy_waits_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(wait_text);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(calls);
	uint64_t wait = report->copy_wait_ns < report->copy_call_ns ? report->copy_wait_ns : report->copy_call_ns;

	finding->share_ppm = gp_rule_ppm(wait, report->wall_ns);
	if (!report->kernel_count || finding->share_ppm < COPY_WAITS_PPM || wait * 2 < report->copy_call_ns)
		return false;
	finding->title = "Calls that copy wait for kernels";
	finding->confidence = GP_CONFIDENCE_HIGH;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"Calls that copy took %s; for %s of that (%s of the run) kernels were running. The time is the kernels', "
		"not the transfer's.",
		gp_rule_ns(report->copy_call_ns, calls), gp_rule_ns(wait, wait_text),
		gp_rule_percent(finding->share_ppm, share));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Do not optimise the copy. Fetch results later, from pinned memory and without blocking (.item() and "
		".cpu() block), or look at the kernels in front of it.");
	return true;
}

const struct gp_report_rule gp_rule_copy_waits = { "copy-waits", copy_waits_check };
