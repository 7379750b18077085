/* SPDX-License-Identifier: MIT */
/* The root of a command. Owns which folders of the node such a root is given; never touches the node's own mounts. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "vgpu/files/root.h"

int gp_root_enter(const char *dir, struct gp_error *error)
{
	/* Where the node's files are; /proc, because runtimes read their own maps and the processors there. */
	static const char *const given[] = { "/dev", "/proc", "/sys" };
	char root[PATH_MAX], target[PATH_MAX + 8];

	if (!realpath(dir, root))
		return gp_error_set(error, -errno, "no root %s: %s", dir, strerror(errno));
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return gp_error_set(error, -errno, "cannot make a mount namespace for the root %s: %s", root,
				    strerror(errno));
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		snprintf(target, sizeof(target), "%s%s", root, given[i]);
		if (mount(given[i], target, NULL, MS_BIND | MS_REC, NULL) < 0)
			return gp_error_set(error, -errno, "cannot mount the node's %s on %s: %s", given[i], target,
					    strerror(errno));
	}
	if (chroot(root) < 0 || chdir("/") < 0)
		return gp_error_set(error, -errno, "cannot enter the root %s: %s", root, strerror(errno));
	return 0;
}
