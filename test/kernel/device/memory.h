/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SOFT_MEMORY_H
#define SOFT_MEMORY_H

struct kfd_process_device;
struct soft;
struct vm_area_struct;

extern atomic_t soft_notifier_evictions;
int soft_memory_mmap(struct soft *soft, struct vm_area_struct *vma);
/* A program's memory, by its address on the device. The program's mm is in use. 0, or a negative errno. */
int soft_memory_read(struct kfd_process_device *pdd, u64 address, void *to, size_t size);
int soft_memory_write(struct kfd_process_device *pdd, u64 address, const void *from, size_t size);
/* The same, from any thread: address and pages of the process itself, where no memory of the device is. */
int soft_memory_access(struct kfd_process_device *pdd, u64 address, void *data, size_t size, bool writes);
int soft_memory_find(struct kfd_process_device *pdd, u64 address, u64 *ret_base, u64 *ret_size);
/* Queues whose MQD lies there are no more. */
void soft_memory_forget(struct soft *soft, const void *memory, size_t size);

#endif
