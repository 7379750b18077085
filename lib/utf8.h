/* SPDX-License-Identifier: MIT */
/* UTF-8, strictly: what may be shown, and how wide it is. */
#ifndef GP_LIB_UTF8_H
#define GP_LIB_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes (1..4) of the well-formed character at text, of which text_size > 0 bytes are there; 0 if it is not one
 * (stray or missing continuation, overlong, surrogate, above U+10FFFF). ret_code may be NULL. */
size_t gp_utf8_decode(const char *text, size_t text_size, uint32_t *ret_code);

/* Whether the character would control a terminal or change the reading direction: control characters (C0, DEL, C1),
 * line and paragraph separators, and the marks of direction. */
bool gp_utf8_is_harmful(uint32_t code);

/* Columns on a terminal: combining marks take none, East Asian wide ranges two, everything else one. A byte that is
 * not UTF-8 counts one, as it is shown as one replacement character. */
size_t gp_utf8_width(const char *text);

#endif
