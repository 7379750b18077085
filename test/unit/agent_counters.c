/* SPDX-License-Identifier: MIT */
/* The packet at a queue's head: does it run, wait, or is it not there yet. Counters whose memory has gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include "agent/fds.h"
#include "agent/kfd/kfd.h"
#include "agent/sys.h"

struct signal {
	int64_t kind, value;
};

static void put(uint8_t *packet, uint32_t offset, uint64_t value)
{
	memcpy(packet + offset, &value, sizeof(value));
}

static void test_barriers(void **state)
{
	struct signal zero = { 1, 0 }, one = { 1, 1 };
	uint8_t packet[64] = { 3, 1 };

	(void)state;
	assert_int_equal(gp_kfd_packet_head(packet), GP_KFD_HEAD_RUNS); /* AND of nothing */
	put(packet, 8, (uintptr_t)&zero);
	put(packet, 24, (uintptr_t)&one);
	assert_int_equal(gp_kfd_packet_head(packet), GP_KFD_HEAD_WAITS);
	packet[0] = 5;
	assert_int_equal(gp_kfd_packet_head(packet), GP_KFD_HEAD_RUNS);
	put(packet, 8, (uintptr_t)&one);
	assert_int_equal(gp_kfd_packet_head(packet), GP_KFD_HEAD_WAITS);
	packet[0] = 2;
	assert_int_equal(gp_kfd_packet_head(packet), GP_KFD_HEAD_RUNS);
	packet[0] = 1;
	assert_int_equal(gp_kfd_packet_head(packet), GP_KFD_HEAD_INVALID);
	/* A signal at an address that is not there: nobody faults, and the queue counts as runnable. */
	packet[0] = 3;
	put(packet, 8, 0x10);
	put(packet, 24, UINT64_MAX - 3u);
	assert_int_equal(gp_kfd_packet_head(packet), GP_KFD_HEAD_RUNS);
}

/* (signal & mask) cond value: EQ NE LT GTE. */
static void test_barrier_value(void **state)
{
	static const struct {
		int64_t value, mask, against;
		bool waits[4];
	} rows[] = {
		{ 5, -1, 5, { false, true, true, false } },
		{ 5, -1, 6, { true, false, false, true } },
		{ 0xf5, 0xf, 5, { false, true, true, false } },
		{ -2, -1, 0, { true, false, false, true } },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint32_t condition = 0; condition < 4u; condition++) {
			struct signal signal = { 1, rows[i].value };
			uint8_t packet[64] = { 0, 1, 2 };

			put(packet, 8, (uintptr_t)&signal);
			put(packet, 16, (uint64_t)rows[i].against);
			put(packet, 24, (uint64_t)rows[i].mask);
			put(packet, 32, condition);
			assert_int_equal(gp_kfd_packet_head(packet),
					 rows[i].waits[condition] ? GP_KFD_HEAD_WAITS : GP_KFD_HEAD_RUNS);
		}
}

/* Units and odd moments, by format. */
static void test_formats(void **state)
{
	uint64_t write = 3, read = 1;
	uint8_t ring[4][64] = { { 2 }, { 2 }, { 2 }, { 1 } };
	struct gp_slot slot = { .format = GP_KFD_AQL,
				.ring = (uintptr_t)ring,
				.ring_size = sizeof(ring),
				.write_pointer = (uintptr_t)&write,
				.read_pointer = (uintptr_t)&read };
	struct gp_slot *slots[1] = { &slot };

	(void)state;
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 3 && slot.completed == 1 && !slot.blocked && !slot.unreadable);
	read = 3;
	write = 4; /* reserved, not written */
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 3 && slot.completed == 3);
	ring[3][0] = 2;
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 4 && slot.completed == 3);
	ring[3][0] = 1; /* taken by the packet processor, which marked it */
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 4 && slot.completed == 3);
	slot.format = GP_KFD_SDMA;
	write = 4096;
	read = 1024;
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 4096 && slot.completed == 1024);
	slot.format = GP_KFD_PM4; /* 64 dwords a ring; the read pointer wraps */
	write = 130;
	read = 60;
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 130 && slot.completed == 124);
}

/* Rings that hold nothing, which a driver may let an application have: there is something to do, and nothing else. */
static void test_no_ring(void **state)
{
	uint64_t write = 130, read = 60;
	uint8_t packet[64] = { 2 };
	struct gp_slot slot = { .format = GP_KFD_AQL,
				.ring = (uintptr_t)packet,
				.ring_size = 32,
				.write_pointer = (uintptr_t)&write,
				.read_pointer = (uintptr_t)&read };
	struct gp_slot *slots[1] = { &slot };

	(void)state;
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 130 && slot.completed == 60 && !slot.blocked);
	slot.format = GP_KFD_PM4;
	slot.ring_size = 0;
	gp_kfd_sample(slots, 1);
	assert_true(slot.written == 130 && slot.completed == 130);
}

/* Memory that was unmapped: the slot says so, its neighbours are read all the same. */
static void test_gone(void **state)
{
	uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		 good[2] = { 9, 9 };
	struct gp_slot a = { .format = GP_KFD_SDMA,
			     .write_pointer = (uintptr_t)&page[0],
			     .read_pointer = (uintptr_t)&page[1] };
	struct gp_slot b = { .format = GP_KFD_SDMA,
			     .write_pointer = (uintptr_t)&good[0],
			     .read_pointer = (uintptr_t)&good[1] };
	struct gp_slot *slots[3] = { &b, &a, &b };

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	munmap(page, 4096);
	gp_kfd_sample(slots, 3);
	assert_true(a.unreadable && !b.unreadable && b.written == 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_barriers), cmocka_unit_test(test_barrier_value),
					    cmocka_unit_test(test_formats), cmocka_unit_test(test_gone),
					    cmocka_unit_test(test_no_ring) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
