/* SPDX-License-Identifier: MIT */
/*
 * A backend: how the gates of one kind of device are changed and what it can do. For authors of backends; the daemon is
 * its only user. The daemon's decision thread makes all calls, and they must not block: a thread of the backend's own
 * or the client's agent does what takes time, and the backend reports it by gp_device_host's functions, which any
 * thread may call.
 */
#ifndef GP_DEVICE_DEVICE_H
#define GP_DEVICE_DEVICE_H

#include <gpreempt/sched.h>
#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "device/config.h"
#include "lib/error.h"

#define GP_DEVICE_NAME_SIZE  64u
#define GP_DEVICE_REPORT_MAX 16u
#define GP_DEVICE_TEXT_SIZE  200u

/* What the backend tried, best mechanism first, and the outcome: one line each, shown by `status` and `doctor`. */
struct gp_device_finding {
	uint32_t mechanism; /* enum gp_mechanism; GP_MECHANISM_NONE: about the device itself */
	bool usable;
	char text[GP_DEVICE_TEXT_SIZE];
};

/* One device as the backend found it. */
struct gp_device_info {
	char name[GP_DEVICE_NAME_SIZE];   /* "AMD Instinct MI300X" or the gfx name */
	char driver[GP_DEVICE_NAME_SIZE]; /* versions to which the learned costs belong: KFD 1.17, firmware 171 */
	uint32_t gpu_id, node;
	char bdf[16];
	/* Its name as a file: the same for every daemon of this machine, in containers too, and different for each GPU,
	 * virtual GPUs included. Empty: not a real device; any number of daemons may use it. */
	char identity[GP_DEVICE_NAME_SIZE];
	uint32_t cu_count, xcc_count, slot_count, process_count_max;
	uint64_t memory_size;
	uint32_t dilation;  /* its time runs this many times slower than real time; 1 on real hardware */
	uint32_t mechanism; /* the best that works; GP_MECHANISM_NONE: none, and the findings say why */
	/* With mechanism the daemon itself keeps gates closed, and the kernel does not open them. If the device fails,
	 * its clients change to fallback (GP_MECHANISM_NONE: to none), and their agents undo what the daemon had done.
	 */
	bool hands_over;
	uint32_t fallback;
	enum gp_unit unit;
	bool stops_all;             /* each transaction stops every queue of the device */
	bool fetch_counters;        /* see struct gp_device_attr */
	bool kernel_reopens;        /* the kernel opens the gates when the daemon dies */
	uint64_t close_ns, open_ns; /* costs assumed until they are measured, device time */
	uint64_t switch_ns;         /* self-switching, and lower_max: see struct gp_device_attr */
	uint32_t lower_max;
	uint64_t short_us;          /* the slice of a queue below the top priority; 0: slices cannot be set here */
	uint64_t mid_us;            /* of a queue below the top with another open below it; 0: none */
	uint64_t long_us;           /* the slice of the only client at the top; 0: unchanged */
	bool is_refused;            /* known to hang or to reset when queues are preempted: mechanism is none */
	uint32_t overhead_permille; /* limit of the time for preempting here; 0: as configured */
	struct gp_device_finding findings[GP_DEVICE_REPORT_MAX];
	uint32_t finding_count;
};

/* Adds a finding, if there is room. */
__attribute__((format(printf, 4, 5))) void gp_device_say(struct gp_device_info *info, uint32_t mechanism, bool usable,
							 const char *format, ...);

/* A client as backends see it. The daemon owns it; by tag the daemon finds it again. */
struct gp_device_client {
	uint64_t tag;
	pid_t pid;      /* in the daemon's namespace */
	uid_t uid;      /* when it connected */
	uint32_t owner; /* its user, for the limits on what one user may take of a backend; 0: root */
	int pidfd;
	uint32_t flags;      /* GP_HELLO_… */
	uint32_t mechanisms; /* GP_MECHANISM_BITs of its agent; 0: it has no agent (unmanaged) */
	uint32_t mechanism;  /* the present one; only the daemon writes it, after host->mechanism */
	/* It gets its mechanism back when the call into the driver that hangs comes back; its groups are followed
	 * meanwhile. */
	bool is_handed_over;
	void *backend; /* the backend's own */
};

struct gp_device_change {
	uint32_t slot, generation, gpu_id, queue_id;
	bool open;
	bool is_final; /* not part of a plan: no newer plan replaces it */
	int result;
};

/* A queue as the driver lists it. */
struct gp_device_queue {
	uint32_t queue_id, gpu_id;
	bool is_compute; /* else it copies */
};

/* A queue that its program is about to destroy, or has destroyed. */
struct gp_device_leaving {
	uint32_t slot, gpu_id, queue_id;
	bool is_closed;  /* as last answered */
	bool is_ordered; /* the last order is unanswered: it may still be carried out */
};

/* How long the device runs a queue before it looks at others. */
struct gp_device_slice {
	uint32_t slot, generation, gpu_id, queue_id;
	uint64_t slice_us; /* 0: what the application has set */
	int result;
};

/* How often the device has put a queue aside by itself so far; the count wraps around. */
struct gp_device_count {
	uint32_t slot, generation, gpu_id, saves;
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	int result;
};

/* The backend has checked the handles of a queue. gate, slice: 0: the backend has applied the present gate and slice
 * again to the queue's present channels; -errno: it could not: the gate is open, or the slice is unknown. */
struct gp_device_grouped {
	uint32_t slot, generation;
	int gate, slice;
	bool is_early; /* ungrouped: not checked yet; the daemon asks again later */
};

/* The outcome of one call of apply. */
struct gp_device_done {
	uint64_t seq;
	uint32_t gpu_id, count;
	uint64_t issue_ns, done_ns; /* CLOCK_MONOTONIC: before the first and after the last call to the driver */
	const struct gp_device_change *changes; /* with their results; the daemon copies them */
	const char *found; /* a sentence with static lifetime for the device's findings; NULL: none */
};

/* What the daemon offers to its backends. */
struct gp_device_host {
	void *daemon;
	/* Sends an order to the client's agent, which answers the daemon, not the backend. 0 or -errno. */
	int (*order)(void *daemon, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		     const struct gp_device_change *changes, uint32_t count);
	/* From any thread: these changes are done. */
	void (*done)(void *daemon, uint64_t client_tag, const struct gp_device_done *done);
	/* From any thread: the client now uses another mechanism, and why (fallback, debugger detached). */
	void (*mechanism)(void *daemon, uint64_t client_tag, uint32_t mechanism, const char *why);
	/* From any thread: the device was reset or a preemption failed: the daemon stops scheduling it. */
	void (*failed)(void *daemon, uint32_t gpu_id, const char *why);
	/* From any thread: a call into the driver hangs (may be told again): the daemon stops scheduling the device. Or
	 * it has come back, undone: the daemon schedules the device again if nothing else stopped it. */
	void (*hangs)(void *daemon, uint32_t gpu_id, bool hangs);
	/* Asks the client's agent to set a slice; the agent answers the daemon. 0 or -errno. */
	int (*slice)(void *daemon, struct gp_device_client *client, const struct gp_device_slice *slice);
	/* From any thread: the outcome of a slice. */
	void (*sliced)(void *daemon, uint64_t client_tag, const struct gp_device_slice *slice);
	/* From any thread: the outcome of a count. */
	void (*counted)(void *daemon, uint64_t client_tag, const struct gp_device_count *count);
	/* From any thread: the backend has checked the handles of a queue, and can carry out orders on it. */
	void (*grouped)(void *daemon, uint64_t client_tag, const struct gp_device_grouped *grouped);
	/* From any thread: the handles of a queue are not valid as the agent described them. Perhaps the queue is just
	 * ending. 0, or -ENOMEM: the daemon was not told. */
	int (*ungrouped)(void *daemon, uint64_t client_tag, const struct gp_device_grouped *grouped, const char *why);
};

struct gp_backend;
struct gp_backend_ops {
	const char *name;    /* in the configuration, and that of its section */
	uint32_t mechanisms; /* GP_MECHANISM_BITs it may use: a client whose agent can do one of them is its */
	bool is_hardware;    /* the daemon looks for it if the configuration names no backend */
	const char *absent;  /* "no KFD node": why there is no device of it; NULL: there always is one */
	const struct gp_device_key *keys; /* of its section; the last one has no name */
	struct gp_device_config defaults;
	/* Once, at start; may block for a second. Returns the number of devices found (0: none here), or a negative
	 * errno and a sentence. infos: GP_DEVICE_MAX of them. The caller owns ret_backend until fini. */
	int (*init)(const struct gp_device_host *host, const struct gp_device_config *config,
		    struct gp_device_info *infos, struct gp_backend **ret_backend, struct gp_error *error);
	void (*fini)(struct gp_backend *backend); /* opens every gate that it has closed */
	/* A client has sent HELLO, or RUNTIME with enable = 1. Exactly one host->mechanism follows, perhaps before this
	 * returns. */
	void (*attach)(struct gp_backend *backend, struct gp_device_client *client);
	/* The client ends, or the daemon must release it (RUNTIME_DISABLE): the daemon is not its debugger afterwards.
	 * The backend reports that by host->mechanism: GP_MECHANISM_NONE, or the present one if that does not need the
	 * runtime. gone: its connection has ended; the backend forgets it and reports nothing. */
	void (*detach)(struct gp_backend *backend, struct gp_device_client *client, bool gone);
	/* A new queue: does what must be done before it can be suspended (EC_QUEUE_NEW). May be NULL. */
	void (*queue_added)(struct gp_backend *backend, struct gp_device_client *client, uint32_t gpu_id,
			    uint32_t queue_id);
	/* The queue ends; the client may stay. No order names the queue any more, and only the backend opens it. May be
	 * NULL. */
	void (*queue_removed)(struct gp_backend *backend, struct gp_device_client *client,
			      const struct gp_device_leaving *queue);
	/* One client's part of a plan on one device: closes or opens, not both. Never blocks; exactly one host->done
	 * (or, through the agent, one APPLIED) follows. Negative errno: the changes failed, and nothing follows. */
	int (*apply)(struct gp_backend *backend, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		     const struct gp_device_change *changes, uint32_t count);
	/* The backend may now carry out all changes that apply was given so far, together if the driver can. May be
	 * NULL. */
	void (*commit)(struct gp_backend *backend, uint32_t gpu_id);
	/* The handles of a queue, from its agent (GROUP); again when they change. If this is not NULL, the daemon
	 * orders a client whose mechanism needs it (GP_NEEDS_GROUP) only after host->grouped. May be NULL. */
	void (*group)(struct gp_backend *backend, struct gp_device_client *client, uint32_t gpu_id,
		      const struct gp_wire_group *group);
	/* After host->ungrouped, if the queue still exists: the client needs another mechanism, which the backend
	 * reports by host->mechanism. Not NULL where group is not. */
	void (*fall_back)(struct gp_backend *backend, struct gp_device_client *client, const char *why);
	/* Sets a slice. Never blocks; exactly one host->sliced (or, through the agent, one SLICED) follows. Negative
	 * errno: nothing follows. NULL: no device of this backend has slices. */
	int (*slice)(struct gp_backend *backend, struct gp_device_client *client, const struct gp_device_slice *slice);
	/* Counts how often the device has put a queue aside. Never blocks; exactly one host->counted follows. Negative
	 * errno: nothing follows. NULL: no device of this backend counts that. */
	int (*count)(struct gp_backend *backend, struct gp_device_client *client, const struct gp_device_count *count);
	/* From a thread of the daemon's, also after fini: processes that have a device of this kind open, with or
	 * without an agent, and their queues. Returns how many; writes at most max. -errno: the list cannot be read.
	 * Both are NULL if the driver has no such list. */
	int (*processes)(pid_t *pids, uint32_t max);
	int (*process_queues)(pid_t pid, struct gp_device_queue *queues, uint32_t max);
	/* Calls into the driver for this GPU (0: for any) that have not returned for over a second; a call for no
	 * particular GPU counts for each. NULL: the backend makes no calls. */
	uint32_t (*stuck)(struct gp_backend *backend, uint32_t gpu_id);
};

/* backends.c: best first, NULL at the end. */
extern const struct gp_backend_ops *const gp_backends[];
#define GP_BACKEND_MAX 4u
const struct gp_backend_ops *gp_backend_find(const char *name); /* NULL: no backend has that name */
#define GP_BACKEND_NAMES_SIZE 64u
void gp_backend_names(char names[GP_BACKEND_NAMES_SIZE]); /* "kfd, nvidia, null": for people */
/* What one call changes at once, by the table of mechanisms. */
enum gp_unit gp_device_unit(uint32_t mechanism);

#endif
