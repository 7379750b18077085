/* SPDX-License-Identifier: MIT */
/* Contexts on the H200 model: time slices, switches, holding a context out, announcing work. Figures in microseconds,
 * measured ones from docs/measurements/h200-2026-11-15.md, first run. */
#include "test/unit/model_fixture.h"

#define SWITCH_US     202u
#define REQUEST_COUNT 101u

struct pair {
	struct fixture f;
	uint32_t urgent_process, batch_process, urgent, batch;
};

static struct gp_gpu_packet urgent_kernel(void)
{
	struct gp_gpu_packet kernel = fixture_kernel(132, 200 * US);

	kernel.kernel.vgprs = 64;
	return kernel;
}

static void pair_open(struct pair *p)
{
	struct gp_gpu_packet batch = fixture_kernel(132, 50 * MS);

	batch.kernel.vgprs = 64;
	fixture_open(&p->f, "h200", 0, NULL);
	p->batch_process = fixture_process(&p->f);
	p->urgent_process = fixture_process(&p->f);
	p->batch = fixture_queue(&p->f, p->batch_process, 0);
	p->urgent = fixture_queue(&p->f, p->urgent_process, 0);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(gp_gpu_submit(p->f.gpu, p->batch, &batch, 0), 0);
	assert_int_equal(gp_gpu_doorbell(p->f.gpu, p->batch, 0), 0);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* One 200 us kernel about every 20 ms, at arrivals that walk through the slice. Sorted latencies. */
static void pair_requests(struct pair *p, uint64_t *ret_latencies)
{
	struct gp_gpu_packet kernel = urgent_kernel();

	for (uint32_t i = 0; i < REQUEST_COUNT; i++) {
		uint64_t now_ns = 20 * MS * (i + 1) + (i * 7919 * US / 10) % (2048 * US);

		fixture_run(&p->f, now_ns);
		fixture_submit(&p->f, p->urgent, &kernel, now_ns);
		fixture_run(&p->f, now_ns + 10 * MS);
		ret_latencies[i] = fixture_time(&p->f, GP_GPU_EVENT_END, p->urgent, i) - now_ns;
	}
	qsort(ret_latencies, REQUEST_COUNT, sizeof(ret_latencies[0]), compare);
}

/* Alone a 200 us kernel takes 236: nothing is switched. */
static void test_alone(void **state)
{
	struct gp_gpu_packet kernel = urgent_kernel();
	struct fixture f;
	uint32_t queue;

	(void)state;
	fixture_open(&f, "h200", 0, NULL);
	queue = fixture_queue(&f, fixture_process(&f), 0);
	fixture_submit(&f, queue, &kernel, MS);
	fixture_run(&f, 5 * MS);
	fixture_submit(&f, queue, &kernel, 5 * MS);
	fixture_run(&f, 9 * MS);
	/* The very first one loads the context. */
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, queue, 1) - 5 * MS, 236 * US);
	fixture_close(&f);
}

/* Native slices: the request waits for what is left of 2048 us, then the switch: p99 close to slice + switch + alone =
 * 2486 (measured 2500, p90 2281), and the batch keeps 97 %. */
static void test_native_slices(void **state)
{
	uint64_t latencies[REQUEST_COUNT], unit_ns;
	struct pair p;

	(void)state;
	pair_open(&p);
	pair_requests(&p, latencies);
	assert_in_range(latencies[0] / US, SWITCH_US + 236, SWITCH_US + 236 + 100);
	assert_in_range(latencies[90] / US, 2150, 2400);
	assert_in_range(latencies[99] / US, 2400, 2490);
	unit_ns = fixture_counters(&p.f, p.batch).unit_ns;
	assert_in_range(unit_ns * 1000 / (2030 * MS + 2 * MS), 964, 976);
	fixture_close(&p.f);
}

/* A slice of 1 us for the batch, set once: every request takes one switch and its kernel (measured 438), the batch
 * keeps 97 %. */
static void test_short_slice(void **state)
{
	uint64_t latencies[REQUEST_COUNT];
	struct pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(gp_gpu_set_timeslice(p.f.gpu, p.batch_process, 0, 0), 0);
	pair_requests(&p, latencies);
	assert_in_range(latencies[0], 438 * US, 439 * US);
	assert_in_range(latencies[REQUEST_COUNT - 1], 438 * US, 439 * US);
	fixture_close(&p.f);
}

/* Holding out per request: disable (700), the request, enable (300). Measured 1008; the victim stops 364 into the call,
 * makes no progress while it is out, and is back about 380 after the enabling call began. */
static void test_hold_out(void **state)
{
	struct gp_gpu_packet kernel = urgent_kernel();
	uint64_t progress;
	struct pair p;

	(void)state;
	pair_open(&p);
	fixture_run(&p.f, 10 * MS);
	fixture_gate(&p.f, p.batch, false, 1, 10 * MS);
	fixture_run(&p.f, 10 * MS + 700 * US);
	assert_int_equal(fixture_time(&p.f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 0), 10 * MS + 700 * US);
	assert_int_equal(fixture_time(&p.f, GP_GPU_EVENT_STOP, p.batch, 0), 10 * MS + 364 * US);
	progress = fixture_counters(&p.f, p.batch).unit_ns;
	fixture_submit(&p.f, p.urgent, &kernel, 10 * MS + 700 * US);
	fixture_run(&p.f, 30 * MS);
	assert_int_equal(fixture_time(&p.f, GP_GPU_EVENT_END, p.urgent, 0), 10 * MS + 1008 * US);
	assert_int_equal(fixture_counters(&p.f, p.batch).unit_ns, progress);
	fixture_gate(&p.f, p.batch, true, 2, 30 * MS);
	fixture_run(&p.f, 40 * MS);
	assert_in_range(fixture_time(&p.f, GP_GPU_EVENT_START, p.batch, 1), 30 * MS + 370 * US, 30 * MS + 505 * US);
	fixture_close(&p.f);
}

/* Announced in time the switch is over when the work comes: as if alone. Announced for nothing, the batch is back
 * afterwards. */
static void test_announce(void **state)
{
	struct gp_gpu_packet kernel = urgent_kernel();
	uint64_t progress;
	struct pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(gp_gpu_set_timeslice(p.f.gpu, p.batch_process, 1 * US, 0), 0);
	fixture_run(&p.f, 10 * MS);
	assert_int_equal(gp_gpu_announce(p.f.gpu, p.urgent, 11 * MS, 10 * MS), 0);
	fixture_run(&p.f, 10 * MS + 300 * US);
	fixture_submit(&p.f, p.urgent, &kernel, 10 * MS + 300 * US);
	fixture_run(&p.f, 20 * MS);
	assert_int_equal(fixture_time(&p.f, GP_GPU_EVENT_END, p.urgent, 0), 10 * MS + 536 * US);
	assert_int_equal(gp_gpu_announce(p.f.gpu, p.urgent, 22 * MS, 20 * MS), 0);
	fixture_run(&p.f, 20 * MS + 1 * US);
	progress = fixture_counters(&p.f, p.batch).unit_ns;
	fixture_run(&p.f, 22 * MS);
	assert_int_equal(fixture_counters(&p.f, p.batch).unit_ns, progress);
	fixture_run(&p.f, 23 * MS);
	assert_in_range(fixture_counters(&p.f, p.batch).unit_ns - progress, 790 * US, 800 * US);
	fixture_close(&p.f);
}

/* Four batch contexts at 1 us each are switched all the time and get nothing done (measured 0 %). */
static void test_thrashing(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(132, 10 * MS);
	uint32_t queues[4];
	uint64_t sum = 0;
	struct fixture f;

	(void)state;
	kernel.kernel.vgprs = 64;
	fixture_open(&f, "h200", 0, NULL);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t process = fixture_process(&f);

		queues[i] = fixture_queue(&f, process, 0);
		assert_int_equal(gp_gpu_set_timeslice(f.gpu, process, 1 * US, 0), 0);
		fixture_submit(&f, queues[i], &kernel, 0);
	}
	fixture_run(&f, 100 * MS);
	for (uint32_t i = 0; i < 4; i++)
		sum += fixture_counters(&f, queues[i]).unit_ns;
	assert_true(sum < 1 * MS);
	fixture_close(&f);
}

/* All queues of the context run at once; those of another context wait for its turn. */
static void test_queues_of_one_context(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(44, 1 * MS);
	uint32_t process, queues[3];
	struct fixture f;

	(void)state;
	kernel.kernel.vgprs = 64;
	fixture_open(&f, "h200", 0, NULL);
	process = fixture_process(&f);
	for (uint32_t i = 0; i < 3; i++)
		queues[i] = fixture_queue(&f, process, 0);
	for (uint32_t i = 0; i < 3; i++)
		fixture_submit(&f, queues[i], &kernel, MS);
	fixture_run(&f, 10 * MS);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, queues[i], 0), 2 * MS + (20 + 72 + 4 + 12) * US);
	fixture_close(&f);
}

/* cpsch has no such thing as a time slice of a process. */
static void test_only_on_tsg(void **state)
{
	struct fixture f;
	uint32_t process, queue;

	(void)state;
	fixture_open(&f, "mi300x", 0, NULL);
	process = fixture_process(&f);
	queue = fixture_queue(&f, process, 0);
	assert_int_equal(gp_gpu_set_timeslice(f.gpu, process, 1 * US, 0), -EOPNOTSUPP);
	assert_int_equal(gp_gpu_announce(f.gpu, queue, MS, 0), -EOPNOTSUPP);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_native_slices),
		cmocka_unit_test(test_short_slice),
		cmocka_unit_test(test_hold_out),
		cmocka_unit_test(test_announce),
		cmocka_unit_test(test_thrashing),
		cmocka_unit_test(test_queues_of_one_context),
		cmocka_unit_test(test_only_on_tsg),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
