/* SPDX-License-Identifier: MIT */
/* Every experiment there is. */
#ifndef GP_LAB_EXPERIMENTS_H
#define GP_LAB_EXPERIMENTS_H

#include "lab/lab.h"

extern const struct lab_experiment lab_qps;

#endif
