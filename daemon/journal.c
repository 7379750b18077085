/* SPDX-License-Identifier: MIT */
/*
 * Writes lines to the journal. Lines that a user can cause at will have a limited rate for each user (all uids of
 * that user together: owner.c) and another one for all users. So no user can fill the disk, or hide what others did
 * among many lines. The next line, and a counter, tell how many lines were left out.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "daemon/daemon.h"
#include "lib/utf8.h"

#define JOURNAL_LINES  20u           /* of one user at once */
#define JOURNAL_GAIN   1000000000ull /* then one more each second; all chosen */
#define JOURNAL_ALL    200u          /* of all users at once … */
#define JOURNAL_EACH   100000000ull  /* … and then ten a second */
#define JOURNAL_SINGLE 1024u

static void journal_write(const char *format, va_list arguments)
{
	char line[JOURNAL_SINGLE];
	size_t left, step;
	uint32_t code;

	vsnprintf(line, sizeof(line), format, arguments);
	/* Names come from clients. They must not begin a line of their own, control a terminal, or make the journal
	 * take the line for binary data and not show it. */
	left = strlen(line);
	for (char *c = line; left; c += step, left -= step) {
		step = gp_utf8_decode(c, left, &code);
		if (!step || gp_utf8_is_harmful(code)) {
			step = step ? step : 1;
			memset(c, '?', step);
		}
	}
	fprintf(stderr, "gpreemptd: %s\n", line);
}

void gp_log(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	journal_write(format, arguments);
	va_end(arguments);
}

/* Takes one of the lines that may still be written; false: there is none. The first call fills them up to most. */
static bool journal_take(uint32_t *lines, uint64_t *lines_ns, uint32_t most, uint64_t gain_ns, uint64_t now_ns)
{
	uint64_t more = now_ns > *lines_ns ? (now_ns - *lines_ns) / gain_ns : 0;

	if (!*lines_ns || more >= most) {
		*lines = most;
		*lines_ns = now_ns;
	} else {
		*lines = *lines + more < most ? *lines + (uint32_t)more : most;
		*lines_ns += more * gain_ns;
	}
	if (!*lines)
		return false;
	--*lines;
	return true;
}

bool gp_journal_may(struct gp_daemon *daemon, struct gp_owner *owner, uint64_t now_ns, uint64_t *ret_left_out)
{
	*ret_left_out = 0;
	if (gp_owner_is_root(owner))
		return true;
	if (!journal_take(&owner->lines, &owner->lines_ns, JOURNAL_LINES, JOURNAL_GAIN, now_ns) ||
	    !journal_take(&daemon->journal.lines, &daemon->journal.at_ns, JOURNAL_ALL, JOURNAL_EACH, now_ns)) {
		owner->left_out++;
		daemon->counters.lines_left_out++;
		return false;
	}
	*ret_left_out = owner->left_out;
	owner->left_out = 0;
	return true;
}

void gp_log_user(struct gp_daemon *daemon, struct gp_owner *owner, const char *format, ...)
{
	uint64_t left_out;
	va_list arguments;

	if (!gp_journal_may(daemon, owner, gp_now_ns(), &left_out))
		return;
	if (left_out)
		gp_log("user %u: %llu lines were left out", owner->uid, (unsigned long long)left_out);
	va_start(arguments, format);
	journal_write(format, arguments);
	va_end(arguments);
}
