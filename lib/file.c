/* SPDX-License-Identifier: MIT */
/* Owns the reading and replacing of whole files. Never leaves half a file under the name that was asked for. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/output.h"

#define FILE_CHUNK_SIZE      65536u
#define FILE_TEMPORARY_TRIES 100u

static int file_refuse(struct gp_error *error, const char *path, const char *verb)
{
	int code = errno ? -errno : -EIO;

	return gp_error_set(error, code, "%s: cannot %s: %s", path, verb, strerror(-code));
}

static int file_read_stream(FILE *stream, const char *path, size_t size_max, char **ret_text, size_t *ret_size,
			    struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	size_t size = 0, room = 0;

	for (;;) {
		if (room - size < 2) {
			size_t larger = room ? room * 2 : FILE_CHUNK_SIZE;
			char *moved = realloc(text, larger);

			if (!moved)
				return gp_error_set(error, -ENOMEM, "%s: not enough memory", path);
			text = moved;
			room = larger;
		}
		errno = 0;
		size_t got = fread(text + size, 1, room - size - 1, stream);

		size += got;
		if (size > size_max)
			return gp_error_set(error, -EFBIG, "%s: is larger than %zu bytes", path, size_max);
		if (!got)
			break;
	}
	if (ferror(stream))
		return file_refuse(error, path, "read");
	text[size] = '\0';
	*ret_size = size;
	*ret_text = GP_TAKE(text);
	return 0;
}

int gp_file_read(const char *path, size_t size_max, char **ret_text, size_t *ret_size, struct gp_error *error)
{
	GP_AUTO_FCLOSE FILE *stream = fopen(path, "re");

	if (!stream)
		return file_refuse(error, path, "open");
	return file_read_stream(stream, path, size_max, ret_text, ret_size, error);
}

/* Devices, pipes and sockets (/dev/null, /dev/stdout, <(…)) cannot be replaced by renaming, and must not be: they
 * are written to. */
static bool file_is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

static int file_open_temporary(struct gp_file_writer *writer)
{
	for (unsigned int i = 0; i < FILE_TEMPORARY_TRIES; i++) {
		int fd;

		(void)snprintf(writer->temporary, sizeof(writer->temporary), "%s.%ld-%u.tmp", writer->path,
			       (long)getpid(), i);
		fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int gp_file_open(struct gp_file_writer *writer, const char *path, struct gp_error *error)
{
	GP_AUTO_FREE char *resolved = NULL;
	int fd;

	memset(writer, 0, sizeof(*writer));
	if (!strcmp(path, "-")) {
		writer->stream = stdout;
		(void)snprintf(writer->path, sizeof(writer->path), "standard output");
		return 0;
	}
	/* A link keeps pointing where it points: the file behind it is replaced. */
	resolved = realpath(path, NULL);
	if (strlen(resolved ? resolved : path) >= sizeof(writer->path))
		return gp_error_set(error, -ENAMETOOLONG, "%.100s…: the path is too long", path);
	(void)snprintf(writer->path, sizeof(writer->path), "%s", resolved ? resolved : path);
	if (file_is_special(path)) {
		writer->stream = fopen(path, "we");
		return writer->stream ? 0 : file_refuse(error, path, "open for writing");
	}

	fd = file_open_temporary(writer);
	if (fd < 0) {
		writer->temporary[0] = '\0';
		errno = -fd;
		return file_refuse(error, path, "create");
	}
	writer->stream = fdopen(fd, "w");
	if (!writer->stream) {
		int r = file_refuse(error, path, "create");

		close(fd);
		unlink(writer->temporary);
		writer->temporary[0] = '\0';
		return r;
	}
	return 0;
}

int gp_file_try(const char *path, struct gp_error *error)
{
	struct gp_file_writer writer;
	int r;

	if (!path || !strcmp(path, "-") || file_is_special(path))
		return 0;
	r = gp_file_open(&writer, path, error);
	if (!r)
		gp_file_abandon(&writer);
	return r;
}

int gp_file_commit(struct gp_file_writer *writer, struct gp_error *error)
{
	bool is_file = writer->temporary[0];
	bool failed;

	errno = 0;
	/* A write that failed earlier left no errno. Another write fails for the same reason; what it may write goes
	 * away with the temporary file. */
	if (ferror(writer->stream) && is_file) {
		static const char block[FILE_CHUNK_SIZE];

		(void)!write(fileno(writer->stream), block, sizeof(block));
	}
	failed = fflush(writer->stream) || ferror(writer->stream) ||
		 (is_file && !writer->hurried && fsync(fileno(writer->stream)));
	if (!failed && writer->stream == stdout) {
		writer->stream = NULL;
		return 0;
	}
	if (!failed) {
		failed = fclose(writer->stream);
		writer->stream = NULL;
	}
	if (!failed && is_file)
		failed = rename(writer->temporary, writer->path);
	if (failed) {
		int r = file_refuse(error, writer->path, "write");

		gp_file_abandon(writer);
		return r;
	}
	writer->temporary[0] = '\0';
	return 0;
}

void gp_file_abandon(struct gp_file_writer *writer)
{
	if (writer->stream == stdout)
		gp_output_reported();
	else if (writer->stream)
		fclose(writer->stream);
	writer->stream = NULL;
	if (writer->temporary[0])
		unlink(writer->temporary);
	writer->temporary[0] = '\0';
}
