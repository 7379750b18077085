/* SPDX-License-Identifier: MIT */
/* The style sheet and the script of a report: constant text, so that the page needs nothing from anywhere else. */
#ifndef GP_VIEW_HTML_STYLE_H
#define GP_VIEW_HTML_STYLE_H

extern const char gp_html_style[];
extern const char gp_html_script[];

#endif
