/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A plan in the making: what plan.c, age.c, slice.c and slots.c share. */
#ifndef GP_CORE_PLAN_H
#define GP_CORE_PLAN_H

#include "core/calls.h"

struct gp_plan_builder {
	struct gp_sched *sched;
	struct gp_device *device;
	struct gp_plan *plan;
	uint32_t closing_compute; /* compute gates that this plan or a recent one closes: their slots count as free */
	uint32_t closing_seats;
};

static inline bool gp_plan_is_full(const struct gp_plan_builder *b)
{
	return b->plan->close_count >= GP_PLAN_MAX || b->plan->open_count >= GP_PLAN_MAX;
}

static inline struct gp_order gp_plan_order(const struct gp_sched *sched, uint32_t queue, enum gp_why why)
{
	uint32_t client = sched->queues[queue].client, gang = sched->queues[queue].gang;

	return (struct gp_order){ gp_queue_id_of(sched, queue),
				  { client, sched->clients[client].generation },
				  why,
				  false,
				  gang == GP_NONE ? 0 : sched->gangs[gang].move };
}

/* plan.c */
void gp_plan_close(struct gp_plan_builder *b, uint32_t queue, enum gp_why why);
void gp_plan_open(struct gp_plan_builder *b, uint32_t queue, enum gp_why why);
/* How many transactions the device needs for these orders. */
uint32_t gp_plan_transactions(struct gp_sched *sched, const struct gp_device *device, const struct gp_order *orders,
			      uint32_t order_count);

/* age.c: opens the queues whose aged turn it is. */
void gp_age_open(struct gp_plan_builder *b);

/* slice.c: only on devices whose slices can be set. */
bool gp_slice_lets_open(struct gp_plan_builder *b, uint32_t queue);
void gp_slice_plan(struct gp_plan_builder *b);

/* A queue that may have a short slice must not open beside another short one; orders what must be done before. */
static inline bool gp_slice_may_open(struct gp_plan_builder *b, uint32_t queue)
{
	return !b->device->attr.short_ns || gp_slice_lets_open(b, queue);
}

/* slots.c: hardware slots and process slots. */
bool gp_slots_has(const struct gp_plan_builder *b); /* room for one more compute gate */
/* The queue can open and no other queue must close for it. */
bool gp_slots_is_free(const struct gp_plan_builder *b, const struct gp_queue *opening);
/* Closes other queues if the opening one needs that; false: it cannot open now. */
bool gp_slots_make_room(struct gp_plan_builder *b, const struct gp_queue *opening);
void gp_slots_close_overflow(struct gp_plan_builder *b);

#endif
