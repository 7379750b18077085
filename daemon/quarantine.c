/* SPDX-License-Identifier: MIT */
/*
 * Clients that were given up on and answer again: their queues leave quarantine, at once the first time. Whoever does
 * it again and again costs the others a few answer_timeouts each time: he is left alone for a while, for twice as long
 * each time, and what he creates meanwhile is left alone with the rest; what he is owed is halved for every while since
 * he was last let back.
 */
#include "daemon/daemon.h"

/* All chosen: the first is five times answer_timeout's default, the last is as long as a person waits. */
#define QUARANTINE_FIRST_NS 1000000000ull
#define QUARANTINE_MAX_NS   60000000000ull
#define QUARANTINE_CALM_NS  10000000000ull

static bool quarantine_has(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	struct gp_queue_info info;

	return queue && queue->in_core && !gp_sched_queue_info(daemon->sched, queue->core, &info) &&
	       info.gate == GP_GATE_QUARANTINED;
}

/* Those that came meanwhile enter, too. */
static void quarantine_enter(struct gp_daemon *daemon, struct gp_client *client)
{
	for (uint32_t i = 0; i < client->slot_count; i++) {
		struct gp_queue_entry *queue = client->slots[i].queue;

		if (quarantine_has(daemon, queue))
			gp_queue_leave(daemon, queue);
		if (queue && client->device.mechanism != GP_MECHANISM_NONE)
			gp_queue_enter(daemon, queue);
	}
}

static void quarantine_end(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	client->back_ns = 0;
	client->returned_ns = now_ns;
	quarantine_enter(daemon, client);
}

/* Whether what it has now may be ordered; by other means than those it did not answer to, everything of it may. */
bool gp_quarantine_admits(const struct gp_client *client)
{
	if (client->silent_by != client->device.mechanism)
		return true;
	/* One that was sent nothing has nothing to answer: only an order can show that it is there. */
	return !client->back_ns && (client->answers || !client->orders_open);
}

/* Its answer counts as that of one in quarantine, though what was there is gone by then. */
void gp_quarantine_leave(struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	if (!queue->client->answers && quarantine_has(daemon, queue))
		queue->client->left_silent = true;
}

static uint64_t quarantine_penalty_ns(const struct gp_client *client, uint64_t now_ns)
{
	uint64_t calm = (now_ns - client->returned_ns) / QUARANTINE_CALM_NS;
	uint64_t penalty_ns = calm < 64 ? client->penalty_ns >> calm : 0;

	return penalty_ns < QUARANTINE_FIRST_NS / 2 ? 0 : penalty_ns;
}

void gp_quarantine_answered(struct gp_daemon *daemon, struct gp_client *client)
{
	uint64_t now_ns = gp_now_ns(), penalty_ns = quarantine_penalty_ns(client, now_ns);
	bool any = client->left_silent && client->silent_by == client->device.mechanism;

	client->left_silent = false;
	for (uint32_t i = 0; i < client->slot_count; i++)
		any |= quarantine_has(daemon, client->slots[i].queue);
	if (client->back_ns)
		return;
	if (!any) {
		quarantine_enter(daemon, client);
		return;
	}
	client->penalty_ns = !penalty_ns                        ? QUARANTINE_FIRST_NS :
			     penalty_ns * 2 > QUARANTINE_MAX_NS ? QUARANTINE_MAX_NS :
								  penalty_ns * 2;
	if (!penalty_ns) {
		quarantine_end(daemon, client, now_ns);
		return;
	}
	client->back_ns = now_ns + penalty_ns;
	if (!daemon->back_next_ns || client->back_ns < daemon->back_next_ns)
		daemon->back_next_ns = client->back_ns;
}

void gp_quarantine_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	if (!daemon->back_next_ns || now_ns < daemon->back_next_ns)
		return;
	daemon->back_next_ns = 0;
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (!client || !client->back_ns)
			continue;
		if (now_ns < client->back_ns) {
			if (!daemon->back_next_ns || client->back_ns < daemon->back_next_ns)
				daemon->back_next_ns = client->back_ns;
		} else if (client->answers) {
			quarantine_end(daemon, client, now_ns);
		} else {
			client->back_ns = 0; /* its next answer begins anew */
		}
	}
}
