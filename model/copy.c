/* SPDX-License-Identifier: MIT */
/*
 * Copy engines: queue i belongs to engine i mod engines; an engine moves one packet at a time and goes round its queues
 * packet by packet. Owns what an engine does; copies go on while the device is halted, and a closed queue stops at a
 * hardware packet boundary (GPU_COPY_CHUNK_SIZE), from where it goes on.
 */
#include "model/gpu_internal.h"

void gpu_copy_mark(struct gpu_copy_engine *engine)
{
	engine->marked = true;
	engine->gpu->copy_marked = true;
}

static bool copy_is_ready(struct gpu_queue *queue)
{
	const struct gp_gpu_packet *packet;

	if (!gpu_queue_runs(queue))
		return false;
	if (queue->copy)
		return true;
	if (queue->visible == queue->fetched)
		return false;
	packet = &gpu_queue_slot(queue, queue->fetched)->packet;
	if (packet->barrier && queue->unfinished)
		return false;
	return packet->type == GP_GPU_COPY_BYTES || gpu_queue_deps_met(queue, packet);
}

static void copy_begin(struct gpu_copy_engine *engine, struct gpu_queue *queue)
{
	struct gp_gpu *gpu = engine->gpu;
	struct gpu_dispatch *dispatch = queue->copy;
	uint64_t end_ns;

	if (!dispatch) {
		dispatch = gpu_queue_fetch(queue);
		if (!dispatch)
			return;
		if (dispatch->packet.type != GP_GPU_COPY_BYTES) {
			gpu_dispatch_finish(dispatch);
			return;
		}
		dispatch->copy_left = dispatch->packet.copy_size;
		queue->copy = dispatch;
	}
	engine->active = queue;
	engine->stop_left = 0;
	dispatch->active = true;
	dispatch->copy_begin_ns = gpu_add_ns(gpu->now_ns, (uint64_t)gp_desc_get(gpu->desc, GP_DESC_COPY_LATENCY));
	end_ns = gpu_add_ns(dispatch->copy_begin_ns,
			    gpu_bytes_ns(dispatch->copy_left, gp_desc_get(gpu->desc, GP_DESC_COPY_BANDWIDTH)));
	gpu_queue_busy_begin(queue);
	gpu_emit(gpu, GP_GPU_EVENT_START, queue, dispatch, 0, 0);
	gpu_timer_arm(gpu, &engine->timer, end_ns);
}

void gpu_copy_step(struct gp_gpu *gpu)
{
	gpu->copy_marked = false;
	for (uint32_t i = 0; i < gpu->engine_count; i++) {
		struct gpu_copy_engine *engine = &gpu->engines[i];

		if (!engine->marked)
			continue;
		engine->marked = false;
		for (uint32_t j = 0; j < engine->queue_count && !engine->active; j++) {
			struct gpu_queue *queue = engine->queues[engine->cursor];

			engine->cursor = (engine->cursor + 1u) % engine->queue_count;
			if (queue && copy_is_ready(queue))
				copy_begin(engine, queue);
		}
	}
}

void gpu_copy_expire(struct gpu_copy_engine *engine)
{
	struct gpu_queue *queue = engine->active;
	struct gpu_dispatch *dispatch = queue->copy;

	gpu_queue_busy_end(queue);
	engine->active = NULL;
	dispatch->active = false;
	dispatch->copy_left = engine->stop_left;
	if (engine->stop_left) {
		gpu_emit(engine->gpu, GP_GPU_EVENT_STOP, queue, dispatch, 0, 0);
	} else {
		queue->copy = NULL;
		gpu_dispatch_finish(dispatch);
	}
	gpu_copy_mark(engine);
}

uint64_t gpu_copy_stop(struct gpu_queue *queue)
{
	struct gpu_copy_engine *engine = queue->engine;
	struct gp_gpu *gpu = queue->gpu;
	uint64_t bandwidth = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_COPY_BANDWIDTH);
	uint64_t signal_ns = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_SIGNAL_NS);
	uint64_t moved, boundary;

	if (engine->active != queue)
		return 0;
	if (gpu->now_ns > queue->copy->copy_begin_ns)
		moved = (uint64_t)((gpu_u128)(gpu->now_ns - queue->copy->copy_begin_ns) * bandwidth / 1000000000u);
	else
		moved = 0;
	boundary = (moved / GPU_COPY_CHUNK_SIZE + 1u) * GPU_COPY_CHUNK_SIZE;
	if (engine->stop_left)
		return engine->timer.at_ns;
	/* It runs to its end; a nanosecond more, for its completion must not fall behind the transaction of the same
	 * instant. */
	if (boundary >= queue->copy->copy_left)
		return gpu_add_ns(engine->timer.at_ns, signal_ns + 1u);
	engine->stop_left = queue->copy->copy_left - boundary;
	gpu_timer_arm(gpu, &engine->timer,
		      gpu_add_ns(queue->copy->copy_begin_ns, gpu_bytes_ns(boundary, (int64_t)bandwidth)));
	return engine->timer.at_ns;
}

void gpu_copy_drop(struct gpu_queue *queue)
{
	struct gpu_copy_engine *engine = queue->engine;

	if (!engine)
		return;
	if (engine->active == queue) {
		gpu_queue_busy_end(queue);
		gpu_timer_cancel(queue->gpu, &engine->timer);
		engine->active = NULL;
	}
	queue->copy = NULL;
	for (uint32_t i = 0; i < engine->queue_count; i++)
		if (engine->queues[i] == queue)
			engine->queues[i] = NULL;
	queue->gpu->copy_queue_count--;
	gpu_copy_mark(engine);
}
