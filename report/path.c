/* SPDX-License-Identifier: MIT */
/*
 * Owns the critical path: from the end of the trace back to its start, one thing after the other without a hole. A call
 * that waited leads to the work it waited for; work leads to what it was ordered behind (streams.c), or to the call
 * that launched it; a call leads to the one before it on its thread, and what lies between is the application's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

#define PATH_STEPS_MAX 256u /* the longest ones are told */

struct path {
	struct gp_analysis *analysis;
	struct gp_report_stats shares; /* by name and kind */
	uint64_t cursor_ns;
	struct gp_report_step *steps; /* a heap: the shortest of the longest on top */
	uint32_t step_count;
};

int gp_path_add(struct gp_analysis *analysis, const struct gp_path_node *node, uint64_t *ret_node,
		struct gp_error *error)
{
	int r = gp_spill_append(&analysis->nodes, node, error);

	if (r)
		return r;
	*ret_node = gp_spill_count(&analysis->nodes) - 1;
	if (analysis->end_node == GP_ANALYSIS_NO_NODE || node->end_ns >= analysis->end_node_ns) {
		analysis->end_node = *ret_node;
		analysis->end_node_ns = node->end_ns;
	}
	return 0;
}

static uint64_t path_length(const struct gp_report_step *step)
{
	return step->end_ns - step->start_ns;
}

static void path_keep(struct path *path, const struct gp_report_step *step)
{
	struct gp_report_step *steps = path->steps;
	uint32_t at = 0;

	if (path->step_count < PATH_STEPS_MAX) {
		at = path->step_count++;
		while (at && path_length(&steps[(at - 1) / 2]) > path_length(step)) {
			steps[at] = steps[(at - 1) / 2];
			at = (at - 1) / 2;
		}
		steps[at] = *step;
		return;
	}
	if (path_length(step) <= path_length(&steps[0]))
		return;
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < path->step_count && path_length(&steps[child + 1]) < path_length(&steps[child]))
			child++;
		if (child >= path->step_count || path_length(&steps[child]) >= path_length(step))
			break;
		steps[at] = steps[child];
		at = child;
	}
	steps[at] = *step;
}

/* What lies between from_ns and the cursor, which moves there. */
static int path_step(struct path *path, enum gp_report_step_kind kind, uint32_t name, uint64_t from_ns)
{
	struct gp_analysis *analysis = path->analysis;
	struct gp_report_step step = { .kind = kind };
	struct gp_stat *stat;

	/* A packet may be written before the first event that the report looks at: the path begins with that event. */
	from_ns = from_ns > analysis->first_ns ? from_ns : analysis->first_ns;
	if (from_ns >= path->cursor_ns)
		return 0;
	stat = gp_stats_get(&path->shares, kind == GP_STEP_APPLICATION ? 0 : name, kind, 0);
	if (!stat)
		return -ENOMEM;
	stat->self_ns += path->cursor_ns - from_ns;
	stat->outer_count++;
	step.name = kind == GP_STEP_APPLICATION ? "" : gp_names_get(&analysis->store->names, name);
	step.start_ns = from_ns - analysis->first_ns;
	step.end_ns = path->cursor_ns - analysis->first_ns;
	path_keep(path, &step);
	path->cursor_ns = from_ns;
	return 0;
}

static int path_get(struct path *path, uint64_t number, struct gp_path_node *ret_node, struct gp_error *error)
{
	const void *record = NULL;
	int r = gp_spill_get(&path->analysis->nodes, number, &record, error);

	if (!r)
		memcpy(ret_node, record, sizeof(*ret_node));
	return r;
}

/* What lies between work and where the path goes on from it. */
static int path_to_work(struct path *path, const struct gp_path_node *node, const struct gp_path_node *before)
{
	static const enum gp_report_step_kind kinds[] = { [GP_LINK_STREAM] = GP_STEP_QUEUE,
							  [GP_LINK_EVENT] = GP_STEP_EVENT,
							  [GP_LINK_BESIDE] = GP_STEP_BESIDE,
							  [GP_LINK_UNKNOWN] = GP_STEP_UNKNOWN };
	int r = 0;

	if (node->link != GP_LINK_LAUNCH)
		return path_step(path, kinds[node->link], node->name,
				 before ? before->end_ns : path->analysis->first_ns);
	if (node->launch_end_ns < path->cursor_ns)
		r = path_step(path, GP_STEP_PENDING, node->name, node->launch_end_ns);
	return r ? r : path_step(path, GP_STEP_LAUNCH, node->launch_name, node->launch_start_ns);
}

/* From the cursor through the node to where the path goes on. */
static int path_through(struct path *path, const struct gp_path_node *node, const struct gp_path_node *before)
{
	int r = 0;

	if (node->start_ns >= path->cursor_ns)
		return 0;
	if (node->kind == GP_STEP_CALL && node->is_waited && before)
		return path_step(path, GP_STEP_RETURN, node->name, before->end_ns);
	r = path_step(path, (enum gp_report_step_kind)node->kind, node->name, node->start_ns);
	if (!r && node->kind != GP_STEP_CALL)
		r = path_to_work(path, node, before);
	if (!r && before)
		r = path_step(path, GP_STEP_APPLICATION, 0, before->end_ns);
	return r;
}

static int path_trace(struct path *path, struct gp_error *error)
{
	struct gp_analysis *analysis = path->analysis;
	uint64_t number = analysis->end_node;
	struct gp_path_node node = { 0 }, before = { 0 };
	int r = 0;

	path->cursor_ns = analysis->last_ns;
	if (number != GP_ANALYSIS_NO_NODE) {
		r = path_get(path, number, &node, error);
		if (!r)
			r = path_step(path, GP_STEP_APPLICATION, 0, node.end_ns);
	}
	/* Each node leads to an earlier one, so this ends. */
	while (!r && number != GP_ANALYSIS_NO_NODE) {
		number = node.before;
		if (number != GP_ANALYSIS_NO_NODE)
			r = path_get(path, number, &before, error);
		if (!r)
			r = path_through(path, &node, number != GP_ANALYSIS_NO_NODE ? &before : NULL);
		node = before;
	}
	if (!r)
		r = path_step(path, GP_STEP_APPLICATION, 0, analysis->first_ns);
	return r;
}

static int path_compare_steps(const void *a, const void *b)
{
	const struct gp_report_step *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int path_compare_shares(const void *a, const void *b)
{
	const struct gp_report_share *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static int path_report(struct path *path)
{
	struct gp_report *report = path->analysis->report;

	report->shares = calloc(path->shares.count + 1u, sizeof(*report->shares));
	if (!report->shares)
		return -ENOMEM;
	for (uint32_t i = 0; i < path->shares.count; i++) {
		const struct gp_stat *stat = path->shares.stats[i];

		report->shares[i] = (struct gp_report_share){
			.kind = (enum gp_report_step_kind)stat->layer,
			.name = stat->layer == GP_STEP_APPLICATION ?
					"" :
					gp_names_get(&path->analysis->store->names, stat->name),
			.ns = stat->self_ns,
			.count = stat->outer_count,
		};
		report->path_ns += stat->self_ns;
	}
	report->share_count = path->shares.count;
	qsort(report->shares, report->share_count, sizeof(*report->shares), path_compare_shares);
	qsort(path->steps, path->step_count, sizeof(*path->steps), path_compare_steps);
	report->steps = path->steps;
	report->step_count = path->step_count;
	path->steps = NULL;
	return 0;
}

int gp_path_walk(struct gp_analysis *analysis, struct gp_error *error)
{
	struct path path = { .analysis = analysis };
	int r = gp_stats_init(&path.shares);

	path.steps = calloc(PATH_STEPS_MAX, sizeof(*path.steps));
	if (!r && !path.steps)
		r = -ENOMEM;
	if (!r && analysis->event_count)
		r = path_trace(&path, error);
	if (!r)
		r = path_report(&path);
	if (r == -ENOMEM)
		gp_error_set(error, r, "not enough memory");
	gp_stats_fini(&path.shares);
	free(path.steps);
	return r;
}
