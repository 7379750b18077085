/* SPDX-License-Identifier: MIT */
/* Fuzzer: gpreempt.conf of Slurm. What was taken is in range. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "cli/slurm/ceiling.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_slurm_conf conf;
	struct gp_error error;
	int32_t ceiling;

	if (gp_slurm_conf_parse((const char *)data, size, "fuzz", &conf, &error))
		return 0;
	ceiling = gp_slurm_ceiling(&conf, "a", "b");
	if (ceiling < 0 || ceiling > 99 || conf.fallback < -1 || conf.fallback > 99 ||
	    conf.line_count > GP_SLURM_LINES_MAX)
		abort();
	for (uint32_t i = 0; i < conf.line_count; i++)
		if (!*conf.lines[i].name || conf.lines[i].priority < 0 || conf.lines[i].priority > 99)
			abort();
	return 0;
}
