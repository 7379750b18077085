/* SPDX-License-Identifier: MIT */
/* Transfers really dominate: the copy engines, not the calls that copy, are busy for more than 40 % of the run. */
#include "report/rules.h"

#define TRANSFERS_PPM 400000u

static bool transfers_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(copy);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(compute);
	GP_RULE_TEXT(size);
	uint64_t bytes = 0;
	bool has_size = report->copy_name_count > 0;

	finding->share_ppm = gp_rule_ppm(report->copy_ns, report->wall_ns);
	if (finding->share_ppm < TRANSFERS_PPM || report->copy_ns < report->compute_ns)
		return false;
	finding->title = finding->share_ppm >= 500000 ? "Transfers dominate" : "Transfers take longer than kernels";
	finding->confidence = GP_CONFIDENCE_HIGH;
	for (uint32_t i = 0; i < report->copy_name_count; i++) {
		has_size &= report->copies[i].has_size;
		bytes += report->copies[i].size;
	}
	(void)snprintf(finding->text, sizeof(finding->text),
		       "The copy engines were busy for %s, %s of the run, in %" PRIu64
		       " copies; kernels ran for %s.%s%s%s",
		       gp_rule_ns(report->copy_ns, copy), gp_rule_percent(finding->share_ppm, share),
		       report->copy_count, gp_rule_ns(report->compute_ns, compute), has_size ? " They moved " : "",
		       has_size ? gp_units_format_size(bytes, size, sizeof(size)) : "", has_size ? "." : "");
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Copy less (keep data on the device, smaller types), copy from pinned memory, and let copies overlap "
		"kernels: %sMemcpyAsync on a stream of its own.",
		gp_rule_prefix(report));
	return true;
}

const struct gp_report_rule gp_rule_transfers = { "transfers", transfers_check };
