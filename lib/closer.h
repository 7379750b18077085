/* SPDX-License-Identifier: MIT */
/* Closing files that other users can hold up. */
#ifndef GP_LIB_CLOSER_H
#define GP_LIB_CLOSER_H

#include <stdint.h>

/* Closes fd soon, on another thread: the caller never waits, however long the file takes. owner: the user whose file it
 * is; one user's files do not hold up another's. */
void gp_close_elsewhere(int fd, uint32_t owner);

/* How many files are given and not yet closed, in all and of this user. */
uint32_t gp_close_pending(void);
uint32_t gp_close_pending_of(uint32_t owner);

#endif
