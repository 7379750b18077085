/* SPDX-License-Identifier: MIT */
/* The writers of a report. Each writes to an open stream and returns 0 or a negative errno. */
#ifndef GP_VIEW_REPORT_VIEW_H
#define GP_VIEW_REPORT_VIEW_H

#include <stdio.h>
#include "view/report.h"

struct gp_report_style {
	bool colour;
	uint32_t width; /* columns of the terminal */
};

int gp_report_text(FILE *stream, const struct gp_report *report, const struct gp_report_style *style);
int gp_report_json(FILE *stream, const struct gp_report *report); /* schema 1, docs/report.md */
int gp_report_html(FILE *stream, const struct gp_report *report);

/* Two runs beside each other. */
int gp_report_compare_text(FILE *stream, const struct gp_report *a, const struct gp_report *b,
			   const struct gp_report_style *style);
int gp_report_compare_html(FILE *stream, const struct gp_report *a, const struct gp_report *b);
int gp_report_compare_json(FILE *stream, const struct gp_report *a, const struct gp_report *b);

#endif
