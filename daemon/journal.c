/* SPDX-License-Identifier: MIT */
/*
 * Lines for the journal. What a user can cause as often as he likes is kept to a rate for each user, so that nobody
 * fills the disk or hides in the noise what others did; how many lines were left out is said with the next one, and
 * counted.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "daemon/daemon.h"
#include "lib/utf8.h"

#define JOURNAL_LINES  20u           /* at once */
#define JOURNAL_GAIN   1000000000ull /* then one more each second; both chosen */
#define JOURNAL_SINGLE 1024u

static void journal_write(const char *format, va_list arguments)
{
	char line[JOURNAL_SINGLE];
	size_t left, step;
	uint32_t code;

	vsnprintf(line, sizeof(line), format, arguments);
	/* Names come from clients: nothing of theirs may begin a line of its own, steer a terminal, or make the journal
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

/* The user's account, or the one that was used least recently: who has been quiet that long starts afresh. */
static struct gp_journal_user *journal_user(struct gp_daemon *daemon, uid_t uid)
{
	struct gp_journal_user *oldest = &daemon->journal[0];

	for (uint32_t i = 0; i < GP_JOURNAL_USERS; i++) {
		struct gp_journal_user *user = &daemon->journal[i];

		if (user->used && user->uid == uid)
			return user;
		if (!user->used || (oldest->used && user->used_ns < oldest->used_ns))
			oldest = user;
	}
	*oldest = (struct gp_journal_user){ .used = true, .uid = uid, .lines = JOURNAL_LINES };
	return oldest;
}

bool gp_journal_may(struct gp_daemon *daemon, uid_t uid, uint64_t now_ns, uint64_t *ret_left_out)
{
	struct gp_journal_user *user;
	uint64_t more;

	*ret_left_out = 0;
	if (!uid)
		return true;
	user = journal_user(daemon, uid);
	more = user->used_ns && now_ns > user->used_ns ? (now_ns - user->used_ns) / JOURNAL_GAIN : 0;
	if (more || !user->used_ns)
		user->used_ns = now_ns;
	user->lines = user->lines + more < JOURNAL_LINES ? user->lines + (uint32_t)more : JOURNAL_LINES;
	if (!user->lines) {
		user->left_out++;
		daemon->counters.lines_left_out++;
		return false;
	}
	user->lines--;
	*ret_left_out = user->left_out;
	user->left_out = 0;
	return true;
}

void gp_log_user(struct gp_daemon *daemon, uid_t uid, const char *format, ...)
{
	uint64_t left_out;
	va_list arguments;

	if (!gp_journal_may(daemon, uid, gp_now_ns(), &left_out))
		return;
	if (left_out)
		gp_log("uid %u: %llu lines were left out", uid, (unsigned long long)left_out);
	va_start(arguments, format);
	journal_write(format, arguments);
	va_end(arguments);
}
