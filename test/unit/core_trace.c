/* SPDX-License-Identifier: MIT */
/* The ring of trace events, and the log of inversions. */
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

static const struct world_setup process_unit = { .attr = { .unit = GP_UNIT_PROCESS },
						 .param = { .overhead_permille = 1000 } };

/* A reader that keeps up sees each event once, in order, with the queue's tag, and loses none. */
static void reader_that_keeps_up_loses_nothing(void **state)
{
	struct pair p = pair_new(process_unit);
	struct gp_trace_event events[7];
	uint64_t cursor = 0, lost = 99, time_ns = 0, total = 0;
	uint32_t i, j, count;

	for (i = 0; i < 50; i++) {
		world_write(p.w, p.high, 1);
		world_run(p.w, 1 * MS);
		world_drain(p.w, p.high);
		world_run(p.w, 1 * MS);
		do {
			count = gp_sched_trace_read(p.w->sched, &cursor, events, 7, &lost);
			assert_int_equal(lost, 0);
			for (j = 0; j < count; j++) {
				assert_true(events[j].time_ns >= time_ns);
				time_ns = events[j].time_ns;
				if (events[j].type == GP_TRACE_BUSY && events[j].time_ns > 1 * S)
					assert_int_equal(events[j].tag, p.high);
			}
			total += count;
		} while (count);
	}
	assert_true(cursor == total);
	/* Per round: busy, idle, two plans, close, closed, open, opened, at least. */
	assert_true(total >= 50 * 8);
	world_free(p.w);
}

/* A slow reader is told how many it lost, and goes on with the oldest that is left. */
static void slow_reader_is_told_what_it_lost(void **state)
{
	struct pair p = pair_new(process_unit);
	static struct gp_trace_event events[WORLD_TRACE_COUNT + 1];
	uint64_t cursor = 0, lost = 0;
	uint32_t i, count;

	for (i = 0; i < WORLD_TRACE_COUNT; i++) { /* two events each */
		world_write(p.w, p.low, 1);
		assert_int_equal(gp_sched_sample(p.w->sched, p.w->queues[p.high].id, i + 1, i + 1, p.w->now_ns), 0);
	}
	count = gp_sched_trace_read(p.w->sched, &cursor, events, WORLD_TRACE_COUNT + 1, &lost);
	assert_int_equal(count, WORLD_TRACE_COUNT);
	assert_true(lost > WORLD_TRACE_COUNT);
	assert_true(cursor == lost + count);
	assert_int_equal(events[count - 1].type, GP_TRACE_IDLE);
	assert_int_equal(gp_sched_trace_read(p.w->sched, &cursor, events, 1, &lost), 0);
	assert_int_equal(lost, 0);
	/* A cursor from nowhere is put right; leaving the count of lost ones out is allowed. */
	cursor = GP_NEVER_NS;
	assert_int_equal(gp_sched_trace_read(p.w->sched, &cursor, events, 1, NULL), 0);
	world_free(p.w);
}

/* One preemption leaves its whole story: busy, plan with its size, close with its reason, closed with its time. */
static void preemption_tells_its_story(void **state)
{
	struct pair p = pair_new(process_unit);
	struct gp_trace_event event;

	p.w->ack_delay_ns = 130 * US;
	world_write(p.w, p.high, 1);
	world_run(p.w, 1 * MS);
	assert_int_equal(world_trace(p.w, GP_TRACE_BUSY, p.high, &event), 1);
	assert_int_equal(world_trace(p.w, GP_TRACE_PLAN, WORLD_QUEUE_MAX, &event), 1);
	assert_int_equal(event.value, p.w->orders[0].seq);
	assert_int_equal(event.other.index, 1);
	assert_int_equal(world_trace(p.w, GP_TRACE_CLOSE, p.low, &event), 1);
	assert_int_equal(event.why, GP_WHY_PRIORITY);
	assert_int_equal(event.value, p.w->orders[0].seq);
	assert_int_equal(world_trace(p.w, GP_TRACE_CLOSED, p.low, &event), 1);
	assert_int_equal(event.value, 130 * US);
	world_drain(p.w, p.high);
	assert_int_equal(world_trace(p.w, GP_TRACE_IDLE, p.high, &event), 1);
	assert_int_equal(event.value, 1 * MS);
	world_run(p.w, 1 * MS);
	assert_int_equal(world_trace(p.w, GP_TRACE_OPENED, p.low, &event), 1);
	assert_int_equal(event.value, 130 * US);
	world_free(p.w);
}

/* Every reason has a name of its own. */
static void reasons_have_names(void **state)
{
	uint32_t i, j;

	for (i = 0; i < GP_WHY_COUNT; i++) {
		assert_non_null(gp_why_name((enum gp_why)i));
		for (j = 0; j < i; j++)
			assert_string_not_equal(gp_why_name((enum gp_why)i), gp_why_name((enum gp_why)j));
	}
	assert_string_equal(gp_why_name((enum gp_why)1000), "unknown reason");
}

/* An inversion lasts from the urgent queue's busy edge until the lower gate is known to be closed. */
static void inversion_lasts_until_the_close_is_acknowledged(void **state)
{
	struct pair p = pair_new(process_unit);
	struct gp_trace_event event;
	uint32_t i;

	p.w->ack_delay_ns = 130 * US;
	for (i = 1; i <= 3; i++) {
		world_write(p.w, p.high, 1);
		world_run(p.w, 2 * MS);
		assert_int_equal(world_stats(p.w, p.device).inversions, i);
		assert_int_equal(world_stats(p.w, p.device).inversion_ns, i * 130 * US);
		assert_int_equal(world_stats(p.w, p.device).inversion_ns_max, 130 * US);
		assert_int_equal(world_trace(p.w, GP_TRACE_INVERSION, p.high, &event), i);
		assert_int_equal(event.value, 130 * US);
		assert_int_equal(event.why, GP_WHY_PRIORITY);
		assert_int_equal(event.other.index, p.w->queues[p.low].id.index);
		assert_int_equal(event.other.generation, p.w->queues[p.low].id.generation);
		world_drain(p.w, p.high);
		world_run(p.w, 2 * MS);
	}
	world_free(p.w);
}

/* Left open on purpose: the inversion lasts until the lower queue ends, and says why it was suffered. */
static void inversion_left_open_says_why(void **state)
{
	struct pair p = pair_new(process_unit);
	struct gp_trace_event event;
	uint32_t i;

	world_skip(p.w, 60 * US);
	world_complete(p.w, p.low, 1000000 - 50);
	for (i = 0; i < 49; i++) {
		world_skip(p.w, 60 * US);
		world_complete(p.w, p.low, 1);
	}
	world_write(p.w, p.high, 10);
	world_run(p.w, 40 * US);
	world_drain(p.w, p.low);
	world_run(p.w, 1 * MS);
	assert_int_equal(world_trace(p.w, GP_TRACE_INVERSION, p.high, &event), 1);
	assert_int_equal(event.value, 40 * US);
	assert_int_equal(event.why, GP_WHY_SHORT);
	world_free(p.w);
}

/* The urgent queue drains first: the inversion ends with its work. */
static void inversion_ends_with_the_work(void **state)
{
	struct pair p = pair_new(process_unit);
	struct gp_trace_event event;

	p.w->ack = WORLD_ACK_BY_HAND;
	world_write(p.w, p.high, 1);
	world_run(p.w, 70 * US);
	world_drain(p.w, p.high);
	assert_int_equal(world_trace(p.w, GP_TRACE_INVERSION, p.high, &event), 1);
	assert_int_equal(event.value, 70 * US);
	assert_int_equal(event.why, GP_WHY_WORK);
	world_free(p.w);
}

/* Two lower ones in the way are one inversion, until the last is closed; an idle lower gate is none. */
static void inversion_by_two_is_one(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(
		w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS }, .param = { .batch_clients = 4 } });
	uint32_t high = world_solo(w, device, GP_PRIORITY_HIGH), a = world_solo(w, device, GP_PRIORITY_LOW), b;

	b = world_solo(w, device, GP_PRIORITY_LOW);
	world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, a, 1000);
	world_write(w, b, 1000);
	world_settle(w);
	w->ack = WORLD_ACK_BY_HAND;
	world_write(w, high, 1);
	world_settle(w);
	world_run(w, 30 * US);
	world_drain(w, a); /* one of them ends by itself */
	assert_int_equal(world_stats(w, device).inversions, 0);
	world_run(w, 40 * US);
	world_ack(w, device);
	assert_int_equal(world_stats(w, device).inversions, 1);
	assert_int_equal(world_stats(w, device).inversion_ns, 70 * US);
	world_free(w);
}

/* An aged turn is an inversion of the urgent queue for exactly that turn, with its reason. */
static void aged_turn_is_an_inversion(void **state)
{
	struct pair p = pair_new((struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
						       .param = { .age_window_ns = 100 * MS, .age_turn_ns = 7 * MS } });
	struct gp_trace_event event;

	world_write(p.w, p.high, 1000000);
	world_settle(p.w);
	assert_int_equal(world_stats(p.w, p.device).inversions, 0); /* closed at once, in no time */
	world_run(p.w, 120 * MS);
	assert_int_equal(world_trace(p.w, GP_TRACE_INVERSION, p.high, &event), 1);
	assert_int_equal(event.value, 7 * MS);
	world_free(p.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reader_that_keeps_up_loses_nothing),
		cmocka_unit_test(slow_reader_is_told_what_it_lost),
		cmocka_unit_test(preemption_tells_its_story),
		cmocka_unit_test(reasons_have_names),
		cmocka_unit_test(inversion_lasts_until_the_close_is_acknowledged),
		cmocka_unit_test(inversion_left_open_says_why),
		cmocka_unit_test(inversion_ends_with_the_work),
		cmocka_unit_test(inversion_by_two_is_one),
		cmocka_unit_test(aged_turn_is_an_inversion),
	};

	return cmocka_run_group_tests_name("core_trace", tests, NULL, NULL);
}
