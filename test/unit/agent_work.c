/* SPDX-License-Identifier: MIT */
/* Looks at the work of a CUDA context as the scheduler makes them: what has work is never told to have none, and what
 * has none is told so after a bounded number of looks. The test plays program and GPU, and time is its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "agent/nvidia/nvidia.h"
#include "lib/rng.h"
#include "test/nvidia/fake_gpu.h"

#define CLIENT 1u
#define GROUP  2u
#define MEMORY 3u
/* Looks after which it is known that all of a burst is done: a ring of entries, 256 at a time. */
#define LOOKS_MAX 4u

static uint64_t now_ns;
static struct fake_gpu gpu;
static struct gp_slot *slot;

uint64_t __wrap_gp_sys_now_ns(void);
uint64_t __wrap_gp_sys_now_ns(void)
{
	return now_ns;
}

static int start(void **state)
{
	struct gp_rm_map map = { .client = CLIENT, .memory = MEMORY, .length = FAKE_GPU_SIZE, .fd = 1000 };
	void *at = (void *)(uintptr_t)FAKE_GPU_FIRST;

	(void)state;
	gp_nvidia_work_reset();
	gp_nvidia_maps_reset();
	gp_slots_reset();
	memset(gp_nvidia_groups, 0, sizeof(gp_nvidia_groups));
	memset(&gpu, 0, sizeof(gpu));
	now_ns = 1000000000u;
	gpu.memory = mmap(at, FAKE_GPU_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			  -1, 0);
	if (gpu.memory != at || !(slot = gp_slot_add(0)))
		return -1;
	gp_nvidia_group_of(slot)->client = CLIENT;
	gp_nvidia_group_of(slot)->group = GROUP;
	gp_nvidia_map_expect(&map);
	gp_nvidia_map_add(map.fd, FAKE_GPU_FIRST, FAKE_GPU_SIZE);
	for (uint32_t i = 0; i < FAKE_GPU_CHANNELS; i++) {
		const struct gp_nvidia_object channel = { .client = CLIENT,
							  .parent = GROUP,
							  .handle = 10u + i,
							  .entries = FAKE_GPU_ENTRIES,
							  .userd = MEMORY,
							  .userd_offset = FAKE_GPU_USERD(i),
							  .ring = FAKE_GPU_FIRST + FAKE_GPU_RING(i) };

		if (!gp_nvidia_work_add(&channel))
			return -1;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	return munmap(gpu.memory, FAKE_GPU_SIZE);
}

/* One sampled look; whether the queue is told to have something to run. */
static bool look(uint64_t after_ns)
{
	now_ns += after_ns;
	gp_nvidia_sample(&slot, 1);
	assert_false(slot->blind);
	assert_true(slot->completed <= slot->written);
	return slot->written > slot->completed && !slot->blocked;
}

#define INTERVAL_NS 250000u   /* as the daemon asks by default */
#define LATE_NS     20000000u /* the agent's thread did not run for a while */

/* How many looks until it is told idle, which it is. */
static uint32_t looks_until_idle(void)
{
	uint32_t count = 1;

	while (look(INTERVAL_NS) && count < 100u)
		count++;
	assert_int_equal(slot->written, slot->completed);
	return count;
}

/* Bursts of any length, over and not, of every kind of entry. */
static void test_bursts(void **state)
{
	(void)state;
	assert_false(look(INTERVAL_NS));
	for (uint32_t count = 250; count < 1024u; count += 100u) {
		fake_gpu_many(&gpu, 0, count);
		fake_gpu_submit(&gpu, 0, FAKE_GPU_KERNEL);
		fake_gpu_take(&gpu, 0);
		/* The last one runs: however often it is looked at. */
		for (uint32_t i = 0; i < 2u * LOOKS_MAX; i++)
			assert_true(look(INTERVAL_NS));
		fake_gpu_finish(&gpu, 0, gpu.put[0] - 1u);
		assert_int_equal(looks_until_idle(), 1);
	}
	for (uint32_t kind = FAKE_GPU_KERNEL; kind <= FAKE_GPU_UNKNOWN; kind++) {
		for (uint32_t i = 0; i < FAKE_GPU_ENTRIES - 1u; i++)
			fake_gpu_submit(&gpu, 1, kind);
		for (uint32_t i = 0; i < 2u * LOOKS_MAX; i++)
			assert_true(look(INTERVAL_NS));
		fake_gpu_take(&gpu, 1);
		for (uint32_t i = 0; i < 256u; i++)
			fake_gpu_finish(&gpu, 1, gpu.put[1] - 256u + i);
		assert_in_range(looks_until_idle(), 1, LOOKS_MAX);
	}
}

/* A channel that nobody has used for long gets the only work there is. */
static void test_unused(void **state)
{
	(void)state;
	for (uint32_t i = 1; i < FAKE_GPU_CHANNELS; i++) {
		for (uint32_t n = 0; n < 20u + i; n++)
			assert_false(look(INTERVAL_NS));
		fake_gpu_submit(&gpu, i, FAKE_GPU_KERNEL);
		assert_true(look(INTERVAL_NS));
		fake_gpu_take(&gpu, i);
		assert_true(look(INTERVAL_NS));
		fake_gpu_finish(&gpu, i, 0);
		assert_int_equal(looks_until_idle(), 1);
	}
}

/* Another channel waits for its host: the queue is blocked only as long as no other has work. */
static void test_unused_beside_held(void **state)
{
	(void)state;
	fake_gpu_submit(&gpu, 0, FAKE_GPU_WAIT);
	for (uint32_t i = 0; i < 20u; i++)
		look(INTERVAL_NS);
	assert_true(slot->blocked);
	fake_gpu_submit(&gpu, 5, FAKE_GPU_KERNEL);
	assert_true(look(INTERVAL_NS));
	fake_gpu_take(&gpu, 5);
	assert_true(look(INTERVAL_NS));
}

/* PUT is where it was: a whole ring, or several, went by between two looks. */
static void test_laps(void **state)
{
	static const uint32_t kinds[] = { FAKE_GPU_KERNEL, FAKE_GPU_UNKNOWN };

	(void)state;
	fake_gpu_many(&gpu, 0, 7);
	assert_int_equal(looks_until_idle(), 1);
	for (uint32_t i = 0; i < 4u; i++) {
		uint32_t kind = kinds[i / 2u], laps = 1u + i % 2u * 2u;

		fake_gpu_many(&gpu, 0, laps * FAKE_GPU_ENTRIES - 1u);
		fake_gpu_submit(&gpu, 0, kind);
		assert_true(look(LATE_NS));
		assert_true(look(INTERVAL_NS));
		assert_true(look(INTERVAL_NS));
		assert_true(look(INTERVAL_NS));
		assert_true(look(INTERVAL_NS));
		fake_gpu_take(&gpu, 0);
		fake_gpu_finish(&gpu, 0, gpu.put[0] - 1u);
		assert_in_range(looks_until_idle(), 1, LOOKS_MAX);
		if (kind == FAKE_GPU_KERNEL)
			assert_int_equal(slot->written, gpu.put[0]);
	}
	/* One and a half: the older half may be what runs. */
	fake_gpu_many(&gpu, 0, 600);
	assert_in_range(looks_until_idle(), 1, LOOKS_MAX);
	fake_gpu_many(&gpu, 0, 900);
	fake_gpu_submit(&gpu, 0, FAKE_GPU_KERNEL);
	fake_gpu_take(&gpu, 0);
	fake_gpu_many(&gpu, 0, 200);
	for (uint32_t i = 0; i < 8u; i++)
		assert_true(look(i ? INTERVAL_NS : LATE_NS));
	fake_gpu_finish(&gpu, 0, gpu.put[0] - 201u);
	assert_in_range(looks_until_idle(), 1, LOOKS_MAX);
}

/* The test's own book: kernels that were put and have not run. */
#define RUN_MAX 128u
static struct {
	uint32_t first, count; /* unfinished ones of a channel: the oldest end first */
} book[FAKE_GPU_CHANNELS];

static void random_step(struct gp_rng *rng)
{
	uint32_t i = (uint32_t)gp_rng_below(rng, FAKE_GPU_CHANNELS), n;

	switch (gp_rng_below(rng, 4)) {
	case 0:
		if (book[i].count)
			break;
		/* Often so that PUT comes back to where it was, with work left. */
		n = gp_rng_below(rng, 2) ? FAKE_GPU_ENTRIES - 2u : (uint32_t)gp_rng_below(rng, 3000);
		fake_gpu_many(&gpu, i, n);
		book[i].first = gpu.put[i];
		for (; book[i].count < 2u; book[i].count++)
			fake_gpu_submit(&gpu, i, FAKE_GPU_KERNEL);
		break;
	case 1:
		for (n = (uint32_t)gp_rng_below(rng, 40); n && book[i].count < RUN_MAX; n--, book[i].count++)
			fake_gpu_submit(&gpu, i, FAKE_GPU_KERNEL);
		break;
	case 2: fake_gpu_take(&gpu, i); break;
	default:
		for (n = (uint32_t)gp_rng_below(rng, 80); n && book[i].count && book[i].first < gpu.taken[i]; n--) {
			fake_gpu_finish(&gpu, i, book[i].first++);
			book[i].count--;
		}
	}
}

static bool book_is_busy(void)
{
	bool busy = false;

	for (uint32_t i = 0; i < FAKE_GPU_CHANNELS; i++)
		busy |= book[i].count != 0;
	return busy;
}

static void test_random(void **state)
{
	struct gp_rng rng;

	(void)state;
	memset(book, 0, sizeof(book));
	gp_rng_init(&rng, 20261115);
	for (uint32_t round = 0; round < 20000u; round++) {
		for (uint64_t n = gp_rng_below(&rng, 4); n; n--)
			random_step(&rng);
		if (round % 50u == 49u)
			for (uint32_t i = 0; i < FAKE_GPU_CHANNELS; i++) {
				fake_gpu_take(&gpu, i);
				for (; book[i].count; book[i].count--)
					fake_gpu_finish(&gpu, i, book[i].first++);
			}
		if (book_is_busy())
			assert_true(look(gp_rng_below(&rng, 2) ? LATE_NS : 600000u));
		else if (round % 50u == 49u)
			assert_in_range(looks_until_idle(), 1, LOOKS_MAX);
	}
}

#define MS 1000000ull

static bool looks_started(uint64_t after_ns)
{
	now_ns += after_ns;
	gp_nvidia_sample(&slot, 1);
	assert_true(slot->blind == slot->starting);
	return !slot->starting;
}

static void begin(void)
{
	slot->starting = slot->blind = true;
	gp_nvidia_group_of(slot)->begun_ns = gp_nvidia.called_ns = now_ns;
}

/* A context has started when a kernel has run, it has nothing left and its program has been quiet; one that is never
 * idle a second after that kernel, one that never calls ends as well; one without a kernel after ten. */
static void test_start(void **state)
{
	(void)state;
	begin();
	fake_gpu_submit(&gpu, 0, FAKE_GPU_COMMANDS);
	fake_gpu_take(&gpu, 0);
	assert_false(looks_started(5000 * MS));
	fake_gpu_submit(&gpu, 0, FAKE_GPU_KERNEL);
	fake_gpu_take(&gpu, 0);
	assert_false(looks_started(1000 * MS));
	fake_gpu_submit(&gpu, 1, FAKE_GPU_KERNEL);
	fake_gpu_finish(&gpu, 0, 1);
	assert_false(looks_started(10 * MS)); /* it has run; another has not */
	assert_false(looks_started(100 * MS));
	fake_gpu_take(&gpu, 1);
	fake_gpu_finish(&gpu, 1, 0);
	gp_nvidia.called_ns = now_ns;
	assert_false(looks_started(40 * MS)); /* idle, and its program sets something up */
	assert_true(looks_started(10 * MS));
	/* It stays so. */
	fake_gpu_submit(&gpu, 0, FAKE_GPU_KERNEL);
	gp_nvidia.called_ns = now_ns;
	assert_true(looks_started(1 * MS));
}

static void test_start_without_end(void **state)
{
	(void)state;
	begin();
	fake_gpu_many(&gpu, 0, 1);
	fake_gpu_submit(&gpu, 0, FAKE_GPU_KERNEL);
	assert_false(looks_started(10 * MS));
	for (uint32_t i = 0; i < 9u; i++) {
		gp_nvidia.called_ns = now_ns;
		assert_false(looks_started(100 * MS));
	}
	assert_true(looks_started(100 * MS));
}

static void test_start_without_kernel(void **state)
{
	(void)state;
	begin();
	assert_false(looks_started(9999 * MS));
	assert_true(looks_started(1 * MS));
}

/* One that loads a large model calls the driver for longer than that before its first kernel; but a minute is the end.
 */
static void test_start_that_takes_long(void **state)
{
	(void)state;
	begin();
	for (uint32_t i = 0; i < 3u; i++) {
		assert_false(looks_started(9000 * MS));
		gp_nvidia.called_ns = now_ns;
	}
	assert_false(looks_started(9999 * MS));
	assert_true(looks_started(1 * MS));
	begin();
	for (uint32_t i = 0; i < 59u; i++) {
		assert_false(looks_started(1000 * MS));
		gp_nvidia.called_ns = now_ns;
	}
	assert_true(looks_started(1000 * MS));
}

/* What has work, is open and does not get on is helped after half a second, and later each time; progress ends that. */
static void test_still(void **state)
{
	uint64_t first_ns;

	(void)state;
	fake_gpu_submit(&gpu, 0, FAKE_GPU_KERNEL);
	assert_true(look(INTERVAL_NS));
	first_ns = now_ns;
	assert_int_equal(slot->help_ns, first_ns + 500 * MS);
	assert_true(look(100 * MS));
	assert_int_equal(slot->help_ns, first_ns + 500 * MS);
	now_ns = first_ns + 499 * MS;
	gp_nvidia_help();
	assert_int_equal(slot->help_ns, first_ns + 500 * MS);
	now_ns = first_ns + 500 * MS;
	gp_nvidia_help();
	assert_int_equal(slot->help_ns, first_ns + 1500 * MS);
	for (uint32_t i = 0; i < 20u; i++) {
		now_ns = slot->help_ns;
		gp_nvidia_help();
	}
	assert_int_equal(slot->help_ns, now_ns + 64000 * MS);
	fake_gpu_take(&gpu, 0);
	fake_gpu_finish(&gpu, 0, 0);
	assert_false(look(INTERVAL_NS));
	assert_int_equal(slot->help_ns, 0);
	fake_gpu_submit(&gpu, 0, FAKE_GPU_KERNEL);
	slot->closed = true;
	assert_true(look(INTERVAL_NS));
	assert_int_equal(slot->help_ns, 0);
	slot->closed = false;
	assert_true(look(INTERVAL_NS));
	assert_int_equal(slot->help_ns, now_ns + 500 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bursts, start, end),
		cmocka_unit_test_setup_teardown(test_unused, start, end),
		cmocka_unit_test_setup_teardown(test_unused_beside_held, start, end),
		cmocka_unit_test_setup_teardown(test_laps, start, end),
		cmocka_unit_test_setup_teardown(test_random, start, end),
		cmocka_unit_test_setup_teardown(test_start, start, end),
		cmocka_unit_test_setup_teardown(test_start_without_end, start, end),
		cmocka_unit_test_setup_teardown(test_start_without_kernel, start, end),
		cmocka_unit_test_setup_teardown(test_start_that_takes_long, start, end),
		cmocka_unit_test_setup_teardown(test_still, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
