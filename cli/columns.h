/* SPDX-License-Identifier: MIT */
/* A table as text: cells in, lines of equal columns out. Shared by status and top. */
#ifndef GP_CLI_COLUMNS_H
#define GP_CLI_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GP_COLUMNS_MAX 20u

struct gp_columns {
	uint32_t column_count, row_count, room;
	uint32_t filled; /* cells of the row under way */
	const char *const *heads;
	bool left[GP_COLUMNS_MAX]; /* flush left; otherwise right */
	size_t widths[GP_COLUMNS_MAX];
	char **cells;
	bool failed; /* out of memory: rows are missing */
};

/* heads: static; one beginning with '<' is flush left (the mark is not shown). */
void gp_columns_init(struct gp_columns *columns, const char *const *heads, uint32_t column_count);
void gp_columns_fini(struct gp_columns *columns);
void gp_columns_add(struct gp_columns *columns, const char *text);  /* the next cell; rows begin by themselves */
void gp_columns_number(struct gp_columns *columns, uint64_t value); /* 1,234; unknown: – */
void gp_columns_ns(struct gp_columns *columns, uint64_t ns);
/* Row `row`, or the heads with UINT32_MAX; returns buffer. */
const char *gp_columns_line(const struct gp_columns *columns, uint32_t row, char *buffer, size_t buffer_size);
void gp_columns_print(const struct gp_columns *columns, FILE *stream, const char *indent);

#endif
