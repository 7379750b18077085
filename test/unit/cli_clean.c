/* SPDX-License-Identifier: MIT */
/* Shows that nothing a terminal might obey survives: control characters, C1, reading direction, broken UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cli/clean.h"

static void clean_replaces(void **state)
{
	static const struct {
		const char *dirty, *line, *lines;
	} cases[] = {
		{ "plain ü 漢", "plain ü 漢", "plain ü 漢" },
		{ "a\033[31mb", "a?[31mb", "a?[31mb" },
		{ "a\nb\tc\r", "a?b?c?", "a\nb\tc?" },
		{ "\302\233m", "??m", "??m" },
		{ "\342\200\256x", "???x", "???x" },
		{ "\xff\xc3", "??", "??" },
		{ "\177", "?", "?" },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s", cases[i].dirty);
		gp_clean_line(text);
		assert_string_equal(text, cases[i].line);
		(void)snprintf(text, sizeof(text), "%s", cases[i].dirty);
		gp_clean_lines(text);
		assert_string_equal(text, cases[i].lines);
	}
}

static void clean_escapes_json(void **state)
{
	static const char dirty[] = "{\"a\": \"\302\233m ü \342\200\256\"}\n";
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	gp_clean_json(stream, dirty, sizeof(dirty) - 1);
	fclose(stream);
	assert_string_equal(text, "{\"a\": \"\\u009bm ü \\u202e\"}\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_replaces),
		cmocka_unit_test(clean_escapes_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
