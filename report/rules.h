/* SPDX-License-Identifier: MIT */
/*
 * Findings: small rules, one file each, over the finished figures. A rule is silent unless the trace shows what it is
 * about; it says its numbers, what to do, and how sure it is:
 *   high    the trace shows it directly
 *   medium  the trace shows the effect; the cause is the likely one of several
 *   low     it rests on an assumption that the text names
 */
#ifndef GP_REPORT_RULES_H
#define GP_REPORT_RULES_H

#include <inttypes.h>
#include <stdio.h>
#include "lib/units.h"
#include "view/report.h"

struct gp_report_rule {
	const char *id;
	/* Fills the finding but for its id. False: nothing to say. */
	bool (*check)(const struct gp_report *report, struct gp_report_finding *finding);
};

extern const struct gp_report_rule gp_rule_cold_start, gp_rule_transfers, gp_rule_transfer_calls, gp_rule_launch_bound,
	gp_rule_serialised_streams, gp_rule_oversubscribed, gp_rule_tail, gp_rule_sync_every_launch,
	gp_rule_tiny_copies, gp_rule_idle_gpu, gp_rule_contention, gp_rule_inversions, gp_rule_preemption_failed,
	gp_rule_allocations, gp_rule_copy_waits, gp_rule_copy_rate, gp_rule_exposed_communication, gp_rule_gpu_reset,
	gp_rule_step_gaps, gp_rule_late_start;

/* Parts per million, 0 of nothing. */
static inline uint64_t gp_rule_ppm(uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((double)part * 1e6 / (double)whole + 0.5) : 0;
}
/* Of the launches with a correlation, how many have their work in the trace, or of the kernels, how many have their
 * launch, whichever is less; all, if nothing can be joined. */
static inline uint64_t gp_rule_joined_ppm(const struct gp_report *report)
{
	if (report->correlated_launch_count && report->kernel_count &&
	    (double)report->joined_kernel_count / (double)report->kernel_count <
		    (double)report->joined_launch_count / (double)report->correlated_launch_count)
		return gp_rule_ppm(report->joined_kernel_count, report->kernel_count);
	return report->correlated_launch_count ?
		       gp_rule_ppm(report->joined_launch_count, report->correlated_launch_count) :
		       1000000;
}
/* Nothing, or next to nothing, that was launched is missing. */
static inline bool gp_rule_is_whole(const struct gp_report *report)
{
	return gp_rule_joined_ppm(report) >= 950000;
}
/* How calls of the trace's runtime begin. */
static inline const char *gp_rule_prefix(const struct gp_report *report)
{
	return report->has_cuda && !report->has_hip ? "cuda" : "hip";
}
#define GP_RULE_TEXT(name) char name[GP_UNITS_TEXT_SIZE]
static inline const char *gp_rule_ns(uint64_t ns, char *buffer)
{
	return gp_units_format_ns(ns, buffer, GP_UNITS_TEXT_SIZE);
}
/* "12 %", "0.2 %" */
static inline const char *gp_rule_percent(uint64_t ppm, char *buffer)
{
	if (ppm < 100000)
		(void)snprintf(buffer, GP_UNITS_TEXT_SIZE, "%" PRIu64 ".%" PRIu64 " %%", (ppm + 500) / 10000,
			       (ppm + 500) / 1000 % 10);
	else
		(void)snprintf(buffer, GP_UNITS_TEXT_SIZE, "%" PRIu64 " %%", (ppm + 5000) / 10000);
	return buffer;
}

#endif
