/* SPDX-License-Identifier: MIT */
/* Calls in helper processes: answers come back, a call that hangs is left behind and bars its owner alone, and it comes
 * back later. A helper has none of this process's files, and helpers and their maker may be killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/aside.h"
#include "lib/clock.h"

/* Shared with the helpers. */
static struct shared {
	bool may_return; /* atomic */
	int waiting;     /* atomic: calls that hang now */
} * shared;

struct sum {
	uint32_t a, b, sum;
	pid_t pid;
	char rest[20000];
};

static void sum_add(void *data)
{
	struct sum *sum = data;

	sum->sum = sum->a + sum->b;
	sum->pid = getpid();
	sum->rest[sizeof(sum->rest) - 1] = (char)(sum->rest[0] + 1);
}

static void sum_hang(void *data)
{
	__atomic_fetch_add(&shared->waiting, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&shared->may_return, __ATOMIC_SEQ_CST))
		usleep(1000);
	__atomic_fetch_sub(&shared->waiting, 1, __ATOMIC_SEQ_CST);
	sum_add(data);
}

static void sum_look(void *data)
{
	struct sum *sum = data;

	/* The number is that of a file of the caller's. */
	sum->sum = fcntl((int)sum->a, F_GETFD) < 0;
	sum->pid = getpid();
}

static void sum_check(uint64_t owner)
{
	struct sum sum = { .a = 20, .b = 22, .rest = { 6 } };

	assert_int_equal(gp_aside_call(owner, sum_add, &sum, sizeof(sum)), 0);
	assert_int_equal(sum.sum, 42);
	assert_int_equal(sum.rest[sizeof(sum.rest) - 1], 7);
	assert_int_not_equal(sum.pid, getpid());
}

static int setup(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(gp_aside_start(), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gp_aside_stop();
	munmap(shared, sizeof(*shared));
	return 0;
}

static void without_helpers(void **state)
{
	struct sum sum = { .a = 1, .b = 2 };

	(void)state;
	assert_int_equal(gp_aside_call(1, sum_add, &sum, sizeof(sum)), 0);
	assert_int_equal(sum.sum, 3);
	assert_int_equal(sum.pid, getpid());
}

static void answers(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		sum_check((uint64_t)i);
}

static void *many_thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < 50; i++)
		sum_check(5);
	return NULL;
}

static void answers_threads(void **state)
{
	pthread_t threads[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_thread, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(gp_aside_left(), 0);
}

static void has_no_files(void **state)
{
	struct sum sum = { .a = (uint32_t)open("/dev/null", O_RDONLY) };

	(void)state;
	assert_int_equal(gp_aside_call(1, sum_look, &sum, sizeof(sum)), 0);
	assert_int_equal(sum.sum, 1);
	close((int)sum.a);
}

static void hangs(void **state)
{
	struct sum sum = { .a = 1, .b = 1 };
	uint64_t begin_ns = gp_clock_ns();
	uint32_t left = 1;

	(void)state;
	assert_int_equal(gp_aside_call(7, sum_hang, &sum, sizeof(sum)), -ETIMEDOUT);
	/* Not so long that the caller's worker counts the caller as hanging, too; a busy machine gets another try. */
	for (int i = 10; gp_clock_ns() - begin_ns >= 1000000000 && i < 20; i++) {
		begin_ns = gp_clock_ns();
		assert_int_equal(gp_aside_call((uint64_t)i, sum_hang, &sum, sizeof(sum)), -ETIMEDOUT);
		left++;
	}
	assert_true(gp_clock_ns() - begin_ns < 1000000000);
	assert_int_equal(sum.sum, 0);
	assert_int_equal(gp_aside_left(), left);
	/* That owner's next call is not made; others' are. */
	assert_int_equal(gp_aside_call(7, sum_add, &sum, sizeof(sum)), -EBUSY);
	sum_check(8);
	__atomic_store_n(&shared->may_return, true, __ATOMIC_SEQ_CST);
	while (gp_aside_left())
		usleep(1000);
	sum_check(8);
}

static void sum_slow(void *data)
{
	usleep(300000);
	sum_add(data);
}

/* What is late for a client keeps a driver's thread: it has a tenth of its time. New connections have not. */
static void slow(void **state)
{
	struct sum sum = { .a = 1, .b = 1 };

	(void)state;
	assert_int_equal(gp_aside_call(GP_ASIDE_CLIENT(3), sum_slow, &sum, sizeof(sum)), 0);
	assert_int_equal(sum.sum, 2);
	assert_int_equal(gp_aside_call(GP_ASIDE_CLIENT(3), sum_add, &sum, sizeof(sum)), -EBUSY);
	sum_check(GP_ASIDE_CLIENT(4));
	assert_int_equal(gp_aside_call(3, sum_slow, &sum, sizeof(sum)), 0);
	sum_check(3);
	assert_int_equal(gp_aside_left(), 0);
	while (gp_aside_call(GP_ASIDE_CLIENT(3), sum_add, &sum, sizeof(sum)) == -EBUSY)
		usleep(10000);
	sum_check(GP_ASIDE_CLIENT(3));
}

/* Root is not barred for a time, but has only so many helpers, too. */
static void hangs_root(void **state)
{
	struct sum sum = { .a = 1, .b = 1 };

	(void)state;
	assert_int_equal(gp_aside_call(GP_ASIDE_ROOT, sum_hang, &sum, sizeof(sum)), -ETIMEDOUT);
	sum_check(GP_ASIDE_ROOT);
	__atomic_store_n(&shared->may_return, true, __ATOMIC_SEQ_CST);
}

static void *hang_thread(void *owner)
{
	struct sum sum = { .a = 1, .b = 1 };

	assert_int_equal(gp_aside_call((uint64_t)(uintptr_t)owner, sum_hang, &sum, sizeof(sum)), -ETIMEDOUT);
	return NULL;
}

/* Others who take all the places that there are for them do not take root's. */
static void hangs_all(void **state)
{
	struct sum sum = { .a = 1, .b = 1 };
	pthread_t threads[48];

	(void)state;
	for (uintptr_t i = 0; i < 48; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hang_thread, (void *)(i + 1)), 0);
	for (int i = 0; i < 48; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(gp_aside_left(), 48);
	assert_int_equal(gp_aside_call(100, sum_add, &sum, sizeof(sum)), -EBUSY);
	sum_check(GP_ASIDE_ROOT);
	__atomic_store_n(&shared->may_return, true, __ATOMIC_SEQ_CST);
	while (gp_aside_left())
		usleep(1000);
	sum_check(100);
}

static void stops_beside_hanging(void **state)
{
	struct sum sum = { .a = 1, .b = 1 };

	(void)state;
	assert_int_equal(gp_aside_call(7, sum_hang, &sum, sizeof(sum)), -ETIMEDOUT);
	gp_aside_stop();
	/* A thread that has not noticed does not make its call itself: that could keep the process from ending. */
	assert_int_equal(gp_aside_call(8, sum_add, &sum, sizeof(sum)), -ESHUTDOWN);
	assert_int_equal(sum.sum, 0);
	__atomic_store_n(&shared->may_return, true, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->waiting, __ATOMIC_SEQ_CST))
		usleep(1000);
	assert_int_equal(gp_aside_start(), 0);
	sum_check(7);
}

static void helper_killed(void **state)
{
	struct sum sum = { .a = 1, .b = 1 };

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(gp_aside_call(1, sum_add, &sum, sizeof(sum)), 0);
		assert_int_equal(kill(sum.pid, SIGKILL), 0);
		sum_check(1);
	}
	assert_int_equal(gp_aside_left(), 0);
}

static void sum_parent(void *data)
{
	((struct sum *)data)->pid = getppid();
}

static void maker_killed(void **state)
{
	struct sum sum = { 0 };

	(void)state;
	assert_int_equal(gp_aside_call(1, sum_parent, &sum, sizeof(sum)), 0);
	assert_int_equal(kill(sum.pid, SIGKILL), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(gp_aside_call(1, sum_add, &sum, sizeof(sum)), 0);
		assert_int_equal(kill(sum.pid, SIGKILL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_helpers),
		cmocka_unit_test_setup_teardown(answers, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(has_no_files, setup, teardown),
		cmocka_unit_test_setup_teardown(hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(slow, setup, teardown),
		cmocka_unit_test_setup_teardown(hangs_root, setup, teardown),
		cmocka_unit_test_setup_teardown(hangs_all, setup, teardown),
		cmocka_unit_test_setup_teardown(stops_beside_hanging, setup, teardown),
		cmocka_unit_test_setup_teardown(helper_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(maker_killed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
