/* SPDX-License-Identifier: MIT */
/* Rule: can running work be saved at all? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void cwsr_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (facts->cwsr_enable == GP_FACTS_UNKNOWN)
		return;
	if (facts->cwsr_enable) {
		gp_report_add(report, GP_SEVERITY_OK, GP_FACTS_UNKNOWN,
			      "amdgpu.cwsr_enable=%" PRIu64 ": running work can be saved", facts->cwsr_enable);
		return;
	}
	finding = gp_report_add(
		report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
		"amdgpu.cwsr_enable=0: running work cannot be saved, a stop waits for its end or resets the GPU");
	gp_finding_advise(
		finding,
		"remove cwsr_enable=0 from /etc/modprobe.d and the kernel's command line and reboot; it was set against hangs: look for the cause");
}

const struct gp_doctor_rule gp_rule_cwsr = { "cwsr", "compute wave save and restore is on", cwsr_check };
