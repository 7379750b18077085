/* SPDX-License-Identifier: MIT */
/* Closing what strangers have a hand in. */
#ifndef GP_LIB_CLOSER_H
#define GP_LIB_CLOSER_H

#include <stdint.h>

/* Closes fd soon, on another thread: the caller never waits, however long the file takes. owner: whose it is; one
 * user's do not hold up another's. */
void gp_close_elsewhere(int fd, uint32_t owner);

/* How many are given and not yet closed; of this user. */
uint32_t gp_close_pending(void);
uint32_t gp_close_pending_of(uint32_t owner);

#endif
