/* SPDX-License-Identifier: MIT */
/*
 * The terminal of `vgpu run`. The command is a process group of its own, so that all of it can be ended; a shell knows
 * only ours. So the terminal's foreground is lent to the command and taken back, and a stop (Ctrl-Z) is passed on.
 */
#ifndef GP_VGPU_TERMINAL_H
#define GP_VGPU_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

void gp_terminal_stdio(void);       /* descriptors 0 to 2 are open afterwards: nothing of ours gets their numbers */
bool gp_terminal_lend(pid_t group); /* false: there is none, or it is not ours to lend */
void gp_terminal_take(void);        /* back to our own group */
bool gp_terminal_child_stops(pid_t child); /* by the terminal or by itself, not by SIGSTOP */

#endif
