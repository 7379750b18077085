/* SPDX-License-Identifier: MIT */
/*
 * Queues: rings and their counters, signals, and the life of a packet from its ring to its completion. Owns the
 * question whether a queue has work. Never decides when a packet is taken (pipe.c, copy.c) nor whether the queue may
 * run (runlist.c, context.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/gpu_internal.h"

#define QUEUE_WORKGROUP_NS_MAX \
	1000000000000000ull  /* eleven days: far from the end of 64 bits, whatever it is added to */
#define QUEUE_RING_FIRST 16u /* rings grow on demand: thousands of queues rarely hold more than a few packets */

bool gpu_queue_runs(const struct gpu_queue *queue)
{
	const struct gp_gpu *gpu = queue->gpu;

	if (!queue->open || queue->closing)
		return false;
	if (queue->kind == GP_GPU_COPY)
		return true;
	if (gpu->scheduler == GP_SCHEDULER_TSG)
		return gpu->context == queue->process && gpu->phase == GPU_PHASE_RUN;
	return queue->mapped;
}

void gpu_queue_mark(struct gpu_queue *queue)
{
	if (queue->engine)
		gpu_copy_mark(queue->engine);
	else if (queue->pipe)
		gpu_pipe_mark(queue->pipe);
}

void gpu_queue_update(struct gpu_queue *queue)
{
	struct gp_gpu *gpu = queue->gpu;
	bool working = queue->kind == GP_GPU_COMPUTE && queue->open && !queue->closing &&
		       (queue->visible > queue->fetched || queue->unfinished);

	if (working == queue->working)
		return;
	queue->working = working;
	if (working) {
		gpu_list_add(&queue->process->working, &queue->working_link);
		queue->process->working_count++;
		if (!gpu->working_count++)
			gpu_runlist_wake(gpu);
	} else {
		gpu_list_remove(&queue->working_link);
		queue->process->working_count--;
		gpu->working_count--;
	}
	if (gpu->scheduler == GP_SCHEDULER_TSG)
		gpu_context_ready(queue->process);
}

void gpu_queue_set_open(struct gpu_queue *queue, bool open, bool closing)
{
	bool was = queue->open && !queue->closing, is = open && !closing;

	queue->open = open;
	queue->closing = closing;
	if (queue->kind == GP_GPU_COMPUTE && was != is) {
		queue->process->open_count += is ? 1u : UINT32_MAX;
		queue->gpu->open_count += is ? 1u : UINT32_MAX;
	}
	gpu_queue_update(queue);
	if (queue->gpu->scheduler == GP_SCHEDULER_TSG)
		gpu_context_ready(queue->process);
	gpu_queue_mark(queue);
}

void gpu_queue_stop(struct gpu_queue *queue)
{
	struct gpu_list *node = queue->dispatches.next;

	if (queue->pipe)
		gpu_pipe_leave(queue);
	while (node != &queue->dispatches) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

		node = node->next;
		if (dispatch->packet.type == GP_GPU_KERNEL && !dispatch->finished)
			gpu_workgroup_stop(dispatch);
	}
}

void gpu_queue_start(struct gpu_queue *queue)
{
	for (struct gpu_list *node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

		if (dispatch->packet.type == GP_GPU_KERNEL && !dispatch->finished)
			gpu_workgroup_update(dispatch);
	}
	gpu_queue_mark(queue);
}

void gpu_queue_set(struct gpu_queue *queue, uint32_t priority, uint32_t cu_count)
{
	uint32_t before = queue->priority_class;

	queue->priority = priority ? priority : 7u;
	/* pipe_priority_map of KFD (kfd_mqd_manager.c): low, medium, high. */
	queue->priority_class = queue->priority < 7u ? 0 : queue->priority < 11u ? 1u : 2u;
	queue->mask_cus = gpu_mask_cus(queue->gpu->desc, cu_count);
	for (struct gpu_list *node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

		if (dispatch->packet.type == GP_GPU_KERNEL && !dispatch->finished)
			gpu_workgroup_retune(dispatch, before);
	}
}

void gpu_queue_busy_begin(struct gpu_queue *queue)
{
	if (!queue->busy_count++)
		queue->busy_begin_ns = queue->gpu->now_ns;
}

void gpu_queue_busy_end(struct gpu_queue *queue)
{
	GPU_ASSERT(queue->busy_count);
	if (!--queue->busy_count)
		queue->busy_ns += queue->gpu->now_ns - queue->busy_begin_ns;
}

/* Signals. */

int64_t gpu_signal_value(const struct gp_gpu *gpu, uint32_t signal)
{
	return signal < gpu->signal_count && gpu->signals[signal].used ? gpu->signals[signal].value : 0;
}

void gpu_wait_add(struct gp_gpu *gpu, struct gpu_waiter *waiter, uint32_t signal)
{
	waiter->signal = signal;
	gpu_list_add(&gpu->signals[signal].waiters, &waiter->link);
}

void gpu_wait_remove(struct gpu_waiter *waiter)
{
	if (!waiter->signal)
		return;
	waiter->signal = 0;
	gpu_list_remove(&waiter->link);
}

static void queue_wait_none(struct gpu_queue *queue)
{
	for (uint32_t i = 0; i < GP_GPU_DEPS; i++)
		gpu_wait_remove(&queue->waiters[i]);
	queue->waiting = false;
}

static void signal_wake(struct gp_gpu *gpu, uint32_t signal)
{
	struct gpu_list *waiters = &gpu->signals[signal].waiters;

	while (!gpu_list_empty(waiters)) {
		struct gpu_waiter *waiter = gpu_container(waiters->next, struct gpu_waiter, link);

		gpu_wait_remove(waiter);
		if (waiter->queue) {
			queue_wait_none(waiter->queue);
			gpu_queue_mark(waiter->queue);
		} else {
			gpu_workgroup_release(waiter->dispatch);
		}
	}
}

void gpu_signal_write(struct gp_gpu *gpu, uint32_t signal, int64_t value)
{
	if (signal >= gpu->signal_count || !gpu->signals[signal].used)
		return;
	gpu->signals[signal].value = value;
	if (value <= 0)
		signal_wake(gpu, signal);
}

static int signal_grow(struct gp_gpu *gpu)
{
	uint32_t capacity = gpu->signal_capacity ? gpu->signal_capacity * 2u : 64u;
	struct gpu_signal *signals;
	uint32_t *free_ids;

	if (capacity > GP_GPU_SIGNAL_MAX)
		return -ENOSPC;
	free_ids = realloc(gpu->signal_free, capacity * sizeof(*free_ids));
	if (!free_ids)
		return -ENOMEM;
	gpu->signal_free = free_ids;
	/* List heads point at themselves: they are moved by hand. */
	signals = calloc(capacity, sizeof(*signals));
	if (!signals)
		return -ENOMEM;
	for (uint32_t i = 0; i < gpu->signal_count; i++) {
		struct gpu_list *old = &gpu->signals[i].waiters;

		signals[i] = gpu->signals[i];
		gpu_list_init(&signals[i].waiters);
		if (gpu_list_empty(old))
			continue;
		signals[i].waiters = *old;
		old->prev->next = old->next->prev = &signals[i].waiters;
	}
	free(gpu->signals);
	gpu->signals = signals;
	gpu->signal_capacity = capacity;
	return 0;
}

int gp_gpu_signal_add(struct gp_gpu *gpu, int64_t value, uint32_t *ret_signal)
{
	uint32_t id;

	if (gpu->signal_free_count) {
		id = gpu->signal_free[--gpu->signal_free_count];
	} else {
		if (gpu->signal_count >= gpu->signal_capacity) {
			int r = signal_grow(gpu);

			if (r < 0)
				return r;
		}
		/* Id 0 means no signal and is never given out. */
		if (!gpu->signal_count) {
			gpu_list_init(&gpu->signals[0].waiters);
			gpu->signal_count = 1;
		}
		id = gpu->signal_count++;
	}
	gpu->signals[id] = (struct gpu_signal){ .value = value, .used = true };
	gpu_list_init(&gpu->signals[id].waiters);
	*ret_signal = id;
	return 0;
}

int gp_gpu_signal_set(struct gp_gpu *gpu, uint32_t signal, int64_t value, uint64_t now_ns)
{
	int r;

	if (!signal || signal >= gpu->signal_count || !gpu->signals[signal].used)
		return -ENOENT;
	r = gpu_begin(gpu, now_ns);
	if (r < 0)
		return r;
	gpu_signal_write(gpu, signal, value);
	gpu_settle(gpu);
	return 0;
}

/* Whoever waits for it goes on: a signal that is gone counts as reached. */
void gp_gpu_signal_remove(struct gp_gpu *gpu, uint32_t signal)
{
	if (!signal || signal >= gpu->signal_count || !gpu->signals[signal].used)
		return;
	gpu->signals[signal].used = false;
	signal_wake(gpu, signal);
	gpu->signal_free[gpu->signal_free_count++] = signal;
	gpu_settle(gpu);
}

bool gpu_queue_deps_met(struct gpu_queue *queue, const struct gp_gpu_packet *packet)
{
	struct gp_gpu *gpu = queue->gpu;
	uint32_t dep_count = 0, met_count = 0;

	for (uint32_t i = 0; i < GP_GPU_DEPS; i++) {
		if (!packet->deps[i])
			continue;
		dep_count++;
		met_count += gpu_signal_value(gpu, packet->deps[i]) <= 0;
	}
	if (met_count == dep_count || (packet->type == GP_GPU_BARRIER_OR && met_count))
		return true;
	if (queue->waiting)
		return false;
	queue->waiting = true;
	for (uint32_t i = 0; i < GP_GPU_DEPS; i++)
		if (packet->deps[i] && gpu_signal_value(gpu, packet->deps[i]) > 0)
			gpu_wait_add(gpu, &queue->waiters[i], packet->deps[i]);
	return false;
}

/* Packets. */

struct gpu_slot *gpu_queue_slot(const struct gpu_queue *queue, uint64_t index)
{
	return &queue->ring[index & (queue->ring_capacity - 1u)];
}

static int queue_ring_grow(struct gpu_queue *queue)
{
	uint32_t capacity = queue->ring_capacity ? queue->ring_capacity * 2u : QUEUE_RING_FIRST;
	struct gpu_slot *ring;

	if (capacity > queue->ring_size)
		capacity = queue->ring_size;
	ring = calloc(capacity, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint64_t i = queue->read; i < queue->written; i++)
		ring[i & (capacity - 1u)] = *gpu_queue_slot(queue, i);
	free(queue->ring);
	queue->ring = ring;
	queue->ring_capacity = capacity;
	return 0;
}

static int queue_check_packet(const struct gpu_queue *queue, const struct gp_gpu_packet *packet)
{
	const struct gp_gpu *gpu = queue->gpu;
	const struct gp_gpu_kernel *kernel = &packet->kernel;

	if (packet->signal && (packet->signal >= gpu->signal_count || !gpu->signals[packet->signal].used))
		return -EINVAL;
	switch (packet->type) {
	case GP_GPU_KERNEL:
		if (queue->kind != GP_GPU_COMPUTE || !kernel->workgroups || !kernel->waves || kernel->waves > 16u ||
		    !kernel->vgprs || kernel->vgprs > 512u || !kernel->workgroup_ns ||
		    kernel->workgroup_ns > QUEUE_WORKGROUP_NS_MAX)
			return -EINVAL;
		if (kernel->spin_signal &&
		    (kernel->spin_signal >= gpu->signal_count || !gpu->signals[kernel->spin_signal].used))
			return -EINVAL;
		return gpu_occupancy(gpu->desc, kernel) ? 0 : -EINVAL;
	case GP_GPU_BARRIER_AND:
	case GP_GPU_BARRIER_OR:
		for (uint32_t i = 0; i < GP_GPU_DEPS; i++)
			if (packet->deps[i] &&
			    (packet->deps[i] >= gpu->signal_count || !gpu->signals[packet->deps[i]].used))
				return -EINVAL;
		return 0;
	case GP_GPU_COPY_BYTES: return queue->kind == GP_GPU_COPY && packet->copy_size ? 0 : -EINVAL;
	}
	return -EINVAL;
}

int gp_gpu_submit(struct gp_gpu *gpu, uint32_t queue_id, const struct gp_gpu_packet *packet, uint64_t now_ns)
{
	struct gpu_queue *queue;
	int r = gpu_queue_begin(gpu, queue_id, now_ns, &queue);

	if (r < 0)
		return r;
	r = queue_check_packet(queue, packet);
	if (r < 0)
		return r;
	if (queue->written - queue->read >= queue->ring_size)
		return -ENOSPC;
	if (queue->written - queue->read >= queue->ring_capacity) {
		r = queue_ring_grow(queue);
		if (r < 0)
			return r;
	}
	*gpu_queue_slot(queue, queue->written) = (struct gpu_slot){ .packet = *packet };
	queue->written++;
	return 0;
}

int gp_gpu_doorbell(struct gp_gpu *gpu, uint32_t queue_id, uint64_t now_ns)
{
	struct gpu_queue *queue;
	uint64_t visible_ns = gpu_add_ns(now_ns, (uint64_t)gp_desc_get(gpu->desc, GP_DESC_DOORBELL_NS));
	int r = gpu_queue_begin(gpu, queue_id, now_ns, &queue);

	if (r < 0)
		return r;
	while (queue->rung < queue->written)
		gpu_queue_slot(queue, queue->rung++)->visible_ns = visible_ns;
	if (queue->visible < queue->rung && queue->doorbell.heap_index == GPU_NOWHERE)
		gpu_timer_arm(gpu, &queue->doorbell, visible_ns);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

void gpu_queue_see(struct gpu_queue *queue)
{
	struct gp_gpu *gpu = queue->gpu;

	while (queue->visible < queue->rung && gpu_queue_slot(queue, queue->visible)->visible_ns <= gpu->now_ns)
		queue->visible++;
	if (queue->visible < queue->rung)
		gpu_timer_arm(gpu, &queue->doorbell, gpu_queue_slot(queue, queue->visible)->visible_ns);
	/* The work announced is here: from now on the context is held by it alone. */
	queue->process->announce_ns = 0;
	gpu_queue_update(queue);
	gpu_queue_mark(queue);
	if (gpu->scheduler == GP_SCHEDULER_TSG)
		gpu_context_ready(queue->process);
}

static struct gpu_dispatch *dispatch_new(struct gp_gpu *gpu)
{
	struct gpu_dispatch *dispatch = gpu->free_list;

	if (dispatch)
		gpu->free_list = (struct gpu_dispatch *)(void *)dispatch->queue_link.next;
	else
		dispatch = malloc(sizeof(*dispatch));
	if (dispatch)
		memset(dispatch, 0, sizeof(*dispatch));
	return dispatch;
}

static void dispatch_free(struct gp_gpu *gpu, struct gpu_dispatch *dispatch)
{
	dispatch->queue_link.next = (struct gpu_list *)(void *)gpu->free_list;
	gpu->free_list = dispatch;
}

struct gpu_dispatch *gpu_queue_fetch(struct gpu_queue *queue)
{
	struct gp_gpu *gpu = queue->gpu;
	struct gpu_dispatch *dispatch = dispatch_new(gpu);

	if (!dispatch) {
		gpu->broken = "out of memory";
		return NULL;
	}
	dispatch->queue = queue;
	dispatch->index = queue->fetched;
	dispatch->packet = gpu_queue_slot(queue, queue->fetched)->packet;
	dispatch->since_ns = gpu->now_ns;
	gpu_timer_init(&dispatch->timer, GPU_TIMER_WORKGROUP, dispatch);
	gpu_timer_init(&dispatch->completion, GPU_TIMER_COMPLETION, dispatch);
	gpu_list_init(&dispatch->want_link);
	gpu_list_init(&dispatch->running_link);
	gpu_list_init(&dispatch->spin.link);
	dispatch->spin.dispatch = dispatch;
	gpu_list_add(&queue->dispatches, &dispatch->queue_link);
	queue->fetched++;
	queue->unfinished++;
	if (gpu->config.rptr_at_fetch)
		queue->read = queue->fetched;
	gpu_emit(gpu, GP_GPU_EVENT_FETCH, queue, dispatch, 0, 0);
	if (dispatch->packet.type == GP_GPU_KERNEL)
		gpu_workgroup_init(dispatch);
	return dispatch;
}

void gpu_dispatch_finish(struct gpu_dispatch *dispatch)
{
	struct gpu_queue *queue = dispatch->queue;

	GPU_ASSERT(!dispatch->finished && !dispatch->fresh && !dispatch->saved_count && !dispatch->inflight);
	dispatch->finished = true;
	dispatch->active = false;
	queue->unfinished--;
	gpu_timer_arm(queue->gpu, &dispatch->completion,
		      gpu_add_ns(queue->gpu->now_ns, (uint64_t)gp_desc_get(queue->gpu->desc, GP_DESC_SIGNAL_NS)));
	gpu_queue_update(queue);
	gpu_queue_mark(queue);
}

void gpu_dispatch_complete(struct gpu_dispatch *dispatch)
{
	struct gpu_queue *queue = dispatch->queue;
	struct gp_gpu *gpu = queue->gpu;
	uint32_t signal = dispatch->packet.signal;

	GPU_ASSERT(dispatch->packet.type != GP_GPU_KERNEL || dispatch->done == dispatch->packet.kernel.workgroups);
	queue->completed++;
	if (!gpu->config.rptr_at_fetch) {
		gpu_queue_slot(queue, dispatch->index)->complete = true;
		while (queue->read < queue->fetched && gpu_queue_slot(queue, queue->read)->complete)
			queue->read++;
	}
	gpu_emit(gpu, GP_GPU_EVENT_END, queue, dispatch, dispatch->done, 0);
	gpu_list_remove(&dispatch->queue_link);
	dispatch_free(gpu, dispatch);
	if (signal)
		gpu_signal_write(gpu, signal, gpu_signal_value(gpu, signal) - 1);
}

void gpu_queue_drop(struct gpu_queue *queue)
{
	struct gp_gpu *gpu = queue->gpu;

	gpu_copy_drop(queue);
	while (!gpu_list_empty(&queue->dispatches)) {
		struct gpu_dispatch *dispatch = gpu_container(queue->dispatches.next, struct gpu_dispatch, queue_link);

		if (dispatch->packet.type == GP_GPU_KERNEL && !dispatch->finished)
			gpu_workgroup_drop(dispatch);
		gpu_timer_cancel(gpu, &dispatch->completion);
		gpu_list_remove(&dispatch->queue_link);
		dispatch_free(gpu, dispatch);
	}
	queue->unfinished = 0;
	queue->visible = queue->fetched;
	gpu_queue_set_open(queue, false, false);
	gpu_pipe_leave(queue);
	if (queue->pipe)
		queue->pipe->slots[queue->slot] = NULL;
	gpu_pipe_forget(&queue->own);
	for (uint32_t i = 0; i < gpu->mapped_count; i++)
		if (gpu->mapped[i] == queue)
			gpu->mapped[i] = NULL;
	if (queue->runlist_index < gpu->runlist_count && gpu->runlist[queue->runlist_index] == queue)
		gpu->runlist[queue->runlist_index] = NULL;
	queue_wait_none(queue);
	gpu_timer_cancel(gpu, &queue->doorbell);
	gpu_list_remove(&queue->link);
	if (!--queue->process->queue_count)
		gpu->process_count--;
	gpu->queues[queue->id] = NULL;
	gpu->queue_count--;
	free(queue->ring);
	free(queue);
}
