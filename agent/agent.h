/* SPDX-License-Identifier: MIT */
/*
 * The agent's state and the functions its files share. The agent lives in another program's process: on any error of
 * its own it passes the application's call on to the real function, and errno is what it would have been. No exit,
 * abort, assert or printing.
 *
 * One lock guards everything here. No thread holds it while code of the application or of its runtime runs, nor while
 * the agent forwards the application's own CREATE, DESTROY or RUNTIME call (those may wait for the agent). The agent
 * holds it over its own driver calls and over UPDATE_QUEUE, which end by themselves, so that gate and runtime do not
 * overwrite each other.
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
	GP_LINK_UP,      /* WELCOME has arrived */
};

/* How the agent drives a kind of device: agent/kfd, agent/nvidia. The caller holds the lock. */
struct gp_driver {
	uint32_t backoff_max; /* sampling slows down to every 2^this intervals; 0: as for all other devices */
	/* GP_MECHANISM_BITs of the mechanisms that the agent itself can use, as far as known. */
	uint32_t (*mechanisms)(void);
	/* Opens (open) or closes gates; none of them is in that state yet. results: 0 or -errno each. Calls the driver
	 * as rarely as the mechanism allows. */
	void (*change)(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results);
	/* Gives back what the mechanism holds of the process (the debugger's place). The caller has opened the gates.
	 */
	void (*release)(void);
	/* Reads the counters into the slots: written, completed, blocked, unreadable. */
	void (*sample)(struct gp_slot *const *slots, uint32_t count);
	/* The agent's thread ended inside a call of change or release: counts everything that may be held as held.
	 * NULL: the driver holds nothing. */
	void (*recover)(void);
	/* Fills in GROUP: the handles of a queue whose slot has a group_use. False: the daemon must not get them. NULL:
	 * there are none. */
	bool (*describe)(const struct gp_slot *slot, struct gp_wire_group *ret_group);
	/* Sets how long the device runs the queue before it looks at others; slice_us 0: what the application has set.
	 * 0 or -errno. NULL: the device has no slices. */
	int (*slice)(struct gp_slot *slot, uint64_t slice_us);
	/* Once in each round of the thread: handles what other threads noted without the lock. NULL: they note nothing.
	 */
	void (*tidy)(void);
	/* For an idle queue whose doorbells the agent does not observe. On: GP_FD_TRAP becomes readable before the
	 * queue's next doorbell reaches the GPU; false: the driver cannot watch this queue. Off: stops watching; the
	 * queue's doorbells count as not observed again. NULL: no queue can be watched. */
	bool (*watch)(struct gp_slot *slot, bool on);
	/* GP_FD_TRAP is readable: lets the program's stopped threads go on and stops watching all queues; the caller
	 * reads the counters then. NULL with watch. */
	void (*noticed)(void);
};

struct gp_agent {
	struct gp_lock lock;
	uint32_t epoch; /* counts forks: a driver's knowledge of the parent's process does not hold in the child */
	int32_t pid;    /* of the process whose state this is; another pid: a forked child that has not noticed yet */
	bool off;       /* GPREEMPT_AGENT=off, or something the agent needs is missing */
	bool thread_started;
	bool exiting;              /* no order closes a gate any more */
	bool leaving;              /* the agent's thread ends once all gates are open: then off */
	bool runtime_enabled;      /* RUNTIME_ENABLE was called before the first queue */
	bool runtime_asked;        /* RUNTIME_DISABLE waits for the daemon's RUNTIME_OK */
	bool hooked;               /* the agent observes doorbells through the runtime's table */
	bool copy_hint;            /* GPREEMPT_COPY_HINT=1 */
	bool arms_without_barrier; /* the connected daemon issues no barrier when it arms */
	bool greeted_before;
	bool attr_due, sync_due;
	bool look_all; /* sampling reads all counters, not only those that are likely to have moved */
	enum gp_link_state link;
	uint32_t mechanism, lease_ms;
	uint16_t version;   /* of the protocol with this daemon, from its WELCOME on */
	uint64_t sample_ns; /* 0: do not sample */
	uint32_t renewals;  /* page.renewals at the last look, and when it last changed */
	uint64_t renewed_ns;
	struct gp_wire_attr wanted; /* environment, then API */
	struct gp_wire_attr now;    /* in force, by the daemon's ATTR_NOW */
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
extern struct gp_page *gp_page_now; /* its address never changes: the next daemon's page is mapped over it */

static inline void gp_agent_lock(void)
{
	gp_lock_take(&gp_agent.lock, 0);
}
static inline void gp_agent_unlock(void)
{
	gp_lock_give(&gp_agent.lock);
}

/* life.c */
bool gp_agent_ready(void);       /* initialises once and after a fork; false: the agent does nothing here */
bool gp_agent_is_borrowed(void); /* in a vfork child: memory is the parent's, descriptors are not */
void gp_agent_start(void);       /* after the first queue: starts the thread; no lock held */
bool gp_agent_take_fds(void);    /* the thread's own descriptors; lock held. False: the program has none to spare */
void gp_agent_unbind(void);      /* by an agent's thread: moves it onto the processors the program was started with */

/* fence.c: which side issues the fences of doorbells; lock held but for the first */
void gp_fence_register(void); /* may take 30 ms */
bool gp_fence_is_registered(void);
void gp_fence_settle(void); /* registration or link changed: sets whether doorbells fence for themselves */
bool gp_fence_all(void);    /* every thread of the process passes a fence; false: perhaps not */
void gp_fence_forget(void); /* forked child */

/* page.c; lock held */
int gp_page_reserve(void);
int gp_page_map(int fd);
void gp_page_unmap(void); /* no daemon reads it: maps a private page in its place */
void gp_page_slot_init(const struct gp_slot *slot);
void gp_page_slot_flags(const struct gp_slot *slot);

/* link.c; lock held */
int gp_link_connect(void);      /* 0: connected and greeted; or -errno */
bool gp_link_is_replaced(void); /* the socket's path names another file than the one that the agent connected to */
void gp_link_flush(void);       /* sends what is due, as far as possible without waiting */
bool gp_link_has_unsent(void);
void gp_link_receive(void); /* receives and carries out messages */
void gp_link_down(const char *why);
/* One message. A negative errno: the caller takes the link down. */
int gp_link_message(const void *data, uint32_t size, const int *fds, uint32_t fd_count);
int gp_link_send(const void *message, uint32_t size);
void gp_link_remove(struct gp_slot *slot); /* its queue ends: tells the daemon, if that knows it */

/* share.c; lock held */
void gp_share_add(uint32_t kind, uint64_t key0, uint64_t key1); /* enum gp_share_kind */
void gp_share_add_file(int fd);                                 /* a dmabuf */
void gp_share_add_memory(uint64_t address);                     /* memory given to the GPU: noted if it is shared */
void gp_share_exported(int fd);                                 /* a file by which other processes import objects */
void gp_share_imported(int fd);
void gp_share_flush(void);  /* sends the daemon what it does not have yet */
void gp_share_unsent(void); /* the link is down: the next daemon has none of it */
void gp_share_forget(void); /* forked child */

/* gate.c; lock held */
void gp_gate_order(const struct gp_wire_order *order);
void gp_gates_open(uint32_t why); /* opens all; why: enum gp_lost in a LOST message, 0: sends none */
int gp_gate_open_slot(struct gp_slot *slot);
/* Opens, by mechanism, a gate that is open as far as the agent knows. */
void gp_gate_open_again(struct gp_slot *slot, uint32_t mechanism);
/* Whether the agent carries out orders: it changes gates itself, or opens gates that the daemon cannot open. */
bool gp_gate_takes_orders(void);
void gp_gate_mechanism(uint32_t mechanism);
void gp_gate_leases(uint64_t now_ns);
uint64_t gp_gate_lease_due_ns(uint64_t now_ns); /* UINT64_MAX: never */
uint32_t gp_gate_closed_count(void);
bool gp_gate_is_closed(const struct gp_slot *slot); /* by the agent, or perhaps by the daemon itself */
/* No lock held: rings the withheld doorbells of queues whose gates are open again. */
void gp_gate_deliver(void);
void gp_gate_forget(void);    /* forked child */
void gp_gate_delivered(void); /* the same, then waits until no thread is ringing: the queue may be destroyed */

/* sample.c; lock held, but for gp_sample_after_wait() */
void gp_sample_all(void);
void gp_sample_round(uint64_t now_ns);
uint64_t gp_sample_due_ns(void);
void gp_sample_settle(uint64_t now_ns); /* sets when to sample next */
void gp_sample_after_wait(void);        /* no lock held: by an application thread whose wait for the GPU has ended */

/* thread.c */
void *gp_thread_run(void *unused);
bool gp_thread_wake(void); /* false: the thread cannot be woken any more */
/* By the last thread of the agent, no lock held: tries until every gate is open. Until then the agent goes on following
 * what the program does. */
void gp_thread_leave(void);

/* guard.c: the thread that takes over if the agent's thread ends */
void gp_guard_start(void); /* by the agent's thread; if there is one already, nothing */
/* By the agent's thread, no lock held: replaces a guard that has ended. came: what poll() says about GP_FD_GUARD. */
void gp_guard_check(short came);
void gp_guard_forget(void); /* forked child */

/* doorbell.c: no lock */
bool gp_doorbell_ring(struct gp_doorbell *doorbell, uint64_t handle, uint64_t value,
		      uint64_t written); /* false: the doorbell is withheld */
void gp_doorbell_announce_copy(uint64_t size);
extern void (*gp_doorbell_store)(uint64_t handle, int64_t value); /* the runtime's own store to a doorbell signal */

#endif
