/* SPDX-License-Identifier: MIT */
/* Scope-bound cleanup for userspace code: never mixed with goto in one function. */
#ifndef GP_LIB_CLEANUP_H
#define GP_LIB_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>

static inline void gp_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void gp_cleanup_fclose(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

#define GP_AUTO_FREE   __attribute__((cleanup(gp_cleanup_free)))
#define GP_AUTO_FCLOSE __attribute__((cleanup(gp_cleanup_fclose)))

/* Hands the pointer over: the cleanup will find NULL. */
#define GP_TAKE(pointer)                        \
	({                                      \
		__auto_type taken_ = (pointer); \
		(pointer) = NULL;               \
		taken_;                         \
	})

#endif
