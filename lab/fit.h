/* SPDX-License-Identifier: MIT */
/* The fit: the load's numbers from the published rows, and how well those rows determine them. */
#ifndef GP_LAB_FIT_H
#define GP_LAB_FIT_H

#include "lab/lab.h"

/* Uses the lab's device and data; leaves the result in lab->fit and lab->base. */
int lab_fit_run(struct lab *lab, struct gp_error *error);
/* Runs of the rig that takes, about. */
#define LAB_FIT_RUNS 900u
int lab_fit_write(FILE *stream, const struct lab_fit *fit);
int lab_fit_show(FILE *stream, const struct lab_fit *fit);

#endif
