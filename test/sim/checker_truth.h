/* SPDX-License-Identifier: MIT */
/* The checkers' record of what the device was told: gates by finished transactions, whatever the core believes. */
#ifndef GP_TEST_CHECKER_TRUTH_H
#define GP_TEST_CHECKER_TRUTH_H

#include "test/sim/checker.h"

#define TRUTH_QUEUE_MAX       4096u
#define TRUTH_TRANSACTION_MAX 256u

struct truth_queue {
	bool used;
	uint32_t device;
	enum gp_gpu_kind kind;
	bool closed;
	uint64_t changed_ns;
	bool lost;        /* opened by nobody's order since it was last closed by one */
	uint32_t opening; /* transactions under way that open it */
	bool missed;      /* the last one that was to open it hung, or failed */
};

struct truth_transaction {
	uint64_t seq;
	uint32_t device, count;
	struct gp_gpu_change *changes;
};

struct truth {
	uint32_t queue_end, transaction_count;
	struct truth_queue queues[TRUTH_QUEUE_MAX];
	struct truth_transaction transactions[TRUTH_TRANSACTION_MAX]; /* under way, oldest first */
};

const char *truth_event(struct truth *truth, const struct check_event *event);
void truth_fini(struct truth *truth);

#endif
