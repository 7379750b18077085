/* SPDX-License-Identifier: MIT */
/* Queues: their counters, gates, slices and gangs. */
#ifndef GP_DAEMON_QUEUE_H
#define GP_DAEMON_QUEUE_H

#include "daemon/client.h"

struct gp_device_entry; /* device.h */

/* How long the device runs a queue before it looks at others, on devices where that can be set. The core knows the
 * present slice; here is what the daemon asked for. */
struct gp_slicing {
	bool is_asked;     /* an answer is outstanding */
	uint64_t seq;      /* of the core's plan that ordered it; 0: the core does not wait for an answer */
	uint64_t asked_us; /* 0: as the application has it */
	uint64_t asked_ns; /* when the daemon last asked */
	bool is_owed;      /* the queue is not in the core, and its slice may not be its own */
	bool uncounted;    /* the driver does not tell how often it is put aside */
	uint64_t app_us;   /* the application's own, as its agent says; 0: unknown */
	uint32_t failures; /* in a row */
	uint64_t changes;
};

/* The queue's channel group, where the backend needs it. */
struct gp_channel_group {
	bool is_found;                  /* the backend has checked it, and can carry out orders on it */
	uint64_t doubt_ns;              /* when to fall back, because the backend did not find it; 0: never */
	uint64_t doubt_end_ns;          /* … at the latest */
	bool is_asked;                  /* the backend checks it now */
	uint64_t again_ns;              /* when to ask the backend again, because it could not check it yet; 0: never */
	uint64_t wait_ns;               /* that it waited before it asked again, the last time; 0: not yet */
	struct gp_wire_group described; /* by its agent, the last time */
};

/* Lists of some of a device's queues: those with work, and those whose doorbells the agent cannot observe. */
enum gp_queue_list { GP_QUEUE_BUSY, GP_QUEUE_UNSEEN, GP_QUEUE_LISTS };
struct gp_queue_link {
	struct gp_queue_entry *next, *prev;
};

struct gp_queue_entry {
	struct gp_client *client;
	struct gp_queue_entry *device_next, *device_prev;
	struct gp_queue_link links[GP_QUEUE_LISTS];
	struct gp_queue_id core;
	bool in_core;
	bool has_entered;                 /* it has not left the core since; a new core takes it at once */
	struct gp_entry_line *entry_line; /* entry.c: it waits to enter; NULL: it does not */
	struct gp_queue_entry *entry_next, *entry_prev;
	uint32_t core_gang; /* as the core has it */
	uint64_t gang_ns;   /* since when; 0: since it came */
	uint32_t device;    /* index in daemon->devices */
	struct gp_wire_queue wire;
	struct gp_wire_attr set; /* by a command; valid fields win */
	struct gp_queue_attr attr;
	/* Counters as sampled, and as the core gets them. */
	uint64_t written, completed, virtual_written, virtual_completed;
	uint64_t looked; /* completed, as silence.c read it; 0: not */
	bool pending, blocked;
	struct gp_queue_entry *look_next; /* page.c alone */
	uint32_t hint_count;
	/* The order under way; of plan.c alone, but for is_ordered. */
	uint64_t plan_seq;  /* the last plan that names it; 0: none, or the core has given that order up */
	uint64_t order_seq; /* the last that was issued, or refused at once */
	bool is_ordered;    /* it was issued, and its answer still counts */
	bool is_awaited, to_issue;
	uint64_t ordered_ns; /* when it was issued */
	bool closed;         /* as last acknowledged */
	bool adopted;        /* of an unmanaged process: seen in the last scan */
	bool has_budget;     /* it carries its process's budget, which counts once on each device */
	uint64_t closes, opens;
	struct gp_slicing slice;       /* of slicing.c alone */
	struct gp_channel_group group; /* of channel_group.c alone */
};

/* page.c: queues that were armed and are to be read again after a fence. */
struct gp_looks {
	struct gp_queue_entry *first;
	bool is_plain; /* of one of them the daemon makes the doorbells' fence */
};

/* queue.c */
int gp_queue_add(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_queue *wire);
void gp_queue_remove(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_queue_enter(struct gp_daemon *daemon, struct gp_queue_entry *queue);         /* into the core */
void gp_queue_enter_now(struct gp_daemon *daemon, struct gp_queue_entry *queue);     /* for entry.c: it may */
void gp_queue_client_attr(struct gp_daemon *daemon, const struct gp_client *client); /* tells the core */
void gp_queue_leave(struct gp_daemon *daemon, struct gp_queue_entry *queue);         /* out of it; still listed */
void gp_queue_reconsider(struct gp_daemon *daemon, struct gp_queue_entry *queue);    /* in or out: its flags changed */
void gp_queue_open_again(struct gp_daemon *daemon, struct gp_queue_entry *queue);    /* its agent opened it already */
void gp_queue_attr(struct gp_daemon *daemon, struct gp_queue_entry *queue);          /* recompute and tell the core */
bool gp_queue_makes_barriers(void);                                                  /* for page.barriers */
void gp_queue_sample(struct gp_daemon *daemon, struct gp_queue_entry *queue);
/* The same for many queues, with one fence for all: looks at each, then again at those that were armed anew. */
void gp_queue_look(struct gp_daemon *daemon, struct gp_queue_entry *queue, struct gp_looks *looks);
void gp_queue_look_again(struct gp_daemon *daemon, struct gp_looks *looks);
void gp_queue_sample_client(struct gp_daemon *daemon, struct gp_client *client);
void gp_queue_tell_core(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t now_ns);
void gp_queue_set_pending(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool pending);
void gp_queue_set_seen(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool seen);
void gp_queue_gate(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool open); /* as acknowledged */
/* Writes on the page whether the daemon keeps the gate closed: before it orders the close, and when the gate opens. The
 * agent would not know otherwise. */
void gp_queue_hold(const struct gp_daemon *daemon, const struct gp_queue_entry *queue, bool held);
/* The queue that the core names; NULL: it is gone. */
struct gp_queue_entry *gp_queue_of(const struct gp_daemon *daemon, struct gp_queue_id id);
void gp_queue_lost(struct gp_daemon *daemon, struct gp_queue_entry *queue, enum gp_lost why, bool open);
void gp_queue_gangs_due(struct gp_daemon *daemon, uint64_t now_ns);
uint32_t gp_gang_name_get(struct gp_daemon *daemon, const struct gp_owner *owner, uid_t uid, const char *name);
uint32_t gp_gang_name_of(struct gp_daemon *daemon, const struct gp_queue_entry *queue,
			 const char *name);                      /* "": its process's */
void gp_gang_name_hold(struct gp_daemon *daemon, uint32_t gang); /* one more user of the name */
void gp_gang_name_put(struct gp_daemon *daemon, uint32_t gang);

/* entry.c */
/* Whether the queue may enter the core now. If not, it waits, and enters when its user may have one more. */
bool gp_entry_may(struct gp_daemon *daemon, struct gp_queue_entry *queue);
/* The same for a gate that its agent opened: it costs what an entry does. */
bool gp_entry_may_again(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_entry_forget(struct gp_daemon *daemon, struct gp_queue_entry *queue); /* it waits no longer */
void gp_entry_due(struct gp_daemon *daemon, uint64_t now_ns);

/* slicing.c */
void gp_slicing_order(struct gp_daemon *daemon, const struct gp_slice_order *order, uint64_t seq); /* from the core */
void gp_slicing_answer(struct gp_daemon *daemon, struct gp_client *client, uint32_t slot, uint32_t generation,
		       uint64_t slice_us, int result);
void gp_slicing_sliced(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_slice *slice);
void gp_slicing_lost(struct gp_daemon *daemon, struct gp_queue_entry *queue);  /* its slice is not known any more */
void gp_slicing_enter(struct gp_daemon *daemon, struct gp_queue_entry *queue); /* the queue has entered the core */
void gp_slicing_leave(struct gp_daemon *daemon, struct gp_queue_entry *queue); /* it is about to leave the core */
void gp_slicing_set_app(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t slice_us); /* its program's */
/* The backend has opened the queue's new channel group, but could not set the slice of the one before. */
void gp_slicing_not_set_again(struct gp_daemon *daemon, struct gp_queue_entry *queue, int result);
int gp_slicing_ask_agent(void *daemon, struct gp_device_client *client, const struct gp_device_slice *slice);
void gp_slicing_counted(struct gp_daemon *daemon, struct gp_client *client, const struct gp_device_count *count);
void gp_slicing_changed(struct gp_daemon *daemon);              /* gates, priorities or slices have changed */
void gp_slicing_wake(struct gp_daemon *daemon, uint64_t at_ns); /* gp_slicing_update() wants to be called then */
void gp_slicing_update(struct gp_daemon *daemon, uint64_t now_ns);
bool gp_slicing_is_own(const struct gp_daemon *daemon,
		       const struct gp_queue_entry *queue); /* as the application has it */
bool gp_slicing_are_back(const struct gp_daemon *daemon);   /* every queue has its own slice */

/* channel_group.c */
void gp_channel_group_described(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_group *group);
void gp_channel_group_found(struct gp_daemon *daemon, struct gp_client *client,
			    const struct gp_device_grouped *grouped); /* by the backend */
void gp_channel_group_missing(struct gp_daemon *daemon, struct gp_client *client,
			      const struct gp_device_grouped *grouped, const char *why);
void gp_channel_group_due(struct gp_daemon *daemon, uint64_t now_ns); /* a client may have to fall back */

#endif
