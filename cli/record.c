/* SPDX-License-Identifier: MIT */
/* `gpreempt record`: events into a file, for a while or while a command runs; and a record into a Perfetto trace. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/event.h"
#include "cli/record_file.h"
#include "cli/state.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/json_writer.h"
#include "lib/output.h"
#include "lib/units.h"

#define RECORD_LOOK_MS  200 /* how often the end (signal, command, duration) is looked for */
#define RECORD_SIZE_MAX (1u << 30)
#define RECORD_NAME     "gpreempt-record.jsonl"

/* clang-format off */
static const char record_help[] =
"Usage: gpreempt record [-o FILE] [--perfetto FILE] [--duration T] [-- COMMAND [ARGUMENT...]]\n"
"       gpreempt record --from FILE --perfetto FILE\n"
"Writes the scheduler's events to a file (docs/record.md) until Ctrl-C, for a time, or while a command runs.\n"
"\n"
"  -o, --output FILE     default " RECORD_NAME "; -: standard output\n"
"      --perfetto FILE   also write a trace for ui.perfetto.dev\n"
"      --duration T      stop after this time, such as 10s\n"
"      --from FILE       record nothing; read this earlier recording\n"
"      --json            print a summary as JSON at the end\n"
"  -q, --quiet           print nothing at the end\n"
"\n"
"Exit status: the command's, if one was given; else 0, 1 a file could not be written or read, 2 wrong usage, 3 no daemon.\n"
"A command that cannot be run: 126, 127.\n";
/* clang-format on */

enum { OPTION_PERFETTO = 256, OPTION_DURATION, OPTION_FROM, OPTION_JSON };
static const struct option record_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "perfetto", required_argument, NULL, OPTION_PERFETTO },
	{ "duration", required_argument, NULL, OPTION_DURATION },
	{ "from", required_argument, NULL, OPTION_FROM },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct record {
	const char *output, *perfetto, *from;
	uint64_t duration_ns;
	bool json, quiet;
	char **command;
	pid_t child; /* 0: none, or it has ended */
	int child_status;
	uint64_t event_count, lost_count;
};

static volatile sig_atomic_t record_is_stopped;

static void record_stop(int number)
{
	(void)number;
	record_is_stopped = 1;
}

static uint64_t record_clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What the machine and the daemon were when it began. */
static int record_header(char **ret_line, bool *ret_refused, struct gp_error *error)
{
	GP_AUTO_FREE char *status = NULL;
	struct utsname machine = { .release = "" };
	struct gp_state state;
	size_t size = 0;
	int r = gp_state_ask(&state, &status, &size, ret_refused, error);

	if (r && !status)
		return r;
	if (!r)
		gp_state_fini(&state);
	uname(&machine);
	r = asprintf(ret_line,
		     "{ \"gpreempt_record\": 1, \"version\": \"%s\", \"real_ns\": %" PRIu64
		     ", \"kernel\": \"%s\", \"status\": %s }",
		     GP_VERSION, record_clock_ns(CLOCK_REALTIME), machine.release, status);
	if (r < 0) {
		*ret_line = NULL;
		return gp_error_set(error, -ENOMEM, "out of memory");
	}
	return 0;
}

/* Started when the daemon is known to answer and the file to be writable, and the stream is open: nothing is missed. */
static int record_spawn(struct record *record, struct gp_error *error)
{
	int report[2], code = 0;
	ssize_t size;

	if (pipe2(report, O_CLOEXEC))
		return gp_error_set(error, -errno, "no pipe: %s", strerror(errno));
	record->child = fork();
	if (record->child == 0) {
		execvp(record->command[0], record->command);
		code = errno;
		while (write(report[1], &code, sizeof(code)) < 0 && errno == EINTR)
			continue;
		_exit(code == ENOENT ? 127 : 126);
	}
	close(report[1]);
	if (record->child < 0) {
		close(report[0]);
		record->child = 0;
		return gp_error_set(error, -EAGAIN, "no process: %s", strerror(errno));
	}
	do
		size = read(report[0], &code, sizeof(code));
	while (size < 0 && errno == EINTR);
	close(report[0]);
	if (size == (ssize_t)sizeof(code))
		fprintf(stderr, "gpreempt record: %s: %s\n", record->command[0], strerror(code));
	return 0;
}

static bool record_child_ended(struct record *record)
{
	if (!record->child || waitpid(record->child, &record->child_status, WNOHANG) != record->child)
		return false;
	record->child = 0;
	return true;
}

static int record_take(struct record *record, struct gp_record_file *file, const char *line, size_t size,
		       struct gp_error *error)
{
	struct gp_event event;
	int r = gp_event_read(&event, line, size, error);

	if (r)
		return r;
	if (!strcmp(event.event, "lost") && event.value != GP_EVENT_UNKNOWN)
		record->lost_count += event.value;
	r = gp_record_file_line(file, line, size, error);
	record->event_count += !r;
	return r;
}

/* Until something ends it. -EINTR never comes out: a signal is a good end. After the end, what is already there is
 * taken. */
static int record_loop(struct record *record, struct gp_record_file *file, struct gp_event_stream *stream,
		       struct gp_error *error)
{
	uint64_t end_ns = record->duration_ns ? record_clock_ns(CLOCK_MONOTONIC) + record->duration_ns : UINT64_MAX;
	bool is_ending = false;

	for (;;) {
		const char *line = NULL;
		size_t size = 0;
		int r;

		is_ending |= record_is_stopped && !record->child;
		is_ending |= record_clock_ns(CLOCK_MONOTONIC) >= end_ns;
		is_ending |= record->command && record_child_ended(record);
		r = gp_event_stream_next(stream, is_ending ? 0 : RECORD_LOOK_MS, &line, &size, error);
		if (r == -EAGAIN && is_ending)
			return 0;
		if (r == 0)
			return gp_error_set(error, -ECONNRESET, "the daemon ended the stream");
		if (r == 1)
			r = record_take(record, file, line, size, error);
		if (r && r != -EAGAIN)
			return r;
	}
}

static void record_wait_child(struct record *record)
{
	while (record->child && waitpid(record->child, &record->child_status, 0) < 0 && errno == EINTR)
		continue;
	record->child = 0;
}

static int record_perfetto(const struct record *record, const char *from, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	struct gp_file_writer writer;
	struct gp_record read;
	size_t size = 0;
	mode_t mask;
	int r = gp_file_read(from, RECORD_SIZE_MAX, &text, &size, error);

	r = r ? r : gp_record_read(&read, text, size, from, error);
	if (r)
		return r;
	if (read.skipped)
		fprintf(stderr, "gpreempt record: %s: %" PRIu64 " %s not an event (cut off?): left out\n", from,
			read.skipped, gp_units_word(read.skipped, "line is", "lines are"));
	/* As private as the record. */
	mask = umask(0077);
	r = gp_file_open(&writer, record->perfetto, error);
	umask(mask);
	if (!r) {
		r = gp_view_perfetto(writer.stream, &read.result);
		if (r)
			r = gp_error_set(error, r, "%s: %s", record->perfetto, strerror(-r));
		else
			r = gp_file_commit(&writer, error);
		gp_file_abandon(&writer);
	}
	gp_record_fini(&read);
	return r;
}

/* From the first line to the last. */
static int record_lines(struct record *record, struct gp_record_file *file, struct gp_event_stream *stream,
			const char *header, struct gp_error *error)
{
	struct gp_error end_error;
	char end[128];
	int r = gp_record_file_line(file, header, strlen(header), error), closing;

	if (r)
		return r;
	if (record->command)
		r = record_spawn(record, error);
	r = r ? r : record_loop(record, file, stream, error);
	(void)snprintf(end, sizeof(end), "{ \"event\": \"end\", \"value\": %" PRIu64 ", \"text\": \"%s\" }",
		       record->event_count, r ? "the recording broke off" : "the recording ended");
	closing = gp_record_file_line(file, end, strlen(end), &end_error);
	if (!r && closing) {
		*error = end_error;
		r = closing;
	}
	return r;
}

/* The daemon is asked first: where it does not answer no file is touched. The error of the recording itself is what
 * counts, then that of closing. */
static int record_to(struct record *record, struct gp_record_file *file, bool *ret_refused, struct gp_error *error)
{
	GP_AUTO_FREE char *header = NULL;
	struct gp_event_stream stream;
	int r = record_header(&header, ret_refused, error);

	r = r ? r : gp_event_stream_open(&stream, 0, error);
	if (r)
		return r;
	r = gp_record_file_open(file, record->output, error);
	r = r ? r : record_lines(record, file, &stream, header, error);
	*ret_refused = stream.control.refused;
	gp_event_stream_close(&stream);
	return r;
}

static int record_child_exit(const struct record *record)
{
	int status = record->child_status;

	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Says what is left of a recording that broke off. */
static void record_say_kept(const struct record *record, const struct gp_record_file *file, bool is_beside)
{
	if (!file->kept || !file->temporary[0])
		return;
	fprintf(stderr, "gpreempt record: what was recorded until then (%lld bytes) is in %s\n", (long long)file->size,
		file->kept);
	if (is_beside)
		fprintf(stderr, "gpreempt record: %s is what it was before\n", record->output);
}

/* A trace that is there is not replaced by one of a recording that broke off. */
static int record_trace(const struct record *record, const struct gp_record_file *file, bool is_whole,
			struct gp_error *error)
{
	if (!record->perfetto || !file->kept)
		return 0;
	if (!is_whole && !access(record->perfetto, F_OK)) {
		fprintf(stderr,
			"gpreempt record: %s is what it was before; for a trace of this recording use --from %s\n",
			record->perfetto, file->kept);
		return 0;
	}
	return record_perfetto(record, file->kept, error);
}

/* Closes the file and makes the trace; 0, or why not. */
static int record_finish(const struct record *record, struct gp_record_file *file, bool is_whole,
			 struct gp_error *error)
{
	bool is_beside;
	int r = gp_record_file_close(file, is_whole, &is_beside, error);

	if (r || !is_whole)
		record_say_kept(record, file, is_beside);
	return r ? r : record_trace(record, file, is_whole, error);
}

static void record_json(const struct record *record, const struct gp_record_file *file)
{
	struct gp_json_writer writer;

	gp_json_writer_init_line(&writer, stdout);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_u64(&writer, "schema", 1);
	gp_json_writer_u64(&writer, "events", record->event_count);
	gp_json_writer_u64(&writer, "lost", record->lost_count);
	gp_json_writer_i64(&writer, "bytes", (int64_t)file->size);
	gp_json_writer_end(&writer, '}');
}

static int record_go(struct record *record)
{
	struct sigaction action = { .sa_handler = record_stop };
	struct gp_record_file file = { .fd = -1 };
	struct gp_error error;
	bool is_refused = false;
	int r, status;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is an error like any other */
	r = record_to(record, &file, &is_refused, &error);
	if (r)
		fprintf(stderr, "gpreempt record: %s\n", error.text);
	status = !r ? GP_CLI_OK : is_refused || file.has_failed ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	/* The command is not ours to kill. */
	record_wait_child(record);
	r = record_finish(record, &file, !status, &error);
	if (r) {
		fprintf(stderr, "gpreempt record: %s\n", error.text);
		status = GP_CLI_FAILED;
	}
	if (record->json && strcmp(record->output, "-") != 0)
		record_json(record, &file);
	else if (!record->quiet && !status)
		fprintf(stderr, "gpreempt record: wrote %" PRIu64 " %s to %s%s\n", record->event_count,
			gp_units_word(record->event_count, "event", "events"),
			strcmp(record->output, "-") ? record->output : "standard output",
			record->lost_count ? " (some were lost: the daemon wrote faster)" : "");
	return record->command && !status ? record_child_exit(record) : status;
}

static int record_option(struct record *record, int option, struct gp_error *error)
{
	switch (option) {
	case 'o': record->output = optarg; return 0;
	case OPTION_PERFETTO: record->perfetto = optarg; return 0;
	case OPTION_FROM: record->from = optarg; return 0;
	case OPTION_JSON: record->json = true; return 0;
	case 'q': record->quiet = true; return 0;
	case OPTION_DURATION:
		return gp_units_parse_ns(optarg, "duration", 1, 86400ull * 365 * 1000000000u, &record->duration_ns,
					 error);
	default: return gp_error_set(error, -EINVAL, "see gpreempt record --help");
	}
}

int main(int argc, char **argv)
{
	struct record record = { .output = RECORD_NAME };
	struct gp_error error;
	int option;

	gp_output_start("gpreempt record", GP_CLI_FAILED);
	while ((option = getopt_long(argc, argv, "+o:qhV", record_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(record_help, stdout);
			return GP_CLI_OK;
		}
		if (option == 'V') {
			printf("gpreempt %s\n", GP_VERSION);
			return GP_CLI_OK;
		}
		if (record_option(&record, option, &error)) {
			fprintf(stderr, "gpreempt record: %s\n", error.text);
			return GP_CLI_USAGE;
		}
	}
	record.command = argv[optind] ? argv + optind : NULL;
	if (record.from && (!record.perfetto || record.command)) {
		fputs("gpreempt record: --from FILE needs --perfetto FILE, and takes no command\n", stderr);
		return GP_CLI_USAGE;
	}
	if (record.perfetto && !record.from && record.output && !strcmp(record.output, "-")) {
		fputs("gpreempt record: --perfetto needs a file to read from, not -o -\n", stderr);
		return GP_CLI_USAGE;
	}
	if (!record.from)
		return record_go(&record);
	if (record_perfetto(&record, record.from, &error)) {
		fprintf(stderr, "gpreempt record: %s\n", error.text);
		return GP_CLI_FAILED;
	}
	return GP_CLI_OK;
}
