/* SPDX-License-Identifier: MIT */
/* Every experiment there is. */
#ifndef GP_LAB_EXPERIMENTS_H
#define GP_LAB_EXPERIMENTS_H

#include "lab/lab.h"

extern const struct lab_experiment lab_qps, lab_fixes, lab_cu_limit, lab_runlist, lab_ace_map, lab_queue_id,
	lab_doorbell, lab_active_runlist, lab_rings, lab_entities, lab_priority, lab_cwsr, lab_lock, lab_ranks;

#endif
