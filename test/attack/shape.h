/* SPDX-License-Identifier: MIT */
#ifndef GP_TEST_SHAPE_H
#define GP_TEST_SHAPE_H

/* If the program is set-user-ID root, it becomes what firejail makes of a user's program: a process with the user's uid
 * in a PID namespace that belongs to the initial user namespace. Otherwise nothing happens. */
int shape_sandbox(void);

/* Executes a command to which the kernel looks as before Linux 6.16: it cannot refuse descriptors that peers send.
 * Returns only if that fails. */
int shape_before_passrights(char **argv);

#endif
