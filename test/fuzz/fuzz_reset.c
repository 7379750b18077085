/* SPDX-License-Identifier: MIT */
/* Fuzzer: the driver's management events and records of the kernel's log. */
#include <stdint.h>
#include <stdlib.h>
#include "device/kfd/reset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)gp_kfd_reset_is_reported((const char *)data, size);
	(void)gp_kfd_reset_is_logged((const char *)data, size, "0000:03:00.0");
	return 0;
}
