/* SPDX-License-Identifier: MIT */
/* Lines of events that are kept for all who read them: a ring of bytes in which the oldest make way. */
#ifndef GP_DAEMON_LINES_H
#define GP_DAEMON_LINES_H

#include <stdint.h>
#include <sys/types.h>

#define GP_LINES_SIZE (4u << 20) /* bytes */

/* A line as it is kept: for those who see everybody's, and for its own user. */
struct gp_line {
	uint32_t size, all_size, own_size; /* size: with this head; all_size 0: nothing, up to the end of the room */
	uid_t uid;                         /* whose; (uid_t)-1: nobody's */
	uint64_t account;
	char text[];
};

/* Offsets only grow; where in the room they are is the rest of a division. */
struct gp_event_lines {
	uint64_t begin, end, begin_serial, end_serial;
	_Alignas(8) char room[GP_LINES_SIZE];
};

struct gp_line *gp_line_at(struct gp_event_lines *lines, uint64_t at);
/* Room for a line of so many bytes, in one piece; the caller writes its text, and whose it is. Far less than the room.
 */
struct gp_line *gp_lines_add(struct gp_event_lines *lines, uint32_t all_size, uint32_t own_size);

#endif
