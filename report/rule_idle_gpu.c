/* SPDX-License-Identifier: MIT */
/* The GPU is idle while the host computes: time without any traced call and without work on any engine, from 20 % of
 * the run on. Work that was launched and is not in the trace may have filled it: then this is no finding. */
#include <string.h>
#include "report/rules.h"

#define IDLE_GPU_PPM 200000u

/* " The longest stretch between work, 4 ms, is inside aten::item." Where work had been launched and started late, the
 * program was not the reason. */
static void idle_gpu_where(const struct gp_report *report, char *text, size_t size)
{
	const struct gp_report_idle *idle = report->idles, *end = report->idles + report->idle_count;
	GP_RULE_TEXT(length);

	text[0] = '\0';
	while (idle < end && idle->is_late)
		idle++;
	if (idle == end)
		return;
	(void)gp_rule_ns(idle->end_ns - idle->start_ns, length);
	if (idle->range || idle->call)
		(void)snprintf(text, size, " The longest stretch between work, %s, is inside %.100s.", length,
			       idle->range ? idle->range : idle->call);
	else
		(void)snprintf(text, size, " The longest stretch between work, %s, is inside no call or range.",
			       length);
}

/* Whether most of it lies before the first work or behind the last; then the text says how much. */
static bool idle_gpu_is_outside(const struct gp_report *report, uint64_t idle_ns, char *text, size_t size)
{
	uint64_t before_ns = report->idle_before_ns - report->idle_launched_before_ns;
	GP_RULE_TEXT(before);
	GP_RULE_TEXT(behind);

	if (before_ns + report->idle_behind_ns < idle_ns / 2)
		return false;
	(void)snprintf(text, size, " Of the idle time, %s lie before the first work on the GPU and %s behind the last.",
		       gp_rule_ns(before_ns, before), gp_rule_ns(report->idle_behind_ns, behind));
	return true;
}

static bool idle_gpu_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(idle);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(busy);
	GP_RULE_TEXT(joined);
	char where[192], missing[160] = "";
	uint64_t idle_ns = report->idle_alone_ns - report->idle_launched_ns;
	bool is_outside;

	finding->share_ppm = gp_rule_ppm(idle_ns, report->wall_ns);
	if (!report->has_gpu || !report->layers[GP_REPORT_APPLICATION].is_traced || finding->share_ppm < IDLE_GPU_PPM)
		return false;
	/* What lies between the files of two runs was nobody's. */
	if (report->is_apart || gp_rule_joined_ppm(report) < 500000)
		return false;
	finding->title = "The GPU is idle while the host computes";
	finding->confidence = !report->layers[GP_REPORT_HIP].is_traced ? GP_CONFIDENCE_LOW :
			      gp_rule_is_whole(report)                 ? GP_CONFIDENCE_HIGH :
									 GP_CONFIDENCE_LOW;
	if (!gp_rule_is_whole(report))
		(void)snprintf(
			missing, sizeof(missing),
			" Only %s of the launches and kernels have their counterpart in the trace: the rest may fill this time.",
			gp_rule_percent(gp_rule_joined_ppm(report), joined));
	is_outside = idle_gpu_is_outside(report, idle_ns, where, sizeof(where));
	if (!is_outside)
		idle_gpu_where(report, where, sizeof(where));
	(void)snprintf(
		finding->text, sizeof(finding->text),
		"For %s (%s of the run) neither a traced call nor the GPU was active: the program computed, read or slept. "
		"The GPU was busy for %s in all.%s%s",
		gp_rule_ns(idle_ns, idle), gp_rule_percent(finding->share_ppm, share),
		gp_rule_ns(report->gpu_busy_ns, busy), where, missing);
	(void)snprintf(
		finding->advice, sizeof(finding->advice), "%s%s",
		is_outside ?
			"To overlap steps will not help: look at what the program does before its first launch and "
			"after its last result." :
			"Prepare the next step while the current one runs: launch first, compute after, wait last.",
		report->marker_count ? "" : " Ranges in the program (ROCTX, record_function) show what it does then.");
	return true;
}

const struct gp_report_rule gp_rule_idle_gpu = { "idle-gpu", idle_gpu_check };
