/* SPDX-License-Identifier: MIT */
/* Long copy calls without long copies: the trap of reading API time as transfer time. Speaks if calls that copy take 20
 * % of the run and the engines less than a tenth of that. */
#include "report/rules.h"

#define TRANSFER_CALLS_PPM 200000u

static bool transfer_calls_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(calls);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(copy);
	GP_RULE_TEXT(copy_share);

	finding->share_ppm = gp_rule_ppm(report->copy_call_ns, report->wall_ns);
	/* Without a copy in the trace nobody knows what the engines did. */
	if (!report->copy_count || finding->share_ppm < TRANSFER_CALLS_PPM ||
	    report->copy_ns > report->copy_call_ns / 10)
		return false;
	(void)gp_rule_percent(finding->share_ppm, share);
	/* It explains; what it explains away (start-up, waits) is a finding of its own and comes first. */
	finding->share_ppm /= 2;
	finding->title = "Calls that copy are long; the copies are not";
	finding->confidence = GP_CONFIDENCE_HIGH;
	(void)snprintf(finding->text, sizeof(finding->text),
		       "Calls that copy took %s (%s of the run), but the copy engines were busy for %s (%s) in %" PRIu64
		       " copies. The rest of these calls is not transfer: start-up, pinning, waiting for kernels.",
		       gp_rule_ns(report->copy_call_ns, calls), share, gp_rule_ns(report->copy_ns, copy),
		       gp_rule_percent(gp_rule_ppm(report->copy_ns, report->wall_ns), copy_share), report->copy_count);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Faster links or fewer bytes will not help. Look at the first calls and at what the copies wait for.");
	return true;
}

const struct gp_report_rule gp_rule_transfer_calls = { "transfer-calls", transfer_calls_check };
