/* SPDX-License-Identifier: MIT */
/*
 * Owns Perfetto traces as gpreempt writes them: TrackEvent packets, slices that begin and end on tracks, tracks that
 * belong to processes. What other programs put into such a file is passed over where it is not understood. Numbers are
 * protobuf's; a packet that does not fit its own length is refused with its offset.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "report/trace/names.h"
#include "report/trace/readers.h"
#include "report/trace/rows.h"

#define PERFETTO_TRACKS 4096u
#define PERFETTO_SLOTS  8192u
#define PERFETTO_DEPTH  16u
#define PERFETTO_NAME   256u
#define PERFETTO_PACKET (1u << 20)
#define PERFETTO_INTERN 65536u /* names and categories that packets refer to by number */

struct perfetto_open {
	uint64_t start_ns;
	uint32_t name;
	enum gp_layer layer;
	uint64_t correlation, size, pid;
	uint32_t known;
};

struct perfetto_track {
	uint64_t uuid, parent;
	bool is_process, is_thread, has_device, has_queue;
	uint64_t pid, tid, device, queue;
	uint32_t depth;
	struct perfetto_open open[PERFETTO_DEPTH];
};

/* What a sequence of packets calls by a number. */
struct perfetto_interned {
	uint64_t sequence, number;
	uint32_t name; /* + 1; 0: free */
	bool is_category;
};

struct perfetto {
	struct gp_input *input;
	const struct gp_sink *sink;
	struct gp_names names;
	uint64_t offset, rows, lost; /* offset: of the packet */
	struct perfetto_track *tracks;
	uint32_t track_count, slots[PERFETTO_SLOTS];
	uint64_t sequence; /* of the packet */
	uint32_t interned_count;
	struct perfetto_interned interned[2 * PERFETTO_INTERN];
};

/* Bytes of a message that are still to be read. */
struct perfetto_bytes {
	const uint8_t *at, *end;
};

struct perfetto_field {
	uint32_t number;
	uint64_t value;
	struct perfetto_bytes bytes; /* of a length-delimited field */
};

static bool perfetto_varint(struct perfetto_bytes *bytes, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70 && bytes->at < bytes->end; shift += 7) {
		uint8_t byte = *bytes->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* 1: a field; 0: the end; -1: damaged. */
static int perfetto_next(struct perfetto_bytes *bytes, struct perfetto_field *field)
{
	uint64_t tag = 0, size = 0;

	if (bytes->at >= bytes->end)
		return 0;
	if (!perfetto_varint(bytes, &tag) || !tag || tag > UINT32_MAX)
		return -1;
	memset(field, 0, sizeof(*field));
	field->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case 0: return perfetto_varint(bytes, &field->value) ? 1 : -1;
	case 1: size = 8; break;
	case 5: size = 4; break;
	case 2:
		if (!perfetto_varint(bytes, &size))
			return -1;
		break;
	default: return -1;
	}
	if (size > (uint64_t)(bytes->end - bytes->at))
		return -1;
	field->bytes = (struct perfetto_bytes){ bytes->at, bytes->at + size };
	bytes->at += size;
	return 1;
}

static void perfetto_text(const struct perfetto_field *field, char *buffer, size_t buffer_size)
{
	(void)snprintf(buffer, buffer_size, "%.*s", (int)(field->bytes.end - field->bytes.at),
		       field->bytes.at ? (const char *)field->bytes.at : "");
}

/* The track of that id, made if need be; NULL beyond the maximum. */
static struct perfetto_track *perfetto_track(struct perfetto *perfetto, uint64_t uuid)
{
	uint32_t slot = (uint32_t)((uuid * 0x9e3779b97f4a7c15ull >> 32) % PERFETTO_SLOTS);

	for (; perfetto->slots[slot]; slot = (slot + 1) % PERFETTO_SLOTS)
		if (perfetto->tracks[perfetto->slots[slot] - 1].uuid == uuid)
			return &perfetto->tracks[perfetto->slots[slot] - 1];
	if (perfetto->track_count == PERFETTO_TRACKS)
		return NULL;
	perfetto->tracks[perfetto->track_count].uuid = uuid;
	perfetto->slots[slot] = ++perfetto->track_count;
	return &perfetto->tracks[perfetto->track_count - 1];
}

/* "GPU 3", or what `gpreempt sim` writes: "hpf on mi300x 0" */
static bool perfetto_device(const char *name, uint64_t *ret_device)
{
	const char *on = strstr(name, " on "), *number = NULL;

	if (!strncmp(name, "GPU ", 4))
		number = name + 4;
	else if (on)
		number = strrchr(on + 1, ' ') + 1;
	return number && *number && gp_rows_u64(number, strlen(number), ret_device);
}

static int perfetto_descriptor(struct perfetto *perfetto, struct perfetto_bytes bytes)
{
	uint64_t uuid = 0, parent = 0, pid = 0, tid = 0, queue = 0;
	char name[PERFETTO_NAME] = "", process_name[PERFETTO_NAME] = "";
	bool is_process = false, is_thread = false;
	struct perfetto_field field, inner;
	struct perfetto_track *track;
	const char *word;
	int r;

	while ((r = perfetto_next(&bytes, &field)) > 0) {
		if (field.number == 1)
			uuid = field.value;
		else if (field.number == 2)
			perfetto_text(&field, name, sizeof(name));
		else if (field.number == 5)
			parent = field.value;
		if (field.number != 3 && field.number != 4)
			continue;
		is_process |= field.number == 3;
		is_thread |= field.number == 4;
		while ((r = perfetto_next(&field.bytes, &inner)) > 0) {
			if (inner.number == 1)
				pid = inner.value;
			else if (field.number == 3 && inner.number == 6)
				perfetto_text(&inner, process_name, sizeof(process_name));
			else if (field.number == 4 && inner.number == 2)
				tid = inner.value;
		}
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	track = perfetto_track(perfetto, uuid);
	if (!track)
		return 0;
	track->parent = parent;
	track->is_process |= is_process;
	track->is_thread |= is_thread;
	track->pid = pid;
	track->tid = tid;
	if (is_process)
		track->has_device = perfetto_device(process_name, &track->device);
	word = strstr(name, "queue ");
	if (word && gp_rows_u64(word + 6, strspn(word + 6, "0123456789"), &queue)) {
		track->has_queue = true;
		track->queue = queue;
	}
	return 0;
}

static enum gp_layer perfetto_layer(const char *category)
{
	static const struct {
		const char *category;
		enum gp_layer layer;
	} layers[] = {
		{ "kernel", GP_LAYER_KERNEL }, { "copy", GP_LAYER_COPY },       { "HIP", GP_LAYER_HIP },
		{ "HSA", GP_LAYER_HSA },       { "library", GP_LAYER_LIBRARY }, { "driver", GP_LAYER_DRIVER },
		{ "memory", GP_LAYER_MEMORY }, { "marker", GP_LAYER_MARKER },
	};

	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
		if (!strcmp(category, layers[i].category))
			return layers[i].layer;
	return GP_LAYER_MARKER;
}

static int perfetto_emit(struct perfetto *perfetto, const struct perfetto_track *track,
			 const struct perfetto_open *open, uint64_t end_ns, struct gp_error *error)
{
	const char *name = gp_names_get(&perfetto->names, open->name);
	const struct perfetto_track *process = track->parent ? perfetto_track(perfetto, track->parent) : NULL;
	struct gp_profile_event event;

	gp_trace_event_init(&event, open->layer, name, strlen(name));
	event.start_ns = open->start_ns;
	event.end_ns = end_ns;
	event.row = perfetto->rows;
	event.known = open->known;
	event.correlation = open->correlation;
	event.size = open->size;
	event.pid = open->pid;
	if (track->is_thread) {
		event.pid = track->pid;
		event.tid = track->tid;
		event.known |= GP_KNOWN_PID | GP_KNOWN_TID;
	}
	if (open->layer == GP_LAYER_KERNEL || open->layer == GP_LAYER_COPY) {
		if (process && process->has_device) {
			event.device = process->device;
			event.known |= GP_KNOWN_DEVICE;
		}
		if (track->has_queue) {
			event.queue = track->queue;
			event.known |= GP_KNOWN_QUEUE;
		}
	}
	return perfetto->sink->event(perfetto->sink->context, &event, error);
}

static int perfetto_annotation(struct perfetto_bytes bytes, struct perfetto_open *open)
{
	char name[64] = "";
	uint64_t value = 0;
	struct perfetto_field field;
	int r;

	while ((r = perfetto_next(&bytes, &field)) > 0) {
		if (field.number == 10)
			perfetto_text(&field, name, sizeof(name));
		else if (field.number == 3)
			value = field.value;
	}
	if (!strcmp(name, "correlation")) {
		open->correlation = value;
		open->known |= GP_KNOWN_CORRELATION;
	} else if (!strcmp(name, "bytes")) {
		open->size = value;
		open->known |= GP_KNOWN_SIZE;
	} else if (!strcmp(name, "process")) {
		open->pid = value;
		open->known |= GP_KNOWN_PID;
	}
	return r;
}

/* The place of a number; a free one, or the last, if it is not there. */
static struct perfetto_interned *perfetto_find(struct perfetto *perfetto, bool is_category, uint64_t number)
{
	uint64_t hash = (perfetto->sequence << 40 ^ number << 1 ^ is_category) * 0x9e3779b97f4a7c15ull;
	uint32_t slot = (uint32_t)((hash >> 32) % (2 * PERFETTO_INTERN));
	struct perfetto_interned *at = &perfetto->interned[slot];

	while (at->name &&
	       (at->sequence != perfetto->sequence || at->number != number || at->is_category != is_category)) {
		slot = (slot + 1) % (2 * PERFETTO_INTERN);
		at = &perfetto->interned[slot];
	}
	return at;
}

/* Names that later packets refer to: {iid, name}. -1: damaged. */
static int perfetto_intern(struct perfetto *perfetto, struct perfetto_bytes bytes, struct gp_error *error)
{
	struct perfetto_field field, inner;
	int r;

	while ((r = perfetto_next(&bytes, &field)) > 0) {
		char text[GP_NAMES_SIZE] = "";
		struct perfetto_interned *at;
		uint64_t number = 0;
		uint32_t name = 0;

		if ((field.number != 1 && field.number != 2) || !field.bytes.at)
			continue;
		while ((r = perfetto_next(&field.bytes, &inner)) > 0) {
			if (inner.number == 1)
				number = inner.value;
			else if (inner.number == 2)
				perfetto_text(&inner, text, sizeof(text));
		}
		if (r < 0)
			return r;
		at = perfetto_find(perfetto, field.number == 1, number);
		if (!at->name && perfetto->interned_count == PERFETTO_INTERN)
			continue;
		if (gp_names_add(&perfetto->names, text, strlen(text), &name))
			return gp_error_set(error, -ENOMEM, "%s: not enough memory", perfetto->input->file_name);
		perfetto->interned_count += !at->name;
		*at = (struct perfetto_interned){ perfetto->sequence, number, name + 1, field.number == 1 };
	}
	return r;
}

/* What a number stands for; "" for one that nobody named. */
static const char *perfetto_named(struct perfetto *perfetto, bool is_category, uint64_t number)
{
	const struct perfetto_interned *at = perfetto_find(perfetto, is_category, number);

	return at->name ? gp_names_get(&perfetto->names, at->name - 1) : "";
}

static int perfetto_event(struct perfetto *perfetto, struct perfetto_bytes bytes, uint64_t time_ns,
			  struct gp_error *error)
{
	char name[GP_NAMES_SIZE] = "", category[64] = "";
	struct perfetto_open open = { .start_ns = time_ns };
	uint64_t type = 0, uuid = 0;
	struct perfetto_field field;
	struct perfetto_track *track;
	int r;

	while ((r = perfetto_next(&bytes, &field)) > 0) {
		if (field.number == 9)
			type = field.value;
		else if (field.number == 11)
			uuid = field.value;
		else if (field.number == 22)
			perfetto_text(&field, category, sizeof(category));
		else if (field.number == 23)
			perfetto_text(&field, name, sizeof(name));
		else if (field.number == 10)
			(void)snprintf(name, sizeof(name), "%s", perfetto_named(perfetto, false, field.value));
		else if (field.number == 3 && !field.bytes.at)
			(void)snprintf(category, sizeof(category), "%.63s",
				       perfetto_named(perfetto, true, field.value));
		else if (field.number == 4 && perfetto_annotation(field.bytes, &open) < 0)
			return -1;
	}
	if (r < 0)
		return r;
	track = perfetto_track(perfetto, uuid);
	if (!track || (type == 1 && track->depth == PERFETTO_DEPTH) || (type == 2 && !track->depth)) {
		perfetto->lost++;
		return 0;
	}
	if (type == 1) {
		open.layer = perfetto_layer(category);
		if (gp_names_add(&perfetto->names, name, strlen(name), &open.name))
			return gp_error_set(error, -ENOMEM, "%s: not enough memory", perfetto->input->file_name);
		track->open[track->depth++] = open;
	} else if (type == 2) {
		track->depth--;
		return perfetto_emit(perfetto, track, &track->open[track->depth], time_ns, error);
	}
	return 0;
}

static int perfetto_packet(struct perfetto *perfetto, struct perfetto_bytes bytes, struct gp_error *error)
{
	struct perfetto_field field, event = { .number = 0 }, interned = { .number = 0 };
	uint64_t time_ns = 0;
	int r;

	perfetto->sequence = 0;

	while ((r = perfetto_next(&bytes, &field)) > 0) {
		if (field.number == 8)
			time_ns = field.value;
		else if (field.number == 10)
			perfetto->sequence = field.value;
		else if (field.number == 11 && field.bytes.at)
			event = field;
		else if (field.number == 12 && field.bytes.at)
			interned = field;
		else if (field.number == 60 && perfetto_descriptor(perfetto, field.bytes) < 0)
			r = -1;
		if (r < 0)
			break;
	}
	perfetto->rows++;
	/* What is named in a packet is named for its own event too. */
	if (r >= 0 && interned.bytes.at)
		r = perfetto_intern(perfetto, interned.bytes, error);
	/* Runs of the simulator begin at 0, which means "no time" everywhere else. */
	if (r >= 0 && event.bytes.at)
		r = perfetto_event(perfetto, event.bytes, time_ns ? time_ns : 1, error);
	if (r == -1)
		return gp_error_set(error, -EINVAL, "%s: packet %" PRIu64 " at byte %" PRIu64 " is damaged",
				    perfetto->input->file_name, perfetto->rows, perfetto->offset);
	return r < 0 ? r : 0;
}

static int perfetto_read(struct perfetto *perfetto, struct gp_error *error)
{
	struct gp_input *input = perfetto->input;

	for (;;) {
		struct perfetto_bytes bytes;
		uint64_t tag = 0, size = 0, lead;
		int r = gp_input_fill(input, 20, error);

		if (r || !gp_input_size(input))
			return r;
		bytes.at = (const uint8_t *)gp_input_at(input);
		bytes.end = bytes.at + gp_input_size(input);
		if (!perfetto_varint(&bytes, &tag) || tag != 10 || !perfetto_varint(&bytes, &size) ||
		    size > PERFETTO_PACKET)
			return gp_error_set(error, -EINVAL, "%s: at byte %" PRIu64 " there is no packet",
					    input->file_name, perfetto->offset);
		lead = (uint64_t)(bytes.at - (const uint8_t *)gp_input_at(input));
		r = gp_input_fill(input, (size_t)(lead + size), error);
		if (r)
			return r;
		if (gp_input_size(input) < lead + size)
			return gp_error_set(error, -EINVAL, "%s: the file ends in the packet at byte %" PRIu64,
					    input->file_name, perfetto->offset);
		bytes.at = (const uint8_t *)gp_input_at(input) + lead;
		bytes.end = bytes.at + size;
		r = perfetto_packet(perfetto, bytes, error);
		if (r)
			return r;
		input->start += (size_t)(lead + size);
		perfetto->offset += lead + size;
	}
}

int gp_read_perfetto(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	GP_AUTO_FREE struct perfetto *perfetto = calloc(1, sizeof(*perfetto));
	int r;

	if (!perfetto)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	perfetto->input = input;
	perfetto->sink = sink;
	perfetto->tracks = calloc(PERFETTO_TRACKS, sizeof(*perfetto->tracks));
	if (!perfetto->tracks || gp_names_init(&perfetto->names))
		r = gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	else
		r = perfetto_read(perfetto, error);
	for (uint32_t i = 0; perfetto->tracks && i < perfetto->track_count; i++)
		perfetto->lost += perfetto->tracks[i].depth;
	if (!r && perfetto->lost) {
		struct gp_fact fact = { .kind = GP_FACT_WARNING, .row = perfetto->rows };

		fact.text = "slices that begin and never end, or end and never began, are left out";
		r = sink->fact(sink->context, &fact, error);
	}
	gp_names_fini(&perfetto->names);
	free(perfetto->tracks);
	return r;
}
