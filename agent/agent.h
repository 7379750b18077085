/* SPDX-License-Identifier: MIT */
/*
 * The agent's state and the functions its files share. It lives in somebody else's process: on any error of ours the
 * application's call goes to the real function and errno is what it would have been. No exit, abort, assert or
 * printing.
 *
 * One lock guards everything here. It is never held while code of the application or of its runtime runs, nor while the
 * application's own CREATE, DESTROY or RUNTIME call is forwarded (those may wait for us); it is held over the agent's
 * own driver calls and over UPDATE_QUEUE, which end by themselves, so that gate and runtime do not overwrite each
 * other.
 */
#ifndef GP_AGENT_AGENT_H
#define GP_AGENT_AGENT_H

#include <gpreempt/page.h>
#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/attr.h"
#include "agent/lock.h"
#include "agent/queue.h"

#define GP_AGENT_GPU_MAX  64u
#define GP_MECHANISM_LAST ((uint32_t)GP_MECHANISM_COUNT - 1u)

enum gp_link_state {
	GP_LINK_DOWN,
	GP_LINK_GREETED, /* connected, HELLO sent */
	GP_LINK_UP,      /* WELCOME came */
};

/* How a kind of device is driven: agent/kfd, agent/nvidia. All calls come with the lock held. */
struct gp_driver {
	/* GP_MECHANISM_BITs of what the agent can do itself, as far as it is known. */
	uint32_t (*mechanisms)(void);
	/* Changes gates that are not yet so. results: 0 or -errno each. Calls the driver as rarely as the mechanism
	 * allows. */
	void (*change)(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results);
	/* Lets go of what the mechanism holds of the process (the debugger's place); its gates are open by then. */
	void (*release)(void);
	/* Looks at the counters: written, completed, blocked, unreadable. */
	void (*sample)(struct gp_slot *const *slots, uint32_t count);
	/* The thread ended inside a call of change or release: whatever may be held counts as held. NULL: nothing is.
	 */
	void (*recover)(void);
	/* What stands behind a queue, for GROUP; false: not to be told. NULL: there is nothing to tell. */
	bool (*describe)(const struct gp_slot *slot, struct gp_wire_group *ret_group);
	/* How long the device runs the queue before it looks at others; 0: as the application has it. 0 or -errno.
	 * NULL: the device cannot. */
	int (*slice)(struct gp_slot *slot, uint64_t slice_us);
	/* The thread's round: what was noted without the lock is seen to. NULL: nothing ever is. */
	void (*tidy)(void);
	/* An idle queue whose doorbells are not seen: GP_FD_TRAP becomes readable before its next work is; false: that
	 * cannot be had. Off: it is not seen any more. NULL: no queue can be watched. */
	bool (*watch)(struct gp_slot *slot, bool on);
	/* GP_FD_TRAP is readable: nobody waits for us any more, no queue is watched, and the counters are to be looked
	 * at. NULL with watch. */
	void (*noticed)(void);
};

struct gp_agent {
	struct gp_lock lock;
	uint32_t epoch; /* counts forks: what a driver knows of its parent's process is not the child's */
	int32_t pid;    /* whose state this is; another pid: a forked child that has not noticed yet */
	bool off;       /* GPREEMPT_AGENT=off, or something we need is missing */
	bool thread_started;
	bool exiting;
	bool runtime_enabled;      /* before the first queue */
	bool runtime_asked;        /* RUNTIME_DISABLE waits for the daemon */
	bool hooked;               /* doorbells are seen through the runtime's table */
	bool copy_hint;            /* GPREEMPT_COPY_HINT=1 */
	bool arms_without_barrier; /* the daemon we are linked with makes no barrier when it arms */
	bool greeted_before;
	bool attr_due, sync_due;
	bool look_all; /* all counters are wanted, not only those that are likely to have moved */
	uint32_t sync_cookie;
	enum gp_link_state link;
	uint32_t mechanism, lease_ms;
	uint16_t version;   /* spoken with this daemon, from its WELCOME on */
	uint64_t sample_ns; /* 0: do not sample */
	uint32_t renewals;  /* as seen last, and when it changed */
	uint64_t renewed_ns;
	struct gp_wire_attr wanted; /* environment, then API */
	struct gp_wire_attr now;    /* what the daemon says holds */
	struct gp_stream_map map;
	bool map_by_user;
	struct {
		uint32_t gpu_id;
		uint64_t seq;
	} orders[GP_AGENT_GPU_MAX];
	uint32_t order_count;
	const struct gp_driver *driver;
	char runtime[GP_WIRE_NAME_SIZE];
	char socket_path[108];
};
extern struct gp_agent gp_agent;
extern struct gp_page *gp_page_now; /* never moves once it is there: another daemon's page is mapped over it */

static inline void gp_agent_lock(void)
{
	gp_lock_take(&gp_agent.lock, 0);
}
static inline void gp_agent_unlock(void)
{
	gp_lock_give(&gp_agent.lock);
}

/* life.c */
bool gp_agent_ready(void);       /* once and after a fork; false: stay out of the way */
bool gp_agent_is_borrowed(void); /* a vfork: this memory is our parent's, the descriptors are not */
void gp_agent_start(void);       /* after the first queue: descriptors and thread; no lock held */
void gp_agent_unbind(void);      /* of a thread of ours: onto the processors the program was started with */

/* fence.c: who makes the fences of doorbells; lock held but for the first */
void gp_fence_register(void); /* may take 30 ms */
bool gp_fence_is_registered(void);
void gp_fence_settle(void); /* registered, linked or not any more: doorbells are as they can be */
bool gp_fence_all(void);    /* every thread of the process has passed a fence since; false: perhaps not */
void gp_fence_forget(void); /* forked child */

/* page.c; lock held */
int gp_page_reserve(void);
int gp_page_map(int fd);
void gp_page_unmap(void); /* nobody listens: a private page takes its place */
void gp_page_slot_init(const struct gp_slot *slot);
void gp_page_slot_flags(const struct gp_slot *slot);

/* link.c; lock held */
bool gp_link_connect(void); /* true: connected and greeted */
void gp_link_flush(void);   /* sends what is due, as far as it goes without waiting */
bool gp_link_has_unsent(void);
void gp_link_receive(void); /* takes in and carries out what has come */
void gp_link_down(const char *why);
int gp_link_message(const void *data, uint32_t size, const int *fds, uint32_t fd_count); /* one message; or -EPROTO */
int gp_link_send(const void *message, uint32_t size);

/* share.c; lock held */
void gp_share_add(uint32_t kind, uint64_t key0, uint64_t key1); /* enum gp_share_kind */
void gp_share_add_file(int fd);                                 /* a dmabuf */
void gp_share_add_memory(uint64_t address);                     /* given to the GPU: if it is shared memory */
void gp_share_exported(int fd);                                 /* a file that carries objects to others */
void gp_share_imported(int fd);
void gp_share_flush(void);  /* tells the daemon what it does not know yet */
void gp_share_untold(void); /* another daemon, perhaps */
void gp_share_forget(void); /* forked child */

/* gate.c; lock held */
void gp_gate_order(const struct gp_wire_order *order);
void gp_gates_open(uint32_t why); /* all; enum gp_lost told to the daemon, 0: not told */
int gp_gate_open_slot(struct gp_slot *slot);
/* One that is open, as far as we know, by mechanism. */
void gp_gate_open_again(struct gp_slot *slot, uint32_t mechanism);
/* Orders of the daemon are carried out: the agent acts itself, or opens what the daemon cannot. */
bool gp_gate_takes_orders(void);
void gp_gate_mechanism(uint32_t mechanism);
void gp_gate_leases(uint64_t now_ns);
uint64_t gp_gate_lease_due_ns(uint64_t now_ns); /* UINT64_MAX: never */
uint32_t gp_gate_closed_count(void);
bool gp_gate_is_closed(const struct gp_slot *slot); /* by us, or perhaps by the daemon itself */
/* No lock held: rings the doorbells of queues that mechanism submit has opened. */
void gp_gate_deliver(void);
void gp_gate_forget(void);    /* in a child */
void gp_gate_delivered(void); /* and nobody else is ringing any of them: a queue may go */

/* sample.c; lock held, but for the wait */
void gp_sample_all(void);
void gp_sample_round(uint64_t now_ns);
uint64_t gp_sample_due_ns(void);
void gp_sample_settle(uint64_t now_ns); /* the interval or the queues changed */
void gp_sample_publish(struct gp_slot *slot);
void gp_sample_after_wait(void); /* no lock held: an application thread has seen something finish */

/* thread.c */
void *gp_thread_run(void *unused);
bool gp_thread_wake(void); /* false: it cannot be woken any more */

/* guard.c: who takes over if the thread ends */
void gp_guard_start(void);  /* of the thread itself */
void gp_guard_check(void);  /* of the thread itself, no lock held: a guard that has ended is replaced */
void gp_guard_forget(void); /* forked child */

/* doorbell.c: no lock */
bool gp_doorbell_ring(struct gp_doorbell *doorbell, uint64_t handle, uint64_t value,
		      uint64_t written); /* false: withheld */
void gp_doorbell_announce_copy(uint64_t size);
extern void (*gp_doorbell_store)(uint64_t handle, int64_t value); /* the runtime's own */

#endif
