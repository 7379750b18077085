/* SPDX-License-Identifier: MIT */
/* Device descriptions from outside: refused with a sentence, or good enough that a device made from them runs a kernel.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "model/gpu.h"

#define FUZZ_CHECK(x) ((x) ? (void)0 : __builtin_trap())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One small kernel, closed and opened half way, must end. */
static void fuzz_run(const struct gp_desc *desc)
{
	struct gp_gpu_packet packet = {
		.type = GP_GPU_KERNEL,
		.kernel = { .workgroups = 5000, .workgroup_ns = 1000000, .waves = 1, .vgprs = 8 },
	};
	struct gp_gpu_queue_attr attr = { .kind = GP_GPU_COMPUTE };
	struct gp_gpu_config config = { .desc = desc };
	struct gp_gpu_counters counters;
	struct gp_gpu_change change;
	uint32_t process, queue, steps = 0;
	struct gp_gpu *gpu;

	if (!gp_gpu_capacity(desc, &packet.kernel))
		return;
	FUZZ_CHECK(gp_gpu_create(&config, &gpu) == 0);
	FUZZ_CHECK(gp_gpu_process_add(gpu, &process) == 0);
	FUZZ_CHECK(gp_gpu_queue_add(gpu, process, &attr, 0, &queue) == 0);
	FUZZ_CHECK(gp_gpu_submit(gpu, queue, &packet, 0) == 0);
	FUZZ_CHECK(gp_gpu_doorbell(gpu, queue, 0) == 0);
	change = (struct gp_gpu_change){ .queue = queue, .open = false };
	FUZZ_CHECK(gp_gpu_transact(gpu, &change, 1, 1, 500000) == 0);
	change.open = true;
	FUZZ_CHECK(gp_gpu_transact(gpu, &change, 1, 2, 600000) == 0);
	while (gp_gpu_next_ns(gpu) != GP_GPU_NEVER_NS) {
		gp_gpu_advance(gpu, gp_gpu_next_ns(gpu));
		FUZZ_CHECK(steps++ < 10000);
	}
	FUZZ_CHECK(!gp_gpu_check(gpu));
	FUZZ_CHECK(gp_gpu_counters(gpu, queue, &counters) == 0);
	FUZZ_CHECK(counters.completed == 1 && counters.workgroups_run == 5000);
	gp_gpu_destroy(gpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_error error = { "" };
	struct gp_desc desc;
	char line[512];

	if (gp_desc_parse((const char *)data, size, "fuzz.ini", &desc, &error) < 0) {
		FUZZ_CHECK(!strncmp(error.text, "fuzz.ini:", 9));
		return 0;
	}
	for (uint32_t key = 0; key < GP_DESC_KEY_COUNT; key++) {
		const struct gp_desc_value *value = &desc.values[key];
		int r = gp_desc_line(&desc, (enum gp_desc_key)key, line, sizeof(line));

		FUZZ_CHECK(r == (value->present ? 0 : -ENOENT));
		FUZZ_CHECK(!value->present ||
			   (value->min <= value->value && value->value <= value->max && *value->source));
	}
	fuzz_run(&desc);
	return 0;
}
