/* SPDX-License-Identifier: MIT */
/* A mutex on a futex: pthread_mutex_trylock() is too new in current headers, and a forked child starts with a fresh
 * one. */
#ifndef GP_AGENT_LOCK_H
#define GP_AGENT_LOCK_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/sys.h"

struct gp_lock {
	uint32_t state; /* 0 free, 1 held, 2 held and somebody waits */
};

static inline bool gp_lock_try(struct gp_lock *lock)
{
	uint32_t free_state = 0;

	return __atomic_compare_exchange_n(&lock->state, &free_state, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void gp_lock_take(struct gp_lock *lock)
{
	if (gp_lock_try(lock))
		return;
	while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE))
		gp_sys(SYS_futex, (long)&lock->state, FUTEX_WAIT_PRIVATE, 2, 0);
}

static inline void gp_lock_give(struct gp_lock *lock)
{
	if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2u)
		gp_sys(SYS_futex, (long)&lock->state, FUTEX_WAKE_PRIVATE, 1);
}

#endif
