/* SPDX-License-Identifier: MIT */
/*
 * load batch QUEUES DISPATCHES KERNEL_US [PRIORITY]    all dispatches at once, then waits for them. MOVES=N in the
 *                                      environment: meanwhile the pages of a buffer change N times, each an eviction.
 *                                      UNTIL=FILE: adds dispatches until FILE exists, however long that takes
 * load serve REQUESTS KERNEL_US GAP_MS [PRIORITY [DELAY_MS]]   one request after the other, after DELAY_MS.
 *                                      GO=FILE: says "ready" once its queue is there, and begins when FILE exists
 * load hold MS [PRIORITY]                              a queue without work
 * load copy COUNT BYTES [KERNEL_US]    copies on an SDMA queue, and compares what arrived; KERNEL_US: the program has a
 *                                      compute queue with a kernel of that length too, and waits for it at the end
 * load cost COUNT                                      what an ioctl and a queue cost, in ns
 *
 * serve's times are the device's: from the doorbell to the end of the kernel as the model has it.
 *
 * A kernel fills the device: 600 workgroups of a tenth of its time, ten to a compute unit at once or not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "kfd.h"

#define GROUPS 240u /* a full device of a 60 CU part at this kernel's occupancy, one round */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* What the kernel says that this process got, where it schedules. */
static void print_stats(void)
{
	struct kfd_sched_stats stats;

	if (!sched_stats(&stats))
		printf(" run_ms=%llu wait_ms=%llu preemptions=%llu inversions=%llu", stats.run_ns / 1000000,
		       stats.wait_ns / 1000000, stats.preemptions, stats.inversions);
	printf("\n");
}

/* What a program does to its own memory reaches the driver through the MMU notifier, with the program's mmap lock held.
 */
static void move_pages(const struct queue *queue, unsigned times)
{
	void *buffer = (void *)(uintptr_t)queue->args.eop_buffer_address;

	for (unsigned i = 0; i < times; i++) {
		if (mprotect(buffer, 4096, PROT_READ) || mprotect(buffer, 4096, PROT_READ | PROT_WRITE))
			die("mprotect");
		usleep(10000); /* the driver restores its queues after a millisecond */
	}
}

static bool exists(const char *file)
{
	return file && !access(file, F_OK);
}

/* A signal of batch counts down from this: the device decrements it while packets are added. */
#define MANY (1ll << 40)

static int batch(unsigned queues, unsigned dispatches, unsigned us, unsigned priority)
{
	struct queue *queue = calloc(queues, sizeof(*queue));
	struct signal *signals = kfd_signals(queues);
	const char *until = getenv("UNTIL");
	unsigned submitted = 0;
	double start;
	long left = 0;

	for (unsigned i = 0; i < queues; i++) {
		queue_must(&queue[i], priority);
		signals[i].value = MANY;
	}
	start = now_ms();
	for (; submitted < dispatches || (until && !exists(until)); submitted++)
		for (unsigned i = 0; i < queues; i++)
			queue_dispatch(&queue[i], GROUPS, us * 1000ull, &signals[i]);
	if (getenv("MOVES"))
		move_pages(&queue[0], (unsigned)atoi(getenv("MOVES")));
	for (unsigned i = 0; i < queues; i++) {
		wait_below(&signals[i], MANY - submitted, 120000);
		left += signals[i].value - (MANY - submitted);
	}
	printf("batch pid=%d id=%u queues=%u dispatches=%u ms=%.1f left=%ld", getpid(), queue[0].args.queue_id, queues,
	       submitted, now_ms() - start, left);
	print_stats();
	return left != 0;
}

static int serve(unsigned requests, unsigned us, unsigned gap_ms, unsigned priority, unsigned delay_ms)
{
	struct signal *signal = kfd_signals(1);
	double *times = calloc(requests, sizeof(*times)), sum = 0;
	unsigned missing = 0;
	struct queue queue;

	queue_must(&queue, priority);
	if (getenv("GO")) {
		printf("ready\n");
		while (!exists(getenv("GO")))
			usleep(1000);
	}
	usleep(delay_ms * 1000);
	for (unsigned i = 0; i < requests; i++) {
		double start;

		usleep(gap_ms * 1000);
		signal->value = 1;
		start = now_ms();
		queue_dispatch(&queue, GROUPS, us * 1000ull, signal);
		missing += !wait_below(signal, 0, 30000);
		/* Until the device had done it, by the device's clock: when this program noticed is not its affair. */
		times[i] = (double)signal->end / 1e6 - start;
		sum += times[i];
	}
	qsort(times, requests, sizeof(*times), compare);
	printf("serve requests=%u missing=%u mean=%.2f p50=%.2f p99=%.2f max=%.2f", requests, missing, sum / requests,
	       times[requests / 2], times[requests * 99 / 100], times[requests - 1]);
	print_stats();
	return missing != 0;
}

static int copy(unsigned count, unsigned size, unsigned us)
{
	unsigned char *from = kfd_memory(size), *to = kfd_memory(size);
	volatile uint32_t *fence = kfd_memory(4096);
	struct signal *signal = kfd_signals(1);
	struct queue queue, compute;
	unsigned wrong = 0, done = 0;
	double start;
	int64_t left;

	if (copy_queue_create(&queue))
		die("CREATE_QUEUE");
	signal->value = us ? 1 : 0;
	if (us) {
		queue_must(&compute, 7);
		queue_dispatch(&compute, GROUPS, us * 1000ull, signal);
	}
	start = now_ms();
	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < size; k++)
			from[k] = (unsigned char)(k * 7 + i);
		copy_submit(&queue, to, from, size, fence, i + 1);
		while (*fence != i + 1 && now_ms() - start < 60000)
			usleep(100);
		done += *fence == i + 1;
		wrong += memcmp(from, to, size) != 0;
	}
	left = signal->value;
	printf("copy pid=%d id=%u copies=%u bytes=%u ms=%.1f wrong=%u left=%u kernels=%d\n", getpid(),
	       queue.args.queue_id, count, size, now_ms() - start, wrong, count - done, (int)left);
	queue_destroy(&queue);
	return wrong || done != count || !wait_below(signal, 0, 120000);
}

/* What one call costs: the middle one of so many. A queue's is made and destroyed again; when the device looks at the
 * command, which it does every 100 us, differs from time to time. */
static int cost(unsigned count)
{
	struct kfd_ioctl_get_version_args version;
	double *times = calloc(count, sizeof(*times)), start, ioctls;
	struct queue queue;

	for (unsigned i = 0; i < count; i++) {
		start = now_ms();
		for (unsigned k = 0; k < 100; k++)
			ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version);
		times[i] = (now_ms() - start) * 1e4;
	}
	qsort(times, count, sizeof(*times), compare);
	ioctls = times[count / 2];
	queue_prepare(&queue, 7);
	for (unsigned i = 0; i < count; i++) {
		start = now_ms();
		if (ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &queue.args))
			die("CREATE_QUEUE");
		queue_destroy(&queue);
		times[i] = (now_ms() - start) * 1e6;
	}
	qsort(times, count, sizeof(*times), compare);
	printf("ioctl_ns=%.0f queue_ns=%.0f\n", ioctls, times[count / 2]);
	return 0;
}

static unsigned argument(int argc, char **argv, int i, unsigned otherwise)
{
	return i < argc ? (unsigned)strtoul(argv[i], NULL, 0) : otherwise;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	kfd_open();
	if (argc > 4 && !strcmp(argv[1], "batch"))
		return batch(argument(argc, argv, 2, 1), argument(argc, argv, 3, 1), argument(argc, argv, 4, 1),
			     argument(argc, argv, 5, 7));
	if (argc > 4 && !strcmp(argv[1], "serve"))
		return serve(argument(argc, argv, 2, 1), argument(argc, argv, 3, 1), argument(argc, argv, 4, 1),
			     argument(argc, argv, 5, 10), argument(argc, argv, 6, 0));
	if (argc > 3 && !strcmp(argv[1], "copy"))
		return copy(argument(argc, argv, 2, 1), argument(argc, argv, 3, 4096), argument(argc, argv, 4, 0));
	if (argc > 2 && !strcmp(argv[1], "cost"))
		return cost(argument(argc, argv, 2, 1));
	if (argc > 2 && !strcmp(argv[1], "hold")) {
		struct queue queue;

		queue_must(&queue, argument(argc, argv, 3, 7));
		usleep(argument(argc, argv, 2, 1) * 1000);
		return 0;
	}
	fprintf(stderr, "usage: load batch|serve|hold|copy|cost ...\n");
	return 2;
}
