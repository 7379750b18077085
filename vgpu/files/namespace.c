/* SPDX-License-Identifier: MIT */
/*
 * The mount namespace. A folder of /dev or /sys that needs a name more is covered by a tmpfs into which each of its
 * entries is mounted again; so programs find all that was there, and ours.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "vgpu/files/static_files.h"
#include "vgpu/files/namespace.h"

#define NAMESPACE_OPTIONAL  4u /* the last of what is covered */
#define NAMESPACE_ENTRY_MAX 2048u
#define NAMESPACE_PTMX      makedev(5, 2) /* Documentation/admin-guide/devices.txt */

struct namespace_entry {
	char name[256], link[256];
	int tree;
	bool folder, is_ptmx;
};

static int namespace_collect(const char *path, struct namespace_entry *entries, uint32_t *ret_count)
{
	DIR *directory = opendir(path);
	struct dirent *found;
	uint32_t count = 0;

	if (!directory)
		return -errno;
	while (count < NAMESPACE_ENTRY_MAX && (found = readdir(directory))) {
		struct namespace_entry *entry = &entries[count];
		struct stat status;
		ssize_t size;

		if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, "..") ||
		    fstatat(dirfd(directory), found->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*entry = (struct namespace_entry){ .tree = -1, .folder = S_ISDIR(status.st_mode) };
		entry->is_ptmx = S_ISCHR(status.st_mode) && status.st_rdev == NAMESPACE_PTMX;
		snprintf(entry->name, sizeof(entry->name), "%s", found->d_name);
		if (S_ISLNK(status.st_mode)) {
			size = readlinkat(dirfd(directory), found->d_name, entry->link, sizeof(entry->link) - 1u);
			if (size <= 0)
				continue;
		} else {
			entry->tree =
				open_tree(dirfd(directory), found->d_name,
					  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
			if (entry->tree < 0)
				continue;
		}
		count++;
	}
	closedir(directory);
	*ret_count = count;
	return 0;
}

static void namespace_put(const char *path, const struct namespace_entry *entry)
{
	char target[512];
	int fd;

	snprintf(target, sizeof(target), "%s/%s", path, entry->name);
	if (entry->tree < 0) {
		(void)!symlink(entry->link, target);
		return;
	}
	/* The kernel looks for the folder pts beside this device, and finds none beside one that is mounted here. */
	if (entry->is_ptmx && !mknod(target, S_IFCHR | 0600, NAMESPACE_PTMX) && !chmod(target, 0666)) {
		close(entry->tree);
		return;
	}
	if (entry->folder) {
		(void)!mkdir(target, 0755);
	} else {
		fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
	}
	move_mount(entry->tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
	close(entry->tree);
}

/* Covers path with a tmpfs that has the same entries. A path that does not exist cannot be covered. */
static int namespace_cover(const char *path, struct gp_error *error)
{
	struct namespace_entry *entries = calloc(NAMESPACE_ENTRY_MAX, sizeof(*entries));
	uint32_t count = 0;
	int r;

	if (!entries)
		return gp_error_set(error, -ENOMEM, "out of memory");
	r = namespace_collect(path, entries, &count);
	if (r == 0 && mount("vgpu", path, "tmpfs", MS_NOSUID, "mode=0755") < 0)
		r = -errno;
	for (uint32_t i = 0; i < count; i++) {
		if (r == 0)
			namespace_put(path, &entries[i]);
		else if (entries[i].tree >= 0)
			close(entries[i].tree);
	}
	free(entries);
	return r < 0 ? gp_error_set(error, r, "cannot cover %s: %s", path, strerror(-r)) : 0;
}

static int namespace_devices(const struct gp_vnode *node)
{
	char path[128], link[128];

	if (mkdir(GP_NAMESPACE_DIR, 0755) < 0 || mkdir(GP_NAMESPACE_FUSE, 0755) < 0)
		return -errno;
	/* A real device of this host must not shine through. */
	umount2("/dev/kfd", MNT_DETACH);
	unlink("/dev/kfd");
	umount2("/dev/dri", MNT_DETACH);
	if (mkdir("/dev/dri", 0755) < 0 && errno != EEXIST)
		return -errno;
	if (symlink(GP_NAMESPACE_FUSE "/kfd", "/dev/kfd") < 0)
		return -errno;
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		snprintf(path, sizeof(path), "/dev/dri/renderD%u", node->gpus[i].minor);
		snprintf(link, sizeof(link), GP_NAMESPACE_FUSE "/renderD%u", node->gpus[i].minor);
		if (symlink(link, path) < 0)
			return -errno;
	}
	return gp_static_programs_write(GP_NAMESPACE_BIN);
}

int gp_namespace_enter(struct gp_vnode *node, struct gp_error *error)
{
	static const char *const covered[] = { "/dev", "/sys/devices/virtual", "/sys/class", "/sys/module",
					       "/sys/kernel/debug" };
	/* Of a real device of this host, should there be one. */
	static const char *const replaced[] = { "/sys/devices/virtual/kfd", "/sys/class/kfd", "/sys/module/amdgpu" };
	int r;

	if (unshare(CLONE_NEWNS) < 0)
		return gp_error_set(error, -errno,
				    "cannot make a mount namespace: %s (root is needed for the FUSE front end)",
				    strerror(errno));
	/* Slave: what is mounted outside later is seen inside, never the other way. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return gp_error_set(error, -errno, "cannot detach the mount namespace: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(covered) / sizeof(covered[0]); i++) {
		/* A kernel without debugfs has no such folder, and none is needed. */
		if (i == NAMESPACE_OPTIONAL && access(covered[i], F_OK) < 0)
			continue;
		r = namespace_cover(covered[i], error);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
		umount2(replaced[i], MNT_DETACH);
	r = gp_static_files_write(node, "", error);
	if (r < 0)
		return r;
	r = namespace_devices(node);
	return r < 0 ? gp_error_set(error, r, "cannot fill the mount namespace: %s", strerror(-r)) : 0;
}
