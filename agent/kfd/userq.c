/* SPDX-License-Identifier: MIT */
/*
 * User queues of DRM: ROCr without KFD creates its queues on the render node (Linux 6.16). The agent sees their
 * creation and their end here. The driver has no call that takes such a queue off the hardware and brings it back as it
 * was. So the agent can only withhold submissions (mechanism userq: as submit, for all queues of the process); for that
 * the doorbells must pass the runtime's table. The agent lists a queue of another kind (Mesa's, PM4) and leaves it
 * alone.
 *
 * Other drivers have other calls of the same number: only successful calls on a file of amdgpu count.
 *
 * Each open file numbers its own queues. The agent keeps no duplicate of such a file, because the queues would then
 * outlive the application's last descriptor. Instead it records, for each queue, the descriptor on
 * which it was created, until that is closed.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "agent/driver.h"
#include "agent/file.h"
#include "agent/kfd/kfd.h"
#include "agent/log.h"
#include "agent/next.h"
#include "agent/sys.h"

#define USERQ_ID       0x100000u         /* added to a queue's number, once per file: KFD's numbers are below */
#define USERQ_FILE_MAX GP_WIRE_QUEUE_MAX /* each file has a queue: so there are as many places as slots */
#define USERQ_NODE_MAX 64u
#define USERQ_READ_AT  128u /* amd_queue_t: its read index … */
#define USERQ_RING_AT  8u   /* … and where its ring begins */
#define USERQ_NO_MINOR UINT32_MAX

/* Where a queue comes from; by its slot's index. */
static struct userq_origin {
	uint32_t fd;    /* the descriptor on which it was created + 1; 0: closed. No lock. */
	uint32_t minor; /* of its render node */
} userq_origins[GP_WIRE_QUEUE_MAX];

static struct userq_origin *userq_origin(const struct gp_slot *slot)
{
	return &userq_origins[gp_slot_index(slot)];
}

static bool userq_is_amdgpu(int fd)
{
	char name[8] = "";
	struct gp_drm_version version = { .name_len = sizeof(name), .name = (uintptr_t)name };

	return gp_next_own_ioctl(fd, GP_DRM_IOC_VERSION, &version) >= 0 && version.name_len == 6u &&
	       !memcmp(name, "amdgpu", 6u);
}

/* Reads a whole file of a node of the topology; its length, or -errno. lib/ reads the topology for the daemon and for
 * doctor, with functions of libc that allocate and print: in somebody else's process the agent reads it itself. */
static long userq_read(uint32_t node, const char *name, char *text, size_t size)
{
	char path[96] = "/sys/class/kfd/kfd/topology/nodes/";
	char *at = path + strlen(path);

	at += gp_sys_digits(at, node);
	*at++ = '/';
	memcpy(at, name, strlen(name) + 1u);
	return gp_sys_file_read(path, text, size);
}

static uint32_t userq_number(const char *text)
{
	uint64_t number = 0;

	for (; *text >= '0' && *text <= '9' && number < UINT32_MAX; text++)
		number = number * 10u + (uint64_t)(*text - '0');
	return number < UINT32_MAX ? (uint32_t)number : 0;
}

/* The minor number of the render node. On a virtual node the files are no devices, but have the same names. */
static uint32_t userq_minor(int fd)
{
	char path[256], *found;
	struct stat st;

	if (gp_sys(SYS_fstat, fd, (long)&st) == 0 && S_ISCHR(st.st_mode))
		return minor(st.st_rdev);
	gp_sys_file_path(fd, path, sizeof(path));
	found = strstr(path, "renderD");
	return found ? userq_number(found + 7) : USERQ_NO_MINOR;
}

/* The GPU of a render node, by KFD's topology; if the minor is not known, the only GPU there is. 0: not known. */
static uint32_t userq_gpu(uint32_t wanted)
{
	static char text[4096]; /* the lock is held */
	uint32_t only = 0, count = 0;

	for (uint32_t node = 0; node < USERQ_NODE_MAX; node++) {
		long length = userq_read(node, "gpu_id", text, sizeof(text));
		uint32_t gpu_id = length > 0 ? userq_number(text) : 0;
		const char *line;

		if (length == -ENOENT)
			break;
		/* The process cannot read a GPU that it may not use: try the next one. */
		if (!gpu_id || userq_read(node, "properties", text, sizeof(text)) <= 0)
			continue;
		line = strstr(text, "drm_render_minor ");
		if (line && userq_number(line + 17) == wanted)
			return gpu_id;
		only = gpu_id;
		count++;
	}
	return wanted == USERQ_NO_MINOR && count == 1u ? only : 0;
}

/* Whether it is a queue of ROCr's, which the agent can find by its doorbells. */
static bool userq_is_aql(const struct gp_drm_userq_in *in)
{
	uint64_t ring = 0;
	struct gp_sys_range range = { in->rptr_va - USERQ_READ_AT + USERQ_RING_AT, &ring, sizeof(ring), false };

	if (in->rptr_va <= USERQ_READ_AT)
		return false;
	gp_sys_read(&range, 1);
	return range.ok && ring == in->queue_va;
}

static bool userq_is_ours(const struct gp_slot *slot)
{
	return slot->used && slot->file == GP_KFD_NONE && slot->queue_id >= USERQ_ID;
}

/* Whether the queue was created on this open file: 1, 0, or -1 if that is not known, because its descriptor was closed
 * (there may be duplicates) or the kernel does not answer. */
static int userq_is_on(const struct gp_slot *slot, int fd)
{
	uint32_t known = __atomic_load_n(&userq_origin(slot)->fd, __ATOMIC_RELAXED);
	long r;

	if (!known || known == (uint32_t)fd + 1u)
		return known ? 1 : -1;
	r = gp_sys_file_compare(fd, (int)(known - 1u)); /* of this thread: a thread may have a table of its own */
	return r < 0 ? -1 : r == 0;
}

/* The queue of this number on this file. If none is certain: the only candidate on a file of the same node, unless the
 * caller asks for certainty. */
static struct gp_slot *userq_find(int fd, uint32_t minor, uint32_t queue_id, bool certain)
{
	struct gp_slot *found = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];
		int is_on;

		if (!userq_is_ours(slot) || slot->dying || slot->queue_id % USERQ_ID != queue_id)
			continue;
		is_on = userq_is_on(slot, fd);
		if (is_on > 0)
			return slot;
		if (is_on < 0 && userq_origin(slot)->minor == minor) {
			found = slot;
			count++;
		}
	}
	return count == 1u && !certain ? found : NULL;
}

/* The file's place among the files that have queues: that of its other queues, or a free one. */
static uint32_t userq_file(int fd)
{
	uint64_t taken[USERQ_FILE_MAX / 64u] = { 0 };
	uint32_t file = 0;

	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		if (!userq_is_ours(&gp_slots[i]))
			continue;
		file = gp_slots[i].queue_id / USERQ_ID - 1u;
		if (userq_is_on(&gp_slots[i], fd) > 0)
			return file;
		taken[file / 64u] |= 1ull << file % 64u;
	}
	for (file = 0; file < USERQ_FILE_MAX && taken[file / 64u] >> file % 64u & 1; file++)
		;
	return file;
}

/* Lock held. The queue ended with a file that was closed: the driver has reused its number, or its memory is another
 * queue's now. */
static void userq_forget(struct gp_slot *slot)
{
	gp_log2("drm: user queue gone, slot", slot->queue_id, gp_slot_index(slot));
	__atomic_store_n(&gp_slot_doorbell(slot)->withheld, 0, __ATOMIC_SEQ_CST);
	gp_kfd_slot_leave(slot);
	gp_kfd.userq_count -= !slot->blind;
	gp_kfd_slot_left(slot, true);
}

/* Lock held. Two queues cannot have the same memory: the older one no longer exists. */
static void userq_forget_at(uint64_t key)
{
	for (uint32_t i = 0; key && i < gp_slot_limit(); i++)
		if (userq_is_ours(&gp_slots[i]) && !gp_slots[i].dying && gp_slot_doorbell(&gp_slots[i])->key == key)
			userq_forget(&gp_slots[i]);
}

/* Whether no thread can ring the queue any more, though a duplicate may keep its file open: its descriptor was closed,
 * and the memory by which the runtime knows it is gone. The agent does not observe the doorbells of a blind queue. */
static bool userq_is_dead(const struct gp_slot *slot)
{
	const struct gp_doorbell *doorbell = gp_slot_doorbell(slot);
	uint64_t word, there = 0;
	struct gp_sys_range ranges[] = { { doorbell->key, &word, sizeof(word), false },
					 { (uintptr_t)&there, &word, sizeof(word), false } };

	if (__atomic_load_n(&userq_origin(slot)->fd, __ATOMIC_RELAXED))
		return false;
	if (slot->blind)
		return true;
	gp_sys_read(ranges, 2); /* the second range shows whether reading is allowed */
	return !ranges[0].ok && ranges[1].ok && !__atomic_load_n(&doorbell->withheld, __ATOMIC_SEQ_CST);
}

/* Lock held. All slots are in use: frees those of queues that no thread can ring any more. */
static void userq_forget_dead(void)
{
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (userq_is_ours(&gp_slots[i]) && !gp_slots[i].dying && userq_is_dead(&gp_slots[i]))
			userq_forget(&gp_slots[i]);
}

static struct gp_slot *userq_slot(uint64_t key)
{
	struct gp_slot *slot = gp_slot_add(key);

	if (slot)
		return slot;
	userq_forget_dead();
	slot = gp_slot_add(key);
	if (!slot)
		gp_log("drm: there are too many queues; this one is not scheduled");
	return slot;
}

/* Lock held. The agent leaves a queue alone that it cannot keep track of. */
static void userq_add(int fd, const struct gp_drm_userq_in *in, uint32_t queue_id)
{
	bool aql = userq_is_aql(in);
	uint32_t minor = userq_minor(fd), gpu_id = userq_gpu(minor), file;
	struct gp_slot *slot = userq_find(fd, minor, queue_id, true);
	struct userq_origin *origin;

	if (slot)
		userq_forget(slot);
	userq_forget_at(aql ? in->rptr_va - USERQ_READ_AT : 0);
	if (!gpu_id || queue_id >= USERQ_ID || gp_page_reserve() < 0)
		return;
	slot = userq_slot(aql ? in->rptr_va - USERQ_READ_AT : 0);
	if (!slot)
		return;
	slot->file = GP_KFD_NONE; /* no file: userq_is_ours() stays false until it has its number */
	file = userq_file(fd);
	if (!gp_agent.driver)
		gp_agent.driver = &gp_kfd_driver;
	slot->is_copy = in->ip_type == GP_DRM_IP_DMA;
	slot->format = slot->is_copy ? GP_KFD_SDMA : aql ? GP_KFD_AQL : GP_KFD_PM4;
	slot->blind = !aql;
	origin = userq_origin(slot);
	origin->minor = minor;
	__atomic_store_n(&origin->fd, (uint32_t)fd + 1u, __ATOMIC_RELAXED);
	slot->gpu_id = gpu_id;
	slot->queue_id = (file + 1u) * USERQ_ID + queue_id;
	slot->percent = 100u;
	slot->hw_priority = 7u;
	slot->ring = in->queue_va;
	slot->ring_size = in->queue_size < UINT32_MAX ? (uint32_t)in->queue_size : 0;
	slot->write_pointer = in->wptr_va;
	slot->read_pointer = in->rptr_va;
	gp_page_slot_init(slot);
	gp_log3("drm: user queue, engine, slot", queue_id, in->ip_type, gp_slot_index(slot));
	/* From the first queue of ROCr's on only mechanism userq works for this process: the agent reconnects to tell
	 * the daemon. */
	if (aql && !gp_kfd.userq_count++ && gp_agent.link != GP_LINK_DOWN)
		gp_link_down("link: a user queue of DRM changes what can be done");
	gp_link_flush();
}

static int userq_create(int fd, unsigned long request, union gp_drm_userq *args)
{
	struct gp_drm_userq_in in = args->in; /* a copy, because the driver writes its answer over it */
	int r = gp_next_ioctl(fd, request, args), saved = errno;

	if (r < 0 || (in.ip_type != GP_DRM_IP_COMPUTE && in.ip_type != GP_DRM_IP_DMA) || !userq_is_amdgpu(fd)) {
		errno = saved;
		return r;
	}
	gp_agent_lock();
	userq_add(fd, &in, args->out.queue_id);
	gp_agent_unlock();
	gp_agent_start();
	gp_thread_wake();
	errno = saved;
	return r;
}

static int userq_free(int fd, unsigned long request, union gp_drm_userq *args)
{
	uint32_t id = args->in.queue_id;
	struct gp_slot *slot;
	int r, saved;

	gp_agent_lock();
	slot = id < USERQ_ID ? userq_find(fd, userq_minor(fd), id, false) : NULL;
	if (slot)
		gp_kfd_slot_leave(slot);
	gp_agent_unlock();
	if (slot)
		gp_gate_delivered();
	r = gp_next_ioctl(fd, request, args);
	if (!slot)
		return r;
	saved = errno;
	gp_agent_lock();
	gp_log2("drm: user queue freed, result", id, r);
	gp_kfd.userq_count -= r >= 0 && !slot->blind;
	gp_kfd_slot_left(slot, r >= 0);
	gp_agent_unlock();
	gp_thread_wake();
	errno = saved;
	return r;
}

static int userq_ioctl(int fd, unsigned long request, void *arg)
{
	union gp_drm_userq *args = arg;

	if (_IOC_NR(request) != GP_DRM_NR_USERQ || _IOC_SIZE(request) < sizeof(*args) || !gp_agent_ready() ||
	    !gp_kfd_begin() || !gp_kfd_is_readable(arg, sizeof(*args)))
		return gp_next_ioctl(fd, request, arg);
	switch (args->in.op) {
	case GP_DRM_USERQ_CREATE: return userq_create(fd, request, args);
	case GP_DRM_USERQ_FREE: return userq_free(fd, request, args);
	default: return gp_next_ioctl(fd, request, arg);
	}
}

/* The kernel may give the descriptor's number to another file. A mapping keeps the file open, so its queues may still
 * exist. No lock: signal handlers close files, too. */
static uint32_t userq_closes(unsigned first, unsigned last)
{
	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		uint32_t known = __atomic_load_n(&userq_origins[i].fd, __ATOMIC_RELAXED);

		if (known && known - 1u >= first && known - 1u <= last && !gp_agent_is_borrowed())
			__atomic_store_n(&userq_origins[i].fd, 0, __ATOMIC_RELAXED);
	}
	return 0;
}

extern const struct gp_driver_calls gp_driver_calls_drm; /* for driver.c alone */
const struct gp_driver_calls gp_driver_calls_drm = { .ioctl_letter = 'd',
						     .ioctl = userq_ioctl,
						     .file_closes = userq_closes };
