/* SPDX-License-Identifier: MIT */
/* Fuzzer: files of gpreempt record. */
#include "test/fuzz/trace_sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return trace_sink_run(gp_read_record, data, size);
}
