/* SPDX-License-Identifier: MIT */
/*
 * What `gpreempt report` found in a trace, as the views show it. Owned by whoever filled it; views only read. Times are
 * integers of nanoseconds; what the trace does not say is a flag that is not set, never a 0. Texts come from traces:
 * they are UTF-8 without control characters, and nothing else is promised about them.
 */
#ifndef GP_VIEW_REPORT_H
#define GP_VIEW_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Host layers, from the application down. What no lower layer has is the application's. */
enum gp_report_layer_id {
	GP_REPORT_APPLICATION,
	GP_REPORT_LIBRARY,
	GP_REPORT_HIP,
	GP_REPORT_HSA,
	GP_REPORT_DRIVER,
	GP_REPORT_LAYER_COUNT
};

struct gp_report_file {
	const char *name, *format;
	uint64_t events, left_out, left_out_row;
	bool is_unproven; /* the reader of this format was never tried on a real file */
};

struct gp_report_layer {
	bool is_traced;    /* otherwise its time is in the layer above, and nobody knows how much */
	uint64_t self_ns;  /* of the wall: time in which this is the lowest layer that is active on any thread */
	uint64_t union_ns; /* in which it is active at all */
	uint64_t calls;
};

/* A rank is a number + 1; 0: the files are not of several ranks. */
struct gp_report_thread {
	uint32_t rank;
	bool has_pid, has_tid;
	uint64_t pid, tid, calls, span_ns; /* span: first start to last end */
	uint64_t self_ns[GP_REPORT_LAYER_COUNT];
};

struct gp_report_process {
	uint32_t rank, queues;
	bool has_pid;
	uint64_t pid, calls, kernels, copies;
	uint64_t gpu_ns; /* union of its kernels and copies */
	bool has_behind;
	uint64_t behind_ns; /* its kernels waited while others ran */
};

/* A hardware queue, or the copies of a device where the trace names no queue. */
struct gp_report_queue {
	uint32_t rank;
	bool is_copy, has_pid, has_device, has_queue;
	uint64_t pid, device, queue;
	uint64_t count, busy_ns, sum_ns; /* sum is more than busy where its work overlaps */
	uint64_t gap_count, gap_ns, gap_ns_max;
	uint32_t stream_count; /* 0: unknown */
	uint64_t first_ns, last_ns;
};

struct gp_report_device {
	uint32_t rank;
	bool has_device, has_cu_count;
	bool has_kernels, has_copies; /* in the trace */
	uint64_t device, cu_count;
	uint64_t compute_ns, copy_ns, busy_ns; /* unions */
	uint64_t kernel_sum_ns;
	uint64_t span_ns; /* first start to last end of its work */
	uint32_t queues;
};

/* Calls, kernels or copies of one name. */
struct gp_report_name {
	const char *name, *layer; /* layer: "HIP", "kernel", … */
	bool is_kernel;           /* its name may be shown short */
	bool has_pid;
	uint32_t rank;
	uint64_t pid;
	uint64_t count, total_ns, self_ns, min_ns, max_ns, median_ns, first_ns;
	bool has_spread, is_exact; /* min, median and max are known; the median is no estimate */
	bool has_size;
	uint64_t size; /* copies: bytes in all */
	bool has_wait;
	uint64_t wait_ns; /* kernels: mean */
};

/* A distribution of times. */
struct gp_report_times {
	uint64_t count, sum_ns, min_ns, max_ns, p50_ns, p99_ns;
	bool is_exact; /* the quantiles; otherwise they are within 4 % */
};

/* The GPU had nothing to do; what the host was in for at least half of it, or NULL. */
struct gp_report_idle {
	uint64_t start_ns, end_ns;
	const char *range, *call;
	bool is_late; /* what came next had been launched, and started late */
};

/* A call that was slow once: the first time. */
struct gp_report_cold {
	const char *name;
	bool has_pid;
	uint64_t pid, first_ns, engine_ns; /* engine: of the first call, while the GPU was at work */
	uint64_t later_count, later_ns;    /* median of the later ones, without engine time */
	uint64_t excess_ns;                /* what the first time cost more */
	uint64_t silent_ns;                /* the longest stretch inside it without any traced call */
	const char *file;
	uint64_t row;
};

enum gp_report_step_kind {
	GP_STEP_APPLICATION, /* no traced call */
	GP_STEP_CALL,
	GP_STEP_LAUNCH, /* from the start of the launching call to the start of the work */
	GP_STEP_KERNEL,
	GP_STEP_COPY,
	GP_STEP_RETURN,  /* from the end of the work to the end of the call that waited for it */
	GP_STEP_QUEUE,   /* between two pieces of work in one stream, the later of which was submitted already */
	GP_STEP_PENDING, /* from the end of the launching call to the start of the work */
	GP_STEP_EVENT,   /* from the end of work in another stream to the work that waited for its event */
	GP_STEP_BESIDE,  /* the same, without an event in the trace: it started right behind */
	GP_STEP_UNKNOWN, /* before work of which nobody knows when it was submitted */
	GP_STEP_KIND_COUNT
};
extern const char *const gp_report_step_names[GP_STEP_KIND_COUNT];

struct gp_report_step {
	enum gp_report_step_kind kind;
	const char *name;
	uint64_t start_ns, end_ns; /* from the start of the trace */
};
/* The path by kind and name. */
struct gp_report_share {
	enum gp_report_step_kind kind;
	const char *name;
	uint64_t ns, count;
};

enum gp_report_check_state { GP_CHECK_SEEN, GP_CHECK_INFERRED, GP_CHECK_NOT_VISIBLE };
struct gp_report_check {
	const char *title;
	enum gp_report_check_state state;
	char evidence[320]; /* with file and row; "" where it is not visible */
};

enum gp_report_confidence { GP_CONFIDENCE_LOW, GP_CONFIDENCE_MEDIUM, GP_CONFIDENCE_HIGH };
extern const char *const gp_report_confidence_names[];
struct gp_report_finding {
	const char *id; /* stable: "cold-start" */
	const char *title;
	enum gp_report_confidence confidence;
	uint64_t share_ppm; /* of the wall that it is about; orders findings */
	char text[640];     /* what was seen, with numbers */
	char advice[400];   /* what to do about it */
};

/* A lane of the timeline and what is drawn on it; what is too short to see is merged. */
struct gp_report_lane {
	char name[96];
	int kind; /* enum gp_report_layer_id, or GP_LANE_KERNEL, GP_LANE_COPY, GP_LANE_MARKER */
};
enum { GP_LANE_KERNEL = GP_REPORT_LAYER_COUNT, GP_LANE_COPY, GP_LANE_MARKER };
struct gp_report_slice {
	uint32_t lane, count; /* count > 1: so many, merged */
	uint64_t start_ns, end_ns;
	const char *name; /* of the longest in it */
};

struct gp_report {
	char title[160];
	uint64_t first_ns, wall_ns, event_count, duplicate_count, overlap_count;
	bool is_filtered;
	char filter[160];
	uint32_t file_count;
	struct gp_report_file *files;
	struct gp_report_layer layers[GP_REPORT_LAYER_COUNT];
	bool has_gpu; /* there is a kernel or a copy in the trace */
	uint64_t gpu_busy_ns, compute_ns, copy_ns;
	uint64_t idle_alone_ns, idle_before_ns, idle_behind_ns; /* no call, no work; before the first, since the last */
	uint64_t idle_launched_ns, idle_launched_before_ns;     /* of these: what came next had been launched */
	bool has_stream_queues; /* the trace knows streams only: they are in the place of hardware queues */
	bool has_cuda, has_hip; /* whose calls the layer below the application and its libraries has */
	/* By correlation: launches that have one, and those whose work is in the trace; work whose call is in it. */
	uint64_t correlated_launch_count, joined_launch_count, joined_kernel_count, joined_copy_count;
	uint64_t kernel_count, copy_count, launch_count, sync_count, sync_after_launch_count, launch_ns;
	uint64_t small_copy_count, sized_copy_count, small_copy_ns; /* below 64 KiB, of those with a size; their cost */
	uint32_t collective_device_count, late_rank; /* late: the device that was in collectives the shortest */
	uint64_t collective_ns_min, late_device;
	bool has_exposed;                  /* a device has collectives and other kernels */
	bool has_tail, has_cold, is_apart; /* has_cold: it begins with the run; is_apart: the files do not overlap */
	uint64_t tail_ns;                  /* lost in partial last waves, at one workgroup per compute unit */
	uint64_t tail_kernel_ns;
	uint64_t alloc_call_ns, alloc_call_count; /* calls that take or give back memory, at their usual length */
	uint64_t copy_wait_ns;                    /* in calls that copy, while kernels of the same process ran */
	uint64_t copy_wait_unknown_ns;            /* besides, while kernels ran whose process the trace does not say */
	uint64_t collective_count, collective_ns, exposed_ns; /* of the device that is worst off */
	struct gp_report_times step; /* from one wait of the host to the next, where they are alike */
	uint64_t step_busy_ns, step_kernels;
	struct gp_report_link { /* large copies between host and device: to it, from it */
		uint64_t count, size, ns, best_size, best_ns;
	} links[2];
	uint32_t idle_count;
	struct gp_report_idle *idles; /* the longest first */
	struct gp_report_times wait_dispatch, wait_launch, run, completion, copy_time, kernel_gap;
	uint64_t cold_ns, launch_gap_ns, launch_gap_ns_max; /* launch_gap: gaps no longer than ten launches */
	uint64_t copy_call_ns;                              /* union of the outermost calls that copy */
	uint32_t thread_count, process_count, queue_count, device_count, call_count, kernel_name_count, copy_name_count,
		cold_count, step_count, share_count, check_count, finding_count, warning_count, lane_count, slice_count,
		marker_count;
	struct gp_report_thread *threads;
	struct gp_report_process *processes;
	struct gp_report_queue *queues;
	struct gp_report_device *devices;
	struct gp_report_name *calls, *kernels, *copies, *markers;
	struct gp_report_cold *colds;
	struct gp_report_step *steps; /* the longest, in order of time */
	struct gp_report_share *shares;
	uint64_t path_ns;
	struct gp_report_check *checks;
	struct gp_report_finding *findings;
	char (*warnings)[256];
	struct gp_report_lane *lanes;
	struct gp_report_slice *slices;
	bool has_priorities;
	uint64_t inversion_count, inversion_ns, inversion_ns_max;
	uint64_t oversubscribed_count, preemption_failed_count, reset_count, eviction_count;
	uint64_t summary_count; /* rows of statistics files */
	struct gp_report_name *summaries;
	uint32_t top; /* rows of a table; 0: all */
};

/* "application", …; the runtime's is "HIP" or "CUDA". */
const char *gp_report_layer_name(const struct gp_report *report, int layer);
/* "kernel fill<4, Half>": a step of the path, with the short name of a kernel. */
const char *gp_report_step_text(enum gp_report_step_kind kind, const char *name, char *buffer, size_t buffer_size);

#endif
