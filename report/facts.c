/* SPDX-License-Identifier: MIT */
/* Owns which sentences of a log count: with a window those whose time lies in it, on the clock of the trace. */
#include <inttypes.h>
#include "lib/units.h"
#include "report/analysis.h"

/* What happened at a moment; the others say what a machine or a file is like. */
static bool facts_is_moment(enum gp_fact_kind kind)
{
	return kind == GP_FACT_OVERSUBSCRIBED || kind == GP_FACT_PREEMPTION_FAILED || kind == GP_FACT_EVICTION ||
	       kind == GP_FACT_RESET || kind == GP_FACT_QUEUE_CREATED;
}

static bool facts_has_window(const struct gp_analysis *analysis)
{
	return analysis->filter.has_from || analysis->filter.has_to;
}

bool gp_facts_counts(const struct gp_analysis *analysis, const struct gp_kept_fact *fact)
{
	if (!facts_is_moment(fact->kind) || !facts_has_window(analysis))
		return true;
	return fact->has_time && fact->time_ns >= analysis->clip_from_ns && fact->time_ns < analysis->clip_to_ns;
}

uint64_t gp_facts_count(const struct gp_analysis *analysis, enum gp_fact_kind kind)
{
	uint64_t count = 0;

	if (!facts_has_window(analysis))
		return analysis->facts->counts[kind];
	for (uint32_t i = 0; i < analysis->facts->count; i++)
		count +=
			analysis->facts->facts[i].kind == kind && gp_facts_counts(analysis, &analysis->facts->facts[i]);
	return count;
}

uint64_t gp_facts_first_ns(const struct gp_analysis_facts *facts)
{
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = 0; i < facts->count; i++)
		if (facts->facts[i].has_time && facts->facts[i].time_ns < first_ns)
			first_ns = facts->facts[i].time_ns;
	return first_ns == UINT64_MAX ? 0 : first_ns;
}

/* A log may have no times or another clock, so what a window leaves out is said, never dropped in silence. */
int gp_facts_warn(struct gp_analysis *analysis)
{
	const struct gp_analysis_facts *facts = analysis->facts;
	uint64_t outside = 0, timeless = 0;
	int r = 0;

	if (!facts_has_window(analysis))
		return 0;
	for (uint32_t i = 0; i < facts->count; i++) {
		outside += !gp_facts_counts(analysis, &facts->facts[i]) && facts->facts[i].has_time;
		timeless += !gp_facts_counts(analysis, &facts->facts[i]) && !facts->facts[i].has_time;
	}
	if (outside)
		r |= gp_warn(analysis->report,
			     "%" PRIu64 " %s of a log outside the window, by the trace's clock, %s not count", outside,
			     gp_units_word(outside, "line", "lines"), gp_units_word(outside, "does", "do"));
	if (timeless)
		r |= gp_warn(analysis->report, "%" PRIu64 " %s of a log without a time %s not count in a window",
			     timeless, gp_units_word(timeless, "line", "lines"), gp_units_word(timeless, "does", "do"));
	if (facts->count == GP_ANALYSIS_FACT_MAX)
		r |= gp_warn(
			analysis->report,
			"of the lines of logs only the first %u are looked at for a window: there may be more in it",
			GP_ANALYSIS_FACT_MAX);
	return r;
}
