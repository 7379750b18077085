/* SPDX-License-Identifier: MIT */
/* Closing what strangers have a hand in. */
#ifndef GP_LIB_CLOSER_H
#define GP_LIB_CLOSER_H

#include <stdint.h>

/* Closes fd soon, on another thread: the caller never waits, however long the file takes. */
void gp_close_elsewhere(int fd);

/* How many are given and not yet closed. */
uint32_t gp_close_pending(void);

#endif
