/* SPDX-License-Identifier: MIT */
/* What the agent knows of the work of a context, on the fake resource manager. */
#include <errno.h>
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/nvidia/rm_bench.h"

static bool work_is(struct test *test, const struct fake_queue *queue, uint64_t written, uint64_t completed)
{
	const struct gp_page_queue *page = &test->fake.page->queues[queue->said.slot];

	/* What is known as far as it is fetched is known one look later, and a look reads only so many entries. */
	for (uint32_t i = 0; i < 16u; i++)
		if (!fake_sync(&test->fake) || page->completed > page->written)
			return false;
	if (page->written == written && page->completed == completed)
		return true;
	printf("# written %llu, completed %llu\n", (unsigned long long)page->written,
	       (unsigned long long)page->completed);
	return false;
}

/* How the work is known comes by QUEUE_CHANGE, some time after the look. */
static bool work_is_at_fetch(struct test *test, const struct fake_queue *queue, bool at_fetch)
{
	for (int i = 0; i < AGENT_WAIT_MS; i++, usleep(1000))
		if (fake_sync(&test->fake) && !(queue->said.flags & GP_QUEUE_FETCH) != at_fetch)
			return true;
	return false;
}

/* An entry is done when its kernel has run, not when it has been fetched or taken in. */
void case_work(struct test *test)
{
	struct fake_queue *queue;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	CHECK(work_is(test, queue, 0, 0));
	CHECK(!strcmp(test_ask(test, "submit 0 0"), "ok 0"));
	CHECK(work_is(test, queue, 1, 0));
	test_ask(test, "take 0");
	CHECK(work_is(test, queue, 1, 0));
	test_ask(test, "finish 0 0");
	CHECK(work_is(test, queue, 1, 1));
	/* On two channels; two kernels of one channel end in another order. */
	CHECK(!strcmp(test_ask(test, "submit 0 0"), "ok 1"));
	CHECK(!strcmp(test_ask(test, "submit 0 0"), "ok 2"));
	CHECK(!strcmp(test_ask(test, "submit 3 0"), "ok 0"));
	test_ask(test, "take 0");
	test_ask(test, "take 3");
	test_ask(test, "finish 0 2");
	CHECK(work_is(test, queue, 4, 2));
	test_ask(test, "finish 3 0");
	CHECK(work_is(test, queue, 4, 3));
	test_ask(test, "finish 0 1");
	CHECK(work_is(test, queue, 4, 4));
	/* What is no kernel is done when it is taken in. */
	test_ask(test, "submit 0 1");
	CHECK(work_is(test, queue, 5, 4));
	test_ask(test, "take 0");
	CHECK(work_is(test, queue, 5, 5));
	/* What cannot be followed is done when it is fetched, which is said. */
	CHECK(!(queue->said.flags & GP_QUEUE_FETCH));
	test_ask(test, "submit 3 2");
	CHECK(work_is(test, queue, 6, 5));
	CHECK(work_is_at_fetch(test, queue, true));
	test_ask(test, "take 3");
	CHECK(work_is(test, queue, 6, 6));
	/* A ring goes round, also more than once between two looks. */
	for (uint32_t i = 0; i < 5u; i++) {
		test_ask(test, "many 0 500");
		CHECK(work_is(test, queue, 6u + (i + 1u) * 500u, 6u + (i + 1u) * 500u));
	}
	CHECK(work_is_at_fetch(test, queue, false));
	test_ask(test, "many 0 1500");
	CHECK(work_is(test, queue, 4006, 4006));
	/* A channel that goes takes nothing away from the sums. */
	test_ask(test, "submit 7 0");
	CHECK(work_is(test, queue, 4007, 4006));
	CHECK(!strcmp(test_ask(test, "free 0 channel"), "ok 0"));
	CHECK(work_is(test, queue, 4007, 4007));
	/* Memory that goes is not read any more; kernels whose memory is gone are not waited for. */
	test_ask(test, "submit 0 0");
	CHECK(!strcmp(test_ask(test, "free 0 unmap"), "ok 0"));
	CHECK(fake_sync(&test->fake));
	rm_end(test);
}

/* A marker that comes a moment after the progress word is waited for; a burst that is over is done at one look. */
void case_marker(struct test *test)
{
	const struct gp_page_queue *page;
	struct fake_queue *queue;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	page = &test->fake.page->queues[queue->said.slot];
	CHECK(!strcmp(test_ask(test, "submit 1 0"), "ok 0"));
	test_ask(test, "progress 1");
	CHECK(fake_sync(&test->fake));
	CHECK(page->written == 1 && page->completed == 0);
	test_ask(test, "take 1");
	CHECK(work_is(test, queue, 1, 0));
	test_ask(test, "finish 1 0");
	CHECK(work_is(test, queue, 1, 1));
	test_ask(test, "many 1 200");
	CHECK(fake_sync(&test->fake) && page->written == 201 && page->completed == 201);
	/* The word was used again, by a kernel that runs now: the older one is done. */
	test_ask(test, "many 1 55");
	CHECK(fake_sync(&test->fake));
	CHECK(!strcmp(test_ask(test, "submit 1 0"), "ok 256"));
	test_ask(test, "take 1");
	CHECK(work_is(test, queue, 257, 256));
	test_ask(test, "finish 1 256");
	CHECK(work_is(test, queue, 257, 257));
	/* Asked for all of it, the agent looks at all that the ring holds. */
	test_ask(test, "many 1 500");
	CHECK(fake_sync(&test->fake) && page->written == 757 && page->completed == 757);
	/* One that was put aside before it began, however long ago, is not done; nor while its gate is closed. */
	CHECK(!strcmp(test_ask(test, "submit 1 0"), "ok 757"));
	test_ask(test, "progress 1");
	CHECK(fake_sync(&test->fake) && page->completed == 757);
	usleep(30000);
	CHECK(work_is(test, queue, 758, 757));
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	usleep(30000);
	CHECK(work_is(test, queue, 758, 757));
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	/* Unless the GPU has gone on beyond it. */
	CHECK(!strcmp(test_ask(test, "submit 1 0"), "ok 758"));
	test_ask(test, "progress 1");
	test_ask(test, "finish 1 758");
	CHECK(fake_sync(&test->fake));
	usleep(30000);
	CHECK(work_is(test, queue, 759, 759));
	/* Memory that was freed is not read any more, though its mapping is still there. */
	CHECK(!strcmp(test_ask(test, "free 0 memory"), "ok 0"));
	CHECK(!strcmp(test_ask(test, "submit 1 0"), "ok 759"));
	CHECK(work_is(test, queue, 759, 759));
	rm_end(test);
}

/* Whether the queue comes to be told busy, or idle, by the looks that the agent makes by itself. */
static bool work_turns(struct test *test, const struct fake_queue *queue, bool busy)
{
	const struct gp_page_queue *page = &test->fake.page->queues[queue->said.slot];

	for (int i = 0; i < AGENT_WAIT_MS; i++, usleep(1000))
		if ((__atomic_load_n(&page->written, __ATOMIC_ACQUIRE) >
		     __atomic_load_n(&page->completed, __ATOMIC_ACQUIRE)) == busy)
			return true;
	return false;
}

/* Looks at an interval, as the scheduler has them made; unit-agent_work has what each single one tells. */
void case_sampled(struct test *test)
{
	const uint64_t interval_ns = 1000000;
	const struct gp_page_queue *page;
	struct fake_queue *queue;
	uint32_t last;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	page = &test->fake.page->queues[queue->said.slot];
	MUST(fake_send(&test->fake, GP_WIRE_SAMPLE, &interval_ns, sizeof(interval_ns)));
	for (uint32_t i = 0; i < 8u; i++) {
		/* A burst that is over but for its end, on a channel that was not used so far. */
		CHECK(!strcmp(test_ask(test, "many %u %u", i, 200u + i * 100u), "ok 0"));
		last = (uint32_t)test_number(test, "submit", i);
		CHECK(last == 200u + i * 100u);
		CHECK(work_turns(test, queue, true));
		test_ask(test, "take %u", i);
		/* All but the end is seen to be over, and not the end. */
		for (int n = 0; n < AGENT_WAIT_MS && page->completed != page->written - 1u; n++)
			usleep(1000);
		usleep(5000);
		CHECK(page->completed == page->written - 1u);
		test_ask(test, "finish %u %u", i, last);
		CHECK(work_turns(test, queue, false));
	}
	CHECK(page->written == 8u * 201u + 2800u);
	CHECK(test->fake.counts[GP_WIRE_SYNCED] == 0);
	rm_end(test);
}

/* Memory may go in several ways, and is not read any more: the agent's thread would end the process. */
void case_memory(struct test *test)
{
	static const char *const ways[] = { "fixed", "moved", "protected", "rm" };

	rm_start(test, 1);
	for (uint32_t i = 0; i < 4u; i++) {
		CHECK(test_number(test, "context", 0) == (long)i);
		if (i == 0)
			rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 1);
		MUST(fake_until_queues(&test->fake, i + 1u));
		CHECK(!strcmp(test_ask(test, "submit %u 0", i * 16u), "ok 0"));
		CHECK(fake_sync(&test->fake));
		CHECK(!strcmp(test_ask(test, "free %u %s", i, ways[i]), "ok 0"));
		MUST(fake_sync(&test->fake));
	}
	rm_end(test);
}

static bool work_is_blocked(struct test *test, const struct fake_queue *queue, bool blocked)
{
	const struct gp_page_queue *page = &test->fake.page->queues[queue->said.slot];

	for (int i = 0; i < AGENT_WAIT_MS; i++, usleep(1000))
		if (fake_sync(&test->fake) && !(page->flags & GP_PAGE_BLOCKED) != blocked)
			return true;
	return false;
}

/* Commands that wait for the host are work that cannot run, unless something else of the context does. */
void case_blocked(struct test *test)
{
	struct fake_queue *queue;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	/* Behind a kernel of its own channel that runs, nothing is blocked, however long it takes. */
	test_ask(test, "submit 2 0");
	test_ask(test, "take 2");
	test_ask(test, "submit 2 3");
	CHECK(fake_sync(&test->fake));
	usleep(5000);
	CHECK(fake_sync(&test->fake) && work_is_blocked(test, queue, false));
	test_ask(test, "word 0 1");
	test_ask(test, "take 2");
	test_ask(test, "finish 2 0");
	CHECK(work_is(test, queue, 2, 2));
	test_ask(test, "word 0 0");
	CHECK(!strcmp(test_ask(test, "submit 0 3"), "ok 0"));
	CHECK(work_is_blocked(test, queue, true));
	CHECK(work_is(test, queue, 3, 2));
	/* A kernel of another stream runs. */
	test_ask(test, "submit 1 0");
	CHECK(work_is_blocked(test, queue, false));
	test_ask(test, "take 1");
	CHECK(work_is_blocked(test, queue, false));
	test_ask(test, "finish 1 0");
	CHECK(work_is_blocked(test, queue, true));
	/* The word is there, the commands are not yet taken in. */
	test_ask(test, "word 0 1");
	CHECK(work_is_blocked(test, queue, false));
	test_ask(test, "take 0");
	CHECK(work_is(test, queue, 4, 4));
	rm_end(test);
}

/* What the daemon has closed itself, and nobody but the page tells of, opens by itself as well, and is long again. */
void case_held(struct test *test)
{
	struct gp_wire_lost *lost = (void *)test->fake.message;
	const uint64_t interval_ns = 1000000;
	struct gp_page_queue *page;
	struct fake_queue *queue;

	queue = rm_start_one(test, GP_MECHANISM_BORROW, 200);
	page = &test->fake.page->queues[queue->said.slot];
	MUST(fake_send(&test->fake, GP_WIRE_SAMPLE, &interval_ns, sizeof(interval_ns)));
	for (uint32_t i = 0; i < 2u; i++) {
		/* In this order: from the second time on there is work, and its lease begins when it is held. */
		rm_set(queue, true, 1);
		__atomic_store_n(&page->held, 1, __ATOMIC_RELEASE);
		test_ask(test, "submit 0 0");
		CHECK(fake_until(&test->fake, GP_WIRE_LOST));
		CHECK(lost->why == GP_LOST_LEASE && lost->count == 1 && lost->changes[0].open == 1);
		CHECK(rm_disabled(queue) == 0 && rm_slice(queue) == FAKE_RM_SLICE_US);
		CHECK(__atomic_load_n(&page->held, __ATOMIC_ACQUIRE) == 0);
	}
	rm_end(test);
}

/* A gate that is closed and has work opens by itself unless the daemon renews. */
void case_lease(struct test *test)
{
	struct fake_queue *queue;
	struct gp_wire_lost *lost = (void *)test->fake.message;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, 200);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(rm_disabled(queue) == 8);
	test_ask(test, "submit 0 0");
	CHECK(fake_until(&test->fake, GP_WIRE_LOST));
	CHECK(lost->why == GP_LOST_LEASE && lost->count == 1 && lost->changes[0].open == 1);
	CHECK(rm_disabled(queue) == 0);
	/* Where nobody can see whether it has work, it opens as well. */
	test_ask(test, "free 0 unmap");
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(fake_until(&test->fake, GP_WIRE_LOST));
	CHECK(rm_disabled(queue) == 0);
	rm_end(test);
}
