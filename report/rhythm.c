/* SPDX-License-Identifier: MIT */
/* Owns the rhythm of a run: the longest stretches in which the GPU had nothing to do, with what the host did around
 * them, and steps that repeat: from one wait of the host for the GPU to the next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

#define RHYTHM_STEPS_MAX    65536u /* looked at */
#define RHYTHM_STEP_KERNELS 8u     /* fewer are no step of a model */
#define RHYTHM_STEPS_MIN    8u
#define RHYTHM_WHOLE_PPM    950000u /* a range that covers so much of the run says nothing about a part of it */

void gp_rhythm_idle(struct gp_analysis *analysis, uint64_t from_ns, uint64_t to_ns)
{
	struct analysis_idle *least = &analysis->idles[0];

	if (analysis->idle_count < ANALYSIS_IDLES) {
		least = &analysis->idles[analysis->idle_count++];
	} else {
		for (uint32_t i = 1; i < ANALYSIS_IDLES; i++)
			if (analysis->idles[i].end_ns - analysis->idles[i].start_ns < least->end_ns - least->start_ns)
				least = &analysis->idles[i];
		if (least->end_ns - least->start_ns >= to_ns - from_ns)
			return;
	}
	*least = (struct analysis_idle){ .start_ns = from_ns,
					 .end_ns = to_ns,
					 .is_late = analysis->alone.is_late,
					 .range = GP_ANALYSIS_NONE,
					 .call = GP_ANALYSIS_NONE };
}

int gp_rhythm_wait(struct gp_analysis *analysis, const struct analysis_call *call)
{
	struct analysis_thread *thread = &analysis->threads[call->thread];
	struct analysis_process *process = &analysis->processes[thread->process];
	uint64_t busy_ns = gp_busy_until(&process->gpu, call->end_ns);

	if (process->kernels - thread->step_kernels < RHYTHM_STEP_KERNELS)
		return 0;
	if (thread->has_step && analysis->step_count < RHYTHM_STEPS_MAX) {
		if (analysis->step_count == analysis->step_room) {
			uint32_t larger = analysis->step_room ? 2 * analysis->step_room : 64;
			struct analysis_step *moved = realloc(analysis->steps, larger * sizeof(*moved));

			if (!moved)
				return -ENOMEM;
			analysis->steps = moved;
			analysis->step_room = larger;
		}
		analysis->steps[analysis->step_count++] =
			(struct analysis_step){ .thread = call->thread,
						.kernels = process->kernels - thread->step_kernels,
						.ns = call->end_ns - thread->step_end_ns,
						.busy_ns = busy_ns - thread->step_busy_ns };
	}
	thread->has_step = true;
	thread->step_kernels = process->kernels;
	thread->step_busy_ns = busy_ns;
	thread->step_end_ns = call->end_ns;
	return 0;
}

static int rhythm_compare_idles(const void *a, const void *b)
{
	const struct analysis_idle *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

void gp_rhythm_sort(struct gp_analysis *analysis)
{
	qsort(analysis->idles, analysis->idle_count, sizeof(analysis->idles[0]), rhythm_compare_idles);
}

/* The shortest that covers at least half of a stretch says best what it was. */
static void rhythm_around(struct gp_analysis *analysis, struct analysis_idle *idle,
			  const struct gp_trace_record *record)
{
	uint64_t from = record->start_ns > idle->start_ns ? record->start_ns : idle->start_ns;
	uint64_t to = record->end_ns < idle->end_ns ? record->end_ns : idle->end_ns;
	uint64_t length = record->end_ns - record->start_ns;
	bool is_range = record->layer == GP_LAYER_MARKER;
	const char *name;

	if (to <= from || (to - from) * 2 < idle->end_ns - idle->start_ns)
		return;
	if (is_range ? idle->range != GP_ANALYSIS_NONE && idle->range_ns <= length :
		       idle->call != GP_ANALYSIS_NONE && idle->call_ns <= length)
		return;
	if (!is_range) {
		idle->call = record->name;
		idle->call_ns = length;
		return;
	}
	name = gp_names_get(&analysis->store->names, record->name);
	if (strstr(name, "(on the GPU)") ||
	    (double)length * 1e6 > (double)(analysis->last_ns - analysis->first_ns) * RHYTHM_WHOLE_PPM)
		return;
	idle->range = record->name;
	idle->range_ns = length;
}

void gp_rhythm_name(struct gp_analysis *analysis, const struct gp_trace_record *record)
{
	if (record->layer == GP_LAYER_KERNEL || record->layer == GP_LAYER_COPY || record->layer == GP_LAYER_WAIT ||
	    record->layer == GP_LAYER_MEMORY)
		return;
	for (uint32_t i = 0; i < analysis->idle_count && analysis->idles[i].start_ns < record->end_ns; i++)
		if (analysis->idles[i].end_ns > record->start_ns)
			rhythm_around(analysis, &analysis->idles[i], record);
}

static int rhythm_compare_reports(const void *a, const void *b)
{
	const struct gp_report_idle *x = a, *y = b;
	uint64_t left = x->end_ns - x->start_ns, right = y->end_ns - y->start_ns;

	if (left != right)
		return left > right ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

int gp_rhythm_idles(struct gp_analysis *analysis, struct gp_error *error)
{
	struct gp_report *report = analysis->report;
	const struct gp_names *names = &analysis->store->names;

	report->idles = calloc(analysis->idle_count + 1u, sizeof(*report->idles));
	if (!report->idles)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	for (uint32_t i = 0; i < analysis->idle_count; i++) {
		const struct analysis_idle *idle = &analysis->idles[i];

		report->idles[report->idle_count++] = (struct gp_report_idle){
			.start_ns = idle->start_ns - analysis->first_ns,
			.end_ns = idle->end_ns - analysis->first_ns,
			.range = idle->range != GP_ANALYSIS_NONE ? gp_names_get(names, idle->range) : NULL,
			.call = idle->call != GP_ANALYSIS_NONE ? gp_names_get(names, idle->call) : NULL,
			.is_late = idle->is_late,
		};
	}
	qsort(report->idles, report->idle_count, sizeof(*report->idles), rhythm_compare_reports);
	return 0;
}

static int rhythm_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The middle of the kernels per step, of the thread that has most steps. */
static uint64_t rhythm_usual(const struct gp_analysis *analysis, uint32_t thread, uint64_t *values)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < analysis->step_count; i++)
		if (analysis->steps[i].thread == thread)
			values[count++] = analysis->steps[i].kernels;
	qsort(values, count, sizeof(*values), rhythm_compare_u64);
	return count ? values[(count - 1) / 2] : 0;
}

static uint32_t rhythm_thread(const struct gp_analysis *analysis, uint32_t *ret_count)
{
	uint32_t best = 0, best_count = 0;

	for (uint32_t thread = 0; thread < analysis->thread_count; thread++) {
		uint32_t count = 0;

		if (!analysis->threads[thread].has_step)
			continue;
		for (uint32_t i = 0; i < analysis->step_count; i++)
			count += analysis->steps[i].thread == thread;
		if (count > best_count) {
			best = thread;
			best_count = count;
		}
	}
	*ret_count = best_count;
	return best;
}

int gp_rhythm_steps(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;
	uint32_t all = 0, thread = rhythm_thread(analysis, &all);
	uint64_t usual, *values;

	if (all < RHYTHM_STEPS_MIN)
		return 0;
	values = malloc(analysis->step_count * sizeof(*values));
	if (!values)
		return -ENOMEM;
	usual = rhythm_usual(analysis, thread, values);
	for (uint32_t i = 0; i < analysis->step_count; i++) {
		const struct analysis_step *step = &analysis->steps[i];

		if (step->thread != thread || step->kernels * 4 < usual * 3 || step->kernels * 4 > usual * 5)
			continue;
		values[report->step.count++] = step->ns;
		report->step.sum_ns += step->ns;
		report->step_busy_ns += step->busy_ns;
	}
	/* Steps that differ are no rhythm. */
	if (report->step.count < RHYTHM_STEPS_MIN || report->step.count * 10 < all * 7ull) {
		report->step = (struct gp_report_times){ .count = 0 };
		report->step_busy_ns = 0;
		free(values);
		return 0;
	}
	qsort(values, report->step.count, sizeof(*values), rhythm_compare_u64);
	report->step_kernels = usual;
	report->step.is_exact = true;
	report->step.min_ns = values[0];
	report->step.max_ns = values[report->step.count - 1];
	report->step.p50_ns = values[(report->step.count * 500 + 999) / 1000 - 1];
	report->step.p99_ns = values[(report->step.count * 990 + 999) / 1000 - 1];
	free(values);
	return 0;
}
