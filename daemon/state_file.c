/* SPDX-License-Identifier: MIT */
/*
 * Files in state_dir, which the daemon keeps for its next run. Decisions do not wait for the disk: a crash of the
 * machine voids what was written last. The daemon does not read a file that another user could have written.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/state_file.h"

#define STATE_PATH_SIZE (GP_CONFIG_PATH_SIZE + 16)

int gp_state_file_open(const struct gp_daemon *daemon, const char *name, struct gp_file_writer *writer,
		       struct gp_error *error)
{
	char path[STATE_PATH_SIZE];
	int r;

	mkdir(daemon->config.state_dir, 0755); /* systemd makes it; a daemon started by hand has to */
	snprintf(path, sizeof(path), "%s/%s", daemon->config.state_dir, name);
	r = gp_file_open(writer, path, error);
	if (r)
		return r;
	writer->hurried = true; /* no fsync */
	fchmod(fileno(writer->stream), 0600);
	return 0;
}

int gp_state_file_read(const struct gp_daemon *daemon, const char *name, size_t size_max, char **ret_text,
		       size_t *ret_size, struct gp_error *error)
{
	char path[STATE_PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", daemon->config.state_dir, name);
	if (!*daemon->config.state_dir || lstat(path, &st))
		return -ENOENT;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		return gp_error_set(error, -EPERM,
				    "%s is not read: it must be a file that only the daemon's own user can write",
				    path);
	return gp_file_read(path, size_max, ret_text, ret_size, error);
}

/* The journal must not fill a disk that is full already. */
void gp_state_file_tried(const char *what, int r, const struct gp_error *error, bool *failed)
{
	if (r && !*failed)
		gp_log("%s are not kept over a restart: %s", what, error->text);
	else if (!r && *failed)
		gp_log("%s are kept again", what);
	*failed = r;
}
