/* SPDX-License-Identifier: MIT */
/*
 * Live files. Plain files cannot be made when they are read, so they are written after a change, at most every
 * LIVE_PERIOD_NS: what a reader sees is never older than that and never half written. Names and formats as in Linux
 * 6.12 (kfd_process.c, kfd_debugfs.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu/files/live.h"

#define LIVE_PATH      512u
#define LIVE_PERIOD_NS 250000000u
#define LIVE_TEMPORARY "/../../.live" /* beside the folder kfd, on the same file system */
#define LIVE_PASID     0x8000u
#define LIVE_TYPE_XGMI 4u /* enum kfd_queue_type of the driver, which proc/ shows: compute 0, SDMA 1, XGMI 4 */

uint32_t gp_live_pasid(const struct gp_vproc *process)
{
	return LIVE_PASID + process->slot;
}

__attribute__((format(printf, 1, 2))) static void live_folder(const char *format, ...)
{
	char path[LIVE_PATH];
	va_list args;

	va_start(args, format);
	if (vsnprintf(path, sizeof(path), format, args) < (int)sizeof(path))
		(void)!mkdir(path, 0755);
	va_end(args);
}

/* Under its name there is always a whole text, the old or the new one: it is written elsewhere, where nobody looks, and
 * renamed. What cannot be written stays as it was. */
static void live_replace(const struct gp_vnode *node, const char *path, const char *text)
{
	char temporary[LIVE_PATH];
	FILE *stream;

	snprintf(temporary, sizeof(temporary), "%s" LIVE_TEMPORARY, node->proc_dir);
	stream = fopen(temporary, "we");
	if (!stream)
		return;
	fputs(text, stream);
	if (fclose(stream) || rename(temporary, path) < 0)
		unlink(temporary);
}

/* Writes a text, or (NULL) removes the file or folder. */
__attribute__((format(printf, 3, 4))) static void live_file(const struct gp_vnode *node, const char *text,
							    const char *format, ...)
{
	char path[LIVE_PATH];
	va_list args;

	va_start(args, format);
	if (vsnprintf(path, sizeof(path), format, args) >= (int)sizeof(path))
		path[0] = 0;
	va_end(args);
	if (text)
		live_replace(node, path, text);
	else
		remove(path);
}

static void live_number(const struct gp_vproc *process, uint64_t value, const char *name, uint32_t gpu_id)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	live_file(process->node, text, "%s/%d/%s%.0u", process->node->proc_dir, process->pid, name, gpu_id);
}

/* What a process has on a GPU; written where it is not what was written last. */
static void live_device(struct gp_vproc *process, const struct gp_vdev *gpu, const struct gp_vproc_live *now)
{
	struct gp_vproc_live *last = &process->devices[gpu->index].live;
	char name[48];

	if (!last->written || last->evicted_ms != now->evicted_ms) {
		snprintf(name, sizeof(name), "stats_%u/evicted_ms", gpu->gpu_id);
		live_number(process, now->evicted_ms, name, 0);
	}
	if (!last->written || last->cu_count != now->cu_count) {
		snprintf(name, sizeof(name), "stats_%u/cu_occupancy", gpu->gpu_id);
		live_number(process, now->cu_count, name, 0);
	}
	if (!last->written || last->vram_used != now->vram_used)
		live_number(process, now->vram_used, "vram_", gpu->gpu_id);
	if (!last->written || last->sdma_us != now->sdma_us)
		live_number(process, now->sdma_us, "sdma_", gpu->gpu_id);
	*last = *now;
	last->written = true;
}

void gp_live_process_add(struct gp_vproc *process)
{
	const struct gp_vproc_live nothing = { 0 };
	const struct gp_vnode *node = process->node;
	const char *dir = node->proc_dir;

	if (!*dir)
		return;
	live_folder("%s/%d", dir, process->pid);
	live_folder("%s/%d/queues", dir, process->pid);
	live_number(process, gp_live_pasid(process), "pasid", 0);
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		live_folder("%s/%d/stats_%u", dir, process->pid, node->gpus[i].gpu_id);
		live_device(process, &node->gpus[i], &nothing);
	}
}

void gp_live_process_remove(const struct gp_vproc *process)
{
	const struct gp_vnode *node = process->node;
	const char *dir = node->proc_dir;

	if (!*dir)
		return;
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		uint32_t gpu_id = node->gpus[i].gpu_id;

		live_file(node, NULL, "%s/%d/stats_%u/evicted_ms", dir, process->pid, gpu_id);
		live_file(node, NULL, "%s/%d/stats_%u/cu_occupancy", dir, process->pid, gpu_id);
		live_file(node, NULL, "%s/%d/stats_%u", dir, process->pid, gpu_id);
		live_file(node, NULL, "%s/%d/vram_%u", dir, process->pid, gpu_id);
		live_file(node, NULL, "%s/%d/sdma_%u", dir, process->pid, gpu_id);
	}
	live_file(node, NULL, "%s/%d/pasid", dir, process->pid);
	live_file(node, NULL, "%s/%d/queues", dir, process->pid);
	live_file(node, NULL, "%s/%d", dir, process->pid);
}

static uint32_t live_type(const struct gp_vqueue *queue)
{
	uint32_t engine = queue->sdma_id / (uint32_t)gp_desc_get(queue->gpu->desc, GP_DESC_COPY_QUEUE_COUNT);

	if (!gp_vqueue_is_sdma(queue))
		return 0;
	return engine < (uint32_t)gp_desc_get(queue->gpu->desc, GP_DESC_COPY_ENGINE_COUNT) ? 1u : LIVE_TYPE_XGMI;
}

void gp_live_queue_add(const struct gp_vqueue *queue)
{
	const struct gp_vnode *node = queue->process->node;
	const char *dir = node->proc_dir;
	struct {
		const char *name;
		uint64_t value;
	} files[] = { { "size", queue->ring_size }, { "type", live_type(queue) }, { "gpuid", queue->gpu->gpu_id } };
	char text[32];

	if (!*dir)
		return;
	live_folder("%s/%d/queues/%u", dir, queue->process->pid, queue->id);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(text, sizeof(text), "%" PRIu64, files[i].value);
		live_file(node, text, "%s/%d/queues/%u/%s", dir, queue->process->pid, queue->id, files[i].name);
	}
}

void gp_live_queue_remove(const struct gp_vqueue *queue)
{
	static const char *const names[] = { "size", "type", "gpuid" };
	const struct gp_vnode *node = queue->process->node;
	const char *dir = node->proc_dir;

	if (!*dir)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		live_file(node, NULL, "%s/%d/queues/%u/%s", dir, queue->process->pid, queue->id, names[i]);
	live_file(node, NULL, "%s/%d/queues/%u", dir, queue->process->pid, queue->id);
}

/* What changes by itself. */

static void live_process(struct gp_vproc *process)
{
	const struct gp_vnode *node = process->node;

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		uint64_t cus = 0, sdma_ns = process->devices[i].sdma_ns;

		for (uint32_t id = 0; process->devices[i].queue_count && id < GP_VPROC_QUEUE_MAX; id++) {
			const struct gp_vqueue *queue = process->queues[id];
			struct gp_gpu_counters counters;

			if (!queue || queue->gpu->index != i || queue->model_gone ||
			    gp_gpu_counters(queue->gpu->model, queue->model, &counters) < 0)
				continue;
			cus += counters.resident_cus;
			sdma_ns += gp_vqueue_is_sdma(queue) ? counters.busy_ns : 0;
		}
		live_device(process, &node->gpus[i],
			    &(struct gp_vproc_live){ .evicted_ms = process->evicted_ns / 1000000u,
						     .cu_count = cus,
						     .vram_used = process->devices[i].vram_used,
						     .sdma_us = sdma_ns / 1000u });
	}
}

static void live_debugfs(const struct gp_vnode *node, const char *name,
			 void (*show)(FILE *stream, const struct gp_vnode *node))
{
	char path[LIVE_PATH], temporary[LIVE_PATH];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", node->debug_dir, name);
	snprintf(temporary, sizeof(temporary), "%s/.%s", node->debug_dir, name);
	stream = fopen(temporary, "we");
	if (!stream)
		return;
	show(stream, node);
	if (fclose(stream) || chmod(temporary, 0444) < 0 || rename(temporary, path) < 0)
		unlink(temporary);
}

void gp_live_mark(struct gp_vnode *node)
{
	node->live_changed = true;
}

void gp_live_turn(struct gp_vnode *node)
{
	if (!node->live_changed || node->now_ns < node->live_ns)
		return;
	node->live_changed = false;
	node->live_ns = node->now_ns + LIVE_PERIOD_NS;
	if (*node->debug_dir) {
		live_debugfs(node, "hqds", gp_debugfs_hqds);
		live_debugfs(node, "mqds", gp_debugfs_mqds);
		live_debugfs(node, "rls", gp_debugfs_rls);
	}
	for (struct gp_vproc *process = node->processes; *node->proc_dir && process; process = process->next)
		live_process(process);
}

uint64_t gp_live_deadline_ns(const struct gp_vnode *node)
{
	return node->live_changed ? node->live_ns : UINT64_MAX;
}
