/* SPDX-License-Identifier: MIT */
/*
 * Replaces the agent's thread when that thread ends: killed by a seccomp filter of the application, by a debugger,
 * or by a bug. Without the thread, no part of the process would open its gates or look at its leases. The guard is a
 * second thread that sleeps in the kernel until then, without ever waking: it waits for a lock that the agent's
 * thread never releases, and that the kernel passes on when its owner ends (a PI futex). It then becomes the agent's
 * thread and starts another guard. The agent's thread learns from a pidfd that the guard has ended. Where there is none
 * (before Linux 6.9, or no descriptor to spare) it looks now and then, when it is awake anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/log.h"
#include "agent/next.h"
#include "agent/sys.h"

/* Replacements of the thread. What ended them all will end the next one too: after that the guard only opens the gates.
 */
#define GUARD_HEIRS 3u

#define GUARD_CHECK_NS 100000000ull
#define GUARD_MAX      16u /* so many guards are replaced; chosen */

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define GUARD_PIDFD_THREAD O_EXCL /* PIDFD_THREAD, since Linux 6.9 */

static uint32_t guard_tid;        /* of the waiting guard; 0: it has not started yet */
static bool guard_is_there;       /* started; only the agent's thread uses it */
static uint32_t guard_watched;    /* the guard for which a pidfd was asked; only the agent's thread uses it */
static uint32_t guard_replaced;   /* only the agent's thread uses it */
static uint64_t guard_checked_ns; /* only the agent's thread uses it */
static uint32_t guard_word;       /* PI futex: the tid of the agent's thread, which owns it */
static uint32_t guard_heirs;

/* Waits until the owner has ended. False: this kernel has no PI futexes, or the process was forked. */
static bool guard_wait(void)
{
	long r;

	do {
		r = gp_sys(SYS_futex, (long)&guard_word, FUTEX_LOCK_PI_PRIVATE, 0, 0);
	} while (r == -EINTR || r == -EAGAIN);
	/* ESRCH: the owner had ended before this wait began. */
	if (r && r != -ESRCH)
		return false;
	__atomic_store_n(&guard_word, (uint32_t)gp_sys(SYS_gettid, 0), __ATOMIC_RELEASE);
	return true;
}

/* It is not known what the dead thread was about to change: the guard counts every gate as closed, and opens it. */
static void guard_recover(void)
{
	if (!gp_agent.driver)
		return;
	if (gp_agent.driver->recover)
		gp_agent.driver->recover();
	for (uint32_t i = 0; i < gp_slot_limit() && gp_gate_takes_orders(); i++)
		if (gp_slots[i].used) {
			gp_slots[i].closed = true;
			gp_slots[i].closed_by = (uint8_t)gp_agent.mechanism;
		}
	gp_gates_open(0);
	gp_agent.driver->release();
}

/* What ended the thread may end this one: a filter of the application's, at a call that the application itself never
 * makes. So it first opens, by the driver's calls alone, without a look at whose its descriptors are; then it sees to
 * the next guard; then it does all else. */
static void guard_open(bool was_locked)
{
	gp_fds_trust(true);
	if (was_locked)
		guard_recover();
	else
		gp_gates_open(0);
	if (!was_locked && gp_agent.driver)
		gp_agent.driver->release();
	gp_fds_trust(false);
	gp_lock_give(&gp_agent.lock);
	/* The thread may have ended after it gave the lock back and before it woke the threads that wait for it. */
	gp_sys(SYS_futex, (long)&gp_agent.lock.state, FUTEX_WAKE_PRIVATE, INT32_MAX);
	gp_gate_deliver();
}

/* What ended all others may end this one, and nobody would inherit the lock: it waits until all gates are open, and
 * does all else when no thread of the application's asks for the lock any more. */
static void guard_end(void)
{
	gp_agent.leaving = gp_agent.exiting = true;
	gp_fds_trust(true);
	gp_thread_leave();
	gp_fds_trust(false);
	gp_lock_take(&gp_agent.lock, GP_LOCK_THREAD);
	gp_link_down("link: the agent's threads have ended");
	gp_fds_drop_all();
	gp_lock_give(&gp_agent.lock);
}

static void *guard_run(void *unused)
{
	bool was_locked;

	__atomic_store_n(&guard_tid, (uint32_t)gp_sys(SYS_gettid, 0), __ATOMIC_RELEASE);
	gp_sys(SYS_futex, (long)&guard_tid, FUTEX_WAKE_PRIVATE, 1);
	gp_sys(SYS_prctl, PR_SET_NAME, (long)"gpreempt-guard");
	/* Here, because the guard has nothing else to do and this may take a while. */
	if (!gp_fence_is_registered())
		gp_fence_register();
	if (!guard_wait())
		return NULL;
	was_locked = gp_lock_inherit(&gp_agent.lock);
	guard_open(was_locked);
	guard_tid = 0;
	guard_is_there = false;
	if (++guard_heirs > GUARD_HEIRS) {
		guard_end();
		return NULL;
	}
	gp_guard_start();
	gp_lock_take(&gp_agent.lock, GP_LOCK_THREAD);
	gp_log1("guard: the agent's thread has ended; in the middle of something", was_locked);
	if (!gp_agent.exiting)
		gp_link_down("link: the agent's thread has ended");
	gp_lock_give(&gp_agent.lock);
	if (gp_agent.exiting) {
		gp_thread_leave();
		return NULL;
	}
	return gp_thread_run(unused);
}

void gp_guard_start(void)
{
	const struct timespec wait = { 0, GUARD_CHECK_NS };
	uint32_t me = (uint32_t)gp_sys(SYS_gettid, 0);

	if (guard_is_there)
		return;
	/* A guard that took over owns the futex already. */
	if (__atomic_load_n(&guard_word, __ATOMIC_ACQUIRE) != me) {
		guard_word = 0;
		if (gp_sys(SYS_futex, (long)&guard_word, FUTEX_LOCK_PI_PRIVATE, 0, 0))
			return;
	}
	guard_is_there = gp_next_start_thread(guard_run);
	/* Until it says its number, so that gp_guard_check() watches it from the first time on. */
	if (guard_is_there)
		gp_sys(SYS_futex, (long)&guard_tid, FUTEX_WAIT_PRIVATE, 0, (long)&wait);
	else
		gp_log("guard: no thread");
}

static void guard_watch(uint32_t tid)
{
	long fd;

	guard_watched = tid;
	gp_fd_drop(GP_FD_GUARD);
	fd = gp_fds_are_enough() ? gp_sys(SYS_pidfd_open, tid, GUARD_PIDFD_THREAD) : -EMFILE;
	if (fd >= 0)
		gp_fd_take(GP_FD_GUARD, (int)fd);
}

void gp_guard_check(short came)
{
	uint32_t tid = __atomic_load_n(&guard_tid, __ATOMIC_ACQUIRE);
	uint64_t now_ns = gp_sys_now_ns();
	/* Else the application has closed it. */
	bool has_ended = came & POLLIN && gp_fd_verified(GP_FD_GUARD) >= 0 && tid == guard_watched;

	/* It stays readable. */
	if (came)
		gp_fd_drop(GP_FD_GUARD);
	if (!tid || guard_replaced >= GUARD_MAX)
		return;
	if (tid != guard_watched)
		guard_watch(tid);
	else if (!has_ended && now_ns - guard_checked_ns < GUARD_CHECK_NS)
		return;
	guard_checked_ns = now_ns;
	/* A thread that a debugger has not let go yet has ended, and tgkill finds it. */
	if (!has_ended && gp_sys(SYS_tgkill, gp_agent.pid, tid, 0) != -ESRCH)
		return;
	gp_log1("guard: it has ended, and is replaced", tid);
	guard_replaced++;
	guard_tid = 0;
	guard_is_there = false;
	gp_guard_start();
}

void gp_guard_forget(void)
{
	guard_word = guard_heirs = guard_tid = guard_watched = guard_replaced = 0;
	guard_is_there = false;
}
