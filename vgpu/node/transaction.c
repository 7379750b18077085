/* SPDX-License-Identifier: MIT */
/*
 * Transactions: one halt of a GPU each. Owns the list of those under way and what becomes of one that fails: a queue
 * that could not be preempted is reset and the others go on (Linux 6.12, unmap_queues_cpsch() and
 * reset_queues_on_hws_hang()), one that is never answered ends in a reset of the GPU (kfd_hws_hang()).
 */
#include <errno.h>
#include <gp_deps.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/node/process.h"
#include "vgpu/node/reset.h"
#include "vgpu/node/transaction.h"

static struct gp_vtransaction *transaction_create(struct gp_vdev *gpu, struct gp_vcall *call, uint32_t queue_count)
{
	struct gp_vtransaction *transaction =
		calloc(1, sizeof(*transaction) + queue_count * sizeof(transaction->queues[0]));

	if (!transaction)
		return NULL;
	transaction->seq = ++gpu->node->seq;
	transaction->gpu = gpu;
	transaction->call = call;
	return transaction;
}

/* Without context save a transaction waits for what runs, and that may never end: the driver then gives up. */
static void transaction_limit(struct gp_vtransaction *transaction)
{
	struct gp_vnode *node = transaction->gpu->node;

	if (!transaction->deadline_ns && !node->params.values[GP_PARAM_CWSR_ENABLE])
		transaction->deadline_ns = node->now_ns + gp_params_timeout_ms(node) * 1000000ull * node->dilation;
}

static int transaction_add(struct gp_vtransaction *transaction, int r)
{
	struct gp_vnode *node = transaction->gpu->node;

	transaction_limit(transaction);

	if (r < 0) {
		free(transaction);
		return -ENOMEM;
	}
	transaction->next = node->transactions;
	node->transactions = transaction;
	if (transaction->call)
		transaction->call->outstanding++;
	return 1;
}

/* What the model is to make of a queue; only what differs is set, since setting takes its work off the CUs. */
static struct gp_gpu_change transaction_of(struct gp_vqueue *queue)
{
	struct gp_gpu_change change = { .queue = queue->model, .open = gp_vqueue_runs(queue) };

	if (queue->priority != queue->model_priority || queue->cu_count != queue->model_cu_count) {
		change.set = true;
		change.priority = gp_vqueue_model_priority(queue->priority);
		change.cu_count = queue->cu_count;
		queue->model_priority = queue->priority;
		queue->model_cu_count = queue->cu_count;
	}
	queue->model_open = change.open;
	gp_vqueue_count(queue);
	return change;
}

static int transaction_change_gpu(struct gp_vdev *gpu, struct gp_vqueue **queues, uint32_t queue_count,
				  struct gp_vcall *call)
{
	static struct gp_gpu_change changes[GP_VPROC_QUEUE_MAX];
	struct gp_vtransaction *transaction;
	uint32_t count = 0;

	for (uint32_t i = 0; i < queue_count; i++)
		count += queues[i]->gpu == gpu && !queues[i]->model_gone;
	if (!count)
		return 0;
	transaction = transaction_create(gpu, call, count);
	if (!transaction)
		return -ENOMEM;
	for (uint32_t i = 0; i < queue_count; i++) {
		struct gp_vqueue *queue = queues[i];

		if (queue->gpu != gpu || queue->model_gone)
			continue;
		changes[transaction->queue_count] = transaction_of(queue);
		if (queue->close_hangs && !changes[transaction->queue_count].open)
			transaction->deadline_ns = gpu->node->now_ns + gp_params_timeout_ms(gpu->node) * 1000000ull;
		transaction->queues[transaction->queue_count++] =
			(struct gp_vtransaction_queue){ .process = queue->process, .id = queue->id };
	}
	return transaction_add(transaction, gp_gpu_transact(gpu->model, changes, count, transaction->seq,
							    gp_vnode_device_ns(gpu->node)));
}

int gp_vtransaction_change(struct gp_vqueue **queues, uint32_t queue_count, struct gp_vcall *call)
{
	struct gp_vnode *node = queue_count ? queues[0]->process->node : NULL;
	int count = 0;

	for (uint32_t g = 0; queue_count && g < node->gpu_count; g++) {
		int r = transaction_change_gpu(&node->gpus[g], queues, queue_count, call);

		if (r < 0)
			return r;
		count += r;
	}
	return count;
}

int gp_vtransaction_mark(struct gp_vdev *gpu, struct gp_vcall *call)
{
	struct gp_vtransaction *transaction = transaction_create(gpu, call, 0);

	if (!transaction)
		return -ENOMEM;
	return transaction_add(transaction, gp_gpu_mark(gpu->model, transaction->seq, gp_vnode_device_ns(gpu->node)));
}

int gp_vtransaction_refresh(struct gp_vdev *gpu, struct gp_vcall *call)
{
	struct gp_gpu_change change = { .open = true };
	struct gp_vtransaction *transaction;
	bool oversubscribed;

	/* Without a queue that is on there is no runlist, and nothing to do. */
	if (!gp_gpu_runlist(gpu->model, &change.queue, 1, &oversubscribed))
		return 0;
	transaction = transaction_create(gpu, call, 0);
	if (!transaction)
		return -ENOMEM;
	return transaction_add(
		transaction, gp_gpu_transact(gpu->model, &change, 1, transaction->seq, gp_vnode_device_ns(gpu->node)));
}

static void transaction_finish(struct gp_vtransaction *transaction, int result)
{
	struct gp_vcall *call = transaction->call;

	if (call) {
		if (result < 0) {
			call->failed |= 1u << transaction->gpu->index;
			call->result = result;
		}
		GP_ASSERT(call->outstanding);
		call->outstanding--;
	}
	free(transaction);
}

/* The queue is still there, with its process. */
static struct gp_vqueue *transaction_queue(const struct gp_vtransaction *transaction, uint32_t i)
{
	const struct gp_vtransaction_queue *entry = &transaction->queues[i];
	struct gp_vqueue *queue = entry->process ? gp_vqueue_find(entry->process, entry->id) : NULL;

	return queue && queue->gpu == transaction->gpu ? queue : NULL;
}

/* The firmware named queues it could not preempt. They are reset, alone; the others are asked for again. */
static void transaction_repeat(struct gp_vtransaction *transaction)
{
	static struct gp_vqueue *queues[GP_VPROC_QUEUE_MAX];
	uint32_t count = 0;
	int r;

	for (uint32_t i = 0; i < transaction->queue_count; i++) {
		struct gp_vqueue *queue = transaction_queue(transaction, i);

		if (!queue)
			continue;
		if (queue->close_fails)
			gp_vqueue_reset(queue);
		queues[count++] = queue;
	}
	r = gp_vtransaction_change(queues, count, transaction->call);
	transaction_finish(transaction, r < 0 ? r : 0);
}

/* Its queues are open or closed now. */
static void transaction_tell(const struct gp_vtransaction *transaction)
{
	for (uint32_t i = 0; i < transaction->queue_count; i++) {
		struct gp_vqueue *queue = transaction_queue(transaction, i);

		if (queue && !gp_vqueue_is_sdma(queue))
			gp_aql_gate(queue);
	}
}

void gp_vtransaction_end(struct gp_vdev *gpu, const struct gp_gpu_event *event)
{
	struct gp_vtransaction **link = &gpu->node->transactions, *transaction;

	while (*link && (*link)->seq != event->value)
		link = &(*link)->next;
	transaction = *link;
	if (!transaction)
		return;
	*link = transaction->next;
	transaction_tell(transaction);
	if (event->error)
		transaction_repeat(transaction);
	else
		transaction_finish(transaction, 0);
}

void gp_vtransaction_forget(const struct gp_vproc *process)
{
	for (struct gp_vtransaction *transaction = process->node->transactions; transaction;
	     transaction = transaction->next)
		for (uint32_t i = 0; i < transaction->queue_count; i++)
			if (transaction->queues[i].process == process)
				transaction->queues[i].process = NULL;
}

void gp_vtransaction_drop(struct gp_vdev *gpu, int result)
{
	struct gp_vtransaction **link = &gpu->node->transactions;

	while (*link) {
		struct gp_vtransaction *transaction = *link;

		if (transaction->gpu != gpu) {
			link = &transaction->next;
			continue;
		}
		*link = transaction->next;
		transaction_finish(transaction, transaction->deadline_ns ? -ETIME : result);
	}
}

void gp_vtransaction_free_all(struct gp_vnode *node)
{
	while (node->transactions) {
		struct gp_vtransaction *transaction = node->transactions;

		node->transactions = transaction->next;
		free(transaction);
	}
}

void gp_vtransaction_turn(struct gp_vnode *node)
{
	struct gp_vtransaction *transaction = node->transactions;

	while (transaction) {
		if (transaction->deadline_ns && transaction->deadline_ns <= node->now_ns) {
			gp_vdev_reset(transaction->gpu);
			/* The list is another now. */
			transaction = node->transactions;
			continue;
		}
		transaction = transaction->next;
	}
}

uint64_t gp_vtransaction_deadline_ns(const struct gp_vnode *node)
{
	uint64_t deadline_ns = UINT64_MAX;

	for (const struct gp_vtransaction *t = node->transactions; t; t = t->next)
		if (t->deadline_ns && t->deadline_ns < deadline_ns)
			deadline_ns = t->deadline_ns;
	return deadline_ns;
}
