/* SPDX-License-Identifier: MIT */
/* INI: what the handler sees, and what never reaches it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/ini.h"

static char seen[1024];
static struct gp_error error;

static int handle(void *context, const char *section, const char *name, const char *value, uint32_t line,
		  struct gp_error *said)
{
	size_t used = strlen(seen);

	assert_ptr_equal(context, seen);
	(void)snprintf(seen + used, sizeof(seen) - used, "%u:[%s]%s=%s;", line, section, name ? name : "(section)",
		       value ? value : "");
	if (name && !strcmp(name, "bad"))
		return gp_error_set(said, -ERANGE, "no such thing as %s", value);
	if (name && !strcmp(name, "silent"))
		return -ENOTSUP;
	return 0;
}

static int parse(const char *text, size_t size)
{
	seen[0] = '\0';
	return gp_ini_parse(text, size, "x.ini", handle, seen, &error);
}

/* Sections once, entries with their line, blanks removed, comments and empty lines skipped, = and ; and # kept
 * inside values. */
static void test_entries(void **state)
{
	static const char text[] =
		"\xef\xbb\xbf# comment\nfirst = 1\r\n\n; another\n[ one ]\n\ta=b = c ; d # e\nempty =\n[two]\nlast=x";

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1), 0);
	assert_string_equal(
		seen,
		"2:[]first=1;5:[one](section)=;6:[one]a=b = c ; d # e;7:[one]empty=;8:[two](section)=;9:[two]last=x;");
	assert_int_equal(parse("", 0), 0);
	assert_string_equal(seen, "");
}

/* What the handler says gets the file and line in front; parsing stops there. */
static void test_handler_refuses(void **state)
{
	(void)state;
	assert_int_equal(parse("a=1\nbad=2\nc=3\n", 14), -ERANGE);
	assert_string_equal(error.text, "x.ini:2: no such thing as 2");
	assert_null(strstr(seen, "c=3"));
	assert_int_equal(parse("silent=1", 8), -ENOTSUP);
	assert_string_equal(error.text, "x.ini:1: refused");
}

/* What is not INI is refused with its line. */
static void test_refuses(void **state)
{
	static char big[GP_INI_LINE_SIZE + 64];
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "\nword\n", "x.ini:2: expected" },
		{ "[a\n", "x.ini:1: a section line must end" },
		{ "[ ]\n", "needs a name" },
		{ "[", "must end" },
		{ "= 1\n", "no name" },
		{ "a=1\n[b]c\n", "x.ini:2: a section line must end" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i].text, strlen(cases[i].text)), -EINVAL);
		assert_non_null(strstr(error.text, cases[i].says));
	}
	assert_int_equal(parse("a=1\nb=\0\n", 8), -EINVAL);
	assert_string_equal(error.text, "x.ini:2: there is a NUL byte in the line");
	memset(big, 'a', sizeof(big));
	big[1000] = '=';
	assert_int_equal(parse(big, GP_INI_LINE_SIZE), -EINVAL);
	assert_non_null(strstr(error.text, "too long"));
	big[1000] = 'a';
	big[1] = '='; /* all is well with it but its length */
	assert_int_equal(parse(big, GP_INI_LINE_SIZE), -EINVAL);
	assert_int_equal(parse(big, sizeof(big)), -EINVAL);
	assert_int_equal(parse(big, GP_INI_LINE_SIZE - 1), 0);
	big[1] = 'a';
	big[1000] = '=';
	assert_int_equal(parse(big, GP_INI_LINE_SIZE - 1), -EINVAL);
	assert_non_null(strstr(error.text, "name before the = is too long"));
	big[0] = '[';
	big[GP_INI_NAME_SIZE + 1] = ']';
	assert_int_equal(parse(big, GP_INI_NAME_SIZE + 2), -EINVAL);
	assert_non_null(strstr(error.text, "name of the section is too long"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_handler_refuses),
		cmocka_unit_test(test_refuses),
	};

	return cmocka_run_group_tests_name("lib/ini", tests, NULL, NULL);
}
