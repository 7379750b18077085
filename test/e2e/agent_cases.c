/* SPDX-License-Identifier: MIT */
/* What the agent must do, case by case. Each says what it shows. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "test/e2e/agent_test.h"

#define LEASE_LONG  60000u
#define LEASE_SHORT 1000u
#define WORK_GROUPS 100000u /* tenths of a second of an MI300X */

static bool ok(const char *answer)
{
	return !strcmp(answer, "ok");
}

/* HELLO says what is true, queues come and go, the end of the client is the end of the socket. */
static void case_life(struct test *test)
{
	struct fake *fake = &test->fake;
	struct fake_queue *queue;
	uint32_t rounds = 1, still = 0;

	setenv("GPREEMPT_PRIORITY", "80", 1);
	setenv("GPREEMPT_WEIGHT", "7", 1);
	setenv("GPREEMPT_GANG", "ring", 1);
	test_meet(test, GP_MECHANISM_UPDATE, LEASE_LONG, 2);
	CHECK(fake->hello.pid == test->pid);
	CHECK(fake->hello.flags == GP_HELLO_RUNTIME);
	CHECK(fake->hello.mechanisms == (GP_MECHANISM_BIT(GP_MECHANISM_SELF) | GP_MECHANISM_BIT(GP_MECHANISM_UPDATE)));
	CHECK(fake->hello.attr.valid == (GP_ATTR_PRIORITY | GP_ATTR_WEIGHT | GP_ATTR_GANG));
	CHECK(fake->hello.attr.priority == 80 && fake->hello.attr.weight == 7 &&
	      !strcmp(fake->hello.attr.gang, "ring"));
	CHECK(!strcmp(fake->hello.name, "agent-client"));
	queue = fake_queue(fake, 0);
	MUST(queue && fake_queue(fake, 1));
	CHECK(queue->said.ring_size == 64u * 64u && queue->said.ring && queue->said.hw_priority == 7);
	CHECK(queue->said.flags == 0 && queue->said.attr.valid == 0);
	CHECK(test_number(test, "destroy", 0) == 0);
	CHECK(fake_until(fake, GP_WIRE_QUEUE_REMOVE) && fake->queue_count == 1);
	/* While nothing happens the agent's thread does not wake: sooner or later half a second passes without. */
	for (uint32_t i = 0; i < 20u && still < rounds; i++) {
		rounds = __atomic_load_n(&fake->page->rounds, __ATOMIC_SEQ_CST);
		usleep(500000);
		still = __atomic_load_n(&fake->page->rounds, __ATOMIC_SEQ_CST) == rounds ? rounds : 0;
	}
	CHECK(still);
	CHECK(test_number(test, "queue", 0) >= 0);
	CHECK(fake_until_queues(fake, 2));
	CHECK(test_end(test) == 0);
	while (fake_receive(fake, AGENT_WAIT_MS) > 0)
		;
	CHECK(fake_receive(fake, AGENT_WAIT_MS) == -1);
}

/* Work is started and its queue's gate closed in the midst of it. A machine that stalls lets the work end first: then
 * it is started again. */
static bool interrupted(struct test *test, uint32_t lane, struct fake_queue *queue)
{
	for (uint32_t i = 0; i < 50u; i++) {
		if (!ok(test_ask(test, "start %u %u", lane, WORK_GROUPS)) ||
		    fake_order_one(&test->fake, queue, false) != 0 || !test_stands_still(test, lane))
			return false;
		if (test_number(test, "sum", lane) < (long)WORK_GROUPS)
			return true;
		if (!ok(test_ask(test, "wait %u", lane)) || fake_order_one(&test->fake, queue, true) != 0)
			return false;
	}
	return false;
}

/* A closed gate stops its queue and no other; an open one goes on where it was; a set changes in one order. */
static void case_gate(struct test *test)
{
	struct fake_queue *queues[3];
	bool close_all[3] = { false, false, false }, open_all[3] = { true, true, true };
	int results[3];

	test_meet(test, test->mechanism, LEASE_LONG, 3);
	for (uint32_t i = 0; i < 3u; i++)
		MUST((queues[i] = fake_queue(&test->fake, i)) != NULL);
	CHECK(interrupted(test, 0, queues[0]));
	CHECK(ok(test_ask(test, "start 1 1000")) && ok(test_ask(test, "wait 1")));
	CHECK(fake_order_one(&test->fake, queues[0], true) == 0);
	CHECK(ok(test_ask(test, "wait 0")));
	MUST(fake_order(&test->fake, queues, close_all, 3, results));
	CHECK(results[0] == 0 && results[1] == 0 && results[2] == 0);
	for (uint32_t i = 0; i < 3u; i++)
		CHECK(ok(test_ask(test, "start %u 20000", i)));
	for (uint32_t i = 0; i < 3u; i++)
		CHECK(test_stands_still(test, i) && test_number(test, "sum", i) == 0);
	MUST(fake_order(&test->fake, queues, open_all, 3, results));
	CHECK(results[0] == 0 && results[1] == 0 && results[2] == 0);
	for (uint32_t i = 0; i < 3u; i++)
		CHECK(ok(test_ask(test, "wait %u", i)));
	/* A queue made late takes part; one destroyed while closed goes. */
	CHECK(test_number(test, "queue", 0) >= 0 && fake_until_queues(&test->fake, 4));
	MUST(fake_queue(&test->fake, 3) != NULL);
	CHECK(interrupted(test, 3, fake_queue(&test->fake, 3)));
	CHECK(fake_order_one(&test->fake, fake_queue(&test->fake, 3), true) == 0 && ok(test_ask(test, "wait 3")));
	CHECK(fake_order_one(&test->fake, fake_queue(&test->fake, 3), false) == 0);
	CHECK(test_number(test, "destroy", 3) == 0);
	CHECK(fake_until_queues(&test->fake, 3));
	CHECK(test_end(test) == 0);
}

/* Orders that cannot be are answered, each with its reason, and change nothing. */
static void case_refused(struct test *test)
{
	struct fake_queue *queue, other;
	bool two[2] = { false, false };
	struct fake_queue *pair[2];
	int results[2];

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	other = *queue;
	other.said.generation++;
	CHECK(fake_order_one(&test->fake, &other, false) == -ESTALE);
	other = *queue;
	other.said.slot = 77;
	CHECK(fake_order_one(&test->fake, &other, false) == -ESTALE);
	other.said.slot = GP_WIRE_QUEUE_MAX;
	CHECK(fake_order_one(&test->fake, &other, false) == -EINVAL);
	other = *queue;
	other.said.gpu_id++;
	CHECK(fake_order_one(&test->fake, &other, false) == -ESTALE);
	test->fake.seq = 100;
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	test->fake.seq = 50;
	CHECK(fake_order_one(&test->fake, queue, false) == -ESTALE);
	test->fake.seq = 200;
	pair[0] = pair[1] = queue;
	MUST(fake_order(&test->fake, pair, two, 2, results));
	CHECK(results[0] == 0 && results[1] == 0);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(ok(test_ask(test, "start 0 1000")) && ok(test_ask(test, "wait 0")));
	CHECK(test_end(test) == 0);
}

/* The daemon dies with gates closed: they open, nothing is lost, and the next daemon is found. */
static void case_death(struct test *test)
{
	struct fake_queue *queues[2];
	bool both[2] = { false, false };
	int results[2];

	test_meet(test, test->mechanism, LEASE_LONG, 2);
	for (uint32_t round = 0; round < 3u; round++) {
		MUST((queues[0] = fake_queue(&test->fake, 0)) && (queues[1] = fake_queue(&test->fake, 1)));
		CHECK(ok(test_ask(test, "start 0 %u", WORK_GROUPS)));
		MUST(fake_order(&test->fake, queues, both, 2, results) && results[0] == 0 && results[1] == 0);
		CHECK(ok(test_ask(test, "start 1 1000")));
		CHECK(test_stands_still(test, 0) && test_stands_still(test, 1));
		fake_stop(&test->fake);
		CHECK(ok(test_ask(test, "wait 0")) && ok(test_ask(test, "wait 1")));
		MUST(fake_listen(&test->fake, test->path));
		MUST(fake_accept(&test->fake));
		CHECK(test->fake.hello.flags & GP_HELLO_AGAIN);
		MUST(fake_welcome(&test->fake, test->mechanism, LEASE_LONG));
		MUST(fake_until_queues(&test->fake, 2));
		CHECK(!(fake_queue(&test->fake, 0)->said.flags & GP_QUEUE_CLOSED));
	}
	CHECK(test_end(test) == 0);
}

/* The next call on the device fails, as in a GPU reset; false: nobody can be told so. */
static bool device_fails(void)
{
	const char *vgpu = getenv("VGPU"), *name = getenv("VGPU_NAME");
	char command[1024];

	if (!vgpu || !name)
		return false;
	snprintf(command, sizeof(command), "'%s' fault --name '%s' ioctl=1", vgpu, name);
	return system(command) == 0;
}

/* The daemon dies, a gate does not open at the first try, and the socket is served by one who never answers: it opens
 * all the same, at a later try. */
static void case_greeted(struct test *test)
{
	struct fake_queue *queue;

	test_meet(test, test->mechanism, LEASE_SHORT, 2);
	MUST((queue = fake_queue(&test->fake, 0)));
	MUST(interrupted(test, 0, queue));
	MUST(device_fails());
	close(test->fake.socket);
	test->fake.socket = -1;
	CHECK(test_moves(test, 0));
	CHECK(ok(test_ask(test, "wait 0")));
	/* He answers after all. */
	MUST(fake_accept(&test->fake) && fake_welcome(&test->fake, test->mechanism, LEASE_LONG));
	MUST(fake_until_queues(&test->fake, 2));
	CHECK(!(fake_queue(&test->fake, 0)->said.flags & GP_QUEUE_CLOSED));
	CHECK(test_end(test) == 0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* Work behind a closed gate whose lease is renewed, for longer than lease and look together last: how much of it ran,
 * and the longest that we ourselves let pass between two renewals. */
static long ran_renewed(struct test *test, uint64_t *ret_pause_ms)
{
	uint64_t last = now_ms();
	long sum = 0;

	*ret_pause_ms = 0;
	MUST(ok(test_ask(test, "start 0 1000")));
	for (uint32_t i = 0; i < 40u && !sum; i++) {
		uint64_t before = now_ms(), after;

		__atomic_add_fetch(&test->fake.page->renewals, 1, __ATOMIC_SEQ_CST);
		usleep(LEASE_SHORT * 50u);
		sum = test_number(test, "sum", 0);
		after = now_ms();
		*ret_pause_ms = after - last > *ret_pause_ms ? after - last : *ret_pause_ms;
		last = before;
	}
	return sum;
}

/* A daemon that hangs: what it does not renew opens by itself and is told. Renewed, it stays closed; idle, it needs
 * none. */
static void case_lease(struct test *test)
{
	struct gp_wire_lost lost;
	struct fake_queue *queue;
	uint64_t pause_ms;

	test_meet(test, test->mechanism, LEASE_SHORT, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	usleep(LEASE_SHORT * 1200u); /* idle, for more than a lease */
	CHECK(fake_receive(&test->fake, 0) == 0);
	/* A machine that stalls keeps us from renewing: then the lease is lost rightly, and it is tried again. */
	while (ran_renewed(test, &pause_ms)) {
		MUST(pause_ms >= LEASE_SHORT);
		MUST(ok(test_ask(test, "wait 0")) && fake_order_one(&test->fake, queue, false) == 0);
	}
	CHECK(fake_until(&test->fake, GP_WIRE_LOST));
	memcpy(&lost, test->fake.message, sizeof(lost));
	CHECK(lost.why == GP_LOST_LEASE && lost.count == 1);
	CHECK(ok(test_ask(test, "wait 0")));
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	/* What waits for a signal could not run if the gate were open: only then does the lease begin. */
	CHECK(ok(test_ask(test, "block 0")));
	usleep(2500000);
	CHECK(fake_receive(&test->fake, 0) == 0);
	CHECK(ok(test_ask(test, "unblock")));
	CHECK(fake_until(&test->fake, GP_WIRE_LOST));
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && fake_order_one(&test->fake, queue, true) == 0);
	CHECK(test_end(test) == 0);
}

/* No daemon at all; then one that comes late. */
static void case_missing(struct test *test)
{
	MUST(test_start(test, false));
	CHECK(test_number(test, "queue", 0) >= 0);
	CHECK(ok(test_ask(test, "start 0 1000")) && ok(test_ask(test, "wait 0")));
	MUST(fake_listen(&test->fake, test->path));
	MUST(fake_accept(&test->fake));
	MUST(fake_welcome(&test->fake, GP_MECHANISM_UPDATE, LEASE_LONG));
	CHECK(fake_until_queues(&test->fake, 1));
	CHECK(test_end(test) == 0);
}

/* One that accepts and says nothing, and one that stops reading. */
static void case_slow(struct test *test)
{
	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	CHECK(test_number(test, "queue", 0) >= 0);
	MUST(fake_accept(&test->fake));
	CHECK(ok(test_ask(test, "start 0 1000")) && ok(test_ask(test, "wait 0")));
	CHECK(test_number(test, "destroy", 0) == 0);
	CHECK(test_number(test, "queue", 0) >= 0);
	MUST(fake_welcome(&test->fake, GP_MECHANISM_UPDATE, LEASE_LONG));
	/* More answers than any buffer holds, and nobody takes them: the agent gives us up. */
	for (uint32_t i = 0; i < 100000u; i++) {
		struct gp_wire_header sync = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNC, sizeof(sync), i };

		if (send(test->fake.socket, &sync, sizeof(sync), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	CHECK(ok(test_ask(test, "start 1 1000")) && ok(test_ask(test, "wait 1")));
	CHECK(test_end(test) == 0);
}

/* Everything a hostile daemon can send: the agent hangs up on it, the client goes on, and an honest one is served after
 * all. */
static void case_hostile(struct test *test)
{
	struct {
		struct gp_wire_header header;
		uint64_t words[64];
	} message = { 0 };
	struct gp_wire_header good = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNC, sizeof(good), 0 };
	uint32_t seed = 1;

	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	CHECK(test_number(test, "queue", 0) >= 0);
	for (uint32_t round = 0; round < 40u; round++) {
		uint32_t size = sizeof(message);

		MUST(fake_accept(&test->fake));
		for (uint32_t i = 0; i < 64u; i++)
			message.words[i] = (seed = seed * 1664525u + 1013904223u) >> round % 24u;
		message.header = good;
		message.header.type = (uint16_t)(round % 4u ? 32u + round % 10u : round);
		message.header.size = round % 3u ? size : size + 1u;
		message.header.magic += round % 5u == 4u;
		message.header.version = (uint16_t)(1u + (round % 7u == 6u));
		if (round % 2u)
			CHECK(fake_welcome(&test->fake, GP_MECHANISM_UPDATE, LEASE_LONG));
		if (round == 11u)
			size = 8;
		if (round == 13u)
			size = 0; /* an empty packet reads as the end */
		(void)!send(test->fake.socket, &message, size, MSG_NOSIGNAL);
		while (fake_receive(&test->fake, AGENT_WAIT_MS) > 0)
			;
		CHECK(fake_receive(&test->fake, AGENT_WAIT_MS) == -1);
		/* The next one comes with a socket of its own: that is noticed, whatever the last one was. */
		fake_stop(&test->fake);
		MUST(fake_listen(&test->fake, test->path));
		CHECK(ok(test_ask(test, "start 0 100")) && ok(test_ask(test, "wait 0")));
	}
	MUST(fake_accept(&test->fake));
	MUST(fake_welcome(&test->fake, GP_MECHANISM_UPDATE, LEASE_LONG));
	MUST(fake_until_queues(&test->fake, 1));
	CHECK(fake_order_one(&test->fake, fake_queue(&test->fake, 0), false) == 0);
	CHECK(test_end(test) == 0);
}

/* What the application does to descriptors it did not open leaves the agent alone, and it the application. */
static void case_descriptors(struct test *test)
{
	struct fake_queue *queue;

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	CHECK(ok(test_ask(test, "close 0")));
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(ok(test_ask(test, "close 1")));
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(test_number(test, "overwrite", 0) > 0);
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && fake_order_one(&test->fake, queue, true) == 0);
	CHECK(fake_sync(&test->fake));
	CHECK(ok(test_ask(test, "start 0 1000")) && ok(test_ask(test, "wait 0")));
	CHECK(test_end(test) == 0);
}

/* A fork with a gate closed: the child is a client of its own, the parent's gate and connection are untouched. */
static void case_fork(struct test *test)
{
	struct fake_queue *queue;
	struct fake *child = calloc(1, sizeof(*child));

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	MUST(child && (queue = fake_queue(&test->fake, 0)));
	CHECK(ok(test_ask(test, "start 0 %u", WORK_GROUPS)));
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	fprintf(test->to, "fork\n");
	fflush(test->to);
	child->listener = test->fake.listener;
	CHECK(fake_accept(child));
	CHECK(child->hello.pid != test->pid && child->hello.flags == GP_HELLO_RUNTIME);
	CHECK(fake_welcome(child, test->mechanism, LEASE_LONG) && fake_until_queues(child, 1));
	fputc(0x0a, test->to);
	fflush(test->to);
	while (fake_receive(child, AGENT_WAIT_MS) > 0)
		;
	MUST(fgets(test->answer, sizeof(test->answer), test->from));
	CHECK(!strcmp(test->answer, "ok 0\n"));
	CHECK(test_stands_still(test, 0));
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(ok(test_ask(test, "wait 0")));
	CHECK(test_end(test) == 0);
	free(child);
}

/* The runtime changes a queue whose gate is closed: what it wants holds once the gate is open, and not before. */
static void case_merge(struct test *test)
{
	struct fake_queue *queue;

	test_meet(test, GP_MECHANISM_UPDATE, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(ok(test_ask(test, "start 0 1000")));
	CHECK(!strcmp(test_ask(test, "update 0 50 7"), "ok 0"));
	CHECK(!strcmp(test_ask(test, "update 0 100 7"), "ok 0"));
	CHECK(test_stands_still(test, 0) && test_number(test, "sum", 0) == 0);
	CHECK(!strcmp(test_ask(test, "update 0 0 7"), "ok 0"));
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(test_stands_still(test, 0) && test_number(test, "sum", 0) == 0);
	CHECK(!strcmp(test_ask(test, "update 0 100 7"), "ok 0"));
	CHECK(ok(test_ask(test, "wait 0")));
	/* What the driver refuses is refused. */
	CHECK(!strcmp(test_ask(test, "update 0 101 7"), "ok -22"));
	CHECK(!strcmp(test_ask(test, "update 0 100 16"), "ok -22"));
	CHECK(!strcmp(test_ask(test, "fault"), "ok -14"));
	CHECK(test_end(test) == 0);
}

/* A priority of the runtime becomes one of ours, by the map; the process's own moves it along. */
static void case_priority(struct test *test)
{
	struct gp_wire_attr now = { .valid = GP_ATTR_PRIORITY, .priority = 70 };
	struct fake_queue *queue;

	test_meet(test, GP_MECHANISM_UPDATE, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	CHECK(!strcmp(test_ask(test, "update 0 100 15"), "ok 0"));
	CHECK(fake_until(&test->fake, GP_WIRE_QUEUE_CHANGE));
	CHECK(queue->said.hw_priority == 15 && queue->said.attr.valid == GP_ATTR_PRIORITY &&
	      queue->said.attr.priority == 60);
	MUST(fake_send(&test->fake, GP_WIRE_ATTR_NOW, &now, sizeof(now)));
	CHECK(fake_until(&test->fake, GP_WIRE_QUEUE_CHANGE));
	CHECK(queue->said.attr.priority == 80);
	CHECK(!strcmp(test_ask(test, "update 0 100 0"), "ok 0"));
	CHECK(fake_until(&test->fake, GP_WIRE_QUEUE_CHANGE) && queue->said.attr.priority == 60);
	CHECK(!strcmp(test_ask(test, "update 0 100 7"), "ok 0"));
	CHECK(fake_until(&test->fake, GP_WIRE_QUEUE_CHANGE) && queue->said.attr.valid == 0);
	CHECK(test_end(test) == 0);
}

/* The runtime leaves while a gate is closed, and after its last queue has gone: it never waits for us. */
static void case_runtime(struct test *test)
{
	struct gp_wire_runtime said;
	struct fake_queue *queue;

	test_meet(test, GP_MECHANISM_SELF, LEASE_LONG, 2);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	/* What a driver with queues says to a runtime that comes late, whoever enabled it before. */
	CHECK(test_number(test, "runtime", 1) == -EEXIST);
	CHECK(ok(test_ask(test, "start 0 %u", WORK_GROUPS)));
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && test_stands_still(test, 0));
	CHECK(test_number(test, "runtime", 0) == 0);
	CHECK(fake_until(&test->fake, GP_WIRE_LOST));
	CHECK(fake_until(&test->fake, GP_WIRE_RUNTIME));
	memcpy(&said, test->fake.message, sizeof(said));
	CHECK(said.enable == 0);
	CHECK(ok(test_ask(test, "wait 0")));
	CHECK(fake_order_one(&test->fake, queue, false) == -EPERM);
	CHECK(test_number(test, "destroy", 0) == 0 && test_number(test, "destroy", 1) == 0);
	CHECK(fake_until_queues(&test->fake, 0));
	/* Now it may come: the agent steps back, and tells. */
	CHECK(test_number(test, "runtime", 1) == 0);
	CHECK(fake_until(&test->fake, GP_WIRE_RUNTIME));
	memcpy(&said, test->fake.message, sizeof(said));
	CHECK(said.enable == 1);
	CHECK(test_number(test, "queue", 0) >= 0 && fake_until_queues(&test->fake, 1));
	queue = fake_queue(&test->fake, 0);
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && fake_order_one(&test->fake, queue, true) == 0);
	/* The application debugs itself: it is let, and we are let again afterwards. */
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(test_number(test, "trap", 0) == 0);
	CHECK(fake_until(&test->fake, GP_WIRE_LOST));
	CHECK(fake_order_one(&test->fake, queue, false) == -EPERM);
	CHECK(test_number(test, "trap", 1) == 0);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(test_number(test, "destroy", 2) == 0);
	CHECK(test_number(test, "runtime", 0) == 0);
	CHECK(test_end(test) == 0);
}

/* RUNTIME_DISABLE while the daemon is our debugger; how long it took. */
static long leave(struct test *test, bool answered)
{
	CHECK(test_number(test, "runtime", 1) == 0);
	CHECK(fake_until(&test->fake, GP_WIRE_RUNTIME));
	fprintf(test->to, "leave\n");
	fflush(test->to);
	CHECK(fake_until(&test->fake, GP_WIRE_RUNTIME));
	CHECK(!answered || fake_send(&test->fake, GP_WIRE_RUNTIME_OK, NULL, 0));
	MUST(fgets(test->answer, sizeof(test->answer), test->from));
	return strncmp(test->answer, "ok ", 3) ? -1 : strtol(test->answer + 3, NULL, 10);
}

/* The call waits for the daemon to let go: as long as it takes, and 100 ms if it never does. */
static void case_runtime_wait(struct test *test)
{
	bool soon = false;
	long ms;

	test_meet(test, GP_MECHANISM_DEBUGGER, LEASE_LONG, 1);
	CHECK(test_number(test, "destroy", 0) == 0 && fake_until_queues(&test->fake, 0));
	CHECK(leave(test, false) >= 100);
	/* On a busy machine some are late; all being late is another thing. */
	for (int i = 0; i < 50 && !soon; i++) {
		ms = leave(test, true);
		CHECK(ms >= 0);
		soon = ms < 100;
	}
	CHECK(soon);
	CHECK(test_end(test) == 0);
}

/* A vfork's child may do as it likes with its descriptors, ours among them. */
static void case_vfork(struct test *test)
{
	struct fake_queue *queue;

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(test_number(test, "vfork", 0) > 0);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(ok(test_ask(test, "start 0 1000")) && ok(test_ask(test, "wait 0")));
	CHECK(test_end(test) == 0);
}

/* As the daemon does it: arms, looks again, and waits to be told only if there is nothing to see. */
static bool told(struct fake *fake, struct gp_page_queue *page, uint32_t edge, const uint64_t *counter, uint64_t value)
{
	struct pollfd bell = { fake->doorbell, POLLIN, 0 };
	uint64_t count;

	__atomic_store_n(&page->armed, edge, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) != value) {
		if (poll(&bell, 1, AGENT_WAIT_MS) != 1 || read(fake->doorbell, &count, sizeof(count)) != sizeof(count))
			return false;
		if (__atomic_load_n(counter, __ATOMIC_SEQ_CST) != value)
			__atomic_store_n(&page->armed, edge, __ATOMIC_SEQ_CST);
	}
	return true;
}

/* Counters: work and its end are told once armed; a blocked head is told; a packet that is only reserved is no work. */
static void case_counters(struct test *test)
{
	uint64_t interval = 1000000;
	struct gp_page_queue *page;
	struct fake_queue *queue;

	test_meet(test, GP_MECHANISM_UPDATE, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	page = &test->fake.page->queues[queue->said.slot];
	CHECK(page->generation == queue->said.generation);
	MUST(fake_send(&test->fake, GP_WIRE_SAMPLE, &interval, sizeof(interval)));
	fprintf(test->to, "start 0 %u\n", WORK_GROUPS);
	fflush(test->to);
	CHECK(told(&test->fake, page, GP_ARMED_BUSY, &page->written, 1));
	MUST(fgets(test->answer, sizeof(test->answer), test->from));
	CHECK(told(&test->fake, page, GP_ARMED_IDLE, &page->completed, 1));
	CHECK(ok(test_ask(test, "wait 0")));
	CHECK(ok(test_ask(test, "block 0")));
	CHECK(fake_sync(&test->fake) && page->flags == GP_PAGE_BLOCKED && page->written == 2 && page->completed == 1);
	CHECK(ok(test_ask(test, "unblock")));
	CHECK(told(&test->fake, page, GP_ARMED_IDLE, &page->completed, 2));
	CHECK(ok(test_ask(test, "reserve 0")));
	CHECK(fake_sync(&test->fake) && page->written == 2 && page->completed == 2 && page->flags == 0);
	CHECK(test_end(test) == 0);
}

/* Many threads create queues at once: RUNTIME_ENABLE came first all the same, and all of them can be gated. */
static void case_threads(struct test *test)
{
	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	CHECK(ok(test_ask(test, "threads 16")));
	MUST(fake_accept(&test->fake));
	CHECK(test->fake.hello.flags & GP_HELLO_RUNTIME);
	MUST(fake_welcome(&test->fake, test->mechanism, LEASE_LONG));
	MUST(fake_until_queues(&test->fake, 16));
	for (uint32_t i = 0; i < 16u; i++)
		CHECK(fake_order_one(&test->fake, fake_queue(&test->fake, i), false) == 0);
	/* exit() with everything closed and work waiting. */
	CHECK(ok(test_ask(test, "start 3 1000")));
	fprintf(test->to, "exit\n");
	CHECK(test_end(test) == 0);
}

const struct test_case test_cases[] = {
	{ "life", case_life },
	{ "gate", case_gate },
	{ "refused", case_refused },
	{ "death", case_death },
	{ "lease", case_lease },
	{ "missing", case_missing },
	{ "slow", case_slow },
	{ "hostile", case_hostile },
	{ "descriptors", case_descriptors },
	{ "fork", case_fork },
	{ "merge", case_merge },
	{ "priority", case_priority },
	{ "counters", case_counters },
	{ "runtime", case_runtime },
	{ "runtime_wait", case_runtime_wait },
	{ "vfork", case_vfork },
	{ "threads", case_threads },
	{ "greeted", case_greeted },
	{ NULL, NULL },
};
