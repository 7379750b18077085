/* SPDX-License-Identifier: MIT */
/*
 * Slices on a device that switches by itself: below somebody who takes no turns a batch queue is short, never two that
 * are open with work together, lengthened before a second opens, and back to what they were when nobody is above
 * anybody any more. The world keeps what its device would have; it is looked at after every single change.
 */
#include "test/unit/core_world.h"

#define SHORT (1 * US)
#define LONG  (50 * MS)

static struct world_setup slices(const char *policy)
{
	return (struct world_setup){ .policy = policy,
				     .param = { .rest_ns = 3600 * S }, /* nobody rests here */
				     .attr = { .unit = GP_UNIT_PROCESS,
					       .switch_ns = 200 * US,
					       .lower_max = 1,
					       .short_ns = SHORT,
					       .slice_ns = 400 * US,
					       .close_ns = 700 * US,
					       .open_ns = 300 * US } };
}

static struct world *slices_new(const char *policy, uint32_t *ret_device)
{
	struct world *w = world_new();

	*ret_device = world_device(w, slices(policy));
	w->ack_delay_ns = w->slice_delay_ns = 400 * US;
	return w;
}

static uint64_t slice_of(const struct world *w, uint32_t queue)
{
	return w->queues[queue].slice_ns;
}

static uint32_t with_deadline(struct world *w, uint32_t device, int32_t priority, uint64_t deadline_ns)
{
	return world_queue_attr(w, world_client(w), device,
				(struct gp_queue_attr){ .priority = priority, .deadline_ns = deadline_ns });
}

/* hpf: whoever is below the top priority is short, and nobody any more when the top goes. */
static void below_the_top_is_short(void **state)
{
	uint32_t device, low, high;
	struct world *w = slices_new("hpf", &device);

	low = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, low, 10);
	world_run(w, 10 * MS);
	assert_int_equal(w->queues[low].slice_count, 0); /* alone it is the top itself */
	high = world_solo(w, device, GP_PRIORITY_HIGH);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, low), SHORT);
	assert_int_equal(w->queues[high].slice_count, 0);
	world_write(w, high, 1);
	world_run(w, 10 * MS);
	assert_int_equal(w->order_count, 0); /* the device puts it aside by itself */
	world_remove(w, high);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, low), 0);
	world_free(w);
}

/* edf: at equal priorities the one without a deadline is short; and a higher priority makes nobody urgent who has none.
 */
static void without_a_deadline_is_short(void **state)
{
	uint32_t device, low, high, urgent;
	struct world *w = slices_new("edf", &device);

	urgent = with_deadline(w, device, GP_PRIORITY_NORMAL, 10 * MS);
	low = world_solo(w, device, GP_PRIORITY_NORMAL);
	world_write(w, low, 10);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, low), SHORT);
	assert_int_equal(slice_of(w, urgent), 0);
	high = world_solo(w, device, GP_PRIORITY_HIGH);
	world_write(w, high, 10);
	world_write(w, urgent, 10);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, urgent), 0);
	assert_int_equal(slice_of(w, high), SHORT);
	assert_int_equal(w->most_short, 1);
	/* Without any deadline the priority decides. */
	world_drain(w, urgent);
	world_remove(w, urgent);
	world_run(w, 100 * MS);
	assert_int_equal(slice_of(w, high), 0);
	assert_int_equal(slice_of(w, low), SHORT);
	world_free(w);
}

/* rr, wfq and drf: all take turns, nobody is above anybody, and priorities do not matter. */
static void equals_keep_their_own(void **state)
{
	static const char *const policies[] = { "rr", "wfq", "drf", "none" };
	uint32_t i, k;

	for (i = 0; i < 4; i++) {
		uint32_t device, queues[3];
		struct world *w = slices_new(policies[i], &device);

		for (k = 0; k < 3; k++) {
			queues[k] = world_solo(w, device, (int32_t)k * 40);
			world_write(w, queues[k], 100);
		}
		world_run(w, 500 * MS);
		for (k = 0; k < 3; k++)
			assert_int_equal(w->queues[queues[k]].slice_count, 0);
		world_free(w);
	}
}

/* Turns: each closes before the next opens, those that wait stay short, and a turn costs no slice. */
static void turns_cost_no_slices(void **state)
{
	uint32_t device, i, low[3], changes = 0;
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	for (i = 0; i < 3; i++) {
		low[i] = world_solo(w, device, GP_PRIORITY_LOW);
		world_write(w, low[i], 1000000);
	}
	world_run(w, 3 * S);
	assert_int_equal(w->most_short, 1);
	assert_true(world_stats(w, device).turns > 20);
	for (i = 0; i < 3; i++) {
		assert_int_equal(slice_of(w, low[i]), SHORT);
		assert_true(w->queues[low[i]].open_ns > 700 * MS);
		changes += w->queues[low[i]].slice_count;
	}
	assert_in_range(changes, 3, 6);
	world_free(w);
}

/* One that cannot be closed stays open beside the others: then nobody is short. */
static void one_that_cannot_be_closed(void **state)
{
	uint32_t device, a, b;
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	a = world_solo(w, device, GP_PRIORITY_LOW);
	b = world_solo(w, device, GP_PRIORITY_LOW);
	w->queues[a].close_result = -EIO;
	world_write(w, a, 1000000);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, a), SHORT);
	world_write(w, b, 1000000);
	world_run(w, 500 * MS);
	assert_int_equal(world_gate(w, a), GP_GATE_QUARANTINED);
	assert_true(world_is_open(w, b));
	assert_int_equal(slice_of(w, a), 0);
	assert_int_equal(slice_of(w, b), 0);
	assert_int_equal(w->most_short, 1);
	/* It goes: the other one is short again. */
	world_remove(w, a);
	world_run(w, 500 * MS);
	assert_int_equal(slice_of(w, b), SHORT);
	world_free(w);
}

/* Neither can be made long: the second waits until the first has no work, however long. */
static void neither_can_be_made_long(void **state)
{
	uint32_t device, a, b;
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	a = world_solo(w, device, GP_PRIORITY_LOW);
	b = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, a, 1000000);
	world_write(w, b, 1000000);
	world_run(w, 300 * MS);
	assert_int_equal(slice_of(w, a), SHORT);
	assert_int_equal(slice_of(w, b), SHORT);
	while (!world_is_open(w, a) || world_is_open(w, b))
		world_run(w, 5 * MS);
	w->queues[a].slice_result = w->queues[b].slice_result = -EPERM;
	w->queues[a].close_result = -EIO;
	world_run(w, 5 * S);
	assert_int_equal(world_gate(w, a), GP_GATE_QUARANTINED);
	assert_false(world_is_open(w, b));
	assert_int_equal(w->most_short, 1);
	world_drain(w, a);
	world_run(w, 100 * MS);
	assert_true(world_is_open(w, b));
	world_free(w);
}

/* A slice that nobody answers may be short for all that is known: no other becomes short beside it; it is tried again,
 * and given back in the end. */
static void no_answer_is_no_permission(void **state)
{
	uint32_t device, a, b;
	struct world *w = slices_new("hpf", &device);

	a = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, a, 1000000);
	w->queues[a].slice_silent = true;
	b = world_solo(w, device, GP_PRIORITY_HIGH);
	world_write(w, b, 1000000);
	world_run(w, 10 * MS);
	assert_int_equal(w->queues[a].slice_count, 1);
	assert_true(world_info(w, a).may_be_short);
	assert_int_equal(
		gp_sched_queue_set_attr(w->sched, w->queues[b].id, &(struct gp_queue_attr){ .priority = 0 }, w->now_ns),
		0);
	world_run(w, 500 * MS);
	assert_int_equal(w->queues[b].slice_count, 0);
	w->queues[a].slice_seq = 0; /* it is never answered */
	world_run(w, 600 * MS);
	assert_int_equal(world_info(w, a).slice_failures, 1);
	assert_false(world_info(w, a).is_slice_known);
	assert_int_equal(w->queues[b].slice_count, 0);
	w->queues[a].slice_silent = false;
	world_run(w, 3 * S);
	assert_true(world_info(w, a).is_slice_known);
	assert_int_equal(slice_of(w, a), 0);
	assert_int_equal(slice_of(w, b), SHORT);
	world_free(w);
}

/* One that was refused is as it was, and tried again later and later. */
static void a_refusal_is_tried_again(void **state)
{
	uint32_t device, a;
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	a = world_solo(w, device, GP_PRIORITY_LOW);
	w->queues[a].slice_result = -EBUSY;
	world_run(w, 20 * S);
	assert_in_range(w->queues[a].slice_count, 4, 7);
	assert_true(world_info(w, a).is_slice_known);
	assert_int_equal(world_info(w, a).slice_ns, 0);
	w->queues[a].slice_result = 0;
	world_run(w, 70 * S);
	assert_int_equal(slice_of(w, a), SHORT);
	assert_int_equal(world_info(w, a).slice_failures, 0);
	world_free(w);
}

/* Nobody knows it any more: it is set anew. */
static void a_lost_slice_is_set_again(void **state)
{
	uint32_t device, a;
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	a = world_solo(w, device, GP_PRIORITY_LOW);
	world_run(w, 10 * MS);
	w->queues[a].slice_ns = 500 * US;
	w->queues[a].slice_result = -EBUSY;
	assert_int_equal(gp_sched_slice_lost(w->sched, w->queues[a].id, w->now_ns), 0);
	world_run(w, 10 * MS);
	assert_false(world_info(w, a).is_slice_known);
	w->queues[a].slice_result = 0;
	world_run(w, 2 * S);
	assert_true(world_info(w, a).is_slice_known);
	assert_int_equal(slice_of(w, a), SHORT);
	world_free(w);
}

/* A device that is stopped opens everything, each one long before it opens beside another. */
static void a_stop_gives_everything_back(void **state)
{
	uint32_t device, i, low[3];
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	for (i = 0; i < 3; i++) {
		low[i] = world_solo(w, device, GP_PRIORITY_LOW);
		world_write(w, low[i], 1000000);
	}
	world_run(w, 300 * MS);
	w->queues[low[1]].slice_silent = true; /* and one does not answer: it is not waited for for long */
	assert_int_equal(gp_sched_device_stop(w->sched, device, w->now_ns), 0);
	world_run(w, 600 * MS);
	for (i = 0; i < 3; i++)
		assert_true(world_is_open(w, low[i]));
	assert_int_equal(slice_of(w, low[0]), 0);
	assert_int_equal(slice_of(w, low[2]), 0);
	assert_int_equal(w->most_short, 1);
	world_free(w);
}

/* Two are raised above the one that has the turn. Whichever of them has an agent that does not answer, the other opens
 * as soon as its own slice is long. */
static void who_is_raised_waits_for_its_own_slice(void **state)
{
	struct gp_queue_attr high = { .priority = GP_PRIORITY_HIGH };
	uint32_t device, silent, i;

	for (silent = 0; silent < 2; silent++) {
		struct world *w = slices_new("hpf", &device);
		uint32_t low[3];

		world_solo(w, device, GP_PRIORITY_HIGH);
		for (i = 0; i < 3; i++) {
			low[i] = world_solo(w, device, GP_PRIORITY_LOW);
			world_write(w, low[i], 1000000);
		}
		world_run(w, 10 * MS);
		assert_true(world_is_open(w, low[0]) && !world_is_open(w, low[1]) && !world_is_open(w, low[2]));
		w->queues[low[1 + silent]].slice_silent = true;
		for (i = 1; i < 3; i++)
			assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[low[i]].id, &high, w->now_ns), 0);
		world_run(w, 10 * MS);
		assert_false(world_is_open(w, low[1 + silent]));
		assert_true(world_is_open(w, low[2 - silent]));
		assert_int_equal(w->most_short, 1);
		world_run(w, 300 * MS); /* a quarter of a second: it is not waited for for longer */
		assert_true(world_is_open(w, low[1 + silent]));
		world_free(w);
	}
}

/* The middle one of three stays open without work, and short; when it gets some the lowest closes. */
static void the_middle_one_waits_open(void **state)
{
	uint32_t device, low, mid, n;
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	low = world_solo(w, device, GP_PRIORITY_LOW);
	mid = world_solo(w, device, GP_PRIORITY_NORMAL);
	world_write(w, low, 1000000);
	world_run(w, 100 * MS);
	for (n = 0; n < 5; n++) {
		assert_true(world_is_open(w, low) && world_is_open(w, mid));
		assert_int_equal(slice_of(w, low), SHORT);
		assert_int_equal(slice_of(w, mid), SHORT);
		world_write(w, mid, 1);
		world_run(w, 10 * MS);
		assert_false(world_is_open(w, low));
		world_drain(w, mid);
		world_run(w, 50 * MS);
	}
	assert_int_equal(w->queues[mid].slice_count, 1);
	assert_int_equal(w->queues[low].slice_count, 1);
	world_free(w);
}

/* Several of one gang keep their own slices and open together; one that is left is as any other. */
static void several_of_a_gang_keep_their_own(void **state)
{
	uint32_t device, a, b, other, before;
	struct world *w = slices_new("hpf", &device);
	const struct gp_queue_attr attr = { .priority = GP_PRIORITY_LOW, .gang = 7 };

	world_solo(w, device, GP_PRIORITY_HIGH);
	a = world_queue_attr(w, world_client(w), device, attr);
	world_write(w, a, 1000000);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, a), SHORT);
	b = world_queue_attr(w, world_client(w), device, attr);
	world_write(w, b, 1000000);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, a) + slice_of(w, b), 0);
	assert_true(world_is_open(w, a) && world_is_open(w, b));
	/* Turns with another one cost no slices. */
	other = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, other, 1000000);
	before = w->queues[a].slice_count + w->queues[b].slice_count;
	world_run(w, 2 * S);
	assert_true(world_stats(w, device).turns > 10);
	assert_int_equal(w->queues[a].slice_count + w->queues[b].slice_count, before);
	assert_int_equal(w->most_short, 1);
	world_remove(w, other);
	world_remove(w, b);
	world_run(w, 100 * MS);
	assert_int_equal(slice_of(w, a), SHORT);
	world_free(w);
}

/* A slice that cannot be set is left alone, and so is one of another kind. */
static void what_has_none_is_left_alone(void **state)
{
	uint32_t device, fixed, copy;
	struct world *w = slices_new("hpf", &device);

	world_solo(w, device, GP_PRIORITY_HIGH);
	fixed = world_queue_attr(w, world_client(w), device, (struct gp_queue_attr){ .fixed_slice = true });
	copy = world_queue_attr(w, world_client(w), device, (struct gp_queue_attr){ .kind = GP_KIND_COPY });
	world_write(w, fixed, 10);
	world_write(w, copy, 10);
	world_run(w, 100 * MS);
	assert_int_equal(w->queues[fixed].slice_count + w->queues[copy].slice_count, 0);
	world_free(w);
}

/* The only client on top has a long slice, so that none of its requests is interrupted; two have their own. */
static void the_only_one_on_top_is_long(void **state)
{
	struct world_setup setup = slices("hpf");
	struct world *w = world_new();
	uint32_t device, low, high, second;

	setup.attr.long_ns = LONG;
	device = world_device(w, setup);
	high = world_solo(w, device, GP_PRIORITY_HIGH);
	world_run(w, 10 * MS);
	assert_int_equal(w->queues[high].slice_count, 0); /* nobody is below it */
	low = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, low, 1000000);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, high), LONG);
	assert_int_equal(slice_of(w, low), SHORT);
	second = world_solo(w, device, GP_PRIORITY_HIGH);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, high), 0);
	assert_int_equal(slice_of(w, second), 0);
	world_remove(w, high);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, second), LONG);
	/* It is below another from now on: no longer long. */
	high = world_solo(w, device, GP_PRIORITY_REALTIME);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, high), LONG);
	assert_int_equal(slice_of(w, second), SHORT);
	assert_int_equal(gp_sched_device_stop(w->sched, device, w->now_ns), 0);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, high) + slice_of(w, second) + slice_of(w, low), 0);
	world_free(w);
}

/* Work above that never ends: after a window the one below has its aged share, and only until the first pause. */
static void work_without_end_leaves_a_share(void **state)
{
	struct world_setup setup = slices("hpf");
	struct world *w = world_new();
	uint32_t device, low, high;

	setup.attr.long_ns = LONG;
	device = world_device(w, setup);
	high = world_solo(w, device, GP_PRIORITY_HIGH);
	low = world_solo(w, device, GP_PRIORITY_LOW);
	world_write(w, low, 1000000);
	world_write(w, high, 2);
	world_run(w, 900 * MS);
	assert_int_equal(slice_of(w, low), SHORT);
	world_complete(w, high, 1);
	world_run(w, 200 * MS);
	assert_int_equal(slice_of(w, low), 2 * MS / 10); /* age_permille: 100, and its own slice is not known */
	assert_int_equal(slice_of(w, high), 0);
	world_drain(w, high);
	world_run(w, 10 * MS);
	assert_int_equal(slice_of(w, low), SHORT);
	world_write(w, high, 1);
	world_run(w, 900 * MS);
	assert_int_equal(slice_of(w, low), SHORT);
	world_free(w);
}

/* 200 us a switch: 20 % of the time are 1,000 a second, and it must be less than a quarter of that to be over. */
static void switches_have_a_limit(void **state)
{
	static const struct {
		uint32_t per_s;
		bool slowed;
	} steps[] = { { 900, false }, { 1100, true }, { 300, true }, { 200, false }, { 990, false } };
	uint32_t device, low, high, i, n, count = 0;
	struct world *w = slices_new("hpf", &device);
	struct gp_switch_info info;
	struct gp_queue_id watched;

	high = world_solo(w, device, GP_PRIORITY_HIGH);
	low = world_solo(w, device, GP_PRIORITY_LOW);
	assert_false(gp_sched_switch_watch(w->sched, device, &watched));
	world_write(w, high, 1000000);
	world_write(w, low, 1000000);
	world_run(w, 100 * MS);
	assert_true(gp_sched_switch_watch(w->sched, device, &watched));
	assert_int_equal(watched.index, w->queues[low].id.index);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (n = 0; n < 100; n++) {
			world_run(w, 100 * MS);
			count += steps[i].per_s / 10;
			assert_int_equal(gp_sched_switches(w->sched, watched, count, w->now_ns, w->now_ns), 0);
		}
		world_run(w, 10 * MS);
		assert_int_equal(gp_sched_switch_info(w->sched, device, &info), 0);
		assert_in_range(info.per_s_x1000, steps[i].per_s * 985, steps[i].per_s * 1015);
		assert_int_equal(info.is_slowed, steps[i].slowed);
		assert_int_equal(slice_of(w, low), steps[i].slowed ? 1 * MS : SHORT);
	}
	/* Nothing counted for two seconds: forgotten. */
	world_run(w, 3 * S);
	assert_int_equal(gp_sched_switch_info(w->sched, device, &info), 0);
	assert_int_equal(info.per_s_x1000, 0);
	world_free(w);
}

/* Two contexts of one process: short as one would be while one of them works at a time, also by turns; their own slices
 * while both do, and short again afterwards. */
static void two_contexts_of_a_process(void **state)
{
	uint32_t device, client, a, b, n;
	struct world *w = slices_new("hpf", &device);

	(void)state;
	world_solo(w, device, GP_PRIORITY_HIGH);
	client = world_client(w);
	a = world_queue(w, client, device, GP_PRIORITY_LOW);
	b = world_queue(w, client, device, GP_PRIORITY_LOW);
	world_run(w, 10 * MS);
	for (n = 0; n < 10; n++) {
		world_write(w, n % 2 ? a : b, 1);
		world_run(w, 5 * MS);
		assert_int_equal(slice_of(w, n % 2 ? a : b), SHORT);
		assert_true(world_is_open(w, a) && world_is_open(w, b));
		world_drain(w, n % 2 ? a : b);
		world_run(w, 1 * MS);
	}
	assert_int_equal(w->order_count, 0);
	assert_int_equal(w->most_short, 1);
	world_write(w, a, 1000);
	world_write(w, b, 1000);
	world_run(w, 50 * MS);
	assert_int_equal(slice_of(w, a) + slice_of(w, b), 0);
	world_drain(w, b);
	world_run(w, 50 * MS);
	assert_int_equal(slice_of(w, a), SHORT);
	world_free(w);
}

/* What is counted of others, out of order, or of nobody changes nothing. */
static void bad_counts_are_refused(void **state)
{
	uint32_t device, low;
	struct world *w = slices_new("hpf", &device);
	struct gp_queue_id gone;
	struct gp_switch_info info;

	world_solo(w, device, GP_PRIORITY_HIGH);
	low = world_solo(w, device, GP_PRIORITY_LOW);
	gone = w->queues[low].id;
	gone.generation++;
	assert_int_equal(gp_sched_switches(w->sched, gone, 1, w->now_ns, w->now_ns), -ESTALE);
	assert_int_equal(gp_sched_switches(w->sched, w->queues[low].id, 1, 0, w->now_ns), -EINVAL);
	assert_int_equal(gp_sched_sliced(w->sched, gone, 1, 0, w->now_ns), -ESTALE);
	assert_int_equal(gp_sched_sliced(w->sched, w->queues[low].id, 77, 0, w->now_ns), -ESTALE);
	assert_int_equal(gp_sched_slice_lost(w->sched, gone, w->now_ns), -ESTALE);
	/* A counter that runs backwards is one that wrapped around: believed up to what a device can do. */
	assert_int_equal(gp_sched_switches(w->sched, w->queues[low].id, 100, 1 * S, w->now_ns), 0);
	assert_int_equal(gp_sched_switches(w->sched, w->queues[low].id, 50, 2 * S, w->now_ns), 0);
	assert_int_equal(gp_sched_switches(w->sched, w->queues[low].id, 60, 1 * S, w->now_ns), 0);
	assert_int_equal(gp_sched_switch_info(w->sched, device, &info), 0);
	assert_in_range(info.per_s_x1000, 1, 3000 * 1000 / 4);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below_the_top_is_short),
		cmocka_unit_test(without_a_deadline_is_short),
		cmocka_unit_test(equals_keep_their_own),
		cmocka_unit_test(turns_cost_no_slices),
		cmocka_unit_test(one_that_cannot_be_closed),
		cmocka_unit_test(neither_can_be_made_long),
		cmocka_unit_test(no_answer_is_no_permission),
		cmocka_unit_test(a_refusal_is_tried_again),
		cmocka_unit_test(a_lost_slice_is_set_again),
		cmocka_unit_test(a_stop_gives_everything_back),
		cmocka_unit_test(the_middle_one_waits_open),
		cmocka_unit_test(what_has_none_is_left_alone),
		cmocka_unit_test(switches_have_a_limit),
		cmocka_unit_test(the_only_one_on_top_is_long),
		cmocka_unit_test(work_without_end_leaves_a_share),
		cmocka_unit_test(bad_counts_are_refused),
		cmocka_unit_test(several_of_a_gang_keep_their_own),
		cmocka_unit_test(who_is_raised_waits_for_its_own_slice),
		cmocka_unit_test(two_contexts_of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
