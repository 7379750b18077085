/* SPDX-License-Identifier: MIT */
/*
 * DISB workloads (SJTU-IPADS/disb, benchmarks/workloads): which models are asked how often, and which of them are
 * urgent. In these files priority 0 means real time and no priority means best effort; B, E and REAL leave it out
 * everywhere, and DISB's workloads.md calls the tasks real time whose id ends in _rt. Both count here.
 */
#ifndef GP_SIM_DISB_H
#define GP_SIM_DISB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_DISB_TASK_MAX            64u
#define GP_DISB_TRACE_MAX           65536u /* arrivals of one task */
#define GP_DISB_TIME_S_MAX          86400u
#define GP_DISB_FREQUENCY_MILLI_MAX 1000000000ull /* a million requests per second */

enum gp_disb_load { GP_DISB_PERIODIC, GP_DISB_CONTINUOUS /* closed loop */, GP_DISB_POISSON, GP_DISB_TRACE };

struct gp_disb_task {
	char id[64], model[64]; /* model: as DISB names it, e.g. "vgg19-imagenet" */
	enum gp_disb_load load;
	bool is_realtime;
	uint64_t frequency_milli; /* requests per 1000 s; periodic and poisson only */
	uint32_t batch_size;      /* 1 where the file does not say */
	uint32_t trace_count;     /* trace only: arrivals in ascending order, from the start */
	uint64_t *trace_ns;
};

struct gp_disb {
	uint64_t duration_ns;
	uint32_t task_count;
	struct gp_disb_task tasks[GP_DISB_TASK_MAX];
};

/* 0, or a negative errno with "file:line: …" and nothing returned. Keys that are not known are skipped. */
int gp_disb_load(const char *path, struct gp_disb *ret_disb, struct gp_error *error);
int gp_disb_parse(const char *text, size_t text_size, const char *file_name, struct gp_disb *ret_disb,
		  struct gp_error *error);
void gp_disb_fini(struct gp_disb *disb);

#endif
