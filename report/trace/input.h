/* SPDX-License-Identifier: MIT */
/*
 * Bytes of a file through a window of bounded size, unpacked on the way if the file is gzip (by content). Readers look
 * at the window and move its start; what is in front of the start is gone.
 */
#ifndef GP_REPORT_TRACE_INPUT_H
#define GP_REPORT_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_INPUT_WINDOW_MAX (8u << 20) /* bytes: a row or token that does not fit is refused */

struct gp_input {
	const char *file_name; /* not owned */
	int fd;                /* -1: from memory */
	const char *memory;
	size_t memory_size;
	char *window;
	size_t room, start, end;        /* the bytes at hand are window[start..end) */
	bool at_end;                    /* nothing comes behind `end` */
	uint64_t read_size, total_size; /* of the file as it lies there; total 0: unknown (a pipe) */
	struct gp_input_gzip *gzip;     /* NULL: not packed */
	const char *format;             /* set by a reader that knows better than the first look; a constant */
	/* Called now and then while reading; may be NULL. */
	void (*progress)(void *context, uint64_t read_size);
	void *progress_context;
};

/* A file that can be read once from front to back; "-" is standard input. */
const char *gp_input_name(const char *path); /* as messages and reports call it */
int gp_input_open(struct gp_input *input, const char *path, struct gp_error *error);
/* From memory, as a fuzzer has it; text stays the caller's. */
int gp_input_open_memory(struct gp_input *input, const char *text, size_t text_size, const char *file_name,
			 struct gp_error *error);
void gp_input_close(struct gp_input *input);
/* At least `want` bytes at hand, or fewer if the file ends before. -EFBIG if they do not fit the window. */
int gp_input_fill(struct gp_input *input, size_t want, struct gp_error *error);

/* The bytes at hand, which end at input->end. */
static inline char *gp_input_at(const struct gp_input *input)
{
	return input->window + input->start;
}
static inline size_t gp_input_size(const struct gp_input *input)
{
	return input->end - input->start;
}

#endif
