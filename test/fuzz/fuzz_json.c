/* SPDX-License-Identifier: MIT */
/* Fuzzer: the JSON reader. Whatever the bytes are, it ends, and what opens closes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_json json;
	struct gp_error error;
	uint32_t depth = 0;

	gp_json_init(&json, (const char *)data, size, "fuzz");
	while (gp_json_next(&json, &error) == 0 && json.type != GP_JSON_END) {
		depth += json.type == GP_JSON_OBJECT_BEGIN || json.type == GP_JSON_ARRAY_BEGIN;
		depth -= json.type == GP_JSON_OBJECT_END || json.type == GP_JSON_ARRAY_END;
		if (depth != json.depth || memchr(json.string, 0, sizeof(json.string)) == NULL)
			abort();
	}
	/* The same again, skipping what can be skipped. */
	gp_json_init(&json, (const char *)data, size, "fuzz");
	while (gp_json_next(&json, &error) == 0 && json.type != GP_JSON_END)
		if (json.type == GP_JSON_KEY && gp_json_skip(&json, &error) < 0)
			break;
	return 0;
}
