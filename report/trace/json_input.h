/* SPDX-License-Identifier: MIT */
/* The tokens of lib/json.h over a file of any size, and the fields of flat objects. */
#ifndef GP_REPORT_TRACE_JSON_INPUT_H
#define GP_REPORT_TRACE_JSON_INPUT_H

#include "lib/json.h"
#include "report/trace/input.h"

struct gp_json_input {
	struct gp_json json;
	struct gp_input *input; /* not owned */
	bool has_failed;
	struct gp_error failure; /* of the input */
};

void gp_json_input_init(struct gp_json_input *json, struct gp_input *input);
/* As gp_json_next(); errors of the file itself are told instead of "the file ends". */
int gp_json_input_next(struct gp_json_input *json, struct gp_error *error);
int gp_json_input_skip(struct gp_json_input *json, struct gp_error *error);
/* At the beginning of an object: calls member() for each of its keys (json.string is the key), which must go past the
 * value. At the beginning of an array: element() for each element, at its first token. */
typedef int (*gp_json_member)(void *context, struct gp_json_input *json, const char *key, struct gp_error *error);
typedef int (*gp_json_element)(void *context, struct gp_json_input *json, struct gp_error *error);
int gp_json_input_object(struct gp_json_input *json, gp_json_member member, void *context, struct gp_error *error);
int gp_json_input_array(struct gp_json_input *json, gp_json_element element, void *context, struct gp_error *error);
/* The token just read as a whole number, also if it stands in quotes. */
bool gp_json_input_u64(const struct gp_json_input *json, uint64_t *ret_value);

#endif
