/* SPDX-License-Identifier: MIT */
/* Cold start: first calls that cost far more than later ones of the same name, and calls that set something up. Speaks
 * from 10 % of the run on. */
#include <string.h>
#include "report/rules.h"

#define COLD_START_PPM      100000u
#define COLD_START_MOST_PPM 500000u

static void cold_start_inside(const struct gp_report *report, const struct gp_report_cold *cold, char *text,
			      size_t size)
{
	GP_RULE_TEXT(silent);

	text[0] = '\0';
	if (report->layers[GP_REPORT_HSA].is_traced && cold->silent_ns > cold->first_ns / 4)
		(void)snprintf(text, size, " Inside it lies a stretch of %s without any traced call.",
			       gp_rule_ns(cold->silent_ns, silent));
}

static bool cold_start_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	GP_RULE_TEXT(total);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(first);
	GP_RULE_TEXT(later);
	GP_RULE_TEXT(engine);
	const struct gp_report_cold *cold = report->colds;
	char inside[128];
	bool is_blind;

	finding->share_ppm = gp_rule_ppm(report->cold_ns, report->wall_ns);
	if (!report->cold_count || finding->share_ppm < COLD_START_PPM)
		return false;
	finding->title = finding->share_ppm >= COLD_START_MOST_PPM ? "Start-up dominates, not the work" :
								     "A part of the run is start-up, not work";
	is_blind = !report->has_gpu || (!report->copy_count && strstr(cold->name, "emcpy"));
	/* Without the engines in the trace a first call may as well have waited for work. */
	finding->confidence =
		cold->later_count && !is_blind && gp_rule_is_whole(report) ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_MEDIUM;
	cold_start_inside(report, cold, inside, sizeof(inside));
	(void)gp_rule_ns(report->cold_ns, total);
	(void)gp_rule_percent(finding->share_ppm, share);
	(void)gp_rule_ns(cold->first_ns, first);
	if (cold->later_count && is_blind)
		(void)snprintf(
			finding->text, sizeof(finding->text),
			"%s (%s of the run) went into things that happen once, as far as calls tell: the GPU's work is "
			"not in this trace. The first %.80s took %s, the %" PRIu64 " later ones %s (median).%s",
			total, share, cold->name, first, cold->later_count, gp_rule_ns(cold->later_ns, later), inside);
	else if (cold->later_count)
		(void)snprintf(
			finding->text, sizeof(finding->text),
			"%s (%s of the run) went into things that happen once. The first %.80s took %s, of which the "
			"GPU was at work for %s; the %" PRIu64 " later ones took %s (median, without GPU time).%s",
			total, share, cold->name, first, gp_rule_ns(cold->engine_ns, engine), cold->later_count,
			gp_rule_ns(cold->later_ns, later), inside);
	else
		(void)snprintf(finding->text, sizeof(finding->text),
			       "%s (%s of the run) went into things that happen once; the longest is %.80s with %s.%s",
			       total, share, cold->name, first, inside);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Do not read these calls as work: measure a second iteration. To shorten start-up, keep the process "
		"alive between jobs, and warm it up (one small copy, one launch) before the clock starts.");
	return true;
}

const struct gp_report_rule gp_rule_cold_start = { "cold-start", cold_start_check };
