/* SPDX-License-Identifier: MIT */
/* Fuzzer: databases (rocpd, RPD, rocprof v1), from an image in memory. */
#include "test/fuzz/trace_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_sink sink = { .event = trace_sink_event, .fact = trace_sink_fact };
	struct gp_error error = { "" };
	const char *format = NULL;

	if (gp_read_sqlite("fuzz", data, size, &sink, &format, &error) < 0 && strncmp(error.text, "fuzz:", 5))
		abort();
	return format ? 0 : -1;
}
