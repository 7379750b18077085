/* SPDX-License-Identifier: MIT */
/*
 * Mechanism self: the agent as debugger of its own process. One call suspends a set of queues, with one stop of each
 * device. The agent takes the debugger's place at the first order. It gives it back when the mechanism changes, at
 * RUNTIME_DISABLE (which would wait for it), when the application wants the place itself, and at exit.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include "agent/fds.h"
#include "agent/kfd/kfd.h"
#include "agent/log.h"
#include "agent/next.h"

static int self_trap(struct gp_kfd_dbg_trap *args)
{
	int fd = gp_kfd_file_any();

	/* The driver finds the process by the memory of the named thread, and the first thread, whose id is the
	 * process's, may have ended. */
	args->pid = (uint32_t)gp_sys_self();
	return fd < 0 ? -ENODEV : gp_next_own_ioctl(fd, GP_KFD_IOC_DBG_TRAP, args);
}

static int self_enable(void)
{
	struct gp_kfd_runtime_info info;
	struct gp_kfd_dbg_trap args = {
		.op = GP_KFD_DBG_ENABLE,
		.enable = { .rinfo_ptr = (uintptr_t)&info, .rinfo_size = sizeof(info) },
	};
	int r, fd;

	if (gp_kfd.debugging)
		return 0;
	if (gp_kfd.foreign || gp_kfd.self_failed ||
	    (gp_kfd.runtime != GP_KFD_RUNTIME_OURS && gp_kfd.runtime != GP_KFD_RUNTIME_THEIRS))
		return -EPERM;
	/* The driver writes to this descriptor: its number must still be the agent's. */
	fd = gp_fd_verified(GP_FD_DEBUG_IN);
	args.enable.dbg_fd = (uint32_t)fd;
	r = fd < 0 ? -EBADF : self_trap(&args);
	gp_log1("self: debugger of ourselves, result", r);
	/* EALREADY: another process has the place (a real debugger, or the daemon). It may become free again. */
	if (r < 0 && r != -EALREADY)
		gp_kfd.self_failed = true;
	gp_kfd.debugging = r >= 0;
	return r < 0 ? r : 0;
}

/* The driver does not suspend a new queue until its EC_QUEUE_NEW is cleared. A snapshot clears it for all queues. */
static int self_acknowledge(struct gp_slot *const *slots, uint32_t count)
{
	static struct gp_kfd_queue_snapshot entries[GP_WIRE_QUEUE_MAX];
	struct gp_kfd_dbg_trap args = {
		.op = GP_KFD_DBG_GET_QUEUE_SNAPSHOT,
		.queue_snapshot = { .exception_mask = GP_KFD_EC_QUEUE_NEW,
				    .snapshot_buf_ptr = (uintptr_t)entries,
				    .num_queues = GP_WIRE_QUEUE_MAX,
				    .entry_size = sizeof(entries[0]) },
	};
	bool any = false;
	int r;

	for (uint32_t i = 0; i < count; i++)
		any |= slots[i]->unacknowledged;
	if (!any)
		return 0;
	r = self_trap(&args);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		gp_slots[i].unacknowledged = false;
	return 0;
}

static int self_result(uint32_t id)
{
	return id & GP_KFD_QUEUE_INVALID ? -EINVAL : id & GP_KFD_QUEUE_ERROR ? -EIO : 0;
}

void gp_kfd_self_change(struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	static uint32_t ids[GP_WIRE_QUEUE_MAX], of[GP_WIRE_QUEUE_MAX];
	struct gp_kfd_dbg_trap args = { .op = open ? GP_KFD_DBG_RESUME_QUEUES : GP_KFD_DBG_SUSPEND_QUEUES };
	int r = self_enable();
	uint32_t n = 0;

	if (r >= 0 && !open)
		r = self_acknowledge(slots, count);
	for (uint32_t i = 0; i < count; i++) {
		results[i] = r < 0 ? r : slots[i]->gws && !open ? -EOPNOTSUPP : 0;
		if (results[i] < 0)
			continue;
		of[n] = i;
		ids[n++] = slots[i]->queue_id;
	}
	if (!n)
		return;
	if (open) {
		args.resume.queue_array_ptr = (uintptr_t)ids;
		args.resume.num_queues = n;
	} else {
		args.suspend.queue_array_ptr = (uintptr_t)ids;
		args.suspend.num_queues = n;
	}
	r = self_trap(&args);
	for (uint32_t i = 0; i < n; i++)
		results[of[i]] = r < 0 ? r : self_result(ids[i]);
}

void gp_kfd_self_release(void)
{
	struct gp_kfd_dbg_trap args = { .op = GP_KFD_DBG_DISABLE };
	bool any = false;
	int r;

	if (!gp_kfd.debugging)
		return;
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		any |= gp_slots[i].used && gp_slots[i].closed && gp_slots[i].closed_by == GP_MECHANISM_SELF;
	/* This call resumes every queue that is still suspended. */
	r = self_trap(&args);
	gp_log1("self: no longer debugger, result", r);
	/* The driver cannot now: they stay suspended, and the agent's thread tries again. EINVAL: there is no debugger.
	 */
	if (any && r < 0 && r != -EINVAL)
		return;
	gp_kfd.debugging = false;
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used && gp_slots[i].closed_by == GP_MECHANISM_SELF) {
			gp_slots[i].closed = false;
			gp_slots[i].closed_by = GP_MECHANISM_NONE;
			gp_page_slot_flags(&gp_slots[i]);
		}
}

void gp_kfd_self_recover(void)
{
	/* If the agent does not have the place, giving it back only fails with an error. */
	gp_kfd.debugging |= gp_agent.mechanism == GP_MECHANISM_SELF;
}
