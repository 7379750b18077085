/* SPDX-License-Identifier: MIT */
/* Owns the events of a run between reading and analysis: interns where they took place, sorts them in runs, merges
 * the runs. Bounded in memory whatever the files hold. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/cleanup.h"
#include "report/trace/spill.h"
#include "report/trace/store.h"

#define STORE_MEMORY_SIZE (48u << 20)
#define STORE_MERGE_SIZE  (16u << 20) /* for all runs together while they are merged */
#define STORE_RUN_MAX     8192u
#define STORE_TRACK_SLOTS (GP_STORE_TRACK_MAX * 4u) /* those of all files and, until its end, as many of one more */
#define STORE_MOVES       16u                       /* records moved per record before insertion sort gives up */
#define STORE_RECORD_KNOWN                                                                                    \
	(GP_KNOWN_CORRELATION | GP_KNOWN_SIZE | GP_KNOWN_DISPATCH | GP_KNOWN_COMPLETE | GP_KNOWN_WORKGROUPS | \
	 GP_KNOWN_RECORDED)
#define STORE_TRACK_KNOWN \
	(GP_KNOWN_PID | GP_KNOWN_TID | GP_KNOWN_DEVICE | GP_KNOWN_QUEUE | GP_KNOWN_STREAM | GP_KNOWN_PRIORITY)

struct store_run {
	uint64_t first, count; /* in the file */
	/* while merging */
	uint64_t taken;
	struct gp_trace_record *window;
	size_t at, window_count;
};

struct store_runs {
	struct gp_trace_record *buffer; /* the run that is not in the file */
	size_t count, room;
	int fd;
	uint64_t in_file;
	struct store_run *runs;
	uint32_t run_count, run_room;
	/* Where the records of the current trace begin: the first run that may have some, the place in the buffer. */
	uint32_t trace_run;
	size_t trace_at;
	struct gp_trace_record *windows; /* of all runs */
	size_t window_room;
	uint32_t *heap; /* run numbers; run_count stands for the buffer */
	uint32_t heap_count;
	size_t buffer_at;
	bool is_merging, is_handed_out; /* handed out: the head of the heap was given and is to be stepped over */
};

static int store_no_memory(struct gp_error *error)
{
	return gp_error_set(error, -ENOMEM, "not enough memory");
}

int gp_store_init(struct gp_store *store, size_t memory_size, struct gp_error *error)
{
	struct store_runs *runs;

	memset(store, 0, sizeof(*store));
	store->track_last = GP_STORE_NONE;
	store->runs = runs = calloc(1, sizeof(*runs));
	if (!runs)
		return store_no_memory(error);
	runs->fd = -1;
	runs->room = (memory_size ? memory_size : STORE_MEMORY_SIZE) / sizeof(struct gp_trace_record);
	runs->room = runs->room ? runs->room : 1;
	runs->buffer = malloc(runs->room * sizeof(struct gp_trace_record));
	store->track_slots = calloc(STORE_TRACK_SLOTS, sizeof(*store->track_slots));
	if (!runs->buffer || !store->track_slots || gp_names_init(&store->names)) {
		gp_store_fini(store);
		return store_no_memory(error);
	}
	return 0;
}

void gp_store_fini(struct gp_store *store)
{
	if (store->runs) {
		free(store->runs->buffer);
		free(store->runs->runs);
		free(store->runs->windows);
		free(store->runs->heap);
		if (store->runs->fd >= 0)
			close(store->runs->fd);
	}
	free(store->runs);
	free(store->tracks);
	free(store->track_slots);
	for (uint32_t i = 0; i < store->file_count; i++)
		free(store->files[i].name);
	gp_names_fini(&store->names);
	memset(store, 0, sizeof(*store));
}

int gp_store_file_add(struct gp_store *store, const char *name, struct gp_error *error)
{
	struct gp_store_file *file = &store->files[store->file_count];

	if (store->file_count == GP_STORE_FILE_MAX)
		return gp_error_set(error, -E2BIG, "more than %u files", GP_STORE_FILE_MAX);
	memset(file, 0, sizeof(*file));
	file->name = strdup(name);
	if (!file->name)
		return store_no_memory(error);
	file->first_track = store->track_count;
	store->track_last = GP_STORE_NONE;
	store->runs->trace_run = store->runs->run_count;
	store->runs->trace_at = store->runs->count;
	store->file_count++;
	return 0;
}

void gp_store_file_drop(struct gp_store *store)
{
	free(store->files[--store->file_count].name);
	memset(&store->files[store->file_count], 0, sizeof(store->files[0]));
}

void gp_store_rank(struct gp_store *store, uint64_t rank)
{
	struct gp_store_file *file = &store->files[store->file_count - 1];

	file->has_own_tracks |= rank == UINT64_MAX;
	/* The first rank that a file names counts: one that names thousands would change its tracks thousands of times.
	 */
	if (rank >= UINT32_MAX || file->rank)
		return;
	file->rank = (uint32_t)rank + 1;
	for (uint32_t i = file->first_track; i < store->track_count; i++)
		store->tracks[i].rank = file->rank;
	store->track_last = GP_STORE_NONE;
	for (uint32_t i = 0; i + 1 < store->file_count; i++)
		store->has_ranks |= store->files[i].rank && store->files[i].rank != file->rank;
}

static bool store_track_equals(const struct gp_track *a, const struct gp_track *b)
{
	return a->known == b->known && a->is_engine == b->is_engine && a->layer == b->layer && a->pid == b->pid &&
	       a->tid == b->tid && a->device == b->device && a->queue == b->queue && a->stream == b->stream &&
	       a->priority == b->priority && a->file == b->file && a->rank == b->rank;
}

static uint32_t store_track_hash(const struct gp_track *track)
{
	uint64_t hash = track->known + 31u * (uint64_t)track->layer + track->is_engine;
	const uint64_t parts[] = { track->pid,   track->tid,    track->device,
				   track->queue, track->stream, (uint64_t)track->priority,
				   track->file,  track->rank };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 31;
	}
	return (uint32_t)(hash % STORE_TRACK_SLOTS);
}

static void store_track_of(const struct gp_store *store, const struct gp_profile_event *event, struct gp_track *track)
{
	memset(track, 0, sizeof(*track));
	track->known = event->known & STORE_TRACK_KNOWN;
	track->is_engine =
		event->layer == GP_LAYER_KERNEL || event->layer == GP_LAYER_COPY || event->layer == GP_LAYER_WAIT;
	track->layer = track->is_engine ? event->layer : GP_LAYER_MARKER;
	track->pid = event->known & GP_KNOWN_PID ? event->pid : 0;
	track->file = event->known & GP_KNOWN_PID ? 0 : store->file_count;
	track->rank = store->files[store->file_count - 1].rank;
	track->tid = event->known & GP_KNOWN_TID ? event->tid : 0;
	track->priority = event->known & GP_KNOWN_PRIORITY ? event->priority : 0;
	if (track->is_engine) {
		track->device = event->known & GP_KNOWN_DEVICE ? event->device : 0;
		track->queue = event->known & GP_KNOWN_QUEUE ? event->queue : 0;
		track->stream = event->known & GP_KNOWN_STREAM ? event->stream : 0;
	} else {
		track->known &= ~(uint32_t)(GP_KNOWN_DEVICE | GP_KNOWN_QUEUE | GP_KNOWN_STREAM);
	}
}

/* The equal track from `first` on, or a new one. */
static int store_track_add(struct gp_store *store, const struct gp_track *track, uint32_t first, uint32_t *ret_track,
			   struct gp_error *error)
{
	uint32_t slot = store_track_hash(track);

	for (; store->track_slots[slot]; slot = (slot + 1) % STORE_TRACK_SLOTS)
		if (store->track_slots[slot] > first &&
		    store_track_equals(&store->tracks[store->track_slots[slot] - 1], track)) {
			*ret_track = store->track_slots[slot] - 1;
			return 0;
		}
	if (store->track_count - first >= GP_STORE_TRACK_MAX)
		return gp_error_set(error, -E2BIG, "%s: more than %u threads and queues: this is no trace of one run",
				    store->file_count ? store->files[store->file_count - 1].name : "trace",
				    GP_STORE_TRACK_MAX);
	if (store->track_count == store->track_room) {
		uint32_t larger = store->track_room ? store->track_room * 2 : 64;
		struct gp_track *moved = realloc(store->tracks, larger * sizeof(*moved));

		if (!moved)
			return store_no_memory(error);
		store->tracks = moved;
		store->track_room = larger;
	}
	store->tracks[store->track_count] = *track;
	store->tracks[store->track_count].slot = slot;
	store->track_slots[slot] = ++store->track_count;
	*ret_track = store->track_count - 1;
	return 0;
}

static int store_compare(const struct gp_trace_record *a, const struct gp_trace_record *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	if (a->layer != b->layer)
		return a->layer < b->layer ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static int store_compare_void(const void *a, const void *b)
{
	return store_compare(a, b);
}

/* Traces are nearly sorted: inner calls come before the outer one. What is not goes to qsort. */
static void store_sort(struct gp_trace_record *records, size_t count)
{
	uint64_t moves = 0;

	for (size_t i = 1; i < count; i++) {
		struct gp_trace_record record = records[i];
		size_t at = i;

		if (store_compare(&records[i - 1], &record) <= 0)
			continue;
		while (at && store_compare(&records[at - 1], &record) > 0 && i - at < 4096u)
			at--;
		moves += i - at;
		if ((at && store_compare(&records[at - 1], &record) > 0) || moves > (uint64_t)count * STORE_MOVES) {
			qsort(records, count, sizeof(*records), store_compare_void);
			return;
		}
		memmove(&records[at + 1], &records[at], (i - at) * sizeof(record));
		records[at] = record;
	}
}

static int store_spill(struct store_runs *runs, struct gp_error *error)
{
	int r;

	if (runs->run_count == STORE_RUN_MAX)
		return gp_error_set(error, -EFBIG, "the trace is too large: more than %llu events",
				    (unsigned long long)runs->room * STORE_RUN_MAX);
	if (runs->run_count == runs->run_room) {
		uint32_t larger = runs->run_room ? runs->run_room * 2 : 16;
		struct store_run *moved = realloc(runs->runs, larger * sizeof(*moved));

		if (!moved)
			return store_no_memory(error);
		runs->runs = moved;
		runs->run_room = larger;
	}
	if (runs->fd < 0)
		runs->fd = gp_spill_open(error);
	if (runs->fd < 0)
		return runs->fd;
	store_sort(runs->buffer, runs->count);
	r = gp_spill_write(runs->fd, runs->buffer, runs->count * sizeof(struct gp_trace_record),
			   runs->in_file * sizeof(struct gp_trace_record), error);
	if (r)
		return r;
	runs->runs[runs->run_count++] = (struct store_run){ .first = runs->in_file, .count = runs->count };
	runs->in_file += runs->count;
	runs->count = 0;
	runs->trace_at = 0;
	return 0;
}

/* The first file of the same process, as far as files name one. For the analysis, work that names no process is of the
 * same in all of these. */
static uint32_t store_home(const struct gp_store *store)
{
	const struct gp_store_file *file = &store->files[store->file_count - 1], *other = store->files;
	bool has_one = file->has_pid && !file->has_many_pids;

	while (other != file &&
	       (!other->has_own_tracks || other->rank != file->rank ||
		(other->has_pid && !other->has_many_pids) != has_one || (has_one && other->pid != file->pid)))
		other++;
	return (uint32_t)(other - store->files) + 1;
}

/* Tracks of the current file that have new numbers. */
struct store_moves {
	uint32_t first, file;
	const uint32_t *to; /* by the old number less `first` */
};

static void store_move(const struct store_moves *moves, struct gp_trace_record *records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (records[i].file == moves->file && records[i].track >= moves->first)
			records[i].track = moves->to[records[i].track - moves->first];
}

static int store_move_all(struct store_runs *runs, const struct store_moves *moves, struct gp_error *error)
{
	uint32_t run_count = runs->run_count;
	int r = 0;

	store_move(moves, runs->buffer + runs->trace_at, runs->count - runs->trace_at);
	/* Runs in the temporary file are in the order of the old numbers: they are sorted again, in the buffer. */
	if (runs->trace_run < run_count && runs->count)
		r = store_spill(runs, error);
	for (uint32_t i = runs->trace_run; i < run_count && !r; i++) {
		uint64_t offset = runs->runs[i].first * sizeof(struct gp_trace_record);
		size_t count = (size_t)runs->runs[i].count, size = count * sizeof(struct gp_trace_record);

		r = gp_spill_read(runs->fd, runs->buffer, size, offset, error);
		if (r)
			break;
		store_move(moves, runs->buffer, count);
		store_sort(runs->buffer, count);
		r = gp_spill_write(runs->fd, runs->buffer, size, offset, error);
	}
	return r;
}

int gp_store_file_end(struct gp_store *store, struct gp_error *error)
{
	const struct gp_store_file *file = &store->files[store->file_count - 1];
	uint32_t first = file->first_track, count = store->track_count - first, home = store_home(store);
	GP_AUTO_FREE uint32_t *to = NULL;
	struct store_moves moves = { .first = first, .file = store->file_count - 1 };
	bool is_moved = false;
	int r = 0;

	if (!file->has_own_tracks || !count)
		return 0;
	moves.to = to = calloc(count, sizeof(*to));
	if (!to)
		return store_no_memory(error);
	/* Without all of the file's tracks the table is as it was before them; then they come one after the other. */
	for (uint32_t i = first; i < store->track_count; i++)
		store->track_slots[store->tracks[i].slot] = 0;
	store->track_count = first;
	store->track_last = GP_STORE_NONE;
	for (uint32_t i = 0; i < count && !r; i++) {
		struct gp_track track = store->tracks[first + i];

		track.file = track.file ? home : 0;
		r = store_track_add(store, &track, 0, &to[i], error);
		is_moved |= to[i] != first + i;
	}
	return r || !is_moved ? r : store_move_all(store->runs, &moves, error);
}

static void store_count(struct gp_store *store, struct gp_store_file *file, const struct gp_profile_event *event)
{
	if (!file->events || event->start_ns < file->first_ns)
		file->first_ns = event->start_ns;
	if (!file->events || event->end_ns > file->last_ns)
		file->last_ns = event->end_ns;
	if (!store->count || event->start_ns < store->first_ns)
		store->first_ns = event->start_ns;
	if (!store->count || event->end_ns > store->last_ns)
		store->last_ns = event->end_ns;
	if ((event->known & GP_KNOWN_PID) && event->layer != GP_LAYER_MARKER) {
		file->has_many_pids |= file->has_pid && file->pid != event->pid;
		file->has_pid = true;
		file->pid = event->pid;
	}
	file->events++;
	store->count++;
}

int gp_store_add(struct gp_store *store, const struct gp_profile_event *event, struct gp_error *error)
{
	struct gp_store_file *file = &store->files[store->file_count - 1];
	struct store_runs *runs = store->runs;
	struct gp_trace_record *record;
	struct gp_track track;
	int r;

	if (event->end_ns < event->start_ns || !event->start_ns) {
		if (!file->left_out++)
			file->left_out_row = event->row;
		return 0;
	}
	if (runs->count == runs->room) {
		r = store_spill(runs, error);
		if (r)
			return r;
	}
	record = &runs->buffer[runs->count];
	memset(record, 0, sizeof(*record));
	store_track_of(store, event, &track);
	if (store->track_last != GP_STORE_NONE && store_track_equals(&store->tracks[store->track_last], &track)) {
		record->track = store->track_last;
	} else {
		r = store_track_add(store, &track, file->has_own_tracks ? file->first_track : 0, &record->track, error);
		if (r)
			return r;
		store->track_last = record->track;
	}
	if (gp_names_add(&store->names, event->name, event->name_size, &record->name))
		return store_no_memory(error);
	record->start_ns = event->start_ns;
	record->end_ns = event->end_ns;
	record->known = (uint16_t)(event->known & STORE_RECORD_KNOWN);
	record->correlation = event->correlation;
	record->dispatch_or_size = event->layer == GP_LAYER_KERNEL ? event->dispatch_ns :
				   event->layer == GP_LAYER_WAIT   ? event->recorded_stream :
								     event->size;
	record->complete_ns = event->layer == GP_LAYER_WAIT ? event->recorded_correlation : event->complete_ns;
	record->workgroups = event->workgroups > UINT32_MAX ? UINT32_MAX : (uint32_t)event->workgroups;
	record->row = event->row > UINT32_MAX ? UINT32_MAX : (uint32_t)event->row;
	record->file = (uint16_t)(store->file_count - 1);
	record->layer = (uint8_t)event->layer;
	runs->count++;
	store_count(store, file, event);
	return 0;
}

/* The record a run would give next, or NULL. */
static const struct gp_trace_record *store_head(const struct store_runs *runs, uint32_t run)
{
	if (run == runs->run_count)
		return runs->buffer_at < runs->count ? &runs->buffer[runs->buffer_at] : NULL;
	return runs->runs[run].at < runs->runs[run].window_count ? &runs->runs[run].window[runs->runs[run].at] : NULL;
}

static int store_refill(struct store_runs *runs, struct store_run *run, struct gp_error *error)
{
	uint64_t left = run->count - run->taken;
	size_t count = left < runs->window_room ? (size_t)left : runs->window_room;
	int r = 0;

	run->at = 0;
	run->window_count = 0;
	if (count)
		r = gp_spill_read(runs->fd, run->window, count * sizeof(struct gp_trace_record),
				  (run->first + run->taken) * sizeof(struct gp_trace_record), error);
	if (r)
		return r;
	run->taken += count;
	run->window_count = count;
	return 0;
}

static bool store_is_before(const struct store_runs *runs, uint32_t a, uint32_t b)
{
	int order = store_compare(store_head(runs, a), store_head(runs, b));

	return order ? order < 0 : a < b;
}

static void store_sink(struct store_runs *runs, uint32_t at)
{
	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < runs->heap_count && store_is_before(runs, runs->heap[child], runs->heap[least]))
				least = child;
		if (least == at)
			return;
		uint32_t swap = runs->heap[at];

		runs->heap[at] = runs->heap[least];
		runs->heap[least] = swap;
		at = least;
	}
}

int gp_store_rewind(struct gp_store *store, struct gp_error *error)
{
	struct store_runs *runs = store->runs;

	if (!runs->is_merging) {
		store_sort(runs->buffer, runs->count);
		runs->heap = calloc(runs->run_count + 1u, sizeof(*runs->heap));
		runs->window_room =
			runs->run_count ? STORE_MERGE_SIZE / sizeof(struct gp_trace_record) / runs->run_count : 1;
		runs->window_room = runs->window_room < 8192 ? runs->window_room : 8192;
		runs->window_room = runs->window_room ? runs->window_room : 1;
		if (runs->run_count)
			runs->windows = malloc(runs->run_count * runs->window_room * sizeof(struct gp_trace_record));
		if (!runs->heap || (runs->run_count && !runs->windows))
			return store_no_memory(error);
		runs->is_merging = true;
	}
	runs->heap_count = 0;
	runs->buffer_at = 0;
	for (uint32_t i = 0; i < runs->run_count; i++) {
		int r;

		runs->runs[i].window = runs->windows + i * runs->window_room;
		runs->runs[i].taken = 0;
		r = store_refill(runs, &runs->runs[i], error);
		if (r)
			return r;
		runs->heap[runs->heap_count++] = i;
	}
	if (runs->count)
		runs->heap[runs->heap_count++] = runs->run_count;
	for (uint32_t i = runs->heap_count; i-- > 0;)
		store_sink(runs, i);
	runs->is_handed_out = false;
	return 0;
}

int gp_store_next(struct gp_store *store, const struct gp_trace_record **ret_record, struct gp_error *error)
{
	struct store_runs *runs = store->runs;

	if (runs->is_handed_out && runs->heap_count) {
		uint32_t run = runs->heap[0];

		if (run == runs->run_count) {
			runs->buffer_at++;
		} else if (++runs->runs[run].at == runs->runs[run].window_count) {
			int r = store_refill(runs, &runs->runs[run], error);

			if (r)
				return r;
		}
		if (!store_head(runs, run))
			runs->heap[0] = runs->heap[--runs->heap_count];
		store_sink(runs, 0);
	}
	runs->is_handed_out = true;
	*ret_record = runs->heap_count ? store_head(runs, runs->heap[0]) : NULL;
	return runs->heap_count ? 1 : 0;
}
