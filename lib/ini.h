/* SPDX-License-Identifier: MIT */
/*
 * INI over a text in memory, with the line number of each entry and a sentence for the first that is refused.
 * Written by hand because libinih, as Debian builds it, cuts lines at 200 bytes and names at 50 without a word, and
 * does not give line numbers.
 *
 *   # or ; begin a comment, at the start of a line only
 *   [section]
 *   name = value         the value is the rest of the line, blanks around it removed; it may be empty
 */
#ifndef GP_LIB_INI_H
#define GP_LIB_INI_H

#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_INI_LINE_SIZE 4096u /* bytes of one line with its NUL */
#define GP_INI_NAME_SIZE 128u  /* of a section or an entry name with its NUL */

/* Called for each entry. Returns 0, or a negative errno after filling error; gp_ini_parse() puts file:line in front.
 * Each section line is reported once with name = value = NULL. Entries before the first section have section "". */
typedef int (*gp_ini_handler)(void *context, const char *section, const char *name, const char *value, uint32_t line,
			      struct gp_error *error);
int gp_ini_parse(const char *text, size_t text_size, const char *file_name, gp_ini_handler handler, void *context,
		 struct gp_error *error);

#endif
