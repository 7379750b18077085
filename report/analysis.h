/* SPDX-License-Identifier: MIT */
/*
 * The analysis of a run: one pass over its events in the order of time, with bounded memory, then figures for the
 * report. The parts share struct gp_analysis; each owns its own fields and files:
 *   sweep.c    drives the pass: filters, duplicates, time window
 *   calls.c    what is open on each thread: nesting, self time, first calls
 *   engines.c  kernels and copies: queues, devices, waits, contention
 *   launches.c which call submitted which work
 *   streams.c  what orders work
 *   rhythm.c   idle stretches, steps
 *   path.c     the critical path
 *   figures.c  the report's tables
 *   checks.c   points of verification; rules.c and rule_*.c: findings
 */
#ifndef GP_REPORT_ANALYSIS_H
#define GP_REPORT_ANALYSIS_H

#include <stdio.h>
#include "report/parts.h"
#include "report/stat.h"
#include "report/trace/spill.h"
#include "report/trace/store.h"
#include "view/report.h"

#define GP_ANALYSIS_NONE     UINT32_MAX
#define GP_ANALYSIS_NO_NODE  UINT64_MAX
#define GP_ANALYSIS_OPEN_MAX 65536u /* calls open at once */
#define GP_ANALYSIS_FACT_MAX 4096u
#define GP_ANALYSIS_WHO_MAX  256u     /* processes, devices */
#define GP_ANALYSIS_SMALL    65536u   /* bytes: a copy below is small */
#define GP_ANALYSIS_LARGE    1048576u /* bytes: a copy from here on shows what the link can do */
#define GP_ANALYSIS_SMALL_NS 10000u   /* without a size: so is one that takes less */

struct gp_filter {
	bool has_pid, has_device, has_from, has_to;
	uint64_t pid, device, from_ns, to_ns; /* from the start of the trace */
};

struct gp_analysis {
	struct gp_store *store;
	const struct gp_analysis_facts *facts;
	struct gp_filter filter;
	uint32_t top; /* rows of tables; 0: all */
	struct gp_report *report;

	uint64_t first_ns, last_ns; /* of what is looked at */
	uint64_t clip_from_ns, clip_to_ns;
	struct gp_trace_record pending; /* held back until it is known that the next one is another */
	bool has_pending;
	uint64_t event_count, duplicate_count, overlap_count, open_overflow, behind_overflow;
	uint32_t *track_thread, *track_queue, *track_stream; /* by track; GP_ANALYSIS_NONE: not yet */
	uint8_t *track_passes;  /* by track: 0 not looked at, 1 the filter lets it through, 2 not */
	uint16_t *name_flags;   /* by name: what kind of call it is */
	uint8_t *name_evidence; /* by name: 0 not looked at, 1 none, else 2 + the evidence it is */

	struct analysis_layers layers;
	struct gp_busy calls_or_gpu;
	struct analysis_alone alone;
	uint64_t layer_calls[GP_REPORT_LAYER_COUNT];
	struct gp_busy layer_unions[GP_REPORT_LAYER_COUNT];

	struct analysis_thread *threads;
	uint32_t thread_count;
	struct analysis_process *processes;
	uint32_t process_count;
	struct analysis_queue *queues;
	uint32_t queue_count;
	struct analysis_device *devices;
	uint32_t device_count;
	struct analysis_stream *streams;
	uint32_t stream_count, stream_room;

	struct analysis_call *open;
	uint32_t open_free;
	uint32_t *heap; /* open calls by their ends */
	uint32_t heap_count;

	struct gp_busy gpu, compute, copy, copy_calls, alloc_calls;
	uint64_t copy_wait_ns, copy_wait_unknown_ns, collective_count;
	struct analysis_link links[2]; /* to the device, from it */
	struct analysis_idle idles[ANALYSIS_IDLES];
	uint32_t idle_count, step_count, step_room;
	struct analysis_step *steps;
	bool has_begun; /* something was submitted or set up: the trace saw what came before a wait */
	struct gp_report_stats stats;
	struct gp_spread wait_dispatch, wait_launch, run, completion, copy_time, kernel_gap;
	uint64_t launch_count, launch_ns, sync_count, sync_after_launch_count;
	uint64_t correlated_launch_count, joined_launch_count, joined_kernel_count, joined_copy_count;
	uint64_t cuda_call_count, hip_call_count;
	uint64_t small_copy_count, sized_copy_count, small_copy_ns, tail_ns, tail_kernel_ns, inversion_count,
		inversion_ns, inversion_ns_max;
	bool has_tail, has_priorities;
	struct analysis_evidence evidence[EVIDENCE_COUNT];

	struct analysis_launches *launches;
	struct gp_spill nodes;
	uint64_t end_node; /* the node that ends last */
	uint64_t end_node_ns;
};

/* What a name is; by its words. */
enum analysis_name_flag {
	NAME_LAUNCH = 1u << 0,
	NAME_SYNC = 1u << 1,       /* waits for the GPU */
	NAME_COPY = 1u << 2,       /* copies or fills memory */
	NAME_SETUP = 1u << 3,      /* happens once: queues, code objects, devices */
	NAME_CUDA = 1u << 4,       /* a call of CUDA's runtime or driver */
	NAME_SUBMIT = 1u << 5,     /* may make work or record an event */
	NAME_HIP = 1u << 6,        /* one of HIP */
	NAME_ALLOC = 1u << 7,      /* takes or gives back memory, at once */
	NAME_COLLECTIVE = 1u << 8, /* a kernel that several devices run together */
	NAME_WAIT = 1u << 9,       /* does nothing but wait */
	NAME_KNOWN = 1u << 15,
};
uint16_t gp_analysis_name_flags(struct gp_analysis *analysis, uint32_t name);

/* sweep.c: the whole analysis; fills the report, which refers to the store's names. */
int gp_analyse(struct gp_store *store, const struct gp_analysis_facts *facts, const struct gp_filter *filter,
	       uint32_t top, struct gp_report *ret_report, struct gp_error *error);
void gp_report_fini(struct gp_report *report);
/* export.c: the same events as a Perfetto file. */
int gp_export_perfetto(struct gp_store *store, const struct gp_analysis_facts *facts, const struct gp_filter *filter,
		       FILE *stream, struct gp_error *error);

/* who.c: threads, processes, queues and devices by their tracks. They return an index, or GP_ANALYSIS_NONE without
 * memory. */
int gp_who_init(struct gp_analysis *analysis, struct gp_error *error);
void gp_who_fini(struct gp_analysis *analysis);
uint32_t gp_who_thread(struct gp_analysis *analysis, uint32_t track);
uint32_t gp_who_queue(struct gp_analysis *analysis, uint32_t track);
/* The process and the device of an engine's track, without a queue. False without memory. */
bool gp_who_place(struct gp_analysis *analysis, uint32_t track, uint32_t *ret_process, uint32_t *ret_device);
/* The thread an engine's track names, if it is known already; otherwise GP_ANALYSIS_NONE. */
uint32_t gp_who_find_thread(struct gp_analysis *analysis, uint32_t track);
/* The process of a track as far as the whole trace tells: by its own word, by its thread, or because there is but one.
 */
bool gp_who_pid(const struct gp_analysis *analysis, uint32_t track, uint64_t *ret_pid);

/* calls.c */
int gp_calls_init(struct gp_analysis *analysis, struct gp_error *error);
void gp_calls_fini(struct gp_analysis *analysis);
int gp_calls_add(struct gp_analysis *analysis, const struct gp_trace_record *record, struct gp_error *error);
/* Work starts that was submitted before a call began which is now in its second half: that call stood behind the work,
 * and behind whatever held it up, which may lie before the trace. */
void gp_calls_behind(struct gp_analysis *analysis, const struct gp_trace_record *record,
		     const struct gp_launch *launch);
int gp_calls_close_until(struct gp_analysis *analysis, uint64_t now_ns, struct gp_error *error);

/* alone.c */
void gp_alone_add(struct gp_analysis *analysis, const struct gp_trace_record *record); /* a call or work begins */
/* Work begins, with the call that launched it or NULL. Before it counts as busy. */
void gp_alone_work(struct gp_analysis *analysis, const struct gp_trace_record *record, const struct gp_launch *launch);

/* engines.c */
int gp_engines_add(struct gp_analysis *analysis, const struct gp_trace_record *record, struct gp_error *error);

/* launches.c */
int gp_launches_init(struct gp_analysis *analysis, struct gp_error *error);
void gp_launches_fini(struct gp_analysis *analysis);
void gp_launches_add(struct gp_analysis *analysis, const struct gp_launch *launch);
/* The latest that began by then; NULL: none is remembered. */
const struct gp_launch *gp_launches_find(const struct gp_analysis *analysis, uint32_t process, uint64_t correlation,
					 uint64_t before_ns);
/* The call that submitted this work; counts the join. */
const struct gp_launch *gp_launches_join(struct gp_analysis *analysis, uint32_t process,
					 const struct gp_trace_record *record);

/* streams.c */
uint32_t gp_streams_of(struct gp_analysis *analysis, uint32_t track, const struct analysis_queue *queue);
int gp_streams_add(struct gp_analysis *analysis, const struct gp_trace_record *record, uint32_t stream,
		   const struct gp_launch *launch, struct gp_error *error);
int gp_streams_wait(struct gp_analysis *analysis, const struct gp_trace_record *record, struct gp_error *error);
uint64_t gp_streams_waited_for(const struct gp_analysis *analysis, const struct analysis_call *call);

/* rhythm.c */
void gp_rhythm_idle(struct gp_analysis *analysis, uint64_t from_ns, uint64_t to_ns);
int gp_rhythm_wait(struct gp_analysis *analysis, const struct analysis_call *call); /* -ENOMEM */
void gp_rhythm_sort(struct gp_analysis *analysis);                                  /* before names are looked for */
void gp_rhythm_name(struct gp_analysis *analysis, const struct gp_trace_record *record);
int gp_rhythm_idles(struct gp_analysis *analysis, struct gp_error *error);
int gp_rhythm_steps(struct gp_analysis *analysis); /* -ENOMEM */

/* path.c */
struct gp_path_node {
	uint64_t start_ns, end_ns, before;       /* before: the node the path goes on with */
	uint64_t launch_start_ns, launch_end_ns; /* work: of the call that launched it; 0: not known */
	uint32_t name, launch_name;
	uint8_t kind;   /* enum gp_report_step_kind: CALL, KERNEL, COPY */
	uint8_t link;   /* enum gp_path_link: of work, to `before` */
	bool is_waited; /* a call: `before` is the work it waited for */
};
enum gp_path_link {
	GP_LINK_LAUNCH,  /* the call before the one that launched it */
	GP_LINK_STREAM,  /* the work in front of it in its stream */
	GP_LINK_EVENT,   /* work of another stream, whose event it waited for */
	GP_LINK_BESIDE,  /* work of another stream that ended just before it started */
	GP_LINK_UNKNOWN, /* the work in front; when it was submitted is not in the trace */
};
int gp_path_add(struct gp_analysis *analysis, const struct gp_path_node *node, uint64_t *ret_node,
		struct gp_error *error);
int gp_path_walk(struct gp_analysis *analysis, struct gp_error *error);

/* facts.c: which sentences of a log count: all, or those in the window. */
bool gp_facts_counts(const struct gp_analysis *analysis, const struct gp_kept_fact *fact);
uint64_t gp_facts_count(const struct gp_analysis *analysis, enum gp_fact_kind kind);
uint64_t gp_facts_first_ns(const struct gp_analysis_facts *facts); /* of those with a time; 0: none has one */
int gp_facts_warn(struct gp_analysis *analysis);

/* collectives.c */
void gp_collectives(struct gp_analysis *analysis);

/* figures.c, checks.c, rules.c, timeline.c */
int gp_figures(struct gp_analysis *analysis, struct gp_error *error);
int gp_checks(struct gp_analysis *analysis, struct gp_error *error);
int gp_rules(struct gp_report *report, struct gp_error *error);
int gp_timeline(struct gp_analysis *analysis, struct gp_error *error);
int gp_warn(struct gp_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* sweep.c: the next record that passes the filter, clipped to the window, duplicates left out; as gp_store_next(). */
int gp_sweep_next(struct gp_analysis *analysis, struct gp_trace_record *ret_record, struct gp_error *error);
void gp_sweep_window(struct gp_analysis *analysis); /* from the filter */
int gp_sweep_rewind(struct gp_analysis *analysis, struct gp_error *error);

#endif
