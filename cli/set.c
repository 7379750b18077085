/* SPDX-License-Identifier: MIT */
/* `gpreempt set`: changes what a running program asked for. Owns its options. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/attr.h"
#include "cli/clean.h"
#include "cli/control.h"
#include "cli/field.h"
#include "cli/status_show.h"
#include "cli/target_pid.h"
#include "lib/cleanup.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/units.h"

/* clang-format off */
static const char set_help[] =
"Usage: gpreempt set -p PRIORITY [options] PID...\n"
"Changes the GPU priority of running programs that were started by gpreempt run. You may change your own, up to\n"
"your ceiling (gpreempt run -m). What root sets survives a restart of the daemon; for a process that uses no GPU\n"
"yet it is a grant (gpreempt grant).\n"
"\n"
"  -p, --priority P     0..99 or a name\n"
"      --share S        a guaranteed part of the GPU while it has work: 30%; 0%: none\n"
"      --weight N       share among equals under policy wfq: 1..10000\n"
"      --deadline T     policy edf: time in which its work must be done; 0: no deadline\n"
"      --budget T       GPU time that each request needs; 0 disables the admission test\n"
"      --protect WORD   NVIDIA: latency, balanced or throughput: whether batch programs wait between its pieces\n"
"      --gang NAME      the daemon opens and closes programs of one gang together; '': leave the gang\n"
"  -g, --gpu ID         with --queue: only that queue on that GPU (gpu_id as in status)\n"
"      --queue N        the queue id of KFD; with --gpu\n"
"      --json           print what the program has now as JSON (docs/status.md)\n"
"  -q, --quiet          print nothing\n"
"\n";
static const char set_help_end[] =
"Exit status: 0; 1 refused; 2 wrong usage; 3 no daemon, or it does not answer.\n";
/* clang-format on */

enum { OPTION_QUEUE = 256, OPTION_JSON };
static const struct option set_options[] = {
	GP_ATTR_OPTIONS,
	{ "gpu", required_argument, NULL, 'g' },
	{ "queue", required_argument, NULL, OPTION_QUEUE },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct set {
	struct gp_control_request request;
	bool json, quiet;
};

static int set_option(struct set *set, int option, const char *value, struct gp_error *error)
{
	uint64_t queue_id = 0;
	int r;

	switch (option) {
	case 'g': return gp_target_gpu(value, &set->request.gpu_id, error);
	case OPTION_QUEUE:
		r = gp_units_parse_count(value, "queue", 0, UINT32_MAX - 1u, &queue_id, error);
		set->request.queue_id = r ? set->request.queue_id : (uint32_t)queue_id;
		return r;
	case OPTION_JSON: set->json = true; return 0;
	case 'q': set->quiet = true; return 0;
	default: return gp_attr_take(&set->request.attr, option, value, error);
	}
}

/* Whether the daemon's sentence names the process by itself. */
static bool set_is_named(const char *sentence, int32_t pid)
{
	char name[32];
	const char *at;

	(void)snprintf(name, sizeof(name), "process %d", pid);
	at = strstr(sentence, name);
	return at && (at[strlen(name)] < '0' || at[strlen(name)] > '9');
}

static int set_one(struct set *set, const char *argument)
{
	GP_AUTO_FREE char *text = NULL;
	struct gp_error error;
	struct gp_state state;
	bool is_refused = false, is_granted = false;
	size_t size = 0;

	if (gp_target_pid(argument, &set->request.pid, &error)) {
		fprintf(stderr, "gpreempt set: %s\n", error.text);
		return GP_CLI_USAGE;
	}
	if (gp_control_once(&set->request, &text, &size, &is_refused, &error) ||
	    (!(gp_field_bool(text, size, "granted", &is_granted) && is_granted) &&
	     gp_state_read_client(&state, text, size, &error))) {
		if (set_is_named(error.text, set->request.pid))
			fprintf(stderr, "gpreempt set: %s\n", error.text);
		else
			fprintf(stderr, "gpreempt set: pid %s: %s\n", argument, error.text);
		return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	}
	if (set->json) {
		gp_clean_json(stdout, text, size);
		putchar('\n');
	} else if (!set->quiet && is_granted) {
		printf("process %s uses no GPU yet; it gets these settings as soon as it does (gpreempt grant list shows them)\n",
		       argument);
	} else if (!set->quiet && state.client_count) {
		gp_status_show_client(stdout, &state, &state.clients[0]);
	}
	if (!is_granted)
		gp_state_fini(&state);
	return GP_CLI_OK;
}

int main(int argc, char **argv)
{
	struct set set = { .request = { .verb = GP_CONTROL_SET, .queue_id = GP_CONTROL_ALL_QUEUES } };
	int option, worst = GP_CLI_OK;
	struct gp_error error;

	gp_output_start("gpreempt set", GP_CLI_FAILED);
	gp_plain_stdout();
	while ((option = getopt_long(argc, argv, "p:g:qhV", set_options, NULL)) != -1) {
		if (option == 'h') {
			printf("%s%s%s", set_help, gp_attr_help, set_help_end);
			return GP_CLI_OK;
		}
		if (option == 'V') {
			printf("gpreempt %s\n", GP_VERSION);
			return GP_CLI_OK;
		}
		if (option == '?' || set_option(&set, option, optarg, &error)) {
			fprintf(stderr, "gpreempt set: %s\n", option == '?' ? "see gpreempt set --help" : error.text);
			return GP_CLI_USAGE;
		}
	}
	if (optind == argc || !set.request.attr.valid ||
	    (set.request.queue_id != GP_CONTROL_ALL_QUEUES) != (set.request.gpu_id != 0)) {
		fprintf(stderr, "gpreempt set: %s\n",
			optind == argc ?
				"which program? give its pid" :
			!set.request.attr.valid ?
				"what is to change? give -p, --share, --weight, --deadline, --budget, --protect or --gang" :
				"a single queue is named by --gpu and --queue together");
		return GP_CLI_USAGE;
	}
	for (int i = optind; i < argc; i++) {
		int status = set_one(&set, argv[i]);

		worst = status > worst ? status : worst;
	}
	return worst;
}
