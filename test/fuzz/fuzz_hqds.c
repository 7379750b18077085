/* SPDX-License-Identifier: MIT */
/* Fuzzer: the reader of KFD's hqds, mqds and rls. What it counts is what it has. */
#include <stdint.h>
#include <stdlib.h>
#include "cli/hqd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_error error;
	struct gp_hqd hqd;
	uint32_t active = 0, all = 0;

	if (gp_hqd_parse(&hqd, (const char *)data, size, &error))
		return 0;
	if ((!hqd.slot_count && !hqd.queue_count && !hqd.list_count) || hqd.slot_count > GP_HQD_SLOT_MAX ||
	    hqd.queue_count > GP_HQD_SLOT_MAX || hqd.list_count > GP_HQD_SLOT_MAX)
		abort();
	if (hqd.slot_count)
		gp_hqd_count(&hqd, hqd.slots[0].gpu_id, &active, &all);
	if (hqd.slot_count && (active > all || all > hqd.slot_count))
		abort();
	gp_hqd_fini(&hqd);
	return 0;
}
