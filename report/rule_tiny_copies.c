/* SPDX-License-Identifier: MIT */
/* Many tiny copies: at least 32, most of them below 64 KiB, or (sizes unknown) below 10 us. */
#include "report/rules.h"

#define TINY_COUNT 32u
#define TINY_NS    10000u
#define TINY_PPM   10000u

static bool tiny_copies_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	bool has_sizes = report->sized_copy_count == report->copy_count;
	char missing[48] = "sizes";
	GP_RULE_TEXT(median);
	GP_RULE_TEXT(cost);
	GP_RULE_TEXT(share);

	finding->share_ppm = gp_rule_ppm(report->small_copy_ns, report->wall_ns);
	finding->share_ppm = finding->share_ppm > 1000000 ? 1000000 : finding->share_ppm;
	if (report->copy_count < TINY_COUNT || finding->share_ppm < TINY_PPM)
		return false;
	if (has_sizes ? report->small_copy_count * 2 < report->copy_count : report->copy_time.p50_ns >= TINY_NS)
		return false;
	finding->title = "Many tiny copies";
	finding->confidence = has_sizes ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_MEDIUM;
	(void)gp_rule_ns(report->copy_time.p50_ns, median);
	(void)gp_rule_ns(report->small_copy_ns, cost);
	(void)gp_rule_percent(finding->share_ppm, share);
	if (has_sizes)
		(void)snprintf(
			finding->text, sizeof(finding->text),
			"%" PRIu64 " of %" PRIu64
			" copies are smaller than 64 KiB; half of all take less than %s on the engine. The small ones "
			"and their calls (20 µs of each at most) took %s, %s of the run.",
			report->small_copy_count, report->copy_count, median, cost, share);
	if (!has_sizes && report->sized_copy_count)
		(void)snprintf(missing, sizeof(missing), "the sizes of %" PRIu64 " of them",
			       report->copy_count - report->sized_copy_count);
	if (!has_sizes)
		(void)snprintf(finding->text, sizeof(finding->text),
			       "%" PRIu64
			       " copies, half of which take less than %s (%s are not in the trace). The short ones and "
			       "their calls (20 µs of each at most) took %s, %s of the run.",
			       report->copy_count, median, missing, cost, share);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Gather small values into one buffer and copy that, pass them as kernel arguments, or map pinned memory.");
	return true;
}

const struct gp_report_rule gp_rule_tiny_copies = { "tiny-copies", tiny_copies_check };
