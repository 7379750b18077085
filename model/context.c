/* SPDX-License-Identifier: MIT */
/*
 * Contexts of a device with channel groups (tsg): one process at a time has the compute engine. Owns whose turn it is
 * and the cost of changing. Contexts that may run take turns in the order they were created; each keeps the engine for
 * its time slice, and for further ones while nobody else has work. A context without work leaves at once if another
 * waits, and stays loaded if none does.
 */
#include <errno.h>
#include "model/gpu_internal.h"

void gpu_context_mark(struct gp_gpu *gpu)
{
	gpu->context_marked = true;
}

static bool context_is_announced(const struct gpu_process *process)
{
	return process->announce_ns > process->gpu->now_ns;
}

void gpu_context_ready(struct gpu_process *process)
{
	struct gp_gpu *gpu = process->gpu;
	bool is_ready = process->working_count || (process->open_count && context_is_announced(process));
	uint64_t bit = 1ull << (process->id % 64u);

	if (is_ready)
		gpu->context_ready[process->id / 64u] |= bit;
	else
		gpu->context_ready[process->id / 64u] &= ~bit;
	gpu_context_mark(gpu);
}

static bool context_is_ready(const struct gpu_process *process)
{
	return process->gpu->context_ready[process->id / 64u] >> (process->id % 64u) & 1u;
}

/* The next context in the round that may run, behind this one; itself only if no other may. NULL: none. */
static struct gpu_process *context_next(const struct gp_gpu *gpu, const struct gpu_process *behind)
{
	const uint32_t word_count = GP_GPU_PROCESS_MAX / 64u;
	uint32_t first = behind ? (behind->id + 1u) % GP_GPU_PROCESS_MAX : 0;

	for (uint32_t i = 0; i <= word_count; i++) {
		uint32_t word = (first / 64u + i) % word_count;
		uint64_t bits = gpu->context_ready[word];

		/* The first word is looked at twice: from the starting bit on, and last the bits before it. */
		if (i == 0)
			bits &= ~0ull << (first % 64u);
		else if (i == word_count)
			bits &= ~(~0ull << (first % 64u));
		if (bits)
			return gpu->processes[word * 64u + (uint32_t)__builtin_ctzll(bits)];
	}
	return NULL;
}

static void context_stop(struct gpu_process *process)
{
	for (struct gpu_list *node = process->working.next; node != &process->working;) {
		struct gpu_queue *queue = gpu_container(node, struct gpu_queue, working_link);

		node = node->next;
		gpu_queue_stop(queue);
	}
}

static void context_arm(struct gp_gpu *gpu, enum gpu_phase phase, enum gp_desc_key cost)
{
	gpu->phase = phase;
	gpu_timer_arm(gpu, &gpu->context_timer, gpu_add_ns(gpu->now_ns, (uint64_t)gp_desc_get(gpu->desc, cost)));
}

static void context_out(struct gp_gpu *gpu)
{
	struct gpu_process *process = gpu->context;

	context_arm(gpu, GPU_PHASE_OUT, GP_DESC_SWITCH_OUT_NS);
	gpu->context_last = process;
	if (process) {
		process->switch_count += context_is_ready(process);
		context_stop(process);
	}
}

static void context_in(struct gp_gpu *gpu, struct gpu_process *process)
{
	gpu->context = process;
	if (!process) {
		gpu->phase = GPU_PHASE_IDLE;
		return;
	}
	context_arm(gpu, GPU_PHASE_IN, GP_DESC_SWITCH_IN_NS);
}

void gpu_context_expire(struct gp_gpu *gpu)
{
	if (gpu->phase == GPU_PHASE_OUT) {
		context_in(gpu, context_next(gpu, gpu->context_last));
	} else if (gpu->phase == GPU_PHASE_IN) {
		gpu->phase = GPU_PHASE_RUN;
		gpu->slice_begin_ns = gpu->now_ns;
		gpu->slice_is_over = false;
		for (struct gpu_list *node = gpu->context->working.next; node != &gpu->context->working;
		     node = node->next)
			gpu_queue_start(gpu_container(node, struct gpu_queue, working_link));
	} else {
		gpu->slice_is_over = true;
	}
	gpu_context_mark(gpu);
}

static uint64_t context_slice_ns(const struct gpu_process *process)
{
	return process->slice_ns ? process->slice_ns : (uint64_t)gp_desc_get(process->gpu->desc, GP_DESC_TIMESLICE_NS);
}

void gpu_context_step(struct gp_gpu *gpu)
{
	struct gpu_process *current = gpu->context, *next;
	bool is_over = gpu->slice_is_over;
	uint64_t slice_ns;

	gpu->context_marked = gpu->slice_is_over = false;
	if (gpu->phase == GPU_PHASE_OUT || gpu->phase == GPU_PHASE_IN)
		return;
	gpu_timer_cancel(gpu, &gpu->context_timer);
	next = context_next(gpu, current ? current : gpu->context_last);
	if (!current) {
		if (next)
			context_in(gpu, next);
		return;
	}
	if (!context_is_ready(current)) {
		/* Held out with its work inside, it goes even if nobody comes. */
		if (next || !current->open_count)
			context_out(gpu);
		return;
	}
	if (next == current || (context_is_announced(current) && !current->working_count))
		return;
	if (is_over) {
		context_out(gpu);
		return;
	}
	/* Alone, it is given one slice after the other; whoever comes waits for the end of the one under way. */
	slice_ns = context_slice_ns(current);
	gpu->slice_begin_ns += (gpu->now_ns - gpu->slice_begin_ns) / slice_ns * slice_ns;
	gpu_timer_arm(gpu, &gpu->context_timer, gpu_add_ns(gpu->slice_begin_ns, slice_ns));
}

void gpu_context_drop(struct gpu_process *process)
{
	struct gp_gpu *gpu = process->gpu;

	gpu_timer_cancel(gpu, &process->announce);
	gpu->context_ready[process->id / 64u] &= ~(1ull << (process->id % 64u));
	if (gpu->context_last == process)
		gpu->context_last = NULL;
	if (gpu->context == process) {
		/* Its engine state is thrown away, not saved, but clearing it takes as long. */
		gpu->context = NULL;
		context_out(gpu);
	}
	gpu_context_mark(gpu);
}

int gp_gpu_set_timeslice(struct gp_gpu *gpu, uint32_t process_id, uint64_t slice_ns, uint64_t now_ns)
{
	struct gpu_process *process;
	int r;

	if (gpu->scheduler != GP_SCHEDULER_TSG)
		return -EOPNOTSUPP;
	r = gpu_begin(gpu, now_ns);
	if (r < 0)
		return r;
	process = gpu_process_find(gpu, process_id);
	if (!process)
		return -ENOENT;
	/* The hardware cannot turn a slice off: "value of 0 will be used as 1 us" (GA100 dev_ram manual). */
	process->slice_ns = slice_ns ? slice_ns : 1000u;
	gpu_context_mark(gpu);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

int gp_gpu_switch_count(const struct gp_gpu *gpu, uint32_t process_id, uint32_t *ret_count)
{
	const struct gpu_process *process = gpu_process_find(gpu, process_id);

	if (gpu->scheduler != GP_SCHEDULER_TSG)
		return -EOPNOTSUPP;
	if (!process)
		return -ENOENT;
	*ret_count = process->switch_count;
	return 0;
}

int gp_gpu_announce(struct gp_gpu *gpu, uint32_t queue_id, uint64_t until_ns, uint64_t now_ns)
{
	struct gpu_queue *queue;
	int r;

	if (gpu->scheduler != GP_SCHEDULER_TSG)
		return -EOPNOTSUPP;
	r = gpu_queue_begin(gpu, queue_id, now_ns, &queue);
	if (r < 0)
		return r;
	queue->process->announce_ns = until_ns;
	if (until_ns > now_ns)
		gpu_timer_arm(gpu, &queue->process->announce, until_ns);
	gpu_context_ready(queue->process);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}
