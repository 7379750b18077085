/* SPDX-License-Identifier: MIT */
/*
 * The functions behind the ones the agent interposes: the next library's, or the kernel's where there is none. Also the
 * few functions of libc whose current version is newer than GLIBC_2.17, bound to their old one.
 */
#ifndef GP_AGENT_NEXT_H
#define GP_AGENT_NEXT_H

#include <stdbool.h>
#include <stddef.h>

void gp_next_init(void); /* once, before the others; safe to call again */

/* As the functions of libc: they return -1 and set errno. */
int gp_next_ioctl(int fd, unsigned long request, void *arg);
int gp_next_close(int fd);
int gp_next_dup2(int from, int to);
int gp_next_dup3(int from, int to, int flags);
int gp_next_close_range(unsigned first, unsigned last, int flags);
void *gp_next_mmap(void *address, size_t length, int protection, int flags, int fd, long offset);
int gp_next_munmap(void *address, size_t length);
int gp_next_mprotect(void *address, size_t length, int protection);
void *gp_next_mremap(void *address, size_t length, size_t new_length, int flags, void *to);

/* The agent's own ioctls: retried when interrupted; the result or -errno; errno is kept. */
int gp_next_own_ioctl(int fd, unsigned long request, void *arg);

/* Starts a detached thread with every signal blocked but SIGSYS and glibc's own two. */
bool gp_next_start_thread(void *(*function)(void *));

#endif
