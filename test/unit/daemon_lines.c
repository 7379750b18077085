/* SPDX-License-Identifier: MIT */
/* The ring of kept lines: nothing is written beside it, whatever is left at its end, and what is kept can be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "daemon/lines.h"
#include "lib/rng.h"

#define BEYOND 64u /* bytes behind the ring that must stay as they are */

static void add(struct gp_event_lines *lines, uint32_t all_size, uint32_t own_size)
{
	struct gp_line *line = gp_lines_add(lines, all_size, own_size);

	line->uid = (uid_t)lines->end_serial;
	memset(line->text, (int)(lines->end_serial & 0xff), all_size + own_size);
}

static void check(struct gp_event_lines *lines)
{
	const unsigned char *beyond = (const unsigned char *)lines->room + GP_LINES_SIZE;
	uint64_t serial = lines->begin_serial;

	for (uint64_t at = lines->begin; at < lines->end; at += gp_line_at(lines, at)->size) {
		const struct gp_line *line = gp_line_at(lines, at);

		assert_true(line->size);
		if (!line->all_size)
			continue;
		serial++;
		assert_int_equal(line->uid, (uid_t)serial);
		assert_int_equal((unsigned char)line->text[0], serial & 0xff);
		assert_int_equal((unsigned char)line->text[line->all_size + line->own_size - 1u], serial & 0xff);
	}
	assert_true(serial == lines->end_serial);
	assert_true(lines->end - lines->begin <= GP_LINES_SIZE);
	for (uint32_t i = 0; i < BEYOND; i++)
		assert_int_equal(beyond[i], 0xa5);
}

static struct gp_event_lines *create(void)
{
	struct gp_event_lines *lines = calloc(1, sizeof(*lines) + BEYOND);

	assert_non_null(lines);
	memset(lines->room + GP_LINES_SIZE, 0xa5, BEYOND);
	return lines;
}

/* Every number of bytes, in steps of 8, may be left at the end: down to less than a head, if sizes were finer. */
static void test_left(void **state)
{
	(void)state;
	for (uint32_t left = 8; left <= 256; left += 8) {
		struct gp_event_lines *lines = create();

		while (lines->end + 1024u + left < GP_LINES_SIZE)
			add(lines, 1000u - (uint32_t)sizeof(struct gp_line), 0);
		add(lines, (uint32_t)(GP_LINES_SIZE - lines->end - left - sizeof(struct gp_line)), 0);
		check(lines);
		add(lines, 300, 300);
		check(lines);
		free(lines);
	}
}

static void test_random(void **state)
{
	struct gp_event_lines *lines = create();
	struct gp_rng random;

	(void)state;
	gp_rng_init(&random, 7);
	for (uint32_t i = 0; i < 60000; i++) {
		uint32_t all_size = 1u + (uint32_t)gp_rng_below(&random, 900);

		add(lines, all_size, (uint32_t)gp_rng_below(&random, 900));
		if (i % 5000 == 0)
			check(lines);
	}
	check(lines);
	free(lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_left), cmocka_unit_test(test_random) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
