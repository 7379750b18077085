/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SOFT_MEMORY_H
#define SOFT_MEMORY_H

struct soft;
struct vm_area_struct;

extern atomic_t soft_notifier_evictions;
int soft_memory_mmap(struct soft *soft, struct vm_area_struct *vma);
/* Queues whose MQD lies there are no more. */
void soft_memory_forget(struct soft *soft, const void *memory, size_t size);

#endif
