/* SPDX-License-Identifier: MIT */
/* Drivers that refuse, and those whose answers do not fit. */
#include <errno.h>
#include <gpreempt/rm.h>
#include <string.h>
#include "test/nvidia/rm_bench.h"

/* What the driver answers becomes an errno; after a wrong size it is not asked again. */
void case_statuses(struct test *test)
{
	static const struct {
		uint32_t status;
		int result;
	} table[] = { { GP_RM_ERR_BUSY, -EBUSY },   { GP_RM_ERR_LOST, -EIO },        { GP_RM_ERR_PERMISSIONS, -EPERM },
		      { GP_RM_ERR_CLIENT, -EBADF }, { GP_RM_ERR_CHANNEL, -ENOENT },  { GP_RM_ERR_SUPPORT, -EOPNOTSUPP },
		      { GP_RM_ERR_TIMEOUT, -EIO },  { GP_RM_ERR_STATE, -ECANCELED }, { 0xffff, -EPROTO } };
	struct fake_queue *queue, kept;
	uint32_t before;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	kept = *queue;
	for (uint32_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		rm_rule(FAKE_RM_STATUS, GP_RM_DISABLE_CHANNELS, table[i].status, 1);
		CHECK(fake_order_one(&test->fake, queue, false) == table[i].result);
		CHECK(rm_disabled(queue) == 0);
	}
	rm_rule(FAKE_RM_ERRNO, GP_RM_DISABLE_CHANNELS, ENOTTY, 1);
	CHECK(fake_order_one(&test->fake, queue, false) == -ENOTTY);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(rm_slice_order(test, queue, 1) == 0);
	rm_rule(FAKE_RM_SIZE, GP_RM_DISABLE_CHANNELS, 540, 0);
	before = rm_calls(GP_RM_DISABLE_CHANNELS);
	CHECK(fake_order_one(&test->fake, queue, false) == -EINVAL);
	/* Whatever it did with them, they are enabled again: a second call. */
	CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) == before + 2u);
	rm_refused(test, "DISABLE_CHANNELS");
	CHECK(rm_slice(&kept) == FAKE_RM_SLICE_US);
	MUST(fake_welcome(&test->fake, GP_MECHANISM_CHANNEL, LEASE_MS) && fake_until_queues(&test->fake, 1));
	CHECK(fake_order_one(&test->fake, fake_queue(&test->fake, 0), false) == -EOPNOTSUPP);
	CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) == before + 2u);
	CHECK(rm_calls(GP_RM_CTXSW_MODES) == 1);
	rm_end(test);
}

/* CUDA sets its preemption mode after its context is there: that answer is looked at with the first order. */
void case_preemption(struct test *test)
{
	struct fake_queue *queue, kept;

	rm_start(test, 1);
	rm_rule(FAKE_RM_SIZE, GP_RM_CTXSW_MODES, 32, 0);
	CHECK(test_number(test, "context", 0) == 0);
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 1);
	CHECK(test->fake.hello.mechanisms == GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL));
	queue = rm_queue(test, 0);
	kept = *queue;
	CHECK(rm_slice_order(test, queue, 1) == 0 && rm_slice(&kept) == 1);
	CHECK(fake_order_one(&test->fake, queue, false) == -EOPNOTSUPP);
	CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) == 0);
	/* What was done before is undone, and the daemon hears why. */
	rm_refused(test, "GR_GET_CTXSW_MODES");
	CHECK(rm_slice(&kept) == FAKE_RM_SLICE_US);
	MUST(fake_welcome(&test->fake, GP_MECHANISM_NONE, LEASE_MS) && fake_until_queues(&test->fake, 1));
	/* That was the last time: the next context is met on the same connection. */
	CHECK(test_number(test, "context", 0) == 1);
	MUST(fake_until_queues(&test->fake, 2));
	rm_end(test);
}

/* A driver whose answers do not fit is left alone, and the daemon hears why. */
void case_refused(struct test *test)
{
	static const struct {
		uint32_t how, command, value;
		const char *why;
	} table[] = {
		{ FAKE_RM_SIZE, GP_RM_SLICE_GET, 16, "GET_TIMESLICE" },
		{ FAKE_RM_VALUE, GP_RM_SLICE_GET, 0, "GET_TIMESLICE" },
		{ FAKE_RM_STATUS, GP_RM_GROUP_INFO, GP_RM_ERR_SUPPORT, "GET_INFO" },
		{ FAKE_RM_VALUE, GP_RM_GROUP_INFO, 0x10000, "GET_INFO" },
		{ FAKE_RM_SIZE, GP_RM_GPU_ID, 8, "GPU_GET_ID" },
		{ 0, 0, 0, "MIG" },
	};
	struct fake_queue *queue;

	for (uint32_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		memcpy(rm_folder + strlen(rm_folder) - 6, "XXXXXX", 6);
		rm_start(test, 1);
		if (table[i].how)
			rm_rule(table[i].how, table[i].command, table[i].value, 0);
		CHECK(test_number(test, "context", 0) == 0);
		MUST(fake_accept(&test->fake));
		if (!table[i].how) {
			CHECK(test_number(test, "mig", 0) == 1);
			rm_refused(test, "MIG");
		}
		CHECK(test->fake.hello.mechanisms == 0);
		CHECK(strstr(test->fake.hello.runtime, table[i].why));
		MUST(fake_welcome(&test->fake, GP_MECHANISM_CHANNEL, LEASE_MS));
		MUST(fake_until_queues(&test->fake, 1));
		queue = fake_queue(&test->fake, 0);
		CHECK(fake_order_one(&test->fake, queue, false) == -EOPNOTSUPP);
		CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) == 0);
		fake_stop(&test->fake);
		rm_end(test);
		test->ended = false;
	}
}
