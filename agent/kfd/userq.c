/* SPDX-License-Identifier: MIT */
/*
 * User queues of DRM: ROCr without KFD makes its queues on the render node (Linux 6.16). Their creation and their end
 * are seen here. The driver has no call that takes such a queue off the hardware and brings it back as it was, so what
 * can be done is to hold back what is submitted (mechanism userq: as submit, for all queues of the process); for that
 * the doorbells must pass the runtime's table. A queue of another kind (Mesa's, PM4) is listed and left alone.
 *
 * Other drivers have other calls of the same number: only successful calls on a file of amdgpu count.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "agent/driver.h"
#include "agent/kfd/kfd.h"
#include "agent/log.h"
#include "agent/next.h"
#include "agent/sys.h"

#define USERQ_ID       0x100000u /* added to its number: KFD's have their own */
#define USERQ_ID_MAX   0x100000u
#define USERQ_NODE_MAX 64u
#define USERQ_READ_AT  128u /* amd_queue_t: its read index … */
#define USERQ_RING_AT  8u   /* … and where its ring begins */
#define USERQ_NO_MINOR UINT32_MAX

static bool userq_is_amdgpu(int fd)
{
	char name[8] = "";
	struct gp_drm_version version = { .name_len = sizeof(name), .name = (uintptr_t)name };

	return gp_next_own_ioctl(fd, GP_DRM_IOC_VERSION, &version) >= 0 && version.name_len == 6u &&
	       !memcmp(name, "amdgpu", 6u);
}

/* A file below the topology, whole; its length, or negative. */
static long userq_read(uint32_t node, const char *name, char *text, size_t size)
{
	char path[96] = "/sys/class/kfd/kfd/topology/nodes/00/";
	char *at = path + sizeof("/sys/class/kfd/kfd/topology/nodes/") - 1u;
	long fd, length;

	if (node >= 10u)
		*at++ = (char)('0' + node / 10u);
	*at++ = (char)('0' + node % 10u);
	*at++ = '/';
	memcpy(at, name, strlen(name) + 1u);
	fd = gp_sys(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	length = gp_sys(SYS_read, fd, (long)text, size - 1u);
	gp_sys_close((int)fd);
	text[length > 0 ? length : 0] = 0;
	return length;
}

static uint32_t userq_number(const char *text)
{
	uint64_t number = 0;

	for (; *text >= '0' && *text <= '9' && number < UINT32_MAX; text++)
		number = number * 10u + (uint64_t)(*text - '0');
	return number < UINT32_MAX ? (uint32_t)number : 0;
}

/* Which render node it is; a virtual node's are no devices, but have the names. */
static uint32_t userq_minor(int fd)
{
	char link[32] = "/proc/self/fd/", name[256], digits[12];
	uint32_t at = 14, count = 0;
	struct stat st;
	long length;
	char *found;

	if (gp_sys(SYS_fstat, fd, (long)&st) == 0 && S_ISCHR(st.st_mode))
		return minor(st.st_rdev);
	for (uint32_t rest = (uint32_t)fd; rest || !count; rest /= 10u)
		digits[count++] = (char)('0' + rest % 10u);
	while (count)
		link[at++] = digits[--count];
	length = gp_sys(SYS_readlinkat, AT_FDCWD, (long)link, (long)name, sizeof(name) - 1u);
	name[length > 0 ? length : 0] = 0;
	found = strstr(name, "renderD");
	return found ? userq_number(found + 7) : USERQ_NO_MINOR;
}

/* The GPU behind a render node, by KFD's topology; where the file does not say which, the only one. 0: not known. */
static uint32_t userq_gpu(int fd)
{
	static char text[4096]; /* the lock is held */
	uint32_t wanted = userq_minor(fd), only = 0, count = 0;

	for (uint32_t node = 0; node < USERQ_NODE_MAX; node++) {
		long length = userq_read(node, "gpu_id", text, sizeof(text));
		uint32_t gpu_id = length > 0 ? userq_number(text) : 0;
		const char *line;

		if (length == -ENOENT)
			break;
		/* A GPU that this process may not have cannot be read: the next one may be ours. */
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

/* Whether it is a queue of ROCr's, which can be found by its doorbells. */
static bool userq_is_aql(const struct gp_drm_userq_in *in)
{
	uint64_t ring = 0;
	struct gp_sys_range range = { in->rptr_va - USERQ_READ_AT + USERQ_RING_AT, &ring, sizeof(ring), false };

	if (in->rptr_va <= USERQ_READ_AT)
		return false;
	gp_sys_read(&range, 1);
	return range.ok && ring == in->queue_va;
}

/* Numbers are each GPU's own: the first queue on each of them has the same. */
static struct gp_slot *userq_find(uint32_t gpu_id, uint32_t queue_id)
{
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used && gp_slots[i].file == GP_KFD_NONE && gp_slots[i].gpu_id == gpu_id &&
		    gp_slots[i].queue_id == USERQ_ID + queue_id)
			return &gp_slots[i];
	return NULL;
}

/* Lock held. A queue that cannot be kept track of is left alone. */
static void userq_add(int fd, const struct gp_drm_userq_in *in, uint32_t queue_id)
{
	bool aql = userq_is_aql(in);
	uint32_t gpu_id = userq_gpu(fd);
	struct gp_slot *slot;

	if (!gpu_id || queue_id >= USERQ_ID_MAX || userq_find(gpu_id, queue_id) || gp_page_reserve() < 0)
		return;
	slot = gp_slot_add(aql ? in->rptr_va - USERQ_READ_AT : 0);
	if (!slot)
		return;
	if (!gp_agent.driver)
		gp_agent.driver = &gp_kfd_driver;
	slot->file = GP_KFD_NONE;
	slot->format = in->ip_type == GP_DRM_IP_DMA ? GP_QUEUE_SDMA : aql ? GP_QUEUE_AQL : GP_QUEUE_PM4;
	slot->blind = !aql;
	slot->gpu_id = gpu_id;
	slot->queue_id = USERQ_ID + queue_id;
	slot->percent = 100u;
	slot->hw_priority = 7u;
	slot->ring = in->queue_va;
	slot->ring_size = in->queue_size < UINT32_MAX ? (uint32_t)in->queue_size : 0;
	slot->write_pointer = in->wptr_va;
	slot->read_pointer = in->rptr_va;
	gp_page_slot_init(slot);
	gp_log3("drm: user queue, engine, slot", queue_id, in->ip_type, gp_slot_index(slot));
	/* With the first of ROCr's nothing but userq can be done for this process: the daemon is told anew. */
	if (aql && !gp_kfd.userq_count++ && gp_agent.link != GP_LINK_DOWN)
		gp_link_down("link: a user queue of DRM changes what can be done");
	gp_link_flush();
}

static int userq_create(int fd, unsigned long request, union gp_drm_userq *args)
{
	struct gp_drm_userq_in in = args->in; /* the answer is written over it */
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
	slot = id < USERQ_ID_MAX ? userq_find(userq_gpu(fd), id) : NULL;
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

extern const struct gp_driver_calls gp_driver_calls_drm; /* for driver.c alone */
const struct gp_driver_calls gp_driver_calls_drm = { .ioctl_letter = 'd', .ioctl = userq_ioctl };
