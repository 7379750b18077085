/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Everything the core needs from outside, with no libc at all: -ffreestanding -nostdinc. */
#ifndef GP_DEPS_H
#define GP_DEPS_H

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __SIZE_TYPE__ size_t;
typedef __UINTPTR_TYPE__ uintptr_t;
#define bool _Bool
#define true 1
#define false 0
#define NULL       ((void *)0)
#define INT64_MIN  (-__INT64_MAX__ - 1)
#define INT64_MAX  __INT64_MAX__
#define UINT32_MAX __UINT32_MAX__
#define UINT64_MAX __UINT64_MAX__

/* Linux's values: the numbers are part of the interface. */
#define EIO    5
#define ENOMEM 12
#define EBUSY  16
#define EINVAL 22
#define ENOSPC 28
#define ESTALE 116
#define EDQUOT 122

void *memset(void *dest, int value, size_t size);
void *memcpy(void *dest, const void *src, size_t size);
int memcmp(const void *a, const void *b, size_t size);

#define GP_ASSERT(x) ((x) ? (void)0 : __builtin_trap())
#define GP_NEVER(x)  (__builtin_expect(!!(x), 0) ? (__builtin_trap(), true) : false)

#endif
