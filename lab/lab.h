/* SPDX-License-Identifier: MIT */
/* The lab: experiments by name, each a few runs of the rig put beside what the seeds measured and expected. */
#ifndef GP_LAB_LAB_H
#define GP_LAB_LAB_H

#include "lab/data.h"
#include "lab/rig.h"
#include "view/lab.h"

#define LAB_CACHE_MAX 512u
#define LAB_SEEDS_MAX 64u
#define LAB_SET_MAX   32u

struct lab_memory {
	struct lab_setup setup;
	uint32_t seeds;
	struct gp_lab_cell cell;
	struct lab_rates last; /* of the last seed: what does not vary */
};

struct lab {
	struct gp_desc desc;
	struct lab_data data;
	struct lab_fit fit;
	struct lab_setup base; /* with what --set changed */
	uint32_t seeds;
	bool is_other_device;                     /* not the published figures': nothing is scored on it */
	char settings[GP_LAB_COMMAND_SIZE - 64u]; /* the options that say so, as they were typed */
	struct lab_memory cache[LAB_CACHE_MAX];
	uint32_t cache_count;
	/* Told after each run of the rig; may be NULL. */
	void (*progress)(void *context);
	void *progress_context;
};

struct lab_experiment {
	const char *name, *title, *question;
	uint64_t keys; /* of enum lab_key, by bit: those that change something here */
	uint32_t runs; /* runs of the rig, about, for the progress bar; per random seed */
	int (*run)(struct lab *lab, struct gp_lab_part *part, struct gp_error *error);
};

extern const struct lab_experiment *const lab_experiments[]; /* NULL-terminated, in the order of a report */
const struct lab_experiment *lab_experiment_find(const char *name);

/* device_path: a description instead of the MI308X's; NULL: that one. */
int lab_init(struct lab *lab, const char *device_path, struct gp_error *error);
int lab_run(struct lab *lab, const struct lab_experiment *experiment, struct gp_lab_part **ret_part,
	    struct gp_error *error);
void lab_describe(const struct lab *lab, struct gp_lab *ret_view); /* device and fitted numbers */

/* Queries per second of a setup over the random seeds: mean, least, most. Equal setups are run once. */
int lab_measure(struct lab *lab, const struct lab_setup *setup, struct gp_lab_cell *ret_cell,
		struct lab_rates *ret_last, struct gp_error *error);

/* Building blocks of experiments. */
struct gp_lab_table *lab_add_table(struct gp_lab_part *part, const char *unit, const char *title);
struct gp_lab_row *lab_add_row(struct gp_lab_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void lab_set_text(struct gp_lab_cell *cell, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lab_set_milli(struct gp_lab_cell *cell, uint64_t milli);
/* inside, touches or outside the measured range; nothing where either is missing. */
void lab_score(struct gp_lab_row *row);
/* The same to the last digit. */
bool lab_same(const struct gp_lab_cell *a, const struct gp_lab_cell *b);
/* calibrated if a parameter was fitted on "table row", whatever --set changes: it stays one of the rows that the other
 * numbers were made for. */
enum gp_lab_mark lab_mark(const struct lab *lab, const char *table, const char *row);

#endif
