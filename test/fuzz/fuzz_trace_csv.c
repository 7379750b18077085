/* SPDX-License-Identifier: MIT */
/* Fuzzer: the CSV files of rocprof v1, v2 and v3. */
#include "test/fuzz/trace_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return trace_sink_run(gp_read_csv, data, size);
}
