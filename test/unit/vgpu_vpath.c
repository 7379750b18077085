/* SPDX-License-Identifier: MIT */
/* Which paths the virtual node provides where it cannot mount: by name alone, however the name is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "vgpu/files/vpath.h"

static void check(const char *base, const char *path, const char *expected)
{
	char resolved[GP_VPATH_SIZE];
	bool found = gp_vpath_resolve(base, path, resolved);

	assert_int_equal(found, expected != NULL);
	if (expected)
		assert_string_equal(resolved, expected);
}

static void test_provided(void **state)
{
	(void)state;
	check("", "/dev/kfd", "dev/kfd");
	check("", "/dev/dri/renderD128", "dev/dri/renderD128");
	check("", "/sys/class/kfd/kfd/topology", "sys/class/kfd/kfd/topology");
	check("", "/sys/devices/virtual/kfd", "sys/devices/virtual/kfd");
	check("", "/sys/module/amdgpu/version", "sys/module/amdgpu/version");
	check("", "//dev/.//kfd", "dev/kfd");
	check("", "/../dev/x/../kfd", "dev/kfd");
	check("", "/dev/dri/", "dev/dri/");
	check("", "/sys/class/kfd/kfd/.", "sys/class/kfd/kfd");
}

static void test_relative(void **state)
{
	(void)state;
	check("/dev", "kfd", "dev/kfd");
	check("/sys/class/kfd/kfd", "../../../module/amdgpu", "sys/module/amdgpu");
	check("/", "dev/kfd", "dev/kfd");
	check("/dev/dri", "renderD129", "dev/dri/renderD129");
	check("/home", "/dev/kfd", "dev/kfd");
	check("/home", "dev/kfd", NULL);
}

static void test_others(void **state)
{
	char path[2u * GP_VPATH_SIZE];

	(void)state;
	check("", "/dev/kfd2", NULL);
	check("", "/dev", NULL);
	check("", "/dev/kfd/../null", NULL);
	check("", "/sys/module/amdgpu_other", NULL);
	check("/dev", "", NULL);
	check("", "/", NULL);
	check("/", "..", NULL);
	/* Too long for any file system: not ours, and nothing is written past the end. */
	memset(path, 'a', sizeof(path) - 1u);
	memcpy(path, "/dev/dri/", 9);
	path[sizeof(path) - 1u] = 0;
	check("", path, NULL);
	path[GP_VPATH_SIZE] = 0;
	check("", path, path + 1);
	path[GP_VPATH_SIZE] = 'a';
	path[GP_VPATH_SIZE + 1u] = 0;
	check("", path, NULL);
}

static void test_devices(void **state)
{
	uint32_t number = 99;

	(void)state;
	assert_true(gp_vpath_is_device("dev/kfd", 1, &number) && number == 0);
	assert_true(gp_vpath_is_device("dev/dri/renderD128", 1, &number) && number == 1);
	assert_true(gp_vpath_is_device("dev/dri/renderD135", 8, &number) && number == 8);
	assert_false(gp_vpath_is_device("dev/dri/renderD129", 1, &number));
	assert_false(gp_vpath_is_device("dev/dri/renderD127", 8, &number));
	assert_false(gp_vpath_is_device("dev/dri/renderD1280", 8, &number));
	assert_false(gp_vpath_is_device("dev/dri/renderD12x", 8, &number));
	assert_false(gp_vpath_is_device("dev/dri/renderD", 8, &number));
	assert_false(gp_vpath_is_device("dev/dri/renderD128/", 8, &number));
	assert_false(gp_vpath_is_device("dev/dri", 8, &number));
	assert_int_equal(number, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_provided),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
