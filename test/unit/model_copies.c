/* SPDX-License-Identifier: MIT */
/* Copy engines: time by size, sharing of engines, stopping at a packet boundary, order with signals. */
#include "test/unit/model_fixture.h"

static const char *const bare[] = { "doorbell=300ns", "signal=1us", "copy_latency=2us", "copy_bandwidth=50GB/s", NULL };

static uint32_t copy_queue(struct fixture *f, uint32_t process)
{
	struct gp_gpu_queue_attr attr = { .kind = GP_GPU_COPY };
	uint32_t queue;

	assert_int_equal(gp_gpu_queue_add(f->gpu, process, &attr, 0, &queue), 0);
	return queue;
}

static struct gp_gpu_packet copy_packet(uint64_t size)
{
	return (struct gp_gpu_packet){ .type = GP_GPU_COPY_BYTES, .copy_size = size };
}

/* Latency and size over bandwidth; queue i is on engine i mod 2, so the first and the third take turns and the second
 * is alone. */
static void test_engines(void **state)
{
	struct gp_gpu_packet copy = copy_packet(50000000); /* 1 ms */
	uint32_t queues[3], process;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 0, bare);
	process = fixture_process(&f);
	for (uint32_t i = 0; i < 3; i++)
		queues[i] = copy_queue(&f, process);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(gp_gpu_submit(f.gpu, queues[i], &copy, MS), 0);
		fixture_submit(&f, queues[i], &copy, MS);
	}
	fixture_run(&f, 10 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, queues[1], 0), MS + 300 + 1002 * US + US);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, queues[1], 1), MS + 300 + 2 * 1002 * US + US);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, queues[0], 0), MS + 300 + 1002 * US + US);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, queues[2], 0), MS + 300 + 2 * 1002 * US + US);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, queues[0], 1), MS + 300 + 3 * 1002 * US + US);
	assert_int_equal(fixture_counters(&f, queues[0]).busy_ns, 2 * 1002 * US);
	fixture_close(&f);
}

/* A closed copy queue stops at the next multiple of 4 MiB, its transaction waits for that, and the rest follows when it
 * opens. */
static void test_stops_at_boundary(void **state)
{
	struct gp_gpu_packet copy = copy_packet(40ull << 20); /* ten hardware packets, 83.9 us each */
	uint64_t stop_ns;
	struct fixture f;
	uint32_t queue;

	(void)state;
	fixture_open(&f, "mi300x", 10 * US, bare);
	queue = copy_queue(&f, fixture_process(&f));
	fixture_run(&f, MS);
	fixture_submit(&f, queue, &copy, MS);
	fixture_gate(&f, queue, false, 1, MS + 200 * US);
	fixture_run(&f, 5 * MS);
	stop_ns = fixture_time(&f, GP_GPU_EVENT_STOP, queue, 0);
	assert_int_equal(stop_ns, MS + 300 + 2 * US + (12ull << 20) * 1000 / 50000 + 1);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 0), stop_ns);
	fixture_gate(&f, queue, true, 2, 5 * MS);
	fixture_run(&f, 10 * MS);
	assert_in_range(fixture_time(&f, GP_GPU_EVENT_END, queue, 0) - 5 * MS - 10 * US, 587 * US + 3 * US,
			587 * US + 4 * US);
	assert_int_equal(fixture_counters(&f, queue).completed, 1);
	fixture_close(&f);
}

/* A copy and the kernel behind it in another queue, tied by a signal; the device may be halted meanwhile, copies are
 * not. */
static void test_signal_between_copy_and_kernel(void **state)
{
	struct gp_gpu_packet copy = copy_packet(50000000), kernel = fixture_kernel(1, 10 * US);
	struct gp_gpu_packet barrier = { .type = GP_GPU_BARRIER_AND };
	uint32_t process, copies, kernels;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	process = fixture_process(&f);
	copies = copy_queue(&f, process);
	kernels = fixture_queue(&f, process, 0);
	assert_int_equal(gp_gpu_signal_add(f.gpu, 1, &copy.signal), 0);
	barrier.deps[2] = copy.signal;
	fixture_run(&f, MS);
	fixture_submit(&f, copies, &copy, MS);
	assert_int_equal(gp_gpu_submit(f.gpu, kernels, &barrier, MS), 0);
	fixture_submit(&f, kernels, &kernel, MS);
	fixture_gate(&f, kernels, true, 1, MS + 500 * US);
	fixture_run(&f, 5 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, copies, 0), MS + 300 + 1003 * US);
	assert_true(fixture_time(&f, GP_GPU_EVENT_START, kernels, 0) > fixture_time(&f, GP_GPU_EVENT_END, copies, 0));
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_END, kernels), 2);
	fixture_close(&f);
}

/* SDMA queues are few: the seventeenth is refused, as KFD refuses it; kernels do not run there. */
static void test_limits(void **state)
{
	struct gp_gpu_queue_attr attr = { .kind = GP_GPU_COPY };
	struct gp_gpu_packet kernel = fixture_kernel(1, 1), nothing = copy_packet(0);
	uint32_t process, queue, first;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 0, bare);
	process = fixture_process(&f);
	first = copy_queue(&f, process);
	for (uint32_t i = 1; i < 16; i++)
		(void)copy_queue(&f, process);
	assert_int_equal(gp_gpu_queue_add(f.gpu, process, &attr, 0, &queue), -ENOSPC);
	assert_int_equal(gp_gpu_submit(f.gpu, first, &kernel, 0), -EINVAL);
	assert_int_equal(gp_gpu_submit(f.gpu, first, &nothing, 0), -EINVAL);
	assert_int_equal(gp_gpu_kill(f.gpu, first, 0), -EOPNOTSUPP);
	assert_int_equal(gp_gpu_queue_remove(f.gpu, first, 0), 0);
	assert_int_equal(gp_gpu_queue_add(f.gpu, process, &attr, 0, &queue), 0);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_engines),
		cmocka_unit_test(test_stops_at_boundary),
		cmocka_unit_test(test_signal_between_copy_and_kernel),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
