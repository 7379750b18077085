/* SPDX-License-Identifier: MIT */
/* Devices, the plan under way on each, and what other threads report of them. */
#ifndef GP_DAEMON_DEVICE_H
#define GP_DAEMON_DEVICE_H

#include "daemon/queue.h"
#include "lib/hist.h"

/* A backend that runs. Each client belongs to one backend: that of the driver which its runtime uses. */
struct gp_driver_entry {
	const struct gp_backend_ops *ops;
	struct gp_backend *backend;
};

/* The daemon asks the driver how often a self-switching device put a queue aside, one queue at a time: see slicing.c.
 */
struct gp_switching {
	bool is_asked;            /* an answer is outstanding */
	struct gp_queue_id queue; /* the queue that was counted last … */
	uint64_t closes;          /* … and how often it had been closed */
	uint64_t next_ns;         /* when to count again, or to give an answer up */
	bool is_slowed;           /* as the journal last said */
};

/* The last plan of a device, whose opens may wait for its closes. */
struct gp_under_way {
	bool active;      /* the opens are not issued yet */
	uint64_t seq;     /* of its orders: core.seq_base and the plan's number */
	uint32_t waiting; /* closes that are awaited */
	uint64_t by_ns;   /* the opens wait until then at most; real time */
	uint32_t open_count;
	struct gp_order open[GP_PLAN_MAX];
};

/* learn.c: what transactions took, by user; [0]: closes, [1]: opens. */
#define GP_COST_USERS   16u
#define GP_COST_SAMPLES 32u
struct gp_cost_user {
	uint32_t owner;   /* the account's id */
	uint64_t used_ns; /* when it was last used; 0: this place is free */
	uint32_t count[2];
	uint64_t ns[2][GP_COST_SAMPLES]; /* the last ones, device time */
};
struct gp_cost {
	struct gp_cost_user users[GP_COST_USERS];
};

/* claim.c: whether this daemon, and no other, schedules a device. */
struct gp_claim {
	bool is_taken; /* fd is locked */
	int fd;
	bool is_left;          /* another daemon has it */
	bool is_why;           /* and that is the only reason why it is stopped */
	char why[GP_WHY_TEXT]; /* is_left: whose it is, for people */
	int error;             /* of the daemon's last try for the lock; the journal names each once */
};

struct gp_device_entry {
	struct gp_device_info info;
	struct gp_driver_entry *driver; /* its backend; never NULL */
	uint32_t core;
	struct gp_queue_entry *queues, *busy, *unseen;
	uint32_t queue_count, closed_queues, process_count; /* process_count: with an agent */
	struct gp_under_way under_way;
	struct gp_hist close_hist, open_hist; /* device time, per transaction */
	uint64_t close_prior_ns, open_prior_ns;
	struct gp_cost cost;
	char cost_source[96];
	uint32_t learned;
	uint64_t trouble_ns; /* plan.c: when to check a call into the driver that did not come back; 0: never */
	bool stopped;
	/* Stopped for a call into the driver that has not come back, and for nothing else, unless another daemon has
	 * the GPU as well (claim.is_left). */
	bool is_hung;
	char stopped_why[GP_WHY_TEXT];
	bool is_paused; /* by root, who did not resume it; paused_why: by whom, since when */
	char paused_why[GP_WHY_TEXT];
	struct gp_claim claim;
	uint64_t orders, order_failures;
	uint32_t unmanaged_queues, unmanaged_processes;
	uint32_t other_queues, other_processes;   /* of those: the ones the core does not know */
	uint32_t busy_clients;                    /* sampling.c */
	uint64_t entry_often_ns, entry_looked_ns; /* entry.c: between two entries of a user; as of then */
	uint64_t slices, slice_failures;          /* slicing.c: slices that were set, and that were not */
	struct gp_hist slice_hist;                /* from asking for one to its answer */
	struct gp_switching switching;
};

/* What other threads report. */
enum gp_report_kind {
	GP_REPORT_DONE,
	GP_REPORT_MECHANISM,
	GP_REPORT_FAILED,
	GP_REPORT_HANGS,
	GP_REPORT_BACK,
	GP_REPORT_SLICED,
	GP_REPORT_GROUPED,
	GP_REPORT_UNGROUPED,
	GP_REPORT_COUNTED
};
struct gp_device_report {
	struct gp_device_report *next;
	enum gp_report_kind kind;
	uint64_t tag, seq, issue_ns, done_ns;
	uint32_t gpu_id, mechanism, count;
	struct gp_device_slice slice;     /* SLICED */
	struct gp_device_grouped grouped; /* GROUPED, UNGROUPED */
	struct gp_device_count counted;   /* COUNTED */
	char why[GP_WHY_TEXT];
	const char *found; /* DONE */
	struct gp_device_change changes[];
};

/* device.c */
/* The backend for an agent with these mechanisms. An agent without mechanisms gets the first backend. */
struct gp_driver_entry *gp_driver_for(struct gp_daemon *daemon, uint32_t mechanisms);
int gp_drivers_known(const char *wanted, struct gp_error *error);        /* every word of the list is a backend */
uint32_t gp_drivers_stuck(struct gp_daemon *daemon, uint32_t gpu_id);    /* see struct gp_backend_ops */
int gp_device_add_all(struct gp_daemon *daemon, struct gp_error *error); /* backend, core, devices */
int gp_device_build_core(struct gp_daemon *daemon, struct gp_error *error);
struct gp_device_entry *gp_device_find(struct gp_daemon *daemon, uint32_t gpu_id);
/* A transaction of a client took so long, by the daemon's clock. */
void gp_device_learn(struct gp_daemon *daemon, struct gp_device_entry *device, const struct gp_client *client,
		     bool open, uint64_t ns);
void gp_device_tell_cost(struct gp_daemon *daemon, struct gp_device_entry *device);
/* Opens every gate and stops scheduling, unless it is stopped for another reason that does not end by itself. */
void gp_device_halt(struct gp_daemon *daemon, struct gp_device_entry *device, const char *why);
void gp_device_go_on(struct gp_daemon *daemon, struct gp_device_entry *device);

/* stopped.c: the same at root's command, for the next daemon too. */
void gp_device_stop(struct gp_daemon *daemon, struct gp_device_entry *device, const char *who);
void gp_device_start(struct gp_daemon *daemon, struct gp_device_entry *device);
void gp_stopped_load(struct gp_daemon *daemon);

/* claim.c */
extern const char *gp_claim_folder; /* a test has its own */
/* Takes the locks that are not taken or whose files were removed; stops the GPUs that another daemon has. */
void gp_claim_all(struct gp_daemon *daemon);
void gp_claim_due(struct gp_daemon *daemon, uint64_t now_ns); /* starts GPUs whose other daemon has ended */
/* Of a GPU that is stopped: the other daemon that has it is from now on the only reason. */
void gp_claim_is_why(struct gp_daemon *daemon, struct gp_device_entry *device);
void gp_claim_fini(struct gp_daemon *daemon);

/* learn.c */
void gp_cost_add(struct gp_device_entry *device, uint32_t owner, bool open, uint64_t ns);
uint64_t gp_cost_ns(const struct gp_device_entry *device, bool open);
uint64_t gp_cost_bound_ns(uint64_t ns, uint64_t given_ns); /* not far from what the backend assumes */
uint32_t gp_cost_user_count(const struct gp_device_entry *device, bool open);
bool gp_cost_is_known(const struct gp_device_entry *device); /* well enough for the next daemon */

/* cost.c */
void gp_cost_load(struct gp_daemon *daemon);
void gp_cost_save(struct gp_daemon *daemon);
void gp_cost_due(struct gp_daemon *daemon, uint64_t now_ns);

/* plan.c */
void gp_carry_decide(struct gp_daemon *daemon);
void gp_carry_answer(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
		     uint64_t seq, bool open, int result, uint64_t now_ns); /* now_ns: the same for a whole answer */
void gp_carry_queue_gone(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_carry_inbox(struct gp_daemon *daemon);
bool gp_carry_has_reports(const struct gp_daemon *daemon); /* gp_carry_inbox() has something to do */
void gp_carry_host(struct gp_daemon *daemon, struct gp_device_host *ret_host);

void gp_carry_forget(struct gp_device_entry *device); /* drops orders not issued yet */

#endif
