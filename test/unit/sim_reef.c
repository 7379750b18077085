/* SPDX-License-Identifier: MIT */
/* REEF's MI50 models: joined with their profiles, the real files, and every refusal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/paths.h"
#include "sim/reef.h"

static struct gp_reef reef;
static struct gp_error error;

#define PROFILE                                                                                       \
	"{\"model_latency\":50,\"kernel_latency\":{\"k\":{\"total_latency\":30,\"latency\":[28,30]}," \
	"\"l\":{\"total_latency\":1}}}"
#define MODEL(kernels) "{\"kernels\":[" kernels "]}"

static int parse(const char *model, const char *profile)
{
	struct gp_reef_text model_text = { model, strlen(model), "m.json" },
			    profile_text = { profile, strlen(profile), "p.json" };

	return gp_reef_parse(&model_text, &profile_text, &reef, &error);
}

/* Kernels in launch order with dims, time, LDS (which stands behind them) and how many fit a compute unit. */
static void test_joins(void **state)
{
	(void)state;
	assert_int_equal(
		parse("{\"storage\":[{\"name\":\"x\"}],\"kernels\":[{\"name\":\"k\",\"launch_params\":[8,2,2,1,16,16],"
		      "\"args\":[1]},"
		      "{\"name\":\"l\",\"launch_params\":[1,1,1,64,1,1]},{\"name\":\"k\",\"launch_params\":[1,1,1,64,"
		      "1,1]}],"
		      "\"shared_memory\":{\"k\":4096,\"unused\":1}}",
		      PROFILE),
		0);
	assert_int_equal(reef.kernels.count, 3);
	assert_false(reef.kernels.has_times);
	assert_int_equal(reef.model_latency_ns, 50000);
	assert_string_equal(reef.kernels.kernels[0].name, "k");
	assert_int_equal(reef.kernels.kernels[0].workgroups, 32);
	assert_int_equal(reef.kernels.kernels[0].workgroup_size, 256);
	assert_int_equal(reef.kernels.kernels[0].duration_ns, 30000);
	assert_int_equal(reef.kernels.kernels[0].lds_size, 4096);
	assert_int_equal(reef.kernels.kernels[0].per_cu_max, 2);
	assert_int_equal(reef.kernels.kernels[1].duration_ns, 1000);
	assert_int_equal(reef.kernels.kernels[1].per_cu_max, 0);
	assert_int_equal(reef.kernels.kernels[2].lds_size, 4096);
	gp_reef_fini(&reef);
	gp_reef_fini(&reef);
}

/* Each malformed file is refused with its own name and line. */
static void test_refuses(void **state)
{
#define DIMS ",\"launch_params\":[1,1,1,1,1,1]"
	static const struct {
		const char *model, *profile, *says;
	} cases[] = {
		{ MODEL(""), "", "p.json:1: the file ends" },
		{ MODEL(""), "[]", "p.json:1: a profile must be" },
		{ MODEL(""), "{}", "needs model_latency" },
		{ MODEL(""), "{\"model_latency\":0}", "model_latency must be" },
		{ MODEL(""), "{\"kernel_latency\":[]}", "must be an object" },
		{ MODEL(""), "{\"kernel_latency\":{\"\":{}}}", "is empty" },
		{ MODEL(""), "{\"kernel_latency\":{\"k\":3}}", "must be an object" },
		{ MODEL(""), "{\"kernel_latency\":{\"k\":{\"total_latency\":-3}}}", "whole microseconds" },
		{ MODEL(""), "{\"kernel_latency\":{\"k\":{\"latency\":[\"x\"]}}}", "whole microseconds" },
		{ MODEL(""), "{\"kernel_latency\":{\"k\":{\"latency\":3}}}", "must be an array" },
		{ MODEL(""), PROFILE "x", "behind the end" },
		{ "", PROFILE, "m.json:1: the file ends" },
		{ "[]", PROFILE, "a model must be" },
		{ "{}", PROFILE, "needs kernels" },
		{ MODEL(""), PROFILE, "needs kernels" },
		{ MODEL("1"), PROFILE, "must be an object" },
		{ MODEL("{}"), PROFILE, "needs a name" },
		{ MODEL("{\"name\":\"k\"}"), PROFILE, "launch_params" },
		{ MODEL("{\"name\":3}"), PROFILE, "must be a string" },
		{ "\n" MODEL("{\"name\":\"x\"" DIMS "}"), PROFILE, "m.json:2: kernel x is not in the profile" },
		{ MODEL("{\"name\":\"k\",\"launch_params\":[1,1,1,1,1]}"), PROFILE, "six whole" },
		{ MODEL("{\"name\":\"k\",\"launch_params\":[1,1,1,1,1,1,1]}"), PROFILE, "six whole" },
		{ MODEL("{\"name\":\"k\",\"launch_params\":[0,1,1,1,1,1]}"), PROFILE, "six whole" },
		{ MODEL("{\"name\":\"k\",\"launch_params\":[65535,65535,2,1,1,1]}"), PROFILE, "more than 4294967295" },
		{ "{\"shared_memory\":{\"k\":-1}}", PROFILE, "shared_memory must be bytes" },
		{ "{\"shared_memory\":1}", PROFILE, "must be an object" },
		{ MODEL("{\"name\":\"k\"" DIMS "}") "x", PROFILE, "behind the end" },
		{ "{\"kernels\":[{\"name\":\"k\"", PROFILE, "ends in the middle" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(parse(cases[i].model, cases[i].profile) < 0);
		if (!strstr(error.text, cases[i].says))
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, error.text, cases[i].says);
	}
	assert_int_equal(gp_reef_load("/nowhere.json", "/nowhere.json", &reef, &error), -ENOENT);
}

/* The models that come with the program: launches and microseconds, summed independently with another reader. */
static void test_shipped(void **state)
{
	static const struct {
		const char *name;
		uint32_t count;
		uint64_t sum_us, model_us;
	} models[] = {
		{ "bert", 205, 7472, 5426 },        { "densenet", 207, 6132, 3743 }, { "mobilenet", 31, 1260, 1188 },
		{ "resnet152", 207, 15864, 13233 }, { "resnet18", 57, 2640, 2189 },  { "vgg", 71, 5294, 4824 },
	};
	char name[64], model[4096], profile[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		uint64_t sum_ns = 0;

		(void)snprintf(name, sizeof(name), "data/reef-mi50/%s.json", models[i].name);
		assert_int_equal(gp_paths_share(name, model, sizeof(model)), 0);
		(void)snprintf(name, sizeof(name), "data/reef-mi50/%s.profile.json", models[i].name);
		assert_int_equal(gp_paths_share(name, profile, sizeof(profile)), 0);
		assert_int_equal(gp_reef_load(model, profile, &reef, &error), 0);
		assert_int_equal(reef.kernels.count, models[i].count);
		assert_int_equal(reef.model_latency_ns, models[i].model_us * 1000);
		for (uint32_t j = 0; j < reef.kernels.count; j++) {
			sum_ns += reef.kernels.kernels[j].duration_ns;
			assert_true(reef.kernels.kernels[j].per_cu_max > 0);
		}
		assert_int_equal(sum_ns, models[i].sum_us * 1000);
		gp_reef_fini(&reef);
		assert_int_equal(gp_reef_load(model, "/nowhere.json", &reef, &error), -ENOENT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests_name("sim/reef", tests, NULL, NULL);
}
