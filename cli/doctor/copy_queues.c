/* SPDX-License-Identifier: MIT */
/* Rule: SDMA queues: the ninth process copies with kernels. */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void copy_queues_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct gp_facts_gpu *gpu = &facts->gpus[i];
		struct gp_finding *finding;

		if (gpu->sdma_queue_count == GP_FACTS_UNKNOWN || !gpu->sdma_queue_count ||
		    gpu->copy_count + 2 <= gpu->sdma_queue_count)
			continue;
		finding = gp_report_add(report, GP_SEVERITY_WARNING, gpu->gpu_id,
					"%u of %" PRIu64 " copy (SDMA) queues are taken; a process wants 2",
					gpu->copy_count, gpu->sdma_queue_count);
		gp_finding_advise(
			finding,
			"the next process will copy with kernels, on compute units and one more compute queue: fewer processes, or HSA_ENABLE_SDMA=0 for some");
	}
}

const struct gp_doctor_rule gp_rule_copy_queues = { "copy-queues", "SDMA queues left for copies", copy_queues_check };
