/* SPDX-License-Identifier: MIT */
/* Owns the way of JSON from a window to tokens. */
#include <string.h>
#include "report/trace/json_input.h"
#include "report/trace/rows.h"

static bool json_input_refill(struct gp_json *tokens, size_t want)
{
	struct gp_json_input *json = tokens->refill_context;
	struct gp_input *input = json->input;

	input->start += tokens->offset;
	if (gp_input_fill(input, want, &json->failure))
		json->has_failed = true;
	tokens->text = gp_input_at(input);
	tokens->text_size = gp_input_size(input);
	tokens->offset = 0;
	return tokens->text_size >= want;
}

void gp_json_input_init(struct gp_json_input *json, struct gp_input *input)
{
	json->input = input;
	json->has_failed = false;
	gp_json_init(&json->json, gp_input_at(input), gp_input_size(input), input->file_name);
	json->json.refill = json_input_refill;
	json->json.refill_context = json;
	json->json.cut_long = true;
}

int gp_json_input_next(struct gp_json_input *json, struct gp_error *error)
{
	int r = gp_json_next(&json->json, error);

	if (r && json->has_failed && error)
		*error = json->failure;
	return r;
}

int gp_json_input_skip(struct gp_json_input *json, struct gp_error *error)
{
	int r = gp_json_skip(&json->json, error);

	if (r && json->has_failed && error)
		*error = json->failure;
	return r;
}

int gp_json_input_object(struct gp_json_input *json, gp_json_member member, void *context, struct gp_error *error)
{
	char key[64];
	int r;

	if (json->json.type != GP_JSON_OBJECT_BEGIN)
		return gp_json_input_skip(json, error);
	for (;;) {
		r = gp_json_input_next(json, error);
		if (r || json->json.type == GP_JSON_OBJECT_END)
			return r;
		/* Longer keys are none that anybody asks for. */
		memcpy(key, json->json.string, sizeof(key) - 1);
		key[sizeof(key) - 1] = '\0';
		r = member(context, json, key, error);
		if (r)
			return r;
	}
}

int gp_json_input_array(struct gp_json_input *json, gp_json_element element, void *context, struct gp_error *error)
{
	int r;

	if (json->json.type != GP_JSON_ARRAY_BEGIN)
		return gp_json_input_skip(json, error);
	for (;;) {
		r = gp_json_input_next(json, error);
		if (r || json->json.type == GP_JSON_ARRAY_END)
			return r;
		r = element(context, json, error);
		if (r)
			return r;
	}
}

bool gp_json_input_u64(const struct gp_json_input *json, uint64_t *ret_value)
{
	if (json->json.type == GP_JSON_NUMBER && json->json.is_u64) {
		*ret_value = json->json.u64;
		return true;
	}
	return json->json.type == GP_JSON_STRING &&
	       gp_rows_u64(json->json.string, strlen(json->json.string), ret_value);
}
