/* SPDX-License-Identifier: MIT */
/*
 * What every trace format is read into: one event per call, kernel, copy or range, with the fields that were there.
 * A field that a format does not have is not in `known`; nothing is guessed and nothing unknown is a 0. Readers hand
 * events to a sink one by one, in the order of the file, and keep none.
 */
#ifndef GP_REPORT_TRACE_EVENT_H
#define GP_REPORT_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

/* From the application down to the engines. Only LIBRARY to DRIVER are calls whose time is nested. */
enum gp_layer {
	GP_LAYER_MARKER,  /* the application's own ranges (ROCTX) */
	GP_LAYER_LIBRARY, /* libraries above HIP: RCCL, rocDecode */
	GP_LAYER_HIP,
	GP_LAYER_HSA,
	GP_LAYER_DRIVER, /* the kernel driver: ioctls, scheduler jobs */
	GP_LAYER_MEMORY, /* records of allocations and scratch; they repeat time that calls already have */
	GP_LAYER_KERNEL, /* compute engines */
	GP_LAYER_COPY,   /* copy engines */
	GP_LAYER_WAIT,   /* who waits for which stream, as CUDA's profiler says it; neither a call nor work */
	GP_LAYER_COUNT
};

enum gp_known {
	GP_KNOWN_PID = 1u << 0,
	GP_KNOWN_TID = 1u << 1,
	GP_KNOWN_DEVICE = 1u << 2,
	GP_KNOWN_QUEUE = 1u << 3,
	GP_KNOWN_STREAM = 1u << 4,
	GP_KNOWN_CORRELATION = 1u << 5,
	GP_KNOWN_SIZE = 1u << 6,       /* copies, and calls that copy: bytes */
	GP_KNOWN_DISPATCH = 1u << 7,   /* kernels: when the packet was written */
	GP_KNOWN_COMPLETE = 1u << 8,   /* kernels: when the host saw the end */
	GP_KNOWN_WORKGROUPS = 1u << 9, /* kernels: of the whole grid */
	GP_KNOWN_PRIORITY = 1u << 10,  /* higher is more urgent */
	GP_KNOWN_RECORDED = 1u << 11,  /* waits: which call recorded the event, and on which stream */
};

struct gp_profile_event {
	enum gp_layer layer;
	uint32_t known; /* enum gp_known */
	const char *name;
	size_t name_size;
	uint64_t start_ns, end_ns;
	uint64_t pid, tid, device, queue, stream, correlation, size, dispatch_ns, complete_ns, workgroups;
	uint64_t recorded_stream, recorded_correlation;
	int64_t priority;
	uint64_t row; /* line of the file, or number of the record, from 1 */
};

/* What a trace says besides events. */
enum gp_fact_kind {
	GP_FACT_WARNING,           /* of the reader, about this file */
	GP_FACT_SCHEDULER,         /* text: "CPSCH" or "MES" */
	GP_FACT_QUEUE_CREATED,     /* by the driver's own word */
	GP_FACT_OVERSUBSCRIBED,    /* the runlist is oversubscribed */
	GP_FACT_PREEMPTION_FAILED, /* a queue could not be stopped */
	GP_FACT_RESET,             /* the device was reset, for whatever reason */
	GP_FACT_INVERSION,         /* value: ns that urgent work waited for less urgent work, by the daemon's word */
	GP_FACT_EVICTION,          /* a process's queues were stopped by the driver */
	GP_FACT_CU_COUNT,          /* value: compute units of a device */
	GP_FACT_RANK,    /* value: of the file's processes in their job; UINT64_MAX: it may say so behind its events */
	GP_FACT_SUMMARY, /* a row of a statistics file: text is the name, value the total ns, calls the count */
};

struct gp_fact {
	enum gp_fact_kind kind;
	const char *text;
	uint64_t value, calls, device;
	bool has_device, has_time;
	uint64_t time_ns;
	uint64_t row;
};

/* Both return 0 or a negative errno after filling error, which ends the reading. */
struct gp_sink {
	void *context;
	int (*event)(void *context, const struct gp_profile_event *event, struct gp_error *error);
	int (*fact)(void *context, const struct gp_fact *fact, struct gp_error *error);
};

#endif
