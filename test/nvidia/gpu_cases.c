/* SPDX-License-Identifier: MIT */
/* The agent on a real NVIDIA GPU, under a daemon that is a test. Without one every case is skipped. */
#include <errno.h>
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "test/e2e/agent_test.h"

#define LEASE_MS   60000u
#define SUBMITS    400u
#define SECTION_MS 300
#define LEFT_STEPS 3000000

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct fake_queue *gpu_start(struct test *test, uint32_t mechanism)
{
	struct fake_queue *queue;

	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	if (strcmp(test_ask(test, "context"), "ok 0") != 0) {
		printf("skipped: no NVIDIA GPU here (%s)\n", test->answer);
		exit(77);
	}
	MUST(fake_accept(&test->fake));
	printf("# %s, mechanisms %#x\n", test->fake.hello.runtime, test->fake.hello.mechanisms);
	CHECK(test->fake.hello.mechanisms == GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL));
	MUST(fake_welcome(&test->fake, mechanism, LEASE_MS));
	MUST(fake_until_queues(&test->fake, 1));
	queue = fake_queue(&test->fake, 0);
	while (!queue->group_count)
		MUST(fake_until(&test->fake, GP_WIRE_GROUP));
	printf("# gpu %#x, group %#x, %u channels, slice %llu us\n", queue->said.gpu_id, queue->group.group,
	       queue->group.channel_count, (unsigned long long)queue->group.slice_us);
	return queue;
}

/* The slice as RM has it, asked on the client's own file. */
static uint64_t gpu_slice(struct test *test, const struct fake_queue *queue)
{
	int pidfd = (int)syscall(SYS_pidfd_open, test->pid, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, queue->group.fd, 0);
	uint64_t slice_us = 0;
	struct gp_rm_control args = {
		queue->group.client, queue->group.group, GP_RM_SLICE_GET, 0, (uintptr_t)&slice_us, 8, 0x77
	};

	if (fd < 0 || ioctl(fd, GP_RM_REQUEST(GP_RM_CONTROL) | sizeof(args) << 16, &args) < 0 || args.status)
		slice_us = 0;
	close(fd);
	close(pidfd);
	return slice_us;
}

static bool gpu_page_is_busy(struct test *test, const struct fake_queue *queue)
{
	const struct gp_page_queue *page = &test->fake.page->queues[queue->said.slot];

	return page->written > page->completed;
}

/* The agent has a context not gated before its first kernel has run and its program has set it up. */
static void gpu_until_started(struct test *test, const struct fake_queue *queue)
{
	uint64_t before = now_ns();

	CHECK(!strcmp(test_ask(test, "work 0 0 100"), "ok 0") && test_number(test, "wait", 0) == 0);
	while (queue->said.flags & GP_QUEUE_BLIND && now_ns() - before < AGENT_WAIT_MS * 1000000ull)
		MUST(fake_sync(&test->fake) && usleep(1000) == 0);
	printf("# to be gated %llu ms after its first kernel\n", (unsigned long long)((now_ns() - before) / 1000000u));
}

/* Random work of every kind, looked at again and again until it is done: never idle in the page while CUDA knows of
 * work that was there before the look, never busy in the page when CUDA has waited for all. And it is known for what it
 * is: an agent that has fallen back to what is fetched, or sees nothing, says so, and must not. */
static void case_truth(struct test *test)
{
	struct fake_queue *queue = gpu_start(test, GP_MECHANISM_CHANNEL);
	uint32_t early = 0, late = 0, looks = 0, busy_looks = 0, unsure = 0;
	uint64_t look_ns = 0;

	CHECK(queue->group.channel_count > 0 && queue->group.slice_us > 0);
	gpu_until_started(test, queue);
	srand(1);
	for (uint32_t i = 0; i < SUBMITS; i++) {
		int kind = rand() % 8, stream = rand() % 4, steps = 1 << rand() % 11;
		long busy;

		CHECK(!strcmp(test_ask(test, "work %d %d %d", kind, stream, steps), "ok 0"));
		for (uint32_t n = 0; n < 50u; n++) {
			uint64_t before = now_ns();
			bool said;

			MUST(fake_sync(&test->fake));
			look_ns += now_ns() - before;
			looks++;
			unsure += (queue->said.flags & (GP_QUEUE_FETCH | GP_QUEUE_BLIND)) != 0;
			said = gpu_page_is_busy(test, queue);
			busy = test_number(test, "busy", 0);
			CHECK(busy >= 0);
			busy_looks += busy == 1;
			if (busy == 1 && !said && ++early <= 10u)
				printf("# too early: kind %d, stream %d, steps %d\n", kind, stream, steps);
			if (!busy)
				break;
		}
		if (rand() % 4 == 0) {
			CHECK(test_number(test, "wait", 0) == 0);
			MUST(fake_sync(&test->fake));
			if (gpu_page_is_busy(test, queue) && ++late <= 10u)
				printf("# still busy: kind %d, stream %d, steps %d: %llu of %llu\n", kind, stream,
				       steps, (unsigned long long)test->fake.page->queues[queue->said.slot].completed,
				       (unsigned long long)test->fake.page->queues[queue->said.slot].written);
		}
	}
	CHECK(test_number(test, "wait", 0) == 0);
	CHECK(test_number(test, "lost", 0) == 0);
	printf("# %u submissions, %u looks (%u with work), idle too early %u, busy too long %u, by fetching only %u, a look %llu us\n",
	       SUBMITS, looks, busy_looks, early, late, unsure, (unsigned long long)(look_ns / looks / 1000u));
	CHECK(busy_looks > 20u && early == 0 && late == 0 && unsure == 0);
	/* Not every program can end its context before it ends itself. */
	if (test_number(test, "close", 0) == 0)
		MUST(fake_until_queues(&test->fake, 0));
	CHECK(test_end(test) == 0);
}

static bool gpu_moves_within(struct test *test, int ms)
{
	long before = test_number(test, "steps_done", 0);

	for (int i = 0; i < ms; i++, usleep(1000))
		if (test_number(test, "steps_done", 0) != before)
			return true;
	return false;
}

static bool gpu_moves(struct test *test)
{
	return gpu_moves_within(test, AGENT_WAIT_MS);
}

static bool gpu_stands_still(struct test *test)
{
	return !gpu_moves_within(test, SECTION_MS);
}

/* A step takes about a microsecond: at least three seconds of work are left, more than this machine may stand still. */
static void gpu_keep_busy(struct test *test)
{
	if (test_number(test, "lost", 0) < LEFT_STEPS)
		CHECK(!strcmp(test_ask(test, "work 1 0 %d", LEFT_STEPS), "ok 0"));
}

/* A closed gate holds a running kernel, opening resumes it, and no step of it is lost. */
static void case_gate(struct test *test)
{
	struct fake_queue *queue = gpu_start(test, GP_MECHANISM_CHANNEL);

	gpu_keep_busy(test);
	CHECK(gpu_moves(test));
	for (uint32_t i = 0; i < 10u; i++) {
		gpu_keep_busy(test);
		CHECK(fake_order_one(&test->fake, queue, false) == 0);
		test_number(test, "steps_done", 0);
		CHECK(gpu_stands_still(test));
		CHECK(fake_order_one(&test->fake, queue, true) == 0);
		CHECK(gpu_moves(test));
	}
	CHECK(test_number(test, "wait", 0) == 0);
	CHECK(test_number(test, "lost", 0) == 0);
	CHECK(test_end(test) == 0);
}

/* The daemon dies: what was closed runs, the slice is what it was. */
static void case_death(struct test *test)
{
	struct fake_queue *queue = gpu_start(test, GP_MECHANISM_CHANNEL), kept = *queue;
	struct gp_wire_slice order = { .slot = queue->said.slot, .generation = queue->said.generation, .slice_us = 1 };
	uint64_t before;

	CHECK(gpu_slice(test, &kept) == kept.group.slice_us);
	gpu_keep_busy(test);
	CHECK(gpu_moves(test));
	gpu_keep_busy(test);
	CHECK(fake_order_one(&test->fake, queue, false) == 0);
	CHECK(fake_send(&test->fake, GP_WIRE_SLICE, &order.slot, sizeof(order) - sizeof(struct gp_wire_header)));
	CHECK(fake_until(&test->fake, GP_WIRE_SLICED) &&
	      ((const struct gp_wire_slice *)(const void *)test->fake.message)->result == 0);
	CHECK(gpu_slice(test, &kept) == 1);
	CHECK(gpu_stands_still(test));
	before = now_ns();
	fake_stop(&test->fake);
	CHECK(gpu_moves(test));
	printf("# running again after at most %llu us\n", (unsigned long long)((now_ns() - before) / 1000u));
	for (int i = 0; i < AGENT_WAIT_MS && gpu_slice(test, &kept) != kept.group.slice_us; i++)
		usleep(1000);
	CHECK(gpu_slice(test, &kept) == kept.group.slice_us);
	CHECK(test_number(test, "wait", 0) == 0);
	CHECK(test_number(test, "lost", 0) == 0);
	CHECK(test_end(test) == 0);
}

const struct test_case test_cases[] = {
	{ "truth", case_truth },
	{ "gate", case_gate },
	{ "death", case_death },
	{ NULL, NULL },
};
const struct test_case test_hsa_cases[] = { { NULL, NULL } }, test_guest_cases[] = { { NULL, NULL } };
