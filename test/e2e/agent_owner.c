/* SPDX-License-Identifier: MIT */
/* What an application may do to its own process, for the agent's tests: sandbox, descriptors, processors, limits. All
 * by system calls of its own where the agent must not see it. */
#include "test/e2e/agent_owner.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t owner_trapped;

static void owner_refuse(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;

	(void)signal;
	(void)info;
	owner_trapped += syscall(SYS_gettid) != syscall(SYS_getpid);
#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
	context->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#endif
}

int owner_sandbox(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
	struct sigaction action = { .sa_sigaction = owner_refuse, .sa_flags = SA_SIGINFO };

	if (sigaction(SIGSYS, &action, NULL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

int owner_trapped_count(void)
{
	return owner_trapped;
}

int owner_fds(int fds[OWNER_FDS], int a, int b)
{
	int count = 0;
	DIR *folder = opendir("/proc/self/fd");

	for (struct dirent *entry; folder && (entry = readdir(folder)) && count < OWNER_FDS;) {
		int fd = atoi(entry->d_name);

		if (fd > 2 && fd != a && fd != b && fd != dirfd(folder))
			fds[count++] = fd;
	}
	if (folder)
		closedir(folder);
	return count;
}

static int stolen[OWNER_FDS], stolen_count, stolen_file;
static const char stolen_text[] = "the application's own words, all of which are still there";

int owner_steal(int a, int b)
{
	stolen_count = owner_fds(stolen, a, b);
	stolen_file = memfd_create("owner", MFD_CLOEXEC);
	if (stolen_file < 0 || write(stolen_file, stolen_text, sizeof(stolen_text)) != (ssize_t)sizeof(stolen_text) ||
	    lseek(stolen_file, 0, SEEK_SET) != 0)
		return -errno;
	for (int i = 0; i < stolen_count; i++)
		if (syscall(SYS_dup3, stolen_file, stolen[i], 0) != stolen[i])
			return -errno;
	return stolen_count;
}

const char *owner_stolen(void)
{
	char text[sizeof(stolen_text) + 16];

	if (lseek(stolen_file, 0, SEEK_CUR) != 0)
		return "somebody read or wrote";
	if (read(stolen_file, text, sizeof(text)) != (ssize_t)sizeof(stolen_text) ||
	    memcmp(text, stolen_text, sizeof(stolen_text)) != 0)
		return "somebody wrote";
	for (int i = 0; i < stolen_count; i++) {
		if (syscall(SYS_kcmp, getpid(), getpid(), 0, stolen_file, stolen[i]) != 0)
			return "somebody closed";
		if (close(stolen[i]) != 0)
			return "it cannot be closed";
	}
	return "ok";
}

int owner_bind(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return -errno;
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	return sched_setaffinity(0, sizeof(one), &one) < 0 ? -errno : CPU_COUNT(&all);
}

/* Calls each of the agent's threads by its number. */
static void owner_each(void (*call)(pid_t thread, long *result), long *result)
{
	DIR *folder = opendir("/proc/self/task");

	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		char path[300], name[32] = "";
		FILE *stream;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		stream = fopen(path, "r");
		if (stream && fgets(name, sizeof(name), stream) && !strncmp(name, "gpreempt-", 9))
			call((pid_t)atoi(entry->d_name), result);
		if (stream)
			fclose(stream);
	}
	if (folder)
		closedir(folder);
}

static void owner_processors(pid_t thread, long *least)
{
	cpu_set_t set;

	if (sched_getaffinity(thread, sizeof(set), &set) == 0 && (*least < 0 || CPU_COUNT(&set) < *least))
		*least = CPU_COUNT(&set);
}

int owner_agent_processors(void)
{
	long least = -ENOENT;

	owner_each(owner_processors, &least);
	return (int)least;
}

/* A thread that sleeps shows its stack pointer; the mapping that has it is its stack. */
static void owner_stack(pid_t thread, long *kib)
{
	unsigned long long pointer = 0, first, last;
	char path[64], line[512];
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
	stream = fopen(path, "r");
	if (!stream || !fgets(line, sizeof(line), stream) ||
	    sscanf(line, "%*d %*x %*x %*x %*x %*x %*x %llx", &pointer) != 1)
		*kib = -1;
	if (stream)
		fclose(stream);
	stream = fopen("/proc/self/maps", "r");
	while (stream && fgets(line, sizeof(line), stream))
		if (*kib >= 0 && sscanf(line, "%llx-%llx", &first, &last) == 2 && first <= pointer && pointer < last)
			*kib += (long)((last - first) / 1024u);
	if (stream)
		fclose(stream);
}

long owner_agent_stacks(void)
{
	long kib = 0;

	owner_each(owner_stack, &kib);
	return kib;
}

int owner_limit(unsigned count)
{
	struct rlimit limit = { count, count };

	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

int owner_count(unsigned below)
{
	int fds[OWNER_FDS], count = owner_fds(fds, -1, -1), low = 0;

	for (int i = 0; i < count; i++)
		low += (unsigned)fds[i] < below;
	return low;
}

static int hoard[64], hoard_count;

int owner_hoard(unsigned left)
{
	int fd;

	if (owner_limit(64) < 0)
		return -errno;
	while (hoard_count < 64 && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		hoard[hoard_count++] = fd;
	for (; left && hoard_count; left--)
		close(hoard[--hoard_count]);
	return owner_count(64);
}

int owner_share(void)
{
	while (hoard_count)
		close(hoard[--hoard_count]);
	return owner_count(64);
}
