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

#define FDS_HIGH      700   /* above what programs use, below the usual limit of 1024; chosen */
#define FDS_OWN       12u   /* of the agent of a program with one open file of the driver, and two for a moment */
#define FDS_ASKED_MAX 4096u /* chosen: a few hundred microseconds */
#define FDS_LEFT      16u   /* what the program has left then; chosen: a HIP program without us opens ten */

/* What a number leads to. All eventfds have one inode: of them one is as good as another. */
struct fds_file {
	uint64_t device, inode;
};

static int fds[GP_FD_COUNT];                   /* the number + 1; 0: none, so that it is right before anything ran */
static struct fds_file fds_files[GP_FD_COUNT]; /* written while fds[] has none */

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

int gp_fd_verified(unsigned use)
{
	int fd, was;

	do {
		struct fds_file file = { 0 };
		int r;

		fd = gp_fd(use);
		if (fd < 0)
			return -1;
		r = fds_look(fd, &file);
		/* Where that may not be asked, it is taken for ours. */
		if (r < 0 ? r != -EBADF : file.device == fds_files[use].device && file.inode == fds_files[use].inode)
			return fd;
		was = fd + 1;
		/* If not: it was moved out of the way meanwhile, and is looked at where it is now. */
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

/* As high as the limit allows: a program with a low one finds the low numbers free as well. */
static int fds_high(int fd)
{
	struct rlimit limit = { 0 };
	int r = (int)gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FDS_HIGH);

	if (r < 0 && gp_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit) == 0)
		for (rlim_t low = limit.rlim_cur / 2u; r < 0 && low > 3u; low /= 2u)
			r = (int)gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, (long)low);
	return r >= 0 ? r : (int)gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);
}

/* From the top down: there most programs have nothing, and the count ends soon. The kernel gives the lowest first, so a
 * program that has so many up there is short of them. Where the agent may not ask, it takes them for enough. */
bool gp_fds_are_enough(void)
{
	struct rlimit limit = { 0 };
	uint32_t count = 0, asked = 0;
	rlim_t fd;

	if (gp_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit) < 0)
		return true;
	for (fd = limit.rlim_cur < INT_MAX ? limit.rlim_cur : INT_MAX; fd && count < FDS_OWN + FDS_LEFT; fd--) {
		long r = gp_sys(SYS_fcntl, (long)fd - 1, F_GETFD);

		if (r < 0 && r != -EBADF)
			return true;
		count += r < 0;
		if (++asked == FDS_ASKED_MAX)
			break;
	}
	return count == FDS_OWN + FDS_LEFT;
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
	gp_sys_close(fd);
	return r < 0 ? r : 0;
}

void gp_fd_drop(unsigned use)
{
	int fd = gp_fd_verified(use);

	fds_set(use, -1);
	gp_sys_close(fd);
}

void gp_fds_drop_all(void)
{
	for (unsigned use = 0; use < GP_FD_COUNT; use++)
		gp_fd_drop(use);
}

/* Somebody wants this number: ours goes elsewhere first. A call on the old number that is under way finishes there. */
static void fds_move_away(int fd)
{
	for (unsigned use = 0; use < GP_FD_COUNT; use++)
		if (gp_fd(use) == fd && !gp_agent_is_borrowed() && gp_fd_verified(use) == fd) {
			int high = fds_high(fd);

			fds_set(use, high >= 0 ? high : -1);
			/* The thread polls by number. */
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

GP_EXPORT int dup2(int from, int to)
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
	r = gp_next_dup2(from, to);
	gp_driver_files_closed(&files);
	return r;
}

GP_EXPORT int dup3(int from, int to, int flags)
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
	r = gp_next_dup3(from, to, flags);
	gp_driver_files_closed(&files);
	return r;
}

/* The lowest own number at or above first; -1: none. One that has become the application's is its own to close. */
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
#define FDS_RANGE_CLOEXEC 4 /* CLOSE_RANGE_CLOEXEC: ours have that anyway */

static int fds_close_range(unsigned first, unsigned last, int flags)
{
	int own;

	if (first > last || flags & FDS_RANGE_CLOEXEC)
		return gp_next_close_range(first, last, flags);
	/* All but ours: the ranges between them. */
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
	if (!(flags & FDS_RANGE_CLOEXEC)) /* that closes nothing */
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
