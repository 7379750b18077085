/* SPDX-License-Identifier: MIT */
/* Owns what is open on each thread. Calls nest by containment; self time is a call's time without that of its direct
 * children; layers are told apart by unions, so that nothing is counted twice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

#define CALLS_BEHIND_MAX 256u /* open calls of a process that late work is compared with */

static enum gp_report_layer_id calls_layer(uint8_t layer)
{
	switch (layer) {
	case GP_LAYER_HIP: return GP_REPORT_HIP;
	case GP_LAYER_HSA: return GP_REPORT_HSA;
	case GP_LAYER_DRIVER: return GP_REPORT_DRIVER;
	default: return GP_REPORT_LIBRARY;
	}
}

int gp_calls_init(struct gp_analysis *analysis, struct gp_error *error)
{
	analysis->open = malloc(GP_ANALYSIS_OPEN_MAX * sizeof(*analysis->open));
	analysis->heap = malloc(GP_ANALYSIS_OPEN_MAX * sizeof(*analysis->heap));
	if (!analysis->open || !analysis->heap)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	for (uint32_t i = 0; i < GP_ANALYSIS_OPEN_MAX; i++)
		analysis->open[i].next_free = i + 1 < GP_ANALYSIS_OPEN_MAX ? i + 1 : GP_ANALYSIS_NONE;
	analysis->open_free = 0;
	return 0;
}

void gp_calls_fini(struct gp_analysis *analysis)
{
	free(analysis->open);
	free(analysis->heap);
}

static bool calls_ends_before(const struct gp_analysis *analysis, uint32_t a, uint32_t b)
{
	const struct analysis_call *x = &analysis->open[a], *y = &analysis->open[b];

	/* At the same end the inner one, which began later, closes first. */
	return x->end_ns != y->end_ns ? x->end_ns < y->end_ns : x->start_ns > y->start_ns;
}

static void calls_heap_swap(struct gp_analysis *analysis, uint32_t a, uint32_t b)
{
	uint32_t swap = analysis->heap[a];

	analysis->heap[a] = analysis->heap[b];
	analysis->heap[b] = swap;
}

static void calls_heap_push(struct gp_analysis *analysis, uint32_t call)
{
	uint32_t at = analysis->heap_count++;

	analysis->heap[at] = call;
	while (at && calls_ends_before(analysis, analysis->heap[at], analysis->heap[(at - 1) / 2])) {
		calls_heap_swap(analysis, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static uint32_t calls_heap_pop(struct gp_analysis *analysis)
{
	uint32_t call = analysis->heap[0], at = 0;

	analysis->heap[0] = analysis->heap[--analysis->heap_count];
	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < analysis->heap_count &&
			    calls_ends_before(analysis, analysis->heap[child], analysis->heap[least]))
				least = child;
		if (least == at)
			return call;
		calls_heap_swap(analysis, at, least);
		at = least;
	}
}

/* The lowest layer's interval counts for every union above it too. */
static void calls_layers_add(struct analysis_layers *layers, enum gp_report_layer_id layer,
			     const struct gp_trace_record *record)
{
	for (int i = GP_REPORT_LIBRARY; i <= (int)layer; i++)
		gp_busy_add(&layers->below[i], record->start_ns, record->end_ns);
}

/* The innermost open call of the thread that contains the new one. */
static uint32_t calls_parent(struct gp_analysis *analysis, const struct analysis_thread *thread, uint64_t end_ns)
{
	uint32_t call = thread->top;
	bool is_overlap = false;

	while (call != GP_ANALYSIS_NONE && analysis->open[call].end_ns < end_ns) {
		is_overlap = true;
		call = analysis->open[call].parent;
	}
	analysis->overlap_count += is_overlap;
	return call;
}

/* Time of a child inside its parent, and how long nothing was inside before it. */
static void calls_add_child(struct analysis_call *parent, const struct analysis_call *call)
{
	uint64_t from = call->start_ns;

	if (from > parent->child_end_ns) {
		if (from - parent->child_end_ns > parent->silent_ns)
			parent->silent_ns = from - parent->child_end_ns;
	} else {
		from = parent->child_end_ns;
	}
	if (call->end_ns > from) {
		parent->child_ns += call->end_ns - from;
		parent->child_end_ns = call->end_ns;
	}
	parent->has_setup |= call->has_setup;
}

/* What a call of this name would be evidence of: 2 + its number, or 1. */
static uint8_t calls_evidence_of(const char *name)
{
	static const struct {
		const char *word;
		enum analysis_evidence_id id;
	} words[] = {
		{ "hsa_queue_create", EVIDENCE_QUEUE_CREATE },       { "CREATE_QUEUE", EVIDENCE_QUEUE_CREATE },
		{ "add_write_index", EVIDENCE_WRITE_INDEX },         { "store_write_index", EVIDENCE_WRITE_INDEX },
		{ "hsa_signal_store_screlease", EVIDENCE_DOORBELL }, { "hsa_signal_wait", EVIDENCE_SIGNAL_WAIT },
		{ "hsa_signal_store_relaxed", EVIDENCE_DOORBELL },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i].word))
			return (uint8_t)(2 + words[i].id);
	return 1;
}

static void calls_evidence(struct gp_analysis *analysis, const struct gp_trace_record *record, uint16_t flags)
{
	uint8_t *known = &analysis->name_evidence[record->name];
	struct analysis_evidence *evidence;

	if (!*known)
		*known = flags & NAME_LAUNCH ? 2 + EVIDENCE_LAUNCH :
					       calls_evidence_of(gp_names_get(&analysis->store->names, record->name));
	if (*known == 1)
		return;
	evidence = &analysis->evidence[*known - 2];
	/* A doorbell is rung behind the write of the packet: a store before it is some other signal. */
	if (evidence->is_seen ||
	    (evidence == &analysis->evidence[EVIDENCE_DOORBELL] && !analysis->evidence[EVIDENCE_WRITE_INDEX].is_seen))
		return;
	*evidence = (struct analysis_evidence){ .is_seen = true,
						.name = record->name,
						.row = record->row,
						.file = record->file,
						.start_ns = record->start_ns,
						.end_ns = record->end_ns };
}

static void calls_count_sync(struct gp_analysis *analysis, struct analysis_thread *thread,
			     const struct analysis_call *call)
{
	if (call->is_launch) {
		analysis->launch_count++;
		thread->was_launch = true;
	} else if (call->is_sync) {
		analysis->sync_count++;
		analysis->sync_after_launch_count += thread->was_launch;
		thread->was_launch = false;
	}
}

/* A call that may turn out to be blind: calls are added in the order of their starts. */
static void calls_wait_add(struct gp_analysis *analysis, uint32_t slot)
{
	struct analysis_call *call = &analysis->open[slot];
	uint32_t *newest = &analysis->processes[analysis->threads[call->thread].process].waits;

	if (!(call->is_sync || call->is_copy) || call->is_blind)
		return;
	call->newer = GP_ANALYSIS_NONE;
	call->older = *newest;
	if (call->older != GP_ANALYSIS_NONE)
		analysis->open[call->older].newer = slot;
	*newest = slot;
	call->is_wait = true;
}

static void calls_wait_remove(struct gp_analysis *analysis, struct analysis_call *call)
{
	if (!call->is_wait)
		return;
	call->is_wait = false;
	if (call->older != GP_ANALYSIS_NONE)
		analysis->open[call->older].newer = call->newer;
	if (call->newer != GP_ANALYSIS_NONE)
		analysis->open[call->newer].older = call->older;
	else
		analysis->processes[analysis->threads[call->thread].process].waits = call->older;
}

static void calls_remember(struct gp_analysis *analysis, const struct gp_trace_record *record,
			   const struct analysis_call *call)
{
	struct gp_launch launch = { .correlation = call->correlation,
				    .start_ns = call->start_ns,
				    .end_ns = call->end_ns,
				    .before_node = call->before_node,
				    .size = record->dispatch_or_size,
				    .alone_ns = analysis->alone.total_ns,
				    .process = analysis->threads[call->thread].process,
				    .name = call->name,
				    .is_launch = call->is_launch,
				    .has_size = record->known & GP_KNOWN_SIZE };

	gp_launches_add(analysis, &launch);
}

/* How long kernels ran by then of which nobody knows the process: it may be this one. */
static uint64_t calls_unknown_until(const struct gp_analysis *analysis, uint32_t process, uint64_t to_ns)
{
	for (uint32_t i = 0; i < analysis->process_count; i++)
		if (!analysis->processes[i].has_pid && analysis->processes[i].rank == analysis->processes[process].rank)
			return gp_busy_until(&analysis->processes[i].compute, to_ns);
	return 0;
}

static void calls_copy_begin(const struct gp_analysis *analysis, struct analysis_call *call)
{
	uint32_t process = analysis->threads[call->thread].process;

	call->compute_before_ns = gp_busy_until(&analysis->processes[process].compute, call->start_ns);
	call->unknown_before_ns = calls_unknown_until(analysis, process, call->start_ns);
}

/* A copy waits for kernels of its own process: others' run on other devices, or beside it. */
static void calls_copy_end(struct gp_analysis *analysis, const struct analysis_call *call)
{
	uint32_t process = analysis->threads[call->thread].process;
	uint64_t own = gp_busy_until(&analysis->processes[process].compute, call->end_ns) - call->compute_before_ns;
	uint64_t unknown = calls_unknown_until(analysis, process, call->end_ns) - call->unknown_before_ns;

	analysis->copy_wait_ns += own;
	/* Both may have run at once: only what is surely more counts. */
	analysis->copy_wait_unknown_ns += unknown > own ? unknown - own : 0;
}

static void calls_open(struct gp_analysis *analysis, uint32_t slot)
{
	struct analysis_call *call = &analysis->open[slot];
	struct analysis_thread *thread = &analysis->threads[call->thread];

	call->next_free = thread->top; /* the call below, while this one is open */
	thread->top = slot;
	calls_heap_push(analysis, slot);
	calls_wait_add(analysis, slot);
}

int gp_calls_add(struct gp_analysis *analysis, const struct gp_trace_record *record, struct gp_error *error)
{
	uint32_t thread_index = gp_who_thread(analysis, record->track), slot = analysis->open_free;
	uint16_t flags = gp_analysis_name_flags(analysis, record->name);
	enum gp_report_layer_id layer = calls_layer(record->layer);
	struct analysis_thread *thread;
	struct analysis_call *call;

	if (thread_index == GP_ANALYSIS_NONE)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	thread = &analysis->threads[thread_index];
	calls_layers_add(&analysis->layers, layer, record);
	calls_layers_add(&thread->layers, layer, record);
	gp_busy_add(&analysis->layer_unions[layer], record->start_ns, record->end_ns);
	analysis->layer_calls[layer]++;
	analysis->processes[thread->process].calls++;
	thread->first_ns = thread->calls++ ? thread->first_ns : record->start_ns;
	thread->last_ns = record->end_ns > thread->last_ns ? record->end_ns : thread->last_ns;
	calls_evidence(analysis, record, flags);
	if (slot == GP_ANALYSIS_NONE) {
		analysis->open_overflow++;
		return 0;
	}
	call = &analysis->open[slot];
	analysis->open_free = call->next_free;
	*call = (struct analysis_call){ .start_ns = record->start_ns,
					.end_ns = record->end_ns,
					.correlation = record->correlation,
					.child_end_ns = record->start_ns,
					.name = record->name,
					.thread = thread_index,
					.row = record->row,
					.file = record->file,
					.layer = record->layer,
					.report_layer = (uint8_t)layer,
					.has_setup = flags & NAME_SETUP,
					.is_sync = flags & NAME_SYNC,
					.is_launch = flags & NAME_LAUNCH,
					.is_copy = flags & NAME_COPY,
					.has_correlation = record->known & GP_KNOWN_CORRELATION,
					.wait_stream = GP_ANALYSIS_NONE };
	call->parent = calls_parent(analysis, thread, record->end_ns);
	call->is_outer = call->parent == GP_ANALYSIS_NONE;
	call->before_node = thread->last_node;
	call->gpu_before_ns = gp_busy_until(&analysis->gpu, record->start_ns);
	if (call->parent != GP_ANALYSIS_NONE) {
		calls_add_child(&analysis->open[call->parent], call);
		/* What a nested call launches, the outermost one waits for. */
		call->before_node = analysis->open[call->parent].before_node;
	}
	if (call->is_copy)
		calls_copy_begin(analysis, call);
	call->is_blind = (flags & NAME_WAIT) || (call->is_sync && !(flags & NAME_ALLOC) && !analysis->has_begun);
	analysis->has_begun |= call->is_launch || (flags & (NAME_SETUP | NAME_ALLOC));
	if (call->is_outer && call->is_copy)
		gp_busy_add(&analysis->copy_calls, call->start_ns, call->end_ns);
	if (call->is_outer && (flags & NAME_ALLOC))
		gp_busy_add(&analysis->alloc_calls, call->start_ns, call->end_ns);
	/* A runtime's launch may hold the driver's: that is one. */
	call->is_launch &= call->is_outer || !analysis->open[call->parent].is_launch;
	if (call->is_outer || call->layer == GP_LAYER_HIP)
		calls_count_sync(analysis, thread, call);
	analysis->cuda_call_count += call->layer == GP_LAYER_HIP && (flags & NAME_CUDA);
	analysis->hip_call_count += call->layer == GP_LAYER_HIP && (flags & NAME_HIP);
	if (call->has_correlation && (flags & NAME_SUBMIT))
		calls_remember(analysis, record, call);
	calls_open(analysis, slot);
	return 0;
}

void gp_calls_behind(struct gp_analysis *analysis, const struct gp_trace_record *record, const struct gp_launch *launch)
{
	uint32_t slot = analysis->processes[launch->process].waits, left = CALLS_BEHIND_MAX;

	/* Those that are blind leave the list. Those that are not yet in their second half are looked at again. */
	while (slot != GP_ANALYSIS_NONE && left && analysis->open[slot].start_ns > launch->start_ns) {
		struct analysis_call *call = &analysis->open[slot];

		slot = call->older;
		if (record->start_ns > call->start_ns + (call->end_ns - call->start_ns) / 2) {
			call->is_blind = true;
			calls_wait_remove(analysis, call);
		} else {
			left--;
		}
	}
	analysis->behind_overflow += slot != GP_ANALYSIS_NONE && analysis->open[slot].start_ns > launch->start_ns;
}

static int calls_close_outer(struct gp_analysis *analysis, struct analysis_call *call, struct gp_stat *stat,
			     struct gp_error *error)
{
	struct analysis_thread *thread = &analysis->threads[call->thread];
	uint64_t duration = call->end_ns - call->start_ns;
	uint64_t engine = gp_busy_until(&analysis->gpu, call->end_ns) - call->gpu_before_ns;
	struct gp_path_node node = { .start_ns = call->start_ns,
				     .end_ns = call->end_ns,
				     .before = call->before_node,
				     .name = call->name,
				     .kind = GP_STEP_CALL };
	uint64_t waited = gp_streams_waited_for(analysis, call);

	engine = engine < duration ? engine : duration;
	if (!stat->outer_count++) {
		stat->first_ns = duration;
		stat->first_engine_ns = engine;
		stat->first_silent_ns = call->silent_ns;
		stat->first_has_setup = call->has_setup;
		stat->first_is_blind = call->is_blind && !call->has_setup;
		stat->first_row = call->row;
		stat->first_file = call->file;
	} else {
		stat->later = stat->later ? stat->later : calloc(1, sizeof(*stat->later));
		if (!stat->later)
			return gp_error_set(error, -ENOMEM, "not enough memory");
		gp_spread_add(stat->later, duration - engine);
	}
	if (call->is_copy)
		calls_copy_end(analysis, call);
	if (waited != GP_ANALYSIS_NO_NODE) {
		node.before = waited;
		node.is_waited = true;
		if (gp_rhythm_wait(analysis, call))
			return gp_error_set(error, -ENOMEM, "not enough memory");
	}
	return gp_path_add(analysis, &node, &thread->last_node, error);
}

static int calls_close(struct gp_analysis *analysis, uint32_t slot, struct gp_error *error)
{
	struct analysis_call *call = &analysis->open[slot];
	struct analysis_thread *thread = &analysis->threads[call->thread];
	uint64_t duration = call->end_ns - call->start_ns;
	struct gp_stat *stat = gp_stats_get(&analysis->stats, call->name, call->layer, thread->process);
	uint32_t *link = &thread->top;
	int r = 0;

	if (!stat)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	if (call->end_ns - call->child_end_ns > call->silent_ns && call->end_ns > call->child_end_ns)
		call->silent_ns = call->end_ns - call->child_end_ns;
	gp_spread_add(&stat->spread, duration);
	stat->self_ns += duration > call->child_ns ? duration - call->child_ns : 0;
	if (call->is_launch && (call->is_outer || call->layer == GP_LAYER_HIP))
		analysis->launch_ns += duration;
	calls_wait_remove(analysis, call);
	if (call->is_outer)
		r = calls_close_outer(analysis, call, stat, error);
	while (*link != slot)
		link = &analysis->open[*link].next_free;
	*link = call->next_free;
	call->next_free = analysis->open_free;
	analysis->open_free = slot;
	return r;
}

int gp_calls_close_until(struct gp_analysis *analysis, uint64_t now_ns, struct gp_error *error)
{
	int r = 0;

	while (!r && analysis->heap_count && analysis->open[analysis->heap[0]].end_ns <= now_ns)
		r = calls_close(analysis, calls_heap_pop(analysis), error);
	return r;
}
