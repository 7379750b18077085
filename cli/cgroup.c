/* SPDX-License-Identifier: MIT */
/* Looks for a cgroup in the hierarchies that are mounted here: one of version 2, several of version 1, or both. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cgroup.h"
#include "lib/cleanup.h"
#include "lib/file.h"

#define CGROUP_MOUNTS_SIZE (4u << 20) /* bytes of mountinfo */
#define CGROUP_FIELD       1024u

/* "36 35 98:0 ROOT FOLDER options … - TYPE …", where ROOT is the cgroup that is mounted at FOLDER. False: of another
 * type, or with a name in which the kernel escapes a character. */
static bool cgroup_mount(const char *line, char root[CGROUP_FIELD], char folder[CGROUP_FIELD])
{
	size_t size = strcspn(line, "\n");
	const char *type = memmem(line, size, " - cgroup", 9);

	return type && (!strncmp(type + 9, " ", 1) || !strncmp(type + 9, "2 ", 2)) &&
	       sscanf(line, "%*s %*s %*s %1023s %1023s", root, folder) == 2 && !strchr(root, '\\') &&
	       !strchr(folder, '\\');
}

/* What comes after root in path; NULL: path is not below root. */
static const char *cgroup_below(const char *path, const char *root)
{
	size_t size = strcmp(root, "/") != 0 ? strlen(root) : 0;

	return !strncmp(path, root, size) && (path[size] == '/' || !path[size]) ? path + size : NULL;
}

bool gp_cgroup_is_in_no_mount(const char *mounts, const char *path)
{
	char root[CGROUP_FIELD], folder[CGROUP_FIELD], full[2 * CGROUP_FIELD];
	bool has_looked = false;

	for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *rest = cgroup_mount(line, root, folder) ? cgroup_below(path, root) : NULL;

		if (!rest)
			continue;
		(void)snprintf(full, sizeof(full), "%s%s", folder, rest);
		if (!access(full, F_OK) || errno != ENOENT)
			return false;
		has_looked = true;
	}
	return has_looked;
}

/* A path means the same to two processes of one cgroup namespace. */
static bool cgroup_is_shared(pid_t pid)
{
	struct stat own, other;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/cgroup", (int)pid);
	return pid > 0 && !stat("/proc/self/ns/cgroup", &own) && !stat(path, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

bool gp_cgroup_is_missing(pid_t daemon, const char *path)
{
	GP_AUTO_FREE char *mounts = NULL;
	size_t size;

	return cgroup_is_shared(daemon) &&
	       !gp_file_read("/proc/self/mountinfo", CGROUP_MOUNTS_SIZE, &mounts, &size, NULL) &&
	       gp_cgroup_is_in_no_mount(mounts, path);
}
