/* SPDX-License-Identifier: MIT */
/* Rule: compute queues against hardware queue slots: the cliff. */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

/* AMD's own measurements (MI300A training repository): up to the limit 0.45-0.53 s, beyond it 0.93-2.65 s. */
static void slots_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	char programs[GP_PROGRAMS_TEXT];

	gp_report_programs(facts, programs, sizeof(programs));
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct gp_facts_gpu *gpu = &facts->gpus[i];
		struct gp_finding *finding;
		enum gp_severity severity;

		if (gpu->slot_count == GP_FACTS_UNKNOWN || !gpu->slot_count)
			continue;
		severity = gpu->compute_count > gpu->slot_count            ? GP_SEVERITY_PROBLEM :
			   gpu->compute_count * 4ull > gpu->slot_count * 3 ? GP_SEVERITY_WARNING :
									     GP_SEVERITY_OK;
		finding = gp_report_add(
			report, severity, gpu->gpu_id,
			"%u compute queues of %u processes, %" PRIu64 " hardware slots%s%s%s", gpu->compute_count,
			gpu->process_count, gpu->slot_count,
			severity == GP_SEVERITY_PROBLEM ?
				": oversubscribed, queues take turns of 1 ms whether they have work or not" :
			severity == GP_SEVERITY_WARNING ? ": near the limit" :
							  "",
			severity == GP_SEVERITY_OK ? "" : "; ", severity == GP_SEVERITY_OK ? "" : programs);
		if (severity != GP_SEVERITY_OK)
			gp_finding_advise(
				finding, "%s",
				gpu->process_max != GP_FACTS_UNKNOWN && gpu->process_count > gpu->process_max ?
					"fewer processes first (see processes): while there are too many, the GPU takes turns whatever their queues are" :
					"fewer queues per process (see hw-queues), fewer processes, or gpreempt run: it keeps open queues within the slots");
	}
}

const struct gp_doctor_rule gp_rule_slots = { "slots", "compute queues against hardware queue slots", slots_check };
