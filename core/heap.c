/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Binary heaps of queue indices. Each queue knows its place in each heap, so removal needs no search. */
#include "core/state.h"

static bool heap_before(const struct gp_queue *queues, enum gp_heap_name name, uint32_t a, uint32_t b)
{
	const struct gp_queue *qa = &queues[a], *qb = &queues[b];

	switch (name) {
	case GP_HEAP_OPEN:
	case GP_HEAP_RUNNING:
		if (qa->rank != qb->rank)
			return qa->rank < qb->rank;
		break;
	case GP_HEAP_AGE:
		if (qa->age_key_ns != qb->age_key_ns)
			return qa->age_key_ns < qb->age_key_ns;
		break;
	case GP_HEAP_TIMER:
		if (qa->timer_ns != qb->timer_ns)
			return qa->timer_ns < qb->timer_ns;
		break;
	default:
		if (qa->rank != qb->rank)
			return qa->rank > qb->rank;
		if (gp_turn_is_before(qa, qb) || gp_turn_is_before(qb, qa))
			return gp_turn_is_before(qa, qb);
		break;
	}
	return a < b; /* a total order, so that every run decides alike */
}

static void heap_set(struct gp_sched *sched, struct gp_heap *heap, enum gp_heap_name name, uint32_t place,
		     uint32_t queue)
{
	heap->slots[place] = queue;
	sched->queues[queue].heap_index[name] = place;
}

static void heap_up(struct gp_sched *sched, struct gp_heap *heap, enum gp_heap_name name, uint32_t place)
{
	uint32_t queue = heap->slots[place];

	while (place > 0) {
		uint32_t parent = (place - 1) / 2;

		if (!heap_before(sched->queues, name, queue, heap->slots[parent]))
			break;
		heap_set(sched, heap, name, place, heap->slots[parent]);
		place = parent;
	}
	heap_set(sched, heap, name, place, queue);
}

static void heap_down(struct gp_sched *sched, struct gp_heap *heap, enum gp_heap_name name, uint32_t place)
{
	uint32_t queue = heap->slots[place];

	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child >= heap->count)
			break;
		if (child + 1 < heap->count &&
		    heap_before(sched->queues, name, heap->slots[child + 1], heap->slots[child]))
			child++;
		if (!heap_before(sched->queues, name, heap->slots[child], queue))
			break;
		heap_set(sched, heap, name, place, heap->slots[child]);
		place = child;
	}
	heap_set(sched, heap, name, place, queue);
}

void gp_heap_add(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue)
{
	struct gp_heap *heap = &device->heaps[name];

	GP_ASSERT(heap->count < device->attr.queue_max);
	heap->slots[heap->count] = queue;
	heap_up(sched, heap, name, heap->count++);
}

void gp_heap_remove(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue)
{
	struct gp_heap *heap = &device->heaps[name];
	uint32_t place = sched->queues[queue].heap_index[name];
	uint32_t last;

	GP_ASSERT(place < heap->count && heap->slots[place] == queue);
	sched->queues[queue].heap_index[name] = GP_NONE;
	last = heap->slots[--heap->count];
	if (last == queue)
		return;
	heap_set(sched, heap, name, place, last);
	heap_up(sched, heap, name, place);
	heap_down(sched, heap, name, sched->queues[last].heap_index[name]);
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
			*place = heap_past(*place, heap->count); /* and so are all below it */
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
		if (sched->queues[heap->slots[i]].heap_index[name] != i)
			return false;
		if (i > 0 && heap_before(sched->queues, name, heap->slots[i], heap->slots[(i - 1) / 2]))
			return false;
	}
	return true;
}
