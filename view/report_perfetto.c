/* SPDX-License-Identifier: MIT */
/* Owns the Perfetto form of a trace. Field numbers are those of protos/perfetto/trace/ of google/perfetto. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "view/protobuf.h"
#include "view/report_perfetto.h"

#define PERFETTO_LANES  8u
#define PERFETTO_TRACKS (1u << 15) /* threads; queues have as many */
#define PERFETTO_NAMES  (1u << 15)
#define PERFETTO_FRESH  1u /* sequence flags: what was interned before does not count */
#define PERFETTO_NEEDS  2u /* what was interned is needed */
/* Numbers that no process has: pid_max is 2^22 at most. */
#define PERFETTO_DEVICE_PIDS (1u << 30)
#define PERFETTO_RANK_PIDS   (1u << 29)

enum { PERFETTO_BEGIN = 1, PERFETTO_END = 2 };
enum perfetto_kind { PERFETTO_PROCESS = 1, PERFETTO_THREAD, PERFETTO_DEVICE, PERFETTO_QUEUE };

struct gp_report_perfetto {
	FILE *stream;
	bool has_started;
	int result;
	uint8_t known_threads[PERFETTO_TRACKS], known_processes[PERFETTO_TRACKS], known_devices[PERFETTO_TRACKS];
	uint64_t lane_end_ns[PERFETTO_TRACKS][PERFETTO_LANES];
	uint8_t lane_count[PERFETTO_TRACKS];
	uint8_t known_names[PERFETTO_NAMES];
};

struct gp_report_perfetto *gp_report_perfetto_create(FILE *stream)
{
	struct gp_report_perfetto *perfetto = calloc(1, sizeof(*perfetto));

	if (perfetto)
		perfetto->stream = stream;
	return perfetto;
}

void gp_report_perfetto_destroy(struct gp_report_perfetto *perfetto)
{
	free(perfetto);
}

static uint64_t perfetto_uuid(enum perfetto_kind kind, uint32_t index, uint32_t lane)
{
	return (uint64_t)kind << 40 | (uint64_t)lane << 32 | (index + 1u);
}

static void perfetto_packet(struct gp_report_perfetto *perfetto, struct gp_protobuf *packet)
{
	int r;

	gp_protobuf_u64(packet, 10, 1);
	gp_protobuf_u64(packet, 13, PERFETTO_NEEDS | (perfetto->has_started ? 0 : PERFETTO_FRESH));
	perfetto->has_started = true;
	r = gp_protobuf_write(packet, 1, perfetto->stream);
	if (r && !perfetto->result)
		perfetto->result = r;
}

static void perfetto_describe(struct gp_report_perfetto *perfetto, struct gp_protobuf *track)
{
	struct gp_protobuf packet;

	gp_protobuf_init(&packet);
	gp_protobuf_message(&packet, 60, track);
	perfetto_packet(perfetto, &packet);
}

/* Processes of different ranks may have the same number, which Perfetto would take for one process. */
static uint64_t perfetto_pid(const struct gp_report_event *event)
{
	if (event->rank)
		return PERFETTO_RANK_PIDS + event->process_index;
	return event->has_pid ? event->pid : 0;
}

/* " of rank 3", or nothing */
static const char *perfetto_rank(const struct gp_report_event *event, char *text, size_t size)
{
	text[0] = '\0';
	if (event->rank)
		(void)snprintf(text, size, " of rank %" PRIu32, event->rank - 1);
	return text;
}

/* A process of the trace, or a device in the place of one: those have numbers nobody's pid has. */
static void perfetto_process(struct gp_report_perfetto *perfetto, uint64_t uuid, uint64_t pid, const char *name)
{
	struct gp_protobuf track, process;

	gp_protobuf_init(&process);
	gp_protobuf_u64(&process, 1, pid);
	gp_protobuf_string(&process, 6, name);
	gp_protobuf_init(&track);
	gp_protobuf_u64(&track, 1, uuid);
	gp_protobuf_message(&track, 3, &process);
	perfetto_describe(perfetto, &track);
}

static void perfetto_thread(struct gp_report_perfetto *perfetto, const struct gp_report_event *event)
{
	uint64_t parent = perfetto_uuid(PERFETTO_PROCESS, event->process_index, 0);
	struct gp_protobuf track, thread;
	char name[64], rank[24];

	if (!perfetto->known_processes[event->process_index]) {
		perfetto->known_processes[event->process_index] = 1;
		(void)perfetto_rank(event, rank, sizeof(rank));
		if (event->has_pid)
			(void)snprintf(name, sizeof(name), "process %" PRIu64 "%s", event->pid, rank);
		else
			(void)snprintf(name, sizeof(name), "process not known%s", rank);
		perfetto_process(perfetto, parent, perfetto_pid(event), name);
	}
	perfetto->known_threads[event->track] = 1;
	gp_protobuf_init(&track);
	gp_protobuf_u64(&track, 1, perfetto_uuid(PERFETTO_THREAD, event->track, 0));
	gp_protobuf_u64(&track, 5, parent);
	if (event->has_pid && event->has_tid) {
		gp_protobuf_init(&thread);
		gp_protobuf_u64(&thread, 1, perfetto_pid(event));
		gp_protobuf_u64(&thread, 2, event->tid);
		gp_protobuf_message(&track, 4, &thread);
	} else {
		gp_protobuf_string(&track, 2, "thread not known");
	}
	perfetto_describe(perfetto, &track);
}

static void perfetto_queue(struct gp_report_perfetto *perfetto, const struct gp_report_event *event, uint32_t lane)
{
	uint64_t parent = perfetto_uuid(PERFETTO_DEVICE, event->device_index, 0);
	struct gp_protobuf track;
	char name[96], of[32] = "", rank[24];

	if (!perfetto->known_devices[event->device_index]) {
		perfetto->known_devices[event->device_index] = 1;
		(void)perfetto_rank(event, rank, sizeof(rank));
		if (event->has_device)
			(void)snprintf(name, sizeof(name), "GPU %" PRIu64 "%s", event->device, rank);
		else
			(void)snprintf(name, sizeof(name), "GPU not known%s", rank);
		perfetto_process(perfetto, parent, PERFETTO_DEVICE_PIDS + event->device_index, name);
	}
	if (event->has_pid)
		(void)snprintf(of, sizeof(of), " of %" PRIu64, event->pid);
	if (event->has_queue)
		(void)snprintf(name, sizeof(name), "%s, queue %" PRIu64 "%s", event->category, event->queue, of);
	else
		(void)snprintf(name, sizeof(name), "%s%s", event->category, of);
	gp_protobuf_init(&track);
	gp_protobuf_u64(&track, 1, perfetto_uuid(PERFETTO_QUEUE, event->track, lane));
	gp_protobuf_string(&track, 2, name);
	gp_protobuf_u64(&track, 5, parent);
	perfetto_describe(perfetto, &track);
}

/* The track of an event, described when it is met for the first time. */
static uint64_t perfetto_track(struct gp_report_perfetto *perfetto, const struct gp_report_event *event)
{
	uint32_t lane = 0;

	if (!event->is_engine) {
		if (!perfetto->known_threads[event->track])
			perfetto_thread(perfetto, event);
		return perfetto_uuid(PERFETTO_THREAD, event->track, 0);
	}
	while (lane < perfetto->lane_count[event->track] && perfetto->lane_end_ns[event->track][lane] > event->start_ns)
		lane++;
	lane = lane < PERFETTO_LANES ? lane : PERFETTO_LANES - 1;
	if (lane == perfetto->lane_count[event->track]) {
		perfetto->lane_count[event->track]++;
		perfetto_queue(perfetto, event, lane);
	}
	perfetto->lane_end_ns[event->track][lane] = event->end_ns;
	return perfetto_uuid(PERFETTO_QUEUE, event->track, lane);
}

static void perfetto_annotate(struct gp_protobuf *event, const char *name, uint64_t value)
{
	struct gp_protobuf annotation;

	gp_protobuf_init(&annotation);
	gp_protobuf_string(&annotation, 10, name);
	gp_protobuf_u64(&annotation, 3, value);
	gp_protobuf_message(event, 4, &annotation);
}

/* A name is written once, by its number, with the first event that has it: kernels' names are long. */
static void perfetto_intern(struct gp_report_perfetto *perfetto, const struct gp_report_event *from,
			    struct gp_protobuf *packet)
{
	struct gp_protobuf data, name;

	if (perfetto->known_names[from->name_index])
		return;
	perfetto->known_names[from->name_index] = 1;
	gp_protobuf_init(&name);
	gp_protobuf_u64(&name, 1, from->name_index + 1u);
	gp_protobuf_string(&name, 2, from->name);
	gp_protobuf_init(&data);
	gp_protobuf_message(&data, 2, &name);
	gp_protobuf_message(packet, 12, &data);
}

/* from: of a beginning, whose name may have to be interned; NULL for an end. */
static void perfetto_point(struct gp_report_perfetto *perfetto, uint64_t time_ns, const struct gp_protobuf *event,
			   const struct gp_report_event *from)
{
	struct gp_protobuf packet;

	gp_protobuf_init(&packet);
	if (from)
		perfetto_intern(perfetto, from, &packet);
	gp_protobuf_u64(&packet, 8, time_ns);
	gp_protobuf_message(&packet, 11, event);
	perfetto_packet(perfetto, &packet);
}

int gp_report_perfetto_add(struct gp_report_perfetto *perfetto, const struct gp_report_event *from)
{
	struct gp_protobuf event;
	uint64_t uuid;

	if (from->name_index >= PERFETTO_NAMES || from->track >= PERFETTO_TRACKS ||
	    from->device_index >= PERFETTO_TRACKS || from->process_index >= PERFETTO_TRACKS)
		return -ERANGE;
	uuid = perfetto_track(perfetto, from);
	gp_protobuf_init(&event);
	gp_protobuf_u64(&event, 9, PERFETTO_BEGIN);
	gp_protobuf_u64(&event, 11, uuid);
	gp_protobuf_string(&event, 22, from->category);
	gp_protobuf_u64(&event, 10, from->name_index + 1u);
	if (from->has_correlation)
		perfetto_annotate(&event, "correlation", from->correlation);
	if (from->has_size)
		perfetto_annotate(&event, "bytes", from->size);
	if (from->is_engine && from->has_pid)
		perfetto_annotate(&event, "process", perfetto_pid(from));
	if (from->is_engine && from->rank)
		perfetto_annotate(&event, "rank", from->rank - 1);
	perfetto_point(perfetto, from->start_ns, &event, from);
	gp_protobuf_init(&event);
	gp_protobuf_u64(&event, 9, PERFETTO_END);
	gp_protobuf_u64(&event, 11, uuid);
	perfetto_point(perfetto, from->end_ns, &event, NULL);
	return perfetto->result;
}

int gp_report_perfetto_finish(struct gp_report_perfetto *perfetto)
{
	if (fflush(perfetto->stream) || ferror(perfetto->stream))
		return -EIO;
	return perfetto->result;
}
