/* SPDX-License-Identifier: MIT */
/*
 * Finds a thread of a process that has not ended. The first one, whose number is the process's, may end before the
 * others (pthread_exit in main): from then on the kernel finds neither memory nor descriptors behind that number.
 */
#ifndef GP_LIB_LIVING_H
#define GP_LIB_LIVING_H

#include <stdint.h>
#include <sys/types.h>

/* The first one if it goes on, or any other; 0: none does, or none of the first 64 others. Another process may get the
 * number once that thread ends. */
pid_t gp_living_thread(pid_t pid);
/* The same in a tree with a proc/ of its own instead of the machine's. */
pid_t gp_living_thread_under(const char *root, pid_t pid);

/* As pidfd_getfd(), but also after the end of the first thread. -errno; -EOPNOTSUPP: it has ended, and this kernel
 * (before 6.9) has no descriptors of other threads. -ETIMEDOUT: gp_aside_call() for
 * that owner did not come back. */
int gp_living_getfd(uint64_t owner, pid_t pid, int pidfd, int number);

#endif
