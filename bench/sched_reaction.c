/* SPDX-License-Identifier: MIT */
/*
 * From an urgent doorbell to the order that closes the batch client's gate, in the hands of the thread that would now
 * call the driver: through a real gpreemptd (null device), with two agents of our own. Beside it, in the same run, what
 * two bare futex hops between three threads take: the path has two hops (application → daemon → agent), so that is its
 * floor.
 *
 * usage: bench-sched-reaction SOCKET [COUNT]. Prints one JSON object; nanoseconds.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <gpreempt/page.h>
#include <gpreempt/wire.h>
#include "bench/hello.h"

#define REACTION_COUNT   2000u
#define REACTION_PACKETS 1000000000ull /* the batch client always has work */
#define REACTION_WAIT_MS 20000

struct agent {
	int fd, doorbell_fd;
	struct gp_page *page;
};

/* The batch client's thread and the main thread talk through these. */
static struct {
	struct agent batch;
	uint64_t closed_ns;               /* when the last order to close arrived */
	uint32_t close_count, open_count; /* release after the field above */
} reaction;

static uint64_t reaction_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void reaction_die(const char *what)
{
	fprintf(stderr, "bench-sched-reaction: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void reaction_connect(struct agent *agent, const char *path, int32_t priority)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *failed;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	agent->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (agent->fd < 0 || connect(agent->fd, (struct sockaddr *)&address, sizeof(address)))
		reaction_die(path);
	failed = gp_bench_hello(agent->fd, priority, &agent->page, &agent->doorbell_fd);
	if (failed)
		reaction_die(failed);
}

/* As page.h has it. */
static void reaction_edge(const struct agent *agent, uint32_t flag)
{
	struct gp_page_queue *queue = &agent->page->queues[0];
	uint64_t one = 1;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&queue->armed, __ATOMIC_RELAXED) & flag &&
	    __atomic_exchange_n(&queue->armed, 0, __ATOMIC_SEQ_CST) & flag &&
	    write(agent->doorbell_fd, &one, sizeof(one)) != sizeof(one))
		reaction_die("doorbell");
}

static void reaction_ring(const struct agent *agent, uint64_t packets)
{
	__atomic_store_n(&agent->page->queues[0].written, packets, __ATOMIC_RELAXED);
	__atomic_store_n(&agent->page->queues[0].doorbell, packets, __ATOMIC_RELAXED);
	reaction_edge(agent, GP_ARMED_BUSY);
}

static void reaction_complete(const struct agent *agent, uint64_t packets)
{
	__atomic_store_n(&agent->page->queues[0].completed, packets, __ATOMIC_RELAXED);
	reaction_edge(agent, GP_ARMED_IDLE);
}

static void reaction_order(const struct agent *agent, const struct gp_wire_order *order, uint64_t now_ns)
{
	struct {
		struct gp_wire_applied head;
		struct gp_wire_change changes[4];
	} answer;
	uint32_t count = order->count < 4u ? order->count : 4u;
	size_t size = sizeof(answer.head) + count * sizeof(answer.changes[0]);
	bool is_open = count && order->changes[0].open;

	answer.head = (struct gp_wire_applied){
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_APPLIED, (uint32_t)size, 0 },
		.seq = order->seq,
		.gpu_id = order->gpu_id,
		.count = count,
		.issue_ns = now_ns,
		.done_ns = now_ns + 1000u,
	};
	memcpy(answer.changes, order->changes, count * sizeof(answer.changes[0]));
	if (send(agent->fd, &answer, size, MSG_NOSIGNAL) != (ssize_t)size)
		reaction_die("APPLIED");
	if (is_open) {
		__atomic_add_fetch(&reaction.open_count, 1, __ATOMIC_RELEASE);
	} else {
		reaction.closed_ns = now_ns;
		__atomic_add_fetch(&reaction.close_count, 1, __ATOMIC_RELEASE);
	}
}

/* The batch client's agent: sleeps in poll(2), as the real one does. */
static void *reaction_batch(void *unused)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct pollfd wait = { .fd = reaction.batch.fd, .events = POLLIN };

	(void)unused;
	for (;;) {
		const struct gp_wire_header *header = (const void *)buffer;
		struct gp_wire_header synced = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED, sizeof(synced), 0 };

		if (poll(&wait, 1, -1) < 0)
			continue;
		if (recv(reaction.batch.fd, buffer, sizeof(buffer), 0) <= 0)
			return NULL;
		if (header->type == GP_WIRE_ORDER)
			reaction_order(&reaction.batch, (const void *)buffer, reaction_now_ns());
		synced.cookie = header->cookie;
		if (header->type == GP_WIRE_SYNC)
			(void)send(reaction.batch.fd, &synced, sizeof(synced), MSG_NOSIGNAL);
	}
}

static void reaction_await(const uint32_t *count, uint32_t wanted)
{
	static const struct timespec nap = { 0, 50000 };
	uint64_t begin_ns = reaction_now_ns();

	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < wanted) {
		if (reaction_now_ns() - begin_ns > REACTION_WAIT_MS * 1000000ull) {
			fprintf(stderr, "bench-sched-reaction: no order came within %d s\n", REACTION_WAIT_MS / 1000);
			exit(1);
		}
		(void)nanosleep(&nap, NULL);
	}
}

/* Two futex hops: main → middle → last. */

static uint32_t hop_words[2];
static uint64_t hop_end_ns;
static uint32_t hop_done;

static void hop_wake(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void hop_wait(uint32_t *word, uint32_t last)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == last)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, last, NULL, NULL, 0);
}

static void *hop_middle(void *unused)
{
	(void)unused;
	for (uint32_t i = 0;; i++) {
		hop_wait(&hop_words[0], i);
		hop_wake(&hop_words[1]);
	}
	return NULL;
}

static void *hop_last(void *unused)
{
	(void)unused;
	for (uint32_t i = 0;; i++) {
		hop_wait(&hop_words[1], i);
		hop_end_ns = reaction_now_ns();
		__atomic_store_n(&hop_done, i + 1u, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int reaction_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void reaction_print(const char *name, uint64_t *values, uint32_t count, const char *end)
{
	qsort(values, count, sizeof(*values), reaction_compare);
	printf("\"%s\": {\"p10\": %" PRIu64 ", \"p50\": %" PRIu64 ", \"p90\": %" PRIu64 ", \"p99\": %" PRIu64 "}%s",
	       name, values[count / 10u], values[count / 2u], values[count * 9u / 10u], values[count * 99u / 100u],
	       end);
}

static int reaction_measure(const char *path, uint32_t count, uint64_t *reactions, uint64_t *hops)
{
	static const struct timespec pause = { 0, 300000 };
	struct agent urgent;
	pthread_t threads[3];

	reaction_connect(&reaction.batch, path, 20);
	reaction_connect(&urgent, path, 80);
	if (pthread_create(&threads[0], NULL, reaction_batch, NULL) ||
	    pthread_create(&threads[1], NULL, hop_middle, NULL) || pthread_create(&threads[2], NULL, hop_last, NULL))
		return 1;
	reaction_ring(&reaction.batch, REACTION_PACKETS);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t begin_ns;

		(void)nanosleep(&pause, NULL);
		begin_ns = reaction_now_ns();
		hop_wake(&hop_words[0]);
		reaction_await(&hop_done, i + 1u);
		hops[i] = hop_end_ns - begin_ns;
		(void)nanosleep(&pause, NULL);
		begin_ns = reaction_now_ns();
		reaction_ring(&urgent, i + 1u);
		reaction_await(&reaction.close_count, i + 1u);
		reactions[i] = reaction.closed_ns - begin_ns;
		reaction_complete(&urgent, i + 1u);
		reaction_await(&reaction.open_count, i + 1u);
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : REACTION_COUNT;
	uint64_t *values;
	int r;

	if (argc < 2 || !count) {
		fputs("usage: bench-sched-reaction SOCKET [COUNT]\n", stderr);
		return 2;
	}
	values = calloc(count, 2 * sizeof(*values)); /* reactions, then hops */
	if (!values)
		return 1;
	r = reaction_measure(argv[1], count, values, values + count);
	if (!r) {
		printf("{\"count\": %" PRIu32 ", ", count);
		reaction_print("reaction_ns", values, count, ", ");
		reaction_print("two_hops_ns", values + count, count, "}\n");
	}
	free(values);
	return r;
}
