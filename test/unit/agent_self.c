/* SPDX-License-Identifier: MIT */
/* The agent as debugger of its own process: which descriptor it gives the driver to write to. The driver is this test.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/kfd/kfd.h"
#include "agent/sys.h"

static uint32_t enables;
static int written_to, refuses;

int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg)
{
	const struct gp_kfd_dbg_trap *args = arg;

	(void)fd;
	assert_int_equal(request, GP_KFD_IOC_DBG_TRAP);
	if (args->op == GP_KFD_DBG_ENABLE) {
		enables++;
		written_to = (int)args->enable.dbg_fd;
	}
	return args->op == GP_KFD_DBG_ENABLE ? 0 : refuses;
}

static int begin(void **state)
{
	int ends[2];

	(void)state;
	enables = 0;
	written_to = -1;
	refuses = 0;
	assert_int_equal(gp_page_reserve(), 0);
	gp_kfd = (struct gp_kfd){ .runtime = GP_KFD_RUNTIME_OURS, .queue_counts = { 1 } };
	assert_int_equal(gp_fd_take(GP_KFD_FD, open("/dev/null", O_RDWR | O_CLOEXEC)), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(gp_fd_take(GP_FD_DEBUG_OUT, ends[0]), 0);
	assert_int_equal(gp_fd_take(GP_FD_DEBUG_IN, ends[1]), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gp_slots_reset();
	gp_fds_drop_all();
	return 0;
}

static int close_gate(void)
{
	struct gp_slot *slot = gp_slot_add(0x7f0000000000ull);
	int result = 1;

	gp_kfd_self_change(&slot, 1, false, &result);
	return result;
}

static void test_ours(void **state)
{
	(void)state;
	assert_int_equal(close_gate(), 0);
	assert_int_equal(enables, 1);
	assert_int_equal(written_to, gp_fd(GP_FD_DEBUG_IN));
}

/* Its number has become the application's: the driver is not asked to write there. */
static void test_stolen(void **state)
{
	int number = gp_fd(GP_FD_DEBUG_IN), other = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(gp_sys(SYS_dup3, other, number, O_CLOEXEC), number);
	assert_int_equal(close_gate(), -EBADF);
	assert_int_equal(enables, 0);
	assert_int_equal(close(number), 0);
	close(other);
}

/* The driver is busy when the agent gives the debugger's place back: its queues are still suspended, and opened later.
 */
static void test_busy(void **state)
{
	int result = 1;
	struct gp_slot *slot;

	(void)state;
	assert_int_equal(close_gate(), 0);
	slot = &gp_slots[0];
	slot->used = slot->closed = true;
	slot->closed_by = GP_MECHANISM_SELF;
	refuses = -EBUSY;
	gp_kfd_self_release();
	assert_true(slot->closed && gp_kfd.debugging);
	gp_kfd_self_change(&slot, 1, true, &result);
	assert_int_equal(result, -EBUSY);
	refuses = -EINVAL; /* it is no debugger any more */
	gp_kfd_self_release();
	assert_false(slot->closed || gp_kfd.debugging);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ours, begin, end),
		cmocka_unit_test_setup_teardown(test_stolen, begin, end),
		cmocka_unit_test_setup_teardown(test_busy, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
