/* SPDX-License-Identifier: MIT */
/* `gpreempt top`: options, and the plain text that is printed where there is no terminal. */
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/control.h"
#include "cli/top_screen.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/units.h"

#define TOP_INTERVAL_DS 10u /* tenths of a second, as nvtop */

/* clang-format off */
static const char top_help[] =
"Usage: gpreempt top [-d TENTHS] [-s COLUMN] [-C] [-b] [-n N] [--json]\n"
"Shows the programs on the GPU, live: priority, gates, pending packets, share, waiting, preemptions.\n"
"\n"
"  -d, --delay T      time between updates, in tenths of a second; default 10\n"
"  -s, --sort C       sort by pid, priority (default), gpu, wait, pending, preemptions or inversions\n"
"  -q, --queues       also show a line for each queue\n"
"  -C, --no-colour    use no colours; NO_COLOR does the same\n"
"  -b, --batch        print plain text instead of the screen; the default without a terminal (then once)\n"
"  -n, --iterations N exit after N updates\n"
"      --json         print one JSON object for each update; implies --batch\n"
"\n"
"Keys: ? help; F6 sort; + - order; Up Down select; F7 F8 more, less urgent; F9 kill (asks first); Q queues;\n"
"Ctrl-L redraw; q Esc F10 quit.\n"
"GPU%: share of time in which a compute queue of the program had work and an open gate.\n"
"WAIT%: share of time in which the program had work and all its gates were closed.\n"
"99 = MOST URGENT. A dash means \"unknown\".\n"
"Exit status: 0; 1 failed; 2 wrong usage; 3 no daemon (batch only: the screen waits for a daemon).\n";
/* clang-format on */

enum { OPTION_JSON = 256 };
static const struct option top_options[] = {
	{ "delay", required_argument, NULL, 'd' },  { "sort", required_argument, NULL, 's' },
	{ "queues", no_argument, NULL, 'q' },       { "no-colour", no_argument, NULL, 'C' },
	{ "batch", no_argument, NULL, 'b' },        { "iterations", required_argument, NULL, 'n' },
	{ "json", no_argument, NULL, OPTION_JSON }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },      { NULL, 0, NULL, 0 },
};

/* The first look has nothing to compare with: it is taken, and not shown. */
static int top_batch(const struct gp_top_options *options, bool json)
{
	static struct gp_top top;
	uint64_t count = options->iterations;
	int status = GP_CLI_OK;

	gp_top_init(&top);
	top.sort = options->sort;
	top.ascending = options->ascending;
	for (uint64_t i = 0; !status && (!count || i <= count); i++) {
		struct gp_error error;
		struct gp_state state;
		bool is_refused = false;

		if (i)
			(void)poll(NULL, 0, (int)options->interval_ms);
		if (gp_state_ask(&state, NULL, NULL, &is_refused, &error)) {
			fprintf(stderr, "gpreempt top: %s\n", error.text);
			status = is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
		} else if (gp_top_take(&top, &state)) {
			fputs("gpreempt top: out of memory\n", stderr);
			status = GP_CLI_FAILED;
		} else if (i) {
			if (json)
				gp_top_json(&top, stdout);
			else
				gp_top_print(&top, stdout, options->with_queues);
			if (!json && (!count || i < count))
				putchar('\n');
			if (fflush(stdout))
				status = GP_CLI_FAILED;
		}
	}
	gp_top_fini(&top);
	return status;
}

static int top_sort_of(const char *name, enum gp_top_sort *ret_sort, struct gp_error *error)
{
	for (unsigned int i = 0; i < GP_TOP_SORT_COUNT; i++) {
		if (!strcmp(name, gp_top_sort_names[i])) {
			*ret_sort = (enum gp_top_sort)i;
			return 0;
		}
	}
	return gp_error_set(error, -1,
			    "sort: give pid, priority, gpu, wait, pending, preemptions or inversions, not '%.40s'",
			    name);
}

int main(int argc, char **argv)
{
	const char *no_colour = getenv("NO_COLOR");
	struct gp_top_options options = { .sort = GP_TOP_PRIORITY, .colour = !(no_colour && *no_colour) };
	bool batch = false, json = false;
	uint64_t delay = TOP_INTERVAL_DS;
	struct gp_error error;
	int option, r = 0;

	gp_output_start("gpreempt top", GP_CLI_FAILED);
	while ((option = getopt_long(argc, argv, "d:s:qCbn:hV", top_options, NULL)) != -1) {
		switch (option) {
		case 'd':
			r = gp_units_parse_count(optarg, "delay (tenths of a second)", 1, 36000, &delay, &error);
			break;
		case 's': r = top_sort_of(optarg, &options.sort, &error); break;
		case 'q': options.with_queues = true; break;
		case 'C': options.colour = false; break;
		case 'b': batch = true; break;
		case 'n':
			r = gp_units_parse_count(optarg, "iterations", 1, UINT32_MAX, &options.iterations, &error);
			break;
		case OPTION_JSON: json = batch = true; break;
		case 'h': fputs(top_help, stdout); return GP_CLI_OK;
		case 'V': printf("gpreempt %s\n", GP_VERSION); return GP_CLI_OK;
		default: r = gp_error_set(&error, -1, "see gpreempt top --help");
		}
		if (r) {
			fprintf(stderr, "gpreempt top: %s\n", error.text);
			return GP_CLI_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "gpreempt top: takes no argument '%s'\n", argv[optind]);
		return GP_CLI_USAGE;
	}
	options.interval_ms = (uint32_t)delay * 100u;
	if (!batch && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return gp_top_screen(&options);
	if (!batch && !options.iterations)
		options.iterations = 1;
	gp_plain_stdout();
	return top_batch(&options, json);
}
