/* SPDX-License-Identifier: MIT */
/* Readers of traces at the ends of what they are given: lines that have none, bytes that are no text, fields that say
 * they are longer than the file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "test/fuzz/trace_sink.h"
#include "report/trace/lines.h"
#include "report/trace/readers.h"

static struct gp_input input;
static struct gp_error error;

static int next_line(const char *text, size_t size)
{
	struct gp_lines lines;
	int r;

	assert_int_equal(gp_input_open_memory(&input, text, size, "t.txt", &error), 0);
	gp_lines_init(&lines, &input);
	r = gp_lines_next(&lines, &error);
	gp_input_close(&input);
	return r;
}

static void test_lines(void **state)
{
	const size_t size = 2u * GP_LINES_SIZE_MAX;
	char *text = malloc(size);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', size);
	assert_int_equal(next_line(text, size), -EINVAL);
	assert_non_null(strstr(error.text, "is longer than"));
	text[GP_LINES_SIZE_MAX] = '\n';
	assert_int_equal(next_line(text, size), 1);
	assert_int_equal(next_line("a\0b\n", 4), -EINVAL);
	assert_non_null(strstr(error.text, "NUL byte"));
	free(text);
}

static int read_perfetto(const uint8_t *bytes, size_t size)
{
	int r;

	assert_int_equal(gp_input_open_memory(&input, (const char *)bytes, size, "t.pftrace", &error), 0);
	r = gp_read_perfetto(&input, &(struct gp_sink){ .event = trace_sink_event, .fact = trace_sink_fact }, &error);
	gp_input_close(&input);
	return r;
}

/* A packet of a track with a name; then with the name longer than its packet, with another one behind it. */
static void test_perfetto(void **state)
{
	/* packet { track_descriptor (60) { uuid (1): 5, name (2): "ab" } }, twice */
	uint8_t bytes[] = {
		0x0a, 9, 0xe2, 3, 6, 8, 5, 0x12, 2, 'a', 'b', 0x0a, 9, 0xe2, 3, 6, 8, 6, 0x12, 2, 'c', 'd'
	};

	(void)state;
	assert_int_equal(read_perfetto(bytes, sizeof(bytes)), 0);
	bytes[8] = 3;
	assert_int_equal(read_perfetto(bytes, sizeof(bytes)), -EINVAL);
	bytes[8] = 2;
	bytes[4] = 9;
	assert_int_equal(read_perfetto(bytes, sizeof(bytes)), -EINVAL);
	bytes[4] = 6;
	bytes[12] = 10;
	assert_true(read_perfetto(bytes, sizeof(bytes)) < 0); /* the file ends in the middle */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_perfetto) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
