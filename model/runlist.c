/* SPDX-License-Identifier: MIT */
/*
 * The runlist of a device with cpsch or mes: which open compute queues sit on which pipe and slot, and, when there are
 * more than fit, whose turn it is. Owns placement and process slices. Never decides gates.
 *
 * Order as in KFD: newest process first, newest queue first; placement goes round the pipes (pipe = r mod pipes). A
 * device is oversubscribed if open compute queues exceed the slots, or processes with a queue, open or not, exceed the
 * VMIDs. Slices then take turns, busy or idle alike, each change costing slice_loss and the moving of the bytes
 * resident.
 *
 * After a runlist update the slice under way goes on: whether firmware starts over at the head of the list is not
 * public, and starting over would starve the tail under frequent updates. One gate may decide whether processes share
 * slices or each has its own. Both kinds go on where they were left: else a gate that comes and goes would starve the
 * tail, too.
 */
#include "model/gpu_internal.h"

static uint32_t runlist_slot_limit(const struct gp_gpu *gpu)
{
	return (uint32_t)gp_desc_get(gpu->desc, GP_DESC_SLOT_COUNT);
}

static void runlist_collect(struct gp_gpu *gpu)
{
	gpu->runlist_count = 0;
	for (struct gpu_list *p = gpu->process_list.next; p != &gpu->process_list; p = p->next) {
		struct gpu_process *process = gpu_container(p, struct gpu_process, link);

		for (struct gpu_list *q = process->queues.next; q != &process->queues; q = q->next) {
			struct gpu_queue *queue = gpu_container(q, struct gpu_queue, link);

			if (queue->kind != GP_GPU_COMPUTE || !queue->open)
				continue;
			queue->runlist_index = gpu->runlist_count;
			gpu->runlist[gpu->runlist_count++] = queue;
		}
	}
}

/* Opens a new slice, or adds to the last one. */
static void runlist_pack(struct gp_gpu *gpu, const struct gpu_process *process, uint32_t count, bool begin)
{
	if (begin) {
		uint32_t first = gpu->slice_count ? gpu->slices[gpu->slice_count - 1].first +
							    gpu->slices[gpu->slice_count - 1].count :
						    0;

		gpu->slices[gpu->slice_count++] = (struct gpu_slice){ .first = first, .process = process->id };
	}
	gpu->slices[gpu->slice_count - 1].count += count;
}

static void runlist_slice(struct gp_gpu *gpu)
{
	uint32_t slot_limit = runlist_slot_limit(gpu),
		 process_limit = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_PROCESS_COUNT);
	bool skips_empty = gp_desc_get(gpu->desc, GP_DESC_EMPTY_PROCESS) == 0;
	/* Too many processes alone: they share slices whatever the packing of queues is, or one VMID too many would
	 * cost all. */
	bool shares = gp_desc_get(gpu->desc, GP_DESC_SLICE_PACKING) != 0 || gpu->runlist_count <= slot_limit;
	uint32_t slots_used = 0, processes_used = 0;

	gpu->slice_count = 0;
	gpu->slices_shared = shares;
	for (struct gpu_list *p = gpu->process_list.next; p != &gpu->process_list; p = p->next) {
		struct gpu_process *process = gpu_container(p, struct gpu_process, link);
		uint32_t left = process->open_count;

		process->slice = GPU_NOWHERE;
		if (!process->queue_count || (skips_empty && !left))
			continue;
		do {
			uint32_t part = left < slot_limit ? left : slot_limit;
			bool begin = !gpu->slice_count || !shares || slots_used + part > slot_limit ||
				     processes_used == process_limit;

			if (begin)
				slots_used = processes_used = 0;
			runlist_pack(gpu, process, part, begin);
			if (process->slice == GPU_NOWHERE)
				process->slice = gpu->slice_count - 1u;
			slots_used += part;
			processes_used++;
			left -= part;
		} while (left);
	}
}

static struct gpu_slice runlist_current(const struct gp_gpu *gpu)
{
	if (gpu->oversubscribed && gpu->slice_count)
		return gpu->slices[gpu->slice_index];
	return (struct gpu_slice){ .first = 0, .count = gpu->runlist_count };
}

static bool runlist_take(struct gp_gpu *gpu, struct gpu_queue *queue, uint32_t r)
{
	struct gpu_pipe *pipe = &gpu->pipes[r % gpu->pipe_count];

	if (pipe->slots[r / gpu->pipe_count])
		return false;
	queue->pipe = pipe;
	queue->slot = r / gpu->pipe_count;
	pipe->slots[queue->slot] = queue;
	return true;
}

static void runlist_place(struct gp_gpu *gpu, struct gpu_queue *queue)
{
	uint32_t limit = runlist_slot_limit(gpu), bound = queue->process->id % gpu->pipe_count;

	for (uint32_t r = bound; gpu->config.pipe_by_process && r < limit; r += gpu->pipe_count)
		if (runlist_take(gpu, queue, r))
			return;
	for (uint32_t r = 0; r < limit; r++)
		if (runlist_take(gpu, queue, r))
			return;
	GPU_ASSERT(false);
}

static void runlist_unplace(struct gpu_queue *queue)
{
	gpu_pipe_leave(queue);
	queue->pipe->slots[queue->slot] = NULL;
	queue->pipe = NULL;
	queue->slot = GPU_NOWHERE;
}

/* Puts the queues of the current slice on the pipes. On cpsch everybody is placed anew; mes leaves those who stay where
 * they are. */
void gpu_runlist_map(struct gp_gpu *gpu)
{
	struct gpu_slice slice = runlist_current(gpu);
	bool is_sticky = gpu->scheduler == GP_SCHEDULER_MES;

	for (uint32_t i = 0; i < gpu->mapped_count; i++)
		if (gpu->mapped[i])
			gpu->mapped[i]->mapped = false;
	for (uint32_t i = 0; i < slice.count; i++)
		if (gpu->runlist[slice.first + i])
			gpu->runlist[slice.first + i]->mapped = true;
	for (uint32_t i = 0; i < gpu->mapped_count; i++) {
		struct gpu_queue *queue = gpu->mapped[i];

		if (!queue)
			continue;
		if (!queue->mapped)
			gpu_queue_stop(queue);
		if (!queue->mapped || !is_sticky)
			runlist_unplace(queue);
	}
	for (uint32_t i = 0; !is_sticky && i < gpu->pipe_count; i++) {
		gpu->pipes[i].last = gpu->pipes[i].slot_count - 1u;
		gpu->pipes[i].served = false;
	}
	gpu->mapped_count = 0;
	for (uint32_t i = 0; i < slice.count; i++) {
		struct gpu_queue *queue = gpu->runlist[slice.first + i];

		if (!queue)
			continue;
		if (!queue->pipe)
			runlist_place(gpu, queue);
		gpu->mapped[gpu->mapped_count++] = queue;
		gpu_queue_start(queue);
	}
}

static void runlist_turn(struct gp_gpu *gpu, uint64_t turns)
{
	gpu->slice_index = (uint32_t)((gpu->slice_index + turns) % gpu->slice_count);
	gpu->slice_processes[gpu->slices_shared] = gpu->slices[gpu->slice_index].process;
}

/* The slice that goes on after an update: that of the same process, or of the next one behind it that has any. */
static void runlist_find_slice(struct gp_gpu *gpu)
{
	struct gpu_process *process = gpu_process_find(gpu, gpu->slice_processes[gpu->slices_shared]);
	struct gpu_list *node = process ? &process->link : NULL;

	if (!gpu->slice_count) {
		gpu->slice_index = 0;
		return;
	}
	if (!process || (gpu->slice_index < gpu->slice_count && gpu->slices[gpu->slice_index].process == process->id)) {
		runlist_turn(gpu, 0);
		return;
	}
	while (node == &gpu->process_list || gpu_container(node, struct gpu_process, link)->slice == GPU_NOWHERE)
		node = node->next;
	gpu->slice_index = gpu_container(node, struct gpu_process, link)->slice;
	runlist_turn(gpu, 0);
}

void gpu_runlist_rebuild(struct gp_gpu *gpu)
{
	bool was = gpu->oversubscribed;

	runlist_collect(gpu);
	gpu->oversubscribed = gpu->runlist_count > runlist_slot_limit(gpu) ||
			      gpu->process_count > (uint32_t)gp_desc_get(gpu->desc, GP_DESC_PROCESS_COUNT);
	gpu->slice_count = 0;
	if (gpu->oversubscribed) {
		runlist_slice(gpu);
		runlist_find_slice(gpu);
	}
	if (was != gpu->oversubscribed) {
		gpu->slice_end_ns = 0;
		gpu_emit(gpu, GP_GPU_EVENT_OVERSUBSCRIBED, NULL, NULL, gpu->oversubscribed, 0);
	}
	gpu_runlist_map(gpu);
}

void gpu_runlist_resume(struct gp_gpu *gpu)
{
	uint64_t quantum_ns = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_PROCESS_QUANTUM);

	if (!gpu->oversubscribed || gpu->slice_count < 2) {
		gpu_timer_cancel(gpu, &gpu->slice);
		return;
	}
	/* A halt stretches the slice it interrupts. */
	if (gpu->slice_end_ns > gpu->halt_begin_ns)
		gpu->slice_end_ns += gpu->now_ns - gpu->halt_begin_ns;
	else
		gpu->slice_end_ns = gpu->now_ns + quantum_ns;
	if (gpu->working_count)
		gpu_timer_arm(gpu, &gpu->slice, gpu->slice_end_ns);
}

/* An idle device is not woken each slice: where the turn would be by now is a division. */
static void runlist_pass(struct gp_gpu *gpu)
{
	uint64_t quantum_ns, period_ns, turns;

	if (gpu->slice_end_ns > gpu->now_ns)
		return;
	quantum_ns = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_PROCESS_QUANTUM);
	period_ns = quantum_ns + (uint64_t)gp_desc_get(gpu->desc, GP_DESC_SLICE_LOSS_NS);
	turns = (gpu->now_ns - gpu->slice_end_ns) / period_ns + 1u;
	runlist_turn(gpu, turns);
	gpu->slice_end_ns += turns * period_ns;
	gpu_runlist_map(gpu);
}

void gpu_runlist_wake(struct gp_gpu *gpu)
{
	if (!gpu->oversubscribed || gpu->slice_count < 2 || gpu->halt != GPU_RUNNING ||
	    gpu->slice.heap_index != GPU_NOWHERE)
		return;
	runlist_pass(gpu);
	gpu_timer_arm(gpu, &gpu->slice, gpu->slice_end_ns);
}

/* gpu_runlist_resume() begins a slice that is over anew. On an idle device slices have taken turns since: else idle
 * gates that change more often than a slice lasts would hold the turn where it is. */
void gpu_runlist_catch_up(struct gp_gpu *gpu)
{
	if (gpu->oversubscribed && gpu->slice_count > 1 && !gpu->working_count)
		runlist_pass(gpu);
}

/* Bytes the next slice brings back. */
static uint64_t runlist_saved_size(const struct gp_gpu *gpu, struct gpu_slice slice)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < slice.count; i++) {
		const struct gpu_queue *queue = gpu->runlist[slice.first + i];
		const struct gpu_list *node;

		for (node = queue ? queue->dispatches.next : NULL; node && node != &queue->dispatches;
		     node = node->next) {
			const struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

			size += dispatch->saved_count * dispatch->save_size;
		}
	}
	return size;
}

void gpu_runlist_slice_end(struct gp_gpu *gpu)
{
	uint64_t cost_ns = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_SLICE_LOSS_NS);
	uint64_t size = gpu->resident_size;

	/* Nothing to do for anybody: gpu_runlist_wake() goes on from here. */
	if (!gpu->working_count || gpu->slice_count < 2)
		return;
	/* mes: a gate is on its way; the slice ends behind it. */
	if (gpu->transaction.heap_index != GPU_NOWHERE) {
		gpu->slice_end_ns = gpu_add_ns(gpu->transaction.at_ns, 1u);
		gpu_timer_arm(gpu, &gpu->slice, gpu->slice_end_ns);
		return;
	}
	if (gpu->draining || gpu_drain(gpu)) {
		gpu->slice_drains = true;
		return;
	}
	gpu_halt_begin(gpu, GPU_HALT_SLICE);
	runlist_turn(gpu, 1);
	size += runlist_saved_size(gpu, gpu->slices[gpu->slice_index]);
	cost_ns += gpu_bytes_ns(size, gp_desc_get(gpu->desc, GP_DESC_SAVE_BANDWIDTH));
	for (uint32_t i = 0; i < gpu->mapped_count; i++)
		if (gpu->mapped[i])
			gpu_queue_stop(gpu->mapped[i]);
	gpu_timer_arm(gpu, &gpu->transaction, gpu_add_ns(gpu->now_ns, cost_ns));
}
