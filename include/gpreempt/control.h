/* SPDX-License-Identifier: MIT */
/*
 * The requests of commands (gpreempt set, status, top, …) to the daemon: a fixed structure, and an answer of one or
 * more packets. Requests are small structures because the daemon runs as root and should parse nothing; answers are
 * JSON text, because people and programs read them (schema: docs/status.md). Same socket and header as wire.h, type
 * GP_WIRE_CONTROL.
 */
#ifndef GPREEMPT_CONTROL_H
#define GPREEMPT_CONTROL_H

#include <gpreempt/wire.h>

enum gp_control_verb {
	GP_CONTROL_STATUS = 1,  /* everything the user may see; one JSON object */
	GP_CONTROL_SET = 2,     /* sets attr of the client with this pid, or of one of its queues */
	GP_CONTROL_EVENTS = 3,  /* decisions, one JSON object a line, from now on until the command disconnects */
	GP_CONTROL_METRICS = 4, /* Prometheus text */
	GP_CONTROL_PING = 5,    /* {"version": …}: shows that a daemon answers */
	GP_CONTROL_RELOAD = 6,  /* as SIGHUP; root or the daemon's own user */
	GP_CONTROL_SUMMARY = 7, /* for a launcher: {"clients": N of the process tree of pid} */
	GP_CONTROL_PAUSE = 8,   /* stops scheduling a device: every gate opens (root); see GP_CONTROL_PAUSE_END */
	GP_CONTROL_ACCOUNT = 9, /* what present and ended clients got; one JSON object */
};

#define GP_CONTROL_ALL_QUEUES  UINT32_MAX
#define GP_CONTROL_EVENTS_PAST 1u /* flags of EVENTS: past events that the daemon still has, then the end */
#define GP_CONTROL_PAUSE_END   1u /* flags of PAUSE: starts scheduling again */
struct gp_control_request {
	struct gp_wire_header header;
	uint32_t verb, flags;
	int32_t pid;               /* in the PID namespace of the command */
	uint32_t gpu_id, queue_id; /* SET: the queue; queue_id GP_CONTROL_ALL_QUEUES: the process */
	uint32_t reserved;
	struct gp_wire_attr attr;
};

/* What root decides for programs before they start: those of a cgroup and below it, or a process and its descendants.
 * The daemon keeps a grant over its own restarts until the machine shuts down, unless it is removed, its time is over
 * or its process ends. */
enum gp_grant_verb {
	GP_GRANT_ADD = 1,    /* replaces a grant for the same cgroup or process */
	GP_GRANT_REMOVE = 2, /* -ENOENT: there is no such grant */
	GP_GRANT_LIST = 3,   /* all grants; one JSON object */
};
#define GP_GRANT_FORCE      1u    /* flags of ADD: overrides what the program itself asks for */
#define GP_GRANT_NO_CEILING (-1)  /* ceiling: the user's, or the priority where that is higher */
#define GP_GRANT_CGROUP     1024u /* bytes of a path, with the closing zero */
struct gp_control_grant {
	struct gp_wire_header header;
	uint32_t verb, flags;
	int32_t pid;              /* in the PID namespace of the command; 0: the grant is for the cgroup */
	int32_t ceiling;          /* 0..99 or GP_GRANT_NO_CEILING */
	uint64_t for_ns;          /* real time after which the grant ends; 0: never */
	struct gp_wire_attr attr; /* valid fields: for a program that does not ask for its own */
	char tag[GP_WIRE_NAME_SIZE];
	char cgroup[GP_GRANT_CGROUP]; /* as in /proc/PID/cgroup, from the root on */
};

/* An answer: packets with this head; text follows and is not terminated. The last one has more = 0. */
struct gp_control_answer {
	struct gp_wire_header header;
	int32_t result; /* 0 or a negative errno; with an error the text is a sentence for the user */
	uint32_t more;
	char text[];
};

#endif
