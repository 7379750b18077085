/* SPDX-License-Identifier: MIT */
#include "test/unit/sim_fixture.h"

static struct gp_desc desc;
static struct gp_workload workload;

static const struct {
	const char *name;
	enum gp_sim_mode mode;
} modes[] = {
	{ "stock", GP_SIM_STOCK }, { "none", GP_SIM_CORE },
	{ "rr", GP_SIM_CORE },     { "hpf", GP_SIM_CORE },
	{ "wfq", GP_SIM_CORE },    { "edf", GP_SIM_CORE },
	{ "drf", GP_SIM_CORE },    { "sequential", GP_SIM_SEQUENTIAL },
	{ "lv1", GP_SIM_LV1 },     { "reset", GP_SIM_RESET },
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

struct tally {
	uint64_t submitted[3], done[3], packets, ends;
	const struct gp_sim *sim;
};

static void tally_submit(void *context, uint32_t queue, const struct gp_gpu_packet *packet, uint64_t now_ns)
{
	struct tally *tally = context;
	struct gp_sim_queue_info info;

	(void)now_ns;
	gp_sim_queue(tally->sim, queue, &info);
	tally->packets++;
	tally->submitted[info.client] += packet->type == GP_GPU_KERNEL ? packet->kernel.workgroups : 0;
}

static void tally_event(void *context, uint32_t device, const struct gp_gpu_event *event)
{
	struct tally *tally = context;

	(void)device;
	tally->ends += event->type == GP_GPU_EVENT_END;
}

static void run_to_the_end(struct gp_sim_config config, const char *name)
{
	struct tally tally = { 0 };
	struct gp_sim_observer observer = { .context = &tally, .submit = tally_submit, .gpu_event = tally_event };
	struct gp_sim_client_info info;
	struct gp_sim *sim;
	const char *wrong;
	uint32_t i;

	config.observer = &observer;
	sim = fixture_sim(&config);
	tally.sim = sim;
	gp_sim_run(sim);
	gp_sim_stop_arrivals(sim);
	gp_sim_run_until(sim, config.duration_ns + 20 * S);
	if (!gp_sim_is_drained(sim))
		fail_msg("%s: not drained", name);
	for (i = 0; i < workload.client_count; i++) {
		gp_sim_client(sim, i, &info);
		if (info.workgroups_done != tally.submitted[i] || info.arrived != info.completed)
			fail_msg("%s: client %u ran %llu of %llu workgroups, %llu of %llu jobs", name, i,
				 (unsigned long long)info.workgroups_done, (unsigned long long)tally.submitted[i],
				 (unsigned long long)info.completed, (unsigned long long)info.arrived);
	}
	assert_int_equal(tally.ends, tally.packets);
	wrong = gp_gpu_check(gp_sim_gpu(sim, 0));
	if (!wrong && gp_sim_core(sim))
		wrong = gp_sched_check(gp_sim_core(sim));
	if (wrong)
		fail_msg("%s: %s", name, wrong);
	gp_sim_destroy(sim);
}

/* Whatever is preempted, killed or held back: once arrivals stop, every packet ends and every workgroup has run
 * exactly once. */
static void test_every_mode(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	uint32_t i, unit;

	(void)state;
	for (i = 0; i < MODES; i++) {
		config.mode = modes[i].mode;
		config.policy = modes[i].name;
		for (unit = GP_UNIT_DEVICE; unit <= GP_UNIT_QUEUE; unit++) {
			config.unit = unit;
			run_to_the_end(config, modes[i].name);
		}
	}
}

/* The same where counters move at fetch. */
static void test_counters_at_fetch(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	uint32_t i;

	(void)state;
	config.rptr_at_fetch = true;
	for (i = 0; i < MODES; i++) {
		config.mode = modes[i].mode;
		config.policy = modes[i].name;
		run_to_the_end(config, modes[i].name);
	}
}

struct arrivals {
	uint64_t hash, count;
};

static void arrivals_note(void *context, uint32_t client, uint64_t job, uint64_t now_ns)
{
	struct arrivals *arrivals = context;

	if (client) /* the open-loop service only: iterations of batch clients depend on the mode */
		return;
	arrivals->hash = (arrivals->hash ^ now_ns ^ job) * 0x100000001b3ull;
	arrivals->count++;
}

/* Every mode sees the same arrivals at the same times, also when the client is alone; another seed gives others. */
static void test_same_arrivals(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct arrivals arrivals, first = { 0 };
	struct gp_sim_observer observer = { .context = &arrivals, .arrival = arrivals_note };
	struct gp_sim *sim;
	uint32_t i;

	(void)state;
	config.observer = &observer;
	for (i = 0; i < MODES + 2; i++) {
		arrivals = (struct arrivals){ 0 };
		config.mode = i < MODES ? modes[i].mode : GP_SIM_STOCK;
		config.policy = i < MODES ? modes[i].name : "none";
		config.has_only_client = i == MODES;
		config.seed = i > MODES ? 8 : 7;
		sim = fixture_sim(&config);
		gp_sim_run(sim);
		gp_sim_destroy(sim);
		if (!i)
			first = arrivals;
		assert_true(arrivals.count > 100);
		assert_true((arrivals.hash == first.hash) == (i <= MODES));
	}
}

static char *run_json(struct gp_sim_config *config, const char *name)
{
	struct gp_result_run run;
	struct gp_result result = { .seed = config->seed, .run_count = 1, .runs = &run, .device_count = 1 };
	struct gp_error error = { "" };
	char *text = NULL;
	size_t size;
	FILE *stream;

	if (gp_mode_run(config, name, NULL, &run, &error))
		fail_msg("%s", error.text);
	snprintf(run.policy, sizeof(run.policy), "x");
	stream = open_memstream(&text, &size);
	assert_int_equal(gp_view_json(stream, &result), 0);
	fclose(stream);
	gp_sim_result_fini(&run);
	return text;
}

/* With policy none the core watches and does nothing: the same bytes as without it. And a run twice is the same
 * bytes. */
static void test_none_is_stock(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	char *stock = run_json(&config, "stock"), *none = run_json(&config, "none"), *hpf = run_json(&config, "hpf");
	char *again = run_json(&config, "hpf");

	(void)state;
	assert_string_equal(stock, none);
	assert_string_equal(hpf, again);
	assert_string_not_equal(stock, hpf);
	free(stock);
	free(none);
	free(hpf);
	free(again);
}

/* Reset refuses a mix with a lower client that does not say its kernels may run twice. */
static void test_reset_needs_idempotence(void **state)
{
	struct gp_sim_config config = fixture_config(&desc, &workload);
	struct gp_error error = { "" };
	struct gp_sim *sim;

	(void)state;
	config.mode = GP_SIM_RESET;
	workload.clients[1].idempotent = false;
	assert_int_equal(gp_sim_create(&config, &sim, &error), -EINVAL);
	assert_non_null(strstr(error.text, "client train is idempotent"));
	workload.clients[1].idempotent = true;
}

/* A request under way at the end is counted, and its age is in the distribution. */
static void test_unfinished(void **state)
{
	struct gp_sim_config config;
	struct gp_result_run run;
	struct gp_workload small;
	struct gp_error error;

	(void)state;
	fixture_mix("[client a]\nkind = service\noffsets = 0 1ms\nstep = kernel full 100ms\n", &desc, &small);
	config = fixture_config(&desc, &small);
	config.duration_ns = 50 * MS;
	assert_int_equal(gp_mode_run(&config, "stock", NULL, &run, &error), 0);
	assert_int_equal(run.clients[0].requests, 0);
	assert_int_equal(run.clients[0].unfinished, 2);
	assert_int_equal(run.clients[0].latency_ns.count, 2);
	assert_int_equal(run.clients[0].latency_ns.max, 50 * MS);
	gp_sim_result_fini(&run);
	gp_workload_fini(&small);
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
		cmocka_unit_test(test_every_mode),
		cmocka_unit_test(test_counters_at_fetch),
		cmocka_unit_test(test_same_arrivals),
		cmocka_unit_test(test_none_is_stock),
		cmocka_unit_test(test_reset_needs_idempotence),
		cmocka_unit_test(test_unfinished),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
