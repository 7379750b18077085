/* SPDX-License-Identifier: MIT */
/* Shapes of a process: a sandbox of an unprivileged user's, and a daemon on an older kernel. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/attack/shape.h"

#define PASSRIGHTS 83 /* SO_PASSRIGHTS */

/* The parent stays outside, as firejail's does: its real uid is the user's. */
int shape_sandbox(void)
{
	uid_t user = getuid();
	pid_t child;
	int status;

	if (!user || geteuid())
		return 0;
	child = unshare(CLONE_NEWPID) ? -1 : fork();
	if (child < 0)
		return -1;
	if (!child)
		return setresuid(user, user, user);
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

#define ARG(i) (uint32_t)(offsetof(struct seccomp_data, args) + (i) * sizeof(uint64_t))

int shape_before_passrights(char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG(1)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG(2)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PASSRIGHTS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	/* Root may install it without PR_SET_NO_NEW_PRIVS. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -1;
	execvp(argv[0], argv);
	return -1;
}
