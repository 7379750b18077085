/* SPDX-License-Identifier: MIT */
/* What the pass over the events keeps of calls, threads, processes, queues and devices; owners are named in analysis.h.
 */
#ifndef GP_REPORT_PARTS_H
#define GP_REPORT_PARTS_H

#include "report/busy.h"
#include "report/trace/event.h"
#include "view/report.h"

#define GP_ANALYSIS_SHARED 16u /* processes or priorities per device that are told apart */

/* Unions from the lowest layer up: [i] is everything at or below layer i, so that differences are self times. */
struct analysis_layers {
	struct gp_busy below[GP_REPORT_LAYER_COUNT];
};

struct analysis_call {
	uint64_t start_ns, end_ns, correlation, child_end_ns, child_ns, silent_ns, before_node, gpu_before_ns,
		compute_before_ns, unknown_before_ns;
	uint32_t name, thread, parent, row, next_free;
	uint32_t newer, older; /* in the list of its process, while it may turn out to be blind */
	uint16_t file;
	uint8_t layer, report_layer;
	bool is_outer, has_setup, is_sync, is_launch, is_copy, has_correlation, is_blind;
	bool is_wait;            /* in that list */
	uint32_t wait_stream;    /* the one stream that it waits for, if the trace says so */
	uint64_t wait_before_ns; /* and only for what was submitted before; 0: all */
};

struct analysis_thread {
	uint32_t process;
	bool has_tid;
	uint64_t tid, calls, first_ns, last_ns;
	struct analysis_layers layers;
	uint32_t top; /* innermost open call */
	uint64_t last_node;
	bool was_launch, has_step;
	uint64_t step_kernels, step_busy_ns, step_end_ns; /* at the end of its last step */
};

struct analysis_process {
	bool has_pid;
	uint32_t rank; /* number + 1; 0: the files are not of several ranks, or say none */
	uint64_t pid, calls, kernels, copies, behind_ns, behind_count;
	struct gp_busy gpu, compute; /* compute: kernels that are its own by their word or by their launch */
	uint32_t queues;
	uint32_t waits; /* the newest open call that may have waited for older work; GP_ANALYSIS_NONE: none */
};

/* A recent piece of work, for the path: who waited for it. */
#define ANALYSIS_RECENT 32u
struct analysis_recent {
	uint64_t start_ns, end_ns, node, submit_ns, correlation; /* submit_ns: 0 if it is not known */
};
/* A stream was told to wait for what another had when an event was recorded. */
#define ANALYSIS_WAITS 16u
struct analysis_wait {
	uint64_t time_ns, recorded_ns;
	uint32_t stream;
};
/* What runs one after the other. */
struct analysis_stream {
	uint32_t process, device_index;
	bool is_stream, is_copy; /* is_stream: otherwise the trace has no streams and this is a queue */
	uint64_t id;
	uint64_t last_end_ns, last_node, last_submit_ns;
	struct analysis_recent recent[ANALYSIS_RECENT];
	struct analysis_wait waits[ANALYSIS_WAITS];
	uint32_t recent_count, wait_count;
};
/* A call that submits work, or records an event. */
struct gp_launch {
	uint64_t correlation, start_ns, end_ns, before_node, size;
	uint64_t alone_ns; /* time without calls and work, up to this call */
	uint32_t process, name, next;
	bool is_launch, is_joined, has_size;
};

struct analysis_queue {
	bool is_copy, has_device, has_queue;
	uint32_t process, device_index;
	uint64_t device, queue;
	uint64_t count, sum_ns, gap_count, gap_ns, gap_ns_max, first_ns;
	struct gp_busy busy;
	uint64_t *streams; /* different ones */
	uint32_t stream_count, stream_room;
	uint64_t last_end_ns;
};

/* Who shares a device: work of one process, or of one priority. */
struct analysis_share {
	int64_t key;
	struct gp_busy busy;
};
struct analysis_device {
	bool has_device;
	uint32_t rank; /* whose number it is, as of a process */
	uint64_t device, kernel_sum_ns, first_ns, last_ns;
	struct gp_busy compute, copy, all;
	struct gp_busy collective, other; /* kernels that are collectives, and those that are not */
	uint64_t collective_count;
	struct analysis_share processes[GP_ANALYSIS_SHARED], priorities[GP_ANALYSIS_SHARED];
	uint32_t process_count, priority_count, queues;
	bool has_cu_count;
	uint64_t cu_count;
	uint64_t last_kernel_end_ns;
};

/* A sentence of the trace, kept. */
struct gp_kept_fact {
	enum gp_fact_kind kind;
	char text[160];
	uint64_t value, calls, device, time_ns, row;
	bool has_device, has_time;
	uint32_t file;
};
struct gp_analysis_facts {
	uint32_t count;
	uint64_t counts[16], sums[16], largest[16]; /* of all of them, by kind; sums and largest of their values */
	struct gp_kept_fact *facts;
};

/* Time without calls and work, so far. */
struct analysis_alone {
	uint64_t total_ns, work_ns, before_ns;    /* work_ns, before_ns: what it was when work last and first began */
	uint64_t launched_ns, launched_before_ns; /* while what came next had been launched; before the first work */
	bool is_late;                             /* the work that began last had been launched, and started late */
};

/* A stretch without work, and the shortest range and call around it. */
#define ANALYSIS_IDLES 32u
struct analysis_idle {
	uint64_t start_ns, end_ns, range_ns, call_ns;
	uint32_t range, call;
	bool is_late; /* what came next had been launched */
};
struct analysis_step {
	uint32_t thread;
	uint64_t kernels, ns, busy_ns;
};
/* Large copies over the link to the host, one way. */
struct analysis_link {
	uint64_t count, size, ns;
	uint64_t best_size, best_ns; /* of the fastest */
};

/* The first events of a kind, for evidence. */
struct analysis_evidence {
	bool is_seen;
	uint32_t name, row, file;
	uint64_t start_ns, end_ns, extra_ns;
};
enum analysis_evidence_id {
	EVIDENCE_LAUNCH,
	EVIDENCE_QUEUE_CREATE,
	EVIDENCE_WRITE_INDEX,
	EVIDENCE_DOORBELL,
	EVIDENCE_KERNEL,
	EVIDENCE_COMPLETE,
	EVIDENCE_SIGNAL_WAIT,
	EVIDENCE_COPY,
	EVIDENCE_COUNT
};

#endif
