/* SPDX-License-Identifier: MIT */
/*
 * Mechanism channel: RM disables the channels of a group, which also takes it off the GPU, and enables them again. One
 * call carries up to 64 channels, a group's are never spread over two. Enabling what is enabled changes nothing, so
 * when in doubt everything is enabled.
 */
#include <errno.h>
#include <string.h>
#include "agent/log.h"
#include "agent/next.h"
#include "agent/nvidia/nvidia.h"

int gp_nvidia_control_on(int fd, const struct gp_nvidia_call *call)
{
	struct gp_rm_control args = {
		.client = call->client,
		.object = call->object,
		.command = call->command,
		.params = (uintptr_t)call->params,
		.params_size = call->size,
		.status = UINT32_MAX,
	};
	int r = gp_next_own_ioctl(fd, GP_RM_REQUEST(GP_RM_CONTROL) | sizeof(args) << 16, &args);

	if (r >= 0)
		r = gp_rm_errno(args.status);
	if (r < 0)
		gp_log3("nvidia: control refused: command, status, result", call->command, args.status, r);
	return r;
}

int gp_nvidia_control(const struct gp_nvidia_call *call)
{
	int fd = call->file == GP_NVIDIA_NONE ? -1 : gp_nvidia_file_fd(call->file);

	return fd < 0 ? -EBADF : gp_nvidia_control_on(fd, call);
}

uint32_t gp_nvidia_channels(const struct gp_slot *slot, uint32_t *ret_channels)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	uint32_t count = 0;

	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++) {
		const struct gp_nvidia_object *object = &gp_nvidia_objects[i];

		if (!object->used || object->client != group->client || object->parent != group->group ||
		    !gp_nvidia_class_is_channel(object->class_id) || object->off || object->going)
			continue;
		if (count < GP_WIRE_CHANNEL_MAX)
			ret_channels[count] = object->handle;
		count++;
	}
	return count;
}

static int gate_call(const struct gp_slot *slot, struct gp_rm_disable *params)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	int r;

	if (!params->count)
		return 0;
	r = gp_nvidia_control(&(struct gp_nvidia_call){ slot->file, group->client, group->subdevice,
							GP_RM_DISABLE_CHANNELS, params, sizeof(*params) });
	if (r == -EINVAL)
		gp_nvidia_refuse("DISABLE_CHANNELS has another size here");
	if (r < 0 && params->disable) {
		/* Some of them may be off by now. */
		params->disable = 0;
		gp_nvidia_control(&(struct gp_nvidia_call){ slot->file, group->client, group->subdevice,
							    GP_RM_DISABLE_CHANNELS, params, sizeof(*params) });
	}
	return r;
}

/* Two groups go into one call if one object of RM's reaches both. */
static bool gate_goes_together(const struct gp_slot *a, const struct gp_slot *b)
{
	const struct gp_nvidia_group *of_a = gp_nvidia_group_of(a), *of_b = gp_nvidia_group_of(b);

	return of_a->client == of_b->client && a->gpu_id == b->gpu_id;
}

static void gate_batches(struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	for (uint32_t first = 0, next; first < count; first = next) {
		struct gp_rm_disable params = { .disable = !open };
		uint32_t channels[GP_WIRE_CHANNEL_MAX];
		int r = 0;

		for (next = first; next < count && gate_goes_together(slots[first], slots[next]); next++) {
			uint32_t n = gp_nvidia_channels(slots[next], channels);

			if (params.count + n > GP_RM_DISABLE_MAX)
				break;
			for (uint32_t i = 0; i < n; i++) {
				params.clients[params.count] = gp_nvidia_group_of(slots[next])->client;
				params.channels[params.count++] = channels[i];
			}
		}
		if (next == first) {
			/* More than one call holds: such a group is left alone. */
			r = -E2BIG;
			next++;
		} else {
			r = gate_call(slots[first], &params);
		}
		for (uint32_t i = first; i < next; i++)
			results[i] = r;
	}
}

void gp_nvidia_change(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	if (!open && count)
		gp_nvidia_probe_preemption(slots[0]);
	if (!open && (mechanism != GP_MECHANISM_CHANNEL || gp_nvidia.refused)) {
		for (uint32_t i = 0; i < count; i++)
			results[i] = -EOPNOTSUPP;
		return;
	}
	/* The daemon would not ask if it could call by itself: its slices come back with its gates. */
	for (uint32_t i = 0; i < count && open && mechanism == GP_MECHANISM_BORROW; i++)
		gp_nvidia_group_of(slots[i])->restore_due = true;
	gate_batches(slots, count, open, results);
	for (uint32_t i = 0; i < count && open; i++)
		if (gp_nvidia_group_of(slots[i])->restore_due && !results[i])
			results[i] = gp_nvidia_slice_restore(slots[i]);
}

void gp_nvidia_enable_one(const struct gp_slot *slot, uint32_t channel)
{
	struct gp_rm_disable params = { .count = 1 };

	params.clients[0] = gp_nvidia_group_of(slot)->client;
	params.channels[0] = channel;
	gate_call(slot, &params);
}

/* The daemon is gone or goes another way. What it closed itself (mechanism borrow) we were not told: every group is
 * enabled. What cannot be done now counts as closed, which the thread tries to open again and again. */
void gp_nvidia_release(void)
{
	bool borrowed = gp_agent.mechanism == GP_MECHANISM_BORROW;

	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];
		struct gp_nvidia_group *group = &gp_nvidia_groups[i];
		int r = 0;

		if (!slot->used || slot->dying)
			continue;
		gp_log3("nvidia: entries that could be followed, that could not: queue", slot->queue_id,
			(int64_t)group->exact_count, (int64_t)group->coarse_count);
		group->restore_due |= borrowed || group->slice_ours;
		if (borrowed)
			gp_nvidia_change(GP_MECHANISM_BORROW, &slot, 1, true, &r);
		else if (group->restore_due)
			r = gp_nvidia_slice_restore(slot);
		/* What is not there any more needs no opening. */
		if (r < 0 && r != -ENOENT && r != -EBADF) {
			slot->closed = true;
			slot->closed_by = GP_MECHANISM_BORROW;
		}
	}
}

void gp_nvidia_recover(void)
{
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		gp_nvidia_groups[i].restore_due = gp_slots[i].used;
}
