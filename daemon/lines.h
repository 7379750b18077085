/* SPDX-License-Identifier: MIT */
/* Lines of events that the daemon keeps for all readers: a ring of bytes in which new lines replace the oldest. */
#ifndef GP_DAEMON_LINES_H
#define GP_DAEMON_LINES_H

#include <stdint.h>
#include <sys/types.h>

#define GP_LINES_SIZE (4u << 20) /* bytes */

/* A line as it is kept: the text for readers who see all users' events, then the text for its own user. */
struct gp_line {
	uint32_t size, all_size, own_size; /* size: with this head; all_size 0: the empty rest at the end of the room */
	uid_t uid;                         /* its user; (uid_t)-1: no user */
	uint64_t account;
	char text[];
};

/* Offsets only grow; the place in the room is the offset modulo GP_LINES_SIZE. */
struct gp_event_lines {
	uint64_t begin, end, begin_serial, end_serial;
	_Alignas(8) char room[GP_LINES_SIZE];
};

struct gp_line *gp_line_at(struct gp_event_lines *lines, uint64_t at);
/* Adds a line of so many bytes, in one piece. The caller writes its text and its user. The line must be far smaller
 * than the room. */
struct gp_line *gp_lines_add(struct gp_event_lines *lines, uint32_t all_size, uint32_t own_size);

#endif
