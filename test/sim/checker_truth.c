/* SPDX-License-Identifier: MIT */
/* Owns the record of the device's gates: a gate is what the last finished transaction that named it made of it. */
#include <stdlib.h>
#include <string.h>
#include "test/sim/checker_truth.h"

static void truth_forget(struct truth *truth, uint32_t place)
{
	struct truth_transaction *transaction = &truth->transactions[place];
	uint32_t i;

	for (i = 0; i < transaction->count; i++) {
		if (transaction->changes[i].open && truth->queues[transaction->changes[i].queue].opening)
			truth->queues[transaction->changes[i].queue].opening--;
	}
	free(transaction->changes);
	truth->transaction_count--;
	memmove(transaction, transaction + 1, (truth->transaction_count - place) * sizeof(*transaction));
}

static const char *truth_transact(struct truth *truth, const struct check_event *event)
{
	struct truth_transaction *transaction;
	uint32_t i;

	if (truth->transaction_count == TRUTH_TRANSACTION_MAX)
		return "too many transactions under way at once";
	transaction = &truth->transactions[truth->transaction_count];
	*transaction = (struct truth_transaction){ .seq = event->seq, .device = event->device, .count = event->count };
	transaction->changes = malloc(event->count * sizeof(*event->changes));
	if (!transaction->changes)
		return "out of memory";
	memcpy(transaction->changes, event->changes, event->count * sizeof(*event->changes));
	truth->transaction_count++;
	for (i = 0; i < event->count; i++)
		truth->queues[event->changes[i].queue].opening += event->changes[i].open;
	return NULL;
}

static void truth_apply(struct truth *truth, const struct truth_transaction *transaction, uint64_t now_ns)
{
	struct truth_queue *queue;
	uint32_t i;

	for (i = 0; i < transaction->count; i++) {
		queue = &truth->queues[transaction->changes[i].queue];
		queue->missed = false;
		if (queue->closed == !transaction->changes[i].open)
			continue;
		queue->closed = !transaction->changes[i].open;
		queue->changed_ns = now_ns;
		queue->lost = transaction->changes[i].open && !transaction->seq;
	}
}

static void truth_miss(struct truth *truth, const struct truth_transaction *transaction)
{
	uint32_t i;

	for (i = 0; i < transaction->count; i++)
		truth->queues[transaction->changes[i].queue].missed |= transaction->changes[i].open;
}

/* Transactions of a device end in the order they began: those passed over hang for ever and change nothing. */
static const char *truth_finish(struct truth *truth, const struct check_event *event)
{
	uint32_t i;

	for (i = 0; i < truth->transaction_count;) {
		if (truth->transactions[i].device != event->device) {
			i++;
			continue;
		}
		if (truth->transactions[i].seq != event->gpu_event->value) {
			truth_miss(truth, &truth->transactions[i]);
			truth_forget(truth, i);
			continue;
		}
		if (!event->gpu_event->error)
			truth_apply(truth, &truth->transactions[i], event->now_ns);
		else
			truth_miss(truth, &truth->transactions[i]);
		truth_forget(truth, i);
		return NULL;
	}
	return "a transaction ended that nobody began";
}

const char *truth_event(struct truth *truth, const struct check_event *event)
{
	uint32_t i;

	switch (event->type) {
	case CHECK_GPU_ADD:
		if (event->gpu_queue >= TRUTH_QUEUE_MAX)
			return "more queues than the record holds";
		truth->queues[event->gpu_queue] =
			(struct truth_queue){ .used = true, .device = event->device, .kind = event->kind };
		if (truth->queue_end <= event->gpu_queue)
			truth->queue_end = event->gpu_queue + 1;
		break;
	case CHECK_GPU_REMOVE: truth->queues[event->gpu_queue].used = false; break;
	case CHECK_TRANSACT: return truth_transact(truth, event);
	case CHECK_GPU:
		if (event->gpu_event->type == GP_GPU_EVENT_TRANSACTION)
			return truth_finish(truth, event);
		for (i = 0; event->gpu_event->type == GP_GPU_EVENT_RESET && i < truth->transaction_count;) {
			if (truth->transactions[i].device == event->device)
				truth_forget(truth, i);
			else
				i++;
		}
		break;
	default: break;
	}
	return NULL;
}

void truth_fini(struct truth *truth)
{
	while (truth->transaction_count)
		truth_forget(truth, truth->transaction_count - 1);
}
