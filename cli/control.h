/* SPDX-License-Identifier: MIT */
/* A command's side of the control socket: connects, asks, and takes an answer that it does not trust. Bounded in time
 * and size; never prints. Needs nothing but libc, since `gpreempt run` is inside every job. */
#ifndef GP_CLI_CONTROL_H
#define GP_CLI_CONTROL_H

#include <gpreempt/control.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "lib/error.h"

#define GP_CONTROL_ANSWER_SIZE (64u << 20) /* bytes of text at most: some 100,000 queues */

/* Exit status of the commands that ask the daemon. */
enum gp_cli_exit {
	GP_CLI_OK = 0,
	GP_CLI_FAILED = 1, /* the daemon said no, or a file could not be written */
	GP_CLI_USAGE = 2,
	GP_CLI_NO_DAEMON = 3, /* none runs, it does not answer, it may not be trusted, or it makes no sense */
};

struct gp_control {
	int fd;
	pid_t daemon; /* who serves the socket; 0: a process of another PID namespace */
	uint32_t cookie;
	uint64_t deadline_ms; /* of the answer under way, CLOCK_MONOTONIC */
	bool refused;         /* the last error is the daemon's own answer */
	char path[108];
	_Alignas(8) char packet[GP_WIRE_SIZE_MAX];
};

/* How long a whole answer may take: 2 s, or as GPREEMPT_WAIT says, in seconds. */
uint32_t gp_control_wait_ms(void);
#define GP_CONTROL_LATE_ADVICE "; if it stays so: systemctl restart gpreemptd"

/* -ENOTCONN: no daemon; -EACCES: not allowed; -EPERM: served by neither root, the user gpreempt nor oneself;
 * -ETIMEDOUT; -ENAMETOOLONG. Each with a sentence. */
int gp_control_open(struct gp_control *control, struct gp_error *error);
void gp_control_close(struct gp_control *control);

/* Asks and collects the whole answer; the caller frees *ret_text, which is terminated and holds no other zero byte. The
 * request needs only verb and what the verb uses. The daemon's own error comes back with its sentence; -EPROTO: the
 * answer makes no sense; -EPROTONOSUPPORT: it speaks another version; -ETIMEDOUT; -EFBIG; -ECONNRESET. */
int gp_control_ask(struct gp_control *control, struct gp_control_request *request, char **ret_text, size_t *ret_size,
		   struct gp_error *error);

/* For answers without an end (EVENTS): the question, then what has come. next: 1: text (into control->packet, not
 * terminated); 0: the answer is over; -EAGAIN: nothing within timeout_ms (-1: for ever; a signal also ends the wait).
 */
int gp_control_send(struct gp_control *control, struct gp_control_request *request, struct gp_error *error);
int gp_control_next(struct gp_control *control, int timeout_ms, const char **ret_text, size_t *ret_size,
		    struct gp_error *error);

/* open, ask, close. */
int gp_control_once(struct gp_control_request *request, char **ret_text, size_t *ret_size, bool *ret_refused,
		    struct gp_error *error);

/* gp_control_ask() for a grant. */
int gp_control_grant(struct gp_control *control, struct gp_control_grant *grant, char **ret_text, size_t *ret_size,
		     struct gp_error *error);

/* What a packet is: 1: text and more to come; 0: the last one; or an error as above. The only reader of packets. */
struct gp_control_packet {
	const void *bytes;
	size_t size;
	uint32_t cookie; /* of the question */
};
int gp_control_check(const struct gp_control_packet *packet, const char **ret_text, size_t *ret_size, bool *ret_refused,
		     struct gp_error *error);

#endif
