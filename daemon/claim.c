/* SPDX-License-Identifier: MIT */
/*
 * Which daemon schedules a GPU. Two that do would undo each other's orders, so each GPU has a file that its daemon
 * keeps locked, in a folder that is the same for all of them, whatever their sockets are. A daemon that finds it locked
 * leaves that GPU alone and looks again now and then. The kernel ends the lock with the process, and says whose it is.
 *
 * The lock is the process's (F_SETLK): another open and close of the same file here would end it, and nothing else
 * opens it. Nothing is ever written into the file. Only the daemon's own user can open it for writing, so that no other
 * user can keep a daemon from a GPU. Root of a container may have the folder mounted read-only, and can lock the file
 * for reading: no daemon does that, so the daemon makes the file anew. Where the lock cannot be had for another reason
 * than a daemon that has it, the GPU is scheduled, and the journal says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/daemon.h"

#define CLAIM_PATH_SIZE 160u
#define CLAIM_AGAIN_NS  2000000000ull /* between two looks; chosen */
#define CLAIM_TRIES     8u            /* for a file that daemons remove as they end; chosen */

const char *gp_claim_folder = "/run/gpreempt";

static void claim_path(const struct gp_device_entry *device, char path[CLAIM_PATH_SIZE])
{
	snprintf(path, CLAIM_PATH_SIZE, "%s/%s.lock", gp_claim_folder, device->info.identity);
}

static int claim_open(const char *path)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = open(path, flags, 0600);

	if (fd < 0 && errno == ENOENT) {
		mkdir(gp_claim_folder, 0755); /* if that fails, so does this, which says why */
		fd = open(path, flags, 0600);
	}
	return fd < 0 ? -errno : fd;
}

/* A daemon that ended may have removed the file after it was opened here: a lock on that one is worth nothing. */
static bool claim_is_there(const char *path, int fd)
{
	struct stat own, there;

	return !fstat(fd, &own) && !stat(path, &there) && own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

/* 0; -EBUSY: another daemon has it (holder 0: it is in another PID namespace); other errors: that cannot be known. */
static int claim_take(struct gp_device_entry *device, pid_t *ret_holder)
{
	char path[CLAIM_PATH_SIZE];

	claim_path(device, path);
	for (uint32_t i = 0; i < CLAIM_TRIES; i++) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		int fd = claim_open(path), r;

		if (fd < 0)
			return fd;
		r = fcntl(fd, F_SETLK, &lock) ? -errno : 0;
		if (!r && claim_is_there(path, fd)) {
			device->claim.fd = fd;
			device->claim.is_taken = true;
			return 0;
		}
		if (r == -EAGAIN || r == -EACCES)
			r = fcntl(fd, F_GETLK, &lock) ? -errno : lock.l_type == F_WRLCK ? -EBUSY : 0;
		/* No daemon locks it for reading: the file is made anew, and the reader's lock is on the old one. */
		if (!r && lock.l_type == F_RDLCK && claim_is_there(path, fd) && unlink(path))
			r = -errno;
		close(fd);
		if (r == -EBUSY)
			*ret_holder = lock.l_pid;
		if (r)
			return r;
	}
	return -EAGAIN;
}

static void claim_leave(struct gp_daemon *daemon, struct gp_device_entry *device, pid_t holder)
{
	char who[64] = "in another container", why[GP_WHY_TEXT];
	bool was_stopped;

	if (holder > 0)
		snprintf(who, sizeof(who), "pid %d", (int)holder);
	snprintf(
		why, sizeof(why),
		"another gpreemptd (%s) schedules this GPU; end one of the two. This one takes over when the other has ended",
		who);
	was_stopped = device->stopped;
	gp_device_stop(daemon, device, why);
	device->claim.is_left = true;
	device->claim.is_why = !was_stopped;
	gp_timer_sooner(daemon, &daemon->claim_timer, gp_now_ns() + CLAIM_AGAIN_NS);
}

void gp_claim_all(struct gp_daemon *daemon)
{
	bool is_said = false;

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];
		pid_t holder;
		int r = *device->info.identity ? claim_take(device, &holder) : 0;

		device->claim.error = r;
		if (r == -EBUSY) {
			claim_leave(daemon, device, holder);
		} else if (r && !is_said) {
			gp_log("the daemon cannot tell whether another gpreemptd schedules its GPUs: %s: %s",
			       gp_claim_folder, strerror(-r));
			is_said = true;
		}
	}
}

/* What else stopped it meanwhile still does. */
void gp_claim_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];
		pid_t holder;
		int r;

		if (!device->claim.is_left || daemon->loop.stopping)
			continue;
		r = claim_take(device, &holder);
		if (r && r != -EBUSY && r != device->claim.error)
			gp_log("GPU %u: the daemon cannot tell whether the other gpreemptd has ended: %s: %s",
			       device->info.gpu_id, gp_claim_folder, strerror(-r));
		device->claim.error = r;
		if (r) { /* an error does not say that the other one has ended */
			gp_timer_sooner(daemon, &daemon->claim_timer, now_ns + CLAIM_AGAIN_NS);
			continue;
		}
		device->claim.is_left = false;
		if (device->claim.is_why)
			gp_device_start(daemon, device);
	}
}

void gp_claim_fini(struct gp_daemon *daemon)
{
	char path[CLAIM_PATH_SIZE];

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		if (!device->claim.is_taken)
			continue;
		claim_path(device, path);
		unlink(path); /* while it is ours */
		close(device->claim.fd);
		device->claim.is_taken = false;
	}
}
