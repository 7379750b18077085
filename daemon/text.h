/* SPDX-License-Identifier: MIT */
/* A text that grows, and JSON in it: what the daemon answers with. Memory that runs out is remembered, not reported at
 * each step: the text is then empty and failed is set. */
#ifndef GP_DAEMON_TEXT_H
#define GP_DAEMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/json_writer.h"

struct gp_text {
	char *bytes; /* NUL-terminated when not NULL */
	size_t size, room;
	bool failed;
	struct gp_json_writer json; /* where in JSON it ends */
};

void gp_text_fini(struct gp_text *text);
void gp_text_clear(struct gp_text *text); /* empty again; keeps its memory */
void gp_text_sent(struct gp_text *text);  /* the same, in the middle of JSON */
void gp_text_add(struct gp_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* JSON. name NULL: an element of an array, or the whole. Strings are escaped; bytes that are not UTF-8 become '?'. */
void gp_text_open(struct gp_text *text, const char *name, char bracket);        /* '{' or '[' */
void gp_text_close(struct gp_text *text, char bracket);                         /* '}' or ']' */
void gp_text_string(struct gp_text *text, const char *name, const char *value); /* NULL: null */
void gp_text_u64(struct gp_text *text, const char *name, uint64_t value);
void gp_text_i64(struct gp_text *text, const char *name, int64_t value);
void gp_text_bool(struct gp_text *text, const char *name, bool value);
struct gp_json_writer *gp_text_json(struct gp_text *text); /* for what has no name here; until the text moves */

#endif
