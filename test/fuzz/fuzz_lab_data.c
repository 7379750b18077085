/* SPDX-License-Identifier: MIT */
/* Published figures of the lab, from anywhere. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "lab/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lab_data parsed;
	struct gp_lab_cell cell = { .has = false };
	struct gp_error error;

	if (!lab_data_parse((const char *)data, size, "fuzz", &parsed, &error)) {
		lab_data_cell(&parsed, "qps", "2", false, &cell);
		if (cell.has && (cell.low > cell.mid || cell.mid > cell.high))
			abort();
	}
	return 0;
}
