/* SPDX-License-Identifier: MIT */
/*
 * Planted bugs: lies told at the seams, one at a time, to prove that the checker that should see each of them does.
 * They are compiled into the swarm alone; core, model and simulator are the ones that ship.
 */
#ifndef GP_TEST_PLANT_H
#define GP_TEST_PLANT_H

#include "test/sim/checker.h"

enum swarm_kind {
	SWARM_MIXED,
	SWARM_HOSTILE, /* the same worlds with users, and with clients that claim work and complete nothing */
	SWARM_SELF,    /* the same worlds on devices that switch by themselves, where every fault may happen */
	SWARM_FLOORS,  /* the same worlds with guaranteed shares */
	SWARM_RANKS,   /* the same worlds on several devices, with ranks of jobs that wait for each other */
	SWARM_ALONE,   /* as SWARM_RANKS, and half of the clients keep no gang open */
};

/* Every hook may be NULL. The checkers have seen, or will see, the honest side unless it says otherwise. */
struct plant {
	const char *name, *what;
	const struct checker *caught_by;
	enum swarm_kind kind; /* only such worlds can show it */
	uint32_t seed_max;    /* it must be found within so many; 0: within as many as are asked for */
	/* What the world is instead, before the simulator sees it. */
	void (*world)(struct gp_workload *workload);
	/* What the core is told of its device instead. */
	void (*device)(struct gp_device_attr *attr, struct gp_param *param);
	/* What the core is told of its costs instead; cost: what the checkers are told. */
	void (*cost)(struct checker_run *run, struct check_event *cost, uint64_t *close_ns, uint64_t *open_ns);
	/* What the core is told of a client instead. */
	void (*client)(struct gp_client_attr *attr);
	/* A plan as if the core had made it: the checkers see the result. */
	void (*make)(struct checker_run *run, struct gp_plan *plan);
	/* true: the core is not asked for a plan now, as if it had none. */
	bool (*idles)(struct checker_run *run);
	/* false: this order is not carried out, and the core is told it was. */
	bool (*send)(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order, bool opens);
	/* false: this slice is not set, and the core is told it was. */
	bool (*slice)(struct checker_run *run, uint64_t slice_ns);
	/* What the core is told a queue has completed. */
	uint64_t (*completed)(uint32_t gpu_queue, uint64_t written, uint64_t completed);
	/* What the log says; false: nothing. */
	bool (*trace)(struct gp_trace_event *event);
	/* A queue was just closed by a finished transaction. */
	void (*closed)(struct gp_gpu *gpu, uint32_t queue, uint64_t now_ns);
};

#define PLANT_SEQ UINT64_MAX /* of transactions and events nobody is told about */

extern const struct plant plant_list[];
extern const uint32_t plant_count;
const struct plant *plant_find(const char *name); /* NULL: no such plant */

#endif
