/* SPDX-License-Identifier: MIT */
/* RFC 4180 over a text in memory: quoted fields, doubled quotes, commas and line ends inside quotes, CRLF, missing
 * last newline. */
#ifndef GP_LIB_CSV_H
#define GP_LIB_CSV_H

#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_CSV_FIELD_MAX 64u    /* columns */
#define GP_CSV_ROW_SIZE  16384u /* bytes of one row, unquoted */

struct gp_csv {
	const char *text, *file_name; /* not owned */
	size_t text_size, offset;
	uint32_t line;      /* where the row last read begins, from 1 */
	uint32_t line_next; /* where the next one begins */
	uint32_t field_count;
	const char *fields[GP_CSV_FIELD_MAX]; /* NUL-terminated, into row; valid until the next row */
	char row[GP_CSV_ROW_SIZE];
};

void gp_csv_init(struct gp_csv *csv, const char *text, size_t text_size, const char *file_name);
/* 1: a row was read; 0: end of text; negative errno with "file:line: …": unterminated quote, too many columns, row
 * too long, NUL byte. Empty lines are skipped. */
int gp_csv_next(struct gp_csv *csv, struct gp_error *error);
int gp_csv_column(const struct gp_csv *csv, const char *name); /* in the row just read (the header); -1: not there */
/* -EINVAL with "file:line: column …". */
int gp_csv_u64(const struct gp_csv *csv, int column, uint64_t *ret_value, struct gp_error *error);

#endif
