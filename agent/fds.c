/* SPDX-License-Identifier: MIT */
/* The agent's own descriptors, and the functions of libc that could take them away. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/driver.h"
#include "agent/export.h"
#include "agent/fds.h"
#include "agent/next.h"
#include "agent/sys.h"

#define FDS_HIGH 700 /* above what programs use, below the usual limit of 1024; chosen */
/* What the agent needs in a program with one open file of the driver; two of these only for a moment. */
#define FDS_OWN 12u
/* What an agent that has those needs next: a connection and the descriptors it brings, or a file. */
#define FDS_MORE      4u
#define FDS_ASKED_MAX 4096u /* chosen: a few hundred microseconds */
#define FDS_LEFT      16u   /* what the program then has left; chosen: a HIP program without the agent opens ten */

/* The file behind a number. All eventfds have one inode: the agent cannot tell them apart and need not. */
struct fds_file {
	uint64_t device, inode;
};

static int fds[GP_FD_COUNT];                   /* the number + 1; 0: none, so that it is valid from the start */
static struct fds_file fds_files[GP_FD_COUNT]; /* written while fds[] has no number for the use */

int gp_fd(unsigned use)
{
	return __atomic_load_n(&fds[use], __ATOMIC_ACQUIRE) - 1;
}

static void fds_set(unsigned use, int fd)
{
	__atomic_store_n(&fds[use], fd + 1, __ATOMIC_RELEASE);
}

static int fds_look(int fd, struct fds_file *ret_file)
{
	struct stat st;
	int r = (int)gp_sys(SYS_fstat, fd, (long)&st);

	if (r < 0)
		return r;
	*ret_file = (struct fds_file){ st.st_dev, st.st_ino };
	return 0;
}

bool gp_fd_is_like(unsigned use, int fd)
{
	struct fds_file file;

	return fds_look(fd, &file) == 0 && file.device == fds_files[use].device && file.inode == fds_files[use].inode;
}

static uint64_t fds_truster; /* the thread that trusts the numbers; 0: none */

void gp_fds_trust(bool trust)
{
	__atomic_store_n(&fds_truster, trust ? gp_sys_thread() : 0, __ATOMIC_RELEASE);
}

bool gp_fds_are_trusted(void)
{
	return __atomic_load_n(&fds_truster, __ATOMIC_ACQUIRE) == gp_sys_thread();
}

/* What a driver needs to open gates: its files, and what lets threads go on that ring queues. */
static bool fds_opens_gates(unsigned use)
{
	return use >= GP_FD_FILES || use == GP_FD_TRAP || use == GP_FD_DEBUG_IN;
}

int gp_fd_verified(unsigned use)
{
	int fd, was;

	if (gp_fds_are_trusted())
		return fds_opens_gates(use) ? gp_fd(use) : -1;
	do {
		struct fds_file file = { 0 };
		int r;

		fd = gp_fd(use);
		if (fd < 0)
			return -1;
		r = fds_look(fd, &file);
		/* If a filter forbids fstat, the number counts as the agent's. */
		if (r < 0 ? r != -EBADF : file.device == fds_files[use].device && file.inode == fds_files[use].inode)
			return fd;
		was = fd + 1;
		/* If the exchange fails, another thread has moved the descriptor meanwhile: check it at its new number.
		 */
	} while (!gp_agent_is_borrowed() &&
		 !__atomic_compare_exchange_n(&fds[use], &was, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	return -1;
}

bool gp_fd_is_own(int fd)
{
	if (fd < 0)
		return false;
	for (unsigned use = 0; use < GP_FD_COUNT; use++)
		if (gp_fd(use) == fd && gp_fd_verified(use) == fd)
			return true;
	return false;
}

/* As high as the limit allows: also with a low limit the low numbers stay free for the program. */
static int fds_high(int fd)
{
	struct rlimit limit = { 0 };
	int r = (int)gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FDS_HIGH);

	if (r < 0 && gp_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit) == 0)
		for (rlim_t low = limit.rlim_cur / 2u; r < 0 && low > 3u; low /= 2u)
			r = (int)gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, (long)low);
	return r >= 0 ? r : (int)gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
}

/* Counts free numbers from the top down: most programs use none there, so the count ends soon. The kernel gives out the
 * lowest number first, so a program that uses so many at the top is short of them. If a filter forbids the question,
 * the agent assumes that there are enough. */
bool gp_fds_are_enough(void)
{
	uint32_t need = FDS_LEFT + (gp_fd(GP_FD_WAKE) < 0 ? FDS_OWN : FDS_MORE), count = 0, asked = 0;
	struct rlimit limit = { 0 };
	rlim_t fd;

	if (gp_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit) < 0)
		return true;
	for (fd = limit.rlim_cur < INT_MAX ? limit.rlim_cur : INT_MAX; fd && count < need; fd--) {
		long r = gp_sys(SYS_fcntl, (long)fd - 1, F_GETFD);

		if (r < 0 && r != -EBADF)
			return true;
		count += r < 0;
		if (++asked == FDS_ASKED_MAX)
			break;
	}
	return count == need;
}

void gp_fd_note(unsigned use, int fd)
{
	fds_look(fd, &fds_files[use]);
}

int gp_fd_take(unsigned use, int fd)
{
	int high = fds_high(fd);

	gp_sys_close(fd);
	if (high < 0)
		return high;
	gp_fd_drop(use);
	fds_look(high, &fds_files[use]);
	fds_set(use, high);
	return 0;
}

int gp_fd_replace(unsigned use, int fd)
{
	int now = gp_fd_verified(use), r;

	if (now < 0)
		return gp_fd_take(use, fd);
	r = (int)gp_sys(SYS_dup3, fd, now, O_CLOEXEC);
	/* The limit has sunk below that number, so the kernel cannot give the number to the program any more. */
	if (r == -EBADF && gp_fds_are_enough())
		return gp_fd_take(use, fd);
	gp_sys_close(fd);
	return r < 0 ? r : 0;
}

void gp_fd_drop(unsigned use)
{
	int fd = gp_fd_verified(use);

	fds_set(use, -1);
	gp_sys_close(fd);
}

void gp_fd_forget(unsigned use)
{
	fds_set(use, -1);
}

void gp_fds_drop_all(void)
{
	for (unsigned use = 0; use < GP_FD_COUNT; use++)
		gp_fd_drop(use);
}

/* The application wants this number: the agent moves its own descriptor away first. A call that is under way on the old
 * number finishes there. */
static void fds_move_away(int fd)
{
	for (unsigned use = 0; use < GP_FD_COUNT; use++)
		if (gp_fd(use) == fd && !gp_agent_is_borrowed() && gp_fd_verified(use) == fd) {
			int high = fds_high(fd);

			fds_set(use, high >= 0 ? high : -1);
			/* The agent's thread polls by number and must learn the new one. */
			gp_thread_wake();
		}
}

static int fds_bad(void)
{
	errno = EBADF;
	return -1;
}

GP_EXPORT int close(int fd)
{
	struct gp_driver_files files;
	int r;

	gp_next_init();
	if (gp_fd_is_own(fd))
		return fds_bad();
	gp_driver_files_close((unsigned)fd, (unsigned)fd, &files);
	r = gp_next_close(fd);
	gp_driver_files_closed(&files);
	return r;
}

/* flags: of dup3(); NULL: the call is dup2(). */
static int fds_dup(int from, int to, const int *flags)
{
	struct gp_driver_files files = { 0 };
	int r;

	gp_next_init();
	if (gp_fd_is_own(from))
		return fds_bad();
	if (from != to) {
		fds_move_away(to);
		gp_driver_files_close((unsigned)to, (unsigned)to, &files);
	}
	r = flags ? gp_next_dup3(from, to, *flags) : gp_next_dup2(from, to);
	gp_driver_files_closed(&files);
	return r;
}

GP_EXPORT int dup2(int from, int to)
{
	return fds_dup(from, to, NULL);
}

GP_EXPORT int dup3(int from, int to, int flags)
{
	return fds_dup(from, to, &flags);
}

/* The lowest number of the agent's at or above first; -1: none. A number that has become the application's does not
 * count: the application may close it. */
static int fds_lowest(unsigned first)
{
	int lowest = -1;

	for (unsigned use = 0; use < GP_FD_COUNT; use++) {
		int fd = gp_fd_verified(use);

		if (fd >= 0 && (unsigned)fd >= first && (lowest < 0 || fd < lowest))
			lowest = fd;
	}
	return lowest;
}

#define FDS_RANGE_UNSHARE 2 /* CLOSE_RANGE_UNSHARE */
#define FDS_RANGE_CLOEXEC 4 /* CLOSE_RANGE_CLOEXEC: the agent's have that flag anyway */

static int fds_close_range(unsigned first, unsigned last, int flags)
{
	int own;

	if (first > last || flags & FDS_RANGE_CLOEXEC)
		return gp_next_close_range(first, last, flags);
	/* Closes the ranges between the agent's descriptors. */
	while (first <= last && (own = fds_lowest(first)) >= 0 && (unsigned)own <= last) {
		if ((unsigned)own > first) {
			int r = gp_next_close_range(first, (unsigned)own - 1u, flags);

			if (r < 0)
				return r;
			flags &= ~FDS_RANGE_UNSHARE;
		}
		first = (unsigned)own + 1u;
	}
	return first <= last ? gp_next_close_range(first, last, flags) : 0;
}

GP_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	struct gp_driver_files files = { 0 };
	int r;

	gp_next_init();
	if (!(flags & FDS_RANGE_CLOEXEC)) /* CLOEXEC closes nothing */
		gp_driver_files_close(first, last, &files);
	r = fds_close_range(first, last, flags);
	gp_driver_files_closed(&files);
	return r;
}

GP_EXPORT void closefrom(int first)
{
	struct rlimit limit = { 0 };
	int saved = errno;
	struct gp_driver_files files;

	gp_next_init();
	if (first < 0)
		first = 0;
	gp_driver_files_close((unsigned)first, UINT_MAX, &files);
	if (fds_close_range((unsigned)first, UINT_MAX, 0) < 0) {
		/* A kernel without close_range. */
		gp_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
		for (unsigned fd = (unsigned)first; fd < limit.rlim_cur && fd < 1u << 20; fd++)
			if (!gp_fd_is_own((int)fd))
				gp_next_close((int)fd);
	}
	gp_driver_files_closed(&files);
	errno = saved;
}
