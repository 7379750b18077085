/* SPDX-License-Identifier: MIT */
/* Rule: is there a GPU that can be scheduled: one that KFD knows, or NVIDIA's driver? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

#define ADVICE_OTHERS \
	"NVIDIA: install the driver and load it (modprobe nvidia); without a GPU: vgpu run gives a virtual one"

static void device_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	for (uint32_t i = 0; i < facts->nvidia.gpu_count; i++) {
		const struct gp_facts_nvidia_gpu *gpu = &facts->nvidia.gpus[i];

		gp_report_add(report, GP_SEVERITY_OK, gpu->gpu_id, "%s at %s",
			      gpu->model[0] ? gpu->model : "an NVIDIA GPU", gpu->bdf);
	}
	if (facts->gpu_count || facts->nvidia.gpu_count) {
		for (uint32_t i = 0; i < facts->gpu_count; i++) {
			const struct gp_facts_gpu *gpu = &facts->gpus[i];

			gp_report_add(report, GP_SEVERITY_OK, gpu->gpu_id,
				      "node %u: %s, gfx version %" PRIu64 ", %" PRIu64 " CUs", gpu->node,
				      gpu->name[0] ? gpu->name : "(no name)",
				      gpu->gfx_version == GP_FACTS_UNKNOWN ? 0 : gpu->gfx_version,
				      gpu->cu_count == GP_FACTS_UNKNOWN ? 0 : gpu->cu_count);
		}
		return;
	}
	finding = gp_report_add(report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
				"no GPU: %s, and none in /sys/class/kfd: %s",
				facts->nvidia.has_driver ? "NVIDIA's driver lists none" : "no NVIDIA driver",
				!facts->has_module   ? "the amdgpu module is not loaded" :
				!facts->kfd.is_there ? "there is no /dev/kfd" :
						       "KFD lists only CPUs");
	gp_finding_advise(
		finding,
		facts->has_module ?
			"AMD, in a container: pass /dev/kfd and /dev/dri in; AMD, else: see dmesg for why KFD skipped the GPU; " ADVICE_OTHERS :
			"AMD: load the driver (modprobe amdgpu); " ADVICE_OTHERS);
}

const struct gp_doctor_rule gp_rule_device = { "device", "a GPU that KFD knows, or NVIDIA's driver", device_check };
