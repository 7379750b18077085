/* SPDX-License-Identifier: MIT */
/*
 * What a process may do to others: its capabilities in the daemon's own user namespace, which on an installed machine
 * is the initial one. Root in a container has uid 0 and few of them, or has them in a namespace of the container alone.
 *
 * The kernel tells which process connected (uid, pidfd), but not with which capabilities. The daemon reads these from
 * /proc when it accepts the connection. In between the process may have executed another program, whose capabilities
 * are not the caller's: a set-user-ID program shows other uids than the connection, and a program with capabilities in
 * its file has no ambient ones. Neither gets a right.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/process.h"
#include "daemon/rights.h"

#define RIGHTS_ADMIN_BIT 21 /* CAP_SYS_ADMIN, CAP_SYS_NICE of linux/capability.h */
#define RIGHTS_NICE_BIT  23

static const char *rights_line(const char *text, const char *name)
{
	size_t size = strlen(name);

	/* The first line is the program's name, which its user chooses; the kernel escapes line ends in it. */
	for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'))
		if (!strncmp(at + 1, name, size) && at[1 + size] == '\t')
			return at + 2 + size;
	return NULL;
}

static bool rights_set(const char *text, const char *name, uint64_t *ret_set)
{
	const char *at = rights_line(text, name);
	char *end;

	if (!at)
		return false;
	*ret_set = strtoull(at, &end, 16);
	return end != at && *end == '\n';
}

/* Whether the real, effective, saved and file system uids are all this one. */
static bool rights_is_uid(const char *text, uid_t uid)
{
	const char *at = rights_line(text, "Uid:");
	char *end;

	for (int i = 0; at && i < 4; i++, at = end) {
		if (strtoull(at, &end, 10) != uid || end == at)
			return false;
	}
	return at && *at == '\n';
}

uint32_t gp_rights_parse(const char *status, uid_t uid)
{
	uint64_t effective, ambient;
	uint32_t rights = 0;

	if (!rights_is_uid(status, uid) || !rights_set(status, "CapEff:", &effective) ||
	    !rights_set(status, "CapAmb:", &ambient))
		return 0;
	effective &= uid ? ambient : ~0ull;
	if (effective >> RIGHTS_ADMIN_BIT & 1)
		rights |= GP_RIGHT_ADMIN;
	if (effective >> RIGHTS_NICE_BIT & 1)
		rights |= GP_RIGHT_NICE;
	return rights;
}

/* Whether the process's user namespace has that inode number, which no other has. */
static bool rights_is_in(pid_t pid, ino_t own)
{
	struct stat theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return own && !stat(path, &theirs) && theirs.st_ino == own;
}

uint32_t gp_rights_read(uid_t uid, pid_t pid, int pidfd, ino_t own)
{
	char status[GP_RIGHTS_TEXT];
	uint32_t rights;

	if (!gp_process_read(pid, "status", status, sizeof(status)))
		return 0;
	rights = gp_rights_parse(status, uid);
	/* If the process has not ended, its pid meant the same process all the time. */
	return rights && rights_is_in(pid, own) && gp_process_is_there(pidfd) ? rights : 0;
}
