/* SPDX-License-Identifier: MIT */
/* When is a queue idle? Counters that move at completion, counters that move at fetch, and edges without counters. */
#include "test/unit/core_world.h"

struct pair {
	struct world *w;
	uint32_t device, high, low;
};

static struct pair pair_new(bool fetch_counters)
{
	struct pair p = { .w = world_new() };

	p.device = world_device(
		p.w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS, .fetch_counters = fetch_counters },
					   .param = { .overhead_permille = 1000, .linger_max_ns = 1 } });
	p.high = world_solo(p.w, p.device, GP_PRIORITY_HIGH);
	p.low = world_solo(p.w, p.device, GP_PRIORITY_LOW);
	world_settle(p.w);
	return p;
}

/* Counters at completion: idle as soon as all is completed. */
static void completed_means_idle(void **state)
{
	struct pair p = pair_new(false);

	world_write(p.w, p.high, 2);
	world_skip(p.w, 10 * US);
	world_complete(p.w, p.high, 1);
	assert_true(world_info(p.w, p.high).has_work);
	assert_int_equal(world_info(p.w, p.high).pending, 1);
	world_complete(p.w, p.high, 1);
	assert_false(world_info(p.w, p.high).has_work);
	world_free(p.w);
}

/* Counters at fetch: the last packet still runs, and is given as long as packets took and half of that. */
static void fetched_does_not_mean_idle(void **state)
{
	struct pair p = pair_new(true);
	uint32_t i;

	world_write(p.w, p.high, 21);
	for (i = 0; i < 21; i++) {
		world_skip(p.w, 200 * US);
		world_complete(p.w, p.high, 1);
	}
	world_settle(p.w);
	assert_true(world_info(p.w, p.high).has_work);
	assert_true(gp_sched_deadline_ns(p.w->sched) == p.w->now_ns + 300 * US);
	world_run(p.w, 299 * US);
	assert_true(world_info(p.w, p.high).has_work);
	world_run(p.w, 1 * US);
	assert_false(world_info(p.w, p.high).has_work);
	world_free(p.w);
}

/* The same of one queue beside others whose counters are honest. */
static void one_queue_may_count_at_fetch(void **state)
{
	struct pair p = pair_new(false);
	struct gp_queue_attr attr = { .priority = GP_PRIORITY_HIGH, .fetched = true };

	assert_int_equal(gp_sched_queue_set_attr(p.w->sched, p.w->queues[p.high].id, &attr, p.w->now_ns), 0);
	world_write(p.w, p.high, 1);
	world_write(p.w, p.low, 1);
	world_complete(p.w, p.high, 1);
	assert_true(world_info(p.w, p.high).has_work);
	world_complete(p.w, p.low, 1);
	assert_false(world_info(p.w, p.low).has_work);
	world_free(p.w);
}

/* More work before that time is over: the queue was never idle. */
static void work_within_the_tail_goes_on(void **state)
{
	struct pair p = pair_new(true);

	world_write(p.w, p.high, 1);
	world_drain(p.w, p.high);
	world_run(p.w, 10 * US);
	world_write(p.w, p.high, 1);
	world_run(p.w, 10 * MS);
	assert_true(world_info(p.w, p.high).has_work);
	assert_int_equal(world_trace(p.w, GP_TRACE_IDLE, p.high, NULL), 0);
	world_free(p.w);
}

/* Work that came and was fetched between two samples still runs. */
static void fetched_between_samples_does_not_mean_idle(void **state)
{
	struct pair p = pair_new(true);

	assert_int_equal(gp_sched_sample(p.w->sched, p.w->queues[p.high].id, 3, 3, p.w->now_ns), 0);
	assert_true(world_info(p.w, p.high).has_work);
	world_run(p.w, 1 * MS);
	assert_false(world_info(p.w, p.high).has_work);
	world_free(p.w);
}

/* With counters at completion the same sample is a whole busy period of no length: both edges are traced. */
static void came_and_went_between_samples(void **state)
{
	struct pair p = pair_new(false);

	assert_int_equal(gp_sched_sample(p.w->sched, p.w->queues[p.high].id, 3, 3, p.w->now_ns), 0);
	assert_false(world_info(p.w, p.high).has_work);
	assert_int_equal(world_trace(p.w, GP_TRACE_BUSY, p.high, NULL), 1);
	assert_int_equal(world_trace(p.w, GP_TRACE_IDLE, p.high, NULL), 1);
	world_free(p.w);
}

/* Preempted while its last packet ran: time behind the closed gate does not count, so it opens again and gets its time.
 */
static void tail_does_not_run_behind_a_closed_gate(void **state)
{
	struct pair p = pair_new(true);

	world_write(p.w, p.low, 1);
	world_drain(p.w, p.low);
	world_run(p.w, 10 * US);
	world_write(p.w, p.high, 1000);
	world_run(p.w, 10 * MS);
	assert_false(world_is_open(p.w, p.low));
	assert_true(world_info(p.w, p.low).has_work);
	world_drain(p.w, p.high);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	assert_false(world_info(p.w, p.low).has_work);
	world_free(p.w);
}

/*
 * One long kernel at a time: fetched at once, so the queue looks idle while it runs, and its next doorbell comes only
 * after the kernel. Closed in that state it would never open again by its own doorbell; so it opens when the urgent
 * queue is done, for longer each time.
 */
static void queue_only_presumed_idle_opens_again(void **state)
{
	struct pair p = pair_new(true);
	uint64_t open_ns = 0;
	uint32_t i;

	world_write(p.w, p.low, 1);
	world_drain(p.w, p.low);
	for (i = 0; i < 30 && open_ns < 20 * MS; i++) { /* a kernel of 20 ms */
		world_run(p.w, 4 * MS);
		assert_true(world_is_open(p.w, p.low));
		open_ns += 4 * MS;
		world_write(p.w, p.high, 1);
		world_run(p.w, 1 * MS);
		assert_false(world_is_open(p.w, p.low));
		world_drain(p.w, p.high);
	}
	assert_int_equal(i, 5);
	world_free(p.w);
}

/* The doubt ends: a queue that said nothing for long is idle, and is left closed until its doorbell. */
static void presumption_becomes_certainty(void **state)
{
	struct pair p = pair_new(true);
	uint32_t i, opens = 0;

	world_write(p.w, p.low, 1);
	world_drain(p.w, p.low);
	for (i = 0; i < 60; i++) {
		world_run(p.w, 1 * S);
		opens += world_is_open(p.w, p.low);
		world_write(p.w, p.high, 1);
		world_run(p.w, 1 * MS);
		world_drain(p.w, p.high);
	}
	assert_in_range(opens, 5, 25);
	world_run(p.w, 1 * S);
	assert_false(world_is_open(p.w, p.low));
	world_write(p.w, p.low, 1);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	world_free(p.w);
}

/* Edges alone do the same as counters, and a repeated edge changes nothing. */
static void edges_are_enough(void **state)
{
	struct pair p = pair_new(false);
	struct gp_queue_id high = p.w->queues[p.high].id, low = p.w->queues[p.low].id;

	assert_int_equal(gp_sched_edge(p.w->sched, low, true, p.w->now_ns), 0);
	assert_int_equal(gp_sched_edge(p.w->sched, high, true, p.w->now_ns), 0);
	world_run(p.w, 1 * MS);
	assert_false(world_is_open(p.w, p.low));
	assert_int_equal(gp_sched_edge(p.w->sched, high, true, p.w->now_ns), 0);
	assert_int_equal(gp_sched_edge(p.w->sched, high, false, p.w->now_ns), 0);
	assert_int_equal(gp_sched_edge(p.w->sched, high, false, p.w->now_ns), 0);
	world_run(p.w, 1 * MS);
	assert_true(world_is_open(p.w, p.low));
	assert_int_equal(world_trace(p.w, GP_TRACE_BUSY, p.high, NULL), 1);
	assert_int_equal(world_trace(p.w, GP_TRACE_IDLE, p.high, NULL), 1);
	world_free(p.w);
}

/* Run and wait time are what the world saw: they add up to the time with work. */
static void accounts_add_up(void **state)
{
	struct pair p = pair_new(false);
	struct gp_queue_info info;
	uint64_t start_ns;
	uint32_t i;

	p.w->ack_delay_ns = 123 * US;
	world_run(p.w, 1 * MS);
	start_ns = p.w->now_ns;
	world_write(p.w, p.low, 1u << 30);
	for (i = 0; i < 20; i++) {
		world_write(p.w, p.high, 1);
		world_run(p.w, 3 * MS);
		world_drain(p.w, p.high);
		world_run(p.w, 2 * MS);
	}
	world_drain(p.w, p.low);
	info = world_info(p.w, p.low);
	assert_true(info.run_ns == p.w->queues[p.low].open_ns);
	assert_true(info.run_ns + info.wait_ns == p.w->now_ns - start_ns);
	assert_true(world_info(p.w, p.high).run_ns == 60 * MS);
	assert_true(world_info(p.w, p.high).wait_ns == 0);
	world_free(p.w);
}

/* A program that only runs causes no event: its account reaches to the time that the reader gives. Two queues beside
 * each other are one program at work. */
static void accounts_reach_to_now(void **state)
{
	struct pair p = pair_new(false);
	struct gp_queue_id id = p.w->queues[p.low].id;
	struct gp_client_id client = world_info(p.w, p.low).client;
	struct gp_seat_info seat = { .compute_ns = 77 };
	uint32_t twin = world_queue(p.w, p.w->queues[p.low].client, p.device, GP_PRIORITY_LOW);
	struct gp_queue_info info;

	world_write(p.w, p.low, 1);
	world_write(p.w, twin, 1);
	gp_sched_set_time(p.w->sched, p.w->now_ns + 5 * MS);
	assert_int_equal(gp_sched_queue_info(p.w->sched, id, &info), 0);
	assert_int_equal(info.run_ns, 5 * MS);
	assert_int_equal(info.wait_ns, 0);
	assert_int_equal(gp_sched_seat_info(p.w->sched, client, p.device, &seat), 0);
	assert_int_equal(seat.compute_ns, 5 * MS);
	assert_int_equal(seat.copy_ns, 0);
	assert_int_equal(seat.wait_ns, 0);
	world_skip(p.w, 5 * MS);
	world_write(p.w, p.high, 1);
	world_run(p.w, 3 * MS);
	assert_false(world_is_open(p.w, p.low));
	gp_sched_set_time(p.w->sched, p.w->now_ns + 4 * MS);
	assert_int_equal(gp_sched_seat_info(p.w->sched, client, p.device, &seat), 0);
	assert_int_equal(seat.compute_ns + seat.wait_ns, 12 * MS);
	assert_int_equal(gp_sched_queue_info(p.w->sched, id, &info), 0);
	assert_int_equal(info.wait_ns, seat.wait_ns);
	assert_true(seat.wait_ns > 6 * MS);
	gp_sched_set_time(p.w->sched, 1); /* time does not run backwards */
	assert_int_equal(gp_sched_seat_info(p.w->sched, client, p.device, &seat), 0);
	assert_int_equal(seat.compute_ns + seat.wait_ns, 12 * MS);
	assert_int_equal(gp_sched_seat_info(p.w->sched, client, p.device + 1, &seat), -ESTALE);
	client.generation++;
	assert_int_equal(gp_sched_seat_info(p.w->sched, client, p.device, &seat), -ESTALE);
	assert_int_equal(seat.compute_ns + seat.wait_ns, 12 * MS); /* untouched on failure */
	world_free(p.w);
}

/* What is announced and has not come yet waits for nothing, and is owed nothing. */
static void announced_work_does_not_wait(void **state)
{
	struct pair p = pair_new(false);
	struct gp_client_id client = world_info(p.w, p.low).client;
	struct gp_seat_info seat;

	assert_int_equal(gp_sched_hint(p.w->sched, p.w->queues[p.low].id, MS / 2, p.w->now_ns), 0);
	world_run(p.w, MS);
	assert_int_equal(gp_sched_seat_info(p.w->sched, client, p.device, &seat), 0);
	assert_int_equal(seat.wait_ns, 0);
	gp_sched_set_time(p.w->sched, p.w->now_ns + MS);
	assert_int_equal(gp_sched_seat_info(p.w->sched, client, p.device, &seat), 0);
	assert_int_equal(seat.wait_ns, 0);
	assert_int_equal(seat.compute_ns, 0);
	world_free(p.w);
}

/* An urgent request puts the lower queue aside; then it has the device again, for nearly all of the time. */
static void comes_back(const struct pair *p)
{
	uint64_t open_ms = 0;

	world_write(p->w, p->high, 1);
	world_run(p->w, 5 * MS);
	assert_false(world_is_open(p->w, p->low));
	world_drain(p->w, p->high);
	for (uint32_t i = 0; i < 2000; i++) {
		world_run(p->w, MS);
		open_ms += world_is_open(p->w, p->low);
	}
	assert_true(open_ms > 1900);
}

/* A packet that was fetched runs for seconds. One urgent request puts it aside: it comes back, and goes on. */
static void long_packet_comes_back(void **state)
{
	struct pair p = pair_new(true);

	(void)state;
	world_write(p.w, p.low, 1);
	world_run(p.w, MS);
	world_complete(p.w, p.low, 1);
	world_run(p.w, 1500 * MS);
	comes_back(&p);
	world_free(p.w);
}

/* The same where packets are known to be long. */
static void long_packet_of_many_comes_back(void **state)
{
	struct pair p = pair_new(true);

	(void)state;
	world_write(p.w, p.low, 9);
	for (uint32_t i = 0; i < 9; i++) {
		world_run(p.w, 800 * MS);
		world_complete(p.w, p.low, 1);
	}
	world_run(p.w, 2000 * MS);
	comes_back(&p);
	world_free(p.w);
}

/* A queue of packets of 800 ms lost its gate to a more urgent one (ret_top) after its last packet had been fetched: it
 * is in doubt, and has the device again now. */
static struct pair doubtful(uint32_t *ret_top)
{
	struct pair p = pair_new(true);

	*ret_top = world_solo(p.w, p.device, GP_PRIORITY_MAX);
	world_write(p.w, p.high, 9);
	for (uint32_t i = 0; i < 9; i++) {
		world_run(p.w, 800 * MS);
		world_complete(p.w, p.high, 1);
	}
	world_run(p.w, 2000 * MS);
	assert_false(world_info(p.w, p.high).has_work);
	world_write(p.w, *ret_top, 1);
	world_run(p.w, 5 * MS);
	assert_false(world_is_open(p.w, p.high));
	assert_true(world_info(p.w, p.high).has_work);
	assert_true(world_info(p.w, p.high).rank < 0);
	world_drain(p.w, *ret_top);
	world_run(p.w, 50 * MS);
	assert_true(world_is_open(p.w, p.high));
	return p;
}

/* A packet that was written and fetched between two samples is known: the queue goes before lower ones again. */
static void goes_first(const struct pair *p)
{
	struct world_queue *q = &p->w->queues[p->high];

	q->written = ++q->completed;
	assert_int_equal(gp_sched_sample(p->w->sched, q->id, q->written, q->completed, p->w->now_ns), 0);
	assert_true(world_info(p->w, p->high).has_work);
	assert_int_equal(world_info(p->w, p->high).rank, GP_PRIORITY_HIGH);
	world_write(p->w, p->low, 1);
	world_run(p->w, 20 * MS);
	assert_true(world_is_open(p->w, p->high));
	assert_false(world_is_open(p->w, p->low));
}

/* It came while an older packet was in doubt. */
static void fetched_packet_ends_the_doubt(void **state)
{
	uint32_t top;
	struct pair p = doubtful(&top);

	(void)state;
	assert_true(world_info(p.w, p.high).has_work);
	goes_first(&p);
	world_free(p.w);
}

/* It came after the doubt. */
static void doubt_ends_with_its_work(void **state)
{
	uint32_t top;
	struct pair p = doubtful(&top);

	(void)state;
	world_run(p.w, 5 * S);
	assert_false(world_info(p.w, p.high).has_work);
	goes_first(&p);
	world_free(p.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completed_means_idle),
		cmocka_unit_test(accounts_reach_to_now),
		cmocka_unit_test(announced_work_does_not_wait),
		cmocka_unit_test(fetched_does_not_mean_idle),
		cmocka_unit_test(one_queue_may_count_at_fetch),
		cmocka_unit_test(work_within_the_tail_goes_on),
		cmocka_unit_test(fetched_between_samples_does_not_mean_idle),
		cmocka_unit_test(came_and_went_between_samples),
		cmocka_unit_test(tail_does_not_run_behind_a_closed_gate),
		cmocka_unit_test(queue_only_presumed_idle_opens_again),
		cmocka_unit_test(presumption_becomes_certainty),
		cmocka_unit_test(long_packet_comes_back),
		cmocka_unit_test(long_packet_of_many_comes_back),
		cmocka_unit_test(fetched_packet_ends_the_doubt),
		cmocka_unit_test(doubt_ends_with_its_work),
		cmocka_unit_test(edges_are_enough),
		cmocka_unit_test(accounts_add_up),
	};

	return cmocka_run_group_tests_name("core_counters", tests, NULL, NULL);
}
