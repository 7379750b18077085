/* SPDX-License-Identifier: MIT */
/* Lines of a text file of any size, through a window, each NUL-terminated and without its line end. */
#ifndef GP_REPORT_TRACE_LINES_H
#define GP_REPORT_TRACE_LINES_H

#include "report/trace/input.h"

#define GP_LINES_SIZE_MAX (1u << 20) /* of one line; what is longer is refused */

struct gp_lines {
	struct gp_input *input;
	uint64_t line; /* of the line last read, from 1 */
	char *text;    /* valid until the next line */
	size_t size;
};

void gp_lines_init(struct gp_lines *lines, struct gp_input *input);
/* 1: a line; 0: the end; negative errno with "file:line: …". */
int gp_lines_next(struct gp_lines *lines, struct gp_error *error);

#endif
