/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Requests that come in pieces, on devices that switch by themselves. Such a device goes to the batch client in every
 * gap of an urgent program's work, however short, and the next piece waits until it comes back. A language model that
 * launches token by token loses a switch or two on each. So the core may hold the batch client out over a whole stretch
 * of urgent work, from its first piece to a pause that is longer than its gaps usually are (linger, learn.c): one close
 * and one open instead of a switch for each piece.
 *
 * Per second of such a stretch:
 *   switching costs      the switches beyond the first of each stretch, as the device counts them, there and back, but
 *                        not more than the limit of switches allows (budget.c);
 *   holding out costs    a close and an open, over the length of the stretch, and the gaps, in which nobody runs.
 * Holding out is chosen where it costs less; by how much says the urgent client's protection (enum gp_protect). A
 * program that waits for its own host most of the time is therefore not given the device: the batch client lives on its
 * gaps.
 *
 * A stretch that has just begun is expected to last as long as those before it, and one that lasts to go on for as
 * long. How much of a stretch is gaps is known only while nobody is in between: else pieces seem to last until their
 * switches are over, and what is seen is corrected for them. While a client is held out no switches are seen: what they
 * cost is remembered, and after a while forgotten, so that it is measured anew.
 *
 * A program may change: it starts kernel by kernel and goes on by graphs. What was learned is wrong from then on, and
 * gaps that are seen with nobody in between replace it. A program that changes to and fro does not begin its time alone
 * anew with each change. A request after a pause finds the shortest slices, whatever the limit of switches is.
 */
#include "core/state.h"

#define STAY_PRIOR_NS    2000000ull /* what was learned before counts as much as so long of what is seen now (chosen) */
#define STAY_LEAST_NS    1000000ull /* of stretches in a window: in less than that switches say nothing (chosen) */
#define STAY_TRUTH_NS    20000000ull /* of holding out: then the gaps are as they seem (chosen) */
#define STAY_PART        16u         /* and so much of the window at least */
#define STAY_LENGTH_MOST 4u          /* the next is expected to be at most so many times as long as the last (chosen) */
#define STAY_HOLD_NS     10000000000ull /* forgotten after; twice as long each time that it was confirmed … */
#define STAY_HOLD_NS_MAX 60000000000ull
#define STAY_GAPS        2u           /* shorter gaps than so many switches are never worth going to and fro */
#define STAY_ALONE_NS    200000000ull /* more than half of the time: so most of its requests are as fast as alone … */
#define STAY_SHARE_NS    160000000ull /* … and two turns: long enough to be counted in (both chosen) */
#define STAY_TRIAL_NS    40000000ull /* shared first, to see whether it launches ahead: enough looks for that (chosen) */
#define STAY_AWAY_NS     10000000ull /* without urgent work: then two calls for slices are cheap (chosen) */
#define STAY_AHEAD \
	600u /* thousandths of what is written: then it is not waited for; and less than half of that again */
#define STAY_DENSE 500u /* with gather.c: thousandths of the time; else these are requests, not pieces */
#define STAY_KEEP  5u   /* what is decided is kept until its reasons are a fifth less than they had to be */

const char *const gp_protect_names[] = { "default", "latency", "balanced", "throughput", NULL };

/* Switching must cost more than so many quarters of what holding out costs; 0: it never does. */
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

/* The most urgent of those who take no turns that has work, or had a moment ago; GP_NONE: nobody. */
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

/* Others are held out from now on, or not any more: what was seen in between is the truth about gaps. */
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
		if (now == GP_STAY_WORK) { /* else it may have been the end */
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
 * slice, and should not wait for a long one. */
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

/* The part of gaps, if nobody had been in between. */
static uint64_t stay_seen(const struct gp_device *device, uint64_t idle_ns, uint64_t total_ns, uint64_t rate)
{
	uint64_t left_ns = total_ns / 1000 * (1000 - stay_cost(device, rate));

	return idle_ns < left_ns ? idle_ns * 1000 / left_ns : idle_ns ? 1000 : 0;
}

/* The urgent program launches ahead no more: that need not be tried again, and what was counted below long slices is of
 * other work. Until its switches are counted they cost as much as they may. */
static void stay_change(const struct gp_sched *sched, const struct gp_device *device, struct gp_stay *stay)
{
	/* A program that changes to and fro does not begin its time alone anew with each change. */
	if (!stay->alone_ns || sched->now_ns - stay->alone_ns >= STAY_ALONE_NS + STAY_SHARE_NS)
		stay->alone_ns = sched->now_ns;
	stay->shared_ns = stay->alone_ns;
	if (stay->rate < gp_budget_limit(device))
		stay->rate = gp_budget_limit(device);
}

/* Whether the urgent client waits for its results. */
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
	/* With the shortest slices each piece is done before the next, also of one that does not wait for it. */
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
		stay->idle = 0; /* other work than that was learned from */
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

/* More switches than there may be, by a program that waits for each of its results: with longer slices it would wait
 * for all of them. So it has the device to itself for somewhat more than half of the time, and shares it as the limit
 * allows for the rest. */
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
		/* It may be one that launches ahead: that shows only while it shares. */
		if (gp_gather_ns(device) && sched->now_ns > STAY_ALONE_NS + STAY_SHARE_NS)
			stay->shared_ns -= STAY_ALONE_NS + STAY_SHARE_NS - STAY_TRIAL_NS;
		gp_slice_look(device);
	}
	since_ns = (sched->now_ns - stay->shared_ns) % (STAY_ALONE_NS + STAY_SHARE_NS);
	gp_device_wake(device, sched->now_ns - since_ns +
				       (since_ns < STAY_ALONE_NS ? STAY_ALONE_NS : STAY_ALONE_NS + STAY_SHARE_NS));
	return since_ns < STAY_ALONE_NS;
}

/* Whether the present stretch should have the device to itself. Wakes the device when it should, if it still lasts. */
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

/* Whom it is done for decides how. */
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
		/* What is launched ahead waits below long slices, and so looks as if it had no gaps. */
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
