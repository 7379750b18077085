/* SPDX-License-Identifier: MIT */
/* How the views write numbers and text. Integers only, so that the same result gives the same bytes everywhere. */
#ifndef GP_VIEW_FORMAT_H
#define GP_VIEW_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GP_FORMAT_TEXT_SIZE 32u /* always suffices for the functions below */

/* Text from outside into HTML or SVG, also inside a quoted attribute: what is markup is escaped; what is not UTF-8
 * and control characters become U+FFFD. */
void gp_format_html(FILE *stream, const char *text);
/* value / 10^decimals with all its decimals: (123456, 3) is 123.456. */
void gp_format_decimal(FILE *stream, uint64_t value, unsigned int decimals);

/*
 * These return buffer:
 *   count  12,345
 *   rate   from requests per 1000 s: 0.51, 48.2 or 1,234 per second
 *   share  from parts per million: 20.5 %
 *   times  value / base, base > 0: 1.05×
 *   tick   2 ms, 2.5 ms: no trailing zeros
 */
const char *gp_format_count(uint64_t value, char *buffer, size_t buffer_size);
const char *gp_format_rate(uint64_t milli, char *buffer, size_t buffer_size);
const char *gp_format_share(uint64_t ppm, char *buffer, size_t buffer_size);
const char *gp_format_times(uint64_t value, uint64_t base, char *buffer, size_t buffer_size);
const char *gp_format_tick(uint64_t ns, char *buffer, size_t buffer_size);

/* At most `width` > 1 columns of a terminal; what is cut ends in an ellipsis, what cannot be shown is a question
 * mark. Returns buffer; 4 * width + 4 bytes always suffice. */
const char *gp_format_cut(const char *text, size_t width, char *buffer, size_t buffer_size);

#endif
