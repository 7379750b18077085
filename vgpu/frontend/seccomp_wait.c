/* SPDX-License-Identifier: MIT */
/*
 * Callers that wait. The kernel lets only a deadly signal end a call that vgpud has received (anything else would have
 * the call made twice). So vgpud looks itself whether the caller has a signal to take, or has got a tracer that wants
 * it to stop, and answers EINTR, as the driver would. Seldom: the longer a wait lasts, the rarer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "vgpu/kfd/call.h"
#include "vgpu/frontend/seccomp_internal.h"

#define WAIT_LOOK_MIN_NS 1000000u  /* a millisecond after the call */
#define WAIT_LOOK_MAX_NS 20000000u /* how late a signal may be; a look costs about 10 us */

struct wait_status {
	uint64_t pending, blocked, ignored;
	pid_t tracer;
};

static uint64_t wait_field(const char *text, const char *name, int base)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

static bool wait_read(int fd, struct wait_status *ret_status)
{
	char text[4096];
	ssize_t size = pread(fd, text, sizeof(text) - 1u, 0);

	if (size <= 0)
		return false;
	text[size] = 0;
	*ret_status = (struct wait_status){
		.pending = wait_field(text, "\nSigPnd:", 16) | wait_field(text, "\nShdPnd:", 16),
		.blocked = wait_field(text, "\nSigBlk:", 16),
		.ignored = wait_field(text, "\nSigIgn:", 16),
		.tracer = (pid_t)wait_field(text, "\nTracerPid:", 10),
	};
	return true;
}

static void wait_next(struct gp_seccomp_pending *pending, uint64_t now_ns)
{
	uint64_t step_ns = (now_ns - pending->begin_ns) / 4u;

	if (step_ns < WAIT_LOOK_MIN_NS)
		step_ns = WAIT_LOOK_MIN_NS;
	if (step_ns > WAIT_LOOK_MAX_NS)
		step_ns = WAIT_LOOK_MAX_NS;
	pending->look_ns = now_ns + step_ns;
}

void gp_seccomp_wait_begin(struct gp_seccomp *seccomp, struct gp_seccomp_pending *pending)
{
	pending->begin_ns = seccomp->node->now_ns;
	wait_next(pending, seccomp->node->now_ns);
}

void gp_seccomp_wait_end(struct gp_seccomp_pending *pending)
{
	if (pending->status >= 0)
		close(pending->status);
}

/* A tracer that is new to the thread: it may want it to stop, which cannot be seen from outside. */
static bool wait_is_seized(struct gp_seccomp *seccomp, pid_t thread, pid_t tracer)
{
	struct gp_seccomp_traced *traced = &seccomp->traced[(uint32_t)thread % GP_SECCOMP_TRACED_MAX];
	bool known = traced->thread == thread && traced->tracer == tracer;

	if (tracer || traced->thread == thread)
		*traced = (struct gp_seccomp_traced){ thread, tracer };
	return tracer && !known;
}

/* True: its wait is over, one way or the other. Opened at the first look only: most waits are over before. */
static bool wait_is_interrupted(struct gp_seccomp *seccomp, struct gp_seccomp_pending *pending)
{
	struct wait_status status;
	char path[64];

	if (pending->status < 0) {
		snprintf(path, sizeof(path), "/proc/%d/status", pending->thread);
		pending->status = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (pending->status < 0 || !wait_read(pending->status, &status))
		return true;
	return wait_is_seized(seccomp, pending->thread, status.tracer) ||
	       status.pending & ~status.blocked & ~status.ignored;
}

uint64_t gp_seccomp_turn(struct gp_seccomp *seccomp)
{
	uint64_t now_ns = seccomp->node->now_ns, next_ns = UINT64_MAX;
	struct gp_seccomp_pending *pending = seccomp->pending;

	while (pending) {
		/* Interrupting one takes it out of the list, and no other. */
		struct gp_seccomp_pending *next = pending->next;
		uint64_t token = pending->token;

		if (now_ns >= pending->look_ns) {
			wait_next(pending, now_ns);
			if (wait_is_interrupted(seccomp, pending))
				gp_vcall_interrupt(seccomp->node, token);
		}
		pending = next;
	}
	for (pending = seccomp->pending; pending; pending = pending->next)
		if (pending->look_ns < next_ns)
			next_ns = pending->look_ns;
	return next_ns;
}
