/* SPDX-License-Identifier: MIT */
/* `gpreempt events`: decisions and their reasons, as they come. Owns its options and the form of a line. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "lib/cleanup.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "cli/clean.h"
#include "cli/event.h"
#include "cli/target_pid.h"

/* clang-format off */
static const char events_help[] =
"Usage: gpreempt events [-f] [--json] [--pid PID] [-g GPU]\n"
"Shows what the daemon observed and decided, one line each, with the reason. Without -f: what it still remembers.\n"
"\n"
"  -f, --follow    show new events as they happen, until Ctrl-C\n"
"      --json      print one JSON object a line (docs/status.md)\n"
"      --pid PID   show only events of this program, or in which another one waited for it\n"
"  -g, --gpu ID    show only events on this GPU (gpu_id as in status)\n"
"\n"
"Exit status: 0; 1 refused; 2 wrong usage; 3 no daemon, or the daemon ended.\n";
/* clang-format on */

enum { OPTION_JSON = 256, OPTION_PID };
static const struct option events_options[] = {
	{ "follow", no_argument, NULL, 'f' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "pid", required_argument, NULL, OPTION_PID },
	{ "gpu", required_argument, NULL, 'g' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct events {
	bool follow, json;
	int32_t pid;     /* 0: any */
	uint32_t gpu_id; /* 0: any */
};

/* Lines about losses concern everybody. */
static bool events_wants(const struct events *events, const struct gp_event *event)
{
	if (event->pid == GP_EVENT_UNKNOWN && event->gpu_id == GP_EVENT_UNKNOWN)
		return true;
	if (events->gpu_id && event->gpu_id != events->gpu_id)
		return false;
	return !events->pid || event->pid == (uint64_t)events->pid || event->other_pid == (uint64_t)events->pid;
}

static void events_show(const struct gp_event *event)
{
	char clock[16] = "--:--:--";
	time_t seconds = (time_t)(event->real_ns / 1000000000u);
	struct tm local;

	if (event->real_ns != GP_EVENT_UNKNOWN && localtime_r(&seconds, &local))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	if (event->real_ns != GP_EVENT_UNKNOWN)
		printf("%s.%06" PRIu64, clock, event->real_ns / 1000u % 1000000u);
	else
		printf("%s.------", clock);
	if (event->text[0])
		printf("  %-12s  %s", event->event, event->text);
	else
		printf("  %-12s", event->event);
	if (!event->text[0] && event->value != GP_EVENT_UNKNOWN)
		printf("  %" PRIu64, event->value);
	putchar('\n');
}

/* Who follows events waits for the next one, however long: whether the daemon answers at all is asked before. */
static int events_ping(void)
{
	struct gp_control_request request = { .verb = GP_CONTROL_PING };
	GP_AUTO_FREE char *text = NULL;
	bool is_refused = false;
	struct gp_error error;
	size_t size = 0;

	if (!gp_control_once(&request, &text, &size, &is_refused, &error))
		return GP_CLI_OK;
	fprintf(stderr, "gpreempt events: %s\n", error.text);
	return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
}

static int events_go(const struct events *events)
{
	struct gp_event_stream stream;
	bool is_unwritten = false;
	struct gp_event event;
	struct gp_error error;
	const char *line;
	size_t size;
	int r = gp_event_stream_open(&stream, events->follow ? 0 : GP_CONTROL_EVENTS_PAST, &error);

	while (!r) {
		/* What is remembered comes at once; what will happen may take any time. */
		r = gp_event_stream_next(&stream, events->follow ? -1 : (int)gp_control_wait_ms(), &line, &size,
					 &error);
		if (r == -EAGAIN && !events->follow)
			r = gp_error_set(&error, -ETIMEDOUT,
					 "the daemon does not answer (waited %u s)" GP_CONTROL_LATE_ADVICE,
					 gp_control_wait_ms() / 1000u);
		if (r == -EAGAIN)
			r = 1;
		else if (r == 1)
			r = gp_event_read(&event, line, size, &error) ?: 2;
		else if (r == 0)
			break;
		if (r == 2 && events_wants(events, &event)) {
			if (events->json) {
				gp_clean_json(stdout, line, size);
				putchar('\n');
			} else {
				events_show(&event);
			}
		}
		if (events->follow && fflush(stdout)) {
			is_unwritten = true;
			r = gp_output_refuse(&error);
		}
		r = r > 0 ? 0 : r;
	}
	if (r)
		fprintf(stderr, "gpreempt events: %s\n", error.text);
	r = !r ? GP_CLI_OK : stream.control.refused || is_unwritten ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	gp_event_stream_close(&stream);
	return r;
}

int main(int argc, char **argv)
{
	struct events events = { 0 };
	struct gp_error error;
	int option, r = 0;

	gp_output_start("gpreempt events", GP_CLI_FAILED);
	gp_plain_stdout();
	while ((option = getopt_long(argc, argv, "fg:hV", events_options, NULL)) != -1) {
		switch (option) {
		case 'f': events.follow = true; break;
		case OPTION_JSON: events.json = true; break;
		case OPTION_PID: r = gp_target_pid(optarg, &events.pid, &error); break;
		case 'g': r = gp_target_gpu(optarg, &events.gpu_id, &error); break;
		case 'h': fputs(events_help, stdout); return GP_CLI_OK;
		case 'V': printf("gpreempt %s\n", GP_VERSION); return GP_CLI_OK;
		default: fputs("gpreempt events: see gpreempt events --help\n", stderr); return GP_CLI_USAGE;
		}
		if (r) {
			fprintf(stderr, "gpreempt events: %s\n", error.text);
			return GP_CLI_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "gpreempt events: takes no argument '%s'\n", argv[optind]);
		return GP_CLI_USAGE;
	}
	if (events.follow)
		r = events_ping();
	return r ? r : events_go(&events);
}
