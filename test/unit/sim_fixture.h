/* SPDX-License-Identifier: MIT */
/* What the simulator's tests share: a device description, a small workload made of parts, a run to its end. */
#ifndef GP_TEST_SIM_FIXTURE_H
#define GP_TEST_SIM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/paths.h"
#include "sim/engine.h"
#include "sim/mix.h"
#include "sim/mode.h"

#define US 1000ull
#define MS 1000000ull
#define S  1000000000ull

static inline void fixture_desc(const char *name, struct gp_desc *desc)
{
	struct gp_error error = { "" };
	char relative[64], path[4096];

	snprintf(relative, sizeof(relative), "devices/%s.ini", name);
	assert_int_equal(gp_paths_share(relative, path, sizeof(path)), 0);
	if (gp_desc_load(path, desc, &error))
		fail_msg("%s", error.text);
}

static inline void fixture_mix(const char *text, const struct gp_desc *desc, struct gp_workload *workload)
{
	struct gp_mix_options options = { .desc = desc };
	struct gp_error error = { "" };

	if (gp_mix_parse(text, strlen(text), "test.ini", &options, workload, &error))
		fail_msg("%s", error.text);
}

/* A configuration with every default written out. */
static inline struct gp_sim_config fixture_config(const struct gp_desc *desc, const struct gp_workload *workload)
{
	return (struct gp_sim_config){
		.desc = desc,
		.workload = workload,
		.device_count = workload->device_count,
		.unit = GP_UNIT_PROCESS,
		.gate_cost_ns = 150 * US,
		.seed = 7,
		.duration_ns = 500 * MS,
		.notice_ns = GP_SIM_DEFAULT_NS,
		.decide_ns = GP_SIM_DEFAULT_NS,
		.sample_ns = GP_SIM_DEFAULT_NS,
		.policy = "hpf",
		.mode = GP_SIM_CORE,
	};
}

static inline struct gp_sim *fixture_sim(const struct gp_sim_config *config)
{
	struct gp_error error = { "" };
	struct gp_sim *sim;

	if (gp_sim_create(config, &sim, &error))
		fail_msg("%s", error.text);
	return sim;
}

/* A service, a batch job that fills the device, and one that does not; several queues, copies and dependencies. */
/* clang-format off */
static const char fixture_mixed[] =
	"[client serve]\nkind = service\npriority = 80\narrival = poisson\nload = 30%\nqueues = 2\nidempotent = yes\n"
	"step = copy 1MiB to-device\nstep = kernel full 0.2ms x3\nstep = kernel 50% 0.1ms queue=1\n"
	"step = copy 64KiB to-host\n"
	"[client train]\nkind = batch\npriority = 20\nidempotent = yes\nstep = kernel full/3 12ms\n"
	"[client small]\nkind = batch\npriority = 20\nqueues = 2\ndepth = 6\nidempotent = yes\n"
	"step = kernel 10 50us\nstep = kernel 300 20us queue=1\n";
/* clang-format on */

#endif
