/* SPDX-License-Identifier: MIT */
/*
 * Doorbells that do not pass the runtime's table: ROCr rings its own queues (copies, cache maintenance) itself. While
 * such a queue is idle, its doorbell signal points at a page of the agent's that is write-protected (userfaultfd). A
 * thread that rings stops there, until the agent's thread has put the real doorbell back, has rung it and lets that
 * thread go on. So the agent need not sample the queue meanwhile, and may close its gate.
 *
 * AMD's signal (amd_hsa_signal.h): kind at 0, negative for a doorbell; hardware_doorbell_ptr at 8; queue_ptr at 48. A
 * thread that found the agent's page in the signal had written its packet and its write index before that. So the agent
 * restores the pointer, makes all threads pass a fence, and rings for the write index it reads then: that covers every
 * store that went to the page.
 *
 * The agent's lock guards everything here. Traps exist only while the agent is linked: whatever ends the link puts all
 * doorbells back. If the agent's descriptor is closed, the kernel lets all stopped threads go on.
 */
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "agent/fds.h"
#include "agent/kfd/kfd.h"
#include "agent/log.h"
#include "agent/sys.h"

#define TRAP_SIZE        (GP_WIRE_QUEUE_MAX * sizeof(uint64_t)) /* a word for each slot */
#define TRAP_QUEUE_BELL  16u                                    /* amd_queue_t: the handle of its doorbell signal … */
#define TRAP_QUEUE_WRITE 56u                                    /* … and its write index */
#define TRAP_SIGNAL_PTR  8u
#define TRAP_SIGNAL_BACK 48u
#define TRAP_USER_ONLY   1 /* UFFD_USER_MODE_ONLY: allowed to a user without privileges */

static struct {
	uint64_t *page;
	uint32_t count;    /* doorbells that point at it */
	bool is_protected; /* a thread that writes to the page stops */
	bool failed;       /* this kernel, or a filter, does not allow traps */
} trap;

static bool trap_fence(void)
{
	return !gp_sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

static bool trap_protect(bool on)
{
	struct uffdio_writeprotect change = { .range = { (uintptr_t)trap.page, TRAP_SIZE },
					      .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0 };

	trap.is_protected = on && !gp_sys(SYS_ioctl, gp_fd_verified(GP_FD_TRAP), UFFDIO_WRITEPROTECT, (long)&change);
	if (!on && gp_sys(SYS_ioctl, gp_fd_verified(GP_FD_TRAP), UFFDIO_WRITEPROTECT, (long)&change))
		gp_fd_drop(GP_FD_TRAP); /* closing it lets all stopped threads go on */
	return trap.is_protected;
}

static bool trap_init(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register range = { .range = { 0, TRAP_SIZE }, .mode = UFFDIO_REGISTER_MODE_WP };
	long at, fd;

	if (trap.failed || gp_fd_verified(GP_FD_TRAP) >= 0)
		return !trap.failed;
	if (!gp_fds_are_enough())
		return false;
	trap.failed = true;
	if (!trap.page) {
		at = gp_sys(SYS_mmap, 0, TRAP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at < 0 && at > -4096)
			return false;
		trap.page = (uint64_t *)at;
	}
	fd = gp_sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | TRAP_USER_ONLY);
	if (fd < 0 || gp_fd_take(GP_FD_TRAP, (int)fd) < 0)
		return false;
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i++)
		__atomic_store_n(&trap.page[i], 0, __ATOMIC_RELAXED); /* the kernel protects only present pages */
	range.range.start = (uintptr_t)trap.page;
	if (gp_sys(SYS_ioctl, gp_fd(GP_FD_TRAP), UFFDIO_API, (long)&api) ||
	    gp_sys(SYS_ioctl, gp_fd(GP_FD_TRAP), UFFDIO_REGISTER, (long)&range) || !trap_fence()) {
		gp_fd_drop(GP_FD_TRAP);
		gp_log("trap: not possible here; the runtime's own queues are not seen");
		return false;
	}
	trap.failed = false;
	return true;
}

/* A filter may forbid every way of reading that cannot fault. The agent must put the doorbell of a watched queue back
 * all the same: a thread that rings the page later would wait for ever. So the agent then reads mapped memory directly.
 */
static void trap_read(struct gp_sys_range *ranges, uint32_t count, bool is_watched)
{
	uint64_t page = ~(uint64_t)4095, own = 0, copy;
	struct gp_sys_range probe = { (uintptr_t)&own, &copy, sizeof(copy), false };
	uint8_t there;

	gp_sys_read(ranges, count);
	for (uint32_t i = 0; i < count; i++) {
		if (ranges[i].ok || !is_watched)
			continue;
		gp_sys_read(&probe, 1);
		if (probe.ok)
			return; /* safe reads are allowed: this address is not readable */
		if (ranges[i].address < 4096u ||
		    gp_sys(SYS_mincore, ranges[i].address & page, 4096, (long)&there) == -ENOMEM)
			continue; /* not mapped; if a filter forbids mincore too, the address counts as mapped */
		memcpy(ranges[i].into, (const void *)(uintptr_t)ranges[i].address, ranges[i].size);
		ranges[i].ok = true;
	}
}

/* The address of the doorbell's pointer in the queue's signal; NULL: queue or signal are not as the agent expects them.
 */
static uint64_t *trap_place(const struct gp_slot *slot)
{
	uint64_t key = gp_slot_doorbell(slot)->key, signal = 0, back = 0;
	int64_t kind = 0;
	struct gp_sys_range first = { key + TRAP_QUEUE_BELL, &signal, sizeof(signal), false };
	struct gp_sys_range ranges[2];

	if (!key || slot->format != GP_KFD_AQL)
		return NULL;
	trap_read(&first, 1, slot->watched);
	if (!first.ok || !signal || signal % 64u)
		return NULL;
	ranges[0] = (struct gp_sys_range){ signal, &kind, sizeof(kind), false };
	ranges[1] = (struct gp_sys_range){ signal + TRAP_SIGNAL_BACK, &back, sizeof(back), false };
	trap_read(ranges, 2, slot->watched);
	return ranges[0].ok && ranges[1].ok && kind == -1 && back == key ? (uint64_t *)(signal + TRAP_SIGNAL_PTR) :
									   NULL;
}

static void trap_put_back(struct gp_slot *slot)
{
	uint64_t *place = trap_place(slot), ours = (uintptr_t)&trap.page[gp_slot_index(slot)];

	slot->watched = slot->seen = false;
	slot->change_due = true;
	slot->watch_ns = 0;
	trap.count--;
	if (place)
		__atomic_compare_exchange_n(place, &ours, slot->doorbell_ptr, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
}

/* Rings the real doorbell for what the program rang on the agent's page. */
static void trap_ring(const struct gp_slot *slot)
{
	uint64_t key = gp_slot_doorbell(slot)->key, written = 0, read = 0;
	struct gp_sys_range ranges[2] = { { slot->read_pointer, &read, sizeof(read), false },
					  { key + TRAP_QUEUE_WRITE, &written, sizeof(written), false } };

	trap_read(ranges, 2, true); /* the queue was watched until now */
	if (ranges[0].ok && ranges[1].ok && written > read)
		__atomic_store_n((uint64_t *)(uintptr_t)slot->doorbell_ptr, written - 1u, __ATOMIC_RELEASE);
}

static void trap_release(struct gp_slot *const *slots, uint32_t count)
{
	if (!count)
		return;
	for (uint32_t i = 0; i < count; i++)
		trap_put_back(slots[i]);
	trap_fence();
	for (uint32_t i = 0; i < count; i++)
		trap_ring(slots[i]);
	/* A thread that read the pointer to the page before may write to the page later: it must not stop then. */
	if (!trap.count && trap.is_protected)
		trap_protect(false);
}

void gp_kfd_trap_off(void)
{
	static struct gp_slot *slots[GP_WIRE_QUEUE_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; trap.count && i < gp_slot_limit(); i++)
		if (gp_slots[i].used && gp_slots[i].watched)
			slots[count++] = &gp_slots[i];
	trap_release(slots, count);
	if (trap.is_protected)
		trap_protect(false);
}

bool gp_kfd_trap(struct gp_slot *slot, bool on)
{
	uint64_t *place;

	if (!on) {
		if (slot->watched)
			trap_release(&slot, 1);
		return true;
	}
	if (slot->watched)
		return true;
	place = gp_agent.hooked && trap_init() ? trap_place(slot) : NULL;
	if (!place || (!trap.is_protected && !trap_protect(true)))
		return false;
	slot->doorbell_ptr = __atomic_load_n(place, __ATOMIC_RELAXED);
	if (!slot->doorbell_ptr || slot->doorbell_ptr % sizeof(uint64_t))
		return false;
	slot->watched = true;
	trap.count++;
	__atomic_store_n(place, (uintptr_t)&trap.page[gp_slot_index(slot)], __ATOMIC_SEQ_CST);
	if (trap_fence())
		return true;
	trap_release(&slot, 1);
	return false;
}

/* A thread has stopped at the page. Which thread and which queue does not matter: the agent puts all doorbells back,
 * and watches the queues that are still idle again later. */
void gp_kfd_trap_sprung(void)
{
	struct uffd_msg message;
	bool any;
	long got;

	/* If the application has closed the descriptor by a system call of its own, doorbells since then have reached
	 * no queue. */
	any = trap.failed = gp_fd_verified(GP_FD_TRAP) < 0;
	while ((got = gp_sys(SYS_read, gp_fd_verified(GP_FD_TRAP), (long)&message, sizeof(message))) == sizeof(message))
		any = true;
	/* Only EAGAIN shows that no thread waits; the error of a filter that forbids reading does not. */
	if (!any && got == -EAGAIN)
		return;
	gp_kfd_trap_off();
	if (trap.failed)
		gp_fd_drop(GP_FD_TRAP);
	__atomic_store_n(&gp_agent.sync_due, true, __ATOMIC_RELEASE);
}

void gp_kfd_trap_forget(void)
{
	trap.count = 0;
	trap.failed = trap.is_protected = false;
}
