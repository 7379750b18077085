/* SPDX-License-Identifier: MIT */
/* `gpreempt status`: asks, and shows the answer. Owns its options. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli/clean.h"
#include "cli/control.h"
#include "cli/status_show.h"
#include "lib/cleanup.h"
#include "lib/output.h"
#include "lib/plain.h"

/* clang-format off */
static const char status_help[] =
"Usage: gpreempt status [--json] [--short] [--hqd[=FILE]]\n"
"Shows what the daemon knows and does: GPUs, the mechanism in use and why, costs, programs, queues, gates.\n"
"\n"
"      --json    print the daemon's answer as JSON (docs/status.md)\n"
"  -s, --short   do not show the queues\n"
"      --hqd     show hardware queue slots in use, by pipe, from debugfs; needs root, but no daemon. --hqd=FILE reads a\n"
"                copy of debugfs' hqds, mqds (queues of each process) or rls (run lists) instead\n"
"\n"
"Priorities are 0 to 99; 99 = MOST URGENT.\n"
"Exit status: 0; 1 refused or not readable; 2 wrong usage; 3 no daemon, or it does not answer.\n";
/* clang-format on */

enum { OPTION_JSON = 256, OPTION_HQD };
static const struct option status_options[] = {
	{ "json", no_argument, NULL, OPTION_JSON },     { "short", no_argument, NULL, 's' },
	{ "hqd", optional_argument, NULL, OPTION_HQD }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },          { NULL, 0, NULL, 0 },
};

static int status_hqd(const char *path, bool json)
{
	struct gp_error error;
	struct gp_hqd hqd;

	if (gp_hqd_load(&hqd, path, &error)) {
		fprintf(stderr, "gpreempt status: %s\n", error.text);
		return GP_CLI_FAILED;
	}
	if (json)
		gp_status_json_hqd(stdout, &hqd);
	else
		gp_status_show_hqd(stdout, &hqd);
	gp_hqd_fini(&hqd);
	return GP_CLI_OK;
}

static int status_daemon(bool json, bool with_queues)
{
	GP_AUTO_FREE char *text = NULL;
	struct gp_error error;
	struct gp_state state;
	bool is_refused = false;
	size_t size = 0;
	int r = gp_state_ask(&state, &text, &size, &is_refused, &error);

	if (r && !(json && text)) {
		fprintf(stderr, "gpreempt status: %s\n", error.text);
		return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	}
	if (json) {
		gp_clean_json(stdout, text, size);
		if (!size || text[size - 1] != '\n')
			putchar('\n');
	} else {
		gp_status_show(stdout, &state, with_queues);
	}
	if (!r)
		gp_state_fini(&state);
	return GP_CLI_OK;
}

int main(int argc, char **argv)
{
	bool json = false, hqd = false, with_queues = true;
	const char *hqd_path = NULL;
	int option;

	gp_output_start("gpreempt status", GP_CLI_FAILED);
	gp_plain_stdout();
	while ((option = getopt_long(argc, argv, "shV", status_options, NULL)) != -1) {
		switch (option) {
		case OPTION_JSON: json = true; break;
		case OPTION_HQD:
			hqd = true;
			hqd_path = optarg;
			break;
		case 's': with_queues = false; break;
		case 'h': fputs(status_help, stdout); return GP_CLI_OK;
		case 'V': printf("gpreempt %s\n", GP_VERSION); return GP_CLI_OK;
		default: fputs("gpreempt status: see gpreempt status --help\n", stderr); return GP_CLI_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "gpreempt status: takes no argument '%s' (gpreempt get PID shows one program)\n",
			argv[optind]);
		return GP_CLI_USAGE;
	}
	return hqd ? status_hqd(hqd_path, json) : status_daemon(json, with_queues);
}
