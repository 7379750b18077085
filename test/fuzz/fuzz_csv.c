/* SPDX-License-Identifier: MIT */
/* Fuzzer: the CSV reader. Whatever the bytes are, it ends, stays within its buffers, and each field is a string. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_csv csv;
	struct gp_error error;
	size_t before = 0;
	uint64_t value;

	gp_csv_init(&csv, (const char *)data, size, "fuzz");
	while (gp_csv_next(&csv, &error) > 0) {
		/* Each row consumes something, or it would never end. */
		if (csv.offset <= before || !csv.field_count || csv.field_count > GP_CSV_FIELD_MAX)
			abort();
		before = csv.offset;
		for (uint32_t i = 0; i < csv.field_count; i++) {
			if (csv.fields[i] + strlen(csv.fields[i]) >= csv.row + sizeof(csv.row))
				abort();
			(void)gp_csv_u64(&csv, (int)i, &value, &error);
		}
	}
	return 0;
}
