/* SPDX-License-Identifier: MIT */
/*
 * What an experiment of the lab found, as the views show it: what the seeds measured, what they expected, what the
 * model says, side by side, each row with where its figure comes from. Owned by whoever filled it; views only read.
 * Numbers are thousandths of the table's unit.
 */
#ifndef GP_VIEW_LAB_H
#define GP_VIEW_LAB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GP_LAB_ROW_MAX      28u
#define GP_LAB_TABLE_MAX    6u
#define GP_LAB_PART_MAX     16u
#define GP_LAB_PARAM_MAX    12u
#define GP_LAB_COMMAND_SIZE 2048u

/* Where the model's figure of a row comes from. */
enum gp_lab_mark {
	GP_LAB_PREDICTED,    /* no parameter was fitted on it */
	GP_LAB_CALIBRATED,   /* a parameter of the model was fitted on it */
	GP_LAB_FITTED,       /* a line through the published points; nothing says why it is there */
	GP_LAB_COMPUTED,     /* arithmetic, or what the driver's source does; no parameter at all */
	GP_LAB_NOT_MODELLED, /* no mechanism is known */
};

enum gp_lab_verdict {
	GP_LAB_UNSCORED,
	GP_LAB_INSIDE,  /* the mean lies in the measured range */
	GP_LAB_TOUCHES, /* only the spread over random seeds reaches it */
	GP_LAB_OUTSIDE,
	GP_LAB_NO_EFFECT, /* exactly what it is without the change */
	GP_LAB_REFUTED,   /* what the seed expected does not come about */
	GP_LAB_AGREES,    /* the seed is right */
};

/* One figure, or a range around one, or words. */
struct gp_lab_cell {
	bool has, is_text;
	uint64_t mid, low, high;
	char text[96];
};

struct gp_lab_row {
	char label[64];
	struct gp_lab_cell measured, expected, predicted;
	enum gp_lab_mark mark;
	enum gp_lab_verdict verdict;
	char note[240];
};

struct gp_lab_table {
	char title[120], caption[400];
	const char *unit;          /* "" for words */
	const char *measured_head; /* who measured; NULL: the seed */
	bool is_curve;             /* rows are points on an axis: axis_title and the label's number */
	const char *axis_title;
	uint32_t row_count;
	struct gp_lab_row rows[GP_LAB_ROW_MAX];
};

struct gp_lab_part {
	const char *name, *title, *question;
	const char *devices;               /* what it was simulated on; NULL: the lab's device */
	char answer[900];                  /* one paragraph */
	char falsify[600];                 /* what would prove it wrong, as a command; "" */
	char command[GP_LAB_COMMAND_SIZE]; /* to repeat it */
	uint32_t table_count;
	struct gp_lab_table tables[GP_LAB_TABLE_MAX];
};

/* A number of the model that was fitted, and on what. */
struct gp_lab_param {
	char name[24], value[32], fitted_on[96], determined[120];
};

struct gp_lab {
	char device[96], version[16], command[GP_LAB_COMMAND_SIZE];
	uint32_t seed_count; /* random seeds behind each spread */
	uint32_t param_count;
	struct gp_lab_param params[GP_LAB_PARAM_MAX];
	uint32_t part_count;
	struct gp_lab_part *parts[GP_LAB_PART_MAX];
};

const char *gp_lab_device(const struct gp_lab *lab); /* of the one part that there is, or the lab's */
const char *gp_lab_part_device(const struct gp_lab *lab, const struct gp_lab_part *part); /* what it was simulated on */
const char *gp_lab_measured_head(const struct gp_lab_table *table);
const char *gp_lab_mark_name(enum gp_lab_mark mark);
const char *gp_lab_mark_words(enum gp_lab_mark mark);
const char *gp_lab_verdict_name(enum gp_lab_verdict verdict);
/* "85.0 (72.0–99.8)", "words", "–". Returns buffer; 128 bytes suffice. */
const char *gp_lab_format(const struct gp_lab_cell *cell, char *buffer, size_t buffer_size);

/* Each writes to an open stream and returns 0 or -EIO. */
int gp_view_lab_text(FILE *stream, const struct gp_lab *lab);
int gp_view_lab_json(FILE *stream, const struct gp_lab *lab);
int gp_view_lab_html(FILE *stream, const struct gp_lab *lab);

/* The pictures of a table, each a complete <svg>. */
void gp_chart_lab_curve(FILE *stream, const struct gp_lab_table *table);
void gp_chart_lab_rows(FILE *stream, const struct gp_lab_table *table);

#endif
