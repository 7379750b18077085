/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The preemption budget: a bucket of transaction time that fills at overhead_permille of device time. Each plan that
 * preempts pays for closing and for opening again, so that preemption costs a bounded share of the device, whatever the
 * arrivals do. The sums are exact: the bucket keeps fractions of a nanosecond. */
#include "core/calls.h"

/* The core counts at most this much elapsed time at once, so that no product overflows. */
#define BUDGET_LOOK_NS_MAX GP_DURATION_NS_MAX
/* The fullest bucket there can be, and the deepest debt that it keeps. */
#define BUDGET_NS_MAX ((int64_t)(2 * GP_DURATION_NS_MAX * GP_BURST_MAX))

/* transaction_count: at most GP_QUEUE_MAX. */
static int64_t budget_cost_ns(const struct gp_device *device, uint32_t transaction_count)
{
	return (int64_t)((device->attr.close_ns + device->attr.open_ns) * transaction_count);
}

/* In thousandths of a nanosecond, with the fraction that was left over. */
static uint64_t budget_gain(const struct gp_device *device, uint64_t elapsed_ns)
{
	if (elapsed_ns > BUDGET_LOOK_NS_MAX)
		elapsed_ns = BUDGET_LOOK_NS_MAX;
	return elapsed_ns * device->param.overhead_permille + device->tokens_part;
}

static void budget_fill(struct gp_sched *sched, struct gp_device *device)
{
	uint64_t gain = budget_gain(device, sched->now_ns - device->tokens_mark_ns);
	int64_t limit_ns = budget_cost_ns(device, device->param.burst);

	device->tokens_mark_ns = sched->now_ns;
	device->tokens_ns += (int64_t)(gain / 1000);
	device->tokens_part = (uint32_t)(gain % 1000);
	if (device->tokens_ns >= limit_ns) {
		device->tokens_ns = limit_ns;
		device->tokens_part = 0;
	}
}

/* How long it takes to gain so much; but at most BUDGET_LOOK_NS_MAX, because the bucket loses what it gains beyond
 * that. */
static uint64_t budget_wait_ns(const struct gp_device *device, uint64_t missing_ns)
{
	uint32_t permille = device->param.overhead_permille;
	uint64_t wait_ns = BUDGET_LOOK_NS_MAX;

	if (missing_ns < BUDGET_LOOK_NS_MAX)
		wait_ns = (missing_ns * 1000 - device->tokens_part + permille - 1) / permille;
	return wait_ns < BUDGET_LOOK_NS_MAX ? wait_ns : BUDGET_LOOK_NS_MAX;
}

bool gp_budget_can_pay(struct gp_sched *sched, struct gp_device *device, uint32_t transaction_count)
{
	int64_t missing_ns;

	if (device->param.overhead_permille >= 1000)
		return true;
	budget_fill(sched, device);
	/* A plan that costs more than the whole bucket may go into debt from a full bucket: else it could never be
	 * made. */
	if (transaction_count > device->param.burst)
		transaction_count = device->param.burst;
	missing_ns = budget_cost_ns(device, transaction_count) - device->tokens_ns;
	if (missing_ns <= 0)
		return true;
	gp_device_wake(device, sched->now_ns + budget_wait_ns(device, (uint64_t)missing_ns));
	return false;
}

void gp_budget_pay(struct gp_device *device, uint32_t transaction_count)
{
	if (device->param.overhead_permille >= 1000)
		return; /* without a limit the bucket is not used */
	device->tokens_ns -= budget_cost_ns(device, transaction_count);
	if (device->tokens_ns < -BUDGET_NS_MAX)
		device->tokens_ns = -BUDGET_NS_MAX;
}

/* A batch gate opened now must be closed for the next urgent arrival, if there are any: the core does not open it
 * before the budget can pay for that. */
bool gp_budget_holds_back(struct gp_sched *sched, const struct gp_queue *q)
{
	struct gp_device *device = gp_device_of(sched, q);

	return q->is_batch && device->policy->rank && !device->attr.switch_ns && !gp_budget_can_pay(sched, device, 1);
}

/*
 * How often a device that switches by itself may do so. With the shortest slice below it, an urgent program gets the
 * device at once and gives it back as soon as it has nothing to run for a moment. A program that launches its work
 * piece by piece has such a moment between any two pieces: it gains nothing, since it waits for its own launches, and
 * the switches take device time from all programs (measured: docs/decisions/0018). Hence the core counts switches, at
 * the queue that is put aside. While they take more of the device than transactions may, it makes short slices just
 * long enough that they cannot.
 */
#define SWITCH_LEAST_NS  2500000ull /* between two counts: a shorter window says nothing */
#define SWITCH_SMOOTH    8u         /* windows over which the rate is smoothed … */
#define SWITCH_RISE      4u         /* … and when it rises … */
#define SWITCH_WILD      3u /* … where one window counts as at most so many times the limit: alone it says little */
#define SWITCH_BACK      4u /* slices are short again when the rate is so many times below the limit */
#define SWITCH_FRESH_NS  2000000000ull /* how long the rate counts when no queue is put aside any more */
#define SLOW_NS          1000000000ull /* how long slices are longer at least; doubled if needed again soon … */
#define SLOW_NS_MAX      60000000000ull
#define SLOW_CALM_NS     10000000000ull /* … which means within this time of the last end */
#define SWITCH_GATHER    2u /* slices are so many times as long where no program always waits for what they delay */
#define SWITCH_COUNT_MAX 1000000u /* switches in a window */

uint64_t gp_budget_limit(const struct gp_device *device)
{
	return device->param.overhead_permille * 1000000000ull / device->attr.switch_ns;
}

uint64_t gp_budget_short_ns(const struct gp_device *device)
{
	uint64_t slow_ns = device->attr.switch_ns * 1000 / device->param.overhead_permille;

	if (!device->slowed || device->stay.is_away)
		return device->attr.short_ns;
	if (gp_gather_is(device))
		slow_ns = gp_gather_ns(device);
	else if (device->stay.gathers || device->stay.shared_ns)
		slow_ns *= SWITCH_GATHER;
	return slow_ns > device->attr.short_ns ? slow_ns : device->attr.short_ns;
}

/* Makes short slices longer. The core can find out only by trial whether the shortest would do again: the sooner the
 * last trial failed, the later the next. */
static void budget_slow(struct gp_sched *sched, struct gp_device *device)
{
	bool soon = device->slow_over_ns && sched->now_ns - device->slow_over_ns < SLOW_CALM_NS;

	device->slow_ns = !soon ? SLOW_NS : 2 * device->slow_ns < SLOW_NS_MAX ? 2 * device->slow_ns : SLOW_NS_MAX;
	device->slow_until_ns = sched->now_ns + device->slow_ns;
	device->slowed = true;
}

static void budget_set_rate(struct gp_sched *sched, struct gp_device *device, uint64_t per_s)
{
	uint64_t cost = per_s / 1000 * device->attr.switch_ns / 1000000, limit = device->param.overhead_permille;

	device->saves_per_s = per_s;
	if (device->slowed ? cost * SWITCH_BACK >= limit || sched->now_ns < device->slow_until_ns : cost <= limit)
		return;
	if (device->slowed) {
		device->slowed = false;
		device->slow_over_ns = sched->now_ns;
	} else {
		budget_slow(sched, device);
	}
	gp_trace_device(sched, device->slowed ? GP_TRACE_SLOWED : GP_TRACE_FAST, (uint32_t)(device - sched->devices),
			GP_WHY_RATE, per_s / 1000);
	gp_slice_look(device);
	device->dirty = true;
}

/* Below a program that launches ahead slices are so long that few switches are left to count: that does not show that
 * short ones would do again. Once the program launches otherwise, counts decide soon. */
void gp_budget_confirm(const struct gp_sched *sched, struct gp_device *device)
{
	device->saves_ns = sched->now_ns;
	device->slow_until_ns = sched->now_ns + device->slow_ns;
}

void gp_budget_doubt(const struct gp_sched *sched, struct gp_device *device)
{
	if (device->saves_per_s > gp_budget_limit(device)) /* the count is old */
		device->saves_per_s = gp_budget_limit(device);
	if (device->slow_until_ns > sched->now_ns + SLOW_NS)
		device->slow_until_ns = sched->now_ns + SLOW_NS;
}

static void budget_over(struct gp_sched *sched, struct gp_device *device)
{
	device->slow_until_ns = 0;
	budget_set_rate(sched, device, 0);
}

void gp_budget_refresh(struct gp_sched *sched, struct gp_device *device)
{
	if (!device->saves_per_s)
		return;
	if (sched->now_ns < device->saves_ns + SWITCH_FRESH_NS) {
		gp_device_wake(device, device->saves_ns + SWITCH_FRESH_NS);
		return;
	}
	budget_over(sched, device);
}

static void budget_window(struct gp_sched *sched, struct gp_device *device, uint32_t saves, uint64_t window_ns)
{
	uint64_t most = 1000000000000ull / device->attr.switch_ns, past, now, smooth;
	uint64_t wild = SWITCH_WILD * gp_budget_limit(device);

	if (saves > SWITCH_COUNT_MAX)
		saves = SWITCH_COUNT_MAX;
	now = saves * 1000000000000ull / window_ns;
	if (now > most)
		now = most; /* no device does more than switch: the driver has counted anew, or lies */
	device->saves_ns = sched->now_ns;
	if (!device->under_counts)
		gp_stay_counted(sched, device, saves, window_ns);
	device->under_counts = device->under_seat != GP_NONE;
	past = device->saves_per_s;
	if (now > wild && wild > past)
		now = wild;
	smooth = now > past ? SWITCH_RISE : SWITCH_SMOOTH;
	budget_set_rate(sched, device, past - past / smooth + now / smooth);
}

int gp_sched_switches(struct gp_sched *sched, struct gp_queue_id queue, uint32_t count, uint64_t counted_ns,
		      uint64_t now_ns)
{
	const struct gp_queue *q = gp_queue_find(sched, queue);
	struct gp_device *device;
	bool goes_on;

	if (!q)
		return -ESTALE;
	device = gp_device_of(sched, q);
	if (!device->attr.short_ns || !device->attr.switch_ns || !counted_ns || counted_ns >= GP_NS_MAX)
		return -EINVAL;
	gp_clock(sched, now_ns);
	/* Another queue has the turn, or the same one again: the count begins anew, and the next window ends it. */
	goes_on = device->saved_at_ns && device->saved.index == queue.index &&
		  device->saved.generation == queue.generation && device->saved_opened_ns == q->opened_ns;
	if (goes_on && counted_ns < device->saved_at_ns + SWITCH_LEAST_NS)
		return 0;
	if (goes_on)
		budget_window(sched, device, count - device->saved_count, counted_ns - device->saved_at_ns);
	gp_stay_count_begin(sched, device);
	device->saved = queue;
	device->saved_opened_ns = q->opened_ns;
	device->saved_count = count;
	device->saved_at_ns = counted_ns;
	return 0;
}

int gp_sched_switch_info(const struct gp_sched *sched, uint32_t device, struct gp_switch_info *ret_info)
{
	const struct gp_device *d = &sched->devices[device];

	if (device >= sched->device_count)
		return -EINVAL;
	*ret_info = (struct gp_switch_info){ .per_s_x1000 = d->saves_per_s,
					     .is_staying = d->stay.stays || gp_stay_holds(d),
					     .is_slowed = d->slowed,
					     .hold_ns = d->slow_ns,
					     .slowed_ns = d->slowed ? gp_budget_short_ns(d) : 0 };
	return 0;
}
