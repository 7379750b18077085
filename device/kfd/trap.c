/* SPDX-License-Identifier: MIT */
/* DBG_TRAP, by the rules of Linux 6.12: docs/protocol.md says when each call is made. Owns no state. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gp_deps.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "device/kfd/trap.h"
#include "lib/aside.h"

#define TRAP_SNAPSHOT_MAX    1024u
#define TRAP_RUNTIME_ENABLED 1u
#define TRAP_SEIZE_NS        25000000l /* chosen: seizing takes microseconds, unless the process holds it up */
/* Rounds of that: a stall of the whole machine then uses up one round, not the whole limit. */
#define TRAP_SEIZE_ROUNDS 20

#define TRAP_THREADS_MAX 64u /* threads that the daemon tries; more only where ended ones are not collected. Chosen */

struct trap_enable {
	const struct gp_kfd_process *process;
	int fd, result;
	bool runtime;
};

/* What /proc says of a process. */
struct trap_look {
	pid_t pid;
	char state;
	uint32_t count;
	pid_t threads[TRAP_THREADS_MAX]; /* but the first */
};

/* In a helper. */
static void trap_look_aside(void *data)
{
	struct trap_look *look = data;
	const struct dirent *entry;
	char path[64], line[256];
	FILE *stream;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/status", look->pid);
	stream = fopen(path, "re");
	while (stream && !look->state && fgets(line, sizeof(line), stream))
		if (sscanf(line, "State: %c", &look->state) != 1)
			look->state = 0;
	if (stream)
		fclose(stream);
	snprintf(path, sizeof(path), "/proc/%d/task", look->pid);
	folder = opendir(path);
	while (folder && look->count < TRAP_THREADS_MAX && (entry = readdir(folder))) {
		look->threads[look->count] = *entry->d_name == '.' ? 0 : atoi(entry->d_name);
		look->count += look->threads[look->count] && look->threads[look->count] != look->pid;
	}
	if (folder)
		closedir(folder);
}

static struct trap_look trap_look(const struct gp_kfd_process *process)
{
	struct trap_look look = { .pid = process->pid };

	/* If there is no answer, nothing was found. */
	(void)gp_aside_call(GP_ASIDE_CLIENT(process->owner), trap_look_aside, &look, sizeof(look));
	return look;
}

/* The driver finds a process by the memory of the named thread. The first thread, whose id is the process's, may have
 * ended before the others (pthread_exit in main) and then has no memory: any other thread will do. */
static int trap_ioctl(int fd, const struct gp_kfd_process *process, struct gp_kfd_dbg_trap *args)
{
	struct trap_look look;
	int r;

	args->pid = (uint32_t)process->pid;
	r = gp_kfd_dbg_trap(fd, args);
	if (r != -ESRCH)
		return r;
	look = trap_look(process);
	for (uint32_t i = 0; i < look.count && r == -ESRCH; i++) {
		args->pid = (uint32_t)look.threads[i];
		r = gp_kfd_dbg_trap(fd, args);
	}
	return r;
}

/* Whether the first thread has ended and others go on: no process can trace such a process any more. */
static bool trap_is_leaderless(const struct gp_kfd_process *process)
{
	return trap_look(process).state == 'Z';
}

static __attribute__((noinline)) int trap_enable_seized(struct trap_enable *enable)
{
	struct gp_kfd_runtime_info info = { 0 };
	struct gp_kfd_dbg_trap args = { .pid = (uint32_t)enable->process->pid, .op = GP_KFD_DBG_ENABLE };
	int events, r;

	/* The daemon traces the process now, so the kernel cannot give its pid to another one: check that the pid is
	 * still the pidfd's process. */
	if (syscall(SYS_pidfd_send_signal, enable->process->pidfd, 0, NULL, 0) && errno == ESRCH)
		return -ESRCH;
	/* The driver would report exceptions here; the daemon asks for none. */
	events = open("/dev/null", O_WRONLY | O_CLOEXEC);
	args.enable.rinfo_ptr = (uint64_t)(uintptr_t)&info;
	args.enable.rinfo_size = sizeof(info);
	args.enable.dbg_fd = (uint32_t)events;
	r = gp_kfd_dbg_trap(enable->fd, &args);
	enable->runtime = info.runtime_state == TRAP_RUNTIME_ENABLED;
	if (events >= 0)
		close(events);
	return r;
}

/* The driver accepts ENABLE only from the tracer. A tracer that ends releases its tracee without ever having stopped
 * it, which PTRACE_DETACH could not: so this is a thread of its own. It has nothing on its stack that sanitizers mark:
 * they do not expect it to end in the middle. */
static void *trap_enable_thread(void *context)
{
	struct trap_enable *enable = context;
	int r;

	/* A process in the middle of an exec holds this call up for as long as its user likes: he may keep one of its
	 * threads from ending, or the program may come from a file system of his. No signal ends the call; only the end
	 * of this thread does. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	r = ptrace(PTRACE_SEIZE, enable->process->pid, NULL, NULL) ? -errno : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	enable->result = r ? r : trap_enable_seized(enable);
	return NULL;
}

static bool trap_join(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TRAP_SEIZE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return !pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
}

int gp_kfd_trap_enable(int fd, const struct gp_kfd_process *process)
{
	struct trap_enable enable = { .process = process, .fd = fd, .result = -ETIMEDOUT };
	bool joined = false;
	pthread_t thread;
	int r = pthread_create(&thread, NULL, trap_enable_thread, &enable);

	if (r)
		return -r;
	for (int i = 0; !joined && i < TRAP_SEIZE_ROUNDS; i++)
		joined = trap_join(thread);
	if (!joined) {
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	if (enable.result == -EPERM && trap_is_leaderless(process))
		return -ECHILD;
	if (enable.result < 0)
		return enable.result;
	if (!enable.runtime) {
		gp_kfd_trap_disable(fd, process);
		return -EOPNOTSUPP;
	}
	return 0;
}

int gp_kfd_trap_disable(int fd, const struct gp_kfd_process *process)
{
	struct gp_kfd_dbg_trap args = { .op = GP_KFD_DBG_DISABLE };

	return trap_ioctl(fd, process, &args);
}

int gp_kfd_trap_clear_new(int fd, const struct gp_kfd_process *process)
{
	struct gp_kfd_queue_snapshot entries[TRAP_SNAPSHOT_MAX];
	struct gp_kfd_dbg_trap args = { .op = GP_KFD_DBG_GET_QUEUE_SNAPSHOT };
	int r;

	args.queue_snapshot.exception_mask = GP_KFD_EC_QUEUE_NEW;
	args.queue_snapshot.snapshot_buf_ptr = (uint64_t)(uintptr_t)entries;
	args.queue_snapshot.num_queues = TRAP_SNAPSHOT_MAX;
	args.queue_snapshot.entry_size = sizeof(entries[0]);
	r = trap_ioctl(fd, process, &args);
	return r < 0 ? r : 0;
}

static int trap_call(int fd, const struct gp_kfd_process *process, bool open, uint32_t *ids, uint32_t count,
		     uint32_t grace)
{
	struct gp_kfd_dbg_trap args = { .op = open ? GP_KFD_DBG_RESUME_QUEUES : GP_KFD_DBG_SUSPEND_QUEUES };

	if (open) {
		args.resume.queue_array_ptr = (uint64_t)(uintptr_t)ids;
		args.resume.num_queues = count;
	} else {
		args.suspend.queue_array_ptr = (uint64_t)(uintptr_t)ids;
		args.suspend.num_queues = count;
		args.suspend.grace_period = grace;
	}
	return trap_ioctl(fd, process, &args);
}

static int trap_result(uint32_t id, bool open)
{
	if (id & GP_KFD_QUEUE_ERROR)
		return -EIO;
	if (id & GP_KFD_QUEUE_INVALID)
		return open ? -ESRCH : -EAGAIN; /* the queue no longer exists; it is new, or about to end */
	return 0;
}

int gp_kfd_trap_change(int fd, const struct gp_kfd_process *process, struct gp_device_change *changes, uint32_t count,
		       uint32_t grace)
{
	uint32_t ids[GP_PLAN_MAX], places[GP_PLAN_MAX], again = 0, i;
	bool open = changes[0].open;
	int r;

	GP_ASSERT(count && count <= GP_PLAN_MAX);
	for (i = 0; i < count; i++)
		ids[i] = changes[i].queue_id;
	r = trap_call(fd, process, open, ids, count, grace);
	for (i = 0; i < count; i++) {
		changes[i].result = r < 0 ? r : trap_result(ids[i], open);
		if (changes[i].result == -EAGAIN)
			places[again++] = i;
	}
	if (r < 0 || !again)
		return r < 0 ? r : 0;
	/* A new queue: clear its EC_QUEUE_NEW, then try once more. */
	r = gp_kfd_trap_clear_new(fd, process);
	for (i = 0; i < again; i++)
		ids[i] = changes[places[i]].queue_id;
	if (r >= 0)
		r = trap_call(fd, process, open, ids, again, grace);
	for (i = 0; i < again; i++)
		changes[places[i]].result = r < 0                                ? r :
					    trap_result(ids[i], open) == -EAGAIN ? -EINVAL :
										   trap_result(ids[i], open);
	return 0;
}
