/* SPDX-License-Identifier: MIT */
/*
 * The agent's system calls: they never touch errno of the application's thread, are no cancellation points and need no
 * symbol newer than GLIBC_2.17. Calls that must go through the next interposer (ioctl, close, …) are in next.h.
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
/* The calling thread's id, for calls that find a process by a number. The first thread, whose id getpid() returns, may
 * have ended, and then has neither memory nor files. */
long gp_sys_self(void);
/* Identifies the calling thread without a system call: no two threads that live at once have the same value. */
static inline uint64_t gp_sys_thread(void)
{
#ifdef __x86_64__
	uint64_t self;

	__asm__("movq %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uint64_t)(uintptr_t)__builtin_thread_pointer();
#endif
}
void gp_sys_wake(int eventfd); /* adds 1; ignores a full or bad descriptor */
void gp_sys_drain(int eventfd);
uint32_t gp_sys_digits(char *at, uint64_t value); /* writes them without a closing zero; at most 20, how many */

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
