/* SPDX-License-Identifier: MIT */
/* Rule: does the firmware schedule queues? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void sched_policy_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	switch (facts->sched_policy) {
	case GP_FACTS_UNKNOWN: return;
	case 0:
		gp_report_add(report, GP_SEVERITY_OK, GP_FACTS_UNKNOWN,
			      "amdgpu.sched_policy=0: the firmware schedules, with oversubscription");
		return;
	case 1:
		finding = gp_report_add(
			report, GP_SEVERITY_INFO, GP_FACTS_UNKNOWN,
			"amdgpu.sched_policy=1: no oversubscription; queues beyond the slots are refused");
		gp_finding_advise(
			finding,
			"programs that cannot create a queue need fewer: GPU_MAX_HW_QUEUES, or sched_policy=0");
		return;
	default:
		finding =
			gp_report_add(report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
				      "amdgpu.sched_policy=%" PRIu64 ": no hardware scheduling; DBG_TRAP does not work",
				      facts->sched_policy);
		gp_finding_advise(finding, "set amdgpu.sched_policy=0 and reboot");
	}
}

const struct gp_doctor_rule gp_rule_sched_policy = { "sched-policy", "the hardware scheduler is used",
						     sched_policy_check };
