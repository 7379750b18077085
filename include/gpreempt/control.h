/* SPDX-License-Identifier: MIT */
/*
 * What commands (gpreempt set, status, top, …) ask of the daemon: a fixed request, and an answer of one or more
 * packets. Requests are small structures because the daemon runs as root and should parse nothing; answers are JSON
 * text, because people and programs read them (schema: docs/status.md). Same socket and header as wire.h, type
 * GP_WIRE_CONTROL.
 */
#ifndef GPREEMPT_CONTROL_H
#define GPREEMPT_CONTROL_H

#include <gpreempt/wire.h>

enum gp_control_verb {
	GP_CONTROL_STATUS = 1,  /* everything the user may see; one JSON object */
	GP_CONTROL_SET = 2,     /* attr of the client with this pid (as the asker sees it), or of one of its queues */
	GP_CONTROL_EVENTS = 3,  /* decisions, one JSON object a line, from now on until the asker hangs up */
	GP_CONTROL_METRICS = 4, /* Prometheus text */
	GP_CONTROL_PING = 5,    /* {"version": …}: is somebody there */
	GP_CONTROL_RELOAD = 6,  /* as SIGHUP; root or the daemon's own user */
	GP_CONTROL_SUMMARY = 7, /* for a launcher: {"clients": N of the process tree of pid} */
	GP_CONTROL_PAUSE = 8,   /* stop ordering on a device: every gate opens (root); flags 1: start again */
	GP_CONTROL_ACCOUNT = 9, /* what clients got that are there or have ended; one JSON object */
};

#define GP_CONTROL_ALL_QUEUES  UINT32_MAX
#define GP_CONTROL_EVENTS_PAST 1u /* flags of EVENTS: what is still remembered, then the end, instead of what comes */
#define GP_CONTROL_PAUSE_END   1u /* flags of PAUSE: start again */
struct gp_control_request {
	struct gp_wire_header header;
	uint32_t verb, flags;
	int32_t pid;               /* in the asker's PID namespace */
	uint32_t gpu_id, queue_id; /* SET: GP_CONTROL_ALL_QUEUES: the process */
	uint32_t reserved;
	struct gp_wire_attr attr;
};

/* What root says of programs before they are there: those of a cgroup and below it, or a process and what it starts.
 * Kept over restarts of the daemon until the machine ends, unless it is removed, its time is over or its process ends.
 */
enum gp_grant_verb {
	GP_GRANT_ADD = 1,    /* replaces one for the same cgroup or process */
	GP_GRANT_REMOVE = 2, /* -ENOENT: there is none */
	GP_GRANT_LIST = 3,   /* all of them; one JSON object */
};
#define GP_GRANT_FORCE      1u    /* flags of ADD: also where the program itself asks for something else */
#define GP_GRANT_NO_CEILING (-1)  /* ceiling: the user's, or the priority where that is higher */
#define GP_GRANT_CGROUP     1024u /* bytes of a path, with the closing zero */
struct gp_control_grant {
	struct gp_wire_header header;
	uint32_t verb, flags;
	int32_t pid;              /* in the asker's PID namespace; 0: the cgroup */
	int32_t ceiling;          /* 0..99 or GP_GRANT_NO_CEILING */
	uint64_t for_ns;          /* real time after which it ends by itself; 0: never */
	struct gp_wire_attr attr; /* valid fields: what a program has that asks for nothing */
	char tag[GP_WIRE_NAME_SIZE];
	char cgroup[GP_GRANT_CGROUP]; /* as /proc/PID/cgroup has it, from the root on */
};

/* An answer: packets with this head; text follows and is not terminated. The last one has more = 0. */
struct gp_control_answer {
	struct gp_wire_header header;
	int32_t result; /* 0 or a negative errno; with an error the text is a sentence for the user */
	uint32_t more;
	char text[];
};

#endif
