/* SPDX-License-Identifier: MIT */
/*
 * What the scheduler core costs: time per decision against the number of queues, time per sample that changes nothing,
 * memory per queue. Figures are printed, never judged; each is the least of several repetitions, and each table gives
 * ratios within this one run.
 */
#include <gpreempt/sched.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BENCH_REPETITIONS       7u
#define BENCH_CYCLES            2000u
#define BENCH_SAMPLES           2000000u
#define BENCH_QUEUES_PER_CLIENT 4u
#define BENCH_TURN_NS           2000000u /* at least four times a close and an open */

static uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void bench_must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "bench-core: %s failed: %d\n", what, result);
	exit(1);
}

/* One device on which every queue has work: all wait for their turn behind one urgent queue that comes and goes. */
struct bench {
	struct gp_sched *sched;
	void *memory;
	size_t memory_size;
	uint64_t now_ns; /* virtual: the core never sees the real clock */
	uint32_t queue_count;
	struct gp_queue_id *queues;
	uint64_t urgent_count; /* packets of queue 0 */
	uint64_t plan_count;
};

/* Carries out whatever is planned, at once. */
static void bench_plans(struct bench *bench)
{
	static struct gp_plan plan;
	uint32_t i;

	while (gp_sched_plan(bench->sched, bench->now_ns, &plan)) {
		bench->plan_count++;
		for (i = 0; i < plan.close_count; i++)
			bench_must(gp_sched_applied(bench->sched, plan.close[i].queue, plan.seq, 0, bench->now_ns),
				   "applied");
		for (i = 0; i < plan.open_count; i++)
			bench_must(gp_sched_applied(bench->sched, plan.open[i].queue, plan.seq, 0, bench->now_ns),
				   "applied");
	}
}

static void bench_add_queues(struct bench *bench, bool aged)
{
	struct gp_client_id client;
	uint32_t i;

	for (i = 0; i < bench->queue_count; i++) {
		const struct gp_queue_attr attr = { .priority = i ? GP_PRIORITY_LOW : GP_PRIORITY_HIGH };

		if (i <= 1 || i % BENCH_QUEUES_PER_CLIENT == 0)
			bench_must(gp_sched_client_add(bench->sched, &(struct gp_client_attr){ .tag = i }, &client),
				   "client_add");
		bench_must(gp_sched_queue_add(bench->sched, client, 0, &attr, bench->now_ns, &bench->queues[i]),
			   "queue_add");
		/* By edges: what nobody can see complete is not held against it. */
		if (i && aged)
			bench_must(gp_sched_edge(bench->sched, bench->queues[i], true, bench->now_ns), "edge");
		else if (i)
			bench_must(gp_sched_sample(bench->sched, bench->queues[i], 1000, 0, bench->now_ns), "sample");
	}
	bench_plans(bench);
}

/* turn_ns: of the batch clients; aged: they never get one, and are all due for an aged turn, each a user of its own. */
static struct bench bench_new(uint32_t queue_count, uint64_t turn_ns, bool aged)
{
	const struct gp_limits limits = {
		.device_count = 1,
		.client_count = queue_count + 2,
		.queue_count = queue_count,
		.gang_count = 1,
		.trace_count = 4096,
	};
	/* Else nobody grows old in the virtual minutes this takes; the budget does not interfere. */
	const struct gp_param param = { .overhead_permille = 1000,
					.age_window_ns = aged ? BENCH_TURN_NS : GP_DURATION_NS_MAX,
					.age_turn_ns = BENCH_TURN_NS,
					.age_permille = 1000,
					.turn_ns = turn_ns,
					.linger_max_ns = 1,
					.rest_ns = GP_DURATION_NS_MAX };
	const struct gp_device_attr attr = { .unit = GP_UNIT_PROCESS,
					     .queue_max = queue_count,
					     .close_ns = 150000,
					     .open_ns = 150000 };
	struct bench bench = { .memory_size = gp_sched_size(&limits), .now_ns = 1000, .queue_count = queue_count };
	uint32_t device;

	bench.memory = aligned_alloc(16, (bench.memory_size + 15) & ~(size_t)15);
	bench.queues = calloc(queue_count, sizeof(*bench.queues));
	if (!bench.memory || !bench.queues)
		bench_must(-ENOMEM, "allocation");
	bench_must(gp_sched_init(bench.memory, bench.memory_size, &limits, &bench.sched), "init");
	bench_must(gp_sched_device_add(bench.sched, &attr, "hpf", &param, &device), "device_add");
	bench_add_queues(&bench, aged);
	if (aged) {
		bench_must(gp_sched_edge(bench.sched, bench.queues[0], true, bench.now_ns), "edge");
		bench_plans(&bench);
	}
	bench.plan_count = 0;
	return bench;
}

static void bench_free(struct bench *bench)
{
	free(bench->memory);
	free(bench->queues);
}

/* Work comes, lower gates close, is acknowledged; work ends, they open, is acknowledged: two decisions. */
static void bench_preempt(struct bench *bench)
{
	bench->now_ns += 400000;
	bench->urgent_count++;
	bench_must(gp_sched_sample(bench->sched, bench->queues[0], bench->urgent_count, bench->urgent_count - 1,
				   bench->now_ns),
		   "sample");
	bench_plans(bench);
	bench->now_ns += 400000;
	bench_must(gp_sched_sample(bench->sched, bench->queues[0], bench->urgent_count, bench->urgent_count,
				   bench->now_ns),
		   "sample");
	bench_plans(bench);
}

/* Two turns end: each time one client of all that wait is next, and the other goes to the end of the line. */
static void bench_turns(struct bench *bench)
{
	bench->now_ns += BENCH_TURN_NS;
	bench_plans(bench);
	bench->now_ns += BENCH_TURN_NS;
	bench_plans(bench);
}

/* The least time of one decision: its cause, the plan and the acknowledgement. */
static double bench_decision_ns(struct bench *bench, void (*cycle)(struct bench *bench))
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t i, j;

	for (i = 0; i < BENCH_REPETITIONS; i++) {
		uint64_t plans = bench->plan_count, start_ns = bench_now_ns(), elapsed_ns;

		for (j = 0; j < BENCH_CYCLES; j++)
			cycle(bench);
		elapsed_ns = bench_now_ns() - start_ns;
		if (bench->plan_count - plans != 2ull * BENCH_CYCLES)
			bench_must(-EINVAL, "two plans per cycle");
		if (elapsed_ns < best_ns)
			best_ns = elapsed_ns;
	}
	return (double)best_ns / (2.0 * BENCH_CYCLES);
}

/* What any call through a pointer with these arguments costs: the baseline for samples. */
static int bench_nothing(struct gp_sched *sched, struct gp_queue_id queue, uint64_t written, uint64_t completed,
			 uint64_t now_ns)
{
	return sched && queue.generation && written >= completed && now_ns ? 0 : -EINVAL;
}

typedef int bench_sample_fn(struct gp_sched *sched, struct gp_queue_id queue, uint64_t written, uint64_t completed,
			    uint64_t now_ns);

/* The same sample again and again, round the first count queues, so that the memory they need is part of the cost. */
static double bench_sample_ns(const struct bench *bench, bench_sample_fn *volatile call, uint32_t count)
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t i, j, queue;

	for (i = 0; i < BENCH_REPETITIONS; i++) {
		uint64_t start_ns = bench_now_ns(), elapsed_ns;
		bench_sample_fn *sample = call;

		for (j = 0, queue = 1; j < BENCH_SAMPLES; j++) {
			bench_must(sample(bench->sched, bench->queues[queue], 1000, 0, bench->now_ns), "sample");
			queue = queue + 1 < count ? queue + 1 : 1;
		}
		elapsed_ns = bench_now_ns() - start_ns;
		if (elapsed_ns < best_ns)
			best_ns = elapsed_ns;
	}
	return (double)best_ns / BENCH_SAMPLES;
}

static double bench_bytes_per_queue(uint32_t queue_count)
{
	const struct gp_limits one = { .device_count = 1, .client_count = 1, .queue_count = 1, .trace_count = 1 };
	struct gp_limits many = one;

	many.queue_count = queue_count + 1;
	return (double)(gp_sched_size(&many) - gp_sched_size(&one)) / queue_count;
}

static uint32_t bench_log2(uint32_t value)
{
	uint32_t log = 0;

	while (value >>= 1)
		log++;
	return log;
}

/* One line of the table. first_ns: the figures of the first line, for ratios. */
static void bench_line(uint32_t queue_count, double baseline_ns, double first_ns[3])
{
	struct bench preempt = bench_new(queue_count, GP_DURATION_NS_MAX, false),
		     turns = bench_new(queue_count, BENCH_TURN_NS, false),
		     aged = bench_new(queue_count, GP_DURATION_NS_MAX, true);
	double preempt_ns = bench_decision_ns(&preempt, bench_preempt),
	       turn_ns = bench_decision_ns(&turns, bench_turns), aged_ns = bench_decision_ns(&aged, bench_turns);
	double sample_ns = bench_sample_ns(&preempt, gp_sched_sample, queue_count);

	if (first_ns[0] == 0) {
		first_ns[0] = preempt_ns;
		first_ns[1] = turn_ns;
		first_ns[2] = aged_ns;
	}
	printf("%8u  %10.1f  %6.2fx  %10.1f  %6.2fx  %10.1f  %6.2fx  %8.2fx  %9.2f  %6.1fx\n", queue_count, preempt_ns,
	       preempt_ns / first_ns[0], turn_ns, turn_ns / first_ns[1], aged_ns, aged_ns / first_ns[2],
	       bench_log2(queue_count) / 4.0, sample_ns, sample_ns / baseline_ns);
	bench_free(&aged);
	bench_free(&preempt);
	bench_free(&turns);
}

int main(void)
{
	static const uint32_t sizes[] = { 16, 256, 4096, 65536 };
	struct bench bench = bench_new(sizes[0], GP_DURATION_NS_MAX, false);
	double first_ns[3] = { 0 }, baseline_ns = bench_sample_ns(&bench, bench_nothing, sizes[0]);
	uint32_t i;

	bench_free(&bench);
	printf("The scheduler core: one device, every queue has work, %u queues per client; the least of %u repetitions.\n\n",
	       BENCH_QUEUES_PER_CLIENT, BENCH_REPETITIONS);
	printf("%8s  %10s  %7s  %10s  %7s  %10s  %7s  %9s  %9s  %7s\n", "queues", "preempt ns", "vs 16", "turn ns",
	       "vs 16", "aged ns", "vs 16", "log2 n/4", "sample ns", "vs call");
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		bench_line(sizes[i], baseline_ns, first_ns);
	printf("\npreempt: an edge of the urgent queue, the plan that closes or opens the batch client's 4 gates, and its\n"
	       "acknowledgement. turn: one client's turn ends and the next one's begins, 8 gates in one plan. aged: the\n"
	       "same of aged turns, with every client due and a user of its own. Aim: a decision\n"
	       "below 1000 ns at 10,000 queues; \"log2 n/4\" is how a cost that grows like log n would have grown since 16\n"
	       "queues. sample: one that changes nothing (aim: 20 ns), round all queues, against a call to an empty function\n"
	       "(%.2f ns). Memory per queue: %.0f bytes (aim: 1024).\n",
	       baseline_ns, bench_bytes_per_queue(4096));
	return 0;
}
