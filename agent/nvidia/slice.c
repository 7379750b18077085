/* SPDX-License-Identifier: MIT */
/* Slices: how long the GPU runs a group before it looks at others. The agent remembers the application's slice and
 * restores it. */
#include <errno.h>
#include "agent/log.h"
#include "agent/nvidia/nvidia.h"

#define SLICE_US_MAX 10000000u /* 10 s: a larger value is not plausible; chosen */

static int slice_set(const struct gp_slot *slot, uint64_t slice_us)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);

	return gp_nvidia_control(&(struct gp_nvidia_call){ slot->file, group->client, group->group, GP_RM_SLICE_SET,
							   &slice_us, sizeof(slice_us) });
}

int gp_nvidia_slice_get(int fd, const struct gp_slot *slot, uint64_t *ret_slice_us)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	uint64_t slice_us = 0;
	int r = gp_nvidia_control_on(fd, &(struct gp_nvidia_call){ slot->file, group->client, group->group,
								   GP_RM_SLICE_GET, &slice_us, sizeof(slice_us) });

	if (r < 0)
		return r;
	if (!slice_us || slice_us > SLICE_US_MAX)
		return -ERANGE;
	*ret_slice_us = slice_us;
	return 0;
}

int gp_nvidia_slice_restore(struct gp_slot *slot)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	int r = group->has_slice ? slice_set(slot, group->slice_us) : 0;

	if (r < 0)
		return r;
	gp_log2("nvidia: slice restored: queue, us", slot->queue_id, (int64_t)group->slice_us);
	group->slice_ours = 0;
	group->restore_due = false;
	return 0;
}

int gp_nvidia_slice(struct gp_slot *slot, uint64_t slice_us)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	int r;

	/* Restoring is always allowed, also on a driver that the agent has refused since. */
	if (!slice_us)
		return group->slice_ours || group->restore_due ? gp_nvidia_slice_restore(slot) : 0;
	/* Without the application's slice the agent could not restore it. */
	if (gp_agent.mechanism != GP_MECHANISM_CHANNEL || gp_nvidia.refused || !group->has_slice)
		return -EOPNOTSUPP;
	if (slice_us > SLICE_US_MAX)
		return -EINVAL;
	/* Noted first: if this thread ends inside the call, the guard restores the slice. */
	group->restore_due |= !group->slice_ours;
	r = slice_set(slot, slice_us);
	if (r < 0)
		return r;
	group->slice_ours = slice_us;
	group->restore_due = false;
	gp_log2("nvidia: slice: queue, us", slot->queue_id, (int64_t)slice_us);
	return 0;
}

void gp_nvidia_slice_again(struct gp_slot *slot)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);

	if (group->slice_ours)
		slice_set(slot, group->slice_ours);
}
