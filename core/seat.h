/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Whom queues belong to: a client, its *seat* on one device, its user's *share* of one device, a gang. Seats take the
 * turns, not queues, because the queues of one process may wait for each other.
 */
#ifndef GP_CORE_SEAT_H
#define GP_CORE_SEAT_H

#include <gpreempt/policy.h>

struct gp_core_client {
	uint32_t generation;
	bool used;
	struct gp_client_attr attr;
	uint32_t seat_first;
	uint32_t distrust; /* prompt answers that the client must give before the core awaits its answers again */
};

/* One client on one device. */
struct gp_seat {
	bool used;
	uint32_t client, device, share;
	uint32_t client_next, device_next, device_prev;
	uint32_t queue_first, queue_count;
	uint32_t work_count;    /* queues in GP_HEAP_WORK */
	uint32_t busy[2];       /* of these, queues that have work and not only announced it; by kind */
	uint32_t open_count;    /* queues whose gate is not closed */
	uint32_t batch_count;   /* queues that take turns */
	uint32_t overdue_count; /* queues whose order is overdue */
	int64_t rank;           /* the highest among its queues with work; INT64_MIN: none has */
	bool mixed;             /* its queues' own ranks or gangs differ, or did */
	uint32_t running[2];    /* queues in GP_HEAP_RUNNING, by kind */
	bool has_turn;
	bool weight_is_old; /* a queue of the largest weight left or changed: view.weight must be computed again */
	bool check_gates;   /* in the device's list of seats whose gates the next plan checks */
	uint32_t check_next;
	bool came_for_work; /* it waits since it got work, not since its turn ended: it may end another turn early */
	bool cut;           /* its last turn was ended early */
	bool is_top;        /* counted in its share's top_seats */
	bool is_extra;      /* its user had enough of those when its work came: it takes turns, whatever its priority */
	uint64_t turn_tag;  /* its place in the line for turns: smallest first */
	uint64_t turn_used_ns, mark_ns; /* time run in the present turn; mark: accounted up to here */
	uint64_t turn_seq;              /* the last plan that opened a gate in its turn */
	uint64_t request_mark_ns;       /* view.compute_ns when it last got work */
	uint64_t joined_ns;
	uint64_t wait_ns; /* it had work and none of its queues ran */
	uint64_t work_ns; /* one of its compute queues had work */
	uint64_t stamp;   /* equal to the scheduler's: this pass has counted the seat already */
	/* Owned by floor.c; other files read is_behind and floor_serial. */
	uint32_t floor_permille, floor_next;
	uint64_t floor_work_ns; /* work_ns up to which the debt is accounted */
	int64_t floor_debt;     /* thousandths of ns */
	uint32_t run_count[2];  /* compute queues that run: batch queues, others */
	uint64_t floor_got;     /* device time that it got and that is not in the debt yet; thousandths of ns … */
	uint64_t run_mark;      /* … up to this value of its class in the device's run_part */
	bool is_behind;         /* it has had less than its guaranteed share: it goes before every priority */
	uint64_t floor_serial;  /* of the seats behind, the one that is behind for longest has the smallest */
	struct gp_policy_seat view;
};

/* One user on one device. */
struct gp_share {
	uint64_t user; /* 0: the share of one client that is a user of its own */
	uint32_t device;
	uint32_t seat_count, queue_count;  /* no seats: free */
	uint32_t work_seats;               /* seats with work */
	uint32_t open_seats, open_compute; /* seats with a gate not closed; compute gates not closed */
	uint64_t ready_ns;                 /* wait_since_ns of its next queue that waits for a slot */
	uint32_t hash_next;                /* or the next free one */
	uint32_t first, last;              /* its queues that are due for an aged turn, longest first */
	uint32_t head;                     /* of these, the one in GP_HEAP_AGE; GP_NONE: none has a closed gate */
	uint64_t next_ns;                  /* no aged turn before then */
	uint32_t level;                    /* 2^level windows between aged turns: after as many in vain in a row */
	uint32_t top_seats;                /* seats with work that took no turns when that work came */
	uint64_t turn_tag;                 /* of its next seat that joins the line for turns */
};

struct gp_gang {
	bool used;
	uint32_t id; /* the caller's number */
	uint32_t first, member_count, work_count;
	uint32_t stuck_count; /* members with keeps_gang: while there is one the gang stays open */
	uint64_t device_mask;
	int64_t rank;  /* its members' highest */
	uint64_t move; /* number of its last opening or closing, unique over all gangs */
	bool want_open;
	uint32_t closed_next, closed_prev; /* while it is to be closed: the scheduler's list of such gangs */
	uint64_t closed_ns;                /* since when it is to be closed */
	enum gp_why why;
};

#endif
