/* SPDX-License-Identifier: MIT */
/* Owns temporary files. They have no name, so nobody finds half of one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report/trace/spill.h"

#define SPILL_WINDOW_SIZE (1u << 20)

static int spill_refuse(struct gp_error *error, const char *verb)
{
	int code = errno ? -errno : -EIO;

	return gp_error_set(error, code, "cannot %s a temporary file in %s: %s (TMPDIR names another place)", verb,
			    getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", strerror(-code));
}

int gp_spill_open(struct gp_error *error)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	int fd;

	folder = folder && *folder ? folder : "/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* Not every file system knows unnamed files. */
	if ((size_t)snprintf(path, sizeof(path), "%s/gpreempt-XXXXXX", folder) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return spill_refuse(error, "create");
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return spill_refuse(error, "create");
	unlink(path);
	return fd;
}

int gp_spill_write(int fd, const void *bytes, size_t size, uint64_t offset, struct gp_error *error)
{
	const char *at = bytes;

	while (size) {
		ssize_t done = pwrite(fd, at, size, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return spill_refuse(error, "write");
		at += done;
		offset += (uint64_t)done;
		size -= (size_t)done;
	}
	return 0;
}

int gp_spill_read(int fd, void *bytes, size_t size, uint64_t offset, struct gp_error *error)
{
	char *at = bytes;

	while (size) {
		ssize_t done = pread(fd, at, size, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			errno = done ? errno : EIO;
			return spill_refuse(error, "read");
		}
		at += done;
		offset += (uint64_t)done;
		size -= (size_t)done;
	}
	return 0;
}

int gp_spill_init(struct gp_spill *spill, size_t record_size, size_t buffer_size, struct gp_error *error)
{
	memset(spill, 0, sizeof(*spill));
	spill->fd = -1;
	spill->record_size = record_size;
	spill->room = buffer_size / record_size ? buffer_size / record_size : 1;
	spill->buffer = malloc(spill->room * record_size);
	return spill->buffer ? 0 : gp_error_set(error, -ENOMEM, "not enough memory");
}

void gp_spill_fini(struct gp_spill *spill)
{
	free(spill->buffer);
	free(spill->window);
	/* Zeroes are no descriptor of ours. */
	if (spill->record_size && spill->fd >= 0)
		close(spill->fd);
	memset(spill, 0, sizeof(*spill));
	spill->fd = -1;
}

int gp_spill_append(struct gp_spill *spill, const void *record, struct gp_error *error)
{
	if (spill->buffered == spill->room) {
		int r;

		if (spill->fd < 0)
			spill->fd = gp_spill_open(error);
		if (spill->fd < 0)
			return spill->fd;
		r = gp_spill_write(spill->fd, spill->buffer, spill->room * spill->record_size,
				   spill->in_file * spill->record_size, error);
		if (r)
			return r;
		spill->in_file += spill->room;
		spill->buffered = 0;
	}
	memcpy(spill->buffer + spill->buffered++ * spill->record_size, record, spill->record_size);
	return 0;
}

int gp_spill_get(struct gp_spill *spill, uint64_t index, const void **ret_record, struct gp_error *error)
{
	size_t window_room = SPILL_WINDOW_SIZE / spill->record_size;

	if (index >= gp_spill_count(spill))
		return gp_error_set(error, -EINVAL, "a record beyond the end was asked for");
	if (index >= spill->in_file) {
		*ret_record = spill->buffer + (index - spill->in_file) * spill->record_size;
		return 0;
	}
	if (!spill->window)
		spill->window = malloc(window_room * spill->record_size);
	if (!spill->window)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	if (index < spill->window_first || index >= spill->window_first + spill->window_count) {
		/* The window ends a little behind the record, for readers that go backwards. */
		uint64_t last = index + window_room / 8 < spill->in_file ? index + window_room / 8 : spill->in_file;
		uint64_t first = last > window_room ? last - window_room : 0;
		int r;

		/* `last` may be the record itself. */
		if (last <= index)
			last = index + 1;
		spill->window_count = 0;
		r = gp_spill_read(spill->fd, spill->window, (size_t)(last - first) * spill->record_size,
				  first * spill->record_size, error);
		if (r)
			return r;
		spill->window_first = first;
		spill->window_count = (size_t)(last - first);
	}
	*ret_record = spill->window + (index - spill->window_first) * spill->record_size;
	return 0;
}
