/* SPDX-License-Identifier: MIT */
/* Contention: kernels of one process waited while another process had the device, for more than 2 % of the run. */
#include "report/rules.h"

#define CONTENTION_PPM 20000u

static bool contention_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	const struct gp_report_process *worst = NULL;
	uint32_t users = 0;
	char who[32] = "one of them";
	GP_RULE_TEXT(behind);

	for (uint32_t i = 0; i < report->process_count; i++) {
		const struct gp_report_process *process = &report->processes[i];

		users += process->gpu_ns > 0;
		if (process->has_behind && (!worst || process->behind_ns > worst->behind_ns))
			worst = process;
	}
	if (users < 2 || !worst)
		return false;
	finding->share_ppm = gp_rule_ppm(worst->behind_ns, report->wall_ns);
	if (finding->share_ppm < CONTENTION_PPM)
		return false;
	finding->share_ppm = finding->share_ppm > 1000000 ? 1000000 : finding->share_ppm;
	finding->title = "Processes wait for each other";
	finding->confidence = GP_CONFIDENCE_MEDIUM;
	if (worst->has_pid)
		(void)snprintf(who, sizeof(who), "process %" PRIu64, worst->pid);
	(void)snprintf(finding->text, sizeof(finding->text),
		       "%" PRIu32 " processes use the GPU. Kernels of %s waited %s in all while others ran (summed "
		       "over its kernels; the others may not be the only reason).",
		       users, who, gp_rule_ns(worst->behind_ns, behind));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"If one of them is urgent, give it priority over the others (`gpreempt sim --mix serve+train` shows what that "
		"is worth); if none is, long turns cost less than sharing.");
	return true;
}

const struct gp_report_rule gp_rule_contention = { "contention", contention_check };
