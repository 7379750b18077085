/* SPDX-License-Identifier: MIT */
/* The agent's thread: connects to the daemon, receives and carries out its messages, samples. It sleeps until something
 * happens. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/log.h"
#include "agent/sys.h"

#define THREAD_RETRY_NS_MIN 10000000ull   /* 10 ms for the first retry, then five times as long each time */
#define THREAD_RETRY_NS_MAX 5000000000ull /* 5 s: the longest wait, and the interval if no folder can be watched */
#define THREAD_REOPEN_NS    100000000ull  /* when a gate that did not open is tried again */
#define THREAD_GOOD_NS      1000000000ull /* 1 s: a link that held so long was good; chosen, as the others */
#define THREAD_SHORT_NS     1000000000ull /* when to look again at a program that is short of descriptors */
#define THREAD_EVENTS       (IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF)

static struct {
	uint64_t try_ns; /* when to connect next; UINT64_MAX: when the folder changes */
	uint64_t wait_ns;
	uint64_t look_ns;      /* HELLO is not answered: when to look again at the socket's file */
	uint64_t connected_ns; /* since when the link of the last step is up; 0: there was none */
	bool watching;
} thread_retry;

bool gp_thread_wake(void)
{
	int fd = gp_fd_verified(GP_FD_WAKE);

	gp_sys_wake(fd);
	return fd >= 0;
}

/* Watches the folder in which the socket will appear, or the nearest existing folder above. */
static bool thread_watch(void)
{
	char path[sizeof(gp_agent.socket_path)];
	long fd = gp_sys(SYS_inotify_init1, IN_CLOEXEC | IN_NONBLOCK);
	char *slash;

	if (fd < 0 || gp_fd_take(GP_FD_INOTIFY, (int)fd) < 0)
		return false;
	memcpy(path, gp_agent.socket_path, sizeof(path));
	while ((slash = strrchr(path, '/')) != NULL) {
		slash[slash == path ? 1 : 0] = 0;
		if (gp_sys(SYS_inotify_add_watch, gp_fd(GP_FD_INOTIFY), (long)path, THREAD_EVENTS) >= 0)
			return true;
		if (slash == path)
			break;
	}
	return false;
}

/* An attempt failed: waits five times as long each time. */
static void thread_back_off(uint64_t now_ns, bool somebody_is_there)
{
	thread_retry.wait_ns = thread_retry.wait_ns ? thread_retry.wait_ns * 5u : THREAD_RETRY_NS_MIN;
	if (thread_retry.wait_ns <= THREAD_RETRY_NS_MAX)
		thread_retry.try_ns = now_ns + thread_retry.wait_ns;
	else
		/* No daemon: a change of the folder reports the next one. A daemon that refuses may change its mind. */
		thread_retry.try_ns =
			thread_retry.watching && !somebody_is_there ? UINT64_MAX : now_ns + THREAD_RETRY_NS_MAX;
	if (thread_retry.wait_ns > THREAD_RETRY_NS_MAX)
		thread_retry.wait_ns = THREAD_RETRY_NS_MAX;
}

/* Whether the attempt failed for a reason that ends without a change of the folder. */
static bool thread_is_for_now(int error)
{
	switch (error) {
	case -EAGAIN:   /* more programs want to connect than the daemon has accepted */
	case -ENOTCONN: /* the daemon ended the connection at once */
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM: return true;
	default: return false;
	}
}

static void thread_connect(uint64_t now_ns)
{
	int r = -EMFILE;

	/* The watch comes first: so the agent does not miss a socket that appears between the two. */
	if (!thread_retry.watching)
		thread_retry.watching = gp_fds_are_enough() && thread_watch();
	if (thread_retry.connected_ns) {
		/* After a link that held for a while the wait starts over; after one that broke at once it grows. */
		if (now_ns - thread_retry.connected_ns >= THREAD_GOOD_NS)
			thread_retry.wait_ns = 0;
		thread_retry.connected_ns = 0;
		thread_back_off(now_ns, true);
	}
	if (now_ns < thread_retry.try_ns)
		return;
	if (gp_fds_are_enough())
		r = gp_link_connect();
	if (!r)
		thread_retry.connected_ns = now_ns;
	else
		/* The socket may appear before the daemon listens on it, hence a few attempts after each change. */
		thread_back_off(now_ns, thread_is_for_now(r));
	thread_retry.look_ns = now_ns + THREAD_RETRY_NS_MAX;
}

/* The folder changed: watches anew (a folder nearer to the socket may have come, or that one may have gone) and tries
 * at once. If HELLO is not answered yet, this watch is the one that tells of the next daemon. */
static void thread_folder_changed(uint64_t now_ns)
{
	uint8_t events[1024] = { 0 };

	while (gp_sys(SYS_read, gp_fd_verified(GP_FD_INOTIFY), (long)events, sizeof(events)) > 0)
		;
	gp_fd_drop(GP_FD_INOTIFY);
	thread_retry.watching = gp_agent.link == GP_LINK_GREETED && gp_fds_are_enough() && thread_watch();
	if (gp_agent.link != GP_LINK_DOWN)
		return;
	thread_retry.connected_ns = 0;
	thread_retry.wait_ns = 0;
	thread_retry.try_ns = now_ns;
}

/* The server does not answer HELLO. It may be a daemon with much to do, whose newcomers wait in line: the agent keeps
 * its place. But if another server has made the socket anew, nobody else will connect to the old one. */
static void thread_look(uint64_t now_ns, bool has_changed)
{
	if (gp_agent.link != GP_LINK_GREETED || (!has_changed && now_ns < thread_retry.look_ns))
		return;
	thread_retry.look_ns = now_ns + THREAD_RETRY_NS_MAX;
	if (!gp_link_is_replaced())
		return;
	gp_link_down("link: another server has made the socket anew");
	/* Perhaps with its folder, of which the old server's socket keeps what the agent watches. */
	gp_fd_drop(GP_FD_INOTIFY);
	thread_retry.watching = false;
	thread_retry.connected_ns = thread_retry.wait_ns = 0;
	thread_retry.try_ns = now_ns;
}

/* Tries what did not open before. How many gates are still closed. */
static uint32_t thread_open(void)
{
	uint32_t before = gp_gate_closed_count();

	gp_gates_open(0);
	/* What release() could not give back with closed gates. */
	if (before && !gp_gate_closed_count() && gp_agent.driver)
		gp_agent.driver->release();
	return gp_gate_closed_count();
}

static uint64_t thread_step(short inotify, short trap)
{
	uint64_t now = gp_sys_now_ns(), due, other;

	if (trap && gp_agent.driver && gp_agent.driver->noticed)
		gp_agent.driver->noticed();
	if (inotify)
		thread_folder_changed(now);
	thread_look(now, inotify);
	if (gp_agent.driver && gp_agent.driver->tidy)
		gp_agent.driver->tidy();
	gp_fence_settle();
	if (gp_agent.link == GP_LINK_DOWN)
		thread_connect(now);
	if (gp_agent.link != GP_LINK_DOWN) {
		if (gp_agent.link == GP_LINK_UP && thread_retry.watching) {
			gp_fd_drop(GP_FD_INOTIFY);
			thread_retry.watching = false;
		}
		gp_link_receive();
	}
	if (__atomic_exchange_n(&gp_agent.sync_due, false, __ATOMIC_ACQ_REL) && gp_agent.link == GP_LINK_UP)
		gp_sample_all();
	gp_sample_round(now);
	gp_gate_leases(now);
	gp_link_flush();
	gp_sample_settle(now);
	if (gp_agent.link == GP_LINK_UP)
		__atomic_fetch_add(&gp_page_now->rounds, 1, __ATOMIC_RELAXED);
	/* The link is down, or the daemon has not answered HELLO and perhaps never will: no lease is running that would
	 * open a gate that did not open before. */
	if (gp_agent.link != GP_LINK_UP && gp_gate_closed_count()) {
		thread_open();
		return now + THREAD_REOPEN_NS;
	}
	/* If the link went down in this step, the next step, at once, sets when to retry. */
	if (gp_agent.link == GP_LINK_DOWN)
		return thread_retry.connected_ns ? now : thread_retry.try_ns;
	if (gp_agent.link != GP_LINK_UP)
		return thread_retry.look_ns;
	due = gp_sample_due_ns();
	other = gp_gate_lease_due_ns(now);
	return other < due ? other : due;
}

/* The application has closed the agent's descriptors by system calls of its own, or has taken from the thread the means
 * to wait for them (a limit of none, a filter). No thread can wake the agent any more: it leaves the program alone from
 * here on. */
static bool thread_gives_up(bool can_sleep)
{
	if (can_sleep && gp_fd_verified(GP_FD_WAKE) >= 0 && gp_fd_verified(GP_FD_DOORBELL) >= 0)
		return false;
	gp_link_down(can_sleep ? "thread: our descriptors are gone; off" : "thread: it cannot wait here; off");
	gp_gates_open(0);
	if (gp_agent.driver)
		gp_agent.driver->release();
	gp_agent.leaving = gp_agent.exiting = true;
	return true;
}

/* Sleeps, by any of three calls: a filter of the program may forbid some. False: it cannot. */
static bool thread_sleep(uint64_t ns)
{
	const struct timespec wait = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	static uint32_t word;
	long r = gp_sys(SYS_nanosleep, (long)&wait, 0);

	if (r && r != -EINTR)
		r = gp_sys(SYS_ppoll, 0, 0, (long)&wait, 0, 8);
	if (r && r != -EINTR)
		r = gp_sys(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, (long)&wait);
	return !r || r == -EINTR || r == -ETIMEDOUT;
}

void gp_thread_leave(void)
{
	uint32_t closed;

	do {
		gp_lock_take(&gp_agent.lock, GP_LOCK_THREAD);
		closed = thread_open();
		gp_agent.off |= !closed && gp_agent.leaving;
		gp_agent_unlock();
		gp_gate_deliver();
	} while (closed && thread_sleep(THREAD_REOPEN_NS));
}

/* Waits until the program has descriptors to spare; until then the agent gates nothing. False: the program is in
 * exit(), or the thread cannot wait. */
static bool thread_has_room(void)
{
	bool taken, is_logged = false;

	for (;;) {
		gp_lock_take(&gp_agent.lock, GP_LOCK_THREAD);
		taken = gp_agent.exiting || gp_fd(GP_FD_WAKE) >= 0 || gp_agent_take_fds();
		gp_agent_unlock();
		if (taken)
			return !gp_agent.exiting;
		if (!is_logged)
			gp_log("thread: too few descriptors are left for the program; it waits for more");
		is_logged = true;
		if (!thread_sleep(THREAD_SHORT_NS))
			return false;
	}
}

/* What the thread waits for, and whether it has come (revents). */
enum { THREAD_WAKE, THREAD_SOCKET, THREAD_INOTIFY, THREAD_TRAP, THREAD_GUARD, THREAD_WAITS };
static const uint8_t thread_uses[THREAD_WAITS] = { GP_FD_WAKE, GP_FD_SOCKET, GP_FD_INOTIFY, GP_FD_TRAP, GP_FD_GUARD };

/* Waits for one of them or until due_ns. Asks for those alone that are there: the kernel takes no more entries than the
 * program may have descriptors. */
static long thread_wait(uint64_t due_ns, bool sending, short *ret_came)
{
	struct pollfd polls[THREAD_WAITS];
	uint8_t of[THREAD_WAITS];
	uint64_t now_ns = gp_sys_now_ns(), rest_ns = due_ns <= now_ns ? 0 : due_ns - now_ns;
	struct timespec wait = { (time_t)(rest_ns / 1000000000u), (long)(rest_ns % 1000000000u) };
	uint32_t count = 0;
	long r;

	for (uint8_t i = 0; i < THREAD_WAITS; i++) {
		int fd = gp_fd(thread_uses[i]);

		ret_came[i] = 0;
		/* A thread that ended in gp_link_down() may have left the socket behind. */
		if (fd < 0 || (i == THREAD_SOCKET && gp_agent.link == GP_LINK_DOWN))
			continue;
		of[count] = i;
		polls[count++] = (struct pollfd){ fd, i == THREAD_SOCKET && sending ? POLLOUT : POLLIN, 0 };
	}
	r = gp_sys(SYS_ppoll, (long)polls, count, rest_ns > UINT64_MAX / 4u ? 0 : (long)&wait, 0, 8);
	for (uint32_t i = 0; i < count && r > 0; i++)
		ret_came[of[i]] = polls[i].revents;
	return r;
}

void *gp_thread_run(void *unused)
{
	short came[THREAD_WAITS] = { 0 };
	bool sending;
	long r = 0;

	(void)unused;
	memset(&thread_retry, 0, sizeof(thread_retry)); /* in a forked child it has the parent's values */
	gp_sys(SYS_prctl, PR_SET_NAME, (long)"gpreempt-agent");
	gp_sys(SYS_prctl, PR_SET_TIMERSLACK, 1);
	gp_agent_unbind();
	if (!thread_has_room())
		return NULL;
	gp_guard_start();
	for (;;) {
		uint64_t due;

		gp_guard_check(came[THREAD_GUARD]);
		gp_sys_drain(gp_fd_verified(GP_FD_WAKE));
		gp_lock_take(&gp_agent.lock, GP_LOCK_THREAD);
		if (gp_agent.exiting || thread_gives_up(r >= 0 || r == -EINTR)) {
			gp_agent_unlock();
			gp_thread_leave();
			if (gp_agent.off)
				gp_fds_drop_all();
			return NULL;
		}
		due = thread_step(came[THREAD_INOTIFY], came[THREAD_TRAP]);
		sending = gp_link_has_unsent();
		gp_agent_unlock();
		gp_gate_deliver();
		r = thread_wait(due, sending, came);
	}
}
