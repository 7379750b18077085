/* SPDX-License-Identifier: MIT */
/* What a group has to do. */
#include "agent/nvidia/nvidia.h"

void gp_nvidia_sample(struct gp_slot *const *slots, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		slots[i]->unreadable = true;
}
