/* SPDX-License-Identifier: MIT */
/*
 * What a simulation, or a run of programs on a virtual node, found, as the views show it. Owned by whoever filled it;
 * views only read. Everything is an integer; a view formats. "unknown" is a flag, never a 0.
 */
#ifndef GP_VIEW_RESULT_H
#define GP_VIEW_RESULT_H

#include <stdbool.h>
#include <stdint.h>
#include "lib/hist.h"

struct gp_result_client {
	char name[48];
	int32_t priority;
	bool is_service;           /* has requests with a latency; otherwise only throughput counts */
	uint64_t requests;         /* completed */
	struct gp_hist latency_ns; /* request arrival to completion */
	uint64_t throughput_milli; /* requests (or kernels, for batch) per 1000 s of device time */
	uint32_t gpu_share_ppm;    /* of the whole device's compute time */
	uint64_t wait_ns;          /* had work behind a closed gate */
	uint64_t deadlines_missed, deadlines_met;
	uint64_t deadlines_refused; /* queues that went on without their deadline: the admission test refused it */
	uint64_t unfinished; /* requests still under way at the end; in latency_ns with their age, a lower bound */
};

/* A stretch of time in which one queue's work ran on one device. */
struct gp_result_slice {
	uint64_t start_ns, end_ns;
	uint32_t device, client, queue; /* client: index into the run's clients; queue: number within the run */
	uint32_t pipe, slot;            /* where the queue sat; UINT32_MAX: unknown */
	uint64_t tag;
	bool preempted; /* ended by a save, not by completion */
};

/* A point event or a decision, with its words ready to show. */
enum gp_result_mark_type {
	GP_MARK_ARRIVAL,
	GP_MARK_CLOSE,
	GP_MARK_OPEN,
	GP_MARK_INVERSION,
	GP_MARK_LEFT_OPEN,
	GP_MARK_HALT,
	GP_MARK_TURN,
	GP_MARK_FAULT
};
struct gp_result_mark {
	enum gp_result_mark_type type;
	uint64_t start_ns, end_ns;      /* equal for a point */
	uint32_t device, client, other; /* other: who was waited for, or UINT32_MAX */
	uint32_t queue;                 /* UINT32_MAX: none */
	const char *why;                /* static string */
};

/* who waited for whom: total time client had work while `other` (of lower rank) was running */
struct gp_result_wait {
	uint32_t client, other;
	uint64_t count, total_ns, max_ns;
};

/* What a run is to compare with; said by whoever ran it, so that the views compare no names. */
enum gp_result_kind {
	GP_RESULT_POLICY,
	GP_RESULT_DEFAULT,  /* the policy that runs where nobody names one */
	GP_RESULT_ALONE,    /* each client by itself */
	GP_RESULT_STOCK,    /* as without gpreempt */
	GP_RESULT_BASELINE, /* another way to do without a policy that schedules */
};

struct gp_result_run {
	char policy[24]; /* its name: a policy, or a baseline: alone stock sequential lv1 reset */
	enum gp_result_kind kind;
	uint32_t client_count;
	struct gp_result_client *clients;
	uint64_t duration_ns; /* device time simulated */
	uint64_t preemptions, transactions, transaction_ns;
	bool inversions_unknown; /* nobody watched */
	uint64_t inversion_count, inversion_ns, inversion_ns_max;
	uint64_t limited;                /* preemptions not made because of the budget */
	uint64_t left_short;             /* preemptions not made because the rest was shorter than the cost */
	uint64_t turns, aged, killed_ns; /* killed_ns: work thrown away (reset baseline), device time */
	uint32_t slice_count;
	struct gp_result_slice *slices; /* a window only: see window_* */
	uint32_t mark_count;
	struct gp_result_mark *marks;
	uint32_t wait_count;
	struct gp_result_wait *waits;
	uint64_t window_start_ns, window_end_ns;
};

#define GP_RESULT_LIST_MAX 8u

/* A kernel list with a measured latency: what a lone request takes in the model, and what was measured. */
struct gp_result_list {
	char name[48], device[48];
	uint64_t model_ns, measured_ns;
};

struct gp_result {
	bool is_emulated; /* programs ran, in real time, on a virtual node; otherwise simulated */
	uint64_t seed;
	char device[32], device_title[96], mix[64], gate[16];
	char mix_title[160]; /* empty: none */
	uint32_t device_count;
	uint64_t gate_cost_ns; /* 0: from the description */
	uint32_t dilate;
	char command[512]; /* to reproduce */
	uint32_t list_count;
	struct gp_result_list lists[GP_RESULT_LIST_MAX];
	uint32_t run_count;
	struct gp_result_run *runs;
};

/* Each writes to an open stream and returns 0 or a negative errno (-EIO if the stream failed). */
#include <stdio.h>
int gp_view_table(FILE *stream, const struct gp_result *result, bool colour, uint32_t width);
int gp_view_json(FILE *stream, const struct gp_result *result);     /* schema 1, docs/json.md */
int gp_view_html(FILE *stream, const struct gp_result *result);     /* one self-contained file */
int gp_view_perfetto(FILE *stream, const struct gp_result *result); /* native TrackEvent protobuf */

#endif
