/* SPDX-License-Identifier: MIT */
/*
 * The daemon protects users from each other. The journal nevertheless names a user who tries something against others,
 * because an administrator wants to know it. The daemon writes one line in ten minutes for each user and kind, and none
 * for root.
 */
#include "daemon/daemon.h"

#define NOTICE_AGAIN_NS  600000000000ull
#define NOTICE_WINDOW_NS 10000000000ull /* all chosen */

/* most: so many within a window are normal and not logged. */
static const struct {
	uint32_t most;
	const char *words;
} notice_kinds[] = {
	[GP_NOTICE_TIME] = { 0, "asks for more than a user's share of gpreemptd's time; the requests wait" },
	[GP_NOTICE_LATE] = { 8, "has programs that answer orders late; gpreemptd does not wait for their answers" },
	[GP_NOTICE_COST] = { 8, "has programs that state longer times for orders than gpreemptd measures; gpreemptd "
				"uses its own" },
	[GP_NOTICE_CROWD] = { 0, "has 64 programs connected; together they have one user's share of each GPU" },
	[GP_NOTICE_STORM] = { 256, "opens hundreds of connections within seconds" },
	[GP_NOTICE_RUNTIME] = { 64, "enables and disables runtimes again and again" },
	[GP_NOTICE_ENTRIES] = { 0, "creates hundreds of queues within seconds; new ones are not scheduled at once" },
};

void gp_notice(struct gp_daemon *daemon, struct gp_owner *owner, enum gp_notice kind)
{
	struct gp_noticed *noticed = &owner->noticed[kind];
	uint64_t now_ns = gp_now_ns();

	if (gp_owner_is_root(owner) || (noticed->logged_ns && now_ns - noticed->logged_ns < NOTICE_AGAIN_NS))
		return;
	if (now_ns - noticed->since_ns >= NOTICE_WINDOW_NS) {
		noticed->since_ns = now_ns;
		noticed->count = 0;
	}
	if (noticed->count++ < notice_kinds[kind].most)
		return;
	noticed->logged_ns = now_ns;
	gp_log_user(daemon, owner, "user %u %s", owner->uid, notice_kinds[kind].words);
}
