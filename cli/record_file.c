/* SPDX-License-Identifier: MIT */
/* Owns the writing of a record. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "cli/record_file.h"
#include "lib/cleanup.h"

#define RECORD_FILE_TRIES 100u

static int record_file_open_temporary(struct gp_record_file *file)
{
	for (unsigned int i = 0; i < RECORD_FILE_TRIES; i++) {
		int fd;

		(void)snprintf(file->temporary, sizeof(file->temporary), "%s.%ld-%u.part", file->path, (long)getpid(),
			       i);
		fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

int gp_record_file_open(struct gp_record_file *file, const char *path, struct gp_error *error)
{
	GP_AUTO_FREE char *resolved = strcmp(path, "-") ? realpath(path, NULL) : NULL;
	struct stat st;

	memset(file, 0, sizeof(*file));
	if (strlen(resolved ? resolved : path) >= PATH_MAX) {
		file->has_failed = true;
		file->fd = -1;
		return gp_error_set(error, -ENAMETOOLONG, "%.100s…: the path is too long", path);
	}
	/* A link keeps pointing where it points: the file behind it is replaced. */
	(void)snprintf(file->path, sizeof(file->path), "%s",
		       !strcmp(path, "-") ? "standard output" :
		       resolved           ? resolved :
					    path);
	if (!strcmp(path, "-"))
		file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else if (!stat(path, &st) && !S_ISREG(st.st_mode))
		file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	else
		file->fd = record_file_open_temporary(file);
	if (file->fd >= 0)
		return 0;
	file->has_failed = true;
	file->temporary[0] = '\0';
	return gp_error_set(error, -errno, "%s cannot be written: %s", file->path, strerror(errno));
}

int gp_record_file_line(struct gp_record_file *file, const char *text, size_t size, struct gp_error *error)
{
	char *line = malloc(size + 1);
	size_t done = 0;
	int code = 0;

	if (!line)
		return gp_error_set(error, -ENOMEM, "out of memory");
	for (size_t i = 0; i < size; i++)
		line[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
	line[size] = '\n';
	while (!code && done < size + 1) {
		ssize_t wrote = write(file->fd, line + done, size + 1 - done);

		if (wrote > 0)
			done += (size_t)wrote;
		else if (errno != EINTR)
			code = wrote ? errno : EIO;
	}
	free(line);
	if (!code) {
		file->size += (off_t)(size + 1);
		return 0;
	}
	file->has_failed = true;
	/* Half a line is worse than none. */
	if (file->temporary[0] && ftruncate(file->fd, file->size))
		return gp_error_set(error, -code, "%s: %s; its last line is not whole", file->path, strerror(code));
	return gp_error_set(error, -code, "%s: %s", file->path, strerror(code));
}

/* Under which name it stays. */
static int record_file_name(struct gp_record_file *file, bool is_whole, bool *ret_kept_beside, struct gp_error *error)
{
	int r = 0;

	file->kept = file->path;
	if (!file->temporary[0])
		return 0;
	if (!file->size) {
		file->kept = NULL;
		(void)unlink(file->temporary);
		return 0;
	}
	if (is_whole && rename(file->temporary, file->path))
		r = gp_error_set(error, -errno, "%s: %s", file->path, strerror(errno));
	else if (is_whole || !renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->path, RENAME_NOREPLACE))
		return 0;
	*ret_kept_beside = true;
	file->kept = file->temporary;
	return r;
}

int gp_record_file_close(struct gp_record_file *file, bool is_whole, bool *ret_kept_beside, struct gp_error *error)
{
	int r = 0, named;

	*ret_kept_beside = false;
	if (file->fd < 0)
		return 0;
	/* Some file systems tell of a full disk only now. */
	if (file->temporary[0] && fsync(file->fd) && errno != EINVAL && errno != EROFS)
		r = gp_error_set(error, -errno, "%s: %s", file->path, strerror(errno));
	if (close(file->fd) && !r)
		r = gp_error_set(error, -errno, "%s: %s", file->path, strerror(errno));
	file->fd = -1;
	named = record_file_name(file, is_whole && !r, ret_kept_beside, error);
	return r ? r : named;
}
