/* SPDX-License-Identifier: MIT */
/* Work was launched and did not start, while neither a call nor the GPU was active, for 20 % of the run: the trace does
 * not show what kept the GPU, and the program was not late, if the times of CPU and GPU are of one clock. */
#include "report/rules.h"

#define LATE_START_PPM 200000u

static bool late_start_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(late);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(before);
	char first[80] = "";

	finding->share_ppm = gp_rule_ppm(report->idle_launched_ns, report->wall_ns);
	if (report->is_apart || finding->share_ppm < LATE_START_PPM)
		return false;
	finding->title = "Launched work starts late";
	finding->confidence = GP_CONFIDENCE_MEDIUM;
	if (report->idle_launched_before_ns)
		(void)snprintf(first, sizeof(first), "; %s of that before the first work in the trace",
			       gp_rule_ns(report->idle_launched_before_ns, before));
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"For %s (%s of the run%s) work had been launched and did not start, though the trace shows no other "
		"work on the GPU. The GPU was busy with what is not in this trace (work from before it began, or of "
		"another process), or this work waited for something: an event, a function of the host, a copy. Or the "
		"profiler's times of CPU and GPU are not of one clock.",
		gp_rule_ns(report->idle_launched_ns, late), gp_rule_percent(finding->share_ppm, share), first);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Trace from an earlier point and every process on this GPU, and look for what this work waited for. If "
		"calls that wait for the GPU end before its work does, the clocks differ, and this time means nothing; "
		"otherwise the program was not late with its launches.");
	return true;
}

const struct gp_report_rule gp_rule_late_start = { "late-start", late_start_check };
