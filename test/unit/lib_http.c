/* SPDX-License-Identifier: MIT */
/* What is taken as an HTTP request, and how the rest is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "lib/http.h"

static int parse(const char *text, struct gp_http_request *request)
{
	return gp_http_parse(text, strlen(text), request);
}

static void test_taken(void **state)
{
	struct gp_http_request request;

	(void)state;
	assert_int_equal(parse("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", &request), 200);
	assert_string_equal(request.path, "/metrics");
	assert_false(request.is_head);
	assert_int_equal(parse("HEAD /metrics?name=a&b HTTP/1.0\n\n", &request), 200);
	assert_string_equal(request.path, "/metrics");
	assert_true(request.is_head);
}

/* Until the empty line nothing is decided. */
static void test_more_must_come(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	struct gp_http_request request;

	(void)state;
	for (size_t size = 0; size < sizeof(text) - 1; size++)
		assert_int_equal(gp_http_parse(text, size, &request), 0);
	assert_int_equal(gp_http_parse(text, sizeof(text) - 1, &request), 200);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{ "POST / HTTP/1.1\r\n\r\n", 405 },
		{ "get / HTTP/1.1\r\n\r\n", 405 },
		{ "GET / HTTP/2.0\r\n\r\n", 505 },
		{ "GET /\r\n\r\n", 400 },
		{ "\r\n\r\n", 400 },
		{ "GET http://a/ HTTP/1.1\r\n\r\n", 400 },
		{ "GET /\t HTTP/1.1\r\n\r\n", 400 },
		{ "GET / HTTP/1.1 \r\n\r\n", 400 },
		{ "GET  HTTP/1.1\r\n\r\n", 400 },
		{ "GET /\x7f HTTP/1.1\r\n\r\n", 400 },
	};
	struct gp_http_request request = { .path = "untouched" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(parse(cases[i].text, &request), cases[i].status);
	assert_string_equal(request.path, "untouched");
}

static void test_too_long(void **state)
{
	char text[GP_HTTP_REQUEST_MAX];
	struct gp_http_request request;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(gp_http_parse(text, sizeof(text) - 1, &request), 0);
	assert_int_equal(gp_http_parse(text, sizeof(text), &request), 414);
	memcpy(text, "GET / HTTP/1.1\r\n", 16);
	assert_int_equal(gp_http_parse(text, sizeof(text), &request), 431);
	memcpy(text, "GET /", 5);
	memset(text + 5, 'b', GP_HTTP_PATH_SIZE);
	memcpy(text + 5 + GP_HTTP_PATH_SIZE, " HTTP/1.1\r\n\r\n", 13);
	assert_int_equal(gp_http_parse(text, sizeof(text), &request), 414);
	/* One byte less than there is room for. */
	memmove(text + 4, text + 5, sizeof(text) - 5);
	memmove(text + 4, text + 5, sizeof(text) - 5);
	text[4] = '/';
	assert_int_equal(gp_http_parse(text, sizeof(text) - 2, &request), 200);
	assert_int_equal(strlen(request.path), GP_HTTP_PATH_SIZE - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_more_must_come),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
