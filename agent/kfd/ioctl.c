/* SPDX-License-Identifier: MIT */
/*
 * ioctl() between the application and /dev/kfd. The agent looks at calls that concern queues; all others pass at the
 * cost of one comparison. The application sees the results and the errno it would have seen without the agent.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include "agent/driver.h"
#include "agent/fds.h"
#include "agent/kfd/kfd.h"
#include "agent/log.h"
#include "agent/next.h"
#include "agent/sys.h"

#define IOCTL_NORMAL_PRIORITY 7u
#define IOCTL_RUNTIME_WAIT_MS 100u  /* docs/protocol.md: how long RUNTIME_DISABLE waits at most for the daemon */
#define IOCTL_SIZE_MAX        256u  /* of a request's structure; the largest today has 96 */
#define IOCTL_QUEUE_MAX       1024u /* ids of a process: KFD's bitmap */

struct gp_kfd gp_kfd;

static uint32_t ioctl_mechanisms(void)
{
	uint32_t bits = GP_MECHANISM_BIT(GP_MECHANISM_UPDATE);

	if (gp_kfd.userq_count)
		return GP_MECHANISM_BIT(GP_MECHANISM_USERQ);
	if (gp_agent.hooked)
		bits |= GP_MECHANISM_BIT(GP_MECHANISM_SUBMIT);
	if ((gp_kfd.runtime == GP_KFD_RUNTIME_OURS || gp_kfd.runtime == GP_KFD_RUNTIME_THEIRS) && gp_kfd.minor >= 13u &&
	    !gp_kfd.self_failed && !gp_kfd.foreign)
		bits |= GP_MECHANISM_BIT(GP_MECHANISM_SELF);
	return bits;
}

static void ioctl_change(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	switch (mechanism) {
	case GP_MECHANISM_SELF: gp_kfd_self_change(slots, count, open, results); break;
	case GP_MECHANISM_UPDATE: gp_kfd_update_change(slots, count, open, results); break;
	case GP_MECHANISM_USERQ:
	case GP_MECHANISM_SUBMIT: gp_kfd_submit_change(slots, count, open, results); break;
	default:
		for (uint32_t i = 0; i < count; i++)
			results[i] = -EOPNOTSUPP;
	}
}

static void ioctl_release(void)
{
	gp_kfd_trap_off();
	gp_kfd_self_release();
}

const struct gp_driver gp_kfd_driver = {
	.mechanisms = ioctl_mechanisms,
	.change = ioctl_change,
	.release = ioctl_release,
	.recover = gp_kfd_self_recover,
	.sample = gp_kfd_sample,
	.watch = gp_kfd_trap,
	.noticed = gp_kfd_trap_sprung,
};

/* Lock held. Whether fd is KFD with major version 1; asked once. Other drivers use the letter K too. */
static bool ioctl_is_kfd(int fd)
{
	struct kfd_ioctl_get_version_args version = { 0 };

	if (gp_agent.driver)
		return gp_agent.driver == &gp_kfd_driver;
	if (gp_next_own_ioctl(fd, AMDKFD_IOC_GET_VERSION, &version) < 0 || version.major_version != GP_KFD_MAJOR)
		return false;
	gp_kfd.minor = version.minor_version;
	gp_agent.driver = &gp_kfd_driver;
	gp_log2("kfd: version", version.major_version, version.minor_version);
	return true;
}

/* Lock held. The driver allows a process to be debugged only if this call came before its first queue. */
static void ioctl_runtime_enable(int fd)
{
	struct gp_kfd_runtime_enable args = { .mode_mask = GP_KFD_RUNTIME_MODE_ENABLE };
	int r;

	if (gp_kfd.runtime != GP_KFD_RUNTIME_OFF)
		return;
	r = gp_next_own_ioctl(fd, GP_KFD_IOC_RUNTIME_ENABLE, &args);
	gp_log1("kfd: RUNTIME_ENABLE of ours, result", r);
	gp_kfd.runtime = r >= 0 ? GP_KFD_RUNTIME_OURS : r == -EBUSY ? GP_KFD_RUNTIME_THEIRS : GP_KFD_RUNTIME_FAILED;
	gp_agent.runtime_enabled = gp_kfd.runtime != GP_KFD_RUNTIME_FAILED;
}

static enum gp_kfd_format ioctl_format(uint32_t type)
{
	if (type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
		return GP_KFD_AQL;
	return type == KFD_IOC_QUEUE_TYPE_COMPUTE ? GP_KFD_PM4 : GP_KFD_SDMA;
}

/* Lock held. The agent leaves a queue alone that it cannot keep track of: its gate stays open. */
static void ioctl_add(int fd, const struct kfd_ioctl_create_queue_args *args, uint32_t hw_priority)
{
	bool aql = args->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	struct gp_slot *slot;
	uint32_t file;

	if (gp_page_reserve() < 0 || args->queue_id >= IOCTL_QUEUE_MAX)
		return;
	file = gp_kfd_file_add(fd);
	if (file == GP_KFD_NONE)
		return;
	/* The key is an AQL queue's address in the runtime: amd_queue_t has its read index at 128. */
	slot = gp_slot_add(aql && args->read_pointer_address > 128u ? args->read_pointer_address - 128u : 0);
	if (!slot) {
		gp_kfd_file_release(file);
		return;
	}
	slot->file = file;
	slot->unacknowledged = true;
	slot->format = ioctl_format(args->queue_type);
	slot->is_copy = slot->format == GP_KFD_SDMA;
	slot->gpu_id = args->gpu_id;
	slot->queue_id = args->queue_id;
	slot->percent = args->queue_percentage;
	slot->hw_priority = hw_priority;
	slot->ring = args->ring_base_address;
	slot->ring_size = args->ring_size;
	slot->write_pointer = args->write_pointer_address;
	slot->read_pointer = args->read_pointer_address;
	gp_page_slot_init(slot);
	gp_log3("kfd: queue, type, slot", slot->queue_id, args->queue_type, gp_slot_index(slot));
	gp_link_flush();
}

static int ioctl_create(int fd, unsigned long request, struct kfd_ioctl_create_queue_args *args)
{
	uint32_t hw_priority = args->queue_priority;
	bool kfd;
	int r;

	gp_agent_lock();
	kfd = ioctl_is_kfd(fd);
	if (kfd)
		ioctl_runtime_enable(fd);
	gp_agent_unlock();
	if (!kfd || hw_priority > 15u)
		return gp_next_ioctl(fd, request, args);
	args->queue_priority = IOCTL_NORMAL_PRIORITY;
	r = gp_next_ioctl(fd, request, args);
	args->queue_priority = hw_priority;
	if (r < 0)
		return r;
	gp_agent_lock();
	ioctl_add(fd, args, hw_priority);
	gp_agent_unlock();
	gp_agent_start();
	gp_thread_wake();
	return r;
}

/* The runtime's change and the agent's gate, in one call: ring, size and share as the runtime wants them, the gate as
 * the agent has it, the hardware's priority normal. The agent skips a call that would change nothing but that priority:
 * it would stop the whole device. It only reads the application's structure, which may be constant. */
static int ioctl_update(int fd, unsigned long request, struct kfd_ioctl_update_queue_args *args)
{
	_Alignas(8) uint8_t copy[IOCTL_SIZE_MAX];
	struct kfd_ioctl_update_queue_args *merged = (void *)copy;
	const struct kfd_ioctl_update_queue_args wanted = *args;
	struct gp_slot *slot;
	int r = 0;

	gp_agent_lock();
	slot = gp_agent.driver ? gp_slot_find(gp_kfd_file_find(fd), wanted.queue_id) : NULL;
	if (!slot || wanted.queue_priority > 15u) {
		gp_agent_unlock();
		return gp_next_ioctl(fd, request, args);
	}
	memcpy(copy, args, _IOC_SIZE(request));
	merged->queue_priority = IOCTL_NORMAL_PRIORITY;
	if (slot->closed && slot->closed_by == GP_MECHANISM_UPDATE)
		merged->queue_percentage &= ~0xffu;
	if (wanted.ring_base_address != slot->ring || wanted.ring_size != slot->ring_size ||
	    wanted.queue_percentage != slot->percent)
		r = gp_next_ioctl(fd, request, merged);
	if (r >= 0) {
		slot->ring = wanted.ring_base_address;
		slot->ring_size = wanted.ring_size;
		slot->percent = wanted.queue_percentage;
		slot->change_due |= slot->hw_priority != wanted.queue_priority;
		slot->hw_priority = wanted.queue_priority;
		gp_link_flush();
		gp_thread_wake();
	}
	gp_agent_unlock();
	return r;
}

void gp_kfd_slot_leave(struct gp_slot *slot)
{
	/* The driver destroys a suspended queue only after it is resumed. */
	gp_gate_open_slot(slot);
	gp_kfd_trap(slot, false);
	slot->dying = true;
	gp_link_remove(slot);
}

void gp_kfd_slot_left(struct gp_slot *slot, bool gone)
{
	slot->dying = false;
	if (gone) {
		uint32_t file = slot->file;

		gp_slot_free(slot);
		if (file != GP_KFD_NONE)
			gp_kfd_file_release(file);
		return;
	}
	/* The queue still exists: announce it to the daemon as a new one. */
	slot->generation++;
	gp_page_slot_init(slot);
	gp_link_flush();
}

static int ioctl_destroy(int fd, unsigned long request, struct kfd_ioctl_destroy_queue_args *args)
{
	struct gp_slot *slot;
	int r;

	gp_agent_lock();
	slot = gp_agent.driver ? gp_slot_find(gp_kfd_file_find(fd), args->queue_id) : NULL;
	if (slot)
		gp_kfd_slot_leave(slot);
	gp_agent_unlock();
	if (!slot)
		return gp_next_ioctl(fd, request, args);
	gp_gate_delivered();
	r = gp_next_ioctl(fd, request, args);
	gp_agent_lock();
	gp_log2("kfd: queue destroyed, result", args->queue_id, r);
	gp_kfd_slot_left(slot, r >= 0);
	gp_agent_unlock();
	gp_thread_wake();
	return r;
}

/* Lock held. */
static void ioctl_runtime_tell(uint32_t enable)
{
	struct gp_wire_runtime message = { { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_RUNTIME, sizeof(message), 0 },
					   enable,
					   0 };

	if (gp_agent.link == GP_LINK_UP)
		gp_link_send(&message, sizeof(message));
}

/* The application's runtime wants RUNTIME_ENABLE for itself: the agent gives its own back first. */
static int ioctl_runtime_on(int fd, unsigned long request, void *arg)
{
	struct gp_kfd_runtime_enable off = { 0 };
	int r;

	gp_agent_lock();
	if (gp_kfd.runtime == GP_KFD_RUNTIME_OURS) {
		if (gp_slot_limit()) {
			/* The driver's answer when queues exist. */
			gp_agent_unlock();
			errno = EEXIST;
			return -1;
		}
		gp_kfd_self_release();
		gp_next_own_ioctl(fd, GP_KFD_IOC_RUNTIME_ENABLE, &off);
		gp_kfd.runtime = GP_KFD_RUNTIME_OFF;
	}
	gp_agent_unlock();
	r = gp_next_ioctl(fd, request, arg);
	gp_agent_lock();
	if (r >= 0)
		gp_kfd.runtime = GP_KFD_RUNTIME_THEIRS;
	gp_agent.runtime_enabled = r >= 0;
	if (r >= 0)
		ioctl_runtime_tell(1);
	gp_agent_unlock();
	return r;
}

/* If the daemon is debugger, it must end that role first, or the call would wait for it. The agent's thread reads the
 * daemon's answer from the socket meanwhile. */
static void ioctl_runtime_wait(void)
{
	struct timespec pause = { 0, 1000000 };

	for (uint32_t i = 0; i < IOCTL_RUNTIME_WAIT_MS && __atomic_load_n(&gp_agent.runtime_asked, __ATOMIC_ACQUIRE);
	     i++)
		gp_sys(SYS_nanosleep, (long)&pause, 0);
}

static int ioctl_runtime_off(int fd, unsigned long request, void *arg)
{
	enum gp_kfd_runtime before;
	int r;

	gp_agent_lock();
	before = gp_kfd.runtime;
	gp_kfd.runtime = GP_KFD_RUNTIME_ENDING;
	if (gp_agent.driver) {
		gp_gates_open(GP_LOST_RUNTIME);
		gp_kfd_self_release();
	}
	gp_agent.runtime_asked = gp_agent.link == GP_LINK_UP && gp_agent.mechanism == GP_MECHANISM_DEBUGGER;
	ioctl_runtime_tell(0);
	gp_agent_unlock();
	ioctl_runtime_wait();
	r = gp_next_ioctl(fd, request, arg);
	gp_agent_lock();
	gp_agent.runtime_asked = false;
	gp_kfd.runtime = r >= 0 ? GP_KFD_RUNTIME_OFF : before;
	gp_agent.runtime_enabled = r < 0;
	gp_agent_unlock();
	return r;
}

static int ioctl_runtime(int fd, unsigned long request, struct gp_kfd_runtime_enable *args)
{
	return args->mode_mask & GP_KFD_RUNTIME_MODE_ENABLE ? ioctl_runtime_on(fd, request, args) :
							      ioctl_runtime_off(fd, request, args);
}

/* The application becomes debugger of itself (ROCr 6.4 does, to write a core file of a queue that failed): the
 * debugger's place is the application's until it gives it back. */
static int ioctl_trap(int fd, unsigned long request, struct gp_kfd_dbg_trap *args)
{
	uint32_t op = args->op;
	bool ourselves;
	int r;

	gp_agent_lock();
	ourselves = gp_agent.driver && args->pid == (uint32_t)gp_agent.pid;
	if (ourselves && op == GP_KFD_DBG_ENABLE) {
		gp_gates_open(GP_LOST_RUNTIME);
		gp_kfd_self_release();
		gp_kfd.foreign = true;
	}
	gp_agent_unlock();
	r = gp_next_ioctl(fd, request, args);
	if (ourselves && (op == GP_KFD_DBG_ENABLE ? r < 0 : op == GP_KFD_DBG_DISABLE && r >= 0)) {
		gp_agent_lock();
		gp_kfd.foreign = false;
		/* The application may or may not have cleared EC_QUEUE_NEW: the agent clears it again. */
		for (uint32_t i = 0; i < gp_slot_limit(); i++)
			gp_slots[i].unacknowledged = true;
		gp_agent_unlock();
	}
	return r;
}

static int ioctl_gws(int fd, unsigned long request, struct kfd_ioctl_alloc_queue_gws_args *args)
{
	int r = gp_next_ioctl(fd, request, args);
	struct gp_slot *slot;

	if (r < 0)
		return r;
	gp_agent_lock();
	slot = gp_agent.driver ? gp_slot_find(gp_kfd_file_find(fd), args->queue_id) : NULL;
	if (slot) {
		slot->gws = args->num_gws != 0;
		slot->change_due = true;
		gp_link_flush();
	}
	gp_agent_unlock();
	return r;
}

/* Memory that the program exports to another process or imports from one: processes that wait for each other belong
 * together. */
static int ioctl_share(int fd, unsigned long request, const void *arg)
{
	const struct kfd_ioctl_alloc_memory_of_gpu_args *memory = arg;
	const uint32_t *key = NULL;
	uint64_t words[2], address = 0;
	int r;

	if (_IOC_NR(request) == _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU) &&
	    memory->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		address = memory->mmap_offset; /* the address of the program's own pages */
	r = gp_next_ioctl(fd, request, (void *)(uintptr_t)arg);
	if (r < 0 || (_IOC_NR(request) == _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU) && !address))
		return r;
	gp_agent_lock();
	if (!ioctl_is_kfd(fd)) {
		gp_agent_unlock();
		return r;
	}
	switch (_IOC_NR(request)) {
	case GP_KFD_NR_IPC_EXPORT: key = ((const struct gp_kfd_ipc_export *)arg)->key; break;
	case GP_KFD_NR_IPC_IMPORT: key = ((const struct gp_kfd_ipc_import *)arg)->key; break;
	case GP_KFD_NR_EXPORT_DMABUF: gp_share_add_file((int)((const struct gp_kfd_export_dmabuf *)arg)->fd); break;
	case _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU): gp_share_add_memory(address); break;
	default: gp_share_add_file((int)((const struct kfd_ioctl_import_dmabuf_args *)arg)->dmabuf_fd);
	}
	if (key) {
		memcpy(words, key, sizeof(words));
		gp_share_add(GP_SHARE_KFD_IPC, words[0], words[1]);
	}
	gp_link_flush();
	gp_agent_unlock();
	return r;
}

/* The least size of a request's structure that the agent looks into; 0: a request that it does not look at. */
static uint32_t ioctl_size_of(uint32_t number)
{
	switch (number) {
	case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE): return sizeof(struct kfd_ioctl_create_queue_args);
	case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE): return sizeof(struct kfd_ioctl_update_queue_args);
	case _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE): return sizeof(struct kfd_ioctl_destroy_queue_args);
	case GP_KFD_NR_RUNTIME_ENABLE: return sizeof(struct gp_kfd_runtime_enable);
	case GP_KFD_NR_DBG_TRAP: return 8;
	case _IOC_NR(AMDKFD_IOC_ALLOC_QUEUE_GWS): return sizeof(struct kfd_ioctl_alloc_queue_gws_args);
	case _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU): return sizeof(struct kfd_ioctl_alloc_memory_of_gpu_args);
	case _IOC_NR(AMDKFD_IOC_IMPORT_DMABUF): return sizeof(struct kfd_ioctl_import_dmabuf_args);
	case GP_KFD_NR_EXPORT_DMABUF: return sizeof(struct gp_kfd_export_dmabuf);
	case GP_KFD_NR_IPC_IMPORT: return sizeof(struct gp_kfd_ipc_import);
	case GP_KFD_NR_IPC_EXPORT: return sizeof(struct gp_kfd_ipc_export);
	default: return 0;
	}
}

bool gp_kfd_is_readable(const void *arg, uint32_t size)
{
	uint8_t copy[IOCTL_SIZE_MAX];
	struct iovec local = { copy, size }, remote = { (void *)(uintptr_t)arg, size };
	long r = gp_sys(SYS_process_vm_readv, gp_sys_self(), (long)&local, 1, (long)&remote, 1, 0);

	return r == (long)size || (r < 0 && r != -EFAULT);
}

static int ioctl_dispatch(int fd, unsigned long request, void *arg)
{
	switch (_IOC_NR(request)) {
	case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE): return ioctl_create(fd, request, arg);
	case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE): return ioctl_update(fd, request, arg);
	case _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE): return ioctl_destroy(fd, request, arg);
	case GP_KFD_NR_RUNTIME_ENABLE: return ioctl_runtime(fd, request, arg);
	case GP_KFD_NR_DBG_TRAP: return ioctl_trap(fd, request, arg);
	case _IOC_NR(AMDKFD_IOC_ALLOC_QUEUE_GWS): return ioctl_gws(fd, request, arg);
	default: return ioctl_share(fd, request, arg);
	}
}

bool gp_kfd_begin(void)
{
	bool other;

	gp_agent_lock();
	if (gp_kfd.epoch != gp_agent.epoch) {
		gp_kfd = (struct gp_kfd){ .epoch = gp_agent.epoch };
		gp_kfd_trap_forget();
	}
	/* If the process's queues are another driver's, only that driver's code manages them. */
	other = gp_agent.driver && gp_agent.driver != &gp_kfd_driver;
	gp_agent_unlock();
	return !other;
}

int gp_kfd_ioctl(int fd, unsigned long request, void *arg)
{
	/* The console's requests have the letter K as well, but neither direction nor size. */
	uint32_t size = _IOC_SIZE(request), least = ioctl_size_of(_IOC_NR(request));

	if (!least || size < least || size > IOCTL_SIZE_MAX || !gp_agent_ready() || !gp_kfd_is_readable(arg, size) ||
	    !gp_kfd_begin())
		return gp_next_ioctl(fd, request, arg);
	return ioctl_dispatch(fd, request, arg);
}

extern const struct gp_driver_calls gp_driver_calls_kfd; /* for driver.c alone */
const struct gp_driver_calls gp_driver_calls_kfd = { .ioctl_letter = 'K', .ioctl = gp_kfd_ioctl };
