/* SPDX-License-Identifier: MIT */
/* A mutex on a futex: pthread_mutex_trylock() of current headers is a symbol too new for the agent, and a forked child
 * starts with a fresh lock. The lock remembers whether the agent's thread holds it: if that thread ends meanwhile, the
 * guard that takes over holds it. */
#ifndef GP_AGENT_LOCK_H
#define GP_AGENT_LOCK_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/sys.h"

#define GP_LOCK_HELD   1u
#define GP_LOCK_WAITED 2u /* a thread waits, or waited when the lock was taken */
#define GP_LOCK_THREAD 4u /* held by the agent's thread */

struct gp_lock {
	uint32_t state; /* 0 free */
};

static inline bool gp_lock_change(struct gp_lock *lock, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&lock->state, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline bool gp_lock_try(struct gp_lock *lock)
{
	return gp_lock_change(lock, 0, GP_LOCK_HELD);
}

/* who: 0 or GP_LOCK_THREAD. */
static inline void gp_lock_take(struct gp_lock *lock, uint32_t who)
{
	uint32_t state;

	if (gp_lock_change(lock, 0, GP_LOCK_HELD | who))
		return;
	for (;;) {
		state = __atomic_load_n(&lock->state, __ATOMIC_RELAXED);
		if (!(state & GP_LOCK_HELD)) {
			/* Other threads may have waited too. */
			if (gp_lock_change(lock, state, GP_LOCK_HELD | GP_LOCK_WAITED | who))
				return;
		} else if (state & GP_LOCK_WAITED || gp_lock_change(lock, state, state | GP_LOCK_WAITED)) {
			gp_sys(SYS_futex, (long)&lock->state, FUTEX_WAIT_PRIVATE, state | GP_LOCK_WAITED, 0);
		}
	}
}

static inline void gp_lock_give(struct gp_lock *lock)
{
	if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) & GP_LOCK_WAITED)
		gp_sys(SYS_futex, (long)&lock->state, FUTEX_WAKE_PRIVATE, 1);
}

/* The agent's thread has ended, and the guard takes its lock. True: the dead thread held it, and what it was about to
 * change may be half done. */
static inline bool gp_lock_inherit(struct gp_lock *lock)
{
	if (__atomic_load_n(&lock->state, __ATOMIC_ACQUIRE) & GP_LOCK_THREAD)
		return true;
	gp_lock_take(lock, GP_LOCK_THREAD);
	return false;
}

#endif
