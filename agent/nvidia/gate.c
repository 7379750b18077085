/* SPDX-License-Identifier: MIT */
/*
 * Mechanism channel: RM disables the channels of a group, which also takes it off the GPU, and enables them again. One
 * call carries up to 64 channels; a group's are never split over two calls. RM counts disables, for each channel: a
 * channel that was disabled twice must be enabled twice. So the agent never disables a channel a second time. Enabling
 * an enabled channel changes nothing and is not saved up. So when in doubt the agent enables everything: once is
 * enough.
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
	int fd = call->file == GP_NVIDIA_NONE ? -EBADF : gp_nvidia_file_fd(call->file);

	if (fd >= 0)
		return gp_nvidia_control_on(fd, call);
	return fd == -ENOENT ? -EBADF : fd;
}

/* The channels of a group that the agent may change, in the order of the object table. */
static uint32_t gate_channels(const struct gp_slot *slot, struct gp_nvidia_object **ret_channels)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	uint32_t count = 0;

	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++) {
		struct gp_nvidia_object *object = &gp_nvidia_objects[i];

		if (!object->used || object->client != group->client || object->parent != group->group ||
		    !gp_nvidia_class_is_channel(object->class_id) || object->off || object->going)
			continue;
		if (count < GP_WIRE_CHANNEL_MAX)
			ret_channels[count] = object;
		count++;
	}
	return count;
}

uint32_t gp_nvidia_channels(const struct gp_slot *slot, uint32_t *ret_channels)
{
	struct gp_nvidia_object *channels[GP_WIRE_CHANNEL_MAX];
	uint32_t count = gate_channels(slot, channels);

	for (uint32_t i = 0; i < count && i < GP_WIRE_CHANNEL_MAX; i++)
		ret_channels[i] = channels[i]->handle;
	return count;
}

/* One call: the channels of a few groups. */
struct gate_call {
	const struct gp_slot *slot; /* the call goes to this group's file */
	uint32_t count;
	struct gp_nvidia_object *channels[GP_RM_DISABLE_MAX];
};

/* The agent's number is closed, or that of another file of the driver, which looks the same: that says nothing of the
 * client, and the program may have the right file open. -EBADF: it has not, so the client has ended. */
static int gate_open_elsewhere(const struct gp_nvidia_call *call)
{
	int fd = call->file != GP_NVIDIA_NONE && gp_fd(GP_NVIDIA_FD + call->file) >= 0 ?
			 gp_nvidia_file_other(call->file) :
			 -ENOENT;

	if (fd >= 0)
		return gp_nvidia_control_on(fd, call);
	return fd == -ENOENT ? -EBADF : fd;
}

/* only_held: only channels that the agent may hold disabled. */
static int gate_control(const struct gate_call *call, bool open, bool only_held)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(call->slot);
	struct gp_rm_disable params = { .disable = !open };
	struct gp_nvidia_call control;
	int r;

	for (uint32_t i = 0; i < call->count; i++) {
		if (only_held && !call->channels[i]->held)
			continue;
		params.clients[params.count] = call->channels[i]->client;
		params.channels[params.count++] = call->channels[i]->handle;
	}
	if (!params.count)
		return 0;
	control = (struct gp_nvidia_call){ call->slot->file,       group->client, group->subdevice,
					   GP_RM_DISABLE_CHANNELS, &params,       sizeof(params) };
	r = gp_nvidia_control(&control);
	if (r == -EBADF && open)
		r = gate_open_elsewhere(&control);
	if (r == -EINVAL)
		gp_nvidia_refuse("DISABLE_CHANNELS has another size here");
	for (uint32_t i = 0; i < call->count && (r >= 0 || !open); i++)
		call->channels[i]->held = !open;
	return r;
}

static int gate_call(const struct gate_call *call, bool open)
{
	int r = 0;

	if (open)
		return gate_control(call, true, false);
	/* The caller takes these channels for enabled: first make that certain. */
	r = gate_control(call, true, true);
	if (r >= 0)
		r = gate_control(call, false, false);
	/* RM may have disabled some of them. */
	if (r < 0)
		gate_control(call, true, false);
	return r;
}

/* Two groups go into one call if they have the same RM client and the same GPU. */
static bool gate_goes_together(const struct gp_slot *a, const struct gp_slot *b)
{
	const struct gp_nvidia_group *of_a = gp_nvidia_group_of(a), *of_b = gp_nvidia_group_of(b);

	return of_a->client == of_b->client && a->gpu_id == b->gpu_id;
}

static void gate_batches(struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	for (uint32_t first = 0, next; first < count; first = next) {
		struct gate_call call = { .slot = slots[first] };
		struct gp_nvidia_object *channels[GP_WIRE_CHANNEL_MAX];
		int r = 0;

		for (next = first; next < count && gate_goes_together(slots[first], slots[next]); next++) {
			uint32_t n = gate_channels(slots[next], channels);

			if (call.count + n > GP_RM_DISABLE_MAX)
				break;
			for (uint32_t i = 0; i < n; i++)
				call.channels[call.count++] = channels[i];
		}
		if (next == first) {
			/* The group has more channels than one call holds: the agent leaves it alone. */
			r = -E2BIG;
			next++;
		} else {
			r = gate_call(&call, open);
		}
		for (uint32_t i = first; i < next; i++)
			results[i] = r;
	}
}

void gp_nvidia_close_rest(struct gp_slot *slot)
{
	struct gp_nvidia_object *channels[GP_WIRE_CHANNEL_MAX];
	uint32_t count = gate_channels(slot, channels);
	struct gate_call call = { .slot = slot };
	int r = -E2BIG;

	for (uint32_t i = 0; count <= GP_WIRE_CHANNEL_MAX && i < count; i++)
		if (!channels[i]->held)
			call.channels[call.count++] = channels[i];
	if (count <= GP_WIRE_CHANNEL_MAX)
		r = gate_call(&call, false);
	gp_log3("nvidia: closed again: queue, channels, result", slot->queue_id, call.count, r);
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
	/* With borrow the daemon asks only if it cannot call the driver itself: the agent restores the slices that the
	 * daemon changed with the gates. */
	for (uint32_t i = 0; i < count && open && mechanism == GP_MECHANISM_BORROW; i++)
		gp_nvidia_group_of(slots[i])->restore_due = true;
	gate_batches(slots, count, open, results);
	for (uint32_t i = 0; i < count && open; i++) {
		if (gp_nvidia_group_of(slots[i])->restore_due && !results[i])
			results[i] = gp_nvidia_slice_restore(slots[i]);
		/* Its file is closed, and with it the group has ended: there is nothing to open. */
		if (results[i] == -EBADF)
			results[i] = 0;
	}
}

void gp_nvidia_enable_one(const struct gp_slot *slot, struct gp_nvidia_object *channel)
{
	gate_control(&(struct gate_call){ slot, 1, { channel } }, true, false);
}

/* The daemon has gone, or changes the mechanism. With borrow the agent does not know which gates the daemon has closed
 * itself, so it enables every group. A group that it cannot enable now counts as closed, and the thread tries to open
 * it again and again. */
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
		/* A group or file that no longer exists needs no opening. */
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
