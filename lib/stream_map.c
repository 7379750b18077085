/* SPDX-License-Identifier: MIT */
/* The grammar of stream maps. The agent, which may not use this folder, has a parser of its own (agent/attr.c). */
#include "lib/stream_map.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_MAP_MAX 99 /* the highest priority */

static bool stream_map_is_number(const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	return end != text && !*end && !errno && value >= -STREAM_MAP_MAX && value <= STREAM_MAP_MAX && text[0] != ' ';
}

int gp_stream_map_check(const char *text, struct gp_error *error)
{
	static const char *const names[] = { "low", "normal", "high" };
	char copy[GP_STREAM_MAP_SIZE], *rest = copy, *part;
	unsigned int seen = 0;

	if (strlen(text) >= sizeof(copy))
		return gp_error_set(error, -EINVAL, "stream map: at most %zu bytes", sizeof(copy) - 1);
	(void)snprintf(copy, sizeof(copy), "%s", text);
	while ((part = strsep(&rest, ","))) {
		char *value = strchr(part, '=');
		bool found = false;

		if (value)
			*value++ = '\0';
		for (unsigned int i = 0; value && i < 3; i++) {
			if (strcmp(part, names[i]) || seen & 1u << i)
				continue;
			seen |= 1u << i;
			found = true;
		}
		if (!found || !stream_map_is_number(value))
			return gp_error_set(
				error, -EINVAL,
				"stream map '%s': give low=, normal=, high= at most once each, as 0..99 or relative to the process as +N or -N: low=-10,normal=+0,high=+10",
				text);
	}
	return 0;
}
