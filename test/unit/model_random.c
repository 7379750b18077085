/* SPDX-License-Identifier: MIT */
/*
 * Random use of the GPU model from a seed, on each kind of scheduler: queues come and go, packets of all types, gates,
 * kills, faults, resets. After every call the model checks itself, and a simple book of our own checks what it reports:
 * each packet ends once, with all its workgroups; a closed queue does nothing; time never goes back. The same seed
 * gives the same events.
 */
#include "lib/rng.h"
#include "test/unit/model_fixture.h"

#define QUEUE_COUNT  40u
#define PACKET_COUNT 64u
#define STEP_COUNT   3000u

struct book_queue {
	uint32_t id, workgroups[PACKET_COUNT];
	bool used, is_copy, closed, changing, ended[PACKET_COUNT];
	uint32_t packet_count, end_count, process;
	uint64_t closed_run;
};

struct book {
	struct fixture f;
	struct gp_rng rng;
	uint64_t now_ns, seq, hash;
	bool jumps;
	uint32_t processes[8], process_count, signals[4];
	struct book_queue queues[QUEUE_COUNT];
	struct {
		struct gp_gpu_change change;
		bool used;
	} orders[64];
};

static struct book_queue *book_find(struct book *b, uint32_t id)
{
	for (uint32_t i = 0; i < QUEUE_COUNT; i++)
		if (b->queues[i].used && b->queues[i].id == id)
			return &b->queues[i];
	return NULL;
}

static uint32_t below(struct book *b, uint32_t bound)
{
	return (uint32_t)gp_rng_below(&b->rng, bound);
}

static void book_hash(struct book *b, uint64_t value)
{
	b->hash = (b->hash ^ value) * 0x100000001b3ull;
}

static void book_transaction(struct book *b, const struct gp_gpu_event *event)
{
	struct gp_gpu_change change = b->orders[event->value % 64].change;
	struct book_queue *q = book_find(b, change.queue);

	assert_true(b->orders[event->value % 64].used);
	b->orders[event->value % 64].used = false;
	if (!q)
		return;
	q->changing = false;
	if (event->error)
		return;
	q->closed = !change.open;
	assert_int_equal(fixture_counters(&b->f, q->id).open, change.open);
	if (q->closed)
		q->closed_run = fixture_counters(&b->f, q->id).workgroups_run;
}

static void book_event(struct book *b, const struct gp_gpu_event *event)
{
	struct book_queue *q = event->queue == UINT32_MAX ? NULL : book_find(b, event->queue);

	book_hash(b, event->time_ns);
	book_hash(b, event->type * 31u + event->queue);
	book_hash(b, event->value + event->packet * 7u + (uint64_t)event->pipe);
	if (event->type == GP_GPU_EVENT_TRANSACTION)
		book_transaction(b, event);
	if (!q)
		return;
	if (q->closed && !q->changing && event->type != GP_GPU_EVENT_KILLED)
		fail_msg("queue %u: event %d while closed", q->id, (int)event->type);
	if (event->type == GP_GPU_EVENT_END) {
		assert_true(event->packet < q->packet_count);
		assert_false(q->ended[event->packet]);
		assert_int_equal(event->value, q->workgroups[event->packet]);
		q->ended[event->packet] = true;
		q->end_count++;
	}
}

static void book_poll(struct book *b)
{
	const char *wrong = gp_gpu_check(b->f.gpu);
	struct gp_gpu_event event;

	if (wrong)
		fail_msg("at %llu: %s", (unsigned long long)b->now_ns, wrong);
	while (gp_gpu_poll(b->f.gpu, &event))
		book_event(b, &event);
	for (uint32_t i = 0; i < QUEUE_COUNT; i++)
		if (b->queues[i].used && b->queues[i].closed && !b->queues[i].changing)
			assert_int_equal(fixture_counters(&b->f, b->queues[i].id).workgroups_run,
					 b->queues[i].closed_run);
}

static void book_advance(struct book *b, uint64_t until_ns)
{
	while (!b->jumps && gp_gpu_next_ns(b->f.gpu) <= until_ns) {
		b->now_ns = gp_gpu_next_ns(b->f.gpu);
		gp_gpu_advance(b->f.gpu, b->now_ns);
		book_poll(b);
	}
	b->now_ns = until_ns;
	gp_gpu_advance(b->f.gpu, until_ns);
	book_poll(b);
}

static void step_add(struct book *b, struct book_queue *q)
{
	struct gp_gpu_queue_attr attr = { .kind = below(b, 6) ? GP_GPU_COMPUTE : GP_GPU_COPY,
					  .ring_size = PACKET_COUNT,
					  .priority = below(b, 4) ? 0 : below(b, 16),
					  .cu_count = below(b, 3) ? 0 : below(b, 100) };
	uint32_t id, process;

	if (q->used)
		return;
	if (b->process_count < 8)
		b->processes[b->process_count++] = fixture_process(&b->f);
	process = below(b, b->process_count);
	if (gp_gpu_queue_add(b->f.gpu, b->processes[process], &attr, b->now_ns, &id) < 0)
		return;
	*q = (struct book_queue){ .id = id, .used = true, .is_copy = attr.kind == GP_GPU_COPY, .process = process };
}

static void step_submit(struct book *b, struct book_queue *q)
{
	struct gp_gpu_packet packet = { .type = GP_GPU_KERNEL, .barrier = below(b, 2) != 0 };

	if (q->packet_count == PACKET_COUNT)
		return;
	packet.kernel = (struct gp_gpu_kernel){
		.workgroups = 1u + below(b, below(b, 4) ? 2000 : 20),
		.workgroup_ns = 1u + below(b, below(b, 2) ? 50000 : 3000000),
		.waves = 1u + below(b, 8),
		.vgprs = 1u + below(b, 128),
		.lds_size = below(b, 2) ? 0 : below(b, 30000),
	};
	if (!below(b, 20))
		packet.kernel.spin_signal = b->signals[below(b, 4)];
	packet.signal = below(b, 3) ? 0 : b->signals[below(b, 4)];
	if (q->is_copy) {
		packet.type = GP_GPU_COPY_BYTES;
		packet.copy_size = 1u + below(b, 100u << 20);
	}
	if (!below(b, 5)) {
		packet.type = below(b, 2) ? GP_GPU_BARRIER_AND : GP_GPU_BARRIER_OR;
		for (uint32_t i = 0; i < 3; i++)
			packet.deps[i] = below(b, 2) ? b->signals[below(b, 4)] : 0;
	}
	if (gp_gpu_submit(b->f.gpu, q->id, &packet, b->now_ns) < 0)
		return;
	q->workgroups[q->packet_count++] = packet.type == GP_GPU_KERNEL ? packet.kernel.workgroups : 0;
	if (below(b, 5))
		assert_int_equal(gp_gpu_doorbell(b->f.gpu, q->id, b->now_ns), 0);
}

static void step_gate(struct book *b, struct book_queue *q, bool open)
{
	if (q->changing || b->orders[b->seq % 64].used)
		return;
	q->changing = true;
	b->orders[b->seq % 64].used = true;
	b->orders[b->seq % 64].change = (struct gp_gpu_change){ .queue = q->id,
								.open = open,
								.set = !below(b, 4),
								.priority = below(b, 16),
								.cu_count = below(b, 300) };
	assert_int_equal(gp_gpu_transact(b->f.gpu, &b->orders[b->seq % 64].change, 1, b->seq, b->now_ns), 0);
	b->seq++;
}

static void step_rare(struct book *b, struct book_queue *q)
{
	uint32_t dice = below(b, 100);

	if (dice < 30) {
		assert_int_equal(gp_gpu_queue_remove(b->f.gpu, q->id, b->now_ns), 0);
		q->used = false;
	} else if (dice < 60) {
		(void)gp_gpu_kill(b->f.gpu, q->id, b->now_ns);
		if (q->closed && !q->changing)
			q->closed_run = fixture_counters(&b->f, q->id).workgroups_run;
	} else if (dice < 80) {
		assert_int_equal(gp_gpu_set_fault(b->f.gpu, q->id, GP_GPU_FAULT_CLOSE_FAILS), 0);
	} else if (dice < 85) {
		assert_int_equal(gp_gpu_process_remove(b->f.gpu, b->processes[q->process], b->now_ns), 0);
		for (uint32_t i = 0; i < QUEUE_COUNT; i++)
			if (&b->queues[i] != q && b->queues[i].process == q->process)
				b->queues[i].used = false;
		q->used = false;
		b->processes[q->process] = fixture_process(&b->f);
	} else if (dice < 87) {
		assert_int_equal(gp_gpu_reset(b->f.gpu, b->now_ns), 0);
		memset(b->queues, 0, sizeof(b->queues));
		memset(b->orders, 0, sizeof(b->orders));
	} else {
		(void)gp_gpu_announce(b->f.gpu, q->id, b->now_ns + below(b, 3000000), b->now_ns);
		(void)gp_gpu_set_timeslice(b->f.gpu, b->processes[q->process], below(b, 3000000), b->now_ns);
	}
}

static void book_step(struct book *b)
{
	struct book_queue *q = &b->queues[below(b, QUEUE_COUNT)];
	uint32_t dice = below(b, 100), signal = b->signals[below(b, 4)];

	if (!q->used)
		step_add(b, q);
	else if (dice < 60)
		step_submit(b, q);
	else if (dice < 85)
		step_gate(b, q, dice % 3 != 0);
	else if (dice < 88)
		step_rare(b, q);
	else
		assert_int_equal(gp_gpu_signal_set(b->f.gpu, signal, (int64_t)below(b, 4) - 1, b->now_ns), 0);
	book_poll(b);
	if (below(b, 3))
		book_advance(b, b->now_ns + below(b, below(b, 10) ? 200000 : 20000000));
}

static bool book_is_drained(const struct book *b)
{
	for (uint32_t i = 0; i < QUEUE_COUNT; i++)
		if (b->queues[i].used && b->queues[i].end_count != b->queues[i].packet_count)
			return false;
	return true;
}

/* Everything opens, all signals come: every packet must end. */
static void book_drain(struct book *b)
{
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(gp_gpu_signal_set(b->f.gpu, b->signals[i], -1000000, b->now_ns), 0);
	book_advance(b, b->now_ns + 200 * MS);
	for (uint32_t i = 0; i < QUEUE_COUNT; i++)
		if (b->queues[i].used) {
			step_gate(b, &b->queues[i], true);
			book_advance(b, b->now_ns + 20 * MS);
			assert_int_equal(gp_gpu_doorbell(b->f.gpu, b->queues[i].id, b->now_ns), 0);
		}
	for (uint32_t i = 0; i < 300 && !book_is_drained(b); i++)
		book_advance(b, b->now_ns + S);
	assert_true(book_is_drained(b));
}

static uint64_t play(const char *device, uint64_t seed, uint64_t gate_cost_ns, bool jumps)
{
	static const char *const quick[] = { "slice_loss=200us", "process_quantum=2ms", NULL };
	struct book *b = calloc(1, sizeof(*b));
	uint64_t hash;

	assert_non_null(b);
	/* Every other one without context save. */
	fixture_open_config(&b->f, device,
			    (struct gp_gpu_config){ .gate_cost_ns = gate_cost_ns, .drains = seed % 2u == 0 },
			    strcmp(device, "h200") ? quick : NULL);
	gp_rng_init(&b->rng, seed);
	b->jumps = jumps;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(gp_gpu_signal_add(b->f.gpu, 1, &b->signals[i]), 0);
	for (uint32_t i = 0; i < STEP_COUNT; i++)
		book_step(b);
	book_drain(b);
	hash = b->hash;
	fixture_close(&b->f);
	free(b);
	return hash;
}

/* Six seeds on each scheduler, with gates that cost nothing but the bytes, a little, and a lot. */
static void test_random(void **state)
{
	static const char *const devices[] = { "mi300x", "mi300x-cpx", "mes", "h200" };
	static const uint64_t costs[] = { 0, 1, 150 * US };

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		for (uint64_t seed = 1; seed <= 6; seed++)
			(void)play(devices[i], seed, costs[seed % 3], false);
}

/* Same calls, same events, whether time advances event by event or in leaps. */
static void test_same_seed_same_events(void **state)
{
	static const char *const devices[] = { "mi300x", "mes", "h200" };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t hash = play(devices[i], 77, 0, false);

		assert_int_equal(play(devices[i], 77, 0, false), hash);
		assert_int_equal(play(devices[i], 77, 0, true), hash);
		assert_int_not_equal(play(devices[i], 78, 0, false), hash);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random),
					    cmocka_unit_test(test_same_seed_same_events) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
