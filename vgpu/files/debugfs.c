/* SPDX-License-Identifier: MIT */
/*
 * What /sys/kernel/debug/kfd would show. hqds is the driver's format, registers included, as far as they mean something
 * here (others are 0), for instance 0 of the partition: a queue is on all of them alike. mqds and rls have the driver's
 * headings; where it dumps the memory of an MQD or of the runlist, the fields are named instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "vgpu/files/live.h"

/* gfx9: 56 registers from CP_MQD_BASE_ADDR to CP_HQD_PQ_WPTR_HI (Linux, gc_9_0_offset.h; kgd_gfx_v9_hqd_dump()). */
#define DEBUGFS_REGISTERS      56u
#define DEBUGFS_REGISTER_FIRST 0xc914u
enum debugfs_register {
	DEBUGFS_ACTIVE = 2,
	DEBUGFS_VMID = 3,
	DEBUGFS_PIPE_PRIORITY = 5,
	DEBUGFS_QUEUE_PRIORITY = 6,
	DEBUGFS_PQ_BASE = 8,
	DEBUGFS_PQ_BASE_HI = 9,
	DEBUGFS_PQ_RPTR = 10,
	DEBUGFS_DOORBELL_CONTROL = 15,
	DEBUGFS_WPTR = 54,
	DEBUGFS_WPTR_HI = 55,
};
#define DEBUGFS_VMID_FIRST   3u /* of KFD on gfx9.4 */
#define DEBUGFS_AQL_WORDS    16u
#define DEBUGFS_KCQ_PER_PIPE 2u /* the kernel's own queues come first on each pipe */
#define DEBUGFS_SLOT_MAX     64u
#define DEBUGFS_RUNLIST_MAX  4096u

static void debugfs_dump(FILE *stream, const uint32_t *words, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (i % 8u == 0)
			fprintf(stream, "%s    %08x: %08x", i ? "\n" : "", DEBUGFS_REGISTER_FIRST + i * 4u, words[i]);
		else
			fprintf(stream, " %08x", words[i]);
	fputc('\n', stream);
}

/* The firmware's choice is not ours to know: processes with queues get them in the order of their slots. */
static uint32_t debugfs_vmid(const struct gp_vqueue *queue)
{
	uint32_t before = 0, count = (uint32_t)gp_desc_get(queue->gpu->desc, GP_DESC_PROCESS_COUNT);

	for (const struct gp_vproc *p = queue->process->node->processes; p; p = p->next)
		before += p->slot < queue->process->slot && p->devices[queue->gpu->index].queue_count;
	return DEBUGFS_VMID_FIRST + before % count;
}

static void debugfs_registers(const struct gp_vqueue *queue, uint32_t *ret_words)
{
	uint64_t base = queue->ring >> 8, written = queue->limit * DEBUGFS_AQL_WORDS;

	ret_words[DEBUGFS_ACTIVE] = 1;
	ret_words[DEBUGFS_VMID] = debugfs_vmid(queue);
	ret_words[DEBUGFS_PIPE_PRIORITY] = queue->priority < 7u ? 0 : queue->priority < 11u ? 1u : 2u;
	ret_words[DEBUGFS_QUEUE_PRIORITY] = queue->priority;
	ret_words[DEBUGFS_PQ_BASE] = (uint32_t)base;
	ret_words[DEBUGFS_PQ_BASE_HI] = (uint32_t)(base >> 32);
	ret_words[DEBUGFS_PQ_RPTR] = (uint32_t)(queue->read * DEBUGFS_AQL_WORDS);
	/* Enabled; the offset in dwords from bit 2. Absolute on a GPU, in its process here. */
	ret_words[DEBUGFS_DOORBELL_CONTROL] = 1u << 30 | queue->doorbell_id * 2u << 2;
	ret_words[DEBUGFS_WPTR] = (uint32_t)written;
	ret_words[DEBUGFS_WPTR_HI] = (uint32_t)(written >> 32);
}

/* The queues on the slots of a GPU, pipe by pipe; NULL: an empty one. */
static void debugfs_slots(const struct gp_vdev *gpu, uint32_t per_pipe, const struct gp_vqueue **ret_queues)
{
	for (const struct gp_vproc *process = gpu->node->processes; process; process = process->next)
		for (uint32_t id = 0; process->devices[gpu->index].queue_count && id < GP_VPROC_QUEUE_MAX; id++) {
			const struct gp_vqueue *queue = process->queues[id];
			struct gp_gpu_counters counters;

			if (!queue || queue->gpu != gpu || queue->model_gone || gp_vqueue_is_sdma(queue) ||
			    gp_gpu_counters(gpu->model, queue->model, &counters) < 0 || !counters.mapped)
				continue;
			if (counters.slot < per_pipe && counters.pipe * per_pipe + counters.slot < DEBUGFS_SLOT_MAX)
				ret_queues[counters.pipe * per_pipe + counters.slot] = queue;
		}
}

static void debugfs_heading(FILE *stream, const struct gp_vdev *gpu)
{
	fprintf(stream, "Node %u, gpu_id %x:\n", gpu->index + 1u, gpu->gpu_id);
}

void gp_debugfs_hqds(FILE *stream, const struct gp_vnode *node)
{
	for (uint32_t g = 0; g < node->gpu_count; g++) {
		const struct gp_vdev *gpu = &node->gpus[g];
		uint32_t pipes = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_PIPE_COUNT);
		uint32_t slots = (uint32_t)gp_desc_get(gpu->desc, GP_DESC_SLOT_COUNT) / pipes;

		const struct gp_vqueue *queues[DEBUGFS_SLOT_MAX] = { NULL };

		debugfs_slots(gpu, slots, queues);
		debugfs_heading(stream, gpu);
		for (uint32_t pipe = 0; pipe < pipes; pipe++)
			for (uint32_t slot = 0; slot < slots; slot++) {
				const struct gp_vqueue *queue = queues[pipe * slots + slot];
				uint32_t words[DEBUGFS_REGISTERS] = { 0 };

				if (queue)
					debugfs_registers(queue, words);
				fprintf(stream, " Inst 0,  CP Pipe %u, Queue %u\n", pipe, DEBUGFS_KCQ_PER_PIPE + slot);
				debugfs_dump(stream, words, DEBUGFS_REGISTERS);
			}
	}
}

static void debugfs_queue(FILE *stream, const struct gp_vqueue *queue)
{
	fprintf(stream, "  %s queue on device %x\n", gp_vqueue_is_sdma(queue) ? "SDMA" : "Compute", queue->gpu->gpu_id);
	fprintf(stream,
		"    queue_id=%u doorbell=%u active=%d percent=%u priority=%u cu_count=%u evicted=%d suspended=%d gws=%d "
		"ring=0x%" PRIx64 " ring_size=%u read=%" PRIu64 " written=%" PRIu64 "\n",
		queue->id, queue->doorbell_id, gp_vqueue_is_active(queue), queue->percent, queue->priority,
		queue->cu_count, queue->process->evicted || queue->process->devices[queue->gpu->index].evicted,
		queue->suspended, queue->process->devices[queue->gpu->index].gws == queue, queue->ring,
		queue->ring_size, queue->read, queue->limit);
}

void gp_debugfs_mqds(FILE *stream, const struct gp_vnode *node)
{
	for (const struct gp_vproc *process = node->processes; process; process = process->next) {
		fprintf(stream, "Process %d PASID 0x%x:\n", process->pid, gp_live_pasid(process));
		for (uint32_t id = 0; process->queue_count && id < GP_VPROC_QUEUE_MAX; id++)
			if (process->queues[id])
				debugfs_queue(stream, process->queues[id]);
	}
}

void gp_debugfs_rls(FILE *stream, const struct gp_vnode *node)
{
	static uint32_t ids[DEBUGFS_RUNLIST_MAX];

	for (uint32_t g = 0; g < node->gpu_count; g++) {
		const struct gp_vdev *gpu = &node->gpus[g];
		const struct gp_vproc *process = NULL;
		bool oversubscribed;
		uint32_t count = gp_gpu_runlist(gpu->model, ids, DEBUGFS_RUNLIST_MAX, &oversubscribed);

		debugfs_heading(stream, gpu);
		if (!count)
			fprintf(stream, "  No active runlist\n");
		for (uint32_t i = 0; i < count && i < DEBUGFS_RUNLIST_MAX; i++) {
			const struct gp_vqueue *queue = gpu->by_model[ids[i]];

			if (!queue)
				continue;
			if (queue->process != process)
				fprintf(stream, "  MAP_PROCESS pid=%d pasid=0x%x num_queues=%u\n", queue->process->pid,
					gp_live_pasid(queue->process), queue->process->devices[g].queue_count);
			process = queue->process;
			fprintf(stream, "  MAP_QUEUES queue_id=%u doorbell=%u priority=%u\n", queue->id,
				queue->doorbell_id, queue->priority);
		}
		if (oversubscribed)
			fprintf(stream, "  RUN_LIST chain=1\n");
	}
}
