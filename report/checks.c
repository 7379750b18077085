/* SPDX-License-Identifier: MIT */
/* Owns the points of verification: the way of a kernel from the application to the hardware and back, each with the row
 * that shows it, or the plain statement that this trace does not. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/units.h"
#include "report/analysis.h"

#define CHECKS_MAX 9

static const char *checks_ns(uint64_t ns, char *buffer)
{
	return gp_units_format_ns(ns, buffer, GP_UNITS_TEXT_SIZE);
}

static struct gp_report_check *checks_add(struct gp_report *report, const char *title)
{
	struct gp_report_check *check = &report->checks[report->check_count++];

	check->title = title;
	check->state = GP_CHECK_NOT_VISIBLE;
	check->evidence[0] = '\0';
	return check;
}

/* "hsa_queue_create, 11.2 ms, from 59.4 ms on (trace.csv:17)" */
static void checks_evidence(struct gp_analysis *analysis, enum analysis_evidence_id id, const char *title)
{
	const struct analysis_evidence *evidence = &analysis->evidence[id];
	struct gp_report_check *check = checks_add(analysis->report, title);
	char length[GP_UNITS_TEXT_SIZE], from[GP_UNITS_TEXT_SIZE];

	if (!evidence->is_seen)
		return;
	check->state = GP_CHECK_SEEN;
	(void)snprintf(check->evidence, sizeof(check->evidence), "%.120s, %s, %s from the start (%.100s:%" PRIu32 ")",
		       gp_names_get(&analysis->store->names, evidence->name),
		       checks_ns(evidence->end_ns - evidence->start_ns, length),
		       checks_ns(evidence->start_ns - analysis->first_ns, from),
		       analysis->store->files[evidence->file].name, evidence->row);
}

/* The host saw the end: by the trace's own stamp, or because somebody waited for a signal. */
static void checks_completion(struct gp_analysis *analysis)
{
	const struct analysis_evidence *complete = &analysis->evidence[EVIDENCE_COMPLETE];
	struct gp_report_check *check;
	char length[GP_UNITS_TEXT_SIZE];

	if (!complete->is_seen) {
		checks_evidence(analysis, EVIDENCE_SIGNAL_WAIT, "signal completed");
		check = &analysis->report->checks[analysis->report->check_count - 1];
		check->state = check->evidence[0] ? GP_CHECK_INFERRED : GP_CHECK_NOT_VISIBLE;
		return;
	}
	check = checks_add(analysis->report, "signal completed");
	check->state = GP_CHECK_SEEN;
	(void)snprintf(
		check->evidence, sizeof(check->evidence), "%.120s, complete %s after its end (%.100s:%" PRIu32 ")",
		gp_names_get(&analysis->store->names, complete->name),
		checks_ns(complete->extra_ns > complete->end_ns ? complete->extra_ns - complete->end_ns : 0, length),
		analysis->store->files[complete->file].name, complete->row);
}

static void checks_fact(struct gp_analysis *analysis, enum gp_fact_kind kind, const char *title)
{
	struct gp_report_check *check = checks_add(analysis->report, title);

	for (uint32_t i = 0; i < analysis->facts->count; i++) {
		const struct gp_kept_fact *fact = &analysis->facts->facts[i];

		if (fact->kind != kind || !gp_facts_counts(analysis, fact))
			continue;
		check->state = GP_CHECK_SEEN;
		(void)snprintf(check->evidence, sizeof(check->evidence), "%.150s (%.100s:%" PRIu64 ")", fact->text,
			       analysis->store->files[fact->file].name, fact->row);
		return;
	}
}

int gp_checks(struct gp_analysis *analysis, struct gp_error *error)
{
	struct gp_report *report = analysis->report;
	uint32_t queue;

	report->checks = calloc(CHECKS_MAX, sizeof(*report->checks));
	if (!report->checks)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	checks_evidence(analysis, EVIDENCE_LAUNCH, "kernel launched by the application");
	queue = report->check_count;
	checks_evidence(analysis, EVIDENCE_QUEUE_CREATE, "queue created");
	if (report->checks[queue].state == GP_CHECK_NOT_VISIBLE && gp_facts_count(analysis, GP_FACT_QUEUE_CREATED)) {
		report->check_count--;
		checks_fact(analysis, GP_FACT_QUEUE_CREATED, "queue created");
	}
	checks_evidence(analysis, EVIDENCE_WRITE_INDEX, "packet written (write index moved)");
	checks_evidence(analysis, EVIDENCE_DOORBELL, "doorbell rung (signal store behind it)");
	checks_evidence(analysis, EVIDENCE_KERNEL, "kernel started");
	checks_completion(analysis);
	checks_fact(analysis, GP_FACT_SCHEDULER, "hardware scheduler: CPSCH or MES");
	return 0;
}
