/* SPDX-License-Identifier: MIT */
/* The store gives events back in the order of time, also when most of them lie in its temporary file, and as often as
 * asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lib/rng.h"
#include "report/trace/spill.h"
#include "report/trace/store.h"

#define EVENTS 20000u

static struct gp_store store;
static struct gp_error error;

static void add(uint64_t start_ns, uint64_t end_ns, const char *name, uint64_t tid)
{
	struct gp_profile_event event = { .layer = GP_LAYER_HIP, .known = GP_KNOWN_TID, .name = name, .tid = tid };

	event.name_size = strlen(name);
	event.start_ns = start_ns;
	event.end_ns = end_ns;
	event.row = 7;
	assert_int_equal(gp_store_add(&store, &event, &error), 0);
}

static void begin(size_t memory_size)
{
	assert_int_equal(gp_store_init(&store, memory_size, &error), 0);
	assert_int_equal(gp_store_file_add(&store, "f", &error), 0);
}

/* Random order through runs of 64 records: sorted, complete, twice the same. */
static void check_random(size_t memory_size, uint64_t jitter)
{
	struct gp_rng rng;
	uint64_t sum = 0;

	gp_rng_init(&rng, 42);
	begin(memory_size);
	for (uint64_t i = 0; i < EVENTS; i++) {
		uint64_t start = 1000 + i * 3 + gp_rng_below(&rng, jitter);

		add(start, start + gp_rng_below(&rng, 50), i % 2 ? "a" : "b", i % 5);
		sum += start;
	}
	for (int pass = 0; pass < 2; pass++) {
		const struct gp_trace_record *record;
		uint64_t last_start = 0, last_end = 0, count = 0, seen = 0;

		assert_int_equal(gp_store_rewind(&store, &error), 0);
		while (gp_store_next(&store, &record, &error) > 0) {
			assert_true(record->start_ns >= last_start);
			if (record->start_ns == last_start)
				assert_true(record->end_ns <= last_end);
			last_start = record->start_ns;
			last_end = record->end_ns;
			seen += record->start_ns;
			count++;
		}
		assert_int_equal(count, EVENTS);
		assert_true(seen == sum);
	}
	assert_int_equal(store.track_count, 5);
	gp_store_fini(&store);
}

static void test_order(void **state)
{
	(void)state;
	check_random(0, 100);                                   /* in memory, nearly sorted */
	check_random(0, 1000000);                               /* in memory, in no order */
	check_random(64 * sizeof(struct gp_trace_record), 100); /* hundreds of runs */
	check_random(64 * sizeof(struct gp_trace_record), 1000000);
	check_random(4 * sizeof(struct gp_trace_record), 1000);
}

/* What ends before it starts, or has no start, is counted with its row and left out. */
static void test_left_out(void **state)
{
	const struct gp_trace_record *record;

	(void)state;
	begin(0);
	add(10, 9, "backwards", 1);
	add(0, 9, "never", 1);
	add(10, 10, "point", 1);
	assert_int_equal(store.files[0].left_out, 2);
	assert_int_equal(store.files[0].left_out_row, 7);
	assert_int_equal(store.count, 1);
	assert_int_equal(gp_store_rewind(&store, &error), 0);
	assert_int_equal(gp_store_next(&store, &record, &error), 1);
	assert_string_equal(gp_names_get(&store.names, record->name), "point");
	assert_int_equal(gp_store_next(&store, &record, &error), 0);
	gp_store_fini(&store);
}

/* Names: quotes and descriptor suffixes go, broken UTF-8 is replaced, and too many of them share one. */
static void test_names(void **state)
{
	struct gp_names names;
	uint32_t a = 0, b = 0;
	char text[32], longest[2 * GP_NAMES_SIZE];

	(void)state;
	assert_int_equal(gp_names_init(&names), 0);
	assert_int_equal(gp_names_add(&names, "\"k(int) [clone .kd]\"", 20, &a), 0);
	assert_int_equal(gp_names_add(&names, "k(int)", 6, &b), 0);
	assert_int_equal(a, b);
	assert_int_equal(gp_names_add(&names, "x\xff\n\x1b", 4, &a), 0);
	assert_string_equal(gp_names_get(&names, a), "x???");
	assert_int_equal(gp_names_add(&names, "kernel\x7f<\xc3\xa9>\xc2\x9b tail", 18, &a), 0);
	assert_string_equal(gp_names_get(&names, a), "kernel?<\xc3\xa9>?? tail");
	memset(longest, 'a', sizeof(longest));
	assert_int_equal(gp_names_add(&names, longest, sizeof(longest), &a), 0);
	assert_int_equal(strlen(gp_names_get(&names, a)), GP_NAMES_SIZE - 1);
	for (uint32_t i = 0; i < 2 * GP_NAMES_MAX; i++) {
		(void)snprintf(text, sizeof(text), "n%u", i);
		assert_int_equal(gp_names_add(&names, text, strlen(text), &a), 0);
	}
	assert_int_equal(names.count, GP_NAMES_MAX);
	assert_true(names.folded > GP_NAMES_MAX / 2);
	assert_int_equal(gp_names_add(&names, "k(int)", 6, &a), 0);
	assert_int_equal(a, b);
	gp_names_fini(&names);
}

/* Thousands of threads are a refusal, not a full memory. */
static void test_tracks(void **state)
{
	struct gp_profile_event event = { .layer = GP_LAYER_HIP, .known = GP_KNOWN_TID, .name = "a", .name_size = 1 };
	int r = 0;

	(void)state;
	begin(0);
	event.start_ns = event.end_ns = 1;
	for (event.tid = 0; event.tid <= GP_STORE_TRACK_MAX && !r; event.tid++)
		r = gp_store_add(&store, &event, &error);
	assert_true(r < 0);
	assert_non_null(strstr(error.text, "threads and queues"));
	gp_store_fini(&store);
}

/* One more file whose rank may come behind its events, with an event of every thread at each of `steps` times. */
static int add_file(uint64_t rank, uint64_t tid, uint64_t threads, uint64_t steps)
{
	int r = gp_store_file_add(&store, "more", &error);

	assert_int_equal(r, 0);
	gp_store_rank(&store, UINT64_MAX);
	for (uint64_t i = 0; i < threads * steps; i++) {
		struct gp_profile_event event = { .layer = GP_LAYER_HIP,
						  .known = GP_KNOWN_TID | GP_KNOWN_PID * (i % threads % 2),
						  .name = "a",
						  .name_size = 1,
						  .pid = 7,
						  .tid = tid + i % threads };

		event.start_ns = event.end_ns = 1 + i / threads;
		r = gp_store_add(&store, &event, &error);
		if (r)
			return r;
	}
	gp_store_rank(&store, rank);
	return gp_store_file_end(&store, &error);
}

/* Files of a rank share its tracks, though the rank comes last: copies of an event follow each other, also if most of
 * them were in the temporary file by then. */
static void check_files(size_t memory_size)
{
	const struct gp_trace_record *record;
	uint64_t count = 0;

	assert_int_equal(gp_store_init(&store, memory_size, &error), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(add_file(i % 2, 1, 8, 50), 0);
	assert_int_equal(store.track_count, 16);
	assert_int_equal(gp_store_rewind(&store, &error), 0);
	for (; gp_store_next(&store, &record, &error) > 0; count++) {
		assert_int_equal(record->start_ns, 1 + count / 48);
		assert_int_equal(record->track, count % 48 / 3);
		assert_int_equal(record->file, count % 48 / 24 + 2 * (count % 3));
		assert_int_equal(gp_store_track(&store, record->track)->tid, 1 + count % 24 / 3);
		assert_int_equal(gp_store_track(&store, record->track)->rank, 1 + record->file % 2);
	}
	assert_int_equal(count, 6 * 8 * 50);
	gp_store_fini(&store);
}

static void test_files(void **state)
{
	(void)state;
	check_files(0);
	check_files(500 * sizeof(struct gp_trace_record)); /* a run has records of two or three files */
	check_files(64 * sizeof(struct gp_trace_record));
	check_files(1);
}

/* As many threads as are allowed, in two files; one more is a refusal. */
static void test_files_tracks(void **state)
{
	(void)state;
	assert_int_equal(gp_store_init(&store, 0, &error), 0);
	assert_int_equal(add_file(UINT64_MAX, 0, GP_STORE_TRACK_MAX, 1), 0);
	assert_int_equal(add_file(UINT64_MAX, 0, GP_STORE_TRACK_MAX, 1), 0);
	assert_int_equal(store.track_count, GP_STORE_TRACK_MAX);
	assert_true(add_file(UINT64_MAX, GP_STORE_TRACK_MAX, 1, 1) < 0);
	assert_non_null(strstr(error.text, "more: more than 16384 threads and queues"));
	gp_store_fini(&store);
}

/* The first rank that a file names counts: each further one would cost a walk over its threads. */
static void test_files_rank(void **state)
{
	(void)state;
	assert_int_equal(gp_store_init(&store, 0, &error), 0);
	assert_int_equal(add_file(3, 0, 2, 1), 0);
	gp_store_rank(&store, 5);
	assert_int_equal(store.files[0].rank, 4);
	assert_int_equal(store.tracks[0].rank, 4);
	gp_store_fini(&store);
}

/* A spill gives every record back, forwards and backwards, from the file and from the buffer. */
static void test_spill(void **state)
{
	struct gp_spill spill;
	const void *record;
	uint64_t value;

	(void)state;
	assert_int_equal(gp_spill_init(&spill, sizeof(value), 100 * sizeof(value), &error), 0);
	for (value = 0; value < 500000; value++)
		assert_int_equal(gp_spill_append(&spill, &value, &error), 0);
	for (uint64_t i = 500000; i-- > 0;) {
		assert_int_equal(gp_spill_get(&spill, i, &record, &error), 0);
		memcpy(&value, record, sizeof(value));
		assert_true(value == i);
	}
	for (uint64_t i = 0; i < 500000; i += 997) {
		assert_int_equal(gp_spill_get(&spill, i, &record, &error), 0);
		memcpy(&value, record, sizeof(value));
		assert_true(value == i);
	}
	assert_true(gp_spill_get(&spill, 500000, &record, &error) < 0);
	gp_spill_fini(&spill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),      cmocka_unit_test(test_left_out), cmocka_unit_test(test_names),
		cmocka_unit_test(test_tracks),     cmocka_unit_test(test_files),    cmocka_unit_test(test_files_tracks),
		cmocka_unit_test(test_files_rank), cmocka_unit_test(test_spill),
	};

	return cmocka_run_group_tests_name("report/trace/store", tests, NULL, NULL);
}
