/* SPDX-License-Identifier: MIT */
/*
 * Owns what orders work, for the critical path: the stream it is in, be it kernels or copies; events between streams,
 * as far as the trace names them; the call that submitted it; and which work a call of the host waited for. A trace
 * without streams has its queues in their place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

/* Work that was ready and starts this soon behind other work waited for it … */
#define STREAMS_CLOSE_NS 5000u
/* … or this soon, if the other work ran for most of the wait; chosen (17 µs seen). */
#define STREAMS_LONG_NS 30000u

/* Copies without a stream are in nobody's line but that of their engine. */
static uint32_t streams_find(const struct gp_analysis *analysis, const struct analysis_stream *like)
{
	for (uint32_t i = 0; i < analysis->stream_count; i++) {
		const struct analysis_stream *stream = &analysis->streams[i];

		if (stream->process == like->process && stream->device_index == like->device_index &&
		    stream->id == like->id && stream->is_stream == like->is_stream && stream->is_copy == like->is_copy)
			return i;
	}
	return GP_ANALYSIS_NONE;
}

/* The stream of that name, which is made if it is new; GP_ANALYSIS_NONE without memory. */
static uint32_t streams_get(struct gp_analysis *analysis, const struct analysis_stream *like)
{
	uint32_t found = streams_find(analysis, like);

	if (found != GP_ANALYSIS_NONE)
		return found;
	if (analysis->stream_count == analysis->stream_room) {
		uint32_t larger = analysis->stream_room ? 2 * analysis->stream_room : 16;
		struct analysis_stream *moved = realloc(analysis->streams, larger * sizeof(*moved));

		if (!moved)
			return GP_ANALYSIS_NONE;
		analysis->streams = moved;
		analysis->stream_room = larger;
	}
	analysis->streams[analysis->stream_count] = *like;
	analysis->streams[analysis->stream_count].last_node = GP_ANALYSIS_NO_NODE;
	return analysis->stream_count++;
}

uint32_t gp_streams_of(struct gp_analysis *analysis, uint32_t track_index, const struct analysis_queue *queue)
{
	const struct gp_track *track = gp_store_track(analysis->store, track_index);
	bool is_stream = track->known & GP_KNOWN_STREAM;

	if (analysis->track_stream[track_index] == GP_ANALYSIS_NONE)
		analysis->track_stream[track_index] =
			streams_get(analysis, &(struct analysis_stream){ .process = queue->process,
									 .device_index = queue->device_index,
									 .id = is_stream ? track->stream : track->queue,
									 .is_stream = is_stream,
									 .is_copy = !is_stream && queue->is_copy });
	return analysis->track_stream[track_index];
}

/* The last work of a stream that was submitted before a time. */
static const struct analysis_recent *streams_before(const struct analysis_stream *stream, uint64_t before_ns)
{
	const struct analysis_recent *best = NULL;

	for (uint32_t i = 0; i < stream->recent_count && i < ANALYSIS_RECENT; i++) {
		const struct analysis_recent *recent = &stream->recent[i];

		if (recent->submit_ns && recent->submit_ns < before_ns &&
		    (!best || recent->submit_ns > best->submit_ns ||
		     (recent->submit_ns == best->submit_ns && recent->end_ns > best->end_ns)))
			best = recent;
	}
	return best;
}

/* An event that the stream was told to wait for, between the work in front and this one. */
static const struct analysis_recent *streams_event(const struct gp_analysis *analysis,
						   const struct analysis_stream *stream, uint64_t submit_ns)
{
	const struct analysis_recent *best = NULL;

	for (uint32_t i = 0; i < stream->wait_count && i < ANALYSIS_WAITS; i++) {
		const struct analysis_wait *wait = &stream->waits[i];
		const struct analysis_recent *recent;

		if (wait->time_ns > submit_ns || wait->time_ns < stream->last_submit_ns)
			continue;
		recent = streams_before(&analysis->streams[wait->stream], wait->recorded_ns);
		if (recent && (!best || recent->end_ns > best->end_ns))
			best = recent;
	}
	return best;
}

/* Whether work that was ready and started later is likely to have waited for this. An MI300 takes longer than other
 * devices to go on after a stream has waited, so the time until then decides: did the other work run for most of it? */
static bool streams_is_behind(const struct analysis_recent *recent, uint64_t ready_ns, uint64_t start_ns)
{
	uint64_t from_ns = recent->start_ns > ready_ns ? recent->start_ns : ready_ns;
	uint64_t gap_ns = start_ns - recent->end_ns;

	return gap_ns <= STREAMS_CLOSE_NS ||
	       (gap_ns <= STREAMS_LONG_NS && (recent->end_ns - from_ns) / 3 >= (start_ns - ready_ns) / 4);
}

/* Work of another stream that ended just before this one started, which was ready earlier. */
static const struct analysis_recent *streams_beside(const struct gp_analysis *analysis,
						    const struct analysis_stream *stream, uint64_t ready_ns,
						    uint64_t start_ns)
{
	const struct analysis_recent *best = NULL;

	for (uint32_t i = 0; i < analysis->stream_count; i++) {
		const struct analysis_stream *other = &analysis->streams[i];

		if (other == stream || other->process != stream->process || other->last_end_ns <= ready_ns)
			continue;
		for (uint32_t j = 0; j < other->recent_count && j < ANALYSIS_RECENT; j++) {
			const struct analysis_recent *recent = &other->recent[j];

			if (recent->end_ns > ready_ns && recent->end_ns <= start_ns &&
			    streams_is_behind(recent, ready_ns, start_ns) && (!best || recent->end_ns > best->end_ns))
				best = recent;
		}
	}
	return best;
}

/* Where the path goes on from this work if nothing in front of it did: to the call that submitted it. */
static void streams_submitted(struct gp_analysis *analysis, const struct gp_trace_record *record,
			      const struct gp_launch *launch, struct gp_path_node *node)
{
	uint32_t thread_index = gp_who_find_thread(analysis, record->track), call;
	bool has_dispatch = record->layer == GP_LAYER_KERNEL && (record->known & GP_KNOWN_DISPATCH) &&
			    record->dispatch_or_size && record->dispatch_or_size <= record->start_ns;

	node->before = GP_ANALYSIS_NO_NODE;
	node->launch_name = record->name;
	if (launch) {
		node->before = launch->before_node;
		node->launch_start_ns = launch->start_ns;
		node->launch_end_ns = launch->end_ns;
		node->launch_name = launch->name;
		return;
	}
	if (has_dispatch)
		node->launch_start_ns = node->launch_end_ns = record->dispatch_or_size;
	if (thread_index == GP_ANALYSIS_NONE)
		return;
	call = analysis->threads[thread_index].top;
	while (call != GP_ANALYSIS_NONE && !analysis->open[call].is_outer)
		call = analysis->open[call].next_free;
	if (call != GP_ANALYSIS_NONE) {
		node->before = analysis->open[call].before_node;
		node->launch_start_ns = analysis->open[call].start_ns;
		node->launch_end_ns = analysis->open[call].end_ns;
		node->launch_name = analysis->open[call].name;
	} else if (has_dispatch) {
		node->before = analysis->threads[thread_index].last_node;
	}
}

static void streams_origin(struct gp_analysis *analysis, const struct gp_trace_record *record,
			   const struct analysis_stream *stream, const struct gp_launch *launch,
			   struct gp_path_node *node)
{
	const struct analysis_recent *other;
	bool has_front = stream->last_node != GP_ANALYSIS_NO_NODE;
	uint64_t ready_ns;

	streams_submitted(analysis, record, launch, node);
	ready_ns = node->launch_start_ns;
	/* Nobody knows when it was submitted: what lies between it and the work in front of it is unknown. */
	if (!ready_ns) {
		node->before = stream->last_node;
		node->link = GP_LINK_UNKNOWN;
		return;
	}
	node->link = GP_LINK_LAUNCH;
	other = streams_event(analysis, stream, ready_ns);
	if (has_front && stream->last_end_ns > ready_ns) {
		ready_ns = stream->last_end_ns;
		node->before = stream->last_node;
		node->link = GP_LINK_STREAM;
	}
	if (other && other->end_ns > ready_ns && other->end_ns <= record->start_ns) {
		ready_ns = other->end_ns;
		node->before = other->node;
		node->link = GP_LINK_EVENT;
	}
	if (record->start_ns > ready_ns + STREAMS_CLOSE_NS) {
		uint64_t from_ns =
			node->link == GP_LINK_LAUNCH && node->launch_end_ns > ready_ns ? node->launch_end_ns : ready_ns;

		other = streams_beside(analysis, stream, from_ns, record->start_ns);
		if (other) {
			node->before = other->node;
			node->link = GP_LINK_BESIDE;
		}
	}
}

int gp_streams_add(struct gp_analysis *analysis, const struct gp_trace_record *record, uint32_t stream_index,
		   const struct gp_launch *launch, struct gp_error *error)
{
	struct analysis_stream *stream = &analysis->streams[stream_index];
	struct gp_path_node node = { .start_ns = record->start_ns,
				     .end_ns = record->end_ns,
				     .name = record->name,
				     .kind = record->layer == GP_LAYER_COPY ? GP_STEP_COPY : GP_STEP_KERNEL };
	uint64_t number = 0;
	int r;

	streams_origin(analysis, record, stream, launch, &node);
	r = gp_path_add(analysis, &node, &number, error);
	if (r)
		return r;
	stream->recent[stream->recent_count++ % ANALYSIS_RECENT] = (struct analysis_recent){
		.start_ns = record->start_ns,
		.end_ns = record->end_ns,
		.node = number,
		.submit_ns = node.launch_start_ns,
		.correlation = record->known & GP_KNOWN_CORRELATION ? record->correlation : 0,
	};
	stream->last_submit_ns = node.launch_start_ns;
	if (record->end_ns >= stream->last_end_ns) {
		stream->last_end_ns = record->end_ns;
		stream->last_node = number;
	}
	return 0;
}

/* The open call that a wait belongs to. */
static struct analysis_call *streams_call(struct gp_analysis *analysis, uint32_t process, uint64_t correlation)
{
	for (uint32_t i = 0; i < analysis->heap_count; i++) {
		struct analysis_call *call = &analysis->open[analysis->heap[i]];

		if (call->correlation == correlation && analysis->threads[call->thread].process == process)
			return call;
	}
	return NULL;
}

int gp_streams_wait(struct gp_analysis *analysis, const struct gp_trace_record *record, struct gp_error *error)
{
	const struct gp_track *track = gp_store_track(analysis->store, record->track);
	struct analysis_stream like = { .id = track->stream, .is_stream = true };
	uint32_t stream = GP_ANALYSIS_NONE, recorded = GP_ANALYSIS_NONE;
	const struct gp_launch *record_call = NULL;
	struct analysis_call *call;

	if (!gp_who_place(analysis, record->track, &like.process, &like.device_index))
		return gp_error_set(error, -ENOMEM, "not enough memory");
	if (track->known & GP_KNOWN_STREAM)
		stream = streams_get(analysis, &like);
	if (record->known & GP_KNOWN_RECORDED) {
		like.id = record->dispatch_or_size;
		recorded = streams_get(analysis, &like);
		record_call = gp_launches_find(analysis, like.process, record->complete_ns, record->start_ns);
	}
	call = record->known & GP_KNOWN_CORRELATION ? streams_call(analysis, like.process, record->correlation) : NULL;
	if (call && call->is_sync) {
		/* The host waits: for a stream, or for what was in one when an event was recorded. */
		call->wait_stream = record->known & GP_KNOWN_RECORDED ? recorded : stream;
		call->wait_before_ns = record_call ? record_call->start_ns : 0;
	} else if (stream != GP_ANALYSIS_NONE && recorded != GP_ANALYSIS_NONE && record_call) {
		struct analysis_stream *to = &analysis->streams[stream];

		to->waits[to->wait_count++ % ANALYSIS_WAITS] = (struct analysis_wait){
			.time_ns = call ? call->start_ns : record->start_ns,
			.recorded_ns = record_call->start_ns,
			.stream = recorded,
		};
	}
	return 0;
}

/* The work that a call waited for: its own copy, or the last to end while it was open. */
uint64_t gp_streams_waited_for(const struct gp_analysis *analysis, const struct analysis_call *call)
{
	uint32_t process = analysis->threads[call->thread].process;
	uint64_t best_ns = 0, best = GP_ANALYSIS_NO_NODE;

	if (!call->is_sync && !call->is_copy)
		return best;
	for (uint32_t i = 0; i < analysis->stream_count; i++) {
		const struct analysis_stream *stream = &analysis->streams[i];

		if (stream->process != process || stream->last_end_ns <= call->start_ns ||
		    (call->wait_stream != GP_ANALYSIS_NONE && call->wait_stream != i))
			continue;
		for (uint32_t j = 0; j < stream->recent_count && j < ANALYSIS_RECENT; j++) {
			const struct analysis_recent *recent = &stream->recent[j];
			bool is_own =
				call->is_copy && call->has_correlation && recent->correlation == call->correlation;

			if (recent->end_ns <= call->start_ns || recent->end_ns > call->end_ns ||
			    recent->end_ns <= best_ns || (!call->is_sync && !is_own) ||
			    (call->wait_before_ns && recent->submit_ns >= call->wait_before_ns))
				continue;
			best_ns = recent->end_ns;
			best = recent->node;
		}
	}
	return best;
}
