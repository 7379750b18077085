/* SPDX-License-Identifier: MIT */
/* Feeds arbitrary text to the reader of mixes, and simulates a little of what it accepts: a mix that was not refused
 * must run. Files named by a mix are not opened. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "lib/paths.h"
#include "sim/engine.h"
#include "sim/mix.h"

#define FUZZ_STEPS 2000 /* of simulation, so that an absurd but valid mix ends soon */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_run(const struct gp_workload *workload, const struct gp_desc *desc)
{
	struct gp_sim_config config = {
		.workload = workload,
		.desc = desc,
		.device_count = workload->device_count,
		.mode = GP_SIM_CORE,
		.policy = "hpf",
		.unit = GP_UNIT_PROCESS,
		.gate_cost_ns = 150000,
		.duration_ns = 1000000000,
		.notice_ns = GP_SIM_DEFAULT_NS,
		.decide_ns = GP_SIM_DEFAULT_NS,
		.sample_ns = GP_SIM_DEFAULT_NS,
		.slice_max = 100,
	};
	struct gp_error error;
	struct gp_sim *sim;
	uint32_t i;

	if (gp_sim_create(&config, &sim, &error))
		return;
	for (i = 0; i < FUZZ_STEPS && gp_sim_step(sim); i++)
		;
	if (gp_sched_check(gp_sim_core(sim)))
		abort();
	gp_sim_destroy(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_desc desc;
	static int is_loaded;
	struct gp_mix_options options = { .desc = &desc, .no_files = true };
	struct gp_workload workload;
	struct gp_error error;
	char path[4096];

	if (!is_loaded) {
		if (gp_paths_share("devices/mi50.ini", path, sizeof(path)) || gp_desc_load(path, &desc, &error))
			abort();
		is_loaded = 1;
	}
	if (gp_mix_parse((const char *)data, size, "fuzz.ini", &options, &workload, &error)) {
		if (!error.text[0])
			abort();
		return 0;
	}
	/* Thousands of clients are right, and slow. */
	if (workload.client_count <= 64)
		fuzz_run(&workload, &desc);
	gp_workload_fini(&workload);
	return 0;
}
