/* SPDX-License-Identifier: MIT */
/* Owns the experiment `cwsr`: how long it takes to set a running queue aside, by device and occupancy. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lab/experiments.h"
#include "lab/keys.h"
#include "lib/paths.h"

#define CWSR_WORKGROUP_VGPR_SIZE (8u * 64u * 64u * 4u) /* waves, lanes, registers, bytes */

struct cwsr_cost {
	uint64_t bytes_ns, low_ns, mid_ns, high_ns;
};

static int cwsr_load(const char *name, struct gp_desc *ret_desc, struct gp_error *error)
{
	char relative[64], path[4096];

	(void)snprintf(relative, sizeof(relative), "devices/%s.ini", name);
	if (gp_paths_share(relative, path, sizeof(path)))
		return gp_error_set(error, -ENOENT, "the device description %s is not there", relative);
	return gp_desc_load(path, ret_desc, error);
}

/* Fills so many percent of the device with resident workgroups and asks what a close would cost then. */
static int cwsr_cost(const struct gp_desc *desc, uint32_t percent, struct cwsr_cost *ret_cost, struct gp_error *error)
{
	const struct gp_desc_value *fixed = &desc->values[GP_DESC_GATE_FIXED_NS];
	struct gp_gpu_config config = { .desc = desc };
	struct gp_gpu_queue_attr attr = { .kind = GP_GPU_COMPUTE };
	struct gp_gpu_packet packet = { .type = GP_GPU_KERNEL,
					.kernel = { .workgroup_ns = 1000000000, .waves = 8, .vgprs = 64 } };
	uint32_t process, queue;
	struct gp_gpu *gpu;
	uint64_t cost_ns;
	int ret = gp_gpu_create(&config, &gpu);

	if (ret)
		return gp_error_set(error, ret, "the model cannot be set up");
	/* As much LDS as fills it together with the registers: a device with half of these holds half as many
	 * workgroups. */
	packet.kernel.lds_size = (uint32_t)((uint64_t)gp_desc_get(desc, GP_DESC_LDS_SIZE) * CWSR_WORKGROUP_VGPR_SIZE /
					    (uint64_t)gp_desc_get(desc, GP_DESC_VGPR_SIZE));
	packet.kernel.workgroups = gp_gpu_capacity(desc, &packet.kernel) * percent / 100u;
	ret = gp_gpu_process_add(gpu, &process);
	if (!ret)
		ret = gp_gpu_queue_add(gpu, process, &attr, 0, &queue);
	if (!ret)
		ret = gp_gpu_submit(gpu, queue, &packet, 100000000);
	if (!ret)
		ret = gp_gpu_doorbell(gpu, queue, 100000000);
	gp_gpu_advance(gpu, 101000000);
	cost_ns = gp_gpu_gate_cost_ns(gpu);
	gp_gpu_destroy(gpu);
	if (ret)
		return gp_error_set(error, ret, "the model refused the kernel");
	ret_cost->bytes_ns = cost_ns - (uint64_t)fixed->value;
	ret_cost->low_ns = ret_cost->bytes_ns + (uint64_t)fixed->min;
	ret_cost->mid_ns = cost_ns;
	ret_cost->high_ns = ret_cost->bytes_ns + (uint64_t)fixed->max;
	return 0;
}

static int cwsr_rows(struct lab *lab, struct gp_lab_table *bytes, struct gp_lab_table *whole, const char *name,
		     struct gp_error *error)
{
	static const uint32_t percents[] = { 25, 100 };
	struct gp_desc desc;

	if (cwsr_load(name, &desc, error))
		return -1;
	for (uint32_t i = 0; i < 2u; i++) {
		struct gp_lab_row *row = lab_add_row(bytes, "%s, %u %% resident", name, percents[i]);
		struct cwsr_cost cost = { 0 };

		if (cwsr_cost(&desc, percents[i], &cost, error))
			return -1;
		lab_data_cell(&lab->data, "cwsr", "save", true, &row->expected);
		lab_set_milli(&row->predicted, cost.bytes_ns);
		row->mark = GP_LAB_COMPUTED;
		row->verdict = cost.bytes_ns > row->expected.high ? GP_LAB_REFUTED : GP_LAB_AGREES;
		row = lab_add_row(whole, "%s, %u %% resident", name, percents[i]);
		lab_data_cell(&lab->data, "cwsr", "save", true, &row->expected);
		row->predicted = (struct gp_lab_cell){ .has = true,
						       .mid = cost.mid_ns,
						       .low = cost.low_ns,
						       .high = cost.high_ns };
		row->mark = GP_LAB_PREDICTED;
		row->verdict = cost.low_ns > row->expected.high ? GP_LAB_REFUTED : GP_LAB_AGREES;
	}
	return 0;
}

static int cwsr_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	static const char *const names[] = { "mi308x", "mi300x", "mi300a", "mi210", "mi50" };
	struct gp_lab_table *whole = lab_add_table(part, "µs", "A close, end to end");
	struct gp_lab_table *bytes = lab_add_table(part, "µs", "Moving the bytes alone, one way");

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (cwsr_rows(lab, bytes, whole, names[i], error))
			return -1;
	(void)snprintf(
		whole->caption, sizeof(whole->caption),
		"None has been published; the range is that of the device description (60 to 500 µs for call, packet, fence and "
		"map, assumed; from 14 on MI50, where the whole call was measured). On these devices one transaction stops every queue of every process, not only the victim's.");
	(void)snprintf(
		bytes->caption, sizeof(bytes->caption),
		"Registers and LDS of the resident waves over the bandwidth assumed in the device description. The save area "
		"that this fills was checked against a register dump: 12,214,272 bytes per XCC of 20 CUs.");
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"\"CWSR takes 1 to 10 µs\" holds for moving the bytes of a lightly filled device and for nothing else: a full MI300X has 185 MB "
		"to write, 35 µs at the peak of its memory, and as much to read back; the call, the packet, the fence and the new "
		"runlist come on top. So a preemption is to be counted in hundreds of microseconds, done rarely, in batches, and "
		"before the urgent work arrives. That is what gpreempt's plans, turns, linger and hints are for.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"gpreempt bench device -o mine.ini on the card: it measures the close and the open; gpreempt lab fit --device mine.ini "
		"then uses them.");
	return 0;
}

const struct lab_experiment lab_cwsr = {
	.name = "cwsr",
	.title = "How long a preemption takes",
	.question = "Is \"1 to 10 µs\" (seed 003) right for saving a queue's waves?",
	.keys = 0,
	.runs = 0,
	.run = cwsr_run,
};
