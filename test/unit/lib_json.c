/* SPDX-License-Identifier: MIT */
/* The JSON reader: every token, every number, every refusal, and what a skip passes over. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/json.h"

static struct gp_json json;
static struct gp_error error;

static void next(enum gp_json_type type, const char *string)
{
	assert_int_equal(gp_json_next(&json, &error), 0);
	assert_int_equal(json.type, type);
	if (string)
		assert_string_equal(json.string, string);
}

static void begin(const char *text)
{
	gp_json_init(&json, text, strlen(text), "x.json");
}

/* One document with everything in it. */
static void test_tokens(void **state)
{
	(void)state;
	begin("\xef\xbb\xbf{\"a\" : [1, -2 , \"s\", true,false,null, {}, []],\n \"b\":{\"c\":0}}\n ");
	next(GP_JSON_OBJECT_BEGIN, NULL);
	next(GP_JSON_KEY, "a");
	next(GP_JSON_ARRAY_BEGIN, NULL);
	next(GP_JSON_NUMBER, "1");
	assert_true(json.is_u64 && json.is_i64 && json.u64 == 1 && json.i64 == 1);
	next(GP_JSON_NUMBER, "-2");
	assert_true(!json.is_u64 && json.is_i64 && json.i64 == -2);
	next(GP_JSON_STRING, "s");
	next(GP_JSON_TRUE, NULL);
	next(GP_JSON_FALSE, NULL);
	next(GP_JSON_NULL, NULL);
	next(GP_JSON_OBJECT_BEGIN, NULL);
	next(GP_JSON_OBJECT_END, NULL);
	next(GP_JSON_ARRAY_BEGIN, NULL);
	next(GP_JSON_ARRAY_END, NULL);
	next(GP_JSON_ARRAY_END, NULL);
	next(GP_JSON_KEY, "b");
	assert_int_equal(json.line, 2);
	next(GP_JSON_OBJECT_BEGIN, NULL);
	next(GP_JSON_KEY, "c");
	next(GP_JSON_NUMBER, "0");
	next(GP_JSON_OBJECT_END, NULL);
	next(GP_JSON_OBJECT_END, NULL);
	next(GP_JSON_END, NULL);
	next(GP_JSON_END, NULL);
}

/* 64-bit integers survive; what is not a whole number in range says so and keeps its text. */
static void test_numbers(void **state)
{
	(void)state;
	begin("[18446744073709551615, 18446744073709551616, 9223372036854775807, -9223372036854775808, "
	      "-9223372036854775809, 1.5, 1e3, -0, 2E-7]");
	next(GP_JSON_ARRAY_BEGIN, NULL);
	next(GP_JSON_NUMBER, NULL);
	assert_true(json.is_u64 && !json.is_i64 && json.u64 == UINT64_MAX);
	next(GP_JSON_NUMBER, "18446744073709551616");
	assert_true(!json.is_u64 && !json.is_i64);
	next(GP_JSON_NUMBER, NULL);
	assert_true(json.is_u64 && json.is_i64 && json.i64 == INT64_MAX);
	next(GP_JSON_NUMBER, NULL);
	assert_true(!json.is_u64 && json.is_i64 && json.i64 == INT64_MIN);
	next(GP_JSON_NUMBER, NULL);
	assert_true(!json.is_u64 && !json.is_i64);
	next(GP_JSON_NUMBER, "1.5");
	assert_true(!json.is_u64);
	next(GP_JSON_NUMBER, "1e3");
	assert_true(!json.is_u64);
	next(GP_JSON_NUMBER, "-0");
	assert_true(json.is_u64 && json.u64 == 0);
	next(GP_JSON_NUMBER, "2E-7");
}

/* Every escape, and a surrogate pair. */
static void test_strings(void **state)
{
	(void)state;
	begin("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u20AC\\ud83d\\ude00\", \"µ漢😀\"]");
	next(GP_JSON_ARRAY_BEGIN, NULL);
	next(GP_JSON_STRING, "\"\\/\b\f\n\r\t");
	next(GP_JSON_STRING, "é€😀");
	next(GP_JSON_STRING, "µ漢😀");
	next(GP_JSON_ARRAY_END, NULL);
}

/* Skipping after a key, at a beginning, and at a scalar. */
static void test_skip(void **state)
{
	(void)state;
	begin("{\"a\":{\"x\":[1,[2,{}]]},\"b\":[3,[4]],\"c\":5,\"d\":6}");
	next(GP_JSON_OBJECT_BEGIN, NULL);
	next(GP_JSON_KEY, "a");
	assert_int_equal(gp_json_skip(&json, &error), 0);
	next(GP_JSON_KEY, "b");
	next(GP_JSON_ARRAY_BEGIN, NULL);
	assert_int_equal(gp_json_skip(&json, &error), 0);
	next(GP_JSON_KEY, "c");
	assert_int_equal(gp_json_skip(&json, &error), 0);
	next(GP_JSON_KEY, "d");
	next(GP_JSON_NUMBER, "6");
	assert_int_equal(gp_json_skip(&json, &error), 0);
	next(GP_JSON_OBJECT_END, NULL);
	begin("{\"a\":[1");
	next(GP_JSON_OBJECT_BEGIN, NULL);
	next(GP_JSON_KEY, "a");
	assert_int_equal(gp_json_skip(&json, &error), -EINVAL);
}

/* Everything that is not JSON is refused, with the line. */
static void test_refuses(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "ends in the middle" },
		{ "{", "ends in the middle" },
		{ "{\"a\"", "ends in the middle" },
		{ "[1", "ends in the middle" },
		{ "[1,", "ends in the middle" },
		{ "[1,]", "expected a value" },
		{ "{\"a\":1,}", "expected a key" },
		{ "{\"a\" 1}", "expected :" },
		{ "{1:2}", "expected a key" },
		{ "[1 2]", "expected , or ]" },
		{ "{\"a\":1 \"b\":2}", "expected , or }" },
		{ "[1}", "expected , or ]" },
		{ "nul", "expected a value" },
		{ "01", "begins with 0" },
		{ "-", "lacks a digit" },
		{ "1.", "lacks a digit" },
		{ "1e", "lacks a digit" },
		{ "1e+", "lacks a digit" },
		{ ".5", "expected a value" },
		{ "-Infinity", "not JSON" },
		{ "[1,\nNaN]", "x.json:2: NaN" },
		{ "\"a", "ends inside a string" },
		{ "\"a\nb\"", "control character" },
		{ "\"\\x\"", "unknown escape" },
		{ "\"\\u12g4\"", "four hexadecimal" },
		{ "\"\\ud800\"", "surrogate" },
		{ "\"\\ud800\\u0041\"", "surrogate" },
		{ "\"\\udc00\"", "surrogate" },
		{ "\"\\u0000\"", "NUL" },
		{ "\"\xff\"", "not UTF-8" },
		{ "\"\xc0\x80\"", "not UTF-8" },
		{ "1 2", "behind the end" },
		{ "{}{}", "behind the end" },
		{ "\n\n[tru]", "x.json:3:" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r;

		begin(cases[i].text);
		do {
			r = gp_json_next(&json, &error);
		} while (r == 0 && json.type != GP_JSON_END);
		assert_int_equal(r, -EINVAL);
		if (!strstr(error.text, cases[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, error.text, cases[i].says);
	}
}

/* 64 levels and 4095 bytes go; one more does not. */
static void test_limits(void **state)
{
	char text[GP_JSON_STRING_SIZE + 8];

	(void)state;
	memset(text, '[', sizeof(text));
	gp_json_init(&json, text, GP_JSON_DEPTH_MAX + 1, "x.json");
	for (uint32_t i = 0; i < GP_JSON_DEPTH_MAX; i++)
		next(GP_JSON_ARRAY_BEGIN, NULL);
	assert_int_equal(gp_json_next(&json, &error), -EINVAL);
	assert_non_null(strstr(error.text, "nested too deeply"));

	memset(text, 'a', sizeof(text));
	text[0] = text[GP_JSON_STRING_SIZE] = '"';
	gp_json_init(&json, text, GP_JSON_STRING_SIZE + 1, "x.json");
	next(GP_JSON_STRING, NULL);
	assert_int_equal(strlen(json.string), GP_JSON_STRING_SIZE - 1);
	text[GP_JSON_STRING_SIZE] = 'a';
	text[GP_JSON_STRING_SIZE + 1] = '"';
	gp_json_init(&json, text, GP_JSON_STRING_SIZE + 2, "x.json");
	assert_int_equal(gp_json_next(&json, &error), -EINVAL);
	assert_non_null(strstr(error.text, "too long"));
	memset(text, '1', sizeof(text));
	gp_json_init(&json, text, sizeof(text), "x.json");
	assert_int_equal(gp_json_next(&json, &error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens), cmocka_unit_test(test_numbers), cmocka_unit_test(test_strings),
		cmocka_unit_test(test_skip),   cmocka_unit_test(test_refuses), cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("lib/json", tests, NULL, NULL);
}
