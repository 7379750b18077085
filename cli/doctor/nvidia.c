/* SPDX-License-Identifier: MIT */
/* Rule: can the NVIDIA GPUs here be scheduled, by driver and mode? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

#define NVIDIA_DRIVER_MIN      470u /* as in device/nvidia/probe.c */
#define NVIDIA_DRIVER_MEASURED 580u

static void nvidia_driver(const struct gp_facts_nvidia *nvidia, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (nvidia->major == GP_FACTS_UNKNOWN) {
		gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
			      "the NVIDIA driver's version is not known");
		return;
	}
	finding = gp_report_add(report,
				nvidia->major < NVIDIA_DRIVER_MIN      ? GP_SEVERITY_PROBLEM :
				nvidia->major < NVIDIA_DRIVER_MEASURED ? GP_SEVERITY_INFO :
									 GP_SEVERITY_OK,
				GP_FACTS_UNKNOWN, "NVIDIA driver %s, %s kernel modules", nvidia->version,
				nvidia->is_open ? "open" : "proprietary");
	if (nvidia->major < NVIDIA_DRIVER_MIN)
		gp_finding_advise(finding, "nothing older than 470 is scheduled: install a newer driver");
	else if (nvidia->major < NVIDIA_DRIVER_MEASURED)
		gp_finding_advise(
			finding,
			"measured with 580; the agent leaves a driver alone whose answers it does not understand");
}

static void nvidia_gpu(const struct gp_facts_nvidia_gpu *gpu, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (gpu->has_mig) {
		finding = gp_report_add(report, GP_SEVERITY_PROBLEM, gpu->gpu_id, "%s: MIG is on", gpu->model);
		gp_finding_advise(finding,
				  "its instances are not scheduled; nvidia-smi -i %s -mig 0 makes it one GPU again",
				  gpu->bdf);
	}
	if (gpu->is_vgpu) {
		finding = gp_report_add(report, GP_SEVERITY_PROBLEM, gpu->gpu_id, "%s is a vGPU", gpu->model);
		gp_finding_advise(finding, "its host schedules it: gpreempt has to run there");
	}
	if (!strncmp(gpu->compute_mode, "Exclusive", 9) || !strncmp(gpu->compute_mode, "Prohibited", 10)) {
		finding = gp_report_add(
			report, GP_SEVERITY_PROBLEM, gpu->gpu_id, "compute mode %s: %s", gpu->compute_mode,
			gpu->compute_mode[0] == 'E' ? "a second program gets no context" : "no program gets a context");
		gp_finding_advise(finding, "nvidia-smi -i %s -c DEFAULT", gpu->bdf);
	}
	if (!strncmp(gpu->persistence, "Disabled", 8)) {
		finding = gp_report_add(
			report, GP_SEVERITY_INFO, gpu->gpu_id,
			"persistence mode is off: the first program after a pause waits until the GPU is set up again");
		gp_finding_advise(finding, "systemctl enable --now nvidia-persistenced");
	}
}

static void nvidia_file(const struct gp_facts_file *file, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (!file->path[0] || file->is_usable)
		return;
	finding = gp_report_add(report, file->is_there ? GP_SEVERITY_PROBLEM : GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
				file->is_there ? "%s may not be opened by you (mode %04o, group %s)" : "there is no %s",
				file->path, file->mode, file->group[0] ? file->group : "?");
	gp_finding_advise(finding, file->is_there ?
					   "add the user to that group, or see NVreg_DeviceFileMode of the driver" :
					   "nvidia-modprobe makes it; in a container pass it in (--gpus all)");
}

static void nvidia_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	const struct gp_facts_nvidia *nvidia = &facts->nvidia;
	struct gp_finding *finding;

	if (!nvidia->has_driver) {
		gp_report_add(report, GP_SEVERITY_OK, GP_FACTS_UNKNOWN, "no NVIDIA driver here");
		return;
	}
	nvidia_driver(nvidia, report);
	for (uint32_t i = 0; i < nvidia->gpu_count; i++)
		nvidia_gpu(&nvidia->gpus[i], report);
	nvidia_file(&nvidia->control, report);
	for (uint32_t i = 0; i < nvidia->gpu_count; i++)
		nvidia_file(&nvidia->gpus[i].file, report);
	if (!nvidia->mps_pid)
		return;
	finding =
		gp_report_add(report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
			      "MPS runs (pid %" PRIu64 "): its clients share one context and cannot be scheduled apart",
			      nvidia->mps_pid);
	gp_finding_advise(finding, "echo quit | nvidia-cuda-mps-control, then restart gpreemptd and the programs");
}

const struct gp_doctor_rule gp_rule_nvidia = { "nvidia", "NVIDIA: driver, MIG, MPS, vGPU, compute mode, device files",
					       nvidia_check };
