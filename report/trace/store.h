/* SPDX-License-Identifier: MIT */
/*
 * All events of a run, from any number of files, to be read back in the order of time as often as needed. Keeps a
 * bounded part in memory; the rest lies in an unnamed temporary file ($TMPDIR, else /tmp).
 */
#ifndef GP_REPORT_TRACE_STORE_H
#define GP_REPORT_TRACE_STORE_H

#include "report/trace/event.h"
#include "report/trace/names.h"

#define GP_STORE_TRACK_MAX 16384u /* threads and queues */
#define GP_STORE_FILE_MAX  256u
#define GP_STORE_NONE      UINT32_MAX

/* Where an event took place: a thread, or a queue of a device. Fields as known. What does not name its process is told
 * apart by its file, whose process it may be. */
struct gp_track {
	uint32_t known;
	bool is_engine;
	enum gp_layer layer; /* of an engine: KERNEL or COPY; otherwise 0 */
	uint64_t pid, tid, device, queue, stream;
	int64_t priority;
	uint32_t file; /* number + 1, if the process is not known; otherwise 0; see gp_store_file_end() */
	uint32_t rank; /* of its file: number + 1, or 0 */
	uint32_t slot; /* of the hash table */
};

struct gp_trace_record {
	uint64_t start_ns, end_ns;
	uint64_t correlation;
	uint64_t dispatch_or_size; /* kernels: dispatch_ns; copies and their calls: bytes; waits: recorded_stream */
	uint64_t complete_ns;      /* waits: recorded_correlation */
	uint32_t name, track;
	uint32_t row; /* saturates */
	uint32_t workgroups;
	uint16_t known; /* the lower bits of enum gp_known that are not the track's */
	uint16_t file;
	uint8_t layer;
	uint8_t unused[3];
};

struct gp_store_file {
	char *name;
	const char *format; /* static */
	uint64_t events, first_ns, last_ns;
	uint64_t left_out; /* rows that end before they start, or have no time */
	uint64_t left_out_row;
	uint32_t rank;               /* number + 1; 0: it says none */
	uint32_t first_track;        /* this one and those behind it are the file's, and perhaps others' later */
	bool has_own_tracks;         /* it shares none with earlier files until its end: its rank may come so late */
	bool has_pid, has_many_pids; /* processes that its events name, ranges excepted */
	uint64_t pid;
};

struct gp_store {
	struct gp_names names;
	struct gp_track *tracks;
	uint32_t track_count, track_room;
	uint32_t *track_slots;
	uint32_t track_last;
	struct gp_store_file files[GP_STORE_FILE_MAX];
	uint32_t file_count;
	uint64_t count, first_ns, last_ns; /* first start, last end; valid if count */
	bool has_ranks; /* files of different ranks: each has its own processes and devices, whatever their numbers */
	struct store_runs *runs;
};

/* memory_size: of the part that is kept in memory; 0: the usual. */
int gp_store_init(struct gp_store *store, size_t memory_size, struct gp_error *error);
void gp_store_fini(struct gp_store *store);

/* Opens the next file: its events are counted and warned about under this name. */
int gp_store_file_add(struct gp_store *store, const char *name, struct gp_error *error);
/* The current file is of this rank of a job. UINT64_MAX, before its events: it may say so behind them. */
void gp_store_rank(struct gp_store *store, uint64_t rank);
/* The current file has no more events. If its rank may have come behind them, its threads and queues become those of
 * earlier files of this rank: then the same event in both of them comes twice in a row. Work that names no process
 * counts as that of the first file with the same process. After a failure the store is only good for gp_store_fini().
 */
int gp_store_file_end(struct gp_store *store, struct gp_error *error);
/* Takes back the last one, which has no events. */
void gp_store_file_drop(struct gp_store *store);
/* The sink's event of the current file. A row that ends before it starts, or at 0, is counted and left out. */
int gp_store_add(struct gp_store *store, const struct gp_profile_event *event, struct gp_error *error);

/* From the earliest start on; at equal starts the longer first, so that what contains comes before what is contained.
 * May be called again for another pass, but not together with adding. */
int gp_store_rewind(struct gp_store *store, struct gp_error *error);
/* 1: a record; 0: the end; negative errno. The record is valid until the next call. */
int gp_store_next(struct gp_store *store, const struct gp_trace_record **ret_record, struct gp_error *error);

static inline const struct gp_track *gp_store_track(const struct gp_store *store, uint32_t track)
{
	return &store->tracks[track];
}

#endif
