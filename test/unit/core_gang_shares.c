/* SPDX-License-Identifier: MIT */
/* What share of turns gangs get beside others and beside other gangs, and what that costs the others. */
#include "test/unit/core_world.h"

/* A gang on two devices, each with two others, gets its share on both: turns that end at different times must not pass
 * it over for ever. Where the device
 * switches by itself, also beside somebody urgent who always has work on one of them. */
static void gang_gets_its_share(void **state)
{
	uint32_t kind, i, k;

	for (kind = 0; kind < 4; kind++) {
		struct world *w = world_new();
		uint32_t device[2], high[2], solo[2][2], gang[2], client;
		uint64_t all_ns = 0;

		for (i = 0; i < 2; i++) {
			device[i] =
				world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS,
										.switch_ns = kind & 1 ? 200 * US : 0,
										.lower_max = 1 },
								      .param = { .turn_ns = 10 * MS,
										 .age_window_ns = 1000 * S,
										 .rest_ns = 3600 * S } });
			high[i] = world_solo(w, device[i], GP_PRIORITY_HIGH);
			for (k = 0; k < 2; k++)
				solo[i][k] = world_solo(w, device[i], GP_PRIORITY_LOW);
		}
		client = world_client(w);
		for (i = 0; i < 2; i++) {
			for (k = 0; k < 2; k++)
				world_write(w, solo[i][k], 100000000);
			world_run(w, 3700 * US);
		}
		for (i = 0; i < 2; i++) {
			gang[i] = world_queue_attr(w, client, device[i],
						   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
			world_write(w, gang[i], 100000000);
		}
		w->ack_delay_ns = 100 * US;
		for (i = 0; i < 600; i++) {
			for (k = 0; kind & 2 && k < 2; k++) {
				world_write(w, high[k], 1);
				world_run(w, kind & 1 ? 2 * MS : 300 * US);
				world_drain(w, high[k]);
			}
			world_run(w, kind == 3 ? 0 : 4 * MS + (i % 7) * 100 * US);
		}
		for (i = 0; i < 2; i++) {
			all_ns = w->queues[gang[i]].open_ns;
			for (k = 0; k < 2; k++) {
				all_ns += w->queues[solo[i][k]].open_ns;
				assert_true(w->queues[solo[i][k]].open_ns > 300 * MS);
			}
			assert_true(w->queues[gang[i]].open_ns > all_ns / 5);
			assert_true(w->queues[gang[i]].open_ns < all_ns / 2);
		}
		world_free(w);
	}
}

/* Of three gangs each gets a third, whether they share all of their devices or one each with each. */
static void three_gangs_take_turns(void **state)
{
	uint32_t kind, i, k;

	for (kind = 0; kind < 8; kind++) {
		struct world *w = world_new();
		uint32_t device[3], gang[3][2];

		for (i = 0; i < 3; i++) {
			device[i] =
				world_device(w, (struct world_setup){ .policy = kind & 1 ? "wfq" : "hpf",
								      .attr = { .unit = GP_UNIT_PROCESS,
										.switch_ns = kind & 4 ? 200 * US : 0,
										.lower_max = 1 },
								      .param = { .turn_ns = 10 * MS,
										 .age_window_ns = 1000 * S,
										 .rest_ns = 3600 * S } });
			world_solo(w, device[i], GP_PRIORITY_HIGH);
		}
		w->ack_delay_ns = 100 * US;
		for (i = 0; i < 3; i++) {
			uint32_t client = world_client(w);

			for (k = 0; k < 2; k++) {
				gang[i][k] = world_queue_attr(
					w, client, device[kind & 2 ? (i + k) % 3 : k],
					(struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = i + 1 });
				world_write(w, gang[i][k], 1000000);
			}
			world_run(w, 3 * MS);
		}
		world_run(w, 900 * MS);
		for (i = 0; i < 3; i++)
			for (k = 0; k < 2; k++)
				assert_in_range(w->queues[gang[i][k]].open_ns, 270 * MS, 330 * MS);
		world_free(w);
	}
}

/* On a device that switches by itself a gang waits below somebody who never stops: others have no longer turns for its
 * sake. */
static void gang_that_cannot_be_next_keeps_nobody(void **state)
{
	struct world *w = world_new();
	uint32_t device[2], solo[2], high, gang, client = world_client(w), i;

	for (i = 0; i < 2; i++) {
		device[i] = world_device(
			w, (struct world_setup){
				   .attr = { .unit = GP_UNIT_PROCESS, .switch_ns = 200 * US, .lower_max = 1 },
				   .param = { .turn_ns = 10 * MS, .age_window_ns = 1000 * S, .rest_ns = 3600 * S } });
		world_solo(w, device[i], GP_PRIORITY_HIGH);
	}
	high = world_solo(w, device[1], GP_PRIORITY_NORMAL);
	world_write(w, high, 1000000);
	for (i = 0; i < 2; i++) {
		solo[i] = world_solo(w, device[0], GP_PRIORITY_LOW);
		world_write(w, solo[i], 1000000);
	}
	for (i = 0; i < 2; i++) {
		gang = world_queue_attr(w, client, device[i],
					(struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
		world_write(w, gang, 1000000);
	}
	w->ack_delay_ns = 100 * US;
	world_run(w, 1 * S);
	assert_true(w->queues[gang].open_ns < 1 * MS);
	assert_in_range(world_stats(w, device[0]).turns, 90, 110);
	world_free(w);
}

/* A gang that waits for turns of another device that are ten times as long does not make those beside it so long; with
 * two turns at once, either. */
static void turns_are_not_kept_for_ever(void **state)
{
	struct world *w = world_new();
	uint32_t device[2], solo[4], other[2], gang, client = world_client(w), i, k;
	uint64_t since_ns[4] = { 0 }, most_ns = 0;

	for (i = 0; i < 2; i++)
		device[i] = world_device(w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS },
								  .param = { .turn_ns = i ? 100 * MS : 10 * MS,
									     .batch_clients = i ? 1 : 2,
									     .age_window_ns = 1000 * S,
									     .rest_ns = 3600 * S } });
	for (i = 0; i < 2; i++) {
		world_solo(w, device[i], GP_PRIORITY_HIGH);
		other[i] = world_solo(w, device[1], GP_PRIORITY_LOW);
		world_write(w, other[i], 1000000);
	}
	for (i = 0; i < 4; i++) {
		solo[i] = world_solo(w, device[0], GP_PRIORITY_LOW);
		world_write(w, solo[i], 1000000);
		world_run(w, 5 * MS);
	}
	for (i = 0; i < 2; i++) {
		gang = world_queue_attr(w, client, device[i],
					(struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
		world_write(w, gang, 1000000);
	}
	for (i = 0; i < 10000; i++) {
		world_run(w, 100 * US);
		for (k = 0; k < 4; k++) {
			if (!world_is_open(w, solo[k]))
				since_ns[k] = w->now_ns;
			if (since_ns[k] && w->now_ns - since_ns[k] > most_ns)
				most_ns = w->now_ns - since_ns[k];
		}
	}
	assert_true(w->queues[gang].open_ns > 20 * MS);
	assert_in_range(most_ns, 10 * MS, 31 * MS);
	world_free(w);
}

/* Four devices with solo_count others on each, whose turns begin stagger_ns apart, and gangs on some of them. */
static void gangs_share_four(const char *policy, uint64_t stagger_ns, uint32_t solo_count, const uint32_t *masks)
{
	struct world *w = world_new();
	uint32_t solo[4][2], gang[4][4], i, k, g;

	for (i = 0; i < 4; i++) {
		world_device(w,
			     (struct world_setup){
				     .policy = policy,
				     .attr = { .unit = GP_UNIT_PROCESS, .queue_max = 32 },
				     .param = { .turn_ns = 10 * MS, .age_window_ns = 1000 * S, .rest_ns = 3600 * S } });
		world_solo(w, i, GP_PRIORITY_HIGH);
	}
	w->ack_delay_ns = 500 * US;
	for (i = 0; i < 4; i++) {
		for (k = 0; k < solo_count; k++) {
			solo[i][k] = world_solo(w, i, GP_PRIORITY_LOW);
			world_write(w, solo[i][k], 100000000);
		}
		world_run(w, stagger_ns);
	}
	for (g = 0; masks[g]; g++) {
		uint32_t client = world_client(w);

		for (i = 0; i < 4; i++) {
			if (!(masks[g] >> i & 1))
				continue;
			gang[g][i] = world_queue_attr(
				w, client, i, (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = g + 1 });
			world_write(w, gang[g][i], 100000000);
		}
		world_run(w, stagger_ns);
	}
	world_run(w, 1 * S);
	for (g = 0; masks[g]; g++)
		for (i = 0; i < 4; i++)
			if (masks[g] >> i & 1)
				assert_in_range(w->queues[gang[g][i]].open_ns, 150 * MS, 400 * MS);
	for (i = 0; i < 4; i++)
		for (k = 0; k < solo_count; k++)
			assert_true(w->queues[solo[i][k]].open_ns > 150 * MS);
	world_free(w);
}

/* However far apart turns of several devices end, and whether it is others or gangs that take them. */
static void gangs_on_many_devices_get_their_share(void **state)
{
	static const uint32_t one[] = { 15, 0 }, three[] = { 10, 5, 6, 0 };
	uint64_t stagger_ns;

	for (stagger_ns = 300 * US; stagger_ns < 21 * MS; stagger_ns += 1 * MS) {
		gangs_share_four("hpf", stagger_ns, 2, one);
		gangs_share_four("wfq", stagger_ns, 2, one);
		gangs_share_four("hpf", stagger_ns, 1, three);
		gangs_share_four("wfq", stagger_ns, 1, three);
	}
}

/* Under wfq a short request ends another's turn at once, whoever waits for the end of that turn. */
static void short_requests_do_not_wait_for_gangs(void **state)
{
	struct world *w = world_new();
	uint32_t device[2], train[2][2], serve, gang[2], client = world_client(w), i, k, count = 0;

	for (i = 0; i < 2; i++) {
		device[i] = world_device(
			w, (struct world_setup){
				   .policy = "wfq",
				   .attr = { .unit = GP_UNIT_PROCESS },
				   .param = { .turn_ns = 40 * MS, .age_window_ns = 1000 * S, .rest_ns = 3600 * S } });
		for (k = 0; k < 2; k++)
			train[i][k] = world_solo(w, device[i], GP_PRIORITY_LOW);
	}
	serve = world_solo(w, device[0], GP_PRIORITY_LOW);
	w->ack_delay_ns = 100 * US;
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 2; k++)
			world_write(w, train[i][k], 1000000);
		world_run(w, 17 * MS);
	}
	for (i = 0; i < 2; i++) {
		gang[i] = world_queue_attr(w, client, device[i],
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
		world_write(w, gang[i], 1000000);
	}
	for (i = 0; i < 100; i++) {
		uint64_t begin_ns = w->now_ns, open_ns = w->queues[serve].open_ns;
		bool gang_ran = false;

		world_write(w, serve, 1);
		do {
			/* its turn is not ended early */
			gang_ran |= w->now_ns - begin_ns < 3 * MS && world_is_open(w, gang[0]);
			world_run(w, 100 * US);
		} while (w->queues[serve].open_ns - open_ns < 2 * MS);
		world_drain(w, serve);
		if (i > 10 && !gang_ran) { /* by then it is known how short they are */
			assert_true(w->now_ns - begin_ns < 4 * MS);
			count++;
		}
		world_run(w, 30 * MS + i % 7 * MS);
	}
	assert_true(count > 20);
	for (i = 0; i < 2; i++)
		assert_true(w->queues[gang[i]].open_ns > w->queues[train[i][0]].open_ns * 3 / 4);
	world_free(w);
}

/* Two devices, each with a high client that has work, and a gang of two clients. The gang has its aged turn, which the
 * member on the first device owns; a low client on the second device is due a moment later. */
struct owners {
	struct world *w;
	uint32_t gang[2], low;
};

#define OWNERS_WINDOW_NS (100 * MS)
#define OWNERS_SPENT_NS  (5 * MS) /* an order that is not answered is given up then, too */

static struct owners owners_new(bool answers)
{
	struct owners o = { .w = world_new() };
	uint32_t device[2], high, i;

	for (i = 0; i < 2; i++)
		device[i] = world_device(o.w, (struct world_setup){ .attr = { .unit = GP_UNIT_PROCESS,
									      .ack_timeout_ns = OWNERS_SPENT_NS },
								    .param = { .age_window_ns = OWNERS_WINDOW_NS,
									       .age_turn_ns = 20 * MS,
									       .fail_max = 1 } });
	o.low = world_solo(o.w, device[1], GP_PRIORITY_LOW);
	for (i = 0; i < 2; i++)
		o.gang[i] = world_queue_attr(o.w, world_client(o.w), device[i],
					     (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
	world_write(o.w, o.gang[0], 1000000);
	for (i = 0; i < 2; i++) {
		high = world_solo(o.w, device[i], GP_PRIORITY_HIGH);
		world_write(o.w, high, 1000000);
	}
	world_run(o.w, OWNERS_SPENT_NS + 1 * MS);
	world_write(o.w, o.low, 1000000);
	world_run(o.w, OWNERS_WINDOW_NS - OWNERS_SPENT_NS - 2 * MS);
	o.w->ack = answers ? WORLD_ACK_DELAYED : WORLD_ACK_BY_HAND;
	world_run(o.w, 1 * MS);
	if (!answers)
		world_ack(o.w, 1);
	world_run(o.w, OWNERS_SPENT_NS);
	assert_true(world_is_open(o.w, o.gang[0]) == answers && world_is_open(o.w, o.gang[1]));
	assert_false(world_is_open(o.w, o.low));
	return o;
}

/* The turn took so long on the second device, too: at 100 per mille the next one comes when ten times that is over. */
static void owners_check(const struct owners *o)
{
	world_run(o->w, 8 * OWNERS_SPENT_NS);
	assert_false(world_is_open(o->w, o->low));
	world_run(o->w, 2 * OWNERS_SPENT_NS);
	assert_true(world_is_open(o->w, o->low));
	world_free(o->w);
}

/* The owner leaves in the middle of the turn: the gang's other device pays for what it took until then. */
static void owner_that_leaves_is_charged_everywhere(void **state)
{
	struct owners o = owners_new(true);

	(void)state;
	world_remove_client(o.w, o.w->queues[o.gang[0]].client);
	owners_check(&o);
}

/* The same, where the owner's client has another queue on the device, and so stays there. */
static void owner_whose_queue_leaves_is_charged_everywhere(void **state)
{
	struct owners o = owners_new(true);

	(void)state;
	(void)world_queue(o.w, o.w->queues[o.gang[0]].client, 0, GP_PRIORITY_LOW);
	world_remove(o.w, o.gang[0]);
	owners_check(&o);
}

/* The owner does not answer, and is left alone in quarantine. */
static void owner_that_gets_stuck_is_charged_everywhere(void **state)
{
	struct owners o = owners_new(false);

	(void)state;
	world_run(o.w, 1 * MS);
	assert_int_equal(world_gate(o.w, o.gang[0]), GP_GATE_QUARANTINED);
	o.w->ack = WORLD_ACK_DELAYED;
	owners_check(&o);
}

/* Something urgent on device 0 closes a gang for long. On device 1 the gang has the turn and does not use it: an equal
 * there has it after as long as a turn lasts. When the urgent work is over the gang gets its turns back. */
static void closed_gang_does_not_keep_its_turn(void **state)
{
	struct world *w = world_new();
	uint32_t device[2], high[2], gang[2], solo, client = world_client(w), i;
	uint64_t gang_ns, solo_ns;

	(void)state;
	for (i = 0; i < 2; i++) {
		device[i] = world_device(
			w, (struct world_setup){
				   .attr = { .unit = GP_UNIT_PROCESS },
				   .param = { .turn_ns = 10 * MS, .age_window_ns = 1000 * S, .rest_ns = 3600 * S } });
		high[i] = world_solo(w, device[i], GP_PRIORITY_HIGH);
		gang[i] = world_queue_attr(w, client, device[i],
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
	}
	world_settle(w);
	solo = world_solo(w, device[1], GP_PRIORITY_LOW);
	for (i = 0; i < 2; i++)
		world_write(w, gang[i], 1000000);
	world_run(w, 1 * MS);
	assert_true(world_is_open(w, gang[0]) && world_is_open(w, gang[1]));
	world_write(w, solo, 1000000);
	world_write(w, high[0], 1000000);
	world_run(w, 9 * MS); /* the gang may be back in a moment: for so long its turn is kept */
	assert_false(world_is_open(w, gang[1]) || world_is_open(w, solo));
	world_run(w, 3 * MS);
	assert_true(world_is_open(w, solo));
	world_run(w, 188 * MS);
	assert_true(world_is_open(w, solo));
	world_drain(w, high[0]);
	world_run(w, 1 * MS); /* the other's turn is long over */
	assert_true(world_is_open(w, gang[0]) && world_is_open(w, gang[1]) && !world_is_open(w, solo));
	gang_ns = w->queues[gang[1]].open_ns;
	solo_ns = w->queues[solo].open_ns;
	world_run(w, 200 * MS);
	assert_in_range(w->queues[gang[1]].open_ns - gang_ns, 90 * MS, 110 * MS);
	assert_in_range(w->queues[solo].open_ns - solo_ns, 90 * MS, 110 * MS);
	world_free(w);
}

/* Short requests do not cost the gang its turn: it would have a moment for each whole turn of the other. */
static void gang_keeps_its_turn_through_requests(void **state)
{
	struct world *w = world_new();
	uint32_t device[2], high[2], gang[2], solo, client = world_client(w), i;

	(void)state;
	for (i = 0; i < 2; i++) {
		device[i] = world_device(
			w, (struct world_setup){
				   .attr = { .unit = GP_UNIT_PROCESS },
				   .param = { .turn_ns = 20 * MS, .age_window_ns = 1000 * S, .rest_ns = 3600 * S } });
		high[i] = world_solo(w, device[i], GP_PRIORITY_HIGH);
		gang[i] = world_queue_attr(w, client, device[i],
					   (struct gp_queue_attr){ .priority = GP_PRIORITY_LOW, .gang = 1 });
		world_write(w, gang[i], 1000000);
	}
	solo = world_solo(w, device[1], GP_PRIORITY_LOW);
	world_write(w, solo, 1000000);
	for (i = 0; i < 200; i++) {
		world_write(w, high[0], 1);
		world_run(w, 3 * MS);
		world_drain(w, high[0]);
		world_run(w, 7 * MS);
	}
	assert_true(w->queues[gang[1]].open_ns > 700 * MS);
	assert_true(w->queues[solo].open_ns > 700 * MS);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gang_gets_its_share),
		cmocka_unit_test(three_gangs_take_turns),
		cmocka_unit_test(gang_that_cannot_be_next_keeps_nobody),
		cmocka_unit_test(turns_are_not_kept_for_ever),
		cmocka_unit_test(gangs_on_many_devices_get_their_share),
		cmocka_unit_test(short_requests_do_not_wait_for_gangs),
		cmocka_unit_test(owner_that_leaves_is_charged_everywhere),
		cmocka_unit_test(owner_whose_queue_leaves_is_charged_everywhere),
		cmocka_unit_test(owner_that_gets_stuck_is_charged_everywhere),
		cmocka_unit_test(closed_gang_does_not_keep_its_turn),
		cmocka_unit_test(gang_keeps_its_turn_through_requests),
	};

	return cmocka_run_group_tests_name("core_gang_shares", tests, NULL, NULL);
}
