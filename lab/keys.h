/* SPDX-License-Identifier: MIT */
/* The switches of the lab: --set key=value, each with its range or its choices. */
#ifndef GP_LAB_KEYS_H
#define GP_LAB_KEYS_H

#include "lab/lab.h"

enum lab_key {
	LAB_KEY_PROCESSES,
	LAB_KEY_STREAMS,
	LAB_KEY_QUEUES,
	LAB_KEY_IDLE_QUEUES,
	LAB_KEY_QUEUE_IDS,
	LAB_KEY_DOORBELLS,
	LAB_KEY_RUNLIST,
	LAB_KEY_SUBMISSION,
	LAB_KEY_RING,
	LAB_KEY_ENTITIES,
	LAB_KEY_WORKQUEUE,
	LAB_KEY_JOB,
	LAB_KEY_NUM_KCQ,
	LAB_KEY_CU,
	LAB_KEY_MASK,
	LAB_KEY_QUANTUM,
	LAB_KEY_PROCESS_QUANTUM,
	LAB_KEY_PRIORITY,
	LAB_KEY_PREEMPTION,
	LAB_KEY_TURN,
	LAB_KEY_PARTITION,
	LAB_KEY_GRAPH,
	LAB_KEY_BLOCKED_HEAD,
	LAB_KEY_PACKING,
	LAB_KEY_PIPES,
	LAB_KEY_STAGES,
	LAB_KEY_FORK,
	LAB_KEY_WAVE,
	LAB_KEY_KERNEL,
	LAB_KEY_HOST,
	LAB_KEY_JITTER,
	LAB_KEY_SLICE_LOSS,
	LAB_KEY_SEEDS,
	LAB_KEY_DURATION,
	LAB_KEY_COUNT
};

#define LAB_KEY(name) (1ull << LAB_KEY_##name)
/* What every experiment on the rig takes. */
#define LAB_KEYS_RIG                                                                                                   \
	(LAB_KEY(STREAMS) | LAB_KEY(QUEUES) | LAB_KEY(IDLE_QUEUES) | LAB_KEY(QUEUE_IDS) | LAB_KEY(DOORBELLS) |         \
	 LAB_KEY(RUNLIST) | LAB_KEY(SUBMISSION) | LAB_KEY(RING) | LAB_KEY(ENTITIES) | LAB_KEY(WORKQUEUE) |             \
	 LAB_KEY(JOB) | LAB_KEY(NUM_KCQ) | LAB_KEY(CU) | LAB_KEY(MASK) | LAB_KEY(QUANTUM) | LAB_KEY(PROCESS_QUANTUM) | \
	 LAB_KEY(PRIORITY) | LAB_KEY(PREEMPTION) | LAB_KEY(TURN) | LAB_KEY(PARTITION) | LAB_KEY(GRAPH) |               \
	 LAB_KEY(BLOCKED_HEAD) | LAB_KEY(PACKING) | LAB_KEY(PIPES) | LAB_KEY(STAGES) | LAB_KEY(FORK) | LAB_KEY(WAVE) | \
	 LAB_KEY(KERNEL) | LAB_KEY(HOST) | LAB_KEY(JITTER) | LAB_KEY(SLICE_LOSS) | LAB_KEY(SEEDS) | LAB_KEY(DURATION))

/* -EINVAL with the valid keys, or with the range or the choices of this one. */
int lab_key_set(struct lab *lab, const struct lab_experiment *experiment, const char *assignment,
		struct gp_error *error);
/* One line per key that the experiment takes: name, range or choices, default, what it is. */
void lab_key_list(FILE *stream, uint64_t keys);

#endif
