/* SPDX-License-Identifier: MIT */
/* Owns the window over a file and the unpacking of gzip. Never maps a file: one that shrinks meanwhile would kill us.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef GP_HAVE_ZLIB
#include <zlib.h>
#endif
#include "report/trace/input.h"

#define INPUT_WINDOW_SIZE (1u << 20)
#define INPUT_PACKED_SIZE (256u << 10)

struct gp_input_gzip {
#ifdef GP_HAVE_ZLIB
	z_stream stream;
	bool is_open, has_member; /* has_member: inside a member */
	unsigned char packed[INPUT_PACKED_SIZE];
#else
	int unused;
#endif
};

static int input_refuse(const struct gp_input *input, struct gp_error *error, const char *verb)
{
	int code = errno ? -errno : -EIO;

	return gp_error_set(error, code, "%s: cannot %s: %s", input->file_name, verb, strerror(-code));
}

/* Raw bytes of the file: 0 at its end. */
static ssize_t input_read(struct gp_input *input, void *bytes, size_t size, struct gp_error *error)
{
	ssize_t got;

	if (input->fd < 0) {
		size_t left = input->memory_size - (size_t)input->read_size;

		size = size < left ? size : left;
		if (size)
			memcpy(bytes, input->memory + input->read_size, size);
		input->read_size += size;
		return (ssize_t)size;
	}
	do
		got = read(input->fd, bytes, size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return input_refuse(input, error, "read");
	input->read_size += (uint64_t)got;
	if (input->progress)
		input->progress(input->progress_context, input->read_size);
	return got;
}

#ifdef GP_HAVE_ZLIB
static int input_gzip_start(struct gp_input *input, struct gp_error *error)
{
	struct gp_input_gzip *gzip = calloc(1, sizeof(*gzip));
	size_t size = gp_input_size(input);

	/* What was looked at to recognise the file goes through the unpacker like the rest. */
	if (!gzip || size > sizeof(gzip->packed) || inflateInit2(&gzip->stream, 15 + 16) != Z_OK) {
		free(gzip);
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	}
	memcpy(gzip->packed, gp_input_at(input), size);
	gzip->stream.next_in = gzip->packed;
	gzip->stream.avail_in = (unsigned int)size;
	gzip->is_open = gzip->has_member = true;
	input->gzip = gzip;
	input->start = input->end = 0;
	input->at_end = false;
	return 0;
}

static ssize_t input_gzip_read(struct gp_input *input, void *bytes, size_t size, struct gp_error *error)
{
	struct gp_input_gzip *gzip = input->gzip;

	gzip->stream.next_out = bytes;
	gzip->stream.avail_out = (unsigned int)size;
	while (gzip->stream.avail_out == size) {
		int r;

		if (!gzip->stream.avail_in) {
			ssize_t got = input_read(input, gzip->packed, sizeof(gzip->packed), error);

			if (got < 0)
				return got;
			if (!got && gzip->has_member)
				return gp_error_set(error, -EINVAL,
						    "%s: the gzip file ends in the middle: it is truncated",
						    input->file_name);
			if (!got)
				return 0;
			gzip->stream.next_in = gzip->packed;
			gzip->stream.avail_in = (unsigned int)got;
		}
		if (!gzip->has_member) {
			if (inflateReset(&gzip->stream) != Z_OK)
				return gp_error_set(error, -EINVAL, "%s: cannot unpack", input->file_name);
			gzip->has_member = true;
		}
		r = inflate(&gzip->stream, Z_NO_FLUSH);
		if (r == Z_STREAM_END)
			gzip->has_member = false;
		else if (r != Z_OK && r != Z_BUF_ERROR)
			return gp_error_set(error, -EINVAL, "%s: the gzip data is damaged (%s)", input->file_name,
					    gzip->stream.msg ? gzip->stream.msg : "no reason given");
	}
	return (ssize_t)(size - gzip->stream.avail_out);
}

static void input_gzip_stop(struct gp_input *input)
{
	if (input->gzip && input->gzip->is_open)
		inflateEnd(&input->gzip->stream);
	free(input->gzip);
	input->gzip = NULL;
}
#else
static int input_gzip_start(struct gp_input *input, struct gp_error *error)
{
	return gp_error_set(error, -ENOTSUP, "%s: is a gzip file, and this program was built without zlib",
			    input->file_name);
}

static ssize_t input_gzip_read(struct gp_input *input, void *bytes, size_t size, struct gp_error *error)
{
	(void)bytes;
	(void)size;
	return input_gzip_start(input, error);
}

static void input_gzip_stop(struct gp_input *input)
{
	free(input->gzip);
	input->gzip = NULL;
}
#endif

static int input_start(struct gp_input *input, struct gp_error *error)
{
	int r;

	input->window = malloc(INPUT_WINDOW_SIZE);
	if (!input->window) {
		gp_input_close(input);
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	}
	/* The first read takes no more than the unpacker can take over. */
	input->room = INPUT_PACKED_SIZE;
	r = gp_input_fill(input, 2, error);
	input->room = INPUT_WINDOW_SIZE;
	if (!r && gp_input_size(input) >= 2 && !memcmp(gp_input_at(input), "\x1f\x8b", 2))
		r = input_gzip_start(input, error);
	if (r)
		gp_input_close(input);
	return r;
}

const char *gp_input_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

int gp_input_open(struct gp_input *input, const char *path, struct gp_error *error)
{
	struct stat st;

	bool is_standard = !strcmp(path, "-");

	memset(input, 0, sizeof(*input));
	input->file_name = gp_input_name(path);
	/* A descriptor of its own, so that closing is the same for both. */
	input->fd = is_standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (input->fd < 0)
		return input_refuse(input, error, "open");
	if (fstat(input->fd, &st)) {
		int r = input_refuse(input, error, "open");

		gp_input_close(input);
		return r;
	}
	if (S_ISDIR(st.st_mode)) {
		gp_input_close(input);
		return gp_error_set(error, -EISDIR, "%s: is a folder; name the files in it", input->file_name);
	}
	input->total_size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	return input_start(input, error);
}

int gp_input_open_memory(struct gp_input *input, const char *text, size_t text_size, const char *file_name,
			 struct gp_error *error)
{
	memset(input, 0, sizeof(*input));
	input->file_name = file_name;
	input->fd = -1;
	input->memory = text;
	input->memory_size = text_size;
	input->total_size = text_size;
	return input_start(input, error);
}

void gp_input_close(struct gp_input *input)
{
	input_gzip_stop(input);
	free(input->window);
	input->window = NULL;
	if (input->fd >= 0)
		close(input->fd);
	input->fd = -1;
}

/* Room behind `end` for at least one byte, with what is at hand moved to the front. */
static int input_make_room(struct gp_input *input, size_t want, struct gp_error *error)
{
	size_t size = gp_input_size(input);

	if (input->start && (input->start >= input->room / 2 || input->end == input->room)) {
		memmove(input->window, gp_input_at(input), size);
		input->start = 0;
		input->end = size;
	}
	if (want > input->room || input->end == input->room) {
		size_t larger = input->room;
		char *moved;

		while (larger < want || larger == size)
			larger *= 2;
		if (larger > GP_INPUT_WINDOW_MAX)
			return gp_error_set(error, -EFBIG, "%s: a row or value is longer than %u bytes",
					    input->file_name, GP_INPUT_WINDOW_MAX);
		moved = realloc(input->window, larger);
		if (!moved)
			return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
		input->window = moved;
		input->room = larger;
	}
	return 0;
}

int gp_input_fill(struct gp_input *input, size_t want, struct gp_error *error)
{
	while (gp_input_size(input) < want && !input->at_end) {
		int r = input_make_room(input, want, error);
		char *at = input->window + input->end;
		ssize_t got;

		if (r)
			return r;
		got = input->gzip ? input_gzip_read(input, at, input->room - input->end, error) :
				    input_read(input, at, input->room - input->end, error);
		if (got < 0)
			return (int)got;
		input->end += (size_t)got;
		input->at_end = !got;
	}
	return 0;
}
