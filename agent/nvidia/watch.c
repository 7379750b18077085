/* SPDX-License-Identifier: MIT */
/* Controls of the application's own that touch what the agent changes: slices, and channels that are enabled and
 * disabled. Neither side overrides the other: the application sees its own settings, the gate stays as the daemon
 * ordered it. */
#include <sys/uio.h>
#include "agent/nvidia/capture.h"
#include "agent/sys.h"

/* Whether the driver has answered r to the control, and RM has done it. */
static bool watch_is_done(struct gp_nvidia_capture *call, int r)
{
	return r >= 0 && gp_nvidia_capture_read(&call->body.control, call->at, sizeof(call->body.control)) &&
	       call->body.control.status == GP_RM_OK;
}

/* The application sets the slice of its own group: the agent remembers it, then sets its own slice again. */
static int watch_slice_set(struct gp_nvidia_capture *call)
{
	const struct gp_rm_control wanted = call->body.control;
	struct gp_slot *slot;
	uint64_t slice_us = 0;
	int r;

	gp_agent_lock();
	slot = gp_nvidia_capture_slot(wanted.client, wanted.object);
	if (!slot || wanted.params_size != sizeof(slice_us) ||
	    !gp_nvidia_capture_read(&slice_us, wanted.params, sizeof(slice_us))) {
		gp_agent_unlock();
		return gp_nvidia_capture_forward(call);
	}
	r = gp_nvidia_capture_forward(call);
	if (watch_is_done(call, r)) {
		gp_nvidia_group_of(slot)->slice_us = slice_us;
		gp_nvidia_group_of(slot)->has_slice = true;
		gp_nvidia_slice_again(slot);
		slot->group_due = true;
		gp_link_flush();
	}
	gp_agent_unlock();
	return r;
}

/* The application asks for the slice of its group: it gets what it has set, not the agent's or the daemon's slice. */
static int watch_slice_get(struct gp_nvidia_capture *call)
{
	const struct gp_rm_control wanted = call->body.control;
	struct iovec local, remote;
	struct gp_slot *slot;
	uint64_t slice_us = 0;
	int r = gp_nvidia_capture_forward(call);

	if (wanted.params_size != sizeof(slice_us) || !watch_is_done(call, r))
		return r;
	gp_agent_lock();
	slot = gp_nvidia_capture_slot(wanted.client, wanted.object);
	if (slot && (gp_nvidia_group_of(slot)->slice_ours || gp_agent.mechanism == GP_MECHANISM_BORROW) &&
	    gp_nvidia_group_of(slot)->has_slice)
		slice_us = gp_nvidia_group_of(slot)->slice_us;
	gp_agent_unlock();
	local = (struct iovec){ &slice_us, sizeof(slice_us) };
	remote = (struct iovec){ (void *)(uintptr_t)wanted.params, sizeof(slice_us) };
	if (slice_us)
		gp_sys(SYS_process_vm_writev, gp_sys_self(), (long)&local, 1, (long)&remote, 1, 0);
	return r;
}

/* GPFIFO_SCHEDULE. The first one comes before any kernel of the context, and no gate is closed before that (work.c),
 * because disabling then has no effect. A later one may or may not enable channels that the gate has disabled: the
 * agent enables them, once, and closes the gate anew. */
static int watch_schedule(struct gp_nvidia_capture *call)
{
	const struct gp_rm_control wanted = call->body.control;
	int r = gp_nvidia_capture_forward(call);
	struct gp_slot *slot;

	if (r < 0)
		return r;
	gp_agent_lock();
	slot = gp_nvidia_capture_slot(wanted.client, wanted.object);
	if (slot && slot->closed && slot->closed_by == GP_MECHANISM_CHANNEL)
		gp_nvidia_change(GP_MECHANISM_CHANNEL, &slot, 1, false, &(int){ 0 });
	else if (slot && slot->is_announced && gp_agent.mechanism == GP_MECHANISM_BORROW && gp_gate_is_closed(slot))
		gp_nvidia_queue_renew(slot); /* the daemon's close may no longer hold */
	gp_agent_unlock();
	return r;
}

/* The application disables and enables its own channels: the agent must not enable a channel that the application has
 * disabled. */
static int watch_disable(struct gp_nvidia_capture *call)
{
	const struct gp_rm_control wanted = call->body.control;
	struct gp_rm_disable params = { 0 };
	int r;

	if (wanted.params_size != sizeof(params) || !gp_nvidia_capture_read(&params, wanted.params, sizeof(params)) ||
	    params.count > GP_RM_DISABLE_MAX)
		return gp_nvidia_capture_forward(call);
	gp_agent_lock();
	r = gp_nvidia_capture_forward(call);
	if (watch_is_done(call, r))
		for (uint32_t i = 0; i < params.count; i++) {
			struct gp_nvidia_object *channel = gp_nvidia_object_find(params.clients[i], params.channels[i]);
			struct gp_slot *slot = gp_nvidia_capture_slot(params.clients[i], params.channels[i]);

			if (!channel || (channel->off == (params.disable != 0) && !channel->held))
				continue;
			/* Disabled by both: the agent takes its own disable back, at once or, if that fails, when the
			 * application enables the channel. Enabled by the application alone: the agent's disable is
			 * gone, and the agent disables the channel again. */
			if (!params.disable && !channel->off)
				channel->held = false;
			else if (channel->held && slot && (params.disable || !slot->closed))
				gp_nvidia_enable_one(slot, channel);
			channel->off = params.disable != 0;
			gp_nvidia_queue_changed(slot);
		}
	gp_agent_unlock();
	return r;
}

/* Memory that the program exports to another process or imports from one, through an open file. */
static int watch_share(struct gp_nvidia_capture *call)
{
	const struct gp_rm_control wanted = call->body.control;
	int r = gp_nvidia_capture_forward(call);
	int32_t fd = -1;

	if (!watch_is_done(call, r) || wanted.params_size < sizeof(fd) ||
	    !gp_nvidia_capture_read(&fd, wanted.params, sizeof(fd)) || fd < 0)
		return r;
	gp_agent_lock();
	if (wanted.command == GP_RM_EXPORT_TO_FD)
		gp_share_exported(fd);
	else
		gp_share_imported(fd);
	gp_link_flush();
	gp_agent_unlock();
	return r;
}

int gp_nvidia_watch(struct gp_nvidia_capture *call)
{
	switch (call->body.control.command) {
	case GP_RM_SLICE_SET: return watch_slice_set(call);
	case GP_RM_SLICE_GET: return watch_slice_get(call);
	case GP_RM_GROUP_SCHEDULE:
	case GP_RM_CHANNEL_SCHEDULE: return watch_schedule(call);
	case GP_RM_DISABLE_CHANNELS: return watch_disable(call);
	case GP_RM_EXPORT_TO_FD:
	case GP_RM_IMPORT_FROM_FD: return watch_share(call);
	default: return gp_nvidia_capture_forward(call);
	}
}
