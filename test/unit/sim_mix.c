/* SPDX-License-Identifier: MIT */
#include "test/unit/sim_fixture.h"

static struct gp_desc desc;

static int refuse(const char *text, char *ret_sentence)
{
	struct gp_mix_options options = { .desc = &desc, .no_files = true };
	struct gp_workload workload = { 0 };
	struct gp_error error = { "" };
	int ret = gp_mix_parse(text, strlen(text), "my.ini", &options, &workload, &error);

	if (!ret)
		gp_workload_fini(&workload);
	strcpy(ret_sentence, error.text);
	return ret;
}

/* Every refusal names the file, the line where one exists, and what would be right. */
static void test_refusals(void **state)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{ "[client a]\nkind = servant\n", "my.ini:2: kind is \"servant\"" },
		{ "[client a]\nkind = batch\npriority = 100\nstep = kernel full 1ms\n", "my.ini:3: " },
		{ "[client a]\nkind = batch\nstep = kernel full\n", "my.ini:3: a step is \"kernel WORKGROUPS TIME\"" },
		{ "[client a]\nkind = batch\nstep = kernel full 1\n", "my.ini:3: " },
		{ "[client a]\nkind = batch\nstep = kernel 0 1ms\n", "my.ini:3: " },
		{ "[client a]\nkind = batch\nstep = kernel full 1ms lds=1GiB\n", "my.ini:3: " },
		{ "[client a]\nkind = batch\nstep = kernel full 1ms wave=3\n", "my.ini:3: \"wave=3\" is not known" },
		{ "[client a]\nkind = batch\nstep = copy 1MiB sideways\n",
		  "my.ini:3: a copy goes to-device or to-host" },
		{ "[client a]\nkind = batch\nstep = kernel full 1ms after=7\n",
		  "my.ini: client a, step 1: waits for step 7" },
		{ "[client a]\nkind = batch\nstep = kernel full 1ms queue=3\n", "my.ini: client a, step 1: queue 3" },
		{ "[client a]\nkind = service\nstep = kernel full 1ms\n", "a service needs arrival" },
		{ "[client a]\nstep = kernel full 1ms\n", "kind is missing" },
		{ "[client a]\nkind = batch\n", "neither steps nor a sequence" },
		{ "[client a]\nkind = batch\nsequence = nix\n",
		  "there is no sequence \"nix\" above it; there is none" },
		{ "[client a]\nkind = batch\ncount = 999999\nstep = kernel full 1ms\n", "my.ini:3: " },
		{ "[client a]\nkind = service\narrival = poisson\nrate = 5\n", "my.ini:4: rate is \"5\"" },
		{ "[client a]\nkind = service\noffsets = 2ms 1ms\nstep = kernel full 1ms\n",
		  "arrival 2 is earlier than arrival 1" },
		{ "[client a]\nkind = service\narrival = poisson\nstep = kernel full 1ms\n",
		  "arrival = poisson needs rate, period or load" },
		{ "[client a]\npriority = urgent\n", "my.ini:2: priority is \"urgent\"; it must be 0 to 99" },
		{ "[client a]\nkind = batch\nstep = kernel 101% 1ms\n",
		  "my.ini:3: the share of the device is \"101%\"; "
		  "it must be above 0 and at most 100%" },
		{ "[client a]\nkind = batch\ndevices = 5\nstep = kernel full 1ms\n", "a device that does not exist" },
		{ "[client a]\ncolour = red\n", "my.ini:2: \"colour\" is not a key of a client" },
		{ "[mix]\nduration = 5\n", "my.ini:2: " },
		{ "[mix]\nrequests = ${n}\n", "my.ini:2: \"${n}\" is not a parameter" },
		{ "[something]\n", "my.ini:1: [something] is not a section" },
		{ "[sequence a]\n[client b]\n", "the sequence above has no steps" },
		{ "[sequence a]\nkernels = x.csv\n", "my.ini:2: " },
		{ "key = 1\n", "my.ini:1: " },
		{ "[client a]\nkind = service\narrival = poisson\nrate = 5/s\nload = 10%\n",
		  "my.ini:5: rate and load both say how often" },
		{ "[client a]\nkind = service\nperiod = 5ms\nrate = 5/s\n", "my.ini:4: period and rate both say" },
		{ "[client a]\nkind = batch\npriority = 10\npriority = 20\n",
		  "my.ini:4: \"priority\" is given twice in this section" },
		{ "[mix]\nduration = 1s\nduration = 2s\n", "my.ini:3: \"duration\" is given twice" },
		{ "[client a]\nkind = batch\nrate = 5/s\n", "my.ini:3: a batch client repeats its steps" },
		{ "[client a]\nload = 5%\nkind = batch\n", "my.ini:3: a batch client repeats its steps" },
		{ "[client a]\nkind = batch\narrival = poisson\n", "\"arrival\" is for services" },
		{ "[client a]\nkind = batch\nstep = kernel full 1ms\n[client a]\nkind = batch\n",
		  "my.ini:4: there are two clients \"a\"" },
		{ "[client a-1]\nkind = batch\nstep = kernel full 1ms\n[client a]\nkind = batch\ncount = 2\nstep = kernel "
		  "full 1ms\n",
		  "there are two clients \"a-1\"" },
		{ "", "the mix has no clients" },
	};
	char sentence[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!refuse(cases[i].text, sentence))
			fail_msg("accepted: %s", cases[i].text);
		if (!strstr(sentence, cases[i].sentence) || strncmp(sentence, "my.ini", 6))
			fail_msg("\"%s\" gave \"%s\"", cases[i].text, sentence);
	}
}

/* A section with count makes so many clients, and its load is that of all together. */
static void test_count_and_load(void **state)
{
	struct gp_workload workload;

	(void)state;
	fixture_mix("[client a]\nkind = service\ncount = 4\narrival = poisson\nload = 50%\nstagger = 1ms\n"
		    "step = kernel full 1ms x2\n",
		    &desc, &workload);
	assert_int_equal(workload.client_count, 4);
	assert_string_equal(workload.clients[3].name, "a-4");
	assert_int_equal(workload.clients[3].start_ns, 3 * MS);
	/* 2 ms each at half load would be one every 4 ms; four clients share that. */
	assert_int_equal(workload.clients[0].period_ns, 16 * MS);
	gp_workload_fini(&workload);
}

/* Settings replace a parameter's default; one the mix does not declare is refused with those it does. */
static void test_parameters(void **state)
{
	static const char text[] = "[parameters]\nn = 3\n[client a]\nkind = batch\nstep = kernel ${n} 1ms\n";
	struct gp_mix_options options = { .desc = &desc, .setting_count = 1, .settings = { "n=5" } };
	struct gp_workload workload;
	struct gp_error error;

	(void)state;
	assert_int_equal(gp_mix_parse(text, strlen(text), "p", &options, &workload, &error), 0);
	assert_int_equal(workload.sequences[0].steps[0].kernel.workgroups, 5);
	gp_workload_fini(&workload);
	options.settings[0] = "m=5";
	assert_true(gp_mix_parse(text, strlen(text), "p", &options, &workload, &error) < 0);
	assert_non_null(strstr(error.text, "no parameter \"m\"; it has: n (3)"));
}

/* full, full/R and shares are counted in what the device holds; a step follows the one before it. */
static void test_steps(void **state)
{
	struct gp_workload workload;
	const struct gp_work_step *steps;
	uint32_t capacity;

	(void)state;
	fixture_mix("[client a]\nkind = batch\nqueues = 2\nstep = kernel full 8ms\nstep = kernel full/4 8ms\n"
		    "step = kernel 25% 1us\nstep = copy 2MiB to-host after=none\n"
		    "step = kernel 7 1us x9 queue=1 waves=8 vgprs=32 lds=1KiB after=1,2\n",
		    &desc, &workload);
	steps = workload.sequences[0].steps;
	capacity = gp_gpu_capacity(&desc, &steps[0].kernel);
	assert_int_equal(steps[0].kernel.workgroups, capacity);
	assert_int_equal(steps[1].kernel.workgroups, capacity * 4);
	assert_int_equal(steps[1].kernel.workgroup_ns, 2 * MS);
	assert_int_equal(steps[2].kernel.workgroups, capacity / 4);
	assert_int_equal(steps[2].deps[0], 2);
	assert_int_equal(steps[3].deps[0], 0);
	assert_true(steps[3].to_host);
	assert_int_equal(steps[4].repeat, 9);
	assert_int_equal(steps[4].kernel.lds_size, 1024);
	assert_int_equal(steps[4].deps[1], 2);
	gp_workload_fini(&workload);
}

/* Every built-in mix loads for every device, with the data files it names. */
static void test_built_in(void **state)
{
	struct gp_paths_names *mixes = malloc(sizeof(*mixes)), *devices = malloc(sizeof(*devices));
	struct gp_mix_options options = { 0 };
	struct gp_workload workload;
	struct gp_error error;
	struct gp_desc other;
	uint32_t i, k;

	(void)state;
	assert_int_equal(gp_paths_list("mixes", ".ini", mixes), 0);
	assert_int_equal(gp_paths_list("devices", ".ini", devices), 0);
	assert_true(mixes->count >= 12);
	for (k = 0; k < devices->count; k++) {
		fixture_desc(devices->names[k], &other);
		options.desc = &other;
		for (i = 0; i < mixes->count; i++) {
			if (gp_mix_load(mixes->names[i], &options, &workload, &error))
				fail_msg("%s on %s: %s", mixes->names[i], devices->names[k], error.text);
			assert_true(gp_workload_duration_ns(&workload, 1) > 0);
			gp_workload_fini(&workload);
		}
	}
	free(mixes);
	free(devices);
}

/* serve+train lasts until the 10,100th request of its seed has arrived: counted here with a run of the arrivals
 * alone. */
static void test_target(void **state)
{
	struct gp_mix_options options = { .desc = &desc };
	struct gp_workload workload;
	struct gp_sim_config config;
	struct gp_sim_client_info info;
	struct gp_error error;
	struct gp_sim *sim;

	(void)state;
	assert_int_equal(gp_mix_load("serve+train", &options, &workload, &error), 0);
	config = fixture_config(&desc, &workload);
	config.mode = GP_SIM_STOCK;
	config.has_only_client = true;
	config.duration_ns = gp_workload_duration_ns(&workload, config.seed);
	sim = fixture_sim(&config);
	gp_sim_run(sim);
	gp_sim_client(sim, 0, &info);
	assert_int_equal(info.arrived, 10100);
	gp_sim_destroy(sim);
	gp_workload_fini(&workload);
}

static int setup(void **state)
{
	(void)state;
	fixture_desc("mi300x", &desc);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),   cmocka_unit_test(test_count_and_load),
		cmocka_unit_test(test_parameters), cmocka_unit_test(test_steps),
		cmocka_unit_test(test_built_in),   cmocka_unit_test(test_target),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
