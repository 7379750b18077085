/* SPDX-License-Identifier: MIT */
/*
 * The kernel as the agent calls it: errno of the application's thread is never touched, nothing is a cancellation
 * point, and no symbol newer than GLIBC_2.17 is needed. What must go through the next interposer (ioctl, close, …)
 * does: next.h.
 */
#ifndef GP_AGENT_SYS_H
#define GP_AGENT_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Returns what the kernel returns, or -errno. */
long gp_sys_call(long number, const long args[6]);
#define gp_sys(number, ...) gp_sys_call((number), (const long[6]){ __VA_ARGS__ })

uint64_t gp_sys_now_ns(void); /* CLOCK_MONOTONIC */
int gp_sys_close(int fd);
void gp_sys_wake(int eventfd); /* adds 1; a full or bad descriptor is ignored */
void gp_sys_drain(int eventfd);

/* Reads memory of this process that may not be there. A range that cannot be read has ok = false afterwards. */
struct gp_sys_range {
	uint64_t address;
	void *into;
	uint32_t size; /* at most 64 */
	bool ok;
};
#define GP_SYS_RANGE_MAX 128u
void gp_sys_read(struct gp_sys_range *ranges, uint32_t count);

#endif
