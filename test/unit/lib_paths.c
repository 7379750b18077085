/* SPDX-License-Identifier: MIT */
/* The search for data files, with a data tree made for the test. */
#include <errno.h>
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
#include "lib/paths.h"

static char folder[] = "/tmp/gp-lib-paths-XXXXXX";
static const char *const names[] = { "b.ini", "a.ini", "c.txt", ".hidden.ini", ".ini" };

static void name_path(char *path, size_t path_size, const char *name)
{
	(void)snprintf(path, path_size, "%s/devices/%s", folder, name);
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	name_path(path, sizeof(path), "");
	if (mkdir(path, 0777))
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		FILE *file;

		name_path(path, sizeof(path), names[i]);
		file = fopen(path, "w");
		if (!file)
			return -1;
		fclose(file);
	}
	return setenv("GPREEMPT_SHARE_DIR", folder, 1);
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		name_path(path, sizeof(path), names[i]);
		unlink(path);
	}
	name_path(path, sizeof(path), "");
	rmdir(path);
	return rmdir(folder);
}

/* A file and a folder are found in $GPREEMPT_SHARE_DIR; a missing one is missing, although another tree may have it. */
static void test_finds(void **state)
{
	char path[256], wanted[128], small[8] = "before";

	(void)state;
	name_path(wanted, sizeof(wanted), "a.ini");
	assert_int_equal(gp_paths_share("devices/a.ini", path, sizeof(path)), 0);
	assert_string_equal(path, wanted);
	assert_int_equal(gp_paths_share("devices", path, sizeof(path)), 0);
	assert_int_equal(gp_paths_share("devices/none.ini", path, sizeof(path)), -ENOENT);
	assert_int_equal(gp_paths_share("data/SOURCES.md", path, sizeof(path)), -ENOENT);
	assert_int_equal(gp_paths_share("devices/a.ini", small, sizeof(small)), -ENAMETOOLONG);
	assert_string_equal(small, "before");
}

/* A name cannot lead out of the tree. */
static void test_refuses_escapes(void **state)
{
	static const char *const bad[] = { "", "/etc/passwd", "..", "../x", "devices/../../x", "devices/.." };
	char path[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(gp_paths_share(bad[i], path, sizeof(path)), -EINVAL);
	/* Dots inside a name are no escape. */
	assert_int_equal(gp_paths_share("devices/a..ini", path, sizeof(path)), -ENOENT);
}

/* Without the variable, the source tree the test was built from is found. */
static void test_source_tree(void **state)
{
	char path[4096];

	(void)state;
	unsetenv("GPREEMPT_SHARE_DIR");
	assert_int_equal(gp_paths_share("data/SOURCES.md", path, sizeof(path)), 0);
	assert_int_equal(gp_paths_share("data/NOTHING.md", path, sizeof(path)), -ENOENT);
	setenv("GPREEMPT_SHARE_DIR", folder, 1);
}

/* Names with the suffix, sorted, without hidden files; joined for a sentence, cut where it does not fit. */
static void test_lists(void **state)
{
	static struct gp_paths_names list;
	char text[32], small[6];

	(void)state;
	assert_int_equal(gp_paths_list("devices", ".ini", &list), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.names[0], "a");
	assert_string_equal(list.names[1], "b");
	assert_string_equal(gp_paths_join(&list, text, sizeof(text)), "a, b");
	assert_string_equal(gp_paths_join(&list, small, sizeof(small)), "…");
	assert_int_equal(gp_paths_list("mixes", ".ini", &list), -ENOENT);
	assert_int_equal(gp_paths_list("devices/a.ini", ".ini", &list), -ENOTDIR);
	list.count = 0;
	assert_string_equal(gp_paths_join(&list, text, sizeof(text)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds),
		cmocka_unit_test(test_refuses_escapes),
		cmocka_unit_test(test_source_tree),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests_name("lib/paths", tests, setup, teardown);
}
