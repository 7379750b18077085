/* SPDX-License-Identifier: MIT */
/* The kernel's log: every line for which the daemon stops a GPU is one that `doctor` and `report` count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "lib/klog.h"

static void failed(const char *line, bool stops)
{
	const struct gp_klog_pattern *pattern = gp_klog_find(line);

	assert_non_null(pattern);
	assert_int_equal(pattern->kind, GP_KLOG_PREEMPTION_FAILED);
	assert_int_equal(pattern->stops, stops);
	assert_true(gp_klog_is_driver(line));
}

static void test_preemption_failed(void **state)
{
	(void)state;
	failed("amdgpu 0000:03:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE", true);
	failed("amdgpu 0000:03:00.0: amdgpu: MES might be in unrecoverable state, issue a GPU reset", true);
	failed("amdgpu 0000:03:00.0: amdgpu: failed to suspend all gangs from MES", true);
	failed("amdgpu 0000:03:00.0: amdgpu: failed to remove hardware queue from MES, doorbell=0x1", true);
	failed("amdgpu 0000:03:00.0: amdgpu: XCC 3: Queue preemption failed for queue with doorbell_id: 8", true);
	failed("amdgpu: HIQ MQD's queue_doorbell_id0 is not 0, Queue preemption time out", true);
	failed("amdgpu: The cp might be in an unrecoverable state due to an unsuccessful queues preemption", true);
	failed("amdgpu: qcm fence wait loop timeout expired", false);
	failed("amdgpu: failed to suspend gang, doorbell=0x1", false);
}

/* Other lines that the driver writes when all is well, or about the schedulers. */
static void test_other_lines(void **state)
{
	(void)state;
	assert_null(gp_klog_find("amdgpu 0000:03:00.0: amdgpu: fine"));
	assert_int_equal(gp_klog_find("amdgpu: MES scheduler enabled")->kind, GP_KLOG_SCHEDULER);
	assert_string_equal(gp_klog_find("amdgpu: MES scheduler enabled")->text, "MES");
	assert_int_equal(gp_klog_find("amdgpu: GPU reset begin!")->kind, GP_KLOG_RESET);
	assert_false(gp_klog_find("amdgpu: GPU reset begin!")->stops);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_preemption_failed),
					    cmocka_unit_test(test_other_lines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
