/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Binary heaps of queue indices. Each queue knows its place in each heap, so removal needs no search. */
#include "core/calls.h"

/* A total order, so that every run decides alike. */
static inline bool heap_before(enum gp_heap_name name, const struct gp_queue *a, const struct gp_queue *b)
{
	switch (name) {
	case GP_HEAP_OPEN:
	case GP_HEAP_RUNNING:
		if (a->rank != b->rank)
			return a->rank < b->rank;
		break;
	case GP_HEAP_AGE:
		if (a->age_key_ns != b->age_key_ns)
			return a->age_key_ns < b->age_key_ns;
		break;
	case GP_HEAP_TIMER:
		if (a->timer_ns != b->timer_ns)
			return a->timer_ns < b->timer_ns;
		break;
	default:
		if (a->rank != b->rank)
			return a->rank > b->rank;
		if (a->order != b->order || a->order_then != b->order_then)
			return gp_turn_is_before(a, b);
		break;
	}
	return a < b;
}

/* Puts the queue at this place or above it; queues that it passes go down. */
static void heap_up(struct gp_queue *queues, uint32_t *slots, enum gp_heap_name name, uint32_t place, uint32_t queue)
{
	while (place > 0) {
		uint32_t parent = (place - 1) / 2, above = slots[parent];

		if (!heap_before(name, &queues[queue], &queues[above]))
			break;
		slots[place] = above;
		queues[above].heap_index[name] = place;
		place = parent;
	}
	slots[place] = queue;
	queues[queue].heap_index[name] = place;
}

/* Puts the queue at this place or below it; queues that it passes go up. */
static void heap_down(struct gp_queue *queues, struct gp_heap *heap, enum gp_heap_name name, uint32_t place,
		      uint32_t queue)
{
	uint32_t *slots = heap->slots, count = heap->count, child;

	while ((child = 2 * place + 1) < count) {
		if (child + 1 < count && heap_before(name, &queues[slots[child + 1]], &queues[slots[child]]))
			child++;
		if (!heap_before(name, &queues[slots[child]], &queues[queue]))
			break;
		slots[place] = slots[child];
		queues[slots[child]].heap_index[name] = place;
		place = child;
	}
	slots[place] = queue;
	queues[queue].heap_index[name] = place;
}

void gp_heap_add(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue)
{
	struct gp_heap *heap = &device->heaps[name];

	if (GP_NEVER(heap->count >= device->attr.queue_max))
		return;
	sched->queues[queue].heaps |= 1u << name;
	heap_up(sched->queues, heap->slots, name, heap->count++, queue);
}

void gp_heap_remove(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue)
{
	struct gp_heap *heap = &device->heaps[name];
	struct gp_queue *queues = sched->queues;
	uint32_t place = queues[queue].heap_index[name], last;

	if (GP_NEVER(place >= heap->count || heap->slots[place] != queue))
		return;
	queues[queue].heaps &= ~(1u << name);
	last = heap->slots[--heap->count];
	if (last == queue)
		return;
	if (place > 0 && heap_before(name, &queues[last], &queues[heap->slots[(place - 1) / 2]]))
		heap_up(queues, heap->slots, name, place, last);
	else
		heap_down(queues, heap, name, place, last);
}

void gp_heap_set_timer(struct gp_sched *sched, struct gp_device *device, uint32_t queue, uint64_t when_ns)
{
	gp_heap_put(sched, device, GP_HEAP_TIMER, queue, false);
	sched->queues[queue].timer_ns = when_ns;
	gp_heap_put(sched, device, GP_HEAP_TIMER, queue, when_ns != GP_NEVER_NS);
}

static bool heap_within(const struct gp_queue *queue, enum gp_heap_name name, int64_t bound)
{
	return name == GP_HEAP_WORK ? queue->rank > bound : queue->rank < bound;
}

/* The next place in depth-first order after the whole subtree at place; count: none. */
static uint32_t heap_past(uint32_t place, uint32_t count)
{
	while (place > 0) {
		if ((place & 1u) && place + 1 < count) /* a left child with a sibling */
			return place + 1;
		place = (place - 1) / 2;
	}
	return count;
}

uint32_t gp_heap_visit(const struct gp_sched *sched, const struct gp_device *device, enum gp_heap_name name,
		       int64_t bound, uint32_t *place)
{
	const struct gp_heap *heap = &device->heaps[name];

	while (*place < heap->count) {
		uint32_t queue = heap->slots[*place];

		if (!heap_within(&sched->queues[queue], name, bound)) {
			*place = heap_past(*place, heap->count); /* and no queue below it is within the bound */
			continue;
		}
		*place = 2 * *place + 1 < heap->count ? 2 * *place + 1 : heap_past(*place, heap->count);
		return queue;
	}
	return GP_NONE;
}

bool gp_heap_is_ordered(const struct gp_sched *sched, const struct gp_device *device, enum gp_heap_name name)
{
	const struct gp_heap *heap = &device->heaps[name];
	uint32_t i;

	for (i = 0; i < heap->count; i++) {
		const struct gp_queue *q = &sched->queues[heap->slots[i]];

		if (!gp_heap_has(q, name) || q->heap_index[name] != i)
			return false;
		if (i > 0 && heap_before(name, q, &sched->queues[heap->slots[(i - 1) / 2]]))
			return false;
	}
	return true;
}
