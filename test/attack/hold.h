/* SPDX-License-Identifier: MIT */
/* Holds the locks of folders, as any user can: one process lists the folder into memory that is a file of a FUSE mount
 * which does not answer, in namespaces of its own, and another one waits to change the folder. Whoever then looks into
 * the folder for the first time waits behind that one and cannot be killed. */
#ifndef GP_TEST_HOLD_H
#define GP_TEST_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOLD_SLOTS 16u

const char *hold_start(void); /* NULL, or why this machine does not allow it */
void hold_stop(void);         /* releases all; the end of this process does the same */

void hold_lock(uint32_t slot, pid_t pid); /* begins to lock that process's folder; the slot is free */
bool hold_is_locked(uint32_t slot);
void hold_release(uint32_t slot);
bool hold_is_free(uint32_t slot);

#endif
