/* SPDX-License-Identifier: MIT */
/* Fuzzer: kernel sequences. What is accepted keeps its promises: durations of at least 1, sorted starts, whole
 * names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "sim/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_trace_kernels kernels;
	struct gp_error error;

	if (gp_trace_kernels_parse((const char *)data, size, "fuzz", &kernels, &error) < 0) {
		if (strncmp(error.text, "fuzz:", 5))
			abort();
		return 0;
	}
	for (uint32_t i = 0; i < kernels.count; i++) {
		const struct gp_trace_kernel *kernel = &kernels.kernels[i];

		if (!kernel->duration_ns || kernel->duration_ns > GP_TRACE_DURATION_NS_MAX || !kernel->name[0])
			abort();
		if (i && kernels.has_times && kernel->start_ns < kernels.kernels[i - 1].start_ns)
			abort();
	}
	gp_trace_kernels_fini(&kernels);
	return 0;
}
