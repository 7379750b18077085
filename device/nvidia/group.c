/* SPDX-License-Identifier: MIT */
/*
 * Owns what the daemon does to a borrowed channel group. RM looks up the channels of a DISABLE_CHANNELS call below the
 * clients named beside them, and does not ask on whose file the call came. So the daemon takes a group only after its
 * client has answered on its own file: then the handles can mean nothing but that client's own channels.
 *
 * RM counts disables: a channel that was disabled twice must be enabled twice, and enabling an enabled channel is not
 * saved up. So the daemon disables each channel once at most, whatever happens while its group is closed, and one
 * enable is always enough. That also holds for the agent, which takes over when the daemon dies and does not know what
 * it did.
 */
#include <errno.h>
#include <fcntl.h>
#include <gp_deps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/nvidia/group.h"
#include "lib/closer.h"
#include "lib/aside.h"
#include "lib/living.h"

#define GROUP_SLICE_MAX_US 10000000u /* 10 s: a larger value is not plausible; chosen */

#define GROUP_CLOSES_MAX 64u /* files of one user that are still closing, his connections among them; chosen */

static struct gp_borrow_object group_object(const struct gp_borrow_group *group, uint32_t object)
{
	return (struct gp_borrow_object){ group->fd, group->client, object };
}

/* Once a program was killed, this may be the last reference to its file: then RM ends all of the program's objects
 * within close(), which may take seconds. */
void gp_nvidia_group_free(struct gp_borrow_group *group)
{
	if (group->fd >= 0)
		gp_close_elsewhere(group->fd, group->owner);
	free(group);
}

static int group_look(struct gp_borrow_group *group, const struct gp_nvidia_lender *lender, const char **ret_why)
{
	struct gp_borrow_object tsg = group_object(group, group->group);
	struct gp_borrow_object subdevice = group_object(group, group->subdevice);
	uint32_t number;
	uint64_t us = 0;
	int r;

	*ret_why = "its descriptor is no file of the NVIDIA driver";
	if (!gp_nvidia_is_rm_file(group->fd, lender->by_name))
		return -EBADF;
	*ret_why = "its group does not answer on its file";
	r = gp_borrow_slice_get(&tsg, &us);
	if (!r)
		r = gp_nvidia_group_id(&tsg, &number);
	if (r)
		return r;
	*ret_why = "its group is on another GPU than it says";
	r = gp_nvidia_gpu_id(&subdevice, &number);
	if (r || number != lender->gpu_id)
		return r ? r : -ENODEV;
	/* The slice that the agent read at the start counts: this daemon, or one before it, may have shortened it
	 * since. */
	if (!group->app_us)
		group->app_us = us;
	*ret_why = "its slice makes no sense";
	return group->app_us && group->app_us <= GROUP_SLICE_MAX_US ? 0 : -ERANGE;
}

int gp_nvidia_group_take(const struct gp_wire_group *wire, const struct gp_nvidia_lender *lender,
			 struct gp_borrow_group **ret_group, char *why, size_t why_size)
{
	struct gp_borrow_group *group = calloc(1, sizeof(*group));
	const char *problem = "";
	int r = -EBUSY;

	if (!group) {
		snprintf(why, why_size, "gpreemptd is out of memory");
		return -ENOMEM;
	}
	*group = (struct gp_borrow_group){ .slot = wire->slot,
					   .generation = wire->generation,
					   .owner = lender->owner,
					   .client = wire->client,
					   .subdevice = wire->subdevice,
					   .group = wire->group,
					   .channel_count = wire->channel_count,
					   .app_us = wire->slice_us };
	memcpy(group->channels, wire->channels, sizeof(group->channels));
	if (gp_close_pending_of(lender->owner) < GROUP_CLOSES_MAX)
		r = gp_living_getfd(GP_ASIDE_CLIENT(lender->owner), lender->pid, lender->pidfd, wire->fd);
	group->fd = r < 0 ? -1 : r;
	r = r < 0 ? r : 0;
	if (r == -EBUSY)
		problem = "gpreemptd was lent too many files by its user that do not close";
	else if (r == -EOPNOTSUPP)
		problem = "gpreemptd cannot take its file: its first thread has ended, and Linux is older than 6.9";
	else if (r == -EPERM)
		problem = "gpreemptd may not take its file: CAP_SYS_PTRACE is missing, or a security module forbids it";
	else if (r)
		problem = "gpreemptd cannot take its file";
	else
		r = group_look(group, lender, &problem);
	if (r) {
		snprintf(why, why_size, "%s (%s)", problem, strerror(-r));
		gp_nvidia_group_free(group);
		return r;
	}
	*ret_group = group;
	return 0;
}

int gp_nvidia_group_probe(struct gp_borrow_group *group, const char **ret_found)
{
	static const char *const ways[] = {
		"the GPU puts a program aside when its kernel has ended (preemption mode WFI): long kernels are waited for",
		"the GPU puts a program aside when its running blocks have ended (preemption mode CTA): long ones are waited for",
		"the GPU puts a program aside within an instruction (preemption mode CILP)",
	};
	struct gp_borrow_object subdevice = group_object(group, group->subdevice);
	struct gp_rm_ctxsw_modes modes = { .channel = group->channels[0], .compute = UINT32_MAX };
	int r;

	if (group->probed || !group->channel_count)
		return 0;
	group->probed = true;
	r = gp_borrow_control(&subdevice, GP_RM_CTXSW_MODES, &modes, sizeof(modes));
	if (r == -EINVAL || (!r && modes.compute > GP_RM_PREEMPT_CILP))
		return -EPROTO;
	if (!r)
		*ret_found = ways[modes.compute];
	return 0;
}

static uint64_t group_all(const struct gp_borrow_group *group)
{
	GP_ASSERT(group->channel_count <= GP_WIRE_CHANNEL_MAX);
	return group->channel_count == 64u ? UINT64_MAX : (1ull << group->channel_count) - 1u;
}

static void group_list(struct gp_rm_disable *params, const struct gp_borrow_group *group, uint64_t channels)
{
	for (uint32_t k = 0; k < group->channel_count; k++)
		if (channels >> k & 1u) {
			GP_ASSERT(params->count < GP_RM_DISABLE_MAX); /* group_fit() chose so few groups */
			params->clients[params->count] = group->client;
			params->channels[params->count++] = group->channels[k];
		}
}

static int group_control(const struct gp_borrow_group *group, struct gp_rm_disable *params)
{
	struct gp_borrow_object subdevice = group_object(group, group->subdevice);

	return params->count ? gp_borrow_control(&subdevice, GP_RM_DISABLE_CHANNELS, params, sizeof(*params)) : 0;
}

/* Channels that left the group: the application has disabled them itself, or they end. The daemon takes its own disable
 * back. */
static void group_enable_left(struct gp_borrow_group *group)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < group->left_count; i++) {
		struct gp_rm_disable one = { .count = 1 };
		int r;

		one.clients[0] = group->client;
		one.channels[0] = group->left[i];
		r = group_control(group, &one);
		if (r && r != -ENOENT)
			group->left[count++] = group->left[i];
	}
	group->left_count = count;
}

/* One enable for each of these channels; it changes nothing for an enabled channel. */
static int group_enable(struct gp_borrow_group *group, uint64_t channels)
{
	struct gp_rm_disable params = { 0 };
	int r;

	group_enable_left(group);
	group_list(&params, group, channels);
	r = group_control(group, &params);
	/* A channel that no longer exists makes the call fail for all of them: call for each one separately. */
	for (uint32_t k = 0; r == -ENOENT && k < group->channel_count; k++) {
		struct gp_rm_disable one = { 0 };
		int failed;

		group_list(&one, group, channels & 1ull << k);
		failed = group_control(group, &one);
		if (!failed || failed == -ENOENT)
			group->disabled &= ~(1ull << k);
	}
	if (!r)
		group->disabled &= ~channels;
	else if (r == -ENOENT && !(group->disabled & channels))
		r = 0;
	return r;
}

static void group_open(struct gp_borrow_group *group)
{
	if ((group->closed || group->disabled || group->left_count) && !group_enable(group, group_all(group)))
		group->closed = false;
}

/* One call for these groups, on the file of the first. */
static int group_call(struct gp_borrow_group *const *groups, uint32_t count, bool open)
{
	struct gp_rm_disable params = { .disable = !open };
	int r = 0;

	for (uint32_t i = 0; i < count; i++) {
		/* The caller takes the group for open: perhaps its agent has opened it. First make that certain. */
		if (!open && groups[i]->disabled)
			r = group_enable(groups[i], groups[i]->disabled);
		if (r)
			return r;
		group_list(&params, groups[i], group_all(groups[i]));
	}
	for (uint32_t i = 0; i < count && !open; i++) {
		groups[i]->closed = true;
		groups[i]->disabled = group_all(groups[i]);
	}
	r = group_control(groups[0], &params);
	for (uint32_t i = 0; i < count && !r && open; i++) {
		groups[i]->closed = false;
		groups[i]->disabled = 0;
	}
	return r;
}

/* After a failed close some channels may be disabled: the group is opened, so that it is not half closed. */
static int group_call_one(struct gp_borrow_group *group, bool open)
{
	int r;

	if (open) {
		r = group_enable(group, group_all(group));
		group->closed &= r != 0;
		return r;
	}
	r = group_call(&group, 1, false);
	if (r)
		group_open(group);
	return r;
}

/* The index of a channel in the group; channel_count: it is not in the group. */
static uint32_t group_find(const struct gp_borrow_group *group, uint32_t channel)
{
	uint32_t k = 0;

	while (k < group->channel_count && group->channels[k] != channel)
		k++;
	return k;
}

/* Notes a channel that the daemon has disabled: in the group, or among those that have left it. */
static void group_take_over(struct gp_borrow_group *group, uint32_t channel)
{
	uint32_t k = group_find(group, channel);

	if (k < group->channel_count)
		group->disabled |= 1ull << k;
	else if (group->left_count < GP_WIRE_CHANNEL_MAX)
		group->left[group->left_count++] = channel;
}

int gp_nvidia_group_follow(struct gp_borrow_group *group, const struct gp_borrow_group *before)
{
	struct gp_rm_disable params = { .disable = 1 };
	bool same = before->client == group->client;
	int r;

	group->alone = before->alone;
	group->probed = before->probed;
	group->is_short = before->is_short;
	group->short_us = before->short_us;
	group->closed = before->closed;
	for (uint32_t i = 0; same && i < before->left_count; i++)
		group_take_over(group, before->left[i]);
	for (uint32_t i = 0; same && i < before->channel_count; i++)
		if (before->disabled >> i & 1u)
			group_take_over(group, before->channels[i]);
	group_enable_left(group);
	if (!group->closed) {
		/* A channel that had left the group disabled has come back. */
		return group->disabled ? group_enable(group, group->disabled) : 0;
	}
	group_list(&params, group, group_all(group) & ~group->disabled);
	group->disabled = group_all(group);
	r = group_control(group, &params);
	if (r)
		group_open(group);
	return r;
}

/* How many of these groups go into one call. */
static uint32_t group_fit(struct gp_borrow_group *const *groups, uint32_t count)
{
	uint32_t channels = 0, i;

	for (i = 0; i < count; i++) {
		channels += groups[i]->channel_count;
		if (channels > GP_RM_DISABLE_MAX || (i && (groups[i]->alone || groups[0]->alone)))
			break;
	}
	return i ? i : 1;
}

void gp_nvidia_groups_change(struct gp_borrow_group *const *groups, uint32_t count, bool open, int *results)
{
	uint32_t first, fit, failures;

	for (first = 0; first < count; first += fit) {
		int r;

		fit = group_fit(groups + first, count - first);
		r = fit == 1 ? group_call_one(groups[first], open) : group_call(groups + first, fit, open);
		failures = 0;
		for (uint32_t i = first; i < first + fit; i++) {
			results[i] = r && fit > 1 ? group_call_one(groups[i], open) : r;
			groups[i]->alone |= results[i] && fit > 1;
			failures += results[i] != 0;
		}
		/* Each group could be changed separately, but not together: the daemon calls for each of them
		 * separately from now on. */
		for (uint32_t i = first; r && fit > 1 && !failures && i < first + fit; i++)
			groups[i]->alone = true;
	}
}

int gp_nvidia_group_slice(struct gp_borrow_group *group, uint64_t slice_us)
{
	struct gp_borrow_object tsg = group_object(group, group->group);
	int r;

	group->is_short |= slice_us != 0;
	if (slice_us)
		group->short_us = slice_us;
	r = gp_nvidia_slice_set(&tsg, slice_us ? slice_us : group->app_us);
	if (!r)
		group->is_short = slice_us != 0;
	return r;
}

int gp_nvidia_group_saves(const struct gp_borrow_group *group, uint32_t *ret_saves)
{
	struct gp_borrow_object subdevice = group_object(group, group->subdevice);
	struct gp_rm_ctxsw_stats stats = { .object = group->group };
	int r = gp_borrow_control(&subdevice, GP_RM_CTXSW_STATS, &stats, sizeof(stats));

	if (!r)
		*ret_saves = stats.save;
	return r;
}

void gp_nvidia_group_restore(struct gp_borrow_group *group)
{
	if (group->is_short)
		gp_nvidia_group_slice(group, 0);
	group_open(group);
}
