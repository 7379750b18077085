/* SPDX-License-Identifier: MIT */
/*
 * Owns the Perfetto form of a result: native TrackEvent packets (protos/perfetto/trace/ of google/perfetto). Each
 * device of each run is a process, each hardware queue a track in it; decisions, inversions, stops of the device and
 * arrivals have tracks of their own. All runs begin at time 0, so that they stand below each other.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include "lib/cleanup.h"
#include "view/marks.h"
#include "view/protobuf.h"
#include "view/result.h"

enum {
	PERFETTO_TRACE_PACKET = 1,
	PERFETTO_PACKET_TIMESTAMP = 8,
	PERFETTO_PACKET_SEQUENCE_ID = 10,
	PERFETTO_PACKET_EVENT = 11,
	PERFETTO_PACKET_SEQUENCE_FLAGS = 13,
	PERFETTO_PACKET_DESCRIPTOR = 60,
	PERFETTO_TRACK_UUID = 1,
	PERFETTO_TRACK_NAME = 2,
	PERFETTO_TRACK_PROCESS = 3,
	PERFETTO_TRACK_PARENT = 5,
	PERFETTO_TRACK_ORDERING = 11,
	PERFETTO_TRACK_RANK = 12,
	PERFETTO_PROCESS_PID = 1,
	PERFETTO_PROCESS_NAME = 6,
	PERFETTO_EVENT_ANNOTATION = 4,
	PERFETTO_EVENT_TYPE = 9,
	PERFETTO_EVENT_TRACK = 11,
	PERFETTO_EVENT_CATEGORY = 22,
	PERFETTO_EVENT_NAME = 23,
	PERFETTO_ANNOTATION_U64 = 3,
	PERFETTO_ANNOTATION_STRING = 6,
	PERFETTO_ANNOTATION_NAME = 10,
};

enum { PERFETTO_BEGIN = 1, PERFETTO_END = 2, PERFETTO_INSTANT = 3 };
enum { PERFETTO_STATE_CLEARED = 1, PERFETTO_EXPLICIT_ORDER = 3 };

/* Tracks of one device, in the order in which they are shown; queues come last and may need several lanes. */
enum perfetto_track {
	PERFETTO_PROCESS,
	PERFETTO_DECISIONS,
	PERFETTO_INVERSIONS,
	PERFETTO_HALTS,
	PERFETTO_ARRIVALS,
	PERFETTO_QUEUES
};

#define PERFETTO_DEVICE_MAX 64u /* devices drawn; also the room for ids */
#define PERFETTO_LANE_MAX   8u  /* kernels of one queue that run at once; more share the last lane */

struct perfetto {
	FILE *stream;
	uint32_t run;
	bool has_started;
	int result; /* the first failure */
};

static uint64_t perfetto_uuid(const struct perfetto *perfetto, uint32_t device, enum perfetto_track track,
			      uint32_t queue, uint32_t lane)
{
	return (uint64_t)(perfetto->run + 1u) << 48 | (uint64_t)(device % PERFETTO_DEVICE_MAX) << 40 |
	       (uint64_t)track << 36 | (uint64_t)lane << 32 | queue;
}

static void perfetto_packet(struct perfetto *perfetto, struct gp_protobuf *packet)
{
	int r;

	gp_protobuf_u64(packet, PERFETTO_PACKET_SEQUENCE_ID, 1);
	if (!perfetto->has_started)
		gp_protobuf_u64(packet, PERFETTO_PACKET_SEQUENCE_FLAGS, PERFETTO_STATE_CLEARED);
	perfetto->has_started = true;
	r = gp_protobuf_write(packet, PERFETTO_TRACE_PACKET, perfetto->stream);
	if (r < 0 && !perfetto->result)
		perfetto->result = r;
}

static void perfetto_process(struct perfetto *perfetto, const struct gp_result *result, uint32_t device)
{
	struct gp_protobuf packet, track, process;
	char name[160];

	(void)snprintf(name, sizeof(name), "%s on %s %" PRIu32, result->runs[perfetto->run].policy, result->device,
		       device);
	gp_protobuf_init(&process);
	gp_protobuf_u64(&process, PERFETTO_PROCESS_PID, perfetto->run * PERFETTO_DEVICE_MAX + device + 1u);
	gp_protobuf_string(&process, PERFETTO_PROCESS_NAME, name);
	gp_protobuf_init(&track);
	gp_protobuf_u64(&track, PERFETTO_TRACK_UUID, perfetto_uuid(perfetto, device, PERFETTO_PROCESS, 0, 0));
	gp_protobuf_message(&track, PERFETTO_TRACK_PROCESS, &process);
	gp_protobuf_u64(&track, PERFETTO_TRACK_ORDERING, PERFETTO_EXPLICIT_ORDER);
	gp_protobuf_init(&packet);
	gp_protobuf_message(&packet, PERFETTO_PACKET_DESCRIPTOR, &track);
	perfetto_packet(perfetto, &packet);
}

static void perfetto_track(struct perfetto *perfetto, uint64_t uuid, uint32_t device, const char *name, uint32_t rank)
{
	struct gp_protobuf packet, track;

	gp_protobuf_init(&track);
	gp_protobuf_u64(&track, PERFETTO_TRACK_UUID, uuid);
	gp_protobuf_string(&track, PERFETTO_TRACK_NAME, name);
	gp_protobuf_u64(&track, PERFETTO_TRACK_PARENT, perfetto_uuid(perfetto, device, PERFETTO_PROCESS, 0, 0));
	gp_protobuf_u64(&track, PERFETTO_TRACK_RANK, rank);
	gp_protobuf_init(&packet);
	gp_protobuf_message(&packet, PERFETTO_PACKET_DESCRIPTOR, &track);
	perfetto_packet(perfetto, &packet);
}

static void perfetto_annotate(struct gp_protobuf *event, const char *name, const char *text, uint64_t number)
{
	struct gp_protobuf annotation;

	gp_protobuf_init(&annotation);
	gp_protobuf_string(&annotation, PERFETTO_ANNOTATION_NAME, name);
	if (text)
		gp_protobuf_string(&annotation, PERFETTO_ANNOTATION_STRING, text);
	else
		gp_protobuf_u64(&annotation, PERFETTO_ANNOTATION_U64, number);
	gp_protobuf_message(event, PERFETTO_EVENT_ANNOTATION, &annotation);
}

static void perfetto_event(struct perfetto *perfetto, uint64_t time_ns, const struct gp_protobuf *event)
{
	struct gp_protobuf packet;

	gp_protobuf_init(&packet);
	gp_protobuf_u64(&packet, PERFETTO_PACKET_TIMESTAMP, time_ns);
	gp_protobuf_message(&packet, PERFETTO_PACKET_EVENT, event);
	perfetto_packet(perfetto, &packet);
}

static void perfetto_event_init(struct gp_protobuf *event, uint64_t uuid, uint64_t type, const char *category,
				const char *name)
{
	gp_protobuf_init(event);
	gp_protobuf_u64(event, PERFETTO_EVENT_TYPE, type);
	gp_protobuf_u64(event, PERFETTO_EVENT_TRACK, uuid);
	if (category)
		gp_protobuf_string(event, PERFETTO_EVENT_CATEGORY, category);
	if (name)
		gp_protobuf_string(event, PERFETTO_EVENT_NAME, name);
}

static void perfetto_end(struct perfetto *perfetto, uint64_t uuid, uint64_t time_ns)
{
	struct gp_protobuf event;

	perfetto_event_init(&event, uuid, PERFETTO_END, NULL, NULL);
	perfetto_event(perfetto, time_ns, &event);
}

static void perfetto_slice(struct perfetto *perfetto, const struct gp_result_run *run,
			   const struct gp_result_slice *slice, uint64_t uuid)
{
	struct gp_protobuf event;

	perfetto_event_init(&event, uuid, PERFETTO_BEGIN, "kernel", gp_marks_client(run, slice->client));
	perfetto_annotate(&event, "tag", NULL, slice->tag);
	perfetto_annotate(&event, "ended by", slice->preempted ? "preemption (saved)" : "completion", 0);
	if (slice->pipe != UINT32_MAX)
		perfetto_annotate(&event, "pipe", NULL, slice->pipe);
	if (slice->slot != UINT32_MAX)
		perfetto_annotate(&event, "slot", NULL, slice->slot);
	perfetto_event(perfetto, slice->start_ns, &event);
	perfetto_end(perfetto, uuid, slice->end_ns);
}

/* Slices on one track must nest, so kernels of a queue that overlap go to lanes of their own, under the same name. */
static void perfetto_slices(struct perfetto *perfetto, const struct gp_result_run *run, const uint32_t *order)
{
	uint64_t lane_end_ns[PERFETTO_LANE_MAX] = { 0 };
	uint32_t lane_count = 0;

	for (uint32_t i = 0; i < run->slice_count; i++) {
		const struct gp_result_slice *slice = &run->slices[order[i]];
		const struct gp_result_slice *before = i ? &run->slices[order[i - 1]] : NULL;
		uint32_t lane = 0;
		uint64_t uuid;

		if (!before || before->device != slice->device || before->queue != slice->queue)
			lane_count = 0;
		while (lane < lane_count && lane_end_ns[lane] > slice->start_ns)
			lane++;
		if (lane == PERFETTO_LANE_MAX)
			lane--;
		uuid = perfetto_uuid(perfetto, slice->device, PERFETTO_QUEUES, slice->queue, lane);
		if (lane == lane_count) {
			char name[96];

			(void)snprintf(name, sizeof(name), "%s, queue %" PRIu32, gp_marks_client(run, slice->client),
				       slice->queue);
			perfetto_track(perfetto, uuid, slice->device, name, PERFETTO_QUEUES + slice->queue);
			lane_count++;
		}
		lane_end_ns[lane] = slice->end_ns;
		perfetto_slice(perfetto, run, slice, uuid);
	}
}

static enum perfetto_track perfetto_mark_track(enum gp_result_mark_type type)
{
	switch (type) {
	case GP_MARK_ARRIVAL: return PERFETTO_ARRIVALS;
	case GP_MARK_INVERSION: return PERFETTO_INVERSIONS;
	case GP_MARK_HALT: return PERFETTO_HALTS;
	case GP_MARK_CLOSE:
	case GP_MARK_OPEN:
	case GP_MARK_LEFT_OPEN:
	case GP_MARK_TURN:
	case GP_MARK_FAULT: break;
	}
	return PERFETTO_DECISIONS;
}

/* Inversions of different queues overlap, so each queue has a track of its own for them; a descriptor may be
 * repeated. */
static uint64_t perfetto_inversion_track(struct perfetto *perfetto, const struct gp_result_run *run,
					 const struct gp_result_mark *mark)
{
	uint32_t queue = mark->queue == UINT32_MAX ? 0 : mark->queue + 1u;
	uint64_t uuid = perfetto_uuid(perfetto, mark->device, PERFETTO_INVERSIONS, queue, 0);
	char name[96];

	(void)snprintf(name, sizeof(name), "inversions of %s", gp_marks_client(run, mark->client));
	perfetto_track(perfetto, uuid, mark->device, name, PERFETTO_INVERSIONS);
	return uuid;
}

/* A stretch of time is a slice, a point an instant. */
static void perfetto_mark(struct perfetto *perfetto, const struct gp_result_run *run, const struct gp_result_mark *mark)
{
	static const char *const names[] = { [PERFETTO_DECISIONS] = "decision",
					     [PERFETTO_INVERSIONS] = "inversion",
					     [PERFETTO_HALTS] = "halt",
					     [PERFETTO_ARRIVALS] = "arrival" };
	enum perfetto_track track = perfetto_mark_track(mark->type);
	bool is_stretch = mark->end_ns > mark->start_ns && (track == PERFETTO_INVERSIONS || track == PERFETTO_HALTS);
	uint64_t uuid = track == PERFETTO_INVERSIONS ? perfetto_inversion_track(perfetto, run, mark) :
						       perfetto_uuid(perfetto, mark->device, track, 0, 0);
	struct gp_protobuf event;
	char text[GP_MARKS_TEXT_SIZE];

	perfetto_event_init(&event, uuid, is_stretch ? PERFETTO_BEGIN : PERFETTO_INSTANT, names[track],
			    gp_marks_text(run, mark, text, sizeof(text)));
	if (mark->why)
		perfetto_annotate(&event, "why", mark->why, 0);
	if (mark->queue != UINT32_MAX)
		perfetto_annotate(&event, "queue", NULL, mark->queue);
	if (mark->other != UINT32_MAX)
		perfetto_annotate(&event, "other", gp_marks_client(run, mark->other), 0);
	perfetto_event(perfetto, mark->start_ns, &event);
	if (is_stretch)
		perfetto_end(perfetto, uuid, mark->end_ns);
}

static void perfetto_device(struct perfetto *perfetto, const struct gp_result *result, uint32_t device)
{
	static const struct {
		enum perfetto_track track;
		const char *name;
	} tracks[] = {
		{ PERFETTO_DECISIONS, "decisions" },
		{ PERFETTO_HALTS, "device stopped" },
		{ PERFETTO_ARRIVALS, "arrivals" },
	};
	perfetto_process(perfetto, result, device);
	for (size_t i = 0; i < sizeof(tracks) / sizeof(tracks[0]); i++)
		perfetto_track(perfetto, perfetto_uuid(perfetto, device, tracks[i].track, 0, 0), device, tracks[i].name,
			       tracks[i].track);
}

int gp_view_perfetto(FILE *stream, const struct gp_result *result)
{
	struct perfetto perfetto = { .stream = stream };

	for (perfetto.run = 0; perfetto.run < result->run_count; perfetto.run++) {
		const struct gp_result_run *run = &result->runs[perfetto.run];
		GP_AUTO_FREE uint32_t *order = gp_marks_slice_order(run);

		if (run->slice_count && !order)
			return -ENOMEM;
		for (uint32_t i = 0; i < result->device_count && i < PERFETTO_DEVICE_MAX; i++)
			perfetto_device(&perfetto, result, i);
		perfetto_slices(&perfetto, run, order);
		for (uint32_t i = 0; i < run->mark_count; i++)
			perfetto_mark(&perfetto, run, &run->marks[i]);
	}
	if (fflush(stream) || ferror(stream))
		return -EIO;
	return perfetto.result;
}
