/* SPDX-License-Identifier: MIT */
/*
 * What the files of the GPU model share. Nobody outside model/ includes this.
 *
 * One time step: all timers due at the same instant fire and leave marks (space came free, a pipe or an engine has
 * something to decide); then gpu_settle() acts on the marks until none is left. So what happens at one instant is
 * arbitrated at once, and never depends on which of two equal timers fired first.
 */
#ifndef GP_MODEL_GPU_INTERNAL_H
#define GP_MODEL_GPU_INTERNAL_H

#include "model/gpu.h"

#define GPU_ASSERT(x) ((x) ? (void)0 : __builtin_trap())

#define GPU_CU_UNITS    (1u << 20) /* one compute unit; a workgroup takes GPU_CU_UNITS / occupancy of them */
#define GPU_COHORT_MAX  32u
#define GPU_NOWHERE     UINT32_MAX
#define GPU_CLASS_COUNT 3u   /* pipe priority: low, medium, high */
#define GPU_LANE_SIZE   256u /* bytes of one vector register of a wave: 64 lanes of 4 bytes */
#define GPU_COPY_CHUNK_SIZE \
	(4u << 20) /* largest linear copy packet of SDMA: a larger copy may stop at each multiple of it */

__extension__ typedef unsigned __int128 gpu_u128;

enum gpu_timer_kind {
	GPU_TIMER_DOORBELL,
	GPU_TIMER_WORKGROUP,
	GPU_TIMER_COMPLETION,
	GPU_TIMER_PIPE,
	GPU_TIMER_QUANTUM,
	GPU_TIMER_COPY,
	GPU_TIMER_TRANSACTION,
	GPU_TIMER_SLICE,
	GPU_TIMER_CONTEXT,
	GPU_TIMER_ANNOUNCE,
};

struct gpu_timer {
	uint64_t at_ns, order; /* order: among equal times, first armed fires first */
	uint32_t heap_index;   /* GPU_NOWHERE: not armed */
	enum gpu_timer_kind kind;
	void *owner;
};

struct gpu_list {
	struct gpu_list *prev, *next;
};

#define gpu_container(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void gpu_list_init(struct gpu_list *list)
{
	list->prev = list->next = list;
}
static inline bool gpu_list_empty(const struct gpu_list *list)
{
	return list->next == list;
}
static inline void gpu_list_add(struct gpu_list *at,
				struct gpu_list *node) /* in front of at; at the end, if at is the head */
{
	node->prev = at->prev;
	node->next = at;
	at->prev->next = node;
	at->prev = node;
}
static inline void gpu_list_remove(struct gpu_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	gpu_list_init(node);
}

/* Workgroups that end together. Running: at_ns is when. Set aside or halted: at_ns is how much time they still need. */
struct gpu_cohort {
	uint64_t at_ns;
	uint32_t count;
};
struct gpu_cohorts {
	struct gpu_cohort items[GPU_COHORT_MAX + 1u];
	uint32_t count;
}; /* by at_ns */

/* Somebody who waits for a signal to reach 0. */
struct gpu_waiter {
	struct gpu_list link;
	uint32_t signal;               /* 0: not waiting */
	struct gpu_queue *queue;       /* its head packet is a barrier, or */
	struct gpu_dispatch *dispatch; /* its workgroups spin */
};

struct gpu_signal {
	int64_t value;
	struct gpu_list waiters;
	bool used;
};

/* A packet taken from its ring, until its completion is visible. fresh + saved_count + inflight + done is constant. */
struct gpu_dispatch {
	struct gpu_queue *queue;
	struct gpu_list queue_link, want_link, running_link;
	struct gpu_timer timer, completion;
	struct gp_gpu_packet packet;
	uint64_t index;

	uint32_t share;     /* units of one workgroup */
	uint32_t slots;     /* workgroups at once, at most: CU mask and occupancy */
	uint64_t save_size; /* bytes of one workgroup's state */

	uint32_t fresh, saved_count, inflight, spinning, done; /* inflight: resident, with those spinning */
	struct gpu_cohorts run, saved;
	struct gpu_waiter spin;
	uint64_t since_ns;            /* inflight accounted up to here */
	bool dispatching;             /* its pipe is on it: fresh workgroups may go */
	bool wants, active, finished; /* active: START reported, no STOP since */

	uint64_t copy_left;     /* bytes */
	uint64_t copy_begin_ns; /* when the bytes began to move */
};

struct gpu_slot {
	struct gp_gpu_packet packet;
	uint64_t visible_ns;
	bool complete;
};

struct gpu_pipe {
	struct gp_gpu *gpu;
	uint32_t index;
	struct gpu_queue **slots;
	uint32_t slot_count, last; /* last: slot served last, for the round and for the cost of a change */
	struct gpu_queue *current;
	uint64_t attached_ns;
	struct gpu_timer timer, quantum;
	bool served; /* last means something */
	bool decoding, switching, marked;
	struct gpu_pipe *next_marked;
};

struct gpu_process {
	struct gp_gpu *gpu;
	uint32_t id, queue_count, open_count; /* open_count: compute queues that are open and stay so */
	struct gpu_list link, queues,
		working; /* queues newest first; working: those with work, open, in no order that matters */
	uint32_t working_count, switch_count, slice; /* tsg: put aside with work; else: its first slice or none */
	uint64_t slice_ns, announce_ns;              /* tsg; announce_ns: brought in until then; 0: no announcement */
	struct gpu_timer announce;
};

struct gpu_queue {
	struct gp_gpu *gpu;
	struct gpu_process *process;
	uint32_t id;
	enum gp_gpu_kind kind;
	uint32_t ring_size, ring_capacity, priority, priority_class, mask_cus;
	struct gpu_list link, working_link, dispatches;
	struct gpu_slot *ring;
	uint64_t written, rung, visible, fetched, completed, read;
	uint32_t unfinished;   /* fetched packets whose last workgroup still runs */
	uint32_t undispatched; /* dispatches with fresh workgroups */
	bool open, closing, mapped, working;
	enum gp_gpu_fault fault;
	struct gpu_timer doorbell;
	struct gpu_waiter waiters[GP_GPU_DEPS];
	bool waiting;

	struct gpu_pipe *pipe; /* cpsch, mes: while mapped; tsg: always its own */
	uint32_t slot, runlist_index;
	struct gpu_pipe own;
	struct gpu_queue *own_slot;

	struct gpu_copy_engine *engine;
	struct gpu_dispatch *copy; /* the copy begun, perhaps stopped half way */

	uint32_t busy_count;
	uint64_t busy_begin_ns, busy_ns, workgroups_run;
	gpu_u128 unit_sum;  /* units x ns */
	gpu_u128 delay_sum; /* of these those that merged cohorts held for longer than their work */
};

struct gpu_copy_engine {
	struct gp_gpu *gpu;
	struct gpu_queue **queues;
	uint32_t queue_count, cursor;
	struct gpu_queue *active;
	struct gpu_timer timer;
	uint64_t stop_left; /* bytes left when it stops half way; 0: it runs to the end */
	bool marked;
};

struct gpu_transaction {
	struct gpu_transaction *next;
	uint64_t seq;
	bool update; /* a queue came or went: no event of its own */
	bool mark;   /* nothing but its event */
	bool started;
	uint32_t change_count;
	struct gp_gpu_change changes[];
};

/* One turn of an oversubscribed device: queues first..first+count-1 of the runlist. */
struct gpu_slice {
	uint32_t first, count, process;
};

enum gpu_halt { GPU_RUNNING, GPU_HALT_TRANSACTION, GPU_HALT_SLICE };
enum gpu_phase { GPU_PHASE_IDLE, GPU_PHASE_OUT, GPU_PHASE_IN, GPU_PHASE_RUN };

struct gp_gpu {
	struct gp_gpu_config config;
	const struct gp_desc *desc;
	enum gp_scheduler scheduler;
	uint64_t now_ns;
	const char *broken; /* what went wrong for good; see gp_gpu_check() */

	struct gpu_timer **heap;
	uint32_t heap_count, heap_capacity;
	uint64_t timer_order;

	struct gp_gpu_event *events; /* a ring; capacity is a power of two */
	uint32_t event_capacity, event_head, event_count;

	struct gpu_process *processes[GP_GPU_PROCESS_MAX];
	struct gpu_list process_list; /* newest first, as KFD keeps them */
	uint32_t process_next;
	struct gpu_queue **queues; /* GP_GPU_QUEUE_MAX pointers */
	uint32_t queue_next, queue_count, open_count, copy_queue_count, copy_queue_next;
	uint32_t process_count; /* with at least one queue */
	struct gpu_signal *signals;
	uint32_t signal_count, signal_capacity, signal_free_count;
	uint32_t *signal_free;

	/* Workgroup engine. */
	uint64_t capacity, used; /* units */
	uint64_t resident_size;  /* bytes */
	struct gpu_list want[GPU_CLASS_COUNT], running;
	uint32_t want_count;
	struct gpu_dispatch *solo; /* the only one that wants space: its rounds are counted, not simulated */
	struct gpu_dispatch *free_list;
	bool space_changed;

	struct gpu_pipe *pipes;
	struct gpu_queue **pipe_slots;
	uint32_t pipe_count;
	struct gpu_pipe *marked_first, *marked_last;

	struct gpu_copy_engine *engines;
	struct gpu_queue **engine_queues;
	uint32_t engine_count;
	bool copy_marked;

	/* Transactions, runlist, slices. */
	enum gpu_halt halt;
	uint64_t halt_begin_ns, transaction_begin_ns;
	bool draining,
		slice_drains; /* nothing starts until nothing runs; then the transaction, or the slice, goes on */
	struct gpu_timer transaction, slice;
	struct gpu_transaction *transaction_first, *transaction_last;
	struct gpu_queue **runlist, **mapped;
	struct gpu_slice *slices;
	uint32_t runlist_count, mapped_count, slice_count, slice_index, table_capacity;
	uint32_t slice_processes[2]; /* whose turn it is; [1]: of shared slices. GPU_NOWHERE: none had one yet */
	uint64_t slice_end_ns;
	bool oversubscribed, slices_shared; /* shared: by processes that fit in together */
	uint32_t working_count;             /* compute queues with work that are open */

	/* Contexts (tsg). */
	struct gpu_process *context, *context_last;
	enum gpu_phase phase;
	uint64_t slice_begin_ns;
	struct gpu_timer context_timer;
	uint64_t context_ready[GP_GPU_PROCESS_MAX / 64u];
	bool context_marked, slice_is_over;
};

/* gpu.c: time, events, lookup */
void gpu_timer_init(struct gpu_timer *timer, enum gpu_timer_kind kind, void *owner);
void gpu_timer_arm(struct gp_gpu *gpu, struct gpu_timer *timer, uint64_t at_ns);
void gpu_timer_cancel(struct gp_gpu *gpu, struct gpu_timer *timer);
uint64_t gpu_add_ns(uint64_t a, uint64_t b); /* saturates below GP_GPU_NEVER_NS */
void gpu_emit(struct gp_gpu *gpu, enum gp_gpu_event_type type, const struct gpu_queue *queue,
	      const struct gpu_dispatch *dispatch, uint64_t value, int32_t error);
uint64_t gpu_bytes_ns(uint64_t size, int64_t bandwidth);
int gpu_begin(struct gp_gpu *gpu, uint64_t now_ns);
void gpu_settle(struct gp_gpu *gpu);
/* A call about this queue begins: -ENOENT where it is not there, and what gpu_begin() refuses. */
int gpu_queue_begin(struct gp_gpu *gpu, uint32_t queue_id, uint64_t now_ns, struct gpu_queue **ret_queue);
struct gpu_queue *gpu_queue_find(const struct gp_gpu *gpu, uint32_t queue);
struct gpu_process *gpu_process_find(const struct gp_gpu *gpu, uint32_t process);

/* queue.c: rings, signals and what a queue has to do */
bool gpu_queue_runs(const struct gpu_queue *queue); /* open, placed, and its turn */
void gpu_queue_update(struct gpu_queue *queue);     /* recounts whether it has work */
void gpu_queue_mark(struct gpu_queue *queue);       /* whoever serves it must look again */
void gpu_queue_stop(struct gpu_queue *queue);       /* its workgroups are set aside */
void gpu_queue_start(struct gpu_queue *queue);
void gpu_queue_set_open(struct gpu_queue *queue, bool open, bool closing);
void gpu_queue_drop(struct gpu_queue *queue);                                      /* with all its work; frees it */
void gpu_queue_set(struct gpu_queue *queue, uint32_t priority, uint32_t cu_count); /* it must be stopped */
void gpu_queue_busy_begin(struct gpu_queue *queue);
void gpu_queue_busy_end(struct gpu_queue *queue);
void gpu_queue_see(struct gpu_queue *queue);                                          /* doorbell timer */
bool gpu_queue_deps_met(struct gpu_queue *queue, const struct gp_gpu_packet *packet); /* if not, waits for them */
struct gpu_slot *gpu_queue_slot(const struct gpu_queue *queue, uint64_t index);
struct gpu_dispatch *gpu_queue_fetch(struct gpu_queue *queue);
void gpu_dispatch_finish(
	struct gpu_dispatch *dispatch); /* the work is done; completion becomes visible a little later */
void gpu_dispatch_complete(struct gpu_dispatch *dispatch);           /* completion timer */
int64_t gpu_signal_value(const struct gp_gpu *gpu, uint32_t signal); /* removed ones count as 0 */
void gpu_wait_add(struct gp_gpu *gpu, struct gpu_waiter *waiter, uint32_t signal);
void gpu_wait_remove(struct gpu_waiter *waiter);
void gpu_signal_write(struct gp_gpu *gpu, uint32_t signal, int64_t value);

/* workgroup.c */
uint32_t gpu_occupancy(const struct gp_desc *desc, const struct gp_gpu_kernel *kernel);
uint32_t gpu_mask_cus(const struct gp_desc *desc, uint32_t cu_count);
void gpu_workgroup_init(struct gpu_dispatch *dispatch);
void gpu_workgroup_update(struct gpu_dispatch *dispatch);   /* whether it wants space */
void gpu_workgroup_expire(struct gpu_dispatch *dispatch);   /* workgroup timer */
void gpu_workgroup_stop(struct gpu_dispatch *dispatch);     /* set aside */
void gpu_workgroup_drop(struct gpu_dispatch *dispatch);     /* gone */
uint64_t gpu_workgroup_kill(struct gpu_dispatch *dispatch); /* back to the start; returns the workgroup-ns wasted */
void gpu_workgroup_release(struct gpu_dispatch *dispatch);  /* its spin signal came */
/* Its queue has another mask, or another class than priority_class; nothing of it is resident. */
void gpu_workgroup_retune(struct gpu_dispatch *dispatch, uint32_t priority_class);
void gpu_workgroup_freeze(struct gp_gpu *gpu);
void gpu_workgroup_thaw(struct gp_gpu *gpu);
void gpu_workgroup_arbitrate(struct gp_gpu *gpu);
void gpu_workgroup_choose_solo(struct gp_gpu *gpu);
uint32_t gpu_workgroup_done(const struct gpu_dispatch *dispatch); /* as of now, without changing anything */

/* pipe.c */
void gpu_pipe_init(struct gpu_pipe *pipe, struct gp_gpu *gpu, uint32_t index, struct gpu_queue **slots,
		   uint32_t slot_count);
void gpu_pipe_mark(struct gpu_pipe *pipe);
void gpu_pipe_reset(struct gpu_pipe *pipe);   /* forgets whom it served; what it was decoding it will decode again */
void gpu_pipe_leave(struct gpu_queue *queue); /* serves it no longer, though it keeps its slot */
void gpu_pipe_forget(struct gpu_pipe *pipe);  /* before its memory goes */
void gpu_pipe_step(struct gpu_pipe *pipe);
void gpu_pipe_expire(struct gpu_pipe *pipe); /* decode timer */

/* runlist.c and transaction.c */
void gpu_runlist_rebuild(struct gp_gpu *gpu);
void gpu_runlist_map(struct gp_gpu *gpu);
void gpu_runlist_wake(struct gp_gpu *gpu);      /* the first queue got work */
void gpu_runlist_catch_up(struct gp_gpu *gpu);  /* a transaction is about to change the runlist */
void gpu_runlist_slice_end(struct gp_gpu *gpu); /* slice timer */
void gpu_runlist_resume(struct gp_gpu *gpu);    /* after a halt: arm the slice again */
void gpu_halt_begin(struct gp_gpu *gpu, enum gpu_halt halt);
void gpu_halt_end(struct gp_gpu *gpu);
int gpu_transaction_update(struct gp_gpu *gpu); /* a queue came or went */
void gpu_transaction_next(struct gp_gpu *gpu);
bool gpu_drain(struct gp_gpu *gpu);      /* true: something runs that cannot be set aside, and is waited for */
void gpu_drain_over(struct gp_gpu *gpu); /* nothing runs any more */
void gpu_transaction_expire(struct gp_gpu *gpu);
void gpu_transaction_forget(struct gp_gpu *gpu);

/* context.c */
void gpu_context_ready(struct gpu_process *process); /* recounts whether it may run */
void gpu_context_mark(struct gp_gpu *gpu);
void gpu_context_step(struct gp_gpu *gpu);
void gpu_context_expire(struct gp_gpu *gpu);
void gpu_context_drop(struct gpu_process *process);

/* copy.c */
void gpu_copy_mark(struct gpu_copy_engine *engine);
void gpu_copy_step(struct gp_gpu *gpu);
void gpu_copy_expire(struct gpu_copy_engine *engine);
uint64_t gpu_copy_stop(struct gpu_queue *queue); /* at the next packet boundary, which it returns */
void gpu_copy_drop(struct gpu_queue *queue);

#endif
