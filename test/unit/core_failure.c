/* SPDX-License-Identifier: MIT */
/* Orders that fail, get lost, or come back late; devices that stop; gates that change by themselves; clocks that lie.
 */
#include "test/unit/core_world.h"

struct pair {
	struct world *w;
	uint32_t device, high, low;
};

static struct pair pair_new(struct world_setup setup)
{
	struct pair p = { .w = world_new() };

	p.device = world_device(p.w, setup);
	p.high = world_solo(p.w, p.device, GP_PRIORITY_HIGH);
	p.low = world_solo(p.w, p.device, GP_PRIORITY_LOW);
	world_write(p.w, p.low, 1000000);
	world_settle(p.w);
	return p;
}

static const struct world_setup process_unit = { .attr = { .unit = GP_UNIT_PROCESS } };

/* A close that fails is tried again, each time later, and after fail_max times the queue is left open for good. */
static void failing_close_backs_off_into_quarantine(void **state)
{
	struct pair p =
		pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .fail_max = 4 } });
	struct gp_trace_event event;
	uint64_t gap_ns = 0;
	uint32_t i;

	p.w->queues[p.low].close_result = -EBUSY;
	world_write(p.w, p.high, 1);
	world_run(p.w, 1 * S);
	assert_int_equal(p.w->order_count, 4);
	for (i = 1; i < 4; i++) {
		assert_true(p.w->orders[i].time_ns - p.w->orders[i - 1].time_ns > gap_ns);
		gap_ns = p.w->orders[i].time_ns - p.w->orders[i - 1].time_ns;
	}
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_QUARANTINED);
	assert_int_equal(world_stats(p.w, p.device).order_failures, 4);
	assert_int_equal(world_stats(p.w, p.device).quarantines, 1);
	assert_int_equal(world_trace(p.w, GP_TRACE_QUARANTINE, p.low, &event), 1);
	assert_int_equal(event.why, GP_WHY_FAILED);
	/* Never ordered again, whatever happens. */
	for (i = 0; i < 5; i++) {
		world_drain(p.w, p.high);
		world_run(p.w, 10 * MS);
		world_write(p.w, p.high, 1);
		world_run(p.w, 2 * S);
	}
	assert_int_equal(p.w->order_count, 4);
	world_free(p.w);
}

/* "queue preemption failed" (-EIO) is final at once. */
static void eio_quarantines_at_once(void **state)
{
	struct pair p = pair_new(process_unit);

	p.w->queues[p.low].close_result = -EIO;
	world_write(p.w, p.high, 1);
	world_run(p.w, 1 * S);
	assert_int_equal(p.w->order_count, 1);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_QUARANTINED);
	world_free(p.w);
}

/* A success in between forgives earlier failures. */
static void success_resets_the_failures(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t i;

	for (i = 0; i < 6; i++) {
		p.w->queues[p.low].close_result = -EBUSY;
		world_write(p.w, p.high, 1);
		world_settle(p.w);
		p.w->queues[p.low].close_result = 0;
		world_run(p.w, 20 * MS);
		assert_false(world_is_open(p.w, p.low));
		world_drain(p.w, p.high);
		world_run(p.w, 20 * MS);
		assert_true(world_is_open(p.w, p.low));
	}
	assert_int_equal(world_stats(p.w, p.device).quarantines, 0);
	world_free(p.w);
}

/* An open that fails leaves the gate unknown; it is ordered open again until it is. */
static void failing_open_is_repeated(void **state)
{
	struct pair p = pair_new(process_unit);

	world_write(p.w, p.high, 1);
	world_run(p.w, 1 * MS);
	world_drain(p.w, p.high);
	p.w->queues[p.low].open_result = -EBUSY;
	world_settle(p.w);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_UNKNOWN);
	p.w->queues[p.low].open_result = 0;
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* A lost acknowledgement: after the timeout the gate is unknown, is ordered open, and ends in a known state; here it
 * then closes. */
static void lost_acknowledgement_ends_in_a_known_state(void **state)
{
	struct pair p =
		pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 10 * MS } });

	p.w->ack = WORLD_ACK_NEVER;
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSING);
	world_run(p.w, 10 * MS - 1);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSING);
	assert_true(gp_sched_deadline_ns(p.w->sched) == p.w->now_ns + 1);
	world_run(p.w, 1);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_UNKNOWN);
	assert_int_equal(world_stats(p.w, p.device).timeouts, 1);
	p.w->ack = WORLD_ACK_DELAYED;
	world_run(p.w, 10 * MS);
	assert_int_equal(p.w->orders[1].why, GP_WHY_TIMEOUT);
	assert_true(p.w->orders[1].open);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSED); /* known again, so it could be closed for high */
	assert_false(world_is_open(p.w, p.low));
	world_drain(p.w, p.high);
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* If nobody ever answers, the queues end in quarantine and the core stops asking. */
static void silence_ends_in_quarantine(void **state)
{
	struct pair p =
		pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 10 * MS } });

	p.w->ack = WORLD_ACK_NEVER;
	world_write(p.w, p.high, 1);
	world_run(p.w, 10 * S);
	assert_int_equal(p.w->order_count, 3);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_QUARANTINED);
	assert_true(gp_sched_deadline_ns(p.w->sched) == GP_NEVER_NS);
	world_free(p.w);
}

/* Late, doubled and invented acknowledgements are refused and change no gate. */
static void stale_acknowledgements_change_nothing(void **state)
{
	struct pair p =
		pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 10 * MS } });
	struct gp_queue_id low = p.w->queues[p.low].id;
	uint64_t seq;

	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	seq = p.w->devices[0].plan.seq;
	assert_int_equal(gp_sched_applied(p.w->sched, low, seq + 1, 0, p.w->now_ns), -ESTALE);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSING);
	world_run(p.w, 10 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_UNKNOWN);
	assert_int_equal(gp_sched_applied(p.w->sched, low, seq, 0, p.w->now_ns), -ESTALE); /* late */
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_UNKNOWN);
	world_run(p.w, 1 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPENING);
	seq = p.w->devices[0].plan.seq;
	world_ack(p.w, p.device);
	assert_int_equal(gp_sched_applied(p.w->sched, low, seq, 0, p.w->now_ns), -ESTALE); /* doubled */
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	assert_int_equal(world_stats(p.w, p.device).stale_acks, 3);
	assert_int_equal(world_trace(p.w, GP_TRACE_STALE_ACK, WORLD_QUEUE_MAX, NULL), 3);
	world_free(p.w);
}

/* One that does not answer is waited for as long as the plan says, twice for closes and opens; then the device goes on
 * without it, long before its order is given up. */
static void patience_ends(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t other = world_solo(p.w, p.device, GP_PRIORITY_NORMAL);
	uint64_t patience_ns;

	world_settle(p.w);
	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSING);
	patience_ns = p.w->devices[0].plan.patience_ns;
	assert_true(patience_ns >= 1 * S / 64 && patience_ns <= 1 * S / 4 + 1);
	assert_true(gp_sched_deadline_ns(p.w->sched) == p.w->now_ns + 2 * patience_ns);
	if (world_gate(p.w, other) == GP_GATE_CLOSING) /* it answers, the other one does not */
		assert_int_equal(
			gp_sched_applied(p.w->sched, p.w->queues[other].id, p.w->devices[0].plan.seq, 0, p.w->now_ns),
			0);
	world_gate_lost(p.w, other, true);
	world_run(p.w, 2 * patience_ns - 1);
	assert_int_equal(world_gate(p.w, other), GP_GATE_OPEN); /* waited */
	world_run(p.w, 1);
	assert_int_equal(world_gate(p.w, other), GP_GATE_CLOSING); /* and went on */
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSING);
	world_free(p.w);
}

/* A client that was late is not waited for until it has answered promptly eight times. */
static void late_client_is_not_awaited(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t i;

	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	assert_true(p.w->devices[0].plan.close[0].is_awaited);
	world_run(p.w, 100 * MS);
	world_ack(p.w, p.device); /* late, and not given up: it counts */
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSED);
	for (i = 0; i < 9; i++) {
		bool open = !world_is_open(p.w, p.low);

		if (open)
			world_drain(p.w, p.high);
		else
			world_write(p.w, p.high, 1);
		while (!p.w->devices[0].in_flight)
			world_run(p.w, 1 * MS);
		assert_int_equal((open ? p.w->devices[0].plan.open : p.w->devices[0].plan.close)[0].is_awaited, i == 8);
		world_ack(p.w, p.device);
		world_run(p.w, 10 * MS);
	}
	world_free(p.w);
}

/* What the core gives up it says, once and to whoever asks: after the timeout, and when the device is stopped. */
static void given_up_orders_are_told(void **state)
{
	struct pair p =
		pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .ack_timeout_ns = 10 * MS } });
	struct gp_given_up given;

	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	assert_false(gp_sched_given_up(p.w->sched, &given));
	world_run(p.w, 10 * MS);
	assert_true(gp_sched_given_up(p.w->sched, &given));
	assert_int_equal(given.queue.index, p.w->queues[p.low].id.index);
	assert_int_equal(given.why, GP_WHY_TIMEOUT);
	assert_true(given.seq == p.w->orders[0].seq && !given.open);
	assert_false(gp_sched_given_up(p.w->sched, &given));
	world_run(p.w, 5 * MS); /* it is ordered open */
	assert_int_equal(gp_sched_device_stop(p.w->sched, p.device, p.w->now_ns), 0);
	assert_true(gp_sched_given_up(p.w->sched, &given));
	assert_true(given.open && given.why == GP_WHY_STOPPED);
	assert_false(gp_sched_given_up(p.w->sched, &given));
	world_settle(p.w); /* once more */
	world_remove(p.w, p.low);
	assert_false(gp_sched_given_up(p.w->sched, &given)); /* who removes it knows */
	world_free(p.w);
}

/* A queue that goes away while its order is under way: the acknowledgement is for the rest, and its place may be used
 * again at once. */
static void queue_removed_while_ordered(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t next;

	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1);
	world_settle(p.w);
	world_remove_client(p.w, p.w->queues[p.low].client);
	next = world_solo(p.w, p.device, GP_PRIORITY_REALTIME);
	assert_int_equal(p.w->queues[next].id.index, p.w->queues[p.low].id.index);
	world_ack(p.w, p.device);
	assert_int_equal(world_gate(p.w, next), GP_GATE_OPEN);
	p.w->ack = WORLD_ACK_DELAYED;
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, next));
	world_free(p.w);
}

/* A stopped device opens every gate once, and nothing is ordered until it starts; then priorities count again. */
static void stopped_device_opens_everything_once(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t idle = world_queue(p.w, p.w->queues[p.low].client, p.device, GP_PRIORITY_LOW), i;

	world_write(p.w, p.high, 1000);
	world_run(p.w, 1 * MS);
	assert_false(world_is_open(p.w, p.low) || world_is_open(p.w, idle));
	assert_int_equal(gp_sched_device_stop(p.w->sched, p.device, p.w->now_ns), 0);
	world_settle(p.w);
	assert_true(world_is_open(p.w, p.low) && world_is_open(p.w, idle));
	assert_int_equal(world_last_order(p.w, idle, 0)->why, GP_WHY_STOPPED);
	i = p.w->order_count;
	world_run(p.w, 5 * S);
	world_drain(p.w, p.high);
	world_run(p.w, 1 * S);
	world_write(p.w, p.high, 1000);
	world_run(p.w, 1 * S);
	assert_int_equal(p.w->order_count, i);
	assert_int_equal(gp_sched_device_start(p.w->sched, p.device, p.w->now_ns), 0);
	world_settle(p.w);
	assert_false(world_is_open(p.w, p.low) || world_is_open(p.w, idle));
	world_free(p.w);
}

/* Stop with a plan under way: its late acknowledgement is stale, and its gates are opened like the others. */
static void stop_forgets_the_plan_under_way(void **state)
{
	struct pair p = pair_new(process_unit);
	uint64_t seq;

	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	seq = p.w->devices[0].plan.seq;
	assert_int_equal(gp_sched_device_stop(p.w->sched, p.device, p.w->now_ns), 0);
	assert_int_equal(gp_sched_applied(p.w->sched, p.w->queues[p.low].id, seq, 0, p.w->now_ns), -ESTALE);
	world_settle(p.w);
	world_ack(p.w, p.device);
	world_settle(p.w);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	assert_int_equal(world_gate(p.w, p.high), GP_GATE_OPEN);
	world_free(p.w);
}

/* A start gives quarantined queues another chance: the reset may have cured them. */
static void start_ends_quarantine(void **state)
{
	struct pair p = pair_new(process_unit);

	p.w->queues[p.low].close_result = -EIO;
	world_write(p.w, p.high, 1000);
	world_run(p.w, 1 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_QUARANTINED);
	p.w->queues[p.low].close_result = 0;
	assert_int_equal(gp_sched_device_stop(p.w->sched, p.device, p.w->now_ns), 0);
	world_run(p.w, 1 * MS);
	assert_int_equal(gp_sched_device_start(p.w->sched, p.device, p.w->now_ns), 0);
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* A gate that opened by itself under an urgent queue is closed again; one that closed by itself is opened if it has
 * work. */
static void lost_gates_are_put_right(void **state)
{
	struct pair p = pair_new(process_unit);

	world_write(p.w, p.high, 1000);
	world_run(p.w, 1 * MS);
	world_gate_lost(p.w, p.low, true); /* the lease ran out */
	world_run(p.w, 1 * MS);
	assert_false(world_is_open(p.w, p.low));
	world_gate_lost(p.w, p.high, false); /* the application did it */
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.high));
	assert_int_equal(world_trace(p.w, GP_TRACE_GATE_LOST, WORLD_QUEUE_MAX, NULL), 2);
	world_free(p.w);
}

/* Policy none closes no gate, and no decision about ranks opens one. A gate that is closed all the same, because an
 * earlier core closed it, is ordered open, again and again if the order fails. So it is on a stopped device. */
static void closed_gate_without_a_policy_is_opened(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .policy = "none" });

	(void)state;
	world_write(p.w, p.low, 1000);
	p.w->ack = WORLD_ACK_BY_HAND;
	world_gate_lost(p.w, p.low, false);
	world_settle(p.w);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPENING);
	p.w->queues[p.low].open_result = -EIO;
	world_ack(p.w, p.device);
	assert_int_not_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	p.w->queues[p.low].open_result = 0;
	p.w->ack = WORLD_ACK_DELAYED;
	world_run(p.w, 2000 * MS);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_OPEN);
	assert_true(world_is_open(p.w, p.low));
	assert_int_equal(gp_sched_device_stop(p.w->sched, p.device, p.w->now_ns), 0);
	world_run(p.w, 10 * MS);
	world_gate_lost(p.w, p.low, false);
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_gate_lost(p.w, p.low, false);
	assert_int_equal(gp_sched_device_start(p.w->sched, p.device, p.w->now_ns), 0);
	world_run(p.w, 10 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* A gate changes while an order for it is under way. The order may have been carried out before that or after, so its
 * answer does not tell how the gate is: the core orders it open, and closes it again. A change that agrees with the
 * order changes nothing. */
static void lost_gate_during_an_order_is_ordered_anew(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t first;

	(void)state;
	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	assert_int_equal(gp_sched_gate_lost(p.w->sched, p.w->queues[p.low].id, true, p.w->now_ns), 0);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSING);
	world_ack(p.w, p.device);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_UNKNOWN);
	first = p.w->order_count;
	p.w->ack = WORLD_ACK_DELAYED;
	world_run(p.w, 10 * MS);
	assert_int_equal(p.w->orders[first].queue, p.low);
	assert_true(p.w->orders[first].open);
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSED);
	world_drain(p.w, p.high);
	world_write(p.w, p.low, 1000);
	world_run(p.w, 10 * MS);
	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1000);
	world_settle(p.w);
	assert_int_equal(gp_sched_gate_lost(p.w->sched, p.w->queues[p.low].id, false, p.w->now_ns), 0);
	world_ack(p.w, p.device);
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSED);
	world_free(p.w);
}

/* Its program opens the gate while it is being closed. */
static void pair_open_amid_close(const struct pair *p)
{
	p->w->ack = WORLD_ACK_BY_HAND;
	world_settle(p->w);
	while (!p->w->devices[p->device].in_flight)
		world_run(p->w, 100 * US);
	assert_int_equal(world_gate(p->w, p->low), GP_GATE_CLOSING);
	assert_int_equal(gp_sched_gate_lost(p->w->sched, p->w->queues[p->low].id, true, p->w->now_ns), 0);
	world_ack(p->w, p->device);
	while (!p->w->devices[p->device].in_flight)
		world_run(p->w, 100 * US);
	assert_int_equal(world_gate(p->w, p->low), GP_GATE_OPENING);
	world_ack(p->w, p->device);
}

/* A program opens its gate in each of its closes. That counts as a close that failed: it is tried again, each time
 * later, and after fail_max times the queue is left open. */
static void gate_opened_in_each_close_ends_in_quarantine(void **state)
{
	struct pair p = pair_new(process_unit);
	struct gp_trace_event event;
	uint64_t gap_ns = 0, before_ns;
	uint32_t i;

	(void)state;
	world_write(p.w, p.high, 1000);
	for (i = 0; i < 3; i++) {
		before_ns = p.w->now_ns;
		pair_open_amid_close(&p);
		assert_true(p.w->now_ns - before_ns > gap_ns);
		gap_ns = p.w->now_ns - before_ns;
	}
	assert_int_equal(world_gate(p.w, p.low), GP_GATE_QUARANTINED);
	assert_true(world_is_open(p.w, p.low));
	assert_int_equal(world_stats(p.w, p.device).order_failures, 3);
	assert_int_equal(world_trace(p.w, GP_TRACE_QUARANTINE, p.low, &event), 1);
	assert_int_equal(event.why, GP_WHY_LOST);
	i = p.w->order_count;
	p.w->ack = WORLD_ACK_DELAYED;
	world_run(p.w, 1 * S);
	assert_int_equal(p.w->order_count, i);
	world_free(p.w);
}

/* One that closes in between is not held against it for ever. */
static void gate_opened_in_some_closes_is_closed_on(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		world_write(p.w, p.high, 1);
		pair_open_amid_close(&p);
		pair_open_amid_close(&p);
		p.w->ack = WORLD_ACK_DELAYED;
		world_run(p.w, 10 * MS);
		assert_int_equal(world_gate(p.w, p.low), GP_GATE_CLOSED);
		world_drain(p.w, p.high);
		world_run(p.w, 10 * MS);
		assert_true(world_is_open(p.w, p.low));
	}
	world_free(p.w);
}

/* Time that runs backwards stands still; an absurd time is not believed. */
static void clock_never_runs_backwards(void **state)
{
	struct pair p = pair_new(process_unit);
	struct gp_plan *plan = malloc(sizeof(*plan));
	struct gp_trace_event event;

	world_write(p.w, p.high, 1);
	world_run(p.w, 1 * MS);
	assert_int_equal(gp_sched_sample(p.w->sched, p.w->queues[p.high].id, 2, 0, 5), 0);
	assert_int_equal(gp_sched_sample(p.w->sched, p.w->queues[p.high].id, 2, 2, 7), 0);
	assert_int_equal(world_trace(p.w, GP_TRACE_IDLE, p.high, &event), 1);
	assert_true(event.time_ns == p.w->now_ns);
	assert_true(gp_sched_plan(p.w->sched, 3, plan)); /* the reopening of low, at the time already seen */
	assert_false(gp_sched_plan(p.w->sched, GP_NEVER_NS, plan));
	assert_true(gp_sched_deadline_ns(p.w->sched) < GP_NS_MAX);
	free(plan);
	world_free(p.w);
}

/* A jump of an hour fires every timer once and leaves a sane state. */
static void clock_may_jump(void **state)
{
	struct pair p = pair_new(process_unit);
	uint32_t i;

	for (i = 0; i < 5; i++) {
		world_write(p.w, p.high, 1);
		world_settle(p.w);
		assert_int_equal(gp_sched_hint(p.w->sched, p.w->queues[p.low].id, 5 * MS, p.w->now_ns), 0);
		world_skip(p.w, 3600 * S);
		world_settle(p.w);
		world_run(p.w, 20 * MS); /* an aged turn for which high yields is over by then */
		world_drain(p.w, p.high);
		world_skip(p.w, 3600 * S);
		world_settle(p.w);
		assert_true(world_is_open(p.w, p.low));
	}
	world_free(p.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failing_close_backs_off_into_quarantine),
		cmocka_unit_test(eio_quarantines_at_once),
		cmocka_unit_test(success_resets_the_failures),
		cmocka_unit_test(failing_open_is_repeated),
		cmocka_unit_test(lost_acknowledgement_ends_in_a_known_state),
		cmocka_unit_test(silence_ends_in_quarantine),
		cmocka_unit_test(stale_acknowledgements_change_nothing),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(late_client_is_not_awaited),
		cmocka_unit_test(given_up_orders_are_told),
		cmocka_unit_test(queue_removed_while_ordered),
		cmocka_unit_test(stopped_device_opens_everything_once),
		cmocka_unit_test(stop_forgets_the_plan_under_way),
		cmocka_unit_test(start_ends_quarantine),
		cmocka_unit_test(lost_gates_are_put_right),
		cmocka_unit_test(closed_gate_without_a_policy_is_opened),
		cmocka_unit_test(lost_gate_during_an_order_is_ordered_anew),
		cmocka_unit_test(gate_opened_in_each_close_ends_in_quarantine),
		cmocka_unit_test(gate_opened_in_some_closes_is_closed_on),
		cmocka_unit_test(clock_never_runs_backwards),
		cmocka_unit_test(clock_may_jump),
	};

	return cmocka_run_group_tests_name("core_failure", tests, NULL, NULL);
}
