/* SPDX-License-Identifier: MIT */
/* Segments of commands as libcuda wrote them on an H200 say when they are done; damaged ones say that they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "agent/nvidia/segment.h"

#define WORDS_MAX 1024u

struct recorded {
	char kind[32];
	unsigned entry, count;
	uint32_t words[WORDS_MAX];
};

/* What the record of the same run says: which words changed when it was done. */
static const struct {
	const char *kind;
	unsigned entry;
	uint64_t progress, marker;
	uint32_t value, launches, acquires;
} expected[] = {
	{ "kernel", 8, 0x20460ffe0, 0x204637a9c, 5, 2, 1 },
	{ "two-kernels", 12, 0x20460ffe0, 0x204637abc, 9, 2, 1 },
	{ "two-kernels", 13, 0x20460ffe0, 0x204637ab4, 9, 2, 1 },
	{ "d2h-64K", 3, 0x20460ff00, 0, 0, 0, 1 },
	{ "h2d-4-bytes", 17, 0x20460ffe0, 0, 0, 0, 1 },
	{ "memset", 19, 0x20460ffe0, 0x204637a8c, 9, 2, 1 },
	{ "graph", 22, 0x20460ffe0, 0x204627fe4, 0x35, 1, 1 },
	{ "waitvalue", 24, 0x20460ffe0, 0, 0, 0, 3 },
	{ "hostfunc", 26, 0x20460ffe0, 0, 0, 0, 1 },
	{ "d2d", 28, 0x20460ffe0, 0x204637a9c, 0xd, 2, 1 },
	{ "other-stream-waits", 7, 0x20460ffd0, 0x2046379e4, 5, 2, 1 },
};

static bool read_one(FILE *file, struct recorded *ret)
{
	static char line[16384];
	char *word, *rest;

	do {
		if (!fgets(line, sizeof(line), file))
			return false;
	} while (*line == '#');
	ret->count = 0;
	snprintf(ret->kind, sizeof(ret->kind), "%s", strtok_r(line, " \n", &rest));
	ret->entry = (unsigned)atoi(strtok_r(NULL, " \n", &rest));
	while ((word = strtok_r(NULL, " \n", &rest)) != NULL) {
		char *times;
		uint32_t value = (uint32_t)strtoul(word, &times, 16);
		unsigned n = *times == 'x' ? (unsigned)atoi(times + 1) : 1u;

		while (n-- && ret->count < WORDS_MAX)
			ret->words[ret->count++] = value;
	}
	return true;
}

static void test_recorded(void **state)
{
	static struct recorded recorded;
	struct gp_nvidia_segment segment;
	FILE *file = fopen(SEGMENTS, "r");
	unsigned i = 0;

	(void)state;
	assert_non_null(file);
	for (; read_one(file, &recorded); i++) {
		assert_true(i < sizeof(expected) / sizeof(expected[0]));
		assert_string_equal(recorded.kind, expected[i].kind);
		assert_int_equal(recorded.entry, expected[i].entry);
		gp_nvidia_segment_read(recorded.words, recorded.count, &segment);
		assert_true(segment.is_exact);
		assert_int_equal(segment.progress, expected[i].progress);
		assert_int_equal(segment.payload, recorded.entry + 1u);
		assert_int_equal(segment.launches, expected[i].launches);
		assert_int_equal(segment.marker_count, expected[i].marker != 0);
		assert_int_equal(segment.acquire_count, expected[i].acquires);
		if (expected[i].marker) {
			assert_int_equal(segment.markers[0].address, expected[i].marker);
			assert_int_equal(segment.markers[0].value, expected[i].value);
		}
		/* Cut within its last command, or before it has released anything, it is not exact. */
		gp_nvidia_segment_read(recorded.words, recorded.count - 1u, &segment);
		assert_false(segment.is_exact);
		for (unsigned n = 0; n < recorded.count; n++) {
			gp_nvidia_segment_read(recorded.words, n, &segment);
			assert_true(!segment.is_exact || segment.payload >= recorded.entry);
		}
	}
	assert_int_equal(i, sizeof(expected) / sizeof(expected[0]));
	fclose(file);
}

#define HEADER(type, count, method) ((type) << 29 | (count) << 16 | (method) >> 2)

static void test_doubt(void **state)
{
	/* A marker that is one, a launch, a release. */
	const uint32_t good[] = { HEADER(1u, 2u, 0x188u),
				  2,
				  0x1000,
				  HEADER(1u, 2u, 0x180u),
				  4,
				  1,
				  HEADER(3u, 1u, 0x1b4u),
				  5,
				  HEADER(1u, 1u, 0x2b4u),
				  7,
				  HEADER(1u, 4u, 0x1b00u),
				  2,
				  0x2000,
				  1,
				  4 };
	uint32_t words[sizeof(good) / sizeof(good[0])];
	struct gp_nvidia_segment segment;
	const unsigned count = sizeof(good) / sizeof(good[0]);

	(void)state;
	gp_nvidia_segment_read(good, count, &segment);
	assert_true(segment.is_exact);
	assert_int_equal(segment.markers[0].address, 0x200001000);
	/* A kernel without a marker. */
	memcpy(words, good, sizeof(words));
	words[7] = 4;
	gp_nvidia_segment_read(words, count, &segment);
	assert_false(segment.is_exact);
	memcpy(words, good, sizeof(words));
	words[4] = 8;
	gp_nvidia_segment_read(words, count, &segment);
	assert_false(segment.is_exact);
	/* A header of no known type; a count beyond the end; nothing released; nothing at all. */
	memcpy(words, good, sizeof(words));
	words[10] = HEADER(0u, 4u, 0x1b00u);
	gp_nvidia_segment_read(words, count, &segment);
	assert_false(segment.is_exact);
	words[10] = HEADER(1u, 5u, 0x1b00u);
	gp_nvidia_segment_read(words, count, &segment);
	assert_false(segment.is_exact);
	words[10] = HEADER(1u, 4u, 0x1a00u);
	gp_nvidia_segment_read(words, count, &segment);
	assert_false(segment.is_exact);
	gp_nvidia_segment_read(words, 0, &segment);
	assert_false(segment.is_exact);
	/* An acquire is no release. */
	{
		const uint32_t acquire[] = { HEADER(1u, 5u, 0x5cu), 0x2000, 2, 1, 0, 3 };
		const uint32_t release[] = { HEADER(1u, 5u, 0x5cu), 0x2000, 2, 1, 0, 1 };

		gp_nvidia_segment_read(acquire, 6, &segment);
		assert_false(segment.is_exact);
		assert_int_equal(segment.acquire_count, 1);
		assert_int_equal(segment.acquires[0].address, 0x200002000);
		assert_false(gp_nvidia_acquire_is_met(&segment.acquires[0], 0));
		assert_true(gp_nvidia_acquire_is_met(&segment.acquires[0], 1));
		assert_true(gp_nvidia_acquire_is_met(&segment.acquires[0], 0x80000000u));
		assert_false(gp_nvidia_acquire_is_met(&segment.acquires[0], 0x80000001u));
		segment.acquires[0].until = GP_NVIDIA_EQUAL;
		assert_false(gp_nvidia_acquire_is_met(&segment.acquires[0], 2));
		segment.acquires[0].until = GP_NVIDIA_REACHED;
		assert_true(gp_nvidia_acquire_is_met(&segment.acquires[0], 0x80000001u));
		segment.acquires[0].until = GP_NVIDIA_ANY_BIT;
		assert_false(gp_nvidia_acquire_is_met(&segment.acquires[0], 2));
		gp_nvidia_segment_read(release, 6, &segment);
		assert_true(segment.is_exact);
		assert_int_equal(segment.progress, 0x200002000);
	}
}

/* So many headers that reading them would keep gates waiting: it is left alone, however well it ends. */
static void test_endless(void **state)
{
	static uint32_t words[1u << 20];
	const uint32_t release[] = { HEADER(1u, 5u, 0x5cu), 0x2000, 2, 1, 0, 1 };
	const unsigned count = sizeof(words) / sizeof(words[0]);
	struct gp_nvidia_segment segment;

	(void)state;
	for (unsigned i = 0; i < count; i++)
		words[i] = HEADER(4u, 0u, 0x100u);
	memcpy(words + count - 6, release, sizeof(release));
	gp_nvidia_segment_read(words + count - 1000, 1000, &segment);
	assert_true(segment.is_exact);
	gp_nvidia_segment_read(words, count, &segment);
	assert_false(segment.is_exact);
	assert_int_equal(segment.progress, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_endless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
