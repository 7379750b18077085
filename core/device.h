/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* One device: its queues in heaps, its turns, budget, slices and aged turn; and the questions its fields alone answer.
 */
#ifndef GP_CORE_DEVICE_H
#define GP_CORE_DEVICE_H

#include <gpreempt/policy.h>
#include "core/heap.h"
#include "core/queue.h"

#define GP_UNLIMITED UINT32_MAX /* batch_max: no turns needed, all batch seats may be open */

/* The queues of one priority on one device; the last level: queues with a deadline, whatever their priority. */
#define GP_LEVEL_DEADLINE (GP_PRIORITY_MAX + 1)
struct gp_level {
	uint32_t queue_count, active_count; /* active: in GP_HEAP_WORK */
	uint64_t awake_until_ns;            /* the level counts until then without any active queue */
};

/* Stretches of urgent work on a device that switches by itself (stay.c). A stretch lasts as long as queues that take no
 * turns have work, or had some a moment ago. */
enum gp_stay_state { GP_STAY_OUT, GP_STAY_WORK, GP_STAY_GAP };
struct gp_stay {
	enum gp_stay_state state;
	uint64_t mark_ns;               /* accounted up to here */
	uint64_t busy_ns, idle_ns;      /* of the present stretch: work, and the gaps within it */
	uint64_t gap_ns;                /* of the present gap */
	uint64_t out_ns;                /* when the last stretch ended */
	uint64_t held_ns, held_idle_ns; /* since batch clients are held out: time in stretches, and gaps of it */
	uint64_t total_ns, total_idle_ns, count;             /* of all stretches that are over; how many have begun */
	uint64_t counted_ns, counted_idle_ns, counted_count; /* the same when switches were last counted */
	/* Learned. */
	uint64_t length_ns; /* of a stretch */
	uint64_t idle;      /* gaps, thousandths of a stretch, while batch clients were held out; 0: not known … */
	uint64_t seen;      /* … and as estimated while they were not */
	uint64_t rate;      /* switches beyond the first of each stretch, in a thousand seconds of stretches */
	uint64_t known_until_ns; /* the core forgets rate then … */
	uint64_t hold_ns;        /* … after this time */
	/* Decided. */
	enum gp_protect protect; /* of the urgent client that has work, or had some last */
	bool is_away;            /* no urgent work for so long that the limit of switches does not count */
	bool gathers;            /* the urgent client launches ahead: it writes on while its work waits */
	uint64_t shared_ns;      /* batch clients are held out and let in by turns since; 0: they are not */
	uint64_t alone_ns;       /* when such turns last began without a trial; 0: never */
	bool stays;              /* stretches like the present one, or the last, have the device to themselves */
	bool holds;              /* the present one has: batch gates close, and stay closed to its end */
};

/* An urgent client that launches ahead (gather.c). */
struct gp_gather {
	bool waits;        /* it waits for a result: batch clients are held out, unless it asks for throughput */
	uint32_t queue;    /* the queue that waits … */
	uint64_t written;  /* … until it has completed this many packets; both are valid only while waits is set */
	uint64_t done_ns;  /* when it had; 0: not yet */
	bool is_pause;     /* it launched more before that: it did not wait */
	uint64_t until_ns; /* batch clients are held out until then, after the work is done; GP_NEVER_NS: it is not */
	uint64_t quiet_ns; /* learned: a client that has launched nothing for this time waits; 0: not known */
};

struct gp_device {
	struct gp_device_attr attr;
	struct gp_param param;
	uint64_t turn_ns; /* turn_ns as the driver set it; param.turn_ns is at least sched_set_turn()'s minimum */
	const struct gp_policy *policy;
	struct gp_heap heaps[GP_HEAP_COUNT];
	uint32_t queue_count, seat_count, seat_first;
	uint32_t batch_max, turn_count; /* seats that may have, and have, a turn */
	uint32_t turn_seats[GP_BATCH_MAX];
	uint32_t open_compute_count;    /* compute gates not closed */
	uint32_t closing_compute_count; /* of these, those that were ordered closed and are not overdue */
	uint32_t open_fixed_count;      /* of these, those that the core never parks: unseen or quarantined */
	uint32_t closed_unseen_count;
	uint32_t open_seat_count; /* seats with a gate not closed */
	uint32_t idle_first, idle_last;
	uint32_t check_first; /* list: seats whose gates the next plan checks */
	uint32_t inverted_first;
	struct gp_level levels[GP_LEVEL_DEADLINE + 1];
	int32_t priority_top;          /* the highest that counts: see rest.c */
	int32_t priority_highest;      /* of all queues, with work or without; 0: there is no queue */
	uint32_t deadline_queue_count; /* 0 also while the queues with deadlines rest */
	uint64_t budget_used_ppm;      /* edf: sum of budget/deadline */
	uint64_t turn_clock;           /* turns ended, ever */
	uint64_t turn_tag;             /* the largest that has had a turn */
	uint64_t reorder_ns;           /* the core asks waiting seats for their order again, not before */
	bool dirty;                    /* something changed since the last plan */
	bool stopped, opening_all;
	bool oversubscribed;
	uint32_t other_queue_count, other_process_count; /* outside the core, holding slots and places */
	uint32_t unknown_count;                          /* gates in GP_GATE_UNKNOWN */

	/* Orders under way; the queues hold the rest. */
	uint32_t awaited_first; /* list: queues whose order is awaited */
	uint64_t patient_until_ns;
	uint64_t timeout_seq; /* the last plan with an order that was never answered */

	/* Preemption budget, in ns of transaction time; negative is debt. */
	int64_t tokens_ns;
	uint32_t tokens_part; /* thousandths of a nanosecond on top, below 1000 */
	uint64_t tokens_mark_ns;

	/* Slices (slice.c), and how often the device switches by itself (budget.c). */
	bool slice_dirty;          /* the next plan checks all slices */
	uint64_t pressed_ns;       /* queues that take no turns have had work without a break since; 0: no work */
	uint64_t pressed_slice_ns; /* after a whole ageing window of that: the slice of the top one; 0: not yet */
	uint64_t crowded_ns;       /* several lower queues with work have stayed open since; 0: they do not */
	struct gp_queue_id saved;  /* the queue whose switches were counted last … */
	uint64_t saved_opened_ns;  /* … since it was opened … */
	uint32_t saved_count;
	uint64_t saved_at_ns;   /* … and when, by the driver's clock; 0: never */
	uint64_t saves_per_s;   /* switches, thousandths, smoothed … */
	uint64_t saves_ns;      /* … and when that was last true */
	bool slowed;            /* switches cost too much: short slices are longer than they could be */
	uint64_t slow_ns;       /* for this time at least … */
	uint64_t slow_until_ns; /* … until then */
	uint64_t slow_over_ns;  /* when slowed last ended; 0: never */

	struct gp_stay stay;
	struct gp_gather gather;

	/* A seat that lost its turn to a higher one and stays open below it (under.c). */
	uint32_t under_seat, under_by; /* that seat, and the higher one; GP_NONE: there is none */
	uint64_t under_used_ns;        /* of its turn */
	uint64_t under_until_ns;       /* it closes then */
	bool under_counts;             /* there was one since switches were last counted: they include visits to it */

	uint64_t rest_ns;       /* no queue has work: the device rests from then on; GP_NEVER_NS: a queue has work */
	uint64_t wake_ns;       /* device timer: turn end, budget refill, aged turn end; GP_NEVER_NS: none */
	uint32_t announce;      /* queue to bring in (self-switching, hint); GP_NONE: none */
	uint32_t share_count;   /* users */
	uint32_t aged_seat;     /* the seat that has the aged turn; GP_NONE: none */
	uint64_t aged_mask;     /* the devices that pay for that turn: its own, and those of its gang */
	uint64_t aged_from_ns;  /* when its first order was given; GP_NEVER_NS: not yet */
	uint64_t aged_until_ns; /* GP_NEVER_NS: it still waits for the budget */
	uint64_t age_free_ns;   /* no aged turn before then: the last ones took their part of the device */
	bool aged_forced;       /* it took the turn from the holder, when the budget could pay */
	bool aged_begun;        /* its first gate has opened … */
	uint64_t aged_seq;      /* … by that plan */
	bool aged_had_device;   /* no other seat's gate was open with work */
	bool aged_alone;        /* other seats with work yield, because its last aged turn was in vain */
	uint32_t floor_first, floor_permille; /* floor.c: seats with a floor, and the sum of their floors */
	uint64_t floor_serial;
	uint32_t run_seats[3]; /* floor.c: seats that run: with batch queues alone, others, seats behind their share */
	uint64_t run_part[3];  /* what one seat of each class had, in thousandths of ns … */
	uint64_t run_mark_ns;  /* … up to then */
	struct gp_stats stats;
};

/* GP_NONE: empty. */
static inline uint32_t gp_heap_top(const struct gp_device *device, enum gp_heap_name name)
{
	return device->heaps[name].count ? device->heaps[name].slots[0] : GP_NONE;
}

static inline void gp_device_wake(struct gp_device *device, uint64_t when_ns)
{
	if (when_ns < device->wake_ns)
		device->wake_ns = when_ns;
}

/* How long a queue, or a user, of this level waits for its next aged turn. */
static inline uint64_t gp_age_window_ns(const struct gp_device *device, uint32_t level)
{
	return device->param.age_window_ns << level;
}

/* An aged turn has the device to itself: nothing else opens now. */
static inline bool gp_age_others_yield(const struct gp_device *device)
{
	return device->aged_alone && device->aged_seat != GP_NONE && device->aged_until_ns != GP_NEVER_NS;
}

/* Something changed that slices depend on. */
static inline void gp_slice_look(struct gp_device *device)
{
	device->slice_dirty = device->attr.short_ns != 0;
}

/* Batch clients are held out. */
static inline bool gp_stay_holds(const struct gp_device *device)
{
	return device->stay.holds || (device->gather.waits && device->stay.protect != GP_PROTECT_THROUGHPUT);
}

#endif
