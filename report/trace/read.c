/* SPDX-License-Identifier: MIT */
/* Owns the recognising of formats, by content alone. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "report/trace/readers.h"

#define READ_LOOK_SIZE 65536u

enum read_kind {
	READ_UNKNOWN,
	READ_SQLITE,
	READ_CSV,
	READ_CONSOLE,
	READ_ROCPROFV3_JSON,
	READ_CHROME_JSON,
	READ_SCHEMA_JSON,
	READ_PERFETTO,
	READ_RECORD,
	READ_FTRACE,
	READ_DMESG,
};

struct read_text {
	const char *at;
	size_t size;
};

static bool read_contains(const struct read_text *text, const char *what)
{
	return memmem(text->at, text->size, what, strlen(what)) != NULL;
}

/* A header line: of one of the kinds of columns that readers know. */
static bool read_is_csv(const struct read_text *text)
{
	static const char *const columns[] = { "Start_Timestamp", "BeginNs",         "TotalDurationNs",
					       "KernelName",      "Begin_Timestamp", "Cu_Count" };
	const char *end = memchr(text->at, '\n', text->size);
	struct read_text line = { text->at, end ? (size_t)(end - text->at) : text->size };

	if (!memchr(line.at, ',', line.size) || memchr(line.at, '(', line.size))
		return false;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if (read_contains(&line, columns[i]))
			return true;
	return false;
}

static bool read_has_line(const struct read_text *text, const char *start)
{
	size_t length = strlen(start);
	struct read_text rest = *text;

	while (rest.size >= length) {
		const char *end;

		if (!memcmp(rest.at, start, length))
			return true;
		end = memchr(rest.at, '\n', rest.size);
		if (!end)
			return false;
		rest.size -= (size_t)(end + 1 - rest.at);
		rest.at = end + 1;
	}
	return false;
}

static const char *read_skip_varint(const char *at, const char *end)
{
	while (at < end && (*at & 0x80))
		at++;
	return at < end ? at + 1 : end;
}

/* XLA's profile begins with a plane: its number, if it is not 0, and its name. In the place of the name a trace of
 * Perfetto has a process tree, which never begins with such a text. */
static bool read_is_xplane(const struct read_text *text)
{
	static const char *const names[] = { "/host:", "/device:", "Task Environment", "Host CPUs", "Syscalls" };
	const char *at = text->at, *end = text->at + text->size;

	if (!text->size || *at != '\n')
		return false;
	at = read_skip_varint(at + 1, end);
	if (at < end && *at == 0x08)
		at = read_skip_varint(at + 1, end);
	if (end - at < 32 || *at != 0x12)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!memcmp(at + 2, names[i], strlen(names[i])))
			return true;
	return false;
}

/* What people have in the place of a trace, and what to do with it; NULL: none of that. */
static const char *read_refusal(const struct read_text *text)
{
	static const struct {
		size_t at, size;
		const char *magic, *what;
	} kinds[] = {
		{ 0, 4, "PK\3\4", "is a zip archive: unpack it (unzip) and give the traces in it" },
		{ 257, 5, "ustar", "is a tar archive: unpack it (tar -xf) and give the traces in it" },
		{ 0, 4, "\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it (zstd -d) or compress it with gzip" },
		{ 0, 6,
		  "\xfd"
		  "7zXZ",
		  "is compressed with xz: unpack it (xz -d) or compress it with gzip" },
		{ 0, 3, "BZh", "is compressed with bzip2: unpack it (bzip2 -d) or compress it with gzip" },
	};

	if (read_is_xplane(text))
		return "is a profile of XLA (xplane.pb), not a trace: give HOST.trace.json.gz instead, which "
		       "jax.profiler.trace writes beside it; if there is none, let xprof write it "
		       "(xprof.convert.raw_to_tool_data.xspace_to_tool_data, tool \"trace_viewer\")";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (text->size >= kinds[i].at + kinds[i].size &&
		    !memcmp(text->at + kinds[i].at, kinds[i].magic, kinds[i].size))
			return kinds[i].what;
	return NULL;
}

static enum read_kind read_json_kind(const struct read_text *text)
{
	if (read_contains(text, "\"$schema\"") || read_contains(text, "json-schema.org"))
		return READ_SCHEMA_JSON;
	if (read_has_line(text, "{ \"gpreempt_record\"") || read_has_line(text, "{\"gpreempt_record\""))
		return READ_RECORD;
	if (read_contains(text, "\"rocprofiler-sdk-tool\""))
		return READ_ROCPROFV3_JSON;
	return READ_CHROME_JSON;
}

static enum read_kind read_kind_of(struct read_text text)
{
	if (text.size >= 16 && !memcmp(text.at, "SQLite format 3", 16))
		return READ_SQLITE;
	if (text.size >= 3 && !memcmp(text.at, "\xef\xbb\xbf", 3)) {
		text.at += 3;
		text.size -= 3;
	}
	/* Field 1, length-delimited: a packet of a trace. A text may begin with a line end too. */
	if (text.size >= 2 && text.at[0] == '\n' && memchr(text.at, '\0', text.size < 64 ? text.size : 64))
		return READ_PERFETTO;
	if (text.size >= 4 && text.at[0] == '\n' && text.at[1] > 0 && text.at[1] < 0x7f &&
	    (text.at[2] == 0x08 || text.at[2] == 0x50 || (unsigned char)text.at[2] == 0xe2 ||
	     (unsigned char)text.at[2] == 0x5a))
		return READ_PERFETTO;
	while (text.size && (*text.at == ' ' || *text.at == '\n' || *text.at == '\r' || *text.at == '\t')) {
		text.at++;
		text.size--;
	}
	if (text.size && *text.at == '{')
		return read_json_kind(&text);
	if (read_is_csv(&text))
		return READ_CSV;
	if (read_has_line(&text, "Domain(") || read_has_line(&text, "Dispatch_ID(") ||
	    read_has_line(&text, "ROCProfilerV2: "))
		return READ_CONSOLE;
	if (read_contains(&text, "# tracer: ") || read_contains(&text, "drm_run_job: ") ||
	    read_contains(&text, "drm_sched_job") || read_contains(&text, "amdgpu_sched_run_job: ") ||
	    read_contains(&text, "amdgpu_cs_ioctl: "))
		return READ_FTRACE;
	if (read_contains(&text, "amdgpu") || read_contains(&text, "kfd") || read_contains(&text, "amdkfd") ||
	    read_contains(&text, "Linux version "))
		return READ_DMESG;
	if (text.size && *text.at == '[')
		return read_json_kind(&text);
	return READ_UNKNOWN;
}

static const struct {
	const char *name;
	int (*read)(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);
} read_formats[] = {
	[READ_CSV] = { "CSV", gp_read_csv },
	[READ_CONSOLE] = { "rocprofv2 console", gp_read_console },
	[READ_ROCPROFV3_JSON] = { "rocprofv3 JSON", gp_read_rocprofv3_json },
	[READ_CHROME_JSON] = { "Chrome JSON", gp_read_chrome_json },
	[READ_PERFETTO] = { "Perfetto", gp_read_perfetto },
	[READ_RECORD] = { "gpreempt record", gp_read_record },
	[READ_FTRACE] = { "ftrace", gp_read_ftrace },
	[READ_DMESG] = { "dmesg", gp_read_dmesg },
};

int gp_trace_read_input(struct gp_input *input, const struct gp_sink *sink, const char **ret_format,
			struct gp_error *error)
{
	struct read_text text;
	const char *refusal;
	enum read_kind kind;
	int r = gp_input_fill(input, READ_LOOK_SIZE, error);

	*ret_format = NULL;
	if (r)
		return r;
	if (!gp_input_size(input))
		return gp_error_set(error, -ENOMSG, "%s: the file is empty", input->file_name);
	text = (struct read_text){ gp_input_at(input), gp_input_size(input) };
	refusal = read_refusal(&text);
	if (refusal)
		return gp_error_set(error, -ENOMSG, "%s: %s", input->file_name, refusal);
	kind = read_kind_of(text);
	if (kind == READ_SCHEMA_JSON)
		return gp_error_set(error, -ENOMSG, "%s: is a JSON schema, not a trace", input->file_name);
	if (kind == READ_SQLITE)
		return gp_error_set(
			error, -ENOTSUP,
			"%s: a database cannot be read from standard input, a pipe or a gzip file: name the database itself",
			input->file_name);
	if (kind == READ_UNKNOWN || !read_formats[kind].read)
		return gp_error_set(error, -ENOMSG,
				    "%s: not a trace of a known format (rocprof v1, v2, v3; rocpd; RPD; Chrome JSON; "
				    "Perfetto; ftrace; dmesg)",
				    input->file_name);
	*ret_format = read_formats[kind].name;
	r = read_formats[kind].read(input, sink, error);
	if (input->format)
		*ret_format = input->format;
	return r;
}

/* The look that a database needs: it is read by name, not as a stream. */
static bool read_is_sqlite(const char *path)
{
	char magic[16];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	/* From a pipe nothing is taken: a database cannot be one. */
	bool is_sqlite = fd >= 0 && pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
			 !memcmp(magic, "SQLite format 3", sizeof(magic));

	if (fd >= 0)
		close(fd);
	return is_sqlite;
}

struct read_meter {
	const struct gp_read_progress *progress;
	const struct gp_input *input;
};

static void read_meter_update(void *context, uint64_t read_size)
{
	const struct read_meter *meter = context;

	meter->progress->update(meter->progress->context, read_size, meter->input->total_size);
}

int gp_trace_read(const char *path, const struct gp_sink *sink, const struct gp_read_progress *progress,
		  const char **ret_format, struct gp_error *error)
{
	struct gp_input input;
	struct read_meter meter = { progress, &input };
	int r;

	*ret_format = NULL;
	if (strcmp(path, "-") && read_is_sqlite(path))
		return gp_read_sqlite(path, NULL, 0, sink, ret_format, error);
	r = gp_input_open(&input, path, error);
	if (r)
		return r;
	if (progress && progress->update) {
		input.progress = read_meter_update;
		input.progress_context = &meter;
	}
	r = gp_trace_read_input(&input, sink, ret_format, error);
	gp_input_close(&input);
	return r;
}
