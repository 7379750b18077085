/* SPDX-License-Identifier: MIT */
/* Rule: is the number of processes at a time cut down? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void max_processes_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (facts->hws_max_conc_proc == GP_FACTS_UNKNOWN)
		return;
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct gp_facts_gpu *gpu = &facts->gpus[i];

		if (!facts->hws_max_conc_proc || facts->hws_max_conc_proc > gpu->process_max ||
		    facts->hws_max_conc_proc >= 8)
			continue;
		finding = gp_report_add(report, GP_SEVERITY_WARNING, gpu->gpu_id,
					"amdgpu.hws_max_conc_proc=%" PRIu64
					": more processes than that take turns of 10 ms",
					facts->hws_max_conc_proc);
		gp_finding_advise(finding,
				  "leave it at its default (0: as many as there are VMIDs) unless isolation is wanted");
	}
}

const struct gp_doctor_rule gp_rule_max_processes = { "max-processes", "hws_max_conc_proc", max_processes_check };
