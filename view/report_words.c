/* SPDX-License-Identifier: MIT */
/* Owns the words that all views of a report share. */
#include "view/report.h"

const char *gp_report_layer_name(const struct gp_report *report, int layer)
{
	static const char *const names[GP_REPORT_LAYER_COUNT] = { "application", "libraries", "HIP", "HSA", "driver" };

	if (layer == GP_REPORT_HIP && report->has_cuda)
		return report->has_hip ? "HIP and CUDA" : "CUDA";
	return names[layer];
}

const char *const gp_report_step_names[GP_STEP_KIND_COUNT] = {
	[GP_STEP_APPLICATION] = "application",
	[GP_STEP_CALL] = "call",
	[GP_STEP_LAUNCH] = "submitting in",
	[GP_STEP_KERNEL] = "kernel",
	[GP_STEP_COPY] = "copy",
	[GP_STEP_RETURN] = "returning from",
	[GP_STEP_QUEUE] = "in line for",
	[GP_STEP_PENDING] = "launched, not started:",
	[GP_STEP_EVENT] = "after an event:",
	[GP_STEP_BESIDE] = "behind another stream:",
	[GP_STEP_UNKNOWN] = "unknown before",
};

const char *const gp_report_confidence_names[] = { "low", "medium", "high" };
