/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* One queue: what the core knows about it, and the questions that its fields alone answer. */
#ifndef GP_CORE_QUEUE_H
#define GP_CORE_QUEUE_H

#include <gpreempt/sched.h>
#include "core/heap.h"

#define GP_NONE        UINT32_MAX      /* no index */
#define GP_RANK_DOUBT  (INT64_MIN + 1) /* of work that has been only presumed for long: below every other rank */
#define GP_GAP_BUCKETS 24u             /* powers of two from 1.024 us: the last one takes all gaps above 8.6 s */

struct gp_queue {
	uint32_t generation;
	bool used;
	uint32_t client, device, seat; /* indices */
	uint32_t seat_next, seat_prev; /* list: the seat's queues */
	uint32_t gang, gang_next;      /* gang index or GP_NONE; list: its members */
	uint32_t idle_next, idle_prev; /* list: the device's open idle queues that may be parked, longest idle first */
	bool in_idle_list;
	struct gp_queue_attr attr;

	/* Heaps. The keys lie next to the places, because a heap of many queues is all cache misses. */
	uint32_t heaps;                     /* one bit for each heap that the queue is in */
	uint32_t heap_index[GP_HEAP_COUNT]; /* its place in each of them */
	int64_t rank;   /* the gang's; without a gang own_rank, raised to the highest of the seat's queues with work */
	uint64_t order; /* batch: the seat's, as of when the queue began to wait; else wait_since_ns */
	uint64_t order_then; /* decides between equal orders: smallest first */
	uint64_t timer_ns;   /* key of GP_HEAP_TIMER; GP_NEVER_NS: the queue has no timer */
	uint64_t age_key_ns; /* key of GP_HEAP_AGE: no aged turn before then */
	int64_t policy_rank; /* the policy's; above all of these while its seat is behind its share */
	int64_t own_rank;    /* policy_rank or GP_RANK_DOUBT */
	bool is_batch;

	/* Work. */
	uint64_t written, completed;
	bool is_awake;         /* counted in its level's active_count */
	bool is_busy;          /* counted in its seat's busy */
	bool has_work, hinted; /* hinted: announced work counts as work now */
	uint64_t busy_since_ns, idle_since_ns, last_done_ns;
	uint64_t wait_since_ns;            /* when its work came or its gate closed; later if others of its user wait */
	uint64_t hint_from_ns, hint_at_ns; /* 0: no hint */
	uint64_t linger_until_ns;          /* 0: not lingering */
	/* Fetch counters: how long the last packet may still run. */
	uint64_t tail_until_ns; /* it counts as work until then; 0: no such wait; GP_NEVER_NS: the gate is closed */
	uint64_t tail_ns;       /* time that the core allows the last packet; 0: the packet has not been fetched */
	uint64_t tail_left_ns;  /* what is left of tail_ns while the gate is closed */
	bool in_doubt;          /* presumed idle when its gate closed; counts as work: work_tail_gate() */

	/* Learned. */
	uint16_t gaps[GP_GAP_BUCKETS];    /* idle→busy gaps, by power of two */
	uint64_t packet_ns, busy_ns;      /* smoothed: time per packet, length of a busy period */
	uint32_t ahead;                   /* smoothed, thousandths: new packets came before the older ones were done */
	uint64_t written_ns;              /* when written last grew */
	uint32_t dense;                   /* smoothed, thousandths: packets came closely one after the other */
	uint64_t dense_ns, dense_written; /* time and written when dense was last updated */

	/* Gate. */
	enum gp_gate gate;
	enum gp_why order_why;        /* of the order under way */
	uint64_t opened_ns, order_ns; /* last opened; order under way since */
	uint64_t order_seq;           /* the plan of its last order */
	uint64_t prompt_until_ns;     /* an answer until then is prompt; 0: no order is under way, or it is overdue */
	uint64_t order_due_ns;        /* the core gives the order up then; 0: no order is under way */
	bool is_awaited;              /* the device gets no other plan before the answer */
	uint32_t awaited_next, awaited_prev;
	bool is_overdue;    /* an order is under way and the core has stopped waiting for the answer */
	uint64_t given_seq; /* plan of an order that the core gave up and the driver has not asked for yet; 0: none */
	bool given_open;
	enum gp_why given_why;
	uint32_t given_next, given_prev;
	uint64_t hold_until_ns; /* no order before then (rest of work short, min open, back-off); 0: free */
	enum gp_why hold_why;   /* why no order goes out before hold_until_ns; left_why is forgotten sooner */
	bool short_tried;       /* the short-rest exemption was used in this busy period */
	enum gp_why left_why;   /* why the core leaves it open though its rank is lower */
	uint32_t fail_count;    /* failed orders since the last close that succeeded */
	bool is_gate_lost;      /* the gate changed by itself while the present order was under way … */
	bool is_lease_lost;     /* … and only because the driver was late to renew its lease */
	enum gp_why condemned;  /* it failed too often, for this reason: quarantined as soon as it was ordered open */
	bool is_stuck;          /* in quarantine in its own right, not because another member of its gang is */
	bool keeps_gang;        /* is_stuck, and the other members of its gang stay open with it */

	/* Slice. */
	uint64_t slice_ns;       /* as last acknowledged; 0: as its application has it */
	bool slice_unknown;      /* an order was lost, or something else than the core has set it */
	uint64_t slice_seq;      /* the plan of the order under way; 0: none is */
	uint64_t slice_order_ns; /* what that order asks for */
	uint64_t slice_from_ns;  /* when the core gave it */
	uint64_t slice_due_ns;   /* the core gives it up then; 0: none is under way */
	uint64_t slice_hold_ns;  /* no new order before then, because one failed; 0: free */
	uint32_t slice_fails;    /* in a row */
	bool slice_opens_long;   /* it opens beside a short one, so it opens with its application's own slice */
	bool is_passed;          /* plan_open_ready() passed it over: its slice must be set first */
	uint32_t passed_next;    /* list of those: the one passed before it */

	/* Ageing: it must have been open with work for age_turn_ns since age_start_ns, or it is due. */
	uint64_t age_start_ns, age_open_ns;
	uint64_t age_due_ns;         /* when it is due; 0: its gate is not closed on work */
	bool age_waits;              /* it was due and is in its user's list */
	uint32_t age_next, age_prev; /* in that list */
	uint32_t age_level;          /* its window is 2^level times as long */
	bool aged;                   /* has an aged turn: priority does not close it */
	bool in_vain;                /* it completed no packet in its last aged turn */
	uint64_t aged_mark;          /* packets completed when the aged turn began */

	/* Accounts. */
	uint64_t run_ns, wait_ns, mark_ns; /* mark: accounted up to here */
	uint64_t preemptions;              /* closes ordered while it had work */

	/* Inversions: how many are over; the present one. */
	uint64_t inversions;
	bool inverted;
	uint64_t inverted_since_ns;
	uint32_t inverted_by;              /* index of a lower queue that runs now */
	struct gp_queue_id inverted_by_id; /* the lower queue that ran when the inversion began */
	uint32_t inverted_next, inverted_prev;
};

static inline bool gp_heap_has(const struct gp_queue *queue, enum gp_heap_name name)
{
	return queue->heaps >> name & 1;
}

/* Work gets through, or may. CLOSING, UNKNOWN and QUARANTINED count as open. */
static inline bool gp_gate_lets_through(enum gp_gate gate)
{
	return gate != GP_GATE_CLOSED && gate != GP_GATE_OPENING;
}

/* An order is under way. */
static inline bool gp_gate_moves(enum gp_gate gate)
{
	return gate == GP_GATE_CLOSING || gate == GP_GATE_OPENING;
}

/* The queue gives its hardware slot back in a moment. */
static inline bool gp_gate_is_closing(const struct gp_queue *queue)
{
	return queue->attr.kind == GP_KIND_COMPUTE && queue->gate == GP_GATE_CLOSING && queue->prompt_until_ns;
}

/* The queue holds a hardware slot that the core cannot take back. */
static inline bool gp_gate_is_fixed(const struct gp_queue *queue)
{
	return queue->attr.kind == GP_KIND_COMPUTE && queue->gate != GP_GATE_CLOSED &&
	       (queue->attr.unseen || queue->gate == GP_GATE_QUARANTINED);
}

/* The agent must sample the queue now and then, because it cannot observe the doorbells behind the closed gate. */
static inline bool gp_gate_is_blind(const struct gp_queue *queue)
{
	return queue->attr.unseen && queue->gate == GP_GATE_CLOSED;
}

/* Of two queues of one rank that wait, a is first. */
static inline bool gp_turn_is_before(const struct gp_queue *a, const struct gp_queue *b)
{
	return a->order != b->order ? a->order < b->order : a->order_then < b->order_then;
}

/* The queue had work for elapsed_ns. A gate in CLOSING may be closed already, so that time does not count as open. */
static inline void gp_age_account(struct gp_queue *queue, uint64_t elapsed_ns)
{
	if (queue->gate == GP_GATE_OPEN)
		queue->age_open_ns += elapsed_ns;
}

/* When the queue's ageing window is over; 0: nothing is due. */
static inline uint64_t gp_age_timer_ns(const struct gp_queue *queue)
{
	return queue->aged || queue->age_waits ? 0 : queue->age_due_ns;
}

/* When the core gives up the order for the queue's slice, or repeats it; 0: nothing is due. */
static inline uint64_t gp_slice_timer_ns(const struct gp_queue *queue)
{
	return queue->slice_due_ns ? queue->slice_due_ns : queue->slice_hold_ns;
}

#endif
