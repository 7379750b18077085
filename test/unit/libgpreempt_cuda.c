/* SPDX-License-Identifier: MIT */
/* A hint in a CUDA process: one bounded waiting kernel and a wait behind it, once per hint, and nothing where it does
 * not fit. CUDA and the agent are stand-ins of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <gpreempt/agent_table.h>
#include <gpreempt/gpreempt.h>
#include <string.h>
#include "test/unit/fake_cuda.h"

static int hint_answer;

static int table_hint(const void *queue, uint64_t in_ns)
{
	(void)queue, (void)in_ns;
	return hint_answer;
}

__attribute__((visibility("default"))) extern const struct gp_agent_table gpreempt_agent_table;
const struct gp_agent_table gpreempt_agent_table = {
	.version = GP_AGENT_TABLE_VERSION,
	.size = sizeof(struct gp_agent_table),
	.hint = table_hint,
};

static int setup(void **state)
{
	static unsigned long long id = 100;

	(void)state;
	memset(&fake_cuda, 0, sizeof(fake_cuda));
	fake_cuda.context_id = id++;
	hint_answer = GP_AGENT_BRING_IN;
	return 0;
}

static void test_launches(void **state)
{
	(void)state;
	assert_int_equal(gpreempt_hint(NULL, 300000), 0);
	assert_int_equal(fake_cuda.streams, 1);
	assert_int_equal(fake_cuda.modules, 1);
	assert_int_equal(fake_cuda.launches, 1);
	assert_int_equal(fake_cuda.waits, 1);
	assert_int_equal(fake_cuda.words, 0x7000);
	assert_int_equal(fake_cuda.number, 1);
	assert_in_range(fake_cuda.limit_ns, 300000, 600000);
	/* Prepared under relaxed capture, and the application's mode is its own again. */
	assert_int_equal(fake_cuda.relaxed, 1);
	assert_int_equal(fake_cuda.capture_mode, 0);
	/* The second lets the first go before it is launched. */
	assert_int_equal(gpreempt_hint(NULL, 300000), 0);
	assert_int_equal(fake_cuda.streams, 1);
	assert_int_equal(fake_cuda.launches, 2);
	assert_int_equal(fake_cuda.waits, 2);
	assert_int_equal(fake_cuda.number, 2);
	assert_int_equal(fake_cuda.released, 1);
}

static void test_stays_out(void **state)
{
	(void)state;
	hint_answer = 0; /* not that kind of device */
	assert_int_equal(gpreempt_hint(NULL, 300000), 0);
	hint_answer = -ENOTCONN;
	assert_int_equal(gpreempt_hint(NULL, 300000), -ENOTCONN);
	hint_answer = GP_AGENT_BRING_IN;
	assert_int_equal(gpreempt_hint(NULL, 1000001), 0); /* too far ahead */
	fake_cuda.context_id = 0;
	assert_int_equal(gpreempt_hint(NULL, 300000), 0); /* no context */
	assert_int_equal(fake_cuda.launches, 0);
	assert_int_equal(fake_cuda.streams, 0);
}

static void test_contexts(void **state)
{
	(void)state;
	assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	fake_cuda.context_id += 1000000; /* another one, at the same address */
	assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	assert_int_equal(fake_cuda.streams, 2);
	assert_int_equal(fake_cuda.modules, 2);
	assert_int_equal(fake_cuda.number, 1);
}

/* However many contexts a process has, each gets one stream; those that come and go do not cost a live one its own. */
static void test_many_contexts(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 100; round++)
		for (uint32_t i = 0; i < 200; i++) {
			fake_cuda.context_id = 3000000u + i;
			assert_int_equal(gpreempt_hint(NULL, 1000), 0);
		}
	assert_int_equal(fake_cuda.streams, 200);
	for (uint32_t i = 0; i < 5000; i++) {
		fake_cuda.context_id = 4000000u + i;
		assert_int_equal(gpreempt_hint(NULL, 1000), 0);
		fake_cuda.context_id = 3000000u;
		assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	}
	assert_int_equal(fake_cuda.streams, 5200);
}

/* Kernels of a context that is held out do not start: more of them would fill the channel, and then the launch of a
 * hint, in the application's own thread, would wait until the context is let in. */
static void test_many(void **state)
{
	(void)state;
	fake_cuda.held_out = true;
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	assert_int_equal(fake_cuda.launches, 2);
	assert_int_equal(fake_cuda.waits, 2);
	fake_cuda_ran(2);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	assert_int_equal(fake_cuda.launches, 4);
	fake_cuda.held_out = false;
	fake_cuda_ran(4);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	assert_int_equal(fake_cuda.launches, 1004);
}

static void test_failures(void **state)
{
	(void)state;
	fake_cuda.fail = FAKE_CUDA_STREAM;
	for (int i = 0; i < 3; i++)
		assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	assert_int_equal(fake_cuda.streams, 1); /* tried once in this context */
	assert_int_equal(fake_cuda.launches, 0);
	fake_cuda.context_id += 2000000;
	fake_cuda.fail = FAKE_CUDA_LAUNCH;
	for (int i = 0; i < 3; i++)
		assert_int_equal(gpreempt_hint(NULL, 1000), 0);
	assert_int_equal(fake_cuda.launches, 1);
	assert_int_equal(fake_cuda.waits, 0);
	assert_int_equal(fake_cuda.capture_mode, 0);
}

/* The thread that takes a request has no context: the process's only primary context is brought in, and is left as it
 * was. Nothing is done where there is none, where several are in use, or where CUDA refuses. */
static void test_primary(void **state)
{
	(void)state;
	fake_cuda.primary_id = fake_cuda.context_id;
	fake_cuda.context_id = 0;
	assert_int_equal(gpreempt_hint(NULL, 300000), 0); /* CUDA is not initialised */
	fake_cuda.devices = 3;
	assert_int_equal(gpreempt_hint(NULL, 300000), 0); /* none is in use */
	fake_cuda.actives = 2;
	assert_int_equal(gpreempt_hint(NULL, 300000), 0); /* which? */
	assert_int_equal(fake_cuda.retained, 0);
	fake_cuda.actives = 1;
	fake_cuda.fail = FAKE_CUDA_RETAIN;
	assert_int_equal(gpreempt_hint(NULL, 300000), 0);
	assert_int_equal(fake_cuda.pushed, 0);
	fake_cuda.fail = FAKE_CUDA_PUSH;
	assert_int_equal(gpreempt_hint(NULL, 300000), 0);
	assert_int_equal(fake_cuda.released_primary, 1);
	assert_int_equal(fake_cuda.launches, 0);
	fake_cuda.fail = FAKE_CUDA_NONE;
	fake_cuda.context_id = 0;
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(gpreempt_hint(NULL, 300000), 0);
		assert_int_equal(fake_cuda.launches, i);
		assert_int_equal(fake_cuda.released_primary, i + 1);
		assert_int_equal(fake_cuda.context_id, 0);
	}
	assert_int_equal(fake_cuda.primary_device, 12);
	assert_int_equal(fake_cuda.streams, 1);
	assert_int_equal(fake_cuda.capture_mode, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_launches, setup),      cmocka_unit_test_setup(test_stays_out, setup),
		cmocka_unit_test_setup(test_contexts, setup),      cmocka_unit_test_setup(test_many, setup),
		cmocka_unit_test_setup(test_many_contexts, setup), cmocka_unit_test_setup(test_failures, setup),
		cmocka_unit_test_setup(test_primary, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
