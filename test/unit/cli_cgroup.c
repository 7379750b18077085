/* SPDX-License-Identifier: MIT */
/* Shows where a cgroup is looked for: in every hierarchy of either version, below the cgroup that is mounted there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "cli/cgroup.h"

#define TWO   "30 23 0:25 / %s/two rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define ONE   "31 23 0:26 / %s/one rw - cgroup cgroup rw,memory\n"
#define PART  "32 23 0:27 /pods/a %s/part rw - cgroup2 cgroup rw\n"
#define OTHER "33 23 0:28 / %s rw - tmpfs cgroup rw\n"
#define ODD   "34 23 0:29 / %s/a\\040b rw - cgroup2 cgroup2 rw\n"

static char tree[] = "/tmp/gpreempt-cgroup-XXXXXX";
static const char *const folders[] = { "two", "two/jobs", "two/jobs/7", "one", "one/old", "part", "part/c" };

static int begin(void **state)
{
	char path[128];

	(void)state;
	assert_non_null(mkdtemp(tree));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", tree, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	return 0;
}

static int end(void **state)
{
	char path[128];

	(void)state;
	for (size_t i = sizeof(folders) / sizeof(folders[0]); i > 0; i--) {
		(void)snprintf(path, sizeof(path), "%s/%s", tree, folders[i - 1]);
		assert_int_equal(rmdir(path), 0);
	}
	return rmdir(tree);
}

static void test_looks(void **state)
{
	static const struct {
		const char *mounts, *path;
		bool is_missing;
	} cases[] = {
		{ TWO, "/jobs", false },
		{ TWO, "/jobs/7", false },
		{ TWO, "/jobs/8", true },
		{ TWO, "/old", true },
		{ TWO ONE, "/old", false }, /* in one of two hierarchies */
		{ ONE TWO, "/jobs/7", false },
		{ ONE TWO, "/jobs/*", true },
		{ PART, "/pods/a", false }, /* in a container with the host's namespace */
		{ PART, "/pods/a/c", false },
		{ PART, "/pods/a/d", true },
		{ PART, "/pods/ab", false }, /* it is not to be seen here */
		{ OTHER, "/jobs", false },
		{ ODD, "/jobs", false },
		{ ODD TWO, "/old", true },
		{ "", "/jobs", false },
		{ "30 23 - cgroup2", "/jobs", false },
	};
	char mounts[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(mounts, sizeof(mounts), cases[i].mounts, tree, tree, tree);
#pragma GCC diagnostic pop
		if (gp_cgroup_is_in_no_mount(mounts, cases[i].path) != cases[i].is_missing)
			fail_msg("%s in %s", cases[i].path, mounts);
	}
}

/* Of a daemon in another PID namespace nothing is known. */
static void test_another_namespace(void **state)
{
	(void)state;
	assert_false(gp_cgroup_is_missing(0, "/gpreempt-nosuch"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_looks), cmocka_unit_test(test_another_namespace) };

	return cmocka_run_group_tests(tests, begin, end);
}
