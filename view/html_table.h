/* SPDX-License-Identifier: MIT */
/* The tables of a report, each a complete <section>. */
#ifndef GP_VIEW_HTML_TABLE_H
#define GP_VIEW_HTML_TABLE_H

#include "view/result.h"

void gp_html_summary(FILE *stream, const struct gp_result *result);
void gp_html_waits(FILE *stream, const struct gp_result *result);

#endif
