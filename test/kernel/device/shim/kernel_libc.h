/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What model/ uses of the C library, inside the kernel. */
#ifndef SOFT_KERNEL_LIBC_H
#define SOFT_KERNEL_LIBC_H

#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/vmalloc.h>

#ifndef INT64_MAX
#define INT64_MAX S64_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif

static inline void *malloc(size_t size)
{
	return kvmalloc(size, GFP_KERNEL);
}

static inline void *calloc(size_t count, size_t size)
{
	return kvcalloc(count, size, GFP_KERNEL);
}

static inline void *realloc(void *memory, size_t size)
{
	return kvrealloc(memory, size, GFP_KERNEL);
}

static inline void free(void *memory)
{
	kvfree(memory);
}

#ifdef SOFT_MODEL
#undef current /* the model has a field of that name */
#endif

#endif
