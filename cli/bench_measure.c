/* SPDX-License-Identifier: MIT */
/* Owns the measurements. Each leaves every gate open and every queue empty; the first failure ends them all. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/bench_measure.h"

#define MEASURE_WAIT_NS   5000000000ull /* device time; a packet that takes longer never ends */
#define MEASURE_KERNEL_NS 24000000u     /* device time of the kernel, about */
#define MEASURE_MISSES    50u           /* kernels that may be over before they are looked at: the host is busy */
#define MEASURE_PACKETS   200u
#define MEASURE_SAMPLES   256u
#define MEASURE_JUMP      5u     /* times slower: not noise */
#define MEASURE_HEADS     8u     /* queues with a blocked head: every pipe has some */
#define MEASURE_WAVES     16u    /* of 128 VGPRs fill a CU */
#define MEASURE_WAVE_SIZE 32768u /* bytes of registers of one */

struct measure {
	struct gp_bench_kfd *kfd;
	const struct gp_bench_limits *limits;
	struct gp_bench_result *result;
	struct gp_error *error;
	uint64_t samples[MEASURE_SAMPLES];
	uint32_t sample_count;
};

static void measure_note(struct measure *measure, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void measure_note(struct measure *measure, const char *format, ...)
{
	struct gp_bench_result *result = measure->result;
	va_list arguments;

	if (result->note_count == sizeof(result->notes) / sizeof(result->notes[0]))
		return;
	va_start(arguments, format);
	(void)vsnprintf(result->notes[result->note_count++], sizeof(result->notes[0]), format, arguments);
	va_end(arguments);
}

static int measure_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void measure_add(struct measure *measure, uint64_t real_ns)
{
	if (measure->sample_count < MEASURE_SAMPLES)
		measure->samples[measure->sample_count++] = real_ns / measure->kfd->dilation;
}

static struct gp_bench_times measure_times(struct measure *measure)
{
	uint32_t n = measure->sample_count;
	struct gp_bench_times times = { .count = n };

	measure->sample_count = 0;
	if (!n)
		return times;
	qsort(measure->samples, n, sizeof(measure->samples[0]), measure_compare);
	times.p10 = measure->samples[n / 10];
	times.p50 = measure->samples[n / 2];
	times.p90 = measure->samples[n * 9 / 10];
	times.p99 = measure->samples[n - 1 - n / 100];
	return times;
}

static void measure_pause(const struct measure *measure)
{
	struct timespec time = { (time_t)(measure->limits->pause_ns / 1000000000u),
				 (long)(measure->limits->pause_ns % 1000000000u) };

	nanosleep(&time, NULL);
}

static bool measure_is_stopped(const struct measure *measure)
{
	return measure->limits->stop && *measure->limits->stop;
}

static bool measure_wait(const struct measure *measure, const struct gp_bench_signal *signal)
{
	return gp_bench_kfd_wait(signal, MEASURE_WAIT_NS * measure->kfd->dilation);
}

static int measure_stuck(struct measure *measure, const char *what, int r)
{
	return gp_error_set(measure->error, -EIO, "%s: %s; nothing more is measured", what,
			    r ? strerror(-r) : "it never ended");
}

/* So many queues, no more, no less. */
static int measure_queues(struct measure *measure, uint32_t count)
{
	int r = 0;

	gp_bench_kfd_drop(measure->kfd, count);
	while (!r && measure->kfd->queue_count < count)
		r = gp_bench_kfd_queue(measure->kfd);
	return r;
}

/* Doorbell to signal of empty barriers on the last queue. */
static int measure_packets(struct measure *measure, struct gp_bench_times *ret_times)
{
	struct gp_bench_queue *queue = &measure->kfd->queues[measure->kfd->queue_count - 1];

	measure->sample_count = 0;
	for (uint32_t i = 0; i < MEASURE_PACKETS && !measure_is_stopped(measure); i++) {
		struct gp_bench_signal *done = gp_bench_kfd_signal(measure->kfd, 1);
		uint64_t start_ns = gp_bench_now_ns();

		gp_bench_kfd_barrier(queue, NULL, done);
		if (!measure_wait(measure, done))
			return measure_stuck(measure, "an empty packet", 0);
		measure_add(measure, gp_bench_now_ns() - start_ns);
	}
	*ret_times = measure_times(measure);
	return 0;
}

static int measure_gate_once(struct measure *measure, const struct gp_bench_gate *gate, bool open)
{
	struct gp_bench_kfd *kfd = measure->kfd;

	if (!strcmp(gate->unit, "queue"))
		return gp_bench_kfd_update(kfd, &kfd->queues[0], open);
	return open ? gp_bench_kfd_resume(kfd, gate->queues) : gp_bench_kfd_suspend(kfd, gate->queues);
}

/* One round: work on the first queue (none at 0 percent), close, open, let it end. The times are in device time. */
static int measure_round(struct measure *measure, const struct gp_bench_gate *gate, uint64_t *ret_close_ns,
			 uint64_t *ret_open_ns, bool *ret_ran)
{
	struct gp_bench_kfd *kfd = measure->kfd;
	struct gp_bench_signal *done = gp_bench_kfd_signal(kfd, gate->percent ? 1 : 0);
	uint64_t start_ns;
	int r;

	if (gate->percent) {
		uint64_t groups = (uint64_t)kfd->cu_count * MEASURE_WAVES * gate->percent / 100;

		gp_bench_kfd_kernel(kfd, &kfd->queues[0], groups ? (uint32_t)groups : 1, done);
		/* A tenth of its length: it is running now. */
		start_ns = gp_bench_now_ns();
		while (gp_bench_now_ns() - start_ns < 2000000u * kfd->dilation)
			continue;
	}
	start_ns = gp_bench_now_ns();
	r = measure_gate_once(measure, gate, false);
	*ret_close_ns = (gp_bench_now_ns() - start_ns) / kfd->dilation;
	*ret_ran = !gate->percent || __atomic_load_n(&done->value, __ATOMIC_ACQUIRE) != 0;
	if (r)
		return measure_stuck(measure, "a gate could not be closed", r);
	measure_pause(measure);
	start_ns = gp_bench_now_ns();
	r = measure_gate_once(measure, gate, true);
	*ret_open_ns = (gp_bench_now_ns() - start_ns) / kfd->dilation;
	if (r)
		return measure_stuck(measure, "a gate could not be opened", r);
	return measure_wait(measure, done) ? 0 : measure_stuck(measure, "a kernel that was stopped and resumed", 0);
}

static int measure_gate(struct measure *measure, const char *unit, uint32_t queues, uint32_t percent)
{
	struct gp_bench_result *result = measure->result;
	struct gp_bench_gate *gate = &result->gates[result->gate_count];
	uint64_t opens[MEASURE_SAMPLES], close_ns = 0, open_ns = 0;
	uint32_t count = 0, misses = 0;
	int r = 0;

	if (result->gate_count == GP_BENCH_GATE_COUNT)
		return 0;
	*gate = (struct gp_bench_gate){ .queues = queues, .percent = percent };
	(void)snprintf(gate->unit, sizeof(gate->unit), "%s", unit);
	measure->sample_count = 0;
	while (!r && count < measure->limits->rounds && count < MEASURE_SAMPLES && !measure_is_stopped(measure)) {
		bool ran = false;

		r = measure_round(measure, gate, &close_ns, &open_ns, &ran);
		if (!r && !ran && ++misses < MEASURE_MISSES)
			continue;
		if (!r && !ran) {
			measure_note(measure,
				     "gate cost at %u %% occupancy: the kernel had ended before it was stopped",
				     percent);
			return 0;
		}
		if (!r) {
			measure->samples[measure->sample_count++] = close_ns;
			opens[count++] = open_ns;
		}
		measure_pause(measure);
	}
	gate->close = measure_times(measure);
	memcpy(measure->samples, opens, count * sizeof(opens[0]));
	measure->sample_count = count;
	gate->open = measure_times(measure);
	result->gate_count += gate->close.count != 0;
	return r;
}

static int measure_gates(struct measure *measure)
{
	static const uint32_t percents[] = { 0, 25, 50, 100 };
	struct gp_bench_kfd *kfd = measure->kfd;
	int r = 0;

	for (uint32_t i = 0; !r && i < 4; i++) {
		r = measure_queues(measure, 1);
		r = r ? measure_stuck(measure, "a queue", r) : measure_gate(measure, "queue", 1, percents[i]);
	}
	if (r)
		return r;
	for (uint32_t queues = 1; !r && queues <= 4; queues += 3) {
		int refused;

		r = measure_queues(measure, queues);
		if (r)
			return measure_stuck(measure, "a queue", r);
		refused = gp_bench_kfd_debug(kfd, true);
		if (refused) {
			measure_note(measure, "DBG_TRAP on oneself: %s (KFD %u.%u; 1.13 has it)", strerror(-refused),
				     kfd->kfd_major, kfd->kfd_minor);
			return 0;
		}
		for (uint32_t i = 0; !r && i < 4; i++)
			r = measure_gate(measure, "process", queues, percents[i]);
		(void)gp_bench_kfd_debug(kfd, false);
	}
	return r;
}

/* A long kernel alone, looked at until it ends: has the read index moved long before that? Unknown: we were not running
 * ourselves meanwhile. */
static int measure_rptr_once(struct measure *measure, enum gp_bench_rptr *ret_rptr)
{
	struct gp_bench_kfd *kfd = measure->kfd;
	uint64_t long_ns = MEASURE_KERNEL_NS / 2 * kfd->dilation, now_ns = gp_bench_now_ns();
	uint64_t end_ns = now_ns + MEASURE_WAIT_NS * kfd->dilation, moved_ns = 0, before_ns, gap_ns = 0;
	struct gp_bench_signal *done = gp_bench_kfd_signal(kfd, 1);
	int r = measure_queues(measure, 0);

	r = r ? r : measure_queues(measure, 1);
	if (r)
		return measure_stuck(measure, "a queue", r);
	gp_bench_kfd_kernel(kfd, &kfd->queues[0], kfd->cu_count, done);
	now_ns = gp_bench_now_ns();
	do {
		if (now_ns > end_ns)
			return measure_stuck(measure, "a kernel", 0);
		before_ns = now_ns;
		now_ns = gp_bench_now_ns();
		if (now_ns - before_ns > gap_ns)
			gap_ns = now_ns - before_ns;
		if (!moved_ns && gp_bench_kfd_read_index(&kfd->queues[0]) > 0)
			moved_ns = now_ns;
	} while (__atomic_load_n(&done->value, __ATOMIC_ACQUIRE) != 0);
	if (gp_bench_now_ns() - now_ns > gap_ns)
		gap_ns = gp_bench_now_ns() - now_ns;
	*ret_rptr = GP_BENCH_RPTR_UNKNOWN;
	if (moved_ns && now_ns - moved_ns > long_ns)
		*ret_rptr = GP_BENCH_RPTR_FETCH;
	else if (gap_ns < long_ns && (!moved_ns || now_ns - moved_ns <= gap_ns))
		*ret_rptr = GP_BENCH_RPTR_COMPLETION;
	return 0;
}

static int measure_rptr(struct measure *measure)
{
	enum gp_bench_rptr *rptr = &measure->result->rptr;
	int r = 0;

	for (uint32_t i = 0; !r && *rptr == GP_BENCH_RPTR_UNKNOWN && i < MEASURE_MISSES && !measure_is_stopped(measure);
	     i++)
		r = measure_rptr_once(measure, rptr);
	if (!r && *rptr == GP_BENCH_RPTR_UNKNOWN)
		measure_note(measure, "read pointer: no kernel could be watched while it ran");
	return r;
}

/* Queues whose first packet waits for a signal, and one that has work: does it wait for them? */
static int measure_heads(struct measure *measure)
{
	struct gp_bench_kfd *kfd = measure->kfd;
	struct gp_bench_signal *never, *done[MEASURE_HEADS];
	int r = measure_queues(measure, MEASURE_HEADS + 1);

	if (r)
		return measure_stuck(measure, "a queue", r);
	r = measure_packets(measure, &measure->result->packet);
	if (r)
		return r;
	/* Not from the ring of signals: it must outlive two hundred packets. */
	never = (struct gp_bench_signal *)(void *)(kfd->page + 3072);
	*never = (struct gp_bench_signal){ .kind = 1, .value = 1 };
	for (uint32_t i = 0; i < MEASURE_HEADS; i++) {
		done[i] = (struct gp_bench_signal *)(void *)(kfd->page + 3136 + 64 * i);
		*done[i] = (struct gp_bench_signal){ .kind = 1, .value = 1 };
		gp_bench_kfd_barrier(&kfd->queues[i], never, done[i]);
	}
	measure_pause(measure);
	r = measure_packets(measure, &measure->result->blocked);
	__atomic_store_n(&never->value, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; !r && i < MEASURE_HEADS; i++)
		if (!measure_wait(measure, done[i]))
			r = measure_stuck(measure, "a barrier that was released", 0);
	if (!r && measure->result->blocked.count && measure->result->packet.count)
		measure->result->head = measure->result->blocked.p50 > measure->result->packet.p50 * MEASURE_JUMP ?
						GP_BENCH_HEAD_HOLD :
						GP_BENCH_HEAD_ROTATE;
	return r;
}

/* Idle queues take slots too: where does a packet begin to wait for its turn? */
static int measure_steps(struct measure *measure)
{
	struct gp_bench_result *result = measure->result;
	uint32_t slots = measure->kfd->slot_count, counts[] = { 4, 8, 16, slots - 2, slots, slots + 4 };
	int r = 0;

	for (uint32_t i = 0; !r && i < sizeof(counts) / sizeof(counts[0]) && !measure_is_stopped(measure); i++) {
		if (counts[i] > GP_BENCH_QUEUE_MAX || (i && counts[i] <= counts[i - 1]))
			continue;
		r = measure_queues(measure, counts[i]);
		if (r) {
			measure_note(measure, "queues per process: %u were to be had, not %u: %s",
				     measure->kfd->queue_count, counts[i], strerror(-r));
			r = 0;
			break;
		}
		r = measure_packets(measure, &result->steps[result->step_count].packet);
		if (r)
			break;
		result->steps[result->step_count].queues = counts[i];
		if (!result->oversubscribed_at && result->step_count &&
		    result->steps[result->step_count].packet.p50 > result->steps[0].packet.p50 * MEASURE_JUMP)
			result->oversubscribed_at = counts[i];
		result->step_count++;
	}
	gp_bench_kfd_drop(measure->kfd, 0);
	return r;
}

/* What a full device costs beyond an idle one is moving its registers; the control stack is small against them. */
static void measure_bandwidth(struct measure *measure)
{
	struct gp_bench_result *result = measure->result;
	uint64_t idle_ns = 0, full_ns = 0;
	uint64_t size = (uint64_t)measure->kfd->cu_count * MEASURE_WAVES * MEASURE_WAVE_SIZE;

	for (uint32_t i = 0; i < result->gate_count; i++) {
		if (strcmp(result->gates[i].unit, "queue") != 0)
			continue;
		if (result->gates[i].percent == 0)
			idle_ns = result->gates[i].close.p50;
		if (result->gates[i].percent == 100)
			full_ns = result->gates[i].close.p50;
	}
	if (idle_ns && full_ns > idle_ns + 1000)
		result->save_bandwidth = size * 1000u / (full_ns - idle_ns) * 1000000u;
	else
		measure_note(measure, "save bandwidth: closing a full device took no longer than an idle one");
}

int gp_bench_measure(struct gp_bench_kfd *kfd, const struct gp_bench_limits *limits, struct gp_bench_result *ret_result,
		     struct gp_error *error)
{
	static struct measure measure;
	int r;

	memset(ret_result, 0, sizeof(*ret_result));
	measure = (struct measure){ .kfd = kfd, .limits = limits, .result = ret_result, .error = error };
	r = measure_rptr(&measure);
	r = r ? r : measure_heads(&measure);
	r = r ? r : measure_gates(&measure);
	r = r ? r : measure_steps(&measure);
	if (!r)
		measure_bandwidth(&measure);
	return r;
}
