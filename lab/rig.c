/* SPDX-License-Identifier: MIT */
/* Owns one run of the rig: processes, their queries, and what they finished. Knows the model only by its header. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lab/rig.h"
#include "lab/stack.h"
#include "lib/cleanup.h"

#define RIG_ROUNDS     8u /* of a kernel that fills the device often */
#define RIG_WAVES      4u
#define RIG_LANES_SIZE 256u /* bytes of one register of a wave */
#define RIG_VGPRS_MAX  512u
#define RIG_RING_SIZE  2048u
#define RIG_CP_QUEUES  32u    /* of the first MEC: 4 pipes of 8; the kernel's own are taken off (gfx_v9_4_3.c) */
#define RIG_CPX_VMIDS  6u     /* two neighbouring XCCs share the VMIDs (kfd_device.c) */
#define RIG_PENDING    32768u /* packets between a scheduler's work item and their queue */
#define RIG_WEIGHT_BIT 32u    /* in a packet's tag: halves of a stage it is worth */

struct rig_process {
	uint32_t id, queues[LAB_QUEUE_MAX], queue_count;
	uint32_t signals[LAB_STAGE_MAX];
	uint32_t left;     /* packets of the query not complete */
	uint64_t halves;   /* half stages complete since the warm-up */
	uint64_t think_ns; /* when the next query comes; GP_GPU_NEVER_NS: one is under way */
	struct gp_rng rng;
};

/* A packet on its way through a kernel scheduler. */
struct rig_pending {
	uint64_t at_ns;
	uint32_t process, place;
	struct gp_gpu_packet packet;
};

struct rig {
	const struct lab_setup *setup;
	struct gp_desc desc;   /* with the setup's values */
	uint32_t kernel_cus;   /* compute units the kernels were made for: the whole device's, in a partition too */
	uint32_t kernel_vgprs; /* so many that one workgroup fills a compute unit */
	struct gp_gpu *gpu;
	struct rig_process processes[LAB_PROCESS_MAX];
	struct lab_stack stack;
	struct rig_pending *pending; /* a heap by time would be more than a handful of them deserves */
	uint32_t pending_count, turn;
	uint32_t waiting; /* coupled: processes that have ended their query */
	uint64_t now_ns, warm_ns, turn_end_ns, seq;
	struct lab_rates rates;
};

static struct gp_gpu_kernel rig_kernel(const struct rig *rig, struct rig_process *process, bool half)
{
	const struct lab_load *load = &rig->setup->load;
	uint32_t cus = rig->kernel_cus;
	uint32_t rounds = gp_rng_below(&process->rng, 1000000u) < load->wave_ppm ? 1u : RIG_ROUNDS;
	uint64_t jitter_ns = load->kernel_ns * load->jitter_ppm / 1000000u;
	uint64_t ns = load->kernel_ns - jitter_ns + gp_rng_below(&process->rng, 2u * jitter_ns + 1u);

	return (struct gp_gpu_kernel){ .workgroups = (half ? cus / 2u : cus) * rounds,
				       .workgroup_ns = ns / rounds ? ns / rounds : 1u,
				       .waves = RIG_WAVES,
				       .vgprs = rig->kernel_vgprs };
}

static int rig_put(struct rig *rig, uint32_t process, uint32_t place, struct gp_gpu_packet *packet)
{
	packet->barrier = true;
	packet->tag |= process;
	rig->processes[process].left++;
	if (rig->setup->submission == LAB_SUBMIT_DOORBELL)
		return gp_gpu_submit(rig->gpu, rig->processes[process].queues[place], packet, rig->now_ns);
	if (rig->pending_count == RIG_PENDING)
		return -ENOSPC;
	rig->pending[rig->pending_count++] = (struct rig_pending){
		.at_ns = lab_stack_job(&rig->stack, process, place, rig->now_ns),
		.process = process,
		.place = place,
		.packet = *packet,
	};
	return 0;
}

/* The queues of a stage: one, or those of two different streams where it forks. */
static uint32_t rig_places(const struct rig *rig, struct rig_process *process, uint32_t *ret_places)
{
	const struct lab_setup *setup = rig->setup;
	uint32_t streams = setup->stream_count, first = (uint32_t)gp_rng_below(&process->rng, streams), second;

	ret_places[0] = setup->graph_on_one ? 0 : first % setup->queue_count;
	if (gp_rng_below(&process->rng, 1000000u) >= setup->load.fork_ppm)
		return 1;
	second = streams > 1u ? (first + 1u + (uint32_t)gp_rng_below(&process->rng, streams - 1u)) % streams : 0;
	ret_places[1] = setup->graph_on_one ? 0 : second % setup->queue_count;
	return 2;
}

/* One stage; before is the set of queues the stage before it ran on, and is replaced by its own. */
static int rig_put_stage(struct rig *rig, uint32_t index, uint32_t stage, uint64_t *before)
{
	struct rig_process *process = &rig->processes[index];
	uint32_t places[2], count = rig_places(rig, process, places);
	uint64_t now = 0;

	if (gp_gpu_signal_add(rig->gpu, count, &process->signals[stage]))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct gp_gpu_packet wait = { .type = GP_GPU_BARRIER_AND };
		struct gp_gpu_packet kernel = { .type = GP_GPU_KERNEL,
						.signal = process->signals[stage],
						.tag = (uint64_t)(3u - count) << RIG_WEIGHT_BIT };
		int ret = 0;

		/* What the stage before ran on this queue alone, the barrier bit orders. */
		if (stage && *before != 1ull << places[i]) {
			wait.deps[0] = process->signals[stage - 1u];
			ret = rig_put(rig, index, places[i], &wait);
		}
		kernel.kernel = rig_kernel(rig, process, count > 1);
		if (!ret)
			ret = rig_put(rig, index, places[i], &kernel);
		if (ret)
			return ret;
		now |= 1ull << places[i];
	}
	*before = now;
	return 0;
}

static int rig_query(struct rig *rig, uint32_t index)
{
	struct rig_process *process = &rig->processes[index];
	uint64_t before = 0;
	int ret = 0;

	process->think_ns = GP_GPU_NEVER_NS;
	for (uint32_t stage = 0; stage < rig->setup->load.stages && !ret; stage++)
		ret = rig_put_stage(rig, index, stage, &before);
	if (rig->setup->submission == LAB_SUBMIT_DOORBELL)
		for (uint32_t i = 0; i < rig->setup->queue_count && !ret; i++)
			lab_stack_ring(&rig->stack, rig->gpu, index, i, rig->now_ns);
	return ret;
}

static void rig_query_done(struct rig *rig, struct rig_process *process)
{
	for (uint32_t i = 0; i < rig->setup->load.stages; i++)
		gp_gpu_signal_remove(rig->gpu, process->signals[i]);
	process->think_ns = rig->now_ns + rig->setup->load.host_ns;
	if (!rig->setup->is_coupled)
		return;
	process->think_ns = GP_GPU_NEVER_NS;
	if (++rig->waiting < rig->setup->process_count)
		return;
	rig->waiting = 0;
	for (uint32_t i = 0; i < rig->setup->process_count; i++)
		rig->processes[i].think_ns = rig->now_ns + rig->setup->load.host_ns;
}

static void rig_event(struct rig *rig, const struct gp_gpu_event *event)
{
	struct rig_process *process;

	rig->rates.events++;
	if (event->type == GP_GPU_EVENT_OVERSUBSCRIBED)
		rig->rates.oversubscribed = event->value;
	if (event->type != GP_GPU_EVENT_END)
		return;
	process = &rig->processes[event->tag & UINT32_MAX];
	if (event->time_ns >= rig->warm_ns)
		process->halves += event->tag >> RIG_WEIGHT_BIT;
	if (!--process->left)
		rig_query_done(rig, process);
}

/* Packets whose work item has run go to their queues. */
static int rig_deliver(struct rig *rig)
{
	uint32_t kept = 0;
	int ret = 0;

	for (uint32_t i = 0; i < rig->pending_count; i++) {
		const struct rig_pending *pending = &rig->pending[i];

		if (pending->at_ns > rig->now_ns || ret) {
			rig->pending[kept++] = *pending;
			continue;
		}
		ret = gp_gpu_submit(rig->gpu, rig->processes[pending->process].queues[pending->place], &pending->packet,
				    rig->now_ns);
		if (!ret)
			lab_stack_ring(&rig->stack, rig->gpu, pending->process, pending->place, rig->now_ns);
	}
	rig->pending_count = kept;
	return ret;
}

/* Turns: the gates of admit processes are open; then those of the next ones. One transaction each time. */
static int rig_turn(struct rig *rig, bool first)
{
	const struct lab_setup *setup = rig->setup;
	struct gp_gpu_change changes[LAB_PROCESS_MAX * LAB_QUEUE_MAX];
	uint32_t count = 0, admit = setup->admit ? setup->admit : 1u;

	rig->turn_end_ns = rig->now_ns + setup->turn_ns;
	for (uint32_t i = 0; i < setup->process_count; i++) {
		bool was = !first && (i + setup->process_count - rig->turn) % setup->process_count < admit;
		bool is = (i + setup->process_count - (first ? 0 : rig->turn + admit)) % setup->process_count < admit;

		for (uint32_t k = 0; k < rig->processes[i].queue_count; k++)
			if (was != is || (first && !is))
				changes[count++] =
					(struct gp_gpu_change){ .queue = rig->processes[i].queues[k], .open = is };
	}
	rig->turn = first ? 0 : (rig->turn + admit) % setup->process_count;
	return count ? gp_gpu_transact(rig->gpu, changes, count, ++rig->seq, rig->now_ns) : 0;
}

static uint64_t rig_next_ns(const struct rig *rig)
{
	uint64_t at_ns = gp_gpu_next_ns(rig->gpu);

	for (uint32_t i = 0; i < rig->setup->process_count; i++)
		at_ns = rig->processes[i].think_ns < at_ns ? rig->processes[i].think_ns : at_ns;
	for (uint32_t i = 0; i < rig->pending_count; i++)
		at_ns = rig->pending[i].at_ns < at_ns ? rig->pending[i].at_ns : at_ns;
	if (rig->setup->turn_ns && rig->turn_end_ns < at_ns)
		at_ns = rig->turn_end_ns;
	return at_ns;
}

static int rig_step(struct rig *rig)
{
	struct gp_gpu_event event;
	int ret = 0;

	gp_gpu_advance(rig->gpu, rig->now_ns);
	while (gp_gpu_poll(rig->gpu, &event))
		rig_event(rig, &event);
	for (uint32_t i = 0; i < rig->setup->process_count && !ret; i++)
		if (rig->processes[i].think_ns <= rig->now_ns)
			ret = rig_query(rig, i);
	if (!ret && rig->pending_count)
		ret = rig_deliver(rig);
	if (!ret && rig->setup->turn_ns && rig->turn_end_ns <= rig->now_ns)
		ret = rig_turn(rig, false);
	return ret;
}

static int rig_start(struct rig *rig)
{
	const struct lab_setup *setup = rig->setup;
	struct gp_rng rng;
	int ret = 0;

	gp_rng_init(&rng, setup->seed);
	for (uint32_t i = 0; i < setup->process_count && !ret; i++) {
		struct rig_process *process = &rig->processes[i];

		gp_rng_init(&process->rng, gp_rng_fork(&rng));
		process->think_ns = gp_rng_below(&process->rng, 2000000u);
		ret = gp_gpu_process_add(rig->gpu, &process->id);
		process->queue_count = setup->queue_count + setup->idle_count;
		for (uint32_t k = 0; k < process->queue_count && !ret; k++) {
			struct gp_gpu_queue_attr attr = { .ring_size = RIG_RING_SIZE,
							  .priority = i ? 0 : setup->priority };

			attr.closed = !lab_stack_create(&rig->stack, i, k);
			rig->rates.unmapped += attr.closed;
			ret = gp_gpu_queue_add(rig->gpu, process->id, &attr, 0, &process->queues[k]);
			rig->stack.gpu_queues[i][k] = process->queues[k];
		}
	}
	if (!ret && setup->turn_ns)
		ret = rig_turn(rig, true);
	return ret;
}

static void rig_sum(struct rig *rig)
{
	const struct lab_setup *setup = rig->setup;
	uint64_t window_us = (setup->duration_ns - rig->warm_ns) / 1000u, all = 0, least = UINT64_MAX;
	struct lab_dqm second = rig->stack.dqm;

	for (uint32_t i = 0; i < setup->process_count; i++) {
		all += rig->processes[i].halves;
		least = rig->processes[i].halves < least ? rig->processes[i].halves : least;
	}
	rig->rates.qps_milli = all * 1000000000u / (2u * setup->load.stages * window_us);
	rig->rates.slowest_milli = least * 1000000000u / (2u * setup->load.stages * window_us);
	rig->rates.lost = lab_stack_lost(&rig->stack);
	rig->rates.map_result = lab_dqm_map(&second);
}

static void rig_set(struct gp_desc *desc, enum gp_desc_key key, uint64_t value)
{
	desc->values[key].value = (int64_t)value;
}

/* The compute units a mask leaves: workgroups are dealt to the XCCs in turn, so the poorest sets the pace. Every queue
 * has the same mask, so that it is the device that has fewer. */
static uint64_t rig_mask(const struct rig *rig)
{
	uint64_t xccs = (uint64_t)gp_desc_get(&rig->desc, GP_DESC_XCC_COUNT);
	uint64_t engines = xccs * (uint64_t)gp_desc_get(&rig->desc, GP_DESC_SE_COUNT);
	uint64_t unit = rig->setup->mask_balanced ? engines : xccs, cus = rig->setup->cu_count;

	if (!cus || cus >= rig->kernel_cus)
		return rig->kernel_cus;
	return cus < unit ? cus : cus / unit * unit;
}

/* The device as the setup wants it. */
static void rig_describe(struct rig *rig)
{
	const struct lab_setup *setup = rig->setup;
	struct gp_desc *desc = &rig->desc;
	uint64_t xccs = (uint64_t)gp_desc_get(setup->desc, GP_DESC_XCC_COUNT), vgprs;

	*desc = *setup->desc;
	rig->kernel_cus = (uint32_t)gp_desc_get(desc, GP_DESC_CU_COUNT);
	vgprs = (uint64_t)gp_desc_get(desc, GP_DESC_VGPR_SIZE) / (RIG_LANES_SIZE * RIG_WAVES);
	rig->kernel_vgprs = vgprs < RIG_VGPRS_MAX ? (uint32_t)vgprs : RIG_VGPRS_MAX;
	rig_set(desc, GP_DESC_CU_COUNT, rig_mask(rig));
	rig_set(desc, GP_DESC_SLOT_COUNT, RIG_CP_QUEUES - setup->kcq_count);
	rig_set(desc, GP_DESC_QUEUE_QUANTUM, setup->quantum_ns);
	rig_set(desc, GP_DESC_PROCESS_QUANTUM, setup->process_quantum_ns);
	rig_set(desc, GP_DESC_SLICE_LOSS_NS, setup->load.slice_loss_ns);
	rig_set(desc, GP_DESC_BLOCKED_HEAD, setup->rotate);
	rig_set(desc, GP_DESC_SLICE_PACKING, setup->pack_slots);
	if (setup->is_cpx) {
		rig_set(desc, GP_DESC_CU_COUNT, rig_mask(rig) / xccs);
		rig_set(desc, GP_DESC_XCC_COUNT, 1);
		rig_set(desc, GP_DESC_PROCESS_COUNT, RIG_CPX_VMIDS);
		rig_set(desc, GP_DESC_SAVE_BANDWIDTH,
			(uint64_t)gp_desc_get(setup->desc, GP_DESC_SAVE_BANDWIDTH) / xccs);
	}
}

static int rig_run(struct rig *rig)
{
	struct gp_gpu_config config = { .desc = &rig->desc,
					.gate_cost_ns = rig->setup->gate_cost_ns,
					.pipe_by_process = rig->setup->pipe_by_process };
	int ret;

	rig_describe(rig);
	rig->warm_ns = rig->setup->duration_ns / 8u;
	lab_stack_init(&rig->stack, rig->setup);
	ret = gp_gpu_create(&config, &rig->gpu);
	if (ret)
		return ret;
	ret = rig_start(rig);
	while (!ret) {
		rig->now_ns = rig_next_ns(rig);
		if (rig->now_ns > rig->setup->duration_ns)
			break;
		ret = rig_step(rig);
	}
	if (!ret)
		rig_sum(rig);
	gp_gpu_destroy(rig->gpu);
	return ret;
}

static int rig_device(const struct lab_setup *setup, struct lab_rates *ret_rates)
{
	GP_AUTO_FREE struct rig *rig = calloc(1, sizeof(*rig));
	GP_AUTO_FREE struct rig_pending *pending = NULL;
	int ret;

	if (setup->submission == LAB_SUBMIT_DRM_SCHED)
		pending = calloc(RIG_PENDING, sizeof(*pending));
	if (!rig || (setup->submission == LAB_SUBMIT_DRM_SCHED && !pending))
		return -ENOMEM;
	rig->setup = setup;
	rig->pending = pending;
	ret = rig_run(rig);
	if (!ret)
		*ret_rates = rig->rates;
	return ret;
}

int lab_rig_run(const struct lab_setup *setup, struct lab_rates *ret_rates, struct gp_error *error)
{
	uint32_t parts = setup->is_cpx ? (uint32_t)gp_desc_get(setup->desc, GP_DESC_XCC_COUNT) : 1u;
	struct lab_rates sum = { .slowest_milli = UINT64_MAX };

	for (uint32_t part = 0; part < parts; part++) {
		struct lab_setup own = *setup;
		struct lab_rates rates;
		int ret;

		own.process_count = setup->process_count / parts + (part < setup->process_count % parts);
		own.seed = setup->seed * parts + part;
		if (!own.process_count)
			continue;
		ret = rig_device(&own, &rates);
		if (ret)
			return gp_error_set(error, ret, "the rig stopped: %s", strerror(-ret));
		sum.qps_milli += rates.qps_milli;
		sum.events += rates.events;
		sum.slowest_milli = rates.slowest_milli < sum.slowest_milli ? rates.slowest_milli : sum.slowest_milli;
		sum.oversubscribed |= rates.oversubscribed;
		sum.unmapped += rates.unmapped;
		sum.lost += rates.lost;
		sum.map_result = rates.map_result;
	}
	*ret_rates = sum;
	return 0;
}
