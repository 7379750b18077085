/* SPDX-License-Identifier: MIT */
/*
 * Decides which daemon schedules a GPU. Two daemons on one GPU would undo each other's orders, so each GPU has a file
 * that its daemon keeps locked, in a folder that is the same for all daemons, whatever their sockets are. A daemon that
 * finds the file locked leaves that GPU alone and looks again every two seconds. The kernel ends the lock when the
 * process ends, and tells which process holds it.
 *
 * If the daemon cannot take the lock (lockfile.h) for another reason than a daemon that holds it, the daemon schedules
 * the GPU and says so in the journal.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/lockfile.h"

#define CLAIM_PATH_SIZE 160u
#define CLAIM_AGAIN_NS  2000000000ull /* between two looks; chosen */

const char *gp_claim_folder = "/run/gpreempt";

static void claim_path(const struct gp_device_entry *device, char path[CLAIM_PATH_SIZE])
{
	snprintf(path, CLAIM_PATH_SIZE, "%s/%s.lock", gp_claim_folder, device->info.identity);
}

/* Like gp_lockfile_take(), but returns 0 on success. */
static int claim_take(struct gp_device_entry *device, pid_t *ret_holder)
{
	char path[CLAIM_PATH_SIZE];
	int fd;

	claim_path(device, path);
	mkdir(gp_claim_folder, 0711); /* if this fails and the folder is missing, the next call fails and says why */
	fd = gp_lockfile_take(path, ret_holder);
	if (fd < 0)
		return fd;
	device->claim.fd = fd;
	device->claim.is_taken = true;
	return 0;
}

/* Called at each look: the other daemon may have ended, and a third one may have taken the lock. */
static void claim_say(struct gp_device_entry *device, pid_t holder)
{
	char who[GP_LOCKFILE_WHO];

	gp_lockfile_who(holder, who);
	snprintf(
		device->claim.why, sizeof(device->claim.why),
		"another gpreemptd (%s) schedules this GPU; end one of the two. This one takes over when the other has ended",
		who);
}

static void claim_leave(struct gp_daemon *daemon, struct gp_device_entry *device, pid_t holder)
{
	bool was_stopped = device->stopped;

	claim_say(device, holder);
	/* Both reasons end by themselves, and status names both. */
	if (device->is_hung)
		gp_log("GPU %u: %s", device->info.gpu_id, device->claim.why);
	else
		gp_device_halt(daemon, device, device->claim.why);
	device->claim.is_left = true;
	device->claim.is_why = !was_stopped;
	gp_timer_sooner(daemon, &daemon->claim_timer, gp_now_ns() + CLAIM_AGAIN_NS);
}

/* True if there is no lock to take: the GPU has no identity, another daemon has the lock (the timer checks that), or
 * this daemon has it and the file is not known to be gone. */
static bool claim_is_settled(const struct gp_device_entry *device)
{
	char path[CLAIM_PATH_SIZE];

	claim_path(device, path);
	return !*device->info.identity || device->claim.is_left ||
	       (device->claim.is_taken && !gp_lockfile_is_gone(path, device->claim.fd));
}

void gp_claim_all(struct gp_daemon *daemon)
{
	bool is_logged = false;

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];
		int old_fd = device->claim.is_taken ? device->claim.fd : -1, r;
		pid_t holder;

		if (claim_is_settled(device))
			continue;
		device->claim.is_taken = false;
		r = claim_take(device, &holder);
		if (old_fd >= 0)
			close(old_fd);
		device->claim.error = r;
		if (r == -EBUSY) {
			claim_leave(daemon, device, holder);
		} else if (r && !is_logged) {
			gp_log("the daemon cannot tell whether another gpreemptd schedules its GPUs: %s: %s",
			       gp_claim_folder, strerror(-r));
			is_logged = true;
		}
	}
}

/* Looks whether the other daemons have ended. A GPU that is stopped for another reason too stays stopped. */
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
		if (r == -EBUSY)
			claim_say(device, holder);
		if (r) { /* an error does not mean that the other daemon has ended */
			gp_timer_sooner(daemon, &daemon->claim_timer, now_ns + CLAIM_AGAIN_NS);
			continue;
		}
		device->claim.is_left = false;
		if (device->claim.is_why)
			gp_device_go_on(daemon, device);
	}
}

void gp_claim_is_why(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	device->is_hung = false;
	device->claim.is_why = true;
	snprintf(device->stopped_why, sizeof(device->stopped_why), "%s", device->claim.why);
	gp_metrics_changed(daemon);
}

void gp_claim_fini(struct gp_daemon *daemon)
{
	char path[CLAIM_PATH_SIZE];

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		if (!device->claim.is_taken)
			continue;
		claim_path(device, path);
		if (gp_lockfile_is_there(path, device->claim.fd))
			unlink(path); /* while this daemon still has the lock */
		close(device->claim.fd);
		device->claim.is_taken = false;
	}
}
