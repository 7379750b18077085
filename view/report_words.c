/* SPDX-License-Identifier: MIT */
/* Owns the words that all views of a report share. */
#include <stdio.h>
#include "view/report.h"
#include "view/symbol.h"

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

const char *gp_report_step_text(enum gp_report_step_kind kind, const char *name, char *buffer, size_t buffer_size)
{
	bool is_work = kind != GP_STEP_APPLICATION && kind != GP_STEP_CALL && kind != GP_STEP_LAUNCH &&
		       kind != GP_STEP_RETURN && kind != GP_STEP_COPY;
	char text[1200];

	(void)snprintf(buffer, buffer_size, "%s %s", gp_report_step_names[kind],
		       is_work ? gp_symbol_short(name, text, sizeof(text)) : name);
	return buffer;
}
