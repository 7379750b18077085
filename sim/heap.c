/* SPDX-License-Identifier: MIT */
/* A binary heap keyed by (time, order of pushing): two events of one time never change places, whatever the heap did
 * before. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include "sim/heap.h"

static bool heap_is_before(const struct gp_sim_heap_event *a, const struct gp_sim_heap_event *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->seq < b->seq;
}

static int heap_grow(struct gp_sim_heap *heap)
{
	uint32_t capacity = heap->capacity ? heap->capacity * 2 : 256;
	struct gp_sim_heap_event *events = realloc(heap->events, (size_t)capacity * sizeof(*events));

	if (!events)
		return -ENOMEM;
	heap->events = events;
	heap->capacity = capacity;
	return 0;
}

int gp_sim_heap_push(struct gp_sim_heap *heap, const struct gp_sim_heap_event *event)
{
	struct gp_sim_heap_event added = *event;
	uint32_t place, parent;

	if (heap->count == heap->capacity && heap_grow(heap))
		return -ENOMEM;
	added.seq = heap->next_seq++;
	for (place = heap->count++; place; place = parent) {
		parent = (place - 1) / 2;
		if (!heap_is_before(&added, &heap->events[parent]))
			break;
		heap->events[place] = heap->events[parent];
	}
	heap->events[place] = added;
	return 0;
}

uint64_t gp_sim_heap_next_ns(const struct gp_sim_heap *heap)
{
	return heap->count ? heap->events[0].time_ns : UINT64_MAX;
}

struct gp_sim_heap_event gp_sim_heap_pop(struct gp_sim_heap *heap)
{
	struct gp_sim_heap_event first = heap->events[0], moved = heap->events[--heap->count];
	uint32_t place = 0, child;

	for (;;) {
		child = place * 2 + 1;
		if (child >= heap->count)
			break;
		if (child + 1 < heap->count && heap_is_before(&heap->events[child + 1], &heap->events[child]))
			child++;
		if (!heap_is_before(&heap->events[child], &moved))
			break;
		heap->events[place] = heap->events[child];
		place = child;
	}
	heap->events[place] = moved;
	return first;
}

void gp_sim_heap_fini(struct gp_sim_heap *heap)
{
	free(heap->events);
	*heap = (struct gp_sim_heap){ 0 };
}
