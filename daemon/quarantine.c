/* SPDX-License-Identifier: MIT */
/*
 * Clients that the core gave up on and that answer again: their queues leave quarantine, at once the first time. The
 * daemon leaves a client that does it again alone for a while, twice as long each time, and with it the queues that it
 * creates meanwhile. The penalty belongs to the client's user and halves slowly, so that a new connection does not wash
 * it off. Clients of root, and clients whose gates the daemon changes itself, each have a penalty of their own.
 *
 * From the second time on, while the user has the penalty, the core waits for no answers of the user's clients, old or
 * new. It still schedules those that answer. It does not leave them open altogether, because open gates beside urgent
 * work are what such a user would want.
 *
 * The core keeps a gang open while one of its members is stuck open, because that member would spin and wait for the
 * others. A rank may hang for a moment, but a user could keep all processes open in this way. So the others stay open
 * for a second. From the second time on, while the user has a penalty for it, they do not stay open at all: the core
 * closes them without the member that is stuck.
 */
#include "daemon/daemon.h"

/* All chosen: the first is five times the default of answer_timeout, the most is as long as a person waits. */
#define QUARANTINE_FIRST_NS 1000000000ull
#define QUARANTINE_MAX_NS   60000000000ull
#define QUARANTINE_CALM_NS  10000000000ull
#define QUARANTINE_USER_NS  60000000000ull /* a user's penalty halves in this time, a client's own in CALM_NS */
#define QUARANTINE_STUCK_NS 1000000000ull  /* a gang stays open for so long with a member that is stuck */

static bool quarantine_has(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	struct gp_queue_info info;

	return queue && queue->in_core && !gp_sched_queue_info(daemon->sched, queue->core, &info) && info.is_stuck;
}

/* Queues that the client created meanwhile enter the core too. The answer that ends a quarantine may be to an older
 * order than the last one. is_ordered stays, because the answer to the last order still tells how the gate is. */
static void quarantine_enter(struct gp_daemon *daemon, struct gp_client *client)
{
	for (uint32_t i = 0; i < client->slot_count; i++) {
		struct gp_queue_entry *queue = client->slots[i].queue;
		bool is_ordered = queue && queue->is_ordered;

		if (quarantine_has(daemon, queue))
			gp_queue_leave(daemon, queue);
		if (queue && client->device.mechanism != GP_MECHANISM_NONE)
			gp_queue_enter(daemon, queue);
		if (queue)
			queue->is_ordered = is_ordered;
	}
}

/* Whether the penalty is the user's. Clients of root, and of the users who share the account for those without a place,
 * are not punished for each other. */
static bool quarantine_is_users(const struct gp_client *client)
{
	return client->owner && client->owner->id > 1 && !gp_mechanism_has(client->device.mechanism, GP_BY_DAEMON);
}

static struct gp_penalty *quarantine_penalty(struct gp_client *client)
{
	return quarantine_is_users(client) ? &client->owner->penalty : &client->penalty;
}

static uint64_t quarantine_owed_ns(const struct gp_penalty *penalty, uint64_t calm_ns, uint64_t now_ns)
{
	uint64_t calm = (now_ns - penalty->calm_ns) / calm_ns;
	uint64_t owed_ns = calm < 64 ? penalty->penalty_ns >> calm : 0;

	return owed_ns < QUARANTINE_FIRST_NS / 2 ? 0 : owed_ns;
}

/* True from the second time on: once may happen to any user. */
static bool quarantine_distrusts(const struct gp_client *client, uint64_t now_ns)
{
	return quarantine_is_users(client) &&
	       quarantine_owed_ns(&client->owner->penalty, QUARANTINE_USER_NS, now_ns) >= 2 * QUARANTINE_FIRST_NS;
}

static void quarantine_wake(struct gp_daemon *daemon, uint64_t at_ns)
{
	gp_timer_sooner(daemon, &daemon->quarantine_timer, at_ns);
}

/* The user's penalty, whatever the mechanism: if the driver does not close a gate, that may be the client's doing, too.
 */
static struct gp_penalty *quarantine_stuck(struct gp_client *client)
{
	return client->owner && client->owner->id > 1 ? &client->owner->stuck : &client->stuck;
}

/* True if the user's penalty is more than that of the first time, or if the client has been stuck for too long. */
static bool quarantine_is_alone(struct gp_client *client, uint64_t now_ns)
{
	uint64_t owed_ns = quarantine_owed_ns(quarantine_stuck(client), QUARANTINE_USER_NS, now_ns);

	return owed_ns >= 2 * QUARANTINE_FIRST_NS ||
	       (client->stuck_ns && now_ns - client->stuck_ns >= QUARANTINE_STUCK_NS);
}

void gp_quarantine_trust(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	bool is_distrusted = quarantine_distrusts(client, now_ns);
	bool is_alone = is_distrusted || quarantine_is_alone(client, now_ns);

	if (is_distrusted || is_alone)
		quarantine_wake(daemon, now_ns + QUARANTINE_USER_NS / 2);
	if (!is_distrusted && quarantine_is_users(client))
		client->owner->penalty.is_logged = false;
	if (client->is_distrusted == is_distrusted && client->is_stuck_alone == is_alone)
		return;
	if (is_alone && client->stuck_ns && !client->is_stuck_alone)
		gp_log_user(daemon, client->owner,
			    "process %d (%s) cannot be preempted; the others of its gang are preempted without it",
			    client->device.pid, client->name);
	client->is_distrusted = is_distrusted;
	client->is_stuck_alone = is_alone;
	gp_queue_client_attr(daemon, client);
}

/* Sets the penalty to twice what is left of it, or to that of the first time. Returns what was left. */
static uint64_t quarantine_raise(struct gp_penalty *penalty, uint64_t calm_ns, uint64_t now_ns)
{
	uint64_t owed_ns = quarantine_owed_ns(penalty, calm_ns, now_ns);

	penalty->penalty_ns = !owed_ns                        ? QUARANTINE_FIRST_NS :
			      owed_ns * 2 > QUARANTINE_MAX_NS ? QUARANTINE_MAX_NS :
								owed_ns * 2;
	penalty->calm_ns = now_ns;
	return owed_ns;
}

static void quarantine_trust_all(struct gp_daemon *daemon, const struct gp_owner *owner, uint64_t now_ns)
{
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (daemon->clients[i] && daemon->clients[i]->owner == owner)
			gp_quarantine_trust(daemon, daemon->clients[i], now_ns);
}

void gp_quarantine_ordered(struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	struct gp_client *client = queue->client;
	uint64_t now_ns = gp_now_ns();

	if (!queue->core_gang || client->stuck_ns || !quarantine_has(daemon, queue))
		return;
	client->stuck_ns = now_ns;
	quarantine_wake(daemon, now_ns + QUARANTINE_STUCK_NS);
	/* The ranks of a job that is stopped are all stuck at once: that counts as one time, not as one for each. */
	if (now_ns - quarantine_stuck(client)->calm_ns < QUARANTINE_STUCK_NS) {
		gp_quarantine_trust(daemon, client, now_ns);
		return;
	}
	if (!quarantine_raise(quarantine_stuck(client), QUARANTINE_USER_NS, now_ns))
		return;
	gp_owner_keep(client->owner, now_ns + 8 * QUARANTINE_USER_NS);
	quarantine_trust_all(daemon, client->owner, now_ns);
}

/* Checks whether a client is still stuck: its queues may have left the core, or their device was started again. */
static void quarantine_look(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	bool any = false;

	if (!client->stuck_ns)
		return;
	for (uint32_t i = 0; i < client->slot_count && !any; i++)
		any = quarantine_has(daemon, client->slots[i].queue);
	if (!any)
		client->stuck_ns = 0;
	gp_quarantine_trust(daemon, client, now_ns); /* this sets the timer of a client with is_stuck_alone */
	if (any && !client->is_stuck_alone)
		quarantine_wake(daemon, now_ns + QUARANTINE_STUCK_NS);
}

void gp_quarantine_silent(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_penalty *penalty = quarantine_penalty(client);
	uint64_t now_ns = gp_now_ns();

	client->owed_ns = quarantine_raise(
		penalty, quarantine_is_users(client) ? QUARANTINE_USER_NS : QUARANTINE_CALM_NS, now_ns);
	if (!quarantine_distrusts(client, now_ns))
		return;
	gp_owner_keep(client->owner, now_ns + 8 * QUARANTINE_USER_NS);
	if (!penalty->is_logged)
		gp_log_user(
			daemon, client->owner,
			"user %u: the processes of this user keep missing answers; the daemon no longer waits for them",
			client->owner->uid);
	penalty->is_logged = true;
	quarantine_trust_all(daemon, client->owner, now_ns);
}

static void quarantine_end(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns)
{
	client->back_ns = 0;
	quarantine_penalty(client)->calm_ns = now_ns;
	quarantine_enter(daemon, client);
	quarantine_look(daemon, client, now_ns);
}

/* Whether the client's queues may enter the core. They may if it has another mechanism than the one it did not answer
 * to. */
bool gp_quarantine_admits(const struct gp_client *client)
{
	if (client->silent_by != client->device.mechanism)
		return true;
	/* A client without open orders has nothing to answer: only an order can show that it answers. */
	return !client->back_ns && (client->answers || !client->orders_open);
}

/* A quarantined queue goes before its client has answered: the client's answer still counts as one from quarantine. */
void gp_quarantine_leave(struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	if (!queue->client->answers && quarantine_has(daemon, queue))
		queue->client->left_silent = true;
}

void gp_quarantine_answered(struct gp_daemon *daemon, struct gp_client *client)
{
	uint64_t now_ns = gp_now_ns();
	bool any = client->left_silent && client->silent_by == client->device.mechanism;

	client->left_silent = false;
	for (uint32_t i = 0; i < client->slot_count; i++)
		any |= quarantine_has(daemon, client->slots[i].queue);
	if (client->back_ns)
		return;
	if (!any) {
		quarantine_enter(daemon, client);
		quarantine_look(daemon, client, now_ns);
		return;
	}
	if (!client->owed_ns) {
		quarantine_end(daemon, client, now_ns);
		return;
	}
	client->back_ns = now_ns + client->owed_ns;
	quarantine_wake(daemon, client->back_ns);
}

void gp_quarantine_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (client && client->stuck_ns)
			quarantine_look(daemon, client, now_ns);
		else if (client && (client->is_distrusted || client->is_stuck_alone))
			gp_quarantine_trust(daemon, client, now_ns);
		if (!client || !client->back_ns)
			continue;
		if (now_ns < client->back_ns)
			quarantine_wake(daemon, client->back_ns);
		else if (client->answers)
			quarantine_end(daemon, client, now_ns);
		else
			client->back_ns = 0; /* its next answer starts the wait again */
	}
}
