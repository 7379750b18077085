/* SPDX-License-Identifier: MIT */
/* `gpreempt metrics`: the daemon's Prometheus text, for a scrape by exec or for looking. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli/clean.h"
#include "cli/control.h"
#include "lib/json_writer.h"
#include "lib/output.h"

/* clang-format off */
static const char metrics_help[] =
"Usage: gpreempt metrics [--json]\n"
"Prints the daemon's counters in the format of Prometheus (docs/metrics.md).\n"
"\n"
"      --json   print a JSON object with the text as one string\n"
"\n"
"Exit status: 0; 1 refused; 2 wrong usage; 3 no daemon, or it does not answer.\n";
/* clang-format on */

static const struct option metrics_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void metrics_json(const char *text)
{
	struct gp_json_writer writer;

	gp_json_writer_init_line(&writer, stdout);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_u64(&writer, "schema", 1);
	gp_json_writer_string(&writer, "text", text);
	gp_json_writer_end(&writer, '}');
}

int main(int argc, char **argv)
{
	struct gp_control_request request = { .verb = GP_CONTROL_METRICS };
	bool is_refused = false, is_json = false;
	struct gp_error error;
	char *text = NULL;
	size_t size = 0;
	int option;

	gp_output_start("gpreempt metrics", GP_CLI_FAILED);
	while ((option = getopt_long(argc, argv, "hV", metrics_options, NULL)) != -1) {
		switch (option) {
		case 'j': is_json = true; break;
		case 'h': fputs(metrics_help, stdout); return GP_CLI_OK;
		case 'V': printf("gpreempt %s\n", GP_VERSION); return GP_CLI_OK;
		default: fputs("gpreempt metrics: see gpreempt metrics --help\n", stderr); return GP_CLI_USAGE;
		}
	}
	if (optind < argc) {
		fputs("gpreempt metrics: takes no argument\n", stderr);
		return GP_CLI_USAGE;
	}
	if (gp_control_once(&request, &text, &size, &is_refused, &error)) {
		fprintf(stderr, "gpreempt metrics: %s\n", error.text);
		return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	}
	gp_clean_lines(text);
	if (is_json)
		metrics_json(text);
	else
		fputs(text, stdout);
	free(text);
	return GP_CLI_OK;
}
