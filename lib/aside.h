/* SPDX-License-Identifier: MIT */
/*
 * Calls that another user may hold up for ever. A process that opens a file in /proc/PID waits for the lock of that
 * folder, and cannot be killed meanwhile. Any user can hold that lock. So helper processes make such calls. A helper
 * that does not come back is left behind. It keeps no file, memory or lock of this process.
 */
#ifndef GP_LIB_ASIDE_H
#define GP_LIB_ASIDE_H

#include <stddef.h>
#include <stdint.h>

/* An owner that is never barred for a time, and for whom places are kept: of root's new connections alone. Any user can
 * hold up whoever looks at another process or into a driver's folder, and must not bar root thereby. */
#define GP_ASIDE_ROOT UINT64_MAX
/* A new connection's account is its own owner. Owners who are no accounts: of a client (struct gp_device_client), of
 * what a scan finds, of what may be MPS, of a process with a grant, of all other questions of an account, of a
 * driver's lists. */
#define GP_ASIDE_CLIENT(owner)     (1ull << 40 | (owner))
#define GP_ASIDE_SCAN(uid)         (2ull << 40 | (uid))
#define GP_ASIDE_MPS(uid)          (3ull << 40 | (uid))
#define GP_ASIDE_GRANT(pid)        (4ull << 40 | (uint64_t)(pid))
#define GP_ASIDE_DRIVER(number)    (5ull << 40 | (number))
#define GP_ASIDE_QUESTION(account) (1ull << 61 | (account))
#define GP_ASIDE_SIZE_MAX          65536u /* bytes of data */
#define GP_ASIDE_OWNER_MAX         4u     /* helpers of one owner that are left behind; chosen */
#define GP_ASIDE_LEFT_MAX          64u    /* and of all owners, a quarter of them for root alone; chosen */

/* Begins to use helpers. Call it while the process has one thread, and little memory: helpers have a copy of it. Until
 * then gp_aside_call() calls the function itself. 0 or a negative errno. */
int gp_aside_start(void);

/* Has a helper call the function with a copy of data, and copies the data back. The function sees the process as it was
 * at gp_aside_start(), with standard streams that lead nowhere and no other file. The caller waits, a second at most,
 * so the thread that decides never calls this. owner: who may hold the call up.
 * 0: done. Otherwise data is as before:
 * -ETIMEDOUT: the call does not come back;
 * -EBUSY: earlier calls for that owner did not come back, or came back late for a client, so that this one was not
 * made; another negative errno: there is no helper. */
int gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size);

uint32_t gp_aside_left(void); /* how many helpers are left behind now */
/* At the end; helpers that do not hang end. Threads may still make calls: those fail, because a thread that hung would
 * hold this process, with all its locks, at its exit. */
void gp_aside_stop(void);

#endif
