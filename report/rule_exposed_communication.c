/* SPDX-License-Identifier: MIT */
/* Exposed communication: collectives run on a device while no other kernel does, for 5 % of the run or more. */
#include "report/rules.h"

#define EXPOSED_PPM 50000u

static bool exposed_communication_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(exposed);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(all);

	finding->share_ppm = gp_rule_ppm(report->exposed_ns, report->wall_ns);
	if (!report->collective_count || finding->share_ppm < EXPOSED_PPM)
		return false;
	finding->title = "Communication is not hidden by compute";
	finding->confidence = GP_CONFIDENCE_HIGH;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"Collectives ran for %s on the device that is worst off (%" PRIu64
		" of them in the trace); for %s, %s of the run, no other kernel ran beside them. A collective also waits "
		"for the slowest device, which this trace does not show.",
		gp_rule_ns(report->collective_ns, all), report->collective_count,
		gp_rule_ns(report->exposed_ns, exposed), gp_rule_percent(finding->share_ppm, share));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Start collectives earlier (smaller buckets, prefetch), so that they run beside kernels; compare the "
		"ranks' traces to see whether one comes late.");
	return true;
}

const struct gp_report_rule gp_rule_exposed_communication = { "exposed-communication", exposed_communication_check };
