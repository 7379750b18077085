/* SPDX-License-Identifier: MIT */
/* Owns where the lines are in the ring. */
#include "daemon/lines.h"

/* All sizes are multiples of this. So there is always room for a head at the end of the ring, which marks the rest as
 * empty. */
#define LINES_GRAIN 32u
_Static_assert(sizeof(struct gp_line) <= LINES_GRAIN && GP_LINES_SIZE % LINES_GRAIN == 0,
	       "a head fits into what is left at the end of the room");

struct gp_line *gp_line_at(struct gp_event_lines *lines, uint64_t at)
{
	return (struct gp_line *)(void *)(lines->room + at % GP_LINES_SIZE);
}

struct gp_line *gp_lines_add(struct gp_event_lines *lines, uint32_t all_size, uint32_t own_size)
{
	uint32_t size =
		(uint32_t)(sizeof(struct gp_line) + all_size + own_size + LINES_GRAIN - 1u) / LINES_GRAIN * LINES_GRAIN;
	uint64_t left = GP_LINES_SIZE - lines->end % GP_LINES_SIZE;
	uint64_t need = left < size ? left + size : size;
	struct gp_line *line;

	while (lines->end + need - lines->begin > GP_LINES_SIZE) {
		lines->begin_serial += gp_line_at(lines, lines->begin)->all_size != 0;
		lines->begin += gp_line_at(lines, lines->begin)->size;
	}
	if (left < size) {
		*gp_line_at(lines, lines->end) = (struct gp_line){ .size = (uint32_t)left };
		lines->end += left;
	}
	line = gp_line_at(lines, lines->end);
	*line = (struct gp_line){ .size = size, .all_size = all_size, .own_size = own_size };
	lines->end += size;
	lines->end_serial++;
	return line;
}
