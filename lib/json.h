/* SPDX-License-Identifier: MIT */
/* A streaming JSON reader over a text in memory, safe for 64-bit integers, bounded depth, no allocation. Written by
 * hand because the libraries in Debian either read integers as doubles or refuse u64. */
#ifndef GP_LIB_JSON_H
#define GP_LIB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_JSON_DEPTH_MAX   64u
#define GP_JSON_STRING_SIZE 4096u

enum gp_json_type {
	GP_JSON_END,
	GP_JSON_OBJECT_BEGIN,
	GP_JSON_OBJECT_END,
	GP_JSON_ARRAY_BEGIN,
	GP_JSON_ARRAY_END,
	GP_JSON_KEY,
	GP_JSON_STRING,
	GP_JSON_NUMBER,
	GP_JSON_TRUE,
	GP_JSON_FALSE,
	GP_JSON_NULL
};

struct gp_json {
	const char *text, *file_name; /* not owned */
	size_t text_size, offset;
	uint32_t line, depth;
	char stack[GP_JSON_DEPTH_MAX]; /* '{' or '[' */
	bool need_comma, after_key, done;
	enum gp_json_type type;
	char string[GP_JSON_STRING_SIZE]; /* key, string, or the number's own text */
	bool is_u64, is_i64;              /* numbers: it is a whole number in that range */
	uint64_t u64;
	int64_t i64;
	/* For texts that are not in memory as a whole; both may be left out. refill makes at least `want` bytes from
	 * offset on available by moving text, text_size and offset, or says that the text ends before. */
	bool (*refill)(struct gp_json *json, size_t want);
	void *refill_context;
	bool cut_long; /* strings that are too long are cut at a character's end instead of refused */
};

void gp_json_init(struct gp_json *json, const char *text, size_t text_size, const char *file_name);
/* 0 or a negative errno with "file:line: …"; the token is in json->type. */
int gp_json_next(struct gp_json *json, struct gp_error *error);
/* After a KEY or at a BEGIN: past the whole value. */
int gp_json_skip(struct gp_json *json, struct gp_error *error);

#endif
