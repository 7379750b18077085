/* SPDX-License-Identifier: MIT */
/* DISB workloads: the real files, who is urgent, and every refusal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/paths.h"
#include "sim/disb.h"

static struct gp_disb disb;
static struct gp_error error;

static int parse(const char *text)
{
	return gp_disb_parse(text, strlen(text), "d.json", &disb, &error);
}

#define CLIENT     "\"client\":{\"model_name\":\"m\"}"
#define TASK(load) "{\"time\":1,\"tasks\":[{\"id\":\"t\"," CLIENT ",\"load\":{" load "}}]}"

/* All loads; keys that are not known are skipped, whatever they hold. */
static void test_loads(void **state)
{
	(void)state;
	assert_int_equal(parse("{\"x\":[{}],\"time\":60,\"tasks\":[{\"id\":\"a\",\"load\":{\"type\":\"periodic\","
			       "\"frequency\":0.5,\"y\":1},\"z\":{},\"client\":"
			       "{\"model_name\":\"m\",\"batch_size\":4,\"addr\":[]}},"
			       "{\"id\":\"b\",\"load\":{\"type\":\"trace\",\"trace\":[0,10,10,250]}," CLIENT "},"
			       "{\"id\":\"c\",\"load\":{\"type\":\"poisson\",\"frequency\":20.1250}," CLIENT "},"
			       "{\"id\":\"d\",\"load\":{\"type\":\"continuous\"}," CLIENT "}]}"),
			 0);
	assert_int_equal(disb.duration_ns, 60000000000ull);
	assert_int_equal(disb.task_count, 4);
	assert_int_equal(disb.tasks[0].frequency_milli, 500);
	assert_int_equal(disb.tasks[0].batch_size, 4);
	assert_int_equal(disb.tasks[1].trace_count, 4);
	assert_int_equal(disb.tasks[1].trace_ns[3], 250000000);
	assert_int_equal(disb.tasks[1].batch_size, 1);
	assert_int_equal(disb.tasks[2].frequency_milli, 20125);
	assert_int_equal(disb.tasks[3].load, GP_DISB_CONTINUOUS);
	gp_disb_fini(&disb);
	gp_disb_fini(&disb);
}

/* Priority 0 is real time, another one is not, none is not either unless the id says _rt. */
static void test_who_is_urgent(void **state)
{
	(void)state;
	assert_int_equal(
		parse("{\"time\":1,\"tasks\":[{\"id\":\"a\",\"load\":{\"type\":\"continuous\",\"priority\":0}," CLIENT
		      "},"
		      "{\"id\":\"b\",\"load\":{\"type\":\"continuous\",\"priority\":1}," CLIENT "},"
		      "{\"id\":\"c\",\"load\":{\"type\":\"continuous\"}," CLIENT
		      "},{\"id\":\"c_rt\",\"load\":{\"type\":\"continuous\"}," CLIENT "}]}"),
		0);
	assert_true(disb.tasks[0].is_realtime);
	assert_false(disb.tasks[1].is_realtime);
	assert_false(disb.tasks[2].is_realtime);
	assert_true(disb.tasks[3].is_realtime);
	gp_disb_fini(&disb);
}

/* Each malformed file is refused with its line, and nothing is returned or leaked. */
static void test_refuses(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "ends in the middle" },
		{ "[]", "must be an object" },
		{ "{}", "needs time" },
		{ "{\"time\":60}", "at least one task" },
		{ "{\"time\":0}", "from 1 to 86400" },
		{ "{\"time\":1.5}", "from 1 to 86400" },
		{ "{\"time\":1,\"tasks\":{}}", "must be an array" },
		{ "{\"time\":1,\"tasks\":[1]}", "must be an object" },
		{ "{\"time\":1,\"tasks\":[{}]}", "needs an id" },
		{ "{\"time\":1,\"tasks\":[{\"id\":\"\"}]}", "a name is empty" },
		{ "{\"time\":1,\"tasks\":[{\"id\":3}]}", "expected a string" },
		{ TASK(""), "needs an id" },
		{ TASK("\"type\":\"warp\""), "known are: periodic" },
		{ TASK("\"type\":\"periodic\""), "needs a frequency" },
		{ TASK("\"type\":\"poisson\",\"frequency\":0"), "frequency" },
		{ TASK("\"type\":\"poisson\",\"frequency\":-1"), "frequency" },
		{ TASK("\"type\":\"poisson\",\"frequency\":0.0001"), "frequency" },
		{ TASK("\"type\":\"poisson\",\"frequency\":1e3"), "frequency" },
		{ TASK("\"type\":\"poisson\",\"frequency\":1000001"), "frequency" },
		{ TASK("\"type\":\"poisson\",\"frequency\":99999999999999999999999999"), "frequency" },
		{ TASK("\"type\":\"trace\""), "needs a trace" },
		{ TASK("\"type\":\"trace\",\"trace\":[]"), "needs a trace" },
		{ TASK("\"type\":\"trace\",\"trace\":[2,1]"), "must ascend" },
		{ TASK("\"type\":\"trace\",\"trace\":[1.5]"), "whole milliseconds" },
		{ TASK("\"type\":\"trace\",\"trace\":[99999999]"), "at most a day" },
		{ TASK("\"type\":\"trace\",\"trace\":[1],\"trace\":[1]"), "second trace" },
		{ TASK("\"type\":\"continuous\",\"priority\":-1"), "priority" },
		{ TASK("\"type\":3"), "must be a string" },
		{ TASK("\"type\":\"trace\",\"trace\":[1,2"), "expected , or ]" },
		{ "{\"time\":1,\"tasks\":[{\"client\":{\"batch_size\":0}}]}", "batch_size" },
		{ TASK("\"type\":\"continuous\"") "x", "behind the end" },
		{ "\n{\"time\":\n1", "d.json:3: " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		disb.task_count = 0;
		assert_true(parse(cases[i].text) < 0);
		if (!strstr(error.text, cases[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, error.text, cases[i].says);
		assert_ptr_equal(strstr(error.text, "d.json:"), error.text);
		assert_int_equal(disb.task_count, 0);
	}
	assert_int_equal(gp_disb_load("/nowhere.json", &disb, &error), -ENOENT);
}

/* More tasks than there is room for. */
static void test_too_many_tasks(void **state)
{
	static char text[16384] = "{\"time\":1,\"tasks\":[";

	(void)state;
	for (int i = 0; i < 65; i++)
		strcat(text, "{\"id\":\"t\",\"load\":{\"type\":\"continuous\"}," CLIENT "},");
	assert_int_equal(parse(text), -EINVAL);
	assert_non_null(strstr(error.text, "more than 64 tasks"));
}

/* The workloads of the paper: number of tasks, and how many of them are real time, as in its table. */
static void test_shipped(void **state)
{
	static const struct {
		const char *name;
		uint32_t tasks, realtime;
		enum gp_disb_load load;
	} files[] = {
		{ "A", 2, 1, GP_DISB_PERIODIC },  { "B", 2, 1, GP_DISB_CONTINUOUS }, { "C", 6, 1, GP_DISB_PERIODIC },
		{ "D", 10, 5, GP_DISB_PERIODIC }, { "E", 10, 5, GP_DISB_POISSON },   { "REAL", 10, 5, GP_DISB_TRACE },
	};
	char name[64], path[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		uint32_t realtime = 0;

		(void)snprintf(name, sizeof(name), "data/disb/%s.json", files[i].name);
		assert_int_equal(gp_paths_share(name, path, sizeof(path)), 0);
		assert_int_equal(gp_disb_load(path, &disb, &error), 0);
		assert_int_equal(disb.task_count, files[i].tasks);
		assert_int_equal(disb.tasks[0].load, files[i].load);
		for (uint32_t j = 0; j < disb.task_count; j++)
			realtime += disb.tasks[j].is_realtime;
		assert_int_equal(realtime, files[i].realtime);
		gp_disb_fini(&disb);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loads),   cmocka_unit_test(test_who_is_urgent),
		cmocka_unit_test(test_refuses), cmocka_unit_test(test_too_many_tasks),
		cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests_name("sim/disb", tests, NULL, NULL);
}
