/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The scheduler core: events in, plans out.
 *
 * This header is for programs that *drive* the core (daemon, simulator, kernel); policy.h is for writers of policies.
 *
 * The core owns no clock, lock, memory, thread or device. The driver provides one block of memory, serialises all calls
 * on one struct gp_sched, and passes the time in. Time is in nanoseconds from any monotonic origin; a time earlier than
 * the last one counts as the last one. The core makes no callbacks. After a batch of events the driver calls
 * gp_sched_plan() until it returns false, carries the plans out, and reports the answer to each order with
 * gp_sched_applied() as soon as it has it. Then it calls gp_sched_given_up() until that returns false.
 * gp_sched_deadline_ns() says when the driver must call gp_sched_plan() again though nothing has happened.
 *
 * Every function that returns int returns 0 or a negative errno; on failure nothing has changed.
 *   -EINVAL  an argument out of its range          -ENOSPC  a table is full
 *   -ESTALE  the id (or order) is not current any more -EDQUOT  the policy's admission test refused
 */
#ifndef GPREEMPT_SCHED_H
#define GPREEMPT_SCHED_H

#include <gp_deps.h>

#define GP_PRIORITY_MAX      99 /* 0..99, higher is more urgent */
#define GP_PRIORITY_IDLE     0
#define GP_PRIORITY_LOW      20
#define GP_PRIORITY_NORMAL   50
#define GP_PRIORITY_HIGH     80
#define GP_PRIORITY_REALTIME 99
#define GP_WEIGHT_MAX        10000u
#define GP_WEIGHT_DEFAULT    100u
#define GP_DEVICE_MAX        64u /* a set of devices fits one 64-bit word */
#define GP_QUEUE_MAX         (1u << 20)
#define GP_CLIENT_MAX        (1u << 20)
#define GP_GANG_MAX          (1u << 16)
#define GP_TRACE_MAX         (1u << 20)
#ifndef GP_BATCH_MAX
#define GP_BATCH_MAX 64u /* batch clients open at once */
#endif
#define GP_BURST_MAX 100000u /* preemptions above the rate */
#ifndef GP_PLAN_MAX          /* a test with a few queues needs less */
#define GP_PLAN_MAX 512u     /* gate changes in one plan; the next plan has the rest */
#endif
#ifndef GP_PLAN_SLICE_MAX
#define GP_PLAN_SLICE_MAX 64u /* slice changes in one plan, likewise */
#endif
#define GP_NS_MAX          (1ull << 62)     /* times and durations are below this: about 146 years */
#define GP_DURATION_NS_MAX 3600000000000ull /* one hour: no parameter is longer */
#define GP_NEVER_NS        ((uint64_t)-1)   /* a deadline that never comes */

struct gp_sched; /* opaque; lives in the caller's memory */

/* An id is a place in a table and how often that place was used, so that the core refuses a stale id and never misreads
 * it. */
struct gp_client_id {
	uint32_t index, generation;
};
struct gp_queue_id {
	uint32_t index, generation;
};

/* What one transaction can change at once. */
enum gp_unit {
	GP_UNIT_DEVICE,  /* any set of gates of the device: patched kernel */
	GP_UNIT_PROCESS, /* any set of gates of one client: DBG_TRAP */
	GP_UNIT_QUEUE,   /* a single gate: UPDATE_QUEUE */
};

/* Self-switching devices: what the core protects while an urgent client's requests come in pieces. It can hold batch
 * clients out over a request, which saves switches. */
enum gp_protect {
	GP_PROTECT_DEFAULT,    /* a queue's: as its device; a device's: balanced */
	GP_PROTECT_LATENCY,    /* the core holds batch clients out unless that costs them four times as much as the
				  switches that it saves */
	GP_PROTECT_BALANCED,   /* … only if it costs them at most half as much as the switches */
	GP_PROTECT_THROUGHPUT, /* never holds them out */
};

enum gp_kind {
	GP_KIND_COMPUTE, /* takes a hardware slot while open */
	GP_KIND_COPY,    /* SDMA, copy engine: gated, but not counted against slots */
};

struct gp_device_attr {
	enum gp_unit unit;
	uint32_t queue_max;         /* queues this device may have at once; 1..limits.queue_count */
	uint32_t slot_count;        /* compute queues open at once; 0: no limit */
	uint32_t process_count_max; /* clients with queues at once before the runlist is oversubscribed; 0: no limit */
	uint64_t memory_size;       /* bytes, for drf; 0: unknown */
	uint64_t close_ns;          /* cost of one transaction that closes, measured or prior */
	uint64_t open_ns;           /* cost of one transaction that opens */
	uint64_t ack_timeout_ns;    /* an order without an answer for so long has failed; 0: 1 s */
	uint64_t switch_ns; /* self-switching: time the device takes to put a lower context aside; 0: it does not */
	uint32_t lower_max; /* self-switching: lower clients that may stay open */
	/* Self-switching: how long the device runs a queue before it looks at others (its slice) can be set. */
	uint64_t short_ns; /* the shortest slice there is, for batch queues below others; 0: slices cannot be set */
	uint64_t long_ns;  /* for the only client above batch clients, longer than short_ns; 0: its own slice */
	uint64_t mid_ns; /* for batch clients above another that stays open below them, between short_ns and long_ns; 0:
			    the core closes the lower one */
	uint64_t slice_ns;    /* cost of one call that sets a slice */
	bool process_parking; /* closing a client's last gate also frees its process slot (not on stock CPSCH) */
	bool fetch_counters;  /* the counters given to gp_sched_sample() move at fetch, not at completion */
};

struct gp_client_attr {
	uint64_t tag;         /* the driver's own name for the client; only copied into trace events */
	uint64_t memory_size; /* bytes of device memory held, for drf */
	bool is_distrusted;   /* the core never awaits its answers, however prompt they are */
	bool is_stuck_alone;  /* if a queue of the client cannot be put aside, the other members of its gang need not
				 stay open */
	uint64_t user; /* its user: clients of one user share one aged turn a window; 0: the client is a user of its
			  own; cannot change */
};

struct gp_queue_attr {
	int32_t priority;        /* 0..GP_PRIORITY_MAX, higher is more urgent */
	uint32_t weight;         /* share among equals, 1..GP_WEIGHT_MAX; 0: GP_WEIGHT_DEFAULT */
	uint64_t deadline_ns;    /* edf: relative to arrival; 0: none */
	uint64_t budget_ns;      /* edf: device time per arrival, for the admission test; 0: not tested */
	uint32_t gang;           /* queues of one gang open and close together on all devices; 0: none */
	uint32_t floor_permille; /* guaranteed share of the device's compute time while its client has work, whatever
				    the priorities of others; 0: none. The highest of a client's queues counts; not for
				    gangs. -EDQUOT: all shares together exceed what overhead_permille and age_permille
				    leave of the device */
	enum gp_kind kind;
	bool unseen;       /* the agent cannot observe its doorbells: the core never parks it for lack of slots */
	bool fetched;      /* its counters move at fetch, whatever the device's do */
	bool fixed_slice;  /* its slice cannot be set */
	bool shares_slice; /* the queues of its client on the device that set this have one slice between them */
	enum gp_protect protect;
	uint64_t own_slice_ns; /* the slice that its application set; 0: unknown */
	uint64_t tag;          /* the driver's own name for the queue; only copied into trace events */
};

#define GP_OVERHEAD_PERMILLE 200u
#define GP_GATHER_OFF        UINT64_MAX

/* Durations are device time. 0 means the default. */
struct gp_param {
	uint64_t turn_ns; /* length of a turn among equals, at least four times a close and an open; default 40 ms, and
			     80 ms where the device switches by itself, because there each end of a turn costs calls
			     (docs/measurements/h200-2026-11-16.md) */
	uint64_t min_open_ns;   /* an opened gate stays open at least so long; default one open transaction */
	uint64_t linger_max_ns; /* longest time lower gates stay closed after the urgent queue drained; default 5 ms */
	uint64_t age_window_ns; /* a queue that waited so long with work gets a turn whatever its rank; each user gets
				   one such turn in this time; default 1 s */
	uint64_t age_turn_ns;   /* the length of that turn; default 5 ms */
	uint64_t hint_grace_ns; /* how long the core waits for announced work beyond its time; default 2 ms */
	uint32_t overhead_permille; /* largest part of device time for transactions that preempt or swap slots; 1000: no
				       limit; default 200 */
	uint32_t burst; /* preemptions that the core may make above that rate at once, up to GP_BURST_MAX; default 32 */
	uint32_t batch_clients;  /* clients below the top priority open at once, up to GP_BATCH_MAX; default 1, or
				    lower_max if the device switches by itself, which is also the most there */
	uint32_t fail_max;       /* failed orders of one queue before it is quarantined; default 3 */
	uint32_t age_permille;   /* largest part of device time for aged turns of all users together; 1000: no limit;
				    default 100 */
	enum gp_protect protect; /* of queues that say GP_PROTECT_DEFAULT; default balanced */
	uint64_t rest_ns;   /* the core holds no client out for a priority without work for so long; up to eight times
			       that where work at this priority comes in longer gaps; default 1 s */
	uint64_t gather_ns; /* the slice below a program that launches ahead, while switches are limited; it does not
			       delay the program when that waits for a result; GP_GATHER_OFF: twice what the limit asks
			       for, also when it waits; default 4 ms */
};

struct gp_limits {
	uint32_t device_count, client_count, queue_count, gang_count;
	uint32_t trace_count; /* events kept; a power of two */
};

enum gp_gate {
	GP_GATE_OPEN,
	GP_GATE_CLOSING, /* ordered, not yet acknowledged */
	GP_GATE_CLOSED,
	GP_GATE_OPENING,
	GP_GATE_UNKNOWN, /* an order was lost: the core orders an open next, which does no harm if the gate is open */
	GP_GATE_QUARANTINED, /* the queue, or a member of its gang, could not be preempted: the core leaves it open and
				orders nothing */
};

/* Why the core did something, or did not. Part of the trace interface: values never change, new ones are appended. */
enum gp_why {
	GP_WHY_NONE = 0,
	GP_WHY_PRIORITY = 1,    /* a queue of higher rank has work */
	GP_WHY_LINGER = 2,      /* a queue of higher rank had work a moment ago and is expected back */
	GP_WHY_HINT = 3,        /* a queue of higher rank announced work */
	GP_WHY_TURN = 4,        /* its turn began or ended */
	GP_WHY_SLOTS = 5,       /* more queues than hardware slots */
	GP_WHY_WORK = 6,        /* it has work and no rule keeps it closed */
	GP_WHY_AGED = 7,        /* it waited longer than the ageing window */
	GP_WHY_GANG = 8,        /* another member of its gang */
	GP_WHY_SHORT = 9,       /* left open: its remaining work is shorter than a transaction */
	GP_WHY_MIN_OPEN = 10,   /* left open: opened a moment ago */
	GP_WHY_RATE = 11,       /* left open: the preemption budget is used up */
	GP_WHY_QUARANTINE = 12, /* left open: it, or another member of its gang, cannot be preempted */
	GP_WHY_SELF = 13,       /* left open: the device puts it aside by itself */
	GP_WHY_TIMEOUT = 14,    /* the order was not acknowledged */
	GP_WHY_FAILED = 15,     /* the order failed for this queue */
	GP_WHY_STOPPED = 16,    /* the device was stopped after a reset or a failed preemption */
	GP_WHY_IDLE = 17,       /* closed though idle, so that it cannot start late */
	GP_WHY_COMPANY = 18,    /* opened though idle, because its client's transaction is paid for */
	GP_WHY_LOST = 19,       /* the gate changed without an order (lease, agent, application) */
	GP_WHY_YIELD = 20,      /* closed: another queue waited for its aged turn, and its last one was in vain */
	GP_WHY_SHARE = 21,      /* its turn ended early: a client that is owed more of the device got work */
	GP_WHY_REST = 22,       /* opened though idle: the device is idle, and the agent cannot observe its doorbells */
	GP_WHY_VAIN = 23,       /* it had an aged turn to itself and completed nothing */
	GP_WHY_STAY = 24, /* a request in several pieces is under way on a self-switching device: held out to its end */
	GP_WHY_FLOOR = 25, /* its client had less than its guaranteed share */
	GP_WHY_WAITS = 26, /* a client of higher rank that launches ahead waits for a result: self-switching device */
	GP_WHY_COUNT
};

/*
 * Gate changes for one device, decided at once. The driver carries them out in as few transactions as the unit allows
 * and acknowledges each order by itself.
 *
 * Closes come before opens: the driver issues the opens when the awaited closes were answered, or when patience_ns has
 * passed. The core gives the device no other plan until the awaited orders were answered, or twice patience_ns has
 * passed; so one plan is under way at a time where all clients answer. After a late answer the core does not await a
 * client's answers until the client has answered promptly eight times, or more often if that happens again.
 *
 * A queue has at most one order under way: a plan never names a queue whose last order is neither answered nor given
 * up. The driver issues the opens of one plan before anything of the device's next plan. Orders on several devices that
 * move one gang carry the same move.
 */
struct gp_order {
	struct gp_queue_id queue;
	struct gp_client_id client;
	enum gp_why why;
	bool is_awaited; /* the opens and the next plan wait for its answer, but not longer than patience_ns allows */
	uint64_t move;   /* the number of its gang's last move; 0: in no gang */
};
/* A slice to be set. The driver may set it at any time, beside the gates of its plan, and acknowledges it by itself,
 * with gp_sched_sliced(). A queue has at most one such order under way. The core orders whatever must come after it
 * only after the answer. */
struct gp_slice_order {
	struct gp_queue_id queue;
	struct gp_client_id client;
	uint64_t slice_ns; /* 0: as its application has it */
};
struct gp_plan {
	uint64_t seq;
	uint32_t device;
	uint32_t transaction_count; /* how many the core expects; the driver may need fewer, never more */
	uint32_t close_count, open_count, slice_count;
	uint64_t patience_ns; /* how long the opens wait for the closes: four times what the plan is expected to take,
				 but at least a 64th and at most a quarter of ack_timeout_ns */
	bool announce; /* self-switching device: the driver makes it switch to bring_in now; with orders or without */
	struct gp_queue_id bring_in;
	struct gp_slice_order slice[GP_PLAN_SLICE_MAX];
	struct gp_order close[GP_PLAN_MAX], open[GP_PLAN_MAX];
};

/* An order that the core gave up: it was not answered in time, or its device was stopped. If the driver has not issued
 * it yet, it must not issue it any more; the core refuses an answer that comes now. */
struct gp_given_up {
	struct gp_queue_id queue;
	uint64_t seq;
	bool open;
	enum gp_why why; /* GP_WHY_TIMEOUT, GP_WHY_STOPPED */
};

/* Trace events: a bounded ring, oldest overwritten. Values never change, new ones are appended. */
enum gp_trace_type {
	GP_TRACE_QUEUE_ADD = 1,
	GP_TRACE_QUEUE_REMOVE = 2,
	GP_TRACE_ATTR = 3,
	GP_TRACE_BUSY = 4,        /* idle→busy */
	GP_TRACE_IDLE = 5,        /* busy→idle; value: length of the busy period */
	GP_TRACE_HINT = 6,        /* value: announced time */
	GP_TRACE_HINT_MISSED = 7, /* announced work did not come */
	GP_TRACE_PLAN = 8,        /* value: seq; other.index: gate changes */
	GP_TRACE_CLOSE = 9,
	GP_TRACE_OPEN = 10, /* ordered; value: seq */
	GP_TRACE_CLOSED = 11,
	GP_TRACE_OPENED = 12,    /* acknowledged; value: ns since the order */
	GP_TRACE_LEFT_OPEN = 13, /* the core deliberately left a lower queue open; why says why */
	GP_TRACE_INVERSION = 14, /* ended; queue waited for other; value: its length; why: how it was resolved */
	GP_TRACE_TURN = 15,      /* queue's client got the turn */
	GP_TRACE_QUARANTINE = 16,
	GP_TRACE_ORDER_FAILED = 17,
	GP_TRACE_PLAN_TIMEOUT = 18, /* value: seq; at least one of its orders was not answered */
	GP_TRACE_DEVICE_STOPPED = 19,
	GP_TRACE_DEVICE_STARTED = 20,
	GP_TRACE_OVERSUBSCRIBED = 21, /* value: clients on the device, more than process_count_max */
	GP_TRACE_GATE_LOST = 22,
	GP_TRACE_STALE_ACK = 23,
	GP_TRACE_BACK_OFF = 24, /* it waits longer for its next aged turn; value: how long */
	GP_TRACE_TOP = 25,    /* queues below another priority take turns now; value: that priority, GP_TRACE_TOP_… */
	GP_TRACE_SLICE = 26,  /* ordered; value: nanoseconds, 0: as its application has it */
	GP_TRACE_SLICED = 27, /* acknowledged; value: ns since the order */
	GP_TRACE_SLICE_FAILED = 28,
	GP_TRACE_SLOWED = 29, /* short slices are longer for now; value: switches a second by the device itself */
	GP_TRACE_FAST = 30,   /* short slices are short again */
	GP_TRACE_FLOOR = 31,  /* its client is behind its guaranteed share; value 0: not any more */
};
#define GP_TRACE_TOP_DEADLINE 256u /* all queues without a deadline take turns (edf) */
struct gp_trace_event {
	uint64_t time_ns, value;
	struct gp_queue_id queue, other;
	uint64_t tag; /* the queue's tag */
	uint16_t type, why;
	uint32_t device;
};

/* Counters that only grow, one set per device; each rare branch has one. */
struct gp_stats {
	uint64_t plans, transactions, closes, opens;
	uint64_t preemptions; /* closes of queues that had work */
	uint64_t inversions, inversion_ns, inversion_ns_max;
	uint64_t left_open[GP_WHY_COUNT];
	uint64_t turns, hints, hints_missed, aged, quarantines, timeouts, order_failures, stale_acks;
	uint64_t back_offs; /* aged turns in which a queue had the device to itself and completed nothing */
	uint64_t slices, slice_failures; /* acknowledged, and not */
};

struct gp_queue_info {
	enum gp_gate gate;
	bool has_work;
	int64_t rank;
	uint64_t pending, run_ns, wait_ns, linger_ns;
	uint64_t inversions;  /* how often it waited for less urgent work */
	uint64_t preemptions; /* closes ordered while it had work; the device's count is the sum of these, ever */
	uint32_t device;
	struct gp_client_id client;
	uint64_t slice_ns;       /* as last acknowledged; 0: as its application has it */
	bool is_slice_known;     /* slice_ns is the present slice */
	bool is_slice_ordered;   /* an order for another slice is under way */
	bool is_short;           /* slice_ns is short: the device puts the queue aside */
	bool may_be_short;       /* the slice may be short, as far as the core knows */
	uint32_t slice_failures; /* in a row */
	bool is_stuck;           /* in quarantine in its own right, not because another member of its gang is */
	bool is_following;       /* stays open because another member of its gang is stuck */
};

struct gp_switch_info {
	uint64_t per_s_x1000;        /* how often a self-switching device puts the lower queue aside, smoothed */
	bool is_staying;             /* requests in pieces have the device to themselves */
	bool is_slowed;              /* switches cost too much: short slices are longer than they could be … */
	uint64_t hold_ns, slowed_ns; /* … for hold_ns at least; slowed_ns: how long they are */
};

/* What one client got of one device. Queues that run beside each other count once, so no time here exceeds the time
 * that passed. */
struct gp_seat_info {
	uint64_t compute_ns; /* a compute queue of the client had work and its gate let it through */
	uint64_t copy_ns;    /* the same for copy queues */
	uint64_t wait_ns;    /* the client had work, and no gate let any of it through */
};

/* Life. gp_sched_size(): bytes that the caller must provide, 16-byte aligned; 0: limits refused. */
size_t gp_sched_size(const struct gp_limits *limits);
int gp_sched_init(void *memory, size_t size, const struct gp_limits *limits, struct gp_sched **ret_sched);
extern const char *const gp_policy_names[];  /* NULL-terminated */
extern const char *const gp_protect_names[]; /* by enum gp_protect, from GP_PROTECT_DEFAULT on; NULL-terminated */

/* Devices. policy: a name from gp_policy_names. */
int gp_sched_device_add(struct gp_sched *sched, const struct gp_device_attr *attr, const char *policy,
			const struct gp_param *param, uint32_t *ret_device);
int gp_sched_device_set_cost(struct gp_sched *sched, uint32_t device, uint64_t close_ns, uint64_t open_ns);
/* Queues and processes on the device that the core does not know, because nothing can close them: they hold slots and
 * places all the same. 0, 0: none. */
int gp_sched_device_set_others(struct gp_sched *sched, uint32_t device, uint32_t compute_queue_count,
			       uint32_t process_count, uint64_t now_ns);
/* After a GPU reset or a failed preemption: the core gives up all gate orders under way, orders every closed gate open
 * and every slice back, and closes nothing until start. */
int gp_sched_device_stop(struct gp_sched *sched, uint32_t device, uint64_t now_ns);
int gp_sched_device_start(struct gp_sched *sched, uint32_t device, uint64_t now_ns);

/* Clients and queues. A new queue's gate is open: that is how the driver creates it. */
int gp_sched_client_add(struct gp_sched *sched, const struct gp_client_attr *attr, struct gp_client_id *ret_client);
int gp_sched_client_set_attr(struct gp_sched *sched, struct gp_client_id client, const struct gp_client_attr *attr);
int gp_sched_client_remove(struct gp_sched *sched, struct gp_client_id client,
			   uint64_t now_ns); /* and all its queues */
int gp_sched_queue_add(struct gp_sched *sched, struct gp_client_id client, uint32_t device,
		       const struct gp_queue_attr *attr, uint64_t now_ns, struct gp_queue_id *ret_queue);
int gp_sched_queue_set_attr(struct gp_sched *sched, struct gp_queue_id queue, const struct gp_queue_attr *attr,
			    uint64_t now_ns);
int gp_sched_queue_remove(struct gp_sched *sched, struct gp_queue_id queue, uint64_t now_ns);
int gp_sched_queue_info(const struct gp_sched *sched, struct gp_queue_id queue, struct gp_queue_info *ret_info);
/* -ESTALE: no such client, or it has no queue on that device. */
int gp_sched_seat_info(const struct gp_sched *sched, struct gp_client_id client, uint32_t device,
		       struct gp_seat_info *ret_info);
/* Tells the core the time: accounts that are read afterwards reach up to it. */
void gp_sched_set_time(struct gp_sched *sched, uint64_t now_ns);

/* Events. Counters are the queue's own and monotonic; completed > written is refused with -EINVAL. */
int gp_sched_sample(struct gp_sched *sched, struct gp_queue_id queue, uint64_t written, uint64_t completed,
		    uint64_t now_ns);
/* For devices without counters, where only the edges are known. Do not mix with samples on one queue. */
int gp_sched_edge(struct gp_sched *sched, struct gp_queue_id queue, bool busy, uint64_t now_ns);
int gp_sched_hint(struct gp_sched *sched, struct gp_queue_id queue, uint64_t in_ns, uint64_t now_ns);
/* The gate changed without an order: a lease ran out, the agent opened it, the application changed it. An order under
 * way does not say how the gate is then: the core orders it open, and closes it again if need be. A close during which
 * the gate was opened has failed: the core tries again later, and not more than fail_max times in a row. The driver
 * must not report a change that was over before it passed that order on: then the answer counts. */
int gp_sched_gate_lost(struct gp_sched *sched, struct gp_queue_id queue, bool open, uint64_t now_ns);
/* It opened because the driver, by its own clock, was late to renew the lease: a close under way has not failed. */
int gp_sched_lease_lost(struct gp_sched *sched, struct gp_queue_id queue, uint64_t now_ns);
/* The slice is not known any more: something other than the core has set it, perhaps before the core knew the queue. */
int gp_sched_slice_lost(struct gp_sched *sched, struct gp_queue_id queue, uint64_t now_ns);
/* The queue whose switches the driver should count now, several times a turn; false: none. gp_sched_switches() reports
 * the count: how often the device has put that queue aside so far (it wraps around), and when, by any clock. */
bool gp_sched_switch_watch(const struct gp_sched *sched, uint32_t device, struct gp_queue_id *ret_queue);
int gp_sched_switches(struct gp_sched *sched, struct gp_queue_id queue, uint32_t count, uint64_t counted_ns,
		      uint64_t now_ns);

/* Decisions. Returns true and a plan, or false: nothing to do now. A plan changes at least one gate or slice, or it
 * only announces: then it has no orders, and the driver acknowledges nothing. */
bool gp_sched_plan(struct gp_sched *sched, uint64_t now_ns, struct gp_plan *ret_plan);
/* The answer to one order of plan seq; result: 0, or a negative errno. -ESTALE: that order is not under way (answered,
 * given up, its queue is gone); nothing changed. */
int gp_sched_applied(struct gp_sched *sched, struct gp_queue_id queue, uint64_t seq, int result, uint64_t now_ns);
/* The same for a slice. The core gives up an order without an answer after ack_timeout_ns, and repeats it later. */
int gp_sched_sliced(struct gp_sched *sched, struct gp_queue_id queue, uint64_t seq, int result, uint64_t now_ns);
/* The next order that the core gave up; false: no more. If a queue has two since the driver last asked, only the
 * newer. */
bool gp_sched_given_up(struct gp_sched *sched, struct gp_given_up *ret_given_up);
uint64_t gp_sched_deadline_ns(const struct gp_sched *sched);

/* Inspection. cursor starts at 0; returns the number of events copied; *ret_lost counts events overwritten before they
 * were read. */
uint32_t gp_sched_trace_read(const struct gp_sched *sched, uint64_t *cursor, struct gp_trace_event *events,
			     uint32_t event_count, uint64_t *ret_lost);
int gp_sched_stats(const struct gp_sched *sched, uint32_t device, struct gp_stats *ret_stats);
/* The priority below which queues take turns: the highest on the device that does not rest. GP_PRIORITY_MAX + 1: all
 * queues without a deadline take turns. */
int gp_sched_priority_top(const struct gp_sched *sched, uint32_t device, int32_t *ret_priority);
int gp_sched_switch_info(const struct gp_sched *sched, uint32_t device, struct gp_switch_info *ret_info);
/* The longest that a gate can be closed on work, from the parameters and the present users, clients and queues, rate
 * limit included; provided that queues which are never parked (unseen, in gangs, in quarantine) leave a slot free. The
 * bound is for an open gate: what the queue then gets of a full device is the hardware's choice, until an aged turn was
 * in vain; for the next one the others yield. A queue that is opened now and then for less than age_turn_ns waits at
 * most twice as long. If its user has several clients on the device, each has its window before it.
 *
 * The first function is for a queue of the user with the most clients, if neither is backed off; the second for this
 * queue as it is now: a back-off makes a window up to GP_AGE_BACK_OFF_MAX times as long. 0: no such device or queue. */
#define GP_AGE_BACK_OFF_MAX 64u
uint64_t gp_sched_starvation_bound_ns(const struct gp_sched *sched, uint32_t device);
uint64_t gp_sched_queue_starvation_bound_ns(const struct gp_sched *sched, struct gp_queue_id queue);
/* What ageing may cost urgent work: in any stretch of span_ns aged turns, from their first order to their end, take no
 * longer than this, as long as the driver keeps gp_sched_deadline_ns(). The cost of their transactions is part of
 * overhead_permille. */
uint64_t gp_sched_age_cost_bound_ns(const struct gp_sched *sched, uint32_t device, uint64_t span_ns);
/* Whole-state invariant check, O(n log n): NULL, or what is wrong. For tests and debug builds. */
const char *gp_sched_check(const struct gp_sched *sched);
const char *gp_why_name(enum gp_why why);

#endif
