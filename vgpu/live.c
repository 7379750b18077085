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
#include "vgpu/live.h"

#define LIVE_PATH      512u
#define LIVE_PERIOD_NS 250000000u
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

/* Writes a number, or (text is NULL) removes the file or folder. */
__attribute__((format(printf, 2, 3))) static void live_file(const char *text, const char *format, ...)
{
	char path[LIVE_PATH];
	va_list args;
	FILE *stream;

	va_start(args, format);
	if (vsnprintf(path, sizeof(path), format, args) >= (int)sizeof(path))
		path[0] = 0;
	va_end(args);
	if (!text) {
		remove(path);
		return;
	}
	stream = fopen(path, "we");
	if (!stream)
		return;
	fputs(text, stream);
	fclose(stream);
}

static void live_number(uint64_t value, const char *dir, pid_t pid, const char *name, uint32_t gpu_id)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	live_file(text, "%s/%d/%s%.0u", dir, pid, name, gpu_id);
}

void gp_live_process_add(const struct gp_vproc *process)
{
	const struct gp_vnode *node = process->node;
	const char *dir = node->proc_dir;

	if (!*dir)
		return;
	live_folder("%s/%d", dir, process->pid);
	live_folder("%s/%d/queues", dir, process->pid);
	live_number(gp_live_pasid(process), dir, process->pid, "pasid", 0);
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		live_folder("%s/%d/stats_%u", dir, process->pid, node->gpus[i].gpu_id);
		live_file("0\n", "%s/%d/stats_%u/evicted_ms", dir, process->pid, node->gpus[i].gpu_id);
		live_file("0\n", "%s/%d/stats_%u/cu_occupancy", dir, process->pid, node->gpus[i].gpu_id);
		live_number(0, dir, process->pid, "vram_", node->gpus[i].gpu_id);
		live_number(0, dir, process->pid, "sdma_", node->gpus[i].gpu_id);
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

		live_file(NULL, "%s/%d/stats_%u/evicted_ms", dir, process->pid, gpu_id);
		live_file(NULL, "%s/%d/stats_%u/cu_occupancy", dir, process->pid, gpu_id);
		live_file(NULL, "%s/%d/stats_%u", dir, process->pid, gpu_id);
		live_file(NULL, "%s/%d/vram_%u", dir, process->pid, gpu_id);
		live_file(NULL, "%s/%d/sdma_%u", dir, process->pid, gpu_id);
	}
	live_file(NULL, "%s/%d/pasid", dir, process->pid);
	live_file(NULL, "%s/%d/queues", dir, process->pid);
	live_file(NULL, "%s/%d", dir, process->pid);
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
	const char *dir = queue->process->node->proc_dir;
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
		live_file(text, "%s/%d/queues/%u/%s", dir, queue->process->pid, queue->id, files[i].name);
	}
}

void gp_live_queue_remove(const struct gp_vqueue *queue)
{
	static const char *const names[] = { "size", "type", "gpuid" };
	const char *dir = queue->process->node->proc_dir;

	if (!*dir)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		live_file(NULL, "%s/%d/queues/%u/%s", dir, queue->process->pid, queue->id, names[i]);
	live_file(NULL, "%s/%d/queues/%u", dir, queue->process->pid, queue->id);
}

/* What changes by itself. */

static void live_process(const struct gp_vproc *process)
{
	const struct gp_vnode *node = process->node;
	const char *dir = node->proc_dir;
	uint64_t evicted_ns = process->evicted_ns;
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", evicted_ns / 1000000u);
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		uint64_t cus = 0, sdma_ns = process->devices[i].sdma_ns;
		uint32_t gpu_id = node->gpus[i].gpu_id;

		for (uint32_t id = 0; process->devices[i].queue_count && id < GP_VPROC_QUEUE_MAX; id++) {
			const struct gp_vqueue *queue = process->queues[id];
			struct gp_gpu_counters counters;

			if (!queue || queue->gpu->index != i || queue->model_gone ||
			    gp_gpu_counters(queue->gpu->model, queue->model, &counters) < 0)
				continue;
			cus += counters.resident_cus;
			sdma_ns += gp_vqueue_is_sdma(queue) ? counters.busy_ns : 0;
		}
		live_file(text, "%s/%d/stats_%u/evicted_ms", dir, process->pid, gpu_id);
		live_number(process->devices[i].vram_used, dir, process->pid, "vram_", gpu_id);
		live_number(sdma_ns / 1000u, dir, process->pid, "sdma_", gpu_id);
		snprintf(text, sizeof(text), "%" PRIu64 "\n", cus);
		live_file(text, "%s/%d/stats_%u/cu_occupancy", dir, process->pid, gpu_id);
		snprintf(text, sizeof(text), "%" PRIu64 "\n", evicted_ns / 1000000u);
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
	for (const struct gp_vproc *process = node->processes; *node->proc_dir && process; process = process->next)
		live_process(process);
}

uint64_t gp_live_deadline_ns(const struct gp_vnode *node)
{
	return node->live_changed ? node->live_ns : UINT64_MAX;
}
