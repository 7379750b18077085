/* SPDX-License-Identifier: MIT */
/* Owns the words that all views of a report share. */
#include "view/report.h"

const char *const gp_report_layer_names[GP_REPORT_LAYER_COUNT] = { "application", "libraries", "HIP", "HSA", "driver" };

const char *const gp_report_step_names[GP_STEP_KIND_COUNT] = {
	[GP_STEP_APPLICATION] = "application", [GP_STEP_CALL] = "call", [GP_STEP_LAUNCH] = "submitting in",
	[GP_STEP_KERNEL] = "kernel",           [GP_STEP_COPY] = "copy", [GP_STEP_RETURN] = "returning from",
	[GP_STEP_QUEUE] = "in line for",
};

const char *const gp_report_confidence_names[] = { "low", "medium", "high" };
