/* SPDX-License-Identifier: MIT */
/* Owns the time in which neither a call nor the GPU is active: before the first work, behind the last, and the part in
 * which the work that came next had been launched and did not start. That part is not the program's: the GPU was not
 * free, or this work waited for something. */
#include "report/analysis.h"

#define ALONE_LATE_NS 100000u /* a GPU that is free starts work within tens of microseconds */

void gp_alone_add(struct gp_analysis *analysis, const struct gp_trace_record *record)
{
	struct gp_busy *active = &analysis->calls_or_gpu;

	if (active->is_used && record->start_ns > active->end_ns)
		analysis->alone.total_ns += record->start_ns - active->end_ns;
	gp_busy_add(active, record->start_ns, record->end_ns);
}

void gp_alone_work(struct gp_analysis *analysis, const struct gp_trace_record *record, const struct gp_launch *launch)
{
	struct analysis_alone *alone = &analysis->alone;
	uint64_t from_ns = alone->work_ns, ready_ns = analysis->gpu.is_used ? analysis->gpu.end_ns : 0;

	if (launch) {
		from_ns = launch->alone_ns > from_ns ? launch->alone_ns : from_ns;
		ready_ns = launch->end_ns > ready_ns ? launch->end_ns : ready_ns;
	}
	alone->is_late = launch && record->start_ns > ready_ns && record->start_ns - ready_ns >= ALONE_LATE_NS;
	if (alone->is_late) {
		alone->launched_ns += alone->total_ns - from_ns;
		if (!analysis->gpu.is_used)
			alone->launched_before_ns = alone->total_ns - from_ns;
	}
	if (!analysis->gpu.is_used)
		alone->before_ns = alone->total_ns;
	alone->work_ns = alone->total_ns;
}
