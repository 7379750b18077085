/* SPDX-License-Identifier: MIT */
/* Mechanism update: UPDATE_QUEUE with 0 percent or with what the runtime asked for, one call and one stop of the device
 * for each queue. */
#include <errno.h>
#include <sys/ioctl.h>
#include "agent/kfd/kfd.h"
#include "agent/next.h"

static int update_one(const struct gp_slot *slot, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = slot->ring,
		.queue_id = slot->queue_id,
		.ring_size = slot->ring_size,
		.queue_percentage = percent,
		.queue_priority = 7,
	};
	int fd = gp_kfd_file_fd(slot->file);

	return fd < 0 ? -ENODEV : gp_next_own_ioctl(fd, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

void gp_kfd_update_change(struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	for (uint32_t i = 0; i < count; i++) {
		/* A queue that the runtime itself has stopped (0 percent) needs no call, and stays stopped. */
		bool stopped = !(slots[i]->percent & 0xffu);
		int r = stopped ? 0 : update_one(slots[i], open ? slots[i]->percent : slots[i]->percent & ~0xffu);

		results[i] = r < 0 ? r : 0;
	}
}
