/* SPDX-License-Identifier: MIT */
/* The fake resource manager: ioctl() on its files, preloaded below the agent and into the daemon. */
#include "test/nvidia/fake_rm.h"
#include <errno.h>
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

static struct fake_rm_state *rm;
static char fake_folder[4096];

static struct fake_rm_state *fake_state(void)
{
	const char *folder = getenv(FAKE_RM_ENV);
	char path[4200];
	void *at;
	int fd;

	if (rm || !folder || !realpath(folder, fake_folder))
		return rm;
	snprintf(path, sizeof(path), "%s/" FAKE_RM_STATE, fake_folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	at = mmap(NULL, sizeof(*rm), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (at != MAP_FAILED)
		rm = at;
	return rm;
}

/* The caller's memory, which may not be there. */
static bool fake_read(void *into, uint64_t from, size_t size)
{
	struct iovec local = { into, size }, remote = { (void *)(uintptr_t)from, size };

	return process_vm_readv(gettid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static bool fake_write(uint64_t to, const void *from, size_t size)
{
	struct iovec local = { (void *)(uintptr_t)from, size }, remote = { (void *)(uintptr_t)to, size };

	return process_vm_writev(gettid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* By the thread's number. One that was killed inside has it for ever: who waits takes it from the dead. */
static void fake_lock(void)
{
	uint32_t me = (uint32_t)syscall(SYS_gettid), owner;
	char path[32];

	for (uint32_t tries = 0;; tries++, usleep(10)) {
		owner = 0;
		if (__atomic_compare_exchange_n(&rm->lock, &owner, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		snprintf(path, sizeof(path), "/proc/%u", owner);
		if (tries % 100u == 99u && access(path, F_OK) < 0 &&
		    __atomic_compare_exchange_n(&rm->lock, &owner, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
	}
}

static void fake_unlock(void)
{
	__atomic_store_n(&rm->lock, 0, __ATOMIC_RELEASE);
}

/* 'c': nvidiactl, 'd': nvidiaN, 0: another file. */
static char fake_kind(int fd)
{
	char link[64], path[4200];
	ssize_t length;
	size_t n = strlen(fake_folder);

	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1u);
	if (length <= 0)
		return 0;
	path[length] = 0;
	if (strncmp(path, fake_folder, n) != 0 || strncmp(path + n, "/nvidia", 7) != 0)
		return 0;
	return strcmp(path + n + 7, "ctl") == 0 ? 'c' : 'd';
}

/* An open file's number: kept in its position, which duplicates share in whichever process they are. */
static uint32_t fake_file(int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (at == 0) {
		at = ++rm->file_count;
		lseek(fd, at, SEEK_SET);
	}
	return (uint32_t)at;
}

static struct fake_rm_object *fake_find(uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++)
		if (rm->objects[i].used && rm->objects[i].client == client && rm->objects[i].handle == handle)
			return &rm->objects[i];
	return NULL;
}

static uint32_t fake_client(uint32_t client, uint32_t file)
{
	const struct fake_rm_object *object = fake_find(client, client);

	return !object || object->file != file ? GP_RM_ERR_CLIENT : GP_RM_OK;
}

static bool fake_class_is(uint32_t class_id, uint32_t family)
{
	return class_id >= GP_RM_CLASS_MIN && (class_id & 0xffu) == family;
}

static uint32_t fake_alloc(struct gp_rm_alloc *args, uint32_t file)
{
	bool client = args->class_id <= GP_RM_CLASS_ROOT_MAX || args->class_id == GP_RM_CLASS_CLIENT;
	const struct fake_rm_object *parent;
	struct fake_rm_object object = { .used = 1, .file = file, .class_id = args->class_id, .pid = getpid() };
	uint32_t i = 0;

	if (!client && fake_client(args->client, file) != GP_RM_OK)
		return GP_RM_ERR_CLIENT;
	if (!args->object)
		args->object = client ? 0xc1d00000u + ++rm->handle_count : 0x5c000000u + ++rm->handle_count;
	object.client = client ? args->object : args->client;
	object.parent = client ? args->object : args->parent;
	object.handle = args->object;
	parent = fake_find(object.client, object.parent);
	if ((!client && !parent) || fake_find(object.client, object.handle))
		return client || parent ? 0x19u /* the name is taken */ : GP_RM_ERR_NOT_FOUND;
	object.gpu = parent ? parent->gpu : 0;
	if (args->class_id == GP_RM_CLASS_DEVICE &&
	    (!fake_read(&object.gpu, args->params + GP_RM_DEVICE_ID, 4) || object.gpu >= rm->gpu_count))
		return GP_RM_ERR_ARGUMENT;
	if (args->class_id == GP_RM_CLASS_GROUP)
		object.slice_us = FAKE_RM_SLICE_US;
	if (fake_class_is(args->class_id, GP_RM_FAMILY_CHANNEL) &&
	    (!fake_read(&object.userd, args->params + GP_RM_CHANNEL_USERD, 4) ||
	     !fake_read(&object.userd_offset, args->params + GP_RM_CHANNEL_USERD_OFF, 8)))
		return GP_RM_ERR_ARGUMENT;
	while (i < FAKE_RM_OBJECT_MAX && rm->objects[i].used)
		i++;
	if (i == FAKE_RM_OBJECT_MAX)
		return GP_RM_ERR_RESOURCES;
	rm->objects[i] = object;
	return GP_RM_OK;
}

static void fake_remove(uint32_t client, uint32_t handle)
{
	struct fake_rm_object *object = fake_find(client, handle);

	if (object)
		object->used = 0;
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++)
		if (rm->objects[i].used && rm->objects[i].client == client && rm->objects[i].parent == handle)
			fake_remove(client, rm->objects[i].handle);
}

/* What the kernel does when a process has ended and its file is open nowhere else. */
static void fake_reap(void)
{
	char path[32];

	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++) {
		struct fake_rm_object *object = &rm->objects[i];

		snprintf(path, sizeof(path), "/proc/%d", object->pid);
		if (object->used && object->handle == object->client && access(path, F_OK) < 0 &&
		    !fake_rm_opens(object->file))
			fake_remove(object->client, object->handle);
	}
}

static uint32_t fake_free(const struct gp_rm_free *args, uint32_t file)
{
	uint32_t status = fake_client(args->client, file);

	if (status != GP_RM_OK)
		return status;
	if (!fake_find(args->client, args->object))
		return GP_RM_ERR_NOT_FOUND;
	fake_remove(args->client, args->object);
	return GP_RM_OK;
}

static uint32_t fake_dup(const struct gp_rm_dup *args, uint32_t file)
{
	const struct fake_rm_object *from = fake_find(args->client_from, args->object_from);
	struct fake_rm_object copy;

	if (fake_client(args->client, file) != GP_RM_OK)
		return GP_RM_ERR_CLIENT;
	if (!from || fake_find(args->client, args->object))
		return GP_RM_ERR_NOT_FOUND;
	copy = *from;
	copy.client = args->client;
	copy.parent = args->parent;
	copy.handle = args->object;
	copy.file = file;
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++)
		if (!rm->objects[i].used) {
			rm->objects[i] = copy;
			return GP_RM_OK;
		}
	return GP_RM_ERR_RESOURCES;
}

/* Counted for each channel: as often as it was disabled it must be enabled, and enabling what is enabled is not saved
 * up. What was not scheduled yet cannot be disabled: the call succeeds, holds nothing and leaves no count. */
static void fake_disable_one(struct fake_rm_object *channel, bool disable)
{
	if (!channel->scheduled)
		return;
	if (disable)
		channel->disabled++;
	else if (channel->disabled)
		channel->disabled--;
	if (channel->disabled > rm->disabled_most)
		rm->disabled_most = channel->disabled;
}

static uint32_t fake_disable(const struct gp_rm_disable *params, uint32_t *ret_value)
{
	if (params->count > GP_RM_DISABLE_MAX || params->event || params->disable > 1u)
		return GP_RM_ERR_ARGUMENT;
	*ret_value = params->count | (params->disable ? 0x10000u : 0);
	for (uint32_t i = 0; i < params->count; i++) {
		struct fake_rm_object *channel = fake_find(params->clients[i], params->channels[i]);

		if (!channel || !fake_class_is(channel->class_id, GP_RM_FAMILY_CHANNEL))
			return GP_RM_ERR_CHANNEL;
		fake_disable_one(channel, params->disable);
	}
	return GP_RM_OK;
}

static uint32_t fake_stats(uint32_t client, struct gp_rm_ctxsw_stats *stats)
{
	struct fake_rm_object *group = fake_find(client, stats->object);

	if (!group || group->class_id != GP_RM_CLASS_GROUP)
		return GP_RM_ERR_OBJECT;
	group->saves += __atomic_load_n(&rm->saves_step, __ATOMIC_RELAXED);
	stats->save = stats->restore = stats->cilp = group->saves;
	return GP_RM_OK;
}

/* The size a control has; 0: not one of ours. */
static uint32_t fake_size(uint32_t command)
{
	for (uint32_t i = 0; i < FAKE_RM_RULE_MAX; i++)
		if (rm->rules[i].how == FAKE_RM_SIZE && rm->rules[i].command == command)
			return rm->rules[i].value;
	switch (command) {
	case GP_RM_GROUP_SCHEDULE:
	case GP_RM_CHANNEL_SCHEDULE: return 3;
	case GP_RM_SLICE_SET:
	case GP_RM_SLICE_GET: return 8;
	case GP_RM_GROUP_INFO:
	case GP_RM_GPU_ID: return 4;
	case GP_RM_DISABLE_CHANNELS: return sizeof(struct gp_rm_disable);
	case GP_RM_CTXSW_MODES: return sizeof(struct gp_rm_ctxsw_modes);
	case GP_RM_CTXSW_STATS: return sizeof(struct gp_rm_ctxsw_stats);
	case GP_RM_EXPORT_TO_FD: return FAKE_RM_EXPORT_SIZE;
	case GP_RM_IMPORT_FROM_FD: return FAKE_RM_IMPORT_SIZE;
	default: return 0;
	}
}

static bool fake_is_on(const struct fake_rm_object *object, uint32_t command)
{
	uint32_t kind = command >> 16;

	if (kind == GP_RM_CLASS_GROUP)
		return object->class_id == GP_RM_CLASS_GROUP;
	if (kind == 0)
		return object->handle == object->client;
	if (kind == 0xa06fu)
		return fake_class_is(object->class_id, GP_RM_FAMILY_CHANNEL);
	return kind == GP_RM_CLASS_SUBDEVICE && object->class_id == GP_RM_CLASS_SUBDEVICE;
}

/* A group's channels, or one. Whether the real one enables what was disabled is not known: both are tried. */
static void fake_schedule(struct fake_rm_object *object, uint32_t enable)
{
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++) {
		struct fake_rm_object *other = &rm->objects[i];

		if (!other->used || other->client != object->client ||
		    (other != object && other->parent != object->handle))
			continue;
		other->scheduled = enable;
		if (!rm->schedule_keeps || !enable)
			other->disabled = 0;
	}
}

/* The file that carries objects to another process is one of the driver's. */
static uint32_t fake_carries(const void *params)
{
	int32_t fd;

	memcpy(&fd, params, sizeof(fd));
	return fake_kind(fd) == 'c' ? GP_RM_OK : GP_RM_ERR_ARGUMENT;
}

static uint32_t fake_control(const struct gp_rm_control *args, uint32_t file, uint32_t *ret_value)
{
	struct fake_rm_object *object = fake_find(args->client, args->object);
	_Alignas(8) uint8_t params[4096];
	uint32_t size = fake_size(args->command), status = GP_RM_OK, number;

	if (fake_client(args->client, file) != GP_RM_OK)
		return GP_RM_ERR_CLIENT;
	if (!object)
		return GP_RM_ERR_HANDLE;
	if (!size || !fake_is_on(object, args->command))
		return GP_RM_ERR_SUPPORT;
	if (args->params_size != size || size > sizeof(params) || !fake_read(params, args->params, size))
		return GP_RM_ERR_ARGUMENT;
	switch (args->command) {
	case GP_RM_SLICE_SET:
		memcpy(&object->slice_us, params, 8);
		*ret_value = (uint32_t)object->slice_us;
		break;
	case GP_RM_SLICE_GET: memcpy(params, &object->slice_us, 8); break;
	case GP_RM_GROUP_INFO:
		number = object->handle & 0xfffu;
		memcpy(params, &number, 4);
		break;
	case GP_RM_GPU_ID: memcpy(params, &rm->gpu_ids[object->gpu], 4); break;
	case GP_RM_CTXSW_MODES: memcpy(params + offsetof(struct gp_rm_ctxsw_modes, compute), &rm->cilp, 4); break;
	case GP_RM_CTXSW_STATS: status = fake_stats(args->client, (void *)params); break;
	case GP_RM_DISABLE_CHANNELS: status = fake_disable((const void *)params, ret_value); break;
	case GP_RM_EXPORT_TO_FD:
	case GP_RM_IMPORT_FROM_FD: status = fake_carries(params); break;
	default: fake_schedule(object, params[0]);
	}
	return fake_write(args->params, params, size) ? status : GP_RM_ERR_ARGUMENT;
}

/* The rule for a command, if there is one. It is used up by being asked for. */
static struct fake_rm_rule fake_rule(uint32_t command)
{
	struct fake_rm_rule found = { 0 };

	for (uint32_t i = 0; i < FAKE_RM_RULE_MAX; i++) {
		struct fake_rm_rule *rule = &rm->rules[i];

		if (rule->how == FAKE_RM_NOT || rule->how == FAKE_RM_SIZE || rule->command != command)
			continue;
		found = *rule;
		if (rule->count && rule->how != FAKE_RM_HANG && --rule->count == 0)
			rule->how = FAKE_RM_NOT;
		break;
	}
	return found;
}

static uint64_t fake_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fake_wait_teardown(void)
{
	while (fake_now_ns() < __atomic_load_n(&rm->busy_until_ns, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* The last descriptor of an open file goes, wherever it is: all that was made on it ends within close(). */
static void fake_teardown(uint32_t file)
{
	uint64_t until_ns = fake_now_ns() + rm->teardown_ms * 1000000ull;

	fake_lock();
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++)
		if (rm->objects[i].used && rm->objects[i].file == file &&
		    rm->objects[i].handle == rm->objects[i].client)
			fake_remove(rm->objects[i].client, rm->objects[i].handle);
	rm->teardowns++;
	if (rm->teardown_locks)
		__atomic_store_n(&rm->busy_until_ns, until_ns, __ATOMIC_RELEASE);
	fake_unlock();
	while (fake_now_ns() < until_ns)
		usleep(1000);
}

static bool fake_has_client(uint32_t file)
{
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++)
		if (rm->objects[i].used && rm->objects[i].file == file &&
		    rm->objects[i].handle == rm->objects[i].client)
			return true;
	return false;
}

/* Looking for other descriptors takes long: only where a test is about it. Else fake_reap() does it. */
FAKE_EXPORT int close(int fd)
{
	int before = errno;

	if (fd > 2 && fake_state() && rm->teardown_ms && fake_kind(fd) == 'c') {
		uint32_t file = (uint32_t)lseek(fd, 0, SEEK_CUR);

		if (file && fake_has_client(file) && fake_rm_opens(file) == 1)
			fake_teardown(file);
	}
	errno = before;
	return (int)syscall(SYS_close, fd);
}

static int fake_answer(struct fake_rm_call *call, void *data, uint32_t file)
{
	struct gp_rm_control *control = data;
	struct fake_rm_rule rule;

	fake_wait_teardown();
	fake_lock();
	if (rm->slow_us && call->number == GP_RM_CONTROL)
		usleep(1u + rm->call_count * 2654435761u % rm->slow_us); /* spread, not random */
	rule = fake_rule(call->command);
	while (rule.how == FAKE_RM_HANG && (!rule.value || rule.value == (uint32_t)getpid())) {
		__atomic_store_n(&rm->hanging, 1, __ATOMIC_RELEASE);
		fake_unlock();
		usleep(1000);
		fake_lock();
		rule = fake_rule(call->command);
	}
	__atomic_store_n(&rm->hanging, 0, __ATOMIC_RELEASE);
	if (rule.how == FAKE_RM_DIE) {
		fake_unlock();
		kill(getpid(), SIGKILL);
	}
	if (rule.how == FAKE_RM_STATUS || rule.how == FAKE_RM_ERRNO)
		call->status = rule.value;
	else if (call->number == GP_RM_ALLOC) {
		if (((const struct gp_rm_alloc *)data)->class_id == GP_RM_CLASS_CLIENT)
			fake_reap();
		call->status = fake_alloc(data, file);
	} else if (call->number == GP_RM_FREE)
		call->status = fake_free(data, file);
	else if (call->number == GP_RM_DUP)
		call->status = fake_dup(data, file);
	else if (call->number == GP_RM_MAP || call->number == GP_RM_UNMAP || call->number == GP_RM_MEMORY)
		call->status = fake_client(call->client, file);
	else
		call->status = fake_control(data, file, &call->value);
	if (rule.how == FAKE_RM_VALUE && call->number == GP_RM_CONTROL)
		fake_write(control->params, &rule.value, 4);
	rm->calls[rm->call_count++ % FAKE_RM_CALL_MAX] = *call;
	fake_unlock();
	if (rule.how != FAKE_RM_ERRNO)
		return 0;
	errno = (int)rule.value;
	return -1;
}

static int fake_ioctl(int fd, uint32_t number, uint32_t size, void *data)
{
	struct fake_rm_call call = { .pid = getpid(), .number = number, .command = number, .size = size };
	uint32_t file = fake_file(fd);
	int r;

	if (number == GP_RM_FREE && size == sizeof(struct gp_rm_free)) {
		struct gp_rm_free *args = data;

		call.client = args->client;
		call.object = args->object;
		r = fake_answer(&call, data, file);
		args->status = call.status;
	} else if (number == GP_RM_ALLOC &&
		   (size == sizeof(struct gp_rm_alloc) || size == sizeof(struct gp_rm_alloc_rights))) {
		struct gp_rm_alloc *args = data;

		call.client = args->client;
		call.value = args->class_id;
		r = fake_answer(&call, data, file);
		call.object = args->object;
		*(size == sizeof(*args) ? &args->status : &((struct gp_rm_alloc_rights *)data)->status) = call.status;
	} else if (number == GP_RM_DUP && size == sizeof(struct gp_rm_dup)) {
		r = fake_answer(&call, data, file);
		((struct gp_rm_dup *)data)->status = call.status;
	} else if (number == GP_RM_MEMORY && size == sizeof(struct gp_rm_memory)) {
		call.client = *(uint32_t *)data;
		r = fake_answer(&call, data, file);
		((struct gp_rm_memory *)data)->status = call.status;
	} else if ((number == GP_RM_MAP && size == sizeof(struct gp_rm_map)) ||
		   (number == GP_RM_UNMAP && size == sizeof(struct gp_rm_unmap))) {
		/* The caller maps the descriptor it named: its content is the memory. */
		call.client = *(uint32_t *)data;
		r = fake_answer(&call, data, file);
		*(number == GP_RM_MAP ? &((struct gp_rm_map *)data)->status : &((struct gp_rm_unmap *)data)->status) =
			call.status;
	} else if (number == GP_RM_CONTROL && size == sizeof(struct gp_rm_control)) {
		struct gp_rm_control *args = data;

		call.command = args->command;
		call.client = args->client;
		call.object = args->object;
		call.size = args->params_size;
		r = fake_answer(&call, data, file);
		args->status = call.status;
	} else {
		errno = EINVAL;
		r = -1;
	}
	return r;
}

FAKE_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct gp_rm_xfer call = { _IOC_NR(request), _IOC_SIZE(request), 0 };
	_Alignas(8) uint8_t data[64];
	va_list list;
	void *arg;
	int r;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (_IOC_TYPE(request) != GP_RM_TYPE || !fake_state() || !fake_kind(fd))
		return (int)syscall(SYS_ioctl, fd, request, arg);
	call.params = (uintptr_t)arg;
	if (call.number == GP_RM_XFER && (call.size != sizeof(call) || !fake_read(&call, call.params, sizeof(call))))
		call.size = sizeof(data) + 1u;
	if (call.size > sizeof(data) && call.number != GP_RM_VERSION) {
		errno = EINVAL;
		return -1;
	}
	if (call.number == GP_RM_VERSION)
		return 0;
	if (!fake_read(data, call.params, call.size)) {
		errno = EFAULT;
		return -1;
	}
	r = fake_ioctl(fd, call.number, call.size, data);
	if (r >= 0 && !fake_write(call.params, data, call.size)) {
		errno = EFAULT;
		return -1;
	}
	return r;
}
