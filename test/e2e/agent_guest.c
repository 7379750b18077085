/* SPDX-License-Identifier: MIT */
/* The agent as a guest in somebody else's process: what the owner does to his own house, and what it has no room for.
 * The owner's work goes on in each case, and nothing of his is touched. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "test/e2e/agent_test.h"

#define LEASE_LONG  60000u
#define WORK_GROUPS 100000u /* tenths of a second of an MI300X */

static bool ok(const char *answer)
{
	return !strcmp(answer, "ok");
}

static bool works(struct test *test, uint32_t lane)
{
	return ok(test_ask(test, "start %u 1000", lane)) && ok(test_ask(test, "wait %u", lane));
}

/* The memory of the stacks of the agent's threads, once all of them are asleep. */
static long asleep_kib(struct test *test)
{
	long kib = -1;

	for (uint32_t i = 0; i < AGENT_WAIT_MS / 10u && kib <= 0; i++) {
		kib = test_number(test, "stacks", 0);
		usleep(10000);
	}
	return kib;
}

/* A seccomp filter that hands calls to the application's own SIGSYS handler: it answers for the agent's thread too. */
static void case_sandbox(struct test *test)
{
	test_meet(test, test->mechanism, LEASE_LONG, 1);
	CHECK(test_number(test, "sandbox", 0) == 0);
	/* The counters are read by a call the filter refuses, then by another way. */
	CHECK(fake_sync(&test->fake));
	CHECK(test_number(test, "trapped", 0) > 0);
	fake_stop(&test->fake);
	CHECK(works(test, 0));
	CHECK(test_number(test, "destroy", 0) == 0);
	CHECK(test_end(test) == 0);
}

/* The agent's descriptors are closed behind its back and their numbers become the application's: nothing is written to
 * them, read from them or closed, and the gates open. */
static void case_stolen(struct test *test)
{
	struct fake_queue *queue;

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	CHECK(ok(test_ask(test, "start 0 %u", WORK_GROUPS)));
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && test_stands_still(test, 0));
	/* Between a look whose a number is and its use nobody can help. */
	CHECK(asleep_kib(test) > 0);
	CHECK(test_number(test, "steal", 0) > 4);
	/* The thread sleeps on what it had: this wakes it, unless it has noticed by itself. */
	(void)fake_send(&test->fake, GP_WIRE_SYNC, NULL, 0);
	while (fake_receive(&test->fake, AGENT_WAIT_MS) > 0)
		;
	CHECK(fake_receive(&test->fake, AGENT_WAIT_MS) == -1);
	CHECK(ok(test_ask(test, "wait 0")));
	CHECK(test_number(test, "queue", 0) >= 0 && works(test, 1));
	CHECK(test_number(test, "destroy", 1) == 0);
	CHECK(ok(test_ask(test, "stolen")));
	CHECK(works(test, 0));
	CHECK(test_end(test) == 0);
}

/* What a daemon sends to be written to at doorbells is an eventfd, or the agent hangs up: a pipe without a reader would
 * be a SIGPIPE in the application. */
static void case_bell(struct test *test)
{
	int ends[2];

	MUST(pipe2(ends, O_CLOEXEC) == 0);
	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	CHECK(test_number(test, "queue", 0) >= 0);
	MUST(fake_accept(&test->fake));
	close(ends[0]);
	test->fake.bell = ends[1];
	CHECK(fake_welcome(&test->fake, test->mechanism, LEASE_LONG));
	while (fake_receive(&test->fake, AGENT_WAIT_MS) > 0)
		;
	CHECK(fake_receive(&test->fake, AGENT_WAIT_MS) == -1);
	CHECK(works(test, 0));
	CHECK(test_end(test) == 0);
}

/* A socket in a folder for everybody that belongs to somebody else: he is not obeyed. */
static void case_foreign(struct test *test)
{
	char folder[120];

	snprintf(folder, sizeof(folder), "%s.d", test->path);
	MUST(mkdir(folder, 0777) == 0 && chmod(folder, 01777) == 0);
	MUST(strlen(test->path) + 4 < sizeof(test->path));
	strcat(folder, "/s");
	snprintf(test->path, sizeof(test->path), "%s", folder);
	/* A socket is whose who begins to listen. */
	MUST(seteuid(12345) == 0);
	MUST(fake_listen(&test->fake, test->path));
	MUST(seteuid(0) == 0);
	MUST(chmod(test->path, 0777) == 0);
	MUST(test_start(test, false));
	CHECK(test_number(test, "queue", 0) >= 0);
	CHECK(!fake_accept(&test->fake) && test->fake.socket >= 0);
	CHECK(works(test, 0));
	fake_stop(&test->fake);
	/* In a folder of his own he is: the application was told to ask there. */
	*strrchr(folder, '/') = 0;
	MUST(chown(folder, 12345, 12345) == 0);
	MUST(seteuid(12345) == 0);
	MUST(fake_listen(&test->fake, test->path));
	MUST(seteuid(0) == 0);
	CHECK(fake_accept(&test->fake));
	CHECK(fake_welcome(&test->fake, test->mechanism, LEASE_LONG) && fake_until_queues(&test->fake, 1));
	CHECK(test_end(test) == 0);
	unlink(test->path);
	rmdir(folder);
}

/* A log that nobody reads: the application does not wait for a reader. */
static void case_log(struct test *test)
{
	char path[120];

	snprintf(path, sizeof(path), "%s.log", test->path);
	unlink(path);
	MUST(mkfifo(path, 0600) == 0);
	setenv("GPREEMPT_AGENT_LOG", path, 1);
	test_meet(test, test->mechanism, LEASE_LONG, 1);
	CHECK(works(test, 0));
	CHECK(test_end(test) == 0);
	unlink(path);
}

/* Where the first queue is made by a thread that is bound to one processor, the agent's thread is not bound with it: it
 * has to run while that one spins. */
static void case_bound(struct test *test)
{
	long all;

	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	all = test_number(test, "bind", 0);
	CHECK(test_number(test, "queue", 0) >= 0);
	MUST(fake_accept(&test->fake));
	MUST(fake_welcome(&test->fake, test->mechanism, LEASE_LONG));
	MUST(fake_until_queues(&test->fake, 1));
	CHECK(all >= 1 && test_number(test, "processors", 0) == all);
	CHECK(works(test, 0));
	CHECK(test_end(test) == 0);
}

/* A program that locks its memory pays for every page of a stack, used or not: the agent's are small. */
static void case_stacks(struct test *test)
{
	long kib;

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	kib = asleep_kib(test);
	CHECK(kib > 0 && kib <= 2048);
	CHECK(works(test, 0));
	CHECK(test_end(test) == 0);
}

/* The queue's gate closes and opens, by the agent. */
static void gate_works(struct test *test, uint32_t index)
{
	struct fake_queue *queue;

	MUST((queue = fake_queue(&test->fake, index)) != NULL);
	CHECK(ok(test_ask(test, "start %u %u", index, WORK_GROUPS)));
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && test_stands_still(test, index));
	CHECK(fake_order_one(&test->fake, queue, true) == 0 && ok(test_ask(test, "wait %u", index)));
}

/* A low limit of descriptors: those of the agent stay out of the way of the application's. Few left: it takes none,
 * though they were enough for itself. When the application has some to spare, it is scheduled like any other. */
static void case_limits(struct test *test)
{
	const uint32_t left[] = { 6, 20 };
	long before;

	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	CHECK(test_number(test, "limit", 256) == 0);
	before = test_number(test, "count", 128);
	CHECK(test_number(test, "queue", 0) >= 0);
	MUST(fake_accept(&test->fake));
	CHECK(before >= 0 && test_number(test, "count", 128) == before);
	CHECK(test_number(test, "count", 256) > before);
	CHECK(works(test, 0));
	CHECK(test_end(test) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		MUST(test_start(test, false));
		before = test_number(test, "hoard", left[i]);
		CHECK(before > 0 && test_number(test, "queue", 0) >= 0);
		CHECK(works(test, 0));
		CHECK(asleep_kib(test) > 0 && test_number(test, "count", 64) == before);
		CHECK(test_number(test, "share", 0) < before);
		MUST(fake_accept(&test->fake));
		CHECK(fake_welcome(&test->fake, test->mechanism, LEASE_LONG) && fake_until_queues(&test->fake, 1));
		gate_works(test, 0);
		CHECK(test_number(test, "destroy", 0) == 0);
		CHECK(fake_until(&test->fake, GP_WIRE_QUEUE_REMOVE));
		CHECK(test_end(test) == 0);
	}
}

/* The application runs short of descriptors later: the agent takes none for its next file, whose queues are scheduled
 * all the same, nor for another daemon, until there are some again. */
static void case_short(struct test *test)
{
	long before;

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	CHECK(test_number(test, "hoard", 10) > 0);
	CHECK(test_number(test, "reopen", 0) >= 0);
	before = test_number(test, "count", 64);
	CHECK(test_number(test, "queue", 0) >= 0);
	CHECK(fake_until_queues(&test->fake, 2));
	CHECK(test_number(test, "count", 64) == before);
	gate_works(test, 1);
	gate_works(test, 0);
	CHECK(test_number(test, "count", 64) == before);
	fake_stop(&test->fake);
	MUST(fake_listen(&test->fake, test->path));
	/* Right after the daemon has gone the agent may have one more for a moment. */
	for (uint32_t i = 0; i < 50; i++) {
		CHECK(test_number(test, "count", 64) == before || i < 25);
		usleep(10000);
	}
	CHECK(works(test, 1));
	CHECK(test_number(test, "share", 0) < before);
	MUST(fake_accept(&test->fake));
	CHECK(fake_welcome(&test->fake, test->mechanism, LEASE_LONG) && fake_until_queues(&test->fake, 2));
	gate_works(test, 1);
	CHECK(test_number(test, "destroy", 1) == 0);
	CHECK(fake_until(&test->fake, GP_WIRE_QUEUE_REMOVE));
	CHECK(test_end(test) == 0);
}

/* A sandbox of limits: with no descriptors allowed the agent's thread cannot sleep on its own. It does not go round for
 * ever: it opens the gates and is off. */
static void case_sleepless(struct test *test)
{
	struct fake_queue *queue;

	test_meet(test, test->mechanism, LEASE_LONG, 1);
	MUST((queue = fake_queue(&test->fake, 0)) != NULL);
	CHECK(ok(test_ask(test, "start 0 %u", WORK_GROUPS)));
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && test_stands_still(test, 0));
	CHECK(test_number(test, "limit", 0) == 0);
	(void)fake_send(&test->fake, GP_WIRE_SYNC, NULL, 0);
	while (fake_receive(&test->fake, AGENT_WAIT_MS) > 0)
		;
	CHECK(fake_receive(&test->fake, AGENT_WAIT_MS) == -1);
	CHECK(ok(test_ask(test, "wait 0")));
	CHECK(works(test, 0));
	CHECK(test_number(test, "destroy", 0) == 0);
	CHECK(test_end(test) == 0);
}

const struct test_case test_guest_cases[] = {
	{ "sandbox", case_sandbox },
	{ "stolen", case_stolen },
	{ "bell", case_bell },
	{ "foreign", case_foreign },
	{ "log", case_log },
	{ "bound", case_bound },
	{ "limits", case_limits },
	{ "short", case_short },
	{ "stacks", case_stacks },
	{ "sleepless", case_sleepless },
	{ NULL, NULL },
};
