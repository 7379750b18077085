/* SPDX-License-Identifier: MIT */
/* Pipes of the command processor: one queue at a time, packets in order, blocked heads held or passed over. */
#include "test/unit/model_fixture.h"

static const char *const hold[] = { "packet=1us",      "doorbell=300ns",    "signal=1us",
				    "pipe_switch=0us", "blocked_head=hold", NULL };
static const char *const rotate[] = { "packet=1us",      "doorbell=300ns",      "signal=1us",
				      "pipe_switch=0us", "blocked_head=rotate", NULL };
#define BEFORE (300u + 1u * US) /* doorbell and packet */

/* Newest first, round the pipes: of five queues the newest sits on pipe 0 and the oldest too, a slot higher, as in the
 * register dump of an MI308X process. Slots 0 and 1 belong to the kernel. */
static void test_placement(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(1, 10 * US);
	uint32_t queues[5], process;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi308x", 0, NULL);
	process = fixture_process(&f);
	for (uint32_t i = 0; i < 5; i++)
		queues[i] = fixture_queue(&f, process, 0);
	fixture_run(&f, MS);
	for (uint32_t i = 0; i < 5; i++)
		fixture_submit(&f, queues[i], &kernel, MS);
	fixture_run(&f, 2 * MS);
	for (uint32_t i = 0; i < 5; i++) {
		const struct gp_gpu_event *event = fixture_find(&f, GP_GPU_EVENT_FETCH, queues[i], 0);

		assert_int_equal(event->pipe, (4 - i) % 4);
		assert_int_equal(event->slot, i == 0 ? 3 : 2);
	}
	fixture_close(&f);
}

/* Five queues on four pipes, so that queues 0 and 4 share pipe 0. Queue 0 holds a head that waits for a signal; queue 4
 * has a kernel. Returns how long that kernel waited to be taken. */
static uint64_t wait_behind_blocked(const char *const *overrides)
{
	struct gp_gpu_packet barrier = { .type = GP_GPU_BARRIER_AND }, kernel = fixture_kernel(1, 10 * US);
	uint32_t queues[5], process;
	struct fixture f;
	uint64_t ns;

	fixture_open(&f, "mi300x", 0, overrides);
	process = fixture_process(&f);
	for (uint32_t i = 0; i < 5; i++)
		queues[i] = fixture_queue(&f, process, 0);
	fixture_run(&f, MS);
	assert_int_equal(gp_gpu_signal_add(f.gpu, 1, &barrier.deps[0]), 0);
	fixture_submit(&f, queues[0], &barrier, MS);
	fixture_submit(&f, queues[4], &kernel, MS + 100 * US);
	fixture_run(&f, 5 * MS);
	ns = fixture_time(&f, GP_GPU_EVENT_FETCH, queues[4], 0) - MS - 100 * US;
	/* The barrier goes as soon as its signal comes, wherever the pipe is. */
	assert_int_equal(gp_gpu_signal_set(f.gpu, barrier.deps[0], 0, 5 * MS), 0);
	fixture_run(&f, 6 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_FETCH, queues[0], 0), 5 * MS + US);
	fixture_close(&f);
	return ns;
}

/* hold: the neighbour waits for the rest of the 1 ms quantum. rotate: it does not wait at all. */
static void test_blocked_head(void **state)
{
	(void)state;
	assert_int_equal(wait_behind_blocked(hold), 900 * US + 300 + US);
	assert_int_equal(wait_behind_blocked(rotate), BEFORE);
}

/* A pipe leaves a queue in the middle of its grid when the quantum is over and another one waits: what was dispatched
 * goes on running, the rest comes when the pipe is back. Nobody else on the pipe: no quantum. */
static void test_quantum(void **state)
{
	struct gp_gpu_packet batch = fixture_kernel(304 * 100, 100 * US), urgent = fixture_kernel(304, 10 * US);
	uint32_t queues[5], process;
	uint64_t start_ns;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 0, hold);
	process = fixture_process(&f);
	for (uint32_t i = 0; i < 5; i++)
		queues[i] = fixture_queue(&f, process, 0);
	fixture_run(&f, MS);
	fixture_submit(&f, queues[0], &batch, MS);
	/* The batch queue has been on the pipe for 5 ms: its quantum is long over, so the change comes at once. */
	fixture_submit(&f, queues[4], &urgent, 6 * MS + 50 * US);
	fixture_run(&f, 50 * MS);
	start_ns = fixture_time(&f, GP_GPU_EVENT_START, queues[4], 0);
	assert_in_range(start_ns, 6 * MS + 50 * US, 6 * MS + 50 * US + 101 * US);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_END, queues[0], 0)->value, 304 * 100);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_END, queues[4], 0)->value, 304);
	/* The urgent kernel takes one round out of the batch kernel's hundred. */
	assert_in_range(fixture_time(&f, GP_GPU_EVENT_END, queues[0], 0), MS + 100 * 100 * US,
			MS + 100 * 100 * US + 25 * US);
	fixture_close(&f);
}

/* Without the barrier bit the next packet follows when all workgroups of the one before are dispatched; with it, when
 * they are done. */
static void test_barrier_bit(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(10, 100 * US);
	uint64_t apart_ns;
	struct fixture f;
	uint32_t queue;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		kernel.barrier = i != 0;
		fixture_open(&f, "mi300x", 0, hold);
		queue = fixture_queue(&f, fixture_process(&f), 0);
		assert_int_equal(gp_gpu_submit(f.gpu, queue, &kernel, MS), 0);
		fixture_submit(&f, queue, &kernel, MS);
		fixture_run(&f, 2 * MS);
		apart_ns =
			fixture_time(&f, GP_GPU_EVENT_START, queue, 1) - fixture_time(&f, GP_GPU_EVENT_START, queue, 0);
		assert_int_equal(apart_ns, kernel.barrier ? 100 * US + US : US);
		fixture_close(&f);
	}
}

/* Barrier packets: AND waits for all its signals, OR for one; a signal is counted down by the packet that carries it.
 */
static void test_barrier_packets(void **state)
{
	struct gp_gpu_packet kernels[2] = { fixture_kernel(1, 100 * US), fixture_kernel(1, 300 * US) };
	struct gp_gpu_packet all = { .type = GP_GPU_BARRIER_AND }, any = { .type = GP_GPU_BARRIER_OR };
	uint32_t queues[4], process;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 0, hold);
	process = fixture_process(&f);
	for (uint32_t i = 0; i < 4; i++)
		queues[i] = fixture_queue(&f, process, 0);
	fixture_run(&f, MS);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(gp_gpu_signal_add(f.gpu, 1, &kernels[i].signal), 0);
		all.deps[i] = any.deps[i * 3] = kernels[i].signal;
		fixture_submit(&f, queues[i], &kernels[i], MS);
	}
	fixture_submit(&f, queues[2], &all, MS);
	fixture_submit(&f, queues[3], &any, MS);
	fixture_run(&f, 2 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_FETCH, queues[3], 0), MS + BEFORE + 100 * US + US + US);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_FETCH, queues[2], 0), MS + BEFORE + 300 * US + US + US);
	assert_int_equal(fixture_counters(&f, queues[2]).completed, 1);
	fixture_close(&f);
}

/* The read counter moves at completion, in order, or at fetch, as configured; the ring fills accordingly. */
static void test_read_counter(void **state)
{
	struct gp_gpu_queue_attr attr = { .kind = GP_GPU_COMPUTE, .ring_size = 2 };
	struct gp_gpu_packet first = fixture_kernel(1, 500 * US), second = fixture_kernel(1, 10 * US);
	struct gp_gpu_counters counters;
	struct fixture f;
	uint32_t queue;

	(void)state;
	first.barrier = second.barrier = false;
	for (uint32_t at_fetch = 0; at_fetch < 2; at_fetch++) {
		struct gp_gpu_config config = { .desc = &f.desc, .rptr_at_fetch = at_fetch != 0 };

		fixture_open(&f, "mi300x", 0, hold);
		gp_gpu_destroy(f.gpu);
		assert_int_equal(gp_gpu_create(&config, &f.gpu), 0);
		assert_int_equal(gp_gpu_queue_add(f.gpu, fixture_process(&f), &attr, 0, &queue), 0);
		assert_int_equal(gp_gpu_submit(f.gpu, queue, &first, MS), 0);
		fixture_submit(&f, queue, &second, MS);
		assert_int_equal(gp_gpu_submit(f.gpu, queue, &second, MS), -ENOSPC);
		fixture_run(&f, MS + 100 * US);
		counters = fixture_counters(&f, queue);
		assert_int_equal(counters.fetched, 2);
		assert_int_equal(counters.completed, 1); /* the second, before the first */
		assert_int_equal(counters.read, at_fetch ? 2 : 0);
		assert_int_equal(gp_gpu_submit(f.gpu, queue, &second, MS + 100 * US), at_fetch ? 0 : -ENOSPC);
		fixture_run(&f, 2 * MS);
		assert_int_equal(fixture_counters(&f, queue).read, 2);
		fixture_close(&f);
	}
}

/* Packets are seen a doorbell later, not when they are written; each doorbell in its own time. */
static void test_doorbell(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(1, 10 * US);
	struct fixture f;
	uint32_t queue;

	(void)state;
	kernel.barrier = false;
	fixture_open(&f, "mi300x", 0, hold);
	queue = fixture_queue(&f, fixture_process(&f), 0);
	assert_int_equal(gp_gpu_submit(f.gpu, queue, &kernel, MS), 0);
	fixture_run(&f, 2 * MS);
	assert_int_equal(fixture_counters(&f, queue).fetched, 0);
	assert_int_equal(gp_gpu_doorbell(f.gpu, queue, 2 * MS), 0);
	fixture_submit(&f, queue, &kernel, 2 * MS + 200);
	fixture_run(&f, 3 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_FETCH, queue, 0), 2 * MS + 300 + US);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_FETCH, queue, 1), 2 * MS + 300 + 2 * US);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placement),       cmocka_unit_test(test_blocked_head),
		cmocka_unit_test(test_quantum),         cmocka_unit_test(test_barrier_bit),
		cmocka_unit_test(test_barrier_packets), cmocka_unit_test(test_read_counter),
		cmocka_unit_test(test_doorbell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
