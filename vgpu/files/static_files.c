/* SPDX-License-Identifier: MIT */
/* Owns what the files beside the device files say. Never mounts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu/files/static_files.h"
#include "vgpu/files/live.h"
#include "vgpu/files/tree.h"

#define STATIC_PATH_SIZE 256u

static int static_folder(const char *root, const char *name)
{
	char path[STATIC_PATH_SIZE];

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int static_file(const char *root, const char *name, const char *text, mode_t mode)
{
	ssize_t size = (ssize_t)strlen(text), written;
	char path[STATIC_PATH_SIZE];
	int fd, r = 0;

	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	written = write(fd, text, (size_t)size);
	if (written != size)
		r = written < 0 ? -errno : -ENOSPC;
	close(fd);
	return r;
}

/* Where debugfs cannot be covered it is missing, and nothing depends on it. */
static void static_debugfs(struct gp_vnode *node, const char *root)
{
	static const char *const folders[] = { "/sys/kernel", "/sys/kernel/debug", "/sys/kernel/debug/kfd" };
	char path[STATIC_PATH_SIZE];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (static_folder(root, folders[i]) < 0)
			return;
	if (snprintf(path, sizeof(path), "%s/sys/kernel/debug/kfd", root) < (int)sizeof(node->debug_dir))
		snprintf(node->debug_dir, sizeof(node->debug_dir), "%.120s", path);
	gp_live_mark(node);
}

static int static_files(struct gp_vnode *node, const char *root)
{
	char path[STATIC_PATH_SIZE];
	int r = static_folder(root, "/sys/module/amdgpu");

	static_debugfs(node, root);
	if (r == 0)
		r = static_file(root, "/sys/module/amdgpu/initstate", "live\n", 0644);
	if (r == 0)
		r = static_file(root, "/sys/module/amdgpu/version", "6.12.0-vgpu\n", 0644);
	snprintf(path, sizeof(path), "%s/sys/module/amdgpu", root);
	if (r == 0)
		r = gp_params_write(node, path);
	if (r == 0)
		r = static_folder(root, "/sys/class/kfd");
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/sys/class/kfd/kfd", root);
	return symlink("../.."
		       "/devices/virtual/kfd/kfd",
		       path) < 0 ?
		       -errno :
		       0;
}

int gp_static_files_write(struct gp_vnode *node, const char *root, struct gp_error *error)
{
	/* In the namespace the first ones are there. */
	static const char *const folders[] = {
		"/sys",         "/sys/class",           "/sys/module",
		"/sys/devices", "/sys/devices/virtual", "/sys/devices/virtual/kfd",
		GP_STATIC_KFD,
	};
	char kfd[STATIC_PATH_SIZE];
	int r = 0;

	if (snprintf(kfd, sizeof(kfd), "%s" GP_STATIC_KFD, root) >= (int)sizeof(kfd) ||
	    strlen(kfd) + sizeof("/proc") > sizeof(node->proc_dir))
		return gp_error_set(error, -ENAMETOOLONG, "the folder %s has too long a name", root);
	for (size_t i = 0; r == 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		r = static_folder(root, folders[i]);
	if (r == 0)
		r = static_files(node, root);
	if (r < 0)
		return gp_error_set(error, r, "cannot write the driver's files below %s/: %s", root, strerror(-r));
	r = gp_tree_topology(node, kfd, error);
	if (r == 0)
		snprintf(node->proc_dir, sizeof(node->proc_dir), "%.100s/proc", kfd);
	return r;
}

int gp_static_programs_write(const char *dir)
{
	int r = static_folder(dir, "");

	/* rocminfo 5 asks lsmod whether the driver is loaded. */
	return r < 0 ? r :
		       static_file(
			       dir, "/lsmod",
			       "#!/bin/sh\necho 'Module                  Size  Used by'\necho 'amdgpu               1 0'\n",
			       0755);
}
