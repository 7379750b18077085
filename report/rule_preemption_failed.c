/* SPDX-License-Identifier: MIT */
/* The driver says that a queue could not be preempted: nothing else in the trace matters before that is gone. */
#include "report/rules.h"

static bool preemption_failed_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	if (!report->preemption_failed_count)
		return false;
	finding->title = "Queues could not be preempted";
	finding->share_ppm = 1000000;
	finding->confidence = GP_CONFIDENCE_HIGH;
	(void)snprintf(finding->text, sizeof(finding->text), "The driver reports %" PRIu64 " %s to stop a queue.",
		       report->preemption_failed_count,
		       gp_units_word(report->preemption_failed_count, "failure", "failures"));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Look for kernels that never end and for cwsr_enable=0; update firmware and driver before measuring anything. "
		"gpreempt stops preempting a device at the first of these.");
	return true;
}

const struct gp_report_rule gp_rule_preemption_failed = { "preemption-failed", preemption_failed_check };
