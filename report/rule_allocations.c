/* SPDX-License-Identifier: MIT */
/* Memory is taken and given back all the time: calls that do so, at the usual length of their kind (start-up does not
 * count), from 5 % of the run on and at least 16 of them. */
#include "report/rules.h"

#define ALLOCATIONS_PPM   50000u
#define ALLOCATIONS_COUNT 16u

static bool allocations_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(calls);
	GP_RULE_TEXT(share);

	finding->share_ppm = gp_rule_ppm(report->alloc_call_ns, report->wall_ns);
	if (report->alloc_call_count < ALLOCATIONS_COUNT || finding->share_ppm < ALLOCATIONS_PPM)
		return false;
	finding->title = "Memory is allocated and freed again and again";
	/* Whether a call of this kind also waited for kernels is only known with the GPU's work in the trace. */
	finding->confidence = report->has_gpu && report->has_cold ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_MEDIUM;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"%" PRIu64
		" calls that allocate or free memory cost %s (%s of the run), at the usual length of each kind. Such a "
		"free waits until the device is idle, so that it also stops what could overlap.",
		report->alloc_call_count, gp_rule_ns(report->alloc_call_ns, calls),
		gp_rule_percent(finding->share_ppm, share));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Keep buffers between steps, or take them from a pool (%sMallocAsync, the framework's allocator; "
		"in PyTorch no empty_cache() in the loop).",
		gp_rule_prefix(report));
	return true;
}

const struct gp_report_rule gp_rule_allocations = { "allocations", allocations_check };
