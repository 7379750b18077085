/* SPDX-License-Identifier: MIT */
/* Text from other processes (names, sentences) made fit for a terminal: what could move the cursor, change the title or
 * reverse the reading direction is replaced. */
#ifndef GP_CLI_CLEAN_H
#define GP_CLI_CLEAN_H

#include <stddef.h>
#include <stdio.h>

/* In place; every byte of a character that must not be shown becomes '?'. line: line ends and tabs too. */
void gp_clean_line(char *text);
void gp_clean_lines(char *text);
/* A copy, cut to the buffer and cleaned as a line. */
void gp_clean_copy(char *ret_text, size_t size, const char *text);

/* A JSON text, known to be valid, onto a stream: what a terminal might obey is escaped inside its strings. */
void gp_clean_json(FILE *stream, const char *text, size_t size);

#endif
