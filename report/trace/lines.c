/* SPDX-License-Identifier: MIT */
/* Owns the splitting of text into lines. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "report/trace/lines.h"

void gp_lines_init(struct gp_lines *lines, struct gp_input *input)
{
	memset(lines, 0, sizeof(*lines));
	lines->input = input;
}

int gp_lines_next(struct gp_lines *lines, struct gp_error *error)
{
	struct gp_input *input = lines->input;
	/* One byte more than the longest line with its line end: it is where the NUL goes at the end of the file. */
	int r = gp_input_fill(input, GP_LINES_SIZE_MAX + 2, error);
	size_t size = gp_input_size(input);
	char *at = gp_input_at(input), *end;

	if (r)
		return r;
	if (!size)
		return 0;
	lines->line++;
	end = memchr(at, '\n', size);
	if (!end && size > GP_LINES_SIZE_MAX)
		return gp_error_set(error, -EINVAL, "%s:%" PRIu64 ": the line is longer than %u bytes",
				    input->file_name, lines->line, GP_LINES_SIZE_MAX);
	lines->size = end ? (size_t)(end - at) : size;
	input->start += lines->size + (end ? 1 : 0);
	if (memchr(at, '\0', lines->size))
		return gp_error_set(error, -EINVAL, "%s:%" PRIu64 ": there is a NUL byte in the line: this is not text",
				    input->file_name, lines->line);
	if (lines->size && at[lines->size - 1] == '\r')
		lines->size--;
	at[lines->size] = '\0';
	lines->text = at;
	return 1;
}
