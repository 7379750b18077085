/* SPDX-License-Identifier: MIT */
/* The drivers' lists of processes: if one of them cannot be read, nobody may conclude who has gone. The drivers are
 * this test. Helpers read them, and what hangs there ends no scan late. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/process.h"
#include "daemon/scan.h"
#include "lib/aside.h"

#define HANG_S 10u

static pid_t self; /* a helper has another number */

static int list_none(pid_t *pids, uint32_t max)
{
	(void)pids, (void)max;
	return -EACCES;
}

static int list_one(pid_t *pids, uint32_t max)
{
	assert_true(max > 0);
	pids[0] = self;
	return 1;
}

static int list_queue(pid_t pid, struct gp_device_queue *queues, uint32_t max)
{
	assert_true(pid == self && max > 0);
	queues[0] = (struct gp_device_queue){ .queue_id = 3 };
	return 1;
}

static int list_hangs(pid_t *pids, uint32_t max)
{
	(void)pids, (void)max;
	return (int)sleep(HANG_S);
}

static int list_queue_hangs(pid_t pid, struct gp_device_queue *queues, uint32_t max)
{
	(void)pid, (void)queues, (void)max;
	return (int)sleep(HANG_S);
}

static const struct gp_backend_ops cannot = { .processes = list_none, .process_queues = list_queue },
				   hangs = { .processes = list_hangs, .process_queues = list_queue },
				   hangs_later = { .processes = list_one, .process_queues = list_queue_hangs },
				   can = { .processes = list_one, .process_queues = list_queue }, has_none = { 0 };

static struct gp_scan_result scan(const struct gp_backend_ops *first, const struct gp_backend_ops *second)
{
	const struct gp_driver_entry drivers[] = { { .ops = first }, { .ops = second } };
	static struct gp_scan_result result;
	const struct gp_scan_result *taken;
	int fd = eventfd(0, EFD_CLOEXEC);
	struct gp_scan *scan = gp_scan_create(drivers, 2, fd);
	uint64_t count;

	assert_non_null(scan);
	assert_true(gp_scan_begin(scan, &(pid_t){ 0 }, 0));
	assert_false(gp_scan_begin(scan, &(pid_t){ 0 }, 0));
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	taken = gp_scan_take(scan);
	assert_non_null(taken);
	result = *taken;
	gp_scan_destroy(scan);
	close(fd);
	return result;
}

static void test_complete(void **state)
{
	(void)state;
	assert_true(scan(&can, &has_none).is_complete);
	assert_int_equal(scan(&can, &can).process_count, 2);
	assert_true(scan(&can, &can).is_complete);
	assert_false(scan(&cannot, &can).is_complete);
	assert_false(scan(&can, &cannot).is_complete);
	assert_false(scan(&cannot, &has_none).is_complete);
}

/* Who it is does not depend on who looks. */
static void test_who(void **state)
{
	struct gp_scan_result result = scan(&can, &has_none);
	struct gp_process_stat process_stat;

	(void)state;
	assert_int_equal(gp_process_stat(self, &process_stat), 0);
	assert_int_equal(result.process_count, 1);
	assert_int_equal(result.processes[0].pid, self);
	assert_int_equal(result.processes[0].uid, getuid());
	assert_int_equal(result.processes[0].start, process_stat.start);
	assert_true(*result.processes[0].name);
	assert_int_equal(result.queues[0].queue_id, 3);
}

static const struct gp_scan_result *scan_again(struct gp_scan *scan, int fd)
{
	uint64_t count;

	assert_true(gp_scan_begin(scan, &(pid_t){ 0 }, 0));
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	return gp_scan_take(scan);
}

static void hang(void *unused)
{
	(void)unused;
	sleep(HANG_S);
}

/* Processes of a user who holds helpers up stay the ones that they were, so that their gates stay as they are. For
 * a second after a call that hung, no other is made for him. */
static void test_barred(void **state)
{
	const struct gp_driver_entry driver = { .ops = &can };
	int fd = eventfd(0, EFD_CLOEXEC);
	struct gp_scan *scan = gp_scan_create(&driver, 1, fd);
	const struct gp_scan_result *result = scan_again(scan, fd);
	struct gp_scan_process before = result->processes[0];
	char byte = 0;

	(void)state;
	assert_int_equal(result->process_count, 1);
	assert_true(before.start);
	assert_int_equal(gp_aside_call(GP_ASIDE_SCAN(getuid()), hang, &byte, 1), -ETIMEDOUT);
	result = scan_again(scan, fd);
	assert_int_equal(result->process_count, 1);
	assert_int_equal(result->processes[0].start, before.start);
	assert_string_equal(result->processes[0].name, before.name);
	assert_true(result->is_complete);
	gp_scan_destroy(scan);
	close(fd);
}

static void pass(void *unused)
{
	(void)unused;
}

static void test_hangs(void **state)
{
	struct gp_scan_result result = scan(&hangs, &can);
	char byte = 0;

	(void)state;
	assert_false(result.is_complete);
	assert_int_equal(result.process_count, 1);
	/* That driver's lists are not looked at for a second; all else is, also root's new connections. */
	result = scan(&can, &can);
	assert_false(result.is_complete);
	assert_int_equal(result.process_count, 1);
	assert_int_equal(gp_aside_call(GP_ASIDE_ROOT, pass, &byte, 1), 0);
	sleep(2);
	result = scan(&can, &hangs_later);
	assert_false(result.is_complete);
	assert_int_equal(result.process_count, 1);
	assert_true(gp_aside_left() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_complete), cmocka_unit_test(test_who),
					    cmocka_unit_test(test_barred), cmocka_unit_test(test_hangs) };
	int r;

	self = getpid();
	if (gp_aside_start())
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	gp_aside_stop();
	return r;
}
