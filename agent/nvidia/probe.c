/* SPDX-License-Identifier: MIT */
/* Whether the agent knows this driver's calls: asked once, at the first queue, by questions that change nothing. The
 * agent leaves a driver alone whose answers do not fit. */
#include <errno.h>
#include <string.h>
#include "agent/file.h"
#include "agent/log.h"
#include "agent/nvidia/nvidia.h"

#define PROBE_GROUP_MAX 0xffffu /* the largest valid number of a group in hardware; 4096 on the largest known */

/* The runtime's name for people: "CUDA, RM 580.159.04", and why the agent leaves it alone. */
static void probe_name(void)
{
	const char *parts[] = { "CUDA, RM ", gp_nvidia.version[0] ? gp_nvidia.version : "?",
				gp_nvidia.refused ? ": " : "", gp_nvidia.refused ? gp_nvidia.refused : "" };
	char text[GP_WIRE_TEXT_SIZE];
	uint32_t at = 0;

	for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (const char *c = parts[i]; *c && at < sizeof(text) - 1u; c++)
			text[at++] = *c;
	text[at] = 0;
	gp_attr_name(gp_agent.runtime, text);
}

/* The first number with a point in it: "… for x86_64  580.159.04  Release Build". */
static void probe_version(void)
{
	char text[256];
	uint32_t length = 0;

	if (gp_nvidia.version[0])
		return;
	gp_sys_file_read("/proc/driver/nvidia/version", text, sizeof(text));
	for (const char *c = text; *c; c += length ? length : 1u) {
		length = (uint32_t)strspn(c, "0123456789.");
		if (length < 3u || length >= sizeof(gp_nvidia.version) || !memchr(c, '.', length) ||
		    (c > text && c[-1] != ' '))
			continue;
		memcpy(gp_nvidia.version, c, length);
		gp_nvidia.version[length] = 0;
		return;
	}
}

void gp_nvidia_refuse(const char *why)
{
	if (gp_nvidia.refused)
		return;
	gp_nvidia.refused = why;
	gp_log("nvidia: this driver is left alone, because:");
	gp_log(why);
	probe_name();
	gp_nvidia.refused_due = true;
	gp_thread_wake();
}

/* The daemon may have been told of this driver before the agent refused it: the agent reconnects. That gives all gates
 * and slices back, and HELLO then carries the reason. Not at once in gp_nvidia_refuse(): orders are being carried out
 * there. */
void gp_nvidia_refused_tidy(void)
{
	if (gp_nvidia.refused_due)
		gp_link_down("nvidia: the daemon is told why this driver is left alone");
	gp_nvidia.refused_due = false;
}

void gp_nvidia_probe(int fd, const struct gp_slot *slot)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	uint32_t number = UINT32_MAX;
	int r;

	if (gp_nvidia.probed)
		return;
	gp_nvidia.probed = true;
	probe_version();
	probe_name();
	if (!group->has_slice)
		gp_nvidia_refuse("GET_TIMESLICE does not answer as expected");
	r = gp_nvidia_control_on(fd, &(struct gp_nvidia_call){ slot->file, group->client, group->group,
							       GP_RM_GROUP_INFO, &number, sizeof(number) });
	if (r < 0 || number > PROBE_GROUP_MAX)
		gp_nvidia_refuse("GET_INFO does not answer as expected");
	gp_log2("nvidia: probe: slice us, group", (int64_t)group->slice_us, number);
}

void gp_nvidia_probe_preemption(const struct gp_slot *slot)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	struct gp_rm_ctxsw_modes modes = { .compute = UINT32_MAX };
	uint32_t channels[GP_WIRE_CHANNEL_MAX];
	int r;

	if (gp_nvidia.preemption_asked || !gp_nvidia_channels(slot, channels))
		return;
	gp_nvidia.preemption_asked = true;
	modes.channel = channels[0];
	r = gp_nvidia_control(&(struct gp_nvidia_call){ slot->file, group->client, group->subdevice, GP_RM_CTXSW_MODES,
							&modes, sizeof(modes) });
	/* The mode goes to the log. Only an answer of another shape is a reason to refuse the driver. */
	if (r == -EINVAL || (r == 0 && modes.compute > GP_RM_PREEMPT_CILP))
		gp_nvidia_refuse("GR_GET_CTXSW_MODES does not answer as expected");
	gp_log1("nvidia: compute preemption", r < 0 ? r : (int64_t)modes.compute);
}
