/* SPDX-License-Identifier: MIT */
/* The Perfetto trace, decoded by a small reader of its own: packets, tracks, and slices that begin and end in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "test/unit/view_sample.h"
#include "view/protobuf.h"

struct bytes {
	const uint8_t *at, *end;
};
struct field {
	uint32_t number;
	uint64_t value;
	struct bytes inner;
};

static uint64_t varint(struct bytes *bytes)
{
	uint64_t value = 0;

	for (uint32_t shift = 0; shift < 64; shift += 7) {
		assert_true(bytes->at < bytes->end);
		value |= (uint64_t)(*bytes->at & 0x7f) << shift;
		if (!(*bytes->at++ & 0x80))
			return value;
	}
	fail_msg("a varint never ends");
	return 0;
}

static bool next(struct bytes *bytes, struct field *field)
{
	uint64_t key;

	if (bytes->at == bytes->end)
		return false;
	key = varint(bytes);
	field->number = (uint32_t)(key >> 3);
	assert_true((key & 7) == 0 || (key & 7) == 2);
	field->value = varint(bytes);
	field->inner = (struct bytes){ 0 };
	if ((key & 7) == 2) {
		assert_true(field->value <= (uint64_t)(bytes->end - bytes->at));
		field->inner = (struct bytes){ bytes->at, bytes->at + field->value };
		bytes->at += field->value;
	}
	return true;
}

/* The first field of that number; zeroes if it is not there. */
static struct field find(struct bytes bytes, uint32_t number)
{
	struct field field;

	while (next(&bytes, &field))
		if (field.number == number)
			return field;
	return (struct field){ 0 };
}

static bool is_text(struct field field, const char *text)
{
	return (size_t)(field.inner.end - field.inner.at) == strlen(text) &&
	       !memcmp(field.inner.at, text, strlen(text));
}

struct track {
	uint64_t uuid, parent;
	uint32_t open;
	uint64_t last_ns;
};
static struct track tracks[256];
static uint32_t track_count, process_count, slice_count, instant_count, inversion_count;

static struct track *track_find(uint64_t uuid)
{
	for (uint32_t i = 0; i < track_count; i++)
		if (tracks[i].uuid == uuid)
			return &tracks[i];
	return NULL;
}

static void read_track(struct bytes descriptor)
{
	uint64_t uuid = find(descriptor, 1).value;
	struct field process = find(descriptor, 3);

	assert_int_not_equal(uuid, 0);
	if (process.inner.at) {
		assert_int_not_equal(find(process.inner, 1).value, 0);
		assert_non_null(find(process.inner, 6).inner.at);
		process_count++;
	} else {
		assert_non_null(track_find(find(descriptor, 5).value));
		assert_non_null(find(descriptor, 2).inner.at);
	}
	if (track_find(uuid))
		return;
	assert_true(track_count < 256);
	tracks[track_count++] = (struct track){ .uuid = uuid, .parent = find(descriptor, 5).value };
}

static void read_event(struct bytes event, uint64_t time_ns)
{
	struct track *track = track_find(find(event, 11).value);
	uint64_t type = find(event, 9).value;

	assert_non_null(track);
	assert_true(time_ns >= track->last_ns);
	track->last_ns = time_ns;
	if (type == 1) {
		/* One at a time: nothing overlaps on a track. */
		assert_int_equal(track->open, 0);
		track->open++;
		slice_count++;
	} else if (type == 2) {
		assert_int_equal(track->open, 1);
		track->open--;
	} else {
		assert_int_equal(type, 3);
		instant_count++;
	}
	if (type != 2)
		assert_non_null(find(event, 23).inner.at);
	inversion_count += is_text(find(event, 22), "inversion") && type == 1;
}

static void decode(const struct gp_result *result)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	struct bytes trace;
	struct field packet;

	track_count = process_count = slice_count = instant_count = inversion_count = 0;
	assert_int_equal(gp_view_perfetto(stream, result), 0);
	fclose(stream);
	trace = (struct bytes){ (const uint8_t *)text, (const uint8_t *)text + size };
	while (next(&trace, &packet)) {
		struct field descriptor, event;

		assert_int_equal(packet.number, 1);
		assert_int_equal(find(packet.inner, 10).value, 1);
		descriptor = find(packet.inner, 60);
		event = find(packet.inner, 11);
		assert_true(!descriptor.inner.at != !event.inner.at);
		if (descriptor.inner.at)
			read_track(descriptor.inner);
		else
			read_event(event.inner, find(packet.inner, 8).value);
	}
	for (uint32_t i = 0; i < track_count; i++)
		assert_int_equal(tracks[i].open, 0);
	free(text);
}

static uint32_t expected_slices(const struct gp_result *result, uint32_t *ret_inversions)
{
	uint32_t count = 0;

	*ret_inversions = 0;
	for (uint32_t i = 0; i < result->run_count; i++) {
		count += result->runs[i].slice_count;
		for (uint32_t j = 0; j < result->runs[i].mark_count; j++) {
			const struct gp_result_mark *mark = &result->runs[i].marks[j];

			count += mark->end_ns > mark->start_ns;
			*ret_inversions += mark->type == GP_MARK_INVERSION;
		}
	}
	return count;
}

/* Only the hpf run: in the sample of stock, requests of one queue wait at once. */
static void use_hpf_only(struct gp_result *result)
{
	result->runs[0].mark_count = result->runs[1].mark_count = 0;
}

/* Every slice, inversion and decision of the sample arrives, on tracks that were described before, one process per
 * run. */
static void test_sample(void **state)
{
	struct gp_result *result = view_sample_create(3);
	uint32_t inversions;

	(void)state;
	use_hpf_only(result);
	decode(result);
	assert_int_equal(process_count, 3);
	assert_int_equal(slice_count, expected_slices(result, &inversions));
	assert_int_equal(inversion_count, inversions);
	assert_true(inversions > 5);
	assert_true(instant_count > 20);
	view_sample_destroy(result);
}

/* Kernels of one queue that overlap get lanes of their own; two devices are two processes per run. */
static void test_overlap(void **state)
{
	struct gp_result *result = view_sample_create(1);
	uint32_t inversions;

	(void)state;
	use_hpf_only(result);
	result->device_count = 2;
	for (uint32_t i = 0; i < 5; i++)
		result->runs[0].slices[i] = (struct gp_result_slice){ .start_ns = i * 10,
								      .end_ns = 1000 + i,
								      .queue = 3,
								      .device = 1,
								      .pipe = UINT32_MAX,
								      .slot = UINT32_MAX };
	result->runs[0].slice_count = 5;
	decode(result);
	assert_int_equal(process_count, 6);
	assert_int_equal(slice_count, expected_slices(result, &inversions));
	view_sample_destroy(result);
}

/* Names that are long or not UTF-8 do not break the wire format. */
static void test_hostile_names(void **state)
{
	struct gp_result *result = view_sample_create(1);

	(void)state;
	use_hpf_only(result);
	memset(result->runs[2].clients[0].name, 0xff, sizeof(result->runs[2].clients[0].name) - 1);
	memset(result->device, 'x', sizeof(result->device) - 1);
	decode(result);
	view_sample_destroy(result);
}

/* A message that does not fit is refused as a whole; varints of every length come back. */
static void test_writer(void **state)
{
	static struct gp_protobuf message, outer;
	char *longest = malloc(600);

	(void)state;
	memset(longest, 'a', 599);
	longest[599] = '\0';
	gp_protobuf_init(&message);
	for (uint32_t i = 0; i < 64; i++)
		gp_protobuf_u64(&message, i + 1, 1ull << i);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(find((struct bytes){ message.bytes, message.bytes + message.size }, i + 1).value,
				 1ull << i);
	gp_protobuf_string(&message, 70, longest);
	assert_int_equal(find((struct bytes){ message.bytes, message.bytes + message.size }, 70).value, 512);
	assert_false(message.is_full);
	for (int i = 0; i < 4; i++)
		gp_protobuf_string(&message, 71, longest);
	assert_true(message.is_full);
	gp_protobuf_init(&outer);
	gp_protobuf_message(&outer, 1, &message);
	assert_true(outer.is_full);
	assert_true(gp_protobuf_write(&outer, 1, stderr) < 0);
	free(longest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_writer),
	};

	return cmocka_run_group_tests_name("view/perfetto", tests, NULL, NULL);
}
