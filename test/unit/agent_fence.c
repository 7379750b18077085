/* SPDX-License-Identifier: MIT */
/*
 * Doorbells with and without a fence of their own (agent/fence.c): which word of the page has what, when it changes,
 * and that a process that may not call membarrier has the fence.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/sys.h"

static struct gp_slot *slot;
static struct gp_doorbell *doorbell;
static struct gp_page_queue *queue;

static int begin(void **state)
{
	(void)state;
	assert_int_equal(gp_page_reserve(), 0);
	assert_true(gp_fd_take(GP_FD_DOORBELL, eventfd(0, EFD_NONBLOCK)) >= 0);
	assert_true(gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_NONBLOCK)) >= 0);
	slot = gp_slot_add(0x10000);
	doorbell = gp_slot_doorbell(slot);
	queue = &gp_page_now->queues[doorbell->slot];
	gp_page_slot_init(slot);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gp_agent.arms_without_barrier = false;
	gp_fence_forget();
	gp_slots_reset();
	gp_page_unmap();
	gp_fds_drop_all();
	return 0;
}

static bool ring(uint64_t packets)
{
	return gp_doorbell_ring(doorbell, 1, packets - 1u, packets);
}

static void *ring_twice(void *packets)
{
	ring(*(const uint64_t *)packets);
	ring(*(const uint64_t *)packets + 1u);
	return NULL;
}

static bool rung(void)
{
	uint64_t count;

	return read(gp_fd(GP_FD_DOORBELL), &count, sizeof(count)) == sizeof(count);
}

static bool may_call(void)
{
	gp_fence_register();
	gp_fence_settle();
	return !(doorbell->flags & GP_DOORBELL_FENCED);
}

static bool refused_here;

/* Where membarrier is refused nothing is left to see but that doorbells make their own fences: test_fenced. */
static void must_call(void)
{
	refused_here = !may_call();
	if (refused_here)
		skip();
}

/* Nobody has said that he makes fences: the shared word has everything. */
static void test_fenced(void **state)
{
	(void)state;
	assert_true(doorbell->flags & GP_DOORBELL_FENCED);
	gp_fence_settle();
	assert_true(doorbell->flags & GP_DOORBELL_FENCED);
	assert_true(ring(1) && ring(2) && ring(3));
	assert_int_equal(queue->doorbell, 3);
	queue->armed = GP_ARMED_BUSY;
	assert_true(ring(4) && rung());
	assert_true(queue->doorbell == 4 && !queue->armed);
	assert_int_equal(gp_page_now->plain, 0);
}

/* The first thread gets a word of its own, from its second doorbell on; the others share one. Nobody's smaller value
 * takes anything back. */
static void test_words(void **state)
{
	uint64_t second = 20;
	pthread_t thread;

	(void)state;
	must_call();
	assert_int_equal(gp_page_now->plain, 1);
	assert_true(ring(5) && queue->doorbell == 5 && !queue->owned);
	assert_true(ring(6) && queue->doorbell == 5 && queue->owned == 6);
	assert_true(ring(4) && queue->owned == 6);
	assert_int_equal(pthread_create(&thread, NULL, ring_twice, &second), 0);
	pthread_join(thread, NULL);
	assert_true(queue->doorbell == 21 && queue->owned == 6);
	assert_true(ring(8) && queue->doorbell == 21 && queue->owned == 8);
	assert_int_equal(gp_page_announced(queue), 21);
	assert_false(rung());
	queue->armed = GP_ARMED_IDLE;
	assert_true(ring(30) && !rung() && queue->armed == GP_ARMED_IDLE);
	queue->armed = GP_ARMED_BUSY;
	assert_true(ring(31) && rung() && !queue->armed);
	__atomic_fetch_or(&doorbell->flags, GP_DOORBELL_WITHHELD, __ATOMIC_SEQ_CST);
	assert_false(ring(32));
	assert_int_equal(gp_page_announced(queue), 32);
}

/* A daemon that makes no barriers: everything that was announced is in the shared word, and stays there. */
static void test_bare(void **state)
{
	(void)state;
	must_call();
	ring(1);
	ring(7);
	assert_true(queue->doorbell == 1 && queue->owned == 7);
	gp_agent.arms_without_barrier = true;
	gp_fence_settle();
	assert_true(doorbell->flags & GP_DOORBELL_FENCED);
	assert_int_equal(queue->doorbell, 7);
	ring(8);
	assert_int_equal(queue->doorbell, 8);
	slot = gp_slot_add(0x20000);
	assert_true(gp_slot_doorbell(slot)->flags & GP_DOORBELL_FENCED);
	gp_agent.arms_without_barrier = false;
	gp_fence_settle();
	assert_false(doorbell->flags & GP_DOORBELL_FENCED || gp_slot_doorbell(slot)->flags & GP_DOORBELL_FENCED);
	slot = gp_slot_add(0x30000);
	assert_false(gp_slot_doorbell(slot)->flags & GP_DOORBELL_FENCED);
}

static bool refuse_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a child, because a filter stays: 0 as it should be, 1 not, 2 no filters here. */
static int refused_child(bool after)
{
	if (after && (!may_call() || !gp_fence_all()))
		return 2;
	if (!refuse_membarrier())
		return 2;
	if (!after)
		return may_call() || gp_page_now->plain;
	ring(1);
	ring(2);
	if (gp_fence_all() || !(doorbell->flags & GP_DOORBELL_FENCED))
		return 1;
	gp_fence_settle();
	ring(3);
	return !(doorbell->flags & GP_DOORBELL_FENCED) || queue->doorbell != 3;
}

/* A filter that was there before, and one that came after: doorbells make their own fences, and the caller knows that
 * this once nobody did. */
static void test_refused(void **state)
{
	(void)state;
	for (int after = 0; after < 2; after++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(refused_child(after));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 2)
			skip();
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fenced, begin, end),
		cmocka_unit_test_setup_teardown(test_words, begin, end),
		cmocka_unit_test_setup_teardown(test_bare, begin, end),
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
	};
	int failures = cmocka_run_group_tests(tests, NULL, NULL);

	if (failures || !refused_here)
		return failures;
	print_message("skipped: membarrier is refused here\n");
	return 77;
}
