/* SPDX-License-Identifier: MIT */
/*
 * Checkers: each watches one promise with a simple model of its own and shares no code with what it checks.
 *
 * They are told everything that crosses the two seams (simulator to core, simulator to GPU model), in order. What the
 * core writes into its trace ring comes as CHECK_TRACE and is a claim to be verified, never a fact. All that the core
 * does inside one call happens at one instant, so a checker that needs a consistent picture looks at CHECK_SETTLED,
 * which ends the report of each call.
 */
#ifndef GP_TEST_CHECKER_H
#define GP_TEST_CHECKER_H

#include <stdbool.h>
#include <stdint.h>
#include <gpreempt/sched.h>
#include "model/gpu.h"
#include "sim/engine.h"

#define CHECKER_TEXT_SIZE 400u
#define CHECKER_NONE      UINT32_MAX

enum check_type {
	/* Said to the core; core_ns is the time it was given. Only calls that succeeded. */
	CHECK_DEVICE,       /* device, attr, param, policy */
	CHECK_CLIENT,       /* client, user, is_alone */
	CHECK_QUEUE_ADD,    /* device, queue, client, queue_attr */
	CHECK_QUEUE_REMOVE, /* queue */
	CHECK_ATTR,         /* queue, queue_attr */
	CHECK_SAMPLE,       /* queue, written, completed */
	CHECK_GATE_LOST,    /* queue, open */
	CHECK_STOP,
	CHECK_START,  /* device */
	CHECK_COST,   /* device, close_ns, open_ns */
	CHECK_ACK,    /* queue, seq, result */
	CHECK_SLICED, /* queue, seq, result */
	/* Said by the core. */
	CHECK_PLAN,    /* plan */
	CHECK_TRACE,   /* trace: a claim */
	CHECK_QUIET,   /* gp_sched_plan() had nothing (more) to order */
	CHECK_SETTLED, /* the call is over */
	/* Between simulator and model; now_ns is device time. gpu_queue is the simulator's number, never reused. */
	CHECK_GPU_ADD,    /* device, gpu_queue, kind, process */
	CHECK_GPU_REMOVE, /* device, gpu_queue */
	CHECK_SUBMIT,     /* device, gpu_queue, packet */
	CHECK_TRANSACT,   /* device, seq, changes, count */
	CHECK_SLICE,      /* device, process, slice_ns */
	CHECK_GPU,        /* device, gpu_event; gpu_queue: whose, or CHECKER_NONE */
	/* The run. */
	CHECK_STEP, /* after each step of the simulator */
	CHECK_CALM, /* the faults and the arrivals have stopped */
	CHECK_END,  /* drained, or the time for it is up */
};

struct check_event {
	enum check_type type;
	uint32_t device, gpu_queue, count, process;
	uint64_t slice_ns;
	uint64_t now_ns, core_ns, seq, written, completed, close_ns, open_ns, user;
	bool open, is_alone;
	struct gp_queue_id queue;
	struct gp_client_id client;
	int result;
	const struct gp_device_attr *attr;
	const struct gp_param *param;
	const char *policy;
	const struct gp_queue_attr *queue_attr;
	const struct gp_plan *plan;
	const struct gp_trace_event *trace;
	const struct gp_gpu_packet *packet;
	const struct gp_gpu_change *changes; /* queue: the simulator's number */
	const struct gp_gpu_event *gpu_event;
	enum gp_gpu_kind kind;
};

struct checker_run;

struct checker {
	const char *name, *promise;
	size_t state_size;
	/* state is zeroed before the first event. */
	void (*event)(struct checker_run *run, void *state, const struct check_event *event);
	void (*fini)(void *state); /* NULL: nothing to free */
};

#define CHECKER_COUNT 17u
extern const struct checker *const checker_list[CHECKER_COUNT];
extern const struct checker checker_once, checker_closed, checker_late, checker_effect, checker_limits,
	checker_inversion, checker_starvation, checker_drain, checker_gang, checker_budget, checker_owed, checker_age,
	checker_rest, checker_slice, checker_floor, checker_spin, checker_stay;

/* What every checker may look at: the two records, the simulator's questions. */
struct checker_run {
	const struct gp_sim *sim;
	const struct gp_sched *core;
	const struct gp_desc *desc;
	struct known *known;                          /* what the core was told (checker_known.h) */
	struct truth *truth;                          /* what the device was told (checker_truth.h) */
	void (*log)(const struct check_event *event); /* or NULL */
	uint64_t latency_ns;  /* of the driver, from an event to the call below: no part of what the core knows */
	uint64_t late_ns;     /* answers may come so much later than they should */
	uint32_t mute_client; /* carries out nothing until the calm; CHECKER_NONE: nobody is so */
	uint64_t calls;       /* grows whenever the core was called, unless the call cannot have changed anything */
	bool calm;            /* no more faults, no more arrivals */
	uint64_t now_ns;
	void *states[CHECKER_COUNT];
	bool failed[CHECKER_COUNT];
	uint32_t failed_count;
	char text[CHECKER_COUNT][CHECKER_TEXT_SIZE]; /* the first failure of each */
};

int checker_run_init(struct checker_run *run);
void checker_run_fini(struct checker_run *run);
void checker_run_event(struct checker_run *run, struct check_event *event);
void checker_fail(struct checker_run *run, const struct checker *checker, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
uint32_t checker_index(const struct checker *checker);

#endif
