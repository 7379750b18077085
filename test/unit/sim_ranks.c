/* SPDX-License-Identifier: MIT */
/*
 * Collectives of several clients (meets): a rank's kernel stays on its device until all ranks of its job have started
 * theirs; a rank put aside for urgent work leaves the others spinning, unless they are a gang; the end of a rank
 * releases its peers; and when arrivals stop, every rank does what the others wait for.
 */
#include <errno.h>
#include "test/unit/sim_fixture.h"

#define RANKS 4u

static struct gp_desc desc;
static struct gp_workload workload;

/* clang-format off */
static const char four_ranks[] =
	"[mix]\ndevices = 4\n"
	"[client rank]\nkind = batch\npriority = 20\ncount = 4\ndevices = each\nmeets = 1\ngang = %u\n"
	"step = kernel full 1ms x2\nstep = collective 25%% 10us\n"
	"[client serve]\nkind = service\npriority = 80\ndevices = 2\narrival = poisson\nload = 30%%\nstep = kernel full 2ms\n";
/* clang-format on */

static void draw(unsigned int gang)
{
	char text[1024];

	snprintf(text, sizeof(text), four_ranks, gang);
	fixture_mix(text, &desc, &workload);
}

static uint64_t spin_ns(const struct gp_sim *sim)
{
	struct gp_sim_client_info info;
	uint64_t total_ns = 0;
	uint32_t i;

	for (i = 0; i < RANKS; i++) {
		gp_sim_client(sim, i, &info);
		total_ns += info.spin_ns;
	}
	return total_ns;
}

/* How far the ranks are apart. */
static uint64_t lead(const struct gp_sim *sim)
{
	struct gp_sim_client_info info;
	uint64_t least = UINT64_MAX, most = 0;
	uint32_t i;

	for (i = 0; i < RANKS; i++) {
		gp_sim_client(sim, i, &info);
		least = info.completed < least ? info.completed : least;
		most = info.completed > most ? info.completed : most;
	}
	return most - least;
}

static void drain(struct gp_sim *sim)
{
	struct gp_sim_client_info info;
	uint32_t i;

	gp_sim_stop_arrivals(sim);
	gp_sim_run_until(sim, gp_sim_now_ns(sim) + 20 * S);
	assert_true(gp_sim_is_drained(sim));
	for (i = 0; i < RANKS + 1; i++) {
		gp_sim_client(sim, i, &info);
		assert_int_equal(info.workgroups_done, info.workgroups_submitted);
	}
	for (i = 0; i < RANKS; i++) {
		assert_null(gp_gpu_check(gp_sim_gpu(sim, i)));
		if (gp_sim_core(sim))
			assert_null(gp_sched_check(gp_sim_core(sim)));
	}
}

/* Four run as one, and a gang is put aside as one. Without it three spin for as long as the fourth is away. */
static void test_gang(void **state)
{
	uint64_t spun_ns[2];
	uint32_t gang, i;

	(void)state;
	for (gang = 0; gang < 2; gang++) {
		struct gp_sim_config config;
		struct gp_sim_client_info info;
		struct gp_sim *sim;

		draw(gang);
		config = fixture_config(&desc, &workload);
		sim = fixture_sim(&config);
		gp_sim_run(sim);
		spun_ns[gang] = spin_ns(sim);
		assert_true(lead(sim) <= 1);
		for (i = 0; i < RANKS + 1; i++) {
			gp_sim_client(sim, i, &info);
			assert_true(info.completed > 50);
		}
		drain(sim);
		assert_int_equal(lead(sim), 0);
		gp_sim_destroy(sim);
		gp_workload_fini(&workload);
	}
	if (spun_ns[0] < 10 * spun_ns[1])
		fail_msg("with a gang they spun %llu ns, without one %llu ns", (unsigned long long)spun_ns[1],
			 (unsigned long long)spun_ns[0]);
}

/* No core: nothing is put aside, and they wait for the slowest. The modes that hold clients back on the host end, too.
 */
static void test_without_core(void **state)
{
	static const enum gp_sim_mode modes[] = { GP_SIM_STOCK, GP_SIM_LV1 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct gp_sim_config config;
		struct gp_sim *sim;

		draw(0);
		config = fixture_config(&desc, &workload);
		config.mode = modes[i];
		sim = fixture_sim(&config);
		gp_sim_run(sim);
		assert_true(lead(sim) <= 1);
		assert_true(spin_ns(sim) > 0);
		drain(sim);
		gp_sim_destroy(sim);
		gp_workload_fini(&workload);
	}
}

/* Each rank dies, and in some runs comes back, at many moments: of the others none waits for ever. */
static void test_death(void **state)
{
	uint64_t at_ns;

	(void)state;
	for (at_ns = 0; at_ns < 12 * MS; at_ns += 370 * US) {
		struct gp_sim_fault fault = { .time_ns = at_ns,
					      .type = GP_SIM_FAULT_DEATH,
					      .client = (uint32_t)(at_ns / (370 * US) % RANKS),
					      .respawn_ns = at_ns % 3 ? 5 * MS : 0 };
		struct gp_sim_config config;
		struct gp_sim *sim;

		draw(1);
		config = fixture_config(&desc, &workload);
		config.duration_ns = 40 * MS;
		sim = fixture_sim(&config);
		assert_int_equal(gp_sim_add_fault(sim, &fault), 0);
		gp_sim_run(sim);
		drain(sim);
		gp_sim_destroy(sim);
		gp_workload_fini(&workload);
	}
}

/* Ranks with requests of their own, at times of their own: the early ones wait for the late ones, and those that had
 * fewer when arrivals stopped do the rest. One has two devices, one starts late. */
static void test_arrivals(void **state)
{
	/* clang-format off */
	static const char text[] =
		"[mix]\ndevices = 3\n"
		"[client one]\nkind = service\npriority = 20\ndevices = 0\nmeets = 3\ngang = 2\narrival = poisson\nload = 20%\n"
		"step = kernel full 1ms\nstep = collective 4 0.1ms x2\n"
		"[client two]\nkind = service\npriority = 20\ndevices = 1,2\nmeets = 3\ngang = 2\narrival = periodic\nload = 30%\n"
		"step = collective 4 0.1ms\nstep = kernel 10% 1ms\nstep = collective 4 0.2ms\n"
		"[client three]\nkind = batch\npriority = 20\ndevices = 1\nmeets = 3\ngang = 2\nstart = 30ms\ndepth = 2\n"
		"step = collective 4 0.1ms x2\nstep = kernel full 0.3ms\n"
		"[client urgent]\nkind = service\npriority = 80\ndevices = 1\narrival = poisson\nload = 20%\nstep = kernel full 1ms\n"
		"[client other]\nkind = batch\npriority = 20\ndevices = 0\nstep = kernel full 3ms\n";
	/* clang-format on */
	uint64_t seed;

	(void)state;
	fixture_mix(text, &desc, &workload);
	for (seed = 1; seed < 30; seed++) {
		struct gp_sim_config config = fixture_config(&desc, &workload);
		struct gp_sim_client_info info[3];
		struct gp_sim *sim;
		uint32_t i;

		config.seed = seed;
		config.duration_ns = 100 * MS;
		sim = fixture_sim(&config);
		gp_sim_run(sim);
		gp_sim_stop_arrivals(sim);
		gp_sim_run_until(sim, 20 * S);
		assert_true(gp_sim_is_drained(sim));
		for (i = 0; i < 3; i++)
			gp_sim_client(sim, i, &info[i]);
		assert_true(info[0].completed > 1 && info[0].completed == info[1].completed &&
			    info[0].completed == info[2].completed);
		gp_sim_destroy(sim);
	}
	gp_workload_fini(&workload);
}

static void refused(const char *text, const char *part)
{
	struct gp_mix_options options = { .desc = &desc };
	struct gp_error error = { "" };

	assert_int_equal(gp_mix_parse(text, strlen(text), "test.ini", &options, &workload, &error), -EINVAL);
	if (!strstr(error.text, part))
		fail_msg("\"%s\" does not say \"%s\"", error.text, part);
}

static void test_refused(void **state)
{
	struct gp_sim_config config;
	struct gp_error error = { "" };
	struct gp_sim *sim;

	(void)state;
	refused("[client a]\nkind = batch\nmeets = 1\nstep = collective 1 1ms\n"
		"[client b]\nkind = batch\nmeets = 1\nstep = collective 1 1ms x2\n",
		"clients a and b are ranks of one job");
	refused("[client a]\nkind = batch\nmeets = 1\nstep = collective 1 1ms repeat-by=context\n",
		"cannot be repeated");
	refused("[client a]\nkind = batch\ncount = 65\nmeets = 1\nstep = collective 1 1ms\n", "more than 64 ranks");
	refused("[client a]\nkind = batch\nmeets = x\nstep = collective 1 1ms\n", "meets");
	draw(0);
	config = fixture_config(&desc, &workload);
	config.mode = GP_SIM_SEQUENTIAL;
	assert_int_equal(gp_sim_create(&config, &sim, &error), -EINVAL);
	assert_non_null(strstr(error.text, "would wait for each other for ever"));
	gp_workload_fini(&workload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gang),     cmocka_unit_test(test_without_core), cmocka_unit_test(test_death),
		cmocka_unit_test(test_arrivals), cmocka_unit_test(test_refused),
	};

	fixture_desc("mi300x", &desc);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
