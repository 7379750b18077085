/* SPDX-License-Identifier: MIT */
/* The driver's management events: which lines tell of a reset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "device/kfd/reset.h"

static bool reported(const char *text)
{
	return gp_kfd_reset_is_reported(text, strlen(text));
}

static void test_lines(void **state)
{
	(void)state;
	assert_true(reported("3 1\n"));
	assert_true(reported("9 123 -456 0\n4 1\n"));
	assert_false(reported("9 3 4\n"));
	assert_false(reported("13 1\n34 2\n"));
	assert_false(reported(""));
	assert_false(reported("\n\n 3 1\n"));
	assert_false(reported("x3 1\n"));
}

static bool logged(const char *record)
{
	return gp_kfd_reset_is_logged(record, strlen(record), "0000:03:00.0");
}

static void test_log(void **state)
{
	(void)state;
	assert_true(
		logged("3,1,2,-;amdgpu 0000:03:00.0: amdgpu: Queue preemption failed for queue with doorbell_id: 8\n"));
	assert_true(logged("3,1,2,-;amdgpu 0000:03:00.0: amdgpu: XCC 3: Queue preemption failed for queue\n X=1\n"));
	assert_false(logged("11,1,2,-;amdgpu 0000:03:00.0: amdgpu: Queue preemption failed\n")); /* a user's */
	assert_false(logged("3,1,2,-;amdgpu 0000:04:00.0: amdgpu: Queue preemption failed\n"));
	assert_false(logged("3,1,2,-;amdgpu 0000:03:00.0: fine\n DEVICE=Queue preemption failed\n"));
	assert_false(logged("amdgpu 0000:03:00.0: Queue preemption failed"));
	assert_false(logged(";0000:03:00.0 Queue preemption failed"));
	/* As gfx11's firmware, and older drivers, are told of in the field. */
	assert_true(logged("3,1,2,-;amdgpu 0000:03:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE\n"));
	assert_true(logged(
		"3,1,2,-;amdgpu 0000:03:00.0: amdgpu: failed to remove hardware queue from MES, doorbell=0x1\n"));
	assert_true(logged(
		"3,1,2,-;amdgpu 0000:03:00.0: amdgpu: MES might be in unrecoverable state, issue a GPU reset\n"));
	assert_true(logged(
		"3,1,2,-;amdgpu 0000:03:00.0: amdgpu: HIQ MQD's queue_doorbell_id0 is not 0, Queue preemption time out\n"));
	assert_false(logged("3,1,2,-;amdgpu 0000:04:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE\n"));
	assert_true(logged("3,1,2,-;amdgpu 0000:03:00.0: amdgpu: failed to suspend all gangs from MES\n"));
	/* A failure of a preemption that no reset follows stops nothing. */
	assert_false(logged("4,1,2,-;amdgpu 0000:03:00.0: amdgpu: failed to suspend gang, doorbell=0x1\n"));
	assert_false(logged("6,1,2,-;amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"));
	assert_false(logged("3,1,2,-"));
	assert_false(logged(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_log) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
