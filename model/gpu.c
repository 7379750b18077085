/* SPDX-License-Identifier: MIT */
/*
 * The GPU as its drivers see it: time, the event queue, processes and queues coming and going, counters. Owns the order
 * in which things happen; what happens is decided in the other files of this folder.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/gpu_internal.h"

#define GPU_EVENT_FIRST 256u

uint64_t gpu_add_ns(uint64_t a, uint64_t b)
{
	return b >= GP_GPU_NEVER_NS - 1u - a ? GP_GPU_NEVER_NS - 1u : a + b;
}

uint64_t gpu_bytes_ns(uint64_t size, int64_t bandwidth)
{
	gpu_u128 ns = ((gpu_u128)size * 1000000000u + (uint64_t)bandwidth - 1u) / (uint64_t)bandwidth;

	return ns < GP_GPU_NEVER_NS / 4u ? (uint64_t)ns : GP_GPU_NEVER_NS / 4u;
}

/* Timers: a binary heap, earliest first. */

static bool timer_before(const struct gpu_timer *a, const struct gpu_timer *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void timer_put(struct gp_gpu *gpu, uint32_t index, struct gpu_timer *timer)
{
	gpu->heap[index] = timer;
	timer->heap_index = index;
}

static void timer_sift(struct gp_gpu *gpu, struct gpu_timer *timer, uint32_t index)
{
	while (index && timer_before(timer, gpu->heap[(index - 1u) / 2u])) {
		timer_put(gpu, index, gpu->heap[(index - 1u) / 2u]);
		index = (index - 1u) / 2u;
	}
	for (;;) {
		uint32_t child = index * 2u + 1u;

		if (child + 1u < gpu->heap_count && timer_before(gpu->heap[child + 1u], gpu->heap[child]))
			child++;
		if (child >= gpu->heap_count || timer_before(timer, gpu->heap[child]))
			break;
		timer_put(gpu, index, gpu->heap[child]);
		index = child;
	}
	timer_put(gpu, index, timer);
}

void gpu_timer_init(struct gpu_timer *timer, enum gpu_timer_kind kind, void *owner)
{
	*timer = (struct gpu_timer){ .heap_index = GPU_NOWHERE, .kind = kind, .owner = owner };
}

void gpu_timer_arm(struct gp_gpu *gpu, struct gpu_timer *timer, uint64_t at_ns)
{
	if (timer->heap_index != GPU_NOWHERE && timer->at_ns == at_ns)
		return;
	timer->at_ns = at_ns;
	timer->order = gpu->timer_order++;
	if (timer->heap_index == GPU_NOWHERE) {
		if (gpu->heap_count == gpu->heap_capacity) {
			uint32_t capacity = gpu->heap_capacity ? gpu->heap_capacity * 2u : 256u;
			struct gpu_timer **heap = realloc(gpu->heap, capacity * sizeof(struct gpu_timer *));

			if (!heap) {
				gpu->broken = "out of memory";
				return;
			}
			gpu->heap = heap;
			gpu->heap_capacity = capacity;
		}
		timer->heap_index = gpu->heap_count++;
	}
	timer_sift(gpu, timer, timer->heap_index);
}

void gpu_timer_cancel(struct gp_gpu *gpu, struct gpu_timer *timer)
{
	uint32_t index = timer->heap_index;
	struct gpu_timer *last;

	if (index == GPU_NOWHERE)
		return;
	timer->heap_index = GPU_NOWHERE;
	last = gpu->heap[--gpu->heap_count];
	if (last != timer)
		timer_sift(gpu, last, index);
}

/* Events. */

static bool event_grow(struct gp_gpu *gpu)
{
	uint32_t capacity = gpu->event_capacity ? gpu->event_capacity * 2u : GPU_EVENT_FIRST;
	struct gp_gpu_event *events = capacity ? malloc(capacity * sizeof(*events)) : NULL;

	if (!events)
		return false;
	for (uint32_t i = 0; i < gpu->event_count; i++)
		events[i] = gpu->events[(gpu->event_head + i) & (gpu->event_capacity - 1u)];
	free(gpu->events);
	gpu->events = events;
	gpu->event_capacity = capacity;
	gpu->event_head = 0;
	return true;
}

void gpu_emit(struct gp_gpu *gpu, enum gp_gpu_event_type type, const struct gpu_queue *queue,
	      const struct gpu_dispatch *dispatch, uint64_t value, int32_t error)
{
	struct gp_gpu_event event = {
		.time_ns = gpu->now_ns,
		.type = type,
		.value = value,
		.error = error,
		.queue = UINT32_MAX,
		.pipe = UINT32_MAX,
		.slot = UINT32_MAX,
	};

	if (queue) {
		event.queue = queue->id;
		/* The kernel's own queues hold slots 0 and 1 of each pipe. */
		if (queue->pipe && queue->pipe != &queue->own) {
			event.pipe = queue->pipe->index;
			event.slot = queue->slot + 2u;
		}
	}
	if (dispatch) {
		event.tag = dispatch->packet.tag;
		event.packet = dispatch->index;
	}
	if (gpu->event_count == gpu->event_capacity && !event_grow(gpu)) {
		gpu->broken = "out of memory: events were lost";
		return;
	}
	gpu->events[(gpu->event_head + gpu->event_count++) & (gpu->event_capacity - 1u)] = event;
}

bool gp_gpu_poll(struct gp_gpu *gpu, struct gp_gpu_event *ret_event)
{
	if (!gpu->event_count)
		return false;
	*ret_event = gpu->events[gpu->event_head];
	gpu->event_head = (gpu->event_head + 1u) & (gpu->event_capacity - 1u);
	gpu->event_count--;
	return true;
}

/* Time. */

static void gpu_fire(struct gp_gpu *gpu, struct gpu_timer *timer)
{
	switch (timer->kind) {
	case GPU_TIMER_DOORBELL: gpu_queue_see(timer->owner); break;
	case GPU_TIMER_WORKGROUP: gpu_workgroup_expire(timer->owner); break;
	case GPU_TIMER_COMPLETION: gpu_dispatch_complete(timer->owner); break;
	case GPU_TIMER_PIPE: gpu_pipe_expire(timer->owner); break;
	case GPU_TIMER_QUANTUM: gpu_pipe_mark(timer->owner); break;
	case GPU_TIMER_COPY: gpu_copy_expire(timer->owner); break;
	case GPU_TIMER_TRANSACTION: gpu_transaction_expire(gpu); break;
	case GPU_TIMER_SLICE: gpu_runlist_slice_end(gpu); break;
	case GPU_TIMER_CONTEXT: gpu_context_expire(gpu); break;
	case GPU_TIMER_ANNOUNCE: gpu_context_ready(timer->owner); break;
	}
}

void gpu_settle(struct gp_gpu *gpu)
{
	for (;;) {
		struct gpu_pipe *pipe = gpu->marked_first;

		if (gpu->space_changed) {
			gpu_workgroup_arbitrate(gpu);
		} else if (pipe) {
			gpu->marked_first = pipe->next_marked;
			if (!gpu->marked_first)
				gpu->marked_last = NULL;
			pipe->marked = false;
			gpu_pipe_step(pipe);
		} else if (gpu->copy_marked) {
			gpu_copy_step(gpu);
		} else if (gpu->context_marked) {
			gpu_context_step(gpu);
		} else if (gpu->draining && gpu_list_empty(&gpu->running)) {
			gpu_drain_over(gpu);
		} else {
			break;
		}
	}
	gpu_workgroup_choose_solo(gpu);
}

uint64_t gp_gpu_next_ns(const struct gp_gpu *gpu)
{
	return gpu->heap_count ? gpu->heap[0]->at_ns : GP_GPU_NEVER_NS;
}

void gp_gpu_advance(struct gp_gpu *gpu, uint64_t now_ns)
{
	gpu_settle(gpu);
	while (gpu->heap_count && gpu->heap[0]->at_ns <= now_ns && !gpu->broken) {
		uint64_t at_ns = gpu->heap[0]->at_ns;

		GPU_ASSERT(at_ns >= gpu->now_ns);
		gpu->now_ns = at_ns;
		while (gpu->heap_count && gpu->heap[0]->at_ns == at_ns) {
			struct gpu_timer *timer = gpu->heap[0];

			gpu_timer_cancel(gpu, timer);
			gpu_fire(gpu, timer);
		}
		gpu_settle(gpu);
	}
	if (now_ns > gpu->now_ns)
		gpu->now_ns = now_ns;
}

int gpu_begin(struct gp_gpu *gpu, uint64_t now_ns)
{
	if (now_ns < gpu->now_ns || now_ns >= GP_GPU_NEVER_NS / 2u)
		return -EINVAL;
	gp_gpu_advance(gpu, now_ns);
	return gpu->broken ? -ENOMEM : 0;
}

struct gpu_queue *gpu_queue_find(const struct gp_gpu *gpu, uint32_t queue)
{
	return queue < GP_GPU_QUEUE_MAX ? gpu->queues[queue] : NULL;
}

int gpu_queue_begin(struct gp_gpu *gpu, uint32_t queue_id, uint64_t now_ns, struct gpu_queue **ret_queue)
{
	struct gpu_queue *queue;
	int r = gpu_begin(gpu, now_ns);

	if (r < 0)
		return r;
	queue = gpu_queue_find(gpu, queue_id);
	if (!queue)
		return -ENOENT;
	*ret_queue = queue;
	return 0;
}

struct gpu_process *gpu_process_find(const struct gp_gpu *gpu, uint32_t process)
{
	return process < GP_GPU_PROCESS_MAX ? gpu->processes[process] : NULL;
}

/* Life. */

static int gpu_create_parts(struct gp_gpu *gpu)
{
	uint32_t slot_count = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_SLOT_COUNT), per_pipe, per_engine;

	gpu->queues = calloc(GP_GPU_QUEUE_MAX, sizeof(struct gpu_queue *));
	if (!gpu->queues)
		return -ENOMEM;
	if (gpu->scheduler != GP_SCHEDULER_TSG) {
		gpu->pipe_count = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_PIPE_COUNT);
		per_pipe = (slot_count + gpu->pipe_count - 1u) / gpu->pipe_count;
		gpu->pipes = calloc(gpu->pipe_count, sizeof(*gpu->pipes));
		gpu->pipe_slots = calloc((size_t)gpu->pipe_count * per_pipe, sizeof(struct gpu_queue *));
		gpu->mapped = calloc(slot_count, sizeof(struct gpu_queue *));
		if (!gpu->pipes || !gpu->pipe_slots || !gpu->mapped)
			return -ENOMEM;
		for (uint32_t i = 0; i < gpu->pipe_count; i++)
			gpu_pipe_init(&gpu->pipes[i], gpu, i, &gpu->pipe_slots[(size_t)i * per_pipe], per_pipe);
	}
	gpu->engine_count = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_COPY_ENGINE_COUNT);
	per_engine = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_COPY_QUEUE_COUNT);
	gpu->engines = calloc(gpu->engine_count, sizeof(*gpu->engines));
	gpu->engine_queues = calloc((size_t)gpu->engine_count * per_engine, sizeof(struct gpu_queue *));
	if (!gpu->engines || !gpu->engine_queues)
		return -ENOMEM;
	for (uint32_t i = 0; i < gpu->engine_count; i++) {
		gpu->engines[i].gpu = gpu;
		gpu->engines[i].queues = &gpu->engine_queues[(size_t)i * per_engine];
		gpu->engines[i].queue_count = per_engine;
		gpu_timer_init(&gpu->engines[i].timer, GPU_TIMER_COPY, &gpu->engines[i]);
	}
	return 0;
}

int gp_gpu_create(const struct gp_gpu_config *config, struct gp_gpu **ret_gpu)
{
	struct gp_gpu *gpu = calloc(1, sizeof(*gpu));
	int r;

	if (!gpu)
		return -ENOMEM;
	gpu->config = *config;
	gpu->desc = config->desc;
	gpu->scheduler = (enum gp_scheduler)gp_desc_get(gpu->desc, GP_DESC_SCHEDULER);
	gpu->slice_processes[0] = gpu->slice_processes[1] = GPU_NOWHERE;
	gpu->capacity = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_CU_COUNT) * GPU_CU_UNITS;
	gpu_list_init(&gpu->process_list);
	gpu_list_init(&gpu->running);
	for (uint32_t i = 0; i < GPU_CLASS_COUNT; i++)
		gpu_list_init(&gpu->want[i]);
	gpu_timer_init(&gpu->transaction, GPU_TIMER_TRANSACTION, gpu);
	gpu_timer_init(&gpu->slice, GPU_TIMER_SLICE, gpu);
	gpu_timer_init(&gpu->context_timer, GPU_TIMER_CONTEXT, gpu);
	r = gpu_create_parts(gpu);
	if (r < 0) {
		gp_gpu_destroy(gpu);
		return r;
	}
	*ret_gpu = gpu;
	return 0;
}

static void gpu_drop_queues(struct gp_gpu *gpu)
{
	for (uint32_t i = 0; i < GP_GPU_QUEUE_MAX && gpu->queue_count; i++)
		if (gpu->queues[i])
			gpu_queue_drop(gpu->queues[i]);
}

void gp_gpu_destroy(struct gp_gpu *gpu)
{
	if (!gpu)
		return;
	if (gpu->queues)
		gpu_drop_queues(gpu);
	gpu_transaction_forget(gpu);
	for (uint32_t i = 0; i < GP_GPU_PROCESS_MAX; i++)
		free(gpu->processes[i]);
	while (gpu->free_list) {
		struct gpu_dispatch *dispatch = gpu->free_list;

		gpu->free_list = (struct gpu_dispatch *)(void *)dispatch->queue_link.next;
		free(dispatch);
	}
	free(gpu->heap);
	free(gpu->events);
	free(gpu->queues);
	free(gpu->signals);
	free(gpu->signal_free);
	free(gpu->pipes);
	free(gpu->pipe_slots);
	free(gpu->engines);
	free(gpu->engine_queues);
	free(gpu->runlist);
	free(gpu->mapped);
	free(gpu->slices);
	free(gpu);
}

int gp_gpu_process_add(struct gp_gpu *gpu, uint32_t *ret_process)
{
	struct gpu_process *process;
	uint32_t tries = 0;

	/* Ids come back as late as possible. */
	while (gpu->processes[gpu->process_next]) {
		gpu->process_next = (gpu->process_next + 1u) % GP_GPU_PROCESS_MAX;
		if (++tries == GP_GPU_PROCESS_MAX)
			return -ENOSPC;
	}
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->gpu = gpu;
	process->id = gpu->process_next;
	gpu->process_next = (gpu->process_next + 1u) % GP_GPU_PROCESS_MAX;
	gpu_list_init(&process->queues);
	gpu_list_init(&process->working);
	gpu_timer_init(&process->announce, GPU_TIMER_ANNOUNCE, process);
	gpu_list_add(gpu->process_list.next, &process->link);
	gpu->processes[process->id] = process;
	*ret_process = process->id;
	return 0;
}

int gp_gpu_process_remove(struct gp_gpu *gpu, uint32_t process_id, uint64_t now_ns)
{
	struct gpu_process *process;
	int r = gpu_begin(gpu, now_ns);

	if (r < 0)
		return r;
	process = gpu_process_find(gpu, process_id);
	if (!process)
		return -ENOENT;
	if (process->queue_count) {
		r = gpu_transaction_update(gpu);
		if (r < 0)
			return r;
	}
	while (!gpu_list_empty(&process->queues))
		gpu_queue_drop(gpu_container(process->queues.next, struct gpu_queue, link));
	gpu_context_drop(process);
	gpu_list_remove(&process->link);
	gpu->processes[process_id] = NULL;
	free(process);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

/* A rebuild must not fail: its tables grow here. */
static int gpu_grow_tables(struct gp_gpu *gpu)
{
	uint32_t capacity = gpu->table_capacity ? gpu->table_capacity * 2u : 64u;
	struct gpu_queue **runlist;
	struct gpu_slice *slices;

	if (gpu->queue_count < gpu->table_capacity)
		return 0;
	runlist = realloc(gpu->runlist, capacity * sizeof(struct gpu_queue *));
	if (!runlist)
		return -ENOMEM;
	gpu->runlist = runlist;
	slices = realloc(gpu->slices, capacity * sizeof(*slices));
	if (!slices)
		return -ENOMEM;
	gpu->slices = slices;
	gpu->table_capacity = capacity;
	return 0;
}

static void gpu_queue_init(struct gpu_queue *queue, struct gpu_process *process, const struct gp_gpu_queue_attr *attr)
{
	struct gp_gpu *gpu = process->gpu;

	queue->gpu = gpu;
	queue->process = process;
	queue->kind = attr->kind;
	queue->ring_size = attr->ring_size ? attr->ring_size : 1024u;
	queue->slot = GPU_NOWHERE;
	gpu_list_init(&queue->working_link);
	gpu_list_init(&queue->dispatches);
	gpu_queue_set(queue, attr->priority, attr->cu_count);
	gpu_timer_init(&queue->doorbell, GPU_TIMER_DOORBELL, queue);
	for (uint32_t i = 0; i < GP_GPU_DEPS; i++) {
		gpu_list_init(&queue->waiters[i].link);
		queue->waiters[i].queue = queue;
	}
	if (gpu->scheduler == GP_SCHEDULER_TSG && attr->kind == GP_GPU_COMPUTE) {
		queue->own_slot = queue;
		queue->slot = 0;
		gpu_pipe_init(&queue->own, gpu, GPU_NOWHERE, &queue->own_slot, 1);
		queue->pipe = &queue->own;
	}
}

static struct gpu_copy_engine *gpu_pick_engine(struct gp_gpu *gpu, struct gpu_queue ***ret_place)
{
	for (uint32_t i = 0; i < gpu->engine_count; i++) {
		struct gpu_copy_engine *engine = &gpu->engines[(gpu->copy_queue_next + i) % gpu->engine_count];

		for (uint32_t j = 0; j < engine->queue_count; j++) {
			if (engine->queues[j])
				continue;
			*ret_place = &engine->queues[j];
			return engine;
		}
	}
	return NULL;
}

static int gpu_check_attr(const struct gp_gpu_queue_attr *attr)
{
	if (attr->kind != GP_GPU_COMPUTE && attr->kind != GP_GPU_COPY)
		return -EINVAL;
	if (attr->ring_size &&
	    (attr->ring_size < 2u || attr->ring_size > GP_GPU_RING_MAX || (attr->ring_size & (attr->ring_size - 1u))))
		return -EINVAL;
	return attr->priority > 15u ? -EINVAL : 0;
}

int gp_gpu_queue_add(struct gp_gpu *gpu, uint32_t process_id, const struct gp_gpu_queue_attr *attr, uint64_t now_ns,
		     uint32_t *ret_queue)
{
	struct gpu_process *process = gpu_process_find(gpu, process_id);
	struct gpu_copy_engine *engine = NULL;
	struct gpu_queue *queue, **place = NULL;
	int r = gpu_check_attr(attr);

	if (r < 0)
		return r;
	if (!process)
		return -ENOENT;
	if (gpu->queue_count == GP_GPU_QUEUE_MAX)
		return -ENOSPC;
	r = gpu_begin(gpu, now_ns);
	if (r < 0)
		return r;
	if (attr->kind == GP_GPU_COPY) {
		engine = gpu_pick_engine(gpu, &place);
		if (!engine)
			return -ENOSPC;
	}
	r = gpu_grow_tables(gpu);
	if (r < 0)
		return r;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	gpu_queue_init(queue, process, attr);
	while (gpu->queues[gpu->queue_next])
		gpu->queue_next = (gpu->queue_next + 1u) % GP_GPU_QUEUE_MAX;
	queue->id = gpu->queue_next;
	gpu->queue_next = (gpu->queue_next + 1u) % GP_GPU_QUEUE_MAX;
	gpu->queues[queue->id] = queue;
	gpu->queue_count++;
	if (!process->queue_count++)
		gpu->process_count++;
	gpu_list_add(process->queues.next, &queue->link);
	if (engine) {
		*place = queue;
		queue->engine = engine;
		gpu->copy_queue_count++;
		gpu->copy_queue_next++;
	}
	gpu_queue_set_open(queue, !attr->closed, false);
	r = attr->closed ? 0 : gpu_transaction_update(gpu);
	if (r < 0) {
		gpu_queue_drop(queue);
		return r;
	}
	*ret_queue = queue->id;
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

int gp_gpu_queue_remove(struct gp_gpu *gpu, uint32_t queue_id, uint64_t now_ns)
{
	struct gpu_queue *queue;
	int r = gpu_queue_begin(gpu, queue_id, now_ns, &queue);

	if (r < 0)
		return r;
	r = queue->open ? gpu_transaction_update(gpu) : 0;
	if (r < 0)
		return r;
	gpu_queue_drop(queue);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}
