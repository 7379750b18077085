/* SPDX-License-Identifier: MIT */
/*
 * Preemption for real: when a queue is taken off the device, the state of each resident wave goes into the queue's save
 * area, in the trap handler's layout (isa/save.c), and is forgotten; when the queue comes back it is read from there.
 * The control stack, which says what lies in the area, is the driver's own memory on these devices, and so it is here;
 * a copy goes into the area with its header, as the driver makes one for a debugger.
 *
 * The area is the client's. What is read back is judged: which wave it is must be what the control stack says, and
 * every register number, address and program counter is judged where it is used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/execute/execute.h"
#include "vgpu/node/memory.h"

/* Words of the control stack, as AMD's debugger library takes them apart: one state for the waves that follow. */
#define SAVE_STATE      (1u << 31)
#define SAVE_FIRST_WAVE (1u << 17)
#define SAVE_LAST_WAVE  (1u << 16)
#define SAVE_SCRATCH    (1u << 15)
#define SAVE_STACK_HEAD 2u /* words of a packet that stand before the first */

static uint32_t save_state_word(const struct gp_execution *execution)
{
	/* 112 scalar registers and 16 trap temporaries: eight blocks of 16. */
	return SAVE_STATE | (execution->row_count / 4u - 1u) | 7u << 6 | (execution->lds_size / 512u) << 9;
}

static uint64_t save_group_size(const struct gp_execution *execution)
{
	return (uint64_t)gp_isa_record_size(execution->row_count, 0) * execution->wave_count + execution->lds_size;
}

uint32_t gp_execute_save_room(const struct gp_execution *execution)
{
	const struct gp_vqueue *queue = execution->queue;

	if (!queue->cwsr || queue->cwsr_size <= queue->ctl_stack_size)
		return UINT32_MAX;
	return (uint32_t)((queue->cwsr_size - queue->ctl_stack_size) / save_group_size(execution));
}

static int save_push(struct gp_vqueue *queue, uint32_t word)
{
	if (queue->save.stack_count == queue->save.stack_capacity) {
		uint32_t capacity = queue->save.stack_capacity ? queue->save.stack_capacity * 2u : 64u;
		uint32_t *stack = realloc(queue->save.stack, capacity * sizeof(*stack));

		if (!stack)
			return -ENOMEM;
		queue->save.stack = stack;
		queue->save.stack_capacity = capacity;
	}
	queue->save.stack[queue->save.stack_count++] = word;
	return 0;
}

/* What the driver's get_wave_state() tells: the offsets at which both stand, from the beginning of the area. */
void gp_execute_save_header(const struct gp_vqueue *queue, struct gp_kfd_wave_state *ret_state)
{
	uint32_t words = queue->save.stack_count ? queue->save.stack_count + SAVE_STACK_HEAD : 0;

	*ret_state = (struct gp_kfd_wave_state){ .control_stack_offset = queue->ctl_stack_size - words * 4u,
						 .control_stack_size = words * 4u,
						 .wave_state_offset = queue->ctl_stack_size + queue->save.size,
						 .wave_state_size = queue->save.size };
}

int gp_execute_save_show(struct gp_vqueue *queue, uint64_t address)
{
	struct gp_kfd_wave_state state;
	uint64_t to = address;
	uint32_t head[SAVE_STACK_HEAD] = { 0 };

	gp_execute_save_header(queue, &state);
	if (gp_client_write(queue->process, address, &state, sizeof(state)) < 0)
		return -EFAULT;
	if (!state.control_stack_size || state.control_stack_size > queue->ctl_stack_size)
		return 0;
	/* The newest wave first: the stack grows downwards, the waves upwards. */
	to += state.control_stack_offset;
	if (gp_client_write(queue->process, to, head, sizeof(head)) < 0)
		return -EFAULT;
	to += sizeof(head);
	for (uint32_t i = queue->save.stack_count; i--; to += 4u)
		if (gp_client_write(queue->process, to, &queue->save.stack[i], 4) < 0)
			return -EFAULT;
	return 0;
}

/* One workgroup into the area. The waves that ended are gone already. */
static int save_group(struct gp_execution *execution, struct gp_execute_group *group,
		      struct gp_execute_saved *ret_saved)
{
	static uint8_t record[GP_ISA_ROW_MAX * 256u + 4096u + GP_ISA_LDS_MAX];
	struct gp_vqueue *queue = execution->queue;
	uint32_t waves = 0, done = 0;

	*ret_saved = (struct gp_execute_saved){ .index = group->index,
						.slot = group->slot,
						.spent = group->spent,
						.total = group->total,
						.executed = group->isa.executed,
						.offset = queue->save.size };
	for (uint32_t i = 0; i < execution->wave_count; i++)
		if (group->isa.waves[i]->state != GP_ISA_ENDED) {
			ret_saved->waves |= 1u << i;
			waves++;
		}
	for (uint32_t i = 0; i < execution->wave_count; i++) {
		uint32_t lds_size = done ? 0 : execution->lds_size;
		uint32_t size = gp_isa_record_size(execution->row_count, lds_size);

		if (!(ret_saved->waves >> i & 1u))
			continue;
		memset(record, 0, size);
		gp_isa_wave_save(group->isa.waves[i], record);
		memcpy(record + gp_isa_record_lds(execution->row_count), group->lds, lds_size);
		if (gp_vm_write(queue->process, queue->gpu, queue->cwsr + queue->ctl_stack_size + queue->save.size,
				record, size) < 0)
			return -EFAULT;
		queue->save.size += size;
		done++;
		queue->gpu->node->counters.waves_saved++;
		if (save_push(queue, (done == 1u ? SAVE_FIRST_WAVE : 0) | (done == waves ? SAVE_LAST_WAVE : 0) |
					     (execution->scratch_lane_size ? SAVE_SCRATCH : 0) |
					     (group->slot & 0x1ffu)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int save_all(struct gp_execution *execution)
{
	struct gp_vqueue *queue = execution->queue;
	int r = 0;

	execution->saved = calloc(execution->live_count, sizeof(*execution->saved));
	if (!execution->saved)
		return -ENOMEM;
	if (!queue->save.holders) {
		queue->save.size = 0;
		queue->save.stack_count = 0;
	}
	for (uint32_t i = 0; i < execution->live_count && r == 0; i++)
		r = save_group(execution, execution->live[i], &execution->saved[i]);
	/* Read from its newest word downwards, the state stands before its waves. */
	if (r == 0)
		r = save_push(queue, save_state_word(execution));
	return r;
}

/* Whether a wave has begun and not ended: its program counter is inside the kernel. */
static bool save_is_inside(const struct gp_execution *execution)
{
	bool preloads = execution->target == GP_ISA_GFX940 && execution->descriptor.preload & 0x7fu;
	uint64_t begin = execution->entry + (preloads ? 256u : 0);

	for (uint32_t i = 0; i < execution->live_count; i++)
		for (uint32_t k = 0; k < execution->wave_count; k++) {
			const struct gp_isa_wave *wave = execution->live[i]->isa.waves[k];

			if (wave->state != GP_ISA_ENDED && wave->pc != begin)
				return true;
		}
	return false;
}

void gp_execute_stop(struct gp_execution *execution)
{
	struct gp_vqueue *queue = execution->queue;
	uint64_t left;

	if (execution->is_stopped)
		return;
	gp_execute_begin_one(execution);
	if (queue->error)
		return;
	left = queue->cwsr_size - queue->ctl_stack_size - (queue->save.holders ? queue->save.size : 0);
	execution->is_stopped = true;
	/* A queue that was made without an area keeps its waves here. */
	if (!execution->live_count || !queue->cwsr || queue->cwsr_size <= queue->ctl_stack_size ||
	    save_group_size(execution) * execution->live_count > left)
		return;
	if (save_all(execution) < 0) {
		free(execution->saved);
		execution->saved = NULL;
		gp_vqueue_fault(queue, queue->process->fault_va);
		return;
	}
	queue->save.holders++;
	execution->saved_count = execution->live_count;
	if (save_is_inside(execution)) {
		queue->stopped_inside++;
		queue->gpu->node->counters.stopped_inside++;
	}
	while (execution->live_count)
		gp_execute_group_destroy(execution->live[--execution->live_count]);
	gp_execute_save_show(queue, queue->cwsr);
}

/* Which wave it is, the trap temporaries say; the control stack knows. */
static bool save_is_wave(const struct gp_execution *execution, const struct gp_execute_saved *saved, uint32_t index,
			 const struct gp_isa_wave *wave)
{
	const uint32_t *groups = execution->dispatch->kernel.workgroups, *ttmp = &wave->s[GP_ISA_TTMP];

	return ttmp[8] == saved->index % groups[0] && ttmp[9] == saved->index / groups[0] % groups[1] &&
	       ttmp[10] == saved->index / groups[0] / groups[1] && (ttmp[11] & 0x3fu) == index;
}

/* -EFAULT: the area is gone; -EINVAL: it has been changed; -ENOMEM. */
static int save_bring_back(struct gp_execution *execution, const struct gp_execute_saved *saved)
{
	static uint8_t record[GP_ISA_ROW_MAX * 256u + 4096u + GP_ISA_LDS_MAX];
	struct gp_execute_group *group = gp_execute_group_create(execution, saved->index, saved->slot);
	struct gp_vqueue *queue = execution->queue;
	uint64_t va = queue->cwsr + queue->ctl_stack_size + saved->offset;
	uint32_t done = 0;

	if (!group)
		return -ENOMEM;
	execution->live[execution->live_count++] = group;
	group->spent = saved->spent;
	group->total = saved->total;
	group->isa.executed = saved->executed;
	for (uint32_t i = 0; i < execution->wave_count; i++) {
		uint32_t lds_size = done ? 0 : execution->lds_size;
		uint32_t size = gp_isa_record_size(execution->row_count, lds_size);

		if (!(saved->waves >> i & 1u)) {
			group->isa.waves[i]->state = GP_ISA_ENDED;
			continue;
		}
		if (gp_vm_read(queue->process, queue->gpu, va, record, size) < 0)
			return -EFAULT;
		if (gp_isa_wave_restore(group->isa.waves[i], record, execution->target == GP_ISA_GFX940) < 0 ||
		    !save_is_wave(execution, saved, i, group->isa.waves[i]))
			return -EINVAL;
		memcpy(group->lds, record + gp_isa_record_lds(execution->row_count), lds_size);
		va += size;
		done++;
		queue->gpu->node->counters.waves_restored++;
	}
	return 0;
}

void gp_execute_resume(struct gp_execution *execution)
{
	struct gp_vqueue *queue = execution->queue;
	int r = 0;

	if (!execution->is_stopped)
		return;
	execution->is_stopped = false;
	for (uint32_t i = 0; i < execution->saved_count && r == 0; i++)
		r = save_bring_back(execution, &execution->saved[i]);
	if (execution->saved_count)
		queue->save.holders--;
	free(execution->saved);
	execution->saved = NULL;
	execution->saved_count = 0;
	if (r == 0)
		return;
	if (r == -EFAULT) {
		gp_vqueue_fault(queue, queue->process->fault_va);
		return;
	}
	gp_vnode_log(queue->gpu->node, 0,
		     "process %d: queue %u: its save area has been changed, and its waves cannot be restored",
		     queue->process->pid, queue->id);
	gp_vqueue_wave_error(queue, GP_KFD_EC_MASK(1), GP_EXECUTE_SIGNAL_TRAP);
}

int gp_execute_wave_state(struct gp_vproc *process, struct kfd_ioctl_get_queue_wave_state_args *args)
{
	struct gp_vqueue *queue = gp_vqueue_find(process, args->queue_id);
	struct gp_kfd_wave_state state;

	/* get_wave_state(): of a compute queue that is off the device, with context save. */
	if (!queue || gp_vqueue_is_sdma(queue) || gp_vqueue_is_active(queue) ||
	    !process->node->params.values[GP_PARAM_CWSR_ENABLE])
		return -EINVAL;
	if (!queue->save.holders) {
		queue->save.size = 0;
		queue->save.stack_count = 0;
	}
	if (gp_execute_save_show(queue, args->ctl_stack_address) < 0)
		return -EFAULT;
	gp_execute_save_header(queue, &state);
	args->ctl_stack_used_size = state.control_stack_size;
	args->save_area_used_size = state.wave_state_size;
	return 0;
}
