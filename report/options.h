/* SPDX-License-Identifier: MIT */
/* The options of `gpreempt report`. */
#ifndef GP_REPORT_OPTIONS_H
#define GP_REPORT_OPTIONS_H

#include "report/analysis.h"

struct gp_report_options {
	const char *json_path, *html_path, *perfetto_path;
	bool help, version, compare, has_top;
	uint32_t top;
	uint32_t width; /* 0: the terminal's */
	struct gp_filter filter;
	char **paths; /* the rest of the arguments */
	uint32_t path_count;
};

extern const char gp_report_help[];
int gp_report_options_parse(int argc, char **argv, struct gp_report_options *ret_options, struct gp_error *error);
/* "process 12, device 1, from 1 ms to 2 ms", "" without a filter; returns buffer. */
const char *gp_report_filter_text(const struct gp_filter *filter, char *buffer, size_t buffer_size);

#endif
