/* SPDX-License-Identifier: MIT */
/* Rule: processes against VMIDs. */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void processes_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	char programs[GP_PROGRAMS_TEXT];

	gp_report_programs(facts, programs, sizeof(programs));
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct gp_facts_gpu *gpu = &facts->gpus[i];
		struct gp_finding *finding;
		enum gp_severity severity;

		if (gpu->process_max == GP_FACTS_UNKNOWN || !gpu->process_max)
			continue;
		severity = gpu->process_count > gpu->process_max     ? GP_SEVERITY_PROBLEM :
			   gpu->process_count + 1 > gpu->process_max ? GP_SEVERITY_WARNING :
								       GP_SEVERITY_OK;
		finding = gp_report_add(
			report, severity, gpu->gpu_id,
			"%u processes with queues, %" PRIu64 " can be on the GPU at once%s%s%s", gpu->process_count,
			gpu->process_max,
			severity == GP_SEVERITY_PROBLEM ? ": oversubscribed, processes take turns of 10 ms" :
			severity == GP_SEVERITY_WARNING ? ": one more oversubscribes it" :
							  "",
			severity == GP_SEVERITY_OK ? "" : "; ", severity == GP_SEVERITY_OK ? "" : programs);
		if (severity == GP_SEVERITY_WARNING)
			gp_finding_advise(
				finding,
				"idle processes count too, even with all queues stopped: end one before the next starts");
		else if (severity == GP_SEVERITY_PROBLEM)
			gp_finding_advise(
				finding,
				"end %" PRIu64
				" of them, or move them to another GPU or partition: idle processes count too, even with all queues stopped",
				gpu->process_count - gpu->process_max);
	}
}

const struct gp_doctor_rule gp_rule_processes = { "processes", "processes against VMIDs", processes_check };
