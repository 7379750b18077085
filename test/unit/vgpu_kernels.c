/* SPDX-License-Identifier: MIT */
/* What the virtual node knows of kernels, and how it refuses a file it cannot read; its control lines; its identities.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "vgpu/command/control.h"
#include "vgpu/node/identity.h"
#include "vgpu/packet/kernels.h"

/* FNV-1a, 64 bits, over the words' bytes, lowest first: the offset basis for nothing, and the value of "foob"
 * (draft-eastlake-fnv). */
static void test_fingerprint(void **state)
{
	const uint32_t words[] = { 0x626f6f66u };

	(void)state;
	assert_true(gp_kernels_fingerprint(words, 0) == 0xcbf29ce484222325ull);
	assert_true(gp_kernels_fingerprint(words, 1) == 0xdd120e790c2512afull);
}

static int load(const char *text, struct gp_error *error)
{
	char path[] = "/tmp/vgpu-kernels-XXXXXX";
	struct gp_kernels *kernels;
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	r = gp_kernels_create(path, &kernels, error);
	if (r == 0)
		gp_kernels_destroy(kernels);
	unlink(path);
	return r;
}

/* A good file is read; each mistake is refused with its line. */
static void test_file(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "[12]\n", ":1: '12' is not a fingerprint" },
		{ "[xyzxyzxyzxyzxyz0]\n", ":1: 'xyzxyzxyzxyzxyz0' is not a fingerprint" },
		{ "name = a\n", ":1: 'name' stands before" },
		{ "[0123456789abcdef]\nbody = nonsense\n", ":2: no body 'nonsense'" },
		{ "[0123456789abcdef]\nworkgroup_time = 5\n", ":2: " },
		{ "[0123456789abcdef]\ncolour = red\n", ":2: unknown entry 'colour'" },
	};
	struct gp_error error;

	(void)state;
	assert_int_equal(load("[0123456789abcdef]\nname = a\nworkgroup_time = 5us\nbody = saxpy\n", &error), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(load(bad[i].text, &error) < 0);
		assert_non_null(strstr(error.text, bad[i].says));
	}
}

/* Names that could leave the socket's own space are refused; values are found by their whole name. */
static void test_control(void **state)
{
	char value[32];

	(void)state;
	assert_true(gp_control_name_is_valid("lab-1.x_y"));
	assert_false(gp_control_name_is_valid(""));
	assert_false(gp_control_name_is_valid("a/b"));
	assert_false(gp_control_name_is_valid("a b"));
	assert_string_equal(gp_control_value("ok name=x pid=12 gpus=3\nqueue gpus=9\n", "gpus", value, sizeof(value)),
			    "3");
	assert_null(gp_control_value("ok name=x pid=12\nqueue gpus=9\n", "gpus", value, sizeof(value)));
	assert_null(gp_control_value("ok mypid=12\n", "pid", value, sizeof(value)));
}

/* SVM is off, debugging on, and the doorbells are those of gfx9 (type 2): runtimes decide by these bits. */
static void test_identity(void **state)
{
	static const char *const names[] = { "mi300x", "mi300x-cpx", "mi308x", "mi210" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct gp_identity *identity = gp_identity_find(names[i]);

		assert_non_null(identity);
		assert_false(identity->capability & 1u << 27);
		assert_true(identity->capability & 0x8000u);
		assert_int_equal(identity->capability >> 12 & 3u, 2);
	}
	assert_null(gp_identity_find("h200"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_control),
		cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
