/* SPDX-License-Identifier: MIT */
/* Owns the search for data files. Never follows a name out of the data tree. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/paths.h"

#ifndef GP_SOURCE_SHARE
#define GP_SOURCE_SHARE "" /* the build gives the source tree's share/; without it that place is skipped */
#endif

#define PATHS_EXE_SIZE 4096u

/* ".." is refused as a component, not inside a name such as "v1..2". */
static bool paths_is_safe(const char *relative)
{
	if (!*relative || *relative == '/')
		return false;
	for (const char *at = relative; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2]))
			return false;
	}
	return true;
}

static int paths_try(const char *directory, const char *between, const char *relative, char *ret_path, size_t path_size)
{
	char path[PATHS_EXE_SIZE];
	int length = snprintf(path, sizeof(path), "%s%s%s", directory, between, relative);

	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	if (access(path, R_OK))
		return -ENOENT;
	if ((size_t)length >= path_size)
		return -ENAMETOOLONG;
	memcpy(ret_path, path, (size_t)length + 1);
	return 0;
}

int gp_paths_self(char *ret_folder, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", ret_folder, size - 1);
	char *slash;

	if (length < 0)
		return -errno;
	ret_folder[length] = '\0';
	slash = strrchr(ret_folder, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

int gp_paths_share(const char *relative, char *ret_path, size_t path_size)
{
	const char *asked = getenv("GPREEMPT_SHARE_DIR");
	char exe[PATHS_EXE_SIZE];
	int r;

	if (!paths_is_safe(relative))
		return -EINVAL;
	if (asked && *asked)
		return paths_try(asked, "/", relative, ret_path, path_size);

	if (!gp_paths_self(exe, sizeof(exe))) {
		/* beside bin/, and beside libexec/gpreempt/, where the subcommands are */
		r = paths_try(exe, "/../share/gpreempt/", relative, ret_path, path_size);
		if (r == -ENOENT)
			r = paths_try(exe, "/../../share/gpreempt/", relative, ret_path, path_size);
		if (r != -ENOENT)
			return r;
	}
	if (!GP_SOURCE_SHARE[0])
		return -ENOENT;
	return paths_try(GP_SOURCE_SHARE, "/", relative, ret_path, path_size);
}

static int paths_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Copies the name without its suffix; false if it has another one or is too long to be one of ours. */
static bool paths_take(const char *file, const char *suffix, char *ret_name)
{
	size_t length = strlen(file), cut = strlen(suffix);

	if (length <= cut || strcmp(file + length - cut, suffix) || file[0] == '.' ||
	    length - cut >= GP_PATHS_NAME_SIZE)
		return false;
	memcpy(ret_name, file, length - cut);
	ret_name[length - cut] = '\0';
	return true;
}

int gp_paths_list(const char *relative_dir, const char *suffix, struct gp_paths_names *ret_names)
{
	char path[PATHS_EXE_SIZE];
	struct dirent *entry;
	DIR *directory;
	int r = gp_paths_share(relative_dir, path, sizeof(path));

	if (r < 0)
		return r;
	directory = opendir(path);
	if (!directory)
		return -errno;
	ret_names->count = 0;
	while (ret_names->count < GP_PATHS_LIST_MAX && (entry = readdir(directory)))
		if (paths_take(entry->d_name, suffix, ret_names->names[ret_names->count]))
			ret_names->count++;
	closedir(directory);
	qsort(ret_names->names, ret_names->count, sizeof(ret_names->names[0]), paths_compare);
	return 0;
}

const char *gp_paths_join(const struct gp_paths_names *names, char *buffer, size_t buffer_size)
{
	static const char cut[] = "…";
	size_t used = 0;

	buffer[0] = '\0';
	for (unsigned int i = 0; i < names->count; i++) {
		size_t needed = strlen(names->names[i]) + 2;

		if (used + needed + sizeof(cut) > buffer_size) {
			(void)snprintf(buffer + used, buffer_size - used, "%s", cut);
			break;
		}
		used += (size_t)snprintf(buffer + used, buffer_size - used, "%s%s", i ? ", " : "", names->names[i]);
	}
	return buffer;
}
