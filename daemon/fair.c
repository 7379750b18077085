/* SPDX-License-Identifier: MIT */
/*
 * Chooses the connection that the daemon serves next. The daemon looks at doorbells, at answers of other threads and
 * at decisions first. It does all other work in portions, one between two such looks, so that an order never waits
 * for more than one portion, however many users ask for however much. Within a portion users take turns, one
 * connection each, root first: a user with a thousand connections makes only that user's own work wait. A user who
 * has used more than a fair share of the thread's time waits until that is over, because the kernel of a loaded
 * machine no longer runs a thread at once that is always busy.
 */
#include <sys/epoll.h>
#include "daemon/daemon.h"

#define FAIR_PORTION_NS   500000ull   /* chosen: a few times what an order takes */
#define FAIR_WORK         256u        /* units of a portion; a unit is a few microseconds at most */
#define FAIR_SHARE        16u         /* one user has a sixteenth of the thread's time … */
#define FAIR_BURST_NS     50000000ull /* … after this much at once; both chosen */
#define FAIR_RING_NS      20000ull /* a doorbell is charged only beyond this: doorbells are what the daemon is for … */
#define FAIR_RINGS        1000u    /* … while a user has no more than so many at once … */
#define FAIR_RINGS_NS     500000ull   /* … and one more after this: 2,000 a second … */
#define FAIR_WAKE_NS      10000ull    /* … and then also for a wakeup of the thread; all chosen */
#define FAIR_RING_MOST_NS 20000000ull /* the most that a doorbell is charged: barriers wait for all processors */
#define FAIR_ONE_NS       2000000ull  /* the most that one thing is charged: the machine may have stood still */

void gp_portion_begin(struct gp_daemon *daemon)
{
	daemon->fair.portion_work = 0;
	daemon->fair.portion_by_ns = gp_now_ns() + FAIR_PORTION_NS;
}

void gp_portion_use(struct gp_daemon *daemon, uint32_t units)
{
	daemon->fair.portion_work += units;
	daemon->fair.away_work += units;
}

bool gp_portion_is_over(const struct gp_daemon *daemon)
{
	return daemon->fair.portion_work >= FAIR_WORK || gp_now_ns() >= daemon->fair.portion_by_ns;
}

void gp_portion_look(struct gp_daemon *daemon)
{
	if (daemon->fair.away_work > daemon->counters.away_work_max)
		daemon->counters.away_work_max = daemon->fair.away_work;
	daemon->fair.away_work = 0;
}

static void fair_charge(struct gp_owner *owner, uint64_t ns, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - owner->spent_ns;

	owner->debt_ns = owner->debt_ns > passed_ns / FAIR_SHARE ? owner->debt_ns - passed_ns / FAIR_SHARE : 0;
	owner->debt_ns += ns;
	owner->spent_ns = now_ns;
}

void gp_fair_charge(struct gp_owner *owner, uint64_t ns, uint64_t now_ns)
{
	fair_charge(owner, ns < FAIR_ONE_NS ? ns : FAIR_ONE_NS, now_ns);
}

void gp_fair_charge_ring(struct gp_owner *owner, uint64_t ns, uint64_t now_ns)
{
	uint64_t from_ns = owner->rings_ns > now_ns ? owner->rings_ns : now_ns;

	if (from_ns <= now_ns + (FAIR_RINGS - 1) * FAIR_RINGS_NS) {
		owner->rings_ns = from_ns + FAIR_RINGS_NS;
		ns = ns > FAIR_RING_NS ? ns - FAIR_RING_NS : 0;
	} else {
		ns += FAIR_WAKE_NS;
	}
	fair_charge(owner, ns < FAIR_RING_MOST_NS ? ns : FAIR_RING_MOST_NS, now_ns);
}

/* When the daemon may serve the user again; 0: now. */
static uint64_t fair_until_ns(const struct gp_owner *owner, uint64_t now_ns)
{
	uint64_t until_ns;

	if (gp_owner_is_root(owner) || owner->debt_ns <= FAIR_BURST_NS)
		return 0;
	until_ns = owner->spent_ns + (owner->debt_ns - FAIR_BURST_NS) * FAIR_SHARE;
	return until_ns > now_ns ? until_ns : 0;
}

bool gp_fair_may(struct gp_daemon *daemon, struct gp_owner *owner)
{
	uint64_t until_ns = fair_until_ns(owner, gp_now_ns());

	if (!until_ns)
		return true;
	gp_timer_sooner(daemon, &daemon->fair.timer, until_ns);
	gp_notice(daemon, owner, GP_NOTICE_TIME);
	return false;
}

static void fair_owner_in(struct gp_daemon *daemon, struct gp_owner *owner, bool late)
{
	struct gp_fair *fair = &owner->fair[late], **head = &daemon->fair.owners[late],
		       **tail = &daemon->fair.owners_tail[late];

	fair->owner = owner;
	fair->is_in = true;
	fair->next = fair->prev = NULL;
	if (gp_owner_is_root(owner) || !*head) {
		fair->next = *head;
		if (*head)
			(*head)->prev = fair;
		else
			*tail = fair;
		*head = fair;
		return;
	}
	fair->prev = *tail;
	(*tail)->next = fair;
	*tail = fair;
}

static void fair_owner_out(struct gp_daemon *daemon, struct gp_owner *owner, bool late)
{
	struct gp_fair *fair = &owner->fair[late];

	if (fair->prev)
		fair->prev->next = fair->next;
	else
		daemon->fair.owners[late] = fair->next;
	if (fair->next)
		fair->next->prev = fair->prev;
	else
		daemon->fair.owners_tail[late] = fair->prev;
	fair->is_in = false;
}

void gp_fair_add(struct gp_daemon *daemon, struct gp_peer *peer)
{
	struct gp_fair *fair = &peer->owner->fair[peer->is_late];

	if (peer->in_fair || peer->closed)
		return;
	peer->in_fair = true;
	peer->fair_late = peer->is_late;
	peer->fair_next = NULL;
	peer->fair_prev = fair->last;
	if (fair->last)
		fair->last->fair_next = peer;
	else
		fair->first = peer;
	fair->last = peer;
	if (!fair->is_in)
		fair_owner_in(daemon, peer->owner, peer->is_late);
}

void gp_fair_remove(struct gp_daemon *daemon, struct gp_peer *peer)
{
	struct gp_fair *fair = &peer->owner->fair[peer->fair_late];

	if (!peer->in_fair)
		return;
	peer->in_fair = false;
	if (peer->fair_prev)
		peer->fair_prev->fair_next = peer->fair_next;
	else
		fair->first = peer->fair_next;
	if (peer->fair_next)
		peer->fair_next->fair_prev = peer->fair_prev;
	else
		fair->last = peer->fair_prev;
	if (!fair->first)
		fair_owner_out(daemon, peer->owner, peer->fair_late);
}

/* The first connection whose user may be served now. */
static struct gp_peer *fair_pick(struct gp_daemon *daemon, bool late)
{
	for (struct gp_fair *fair = daemon->fair.owners[late]; fair; fair = fair->next)
		if (gp_fair_may(daemon, fair->owner))
			return fair->first;
	return NULL;
}

bool gp_fair_has_work(struct gp_daemon *daemon, bool late)
{
	return fair_pick(daemon, late);
}

void gp_fair_serve(struct gp_daemon *daemon, bool late)
{
	struct gp_peer *peer;
	uint64_t begin_ns;

	gp_portion_begin(daemon);
	while ((peer = fair_pick(daemon, late))) {
		struct gp_owner *owner = peer->owner;

		begin_ns = gp_now_ns();
		gp_fair_remove(daemon, peer);
		if (owner->fair[late].is_in) { /* the user's next one comes after all others'; root's stays first */
			fair_owner_out(daemon, owner, late);
			fair_owner_in(daemon, owner, late);
		}
		gp_portion_use(daemon, 1);
		gp_peer_serve(daemon, peer);
		owner->rang_last = false;
		gp_fair_charge(owner, gp_now_ns() - begin_ns, gp_now_ns());
		if (gp_portion_is_over(daemon))
			return;
	}
}

static void fair_unring(struct gp_daemon *daemon, struct gp_client *client)
{
	if (client->rung_prev)
		client->rung_prev->rung_next = client->rung_next;
	else
		daemon->fair.rung[client->rung_at] = client->rung_next;
	if (client->rung_next)
		client->rung_next->rung_prev = client->rung_prev;
	else
		daemon->fair.rung_tail[client->rung_at] = client->rung_prev;
	client->is_rung = false;
}

/* Whether the client's doorbell wakes the daemon. When it does again, the kernel at once reports what rang before. The
 * daemon does not read the doorbell: the agent has the same file and could make a read wait for ever. A deaf one is
 * watched with EPOLLET, too: epoll reports an overflow of the counter unasked, and without EPOLLET each time. */
static void fair_watch(struct gp_daemon *daemon, struct gp_client *client, bool deaf)
{
	if (client->is_deaf != deaf &&
	    !gp_daemon_watch(daemon, client->doorbell_fd, deaf ? EPOLLET : EPOLLIN | EPOLLET, &client->doorbell_source))
		client->is_deaf = deaf;
}

void gp_fair_ring(struct gp_daemon *daemon, struct gp_client *client)
{
	if (!gp_fair_may(daemon, client->owner))
		fair_watch(daemon, client, true); /* to ring again before it is served would only cost wakeups */
	if (client->is_rung)
		return;
	client->is_rung = true;
	client->rung_at = (uint32_t)client->attr.priority;
	client->rung_next = NULL;
	client->rung_prev = daemon->fair.rung_tail[client->rung_at];
	if (client->rung_prev)
		client->rung_prev->rung_next = client;
	else
		daemon->fair.rung[client->rung_at] = client;
	daemon->fair.rung_tail[client->rung_at] = client;
	daemon->fair.rung_count++;
}

void gp_fair_forget(struct gp_daemon *daemon, struct gp_client *client)
{
	if (!client->is_rung)
		return;
	GP_ASSERT(daemon->fair.rung_count);
	fair_unring(daemon, client);
	daemon->fair.rung_count--;
}

/* The last doorbell of this user was more than he may use, and a message of his waits: that comes before his next
 * doorbell. Else a program that rings all the time would never be heard, neither its answers nor its other processes.
 */
static bool fair_hears_first(const struct gp_owner *owner)
{
	return owner->rang_last && owner->fair[false].is_in;
}

/* The most urgent client whose doorbell rang and whose user may be served. It waits for at most one other client. */
static struct gp_client *fair_rung(struct gp_daemon *daemon)
{
	const struct gp_owner *waits = NULL; /* it may have hundreds of clients in a row */

	for (uint32_t end = GP_PRIORITY_MAX + 1; daemon->fair.rung_count && end; end--)
		for (struct gp_client *client = daemon->fair.rung[end - 1]; client; client = client->rung_next) {
			if (client->owner != waits && !fair_hears_first(client->owner) &&
			    gp_fair_may(daemon, client->owner))
				return client;
			waits = client->owner;
		}
	return NULL;
}

bool gp_fair_has_rung(struct gp_daemon *daemon)
{
	return fair_rung(daemon);
}

/* gp_fair_may() sets the timer for each user who waits. If somebody may be served now, the loop does not sleep, and no
 * timer is needed. */
void gp_fair_set_timer(struct gp_daemon *daemon)
{
	gp_timer_set(daemon, &daemon->fair.timer, 0);
	(void)(fair_rung(daemon) || fair_pick(daemon, false) || fair_pick(daemon, true));
}

static void fair_answer(struct gp_daemon *daemon, struct gp_client *client)
{
	uint64_t begin_ns = gp_now_ns(), barriers = daemon->barrier_count, ns;

	gp_queue_sample_client(daemon, client);
	ns = gp_now_ns() - begin_ns;
	if (barriers == daemon->barrier_count && ns > FAIR_ONE_NS)
		ns = FAIR_ONE_NS; /* only barriers take so long: the machine stood still */
	gp_fair_charge_ring(client->owner, ns, gp_now_ns());
	client->owner->rang_last = client->owner->debt_ns > FAIR_BURST_NS;
}

void gp_fair_answer_rings(struct gp_daemon *daemon)
{
	struct gp_client *client;
	bool was_deaf;

	gp_portion_begin(daemon);
	while ((client = fair_rung(daemon))) {
		gp_fair_forget(daemon, client);
		gp_portion_use(daemon, 1);
		was_deaf = client->is_deaf;
		fair_watch(daemon, client, false);
		/* A client that was deaf is answered when the kernel reports what rang meanwhile. To answer here, too,
		 * would charge for one ring twice: the user would owe again when the report comes, and so on for ever.
		 */
		if (was_deaf == client->is_deaf)
			fair_answer(daemon, client);
		if (gp_portion_is_over(daemon))
			return;
	}
}
