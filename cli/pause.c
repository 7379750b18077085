/* SPDX-License-Identifier: MIT */
/* `gpreempt pause` and `gpreempt resume`: one program under two names (PAUSE_NAME, PAUSE_FLAGS from the build). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/control.h"
#include "cli/target_pid.h"
#include "lib/json_writer.h"
#include "lib/output.h"

/* clang-format off */
static const char pause_help[] =
"Usage: gpreempt pause GPU|all     the daemon opens every gate of the GPU and stops scheduling it\n"
"       gpreempt resume GPU|all    the daemon schedules the GPU again\n"
"A pause lasts until gpreempt resume, also over a restart of the daemon.\n"
"Both need root. GPU is the gpu_id that gpreempt status shows.\n"
"\n"
"      --json   print the outcome as a JSON object\n"
"\n"
"Exit status: 0; 1 refused; 2 wrong usage; 3 no daemon, or it does not answer.\n";
/* clang-format on */

static const struct option pause_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void pause_json(uint32_t gpu_id)
{
	struct gp_json_writer writer;

	gp_json_writer_init_line(&writer, stdout);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_u64(&writer, "schema", 1);
	gp_json_writer_u64(&writer, "gpu_id", gpu_id);
	gp_json_writer_string(&writer, "done", PAUSE_NAME);
	gp_json_writer_end(&writer, '}');
}

static void pause_show(const struct gp_control_request *request, const char *gpu)
{
	if (strcmp(gpu, "all"))
		printf("GPU %u: ", request->gpu_id);
	else
		fputs("every GPU: ", stdout);
	if (request->flags & GP_CONTROL_PAUSE_END)
		puts("the daemon schedules it");
	else
		printf("gates are open and stay open; programs run as without gpreempt (undo: gpreempt resume %s)\n",
		       gpu);
}

int main(int argc, char **argv)
{
	struct gp_control_request request = { .verb = GP_CONTROL_PAUSE, .flags = PAUSE_FLAGS };
	bool is_refused = false, is_json = false;
	struct gp_error error;
	char *text = NULL;
	size_t size = 0;
	int option;

	gp_output_start("gpreempt " PAUSE_NAME, GP_CLI_FAILED);
	while ((option = getopt_long(argc, argv, "hV", pause_options, NULL)) != -1) {
		switch (option) {
		case 'j': is_json = true; break;
		case 'h': fputs(pause_help, stdout); return GP_CLI_OK;
		case 'V': printf("gpreempt %s\n", GP_VERSION); return GP_CLI_OK;
		default:
			fputs("gpreempt " PAUSE_NAME ": see gpreempt " PAUSE_NAME " --help\n", stderr);
			return GP_CLI_USAGE;
		}
	}
	if (optind + 1 != argc || gp_target_gpu(argv[optind], &request.gpu_id, &error)) {
		fprintf(stderr, "gpreempt " PAUSE_NAME ": %s\n",
			optind + 1 != argc ? "give one gpu_id (gpreempt status shows them), or all" : error.text);
		return GP_CLI_USAGE;
	}
	if (gp_control_once(&request, &text, &size, &is_refused, &error)) {
		fprintf(stderr, "gpreempt " PAUSE_NAME ": %s\n", error.text);
		return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	}
	free(text);
	if (is_json)
		pause_json(request.gpu_id);
	else
		pause_show(&request, argv[optind]);
	return GP_CLI_OK;
}
