/* SPDX-License-Identifier: MIT */
/* The checkers' record of what the core was told, and of the gates as its orders and their acknowledgements leave them.
 */
#ifndef GP_TEST_CHECKER_KNOWN_H
#define GP_TEST_CHECKER_KNOWN_H

#include "test/sim/checker.h"

#define KNOWN_QUEUE_MAX  4096u
#define KNOWN_DEVICE_MAX 4u
#define KNOWN_CLIENT_MAX 4096u
#define KNOWN_OWN_USER   (1ull << 63) /* the user of a client that is its own user: this, and the client's index */

struct known_queue {
	bool used;
	uint32_t generation, device;
	struct gp_client_id client;
	struct gp_queue_attr attr;
	uint64_t added_ns; /* core time */
	/* work */
	uint64_t written, completed;
	uint64_t written_ns; /* it was last told to have been given more, core time */
	bool has_work;
	bool presumed;  /* counters at fetch: all was fetched, and the core presumes that the last packet may still run;
			   how urgent it takes that is its own affair */
	bool announced; /* work was announced, and has neither come nor been given up */
	uint64_t busy_since_ns, idle_since_ns;
	/* gate */
	enum gp_gate gate;
	enum gp_why order_why;
	bool is_lost; /* it changed while its order was under way: the answer does not tell how it is */
	bool is_own;  /* its owner opened it, and the core has not ordered it since */
	uint64_t order_move, order_seq, order_ns; /* core time */
	uint64_t prompt_until_ns;                 /* others may wait for its answer until then … */
	bool is_awaited;                          /* … if this says so */
	bool aged;                                /* ordered open because it waited too long, not closed since */
	uint64_t aged_ns, aged_completed; /* the last such order, core time, and what it had completed then … */
	bool aged_again;                  /* … which was no more than at the one before */
	uint64_t opened_ns;               /* by an order, core time; 0: never */
	uint64_t slice_seq, slice_ns;     /* its slice is being set, since; 0: it is not */
	uint64_t slice_failed_ns;         /* that failed, or was not answered, core time; 0: never */
	uint32_t fail_count;
	int fail_result; /* of the last failed order */
	bool condemned;  /* must be in quarantine at the end of the call after which it is open, or was ordered open */
	bool must_quarantine; /* at the end of this call */
	bool fails_alone;     /* … for its own orders, not for those of another member of its gang */
	bool stuck;           /* in quarantine for its own orders: the other members of its gang must follow */
	/* claims */
	enum gp_why left_why; /* LEFT_OPEN since it last got work or its gate changed */
	uint64_t hold_ns;     /* until then a claim, or a failed order, lets it stay open */
	enum gp_why hold_why; /* GP_WHY_FAILED for every failed order */
	bool short_tried;     /* it was left open as short since it last got work */
	bool short_again;     /* that was while the short rest of the work before was waited for */
	/* derived, see known_refresh() */
	int64_t rank;
	bool is_batch;
	bool vague; /* how urgent the core takes it for is not known: its work is presumed, or that of a sibling that
		       lends is presumed or announced */
};

struct known_device {
	struct gp_device_attr attr;
	struct gp_param param; /* with the documented defaults filled in */
	const char *policy;
	bool gates, ranked;  /* the policy closes gates; it ranks */
	bool is_edf;         /* … by deadline */
	bool stopped, quiet; /* quiet: nothing was said since the core had nothing to order */
	uint64_t seq;        /* of its last plan */
	uint32_t close_count;
	int32_t top;           /* as the core claims: below it queues take turns … */
	bool has_deadline;     /* … and all without a deadline */
	uint64_t disturbed_ns; /* core time of the last timeout, failure, stop, start or removal */
};

struct known {
	uint64_t core_ns;                                /* the latest time the core has seen */
	uint64_t version;                                /* grows with every change that matters to somebody */
	uint64_t members;                                /* grows whenever a queue or a client comes or goes */
	bool stale;                                      /* rank and is_batch must be derived anew */
	uint32_t device_count, queue_end;                /* queue_end: indices in use are below */
	uint32_t moving[KNOWN_DEVICE_MAX], moving_count; /* queues for which known_moves(), of each device and of all */
	uint32_t stuck_count;                            /* queues that are stuck */
	uint64_t users[KNOWN_CLIENT_MAX];                /* of clients, by their index; 0: of its own */
	bool is_alone[KNOWN_CLIENT_MAX];                 /* its stuck queues keep no gang open */
	/* A claim: the client is behind its share of that device; the how manieth there; 0: it is not. */
	uint64_t behind[KNOWN_CLIENT_MAX][KNOWN_DEVICE_MAX], behind_count[KNOWN_DEVICE_MAX];
	struct known_device devices[KNOWN_DEVICE_MAX];
	struct known_queue queues[KNOWN_QUEUE_MAX];
};

/* NULL, or what is wrong with the event as such (a claim that cannot be true, an order for a queue that is not there).
 */
const char *known_event(struct known *known, const struct check_event *event);
struct known_queue *known_find(struct known *known, struct gp_queue_id id);
struct known_queue *known_find_tag(struct known *known, uint32_t gpu_queue); /* NULL: the core does not know it */
void known_refresh(
	struct known *known); /* rank and is_batch of every queue, by the checkers' own reading of the policies */
/* The queues that are never parked (unseen, of a gang, in quarantine) leave one. If not the runlist is oversubscribed
 * for good, and who runs is the device's choice; as it is where one in quarantine cannot be put aside at all. */
bool known_has_slot(const struct known *known, uint32_t device);
/* Whose it is; clients without a user are users of their own. */
uint64_t known_user(const struct known *known, const struct known_queue *queue);
uint32_t known_clients_of(const struct known *known, uint64_t user, uint32_t device); /* with queues there */
/* It was claimed to be behind its guaranteed share of the device. */
bool known_is_behind(const struct known *known, const struct known_queue *queue);
uint32_t known_batch_max(const struct known_device *device); /* UINT32_MAX: no limit */
/* It is in quarantine for its own orders, and its gang is to stay open with it. */
bool known_keeps_gang(const struct known *known, const struct known_queue *queue);
/* An order is under way. */
static inline bool known_moves(const struct known_queue *queue)
{
	return queue->gate == GP_GATE_CLOSING || queue->gate == GP_GATE_OPENING;
}
/* It is made long before it opens beside a short one; where that is not answered it is tried again later and later. */
bool known_is_sliced(const struct known *known, const struct known_queue *queue);
/* The core may wait for answers to the device's last plan. */
bool known_waits(const struct known *known, uint32_t device);
/* Work gets through its gate as far as the core can know. */
bool known_lets_through(const struct known_queue *queue);
/* Its being open though lower is covered by a claim that has not run out. */
bool known_is_excused(const struct known *known, const struct known_queue *queue);
uint32_t known_transactions(const struct known_device *device, const struct gp_order *orders, uint32_t order_count);

#endif
