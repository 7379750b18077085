/* SPDX-License-Identifier: MIT */
/* What the virtual node writes into a client's memory: a word is stored once. A client that sees it and answers in the
 * same word must not find its answer undone. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "vgpu/node/memory.h"

#define STEPS_MAX 1000000u

static volatile uint64_t *word; /* a child and this process have it */

static int begin(void **state)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	word = page;
	return page == MAP_FAILED ? -1 : 0;
}

static int end(void **state)
{
	(void)state;
	return munmap((void *)(uintptr_t)word, 4096);
}

static void child_store(size_t size)
{
	uint64_t one = 1;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	raise(SIGSTOP);
	gp_vm_store((void *)(uintptr_t)word, &one, size);
	_exit(0);
}

/* The child stores a 1, one instruction at a time; whenever it is there it is taken away. How often it came. */
static uint32_t count_stores(size_t size)
{
	uint32_t stores = 0;
	pid_t child = fork();
	int status;

	if (!child)
		child_store(size);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* a filter forbids ptrace */
	for (uint32_t i = 0; i < STEPS_MAX && WIFSTOPPED(status); i++) {
		if (*word) {
			*word = 0;
			stores++;
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return stores;
}

static void test_once(void **state)
{
	(void)state;
	assert_int_equal(count_stores(8), 1);
	assert_int_equal(count_stores(4), 1);
}

/* Sizes that are no word, and words at odd places, arrive whole. */
static void test_whole(void **state)
{
	uint8_t from[64], to[80];

	(void)state;
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1u);
	for (size_t at = 0; at < 9; at++) {
		for (size_t size = 0; size <= sizeof(from); size++) {
			memset(to, 0, sizeof(to));
			gp_vm_store(to + at, from, size);
			assert_memory_equal(to + at, from, size);
			assert_int_equal(to[at + size], 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_once, begin, end),
		cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
