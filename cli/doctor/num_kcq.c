/* SPDX-License-Identifier: MIT */
/* Rule: slots that the kernel keeps for itself. */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

#define NUM_KCQ_DEFAULT 8u

static void num_kcq_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	uint64_t kept = facts->num_kcq == GP_FACTS_UNKNOWN ? NUM_KCQ_DEFAULT : facts->num_kcq;

	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct gp_facts_gpu *gpu = &facts->gpus[i];
		struct gp_finding *finding;

		if (gpu->slot_count == GP_FACTS_UNKNOWN || gpu->compute_count * 4ull <= gpu->slot_count * 3 || !kept)
			continue;
		finding = gp_report_add(report, GP_SEVERITY_INFO, gpu->gpu_id,
					"the kernel keeps %" PRIu64 " slots for itself (amdgpu.num_kcq%s)", kept,
					facts->num_kcq == GP_FACTS_UNKNOWN ? ", default" : "");
		gp_finding_advise(
			finding,
			"ROCm does not use those: amdgpu.num_kcq=2 on the kernel's command line frees %" PRIu64
			" for it",
			kept > 2 ? kept - 2 : kept);
	}
}

const struct gp_doctor_rule gp_rule_num_kcq = { "num-kcq", "slots kept by the kernel, when slots are short",
						num_kcq_check };
