/* SPDX-License-Identifier: MIT */
/* UTF-8, refusal sentences and the progress bar: what a person gets to see. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/error.h"
#include "lib/progress.h"
#include "lib/utf8.h"

/* Well-formed characters of every length, and each way of not being one. */
static void test_utf8_decode(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		uint32_t code;
	} good[] = {
		{ "a", 1, 'a' },
		{ "µ", 2, 0xb5 },
		{ "漢", 3, 0x6f22 },
		{ "😀", 4, 0x1f600 },
		{ "\xf4\x8f\xbf\xbf", 4, 0x10ffff },
	};
	static const char *const bad[] = { "\x80",
					   "\xc3",
					   "\xc3(",
					   "\xc0\xaf",
					   "\xc1\xbf",
					   "\xe0\x80\xaf",
					   "\xed\xa0\x80",
					   "\xf4\x90\x80\x80",
					   "\xf0\x82\x82\xac",
					   "\xff",
					   "\xf8\x88\x80\x80\x80",
					   "\xe2\x82" };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint32_t code = 0;

		assert_int_equal(gp_utf8_decode(good[i].text, strlen(good[i].text), &code), good[i].size);
		assert_int_equal(code, good[i].code);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(gp_utf8_decode(bad[i], strlen(bad[i]), NULL), 0);
	/* Cut off, though the rest is there behind the end. */
	assert_int_equal(gp_utf8_decode("漢", 2, NULL), 0);
	assert_int_equal(gp_utf8_decode("😀", 1, NULL), 0);
}

/* Columns on a terminal: wide characters two, combining marks none, a bad byte one. */
static void test_utf8_width(void **state)
{
	(void)state;
	assert_int_equal(gp_utf8_width(""), 0);
	assert_int_equal(gp_utf8_width("12.3 µs"), 7);
	assert_int_equal(gp_utf8_width("漢字"), 4);
	assert_int_equal(gp_utf8_width("e\xcc\x81"), 1);
	assert_int_equal(gp_utf8_width("a\xff"
				       "b"),
			 3);
}

/* The code comes back, NULL is allowed, a long sentence is cut and terminated, nothing in it moves a cursor. */
static void test_error(void **state)
{
	struct gp_error error;
	char longest[2000];

	(void)state;
	assert_int_equal(gp_error_set(NULL, -EINVAL, "x"), -EINVAL);
	assert_int_equal(gp_error_set(&error, -EIO, "%s:%d", "f", 3), -EIO);
	assert_string_equal(error.text, "f:3");
	/* A quoted file or name cannot reach the terminal, nor begin a line of its own. */
	gp_error_set(&error, -EIO, "\"%s\" is wrong", "a\033[31m\nb\xc2\x9b\xe2\x80\xae\xff\u00b5");
	assert_string_equal(error.text, "\"a?[31m?b??\?\?\?\?\u00b5\" is wrong");
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	gp_error_set(&error, -EIO, "%s", longest);
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
}

/* A file is not a terminal: not a byte is written to it. */
static void test_progress_is_silent_in_a_file(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size), *file = tmpfile();
	struct gp_progress progress;

	(void)state;
	gp_progress_init(&progress, memory, "x");
	gp_progress_update(&progress, 1, 2, 5000);
	gp_progress_init(&progress, file, "x");
	gp_progress_update(&progress, 1, 2, 5000);
	gp_progress_clear(&progress);
	assert_int_equal(ftell(file), 0);
	fclose(file);
	fclose(memory);
	assert_int_equal(size, 0);
	free(text);
}

/* On a terminal (a pseudo-terminal here): nothing in the first second, then at most ten times a second, and wiped at
 * the end. */
static void test_progress_on_a_terminal(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct gp_progress progress;
	char text[2048];
	size_t used = 0;
	ssize_t got;
	FILE *terminal;

	(void)state;
	if (master < 0 || grantpt(master) || unlockpt(master))
		skip();
	terminal = fopen(ptsname(master), "w");
	assert_non_null(terminal);
	gp_progress_init(&progress, terminal, "simulating");
	gp_progress_update(&progress, 1, 4, 999);
	assert_false(progress.is_drawn);
	gp_progress_update(&progress, 1, 4, 1000);
	assert_true(progress.is_drawn);
	gp_progress_update(&progress, 2, 4, 1099);
	assert_int_equal(progress.drawn_ms, 1000);
	gp_progress_update(&progress, 5, 4, 1100);
	assert_int_equal(progress.drawn_ms, 1100);
	gp_progress_update(&progress, UINT64_MAX, UINT64_MAX, 1300);
	gp_progress_update(&progress, 1, 0, 1500);
	assert_int_equal(progress.drawn_ms, 1300);
	gp_progress_clear(&progress);
	fclose(terminal);
	/* With the other side closed, the master gives what was written and then an error. */
	while ((got = read(master, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	assert_non_null(strstr(text, "simulating"));
	assert_non_null(strstr(text, " 25 %  3 s left"));
	assert_non_null(strstr(text, "100 %"));
	assert_true(used > 4);
	assert_string_equal(text + used - 4, "\r\033[K");
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8_decode),
		cmocka_unit_test(test_utf8_width),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_progress_is_silent_in_a_file),
		cmocka_unit_test(test_progress_on_a_terminal),
	};

	return cmocka_run_group_tests_name("lib/text", tests, NULL, NULL);
}
