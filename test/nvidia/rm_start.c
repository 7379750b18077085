/* SPDX-License-Identifier: MIT */
/* Contexts that start, and disables that are counted, on the fake resource manager. */
#include <gpreempt/rm.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/nvidia/rm_bench.h"

/* As often as the first channel of a context is disabled. */
static uint32_t start_count(const struct fake_queue *queue)
{
	return rm_object(queue->group.client, queue->group.channels[0])->disabled;
}

/* The fake counts as the real one does, and in such a world one open is enough for whatever came while it was closed:
 * nothing is disabled twice by us. The program's own disables stay its own. */
void case_counts(struct test *test)
{
	struct fake_queue *queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS), first = *queue;

	CHECK(!strcmp(test_ask(test, "disable 0 1"), "ok 0") && !strcmp(test_ask(test, "disable 0 1"), "ok 0"));
	CHECK(start_count(&first) == 2 && !strcmp(test_ask(test, "disable 0 0"), "ok 0") && start_count(&first) == 1);
	for (uint32_t i = 0; i < 3u; i++)
		CHECK(!strcmp(test_ask(test, "disable 0 0"), "ok 0") && start_count(&first) == 0);
	CHECK(!strcmp(test_ask(test, "disable 0 1"), "ok 0") && start_count(&first) == 1);
	CHECK(!strcmp(test_ask(test, "disable 0 0"), "ok 0"));
	for (uint32_t keeps = 0; keeps < 2u; keeps++) {
		rm->schedule_keeps = keeps;
		rm->disabled_most = 0;
		CHECK(fake_order_one(&test->fake, queue, false) == 0 && rm_disabled(queue) == 8u + keeps);
		CHECK(test_number(test, "channel", 0) == 1 && rm_disabled(queue) == 8u + keeps);
		CHECK(test_number(test, "schedule", 0) == 0 && rm_disabled(queue) == 9u + keeps);
		CHECK(test_number(test, "schedule", 0) == 0 && rm_disabled(queue) == 9u + keeps);
		CHECK(rm->disabled_most == 1);
		/* By both: what is ours is taken back, what is its own stays, whichever ends first. */
		CHECK(!strcmp(test_ask(test, "disable 0 1"), "ok 0") && start_count(&first) == 1);
		CHECK(!strcmp(test_ask(test, "disable 0 0"), "ok 0") && start_count(&first) == 1);
		CHECK(!strcmp(test_ask(test, "disable 0 0"), "ok 0") && start_count(&first) == 1);
		CHECK(!strcmp(test_ask(test, "disable 0 1"), "ok 0") && start_count(&first) == 1);
		CHECK(fake_order_one(&test->fake, queue, true) == 0 && rm_disabled(queue) == 1);
		CHECK(!strcmp(test_ask(test, "disable 0 0"), "ok 0") && rm_disabled(queue) == 0);
		/* Ours could not be taken back: it is when the program enables its own. */
		CHECK(fake_order_one(&test->fake, queue, false) == 0 && start_count(&first) == 1);
		rm_rule(FAKE_RM_PASS, GP_RM_DISABLE_CHANNELS, 0, 1);
		rm_rule(FAKE_RM_STATUS, GP_RM_DISABLE_CHANNELS, GP_RM_ERR_BUSY, 1);
		CHECK(!strcmp(test_ask(test, "disable 0 1"), "ok 0") && start_count(&first) == 2);
		CHECK(fake_order_one(&test->fake, queue, true) == 0 && start_count(&first) == 2);
		CHECK(!strcmp(test_ask(test, "disable 0 0"), "ok 0") && rm_disabled(queue) == 0);
		rm->disabled_most = 0;
		/* A call that fails in the middle, and what is ordered after it. */
		rm_rule(FAKE_RM_STATUS, GP_RM_DISABLE_CHANNELS, GP_RM_ERR_BUSY, 2);
		CHECK(fake_order_one(&test->fake, queue, false) < 0);
		CHECK(fake_order_one(&test->fake, queue, false) == 0 && start_count(&first) == 1);
		CHECK(fake_order_one(&test->fake, queue, true) == 0 && rm_disabled(queue) == 0);
	}
	rm_end(test);
}

static bool start_until_flags(struct test *test, const struct fake_queue *queue, uint32_t flags)
{
	for (int i = 0; i < AGENT_WAIT_MS; i++, usleep(1000))
		if (fake_sync(&test->fake) && queue->said.flags == flags)
			return true;
	return false;
}

/* A context is told as one that is not to be gated until it has run a kernel and its program calls the driver no more;
 * nobody has to ask for the looks that find it out. */
void case_start(struct test *test)
{
	struct fake_queue *queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);

	CHECK(queue->said.flags == GP_QUEUE_BLIND);
	/* Commands are no kernel. */
	CHECK(!strcmp(test_ask(test, "submit 1 1"), "ok 0"));
	test_ask(test, "take 1");
	for (uint32_t i = 0; i < 100u; i++, usleep(1000))
		CHECK(fake_sync(&test->fake) && queue->said.flags == GP_QUEUE_BLIND);
	/* One that runs has not run. */
	CHECK(!strcmp(test_ask(test, "submit 1 0"), "ok 1"));
	test_ask(test, "take 1");
	for (uint32_t i = 0; i < 100u; i++, usleep(1000))
		CHECK(fake_sync(&test->fake) && queue->said.flags == GP_QUEUE_BLIND);
	test_ask(test, "finish 1 1");
	while (queue->said.flags)
		MUST(fake_until(&test->fake, GP_WIRE_QUEUE_CHANGE));
	/* The second context of a process starts by itself. */
	CHECK(test_number(test, "start", 20) == 1);
	MUST(fake_until_queues(&test->fake, 2));
	CHECK(start_until_flags(test, rm_queue(test, 1), 0) && queue->said.flags == 0);
	rm_end(test);
}

/* A context that is open, as far as anybody knows, and stands still: it is enabled once more, and again later. */
void case_still(struct test *test)
{
	struct fake_queue *queue = rm_start_one(test, test->mechanism, LEASE_MS);

	test_ask(test, "many 1 1");
	CHECK(start_until_flags(test, queue, 0));
	for (uint32_t i = 0; i < 2u; i++) {
		rm_set(queue, i + 1u, 1);
		CHECK(!strcmp(test_ask(test, "submit 1 0"), i ? "ok 2" : "ok 1"));
		CHECK(fake_sync(&test->fake)); /* somebody looks once */
		CHECK(rm_until_disabled(queue, 0));
		CHECK(rm_slice(queue) == 1); /* which is nothing to do with it */
		test_ask(test, "take 1");
		test_ask(test, i ? "finish 1 2" : "finish 1 1");
		CHECK(fake_sync(&test->fake));
	}
	CHECK(test->fake.counts[GP_WIRE_LOST] == 0);
	rm_end(test);
}

/* The program has no thread but its first. */
static bool start_until_alone(const struct test *test)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", test->pid);
	for (int i = 0; i < AGENT_WAIT_MS; i++, usleep(1000)) {
		struct stat st;

		if (stat(path, &st) == 0 && st.st_nlink == 3)
			return true;
	}
	return false;
}

/* One context that the daemon holds closed and short. */
static struct fake_queue *start_closed(struct test *test)
{
	struct fake_queue *queue = rm_start_one(test, test->mechanism, LEASE_MS);

	test_ask(test, "many 1 1");
	CHECK(start_until_flags(test, queue, 0));
	if (test->mechanism == GP_MECHANISM_CHANNEL)
		CHECK(fake_order_one(&test->fake, queue, false) == 0 && rm_slice_order(test, queue, 1) == 0);
	else
		rm_set(queue, 1, 1);
	CHECK(rm_disabled(queue) == 8 && rm_slice(queue) == 1);
	return queue;
}

/* The same, and the agent's duplicate of its file is closed by a system call of the program's own. */
static struct fake_queue start_dropped(struct test *test, rlim_t most)
{
	struct fake_queue *queue = start_closed(test);
	struct rlimit limit = { most, 1024 };

	CHECK(test_number(test, "number", 3) == 1);
	CHECK(prlimit(test->pid, RLIMIT_NOFILE, &limit, NULL) == 0);
	CHECK(test_number(test, "drop", (uint32_t)queue->group.fd) == 0);
	return *queue;
}

static void start_leave(struct test *test)
{
	close(test->fake.socket);
	test->fake.socket = -1;
}

/* The daemon dies while the program, which has closed the agent's duplicate, has no descriptor to spare: what the
 * daemon held closed opens all the same. */
void case_spare(struct test *test)
{
	struct fake_queue kept = start_dropped(test, 4); /* all in use, and as many as the agent's thread waits for */

	start_leave(test);
	CHECK(rm_until_disabled(&kept, 0) && rm_until_slice(&kept, FAKE_RM_SLICE_US));
	rm_end(test);
}

/* The same, and the driver is busy when the agent asks it which file is which: it asks again. */
void case_unsure(struct test *test)
{
	struct fake_queue kept = start_dropped(test, 1024);

	rm_rule(FAKE_RM_STATUS, GP_RM_GROUP_INFO, GP_RM_ERR_BUSY, 9);
	start_leave(test);
	CHECK(rm_until_disabled(&kept, 0) && rm_until_slice(&kept, FAKE_RM_SLICE_US));
	rm_end(test);
}

/* The program closes all descriptors of the agent's by a system call of its own, and the driver is busy: the agent
 * stays until all is open, does not spin, and then its threads end. */
void case_swept(struct test *test)
{
	struct fake_queue kept = *start_closed(test);
	uint32_t before = rm_calls(GP_RM_DISABLE_CHANNELS);

	rm_rule(FAKE_RM_STATUS, GP_RM_DISABLE_CHANNELS, GP_RM_ERR_BUSY, 4);
	CHECK(test_number(test, "sweep", 100) == 0);
	start_leave(test); /* nothing else may wake the agent's thread */
	CHECK(rm_until_disabled(&kept, 0) && rm_until_slice(&kept, FAKE_RM_SLICE_US));
	CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) <= before + 6u);
	CHECK(start_until_alone(test));
	rm_end(test);
}

/* A filter of the program's ends each thread of the agent's at a call that the program never makes: what the daemon
 * held closed opens all the same, and no call of the program's waits for a thread that has ended. */
void case_killed(struct test *test)
{
	static const uint32_t calls[] = { SYS_fstat, SYS_getsockopt, SYS_eventfd2 };
	struct fake_queue kept = *start_closed(test);

	for (uint32_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		CHECK(!strcmp(test_ask(test, "filter %u 1", calls[i]), "ok 0"));
	start_leave(test);
	CHECK(rm_until_disabled(&kept, 0) && rm_until_slice(&kept, FAKE_RM_SLICE_US));
	CHECK(start_until_alone(test));
	CHECK(test_number(test, "slice?", 0) == FAKE_RM_SLICE_US);
	rm_end(test);
}

/* The program has closed the agent's duplicate, and then its filter ends the agent's thread: the guard, which goes by
 * the numbers it has, takes nothing for open that it could not reach. */
void case_parted(struct test *test)
{
	struct fake_queue kept = start_dropped(test, 1024);

	CHECK(!strcmp(test_ask(test, "filter %u 1", SYS_recvmsg), "ok 0"));
	start_leave(test);
	CHECK(rm_until_disabled(&kept, 0) && rm_until_slice(&kept, FAKE_RM_SLICE_US));
	rm_end(test);
}

/* Clock ticks of processor time that the program has used. */
static long start_ticks(const struct test *test)
{
	char path[64], text[512] = "", *at;
	long user = 0, system = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", test->pid);
	file = fopen(path, "r");
	CHECK(file && fgets(text, sizeof(text), file) && (at = strrchr(text, ')')) &&
	      sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) == 2);
	if (file)
		fclose(file);
	return user + system;
}

/* A filter of the program's forbids the question whose a socket is: the agent leaves the dead daemon's socket all the
 * same, and its thread does not spin. */
void case_unasked(struct test *test)
{
	struct fake_queue kept = *start_closed(test);
	long before;

	CHECK(!strcmp(test_ask(test, "filter %u 0", SYS_getsockopt), "ok 0"));
	start_leave(test);
	CHECK(rm_until_disabled(&kept, 0) && rm_until_slice(&kept, FAKE_RM_SLICE_US));
	before = start_ticks(test);
	for (uint32_t i = 0; i < 500u; i++)
		usleep(1000);
	CHECK(start_ticks(test) - before < sysconf(_SC_CLK_TCK) / 10);
	rm_end(test);
}

/* The daemon dies, a gate does not open at the first tries, and the socket is served by one who never answers: it opens
 * all the same, and its thread does not spin meanwhile. */
void case_greeted(struct test *test)
{
	struct fake_queue *queue = rm_start_one(test, GP_MECHANISM_CHANNEL, 200), kept = *queue;
	uint32_t before;

	test_ask(test, "many 1 1");
	CHECK(start_until_flags(test, queue, 0));
	CHECK(fake_order_one(&test->fake, queue, false) == 0 && rm_disabled(&kept) == 8);
	test_ask(test, "submit 1 0");
	before = rm_calls(GP_RM_DISABLE_CHANNELS);
	rm_rule(FAKE_RM_STATUS, GP_RM_DISABLE_CHANNELS, GP_RM_ERR_BUSY, 3);
	close(test->fake.socket);
	test->fake.socket = -1;
	CHECK(rm_until_disabled(&kept, 0));
	CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) == before + 4u);
	/* He answers after all. */
	MUST(fake_accept(&test->fake) && fake_welcome(&test->fake, GP_MECHANISM_CHANNEL, LEASE_MS));
	MUST(fake_until_queues(&test->fake, 1));
	CHECK(!(fake_queue(&test->fake, 0)->said.flags & GP_QUEUE_CLOSED));
	rm_end(test);
}
