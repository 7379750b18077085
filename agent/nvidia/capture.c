/* SPDX-License-Identifier: MIT */
/*
 * ioctl() between the application and NVIDIA's driver: which objects come and go, which groups compute. The agent reads
 * the application's structures once, in a way that does not fault, and forwards them unchanged; then it reads RM's
 * answer. It forwards what it does not understand, and leaves it alone.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include "agent/driver.h"
#include "agent/log.h"
#include "agent/next.h"
#include "agent/nvidia/capture.h"
#include "agent/sys.h"

/* Counters are read at least every second interval: the device switches contexts without waiting for the agent, and no
 * doorbell wakes the thread early; chosen. */
#define CAPTURE_BACKOFF_MAX 1u

struct gp_nvidia gp_nvidia;
struct gp_nvidia_group gp_nvidia_groups[GP_WIRE_QUEUE_MAX];

static uint32_t capture_mechanisms(void)
{
	return gp_nvidia.refused || !gp_nvidia.probed ? 0 : GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL);
}

static bool capture_describe(const struct gp_slot *slot, struct gp_wire_group *ret_group)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	struct gp_wire_group message = {
		/* The agent's alone: the program may close its own at any time. */
		.fd = gp_nvidia_file_fd(slot->file) < 0 ? -1 : gp_fd(slot->group_use),
		.client = group->client,
		.subdevice = group->subdevice,
		.group = group->group,
		.slice_us = group->slice_us,
	};

	message.channel_count = gp_nvidia_channels(slot, message.channels);
	/* A group with more channels than fit into one call is never closed: the daemon must not get it. */
	if (gp_nvidia.refused || message.fd < 0 || message.channel_count > GP_WIRE_CHANNEL_MAX)
		return false;
	*ret_group = message;
	return true;
}

static void capture_tidy(void)
{
	gp_nvidia_files_tidy();
	gp_nvidia_refused_tidy();
	gp_nvidia_help();
}

const struct gp_driver gp_nvidia_driver = {
	.backoff_max = CAPTURE_BACKOFF_MAX,
	.mechanisms = capture_mechanisms,
	.change = gp_nvidia_change,
	.release = gp_nvidia_release,
	.recover = gp_nvidia_recover,
	.sample = gp_nvidia_sample,
	.describe = capture_describe,
	.slice = gp_nvidia_slice,
	.tidy = capture_tidy,
};

/* False: the address cannot be read; the driver will refuse it. If a filter forbids the question, the agent reads the
 * address directly. */
bool gp_nvidia_capture_read(void *into, uint64_t from, uint32_t size)
{
	struct iovec local = { into, size }, remote = { (void *)(uintptr_t)from, size };
	long r;

	if (!from)
		return false;
	r = gp_sys(SYS_process_vm_readv, gp_sys_self(), (long)&local, 1, (long)&remote, 1, 0);
	if (r < 0 && r != -EFAULT)
		memcpy(into, (const void *)(uintptr_t)from, size);
	return r == (long)size || (r < 0 && r != -EFAULT);
}

int gp_nvidia_capture_forward(const struct gp_nvidia_capture *call)
{
	return gp_next_ioctl(call->fd, call->request, call->arg);
}

/* Lock held. The subdevice below a device of the client. */
static struct gp_nvidia_object *capture_subdevice(uint32_t client, uint32_t device)
{
	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++) {
		struct gp_nvidia_object *object = &gp_nvidia_objects[i];

		if (object->used && object->client == client && object->parent == device &&
		    object->class_id == GP_RM_CLASS_SUBDEVICE)
			return object;
	}
	return NULL;
}

/* Lock held. A group with a compute object becomes a queue. The agent leaves a group alone that it cannot keep track
 * of. */
static void capture_queue_add(struct gp_nvidia_object *object, int fd)
{
	const struct gp_nvidia_object *subdevice = capture_subdevice(object->client, object->parent);
	struct gp_nvidia_group *group;
	struct gp_slot *slot;
	uint32_t gpu_id = 0;
	int r, own;

	if (object->slot || object->file == GP_NVIDIA_NONE || !subdevice || gp_page_reserve() < 0 ||
	    (gp_agent.driver && gp_agent.driver != &gp_nvidia_driver)) {
		if (!object->slot)
			gp_log2("nvidia: group left alone: handle, file", object->handle, object->file);
		return;
	}
	r = gp_nvidia_control_on(fd, &(struct gp_nvidia_call){ object->file, object->client, subdevice->handle,
							       GP_RM_GPU_ID, &gpu_id, sizeof(gpu_id) });
	/* The queue is added with GPU 0, which does not exist, so that the daemon learns the reason. */
	if (r == -EINVAL || r == -EOPNOTSUPP || r == -EPROTO)
		gp_nvidia_refuse("GPU_GET_ID does not answer as expected");
	else if (r < 0)
		return;
	slot = gp_slot_add(0);
	if (!slot)
		return;
	gp_agent.driver = &gp_nvidia_driver;
	slot->file = object->file;
	slot->group_use = GP_NVIDIA_FD + slot->file;
	slot->gpu_id = gpu_id;
	slot->queue_id = object->handle;
	slot->hw_priority = 7; /* normal: CUDA's stream priorities hold within a context only */
	object->slot = slot;
	group = gp_nvidia_group_of(slot);
	*group = (struct gp_nvidia_group){ .client = object->client,
					   .group = object->handle,
					   .subdevice = subdevice->handle,
					   .is_blind = object->unreadable,
					   .begun_ns = gp_sys_now_ns() };
	slot->starting = slot->blind = true;
	own = gp_nvidia_file_fd(slot->file);
	if (own >= 0) /* the program may close its own at any time */
		fd = own;
	group->has_slice = gp_nvidia_slice_get(fd, slot, &group->slice_us) == 0;
	gp_nvidia_probe(fd, slot);
	gp_page_slot_init(slot);
	gp_log3("nvidia: queue, gpu, slot", slot->queue_id, gpu_id, gp_slot_index(slot));
	gp_link_flush();
}

/* Lock held. The channels of a queue have changed. */
void gp_nvidia_queue_changed(struct gp_slot *slot)
{
	if (!slot || slot->dying)
		return;
	slot->group_due = true;
	slot->unreadable = false;
	/* A new channel starts enabled: if the gate is closed, the agent disables it too, and it alone. */
	if (slot->closed && slot->closed_by == GP_MECHANISM_CHANNEL && !gp_nvidia.refused)
		gp_nvidia_close_rest(slot);
	gp_nvidia_look_again();
}

struct gp_slot *gp_nvidia_capture_slot(uint32_t client, uint32_t handle)
{
	const struct gp_nvidia_object *object = gp_nvidia_object_find(client, handle);

	if (object && gp_nvidia_class_is_channel(object->class_id))
		object = gp_nvidia_object_find(client, object->parent);
	return object && object->slot && !object->slot->dying ? object->slot : NULL;
}

/* Lock held. Queues that end with an object: the agent opens them, because their end may wait for their work, and tells
 * the daemon. */
static void capture_end_queues(uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++) {
		struct gp_nvidia_object *object = &gp_nvidia_objects[i];
		struct gp_slot *slot = object->slot;

		if (!slot || slot->dying || !gp_nvidia_object_is_below(object, client, handle))
			continue;
		/* The agent does not know which gates the daemon has closed itself. */
		if (gp_agent.mechanism == GP_MECHANISM_BORROW)
			gp_nvidia_change(GP_MECHANISM_BORROW, &slot, 1, true, &(int){ 0 });
		gp_gate_open_slot(slot);
		slot->dying = true;
		gp_link_remove(slot);
	}
}

/* Lock held. Removes an object and everything below it. */
static void capture_remove(uint32_t client, uint32_t handle)
{
	struct gp_nvidia_object *first = gp_nvidia_object_find(client, handle), *group = NULL;

	if (first && gp_nvidia_class_is_channel(first->class_id))
		group = gp_nvidia_object_find(client, first->parent);
	/* Marks all of them before removing the first: the search goes through their parents. */
	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++)
		gp_nvidia_objects[i].ending = gp_nvidia_object_is_below(&gp_nvidia_objects[i], client, handle);
	for (uint32_t i = gp_nvidia_object_limit(); i-- > 0;) {
		struct gp_nvidia_object *object = &gp_nvidia_objects[i];

		if (!object->used || !object->ending)
			continue;
		if (object->slot) {
			gp_log1("nvidia: queue destroyed", object->handle);
			gp_slot_free(object->slot);
		}
		if (gp_nvidia_class_is_channel(object->class_id))
			gp_nvidia_work_remove(object, gp_nvidia_capture_slot(client, object->handle));
		gp_nvidia_file_release(object->file);
		gp_nvidia_object_remove(object);
	}
	if (group)
		gp_nvidia_queue_changed(group->slot);
}

void gp_nvidia_client_gone(uint32_t client)
{
	gp_nvidia_map_forget_memory(client, client);
	capture_end_queues(client, client);
	capture_remove(client, client);
}

/* Lock held. Adds a created object and what follows from it. Returns whether there is a new queue. */
static bool capture_add(const struct gp_nvidia_capture *call, const struct gp_nvidia_object *created)
{
	bool is_client = gp_nvidia_class_is_client(created->class_id);
	struct gp_nvidia_object *object, *channel, *group;

	/* Only a client's handle equals its client handle. */
	if (!created->handle || is_client != (created->handle == created->client) ||
	    (!is_client && !gp_nvidia_object_find(created->client, created->client)))
		return false;
	/* The handle is in use again, and the agent has not seen the end of the old object. */
	if (gp_nvidia_object_find(created->client, created->handle)) {
		capture_end_queues(created->client, created->handle);
		capture_remove(created->client, created->handle);
	}
	object = gp_nvidia_object_add(created);
	if (!object) {
		if (!gp_nvidia.is_full)
			gp_log("nvidia: more objects than are kept: later contexts are left alone");
		gp_nvidia.is_full = true;
		return false;
	}
	if (is_client) {
		gp_share_add(GP_SHARE_RM_CLIENT, created->handle, 0);
		gp_link_flush();
	} else if (created->class_id == GP_RM_CLASS_GROUP) {
		object->file = gp_nvidia_file_add(call->fd, created->client);
	} else if (created->class_id == GP_RM_CLASS_MIG) {
		gp_nvidia_refuse("MIG slices are not supported yet");
	} else if (gp_nvidia_class_is_channel(created->class_id)) {
		group = gp_nvidia_object_find(created->client, created->parent);
		if (!gp_nvidia_work_add(object) && group) {
			group->unreadable = true;
			if (group->slot)
				gp_nvidia_group_of(group->slot)->is_blind = true;
		}
		gp_nvidia_queue_changed(group ? group->slot : NULL);
	} else if (gp_nvidia_class_is_compute(created->class_id)) {
		channel = gp_nvidia_object_find(created->client, created->parent);
		group = channel ? gp_nvidia_object_find(created->client, channel->parent) : NULL;
		if (!group || group->class_id != GP_RM_CLASS_GROUP || group->slot)
			return false;
		capture_queue_add(group, call->fd);
		return group->slot != NULL;
	}
	return false;
}

/* Reads what the parameters say of a group or a channel. False: their size is not known. */
static bool capture_params(const struct gp_nvidia_capture *call, struct gp_nvidia_object *ret_object)
{
	const struct gp_rm_alloc *alloc = &call->body.alloc;
	uint32_t size = call->size == sizeof(*alloc) ? alloc->params_size : call->body.alloc_rights.params_size;
	uint8_t params[GP_RM_CHANNEL_SIZE_MIN];

	if (alloc->class_id == GP_RM_CLASS_GROUP) {
		if ((size && size < GP_RM_GROUP_SIZE) ||
		    !gp_nvidia_capture_read(params, alloc->params, GP_RM_GROUP_SIZE))
			return false;
		memcpy(&ret_object->engine, params + GP_RM_GROUP_ENGINE, 4);
	} else if (gp_nvidia_class_is_channel(alloc->class_id)) {
		if ((size && size < GP_RM_CHANNEL_SIZE_MIN) ||
		    !gp_nvidia_capture_read(params, alloc->params, GP_RM_CHANNEL_SIZE_MIN))
			return false;
		memcpy(&ret_object->engine, params + GP_RM_CHANNEL_ENGINE, 4);
		memcpy(&ret_object->entries, params + GP_RM_CHANNEL_ENTRIES, 4);
		memcpy(&ret_object->ring, params + GP_RM_CHANNEL_RING, 8);
		memcpy(&ret_object->userd, params + GP_RM_CHANNEL_USERD, 4);
		memcpy(&ret_object->userd_offset, params + GP_RM_CHANNEL_USERD_OFF, 8);
	}
	return true;
}

static int capture_alloc(struct gp_nvidia_capture *call)
{
	struct gp_nvidia_object created = { .class_id = call->body.alloc.class_id, .file = GP_NVIDIA_NONE };
	uint32_t status;
	bool added;
	int r;

	if (!gp_nvidia_class_is_kept(created.class_id) ||
	    (gp_nvidia_class_is_client(created.class_id) && !gp_nvidia_file_is_rm(call->fd)))
		return gp_nvidia_capture_forward(call);
	created.unreadable = !capture_params(call, &created);
	r = gp_nvidia_capture_forward(call);
	if (r < 0 || !gp_nvidia_capture_read(&call->body, call->at, call->size))
		return r;
	status = call->size == sizeof(call->body.alloc) ? call->body.alloc.status : call->body.alloc_rights.status;
	if (status != GP_RM_OK)
		return r;
	created.handle = call->body.alloc.object;
	/* A client has no parent, whatever the call says. */
	created.parent = gp_nvidia_class_is_client(created.class_id) ? 0 : call->body.alloc.parent;
	created.client = gp_nvidia_class_is_client(created.class_id) ? created.handle : call->body.alloc.client;
	gp_agent_lock();
	if (created.unreadable)
		gp_log2("nvidia: parameters of unknown size: class, size", created.class_id, call->size);
	added = capture_add(call, &created);
	gp_agent_unlock();
	if (added)
		gp_agent_start();
	gp_thread_wake();
	return r;
}

static void capture_goes(uint32_t client, uint32_t handle, bool going)
{
	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++)
		if (gp_nvidia_object_is_below(&gp_nvidia_objects[i], client, handle))
			gp_nvidia_objects[i].going = going;
}

/* Lock held. The object did not end: its queues are announced to the daemon as new ones. */
static void capture_revive(uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++) {
		struct gp_slot *slot = gp_nvidia_objects[i].slot;

		if (!slot || !slot->dying || !gp_nvidia_object_is_below(&gp_nvidia_objects[i], client, handle))
			continue;
		slot->dying = false;
		slot->generation++;
		gp_page_slot_init(slot);
	}
	capture_goes(client, handle, false);
	gp_link_flush();
}

void gp_nvidia_queue_renew(const struct gp_slot *slot)
{
	const struct gp_nvidia_group *group = gp_nvidia_group_of(slot);

	capture_end_queues(group->client, group->group);
	capture_revive(group->client, group->group);
}

static int capture_free(struct gp_nvidia_capture *call)
{
	uint32_t client = call->body.free.client, handle = call->body.free.object;
	struct gp_nvidia_object *object, *group;
	int r;

	gp_agent_lock();
	gp_nvidia_map_forget_memory(client, handle);
	object = gp_nvidia_object_find(client, handle);
	if (!object) {
		gp_agent_unlock();
		return gp_nvidia_capture_forward(call);
	}
	group = gp_nvidia_class_is_channel(object->class_id) ? gp_nvidia_object_find(client, object->parent) : NULL;
	if (group && group->slot && (group->slot->closed || gp_agent.mechanism == GP_MECHANISM_BORROW))
		gp_nvidia_enable_one(group->slot, object);
	capture_end_queues(client, handle);
	capture_goes(client, handle, true);
	gp_agent_unlock();
	r = gp_nvidia_capture_forward(call);
	gp_agent_lock();
	if (r >= 0 && gp_nvidia_capture_read(&call->body.free, call->at, sizeof(call->body.free)) &&
	    call->body.free.status == GP_RM_OK)
		capture_remove(client, handle);
	else {
		capture_revive(client, handle);
		/* If the object is a channel of a closed group, the agent disables it again. */
		gp_nvidia_queue_changed(gp_nvidia_capture_slot(client, handle));
	}
	gp_agent_unlock();
	gp_thread_wake();
	return r;
}

/* DUP_OBJECT: the same object under another handle, perhaps of another client. Its class stays the same. */
static int capture_dup(struct gp_nvidia_capture *call)
{
	const struct gp_nvidia_object *from;
	struct gp_nvidia_object created = { .file = GP_NVIDIA_NONE };
	int r = gp_nvidia_capture_forward(call);

	if (r < 0 || !gp_nvidia_capture_read(&call->body.dup, call->at, sizeof(call->body.dup)) ||
	    call->body.dup.status != GP_RM_OK)
		return r;
	gp_agent_lock();
	from = gp_nvidia_object_find(call->body.dup.client_from, call->body.dup.object_from);
	/* Another process's object: memory or an event, by CUDA's IPC. */
	if (!gp_nvidia_object_find(call->body.dup.client_from, call->body.dup.client_from)) {
		gp_share_add(GP_SHARE_RM_CLIENT, call->body.dup.client_from, 0);
		gp_link_flush();
	}
	/* The agent does not follow a second handle of a group or a channel: the first is enough to gate it. */
	if (from && (from->class_id == GP_RM_CLASS_DEVICE || from->class_id == GP_RM_CLASS_SUBDEVICE)) {
		created.class_id = from->class_id;
		created.client = call->body.dup.client;
		created.parent = call->body.dup.parent;
		created.handle = call->body.dup.object;
		capture_add(call, &created);
	}
	gp_agent_unlock();
	return r;
}

/* libcuda compares versions with the driver; the agent learns the version from that. */
static int capture_version(struct gp_nvidia_capture *call)
{
	int r = gp_nvidia_capture_forward(call);

	if (r < 0 || !gp_nvidia_capture_read(&call->body.version, call->at, sizeof(call->body.version)))
		return r;
	gp_agent_lock();
	for (uint32_t i = 0; i < sizeof(gp_nvidia.version) - 1u; i++) {
		char c = call->body.version.text[i];

		gp_nvidia.version[i] = (c >= '0' && c <= '9') || c == '.' ? c : 0;
		if (!gp_nvidia.version[i])
			break;
	}
	gp_agent_unlock();
	return r;
}

static int capture_map(struct gp_nvidia_capture *call)
{
	int r = gp_nvidia_capture_forward(call);

	if (r < 0 || !gp_nvidia_capture_read(&call->body.map, call->at, sizeof(call->body.map)) ||
	    call->body.map.status != GP_RM_OK)
		return r;
	gp_agent_lock();
	if (gp_nvidia_object_find(call->body.map.client, call->body.map.client))
		gp_nvidia_map_expect(&call->body.map);
	gp_agent_unlock();
	return r;
}

static int capture_unmap(struct gp_nvidia_capture *call)
{
	gp_agent_lock();
	gp_nvidia_map_forget(call->body.unmap.address, 1);
	gp_agent_unlock();
	return gp_nvidia_capture_forward(call);
}

/* The program gives its own pages to the GPU; if they are shared memory, the GPU's work may wait for another process's.
 */
static int capture_memory(struct gp_nvidia_capture *call)
{
	int r = gp_nvidia_capture_forward(call);

	if (r < 0 || call->body.memory.class_id != GP_RM_CLASS_OWN_MEMORY ||
	    !gp_nvidia_capture_read(&call->body.memory, call->at, sizeof(call->body.memory)) ||
	    call->body.memory.status != GP_RM_OK)
		return r;
	gp_agent_lock();
	gp_share_add_memory(call->body.memory.address);
	gp_link_flush();
	gp_agent_unlock();
	return r;
}

/* Whether the agent looks into a request: its number, and a size that is known. */
static bool capture_concerns(uint32_t number, uint32_t size)
{
	switch (number) {
	case GP_RM_MEMORY: return size == sizeof(struct gp_rm_memory);
	case GP_RM_FREE: return size == sizeof(struct gp_rm_free);
	case GP_RM_ALLOC: return size == sizeof(struct gp_rm_alloc) || size == sizeof(struct gp_rm_alloc_rights);
	case GP_RM_CONTROL: return size == sizeof(struct gp_rm_control);
	case GP_RM_DUP: return size == sizeof(struct gp_rm_dup);
	case GP_RM_VERSION: return size == sizeof(struct gp_rm_version);
	case GP_RM_MAP: return size == sizeof(struct gp_rm_map);
	case GP_RM_UNMAP: return size == sizeof(struct gp_rm_unmap);
	default: return false;
	}
}

static int capture_dispatch(struct gp_nvidia_capture *call)
{
	switch (call->number) {
	case GP_RM_MEMORY: return capture_memory(call);
	case GP_RM_FREE: return capture_free(call);
	case GP_RM_ALLOC: return capture_alloc(call);
	case GP_RM_DUP: return capture_dup(call);
	case GP_RM_VERSION: return capture_version(call);
	case GP_RM_MAP: return capture_map(call);
	case GP_RM_UNMAP: return capture_unmap(call);
	default: return gp_nvidia_watch(call);
	}
}

/* A forked child has none of its parent's objects. */
static void capture_start_over(void)
{
	gp_agent_lock();
	if (gp_nvidia.epoch != gp_agent.epoch) {
		gp_nvidia = (struct gp_nvidia){ .epoch = gp_nvidia.epoch };
		gp_nvidia_objects_reset();
		gp_nvidia_maps_reset();
		gp_nvidia_work_reset();
		__atomic_store_n(&gp_nvidia.epoch, gp_agent.epoch, __ATOMIC_RELEASE);
	}
	gp_agent_unlock();
}

int gp_nvidia_ioctl(int fd, unsigned long request, void *arg)
{
	struct gp_nvidia_capture call = { .fd = fd,
					  .request = request,
					  .arg = arg,
					  .number = _IOC_NR(request),
					  .size = _IOC_SIZE(request),
					  .at = (uintptr_t)arg };
	struct gp_rm_xfer xfer = { 0 };

	if (call.number == GP_RM_XFER) {
		if (call.size != sizeof(xfer) || !gp_nvidia_capture_read(&xfer, call.at, sizeof(xfer)))
			return gp_next_ioctl(fd, request, arg);
		call.number = xfer.number;
		call.size = xfer.size;
		call.at = xfer.params;
	}
	if (!capture_concerns(call.number, call.size) || !gp_agent_ready() ||
	    !gp_nvidia_capture_read(&call.body, call.at, call.size))
		return gp_next_ioctl(fd, request, arg);
	/* Without the lock, which another thread may hold over a driver call of the agent's: only a fork changes the
	 * epoch. */
	if (__atomic_load_n(&gp_nvidia.epoch, __ATOMIC_ACQUIRE) != gp_agent.epoch)
		capture_start_over();
	__atomic_store_n(&gp_nvidia.called_ns, gp_sys_now_ns(), __ATOMIC_RELAXED);
	return capture_dispatch(&call);
}

extern const struct gp_driver_calls gp_driver_calls_nvidia; /* for driver.c alone */
const struct gp_driver_calls gp_driver_calls_nvidia = {
	.ioctl_letter = 'F',
	.ioctl = gp_nvidia_ioctl,
	.map_touches = gp_nvidia_map_touches,
	.map_is_expected = gp_nvidia_map_is_expected,
	.map_forget = gp_nvidia_map_forget,
	.map_add = gp_nvidia_map_add,
	.file_closes = gp_nvidia_file_closes,
	.file_closed = gp_nvidia_file_closed,
};
