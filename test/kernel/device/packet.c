// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Packets of compute queues (AQL): what they wait for, what they ask of the model, and the signals that they end with.
 */
#include <linux/uaccess.h>
#include "device.h"
#include "packet.h"

static uint default_us = 20;
module_param(default_us, uint, 0644);
MODULE_PARM_DESC(default_us, "time of one workgroup of a kernel that does not say it");

/* A vendor's barrier waits for a value of one signal. */
static bool soft_value_waits(const struct aql_packet *packet)
{
	const u64 *words = (const u64 *)packet; /* signal, value, mask, condition */
	s64 value, wanted = words[2];

	if (!words[1])
		return false;
	if (copy_from_user_nofault(&value, (void __user *)(words[1] + 8), sizeof(value)))
		return true;
	value &= words[3];
	switch (lower_32_bits(words[4])) {
	case 0: return value != wanted;
	case 1: return value == wanted;
	case 2: return value >= wanted;
	default: return value < wanted;
	}
}

static bool soft_barrier_waits(const struct aql_packet *packet)
{
	const u64 *signals = (const u64 *)packet + 1;
	bool any = false, all = true;
	u32 count = 0;

	for (u32 i = 0; i < 5; i++) {
		s64 value;

		if (!signals[i])
			continue;
		count++;
		if (copy_from_user_nofault(&value, (void __user *)(signals[i] + 8), sizeof(value)) || value > 0)
			all = false;
		else
			any = true;
	}
	if (!count)
		return false;
	return (packet->header & 0xff) == AQL_BARRIER_AND ? !all : !any;
}

/* Of packets that are no kernels. A PM4 buffer is what the runtime does to caches: there are none here. */
bool soft_packet_waits(const struct aql_packet *packet)
{
	if ((packet->header & 0xff) != AQL_VENDOR)
		return soft_barrier_waits(packet);
	return (packet->setup & 0xff) == AMD_BARRIER_VALUE && soft_value_waits(packet);
}

void soft_packet_kernel(const struct aql_packet *packet, struct gp_gpu_kernel *kernel)
{
	u64 groups = 1, size = 1;

	for (u32 i = 0; i < 3; i++) {
		u32 group = packet->workgroup[i] ?: 1, grid = packet->grid[i] ?: 1;

		groups *= DIV_ROUND_UP(grid, group);
		size *= group;
	}
	kernel->workgroups = clamp_t(u64, groups, 1, 1u << 20);
	kernel->waves = clamp_t(u64, DIV_ROUND_UP(size, 64), 1, 16);
	kernel->workgroup_ns = packet->reserved2 && packet->reserved2 < 60ull * NSEC_PER_SEC ? packet->reserved2 :
											       default_us * 1000ull;
	kernel->vgprs = 64;
	kernel->lds_size = min_t(u32, packet->group_size, 65536);
}

u32 soft_signal(u64 signal, u64 end_ns)
{
	u64 mailbox = 0;
	u32 event = 0;
	s64 value;

	if (!signal || get_user(value, (s64 __user *)(signal + 8)))
		return 0;
	put_user(end_ns, (u64 __user *)(signal + 40));
	put_user(value - 1, (s64 __user *)(signal + 8));
	if (get_user(mailbox, (u64 __user *)(signal + 16)) || !mailbox || get_user(event, (u32 __user *)(signal + 24)))
		return 0;
	put_user((u64)event, (u64 __user *)mailbox);
	return event;
}
