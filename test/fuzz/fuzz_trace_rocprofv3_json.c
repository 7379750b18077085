/* SPDX-License-Identifier: MIT */
/* Fuzzer: the JSON of rocprofv3, through a window. */
#include "test/fuzz/trace_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return trace_sink_run(gp_read_rocprofv3_json, data, size);
}
