/* SPDX-License-Identifier: MIT */
/*
 * Where a process is among the control groups, from /proc/PID/cgroup, whose paths begin at the root of the daemon's own
 * cgroup namespace: what a process does to its own namespace changes nothing. Line ends cannot be part of a path. Only
 * whole paths from the root on count, since a user with a subtree of his own may call the groups in it what he likes.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/cgroup.h"
#include "daemon/process.h"

#define CGROUP_DEPTH_MAX 64u

static bool cgroup_has(const char *paths, const char *path, size_t size)
{
	for (const char *at = paths; *at; at += strcspn(at, "\n"), at += *at == '\n')
		if (strcspn(at, "\n") == size && !strncmp(at, path, size))
			return true;
	return false;
}

static void cgroup_add(char *paths, size_t size, const char *path, size_t path_size)
{
	size_t used = strlen(paths);

	if (path_size < 2 || path[0] != '/' || used + path_size + 2 > size || cgroup_has(paths, path, path_size))
		return;
	memcpy(paths + used, path, path_size);
	memcpy(paths + used + path_size, "\n", 2);
}

/* "0::/path" is the unified hierarchy's line; "1:name=systemd:/path" and "4:memory:/path" are of the older ones. */
void gp_cgroup_parse(const char *text, char *paths, size_t size)
{
	paths[0] = '\0';
	for (int unified = 1; unified >= 0; unified--) {
		for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
			size_t line_size = strcspn(line, "\n");
			const char *at = memchr(line, ':', line_size);

			at = at ? memchr(at + 1, ':', line_size - (size_t)(at + 1 - line)) : NULL;
			if (!at || (unified == 1) != !strncmp(line, "0::", 3))
				continue;
			cgroup_add(paths, size, at + 1, line_size - (size_t)(at + 1 - line));
		}
	}
}

void gp_cgroup_read(pid_t pid, int pidfd, char *paths, size_t size)
{
	char text[GP_CGROUP_TEXT];

	paths[0] = '\0';
	/* Of a thread that has ended the kernel says "/" for the hierarchies of version 1. */
	if (gp_process_read_living(pid, "cgroup", text, sizeof(text)))
		gp_cgroup_parse(text, paths, size);
	/* If the process has not ended, its pid meant the same process all the time. */
	if (!gp_process_is_there(pidfd))
		paths[0] = '\0';
}

bool gp_cgroup_is_within(const char *paths, const char *path)
{
	size_t size = strlen(path);

	for (const char *at = paths; *at; at += strcspn(at, "\n"), at += *at == '\n')
		if (!strncmp(at, path, size) && (at[size] == '/' || at[size] == '\n' || !at[size]))
			return true;
	return false;
}

/* How many parts a path has. */
static uint32_t cgroup_depth(const char *path)
{
	uint32_t depth = 0;

	for (; *path; path++)
		depth += *path == '/';
	return depth;
}

/* Bytes of the path's first depth parts; 0: it has fewer parts. */
static size_t cgroup_prefix(const char *path, uint32_t depth)
{
	size_t size = 0;

	for (uint32_t i = 0; i < depth; i++) {
		if (path[size] != '/')
			return 0;
		size += 1 + strcspn(path + size + 1, "/\n");
	}
	return size;
}

bool gp_cgroup_matches(const char *paths, const char *pattern, char *ret_name, size_t size)
{
	uint32_t depth = cgroup_depth(pattern);
	char prefix[GP_CGROUP_TEXT];

	for (const char *at = paths; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t length = cgroup_prefix(at, depth);
		const char *name;

		if (!length || length >= sizeof(prefix))
			continue;
		memcpy(prefix, at, length);
		prefix[length] = '\0';
		if (fnmatch(pattern, prefix, FNM_PATHNAME | FNM_NOESCAPE))
			continue;
		name = strrchr(prefix, '/') + 1;
		if (strlen(name) >= size)
			name += strlen(name) - size + 1;
		memcpy(ret_name, name, strlen(name) + 1);
		return true;
	}
	return false;
}

int gp_cgroup_check(const char *path, struct gp_error *error)
{
	size_t size;

	if (path[0] != '/')
		return gp_error_set(error, -EINVAL, "a cgroup's path begins with /, as in /proc/PID/cgroup");
	for (const char *at = path; *at; at += size) {
		size = 1 + strcspn(at + 1, "/");
		if (size == 1 || (size == 2 && at[1] == '.') || (size == 3 && at[1] == '.' && at[2] == '.'))
			return gp_error_set(error, -EINVAL,
					    "a cgroup's path has no empty parts, and neither '.' nor '..'");
		for (size_t i = 1; i < size; i++)
			if ((unsigned char)at[i] < 0x20 || at[i] == 0x7f)
				return gp_error_set(error, -EINVAL, "a cgroup's path has no control characters");
	}
	if (cgroup_depth(path) > CGROUP_DEPTH_MAX || path[strlen(path) - 1] == ' ')
		return gp_error_set(error, -EINVAL, "a cgroup's path has at most %u parts, and no blank at its end",
				    CGROUP_DEPTH_MAX);
	return 0;
}

/* systemd.slice(5): each dash is a level. */
static int cgroup_slice(const char *text, char *ret_pattern, size_t size)
{
	size_t at = 0, length = strlen(text) - strlen(".slice");

	for (size_t i = 1; i <= length; i++) {
		int put;

		if (i < length && text[i] != '-')
			continue;
		put = snprintf(ret_pattern + at, size - at, "/%.*s.slice", (int)i, text);
		if (put < 0 || (size_t)put >= size - at)
			return -ENAMETOOLONG;
		at += (size_t)put;
	}
	return at ? 0 : -EINVAL;
}

int gp_cgroup_pattern(const char *text, char *ret_pattern, size_t size, uint32_t *ret_depth, struct gp_error *error)
{
	size_t length = strlen(text);

	if (length >= size)
		return gp_error_set(error, -EINVAL, "a cgroup's path has at most %zu bytes here", size - 1);
	memcpy(ret_pattern, text, length + 1);
	if (text[0] != '/' && (length < 7 || strcmp(text + length - 6, ".slice") || text[0] == '-' ||
			       strchr(text, '/') || cgroup_slice(text, ret_pattern, size)))
		return gp_error_set(error, -EINVAL,
				    "'%s' is neither a cgroup's path from the root on nor the name of a slice", text);
	if (gp_cgroup_check(ret_pattern, error))
		return -EINVAL;
	*ret_depth = cgroup_depth(ret_pattern);
	return 0;
}
