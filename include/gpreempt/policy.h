/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Writing a policy: one file in core/policy/, one const table, a line each in core/policy/list.h and list.c.
 *
 * The core does the mechanics: gates, transactions and their cost, turns, linger, ageing, slots, gangs, failures. A
 * policy answers three questions: how urgent is this queue now (rank), which seat is next among equals (order), and
 * does this queue take turns with its equals or run beside them (is_batch). A policy sees the views below, owns nothing
 * else, and may keep one 64-bit key per seat (a *seat* is one client on one device). No op may sleep, allocate, or keep
 * a pointer.
 */
#ifndef GPREEMPT_POLICY_H
#define GPREEMPT_POLICY_H

#include <gpreempt/sched.h>

/* What a policy sees of a queue. */
struct gp_policy_queue {
	int32_t priority;
	uint32_t weight;
	enum gp_kind kind;
	uint64_t deadline_ns, budget_ns;
	uint64_t arrival_ns;           /* when its present work came; the present time if it has none */
	int32_t priority_top;          /* the highest priority of the device that is not at rest */
	uint32_t deadline_queue_count; /* queues of the device that have a deadline */
};

/* What a policy sees of a seat. key is the policy's own; the core only stores and compares it. */
struct gp_policy_seat {
	uint64_t key;
	uint64_t compute_ns, copy_ns; /* time in which its queues had work and were open, since it joined */
	uint64_t memory_ppm;          /* of the device's memory */
	uint64_t present_ns;          /* time since it joined */
	uint64_t turn_count;          /* the device's count of ended turns when this seat's last turn ended */
	uint32_t weight;              /* the largest of its queues' */
	uint32_t user_seats; /* how many seats of its user have work on the device: 1 to 4096; together they share what
				one seat would get */
	uint64_t request_ns; /* learned: how long it computes from getting work to having none; at most a turn, which is
				also the value of a seat that never pauses */
	uint64_t turn_used_ns; /* time run in its present turn; only for yield_ns */
};

struct gp_policy {
	const char *name;
	const char *summary; /* one line for --help */

	/* false: the policy never closes a gate, and the core does nothing at all (policy `none`). */
	bool gates;

	/* How urgent is this queue? The core closes lower ranks for higher ones. Called under the caller's
	 * serialisation when the queue gets work, and when its attributes or the device's priority_top change; the
	 * value holds until the next call. Must lie within ±GP_NS_MAX*2. NULL: all ranks are 0, no queue preempts
	 * another, only turns remain. */
	int64_t (*rank)(const struct gp_policy_queue *queue);

	/* Does this queue take turns with others of equal rank (true), or run beside them (false)? Called with rank.
	 * NULL: all queues take turns. */
	bool (*is_batch)(const struct gp_policy_queue *queue);

	/* Which seat is next: of the waiting seats of equal rank the one with the smallest order gets the turn. Called
	 * when a seat starts to wait and when its turn ends. NULL: round robin, first of users, then of the seats of a
	 * user. */
	uint64_t (*order)(const struct gp_policy_seat *seat);

	/* order falls while a seat waits: once a turn the core asks again for all waiting seats. */
	bool order_falls;

	/* How much longer may holder keep its turn against waiter, of equal rank, which has just got work? 0: it yields
	 * now; else the core asks again after holder ran so long. The core makes sure that holder runs at least as long
	 * as the switch there and back takes, and that the budget can pay for the switch. NULL: to the turn's end. */
	uint64_t (*yield_ns)(const struct gp_policy_seat *holder, const struct gp_policy_seat *waiter);

	/* The seat used ran_ns of the device, with copies alone or with compute queues (and copies beside them, which
	 * the core does not charge again). May change seat->key. Called when a busy stretch ends, at turn ends, and at
	 * least once per turn. NULL: nothing to do. */
	void (*charge)(struct gp_policy_seat *seat, enum gp_kind kind, uint64_t ran_ns);

	/* The seat has work again after having none; floor_key is the smallest key among seats with work. May change
	 * seat->key, so that idling earns no credit. NULL: nothing to do. */
	void (*join)(struct gp_policy_seat *seat, uint64_t floor_key);

	/* May a queue with these attributes be added (or an existing one be changed to them)? used_ppm: sum of
	 * budget/deadline of the device's other queues. 0 or -EDQUOT, which the core returns to its caller. NULL: every
	 * queue is admitted. */
	int (*admit)(const struct gp_queue_attr *attr, uint64_t used_ppm);
};

/* NULL: no such policy. */
const struct gp_policy *gp_policy_find(const char *name);

#endif
