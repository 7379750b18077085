/* SPDX-License-Identifier: MIT */
/* Memory of a process as its GPUs see it: pieces in the BAR, and the client's own pages. */
#ifndef GP_VGPU_MEMORY_H
#define GP_VGPU_MEMORY_H

#include "vgpu/packet/abi.h"
#include "vgpu/node/node.h"

/* The address space of a process on a gfx9 GPU. */
#define GP_VM_BASE         0x4000ull
#define GP_VM_END          (1ull << 47)
#define GP_VM_LDS_BASE     0x1000000000000ull
#define GP_VM_SCRATCH_BASE 0x2000000000000ull

/* The GPU\'s view: addresses are those of its page tables. -EFAULT: nothing is mapped there on this GPU. */
int gp_vm_read(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, void *ret_data, size_t size);
int gp_vm_write(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, const void *data, size_t size);
void gp_vm_store(void *to, const void *from, size_t size); /* into memory that is mapped here; a word in one store */
int gp_vm_copy(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t to, uint64_t from, uint64_t size);
int gp_vm_fill(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t to, uint32_t value, uint64_t size);
/* Atomic in shared memory; on the client's own pages it is a read and a write. */
int gp_vm_add(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, int64_t addend);
/* Where the range lies in vgpud's own mapping; NULL: not, or not in one piece. Valid until the piece is freed. */
void *gp_vm_pointer(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va, uint64_t size);
struct gp_vbo *gp_vm_find(struct gp_vproc *process, const struct gp_vdev *gpu, uint64_t va);

/* The client's view, for pointers in ioctl arguments. */
int gp_client_read(struct gp_vproc *process, uint64_t address, void *ret_data, size_t size);
int gp_client_write(struct gp_vproc *process, uint64_t address, const void *data, size_t size);

struct gp_vbo *gp_vbo_by_handle(struct gp_vproc *process, uint64_t handle);
void gp_vbo_free_all(struct gp_vproc *process);
int gp_vbo_alloc(struct gp_vproc *process, struct kfd_ioctl_alloc_memory_of_gpu_args *args);
int gp_vbo_free(struct gp_vproc *process, uint64_t handle);
int gp_vbo_export(struct gp_vproc *process, struct gp_kfd_ipc_export *args);
int gp_vbo_import(struct gp_vproc *process, struct gp_kfd_ipc_import *args);
/* The same as descriptors. */
int gp_vbo_export_dmabuf(struct gp_vcall *call, struct gp_kfd_export_dmabuf *args);
int gp_vbo_import_dmabuf(struct gp_vproc *process, struct kfd_ioctl_import_dmabuf_args *args);
int gp_vbo_dmabuf_info(struct gp_vproc *process, struct kfd_ioctl_get_dmabuf_info_args *args);
/* Memory that no piece has any more goes back to the device, or to the system's. */
void gp_vmemory_release(struct gp_vnode *node, uint32_t flags, uint32_t gpu_index, uint64_t offset, uint64_t size);
int gp_vbo_map(struct gp_vproc *process, uint64_t handle, uint64_t ids, uint32_t id_count, bool map,
	       uint32_t *ret_success);

#endif
