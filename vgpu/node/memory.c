/* SPDX-License-Identifier: MIT */
/*
 * Buffer objects, their accounting, and access to memory by GPU address. Every address comes from a client: ranges are
 * checked for overflow here and nowhere else.
 */
#include <errno.h>
#include <gp_deps.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "vgpu/files/live.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/node/share.h"

#define MEMORY_PAGE  4096u
#define MEMORY_HUGE  (2u << 20)
#define MEMORY_CHUNK (1u << 20)
#define CLIENT_TRIES 4 /* threads that end one after the other while the node looks for one */

/* The kernel reaches the memory of a process through any thread of it that has not ended. The first one may have ended
 * before the others (pthread_exit in main). The number of another one may be given to a stranger once it has ended. */
static pid_t client_thread(struct gp_vproc *process)
{
	if (!gp_vproc_has_thread(process, process->thread))
		process->thread = process->pid;
	return process->thread;
}

static bool client_next_thread(struct gp_vproc *process)
{
	pid_t thread = errno == ESRCH ? gp_vproc_living_thread(process) : 0;

	if (!thread || thread == process->thread)
		return false;
	process->thread = thread;
	return true;
}

int gp_client_read(struct gp_vproc *process, uint64_t address, void *ret_data, size_t size)
{
	struct iovec local = { ret_data, size }, remote = { (void *)(uintptr_t)address, size };
	int tries = CLIENT_TRIES;
	ssize_t done;

	process->node->counters.process_vm++;
	if (process->lent)
		return pread(process->memory, ret_data, size, (off_t)address) == (ssize_t)size ? 0 : -EFAULT;
	do
		done = process_vm_readv(client_thread(process), &local, 1, &remote, 1, 0);
	while (done < 0 && --tries && client_next_thread(process));
	return done == (ssize_t)size ? 0 : -EFAULT;
}

int gp_client_write(struct gp_vproc *process, uint64_t address, const void *data, size_t size)
{
	struct iovec local = { (void *)(uintptr_t)data, size }, remote = { (void *)(uintptr_t)address, size };
	int tries = CLIENT_TRIES;
	ssize_t done;

	process->node->counters.process_vm++;
	if (process->lent)
		return pwrite(process->memory, data, size, (off_t)address) == (ssize_t)size ? 0 : -EFAULT;
	do
		done = process_vm_writev(client_thread(process), &local, 1, &remote, 1, 0);
	while (done < 0 && --tries && client_next_thread(process));
	return done == (ssize_t)size ? 0 : -EFAULT;
}

/* The first piece that ends after va. */
static uint32_t memory_search(const struct gp_vproc *process, uint64_t va)
{
	uint32_t low = 0, high = process->bo_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2u;
		const struct gp_vbo *bo = process->bos[middle];

		if (bo->va + bo->size <= va)
			low = middle + 1u;
		else
			high = middle;
	}
	return low;
}

struct gp_vbo *gp_vm_find(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va)
{
	uint32_t index = memory_search(process, va);

	if (index < process->bo_count && process->bos[index]->va <= va &&
	    process->bos[index]->mapped & 1u << gpu->index)
		return process->bos[index];
	process->fault_va = va;
	return NULL;
}

void *gp_vm_pointer(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, uint64_t size)
{
	struct gp_vbo *bo = gp_vm_find(process, gpu, va);

	if (!bo)
		return NULL;
	if (bo->user || size > bo->size || va - bo->va > bo->size - size || bo->offset >= GP_BAR_MAPPED_SIZE) {
		process->fault_va = bo->va + bo->size;
		return NULL;
	}
	return process->node->bar.base + bo->offset + (va - bo->va);
}

/* One step of a longer access: how much of it lies in the piece at va, and how to reach it. */
struct memory_span {
	uint8_t *pointer;
	uint64_t user, size;
};

static int memory_span_at(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, uint64_t size,
			  struct memory_span *ret_span)
{
	struct gp_vbo *bo = gp_vm_find(process, gpu, va);
	uint64_t left;

	if (!bo)
		return -EFAULT;
	left = bo->size - (va - bo->va);
	*ret_span = (struct memory_span){ .size = size < left ? size : left };
	if (bo->user)
		ret_span->user = bo->user + (va - bo->va);
	else if (bo->offset < GP_BAR_MAPPED_SIZE)
		ret_span->pointer = process->node->bar.base + bo->offset + (va - bo->va);
	else
		return -EFAULT;
	return 0;
}

int gp_vm_read(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, void *ret_data, size_t size)
{
	uint8_t *data = ret_data;

	while (size) {
		struct memory_span span;
		int r = memory_span_at(process, gpu, va, size, &span);

		if (r < 0)
			return r;
		if (span.pointer)
			memcpy(data, span.pointer, span.size);
		else if (gp_client_read(process, span.user, data, span.size) < 0)
			return -EFAULT;
		data += span.size;
		va += span.size;
		size -= span.size;
	}
	return 0;
}

/*
 * A word is stored once. memcpy() of 4 or 8 bytes may store it twice (glibc's does: from the front and from the end),
 * and a client that answers in between would find its answer undone.
 */
void gp_vm_store(void *to, const void *from, size_t size)
{
	uint64_t word;
	uint32_t half;

	if (size == sizeof(word) && (uintptr_t)to % sizeof(word) == 0) {
		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
	} else if (size == sizeof(half) && (uintptr_t)to % sizeof(half) == 0) {
		memcpy(&half, from, sizeof(half));
		__atomic_store_n((uint32_t *)to, half, __ATOMIC_RELEASE);
	} else {
		memcpy(to, from, size);
	}
}

int gp_vm_write(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, const void *source, size_t size)
{
	const uint8_t *data = source;

	while (size) {
		struct memory_span span;
		int r = memory_span_at(process, gpu, va, size, &span);

		if (r < 0)
			return r;
		if (span.pointer)
			gp_vm_store(span.pointer, data, span.size);
		else if (gp_client_write(process, span.user, data, span.size) < 0)
			return -EFAULT;
		data += span.size;
		va += span.size;
		size -= span.size;
	}
	return 0;
}

int gp_vm_copy(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t to, uint64_t from, uint64_t size)
{
	static uint8_t buffer[MEMORY_CHUNK];

	while (size) {
		uint64_t step = size < MEMORY_CHUNK ? size : MEMORY_CHUNK;
		void *target = gp_vm_pointer(process, gpu, to, step), *origin = gp_vm_pointer(process, gpu, from, step);
		int r = 0;

		if (target && origin)
			memmove(target, origin, step);
		else if (target)
			r = gp_vm_read(process, gpu, from, target, step);
		else if (origin)
			r = gp_vm_write(process, gpu, to, origin, step);
		else if ((r = gp_vm_read(process, gpu, from, buffer, step)) == 0)
			r = gp_vm_write(process, gpu, to, buffer, step);
		if (r < 0)
			return r;
		to += step;
		from += step;
		size -= step;
	}
	return 0;
}

int gp_vm_fill(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t to, uint32_t value, uint64_t size)
{
	uint32_t words[1024];

	for (size_t i = 0; i < 1024u; i++)
		words[i] = value;
	while (size) {
		uint64_t step = size < sizeof(words) ? size : sizeof(words);
		int r = gp_vm_write(process, gpu, to, words, step);

		if (r < 0)
			return r;
		to += step;
		size -= step;
	}
	return 0;
}

int gp_vm_add(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, int64_t addend)
{
	int64_t *pointer = va % 8u ? NULL : gp_vm_pointer(process, gpu, va, 8), value;
	int r;

	if (pointer) {
		__atomic_add_fetch(pointer, addend, __ATOMIC_ACQ_REL);
		return 0;
	}
	r = gp_vm_read(process, gpu, va, &value, 8);
	if (r < 0)
		return r;
	value = (int64_t)((uint64_t)value + (uint64_t)addend);
	return gp_vm_write(process, gpu, va, &value, 8);
}

/* Buffer objects. */

void gp_vmemory_release(struct gp_vnode *node, uint32_t flags, uint32_t gpu_index, uint64_t offset, uint64_t size)
{
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) {
		struct gp_vdev *gpu = &node->gpus[gpu_index];

		GP_ASSERT(gpu->vram_used >= size);
		gpu->vram_used -= size;
		gp_live_mark(node);
		gp_range_give(&gpu->vram, offset, size);
	} else {
		GP_ASSERT(node->gtt_used >= size);
		node->gtt_used -= size;
		gp_range_give(&node->gtt, offset, size);
	}
	gp_bar_wipe(&node->bar, offset, size);
}

static void bo_unaccount(struct gp_vproc *process, struct gp_vbo *bo)
{
	struct gp_vnode *node = process->node;

	if (!bo->accounted)
		return;
	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM && !bo->imported)
		process->devices[bo->gpu_index].vram_used -= bo->size;
	if (bo->share && !gp_vshare_put(node, bo->share))
		return;
	if (bo->user)
		node->gtt_used -= bo->size;
	else
		gp_vmemory_release(node, bo->flags, bo->gpu_index, bo->offset, bo->size);
}

static int bo_account(struct gp_vproc *process, struct gp_vbo *bo)
{
	struct gp_vnode *node = process->node;
	struct gp_vdev *gpu = &node->gpus[bo->gpu_index];
	uint64_t align = bo->size >= MEMORY_HUGE ? MEMORY_HUGE : MEMORY_PAGE;
	int r;

	gp_vshare_sweep(node);
	if (bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) {
		r = gp_range_take(&gpu->vram, bo->size, align, &bo->offset);
		if (r < 0)
			return -ENOMEM;
		gpu->vram_used += bo->size;
		process->devices[gpu->index].vram_used += bo->size;
		gp_live_mark(node);
	} else {
		if (bo->size > node->gtt_size - node->gtt_used)
			return -ENOMEM;
		if (!bo->user && gp_range_take(&node->gtt, bo->size, align, &bo->offset) < 0)
			return -ENOMEM;
		node->gtt_used += bo->size;
	}
	bo->accounted = true;
	return 0;
}

struct gp_vbo *gp_vbo_by_handle(struct gp_vproc *process, uint64_t handle)
{
	uint32_t index = (uint32_t)handle;
	struct gp_vbo *bo = index < process->handle_count ? process->handles[index] : NULL;

	return bo && bo->handle == handle ? bo : NULL;
}

static int bo_grow(struct gp_vproc *process)
{
	uint32_t capacity = process->bo_capacity ? process->bo_capacity * 2u : 64u;
	struct gp_vbo **bos, **handles;

	if (process->bo_count < process->bo_capacity)
		return 0;
	if (capacity > GP_VPROC_BO_MAX)
		return -ENOMEM;
	bos = realloc(process->bos, capacity * sizeof(struct gp_vbo *));
	if (!bos)
		return -ENOMEM;
	process->bos = bos;
	handles = realloc(process->handles, capacity * sizeof(struct gp_vbo *));
	if (!handles)
		return -ENOMEM;
	process->handles = handles;
	process->bo_capacity = capacity;
	return 0;
}

/* The lowest free handle; live pieces are never more than there are handles. */
static uint32_t bo_handle_take(struct gp_vproc *process)
{
	uint32_t index = process->handle_free;

	while (index < process->handle_count && process->handles[index])
		index++;
	if (index == process->handle_count)
		process->handle_count++;
	process->handle_free = index + 1u;
	return index;
}

static void bo_remove(struct gp_vproc *process, struct gp_vbo *bo)
{
	uint32_t at = memory_search(process, bo->va), index = (uint32_t)bo->handle;

	process->bo_count--;
	memmove(&process->bos[at], &process->bos[at + 1u], (process->bo_count - at) * sizeof(struct gp_vbo *));
	process->handles[index] = NULL;
	if (index < process->handle_free)
		process->handle_free = index;
	if (process->event_page == bo)
		process->event_page = NULL;
	bo_unaccount(process, bo);
	free(bo);
}

void gp_vbo_free_all(struct gp_vproc *process)
{
	while (process->bo_count)
		bo_remove(process, process->bos[process->bo_count - 1u]);
	free(process->bos);
	free(process->handles);
	process->bos = process->handles = NULL;
	process->bo_capacity = process->handle_count = 0;
}

static int bo_check(const struct gp_vproc *process, const struct kfd_ioctl_alloc_memory_of_gpu_args *args)
{
	uint32_t domain = args->flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT |
					 KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL |
					 KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP);
	uint32_t at;

	if (!args->size || args->size > GP_BAR_GTT_SIZE || !domain || (domain & (domain - 1u)))
		return -EINVAL;
	if (args->va_addr % MEMORY_PAGE || args->va_addr >= GP_VM_END || args->size > GP_VM_END - args->va_addr)
		return -EINVAL;
	if ((domain & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) && args->size != GP_BAR_DOORBELL_SLICE)
		return -EINVAL;
	if ((domain & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) && args->size != MEMORY_PAGE)
		return -EINVAL;
	if ((domain & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) &&
	    (!args->mmap_offset || args->mmap_offset >= GP_VM_END || args->size > GP_VM_END - args->mmap_offset))
		return -EINVAL;
	at = memory_search(process, args->va_addr);
	if (at < process->bo_count && process->bos[at]->va < args->va_addr + args->size)
		return -EINVAL;
	return 0;
}

/* There is room for it: see bo_grow(). */
static void bo_insert(struct gp_vproc *process, struct gp_vbo *bo, uint32_t gpu_id)
{
	uint32_t at;

	bo->handle = (uint64_t)gpu_id << 32 | bo_handle_take(process);
	process->handles[(uint32_t)bo->handle] = bo;
	at = memory_search(process, bo->va);
	memmove(&process->bos[at + 1u], &process->bos[at], (process->bo_count - at) * sizeof(struct gp_vbo *));
	process->bos[at] = bo;
	process->bo_count++;
}

int gp_vbo_alloc(struct gp_vproc *process, struct kfd_ioctl_alloc_memory_of_gpu_args *args)
{
	struct gp_vdev *gpu = gp_vnode_gpu(process->node, args->gpu_id);
	struct gp_vbo *bo;
	int r;

	if (!gpu)
		return -EINVAL;
	args->size = (args->size + MEMORY_PAGE - 1u) & ~(uint64_t)(MEMORY_PAGE - 1u);
	r = bo_check(process, args);
	if (r < 0)
		return r;
	if (bo_grow(process) < 0)
		return -ENOMEM;
	bo = calloc(1, sizeof(*bo));
	if (!bo)
		return -ENOMEM;
	*bo = (struct gp_vbo){ .va = args->va_addr, .size = args->size, .flags = args->flags, .gpu_index = gpu->index };
	if (args->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		bo->user = args->mmap_offset;
	if (args->flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) {
		bo->offset = GP_BAR_DOORBELL +
			     ((uint64_t)process->slot * GP_VNODE_GPU_MAX + gpu->index) * GP_BAR_DOORBELL_STEP;
	} else {
		r = bo_account(process, bo);
		if (r < 0) {
			free(bo);
			return r;
		}
	}
	bo_insert(process, bo, gpu->gpu_id);
	args->handle = bo->handle;
	if (!bo->user)
		args->mmap_offset = bo->offset;
	return 0;
}

static int bo_share(struct gp_vproc *process, uint64_t handle, struct gp_vshare **ret_share)
{
	struct gp_vbo *bo = gp_vbo_by_handle(process, handle);

	if (!bo || bo->user || !bo->accounted)
		return -EINVAL;
	if (!bo->share)
		bo->share = gp_vshare_create(process->node, bo);
	*ret_share = bo->share;
	return bo->share ? 0 : -ENOMEM;
}

static int bo_import(struct gp_vproc *process, const struct gp_vdev *gpu, struct gp_vshare *share, uint64_t va,
		     struct gp_vbo **ret_bo)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args like = { .va_addr = va, .size = share->size, .flags = share->flags };
	struct gp_vbo *bo;
	int r = bo_check(process, &like);

	if (r < 0)
		return r;
	if (bo_grow(process) < 0 || !(bo = calloc(1, sizeof(*bo))))
		return -ENOMEM;
	*bo = (struct gp_vbo){ .va = va,
			       .size = share->size,
			       .offset = share->offset,
			       .flags = share->flags,
			       .gpu_index = share->gpu_index,
			       .accounted = true,
			       .imported = true,
			       .share = share };
	share->refs++;
	bo_insert(process, bo, gpu->gpu_id);
	*ret_bo = bo;
	return 0;
}

int gp_vbo_export(struct gp_vproc *process, struct gp_kfd_ipc_export *args)
{
	struct gp_vshare *share;
	int r = bo_share(process, args->handle, &share);

	if (!r)
		memcpy(args->key, share->key, sizeof(args->key));
	return r;
}

int gp_vbo_import(struct gp_vproc *process, struct gp_kfd_ipc_import *args)
{
	const struct gp_vdev *gpu = gp_vnode_gpu(process->node, args->gpu_id);
	struct gp_vshare *share = gp_vshare_by_key(process->node, args->key);
	struct gp_vbo *bo;
	int r = gpu && share ? bo_import(process, gpu, share, args->va_addr, &bo) : -EINVAL;

	if (r < 0)
		return r;
	args->handle = bo->handle;
	args->mmap_offset = bo->offset;
	args->flags = bo->flags;
	return 0;
}

int gp_vbo_export_dmabuf(struct gp_vcall *call, struct gp_kfd_export_dmabuf *args)
{
	struct gp_vshare *share;
	int r = bo_share(call->process, args->handle, &share);

	return r ? r : gp_vshare_give(call, share, &args->fd);
}

int gp_vbo_import_dmabuf(struct gp_vproc *process, struct kfd_ioctl_import_dmabuf_args *args)
{
	const struct gp_vdev *gpu = gp_vnode_gpu(process->node, args->gpu_id);
	struct gp_vshare *share;
	struct gp_vbo *bo;
	int r = gpu ? gp_vshare_take(process, args->dmabuf_fd, &share) : -EINVAL;

	if (!r)
		r = bo_import(process, gpu, share, args->va_addr, &bo);
	if (!r)
		args->handle = bo->handle;
	return r;
}

int gp_vbo_dmabuf_info(struct gp_vproc *process, struct kfd_ioctl_get_dmabuf_info_args *args)
{
	struct gp_vshare *share;
	int r = gp_vshare_take(process, args->dmabuf_fd, &share);

	if (r)
		return r;
	args->size = share->size;
	args->metadata_size = 0; /* of pictures */
	args->gpu_id = process->node->gpus[share->gpu_index].gpu_id;
	args->flags = share->flags;
	return 0;
}

int gp_vbo_free(struct gp_vproc *process, uint64_t handle)
{
	struct gp_vbo *bo = gp_vbo_by_handle(process, handle);

	if (!bo)
		return -EINVAL;
	/* KFD refuses while the mapping stands; user space unmaps first. */
	if (bo->mapped)
		return -EBUSY;
	bo_remove(process, bo);
	return 0;
}

int gp_vbo_map(struct gp_vproc *process, uint64_t handle, uint64_t ids, uint32_t id_count, bool map,
	       uint32_t *ret_success)
{
	uint32_t gpu_ids[GP_VNODE_GPU_MAX], done = *ret_success;
	struct gp_vbo *bo;

	if (!id_count || id_count > process->node->gpu_count || done > id_count)
		return -EINVAL;
	if (gp_client_read(process, ids, gpu_ids, id_count * sizeof(gpu_ids[0])) < 0)
		return -EFAULT;
	bo = gp_vbo_by_handle(process, handle);
	if (!bo)
		return -ENOMEM;
	for (; done < id_count; done++) {
		struct gp_vdev *gpu = gp_vnode_gpu(process->node, gpu_ids[done]);

		if (!gpu) {
			*ret_success = done;
			return -EINVAL;
		}
		if (map)
			bo->mapped |= 1u << gpu->index;
		else
			bo->mapped &= ~(1u << gpu->index);
	}
	*ret_success = done;
	return 0;
}
