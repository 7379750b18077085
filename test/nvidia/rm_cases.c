/* SPDX-License-Identifier: MIT */
/* The agent in a client of the fake resource manager, under a daemon that is a test. */
#include <errno.h>
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/nvidia/rm_bench.h"

/* Contexts on two GPUs are two queues, with all that is needed to reach them; a copy engine's group is none. */
static void case_capture(struct test *test)
{
	struct fake_queue *queue;
	int pidfd, fd;

	rm_start(test, 2);
	CHECK(test_number(test, "context", 0) == 0);
	CHECK(test_number(test, "context", 1) == 1);
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 2);
	CHECK(test->fake.hello.mechanisms == GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL));
	CHECK(!strncmp(test->fake.hello.runtime, "CUDA, RM ", 9));
	for (uint32_t i = 0; i < 2u; i++) {
		queue = rm_queue(test, i);
		CHECK(queue->said.gpu_id == (i + 1u) << 8);
		CHECK(queue->said.kind == GP_WIRE_COMPUTE);
		CHECK(queue->said.queue_id == queue->group.group);
		CHECK(queue->said.flags == GP_QUEUE_BLIND); /* it has only begun: see "start" */
		CHECK(queue->group.channel_count == 8);
		CHECK(queue->group.slice_us == FAKE_RM_SLICE_US);
		for (uint32_t n = 0; n < queue->group.channel_count && n < 64u; n++) {
			const struct fake_rm_object *channel = rm_object(queue->group.client, queue->group.channels[n]);

			CHECK(channel && channel->parent == queue->group.group && channel->class_id == 0xc86f);
		}
		CHECK(rm_object(queue->group.client, queue->group.subdevice)->gpu == i);
	}
	/* The descriptor is one of the very file. */
	pidfd = (int)syscall(SYS_pidfd_open, test->pid, 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, queue->group.fd, 0);
	CHECK(fd >= 0 && lseek(fd, 0, SEEK_CUR) == (off_t)rm_object(queue->group.client, queue->group.client)->file);
	close(fd);
	close(pidfd);
	rm_end(test);
}

/* Both forms of RM_ALLOC, bare and wrapped; descriptors that were duplicated; every way a context can end. */
static void case_forms(struct test *test)
{
	uint32_t before;

	rm_start(test, 1);
	CHECK(test_number(test, "context", 0) == 0);
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 1);
	test_number(test, "xfer", 1);
	CHECK(test_number(test, "context", 0) == 1);
	test_number(test, "rights", 1);
	CHECK(test_number(test, "context", 0) == 2);
	test_number(test, "xfer", 0);
	test_number(test, "dup", 0);
	CHECK(test_number(test, "context", 0) == 3);
	/* Below a device that is known by its second name alone, and on a GPU that only such a subdevice tells. */
	test_number(test, "rename", 1);
	CHECK(test_number(test, "context", 0) == 4);
	test_number(test, "rename", 0);
	MUST(fake_until_queues(&test->fake, 5));
	CHECK(rm_queue(test, 4)->group.channel_count == 8 &&
	      rm_queue(test, 4)->said.gpu_id == rm_queue(test, 3)->said.gpu_id);
	CHECK(!strcmp(test_ask(test, "free 4 device"), "ok 0"));
	MUST(fake_until_queues(&test->fake, 4));
	CHECK(rm_queue(test, 3)->group.channel_count == 8);
	/* A context that does not go after all is a new queue. */
	rm_rule(FAKE_RM_STATUS, GP_RM_FREE, GP_RM_ERR_STATE, 1);
	before = test->fake.counts[GP_WIRE_QUEUE_REMOVE];
	CHECK(!strcmp(test_ask(test, "free 0 group"), "ok -1"));
	MUST(fake_until(&test->fake, GP_WIRE_QUEUE_REMOVE) && fake_until(&test->fake, GP_WIRE_GROUP));
	CHECK(test->fake.queue_count == 4 && test->fake.counts[GP_WIRE_QUEUE_REMOVE] == before + 1u);
	CHECK(fake_queue(&test->fake, 0)->said.generation == 2);
	/* A group, a device, the client. */
	CHECK(!strcmp(test_ask(test, "free 0 group"), "ok 0"));
	MUST(fake_until_queues(&test->fake, 3));
	test_number(test, "xfer", 1);
	CHECK(!strcmp(test_ask(test, "free 1 device"), "ok 0"));
	MUST(fake_until_queues(&test->fake, 2));
	CHECK(!strcmp(test_ask(test, "free 2 client"), "ok 0"));
	MUST(fake_until_queues(&test->fake, 0));
	rm_end(test);
}

/* A channel that goes or comes is told; one that comes while the gate is closed does not open it. */
static void case_channels(struct test *test)
{
	struct fake_queue *queue;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	CHECK(!strcmp(test_ask(test, "free 0 channel"), "ok 0"));
	MUST(rm_until_group(test, queue));
	CHECK(queue->group.channel_count == 7);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(rm_disabled(queue) == 7);
	CHECK(test_number(test, "channel", 0) == 1);
	MUST(rm_until_group(test, queue));
	CHECK(queue->group.channel_count == 8);
	/* It cannot be disabled before it is scheduled. */
	CHECK(rm_disabled(queue) == 7);
	CHECK(test_number(test, "schedule", 0) == 0);
	CHECK(rm_disabled(queue) == 8);
	/* One that goes is opened first: its end could wait. If it does not go after all, it is closed again. */
	rm_rule(FAKE_RM_STATUS, GP_RM_FREE, GP_RM_ERR_STATE, 1);
	CHECK(!strcmp(test_ask(test, "free 0 channel"), "ok -1"));
	CHECK(rm_disabled(queue) == 8);
	test_ask(test, "again 0");
	CHECK(!strcmp(test_ask(test, "free 0 channel"), "ok 0"));
	CHECK(rm_disabled(queue) == 7);
	/* Enabled, then freed; the rest of the group is closed as before, and is not touched. */
	CHECK(rm->calls[(rm->call_count - 2u) % FAKE_RM_CALL_MAX].value == 1);
	CHECK(rm->calls[(rm->call_count - 1u) % FAKE_RM_CALL_MAX].command == GP_RM_FREE);
	CHECK(rm->disabled_most == 1);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(rm_disabled(queue) == 0);
	/* What the application has disabled itself stays so. */
	CHECK(!strcmp(test_ask(test, "disable 0 1"), "ok 0"));
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(rm_disabled(queue) == 1);
	CHECK(!strcmp(test_ask(test, "disable 0 0"), "ok 0"));
	CHECK(rm_disabled(queue) == 0);
	rm_end(test);
}

/* Orders reach the hardware, for the contexts of one GPU in one call. */
static void case_gate(struct test *test)
{
	struct fake_queue *queues[2];
	int results[2] = { 1, 1 };
	uint32_t before;

	rm_start(test, 1);
	CHECK(test_number(test, "context", 0) == 0);
	CHECK(test_number(test, "context", 0) == 1);
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 2);
	queues[0] = rm_queue(test, 0);
	queues[1] = rm_queue(test, 1);
	CHECK(fake_order_one(&test->fake, queues[0], false) == 0);
	CHECK(rm_disabled(queues[0]) == 8 && rm_disabled(queues[1]) == 0);
	CHECK(fake_order_one(&test->fake, queues[0], true) == 0);
	CHECK(rm_disabled(queues[0]) == 0);
	before = rm_calls(GP_RM_DISABLE_CHANNELS);
	CHECK(fake_order(&test->fake, queues, (bool[]){ false, false }, 2, results));
	CHECK(results[0] == 0 && results[1] == 0);
	CHECK(rm_disabled(queues[0]) == 8 && rm_disabled(queues[1]) == 8);
	CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) == before + 1u);
	/* A context that ends while it is closed is opened first, and only it. */
	CHECK(!strcmp(test_ask(test, "free 0 group"), "ok 0"));
	CHECK(rm_calls(GP_RM_DISABLE_CHANNELS) == before + 2u);
	CHECK(rm->calls[(rm->call_count - 2u) % FAKE_RM_CALL_MAX].command == GP_RM_DISABLE_CHANNELS);
	CHECK(rm->calls[(rm->call_count - 1u) % FAKE_RM_CALL_MAX].command == GP_RM_FREE);
	CHECK(rm_disabled(queues[1]) == 8);
	/* exit() opens what is left. */
	rm_end(test);
}

/* Slices: set, told, put back; what the application sets is its own and stays under ours. */
static void case_slice(struct test *test)
{
	struct fake_queue *queue;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	CHECK(rm_slice_order(test, queue, 1) == 0);
	CHECK(rm_slice(queue) == 1);
	CHECK(test_number(test, "slice?", 0) == FAKE_RM_SLICE_US);
	CHECK(!strcmp(test_ask(test, "slice 0 500"), "ok 0"));
	CHECK(rm_slice(queue) == 1);
	CHECK(test_number(test, "slice?", 0) == 500);
	MUST(rm_until_group(test, queue));
	CHECK(queue->group.slice_us == 500);
	CHECK(rm_slice_order(test, queue, 0) == 0);
	CHECK(rm_slice(queue) == 500);
	CHECK(test_number(test, "slice?", 0) == 500);
	/* Errors of the order, of the driver. */
	CHECK(rm_slice_order(test, queue, 1ull << 40) == -EINVAL);
	rm_rule(FAKE_RM_STATUS, GP_RM_SLICE_SET, GP_RM_ERR_BUSY, 1);
	CHECK(rm_slice_order(test, queue, 1) == -EBUSY);
	queue->said.generation++;
	CHECK(rm_slice_order(test, queue, 1) == -ESTALE);
	queue->said.slot = GP_WIRE_QUEUE_MAX;
	CHECK(rm_slice_order(test, queue, 1) == -ESTALE);
	CHECK(rm_slice(queue) == 500);
	rm_end(test);
}

/* The daemon dies: channels are enabled and slices put back, whoever disabled and shortened them. */
/* As the daemon does it, on its duplicate. */
static void borrow_close(const struct fake_queue *queue)
{
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++) {
		rm->objects[i].disabled = rm->objects[i].used && rm->objects[i].parent == queue->group.group;
		if (rm->objects[i].used && rm->objects[i].handle == queue->group.group)
			rm->objects[i].slice_us = 1;
	}
}

static void case_death(struct test *test)
{
	struct fake_queue *queue, kept;

	queue = rm_start_one(test, test->mechanism, LEASE_MS);
	kept = *queue;
	if (test->mechanism == GP_MECHANISM_CHANNEL) {
		CHECK(fake_order_one(&test->fake, queue, false) == 0);
		CHECK(rm_slice_order(test, queue, 1) == 0);
	} else {
		/* An order is not for us, a slice neither: the daemon does both itself. */
		CHECK(fake_order_one(&test->fake, queue, false) == -EOPNOTSUPP);
		CHECK(rm_slice_order(test, queue, 1) == -EOPNOTSUPP);
		borrow_close(&kept);
		/* Unless it cannot: then what it has closed is opened here, and as long as it was. */
		CHECK(fake_order_one(&test->fake, queue, true) == 0);
		CHECK(rm_disabled(&kept) == 0 && rm_slice(&kept) == FAKE_RM_SLICE_US);
		borrow_close(&kept);
	}
	CHECK(rm_disabled(&kept) > 0 && rm_slice(&kept) == 1);
	/* Not at the first try: it goes on trying. */
	rm_rule(FAKE_RM_STATUS, GP_RM_DISABLE_CHANNELS, GP_RM_ERR_BUSY, 2);
	rm_rule(FAKE_RM_STATUS, GP_RM_SLICE_SET, GP_RM_ERR_BUSY, 2);
	fake_stop(&test->fake);
	CHECK(rm_until_disabled(&kept, 0));
	CHECK(rm_until_slice(&kept, FAKE_RM_SLICE_US));
	rm_end(test);
}

/* Another daemon finds what is there. */
static void case_again(struct test *test)
{
	struct fake_queue *queue;

	rm_start(test, 1);
	CHECK(test_number(test, "context", 0) == 0);
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 1);
	rm_queue(test, 0);
	fake_stop(&test->fake);
	MUST(fake_listen(&test->fake, test->path));
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 1);
	CHECK(test->fake.hello.flags & GP_HELLO_AGAIN);
	queue = rm_queue(test, 0);
	CHECK(queue->group.channel_count == 8);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	/* Another way: everything opens first. */
	CHECK(rm_slice_order(test, queue, 1) == 0);
	CHECK(fake_send(&test->fake, GP_WIRE_MECHANISM,
			&(struct { uint32_t mechanism, reserved; }){ GP_MECHANISM_BORROW, 0 }, 8));
	CHECK(rm_until_disabled(queue, 0) && rm_until_slice(queue, FAKE_RM_SLICE_US));
	/* Our descriptor's number is wanted: it moves, and is told anew. */
	CHECK(test_number(test, "number", (uint32_t)queue->group.fd) == 1);
	MUST(rm_until_group(test, queue));
	CHECK(queue->group.fd >= 0);
	rm_end(test);
}

/* A child has no queues; one of its own is a client of its own. The parent keeps its. */
static void case_fork(struct test *test)
{
	struct fake_queue *queue;
	int parent;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(test_number(test, "fork", 0) == 0);
	CHECK(test_number(test, "fork", 1) == 0);
	CHECK(rm_disabled(queue) == 8);
	parent = test->fake.socket;
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(rm_disabled(queue) == 0 && test->fake.socket == parent);
	rm_end(test);
}

/* Requests that lie about their sizes and addresses are the driver's to refuse; what is good afterwards still works. */
static void case_hostile(struct test *test)
{
	struct fake_queue *queue;

	rm_start(test, 1);
	CHECK(test_number(test, "context", 0) == 0);
	CHECK(!strcmp(test_ask(test, "hostile"), "ok 0"));
	CHECK(test_number(test, "context", 0) == 1);
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 2);
	queue = rm_queue(test, 1);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(rm_disabled(queue) == 8);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	rm_end(test);
}

/* Whether a process has this file open: by the fake's number of it, which is its position. */
static uint32_t file_count(pid_t pid, uint32_t file)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint32_t count = 0;

	for (int n = 0; n < 1024; n++) {
		int fd = (int)syscall(SYS_pidfd_getfd, pidfd, n, 0);

		count += fd >= 0 && lseek(fd, 0, SEEK_CUR) == (off_t)file;
		if (fd >= 0)
			close(fd);
	}
	close(pidfd);
	return count;
}

/* A program that closes its file without freeing its client ends its contexts: ours does not keep them alive. */
static void case_closed(struct test *test)
{
	struct fake_queue *queue;
	uint32_t file;

	rm_start(test, 1);
	for (uint32_t i = 0; i < 2u; i++) {
		CHECK(test_number(test, "context", 0) == (long)i);
		if (i == 0)
			rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 1);
		MUST(fake_until_queues(&test->fake, 1));
		queue = rm_queue(test, 0);
		file = rm_object(queue->group.client, queue->group.client)->file;
		CHECK(file_count(test->pid, file) == 2);
		/* While another descriptor is there nothing ends. */
		test_number(test, "dup", 0);
		CHECK(fake_sync(&test->fake) && fake_sync(&test->fake) && test->fake.queue_count == 1);
		CHECK(test_number(test, "end", i) == 0);
		MUST(fake_until_queues(&test->fake, 0));
		for (int n = 0; n < AGENT_WAIT_MS && file_count(test->pid, file); n++)
			usleep(1000);
		CHECK(file_count(test->pid, file) == 0);
	}
	/* Where the kernel does not say whose a file is, none is taken for closed. */
	CHECK(test_number(test, "context", 0) == 2);
	MUST(fake_until_queues(&test->fake, 1));
	CHECK(test_number(test, "kcmp", 0) == 0);
	CHECK(test_number(test, "range", 0) == 0);
	CHECK(fake_sync(&test->fake) && fake_sync(&test->fake) && test->fake.queue_count == 1);
	rm_end(test);
}

/* Calls that came on a file which is not their client's. */
static uint32_t misled_calls(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rm->call_count && i < FAKE_RM_CALL_MAX; i++)
		count += rm->calls[i].status == GP_RM_ERR_CLIENT;
	return count;
}

/* The number of the agent's duplicate has become the application's: no call of the agent's comes there. The gate opens
 * all the same, by the file as the application has it, and the daemon hears where that is now. */
static void case_stolen(struct test *test)
{
	struct fake_queue *queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	int number = queue->group.fd;

	CHECK(fake_order_one(&test->fake, queue, false) == 0 && rm_disabled(queue) == 8);
	CHECK(test_number(test, "steal", (uint32_t)number) == 1);
	CHECK(fake_order_one(&test->fake, queue, true) == 0 && rm_disabled(queue) == 0);
	while (queue->group.fd == number)
		MUST(rm_until_group(test, queue));
	CHECK(rm_slice_order(test, queue, 500) == 0 && rm_slice(queue) == 500);
	/* And again, where the application closes its own as well: that ends the client. */
	CHECK(test_number(test, "steal", (uint32_t)queue->group.fd) == 1 && test_number(test, "end", 0) == 0);
	CHECK(fake_until_queues(&test->fake, 0));
	CHECK(misled_calls() == 0);
	rm_end(test);
}

/* A group with more channels than one call holds is told of, but is nobody's to close. */
static void case_many(struct test *test)
{
	struct fake_queue *queue;

	rm_start(test, 1);
	CHECK(test_number(test, "context", 0) == 0);
	for (uint32_t i = 8; i < 64u; i++)
		CHECK(test_number(test, "channel", 0) == 1);
	CHECK(test_number(test, "schedule", 0) == 0);
	rm_meet(test, GP_MECHANISM_CHANNEL, LEASE_MS, 1);
	queue = rm_queue(test, 0);
	while (queue->group.channel_count != 64u)
		MUST(rm_until_group(test, queue));
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(rm_disabled(queue) == 64);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(test_number(test, "channel", 0) == 1);
	CHECK(fake_order_one(&test->fake, queue, false) == -E2BIG);
	CHECK(rm_disabled(queue) == 0);
	rm_end(test);
}

/* A daemon of version 1 knows no groups: it is told of queues in its own words. */
static void case_old(struct test *test)
{
	rm_start(test, 1);
	CHECK(test_number(test, "context", 0) == 0);
	MUST(fake_accept(&test->fake));
	test->fake.version = 1;
	MUST(fake_welcome(&test->fake, GP_MECHANISM_NONE, LEASE_MS));
	MUST(fake_until_queues(&test->fake, 1));
	CHECK(fake_sync(&test->fake) && fake_sync(&test->fake));
	CHECK(test->fake.counts[GP_WIRE_GROUP] == 0);
	CHECK(((const struct gp_wire_header *)(const void *)test->fake.message)->version == 1);
	rm_end(test);
}

/* exit() leaves nothing closed behind, and a short slice of nobody. */
static void case_exit(struct test *test)
{
	struct fake_queue *queue, kept;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	kept = *queue;
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(rm_slice_order(test, queue, 1) == 0);
	CHECK(rm_disabled(&kept) == 8 && rm_slice(&kept) == 1);
	rm_end(test);
	CHECK(rm_disabled(&kept) == 0 && rm_slice(&kept) == FAKE_RM_SLICE_US);
}

/* A channel whose RM_FREE is under way is in no order: it may be gone by then, and the whole call would fail. */
static void case_going(struct test *test)
{
	struct fake_queue *queue;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	rm_rule(FAKE_RM_HANG, GP_RM_FREE, 0, 0);
	fprintf(test->to, "free 0 channel\n");
	fflush(test->to);
	for (int i = 0; i < AGENT_WAIT_MS && !__atomic_load_n(&rm->hanging, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	MUST(rm->hanging);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(rm_disabled(queue) == 7);
	__atomic_store_n(&rm->rules[0].how, FAKE_RM_NOT, __ATOMIC_RELEASE);
	CHECK(fgets(test->answer, sizeof(test->answer), test->from) && !strcmp(test->answer, "ok 0\n"));
	CHECK(rm_disabled(queue) == 7);
	CHECK(fake_order_one(&test->fake, queue, true) == 0);
	CHECK(rm_disabled(queue) == 0);
	rm_end(test);
}

/* Contexts come and go in several threads while gates open and close: nothing is left over, and the one that stays is
 * what it was. */
static void case_storm(struct test *test)
{
	struct fake_queue *queue;
	struct gp_wire_sample sample = { .interval_ns = 50000 };
	bool ended = false;
	int result, got;

	queue = rm_start_one(test, GP_MECHANISM_CHANNEL, LEASE_MS);
	CHECK(fake_send(&test->fake, GP_WIRE_SAMPLE, &sample.interval_ns, sizeof(sample.interval_ns)));
	fprintf(test->to, "storm 100\n");
	fflush(test->to);
	for (uint32_t i = 0; !ended; i++) {
		struct fake_queue *other = fake_queue(&test->fake, i % 5u);
		struct pollfd answer = { fileno(test->from), POLLIN, 0 };

		/* Those that go meanwhile are stale. */
		result = other ? fake_order_one(&test->fake, other, i & 1u) : 0;
		CHECK(result == 0 || result == -ESTALE);
		rm_slice_order(test, queue, i % 3u);
		while ((got = fake_receive(&test->fake, 0)) > 0)
			;
		CHECK(got == 0);
		ended = poll(&answer, 1, 0) == 1;
	}
	MUST(fgets(test->answer, sizeof(test->answer), test->from));
	CHECK(!strcmp(test->answer, "ok 0\n"));
	CHECK(fake_sync(&test->fake) && fake_until_queues(&test->fake, 1));
	queue = fake_queue(&test->fake, 0);
	CHECK(queue->group.channel_count == 8);
	result = fake_order_one(&test->fake, queue, true);
	CHECK(result == 0 && rm_disabled(queue) == 0);
	rm_end(test);
}

/* clang-format off */
const struct test_case test_cases[] = {
	{ "storm", case_storm },
	{ "going", case_going },
	{ "marker", case_marker },
	{ "closed", case_closed },
	{ "many", case_many },
	{ "old", case_old },
	{ "exit", case_exit },
	{ "work", case_work },
	{ "memory", case_memory },
	{ "preemption", case_preemption },
	{ "blocked", case_blocked },
	{ "lease", case_lease },
	{ "capture", case_capture },
	{ "forms", case_forms },
	{ "channels", case_channels },
	{ "gate", case_gate },
	{ "slice", case_slice },
	{ "death", case_death },
	{ "again", case_again },
	{ "statuses", case_statuses },
	{ "refused", case_refused },
	{ "fork", case_fork },
	{ "hostile", case_hostile },
	{ "sampled", case_sampled },
	{ "held", case_held },
	{ "stolen", case_stolen },
	{ "counts", case_counts },
	{ "start", case_start },
	{ "still", case_still },
	{ "greeted", case_greeted },
	{ "spare", case_spare },
	{ "unsure", case_unsure },
	{ "swept", case_swept },
	{ "killed", case_killed },
	{ "parted", case_parted },
	{ "unasked", case_unasked },
	{ NULL, NULL },
};
/* clang-format on */
const struct test_case test_hsa_cases[] = { { NULL, NULL } }, test_guest_cases[] = { { NULL, NULL } };
