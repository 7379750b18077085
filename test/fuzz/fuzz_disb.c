/* SPDX-License-Identifier: MIT */
/* Fuzzer: DISB workloads. What is accepted has what its load needs. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "sim/disb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_disb disb;
	struct gp_error error;

	if (gp_disb_parse((const char *)data, size, "fuzz", &disb, &error) < 0) {
		if (strncmp(error.text, "fuzz:", 5))
			abort();
		return 0;
	}
	if (!disb.duration_ns || !disb.task_count || disb.task_count > GP_DISB_TASK_MAX)
		abort();
	for (uint32_t i = 0; i < disb.task_count; i++) {
		const struct gp_disb_task *task = &disb.tasks[i];

		if (!task->id[0] || !task->model[0] || !task->batch_size)
			abort();
		if ((task->load == GP_DISB_PERIODIC || task->load == GP_DISB_POISSON) && !task->frequency_milli)
			abort();
		if (task->load == GP_DISB_TRACE && !task->trace_count)
			abort();
	}
	gp_disb_fini(&disb);
	return 0;
}
