/* SPDX-License-Identifier: MIT */
/*
 * The lab's data: what the seeds published (share/lab/published.csv), every figure with its source, several where
 * several notes disagree; and the numbers of the model that were fitted on them (share/lab/fit.ini), each with the rows
 * it was fitted on.
 */
#ifndef GP_LAB_DATA_H
#define GP_LAB_DATA_H

#include "lab/rig.h"
#include "view/lab.h"

#define LAB_DATA_MAX 256u

struct lab_datum {
	char table[24], row[24], source[96];
	bool is_expected;
	uint64_t milli;
};

struct lab_data {
	uint32_t count;
	struct lab_datum items[LAB_DATA_MAX];
};

/* The fitted numbers, in a fixed order. */
enum lab_param { LAB_KERNEL, LAB_STAGES, LAB_FORK, LAB_WAVE, LAB_SLICE_LOSS, LAB_PARAM_COUNT };

struct lab_fit {
	uint64_t values[LAB_PARAM_COUNT]; /* in the parameter's own unit: ns, count, ppm */
	char rows[LAB_PARAM_COUNT][96];
	char determined[LAB_PARAM_COUNT][120];
};

int lab_data_parse(const char *text, size_t text_size, const char *file_name, struct lab_data *ret_data,
		   struct gp_error *error);
int lab_data_load(struct lab_data *ret_data, struct gp_error *error);
/* The first figure listed for a row, and the range of all of them. Untouched where there is none. */
void lab_data_cell(const struct lab_data *data, const char *table, const char *row, bool is_expected,
		   struct gp_lab_cell *cell);

int lab_fit_parse(const char *text, size_t text_size, const char *file_name, struct lab_fit *ret_fit,
		  struct gp_error *error);
int lab_fit_load(struct lab_fit *ret_fit, struct gp_error *error);
void lab_fit_load_into(const struct lab_fit *fit, struct lab_load *load);
const char *lab_param_name(enum lab_param param);
/* "63.2 us", "40.0 %", "72". Returns buffer. */
const char *lab_param_format(enum lab_param param, uint64_t value, char *buffer, size_t buffer_size);
bool lab_fit_uses(const struct lab_fit *fit, const char *row); /* "qps 4": a parameter was fitted on it */

#endif
