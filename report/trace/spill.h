/* SPDX-License-Identifier: MIT */
/* An unnamed temporary file of fixed-size records: appended to, read back by number. It disappears with its
 * descriptor, whatever happens to the program. */
#ifndef GP_REPORT_TRACE_SPILL_H
#define GP_REPORT_TRACE_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

struct gp_spill {
	int fd; /* -1: nothing spilled yet */
	size_t record_size, room;
	char *buffer; /* the records behind those in the file */
	size_t buffered;
	uint64_t in_file; /* records */
	char *window;     /* for reading back */
	uint64_t window_first;
	size_t window_count;
};

/* buffer_size: bytes kept in memory before the file is made. */
int gp_spill_init(struct gp_spill *spill, size_t record_size, size_t buffer_size, struct gp_error *error);
void gp_spill_fini(struct gp_spill *spill);
int gp_spill_append(struct gp_spill *spill, const void *record, struct gp_error *error);
/* The record of that number, valid until the next call. Going backwards is as fast as forwards. */
int gp_spill_get(struct gp_spill *spill, uint64_t index, const void **ret_record, struct gp_error *error);

static inline uint64_t gp_spill_count(const struct gp_spill *spill)
{
	return spill->in_file + spill->buffered;
}

/* The pieces it is made of, for those who lay out their file themselves. */
int gp_spill_open(struct gp_error *error); /* a descriptor, or a negative errno */
int gp_spill_write(int fd, const void *bytes, size_t size, uint64_t offset, struct gp_error *error);
int gp_spill_read(int fd, void *bytes, size_t size, uint64_t offset, struct gp_error *error);

#endif
