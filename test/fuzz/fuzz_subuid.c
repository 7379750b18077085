/* SPDX-License-Identifier: MIT */
/* Fuzzer: subuid(5) and passwd(5), with a NUL between them. Whatever is accepted is a range above other people's uids,
 * and no range is root's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/subuid.h"

#define RANGES 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *split = size ? memchr(data, '\0', size) : NULL;
	size_t first = split ? (size_t)(split - data) : size;
	struct gp_subuid_range ranges[RANGES];
	uint32_t count = gp_subuid_parse((const char *)data, first, split ? (const char *)split + 1 : "",
					 split ? size - first - 1 : 0, ranges, RANGES);

	if (count > RANGES)
		abort();
	for (uint32_t i = 0; i < count; i++)
		if (ranges[i].first < GP_SUBUID_FIRST || !ranges[i].count ||
		    ranges[i].first + ranges[i].count < ranges[i].first || !ranges[i].uid)
			abort();
	return 0;
}
