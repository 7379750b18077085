/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Requests that come in pieces, on devices that switch by themselves. Such a device goes to the batch client in every
 * gap of an urgent program's work, however short, and the next piece waits until the device comes back. A language
 * model that launches token by token loses a switch or two on each token. So the core may hold the batch client out
 * over a whole stretch of urgent work, from its first piece to a pause that is longer than its gaps usually are
 * (linger, learn.c): one close and one open instead of a switch for each piece.
 *
 * Per second of such a stretch:
 *   switching costs      the switches beyond the first of each stretch, as the device counts them, there and back, but
 *                        not more than the limit of switches allows (budget.c);
 *   holding out costs    a close and an open, over the length of the stretch, and the gaps, in which the device idles.
 * The core holds batch clients out where that costs less; by how much, the urgent client's protection says (enum
 * gp_protect). So a program that mostly waits for its own host does not get the device to itself: the batch client runs
 * in its gaps.
 *
 * The core expects a new stretch to last as long as those before it, and one that lasts to go on for as long again. It
 * knows how much of a stretch is gaps only while it holds batch clients out: else a piece seems to last until its
 * switches are over, and the core corrects the estimate for them. While it holds a client out it sees no switches: it
 * remembers what they cost, and forgets that after a while, so that it measures again.
 *
 * A program may change: it starts kernel by kernel and goes on by graphs. What the core has learned is wrong from then
 * on, and gaps that it sees while batch clients are held out replace it. A program that changes to and fro does not get
 * new time alone with each change. A request after a pause finds the shortest slices, whatever the limit of switches
 * is.
 */
#include "core/calls.h"

#define STAY_PRIOR_NS    2000000ull     /* what was learned before weighs as much as so long of new data (chosen) */
#define STAY_LEAST_NS    1000000ull     /* with less of stretches in a window, counted switches say nothing (chosen) */
#define STAY_TRUTH_NS    20000000ull    /* after so long of holding out, the gaps are as they seem (chosen) */
#define STAY_PART        16u            /* of a window: stretches must be at least this part */
#define STAY_LENGTH_MOST 4u             /* stretches are expected to be at most so many times the last (chosen) */
#define STAY_HOLD_NS     10000000000ull /* the rate is forgotten after; doubled when a new count confirms it … */
#define STAY_HOLD_NS_MAX 60000000000ull /* … up to this */
#define STAY_GAPS        2u             /* gaps shorter than so many switches are never worth switching twice */
#define STAY_ALONE_NS    200000000ull   /* alone for over half of the time: most requests are as fast as alone … */
#define STAY_SHARE_NS    160000000ull   /* … then shared for two turns: long enough to count in (both chosen) */
#define STAY_TRIAL_NS    40000000ull    /* shared first, to see whether it launches ahead: enough samples (chosen) */
#define STAY_AWAY_NS     10000000ull    /* after so long without urgent work, two slice calls are cheap (chosen) */
#define STAY_AHEAD       600u /* of 1000 writes come ahead: it launches ahead, until fewer than half of that */
#define STAY_DENSE       500u /* of 1000, with gather.c: dense pieces; with fewer these are requests */
#define STAY_KEEP        5u   /* a decision stands until its reasons are a fifth weaker than they had to be */

const char *const gp_protect_names[] = { "default", "latency", "balanced", "throughput", NULL };

/* Switching must cost more than so many quarters of what holding out costs; 0: never hold out. */
static uint32_t stay_quarters(enum gp_protect protect)
{
	switch (protect) {
	case GP_PROTECT_LATENCY: return 1;
	case GP_PROTECT_THROUGHPUT: return 0;
	default: return 8;
	}
}

static bool stay_is_possible(const struct gp_device *device)
{
	return device->attr.switch_ns && device->attr.short_ns && device->policy->gates;
}

/* The top of the heap (WORK: has work; LINGER: had some a moment ago), if it takes no turns; else GP_NONE. */
static uint32_t stay_top(const struct gp_sched *sched, const struct gp_device *device, enum gp_heap_name heap)
{
	uint32_t top = gp_heap_top(device, heap);

	return top != GP_NONE && !sched->queues[top].is_batch ? top : GP_NONE;
}

static uint64_t stay_length_ns(const struct gp_stay *stay)
{
	return stay->busy_ns + stay->idle_ns;
}

/* How much of a stretch is gaps, in thousandths. */
static uint64_t stay_idle(const struct gp_stay *stay)
{
	if (!stay->holds)
		return stay->idle > stay->seen ? stay->idle : stay->seen;
	return (stay->idle * (STAY_PRIOR_NS / 1000) + stay->held_idle_ns) / ((STAY_PRIOR_NS + stay->held_ns) / 1000);
}

/* What switching takes of a stretch, there and back, in thousandths. */
static uint64_t stay_cost(const struct gp_device *device, uint64_t rate)
{
	uint64_t cost = rate / 1000 * (2 * device->attr.switch_ns) / 1000000;

	return cost < 1000 ? cost : 1000;
}

static void stay_end(struct gp_stay *stay)
{
	uint64_t length_ns = stay_length_ns(stay), most_ns = STAY_LENGTH_MOST * length_ns;

	stay->length_ns = stay->length_ns ? (stay->length_ns + length_ns) / 2 : length_ns;
	if (stay->length_ns > most_ns)
		stay->length_ns = most_ns;
	stay->total_ns += length_ns;
	stay->total_idle_ns += stay->idle_ns;
	stay->busy_ns = stay->idle_ns = 0;
}

/* Batch clients are held out from now on, or not any more: the gaps seen while they were held out are the true ones. */
static void stay_hold(struct gp_stay *stay, bool holds)
{
	if (stay->holds == holds)
		return;
	if (!holds) {
		stay->idle = stay_idle(stay);
		if (stay->held_ns >= STAY_TRUTH_NS && stay->seen > stay->idle)
			stay->seen = stay->idle;
	}
	stay->held_ns = stay->held_idle_ns = 0;
	stay->holds = holds;
}

static void stay_account(struct gp_stay *stay, uint64_t elapsed_ns, enum gp_stay_state now)
{
	if (stay->state == GP_STAY_WORK) {
		stay->busy_ns += elapsed_ns;
		stay->held_ns += elapsed_ns;
	} else if (stay->state == GP_STAY_GAP) {
		stay->gap_ns += elapsed_ns;
		if (now == GP_STAY_WORK) { /* else the gap may be the end of the stretch */
			stay->idle_ns += stay->gap_ns;
			stay->held_idle_ns += stay->gap_ns;
			stay->held_ns += stay->gap_ns;
		}
	}
	if (now != GP_STAY_GAP)
		stay->gap_ns = 0;
}

void gp_stay_look(struct gp_sched *sched, struct gp_device *device)
{
	struct gp_stay *stay = &device->stay;
	enum gp_stay_state now = stay_top(sched, device, GP_HEAP_WORK) != GP_NONE   ? GP_STAY_WORK :
				 stay_top(sched, device, GP_HEAP_LINGER) != GP_NONE ? GP_STAY_GAP :
										      GP_STAY_OUT;

	if (!stay_is_possible(device))
		return;
	stay_account(stay, sched->now_ns - stay->mark_ns, now);
	stay->mark_ns = sched->now_ns;
	if (stay->state != GP_STAY_OUT && now == GP_STAY_OUT) {
		stay_end(stay);
		stay->out_ns = sched->now_ns;
	}
	if (stay->state == GP_STAY_OUT && now != GP_STAY_OUT)
		stay->count++;
	stay->state = now;
}

/* The limit of switches is for pieces that follow each other. A request after a pause causes one switch, whatever the
 * slice, and should not wait for a long slice. */
static void stay_look_away(struct gp_sched *sched, struct gp_device *device)
{
	struct gp_stay *stay = &device->stay;
	uint64_t away_ns = stay->out_ns + STAY_AWAY_NS;
	bool is_away = device->slowed && stay->state == GP_STAY_OUT && away_ns <= sched->now_ns;

	if (device->slowed && stay->state == GP_STAY_OUT && !is_away)
		gp_device_wake(device, away_ns);
	if (is_away == stay->is_away)
		return;
	stay->is_away = is_away;
	gp_slice_look(device);
}

uint64_t gp_stay_linger_ns(const struct gp_device *device, const struct gp_queue *queue, uint64_t linger_ns)
{
	uint64_t least_ns = STAY_GAPS * device->attr.switch_ns;

	return stay_is_possible(device) && !queue->is_batch && linger_ns < least_ns ? least_ns : linger_ns;
}

/* The part of gaps that would have been seen without a batch client in between, in thousandths. */
static uint64_t stay_seen(const struct gp_device *device, uint64_t idle_ns, uint64_t total_ns, uint64_t rate)
{
	uint64_t left_ns = total_ns / 1000 * (1000 - stay_cost(device, rate));

	return idle_ns < left_ns ? idle_ns * 1000 / left_ns : idle_ns ? 1000 : 0;
}

/* The urgent program does not launch ahead any more. It needs no new trial, and switches counted below long slices were
 * of other work. Until they are counted again, the core takes them to cost as much as they may. */
static void stay_change(const struct gp_sched *sched, const struct gp_device *device, struct gp_stay *stay)
{
	/* A program that changes to and fro does not get new time alone with each change. */
	if (!stay->alone_ns || sched->now_ns - stay->alone_ns >= STAY_ALONE_NS + STAY_SHARE_NS)
		stay->alone_ns = sched->now_ns;
	stay->shared_ns = stay->alone_ns;
	if (stay->rate < gp_budget_limit(device))
		stay->rate = gp_budget_limit(device);
}

/* Decides whether the urgent client launches ahead or waits for its results. */
static void stay_look_ahead(struct gp_sched *sched, struct gp_device *device)
{
	uint32_t top = stay_top(sched, device, GP_HEAP_WORK);
	bool was = device->stay.gathers;

	if (top == GP_NONE)
		return;
	device->stay.gathers =
		sched->queues[top].ahead >= (was ? STAY_AHEAD / 2 : STAY_AHEAD) &&
		(!gp_gather_ns(device) || sched->queues[top].dense >= (was ? STAY_DENSE / 2 : STAY_DENSE));
	if (device->stay.gathers == was || !device->slowed)
		return;
	if (was)
		stay_change(sched, device, &device->stay);
	gp_slice_look(device);
	if (was && gp_gather_ns(device))
		gp_budget_doubt(sched, device);
}

void gp_stay_counted(struct gp_sched *sched, struct gp_device *device, uint32_t switches, uint64_t window_ns)
{
	struct gp_stay *stay = &device->stay;
	uint64_t total_ns, count, rate, seen;
	bool is_known = sched->now_ns < stay->known_until_ns;

	gp_stay_look(sched, device);
	/* With the shortest slices each piece is done before the next comes, also of a program that does not wait for
	 * it. */
	if (device->slowed || !gp_gather_ns(device))
		stay_look_ahead(sched, device);
	total_ns = stay->total_ns + stay_length_ns(stay) - stay->counted_ns;
	count = stay->count - stay->counted_count;
	if (stay->holds || total_ns < STAY_LEAST_NS || total_ns < window_ns / STAY_PART)
		return;
	rate = switches > count ? (switches - count) * 1000000000ull / (total_ns / 1000) : 0;
	seen = stay_seen(device, stay->total_idle_ns + stay->idle_ns - stay->counted_idle_ns, total_ns, rate);
	if (!is_known && stay->rate && rate >= stay->rate / 2 && rate <= stay->rate * 2)
		stay->hold_ns = 2 * stay->hold_ns < STAY_HOLD_NS_MAX ? 2 * stay->hold_ns : STAY_HOLD_NS_MAX;
	else if (!is_known)
		stay->hold_ns = STAY_HOLD_NS;
	if (!is_known || seen < stay->seen / 2)
		stay->idle = 0; /* this is not the work that idle was learned from */
	stay->rate = is_known ? (stay->rate + rate) / 2 : rate;
	stay->seen = is_known ? (stay->seen + seen) / 2 : seen;
	stay->known_until_ns = sched->now_ns + stay->hold_ns;
	device->dirty = true;
}

void gp_stay_count_begin(struct gp_sched *sched, struct gp_device *device)
{
	struct gp_stay *stay = &device->stay;

	gp_stay_look(sched, device);
	stay->counted_ns = stay->total_ns + stay_length_ns(stay);
	stay->counted_idle_ns = stay->total_idle_ns + stay->idle_ns;
	stay->counted_count = stay->count;
}

/* There are more switches than the limit, and the program waits for each of its results: with longer slices it would
 * wait for all of them. So it has the device to itself for somewhat more than half of the time, and shares it for the
 * rest, as the limit allows. */
static bool stay_shares(struct gp_sched *sched, struct gp_device *device, enum gp_protect protect)
{
	struct gp_stay *stay = &device->stay;
	uint64_t since_ns;

	if (!device->slowed || protect != GP_PROTECT_BALANCED || stay->gathers) {
		stay->shared_ns = 0;
		return false;
	}
	if (!stay->shared_ns) {
		stay->shared_ns = sched->now_ns;
		/* The program may launch ahead: that shows only while it shares the device, so it shares first. */
		if (gp_gather_ns(device) && sched->now_ns > STAY_ALONE_NS + STAY_SHARE_NS)
			stay->shared_ns -= STAY_ALONE_NS + STAY_SHARE_NS - STAY_TRIAL_NS;
		gp_slice_look(device);
	}
	since_ns = (sched->now_ns - stay->shared_ns) % (STAY_ALONE_NS + STAY_SHARE_NS);
	gp_device_wake(device, sched->now_ns - since_ns +
				       (since_ns < STAY_ALONE_NS ? STAY_ALONE_NS : STAY_ALONE_NS + STAY_SHARE_NS));
	return since_ns < STAY_ALONE_NS;
}

/* Whether the present stretch should have the device to itself. If it is too short, wakes the device when it will be
 * long enough. */
static bool stay_is_worth(struct gp_sched *sched, struct gp_device *device, enum gp_protect protect)
{
	const struct gp_stay *stay = &device->stay;
	uint64_t pair_ns = device->attr.close_ns + device->attr.open_ns, present_ns = stay_length_ns(stay);
	uint64_t length_ns = stay->length_ns > present_ns ? stay->length_ns : present_ns, least_ns;
	uint64_t cost = stay_cost(device, stay->rate), limit = 2 * device->param.overhead_permille;
	uint64_t quarters = stay_quarters(protect), idle = quarters * stay_idle(stay);

	if (!quarters || sched->now_ns >= stay->known_until_ns)
		return false;
	if (protect != GP_PROTECT_LATENCY && cost > limit)
		cost = limit;
	cost *= stay->stays ? STAY_KEEP : STAY_KEEP - 1;
	if (cost <= idle)
		return false;
	least_ns = pair_ns * 1000 * quarters / (cost - idle);
	if (length_ns >= least_ns)
		return true;
	gp_device_wake(device, sched->now_ns + (least_ns - present_ns));
	return false;
}

/* The protection of the urgent client, or the device's. */
static enum gp_protect stay_protect(struct gp_sched *sched, struct gp_device *device, uint32_t top)
{
	enum gp_protect protect = sched->queues[top].attr.protect;
	bool was = gp_gather_is(device);

	device->stay.protect = protect ? protect : device->param.protect;
	if (gp_gather_is(device) != was)
		gp_slice_look(device);
	return device->stay.protect;
}

void gp_stay_plan(struct gp_sched *sched, struct gp_device *device)
{
	struct gp_stay *stay = &device->stay;
	uint32_t top = stay_top(sched, device, GP_HEAP_WORK);
	enum gp_protect protect;
	bool shares = false;

	if (!stay_is_possible(device))
		return;
	gp_stay_look(sched, device);
	stay_look_away(sched, device);
	if (top == GP_NONE)
		top = stay_top(sched, device, GP_HEAP_LINGER);
	if (top != GP_NONE) {
		protect = stay_protect(sched, device, top);
		/* Work launched ahead waits below long slices, and so looks as if it had no gaps. */
		stay->stays =
			!device->pressed_slice_ns && !gp_gather_is(device) && stay_is_worth(sched, device, protect);
		shares = !stay->stays && !device->pressed_slice_ns && stay_shares(sched, device, protect);
	}
	stay_hold(stay, (stay->stays || shares) && top != GP_NONE);
	if (stay->holds && stay->stays)
		gp_device_wake(device, stay->known_until_ns);
	if (gp_gather_ns(device) && device->slowed)
		stay_look_ahead(sched, device);
	gp_gather_plan(sched, device, stay->holds || device->pressed_slice_ns ? GP_NONE : top);
}

enum gp_why gp_stay_why(const struct gp_device *device)
{
	return device->stay.holds ? GP_WHY_STAY : GP_WHY_WAITS;
}
