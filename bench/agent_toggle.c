/* SPDX-License-Identifier: MIT */
/*
 * A tool library for the benchmarks: puts the agent's hooks into the runtime's table and takes them out again, between
 * two bursts of one process. Two processes of one program differ by a few percent for life; the same one with and
 * without hooks does not. Named before the agent in HSA_TOOLS_LIB, so that the table it is shown has none yet.
 */
#include "agent/kfd/hsa.h"

#define TOGGLE_EXPORT __attribute__((visibility("default")))

static struct {
	struct gp_hsa_table *core;
	void *without[4], *with[4];
	bool ready;
} toggle;
/* Stores relaxed and release, waits relaxed and acquire: as the agent has them (agent/kfd/hsa.c). */
static const uint32_t toggle_slots[4] = { 41, 42, 43, 44 };

TOGGLE_EXPORT bool OnLoad(struct gp_hsa_root *root, uint64_t version, uint64_t failed_count, const char *const *failed);
TOGGLE_EXPORT void OnUnload(void);
TOGGLE_EXPORT int gp_bench_hooks(bool on);

bool OnLoad(struct gp_hsa_root *root, uint64_t version, uint64_t failed_count, const char *const *failed)
{
	(void)version;
	(void)failed_count;
	(void)failed;
	toggle.core = root->core;
	for (int i = 0; i < 4; i++)
		toggle.without[i] = toggle.core->functions[toggle_slots[i]];
	return true;
}

void OnUnload(void)
{
	if (toggle.ready)
		gp_bench_hooks(true);
	toggle.core = NULL;
}

/* Returns how many of the four functions differ between the two. */
int gp_bench_hooks(bool on)
{
	int differ = 0;

	if (!toggle.core)
		return 0;
	for (int i = 0; i < 4; i++) {
		if (!toggle.ready)
			toggle.with[i] = toggle.core->functions[toggle_slots[i]];
		toggle.core->functions[toggle_slots[i]] = on ? toggle.with[i] : toggle.without[i];
		differ += toggle.with[i] != toggle.without[i];
	}
	toggle.ready = true;
	return differ;
}
