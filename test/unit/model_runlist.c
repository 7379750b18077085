/* SPDX-License-Identifier: MIT */
/* The runlist: what halts whom, when a device is oversubscribed, how slices take turns; faults and reset. */
#include "test/unit/model_fixture.h"

static const char *const bare[] = { "packet=1us", "doorbell=300ns", "signal=1us", "pipe_switch=0us", NULL };

/* Processes with so many queues each; returns whether the device says it is oversubscribed. */
static bool oversubscribed(const char *device, uint32_t processes, uint32_t queues_each)
{
	struct fixture f;
	bool is;

	fixture_open(&f, device, 0, NULL);
	for (uint32_t i = 0; i < processes; i++) {
		uint32_t process = fixture_process(&f);

		for (uint32_t j = 0; j < queues_each; j++)
			(void)fixture_queue(&f, process, 0);
	}
	fixture_run(&f, 100 * MS);
	is = fixture_count(&f, GP_GPU_EVENT_OVERSUBSCRIBED, UINT32_MAX) == 1;
	fixture_close(&f);
	return is;
}

/* 24 queues and 13 processes fit; the 25th queue, the 14th process do not. A CPX partition has 6 VMIDs. */
static void test_onset(void **state)
{
	(void)state;
	assert_false(oversubscribed("mi300x", 1, 24));
	assert_true(oversubscribed("mi300x", 1, 25));
	assert_false(oversubscribed("mi300x", 6, 4));
	assert_true(oversubscribed("mi300x", 7, 4));
	assert_true(oversubscribed("mi300x", 5, 5));
	assert_false(oversubscribed("mi300x", 13, 1));
	assert_true(oversubscribed("mi300x", 14, 1));
	assert_false(oversubscribed("mi300x-cpx", 6, 1));
	assert_true(oversubscribed("mi300x-cpx", 7, 1));
}

/* Closed queues free slots, but a process with only closed queues still counts against the VMIDs. */
static void test_closed_queues_count_as_processes(void **state)
{
	uint32_t queues[25], process;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 0, NULL);
	process = fixture_process(&f);
	for (uint32_t i = 0; i < 25; i++)
		queues[i] = fixture_queue(&f, process, 0);
	fixture_run(&f, MS);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_OVERSUBSCRIBED, UINT32_MAX, 0)->value, 1);
	fixture_gate(&f, queues[3], false, 1, MS);
	fixture_run(&f, 2 * MS);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_OVERSUBSCRIBED, UINT32_MAX, 1)->value, 0);
	assert_false(fixture_counters(&f, queues[3]).mapped);
	fixture_close(&f);

	fixture_open(&f, "mi300x", 0, NULL);
	for (uint32_t i = 0; i < 14; i++)
		queues[i] = fixture_queue(&f, fixture_process(&f), 0);
	fixture_run(&f, MS);
	fixture_gate(&f, queues[0], false, 1, MS);
	fixture_run(&f, 2 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_OVERSUBSCRIBED, UINT32_MAX), 1);
	/* Its going halts nobody, so the runlist learns of it with the next transaction. */
	assert_int_equal(gp_gpu_queue_remove(f.gpu, queues[0], 2 * MS), 0);
	assert_int_equal(gp_gpu_next_ns(f.gpu), GP_GPU_NEVER_NS);
	fixture_run(&f, 3 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_OVERSUBSCRIBED, UINT32_MAX), 1);
	assert_int_equal(gp_gpu_queue_remove(f.gpu, queues[1], 3 * MS), 0);
	fixture_run(&f, 4 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_OVERSUBSCRIBED, UINT32_MAX), 2);
	fixture_close(&f);
}

static void run_eight(struct fixture *f, const char *packing, uint32_t ret_queues[8])
{
	const char *const overrides[] = {
		"packet=1us", "doorbell=300ns", "signal=1us", "pipe_switch=0us", packing, NULL
	};
	struct gp_gpu_packet kernel = fixture_kernel(10000000, 100 * US);

	fixture_open(f, "mi300x", 150 * US, overrides);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t process = fixture_process(f);

		ret_queues[i] = fixture_queue(f, process, 0);
		for (uint32_t j = 1; j < 4; j++)
			(void)fixture_queue(f, process, 0);
	}
	fixture_run(f, MS);
	for (uint32_t i = 0; i < 8; i++)
		fixture_submit(f, ret_queues[i], &kernel, MS);
	fixture_run(f, 2 * S);
}

/* Eight processes of four queues, all busy. One process per slice: 10 ms each, 2 ms and the bytes lost at each change,
 * so each gets an eighth of 10/12. */
static void test_slices(void **state)
{
	uint32_t queues[8];
	uint64_t sum = 0;
	struct fixture f;

	(void)state;
	run_eight(&f, "slice_packing=process", queues);
	for (uint32_t i = 0; i < 8; i++) {
		struct gp_gpu_counters counters = fixture_counters(&f, queues[i]);

		assert_in_range(counters.unit_ns, 195 * MS, 215 * MS);
		sum += counters.unit_ns;
	}
	assert_in_range(sum, 2 * S * 10 / 12 - 20 * MS, 2 * S * 10 / 12 + 10 * MS);
	fixture_close(&f);
}

/* Packed by slots six processes share a slice and the other two the next: those two get as much as the six. */
static void test_slices_by_slots(void **state)
{
	uint64_t two = 0, six = 0;
	uint32_t queues[8];
	struct fixture f;

	(void)state;
	run_eight(&f, "slice_packing=slots", queues);
	for (uint32_t i = 0; i < 2; i++)
		two += fixture_counters(&f, queues[i]).unit_ns;
	for (uint32_t i = 2; i < 8; i++)
		six += fixture_counters(&f, queues[i]).unit_ns;
	assert_in_range(two * 100, six * 97, six * 103);
	assert_true(six);
	fixture_close(&f);
}

/* Slices turn whether or not their processes have work: one busy process of eight gets an eighth of the turns. */
static void test_slices_are_blind(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(10000000, 100 * US);
	uint32_t queue = 0;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	for (uint32_t i = 0; i < 32; i++)
		queue = fixture_queue(&f, i % 4 ? i / 4 : fixture_process(&f), 0);
	fixture_run(&f, MS);
	/* With nothing to do nothing happens by itself, though the device is oversubscribed. */
	assert_int_equal(gp_gpu_next_ns(f.gpu), GP_GPU_NEVER_NS);
	fixture_run(&f, 500 * MS);
	fixture_submit(&f, queue, &kernel, 500 * MS);
	fixture_run(&f, 2500 * MS);
	assert_in_range(fixture_counters(&f, queue).unit_ns, 195 * MS, 222 * MS);
	fixture_close(&f);
}

/* They do so, too, while gates of idle queues change more often than a slice lasts: a queue that is open for less than
 * a slice, and then closed for as long, gets there. */
static void test_slices_pass_idle_gates(void **state)
{
	static const char *const devices[] = { "mi300x", "mes" };
	struct gp_gpu_packet kernel = fixture_kernel(10000000, 100 * US);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t queue = 0, idle = 0, seq = 0;
		struct fixture f;

		fixture_open(&f, devices[i], 500 * US, bare);
		for (uint32_t k = 0; k < 32; k++) {
			idle = queue;
			queue = fixture_queue(&f, k % 4 ? k / 4 : fixture_process(&f), 0);
		}
		fixture_gate(&f, queue, false, ++seq, 0);
		fixture_run(&f, 8 * MS);
		fixture_submit(&f, queue, &kernel, 8 * MS);
		for (uint64_t now_ns = 16 * MS; now_ns < 2 * S; now_ns += 16 * MS) {
			fixture_run(&f, now_ns);
			fixture_gate(&f, idle, false, ++seq, now_ns);
			fixture_gate(&f, queue, true, ++seq, now_ns);
			fixture_run(&f, now_ns + 8 * MS);
			fixture_gate(&f, queue, false, ++seq, now_ns + 8 * MS);
			fixture_gate(&f, idle, true, ++seq, now_ns + 8 * MS);
		}
		/* An eighth of the 7 ms in 16 that it is open, less what changes of slices cost. */
		assert_in_range(fixture_counters(&f, queue).unit_ns, 60 * MS, 120 * MS);
		fixture_close(&f);
	}
}

/* Nor do slices start over when there was one for all in between. Fourteen processes share one or two slices while 24
 * queues are open; with the 25th each that has open queues gets one of its own. That queue is open for one change of
 * slices at a time, and its process comes late in the list. */
static void test_slices_keep_the_turn(void **state)
{
	static const char *const devices[] = { "mi300x", "mes" };
	static const uint32_t owners[] = { 8, 14 }; /* processes with open queues */
	struct gp_gpu_packet kernel = fixture_kernel(10000000, 100 * US);

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t processes[14], queue, count = owners[i / 2], seq = 0;
		struct fixture f;

		fixture_open(&f, devices[i % 2], 500 * US, bare);
		for (uint32_t k = 0; k < 14; k++)
			processes[k] = fixture_process(&f);
		queue = fixture_queue(&f, processes[2], 0);
		fixture_gate(&f, queue, false, ++seq, 0);
		for (uint32_t k = 0; k < 24; k++)
			(void)fixture_queue(&f, processes[k % count], 0);
		for (uint32_t k = count; k < 14; k++)
			fixture_gate(&f, fixture_queue(&f, processes[k], 0), false, ++seq, 0);
		fixture_run(&f, 16 * MS);
		fixture_submit(&f, queue, &kernel, 16 * MS);
		for (uint64_t now_ns = 24 * MS; now_ns < 4 * S; now_ns += 24 * MS) {
			fixture_run(&f, now_ns);
			fixture_gate(&f, queue, true, ++seq, now_ns);
			fixture_run(&f, now_ns + 12 * MS);
			fixture_gate(&f, queue, false, ++seq, now_ns + 12 * MS);
		}
		/* Its part of 10 ms in each of 165 times, less what the gate costs. */
		assert_in_range(fixture_counters(&f, queue).unit_ns, 1400 * MS / count, 1800 * MS / count);
		fixture_close(&f);
	}
}

/* One VMID too many: thirteen processes run, then the fourteenth, whatever the packing of queues. */
static void test_too_many_processes(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(10000000, 100 * US);
	uint32_t queues[14];
	uint64_t most = 0, least = UINT64_MAX;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	for (uint32_t i = 0; i < 14; i++)
		queues[i] = fixture_queue(&f, fixture_process(&f), 0);
	fixture_run(&f, MS);
	for (uint32_t i = 0; i < 14; i++)
		fixture_submit(&f, queues[i], &kernel, MS);
	fixture_run(&f, S);
	for (uint32_t i = 0; i < 14; i++) {
		uint64_t unit_ns = fixture_counters(&f, queues[i]).unit_ns;

		most = unit_ns > most ? unit_ns : most;
		least = unit_ns < least ? unit_ns : least;
	}
	/* The lonely one has half of all turns. */
	assert_in_range(most, 380 * MS, 430 * MS);
	assert_in_range(least, 20 * MS, 45 * MS);
	fixture_close(&f);
}

/* Everybody stands still while a gate changes, and goes on exactly where it was; on mes only the queue named does. */
static void test_who_is_halted(void **state)
{
	static const char *const devices[] = { "mi300x", "mes" };
	struct gp_gpu_packet kernel = fixture_kernel(152, 10 * MS);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t halted_ns = i ? 0 : 150 * US;
		uint32_t victim, bystander;
		struct fixture f;

		fixture_open(&f, devices[i], 150 * US, bare);
		victim = fixture_queue(&f, fixture_process(&f), 0);
		bystander = fixture_queue(&f, fixture_process(&f), 0);
		fixture_run(&f, MS);
		fixture_submit(&f, victim, &kernel, MS);
		fixture_submit(&f, bystander, &kernel, MS);
		fixture_gate(&f, victim, false, 7, 2 * MS);
		fixture_run(&f, 100 * MS);
		assert_int_equal(fixture_find(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 0)->value, 7);
		assert_int_equal(fixture_time(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 0), 2 * MS + 150 * US);
		assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, bystander, 0), 11 * MS + 1300 + US + halted_ns);
		assert_int_equal(fixture_count(&f, GP_GPU_EVENT_END, victim), 0);
		assert_int_equal(fixture_counters(&f, bystander).busy_ns, 10 * MS);
		fixture_gate(&f, victim, true, 8, 100 * MS);
		fixture_run(&f, 200 * MS);
		assert_int_equal(fixture_time(&f, GP_GPU_EVENT_END, victim, 0),
				 100 * MS + 150 * US + (10 * MS - (MS - 1300)) + US);
		fixture_close(&f);
	}
}

/* Transactions come one after the other, in order, each at its full cost. */
static void test_transactions_in_order(void **state)
{
	struct gp_gpu_change both[2];
	uint32_t queues[2];
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	for (uint32_t i = 0; i < 2; i++) {
		queues[i] = fixture_queue(&f, fixture_process(&f), 0);
		both[i] = (struct gp_gpu_change){ .queue = queues[i], .open = i != 0 };
	}
	fixture_run(&f, MS);
	fixture_gate(&f, queues[0], false, 1, MS);
	fixture_gate(&f, queues[0], true, 2, MS);
	assert_int_equal(gp_gpu_transact(f.gpu, both, 2, 3, MS), 0);
	fixture_run(&f, 2 * MS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(fixture_find(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, i)->value, i + 1);
		assert_int_equal(fixture_time(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, i), MS + (i + 1) * 150 * US);
	}
	assert_false(fixture_counters(&f, queues[0]).open);
	assert_true(fixture_counters(&f, queues[1]).open);
	assert_int_equal(gp_gpu_transact(f.gpu, both, 0, 4, 2 * MS), -EINVAL);
	both[1].queue = 99;
	assert_int_equal(gp_gpu_transact(f.gpu, both, 2, 4, 2 * MS), -ENOENT);
	fixture_close(&f);
}

/* A close that fails says -EIO and the queue runs on; one that hangs is never heard of, and others still work. */
static void test_faults(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(304 * 100, 100 * US);
	uint32_t queue, other;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	queue = fixture_queue(&f, fixture_process(&f), 0);
	other = fixture_queue(&f, fixture_process(&f), 0);
	fixture_submit(&f, queue, &kernel, MS);
	assert_int_equal(gp_gpu_set_fault(f.gpu, queue, GP_GPU_FAULT_CLOSE_FAILS), 0);
	fixture_gate(&f, queue, false, 1, 2 * MS);
	fixture_run(&f, 3 * MS);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 0)->error, -EIO);
	assert_true(fixture_counters(&f, queue).open);
	assert_int_equal(gp_gpu_set_fault(f.gpu, queue, GP_GPU_FAULT_CLOSE_HANGS), 0);
	fixture_gate(&f, queue, false, 2, 3 * MS);
	fixture_gate(&f, other, false, 3, 3 * MS);
	fixture_run(&f, 100 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX), 2);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 1)->value, 3);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_END, queue, 0)->value, 304 * 100);
	assert_int_equal(fixture_counters(&f, queue).unit_ns, 10 * MS);
	assert_int_equal(gp_gpu_set_fault(f.gpu, 99, GP_GPU_FAULT_NONE), -ENOENT);
	fixture_close(&f);
}

/* Where the firmware's silence is the driver's: the device and every transaction behind stand still until a reset. */
static void test_hang_halts(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(304 * 100, 100 * US);
	uint32_t queue, other, process;
	struct fixture f;

	(void)state;
	fixture_open_config(&f, "mi300x", (struct gp_gpu_config){ .gate_cost_ns = 150 * US, .hang_halts = true }, bare);
	queue = fixture_queue(&f, fixture_process(&f), 0);
	process = fixture_process(&f);
	other = fixture_queue(&f, process, 0);
	fixture_submit(&f, other, &kernel, MS);
	assert_int_equal(gp_gpu_set_fault(f.gpu, queue, GP_GPU_FAULT_CLOSE_HANGS), 0);
	fixture_gate(&f, queue, false, 1, 2 * MS);
	fixture_gate(&f, other, false, 2, 2 * MS);
	fixture_run(&f, 100 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX), 0);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_END, other), 0);
	assert_int_equal(gp_gpu_next_ns(f.gpu), GP_GPU_NEVER_NS);
	assert_int_equal(gp_gpu_reset(f.gpu, 100 * MS), 0);
	other = fixture_queue(&f, process, 100 * MS);
	fixture_submit(&f, other, &kernel, 101 * MS);
	fixture_run(&f, 200 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_END, other), 1);
	fixture_close(&f);
}

/* Without context save a close waits for the workgroups that run, nobody starts others meanwhile, and nothing is set
 * aside; the rest comes when the gate opens. One that never ends is never closed, until a reset. */
static void test_drain(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(304 * 3, 10 * MS), forever = fixture_kernel(1, MS);
	struct gp_gpu_config config = { .gate_cost_ns = 150 * US, .drains = true };
	uint32_t queue, other;
	struct fixture f;

	(void)state;
	fixture_open_config(&f, "mi300x", config, bare);
	queue = fixture_queue(&f, fixture_process(&f), 0);
	other = fixture_queue(&f, fixture_process(&f), 0);
	fixture_run(&f, MS);
	fixture_submit(&f, queue, &kernel, MS);
	fixture_gate(&f, queue, false, 1, 5 * MS);
	fixture_submit(&f, other, &kernel, 5 * MS);
	fixture_run(&f, 12 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 0), 11 * MS + 1300 + 150 * US);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_STOP, queue), 0);
	assert_int_equal(fixture_counters(&f, queue).workgroups_run, 304);
	fixture_run(&f, 100 * MS);
	assert_int_equal(fixture_counters(&f, queue).workgroups_run, 304);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_END, other, 0)->value, 304 * 3);
	fixture_gate(&f, queue, true, 2, 100 * MS);
	fixture_run(&f, 200 * MS);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_END, queue, 0)->value, 304 * 3);
	assert_int_equal(gp_gpu_signal_add(f.gpu, 1, &forever.kernel.spin_signal), 0);
	fixture_submit(&f, queue, &forever, 200 * MS);
	fixture_gate(&f, other, false, 3, 210 * MS);
	fixture_run(&f, S);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX), 2);
	assert_int_equal(gp_gpu_reset(f.gpu, S), 0);
	fixture_close(&f);
}

/* Oversubscribed, each slice ends when what runs in it has ended: all get through, each workgroup once. */
static void test_drain_slices(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(304 * 4, 7 * MS);
	uint32_t queues[30];
	struct fixture f;

	(void)state;
	fixture_open_config(&f, "mi300x", (struct gp_gpu_config){ .gate_cost_ns = 150 * US, .drains = true }, bare);
	for (uint32_t i = 0; i < 30; i++)
		queues[i] = fixture_queue(&f, fixture_process(&f), 0);
	fixture_run(&f, MS);
	for (uint32_t i = 0; i < 30; i++)
		fixture_submit(&f, queues[i], &kernel, MS);
	fixture_gate(&f, queues[3], false, 1, 30 * MS);
	fixture_run(&f, 20 * S);
	for (uint32_t i = 0; i < 30; i++) {
		assert_int_equal(fixture_count(&f, GP_GPU_EVENT_STOP, queues[i]), 0);
		assert_int_equal(fixture_count(&f, GP_GPU_EVENT_END, queues[i]), i != 3);
	}
	fixture_close(&f);
}

/* A mark is heard of when what was asked before it is through, and separates the halts of queues that come. */
static void test_marks(void **state)
{
	struct gp_gpu_queue_attr closed = { .kind = GP_GPU_COMPUTE, .closed = true };
	uint32_t process, queue;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	process = fixture_process(&f);
	(void)fixture_queue(&f, process, MS);
	assert_int_equal(gp_gpu_mark(f.gpu, 1, MS), 0);
	(void)fixture_queue(&f, process, MS);
	assert_int_equal(gp_gpu_mark(f.gpu, 2, MS), 0);
	fixture_run(&f, 2 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 0), MS + 150 * US);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 1), MS + 300 * US);
	assert_int_equal(fixture_find(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 1)->value, 2);
	/* A queue that begins closed halts nobody, and is not on the runlist. */
	assert_int_equal(gp_gpu_queue_add(f.gpu, process, &closed, 2 * MS, &queue), 0);
	assert_int_equal(gp_gpu_mark(f.gpu, 3, 2 * MS), 0);
	fixture_run(&f, 3 * MS);
	assert_int_equal(fixture_time(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX, 2), 2 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_HALT, UINT32_MAX), 2);
	assert_false(fixture_counters(&f, queue).open);
	fixture_gate(&f, queue, true, 4, 3 * MS);
	fixture_run(&f, 4 * MS);
	assert_true(fixture_counters(&f, queue).mapped);
	assert_int_equal(fixture_counters(&f, queue).pipe, 0);
	fixture_close(&f);
}

/* A mask of half the CUs, given to a busy queue, holds from the transaction on: half the work took half a second less
 * than the rest will. On mes too. */
static void test_set_busy(void **state)
{
	static const char *const devices[] = { "mi300x", "mes" };
	struct gp_gpu_packet kernel = fixture_kernel(304 * 10, 10 * MS);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct gp_gpu_change change = { .open = true, .set = true, .priority = 15, .cu_count = 152 };
		struct fixture f;

		fixture_open(&f, devices[i], 150 * US, bare);
		change.queue = fixture_queue(&f, fixture_process(&f), 0);
		fixture_run(&f, MS);
		fixture_submit(&f, change.queue, &kernel, MS);
		fixture_run(&f, 51 * MS);
		assert_int_equal(gp_gpu_transact(f.gpu, &change, 1, 1, 51 * MS), 0);
		fixture_run(&f, 300 * MS);
		assert_int_equal(fixture_count(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX), 1);
		assert_int_equal(fixture_find(&f, GP_GPU_EVENT_END, change.queue, 0)->value, 304 * 10);
		/* Nearly five rounds of 304, then ten and a few of 152. */
		assert_in_range(fixture_time(&f, GP_GPU_EVENT_END, change.queue, 0), 150 * MS, 165 * MS);
		change.priority = 16;
		assert_int_equal(gp_gpu_transact(f.gpu, &change, 1, 2, 300 * MS), -EINVAL);
		fixture_close(&f);
	}
}

/* A priority given to a busy queue takes the device from its equal when there is not room for both. */
static void test_set_priority(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(304 * 20, 10 * MS);
	struct gp_gpu_change change = { .open = true, .set = true, .priority = 15 };
	struct fixture f;
	uint32_t other;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	change.queue = fixture_queue(&f, fixture_process(&f), 0);
	other = fixture_queue(&f, fixture_process(&f), 0);
	fixture_run(&f, MS);
	fixture_submit(&f, other, &kernel, MS);
	fixture_submit(&f, change.queue, &kernel, MS);
	assert_int_equal(gp_gpu_transact(f.gpu, &change, 1, 1, 51 * MS), 0);
	fixture_run(&f, S);
	assert_true(fixture_time(&f, GP_GPU_EVENT_END, change.queue, 0) + 100 * MS <
		    fixture_time(&f, GP_GPU_EVENT_END, other, 0));
	fixture_close(&f);
}

/* After a reset, in the middle of anything, all queues are gone and the device works. */
static void test_reset(void **state)
{
	struct gp_gpu_packet kernel = fixture_kernel(304 * 100, 100 * US);
	uint32_t process, queue;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 150 * US, bare);
	process = fixture_process(&f);
	queue = fixture_queue(&f, process, 0);
	fixture_submit(&f, queue, &kernel, MS);
	fixture_gate(&f, queue, false, 1, 2 * MS);
	assert_int_equal(gp_gpu_reset(f.gpu, 2 * MS + 50 * US), 0);
	fixture_run(&f, 3 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_RESET, UINT32_MAX), 1);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_TRANSACTION, UINT32_MAX), 0);
	assert_int_equal(gp_gpu_submit(f.gpu, queue, &kernel, 3 * MS), -ENOENT);
	assert_int_equal(gp_gpu_next_ns(f.gpu), GP_GPU_NEVER_NS);
	queue = fixture_queue(&f, process, 3 * MS);
	fixture_submit(&f, queue, &kernel, 4 * MS);
	fixture_run(&f, 50 * MS);
	assert_int_equal(fixture_count(&f, GP_GPU_EVENT_END, queue), 1);
	assert_int_equal(gp_gpu_process_remove(f.gpu, process, 50 * MS), 0);
	fixture_run(&f, 60 * MS);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_onset),
		cmocka_unit_test(test_closed_queues_count_as_processes),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_slices_by_slots),
		cmocka_unit_test(test_slices_are_blind),
		cmocka_unit_test(test_slices_pass_idle_gates),
		cmocka_unit_test(test_slices_keep_the_turn),
		cmocka_unit_test(test_too_many_processes),
		cmocka_unit_test(test_who_is_halted),
		cmocka_unit_test(test_transactions_in_order),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_hang_halts),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_drain_slices),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_set_busy),
		cmocka_unit_test(test_set_priority),
		cmocka_unit_test(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
