/* SPDX-License-Identifier: MIT */
/* Fuzzer: the properties of a node as the driver writes them. */
#include <stdint.h>
#include <stdlib.h>
#include "lib/kfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_kfd_node node = { 0 };
	struct gp_error error;

	(void)gp_kfd_parse_properties((const char *)data, size, "fuzz", &node, &error);
	return 0;
}
