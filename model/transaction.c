/* SPDX-License-Identifier: MIT */
/*
 * Transactions: gate changes and runlist updates, one after the other. Owns the halting of the device. On cpsch each
 * one stops everybody (KFD unmaps all dynamic queues and maps them again), on mes and tsg only the queues named.
 *
 * Known weakness: queues that come or go while an update is waiting share that update, unless a mark stands behind it;
 * KFD would halt the device for each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/gpu_internal.h"

void gpu_halt_begin(struct gp_gpu *gpu, enum gpu_halt halt)
{
	GPU_ASSERT(gpu->halt == GPU_RUNNING);
	gpu_emit(gpu, GP_GPU_EVENT_HALT, NULL, NULL, 0, 0);
	for (uint32_t i = 0; i < gpu->pipe_count; i++)
		gpu_pipe_reset(&gpu->pipes[i]);
	gpu_workgroup_freeze(gpu);
	gpu->halt = halt;
	gpu->halt_begin_ns = gpu->now_ns;
	gpu_timer_cancel(gpu, &gpu->slice);
}

void gpu_halt_end(struct gp_gpu *gpu)
{
	gpu->halt = GPU_RUNNING;
	gpu_workgroup_thaw(gpu);
	gpu_emit(gpu, GP_GPU_EVENT_RUN, NULL, NULL, gpu->now_ns - gpu->halt_begin_ns, 0);
	for (uint32_t i = 0; i < gpu->pipe_count; i++)
		gpu_pipe_mark(&gpu->pipes[i]);
	gpu_runlist_resume(gpu);
}

bool gpu_drain(struct gp_gpu *gpu)
{
	if (!gpu->config.drains || gpu->scheduler != GP_SCHEDULER_CPSCH || gpu_list_empty(&gpu->running))
		return false;
	gpu->draining = true;
	for (uint32_t i = 0; i < gpu->pipe_count; i++)
		gpu_pipe_reset(&gpu->pipes[i]);
	return true;
}

void gpu_drain_over(struct gp_gpu *gpu)
{
	bool slice = gpu->slice_drains;

	gpu->draining = gpu->slice_drains = false;
	if (slice)
		gpu_runlist_slice_end(gpu);
	if (gpu->halt == GPU_RUNNING)
		gpu_transaction_next(gpu);
	for (uint32_t i = 0; i < gpu->pipe_count; i++)
		gpu_pipe_mark(&gpu->pipes[i]);
}

static void transaction_push(struct gp_gpu *gpu, struct gpu_transaction *transaction)
{
	if (gpu->transaction_last)
		gpu->transaction_last->next = transaction;
	else
		gpu->transaction_first = transaction;
	gpu->transaction_last = transaction;
	gpu_transaction_next(gpu);
}

static void transaction_pop(struct gp_gpu *gpu)
{
	struct gpu_transaction *transaction = gpu->transaction_first;

	gpu->transaction_first = transaction->next;
	if (!gpu->transaction_first)
		gpu->transaction_last = NULL;
	free(transaction);
}

void gpu_transaction_forget(struct gp_gpu *gpu)
{
	while (gpu->transaction_first)
		transaction_pop(gpu);
	gpu_timer_cancel(gpu, &gpu->transaction);
}

int gpu_transaction_update(struct gp_gpu *gpu)
{
	struct gpu_transaction *transaction;
	bool waits = false;

	if (gpu->scheduler == GP_SCHEDULER_TSG)
		return 0;
	for (transaction = gpu->transaction_first; transaction; transaction = transaction->next)
		waits = transaction->mark ? false : waits || (transaction->update && !transaction->started);
	if (waits)
		return 0;
	transaction = calloc(1, sizeof(*transaction));
	if (!transaction)
		return -ENOMEM;
	transaction->update = true;
	transaction_push(gpu, transaction);
	return 0;
}

int gp_gpu_transact(struct gp_gpu *gpu, const struct gp_gpu_change *changes, uint32_t change_count, uint64_t seq,
		    uint64_t now_ns)
{
	struct gpu_transaction *transaction;
	int r;

	if (!change_count || change_count > GP_GPU_QUEUE_MAX)
		return -EINVAL;
	r = gpu_begin(gpu, now_ns);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < change_count; i++)
		if (!gpu_queue_find(gpu, changes[i].queue))
			return -ENOENT;
		else if (changes[i].set && changes[i].priority > 15u)
			return -EINVAL;
	transaction = calloc(1, sizeof(*transaction) + change_count * sizeof(changes[0]));
	if (!transaction)
		return -ENOMEM;
	transaction->seq = seq;
	transaction->change_count = change_count;
	memcpy(transaction->changes, changes, change_count * sizeof(changes[0]));
	transaction_push(gpu, transaction);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

int gp_gpu_mark(struct gp_gpu *gpu, uint64_t seq, uint64_t now_ns)
{
	struct gpu_transaction *transaction;
	int r = gpu_begin(gpu, now_ns);

	if (r < 0)
		return r;
	transaction = calloc(1, sizeof(*transaction));
	if (!transaction)
		return -ENOMEM;
	transaction->seq = seq;
	transaction->mark = true;
	transaction_push(gpu, transaction);
	gp_gpu_advance(gpu, now_ns);
	return 0;
}

/* The work of a queue, resident or set aside. */
static uint64_t transaction_queue_size(const struct gpu_queue *queue, bool resident)
{
	uint64_t size = 0;

	for (const struct gpu_list *node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		const struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

		size += (resident ? dispatch->inflight : dispatch->saved_count) * dispatch->save_size;
	}
	return size;
}

/* Nothing of a closed queue may happen after its transaction: a completion on its way, or a copy up to its boundary,
 * delays it. */
static uint64_t transaction_close_ns(struct gpu_queue *queue)
{
	uint64_t latest_ns = queue->engine ? gpu_copy_stop(queue) : 0;

	for (struct gpu_list *node = queue->dispatches.next; node != &queue->dispatches; node = node->next) {
		const struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, queue_link);

		if (dispatch->finished && dispatch->completion.at_ns > latest_ns)
			latest_ns = dispatch->completion.at_ns;
	}
	return latest_ns;
}

static bool transaction_hangs(struct gp_gpu *gpu, const struct gpu_transaction *transaction)
{
	for (uint32_t i = 0; i < transaction->change_count; i++) {
		const struct gpu_queue *queue = gpu_queue_find(gpu, transaction->changes[i].queue);

		if (queue && !transaction->changes[i].open && queue->fault == GP_GPU_FAULT_CLOSE_HANGS)
			return true;
	}
	return false;
}

/* A queue that gets another mask or priority is taken off and brought back. Returns the bytes that cost, beyond the
 * whole device's. */
static uint64_t transaction_renew(struct gpu_queue *queue, bool whole)
{
	uint64_t size = whole ? 0 : transaction_queue_size(queue, true);

	/* Until the end it may not come back with the old ones. */
	gpu_queue_set_open(queue, true, true);
	gpu_queue_stop(queue);
	return size;
}

/* Stops what is to be closed. Returns when the last trace of it is gone; sizes in bytes of what must be saved and
 * brought back. */
static uint64_t transaction_stop(struct gp_gpu *gpu, const struct gpu_transaction *transaction,
				 uint64_t *ret_restore_size)
{
	bool whole = gpu->scheduler == GP_SCHEDULER_CPSCH;
	uint64_t restore_size = whole ? gpu->resident_size : 0, latest_ns = 0;

	for (uint32_t i = 0; i < transaction->change_count; i++) {
		struct gpu_queue *queue = gpu_queue_find(gpu, transaction->changes[i].queue);
		uint64_t end_ns;

		if (!queue)
			continue;
		if (transaction->changes[i].open) {
			if (!queue->open)
				restore_size += transaction_queue_size(queue, false);
			else if (transaction->changes[i].set)
				restore_size += transaction_renew(queue, whole);
			continue;
		}
		if (whole)
			restore_size -= transaction_queue_size(queue, true);
		/* gpu_copy_stop() looks at the gate: closing first. */
		gpu_queue_set_open(queue, queue->open, true);
		gpu_queue_stop(queue);
		end_ns = transaction_close_ns(queue);
		if (end_ns > latest_ns)
			latest_ns = end_ns;
	}
	*ret_restore_size = restore_size;
	return latest_ns;
}

static uint64_t transaction_save_size(struct gp_gpu *gpu, const struct gpu_transaction *transaction)
{
	uint64_t size = 0;

	if (gpu->scheduler == GP_SCHEDULER_CPSCH)
		return gpu->resident_size;
	for (uint32_t i = 0; i < transaction->change_count; i++) {
		const struct gpu_queue *queue = gpu_queue_find(gpu, transaction->changes[i].queue);

		if (queue && (!transaction->changes[i].open || transaction->changes[i].set))
			size += transaction_queue_size(queue, true);
	}
	return size;
}

static void transaction_start_cp(struct gp_gpu *gpu, struct gpu_transaction *transaction)
{
	int64_t bandwidth = gp_desc_get(gpu->desc, GP_DESC_SAVE_BANDWIDTH);
	uint64_t save_size, restore_size = 0, latest_ns, end_ns, cost_ns;

	if (gpu->scheduler == GP_SCHEDULER_CPSCH) {
		gpu_runlist_catch_up(gpu);
		gpu_halt_begin(gpu, GPU_HALT_TRANSACTION);
	}
	save_size = transaction_save_size(gpu, transaction);
	latest_ns = transaction_stop(gpu, transaction, &restore_size);
	cost_ns = gpu->config.gate_cost_ns;
	if (!cost_ns)
		cost_ns = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_GATE_FIXED_NS) + gpu_bytes_ns(save_size, bandwidth) +
			  gpu_bytes_ns(restore_size, bandwidth);
	/* On mes a queue that comes or goes concerns nobody else. */
	if (transaction->update && gpu->scheduler == GP_SCHEDULER_MES)
		cost_ns = 0;
	end_ns = gpu_add_ns(gpu->now_ns, cost_ns);
	gpu_timer_arm(gpu, &gpu->transaction, end_ns > latest_ns ? end_ns : latest_ns);
}

static bool transaction_has(const struct gpu_transaction *transaction, bool open)
{
	for (uint32_t i = 0; i < transaction->change_count; i++)
		if (transaction->changes[i].open == open)
			return true;
	return false;
}

/* tsg: disabling a context stops it some way into the call, and the call goes on from there. */
static void transaction_start_tsg(struct gp_gpu *gpu, struct gpu_transaction *transaction)
{
	uint64_t stop_ns = (uint64_t)gp_desc_get(gpu->desc, GP_DESC_DISABLE_STOP_NS);

	if (gpu->config.gate_cost_ns && stop_ns > gpu->config.gate_cost_ns)
		stop_ns = gpu->config.gate_cost_ns;
	if (!transaction_has(transaction, false))
		stop_ns = 0;
	gpu->transaction_begin_ns = gpu->now_ns;
	gpu_timer_arm(gpu, &gpu->transaction, gpu_add_ns(gpu->now_ns, stop_ns));
}

static void transaction_stop_tsg(struct gp_gpu *gpu, struct gpu_transaction *transaction)
{
	uint64_t cost_ns = gpu->config.gate_cost_ns, restore_size, latest_ns, end_ns;

	latest_ns = transaction_stop(gpu, transaction, &restore_size);
	if (!cost_ns && transaction_has(transaction, false))
		cost_ns += (uint64_t)gp_desc_get(gpu->desc, GP_DESC_DISABLE_NS);
	if (!gpu->config.gate_cost_ns && transaction_has(transaction, true))
		cost_ns += (uint64_t)gp_desc_get(gpu->desc, GP_DESC_ENABLE_NS);
	end_ns = gpu_add_ns(gpu->transaction_begin_ns, cost_ns);
	if (end_ns < latest_ns)
		end_ns = latest_ns;
	gpu_timer_arm(gpu, &gpu->transaction, end_ns > gpu->now_ns ? end_ns : gpu->now_ns);
	transaction->started = true;
}

void gpu_transaction_next(struct gp_gpu *gpu)
{
	struct gpu_transaction *transaction;

	if (gpu->transaction.heap_index != GPU_NOWHERE || gpu->halt != GPU_RUNNING || gpu->draining)
		return;
	while ((transaction = gpu->transaction_first)) {
		if (transaction->mark)
			gpu_emit(gpu, GP_GPU_EVENT_TRANSACTION, NULL, NULL, transaction->seq, 0);
		else if (!transaction_hangs(gpu, transaction))
			break;
		else if (gpu->config.hang_halts && gpu->scheduler == GP_SCHEDULER_CPSCH) {
			/* The firmware never answers: nothing runs, no timer is armed, a reset ends it. */
			gpu_halt_begin(gpu, GPU_HALT_TRANSACTION);
			return;
		}
		/* A close that hangs is never heard of again, and that queue cannot be closed until a reset; the others
		 * can. */
		transaction_pop(gpu);
	}
	if (!transaction || gpu_drain(gpu))
		return;
	if (gpu->scheduler == GP_SCHEDULER_TSG) {
		transaction_start_tsg(gpu, transaction);
	} else {
		transaction->started = true;
		transaction_start_cp(gpu, transaction);
	}
}

/* A preemption that fails leaves every gate of the transaction as it was. */
static int transaction_apply(struct gp_gpu *gpu, const struct gpu_transaction *transaction, bool *ret_changed)
{
	bool fails = false;

	for (uint32_t i = 0; i < transaction->change_count; i++) {
		struct gpu_queue *queue = gpu_queue_find(gpu, transaction->changes[i].queue);

		if (queue && !transaction->changes[i].open && queue->fault == GP_GPU_FAULT_CLOSE_FAILS) {
			queue->fault = GP_GPU_FAULT_NONE;
			fails = true;
		}
	}
	for (uint32_t i = 0; i < transaction->change_count; i++) {
		struct gpu_queue *queue = gpu_queue_find(gpu, transaction->changes[i].queue);
		bool open;

		if (!queue)
			continue;
		open = fails ? queue->open : transaction->changes[i].open;
		*ret_changed |= open != queue->open;
		if (transaction->changes[i].set && !fails)
			gpu_queue_set(queue, transaction->changes[i].priority, transaction->changes[i].cu_count);
		gpu_queue_set_open(queue, open, false);
		gpu_queue_start(queue);
	}
	return fails ? -EIO : 0;
}

void gpu_transaction_expire(struct gp_gpu *gpu)
{
	struct gpu_transaction *transaction = gpu->transaction_first;
	bool changed = false;
	int error;

	if (gpu->halt == GPU_HALT_SLICE) {
		gpu_runlist_map(gpu);
		gpu->slice_end_ns = 0;
		gpu_halt_end(gpu);
		gpu_transaction_next(gpu);
		return;
	}
	if (!transaction->started) {
		transaction_stop_tsg(gpu, transaction);
		return;
	}
	if (gpu->scheduler == GP_SCHEDULER_MES)
		gpu_runlist_catch_up(gpu);
	error = transaction_apply(gpu, transaction, &changed);
	if (gpu->scheduler != GP_SCHEDULER_TSG && (changed || transaction->update)) {
		gpu_runlist_rebuild(gpu);
		if (gpu->halt == GPU_RUNNING) {
			gpu->halt_begin_ns = gpu->now_ns;
			gpu_runlist_resume(gpu);
		}
	}
	if (gpu->halt == GPU_HALT_TRANSACTION)
		gpu_halt_end(gpu);
	if (!transaction->update)
		gpu_emit(gpu, GP_GPU_EVENT_TRANSACTION, NULL, NULL, transaction->seq, error);
	transaction_pop(gpu);
	gpu_transaction_next(gpu);
}

uint64_t gp_gpu_gate_cost_ns(const struct gp_gpu *gpu)
{
	if (gpu->config.gate_cost_ns)
		return gpu->config.gate_cost_ns;
	if (gpu->scheduler == GP_SCHEDULER_TSG)
		return (uint64_t)gp_desc_get(gpu->desc, GP_DESC_DISABLE_NS);
	return (uint64_t)gp_desc_get(gpu->desc, GP_DESC_GATE_FIXED_NS) +
	       gpu_bytes_ns(gpu->resident_size, gp_desc_get(gpu->desc, GP_DESC_SAVE_BANDWIDTH));
}

int gp_gpu_set_fault(struct gp_gpu *gpu, uint32_t queue_id, enum gp_gpu_fault fault)
{
	struct gpu_queue *queue = gpu_queue_find(gpu, queue_id);

	if (!queue)
		return -ENOENT;
	if (fault > GP_GPU_FAULT_CLOSE_HANGS)
		return -EINVAL;
	queue->fault = fault;
	return 0;
}
