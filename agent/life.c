/* SPDX-License-Identifier: MIT */
/* The agent's life: first use, fork, exit. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/log.h"
#include "agent/next.h"
#include "agent/sys.h"

#define LIFE_EXIT_TRIES 200u /* of 1 ms: how long exit() waits at most for the lock of a thread that died */

/* What pthread_atfork() calls in glibc. Weak, because a program of another libc (musl's, started somewhere below a
 * script that has the agent) loads the agent too, and must start. There the agent notices a fork at its first use in
 * the child. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library)
	__attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

struct gp_agent gp_agent;

/* The processors that the program was started with: a mask of 8192 bits. */
static uint64_t life_processors[128];
static long life_processors_size;

static void life_prepare_child(void)
{
	/* Nothing here waits or allocates. The child has no GPU: KFD refuses it the parent's descriptors. The agent
	 * starts over if the child opens the device itself. A thread that does not exist in the child may have had the
	 * lock, even during the agent's first use, while pid is still 0. */
	gp_agent.lock = (struct gp_lock){ 0 };
	if (!gp_agent.pid)
		return;
	gp_agent.pid = 0;
	gp_agent.exiting = gp_agent.leaving = false;
	gp_agent.epoch++;
	gp_agent.thread_started = false;
	gp_agent.greeted_before = gp_agent.arms_without_barrier = false;
	gp_agent.runtime_enabled = false;
	gp_agent.link = GP_LINK_DOWN;
	gp_agent.mechanism = GP_MECHANISM_NONE;
	gp_agent.sample_ns = 0;
	gp_agent.driver = NULL;
	gp_guard_forget();
	gp_page_unmap();
	gp_fence_forget();
	gp_gate_forget();
	gp_slots_reset();
	gp_share_forget();
	gp_fds_trust(false);
	gp_fds_drop_all();
}

/* Runs while no other thread does. Calls that take libc's locks are made here, because a first call may come from a
 * signal handler, from a child of vfork or from an allocator. */
__attribute__((constructor)) static void life_load(void)
{
	gp_next_init();
	if (__register_atfork)
		__register_atfork(NULL, NULL, life_prepare_child, __dso_handle);
	life_processors_size = gp_sys(SYS_sched_getaffinity, 0, sizeof(life_processors), (long)life_processors);
}

/* A thread inherits the affinity of the thread that created it. If that one is bound to a processor that it never
 * leaves, the agent's thread would get no time to open gates. */
void gp_agent_unbind(void)
{
	if (life_processors_size > 0)
		gp_sys(SYS_sched_setaffinity, 0, life_processors_size, (long)life_processors);
}

static void life_environment(void)
{
	const char *path = getenv(GP_WIRE_SOCKET_ENV), *map = getenv("GPREEMPT_STREAM_MAP"),
		   *log = getenv("GPREEMPT_AGENT_LOG");
	const char *mode = getenv("GPREEMPT_AGENT"), *copy = getenv("GPREEMPT_COPY_HINT");

	if (!path || !*path)
		path = GP_WIRE_SOCKET;
	/* A setuid program must not trust its environment: it runs without the agent. */
	gp_agent.off =
		(mode && !strcmp(mode, "off")) || strlen(path) >= sizeof(gp_agent.socket_path) || getauxval(AT_SECURE);
	if (gp_agent.off)
		return;
	memcpy(gp_agent.socket_path, path, strlen(path) + 1u);
	gp_stream_map_parse(&gp_agent.map, GP_STREAM_MAP_DEFAULT);
	gp_agent.map_by_user = map && gp_stream_map_parse(&gp_agent.map, map) == 0;
	gp_agent.copy_hint = copy && !strcmp(copy, "1");
	gp_attr_from_environment(&gp_agent.wanted);
	if (log && *log)
		gp_log_open(log);
	gp_log1("agent: pid", gp_sys(SYS_getpid, 0));
}

/* A page that fork empties and vfork shares: it tells a child with memory of its own from a child that runs in the
 * parent's. */
static uint32_t *life_mark;

static void life_mark_page(void)
{
	long at = gp_sys(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (life_mark || (at < 0 && at > -4096))
		return;
	if (gp_sys(SYS_madvise, at, 4096, MADV_WIPEONFORK) < 0) {
		gp_sys(SYS_munmap, at, 4096);
		return;
	}
	life_mark = (uint32_t *)at;
}

bool gp_agent_is_borrowed(void)
{
	int32_t pid = __atomic_load_n(&gp_agent.pid, __ATOMIC_ACQUIRE);

	return pid && life_mark && *life_mark && pid != (int32_t)gp_sys(SYS_getpid, 0);
}

bool gp_agent_ready(void)
{
	int32_t pid = (int32_t)gp_sys(SYS_getpid, 0);
	int saved = errno;
	bool on;

	if (__atomic_load_n(&gp_agent.pid, __ATOMIC_ACQUIRE) == pid)
		return !gp_agent.off;
	if (gp_agent_is_borrowed())
		return false;
	/* Another process's pid: a child of a fork that ran no handlers (clone). */
	if (gp_agent.pid)
		life_prepare_child();
	gp_agent_lock();
	if (gp_agent.pid != pid) {
		life_environment();
		life_mark_page();
		if (life_mark)
			*life_mark = 1;
		__atomic_store_n(&gp_agent.pid, pid, __ATOMIC_RELEASE);
	}
	on = !gp_agent.off;
	gp_agent_unlock();
	errno = saved;
	return on;
}

static int life_pipe(unsigned out, unsigned in)
{
	int ends[2];
	long r = gp_sys(SYS_pipe2, (long)ends, O_CLOEXEC | O_NONBLOCK);

	if (r < 0)
		return (int)r;
	r = gp_fd_take(out, ends[0]);
	if (r < 0)
		gp_sys_close(ends[1]);
	return r < 0 ? (int)r : gp_fd_take(in, ends[1]);
}

static int life_eventfd(unsigned use)
{
	long fd = gp_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? (int)fd : gp_fd_take(use, (int)fd);
}

bool gp_agent_take_fds(void)
{
	bool taken = gp_fds_are_enough() && life_eventfd(GP_FD_WAKE) == 0 && life_eventfd(GP_FD_DOORBELL) == 0 &&
		     life_pipe(GP_FD_READ_OUT, GP_FD_READ_IN) == 0 && life_pipe(GP_FD_DEBUG_OUT, GP_FD_DEBUG_IN) == 0;

	for (unsigned use = GP_FD_DOORBELL; !taken && use <= GP_FD_DEBUG_IN; use++)
		gp_fd_drop(use);
	return taken;
}

void gp_agent_start(void)
{
	bool start;

	gp_agent_lock();
	start = !gp_agent.thread_started && !gp_agent.off && !gp_agent.exiting;
	gp_agent.thread_started |= start;
	gp_agent_unlock();
	if (!start || gp_next_start_thread(gp_thread_run))
		return;
	gp_log("agent: no thread; off");
	gp_agent_lock();
	gp_agent.thread_started = false;
	gp_agent.off = true;
	gp_fds_drop_all();
	gp_agent_unlock();
}

/* exit(): the agent gives the debugger's place back and opens every gate, so that the runtime's last calls do not wait.
 * If the process dies in another way, the kernel cleans up. */
__attribute__((destructor)) static void life_exit(void)
{
	struct timespec pause = { 0, 1000000 };
	uint32_t tries = 0;

	if (!gp_agent.pid || gp_agent.off || gp_agent.pid != (int32_t)gp_sys(SYS_getpid, 0))
		return;
	/* exit() may run in a signal handler that has interrupted a thread that holds the lock. */
	while (!gp_lock_try(&gp_agent.lock) && tries++ < LIFE_EXIT_TRIES)
		gp_sys(SYS_nanosleep, (long)&pause, 0);
	if (tries > LIFE_EXIT_TRIES)
		return;
	gp_agent.exiting = true;
	gp_gates_open(0);
	if (gp_agent.driver)
		gp_agent.driver->release();
	gp_log("agent: exit");
	/* What did not open is tried again by the agent's thread, until the process ends. */
	if (gp_gate_closed_count())
		gp_thread_wake();
	gp_agent_unlock();
	gp_gate_deliver();
}
