/* SPDX-License-Identifier: MIT */
/* Closing files, and giving memory back, that other users can hold up. */
#ifndef GP_LIB_CLOSER_H
#define GP_LIB_CLOSER_H

#include <stddef.h>
#include <stdint.h>

#define GP_CLOSE_USER_MAX 64u /* files of one user that wait for a thread; chosen */

/* For the process; call it before it has files of other users. Without it, files that linger wait for their time. */
void gp_close_prepare(void);

/* Closes fd soon, on another thread: the caller never waits, however long the file takes. owner: the user whose file it
 * is; one user's files do not hold up another's. */
void gp_close_elsewhere(int fd, uint32_t owner);

/* How many files are given and not yet closed, in all and of this user. */
uint32_t gp_close_pending(void);
uint32_t gp_close_pending_of(uint32_t owner);

/* The same for memory shared with that user: soon the kernel has it back, though the user still maps it or holds its
 * file, and this process no longer maps it. From now on the caller must not touch it. */
void gp_unmap_elsewhere(void *memory, size_t size, uint32_t owner);
uint32_t gp_unmap_pending(void);
uint32_t gp_unmap_pending_of(uint32_t owner);

#endif
