/* SPDX-License-Identifier: MIT */
/* Owns the look-up of single values in an answer. */
#include <stdio.h>
#include <string.h>
#include "cli/clean.h"
#include "cli/field.h"

/* Leaves the reader at the value; the rest of the text is read too, so that half an answer is none. */
static bool field_find(struct gp_json *json, const char *text, size_t size, const char *key)
{
	struct gp_json found;
	bool is_found = false;

	gp_json_init(json, text, size, "answer");
	if (gp_json_next(json, NULL) || json->type != GP_JSON_OBJECT_BEGIN)
		return false;
	for (;;) {
		bool is_key;

		if (gp_json_next(json, NULL))
			return false;
		if (json->type != GP_JSON_KEY)
			break;
		is_key = !is_found && !strcmp(json->string, key);
		if (is_key) {
			if (gp_json_next(json, NULL))
				return false;
			found = *json;
			is_found = true;
			if (json->type != GP_JSON_OBJECT_BEGIN && json->type != GP_JSON_ARRAY_BEGIN)
				continue;
		}
		if (gp_json_skip(json, NULL))
			return false;
	}
	if (json->type != GP_JSON_OBJECT_END || gp_json_next(json, NULL) || json->type != GP_JSON_END || !is_found)
		return false;
	*json = found;
	return true;
}

bool gp_field_u64(const char *text, size_t size, const char *key, uint64_t *ret_value)
{
	struct gp_json json;

	if (!field_find(&json, text, size, key) || json.type != GP_JSON_NUMBER || !json.is_u64)
		return false;
	*ret_value = json.u64;
	return true;
}

bool gp_field_bool(const char *text, size_t size, const char *key, bool *ret_value)
{
	struct gp_json json;

	if (!field_find(&json, text, size, key) || (json.type != GP_JSON_TRUE && json.type != GP_JSON_FALSE))
		return false;
	*ret_value = json.type == GP_JSON_TRUE;
	return true;
}

bool gp_field_string(const char *text, size_t size, const char *key, char *ret_value, size_t value_size)
{
	struct gp_json json;

	if (!field_find(&json, text, size, key) || json.type != GP_JSON_STRING)
		return false;
	gp_clean_copy(ret_value, value_size, json.string);
	return true;
}

int gp_field_next(struct gp_json *json, char *ret_key, size_t key_size, struct gp_error *error)
{
	int r;

	while (!(r = gp_json_next(json, error)) && json->type == GP_JSON_KEY) {
		gp_clean_copy(ret_key, key_size, json->string);
		r = gp_json_next(json, error);
		if (r)
			return r;
		if (json->type != GP_JSON_OBJECT_BEGIN && json->type != GP_JSON_ARRAY_BEGIN)
			return 1;
		r = gp_json_skip(json, error);
		if (r)
			return r;
	}
	return r;
}
