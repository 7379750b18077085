/* SPDX-License-Identifier: MIT */
/* Rule: does HIP pass stream priorities on? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

/* Since ROCm of mid-2026 (rocm-systems pull request 8485) HIP drops them unless DEBUG_HIP_IGNORE_STREAM_PRIORITY=0. The
 * library's number does not tell that change apart, so from 7 on it is a "may". */
#define HIP_PRIORITY_SUSPECT 7u

static void hip_priority_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	uint32_t ignoring = 0, may = 0;
	const struct gp_facts_process *first = NULL;
	struct gp_finding *finding;

	for (uint32_t i = 0; i < facts->process_count; i++) {
		const struct gp_facts_process *process = &facts->processes[i];
		bool is_told = process->ignore_priority == 1;
		bool is_suspect = process->ignore_priority == GP_FACTS_UNKNOWN && process->is_environment_known &&
				  process->hip_major != GP_FACTS_UNKNOWN && process->hip_major >= HIP_PRIORITY_SUSPECT;

		ignoring += is_told;
		may += is_suspect;
		if ((is_told || is_suspect) && !first)
			first = process;
	}
	if (!first)
		return;
	finding = gp_report_add(
		report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
		"HIP ignores stream priorities in %u processes and may in %u more (first: %s, pid %" PRIu64 ")",
		ignoring, may, first->name[0] ? first->name : "?", first->pid);
	gp_finding_advise(finding, "start them with DEBUG_HIP_IGNORE_STREAM_PRIORITY=0; gpreempt run does that");
}

const struct gp_doctor_rule gp_rule_hip_priority = { "hip-priority", "HIP passes stream priorities on",
						     hip_priority_check };
