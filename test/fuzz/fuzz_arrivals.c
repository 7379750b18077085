/* SPDX-License-Identifier: MIT */
/* Fuzzer: request arrivals. What is accepted begins at 0 and ascends. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "sim/arrivals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_trace_arrivals arrivals;
	struct gp_error error;

	if (gp_trace_arrivals_parse((const char *)data, size, "fuzz", &arrivals, &error) < 0) {
		if (strncmp(error.text, "fuzz:", 5))
			abort();
		return 0;
	}
	if (!arrivals.count || arrivals.arrivals[0].offset_ns)
		abort();
	for (uint32_t i = 1; i < arrivals.count; i++)
		if (arrivals.arrivals[i].offset_ns < arrivals.arrivals[i - 1].offset_ns)
			abort();
	gp_trace_arrivals_fini(&arrivals);
	return 0;
}
