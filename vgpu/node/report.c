/* SPDX-License-Identifier: MIT */
/* Status as text. Only reads. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "vgpu/kfd/queue.h"
#include "vgpu/node/report.h"

struct report {
	char *text;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void report_line(struct report *report, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(report->text + report->used, report->size - report->used, format, args);
	va_end(args);
	/* A line that does not fit is left out whole. */
	if (size > 0 && report->used + (size_t)size < report->size)
		report->used += (size_t)size;
	else
		report->text[report->used] = 0;
}

static void report_queue(struct report *report, const struct gp_vqueue *queue)
{
	report_line(
		report,
		"queue pid=%d id=%u gpu=%u type=%u priority=%u percent=%u suspended=%d active=%d error=%u read=%" PRIu64
		" submitted=%" PRIu64 " packets=%" PRIu64 " workgroups=%" PRIu64 " stopped_inside=%" PRIu64
		" taken_off=%" PRIu64 "\n",
		queue->process->pid, queue->id, queue->gpu->index, queue->type, queue->priority, queue->percent,
		queue->suspended || queue->gate_owner, gp_vqueue_is_active(queue), queue->error, queue->read,
		queue->submitted, queue->packets, queue->workgroups, queue->stopped_inside, queue->taken_off);
}

static void report_gpu(struct report *report, const struct gp_vdev *gpu)
{
	struct gp_gpu_runlist_use use;

	gp_gpu_runlist_use(gpu->model, &use);
	report_line(report,
		    "gpu index=%u id=%u vram_used=%" PRIu64 " halts=%" PRIu64 " halt_ns=%" PRIu64
		    " runlist_queues=%u runlist_processes=%u processes=%u slices=%u oversubscribed=%d\n",
		    gpu->index, gpu->gpu_id, gpu->vram_used, gpu->halt_count, gpu->halt_ns, use.queue_count,
		    use.open_process_count, use.process_count, use.slice_count, use.oversubscribed);
}

void gp_report_status(struct gp_vnode *node, char *ret_text, size_t text_size)
{
	struct report report = { ret_text, text_size, 0 };
	const struct gp_vnode_counters *c = &node->counters;
	uint32_t process_count = 0, queue_count = 0;

	ret_text[0] = 0;
	for (const struct gp_vproc *process = node->processes; process; process = process->next) {
		process_count++;
		queue_count += process->queue_count;
	}
	report_line(&report, "now processes=%u queues=%u gtt_used=%" PRIu64 "\n", process_count, queue_count,
		    node->gtt_used);
	report_line(&report,
		    "total processes=%" PRIu64 " queues_created=%" PRIu64 " queues_destroyed=%" PRIu64
		    " ioctls=%" PRIu64 " dispatches=%" PRIu64 " workgroups=%" PRIu64 " workgroups_body=%" PRIu64
		    " violations=%" PRIu64 " copies=%" PRIu64 " copy_bytes=%" PRIu64 " process_vm=%" PRIu64
		    " queue_errors=%" PRIu64 " workgroups_executed=%" PRIu64 " wave_instructions=%" PRIu64
		    " waves_saved=%" PRIu64 " waves_restored=%" PRIu64 " stopped_inside=%" PRIu64 "\n",
		    c->processes_seen, c->queues_created, c->queues_destroyed, c->ioctls, c->dispatches, c->workgroups,
		    c->workgroups_body, c->exactly_once_violations, c->copies, c->copy_bytes, c->process_vm,
		    c->queue_errors, c->workgroups_executed, c->wave_instructions, c->waves_saved, c->waves_restored,
		    c->stopped_inside);
	for (uint32_t i = 0; i < node->gpu_count; i++)
		report_gpu(&report, &node->gpus[i]);
	for (const struct gp_vproc *process = node->processes; process; process = process->next)
		for (uint32_t id = 0; id < GP_VPROC_QUEUE_MAX; id++)
			if (process->queues[id])
				report_queue(&report, process->queues[id]);
}
