/* SPDX-License-Identifier: MIT */
/* The agent in unmodified HSA and HIP programs: they verify their results themselves, whatever is done to their gates.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/e2e/agent_test.h"

#define CHURN_ORDERS_MIN 20u
#define CHURN_RUNS_MAX   30u

/* A small generator: what it draws is printed by its seed alone. */
static uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

struct churn {
	uint64_t state;
	uint32_t runs, hooked, orders, refused, seen, doorbells, copies, plain;
};

/* One order: some of the queues of one device, some closed, some opened. False: the client is gone. */
static bool churn_order(struct test *test, struct churn *churn)
{
	struct {
		uint64_t seq;
		uint32_t gpu_id, count;
		struct gp_wire_change changes[32];
	} body = { .seq = ++test->fake.seq };
	struct gp_wire_applied *applied = (void *)test->fake.message;
	int got;

	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX && body.count < 32u; i++) {
		struct fake_queue *queue = &test->fake.queues[i];

		if (!queue->used || (body.count && queue->said.gpu_id != body.gpu_id))
			continue;
		body.gpu_id = queue->said.gpu_id;
		churn->seen |= queue->said.flags & GP_QUEUE_SEEN;
		churn->copies += queue->said.kind == GP_WIRE_COPY;
		body.changes[body.count++] = (struct gp_wire_change){ queue->said.slot, queue->said.generation,
								      draw(&churn->state) & 1u, 0 };
	}
	if (body.count) {
		if (!fake_send(&test->fake, GP_WIRE_ORDER, &body,
			       (uint32_t)(16u + body.count * sizeof(body.changes[0]))))
			return false;
		do
			got = fake_receive(&test->fake, AGENT_WAIT_MS);
		while (got > 0 && got != GP_WIRE_APPLIED);
		if (got <= 0)
			return false;
		churn->orders++;
		for (uint32_t i = 0; i < applied->count; i++)
			/* Gone meanwhile; or ROCr is debugger of itself for a moment, to write a core file. */
			if (applied->changes[i].result && applied->changes[i].result != -ESTALE &&
			    (applied->changes[i].result != -EPERM || test->mechanism != GP_MECHANISM_SELF))
				churn->refused++;
	}
	while ((got = fake_receive(&test->fake, 0)) > 0)
		;
	return got == 0;
}

/* Arms everything, now for one edge, now for the other; renews the leases; hears what rings. */
static void churn_page(struct test *test, struct churn *churn)
{
	struct pollfd bell = { test->fake.doorbell, POLLIN, 0 };
	uint64_t count;

	__atomic_add_fetch(&test->fake.page->renewals, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i++)
		if (test->fake.queues[i].used)
			__atomic_store_n(&test->fake.page->queues[i].armed,
					 draw(&churn->state) & 1u ? GP_ARMED_BUSY : GP_ARMED_IDLE, __ATOMIC_SEQ_CST);
	if (test->fake.barriers)
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
	if (poll(&bell, 1, (int)(draw(&churn->state) % 4u)) == 1 &&
	    read(test->fake.doorbell, &count, sizeof(count)) == sizeof(count))
		churn->doorbells++;
}

/* Waits for the agent to connect. False: its program has ended. */
static bool churn_waits(struct test *test)
{
	struct pollfd listener = { test->fake.listener, POLLIN, 0 };

	while (!test_has_ended(test))
		if (poll(&listener, 1, 20) == 1)
			return true;
	return false;
}

static bool churn_has_barriers(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) & MEMBARRIER_CMD_GLOBAL_EXPEDITED;
}

/* One daemon's life. What it meets may be a program that has ended meanwhile. */
static void churn_live(struct test *test, struct churn *churn)
{
	uint32_t life = 30u + draw(&churn->state) % 100u, flags = test->fake.hello.flags;
	uint64_t interval = 500000;

	/* After hsa_shut_down() there is no table any more, and one who comes late meets nothing else. */
	churn->hooked += flags & GP_HELLO_DOORBELLS ? 1u : 0;
	CHECK(flags & GP_HELLO_RUNTIME || !(flags & GP_HELLO_DOORBELLS));
	CHECK(!strncmp(test->fake.hello.runtime, "HSA 1.", 6));
	test->fake.barriers = churn_has_barriers() && draw(&churn->state) & 1u;
	if (!fake_welcome(&test->fake, test->mechanism, 200) ||
	    !fake_send(&test->fake, GP_WIRE_SAMPLE, &interval, sizeof(interval)))
		return;
	while (life-- && churn_order(test, churn))
		churn_page(test, churn);
	CHECK(test->fake.barriers || !test->fake.page->plain);
	churn->plain |= test->fake.page->plain;
}

/* One run of the program. Some of its daemons make the doorbells' fences, some do not. */
static void churn_run(struct test *test, struct churn *churn)
{
	MUST(test_start(test, true));
	while (churn_waits(test) && fake_accept(&test->fake)) {
		churn_live(test, churn);
		close(test->fake.socket);
		test->fake.socket = -1;
		close(test->fake.doorbell);
	}
	CHECK(test_end(test) == 0);
}

/* Gates of a running HIP program change at random, the daemon dies and comes back: its results are right all the same.
 * A queue may come and go while no daemon is there: then the program runs again. */
static void case_churn(struct test *test)
{
	struct churn churn = { .state = (uint64_t)getpid() * 1000u + test->mechanism };
	bool enough = false;

	printf("# seed %llu\n", (unsigned long long)churn.state);
	MUST(fake_listen(&test->fake, test->path));
	while (churn.runs++ < CHURN_RUNS_MAX && !enough) {
		churn_run(test, &churn);
		enough = churn.hooked && churn.orders >= CHURN_ORDERS_MIN && churn.seen && churn.copies &&
			 churn.doorbells && (churn.plain || !churn_has_barriers());
	}
	printf("# %u runs, %u with a table, %u orders, %u changes refused, %u queues seen, %u of copies, %u rings, %s\n",
	       churn.runs - 1u, churn.hooked, churn.orders, churn.refused, churn.seen, churn.copies, churn.doorbells,
	       churn.plain ? "fences by the daemon" : "no fences by the daemon");
	CHECK(enough);
	/* Doorbells that are not seen cannot be kept; everything else works on every queue. */
	CHECK(test->mechanism == GP_MECHANISM_SUBMIT || churn.refused == 0);
}

static bool hint_rings(struct test *test)
{
	struct pollfd bell = { test->fake.doorbell, POLLIN, 0 };
	uint64_t count;

	return poll(&bell, 1, AGENT_WAIT_MS) == 1 && read(test->fake.doorbell, &count, sizeof(count)) == sizeof(count);
}

/* The example server: its priority arrives, each request's hint rings once it is listened for, and its copies announce
 * themselves where that is asked for. */
static void case_hint(struct test *test)
{
	struct gp_wire_attr_message attr;

	setenv("GPREEMPT_COPY_HINT", test->mechanism == GP_MECHANISM_UPDATE ? "1" : "0", 1);
	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, true));
	fprintf(test->to, "ADD 1000 2\n");
	fflush(test->to);
	MUST(fake_accept(&test->fake));
	MUST(fake_welcome(&test->fake, GP_MECHANISM_UPDATE, 60000));
	if (!(test->fake.hello.attr.valid & GP_ATTR_PRIORITY)) {
		/* Asked for after the first queue was there. */
		MUST(fake_until(&test->fake, GP_WIRE_ATTR));
		memcpy(&attr, test->fake.message, sizeof(attr));
		test->fake.hello.attr = attr.attr;
	}
	CHECK(test->fake.hello.attr.priority == 80);
	/* It has taken our welcome in. From here on each request is heard. */
	MUST(fake_sync(&test->fake));
	for (uint32_t i = 0; i < 5u; i++) {
		uint32_t before = __atomic_load_n(&test->fake.page->hint_count, __ATOMIC_SEQ_CST);

		__atomic_store_n(&test->fake.page->armed, GP_ARMED_BUSY, __ATOMIC_SEQ_CST);
		fprintf(test->to, "ADD 100000 %u\n", i);
		fflush(test->to);
		do
			MUST(hint_rings(test));
		while (__atomic_load_n(&test->fake.page->hint_count, __ATOMIC_SEQ_CST) == before);
	}
	CHECK(test_end(test) == 0);
	printf("# %u hints, the last %llu ns ahead\n", test->fake.page->hint_count,
	       (unsigned long long)test->fake.page->hint_ns);
	CHECK(test->fake.page->hint_count >= (test->mechanism == GP_MECHANISM_UPDATE ? 10u : 5u));
	/* 400,000 bytes at 16 bytes a nanosecond; or what the server says. */
	CHECK(test->fake.page->hint_ns == (test->mechanism == GP_MECHANISM_UPDATE ? 25000u : 300000u));
}

const struct test_case test_hsa_cases[] = {
	{ "hint", case_hint },
	{ "churn", case_churn },
	{ NULL, NULL },
};
