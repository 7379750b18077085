/* SPDX-License-Identifier: MIT */
/* Many tiny copies: at least 32, most of them below 64 KiB, or (sizes unknown) below 10 us. */
#include "report/rules.h"

#define TINY_COUNT 32u
#define TINY_NS    10000u
#define TINY_PPM   10000u

static bool tiny_copies_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	bool has_sizes = report->sized_copy_count == report->copy_count;
	GP_RULE_TEXT(median);
	GP_RULE_TEXT(calls);

	if (report->copy_count < TINY_COUNT)
		return false;
	if (gp_rule_ppm(report->copy_call_ns > report->copy_ns ? report->copy_call_ns : report->copy_ns,
			report->wall_ns) < TINY_PPM)
		return false;
	if (has_sizes ? report->small_copy_count * 2 < report->copy_count : report->copy_time.p50_ns >= TINY_NS)
		return false;
	finding->title = "Many tiny copies";
	finding->share_ppm = gp_rule_ppm(report->copy_call_ns, report->wall_ns) / 2;
	finding->share_ppm = finding->share_ppm > 500000 ? 500000 : finding->share_ppm;
	finding->confidence = has_sizes ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_MEDIUM;
	(void)gp_rule_ns(report->copy_time.p50_ns, median);
	(void)gp_rule_ns(report->copy_call_ns, calls);
	if (has_sizes)
		(void)snprintf(finding->text, sizeof(finding->text),
			       "%" PRIu64 " of %" PRIu64
			       " copies are smaller than 64 KiB; half of all take less than %s on the "
			       "engine. The calls around copies took %s in all.",
			       report->small_copy_count, report->copy_count, median, calls);
	else
		(void)snprintf(
			finding->text, sizeof(finding->text),
			"%" PRIu64
			" copies, half of which take less than %s (sizes are not in the trace). The calls around "
			"copies took %s in all.",
			report->copy_count, median, calls);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Gather small values into one buffer and copy that, pass them as kernel arguments, or map pinned memory.");
	return true;
}

const struct gp_rule gp_rule_tiny_copies = { "tiny-copies", tiny_copies_check };
