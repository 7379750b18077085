/* SPDX-License-Identifier: MIT */
/* Priority inversions: work with a priority waited while work with a lower one ran. Needs a trace with priorities. */
#include "report/rules.h"

static bool inversions_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(total);
	GP_RULE_TEXT(longest);

	if (!report->has_priorities || !report->inversion_count)
		return false;
	finding->title = "Urgent work waits for less urgent work";
	finding->share_ppm = gp_rule_ppm(report->inversion_ns, report->wall_ns);
	finding->share_ppm = finding->share_ppm > 1000000 ? 1000000 : finding->share_ppm;
	finding->confidence = GP_CONFIDENCE_HIGH;
	(void)snprintf(finding->text, sizeof(finding->text),
		       "%" PRIu64
		       " %s a kernel waited while one of lower priority had the device: %s in all, at most %s.",
		       report->inversion_count, gp_units_word(report->inversion_count, "time", "times"),
		       gp_rule_ns(report->inversion_ns, total), gp_rule_ns(report->inversion_ns_max, longest));
	(void)snprintf(finding->advice, sizeof(finding->advice),
		       "Let gpreempt stop the lower queues; `gpreempt sim` with the same mix says what it would cost.");
	return true;
}

const struct gp_report_rule gp_rule_inversions = { "inversions", inversions_check };
