/* SPDX-License-Identifier: MIT */
/* Tail effect: kernels whose last wave of workgroups fills only part of the device. Assumes one workgroup per compute
 * unit at a time, which the text says. Speaks if more than 15 % of the kernel time with known grids is lost. */
#include "report/rules.h"

#define TAIL_PPM 150000u

static bool tail_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	uint64_t lost_ppm;
	GP_RULE_TEXT(lost);
	GP_RULE_TEXT(share);

	if (!report->has_tail)
		return false;
	lost_ppm = gp_rule_ppm(report->tail_ns, report->tail_kernel_ns);
	finding->share_ppm = gp_rule_ppm(report->tail_ns, report->wall_ns);
	if (lost_ppm < TAIL_PPM || finding->share_ppm < 10000)
		return false;
	finding->title = "Grids that fill only part of the device";
	finding->confidence = GP_CONFIDENCE_LOW;
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"Last waves that are not full leave %s of kernel time unused (%s of it), if one workgroup runs per compute "
		"unit at a time; with more of them per unit it is worse for small grids.",
		gp_rule_ns(report->tail_ns, lost), gp_rule_percent(lost_ppm, share));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Choose grids that are a multiple of the compute units, split work finer, or let a second stream fill the rest.");
	return true;
}

const struct gp_report_rule gp_rule_tail = { "tail", tail_check };
