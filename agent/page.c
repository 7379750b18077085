/* SPDX-License-Identifier: MIT */
/* The shared page. Its address never changes: application threads store to it without a lock. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/sys.h"

struct gp_page *gp_page_now;

int gp_page_reserve(void)
{
	long at;

	if (gp_page_now)
		return 0;
	at = gp_sys(SYS_mmap, 0, sizeof(struct gp_page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at < 0 && at > -4096)
		return (int)at;
	gp_page_now = (struct gp_page *)at;
	return 0;
}

void gp_page_unmap(void)
{
	if (gp_page_now)
		gp_sys(SYS_mmap, (long)gp_page_now, sizeof(struct gp_page), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The daemon may be hostile: if the file could shrink, the application would get a SIGBUS. */
int gp_page_map(int fd)
{
	uint32_t head[4];
	long r;

	if (gp_sys(SYS_lseek, fd, 0, SEEK_END) < (long)sizeof(struct gp_page))
		return -EPROTO;
	r = gp_sys(SYS_fcntl, fd, F_GET_SEALS);
	if (r < 0 || !(r & F_SEAL_SHRINK))
		return -EPROTO;
	if (gp_sys(SYS_pread64, fd, (long)head, sizeof(head), 0) != (long)sizeof(head))
		return -EPROTO;
	if (head[0] != GP_PAGE_MAGIC || head[1] < GP_WIRE_VERSION_MIN || head[1] > GP_WIRE_VERSION ||
	    head[2] != GP_WIRE_QUEUE_MAX)
		return -EPROTO;
	r = gp_page_reserve();
	if (r < 0)
		return (int)r;
	r = gp_sys(SYS_mmap, (long)gp_page_now, sizeof(struct gp_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		   fd, 0);
	return r < 0 && r > -4096 ? (int)r : 0;
}

void gp_page_slot_init(const struct gp_slot *slot)
{
	struct gp_page_queue *queue = &gp_page_now->queues[gp_slot_index(slot)];

	__atomic_store_n(&queue->armed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->held, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->doorbell, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->owned, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->written, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->completed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->generation, slot->generation, __ATOMIC_RELEASE);
	gp_page_slot_flags(slot);
}

void gp_page_slot_flags(const struct gp_slot *slot)
{
	struct gp_page_queue *queue = &gp_page_now->queues[gp_slot_index(slot)];

	__atomic_store_n(&queue->flags, (slot->blocked ? GP_PAGE_BLOCKED : 0) | (slot->closed ? GP_PAGE_CLOSED : 0),
			 __ATOMIC_RELEASE);
}
