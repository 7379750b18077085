/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the files of the core offer each other, one block a file. heap.h and plan.h have the rest. */
#ifndef GP_CORE_CALLS_H
#define GP_CORE_CALLS_H

#include "core/state.h"

/* Makes the queue a member of the heap or not. Its keys must not change while it is a member. */
static inline void gp_heap_put(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue,
			       bool member)
{
	if (gp_heap_has(&sched->queues[queue], name) == member)
		return;
	if (member)
		gp_heap_add(sched, device, name, queue);
	else
		gp_heap_remove(sched, device, name, queue);
}

/* trace.c */
void gp_trace(struct gp_sched *sched, enum gp_trace_type type, uint32_t queue, enum gp_why why, uint64_t value);
void gp_trace_pair(struct gp_sched *sched, enum gp_trace_type type, uint32_t queue, struct gp_queue_id other,
		   enum gp_why why, uint64_t value);
void gp_trace_plan(struct gp_sched *sched, const struct gp_plan *plan);
void gp_trace_device(struct gp_sched *sched, enum gp_trace_type type, uint32_t device, enum gp_why why, uint64_t value);

/* learn.c: what a queue's past says. */
uint64_t gp_learn_smooth(uint64_t old, uint64_t new);
void gp_learn_gap(struct gp_queue *queue, uint64_t gap_ns);
uint64_t gp_learn_linger_ns(const struct gp_queue *queue, uint64_t cycle_ns, uint64_t linger_max_ns);
uint64_t gp_learn_gap_ns(const struct gp_queue *queue); /* nine of ten gaps are shorter; 0: not known */
void gp_learn_done(struct gp_queue *queue, uint64_t done_count, uint64_t now_ns);
void gp_learn_ahead(struct gp_queue *queue, uint64_t written, uint64_t completed); /* before the fields take these */
void gp_learn_busy(struct gp_queue *queue, uint64_t busy_ns);
uint64_t gp_learn_rest_ns(const struct gp_queue *queue, uint64_t now_ns); /* GP_NEVER_NS: not known */

/* work.c: a queue's work comes and goes; accounts and heaps follow. */
void gp_work_refresh(struct gp_sched *sched, uint32_t queue);  /* heaps after any change of work, gate or turn */
void gp_work_rerank(struct gp_sched *sched, uint32_t queue);   /* asks the policy again */
void gp_work_set_rank(struct gp_sched *sched, uint32_t queue); /* from its own rank, its gang's and its seat's */
void gp_work_begin(struct gp_sched *sched, uint32_t queue);    /* idle→busy */
void gp_work_end(struct gp_sched *sched, uint32_t queue);      /* busy→idle */
void gp_work_gate(struct gp_sched *sched, uint32_t queue, enum gp_gate gate); /* only this changes a gate's state */
void gp_work_account(struct gp_sched *sched, uint32_t queue);                 /* run and wait time up to now */
void gp_work_timer(struct gp_sched *sched, uint32_t queue);                   /* sets it from the queue's own times */
void gp_work_due(struct gp_sched *sched, uint32_t queue);                     /* its timer fired */

/* age.c: no queue waits for ever, and no user takes more than a share by waiting. */
void gp_age_join(struct gp_sched *sched, uint32_t seat);                      /* a new seat: finds its user's share */
void gp_age_forget(struct gp_sched *sched, uint32_t seat);                    /* before the seat goes */
void gp_age_update(struct gp_sched *sched, uint32_t queue);                   /* its work or gate changed */
void gp_age_completed(struct gp_sched *sched, uint32_t queue);                /* it completed packets */
void gp_age_due(struct gp_sched *sched, uint32_t queue);                      /* its timer fired */
void gp_age_opened(struct gp_sched *sched, const struct gp_queue *queue);     /* by an order */
void gp_age_late(struct gp_sched *sched, uint32_t queue);                     /* its order is overdue */
void gp_age_end(struct gp_sched *sched, struct gp_device *device);            /* the aged turn, if it is over */
void gp_age_begin(struct gp_sched *sched, struct gp_device *device);          /* the next one, if it is time */
void gp_age_gang_opens(struct gp_sched *sched, const struct gp_gang *gang);   /* for an aged turn of one member */
void gp_age_gang_shrinks(struct gp_sched *sched, const struct gp_gang *gang); /* the turn's owner may have left */
void gp_age_quarantined(struct gp_sched *sched, uint32_t queue);              /* ends the queue's aged turn */
uint64_t gp_age_run_ns(const struct gp_device *device); /* bound.c: an aged turn with its orders */

/* floor.c: guaranteed shares. */
bool gp_floor_admits(const struct gp_sched *sched, const struct gp_core_client *client, uint32_t device,
		     uint32_t permille);
/* The queue begins to run or ends. A change of is_batch is an end before and a begin after it. */
void gp_floor_runs(struct gp_sched *sched, const struct gp_queue *q, bool begins);
void gp_floor_set(struct gp_sched *sched, uint32_t seat);               /* its queues, or their floors, have changed */
void gp_floor_update(struct gp_sched *sched, struct gp_device *device); /* which seats are behind */
const char *gp_floor_check(const struct gp_sched *sched, const struct gp_device *device); /* NULL, or what is wrong */

/* inversion.c: which queue waits for which lower one, and how long. */
void gp_inversion_work(struct gp_sched *sched, uint32_t queue);    /* its work or rank changed */
void gp_inversion_started(struct gp_sched *sched, uint32_t queue); /* it began to run */
void gp_inversion_stopped(struct gp_sched *sched, uint32_t queue, enum gp_why why);
void gp_inversion_changed(struct gp_sched *sched, uint32_t queue); /* whether the device puts it aside by itself */

/* turn.c: which batch seats may be open. */
void gp_turn_join(struct gp_sched *sched, uint32_t seat); /* a new seat, which has its share */
void gp_turn_account(struct gp_sched *sched, struct gp_seat *seat);
void gp_turn_enter(struct gp_sched *sched, uint32_t queue); /* it is about to get work, or to count as if it had */
void gp_turn_work(struct gp_sched *sched, uint32_t queue, bool begins); /* the seat's first work, or its last */
void gp_turn_give(struct gp_sched *sched, uint32_t seat);
void gp_turn_take(struct gp_sched *sched, uint32_t seat);
void gp_turn_opened(struct gp_sched *sched, const struct gp_queue *queue); /* its order to open is done */
void gp_turn_assign(struct gp_sched *sched, struct gp_device *device);     /* decides which seats have turns now */
bool gp_turn_can_get(struct gp_sched *sched, uint32_t seat, int64_t rank);
/* The waiter could get a turn, but a gang that waits for other devices comes first. Wakes the device when that ends. */
bool gp_turn_is_kept(struct gp_sched *sched, const struct gp_queue *waiter);
void gp_turn_get(struct gp_sched *sched, uint32_t seat, int64_t rank); /* only after gp_turn_can_get() */
/* No holder with work ranks above this rank. */
bool gp_turn_is_best(const struct gp_sched *sched, const struct gp_device *device, int64_t rank);
/* No holder, with work or without, ranks as high as this. */
bool gp_turn_is_above(const struct gp_sched *sched, const struct gp_device *device, int64_t rank);
void gp_turn_force(struct gp_sched *sched, uint32_t seat); /* an aged seat takes the turn from its holder */
void gp_turn_check(struct gp_sched *sched, uint32_t seat); /* the next plan checks its gates */
/* A gate is open outside its turn. */
bool gp_turn_has_to_close(const struct gp_sched *sched, const struct gp_device *device);
void gp_turn_settle(struct gp_sched *sched, struct gp_device *device); /* priority_top changed: reranks all queues */
void gp_turn_forget(struct gp_sched *sched, uint32_t seat);            /* before the seat goes */
uint64_t gp_turn_floor(struct gp_sched *sched, const struct gp_device *device);

/* rest.c: which priorities count. */
void gp_rest_count(struct gp_sched *sched, uint32_t queue, bool in);    /* the queue comes, or goes */
void gp_rest_work(struct gp_sched *sched, uint32_t queue, bool active); /* it has work, or not any more */
bool gp_rest_update(struct gp_sched *sched, struct gp_device *device);  /* true: gp_turn_settle() is due */

/* gang.c: queues that open and close together on several devices. */
bool gp_gang_can_join(const struct gp_sched *sched, uint32_t id);
void gp_gang_join(struct gp_sched *sched, uint32_t queue, uint32_t id); /* only after gp_gang_can_join() */
void gp_gang_leave(struct gp_sched *sched, uint32_t queue);
void gp_gang_work(struct gp_sched *sched, uint32_t gang, bool begins);
void gp_gang_rank(struct gp_sched *sched, uint32_t gang);
void gp_gang_close(struct gp_sched *sched, uint32_t gang, enum gp_why why); /* on all its devices */
void gp_gang_open(struct gp_sched *sched, uint32_t gang, enum gp_why why);
/* A gang that loses its turn on one device loses it on all, unless the gang is closed and idle. */
void gp_gang_lose_turn(struct gp_sched *sched, uint32_t gang, uint32_t device);
/* A gang was closed before the waiter's, waits for a turn on this device, and waits for nothing but turns. */
bool gp_gang_is_before(const struct gp_sched *sched, const struct gp_queue *waiter);
/* The gang is closed, and would stay closed even if it had all turns. */
bool gp_gang_is_away(const struct gp_sched *sched, const struct gp_gang *gang);
/* Another client has a member of the queue's gang on the same device. The two may wait for each other, and the device
 * puts only one of them aside. So the core closes them together where it would leave a single one to the device. */
bool gp_gang_is_several(const struct gp_sched *sched, const struct gp_queue *queue);
void gp_gang_share_turn(struct gp_sched *sched, uint32_t seat);         /* the seat has just got one */
void gp_gang_decide(struct gp_sched *sched);                            /* which closed gangs may open now */
void gp_gang_stick(struct gp_sched *sched, uint32_t queue, bool stuck); /* in quarantine in its own right, or not */
void gp_gang_stick_client(struct gp_sched *sched, uint32_t client);     /* its is_stuck_alone may have changed */

/* budget.c: how much preempting may cost. */
/* false: wakes the device when it can pay. */
bool gp_budget_can_pay(struct gp_sched *sched, struct gp_device *device, uint32_t transaction_count);
void gp_budget_pay(struct gp_device *device, uint32_t transaction_count);
bool gp_budget_holds_back(struct gp_sched *sched, const struct gp_queue *queue); /* the queue must not open yet */
uint64_t gp_budget_limit(const struct gp_device *device); /* of switches: thousandths of one a second */
/* The slice of queues that the device puts aside by itself: the shortest, unless switches cost too much. */
uint64_t gp_budget_short_ns(const struct gp_device *device);
void gp_budget_confirm(const struct gp_sched *sched, struct gp_device *device); /* the limit of switches is needed */
void gp_budget_doubt(const struct gp_sched *sched, struct gp_device *device);   /* it may not be: counts decide */
void gp_budget_refresh(struct gp_sched *sched, struct gp_device *device);       /* forgets old counts */

/* slice.c: how long the device runs a queue before it looks at others. */
bool gp_slice_is_short_ns(const struct gp_device *device, uint64_t slice_ns);
bool gp_slice_may_be_short(const struct gp_device *device, const struct gp_queue *queue);
bool gp_slice_is_lower(const struct gp_sched *sched, const struct gp_queue *queue); /* it should be short */
/* Its gate cannot open before its slice is long, whoever gives up the turn: a short one in quarantine has work. */
bool gp_slice_is_barred(const struct gp_sched *sched, const struct gp_queue *queue);
void gp_slice_due(struct gp_sched *sched, uint32_t queue);                                /* its timer fired */
const char *gp_slice_check(const struct gp_sched *sched, const struct gp_device *device); /* NULL, or what is wrong */

/* under.c: a batch seat that loses its turn to a higher one may stay open below it. */
void gp_under_begin(struct gp_sched *sched, uint32_t lower, uint32_t middle, uint64_t used_ns); /* lower just lost it */
void gp_under_update(struct gp_sched *sched, struct gp_device *device);                         /* ends it if over */
void gp_under_forget(struct gp_sched *sched, struct gp_device *device, uint32_t seat); /* before the seat goes */
bool gp_under_is_long(const struct gp_sched *sched, const struct gp_queue *queue);

/* stay.c: requests that come in pieces, on devices that switch by themselves. */
void gp_stay_look(struct gp_sched *sched, struct gp_device *device); /* the queues with work may have changed */
void gp_stay_plan(struct gp_sched *sched, struct gp_device *device); /* decides whether batch clients are held out */
/* How long a pause must be to end a stretch; linger_ns: as learned. */
uint64_t gp_stay_linger_ns(const struct gp_device *device, const struct gp_queue *queue, uint64_t linger_ns);
/* The device made so many switches in window_ns, since the last count or gp_stay_count_begin(). */
void gp_stay_counted(struct gp_sched *sched, struct gp_device *device, uint32_t switches, uint64_t window_ns);
void gp_stay_count_begin(struct gp_sched *sched, struct gp_device *device);
enum gp_why gp_stay_why(const struct gp_device *device); /* why batch clients are held out */

/* gather.c: urgent programs that launch ahead of a device that switches by itself. */
void gp_gather_look(struct gp_sched *sched, struct gp_queue *queue, uint64_t written,
		    uint64_t completed);               /* before the fields take these */
uint64_t gp_gather_ns(const struct gp_device *device); /* the slice below a client that launches ahead; 0: none */
bool gp_gather_is(const struct gp_device *device);     /* slices below are long while it launches */
/* Decides whether the client waits. top: a queue that has work or had a moment ago; GP_NONE: there is none. */
void gp_gather_plan(struct gp_sched *sched, struct gp_device *device, uint32_t top);

/* apply.c: what became of orders. */
void gp_apply_begin(struct gp_sched *sched, struct gp_order *order, const struct gp_plan *plan); /* it is under way */
void gp_apply_due(struct gp_sched *sched, uint32_t queue);    /* its order may be overdue, or must be given up */
void gp_apply_follow(struct gp_sched *sched, uint32_t queue); /* a member of its gang cannot be put aside */
void gp_apply_not_awaited(struct gp_sched *sched, struct gp_queue *queue);
void gp_apply_forget(struct gp_sched *sched, uint32_t queue); /* the driver need not ask what was given up */

#endif
