/* SPDX-License-Identifier: MIT */
/*
 * The lock belongs to the process (F_SETLK): if the daemon opened and closed the same file a second time, the lock
 * would end, so nothing else in the daemon opens it, and the daemon takes it again only if it knows that the file is
 * gone. The daemon never writes into the file. Only the daemon's own user
 * can open it for writing, so that no other user can keep a daemon out. Root of a container may have the folder mounted
 * read-only, and can lock the file for reading: no daemon does that, so the daemon makes the file anew. (flock() would
 * be no better: a process that may only read the file can take the exclusive lock, too.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/lockfile.h"

#define LOCKFILE_TRIES 8u /* for a file that daemons remove as they end; chosen */

/* 1: path leads to the file; 0: it does not; -errno: not known. */
static int lockfile_look(const char *path, int fd)
{
	struct stat own, there;

	if (fstat(fd, &own))
		return -errno;
	if (lstat(path, &there))
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

bool gp_lockfile_is_there(const char *path, int fd)
{
	return lockfile_look(path, fd) > 0;
}

bool gp_lockfile_is_gone(const char *path, int fd)
{
	return !lockfile_look(path, fd);
}

int gp_lockfile_take(const char *path, pid_t *ret_holder)
{
	for (uint32_t i = 0; i < LOCKFILE_TRIES; i++) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600), r;

		if (fd < 0)
			return -errno;
		r = fcntl(fd, F_SETLK, &lock) ? -errno : 0;
		/* A daemon that ended may have removed the file after it was opened here. */
		if (!r && !gp_lockfile_is_gone(path, fd))
			return fd;
		if (r == -EAGAIN || r == -EACCES)
			r = fcntl(fd, F_GETLK, &lock) ? -errno : lock.l_type == F_WRLCK ? -EBUSY : 0;
		/* No daemon locks it for reading: the file is made anew, and the reader's lock is on the old one. */
		if (!r && lock.l_type == F_RDLCK && gp_lockfile_is_there(path, fd) && unlink(path))
			r = -errno;
		close(fd);
		if (r == -EBUSY)
			*ret_holder = lock.l_pid;
		if (r)
			return r;
	}
	return -EAGAIN;
}

void gp_lockfile_who(pid_t holder, char who[GP_LOCKFILE_WHO])
{
	if (holder > 0)
		snprintf(who, GP_LOCKFILE_WHO, "pid %d", (int)holder);
	else
		snprintf(who, GP_LOCKFILE_WHO, "in another container");
}
