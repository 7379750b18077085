/* SPDX-License-Identifier: MIT */
/* Owns the checkers' own answers to what a policy means: who is more urgent, who takes turns, what a gate lets through.
 */
#include "test/sim/checker_known.h"

/* Who is behind a guaranteed share goes before every priority, in the order in which that began; gangs have none. */
static uint64_t rank_behind(const struct known *known, const struct known_queue *queue)
{
	return queue->attr.gang ? 0 : known->behind[queue->client.index % KNOWN_CLIENT_MAX][queue->device];
}

bool known_is_behind(const struct known *known, const struct known_queue *queue)
{
	return rank_behind(known, queue) != 0;
}

static int64_t rank_own(const struct known *known, const struct known_queue *queue)
{
	const struct known_device *device = &known->devices[queue->device];
	uint64_t behind = rank_behind(known, queue);

	if (behind)
		return INT64_MAX - (int64_t)behind;
	if (!device->ranked)
		return 0;
	if (!device->is_edf || !queue->attr.deadline_ns)
		return queue->attr.priority;
	return INT64_MAX - (int64_t)(queue->busy_since_ns + queue->attr.deadline_ns);
}

static bool rank_is_batch(const struct known_device *device, const struct known_queue *queue)
{
	if (!device->ranked)
		return device->gates;
	if (!device->is_edf)
		return queue->attr.priority < device->top;
	return !queue->attr.deadline_ns && (device->has_deadline || queue->attr.priority < device->top);
}

/* A gang is as urgent as its most urgent member, wherever that is. */
static void rank_gangs(struct known *known)
{
	struct known_queue *a, *b;
	uint32_t i, k;

	for (i = 0; i < known->queue_end; i++) {
		a = &known->queues[i];
		for (k = 0; a->used && a->attr.gang && k < known->queue_end; k++) {
			b = &known->queues[k];
			if (b->used && b->attr.gang == a->attr.gang && b->rank < a->rank)
				b->rank = a->rank;
		}
	}
}

/* Queues of one process may wait for each other, so one with work lends its urgency to its siblings on the device. */
static void rank_lend(struct known *known)
{
	const struct known_queue *lenders[KNOWN_QUEUE_MAX], *b;
	int64_t lent[KNOWN_QUEUE_MAX];
	struct known_queue *a;
	uint32_t i, k, count = 0;

	for (i = 0; i < known->queue_end; i++) {
		b = &known->queues[i];
		if (b->used && (b->has_work || b->announced))
			lenders[count++] = b;
	}
	for (i = 0; i < known->queue_end; i++) {
		a = &known->queues[i];
		lent[i] = a->rank;
		a->vague = a->presumed;
		for (k = 0; a->used && !a->attr.gang && k < count; k++) {
			b = lenders[k];
			if (b->device != a->device || b->client.index != a->client.index)
				continue;
			if (!b->has_work) { /* announced work lends as work does; from when on is not known here */
				a->vague |= b->rank > a->rank;
				continue;
			}
			a->vague |= b->presumed;
			if (!b->presumed && b->rank > lent[i])
				lent[i] = b->rank;
		}
	}
	for (i = 0; i < known->queue_end; i++)
		known->queues[i].rank = lent[i];
}

void known_refresh(struct known *known)
{
	bool any_gang = false;
	struct known_queue *q;
	uint32_t i;

	if (!known->stale)
		return;
	known->stale = false;
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used)
			continue;
		any_gang |= q->attr.gang > 0;
		q->rank = rank_own(known, q);
		q->is_batch = !rank_behind(known, q) && rank_is_batch(&known->devices[q->device], q);
	}
	if (any_gang)
		rank_gangs(known);
	rank_lend(known);
}

uint32_t known_batch_max(const struct known_device *device)
{
	if (!device->gates)
		return UINT32_MAX;
	/* A self-switching device says how many lower clients may stay open, and no parameter makes that more. */
	if (device->attr.switch_ns &&
	    (!device->param.batch_clients || device->param.batch_clients > device->attr.lower_max))
		return device->attr.lower_max ? device->attr.lower_max : 1;
	if (device->param.batch_clients)
		return device->param.batch_clients;
	return device->attr.unit == GP_UNIT_DEVICE && device->ranked ? UINT32_MAX : 1;
}

bool known_lets_through(const struct known_queue *queue)
{
	return queue->gate != GP_GATE_CLOSED && queue->gate != GP_GATE_OPENING;
}

bool known_is_excused(const struct known *known, const struct known_queue *queue)
{
	if (queue->gate == GP_GATE_UNKNOWN || queue->gate == GP_GATE_QUARANTINED || known->core_ns <= queue->hold_ns)
		return true;
	return queue->left_why == GP_WHY_AGED || queue->left_why == GP_WHY_RATE || queue->left_why == GP_WHY_SELF;
}

uint32_t known_transactions(const struct known_device *device, const struct gp_order *orders, uint32_t order_count)
{
	uint32_t i, k, count = 0;

	if (device->attr.unit == GP_UNIT_DEVICE)
		return order_count > 0;
	if (device->attr.unit == GP_UNIT_QUEUE)
		return order_count;
	for (i = 0; i < order_count; i++) {
		for (k = 0; k < i && orders[k].client.index != orders[i].client.index; k++)
			;
		count += k == i;
	}
	return count;
}
