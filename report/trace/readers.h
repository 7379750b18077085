/* SPDX-License-Identifier: MIT */
/*
 * One reader per format. Each reads to the end and hands on what it finds, or returns a negative errno with
 * "file:line: …" (or "file: …"). What a format cannot say stays unknown. gp_trace_read() recognises the format by its
 * content and calls the right one.
 */
#ifndef GP_REPORT_TRACE_READERS_H
#define GP_REPORT_TRACE_READERS_H

#include "report/trace/event.h"
#include "report/trace/input.h"

int gp_read_csv(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
int gp_read_console(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
int gp_read_rocprofv3_json(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
int gp_read_chrome_json(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
int gp_read_perfetto(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
int gp_read_ftrace(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
int gp_read_record(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
int gp_read_dmesg(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);

/* A database: rocpd, RPD or rocprof v1's, told apart by the names of its tables. The format's name is returned even if
 * the reading fails later. bytes: an image in memory (fuzzers) instead of the file; NULL: the file. */
int gp_read_sqlite(const char *path, const void *bytes, size_t size, const struct gp_sink *sink,
		   const char **ret_format, struct gp_error *error);

/* The layer of a call from its domain ("HIP_RUNTIME_API_EXT"; "" if there is none) and its name. */
enum gp_layer gp_layer_of(const char *domain, const char *name);
/* One event of a kind that readers often make: name and times set, nothing else known. */
void gp_trace_event_init(struct gp_profile_event *event, enum gp_layer layer, const char *name, size_t name_size);

struct gp_read_progress {
	void *context;
	void (*update)(void *context, uint64_t read_size, uint64_t total_size); /* may be NULL */
};
/* Reads a file of any known format. *ret_format names it ("rocprofv3 CSV") also when the reading fails, NULL if it was
 * not recognised. -ENOMSG: it is no trace. */
int gp_trace_read(const char *path, const struct gp_sink *sink, const struct gp_read_progress *progress,
		  const char **ret_format, struct gp_error *error);
/* The same from memory, for tests; databases excepted. */
int gp_trace_read_input(struct gp_input *input, const struct gp_sink *sink, const char **ret_format,
			struct gp_error *error);

#endif
