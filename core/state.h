/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The core's state and what its files offer each other. Nobody outside core/ includes this.
 *
 * A *seat* is one client on one device; turns are taken by seats, because the queues of one process may wait for each
 * other. All state belongs to the one caller who serialises; nothing here is shared.
 */
#ifndef GP_CORE_STATE_H
#define GP_CORE_STATE_H

#include <gpreempt/policy.h>
#include <gpreempt/sched.h>

#define GP_NONE        UINT32_MAX
#define GP_UNLIMITED   UINT32_MAX      /* batch_max: no turns needed, all may be open */
#define GP_RANK_DOUBT  (INT64_MIN + 1) /* of work that is only presumed, for long: below everybody */
#define GP_GAP_BUCKETS 24u             /* powers of two from 1.024 us: the last one takes all gaps above 8.6 s */

/* Which heap a queue can be in; heaps are per device. Top is what the decision looks at first. */
enum gp_heap_name {
	GP_HEAP_WORK,    /* has work, or announced work, or is in a gang that has: highest rank on top */
	GP_HEAP_LINGER,  /* drained a moment ago, holds lower gates closed: highest rank on top */
	GP_HEAP_OPEN,    /* gate open and ours to close: lowest rank on top */
	GP_HEAP_RUNNING, /* has work and its gate is not closed: lowest rank on top */
	GP_HEAP_READY,   /* waits behind a closed gate and needs no turn, or has it: highest rank, then order */
	GP_HEAP_TURN,    /* waits behind a closed gate for its seat's turn: highest rank, then order */
	GP_HEAP_TIMER,   /* something is due for the queue at timer_ns: earliest on top */
	GP_HEAP_AGE,     /* of each user the queue whose aged turn is next: the one who may have it first on top */
	GP_HEAP_COUNT
};

struct gp_heap {
	uint32_t *slots;
	uint32_t count;
}; /* queue indices; capacity: the device's queue_max */

struct gp_queue {
	uint32_t generation;
	bool used;
	uint32_t client, device, seat; /* indices */
	uint32_t seat_next, seat_prev; /* the seat's queues */
	uint32_t gang, gang_next;      /* gang index or GP_NONE; its members */
	uint32_t idle_next, idle_prev; /* the device's open idle queues that may be parked, longest idle first */
	bool in_idle_list;
	struct gp_queue_attr attr;

	/* Heaps: what they are ordered by is next to the places, because a heap of many queues is all cache misses. */
	uint32_t heaps;                     /* a bit for each heap that it is in … */
	uint32_t heap_index[GP_HEAP_COUNT]; /* … and its place there */
	int64_t rank;                       /* the policy's, raised to its gang's or its seat's highest with work */
	uint64_t order;      /* batch: the seat's, as of when it began to wait; else since when it waits … */
	uint64_t order_then; /* … and of two with the same order this one's is smaller that is first */
	uint64_t timer_ns;   /* in GP_HEAP_TIMER: something is due then; GP_NEVER_NS: nothing is */
	uint64_t age_key_ns; /* in GP_HEAP_AGE: not before */
	int64_t policy_rank; /* the policy's … */
	int64_t own_rank;    /* … or GP_RANK_DOUBT */
	bool is_batch;

	/* Work. */
	uint64_t written, completed;
	bool is_awake;         /* counted in its level's active_count */
	bool is_busy;          /* counted in its seat's busy */
	bool has_work, hinted; /* hinted: announced work counts as work now */
	uint64_t busy_since_ns, idle_since_ns, last_done_ns;
	uint64_t wait_since_ns; /* its work came, or its gate closed on it; later, if others of its user wait */
	uint64_t hint_from_ns, hint_at_ns; /* 0: none */
	uint64_t linger_until_ns;          /* 0: not lingering */
	uint64_t tail_until_ns; /* fetch counters: not idle before; 0: not waiting; GP_NEVER_NS: behind a closed gate */
	uint64_t tail_ns, tail_left_ns; /* time the last packet is given, 0: it was not fetched yet; what is left of it
					   while closed */
	bool in_doubt;                  /* was presumed idle when its gate closed; counts as work, see work.c */

	/* Learned. */
	uint16_t gaps[GP_GAP_BUCKETS]; /* idle→busy gaps, by power of two */
	uint64_t packet_ns, busy_ns;   /* smoothed: time per packet, length of a busy period */
	uint32_t ahead;                /* smoothed, thousandths: how often it was given more before it got anywhere */
	uint64_t written_ns;           /* when it was last seen to have been given more */
	uint32_t dense;                /* smoothed, thousandths: how often pieces came closely; since the last time: */
	uint64_t dense_ns, dense_written;

	/* Gate. */
	enum gp_gate gate;
	enum gp_why order_why;        /* of the order under way */
	uint64_t opened_ns, order_ns; /* last opened; order under way since */
	uint64_t order_seq;           /* the plan of its last order */
	uint64_t prompt_until_ns;     /* an answer until then is prompt; 0: no order is under way, or it is overdue */
	uint64_t order_due_ns;        /* given up then; 0: no order is under way */
	bool is_awaited;              /* the device has no other plan before */
	uint32_t awaited_next, awaited_prev;
	bool is_overdue;    /* under way, and not waited for any more */
	uint64_t given_seq; /* an order that was given up, and the driver does not know yet; 0: none */
	bool given_open;
	enum gp_why given_why;
	uint32_t given_next, given_prev;
	uint64_t hold_until_ns; /* do not order before (short rest, min open, back-off); 0: free */
	bool short_tried;       /* the short-rest exemption was used in this busy period */
	enum gp_why left_why;   /* why it is left open though of lower rank */
	uint32_t fail_count;    /* failed orders since the last close that succeeded */
	bool is_gate_lost;      /* it changed while the present order was under way */
	enum gp_why condemned;  /* failed too often, for this reason: quarantined as soon as it was ordered open */
	bool is_stuck;          /* in quarantine in its own right, not because another member of its gang is */
	bool keeps_gang;        /* is_stuck, and the others of its gang stay open with it */

	/* Slice. */
	uint64_t slice_ns;       /* as last acknowledged; 0: as its application has it */
	bool slice_unknown;      /* an order was lost, or somebody else has set it */
	uint64_t slice_seq;      /* the plan of the order under way; 0: none is */
	uint64_t slice_order_ns; /* what it orders */
	uint64_t slice_from_ns;  /* ordered then */
	uint64_t slice_due_ns;   /* given up then; 0: none is under way */
	uint64_t slice_hold_ns;  /* not ordered before: it failed; 0: free */
	uint32_t slice_fails;    /* in a row */
	bool slice_opens_long;   /* it is to open beside a short one: as its application has it, then */
	bool is_passed;          /* it waits for that, and others were looked at meanwhile … */
	uint32_t passed_next;    /* … the one before it */

	/* Ageing: it must have been open with work for age_turn since age_start, or it is due. */
	uint64_t age_start_ns, age_open_ns;
	uint64_t age_due_ns;         /* when it is due; 0: its gate is not closed on work */
	bool age_waits;              /* it was due: it waits in its user's list */
	uint32_t age_next, age_prev; /* in that list */
	uint32_t age_level;          /* its window is 2^level times as long */
	bool aged;                   /* has an aged turn: not closed by priority */
	bool in_vain;                /* no packet was completed in its last aged turn */
	uint64_t aged_mark;          /* packets completed when the aged turn began */

	/* Accounts. */
	uint64_t run_ns, wait_ns, mark_ns; /* mark: accounted up to here */
	uint64_t preemptions;              /* closes ordered while it had work */

	/* Inversions: how often it waited; the one under way. */
	uint64_t inversions;
	bool inverted;
	uint64_t inverted_since_ns;
	uint32_t inverted_by; /* queue index */
	struct gp_queue_id inverted_by_id;
	uint32_t inverted_next, inverted_prev;
};

struct gp_seat {
	bool used;
	uint32_t client, device, share;
	uint32_t client_next, device_next, device_prev;
	uint32_t queue_first, queue_count;
	uint32_t work_count;    /* queues in GP_HEAP_WORK */
	uint32_t busy[2];       /* of these, the ones that have work, not only announced it; by kind */
	uint32_t open_count;    /* gates not closed */
	uint32_t batch_count;   /* queues that take turns */
	uint32_t overdue_count; /* queues whose order nobody waits for any more */
	int64_t rank;           /* the highest among its queues with work; INT64_MIN: none has */
	bool mixed;             /* its queues' own ranks differ, or did */
	uint32_t running[2];    /* queues in GP_HEAP_RUNNING, by kind */
	bool has_turn;
	bool weight_is_old; /* one of the largest weight went */
	bool check_gates;   /* in the device's list of seats to look at */
	uint32_t check_next;
	bool came_for_work; /* waits since it got work, not since its turn ended: may end another's turn early */
	bool cut;           /* its last turn was ended early */
	bool is_top;        /* is among its share's top_seats */
	bool is_extra;      /* its user had enough of those when its work came: it takes turns, whatever its priority */
	uint64_t turn_tag;  /* its place in the line for turns: smallest first */
	uint64_t turn_used_ns, mark_ns; /* time run in the present turn; mark: accounted up to here */
	uint64_t turn_seq;              /* the last plan that opened a gate of its turn */
	uint64_t request_mark_ns;       /* what it had computed when it last got work */
	uint64_t joined_ns;
	uint64_t wait_ns; /* it had work and none of its queues ran */
	uint64_t work_ns; /* one of its compute queues had work */
	uint64_t stamp;   /* last plan it was counted in */
	/* floor.c alone, but for is_behind and floor_serial */
	uint32_t floor_permille, floor_next;
	uint64_t floor_work_ns;       /* accounted up to this */
	int64_t floor_debt;           /* thousandths of ns */
	uint32_t run_count[2];        /* compute queues that run: batch ones, others */
	uint64_t floor_got, run_mark; /* what it had of the device; of run_part it has up to here */
	bool is_behind;               /* it goes before every priority */
	uint64_t floor_serial;        /* who is behind for longest has the smallest */
	struct gp_policy_seat view;
};

/* One user on one device. */
struct gp_share {
	uint64_t user; /* 0: of one client that is a user of its own */
	uint32_t device;
	uint32_t seat_count, queue_count;  /* no seats: free */
	uint32_t work_seats;               /* seats with work */
	uint32_t open_seats, open_compute; /* seats with a gate not closed; compute gates not closed */
	uint64_t ready_ns;                 /* the place of its next queue that waits for a slot */
	uint32_t hash_next;                /* or the next free one */
	uint32_t first, last;              /* queues that are due, longest first */
	uint32_t head;                     /* of these the one in GP_HEAP_AGE; GP_NONE: none is closed */
	uint64_t next_ns;                  /* no aged turn before */
	uint32_t level;     /* 2^level windows between its turns: so many were in vain, one after another */
	uint32_t top_seats; /* with work, that took no turns when it came */
	uint64_t turn_tag;  /* of its next seat that comes into the line for turns */
};

struct gp_gang {
	bool used;
	uint32_t id; /* the caller's number */
	uint32_t first, member_count, work_count;
	uint32_t stuck_count; /* members that cannot be put aside and keep it: then none is */
	uint64_t device_mask;
	int64_t rank;  /* its members' highest */
	uint64_t move; /* counts its openings and closings, over all gangs */
	bool want_open;
	uint32_t closed_next, closed_prev; /* while it does not: those that were closed after it, and before */
	uint64_t closed_ns;                /* and since when */
	uint64_t order;
	enum gp_why why;
};

struct gp_core_client {
	uint32_t generation;
	bool used;
	struct gp_client_attr attr;
	uint32_t seat_first;
	uint32_t distrust; /* prompt answers that are missing until it is waited for again */
};

/* The queues of one priority on one device; the last one: those with a deadline, whatever their priority. */
#define GP_LEVEL_DEADLINE (GP_PRIORITY_MAX + 1)
struct gp_level {
	uint32_t queue_count, active_count; /* active: in GP_HEAP_WORK */
	uint64_t awake_until_ns;            /* without any of these it counts until then */
};

/* Stretches of urgent work on a device that switches by itself (stay.c). One goes on as long as those who take no turns
 * have work, or had some a moment ago. */
enum gp_stay_state { GP_STAY_OUT, GP_STAY_WORK, GP_STAY_GAP };
struct gp_stay {
	enum gp_stay_state state;
	uint64_t mark_ns;                        /* accounted up to here */
	uint64_t busy_ns, idle_ns;               /* of the present stretch: work, and gaps that it went on after */
	uint64_t gap_ns;                         /* of the present gap */
	uint64_t out_ns;                         /* the last one ended */
	uint64_t held_ns, held_idle_ns;          /* of the time since others are held out: all, and gaps */
	uint64_t total_ns, total_idle_ns, count; /* of all that are over; how many have begun */
	uint64_t counted_ns, counted_idle_ns, counted_count; /* the same when switches were last counted */
	/* Learned. */
	uint64_t length_ns;      /* of a stretch */
	uint64_t idle;           /* thousandths of gaps, while others were held out; 0: not known … */
	uint64_t seen;           /* … and as estimated while they were not */
	uint64_t rate;           /* switches beyond the first of each stretch, in a thousand seconds of them */
	uint64_t known_until_ns; /* that is forgotten then … */
	uint64_t hold_ns;        /* … after so long */
	/* Decided. */
	enum gp_protect protect; /* of the urgent client that has work, or had some last */
	bool is_away;            /* it has had no work for so long that the limit of switches does not count */
	bool gathers;            /* it writes on while its work waits: it can wait a little longer */
	uint64_t shared_ns;      /* it is held out and let in by turns since; 0: it is not */
	uint64_t alone_ns;       /* such turns last began without a trial; 0: never */
	bool stays;              /* stretches like the present one, or the last, have the device to themselves … */
	bool holds;              /* … and this one does now: batch gates close, and stay so to its end */
};

/* An urgent client that launches ahead (gather.c). */
struct gp_gather {
	bool waits;        /* it waits for a result: batch clients are held out, unless it is not protected */
	uint32_t queue;    /* which; these two count while that is so */
	uint64_t written;  /* what it waits for: this much must be done … */
	uint64_t done_ns;  /* … and was, then; 0: not yet */
	bool is_pause;     /* it has launched more before that: it did not wait */
	uint64_t until_ns; /* that is done, and they are held out a moment longer; GP_NEVER_NS: it is not */
	uint64_t quiet_ns; /* learned: it waits if it has launched nothing for so long; 0: not known */
};

struct gp_device {
	struct gp_device_attr attr;
	struct gp_param param;
	uint64_t turn_ns; /* as it was set; param's is at least worth its end */
	const struct gp_policy *policy;
	struct gp_heap heaps[GP_HEAP_COUNT];
	uint32_t queue_count, seat_count, seat_first;
	uint32_t batch_max, turn_count; /* seats that may have, and have, a turn */
	uint32_t turn_seats[GP_BATCH_MAX];
	uint32_t open_compute_count;    /* compute gates not closed */
	uint32_t closing_compute_count; /* of these, the ones that were ordered closed and are not overdue */
	uint32_t open_fixed_count;      /* of these, the ones that are never parked: unseen or quarantined */
	uint32_t closed_unseen_count;
	uint32_t open_seat_count; /* seats with a gate not closed */
	uint32_t idle_first, idle_last;
	uint32_t check_first; /* seats whose gates must be looked at */
	uint32_t inverted_first;
	struct gp_level levels[GP_LEVEL_DEADLINE + 1];
	int32_t priority_top;          /* the highest that counts: see rest.c */
	int32_t priority_highest;      /* of all queues that are there, at work or not; 0: none is */
	uint32_t deadline_queue_count; /* 0 as well where those with deadlines rest */
	uint64_t budget_used_ppm;      /* edf: sum of budget/deadline */
	uint64_t turn_clock;           /* turns ended, ever */
	uint64_t turn_tag;             /* the largest that has had a turn */
	uint64_t reorder_ns;           /* those who wait are asked for their order again, not before */
	bool dirty;                    /* something changed since the last look */
	bool stopped, opening_all;
	bool oversubscribed;
	uint32_t other_queue_count, other_process_count; /* hold slots and places, and are nobody's of ours */
	uint32_t unknown_count;                          /* gates in GP_GATE_UNKNOWN */

	/* The last plan: the queues hold the rest. */
	uint32_t awaited_first; /* of its orders; GP_NONE: none is */
	uint64_t patient_until_ns;
	uint64_t timeout_seq; /* the last plan that was not answered whole */

	/* Preemption budget, in ns of transaction time; negative is debt. */
	int64_t tokens_ns;
	uint32_t tokens_part; /* and so many thousandths of a nanosecond, below 1000 */
	uint64_t tokens_mark_ns;

	/* Slices (slice.c), and how often the device switches by itself (budget.c). */
	bool slice_dirty;          /* look at them again */
	uint64_t pressed_ns;       /* since when those who take no turns have work without a break; 0: they do not */
	uint64_t pressed_slice_ns; /* for a whole ageing window, and the slice that one of them has; 0: not */
	uint64_t crowded_ns;       /* since when several lower queues with work stay open; 0: they do not */
	struct gp_queue_id saved;  /* whose switches were counted last … */
	uint64_t saved_opened_ns;  /* … since it was opened … */
	uint32_t saved_count;
	uint64_t saved_at_ns;   /* … and when, by the driver's clock; 0: never */
	uint64_t saves_per_s;   /* thousandths, smoothed … */
	uint64_t saves_ns;      /* … and when that was last true */
	bool slowed;            /* that is more than it may be */
	uint64_t slow_ns;       /* so long at least … */
	uint64_t slow_until_ns; /* … until then */
	uint64_t slow_over_ns;  /* when it was last over; 0: never */

	struct gp_stay stay;
	struct gp_gather gather;

	/* One that lost its turn to one above it and stays open below it (under.c). */
	uint32_t under_seat, under_by; /* and to whom; GP_NONE: nobody */
	uint64_t under_used_ns;        /* of its turn */
	uint64_t under_until_ns;       /* it closes then */
	bool under_counts;             /* since switches were last counted there was one: they are not all of others */

	uint64_t rest_ns;       /* nobody has had work: it rests from here on; GP_NEVER_NS: somebody has */
	uint64_t wake_ns;       /* device timer: turn end, budget refill, aged turn end; GP_NEVER_NS: none */
	uint32_t announce;      /* queue to bring in (self-switching, hint); GP_NONE: none */
	uint32_t share_count;   /* users */
	uint32_t aged_seat;     /* whose aged turn it is; GP_NONE: nobody's */
	uint64_t aged_mask;     /* the devices that pay for it: its own, and those of its gang */
	uint64_t aged_from_ns;  /* of its first order; GP_NEVER_NS: none was given yet */
	uint64_t aged_until_ns; /* GP_NEVER_NS: it still waits for the budget */
	uint64_t age_free_ns;   /* no aged turn before: those that were took their share of the device */
	bool aged_forced;       /* it took the turn from the holder, when the budget could pay */
	bool aged_begun;        /* its first gate has opened … */
	uint64_t aged_seq;      /* … by that plan */
	bool aged_had_device;   /* and nobody else's was open with work */
	bool aged_alone;        /* those with work beside it yield, because its last aged turn was in vain */
	uint32_t floor_first, floor_permille; /* floor.c: seats with a floor, and its sum */
	uint64_t floor_serial;
	uint32_t run_seats[3];             /* floor.c: seats that run: with batch queues alone, others, those behind */
	uint64_t run_part[3], run_mark_ns; /* what each of those had, in thousandths of ns; up to then */
	struct gp_stats stats;
};

struct gp_sched {
	struct gp_limits limits;
	uint64_t now_ns, seq, stamp; /* stamp: marks seats counted in one go */
	uint32_t device_count, client_count, queue_reserved;
	uint32_t client_free, queue_free, seat_free; /* free lists through seat_first, seat_next, client_next */
	uint32_t share_free;
	uint32_t gang_count;                /* in use */
	uint64_t gang_move;                 /* the last number given to a move */
	uint32_t closed_first, closed_last; /* gangs that are to be closed, the longest closed first */
	uint32_t given_first, given_last;   /* queues with an order that was given up */
	uint32_t plan_next;                 /* device to look at first, for fairness */
	uint64_t trace_count;               /* ever written */
	struct gp_device *devices;
	struct gp_core_client *clients;
	struct gp_queue *queues;
	struct gp_seat *seats;
	struct gp_share *shares;
	uint32_t *share_hash; /* as many buckets as shares: the first of each */
	struct gp_gang *gangs;
	struct gp_trace_event *trace;
	uint32_t *heap_slots;
};

/* heap.c: binary heaps of queue indices; O(log n), no allocation. */
void gp_heap_add(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue);
void gp_heap_remove(struct gp_sched *sched, struct gp_device *device, enum gp_heap_name name, uint32_t queue);
/* The queue's timer, and its place in GP_HEAP_TIMER; GP_NEVER_NS: it is in none. */
void gp_heap_set_timer(struct gp_sched *sched, struct gp_device *device, uint32_t queue, uint64_t when_ns);
/* Visits, in no particular order, the queues whose rank is below the bound (OPEN, RUNNING) or above it (WORK). Start
 * with place 0; it is moved past what is returned; GP_NONE: no more. The heap must not change meanwhile. */
uint32_t gp_heap_visit(const struct gp_sched *sched, const struct gp_device *device, enum gp_heap_name name,
		       int64_t bound, uint32_t *place);
bool gp_heap_is_ordered(const struct gp_sched *sched, const struct gp_device *device, enum gp_heap_name name);

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
uint64_t gp_learn_gap_ns(const struct gp_queue *queue); /* nine of ten are shorter; 0: not known */
void gp_learn_done(struct gp_queue *queue, uint64_t done_count, uint64_t now_ns);
void gp_learn_ahead(struct gp_queue *queue, uint64_t written, uint64_t completed); /* before these are believed */
void gp_learn_busy(struct gp_queue *queue, uint64_t busy_ns);
uint64_t gp_learn_rest_ns(const struct gp_queue *queue, uint64_t now_ns); /* GP_NEVER_NS: not known */

/* work.c: a queue's work comes and goes; accounts and heaps follow. */
void gp_work_refresh(struct gp_sched *sched, uint32_t queue); /* heaps after any change of work, gate or turn */
void gp_work_rerank(struct gp_sched *sched, uint32_t queue);
void gp_work_set_rank(struct gp_sched *sched, uint32_t queue); /* from its own, its gang's and its seat's */
void gp_work_begin(struct gp_sched *sched, uint32_t queue);    /* idle→busy */
void gp_work_end(struct gp_sched *sched, uint32_t queue);      /* busy→idle */
void gp_work_gate(struct gp_sched *sched, uint32_t queue,
		  enum gp_gate gate);                         /* the one place where a gate's state changes */
void gp_work_account(struct gp_sched *sched, uint32_t queue); /* run and wait time up to now */
void gp_work_timer(struct gp_sched *sched, uint32_t queue);   /* re-arm from the queue's own times */
void gp_work_due(struct gp_sched *sched, uint32_t queue);     /* its timer fired */

/* age.c: nobody waits for ever, and no user takes more than his share by waiting. */
void gp_age_join(struct gp_sched *sched, uint32_t seat);                      /* a new seat: finds its user's share */
void gp_age_forget(struct gp_sched *sched, uint32_t seat);                    /* before the seat goes */
void gp_age_update(struct gp_sched *sched, uint32_t queue);                   /* its work or gate changed */
void gp_age_completed(struct gp_sched *sched, uint32_t queue);                /* it got somewhere */
void gp_age_due(struct gp_sched *sched, uint32_t queue);                      /* its timer fired */
void gp_age_opened(struct gp_sched *sched, const struct gp_queue *queue);     /* by an order */
void gp_age_late(struct gp_sched *sched, uint32_t queue);                     /* its order is overdue */
void gp_age_end(struct gp_sched *sched, struct gp_device *device);            /* the aged turn, if it is over */
void gp_age_begin(struct gp_sched *sched, struct gp_device *device);          /* the next one, if it is time */
void gp_age_gang_opens(struct gp_sched *sched, const struct gp_gang *gang);   /* for an aged turn of one member */
void gp_age_gang_shrinks(struct gp_sched *sched, const struct gp_gang *gang); /* the turn may have gone with a member */
void gp_age_quarantined(struct gp_sched *sched, uint32_t queue);              /* it has no aged turn any more */
uint64_t gp_age_run_ns(const struct gp_device *device); /* bound.c: an aged turn with its orders */

/* floor.c: guaranteed shares. */
bool gp_floor_admits(const struct gp_sched *sched, const struct gp_core_client *client, uint32_t device,
		     uint32_t permille);
void gp_floor_runs(struct gp_sched *sched, const struct gp_queue *q,
		   bool begins);                          /* and before is_batch changes: ends */
void gp_floor_set(struct gp_sched *sched, uint32_t seat); /* its queues, or what they promise, have changed */
void gp_floor_update(struct gp_sched *sched, struct gp_device *device); /* who is behind; wakes when that may change */
const char *gp_floor_check(const struct gp_sched *sched, const struct gp_device *device); /* NULL, or what is wrong */

/* inversion.c: who waits for whom, and how long. */
void gp_inversion_work(struct gp_sched *sched, uint32_t queue);    /* its work or rank changed */
void gp_inversion_started(struct gp_sched *sched, uint32_t queue); /* it began to run */
void gp_inversion_stopped(struct gp_sched *sched, uint32_t queue, enum gp_why why);
void gp_inversion_changed(struct gp_sched *sched, uint32_t queue); /* whether the device puts it aside by itself */

/* turn.c: which batch seats may be open. */
void gp_turn_join(struct gp_sched *sched, uint32_t seat); /* a new seat, which has its share */
void gp_turn_account(struct gp_sched *sched, struct gp_seat *seat);
void gp_turn_enter(struct gp_sched *sched, uint32_t queue); /* it is about to get work, or to count as if it had */
void gp_turn_work(struct gp_sched *sched, uint32_t queue, bool begins); /* the first, or the last, of its seat's */
void gp_turn_give(struct gp_sched *sched, uint32_t seat);
void gp_turn_take(struct gp_sched *sched, uint32_t seat);
void gp_turn_opened(struct gp_sched *sched, const struct gp_queue *queue); /* its order is done */
void gp_turn_assign(struct gp_sched *sched, struct gp_device *device);     /* decides who has the turns now */
bool gp_turn_can_get(struct gp_sched *sched, uint32_t seat, int64_t rank);
/* It could get one, but a gang that waits for other devices comes before it; the device is woken when that is over. */
bool gp_turn_is_kept(struct gp_sched *sched, const struct gp_queue *waiter);
void gp_turn_get(struct gp_sched *sched, uint32_t seat, int64_t rank); /* only after gp_turn_can_get() */
bool gp_turn_is_best(const struct gp_sched *sched, const struct gp_device *device,
		     int64_t rank); /* no holder with work ranks higher */
bool gp_turn_is_above(const struct gp_sched *sched, const struct gp_device *device,
		      int64_t rank);                       /* nor as high, with work or without */
void gp_turn_force(struct gp_sched *sched, uint32_t seat); /* an aged seat: whoever has it must give way */
void gp_turn_check(struct gp_sched *sched, uint32_t seat); /* look at its gates in the next plan */
bool gp_turn_has_to_close(const struct gp_sched *sched,
			  const struct gp_device *device); /* a gate is open outside its turn */
void gp_turn_settle(struct gp_sched *sched,
		    struct gp_device *device);              /* after priority_top changed: rerank everybody */
void gp_turn_forget(struct gp_sched *sched, uint32_t seat); /* before the seat goes */
uint64_t gp_turn_floor(struct gp_sched *sched, const struct gp_device *device);

/* rest.c: which priorities count. */
void gp_rest_count(struct gp_sched *sched, uint32_t queue, bool in);    /* it comes, or goes */
void gp_rest_work(struct gp_sched *sched, uint32_t queue, bool active); /* it has work, or not any more */
bool gp_rest_update(struct gp_sched *sched, struct gp_device *device);  /* true: gp_turn_settle() is due */

/* gang.c: queues that open and close together on several devices. */
bool gp_gang_can_join(const struct gp_sched *sched, uint32_t id);
void gp_gang_join(struct gp_sched *sched, uint32_t queue, uint32_t id); /* only after gp_gang_can_join() */
void gp_gang_leave(struct gp_sched *sched, uint32_t queue);
void gp_gang_work(struct gp_sched *sched, uint32_t gang, bool begins);
void gp_gang_rank(struct gp_sched *sched, uint32_t gang);
void gp_gang_close(struct gp_sched *sched, uint32_t gang, enum gp_why why); /* everywhere */
void gp_gang_open(struct gp_sched *sched, uint32_t gang, enum gp_why why);
void gp_gang_lose_turn(struct gp_sched *sched, uint32_t gang,
		       uint32_t device); /* on one means on all, unless it is closed and idle */
/* One that has waited longer for a turn on this device than this one, and waits for nothing but turns on its devices.
 */
bool gp_gang_is_before(const struct gp_sched *sched, const struct gp_queue *waiter);
/* It is closed, and would be if all turns were its own. */
bool gp_gang_is_away(const struct gp_sched *sched, const struct gp_gang *gang);
/* Others than its own client are in its gang on its device: they may wait for each other, and the device puts aside one
 * of them only. So they are closed together where one alone would be left to the device. */
bool gp_gang_is_several(const struct gp_sched *sched, const struct gp_queue *queue);
void gp_gang_share_turn(struct gp_sched *sched, uint32_t seat);         /* it has just got one */
void gp_gang_decide(struct gp_sched *sched);                            /* which closed gangs may open now */
void gp_gang_stick(struct gp_sched *sched, uint32_t queue, bool stuck); /* it is in quarantine in its own right */
void gp_gang_stick_client(struct gp_sched *sched, uint32_t client);     /* whether its queues keep their gangs */

/* budget.c: how much preempting may cost. */
bool gp_budget_can_pay(struct gp_sched *sched, struct gp_device *device,
		       uint32_t transaction_count); /* false: wakes the device when it can */
void gp_budget_pay(struct gp_device *device, uint32_t transaction_count);
bool gp_budget_holds_back(struct gp_sched *sched, const struct gp_queue *queue); /* it is not to open yet */
uint64_t gp_budget_limit(const struct gp_device *device); /* of switches: thousandths of one a second */
/* The slice of those that the device puts aside by itself: the shortest, unless that costs more than it may. */
uint64_t gp_budget_short_ns(const struct gp_device *device);
void gp_budget_confirm(const struct gp_sched *sched, struct gp_device *device); /* the limit of switches is needed */
void gp_budget_doubt(const struct gp_sched *sched, struct gp_device *device);   /* or is not any more: counts decide */
void gp_budget_refresh(struct gp_sched *sched, struct gp_device *device);       /* what was counted gets old */

/* slice.c: how long the device runs a queue before it looks at others. */
bool gp_slice_is_short_ns(const struct gp_device *device, uint64_t slice_ns);
bool gp_slice_may_be_short(const struct gp_device *device, const struct gp_queue *queue);
bool gp_slice_is_lower(const struct gp_sched *sched, const struct gp_queue *queue);       /* it is to be short */
void gp_slice_due(struct gp_sched *sched, uint32_t queue);                                /* its timer fired */
const char *gp_slice_check(const struct gp_sched *sched, const struct gp_device *device); /* NULL, or what is wrong */

/* under.c: who lost its turn to one above it may stay open below it. */
void gp_under_begin(struct gp_sched *sched, uint32_t lower, uint32_t middle, uint64_t used_ns); /* it just has */
void gp_under_update(struct gp_sched *sched, struct gp_device *device);                         /* is it over? */
void gp_under_forget(struct gp_sched *sched, struct gp_device *device, uint32_t seat);          /* before it goes */
bool gp_under_is_long(const struct gp_sched *sched, const struct gp_queue *queue);

/* stay.c: requests that come in pieces, on devices that switch by themselves. */
void gp_stay_look(struct gp_sched *sched, struct gp_device *device); /* who has work, or had some, may have changed */
void gp_stay_plan(struct gp_sched *sched, struct gp_device *device); /* decides whether batch clients are held out */
/* How long a pause must be to end a stretch; linger_ns: as learned. */
uint64_t gp_stay_linger_ns(const struct gp_device *device, const struct gp_queue *queue, uint64_t linger_ns);
/* So many switches in so long, since the last count or gp_stay_count_begin(). */
void gp_stay_counted(struct gp_sched *sched, struct gp_device *device, uint32_t switches, uint64_t window_ns);
void gp_stay_count_begin(struct gp_sched *sched, struct gp_device *device);
enum gp_why gp_stay_why(const struct gp_device *device); /* for this reason batch clients are held out */

/* gather.c */
/* Before these are believed; only where the device switches by itself. */
void gp_gather_look(struct gp_sched *sched, struct gp_queue *queue, uint64_t written, uint64_t completed);
uint64_t gp_gather_ns(const struct gp_device *device); /* the slice below one that launches ahead; 0: none */
bool gp_gather_is(const struct gp_device *device);     /* slices below are long while it launches */
/* Looks whether it waits. top: it has work or had a moment ago; GP_NONE: nobody has. */
void gp_gather_plan(struct gp_sched *sched, struct gp_device *device, uint32_t top);

/* apply.c */
void gp_apply_begin(struct gp_sched *sched, struct gp_order *order, const struct gp_plan *plan); /* it is under way */
void gp_apply_due(struct gp_sched *sched, uint32_t queue);    /* it is overdue, or must be given up */
void gp_apply_follow(struct gp_sched *sched, uint32_t queue); /* a member of its gang cannot be put aside */
void gp_apply_not_awaited(struct gp_sched *sched, struct gp_queue *queue);
void gp_apply_forget(struct gp_sched *sched, uint32_t queue); /* nobody needs to know that it was given up */

static inline bool gp_heap_has(const struct gp_queue *queue, enum gp_heap_name name)
{
	return queue->heaps >> name & 1;
}

/* Makes queue a member or not. Its keys must not change while it is in the heap. */
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

/* GP_NONE: empty. */
static inline uint32_t gp_heap_top(const struct gp_device *device, enum gp_heap_name name)
{
	return device->heaps[name].count ? device->heaps[name].slots[0] : GP_NONE;
}

static inline struct gp_device *gp_device_of(struct gp_sched *sched, const struct gp_queue *queue)
{
	return &sched->devices[queue->device];
}

static inline struct gp_queue_id gp_queue_id_of(const struct gp_sched *sched, uint32_t queue)
{
	return (struct gp_queue_id){ queue, sched->queues[queue].generation };
}

static inline struct gp_share *gp_share_of(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return &sched->shares[sched->seats[queue->seat].share];
}

/* How long a queue, or a user, of this level waits for its next aged turn. */
static inline uint64_t gp_age_window_ns(const struct gp_device *device, uint32_t level)
{
	return device->param.age_window_ns << level;
}

/* It had work for so long. One that is closing may be closed already: that is no time it was given. */
static inline void gp_age_account(struct gp_queue *queue, uint64_t elapsed_ns)
{
	if (queue->gate == GP_GATE_OPEN)
		queue->age_open_ns += elapsed_ns;
}

/* When its ageing window is over; 0: nothing is due. */
static inline uint64_t gp_age_timer_ns(const struct gp_queue *queue)
{
	return queue->aged || queue->age_waits ? 0 : queue->age_due_ns;
}

/* When the order of its slice is given up, or repeated; 0: nothing is due. */
static inline uint64_t gp_slice_timer_ns(const struct gp_queue *queue)
{
	return queue->slice_due_ns ? queue->slice_due_ns : queue->slice_hold_ns;
}

/* Something changed that slices depend on. */
static inline void gp_slice_look(struct gp_device *device)
{
	device->slice_dirty = device->attr.short_ns != 0;
}

/* Nobody else opens now. */
static inline bool gp_age_others_yield(const struct gp_device *device)
{
	return device->aged_alone && device->aged_seat != GP_NONE && device->aged_until_ns != GP_NEVER_NS;
}

/* Some member of its gang is in quarantine and keeps the gang open. */
static inline bool gp_gang_is_stuck(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return queue->gang != GP_NONE && sched->gangs[queue->gang].stuck_count;
}

/* Batch clients are held out. */
static inline bool gp_stay_holds(const struct gp_device *device)
{
	return device->stay.holds || (device->gather.waits && device->stay.protect != GP_PROTECT_THROUGHPUT);
}

/* It lost its turn to one above it and stays open below it. */
static inline bool gp_under_is(const struct gp_sched *sched, const struct gp_queue *queue)
{
	const struct gp_device *device = &sched->devices[queue->device];

	return device->under_seat == queue->seat && !gp_stay_holds(device);
}

/* NULL: no such queue any more. */
static inline struct gp_queue *gp_queue_find(const struct gp_sched *sched, struct gp_queue_id id)
{
	if (id.index >= sched->limits.queue_count || !sched->queues[id.index].used ||
	    sched->queues[id.index].generation != id.generation)
		return NULL;
	return &sched->queues[id.index];
}

/* Time never runs backwards here, and an absurd time is not believed. */
static inline void gp_clock(struct gp_sched *sched, uint64_t now_ns)
{
	if (now_ns > sched->now_ns && now_ns < GP_NS_MAX)
		sched->now_ns = now_ns;
}

static inline void gp_device_wake(struct gp_device *device, uint64_t when_ns)
{
	if (when_ns < device->wake_ns)
		device->wake_ns = when_ns;
}

/* Open in effect: work gets through. CLOSING and UNKNOWN count until proven otherwise. */
static inline bool gp_gate_lets_through(enum gp_gate gate)
{
	return gate != GP_GATE_CLOSED && gate != GP_GATE_OPENING;
}

/* An order is under way. */
static inline bool gp_gate_moves(enum gp_gate gate)
{
	return gate == GP_GATE_CLOSING || gate == GP_GATE_OPENING;
}

/* Its slot is free in a moment. */
static inline bool gp_gate_is_closing(const struct gp_queue *queue)
{
	return queue->attr.kind == GP_KIND_COMPUTE && queue->gate == GP_GATE_CLOSING && queue->prompt_until_ns;
}

/* No other plan before the awaited orders of the last one are answered; but patience ends. */
static inline bool gp_device_waits(const struct gp_sched *sched, const struct gp_device *device)
{
	return device->awaited_first != GP_NONE && sched->now_ns < device->patient_until_ns;
}

/* It has work, or announced it, or is in a gang that has. */
static inline bool gp_work_is_active(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return queue->has_work || queue->hinted || (queue->gang != GP_NONE && sched->gangs[queue->gang].work_count > 0);
}

/* It is to open as soon as it may. One whose client leaves an order on this device unanswered gets no further one. */
static inline bool gp_work_waits(const struct gp_sched *sched, const struct gp_queue *queue, bool active)
{
	return active && queue->gate == GP_GATE_CLOSED && queue->gang == GP_NONE &&
	       !sched->seats[queue->seat].overdue_count;
}

/* Takes a hardware slot that nobody can take back. */
static inline bool gp_gate_is_fixed(const struct gp_queue *queue)
{
	return queue->attr.kind == GP_KIND_COMPUTE && queue->gate != GP_GATE_CLOSED &&
	       (queue->attr.unseen || queue->gate == GP_GATE_QUARANTINED);
}

/* Somebody has to look now and then whether it has work by now. */
static inline bool gp_gate_is_blind(const struct gp_queue *queue)
{
	return queue->attr.unseen && queue->gate == GP_GATE_CLOSED;
}

/* Of two of one rank it is first in the line. */
static inline bool gp_turn_is_before(const struct gp_queue *a, const struct gp_queue *b)
{
	return a->order != b->order ? a->order < b->order : a->order_then < b->order_then;
}

/* Batch seats need a turn; all others may run beside their equals. */
static inline bool gp_turn_allows(const struct gp_sched *sched, const struct gp_queue *queue)
{
	return !queue->is_batch || sched->seats[queue->seat].has_turn;
}

/* Whether gp_heap_visit() has any to visit below this rank. */
static inline bool gp_heap_has_below(const struct gp_sched *sched, const struct gp_device *device,
				     enum gp_heap_name name, int64_t rank)
{
	uint32_t top = gp_heap_top(device, name);

	return top != GP_NONE && sched->queues[top].rank < rank;
}

/* Above this rank nothing has work: lower gates close. INT64_MIN: nobody has work. */
static inline int64_t gp_device_close_rank(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t top = gp_heap_top(device, GP_HEAP_WORK);

	return top == GP_NONE ? INT64_MIN : sched->queues[top].rank;
}

/* The same, and queues that drained a moment ago count: gates of lower rank do not open. */
static inline int64_t gp_device_hold_rank(const struct gp_sched *sched, const struct gp_device *device)
{
	uint32_t top = gp_heap_top(device, GP_HEAP_LINGER);
	int64_t work = gp_device_close_rank(sched, device);

	return top == GP_NONE || sched->queues[top].rank < work ? work : sched->queues[top].rank;
}

#endif
