/* SPDX-License-Identifier: MIT */
/* The list of unsafe combinations: what its files may say, and which part, firmware and kernel each shipped entry is
 * about. */
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
#include "lib/safety.h"

#define HEAD "[safety]\ntitle = t\nhappens = h\nsource = s\n"

static int parse(const char *text, struct gp_safety_entry *ret_entry)
{
	struct gp_error error = { "" };
	int r = gp_safety_parse(text, strlen(text), "x", ret_entry, &error);

	assert_int_equal(!r, !*error.text);
	return r;
}

static void test_files(void **state)
{
	static const char *const bad[] = {
		"",
		"[safety]\n",
		"[other]\ngfx = 1\n",
		HEAD "action = refuse\n",              /* about no part */
		HEAD "gfx = 110501\n",                 /* nothing is done */
		HEAD "gfx = 110501\naction = limit\n", /* to what? */
		HEAD "gfx = 110501\naction = limit 0\n",
		HEAD "gfx = 110501\naction = limit 1001\n",
		HEAD "gfx = 110501\naction = forbid\n",
		HEAD "gfx = gfx1151\naction = refuse\n",
		HEAD "gfx = 2..1\naction = refuse\n",
		HEAD "gfx = ..\naction = refuse\n",
		HEAD "gfx = -1\naction = refuse\n",
		HEAD "gfx = 1x\naction = refuse\n",
		HEAD "gfx = 1\nkernel = 6.x\naction = refuse\n",
		HEAD "gfx = 1\naction = refuse\nmore = 1\n",
		"[safety]\ntitle = t\nhappens = h\ngfx = 1\naction = refuse\n", /* who says so? */
	};
	struct gp_safety_entry entry;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse(bad[i], &entry), -EINVAL);
	assert_int_equal(parse(HEAD "gfx = 110000..110003\nmes = 0x80..\nkernel = ..6.17\naction = limit 5\n", &entry),
			 0);
	assert_int_equal(entry.gfx.last, 110003);
	assert_int_equal(entry.mes.first, 0x80);
	assert_int_equal(entry.kernel.last, 6017);
	assert_true(entry.rocm.first > entry.rocm.last);
	assert_int_equal(entry.limit_permille, 5);
}

/* Which of the shipped entries a part meets; "": none. */
static void test_parts(void **state)
{
	static const struct {
		struct gp_safety_part part;
		const char *name;
	} cases[] = {
		{ { .gfx = 110501, .mes = 0x83, .kernel = 7001 }, "gfx1151-mes-83" },
		{ { .gfx = 110501, .mes = 0x83, .kernel = 6012 }, "gfx1151-mes-83" }, /* the stricter one */
		{ { .gfx = 110501, .mes = 0x80, .kernel = 6017 }, "gfx1151-save-area" },
		{ { .gfx = 110501, .mes = GP_KFD_UNKNOWN, .kernel = 6017 }, "gfx1151-save-area" },
		{ { .gfx = 110501, .mes = 0x80, .kernel = 6018 }, "" },
		{ { .gfx = 110501, .mes = GP_KFD_UNKNOWN, .kernel = GP_KFD_UNKNOWN }, "" },
		{ { .gfx = 110003, .kernel = 7001 }, "gfx1103-remove-queue" },
		{ { .gfx = 120001, .kernel = 7001 }, "gfx1201-mes-silent" },
		{ { .gfx = 110000, .kernel = 7001 }, "gfx1100-remove-queue" },
		{ { .gfx = 90402, .mec = 171, .kernel = 6012 }, "" },
		{ { .gfx = 90010, .mec = 1, .kernel = 5010 }, "" },
		{ { .gfx = GP_KFD_UNKNOWN, .mes = 0x83, .kernel = 6001 }, "" },
	};
	struct gp_safety *safety = calloc(1, sizeof(*safety));
	struct gp_error error;

	(void)state;
	assert_non_null(safety);
	assert_int_equal(gp_safety_read(safety, &error), 0);
	assert_int_equal(safety->count, 5);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct gp_safety_entry *entry = gp_safety_find(safety, &cases[i].part);

		assert_string_equal(entry ? entry->name : "", cases[i].name);
	}
	for (uint32_t i = 0; i < safety->count; i++)
		assert_int_equal(strncmp(safety->entries[i].source, "https://", 8), 0);
	free(safety);
}

/* Who overrules the strictest entry still has the milder one; one name overrules one entry. */
static void test_overruled(void **state)
{
	static const char *const names[] = { "b-refuse", "c-limit", "a-submit", "d-other" };
	struct gp_safety *safety = calloc(1, sizeof(*safety));
	const struct gp_safety_part part = { .gfx = 1, .mes = GP_KFD_UNKNOWN };

	(void)state;
	assert_non_null(safety);
	safety->count = 4;
	assert_int_equal(parse(HEAD "gfx = 1\naction = refuse\n", &safety->entries[0]), 0);
	assert_int_equal(parse(HEAD "gfx = 1\naction = limit 7\n", &safety->entries[1]), 0);
	assert_int_equal(parse(HEAD "gfx = 1\naction = submit\n", &safety->entries[2]), 0);
	assert_int_equal(parse(HEAD "gfx = 2\naction = refuse\n", &safety->entries[3]), 0);
	for (size_t i = 0; i < 4; i++)
		snprintf(safety->entries[i].name, sizeof(safety->entries[i].name), "%s", names[i]);
	assert_ptr_equal(gp_safety_find(safety, &part), &safety->entries[0]);
	gp_safety_overrule(safety, "b-refus");
	assert_ptr_equal(gp_safety_find(safety, &part), &safety->entries[0]);
	gp_safety_overrule(safety, "b-refuse");
	assert_ptr_equal(gp_safety_find(safety, &part), &safety->entries[2]);
	gp_safety_overrule(safety, "a-submit");
	assert_ptr_equal(gp_safety_find(safety, &part), &safety->entries[1]);
	gp_safety_overrule(safety, "c-limit");
	assert_null(gp_safety_find(safety, &part));
	assert_true(gp_safety_is_about(&safety->entries[0], &part) && !gp_safety_is_about(&safety->entries[3], &part));
	free(safety);
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Bad files are named, the first four of them; the others count. */
static void test_bad_file(void **state)
{
	static const char *const bad[] = { "a-bad.ini", "c-bad.ini", "e-bad.ini", "f-bad.ini", "g-bad.ini" };
	char root[] = "/tmp/gp-safety-XXXXXX", folder[64], path[128];
	struct gp_safety *safety = calloc(1, sizeof(*safety));
	struct gp_error error = { "" };

	(void)state;
	assert_non_null(safety);
	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof(folder), "%s/safety", root);
	assert_int_equal(mkdir(folder, 0700), 0);
	put(folder, "b-good.ini", HEAD "gfx = 1\naction = refuse\n");
	put(folder, "d-good.ini", HEAD "gfx = 2\naction = limit 5\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		put(folder, bad[i], HEAD "gfx = 1\naction = forbid\n");
	setenv("GPREEMPT_SHARE_DIR", root, 1);
	assert_int_equal(gp_safety_read(safety, &error), 0);
	unsetenv("GPREEMPT_SHARE_DIR");
	assert_int_equal(safety->count, 2);
	assert_string_equal(safety->entries[0].name, "b-good");
	assert_string_equal(safety->entries[1].name, "d-good");
	assert_int_equal(safety->bad_count, GP_SAFETY_BAD_MAX);
	assert_non_null(strstr(safety->bad[0].text, "a-bad:6: action 'forbid'"));
	assert_non_null(strstr(safety->bad[1].text, "c-bad"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, bad[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/b-good.ini", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/d-good.ini", folder);
	unlink(path);
	rmdir(folder);
	rmdir(root);
	free(safety);
}

/* The firmware's version as amdgpu's file has it; without the file it is not known. */
static void test_machine(void **state)
{
	char folder[] = "/tmp/gp-safety-XXXXXX", path[128];
	const char *const parts[] = { "class", "class/drm", "class/drm/renderD130", "class/drm/renderD130/device",
				      "class/drm/renderD130/device/fw_version" };
	struct gp_kfd_node node = { .gfx_version = 110501, .firmware = 32, .render_minor = 130 };
	struct gp_safety_part part;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	gp_safety_look(&node, folder, &part);
	assert_true(part.mes == GP_KFD_UNKNOWN && part.mec == 32 && part.gfx == 110501);
	assert_true(part.kernel > 2000 && part.kernel < 100000);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	snprintf(path, sizeof(path), "%s/%s/mes_fw_version", folder, parts[4]);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("0x00000083\n", file);
	fclose(file);
	gp_safety_look(&node, folder, &part);
	assert_int_equal(part.mes, 0x83);
	node.render_minor = GP_KFD_UNKNOWN;
	gp_safety_look(&node, folder, &part);
	assert_true(part.mes == GP_KFD_UNKNOWN);
	unlink(path);
	for (size_t i = sizeof(parts) / sizeof(parts[0]); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
		rmdir(path);
	}
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_files), cmocka_unit_test(test_parts),
					    cmocka_unit_test(test_overruled), cmocka_unit_test(test_bad_file),
					    cmocka_unit_test(test_machine) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
