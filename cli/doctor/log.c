/* SPDX-License-Identifier: MIT */
/* Rule: what the kernel has complained about. */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void log_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (!facts->is_log_known) {
		gp_report_add(report, GP_SEVERITY_INFO, GP_FACTS_UNKNOWN,
			      "the kernel's log may not be read (run as root to have it searched)");
		return;
	}
	if (facts->preemption_lines || facts->reset_lines) {
		finding = gp_report_add(report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
					"kernel log: %u failed preemptions, %u resets; last: %.200s",
					facts->preemption_lines, facts->reset_lines, facts->log_line);
		gp_finding_advise(
			finding,
			"preempting is not safe while this goes on: gpreempt pause all; update firmware and kernel, look for the program that hangs");
	}
	if (facts->oversubscribed_lines) {
		finding = gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
					"kernel log: the runlist was oversubscribed %u times",
					facts->oversubscribed_lines);
		gp_finding_advise(finding, "do not trust timings from that time; see slots, processes and hw-queues");
	}
	if (!facts->preemption_lines && !facts->reset_lines && !facts->oversubscribed_lines)
		gp_report_add(report, GP_SEVERITY_OK, GP_FACTS_UNKNOWN,
			      "the kernel's log has no failed preemption, reset or oversubscription");
}

const struct gp_doctor_rule gp_rule_log = { "log", "oversubscription and failed preemptions in the kernel's log",
					    log_check };
