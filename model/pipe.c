/* SPDX-License-Identifier: MIT */
/*
 * Pipes of the command processor: one queue at a time each. Owns the choice of the queue a pipe serves and the taking
 * of packets. Never touches the compute units: it tells the workgroup engine which kernel may dispatch.
 *
 * What a pipe does when the head packet of its queue is blocked is not public, hence two alternatives (blocked_head):
 * hold, it stays until its quantum is over; rotate, it moves on at once. Either way an empty queue is left at once, and
 * a quantum ends only if another queue of the pipe has packets. Hardware priorities choose among the queues of a pipe
 * at packet boundaries.
 */
#include "model/gpu_internal.h"

enum pipe_head { PIPE_EMPTY, PIPE_BLOCKED, PIPE_READY, PIPE_DISPATCHING };

void gpu_pipe_init(struct gpu_pipe *pipe, struct gp_gpu *gpu, uint32_t index, struct gpu_queue **slots,
		   uint32_t slot_count)
{
	*pipe = (struct gpu_pipe){ .gpu = gpu,
				   .index = index,
				   .slots = slots,
				   .slot_count = slot_count,
				   .last = slot_count - 1u };
	gpu_timer_init(&pipe->timer, GPU_TIMER_PIPE, pipe);
	gpu_timer_init(&pipe->quantum, GPU_TIMER_QUANTUM, pipe);
}

void gpu_pipe_mark(struct gpu_pipe *pipe)
{
	struct gp_gpu *gpu = pipe->gpu;

	if (pipe->marked)
		return;
	pipe->marked = true;
	pipe->next_marked = NULL;
	if (gpu->marked_last)
		gpu->marked_last->next_marked = pipe;
	else
		gpu->marked_first = pipe;
	gpu->marked_last = pipe;
}

void gpu_pipe_forget(struct gpu_pipe *pipe)
{
	struct gp_gpu *gpu = pipe->gpu;
	struct gpu_pipe *before = NULL;

	if (!gpu || !pipe->marked)
		return;
	for (struct gpu_pipe *at = gpu->marked_first; at != pipe; at = at->next_marked)
		before = at;
	if (before)
		before->next_marked = pipe->next_marked;
	else
		gpu->marked_first = pipe->next_marked;
	if (gpu->marked_last == pipe)
		gpu->marked_last = before;
	pipe->marked = false;
}

/* The oldest kernel of the queue with workgroups to dispatch. There is more than one only after gp_gpu_kill(). */
static struct gpu_dispatch *pipe_undispatched(const struct gpu_queue *queue)
{
	struct gpu_dispatch *dispatch;
	struct gpu_list *node = queue->dispatches.prev;

	if (!queue->undispatched)
		return NULL;
	dispatch = gpu_container(node, struct gpu_dispatch, queue_link);
	if (queue->undispatched == 1 && dispatch->fresh)
		return dispatch;
	for (node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		dispatch = gpu_container(node, struct gpu_dispatch, queue_link);
		if (dispatch->fresh)
			return dispatch;
	}
	GPU_ASSERT(false);
	return NULL;
}

static enum pipe_head pipe_head(struct gpu_queue *queue)
{
	const struct gp_gpu_packet *packet;

	if (!gpu_queue_runs(queue))
		return PIPE_EMPTY;
	if (queue->undispatched)
		return PIPE_DISPATCHING;
	if (queue->visible == queue->fetched)
		return PIPE_EMPTY;
	packet = &gpu_queue_slot(queue, queue->fetched)->packet;
	if (packet->barrier && queue->unfinished)
		return PIPE_BLOCKED;
	if (packet->type != GP_GPU_KERNEL && !gpu_queue_deps_met(queue, packet))
		return PIPE_BLOCKED;
	return PIPE_READY;
}

/* The queue that comes next in the round, the highest hardware priority first; NULL: none has a head like that. */
static struct gpu_queue *pipe_next(const struct gpu_pipe *pipe, enum pipe_head head_min, uint32_t priority_min)
{
	struct gpu_queue *best = NULL;

	for (uint32_t i = 1; i <= pipe->slot_count; i++) {
		struct gpu_queue *queue = pipe->slots[(pipe->last + i) % pipe->slot_count];

		if (!queue || queue == pipe->current || queue->priority < priority_min)
			continue;
		if (best && queue->priority <= best->priority)
			continue;
		if (pipe_head(queue) >= head_min)
			best = queue;
	}
	return best;
}

void gpu_pipe_leave(struct gpu_queue *queue)
{
	struct gpu_pipe *pipe = queue->pipe;
	struct gpu_dispatch *dispatch;

	if (!pipe || pipe->current != queue)
		return;
	dispatch = pipe_undispatched(queue);
	if (dispatch && dispatch->dispatching) {
		dispatch->dispatching = false;
		gpu_workgroup_update(dispatch);
	}
	gpu_timer_cancel(pipe->gpu, &pipe->timer);
	gpu_timer_cancel(pipe->gpu, &pipe->quantum);
	pipe->current = NULL;
	pipe->decoding = pipe->switching = false;
	gpu_pipe_mark(pipe);
}

void gpu_pipe_reset(struct gpu_pipe *pipe)
{
	if (pipe->current)
		gpu_pipe_leave(pipe->current);
}

static void pipe_attach(struct gpu_pipe *pipe, struct gpu_queue *queue)
{
	if (pipe->current)
		gpu_pipe_leave(pipe->current);
	pipe->switching = pipe->served && pipe->last != queue->slot;
	pipe->served = true;
	pipe->last = queue->slot;
	pipe->current = queue;
	pipe->attached_ns = pipe->gpu->now_ns;
}

/* Who should be served instead of the current queue; NULL: nobody. */
static struct gpu_queue *pipe_choose(const struct gpu_pipe *pipe, enum pipe_head head)
{
	bool rotates = gp_desc_get(pipe->gpu->desc, GP_DESC_BLOCKED_HEAD) != 0;
	enum pipe_head wanted = rotates ? PIPE_READY : PIPE_BLOCKED;
	uint64_t quantum_ns = (uint64_t)gp_desc_get(pipe->gpu->desc, GP_DESC_QUEUE_QUANTUM);
	bool is_over = pipe->current && pipe->gpu->now_ns - pipe->attached_ns >= quantum_ns;
	struct gpu_queue *next;

	switch (head) {
	case PIPE_EMPTY:
		/* A pipe with hold goes to whoever comes next in the round; an idle one to whoever can go on. */
		next = pipe->current ? pipe_next(pipe, wanted, 0) : pipe_next(pipe, PIPE_READY, 0);
		return next || rotates ? next : pipe_next(pipe, PIPE_BLOCKED, 0);
	case PIPE_BLOCKED:
		if (rotates || is_over)
			return pipe_next(pipe, wanted, 0);
		return pipe_next(pipe, PIPE_READY, pipe->current->priority + 1u);
	case PIPE_READY:
		return pipe_next(pipe, is_over ? wanted : PIPE_READY, pipe->current->priority + (is_over ? 0 : 1u));
	case PIPE_DISPATCHING: return is_over ? pipe_next(pipe, wanted, pipe->current->priority) : NULL;
	}
	return NULL;
}

static void pipe_take(struct gpu_pipe *pipe)
{
	struct gpu_dispatch *dispatch = gpu_queue_fetch(pipe->current);

	if (!dispatch)
		return;
	if (dispatch->packet.type == GP_GPU_KERNEL) {
		dispatch->dispatching = true;
		gpu_workgroup_update(dispatch);
	} else {
		gpu_dispatch_finish(dispatch);
	}
	gpu_pipe_mark(pipe);
}

static void pipe_dispatch(struct gpu_pipe *pipe)
{
	struct gpu_dispatch *dispatch = pipe_undispatched(pipe->current);

	if (dispatch->dispatching)
		return;
	dispatch->dispatching = true;
	gpu_workgroup_update(dispatch);
}

/* Begins with the head of the current queue, after what changing to it and reading the packet cost. */
static void pipe_serve(struct gpu_pipe *pipe, enum pipe_head head)
{
	const struct gp_desc *desc = pipe->gpu->desc;
	uint64_t delay_ns = pipe->switching ? (uint64_t)gp_desc_get(desc, GP_DESC_PIPE_SWITCH_NS) : 0;

	if (head == PIPE_READY) {
		delay_ns += (uint64_t)gp_desc_get(desc, GP_DESC_PACKET_NS);
		pipe->decoding = true;
	} else if (!delay_ns) {
		pipe->switching = false;
		pipe_dispatch(pipe);
		return;
	}
	gpu_timer_arm(pipe->gpu, &pipe->timer, gpu_add_ns(pipe->gpu->now_ns, delay_ns));
}

void gpu_pipe_expire(struct gpu_pipe *pipe)
{
	bool decoded = pipe->decoding;

	pipe->decoding = pipe->switching = false;
	if (decoded && pipe_head(pipe->current) == PIPE_READY)
		pipe_take(pipe);
	gpu_pipe_mark(pipe);
}

void gpu_pipe_step(struct gpu_pipe *pipe)
{
	struct gp_gpu *gpu = pipe->gpu;
	struct gpu_queue *next;
	enum pipe_head head;

	/* While a packet is being read or a change of queues is under way nothing is decided. */
	if (gpu->halt != GPU_RUNNING || gpu->draining || pipe->timer.heap_index != GPU_NOWHERE)
		return;
	head = pipe->current ? pipe_head(pipe->current) : PIPE_EMPTY;
	next = pipe_choose(pipe, head);
	if (next) {
		pipe_attach(pipe, next);
		head = pipe_head(next);
	} else if (head == PIPE_EMPTY) {
		gpu_pipe_reset(pipe);
		return;
	}
	if (head >= PIPE_READY)
		pipe_serve(pipe, head);

	gpu_timer_cancel(gpu, &pipe->quantum);
	if (pipe->slot_count > 1 && pipe_next(pipe, PIPE_BLOCKED, 0)) {
		uint64_t end_ns =
			gpu_add_ns(pipe->attached_ns, (uint64_t)gp_desc_get(gpu->desc, GP_DESC_QUEUE_QUANTUM));

		if (end_ns > gpu->now_ns)
			gpu_timer_arm(gpu, &pipe->quantum, end_ns);
	}
}
