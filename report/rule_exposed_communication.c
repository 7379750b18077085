/* SPDX-License-Identifier: MIT */
/* Exposed communication: collectives run on a device while no other kernel does, for 5 % of the run or more. Silent if
 * the trace has no other kernel of that device at all: it was then cut down to its collectives. */
#include "report/rules.h"

#define EXPOSED_PPM 50000u

/* Who comes late to a collective is in it the shortest; the others wait for it there. */
static void exposed_communication_late(const struct gp_report *report, char *text, size_t size)
{
	GP_RULE_TEXT(least);
	char rank[24] = "";

	if (report->late_rank)
		(void)snprintf(rank, sizeof(rank), " of rank %" PRIu32, report->late_rank - 1);
	if (report->collective_device_count < 2)
		(void)snprintf(text, size,
			       "A collective also waits for the slowest device, which this trace does not show.");
	else if (report->collective_ns_min < report->collective_ns / 2)
		(void)snprintf(text, size,
			       "Device %" PRIu64
			       "%s was in collectives for %s only: a device that comes late is in them "
			       "the shortest, and the others wait for it.",
			       report->late_device, rank, gp_rule_ns(report->collective_ns_min, least));
	else
		(void)snprintf(
			text, size,
			"No device with about as many collectives was in them for less than %s: none comes late every time.",
			gp_rule_ns(report->collective_ns_min, least));
}

static bool exposed_communication_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(exposed);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(all);
	char late[192];

	finding->share_ppm = gp_rule_ppm(report->exposed_ns, report->wall_ns);
	if (!report->has_exposed || finding->share_ppm < EXPOSED_PPM)
		return false;
	finding->title = "Communication is not hidden by compute";
	finding->confidence = GP_CONFIDENCE_HIGH;
	exposed_communication_late(report, late, sizeof(late));
	(void)snprintf(finding->text, sizeof(finding->text),
		       "Collectives ran for %s on the device that is worst off (%" PRIu64
		       " of them in the trace); for %s, %s of the run, no other kernel ran beside them. %s",
		       gp_rule_ns(report->collective_ns, all), report->collective_count,
		       gp_rule_ns(report->exposed_ns, exposed), gp_rule_percent(finding->share_ppm, share), late);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Start collectives earlier (smaller buckets, prefetch), so that they run beside kernels; compare the "
		"ranks' traces to see whether one comes late.");
	return true;
}

const struct gp_report_rule gp_rule_exposed_communication = { "exposed-communication", exposed_communication_check };
