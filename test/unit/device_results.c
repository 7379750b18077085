/* SPDX-License-Identifier: MIT */
/* What is made of the driver's answers to a debugger. The driver is this test. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/kfd/trap.h"

static uint32_t runtime_state, calls[16], marks[4]; /* marks: what SUSPEND and RESUME do to each id */
static bool is_looked_at;                           /* the snapshot takes the mark INVALID away */

int __wrap_gp_kfd_dbg_trap(int fd, struct gp_kfd_dbg_trap *args);
int __wrap_gp_kfd_dbg_trap(int fd, struct gp_kfd_dbg_trap *args)
{
	uint32_t *ids = NULL, count = 0;

	(void)fd;
	calls[args->op]++;
	if (args->op == GP_KFD_DBG_ENABLE)
		((struct gp_kfd_runtime_info *)(uintptr_t)args->enable.rinfo_ptr)->runtime_state = runtime_state;
	if (args->op == GP_KFD_DBG_GET_QUEUE_SNAPSHOT && is_looked_at)
		for (size_t i = 0; i < 4; i++)
			marks[i] &= ~GP_KFD_QUEUE_INVALID;
	if (args->op == GP_KFD_DBG_SUSPEND_QUEUES) {
		ids = (uint32_t *)(uintptr_t)args->suspend.queue_array_ptr;
		count = args->suspend.num_queues;
	} else if (args->op == GP_KFD_DBG_RESUME_QUEUES) {
		ids = (uint32_t *)(uintptr_t)args->resume.queue_array_ptr;
		count = args->resume.num_queues;
	}
	for (uint32_t i = 0; i < count; i++)
		ids[i] |= marks[ids[i] % 4u];
	return (int)count;
}

/* Results of a change of queues 0 to 2. */
static void change(bool open, struct gp_device_change changes[3])
{
	for (uint32_t i = 0; i < 3; i++)
		changes[i] = (struct gp_device_change){ .queue_id = i, .open = open, .result = 77 };
	assert_int_equal(gp_kfd_trap_change(3, &(struct gp_kfd_process){ .pid = 1 }, changes, 3, 0), 0);
}

/* A queue that could not be preempted, or is not there, is never called closed. */
static void test_marks(void **state)
{
	struct gp_device_change changes[3];

	(void)state;
	is_looked_at = false;
	marks[0] = 0;
	marks[1] = GP_KFD_QUEUE_ERROR;
	marks[2] = GP_KFD_QUEUE_INVALID;
	change(false, changes);
	assert_int_equal(changes[0].result, 0);
	assert_int_equal(changes[1].result, -EIO);
	assert_int_equal(changes[2].result, -EINVAL); /* new, though it was looked at */
	change(true, changes);
	assert_int_equal(changes[0].result, 0);
	assert_int_equal(changes[1].result, -EIO);
	assert_int_equal(changes[2].result, -ESRCH); /* gone */
}

/* A new one is looked at and then suspended. */
static void test_new(void **state)
{
	struct gp_device_change changes[3];

	(void)state;
	is_looked_at = true;
	marks[0] = marks[1] = 0;
	marks[2] = GP_KFD_QUEUE_INVALID;
	change(false, changes);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(changes[i].result, 0);
}

static pid_t start_child(void)
{
	pid_t child = fork();

	if (!child) {
		alarm(60);
		for (;;)
			pause();
	}
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Without its runtime its queues could not be suspended: we are not its debugger then. */
static void test_runtime(void **state)
{
	pid_t child = start_child();
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	uint32_t disabled = calls[GP_KFD_DBG_DISABLE];

	(void)state;
	runtime_state = 0;
	assert_int_equal(gp_kfd_trap_enable(3, &(struct gp_kfd_process){ child, pidfd, 0 }), -EOPNOTSUPP);
	assert_int_equal(calls[GP_KFD_DBG_DISABLE], disabled + 1);
	runtime_state = 1;
	assert_int_equal(gp_kfd_trap_enable(3, &(struct gp_kfd_process){ child, pidfd, 0 }), 0);
	assert_int_equal(calls[GP_KFD_DBG_DISABLE], disabled + 1);
	close(pidfd);
	end_child(child);
}

/* The process has gone, and its number is another's: that one is let go, and the driver hears nothing. */
static void test_number_of_another(void **state)
{
	pid_t gone = start_child(), other = start_child();
	int pidfd = (int)syscall(SYS_pidfd_open, gone, 0);
	uint32_t enabled = calls[GP_KFD_DBG_ENABLE];

	(void)state;
	assert_true(pidfd >= 0);
	end_child(gone);
	runtime_state = 1;
	assert_int_equal(gp_kfd_trap_enable(3, &(struct gp_kfd_process){ other, pidfd, 0 }), -ESRCH);
	assert_int_equal(calls[GP_KFD_DBG_ENABLE], enabled);
	close(pidfd);
	end_child(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_number_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
