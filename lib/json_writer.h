/* SPDX-License-Identifier: MIT */
/* Writes JSON: commas, indentation and escapes, into whatever takes bytes. The caller pairs begin and end. */
#ifndef GP_LIB_JSON_WRITER_H
#define GP_LIB_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct gp_json_writer {
	void (*put)(void *context, const char *bytes, size_t size);
	void *context;
	bool is_compact; /* one line, no spaces; a wrong byte is '?' and only control characters are escaped */
	bool is_line;    /* one line, with spaces between its parts */
	bool need_comma;
	uint32_t depth;
};

void gp_json_writer_init_line(struct gp_json_writer *writer, FILE *stream); /* one line, into a stream */
/* key is NULL inside an array and at the top. */
void gp_json_writer_init(struct gp_json_writer *writer, FILE *stream);                   /* indented, into a stream */
void gp_json_writer_begin(struct gp_json_writer *writer, const char *key, char bracket); /* '{' or '[' */
void gp_json_writer_end(struct gp_json_writer *writer, char bracket);                    /* '}' or ']' */
void gp_json_writer_string(struct gp_json_writer *writer, const char *key, const char *value); /* NULL: null */
void gp_json_writer_u64(struct gp_json_writer *writer, const char *key, uint64_t value);
void gp_json_writer_known(struct gp_json_writer *writer, const char *key, bool is_known, uint64_t value); /* or null */
void gp_json_writer_i64(struct gp_json_writer *writer, const char *key, int64_t value);
void gp_json_writer_decimal(struct gp_json_writer *writer, const char *key, uint64_t value, unsigned int decimals);
void gp_json_writer_null(struct gp_json_writer *writer, const char *key);
void gp_json_writer_bool(struct gp_json_writer *writer, const char *key, bool value);

struct gp_json_figure {
	const char *key;
	uint64_t value;
};
/* An object of figures that are known together, or null where figures is NULL. */
void gp_json_writer_figures(struct gp_json_writer *writer, const char *key, const struct gp_json_figure *figures,
			    uint32_t figure_count);

#endif
