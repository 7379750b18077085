/* SPDX-License-Identifier: MIT */
/* Owns the foreground of the terminal on standard input. Never stops or continues anybody. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vgpu/command/terminal.h"

void gp_terminal_stdio(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* A group in the background that sets the foreground is stopped by the kernel, unless it ignores or blocks that. */
static void terminal_set(pid_t group)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &old);
	tcsetpgrp(STDIN_FILENO, group);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

bool gp_terminal_lend(pid_t group)
{
	/* Not where a shell runs us in the background: the terminal is somebody else's then. */
	if (tcgetpgrp(STDIN_FILENO) != getpgrp())
		return false;
	terminal_set(group);
	return true;
}

void gp_terminal_take(void)
{
	terminal_set(getpgrp());
}

bool gp_terminal_child_stops(pid_t child)
{
	siginfo_t info = { 0 };

	/* SIGSTOP comes from somebody who means the command alone, and will continue it alone. */
	return !waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOHANG) && info.si_pid == child &&
	       info.si_status != SIGSTOP;
}
