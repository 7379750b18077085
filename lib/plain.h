/* SPDX-License-Identifier: MIT */
/* Text for terminals whose locale has no UTF-8: one ASCII character in the place of each other one. */
#ifndef GP_LIB_PLAIN_H
#define GP_LIB_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The environment (LC_ALL, LC_CTYPE, LANG) names a locale without UTF-8, or none. */
bool gp_plain_is_needed(void);

/* What is left of a text that arrives in parts, cut anywhere; all zeros before the first part. */
struct gp_plain {
	char bytes[4]; /* of a character that is not complete yet */
	size_t count, want;
};

/* Writes at most text_size + 1 bytes to `to` (text_size if nothing is left of an earlier part; then it may be `text`)
 * and returns how many. Each character takes as many columns as before, except wide ones: µs becomes us, × becomes x; a
 * character without a likeness becomes a question mark. */
size_t gp_plain_text(struct gp_plain *plain, const char *text, size_t text_size, char *to);

/* Columns to write in: COLUMNS if it is set, those of the terminal if standard output is one, else `otherwise`. */
uint32_t gp_plain_width(uint32_t otherwise);

/* From now on the text printed to standard output is plain, if that is a terminal and its locale has no UTF-8. Pipes
 * and files always get UTF-8. */
void gp_plain_stdout(void);

#endif
