/* SPDX-License-Identifier: MIT */
/* Fuzzer: REEF models and profiles, in one input with a form feed between them. What is accepted has a grid and a
 * time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "sim/reef.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *split = size ? memchr(data, 0x0c, size) : NULL;
	size_t first = split ? (size_t)(split - data) : size;
	struct gp_reef_text model = { (const char *)data, first, "fuzz" };
	struct gp_reef_text profile = { split ? (const char *)split + 1 : "", split ? size - first - 1 : 0, "fuzz" };
	struct gp_error error;
	struct gp_reef reef;

	if (gp_reef_parse(&model, &profile, &reef, &error) < 0) {
		if (strncmp(error.text, "fuzz:", 5))
			abort();
		return 0;
	}
	for (uint32_t i = 0; i < reef.kernels.count; i++) {
		const struct gp_trace_kernel *kernel = &reef.kernels.kernels[i];

		if (!kernel->workgroups || !kernel->workgroup_size || !kernel->duration_ns || !kernel->name[0])
			abort();
	}
	gp_reef_fini(&reef);
	return 0;
}
