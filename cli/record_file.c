/* SPDX-License-Identifier: MIT */
/* Owns the writing of a record. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "cli/record_file.h"

int gp_record_file_open(struct gp_record_file *file, const char *path, struct gp_error *error)
{
	struct stat st;

	memset(file, 0, sizeof(*file));
	(void)snprintf(file->path, sizeof(file->path), "%s", path);
	file->fd = strcmp(path, "-") ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644) :
				       fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (file->fd < 0)
		return gp_error_set(error, -errno, "%s cannot be written: %s", path, strerror(errno));
	file->is_regular = strcmp(path, "-") != 0 && !fstat(file->fd, &st) && S_ISREG(st.st_mode);
	return 0;
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
	if (file->is_regular && ftruncate(file->fd, file->size))
		return gp_error_set(error, -code, "%s: %s; its last line is not whole", file->path, strerror(code));
	return gp_error_set(error, -code, "%s: %s; what is in it (%lld bytes) can be read", file->path, strerror(code),
			    (long long)file->size);
}

int gp_record_file_close(struct gp_record_file *file, struct gp_error *error)
{
	int r = 0;

	if (file->fd < 0)
		return 0;
	/* Some file systems tell of a full disk only now. */
	if (file->is_regular && fsync(file->fd) && errno != EINVAL && errno != EROFS)
		r = gp_error_set(error, -errno, "%s: %s", file->path, strerror(errno));
	if (close(file->fd) && !r)
		r = gp_error_set(error, -errno, "%s: %s", file->path, strerror(errno));
	file->fd = -1;
	return r;
}
