/* SPDX-License-Identifier: MIT */
/* The list of experiments, in the order in which a report tells the story. */
#include "lab/experiments.h"

const struct lab_experiment *const lab_experiments[] = {
	&lab_qps,
	NULL,
};
