// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Memory as amdkfd asks for it: GTT for its own buffers, buffer objects of programs, doorbells.
 *
 * A program's memory lies where the program has it; the device reads it through the program's own page tables. Memory
 * that was given as a user pointer is watched by a real MMU notifier: when its pages move, the process's queues are
 * evicted from inside the notifier, as amdgpu does, so that lockdep sees the same locks.
 */
#include <linux/idr.h>
#include <linux/mmu_notifier.h>
#include <drm/drm_drv.h>
#include "device.h"
#include "amdgpu_doorbell.h"
#include "memory.h"

struct soft_gtt {
	struct list_head node;
	u64 address;
	size_t size;
	void *memory;
};

struct soft_bo {
	struct amdgpu_bo bo;
	struct kref ref;
	u64 offset;
};

struct soft_memory {
	struct kgd_mem base;
	struct mmu_interval_notifier notifier;
	struct delayed_work restore;
	bool is_watched, is_out;
	void *memory;
	size_t size;
	u32 id;
	struct list_head node;
	struct amdgpu_vm *vm;
	struct amdgpu_bo_va va;
	struct amdgpu_bo_va_mapping mapping;
};

struct soft_process_info {
	struct amdgpu_amdkfd_fence *fence;
	int count;
};

static LIST_HEAD(memories);
static DEFINE_MUTEX(memories_lock);
static DEFINE_MUTEX(notifier_lock);
static DEFINE_IDA(doorbell_ids); /* of 8 KiB each */
atomic_t soft_notifier_evictions;

/* ---- GTT ---- */

int amdgpu_amdkfd_alloc_gtt_mem(struct amdgpu_device *adev, size_t size, void **mem_obj, uint64_t *gpu_addr,
				void **cpu_ptr, bool mqd_gfx9)
{
	struct soft *soft = to_soft(adev);
	struct soft_gtt *gtt = kzalloc(sizeof(*gtt), GFP_KERNEL);

	if (!gtt)
		return -ENOMEM;
	gtt->size = PAGE_ALIGN(size);
	gtt->memory = vzalloc(gtt->size);
	if (!gtt->memory) {
		kfree(gtt);
		return -ENOMEM;
	}
	mutex_lock(&soft->gtt_lock);
	gtt->address = soft->gtt_next;
	soft->gtt_next += gtt->size + PAGE_SIZE; /* a page that nothing has, to find overruns */
	list_add(&gtt->node, &soft->gtt);
	mutex_unlock(&soft->gtt_lock);
	*mem_obj = gtt;
	*gpu_addr = gtt->address;
	*cpu_ptr = gtt->memory;
	return 0;
}

void amdgpu_amdkfd_free_gtt_mem(struct amdgpu_device *adev, void **mem_obj)
{
	struct soft *soft = to_soft(adev);
	struct soft_gtt *gtt = *mem_obj;

	soft_memory_forget(soft, gtt->memory, gtt->size);
	mutex_lock(&soft->gtt_lock);
	list_del(&gtt->node);
	mutex_unlock(&soft->gtt_lock);
	vfree(gtt->memory);
	kfree(gtt);
	*mem_obj = NULL;
}

void *soft_gtt(struct soft *soft, u64 address)
{
	struct soft_gtt *gtt;
	void *found = NULL;

	mutex_lock(&soft->gtt_lock);
	list_for_each_entry(gtt, &soft->gtt, node) if (address >= gtt->address && address < gtt->address + gtt->size)
		found = gtt->memory + (address - gtt->address);
	mutex_unlock(&soft->gtt_lock);
	if (!found)
		soft_stale(soft, "the driver gave an address that is not in the GTT", address);
	return found;
}

/* ---- buffer objects ---- */

struct amdgpu_bo *soft_bo_new(struct amdgpu_device *adev, u64 offset)
{
	struct soft_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL);

	if (!bo)
		return NULL;
	kref_init(&bo->ref);
	bo->offset = offset;
	dma_resv_init(&bo->bo.tbo.base._resv);
	bo->bo.tbo.base.resv = &bo->bo.tbo.base._resv;
	bo->bo.tbo.bdev = &adev->mman.bdev;
	return &bo->bo;
}

static void soft_bo_free(struct kref *ref)
{
	struct soft_bo *bo = container_of(ref, struct soft_bo, ref);

	dma_resv_fini(&bo->bo.tbo.base._resv);
	kfree(bo);
}

struct amdgpu_bo *amdgpu_bo_ref(struct amdgpu_bo *bo)
{
	if (bo)
		kref_get(&container_of(bo, struct soft_bo, bo)->ref);
	return bo;
}

void amdgpu_bo_unref(struct amdgpu_bo **bo)
{
	if (*bo)
		kref_put(&container_of(*bo, struct soft_bo, bo)->ref, soft_bo_free);
	*bo = NULL;
}

int amdgpu_bo_create_kernel(struct amdgpu_device *adev, unsigned long size, int align, u32 domain,
			    struct amdgpu_bo **bo_ptr, u64 *gpu_addr, void **cpu_addr)
{
	struct soft *soft = to_soft(adev);
	struct amdgpu_bo *bo;
	int id;

	if (domain != AMDGPU_GEM_DOMAIN_DOORBELL || size > 8192)
		return -EOPNOTSUPP;
	id = ida_alloc_range(&doorbell_ids, 1, soft->doorbells_size / 8192 - 1, GFP_KERNEL);
	if (id < 0)
		return id;
	bo = soft_bo_new(adev, id * 8192ull);
	if (!bo) {
		ida_free(&doorbell_ids, id);
		return -ENOMEM;
	}
	/* Doorbells are memory here: what another process rang is not this one's. */
	memset_io(soft->doorbells + id * 8192ull, 0, 8192);
	*bo_ptr = bo;
	if (cpu_addr)
		*cpu_addr = (void __force *)soft->doorbells + id * 8192ull;
	return 0;
}

void amdgpu_bo_free_kernel(struct amdgpu_bo **bo, u64 *gpu_addr, void **cpu_addr)
{
	if (!*bo)
		return;
	ida_free(&doorbell_ids, container_of(*bo, struct soft_bo, bo)->offset / 8192);
	amdgpu_bo_unref(bo);
}

uint32_t amdgpu_doorbell_index_on_bar(struct amdgpu_device *adev, struct amdgpu_bo *bo, uint32_t index,
				      uint32_t doorbell_size)
{
	return container_of(bo, struct soft_bo, bo)->offset / 4 + index * doorbell_size / 4;
}

/* ---- a program's memory ---- */

static bool soft_invalidate(struct mmu_interval_notifier *notifier, const struct mmu_notifier_range *range,
			    unsigned long seq)
{
	struct soft_memory *memory = container_of(notifier, struct soft_memory, notifier);

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&notifier_lock);
	mmu_interval_set_seq(notifier, seq);
	if (!memory->is_out && range->event != MMU_NOTIFY_UNMAP && range->event != MMU_NOTIFY_RELEASE) {
		memory->is_out = true;
		atomic_inc(&soft_notifier_evictions);
		kgd2kfd_quiesce_mm(notifier->mm, KFD_QUEUE_EVICTION_TRIGGER_USERPTR);
		queue_delayed_work(system_freezable_wq, &memory->restore, msecs_to_jiffies(1));
	}
	mutex_unlock(&notifier_lock);
	return true;
}

static const struct mmu_interval_notifier_ops soft_notifier_ops = { .invalidate = soft_invalidate };

static void soft_restore(struct work_struct *work)
{
	struct soft_memory *memory = container_of(to_delayed_work(work), struct soft_memory, restore);

	mutex_lock(&notifier_lock);
	if (memory->is_out)
		kgd2kfd_resume_mm(memory->notifier.mm);
	memory->is_out = false;
	mutex_unlock(&notifier_lock);
}

struct amdgpu_bo_va_mapping *amdgpu_vm_bo_lookup_mapping(struct amdgpu_vm *vm, uint64_t addr)
{
	struct amdgpu_bo_va_mapping *found = NULL;
	struct soft_memory *memory;

	mutex_lock(&memories_lock);
	list_for_each_entry(memory, &memories, node) if (memory->vm == vm && addr >= memory->mapping.start &&
							 addr <= memory->mapping.last) found = &memory->mapping;
	mutex_unlock(&memories_lock);
	return found;
}

struct amdgpu_bo_va *amdgpu_vm_bo_find(struct amdgpu_vm *vm, struct amdgpu_bo *bo)
{
	struct amdgpu_bo_va *found = NULL;
	struct soft_memory *memory;

	mutex_lock(&memories_lock);
	list_for_each_entry(memory, &memories, node) if (memory->vm == vm && memory->base.bo == bo) found = &memory->va;
	mutex_unlock(&memories_lock);
	return found;
}

int amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(struct amdgpu_device *adev, uint64_t va, uint64_t size, void *drm_priv,
					    struct kgd_mem **mem, uint64_t *offset, uint32_t flags, bool criu_resume)
{
	struct soft *soft = to_soft(adev);
	struct soft_memory *memory = kzalloc(sizeof(*memory), GFP_KERNEL);
	struct amdgpu_bo *bo = soft_bo_new(adev, 0);
	int r = 0;

	if (!memory || !bo)
		goto no_memory;
	memory->base.va = va;
	memory->base.alloc_flags = flags;
	memory->base.bo = bo;
	memory->size = size;
	memory->vm = drm_priv_to_vm(drm_priv);
	memory->va.base.bo = bo;
	memory->mapping.bo_va = &memory->va;
	memory->mapping.start = va >> 12;
	memory->mapping.last = memory->mapping.start + PAGE_ALIGN(size) / 4096 - 1;
	INIT_DELAYED_WORK(&memory->restore, soft_restore);
	if (flags & (KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_VRAM)) {
		memory->memory = vmalloc_user(PAGE_ALIGN(size));
		if (memory->memory)
			r = xa_alloc(&soft->bos, &memory->id, memory, XA_LIMIT(1, 0xfffff), GFP_KERNEL);
		if (!memory->memory || r)
			goto no_memory;
		if (offset)
			*offset = (u64)memory->id << 32;
	}
	if (flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		memory->is_watched = !mmu_interval_notifier_insert(&memory->notifier, current->mm, va, PAGE_ALIGN(size),
								   &soft_notifier_ops);
	mutex_lock(&memories_lock);
	list_add(&memory->node, &memories);
	mutex_unlock(&memories_lock);
	*mem = &memory->base;
	return 0;

no_memory:
	if (memory)
		vfree(memory->memory);
	amdgpu_bo_unref(&bo);
	kfree(memory);
	return -ENOMEM;
}

int amdgpu_amdkfd_gpuvm_free_memory_of_gpu(struct amdgpu_device *adev, struct kgd_mem *mem, void *drm_priv,
					   uint64_t *size)
{
	struct soft_memory *memory = container_of(mem, struct soft_memory, base);

	if (size)
		*size = mem->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM ? PAGE_ALIGN(memory->size) : 0;
	if (memory->va.queue_refcount)
		soft_violation(to_soft(adev), "memory is freed that a queue uses", memory->va.queue_refcount);
	if (memory->is_watched)
		mmu_interval_notifier_remove(&memory->notifier);
	cancel_delayed_work_sync(&memory->restore);
	if (memory->is_out)
		kgd2kfd_resume_mm(memory->notifier.mm);
	mutex_lock(&memories_lock);
	list_del(&memory->node);
	mutex_unlock(&memories_lock);
	if (memory->id)
		xa_erase(&to_soft(adev)->bos, memory->id);
	vfree(memory->memory);
	amdgpu_bo_unref(&memory->base.bo);
	kfree(memory);
	return 0;
}

int soft_memory_mmap(struct soft *soft, struct vm_area_struct *vma)
{
	struct soft_memory *memory = xa_load(&soft->bos, vma->vm_pgoff >> 20);

	if (!memory || vma->vm_end - vma->vm_start > PAGE_ALIGN(memory->size))
		return -EINVAL;
	return remap_vmalloc_range(vma, memory->memory, vma->vm_pgoff & 0xfffff);
}

/* Memory of the device lies here; the program may have it nowhere. With memories_lock. */
static void *soft_memory_at(struct kfd_process_device *pdd, u64 address, size_t size)
{
	struct soft_memory *memory;

	list_for_each_entry(memory, &memories,
			    node) if (memory->memory && pdd->drm_priv && memory->vm == drm_priv_to_vm(pdd->drm_priv) &&
				      address >= memory->base.va &&
				      address + size <= memory->base.va + memory->size) return memory->memory +
		(address - memory->base.va);
	return NULL;
}

int soft_memory_read(struct kfd_process_device *pdd, u64 address, void *to, size_t size)
{
	void *from;

	mutex_lock(&memories_lock);
	from = soft_memory_at(pdd, address, size);
	if (from)
		memcpy(to, from, size);
	mutex_unlock(&memories_lock);
	return from || !copy_from_user(to, (void __user *)address, size) ? 0 : -EFAULT;
}

int soft_memory_write(struct kfd_process_device *pdd, u64 address, const void *from, size_t size)
{
	void *to;

	mutex_lock(&memories_lock);
	to = soft_memory_at(pdd, address, size);
	if (to)
		memcpy(to, from, size);
	mutex_unlock(&memories_lock);
	return to || !copy_to_user((void __user *)address, from, size) ? 0 : -EFAULT;
}

int soft_memory_access(struct kfd_process_device *pdd, u64 address, void *data, size_t size, bool writes)
{
	void *memory;

	mutex_lock(&memories_lock);
	memory = soft_memory_at(pdd, address, size);
	if (memory && writes)
		memcpy(memory, data, size);
	else if (memory)
		memcpy(data, memory, size);
	mutex_unlock(&memories_lock);
	if (memory)
		return 0;
	return access_process_vm(pdd->process->lead_thread, address, data, size, writes ? FOLL_WRITE : 0) == size ?
		       0 :
		       -EFAULT;
}

int soft_memory_find(struct kfd_process_device *pdd, u64 address, u64 *ret_base, u64 *ret_size)
{
	struct soft_memory *memory;
	int r = -EFAULT;

	mutex_lock(&memories_lock);
	list_for_each_entry(memory, &memories, node)
	{
		/* cppcheck-suppress uninitvar ; list_for_each_entry() sets it */
		if (!pdd->drm_priv || memory->vm != drm_priv_to_vm(pdd->drm_priv) || address < memory->base.va ||
		    address >= memory->base.va + memory->size)
			continue;
		*ret_base = memory->base.va;
		*ret_size = memory->size;
		r = 0;
		break;
	}
	mutex_unlock(&memories_lock);
	return r;
}

int amdgpu_amdkfd_gpuvm_map_memory_to_gpu(struct amdgpu_device *adev, struct kgd_mem *mem, void *drm_priv)
{
	atomic64_inc(&drm_priv_to_vm(drm_priv)->tlb_seq);
	return 0;
}

int amdgpu_amdkfd_gpuvm_map_gtt_bo_to_kernel(struct kgd_mem *mem, void **kptr, uint64_t *size)
{
	struct soft_memory *memory = container_of(mem, struct soft_memory, base);

	if (!memory->memory)
		return -EINVAL;
	*kptr = memory->memory;
	if (size)
		*size = memory->size;
	return 0;
}

int amdgpu_amdkfd_map_gtt_bo_to_gart(struct amdgpu_bo *bo, struct amdgpu_bo **gart)
{
	u64 address;
	void *memory;

	if (!to_soft(amdgpu_ttm_adev(bo->tbo.bdev))->adev.enable_mes_kiq) {
		*gart = amdgpu_bo_ref(bo);
		return 0;
	}
	return amdgpu_amdkfd_alloc_gtt_mem(amdgpu_ttm_adev(bo->tbo.bdev), 4096, (void **)gart, &address, &memory,
					   false);
}

/* ---- processes ---- */

int amdgpu_amdkfd_gpuvm_acquire_process_vm(struct amdgpu_device *adev, struct amdgpu_vm *avm, void **process_info,
					   struct dma_fence **ef)
{
	struct soft_process_info *info = *process_info;

	if (!info) {
		info = kzalloc(sizeof(*info), GFP_KERNEL);
		if (!info)
			return -ENOMEM;
		info->fence = amdgpu_amdkfd_fence_create(dma_fence_context_alloc(1), current->mm, NULL);
		*process_info = info;
		*ef = dma_fence_get(&info->fence->base);
	}
	info->count++;
	avm->process_info = (void *)info;
	return 0;
}

void amdgpu_amdkfd_gpuvm_release_process_vm(struct amdgpu_device *adev, void *drm_priv)
{
	struct soft_process_info *info = (void *)drm_priv_to_vm(drm_priv)->process_info;

	if (info && !--info->count) {
		dma_fence_put(&info->fence->base);
		kfree(info);
	}
	drm_priv_to_vm(drm_priv)->process_info = NULL;
}

int amdgpu_amdkfd_gpuvm_restore_process_bos(void *process_info, struct dma_fence __rcu **ef)
{
	struct soft_process_info *info = process_info;
	struct amdgpu_amdkfd_fence *fence =
		amdgpu_amdkfd_fence_create(info->fence->base.context, info->fence->mm, NULL);

	dma_fence_put(&info->fence->base);
	info->fence = fence;
	dma_fence_put(rcu_replace_pointer(*ef, dma_fence_get(&fence->base), true));
	return 0;
}

uint64_t amdgpu_amdkfd_gpuvm_get_process_page_dir(void *drm_priv)
{
	struct amdgpu_bo *root = drm_priv_to_vm(drm_priv)->root.bo;

	return 0x100000000ull | container_of(root, struct soft_bo, bo)->offset | 1;
}
