/* SPDX-License-Identifier: MIT */
/* The list of experiments, in the order in which a report tells the story. */
#include "lab/experiments.h"

const struct lab_experiment *const lab_experiments[] = {
	&lab_qps,      &lab_fixes,    &lab_cu_limit, &lab_runlist,        &lab_ranks,
	&lab_ace_map,  &lab_queue_id, &lab_doorbell, &lab_active_runlist, &lab_rings,
	&lab_entities, &lab_priority, &lab_cwsr,     &lab_lock,           NULL,
};
