/* SPDX-License-Identifier: MIT */
/* Fuzzer: a record, and the events in it. Slices lie within the recording and name queues' clients that are there. */
#include <stdint.h>
#include <stdlib.h>
#include "cli/record_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *sink;
	struct gp_record record;
	struct gp_error error;

	sink = sink ? sink : fopen("/dev/null", "w");
	if (gp_record_read(&record, (const char *)data, size, "fuzz", &error))
		return 0;
	for (uint32_t i = 0; i < record.run.slice_count; i++) {
		const struct gp_result_slice *slice = &record.run.slices[i];

		if (slice->start_ns >= slice->end_ns || slice->end_ns > record.run.duration_ns ||
		    slice->client >= record.run.client_count || slice->device >= record.result.device_count)
			abort();
	}
	for (uint32_t i = 0; i < record.run.mark_count; i++)
		if (record.run.marks[i].start_ns > record.run.marks[i].end_ns)
			abort();
	if (sink)
		(void)gp_view_perfetto(sink, &record.result);
	gp_record_fini(&record);
	return 0;
}
