/* SPDX-License-Identifier: MIT */
/* How high a job of Slurm's may go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "cli/slurm/ceiling.h"

static struct gp_slurm_conf conf;

static int parse(const char *text, struct gp_error *error)
{
	return gp_slurm_conf_parse(text, strlen(text), "gpreempt.conf", &conf, error);
}

/* The QOS decides, also downwards; then the partition; then everybody's. The later of two lines counts. */
static void test_order(void **state)
{
	struct gp_error error;

	(void)state;
	assert_int_equal(
		parse("[ceiling]\ndefault = 40\nqos.urgent = high\nqos.idle = 0\npartition.fast = 60\nqos.urgent = 81\n",
		      &error),
		0);
	assert_int_equal(gp_slurm_ceiling(&conf, "urgent", "fast"), 81);
	assert_int_equal(gp_slurm_ceiling(&conf, "idle", "fast"), 0);
	assert_int_equal(gp_slurm_ceiling(&conf, "other", "fast"), 60);
	assert_int_equal(gp_slurm_ceiling(&conf, NULL, "fast"), 60);
	assert_int_equal(gp_slurm_ceiling(&conf, "fast", "urgent"), 40);
	assert_int_equal(gp_slurm_ceiling(&conf, NULL, NULL), 40);
	assert_int_equal(gp_slurm_ceiling(&conf, "URGENT", "fas"), 40);
}

static void test_defaults(void **state)
{
	struct gp_error error;

	(void)state;
	assert_int_equal(parse("", &error), 0);
	assert_int_equal(gp_slurm_ceiling(&conf, "a", "b"), 50);
	assert_int_equal(conf.fallback, -1);
	assert_int_equal(parse("[job]\ndefault = low\nagent = /a.so\n", &error), 0);
	assert_int_equal(conf.fallback, 20);
	assert_string_equal(conf.agent, "/a.so");
	assert_int_equal(parse("[job]\ndefault = none\n", &error), 0);
	assert_int_equal(conf.fallback, -1);
}

/* The site's default is lowered to the ceiling of the job, which asked for nothing and must run. */
static void test_default_below_ceiling(void **state)
{
	struct gp_error error;

	(void)state;
	assert_int_equal(parse("[ceiling]\nqos.scavenger = idle\n[job]\ndefault = normal\n", &error), 0);
	assert_int_equal(gp_slurm_default(&conf, gp_slurm_ceiling(&conf, "scavenger", NULL)), 0);
	assert_int_equal(gp_slurm_default(&conf, 49), 49);
	assert_int_equal(gp_slurm_default(&conf, 50), 50);
	assert_int_equal(gp_slurm_default(&conf, 99), 50);
	assert_int_equal(parse("[job]\ndefault = none\n", &error), 0);
	assert_int_equal(gp_slurm_default(&conf, 0), -1);
}

/* A file that makes no sense changes nothing, and says where. */
static void test_refused(void **state)
{
	static const char *const texts[] = {
		"[ceiling]\nqos.a = 100\n", "[ceiling]\nqos. = 1\n", "[ceiling]\nuser.a = 1\n",
		"[other]\na = 1\n",         "default = 1\n",         "[job]\nagent = relative\n",
		"[job]\nagent = /a b\n",    "[job]\nnothing = 1\n",  "[ceiling]\ndefault = none\n",
		"[ceiling]\nqos.a\n",
	};
	struct gp_error error;
	char text[64 * (GP_SLURM_LINES_MAX + 2)] = "[ceiling]\n";

	(void)state;
	assert_int_equal(parse("[ceiling]\ndefault = 77\n", &error), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_not_equal(parse(texts[i], &error), 0);
		assert_int_equal(strncmp(error.text, "gpreempt.conf:", 14), 0);
	}
	for (uint32_t i = 0; i <= GP_SLURM_LINES_MAX; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "qos.q%u = 1\n", i);
	assert_int_not_equal(parse(text, &error), 0);
	assert_int_equal(conf.ceiling, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_default_below_ceiling),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
