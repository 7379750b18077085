/* SPDX-License-Identifier: MIT */
/*
 * A backend: how the gates of one kind of device are changed and what it can do. For those who write one; the daemon is
 * its only user. All calls come from the daemon's decision thread and must not block: what takes time is done by a
 * thread of the backend's own or by the client's agent, and reported with gp_device_host's functions, which may be
 * called from any thread.
 */
#ifndef GP_DEVICE_DEVICE_H
#define GP_DEVICE_DEVICE_H

#include <gpreempt/sched.h>
#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/error.h"
#include "lib/safety.h"

#define GP_DEVICE_NAME_SIZE     64u
#define GP_DEVICE_REPORT_MAX    16u
#define GP_DEVICE_TEXT_SIZE     200u
#define GP_DEVICE_OVERRULED_MAX 16u
#define GP_DEVICE_ROOT_SIZE     256u

/* What was tried, best mechanism first, and how it went: one line each, shown by `status` and `doctor`. */
struct gp_device_finding {
	uint32_t mechanism; /* enum gp_mechanism; GP_MECHANISM_NONE: about the device itself */
	bool usable;
	char text[GP_DEVICE_TEXT_SIZE];
};

/* One device as the backend found it. */
struct gp_device_info {
	char name[GP_DEVICE_NAME_SIZE];   /* "AMD Instinct MI300X" or the gfx name */
	char driver[GP_DEVICE_NAME_SIZE]; /* versions that the learned costs belong to: KFD 1.17, firmware 171 */
	uint32_t gpu_id, node;
	char bdf[16];
	/* Its name as a file: the same for every daemon of this machine, in containers too, and another one for each
	 * GPU, the virtual ones included. Empty: nothing real, which any number of daemons may have. */
	char identity[GP_DEVICE_NAME_SIZE];
	uint32_t cu_count, xcc_count, slot_count, process_count_max;
	uint64_t memory_size;
	uint32_t dilation;  /* its time runs this many times slower than ours; 1 on real hardware */
	uint32_t mechanism; /* reached; GP_MECHANISM_NONE: nothing can be preempted, and the findings say why */
	/* The daemon itself keeps gates closed by mechanism, and nobody else would open them. Should the device fail,
	 * its clients go by fallback (GP_MECHANISM_NONE: by none), and their agents give back what was done. */
	bool hands_over;
	uint32_t fallback;
	enum gp_unit unit;
	bool stops_all;             /* each transaction stops every queue of the device */
	bool fetch_counters;        /* see struct gp_device_attr */
	bool kernel_reopens;        /* gates open by themselves when the daemon dies */
	uint64_t close_ns, open_ns; /* prior, device time */
	uint64_t switch_ns;         /* self-switching, and lower_max: see struct gp_device_attr */
	uint32_t lower_max;
	uint64_t short_us; /* the slice of a queue below the top priority; 0: the device has none that can be set */
	uint64_t mid_us;   /* of one below the top that has another open below it; 0: it has none */
	uint64_t long_us;  /* the slice of the only client on top; 0: left as it is */
	bool is_refused;   /* known to hang or to reset when queues are preempted: mechanism is none */
	uint32_t overhead_permille; /* preempting takes at most so much of the time here; 0: as configured */
	struct gp_device_finding findings[GP_DEVICE_REPORT_MAX];
	uint32_t finding_count;
};

/* Adds a finding; one too many is left out. */
__attribute__((format(printf, 4, 5))) void gp_device_say(struct gp_device_info *info, uint32_t mechanism, bool usable,
							 const char *format, ...);

/* A client as backends see it. The daemon owns it; tag finds it again. */
struct gp_device_client {
	uint64_t tag;
	pid_t pid;      /* in the daemon's namespace */
	uid_t uid;      /* when it came */
	uint32_t owner; /* its user: one must not take everything of a backend's. 0: root */
	int pidfd;
	uint32_t flags;      /* GP_HELLO_… */
	uint32_t mechanisms; /* GP_MECHANISM_BIT of what its agent can do; 0: it has none (unmanaged) */
	uint32_t mechanism;  /* what its gates are changed by now; written by the daemon only, after host->mechanism */
	void *backend;       /* the backend's own */
};

struct gp_device_change {
	uint32_t slot, generation, gpu_id, queue_id;
	bool open;
	bool is_final; /* not by a plan: no newer plan takes its place */
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
	bool is_ordered; /* the last order is not answered: it may be carried out yet */
};

/* How long the device runs a queue before it looks at others. */
struct gp_device_slice {
	uint32_t slot, generation, gpu_id, queue_id;
	uint64_t slice_us; /* 0: as the application has it */
	int result;
};

/* How often the device has put a queue aside by itself so far: it wraps around. */
struct gp_device_count {
	uint32_t slot, generation, gpu_id;
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint32_t saves;
	int result;
};

/* What stands behind a queue was looked at. gate, slice: what had been done to it before was done again to what it is
 * now, or -errno: then it is open, and its slice is not known. */
struct gp_device_grouped {
	uint32_t slot, generation;
	int gate, slice;
};

/* What became of one call of apply. */
struct gp_device_done {
	uint64_t seq;
	uint32_t gpu_id, count;
	uint64_t issue_ns, done_ns; /* CLOCK_MONOTONIC: before the first and after the last call to the driver */
	const struct gp_device_change *changes; /* with their results; copied by the daemon */
	const char *found; /* a sentence that stays, to be added to the device's findings; NULL: none */
};

/* What the daemon offers to its backends. */
struct gp_device_host {
	void *daemon;
	/* Sends an order to the client's agent; its answer comes back to the daemon, not to the backend. 0 or -errno.
	 */
	int (*order)(void *daemon, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		     const struct gp_device_change *changes, uint32_t count);
	/* From any thread: these changes are done. */
	void (*done)(void *daemon, uint64_t client_tag, const struct gp_device_done *done);
	/* From any thread: the client now uses another mechanism, and why (fallback, debugger detached). */
	void (*mechanism)(void *daemon, uint64_t client_tag, uint32_t mechanism, const char *why);
	/* From any thread: the device was reset or a preemption failed: the daemon stops ordering on it. */
	void (*failed)(void *daemon, uint32_t gpu_id, const char *why);
	/* Asks the client's agent to set a slice; its answer comes back to the daemon. 0 or -errno. */
	int (*slice)(void *daemon, struct gp_device_client *client, const struct gp_device_slice *slice);
	/* From any thread: what became of a slice. */
	void (*sliced)(void *daemon, uint64_t client_tag, const struct gp_device_slice *slice);
	/* From any thread: what was counted. */
	void (*counted)(void *daemon, uint64_t client_tag, const struct gp_device_count *count);
	/* From any thread: what stands behind a queue was looked at, and orders on it can be carried out. */
	void (*grouped)(void *daemon, uint64_t client_tag, const struct gp_device_grouped *grouped);
};

/* What the configuration says of the devices of one backend; what a backend does not have, it does not look at. */
struct gp_device_config {
	uint32_t mechanisms;        /* GP_MECHANISM_BIT of those allowed; 0: all */
	uint32_t grace;             /* DBG_TRAP SUSPEND: 1K cycles */
	uint32_t null_count;        /* devices of the null backend */
	bool criu;                  /* processes that cannot be debugged may be set aside by the checkpoint interface */
	bool fetch_counters;        /* see struct gp_device_attr */
	uint64_t close_ns, open_ns; /* prior of the costs, device time */
	uint64_t switch_ns, short_ns, mid_ns, long_ns; /* see struct gp_device_info; whole microseconds */
	char root[GP_DEVICE_ROOT_SIZE];                /* what stands before /proc and /dev; "" but in tests */
	char overruled[GP_DEVICE_OVERRULED_MAX][GP_SAFETY_NAME_SIZE]; /* entries of share/safety, by root */
	uint32_t overruled_count;
};

struct gp_backend;
struct gp_backend_ops {
	const char *name;    /* in the configuration */
	uint32_t mechanisms; /* GP_MECHANISM_BITs of what it may use: an agent that can do one of them is its client */
	bool is_hardware;    /* looked for where the configuration names no backend */
	/* Once, at start; may block for a second. Returns the number of devices found (0: none here), or a negative
	 * errno and a sentence. infos: GP_DEVICE_MAX of them. ret_backend is owned by the caller until fini. */
	int (*init)(const struct gp_device_host *host, const struct gp_device_config *config,
		    struct gp_device_info *infos, struct gp_backend **ret_backend, struct gp_error *error);
	void (*fini)(struct gp_backend *backend); /* every gate it closed is open afterwards */
	/* A client said hello, or that its runtime is enabled now. Exactly one host->mechanism follows, perhaps before
	 * this returns. */
	void (*attach)(struct gp_backend *backend, struct gp_device_client *client);
	/* The client goes, or must be let go (RUNTIME_DISABLE): no debugger of ours on it afterwards, which is told by
	 * host->mechanism(…, GP_MECHANISM_NONE). gone: its connection ended; the backend forgets it, nothing is told.
	 */
	void (*detach)(struct gp_backend *backend, struct gp_device_client *client, bool gone);
	/* A queue came: what must be done before it can be suspended (EC_QUEUE_NEW). May be NULL. */
	void (*queue_added)(struct gp_backend *backend, struct gp_device_client *client, uint32_t gpu_id,
			    uint32_t queue_id);
	/* It goes; the client may stay. No order names it any more, and nobody else opens it. May be NULL. */
	void (*queue_removed)(struct gp_backend *backend, struct gp_device_client *client,
			      const struct gp_device_leaving *queue);
	/* One client's part of a plan on one device: closes or opens, not both. Never blocks; exactly one host->done
	 * (or, through the agent, one APPLIED) follows. Negative errno: nothing will follow, the changes failed. */
	int (*apply)(struct gp_backend *backend, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		     const struct gp_device_change *changes, uint32_t count);
	/* All that apply was given so far may be carried out now, together if the driver can. May be NULL. */
	void (*commit)(struct gp_backend *backend, uint32_t gpu_id);
	/* What stands behind a queue, told by its agent (GROUP); again when it changes. Where this is there, a client
	 * whose mechanism needs it (GP_NEEDS_GROUP) is ordered about after host->grouped only. May be NULL. */
	void (*group)(struct gp_backend *backend, struct gp_device_client *client, uint32_t gpu_id,
		      const struct gp_wire_group *group);
	/* Sets a slice. Never blocks; exactly one host->sliced (or, through the agent, one SLICED) follows. Negative
	 * errno: nothing will follow. NULL: no device of this backend has slices. */
	int (*slice)(struct gp_backend *backend, struct gp_device_client *client, const struct gp_device_slice *slice);
	/* Counts how often a queue was put aside. Never blocks; exactly one host->counted follows. Negative errno:
	 * nothing will follow. NULL: no device of this backend tells. */
	int (*count)(struct gp_backend *backend, struct gp_device_client *client, const struct gp_device_count *count);
	/* From a thread of the daemon's, also after fini: processes that have a device of this kind open, with or
	 * without an agent, and their queues. How many; at most max are written. -errno: they cannot be read. NULL,
	 * and then both: the driver has no such list. */
	int (*processes)(pid_t *pids, uint32_t max);
	int (*process_queues)(pid_t pid, struct gp_device_queue *queues, uint32_t max);
	/* Calls into the driver for this GPU (0: for any) that have not come back for over a second; one that is for no
	 * GPU in particular counts for each. NULL: it makes none. */
	uint32_t (*stuck)(struct gp_backend *backend, uint32_t gpu_id);
};

/* backends.c: best first, NULL at the end. */
extern const struct gp_backend_ops *const gp_backends[];
#define GP_BACKEND_MAX 4u
const struct gp_backend_ops *gp_backend_find(const char *name); /* NULL: there is none of that name */
/* What one call changes at once, by the table of mechanisms. */
enum gp_unit gp_device_unit(uint32_t mechanism);

#endif
