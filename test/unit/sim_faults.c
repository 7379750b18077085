/* SPDX-License-Identifier: MIT */
#include "test/unit/sim_fixture.h"

static struct gp_desc desc;
static struct gp_workload workload;

static void drain(struct gp_sim *sim)
{
	const char *wrong;

	gp_sim_stop_arrivals(sim);
	gp_sim_run_until(sim, gp_sim_now_ns(sim) + 30 * S);
	assert_true(gp_sim_is_drained(sim));
	wrong = gp_sched_check(gp_sim_core(sim));
	if (wrong)
		fail_msg("%s", wrong);
}

/* A client that dies with work under way loses it; the rest goes on; started again it works again. */
static void test_death_and_return(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct gp_sim_fault fault = { .type = GP_SIM_FAULT_DEATH,
				      .client = 1,
				      .time_ns = 100 * MS,
				      .notice_ns = 3 * MS,
				      .respawn_ns = 50 * MS };
	struct gp_sim *sim = fixture_sim(&config);
	struct gp_sim_client_info info;

	(void)state;
	assert_int_equal(gp_sim_add_fault(sim, &fault), 0);
	gp_sim_run_until(sim, 102 * MS);
	gp_sim_client(sim, 1, &info);
	assert_false(info.alive);
	assert_true(info.in_core);
	assert_true(info.lost >= 1);
	gp_sim_run_until(sim, 104 * MS);
	gp_sim_client(sim, 1, &info);
	assert_false(info.in_core);
	gp_sim_run_until(sim, 160 * MS);
	gp_sim_client(sim, 1, &info);
	assert_true(info.alive && info.in_core);
	gp_sim_run(sim);
	drain(sim);
	gp_sim_client(sim, 1, &info);
	assert_int_equal(info.arrived, info.completed + info.lost);
	assert_int_equal(info.workgroups_submitted, info.workgroups_done);
	gp_sim_destroy(sim);
}

/* A reset kills every process on the device; core and processes come back, and everything then drains. */
static void test_reset(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct gp_sim_fault fault = { .type = GP_SIM_FAULT_RESET,
				      .time_ns = 200 * MS,
				      .notice_ns = 1 * MS,
				      .respawn_ns = 20 * MS };
	struct gp_sim *sim = fixture_sim(&config);
	struct gp_sim_client_info info;
	uint64_t done;
	uint32_t i;

	(void)state;
	assert_int_equal(gp_sim_add_fault(sim, &fault), 0);
	gp_sim_run_until(sim, 210 * MS);
	for (i = 0; i < workload.client_count; i++) {
		gp_sim_client(sim, i, &info);
		assert_false(info.alive);
	}
	gp_sim_client(sim, 2, &info);
	done = info.completed;
	gp_sim_run(sim);
	drain(sim);
	gp_sim_client(sim, 2, &info);
	assert_true(info.completed > done);
	assert_int_equal(info.workgroups_submitted, info.workgroups_done);
	gp_sim_destroy(sim);
}

struct acks {
	uint32_t seen, given, ok;
};

static void acks_fate(void *context, uint32_t device, uint32_t client, uint64_t now_ns, struct gp_sim_ack_fate *fate)
{
	struct acks *acks = context;

	(void)device;
	(void)client;
	(void)now_ns;
	switch (acks->seen++ % 4) {
	case 0: fate->drop = true; return;
	case 1: fate->delay_ns = 3 * MS; break;
	case 2:
		fate->copies = 2;
		fate->copy_delay_ns = 10 * US;
		break;
	default: break;
	}
	acks->given += 1 + fate->copies;
}

static void acks_delivered(void *context, const struct gp_order *order, uint64_t seq, int result, bool first, int ret,
			   uint64_t now_ns)
{
	struct acks *acks = context;

	(void)order;
	(void)seq;
	(void)result;
	(void)now_ns;
	acks->given -= first;
	acks->ok += !ret;
}

/* Lost, late and doubled acknowledgements: each is delivered as often as its fate says, and everything still drains. */
static void test_acknowledgements(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct acks acks = { 0 };
	struct gp_sim_faults faults = { .context = &acks, .ack = acks_fate };
	struct gp_sim_observer observer = { .context = &acks, .ack = acks_delivered };
	struct gp_sim *sim;

	(void)state;
	config.faults = &faults;
	config.observer = &observer;
	config.ack_timeout_ns = 5 * MS;
	sim = fixture_sim(&config);
	gp_sim_run(sim);
	drain(sim);
	assert_true(acks.seen > 8);
	assert_true(acks.ok > 0);
	assert_int_equal(acks.given, 0);
	gp_sim_destroy(sim);
}

/* A close that fails, one that hangs until a reset, a lease that runs out, a fork, changed priorities, empty hints,
 * a jumping clock: the simulation goes on, and drains. */
static void test_everything_else(void **state)
{
	static const struct gp_sim_fault faults[] = {
		{ .type = GP_SIM_FAULT_CLOSE_FAILS, .time_ns = 10 * MS, .queue = 4 },
		{ .type = GP_SIM_FAULT_FORK, .time_ns = 20 * MS, .client = 1, .respawn_ns = 30 * MS },
		{ .type = GP_SIM_FAULT_PRIORITY, .time_ns = 40 * MS, .client = 1, .value = 95, .notice_ns = 5 * US },
		{ .type = GP_SIM_FAULT_PRIORITY, .time_ns = 90 * MS, .client = 1, .value = 20, .notice_ns = 5 * US },
		{ .type = GP_SIM_FAULT_HINT, .time_ns = 100 * MS, .client = 0, .value = 1000000 },
		{ .type = GP_SIM_FAULT_CLOCK, .time_ns = 120 * MS, .value = 500000000 },
		{ .type = GP_SIM_FAULT_CLOCK, .time_ns = 150 * MS, .value = -400000000 },
		{ .type = GP_SIM_FAULT_GATE_LOST, .time_ns = 160 * MS, .queue = 4, .notice_ns = 1000000 },
		{ .type = GP_SIM_FAULT_CLOSE_HANGS, .time_ns = 200 * MS, .queue = 4 },
		{ .type = GP_SIM_FAULT_RESET, .time_ns = 350 * MS, .notice_ns = 1000000, .respawn_ns = 5000000 },
	};
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct gp_sim *sim = fixture_sim(&config);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_int_equal(gp_sim_add_fault(sim, &faults[i]), 0);
	gp_sim_run(sim);
	drain(sim);
	gp_sim_destroy(sim);
}

/* Gates that open by themselves, which the core hears of so late that it had them opened and closed meanwhile: it takes
 * none for open that was closed since. */
static void test_late_news(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct gp_sim *sim = fixture_sim(&config);
	struct gp_sim_fault fault = { .type = GP_SIM_FAULT_GATE_LOST, .notice_ns = 5 * MS };
	struct gp_sim_queue_info info;
	struct gp_queue_info core;
	uint32_t i;

	(void)state;
	gp_sim_run_until(sim, 5 * MS);
	for (fault.time_ns = 10 * MS; fault.time_ns < 400 * MS; fault.time_ns += MS) {
		fault.queue = (uint32_t)(fault.time_ns / MS % gp_sim_queue_count(sim));
		assert_int_equal(gp_sim_add_fault(sim, &fault), 0);
	}
	while (gp_sim_next_ns(sim) <= config.duration_ns) {
		gp_sim_step(sim);
		for (i = 0; i < gp_sim_queue_count(sim); i++) {
			gp_sim_queue(sim, i, &info);
			if (info.in_core && !gp_sched_queue_info(gp_sim_core(sim), info.core_queue, &core))
				assert_false(info.closed && core.gate == GP_GATE_OPEN);
		}
	}
	drain(sim);
	gp_sim_destroy(sim);
}

/* Faults that make no sense are refused. */
static void test_refused(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct gp_sim *sim = fixture_sim(&config);
	struct gp_sim_fault fault = { .type = GP_SIM_FAULT_DEATH, .client = 99 };

	(void)state;
	assert_int_equal(gp_sim_add_fault(sim, &fault), -EINVAL);
	fault = (struct gp_sim_fault){ .type = GP_SIM_FAULT_RESET, .device = 1 };
	assert_int_equal(gp_sim_add_fault(sim, &fault), -EINVAL);
	fault = (struct gp_sim_fault){ .type = GP_SIM_FAULT_PRIORITY, .value = 100 };
	assert_int_equal(gp_sim_add_fault(sim, &fault), -EINVAL);
	gp_sim_run_until(sim, 10 * MS);
	fault = (struct gp_sim_fault){ .type = GP_SIM_FAULT_DEATH, .time_ns = 5 * MS };
	assert_int_equal(gp_sim_add_fault(sim, &fault), -EINVAL);
	gp_sim_destroy(sim);
}

static int setup(void **state)
{
	(void)state;
	fixture_desc("mi300x", &desc);
	fixture_mix(fixture_mixed, &desc, &workload);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gp_workload_fini(&workload);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_death_and_return), cmocka_unit_test(test_reset),
		cmocka_unit_test(test_acknowledgements), cmocka_unit_test(test_everything_else),
		cmocka_unit_test(test_late_news),        cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
