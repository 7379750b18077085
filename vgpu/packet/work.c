/* SPDX-License-Identifier: MIT */
/* Slices of work. Never decides what a packet means; arguments and sizes are the client's, and may change meanwhile. */
#include "vgpu/execute/execute.h"
#include "vgpu/packet/work.h"

#define WORK_SLICE_NS   500000u /* of one queue in one round of the loop */
#define WORK_SHORT_NS   50000u  /* a step that took less may be followed by a larger one */
#define WORK_GROUPS_MAX 64u     /* of a body that does not say how much it moves */
#define WORK_MOVERS_MAX 4096u   /* of one that does */

uint64_t gp_work_deadline_ns(void)
{
	return gp_vnode_clock_ns() + WORK_SLICE_NS;
}

bool gp_work_is_over(uint64_t deadline_ns)
{
	return gp_vnode_clock_ns() >= deadline_ns;
}

/* How many workgroups may be run at once, and into how many pieces a single one is cut. */
static uint32_t work_groups_max(struct gp_vdispatch *dispatch)
{
	const struct gp_body *body = dispatch->kernel.body;
	uint64_t share;

	if (!body->bytes)
		return body->is_heavy ? 1u : WORK_GROUPS_MAX;
	/* Asked for a workgroup's first piece only: its others must be of the same size. */
	if (dispatch->kernel.piece)
		return 1u;
	share = body->bytes(&dispatch->kernel) / dispatch->workgroups + 1u;
	dispatch->kernel.piece_count = (uint32_t)(share / GP_WORK_PIECE_SIZE) + 1u;
	if (share >= GP_WORK_PIECE_SIZE)
		return 1u;
	return GP_WORK_PIECE_SIZE / share < WORK_MOVERS_MAX ? (uint32_t)(GP_WORK_PIECE_SIZE / share) : WORK_MOVERS_MAX;
}

static int work_step(struct gp_vqueue *queue, struct gp_vdispatch *dispatch, uint32_t count)
{
	struct gp_kernel_call *call = &dispatch->kernel;
	uint32_t first = dispatch->workgroups_run, left = dispatch->workgroups_due - first, max;
	struct gp_vnode_counters *counters = &queue->gpu->node->counters;
	int r = 0;

	if (dispatch->has_body) {
		max = work_groups_max(dispatch);
		count = count < max ? count : max;
		count = count < left ? count : left;
		r = call->body->run(call, first, first + count);
		if (r == 0 && ++call->piece < call->piece_count)
			return 0;
		call->piece = 0;
		counters->workgroups_body += count;
	} else {
		count = left;
	}
	dispatch->workgroups_run += count;
	queue->workgroups += count;
	counters->workgroups += count;
	return r;
}

bool gp_work_run(struct gp_vqueue *queue, struct gp_vdispatch *dispatch)
{
	uint64_t begin_ns = gp_vnode_clock_ns(), deadline_ns = begin_ns + WORK_SLICE_NS;
	uint32_t count = 1;

	if (dispatch->execution)
		return gp_execute_run(dispatch->execution, deadline_ns);
	while (dispatch->workgroups_run < dispatch->workgroups_due) {
		uint64_t now_ns;

		if (work_step(queue, dispatch, count) < 0) {
			gp_vqueue_fault(queue, queue->process->fault_va);
			return true;
		}
		now_ns = gp_vnode_clock_ns();
		if (now_ns - begin_ns < WORK_SHORT_NS && count < WORK_MOVERS_MAX)
			count *= 2u;
		if (now_ns >= deadline_ns)
			break;
		begin_ns = now_ns;
	}
	return dispatch->workgroups_run >= dispatch->workgroups_due;
}

bool gp_work_turn(struct gp_vqueue *queue)
{
	if (!queue->behind)
		return false;
	queue->behind = false;
	/* Its packets are over, however far they came. */
	if (queue->error)
		return false;
	if (gp_vqueue_is_sdma(queue))
		gp_sdma_catch_up(queue);
	else
		gp_aql_catch_up(queue);
	return !queue->behind;
}

bool gp_work_is_behind(const struct gp_vproc *process)
{
	for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++) {
		const struct gp_vqueue *queue = process->queues[id];

		/* Of a queue that runs there may be no end. */
		if (queue && queue->behind && !queue->model_open)
			return true;
	}
	return false;
}
