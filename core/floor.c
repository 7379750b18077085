/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Floors: a client with a guaranteed share of a device gets at least that share of the time in which it has work,
 * whatever the priorities of others. While it gets less it runs up a debt. When the debt has reached a quantum the
 * client is *behind*: it goes before every priority, alone, until the debt is paid. Of several clients behind, the one
 * that fell behind first goes first. The sum of all floors leaves room for the preemption budget and for aged turns,
 * which go before them.
 *
 * A floor is a share of compute time: copies earn no debt and pay none, and a client that only copies is not behind.
 *
 * An open gate is not the whole device. As far as the core can tell, clients that are open with work at once share the
 * device evenly, and a device that switches by itself runs no client that takes turns beside one that takes none.
 *
 * Only this file changes the floor_* and run_* fields of seats and devices, and `is_behind`. Queues of gangs have no
 * floor: they open on several devices or on none.
 */
#include "core/calls.h"

/* A quantum is at least so many times a close and an open (chosen: changes are then a tenth of it), and at least an
 * aged turn. */
#define FLOOR_COSTS 8u
/* Quanta: the most debt and the most credit that are kept. A debt that could not be paid for long is not all paid at
 * once. What a client had beyond its share a moment ago counts, or it would go before urgent work that leaves it more
 * than its share anyway; what it had long ago does not. */
#define FLOOR_DEBTS  64
#define FLOOR_CREDIT 4

/* A hundredth more than was promised: the device restores the client's state in the time that its gate is open. */
static uint32_t floor_owed(const struct gp_seat *seat)
{
	return seat->floor_permille + (seat->floor_permille + 99) / 100;
}

/* How the device treats a seat while it runs; index of run_seats and run_part. */
enum { FLOOR_LOWER, FLOOR_UPPER, FLOOR_BEHIND, FLOOR_NOT };

static uint32_t floor_class(const struct gp_seat *seat)
{
	if (!seat->run_count[FLOOR_LOWER] && !seat->run_count[FLOOR_UPPER])
		return FLOOR_NOT;
	return seat->is_behind ? FLOOR_BEHIND : seat->run_count[FLOOR_UPPER] ? FLOOR_UPPER : FLOOR_LOWER;
}

/* Thousandths of the device that each client of the class has now. On a device that switches by itself a seat that is
 * behind has nothing beside a client that is about to close, whose slice may be long. */
static uint32_t floor_part(const struct gp_device *device, uint32_t class)
{
	const uint32_t *seats = device->run_seats;
	uint32_t above = seats[FLOOR_UPPER] + seats[FLOOR_BEHIND];

	if (class == FLOOR_NOT || !seats[class])
		return 0;
	if (!device->attr.switch_ns)
		return 1000 / (above + seats[FLOOR_LOWER]);
	if (class == FLOOR_LOWER)
		return above ? 0 : 1000 / seats[FLOOR_LOWER];
	return class == FLOOR_BEHIND && seats[FLOOR_UPPER] ? 0 : 1000 / above;
}

/* Updates what a client of each class has had. */
static void floor_pass(const struct gp_sched *sched, struct gp_device *device)
{
	uint64_t elapsed_ns = sched->now_ns - device->run_mark_ns;
	uint32_t i;

	device->run_mark_ns = sched->now_ns;
	if (device->floor_first == GP_NONE)
		return;
	elapsed_ns = elapsed_ns < GP_DURATION_NS_MAX ? elapsed_ns : GP_DURATION_NS_MAX;
	for (i = 0; i < FLOOR_NOT; i++)
		device->run_part[i] += elapsed_ns * floor_part(device, i);
}

/* Moves the seat from class was to its present class. */
static void floor_move(const struct gp_sched *sched, struct gp_seat *seat, uint32_t was)
{
	struct gp_device *device = &sched->devices[seat->device];
	uint32_t is = floor_class(seat);

	if (is == was)
		return;
	floor_pass(sched, device);
	if (was != FLOOR_NOT) {
		seat->floor_got += device->run_part[was] - seat->run_mark;
		device->run_seats[was]--;
	}
	if (is != FLOOR_NOT) {
		seat->run_mark = device->run_part[is];
		device->run_seats[is]++;
	}
}

void gp_floor_runs(struct gp_sched *sched, const struct gp_queue *q, bool begins)
{
	struct gp_seat *seat = &sched->seats[q->seat];
	uint32_t was, *count = &seat->run_count[q->is_batch ? FLOOR_LOWER : FLOOR_UPPER];

	if (q->attr.kind != GP_KIND_COMPUTE)
		return;
	if (*count != !begins) { /* neither the first nor the last: the seat's class stays */
		*count += begins ? 1u : -1u;
		return;
	}
	was = floor_class(seat);
	*count = begins;
	floor_move(sched, seat, was);
}

/* What the seat had of the device since the last call, in thousandths of ns. */
static uint64_t floor_take(const struct gp_sched *sched, struct gp_seat *seat)
{
	struct gp_device *device = &sched->devices[seat->device];
	uint32_t class = floor_class(seat);
	uint64_t got = seat->floor_got;

	floor_pass(sched, device);
	seat->floor_got = 0;
	if (class == FLOOR_NOT)
		return got;
	got += device->run_part[class] - seat->run_mark;
	seat->run_mark = device->run_part[class];
	return got;
}

static uint64_t floor_quantum_ns(const struct gp_device *device)
{
	uint64_t least_ns = FLOOR_COSTS * (device->attr.close_ns + device->attr.open_ns);

	return least_ns > device->param.age_turn_ns ? least_ns : device->param.age_turn_ns;
}

bool gp_floor_admits(const struct gp_sched *sched, const struct gp_core_client *client, uint32_t device,
		     uint32_t permille)
{
	const struct gp_device *d = &sched->devices[device];
	uint32_t first = d->param.overhead_permille + d->param.age_permille, i = client->seat_first, own;

	while (i != GP_NONE && sched->seats[i].device != device)
		i = sched->seats[i].client_next;
	own = i == GP_NONE ? 0 : sched->seats[i].floor_permille;
	return permille <= own || d->floor_permille - own + permille + first <= 1000;
}

/* Sets is_behind, and the rank and the need of a turn that follow from it. */
static void floor_mark(struct gp_sched *sched, uint32_t seat, bool behind)
{
	struct gp_seat *s = &sched->seats[seat];
	struct gp_device *device = &sched->devices[s->device];
	uint32_t i, was = floor_class(s);

	if (s->is_behind == behind)
		return;
	s->is_behind = behind;
	floor_move(sched, s, was);
	/* While its gate closes the client counts as running and does not run; nor does it while the device switches to
	 * it. */
	s->floor_debt += (int64_t)((behind ? device->attr.switch_ns : device->attr.close_ns) * 1000);
	if (behind)
		s->floor_serial = ++device->floor_serial;
	if (s->queue_first != GP_NONE)
		gp_trace(sched, GP_TRACE_FLOOR, s->queue_first, GP_WHY_FLOOR, behind);
	for (i = s->queue_first; i != GP_NONE; i = sched->queues[i].seat_next) {
		gp_work_rerank(sched, i);
		gp_work_refresh(sched, i);
	}
	if (!s->batch_count)
		gp_turn_take(sched, seat); /* it needs no turn now, and would keep one from a seat that does */
	gp_turn_check(sched, seat);
}

/* Debt is in thousandths of a nanosecond, because shares are in thousandths. */
static void floor_account(struct gp_sched *sched, struct gp_seat *seat)
{
	const struct gp_device *device = &sched->devices[seat->device];
	int64_t quantum = (int64_t)(floor_quantum_ns(device) * 1000), most = FLOOR_DEBTS * quantum;
	uint64_t work_ns, got = floor_take(sched, seat);

	gp_turn_account(sched, seat);
	work_ns = seat->work_ns - seat->floor_work_ns;
	seat->floor_work_ns = seat->work_ns;
	work_ns = work_ns < GP_DURATION_NS_MAX ? work_ns : GP_DURATION_NS_MAX;
	got = got < GP_DURATION_NS_MAX * 1000 ? got : GP_DURATION_NS_MAX * 1000;
	seat->floor_debt += (int64_t)(work_ns * floor_owed(seat)) - (int64_t)got;
	if (seat->floor_debt < -FLOOR_CREDIT * quantum)
		seat->floor_debt = -FLOOR_CREDIT * quantum;
	if (seat->floor_debt > most)
		seat->floor_debt = most;
}

void gp_floor_set(struct gp_sched *sched, uint32_t seat)
{
	struct gp_seat *s = &sched->seats[seat];
	struct gp_device *device = &sched->devices[s->device];
	uint32_t permille = 0, i, *link = &device->floor_first;

	for (i = s->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (!sched->queues[i].attr.gang && sched->queues[i].attr.floor_permille > permille)
			permille = sched->queues[i].attr.floor_permille;
	if (permille == s->floor_permille)
		return;
	floor_account(sched, s);
	if (!s->floor_permille) {
		s->floor_debt = 0;
		s->floor_next = device->floor_first;
		device->floor_first = seat;
	}
	device->floor_permille += permille - s->floor_permille;
	s->floor_permille = permille;
	device->dirty = true;
	if (permille)
		return;
	for (; *link != seat; link = &sched->seats[*link].floor_next)
		if (GP_NEVER(*link == GP_NONE))
			return;
	*link = s->floor_next;
	floor_mark(sched, seat, false);
}

void gp_floor_update(struct gp_sched *sched, struct gp_device *device)
{
	int64_t quantum = (int64_t)(floor_quantum_ns(device) * 1000);
	uint32_t i, part;

	for (i = device->floor_first; i != GP_NONE; i = sched->seats[i].floor_next) {
		struct gp_seat *seat = &sched->seats[i];
		bool can = device->policy->gates && seat->busy[GP_KIND_COMPUTE] && !seat->overdue_count &&
			   !device->stopped;

		floor_account(sched, seat);
		floor_mark(sched, i, can && seat->floor_debt > (seat->is_behind ? 0 : quantum - 1));
		if (!can)
			continue;
		part = floor_part(device, floor_class(seat));
		if (seat->is_behind && part > floor_owed(seat))
			gp_device_wake(device,
				       sched->now_ns + 1 + (uint64_t)seat->floor_debt / (part - floor_owed(seat)));
		else if (!seat->is_behind && part < floor_owed(seat))
			gp_device_wake(device,
				       sched->now_ns + 1 +
					       (uint64_t)(quantum - seat->floor_debt) / (floor_owed(seat) - part));
	}
}

const char *gp_floor_check(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t i, sum = 0, count = 0, runs[FLOOR_NOT + 1] = { 0 };

	for (i = device->floor_first; i != GP_NONE && count <= device->seat_count; i = sched->seats[i].floor_next) {
		sum += sched->seats[i].floor_permille;
		count++;
		if (!sched->seats[i].used || !sched->seats[i].floor_permille)
			return "a seat without a floor is in the list of those that have one";
	}
	for (i = device->seat_first; i != GP_NONE; i = sched->seats[i].device_next)
		runs[floor_class(&sched->seats[i])]++;
	for (i = 0; i < FLOOR_NOT; i++)
		if (runs[i] != device->run_seats[i])
			return "the clients that run are not as many as the device has";
	return sum != device->floor_permille ? "the floors of a device are not the sum of its seats'" : NULL;
}
