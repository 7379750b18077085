/* SPDX-License-Identifier: MIT */
/* The node as a whole: its making, its clock, and one turn of its loop. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "lib/paths.h"
#include "vgpu/kfd/call.h"
#include "vgpu/files/live.h"
#include "vgpu/node/process.h"
#include "vgpu/node/share.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/kfd/smi.h"
#include "vgpu/node/transaction.h"
#include "vgpu/packet/work.h"

#define NODE_GPU_ID       0x5a01u
#define NODE_RENDER_MINOR 128u
#define NODE_RESERVED     (2u << 20) /* offset 0 of the BAR is never handed out: callers read it as none */
#define NODE_KCQ_COUNT    8          /* kernel compute queues by default (Linux 6.12, amdgpu_gfx.c) */
#define NODE_ROUNDS       4u         /* a completion may let another queue go on: looked at again in the same turn */

uint64_t gp_vnode_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gp_vnode_device_ns(const struct gp_vnode *node)
{
	return (node->now_ns - node->origin_ns) / node->dilation;
}

/* The counter runs in host time: dilation is visible as what it is, a slower GPU. */
uint64_t gp_vnode_ticks(const struct gp_vnode *node, uint64_t device_ns)
{
	return (node->origin_ns + device_ns * node->dilation) / 10u;
}

uint64_t gp_vnode_ticks_now(void)
{
	return gp_vnode_clock_ns() / 10u;
}

struct gp_vdev *gp_vnode_gpu(struct gp_vnode *node, uint32_t gpu_id)
{
	return gpu_id >= NODE_GPU_ID && gpu_id - NODE_GPU_ID < node->gpu_count ? &node->gpus[gpu_id - NODE_GPU_ID] :
										 NULL;
}

void gp_vnode_log(const struct gp_vnode *node, int level, const char *format, ...)
{
	va_list args;

	if (level > node->verbose)
		return;
	va_start(args, format);
	fprintf(stderr, "vgpud: ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static int node_load(struct gp_vnode *node, const char *device, struct gp_error *error)
{
	char relative[96], path[4096];

	if (!gp_identity_find(device))
		return gp_error_set(error, -EINVAL, "no virtual device '%s' (mi300x, mi300x-cpx, mi308x, mi210)",
				    device);
	snprintf(relative, sizeof(relative), "devices/%s.ini", device);
	if (gp_paths_share(relative, path, sizeof(path)) < 0)
		return gp_error_set(error, -ENOENT, "no description of the device '%s' (%s)", device, relative);
	return gp_desc_load(path, &node->desc, error);
}

/* Parameters that are values of the description: what the kernel's own queues leave of the slots, and VMIDs. */
static int node_apply_params(struct gp_vnode *node, struct gp_error *error)
{
	int64_t kcq = node->params.values[GP_PARAM_NUM_KCQ], max = node->params.values[GP_PARAM_HWS_MAX_CONC_PROC];
	char text[64];
	int r = 0;

	if (kcq > 0 && kcq % gp_desc_get(&node->desc, GP_DESC_PIPE_COUNT))
		return gp_error_set(error, -EINVAL, "num_kcq must be a multiple of the device's pipes here");
	if (kcq >= 0) {
		snprintf(text, sizeof(text), "slot_count=%lld",
			 (long long)(gp_desc_get(&node->desc, GP_DESC_SLOT_COUNT) + NODE_KCQ_COUNT - kcq));
		r = gp_desc_override(&node->desc, text, error);
	}
	if (r == 0 && max >= 0 && max < gp_desc_get(&node->desc, GP_DESC_PROCESS_COUNT)) {
		snprintf(text, sizeof(text), "process_count=%lld", (long long)(max ? max : 1));
		r = gp_desc_override(&node->desc, text, error);
	}
	return r;
}

static int node_gpu_init(struct gp_vnode *node, uint32_t index, const char *device, struct gp_error *error)
{
	struct gp_vdev *gpu = &node->gpus[index];
	struct gp_gpu_config config = { .desc = &node->desc,
					.hang_halts = true,
					.drains = !node->params.values[GP_PARAM_CWSR_ENABLE] };
	uint64_t begin = index * GP_BAR_VRAM_STEP;

	*gpu = (struct gp_vdev){
		.node = node,
		.index = index,
		.gpu_id = NODE_GPU_ID + index,
		.minor = NODE_RENDER_MINOR + index,
		.desc = &node->desc,
		.identity = gp_identity_find(device),
	};
	if (gp_range_init(&gpu->vram, begin + NODE_RESERVED,
			  begin + NODE_RESERVED + (uint64_t)gp_desc_get(&node->desc, GP_DESC_MEMORY_SIZE)) < 0 ||
	    gp_gpu_create(&config, &gpu->model) < 0)
		return gp_error_set(error, -ENOMEM, "out of memory");
	return 0;
}

int gp_vnode_init(struct gp_vnode *node, const struct gp_vnode_config *config, struct gp_error *error)
{
	int r;

	memset(node, 0, sizeof(*node));
	node->verbose = config->verbose;
	node->dilation = config->dilation ? config->dilation : 1u;
	node->now_ns = node->origin_ns = node->busy_ns = gp_vnode_clock_ns();
	gp_params_init(&node->params);
	r = config->params ? gp_params_parse(&node->params, config->params, error) : 0;
	if (r == 0)
		r = node_load(node, config->device, error);
	if (r == 0)
		r = node_apply_params(node, error);
	if (r < 0)
		return r;
	r = gp_kernels_create(config->kernels_path, &node->kernels, error);
	if (r < 0)
		return r;
	r = gp_bar_init(&node->bar);
	if (r < 0)
		return gp_error_set(error, r, "cannot reserve the memory of the device: %s", strerror(-r));
	node->gtt_size = config->gtt_size;
	if (!node->gtt_size)
		node->gtt_size = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4u * 3u;
	if (node->gtt_size > GP_BAR_GTT_SIZE)
		node->gtt_size = GP_BAR_GTT_SIZE;
	if (gp_range_init(&node->gtt, GP_BAR_GTT, GP_BAR_GTT + GP_BAR_GTT_SIZE) < 0)
		return gp_error_set(error, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < config->gpu_count; i++) {
		r = node_gpu_init(node, i, config->device, error);
		if (r < 0)
			return r;
		node->gpu_count++;
	}
	return 0;
}

void gp_vnode_fini(struct gp_vnode *node)
{
	while (node->processes)
		gp_vproc_destroy(node->processes);
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		gp_gpu_destroy(node->gpus[i].model);
		gp_range_fini(&node->gpus[i].vram);
	}
	gp_vtransaction_free_all(node);
	gp_smi_close_all(node);
	gp_vshare_free_all(node);
	while (node->calls) {
		struct gp_vcall *call = node->calls;

		node->calls = call->next;
		gp_vcall_free(call);
	}
	gp_range_fini(&node->gtt);
	gp_kernels_destroy(node->kernels);
	gp_bar_fini(&node->bar);
}

static bool node_queues_turn(struct gp_vnode *node, bool *ret_behind)
{
	bool moved = false;

	for (struct gp_vproc *process = node->processes; process; process = process->next) {
		uint32_t left = process->queue_count;

		for (uint32_t id = 0; left && id < GP_VPROC_QUEUE_MAX; id++) {
			struct gp_vqueue *queue = process->queues[id];

			if (!queue)
				continue;
			left--;
			moved |= gp_work_turn(queue);
			moved |= gp_vqueue_turn(queue);
			*ret_behind |= queue->behind;
		}
	}
	return moved;
}

/* Doorbells are plain memory and cannot wake anybody: how long until the next look, by how long nothing has happened.
 */
static uint64_t node_poll_ns(const struct gp_vnode *node)
{
	uint64_t idle_ns = node->now_ns - node->busy_ns;
	bool any = false;

	for (const struct gp_vproc *process = node->processes; process && !any; process = process->next)
		any = process->queue_count;
	if (!any)
		return UINT64_MAX;
	if (idle_ns < 1000000u)
		return 10000u;
	if (idle_ns < 20000000u)
		return 50000u;
	if (idle_ns < 1000000000u)
		return 200000u;
	return idle_ns < 10000000000u ? 1000000u : 4000000u;
}

uint64_t gp_vnode_turn(struct gp_vnode *node)
{
	uint64_t next_ns, poll_ns;
	bool behind = false;

	node->now_ns = gp_vnode_clock_ns();
	for (uint32_t i = 0; i < NODE_ROUNDS; i++) {
		bool moved;

		for (uint32_t g = 0; g < node->gpu_count; g++)
			gp_vdev_turn(&node->gpus[g]);
		behind = false;
		moved = node_queues_turn(node, &behind);
		gp_vtransaction_turn(node);
		gp_vcall_turn(node);
		if (!moved)
			break;
	}
	gp_live_turn(node);
	next_ns = gp_vcall_deadline_ns(node);
	if (gp_live_deadline_ns(node) < next_ns)
		next_ns = gp_live_deadline_ns(node);
	if (gp_vtransaction_deadline_ns(node) < next_ns)
		next_ns = gp_vtransaction_deadline_ns(node);
	if (behind)
		next_ns = node->now_ns;
	poll_ns = node_poll_ns(node);
	if (poll_ns != UINT64_MAX && node->now_ns + poll_ns < next_ns)
		next_ns = node->now_ns + poll_ns;
	for (uint32_t g = 0; g < node->gpu_count; g++) {
		uint64_t device_ns = gp_gpu_next_ns(node->gpus[g].model);

		if (device_ns != GP_GPU_NEVER_NS && node->origin_ns + device_ns * node->dilation < next_ns)
			next_ns = node->origin_ns + device_ns * node->dilation;
	}
	return next_ns;
}
