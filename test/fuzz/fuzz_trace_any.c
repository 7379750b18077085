/* SPDX-License-Identifier: MIT */
/* Fuzzer: the recognising of formats and the unpacking of gzip, with whatever reader that leads to. */
#include "test/fuzz/trace_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int any(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	const char *format;

	return gp_trace_read_input(input, sink, &format, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return trace_sink_run(any, data, size);
}
