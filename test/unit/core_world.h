/* SPDX-License-Identifier: MIT */
/*
 * A tiny world around the scheduler core for unit tests: memory, clients, queues with counters, a virtual clock, and a
 * device that carries plans out.
 *
 * The world keeps its own record of which gates are really open and checks each plan against it, so it must never ask
 * the core what a gate's state is. Nothing here reads a real clock; a check that fails ends the test.
 */
#ifndef TEST_UNIT_CORE_WORLD_H
#define TEST_UNIT_CORE_WORLD_H

#include <gpreempt/sched.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define WORLD_QUEUE_MAX   320u
#define WORLD_CLIENT_MAX  64u
#define WORLD_DEVICE_MAX  4u
#define WORLD_ORDER_MAX   65536u
#define WORLD_TRACE_COUNT 4096u

#define US 1000ull
#define MS 1000000ull
#define S  1000000000ull

enum world_ack {
	WORLD_ACK_DELAYED, /* after ack_delay_ns, which may be 0: at once */
	WORLD_ACK_NEVER,   /* plans are carried out, but nobody says so */
	WORLD_ACK_BY_HAND, /* the test calls world_ack() */
};

struct world_queue {
	struct gp_queue_id id;
	uint32_t client, device;
	bool open; /* in the fake device */
	bool used, is_compute;
	uint64_t written, completed;
	uint64_t open_since_ns, closed_since_ns;
	uint64_t open_ns; /* time its gate was open while written > completed */
	uint64_t work_mark_ns;
	int close_result, open_result; /* what the device answers to orders for this queue */
	uint64_t slice_ns;             /* in the fake device; 0: its own */
	uint32_t slice_count;          /* orders for it */
	uint64_t slice_seq;            /* of the one under way; 0: none */
	uint64_t slice_order_ns, slice_at_ns;
	int slice_result;  /* what the device answers to those … */
	bool slice_silent; /* … if it does */
};

struct world_device {
	struct gp_device_attr attr;
	bool in_flight;
	uint64_t ack_at_ns;
	struct gp_plan plan;
};

/* One gate change that was ordered. */
struct world_order {
	uint64_t time_ns, seq, move;
	uint32_t device, queue, transaction_count;
	bool open;
	enum gp_why why;
};

struct world {
	struct gp_sched *sched;
	void *memory;
	size_t memory_size;
	uint64_t now_ns;
	enum world_ack ack;
	uint64_t ack_delay_ns;
	uint32_t device_count, client_count, queue_count;
	struct world_device devices[WORLD_DEVICE_MAX];
	struct gp_client_id clients[WORLD_CLIENT_MAX];
	struct world_queue queues[WORLD_QUEUE_MAX];
	struct world_order orders[WORLD_ORDER_MAX];
	uint32_t order_count, plan_count, announce_count;
	struct gp_queue_id announced; /* by the last plan that had one */
	uint64_t slice_delay_ns;
	uint32_t most_short; /* queues with work and a slice below a millisecond that were ever open together */
};

struct world_setup {
	const char *policy;         /* NULL: hpf */
	struct gp_device_attr attr; /* zeroes in queue_max, close_ns and open_ns: 64, 150 us and 150 us */
	struct gp_param param;
};

struct world *world_new(void);
void world_free(struct world *world);

uint32_t world_device(struct world *world, struct world_setup setup);
uint32_t world_client(struct world *world);
uint32_t world_client_of(struct world *world, uint64_t user);
uint32_t world_queue_attr(struct world *world, uint32_t client, uint32_t device, struct gp_queue_attr attr);
uint32_t world_queue(struct world *world, uint32_t client, uint32_t device, int32_t priority);
/* A new client with one queue on the device. */
uint32_t world_solo(struct world *world, uint32_t device, int32_t priority);

/* Events. None of them asks for plans. */
void world_write(struct world *world, uint32_t queue, uint64_t packet_count);
void world_complete(struct world *world, uint32_t queue, uint64_t packet_count);
void world_drain(struct world *world, uint32_t queue); /* completes all that was written */
void world_remove(struct world *world, uint32_t queue);
void world_remove_client(struct world *world, uint32_t client);
/* The queue's client keeps its gangs open while it is stuck, or does not. */
void world_set_stuck_alone(struct world *world, uint32_t queue, bool is_alone);
void world_gate_lost(struct world *world, uint32_t queue, bool open);

/* Asks for plans until there are none, at the present time. */
void world_settle(struct world *world);
/* Lets time pass: acknowledgements arrive and deadlines are kept. Ends settled at now + duration. */
void world_run(struct world *world, uint64_t duration_ns);
/* Moves the clock without giving the core a chance to act. */
void world_skip(struct world *world, uint64_t duration_ns);
/* Carries out and acknowledges the plan under way on the device. */
void world_ack_order(struct world *world, const struct gp_plan *plan, const struct gp_order *order, bool open);
void world_ack(struct world *world, uint32_t device);

void world_answer_slice(struct world *world, uint32_t queue); /* of one that is silent */

/* Looking in. */
bool world_is_open(const struct world *world, uint32_t queue);
uint32_t world_open_compute_count(const struct world *world, uint32_t device);
enum gp_gate world_gate(const struct world *world, uint32_t queue);
struct gp_queue_info world_info(const struct world *world, uint32_t queue);
struct gp_stats world_stats(const struct world *world, uint32_t device);
/* The last order for the queue at or after the first-th order; NULL: none. */
const struct world_order *world_last_order(const struct world *world, uint32_t queue, uint32_t first);
/* Trace events of a type on a queue (WORLD_QUEUE_MAX: any) that are still in the ring; the last goes to ret_last if not
 * NULL. */
uint32_t world_trace(const struct world *world, enum gp_trace_type type, uint32_t queue,
		     struct gp_trace_event *ret_last);

#endif
