/* SPDX-License-Identifier: MIT */
/* Rule: how many hardware queues each process should have. */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

#define HW_QUEUES_DEFAULT 4u /* HIP's */

/* A HIP process has GPU_MAX_HW_QUEUES queues and one more of ROCr's own; what the slots allow, down to 1. */
static uint64_t hw_queues_proposal(const struct gp_facts_gpu *gpu)
{
	uint64_t each = gpu->process_count ? gpu->slot_count / gpu->process_count : HW_QUEUES_DEFAULT + 1u;

	return each > HW_QUEUES_DEFAULT + 1u ? HW_QUEUES_DEFAULT : each > 2 ? each - 1 : 1;
}

static void hw_queues_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < facts->process_count; i++)
		if (facts->processes[i].hw_queues != GP_FACTS_UNKNOWN && facts->processes[i].hw_queues > most)
			most = facts->processes[i].hw_queues;
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct gp_facts_gpu *gpu = &facts->gpus[i];
		uint64_t proposal, fit, now = most ? most : HW_QUEUES_DEFAULT;
		struct gp_finding *finding;

		if (gpu->slot_count == GP_FACTS_UNKNOWN || !gpu->process_count)
			continue;
		proposal = hw_queues_proposal(gpu);
		if (proposal >= now) {
			gp_report_add(report, GP_SEVERITY_OK, gpu->gpu_id,
				      "GPU_MAX_HW_QUEUES %" PRIu64 "%s fits %u processes", now,
				      most ? "" : " (HIP's default)", gpu->process_count);
			continue;
		}
		finding = gp_report_add(report, GP_SEVERITY_WARNING, gpu->gpu_id,
					"%u processes with GPU_MAX_HW_QUEUES %" PRIu64 "%s may have %" PRIu64
					" queues, there are %" PRIu64 " slots",
					gpu->process_count, now, most ? "" : " (HIP's default)",
					gpu->process_count * (now + 1), gpu->slot_count);
		fit = gpu->slot_count / 2; /* the least a process has is one queue and ROCr's own */
		if (gpu->process_max != GP_FACTS_UNKNOWN && gpu->process_max && gpu->process_max < fit)
			fit = gpu->process_max;
		if (gpu->process_count > fit)
			gp_finding_advise(finding,
					  "even with GPU_MAX_HW_QUEUES=1 only %" PRIu64
					  " such processes fit: end %" PRIu64
					  " of them, or move them to another GPU or partition",
					  fit, gpu->process_count - fit);
		else
			gp_finding_advise(finding,
					  "start them with GPU_MAX_HW_QUEUES=%" PRIu64
					  " (gpreempt run --hw-queues %" PRIu64 ")",
					  proposal, proposal);
	}
}

const struct gp_doctor_rule gp_rule_hw_queues = { "hw-queues", "GPU_MAX_HW_QUEUES, with a proposal", hw_queues_check };
