/* SPDX-License-Identifier: MIT */
/* The driver reset the GPU. That a ring hung says nothing about preemption: this is its own finding. */
#include "report/rules.h"

static bool gpu_reset_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	if (!report->reset_count)
		return false;
	finding->title = "The driver reset the GPU";
	finding->share_ppm = 1000000;
	finding->confidence = GP_CONFIDENCE_HIGH;
	(void)snprintf(finding->text, sizeof(finding->text),
		       "The driver reports %" PRIu64
		       " %s of a GPU. Work that ran then was lost; the log says which ring "
		       "or process hung.",
		       report->reset_count, gp_units_word(report->reset_count, "reset", "resets"));
	(void)snprintf(finding->advice, sizeof(finding->advice),
		       "Find what hung before measuring anything: the lines in front of the reset name it.");
	return true;
}

const struct gp_report_rule gp_rule_gpu_reset = { "gpu-reset", gpu_reset_check };
