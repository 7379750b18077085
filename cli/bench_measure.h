/* SPDX-License-Identifier: MIT */
/* What `gpreempt bench device` measures, and the description it makes of it. */
#ifndef GP_CLI_BENCH_MEASURE_H
#define GP_CLI_BENCH_MEASURE_H

#include <stdio.h>
#include "cli/bench_kfd.h"

#define GP_BENCH_GATE_COUNT 16u
#define GP_BENCH_STEP_COUNT 8u

/* Quantiles in device nanoseconds. count 0: not measured. */
struct gp_bench_times {
	uint64_t p10, p50, p90, p99, count;
};
struct gp_bench_gate {
	char unit[12];            /* "queue": UPDATE_QUEUE; "process": DBG_TRAP */
	uint32_t queues, percent; /* queues of the process; occupancy */
	struct gp_bench_times close, open;
};
enum gp_bench_rptr { GP_BENCH_RPTR_UNKNOWN, GP_BENCH_RPTR_FETCH, GP_BENCH_RPTR_COMPLETION };
enum gp_bench_head { GP_BENCH_HEAD_UNKNOWN, GP_BENCH_HEAD_HOLD, GP_BENCH_HEAD_ROTATE };

struct gp_bench_result {
	struct gp_bench_times packet;  /* doorbell to signal of an empty barrier packet, alone */
	struct gp_bench_times blocked; /* the same beside queues whose heads are blocked */
	uint32_t gate_count;
	struct gp_bench_gate gates[GP_BENCH_GATE_COUNT];
	enum gp_bench_rptr rptr;
	enum gp_bench_head head;
	struct {
		uint32_t queues;
		struct gp_bench_times packet;
	} steps[GP_BENCH_STEP_COUNT]; /* packet latency by queues of the process */
	uint32_t step_count;
	uint32_t oversubscribed_at; /* queues at which it jumped; 0: not seen */
	uint64_t save_bandwidth;    /* bytes/s; 0: not measured */
	char notes[8][160];         /* what was not measured, and why */
	uint32_t note_count;
};

struct gp_bench_limits {
	uint32_t rounds;          /* of each gate measurement */
	uint64_t pause_ns;        /* between transactions: firmware is not to be hurried */
	volatile const int *stop; /* becomes nonzero: end early */
};
/* -EIO: a queue could not be stopped or a packet never ended; measuring ends at once. */
int gp_bench_measure(struct gp_bench_kfd *kfd, const struct gp_bench_limits *limits, struct gp_bench_result *ret_result,
		     struct gp_error *error);

void gp_bench_show(FILE *stream, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result);
void gp_bench_json(FILE *stream, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result);
/* The name of the description that fits, or NULL. */
const char *gp_bench_base(const struct gp_bench_kfd *kfd);
/* That description, with what was measured in place of what was assumed. */
int gp_bench_describe(FILE *stream, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result,
		      const char *base, struct gp_error *error);

#endif
