/* SPDX-License-Identifier: MIT */
/* Fitted numbers of the lab, from anywhere. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "lab/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_error error;
	struct lab_fit fit;

	if (!lab_fit_parse((const char *)data, size, "fuzz", &fit, &error) && !fit.values[LAB_STAGES])
		abort();
	return 0;
}
