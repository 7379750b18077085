/* SPDX-License-Identifier: MIT */
/*
 * What a driver does to the device as a whole and what it can read from it: kill, reset, counters, and the check of the
 * model's own state. The check recounts everything from the dispatches up and shares no sums with the code it checks.
 */
#include <errno.h>
#include <stdlib.h>
#include "model/gpu_internal.h"

int gp_gpu_kill(struct gp_gpu *gpu, uint32_t queue_id, uint64_t now_ns)
{
	struct gpu_queue *queue;
	int r = gpu_queue_begin(gpu, queue_id, now_ns, &queue);

	if (r < 0)
		return r;
	if (queue->kind != GP_GPU_COMPUTE)
		return -EOPNOTSUPP;
	for (struct gpu_list *node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

		if (dispatch->packet.type == GP_GPU_KERNEL && !dispatch->finished) {
			uint64_t wasted = gpu_workgroup_kill(dispatch);

			/* Counting its rounds may show that it had just finished. */
			if (!dispatch->finished)
				gpu_emit(gpu, GP_GPU_EVENT_KILLED, queue, dispatch, wasted, 0);
		}
	}
	gpu_queue_mark(queue);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

int gp_gpu_reset(struct gp_gpu *gpu, uint64_t now_ns)
{
	int r = gpu_begin(gpu, now_ns);

	if (r < 0)
		return r;
	gpu_transaction_forget(gpu);
	for (uint32_t i = 0; i < GP_GPU_QUEUE_MAX && gpu->queue_count; i++)
		if (gpu->queues[i])
			gpu_queue_drop(gpu->queues[i]);
	for (uint32_t i = 0; i < GP_GPU_PROCESS_MAX; i++) {
		if (!gpu->processes[i])
			continue;
		gpu->processes[i]->announce_ns = 0;
		gpu_timer_cancel(gpu, &gpu->processes[i]->announce);
		gpu_context_ready(gpu->processes[i]);
	}
	gpu_timer_cancel(gpu, &gpu->slice);
	gpu_timer_cancel(gpu, &gpu->context_timer);
	gpu->context = gpu->context_last = NULL;
	gpu->phase = GPU_PHASE_IDLE;
	gpu->runlist_count = gpu->mapped_count = gpu->slice_count = gpu->slice_index = 0;
	gpu->slice_processes[0] = gpu->slice_processes[1] = GPU_NOWHERE;
	if (gpu->halt != GPU_RUNNING)
		gpu_emit(gpu, GP_GPU_EVENT_RUN, NULL, NULL, gpu->now_ns - gpu->halt_begin_ns, 0);
	gpu->halt = GPU_RUNNING;
	gpu->draining = gpu->slice_drains = false;
	if (gpu->oversubscribed)
		gpu_emit(gpu, GP_GPU_EVENT_OVERSUBSCRIBED, NULL, NULL, 0, 0);
	gpu->oversubscribed = false;
	gpu_emit(gpu, GP_GPU_EVENT_RESET, NULL, NULL, 0, 0);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

int gp_gpu_counters(const struct gp_gpu *gpu, uint32_t queue_id, struct gp_gpu_counters *ret_counters)
{
	const struct gpu_queue *queue = gpu_queue_find(gpu, queue_id);
	uint64_t workgroups_run, busy_ns, units = 0;
	bool resident = false;
	gpu_u128 unit_sum;

	if (!queue)
		return -ENOENT;
	workgroups_run = queue->workgroups_run;
	unit_sum = queue->unit_sum;
	busy_ns = queue->busy_ns + (queue->busy_count ? gpu->now_ns - queue->busy_begin_ns : 0);
	for (const struct gpu_list *node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		const struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

		workgroups_run += gpu_workgroup_done(dispatch) - dispatch->done;
		if (gpu->halt == GPU_RUNNING)
			unit_sum += (gpu_u128)dispatch->inflight * dispatch->share * (gpu->now_ns - dispatch->since_ns);
		resident |= dispatch->inflight || dispatch->copy_left;
		units += (uint64_t)dispatch->inflight * dispatch->share;
	}
	*ret_counters = (struct gp_gpu_counters){
		.written = queue->written,
		.fetched = queue->fetched,
		.completed = queue->completed,
		.read = queue->read,
		.workgroups_run = workgroups_run,
		.busy_ns = busy_ns,
		.unit_ns = (uint64_t)(unit_sum / gpu->capacity),
		.delay_ns = (uint64_t)(queue->delay_sum / gpu->capacity),
		.open = queue->open,
		.mapped = queue->kind == GP_GPU_COPY ? queue->open : gpu_queue_runs(queue),
		.resident = resident,
		.pipe = queue->pipe ? queue->pipe->index : GPU_NOWHERE,
		.slot = queue->pipe ? queue->slot : GPU_NOWHERE,
		.resident_cus = (uint32_t)((units + GPU_CU_UNITS - 1u) / GPU_CU_UNITS),
	};
	return 0;
}

uint32_t gp_gpu_runlist(const struct gp_gpu *gpu, uint32_t *ret_ids, uint32_t id_count, bool *ret_oversubscribed)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < gpu->runlist_count; i++) {
		if (!gpu->runlist[i])
			continue;
		if (count < id_count)
			ret_ids[count] = gpu->runlist[i]->id;
		count++;
	}
	*ret_oversubscribed = gpu->oversubscribed;
	return count;
}

void gp_gpu_runlist_use(const struct gp_gpu *gpu, struct gp_gpu_runlist_use *ret_use)
{
	*ret_use = (struct gp_gpu_runlist_use){ .queue_count = gpu->runlist_count,
						.process_count = gpu->process_count,
						.slice_count =
							gpu->oversubscribed ? gpu->slice_count : gpu->runlist_count > 0,
						.oversubscribed = gpu->oversubscribed };
	for (struct gpu_list *p = gpu->process_list.next; p != &gpu->process_list; p = p->next)
		ret_use->open_process_count += gpu_container(p, struct gpu_process, link)->open_count > 0;
}

struct check_sum {
	uint64_t used, resident_size, want_count, working_count, open_count;
};

static uint64_t check_count(const struct gpu_cohorts *cohorts)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < cohorts->count; i++)
		count += cohorts->items[i].count;
	return count;
}

static const char *check_dispatch(const struct gpu_dispatch *dispatch, struct check_sum *sum)
{
	uint64_t total = dispatch->packet.type == GP_GPU_KERNEL ? dispatch->packet.kernel.workgroups : 0;

	if ((uint64_t)dispatch->fresh + dispatch->saved_count + dispatch->inflight + dispatch->done != total)
		return "a kernel has lost or gained workgroups";
	if (check_count(&dispatch->run) + dispatch->spinning != dispatch->inflight)
		return "running workgroups are in no cohort";
	if (check_count(&dispatch->saved) != dispatch->saved_count)
		return "saved workgroups are in no cohort";
	if (dispatch->finished && dispatch->done != total)
		return "a kernel finished before its workgroups";
	if (dispatch->inflight && !gpu_queue_runs(dispatch->queue))
		return "a queue that may not run has workgroups on the device";
	if (dispatch->inflight > dispatch->slots)
		return "a kernel exceeds its CU mask";
	for (uint32_t i = 1; i < dispatch->run.count; i++)
		if (dispatch->run.items[i - 1].at_ns >= dispatch->run.items[i].at_ns)
			return "cohorts are out of order";
	sum->used += (uint64_t)dispatch->inflight * dispatch->share;
	sum->resident_size += dispatch->inflight * dispatch->save_size;
	sum->want_count += dispatch->wants;
	return NULL;
}

static const char *check_queue(const struct gpu_queue *queue, struct check_sum *sum)
{
	uint32_t unfinished = 0, undispatched = 0;

	if (queue->read > queue->fetched || queue->completed > queue->fetched || queue->fetched > queue->visible ||
	    queue->visible > queue->rung || queue->rung > queue->written)
		return "ring counters are out of order";
	if (queue->written - queue->read > queue->ring_size)
		return "a ring holds more than its size";
	for (const struct gpu_list *node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		const struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);
		const char *wrong = check_dispatch(dispatch, sum);

		if (wrong)
			return wrong;
		unfinished += !dispatch->finished;
		undispatched += dispatch->fresh != 0;
	}
	if (unfinished != queue->unfinished || undispatched != queue->undispatched)
		return "a queue has lost count of its packets";
	if (queue->pipe && queue->pipe->slots[queue->slot] != queue)
		return "a queue is not where it says it is";
	sum->working_count += queue->working;
	sum->open_count += queue->kind == GP_GPU_COMPUTE && queue->open && !queue->closing;
	return NULL;
}

const char *gp_gpu_check(const struct gp_gpu *gpu)
{
	struct check_sum sum = { 0 };
	uint32_t queue_count = 0;

	if (gpu->broken)
		return gpu->broken;
	for (const struct gpu_list *p = gpu->process_list.next; p != &gpu->process_list; p = p->next) {
		const struct gpu_process *process = gpu_container(p, struct gpu_process, link);

		for (const struct gpu_list *q = process->queues.next; q != &process->queues; q = q->next) {
			const char *wrong = check_queue(gpu_container(q, struct gpu_queue, link), &sum);

			if (wrong)
				return wrong;
			queue_count++;
		}
	}
	if (queue_count != gpu->queue_count)
		return "queues are lost";
	if (sum.used != gpu->used || sum.resident_size != gpu->resident_size)
		return "the space in use is not the sum of its users";
	if (gpu->used > gpu->capacity)
		return "more than the device is in use";
	if (sum.want_count != gpu->want_count || sum.working_count != gpu->working_count ||
	    sum.open_count != gpu->open_count)
		return "counts of queues are off";
	for (uint32_t i = 1; i < gpu->heap_count; i++)
		if (gpu->heap[i]->at_ns < gpu->heap[(i - 1u) / 2u]->at_ns)
			return "timers are out of order";
	return NULL;
}
