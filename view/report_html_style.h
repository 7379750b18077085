/* SPDX-License-Identifier: MIT */
/* Style sheet and script of the report's page: constant text, so that the page needs nothing from anywhere else. */
#ifndef GP_VIEW_REPORT_HTML_STYLE_H
#define GP_VIEW_REPORT_HTML_STYLE_H

extern const char gp_report_html_style[];
extern const char gp_report_html_script[];

#endif
