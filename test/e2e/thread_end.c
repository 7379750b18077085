/* SPDX-License-Identifier: MIT */
/*
 * Ends one thread of a process as a mistake or a seccomp filter would, while the others go on: thread_end PID NAME
 * WHEN. WHEN: now, or before or after an ioctl of that thread's (its next one). The call exit(2) is put into the thread
 * by ptrace. WHEN hold: it is traced and left running until standard input ends; NAME -: the first thread. Exit 77: not
 * on this machine.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

static pid_t find_thread(const char *pid, const char *name)
{
	char path[300], comm[64];
	struct dirent *entry;
	pid_t found = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		FILE *stream;

		snprintf(path, sizeof(path), "/proc/%s/task/%s/comm", pid, entry->d_name);
		stream = fopen(path, "r");
		if (stream && fgets(comm, sizeof(comm), stream)) {
			comm[strcspn(comm, "\n")] = '\0';
			if (!strcmp(comm, name))
				found = (pid_t)atoi(entry->d_name);
		}
		if (stream)
			fclose(stream);
	}
	if (folder)
		closedir(folder);
	return found;
}

/* Whether it stopped; false: it has ended. */
static bool wait_stop(pid_t tid)
{
	int status;

	if (waitpid(tid, &status, __WALL) != tid) {
		perror("thread_end: waitpid");
		exit(1);
	}
	return WIFSTOPPED(status);
}

/* Runs it up to the begin of an ioctl; a stop at the end of one comes in between. */
static void run_to_ioctl(pid_t tid)
{
	struct user_regs_struct registers;
	struct __ptrace_syscall_info call;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) || !wait_stop(tid) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(call), &call) <= 0 ||
		    ptrace(PTRACE_GETREGS, tid, NULL, &registers)) {
			perror("thread_end: before an ioctl");
			exit(1);
		}
		if (call.op == PTRACE_SYSCALL_INFO_ENTRY && registers.orig_rax == SYS_ioctl)
			return;
	}
}

/* Where it was interrupted: in a call, which is the place for another one; else it runs up to the begin of its next.
 * Whether it stands at a begin. */
static bool run_to_call(pid_t tid)
{
	struct user_regs_struct registers;
	struct __ptrace_syscall_info call;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &registers)) {
		perror("thread_end: registers");
		exit(1);
	}
	if ((long long)registers.orig_rax >= 0)
		return false;
	do {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) || !wait_stop(tid) ||
		    ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(call), &call) <= 0) {
			perror("thread_end: before a call");
			exit(1);
		}
	} while (call.op != PTRACE_SYSCALL_INFO_ENTRY);
	return true;
}

static void put_exit(pid_t tid, bool at_entry)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &registers)) {
		perror("thread_end: registers");
		exit(1);
	}
	if (at_entry) {
		registers.orig_rax = SYS_exit;
	} else {
		/* It stands behind the two bytes of a syscall instruction: once more, as another call. */
		registers.rip -= 2;
		registers.rax = SYS_exit;
		registers.orig_rax = (unsigned long long)-1;
	}
	registers.rdi = 0;
	if (ptrace(PTRACE_SETREGS, tid, NULL, &registers) || ptrace(PTRACE_CONT, tid, NULL, NULL)) {
		perror("thread_end: exit");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	bool before = argc == 4 && !strcmp(argv[3], "before"), after = argc == 4 && !strcmp(argv[3], "after");
	bool hold = argc == 4 && !strcmp(argv[3], "hold");
	pid_t tid;

	if (argc != 4 || (!before && !after && !hold && strcmp(argv[3], "now") != 0)) {
		fprintf(stderr, "usage: thread_end PID NAME|- now|before|after|hold\n");
		return 2;
	}
	tid = strcmp(argv[2], "-") ? find_thread(argv[1], argv[2]) : (pid_t)atoi(argv[1]);
	if (!tid) {
		fprintf(stderr, "thread_end: process %s has no thread %s\n", argv[1], argv[2]);
		return 1;
	}
	if (hold) {
		if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
			perror("thread_end: seize");
			return 1;
		}
		puts("held");
		fflush(stdout);
		while (getchar() != EOF)
			;
		return 0;
	}
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) ||
	    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || !wait_stop(tid)) {
		perror("thread_end: seize");
		return 1;
	}
	if (before || after)
		run_to_ioctl(tid);
	if (after && (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) || !wait_stop(tid))) {
		perror("thread_end: after an ioctl");
		return 1;
	}
	put_exit(tid, before || (!after && run_to_call(tid)));
	while (wait_stop(tid))
		ptrace(PTRACE_CONT, tid, NULL, NULL);
	printf("%d\n", tid);
	return 0;
}

#else

int main(void)
{
	puts("thread_end: only on x86-64");
	return 77;
}

#endif
