/* SPDX-License-Identifier: MIT */
/* CSV rows (RFC 4180) of a file of any size, through a window; lib/csv.h is for texts that are in memory. Fields are
 * unquoted in place and NUL-terminated. */
#ifndef GP_REPORT_TRACE_ROWS_H
#define GP_REPORT_TRACE_ROWS_H

#include <stdint.h>
#include "report/trace/input.h"

#define GP_ROWS_FIELD_MAX 512u /* columns; counters of rocprof v1 are columns */

struct gp_rows {
	struct gp_input *input; /* not owned */
	uint64_t line;          /* where the row last read begins, from 1 */
	uint64_t line_next;
	uint32_t field_count;
	char *fields[GP_ROWS_FIELD_MAX]; /* valid until the next row */
	uint32_t sizes[GP_ROWS_FIELD_MAX];
};

void gp_rows_init(struct gp_rows *rows, struct gp_input *input);
/* 1: a row; 0: the end; negative errno with "file:line: …". Empty lines are skipped. */
int gp_rows_next(struct gp_rows *rows, struct gp_error *error);
/* The column of one of these names (a list that ends in NULL), in the row just read; -1: none. Case is ignored, as is
 * whether words are joined by '_' or '-'. */
int gp_rows_column(const struct gp_rows *rows, const char *const *names);
/* Digits only; false otherwise. */
bool gp_rows_u64(const char *text, size_t text_size, uint64_t *ret_value);

#endif
