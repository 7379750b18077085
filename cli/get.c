/* SPDX-License-Identifier: MIT */
/* `gpreempt get`: what programs have. Owns its options. */
#include <getopt.h>
#include <stdio.h>
#include <inttypes.h>
#include <stdlib.h>
#include "lib/json_writer.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "cli/control.h"
#include "cli/status_show.h"
#include "cli/target_pid.h"

/* clang-format off */
static const char get_help[] =
"Usage: gpreempt get [--json] PID...\n"
"Shows the GPU priority of running programs, their mechanism, queues and gates. 99 = MOST URGENT.\n"
"\n"
"      --json   print JSON, an array of objects: pid, name, managed, priority, ceiling, weight, share_permille, deadline_ns, budget_ns, gang, tag, mechanism\n"
"\n"
"Exit status: 0; 1 the daemon does not know a program; 2 wrong usage; 3 no daemon, or it does not answer.\n";
/* clang-format on */

static const struct option get_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void get_number(struct gp_json_writer *json, const char *key, uint64_t value)
{
	if (value == GP_STATE_UNKNOWN)
		gp_json_writer_null(json, key);
	else
		gp_json_writer_u64(json, key, value);
}

static void get_json(struct gp_json_writer *json, const struct gp_state_client *client)
{
	gp_json_writer_begin(json, NULL, '{');
	get_number(json, "pid", client->pid);
	gp_json_writer_string(json, "name", client->name);
	gp_json_writer_u64(json, "managed", client->managed);
	get_number(json, "priority", client->priority);
	get_number(json, "ceiling", client->ceiling);
	get_number(json, "weight", client->weight);
	get_number(json, "share_permille", client->share_permille);
	get_number(json, "deadline_ns", client->deadline_ns);
	get_number(json, "budget_ns", client->budget_ns);
	gp_json_writer_string(json, "gang", client->gang);
	gp_json_writer_string(json, "tag", client->tag);
	gp_json_writer_string(json, "mechanism", client->mechanism);
	gp_json_writer_u64(json, "queues", client->queue_count);
	gp_json_writer_end(json, '}');
}

static int get_each(const struct gp_state *state, char **pids, bool is_json)
{
	struct gp_json_writer json;
	struct gp_error error;
	int32_t pid;
	int worst = GP_CLI_OK;

	gp_json_writer_init(&json, stdout);
	if (is_json)
		gp_json_writer_begin(&json, NULL, '[');
	for (; *pids; pids++) {
		const struct gp_state_client *client;

		if (gp_target_pid(*pids, &pid, &error)) {
			fprintf(stderr, "gpreempt get: %s\n", error.text);
			worst = GP_CLI_USAGE;
			continue;
		}
		client = gp_target_client(state, pid);
		if (!client) {
			fprintf(stderr, "gpreempt get: pid %d uses no GPU, or is another user's\n", pid);
			worst = worst > GP_CLI_FAILED ? worst : GP_CLI_FAILED;
		} else if (is_json) {
			get_json(&json, client);
		} else {
			gp_status_show_client(stdout, state, client);
		}
	}
	if (is_json) {
		gp_json_writer_end(&json, ']');
		putchar('\n');
	}
	return worst;
}

int main(int argc, char **argv)
{
	bool is_json = false, is_refused = false;
	struct gp_error error;
	struct gp_state state;
	int option, r;

	gp_output_start("gpreempt get", GP_CLI_FAILED);
	gp_plain_stdout();
	while ((option = getopt_long(argc, argv, "hV", get_options, NULL)) != -1) {
		switch (option) {
		case 'j': is_json = true; break;
		case 'h': fputs(get_help, stdout); return GP_CLI_OK;
		case 'V': printf("gpreempt %s\n", GP_VERSION); return GP_CLI_OK;
		default: fputs("gpreempt get: see gpreempt get --help\n", stderr); return GP_CLI_USAGE;
		}
	}
	if (optind == argc) {
		fputs("gpreempt get: which program? give its pid (gpreempt status lists them)\n", stderr);
		return GP_CLI_USAGE;
	}
	if (gp_state_ask(&state, NULL, NULL, &is_refused, &error)) {
		fprintf(stderr, "gpreempt get: %s\n", error.text);
		return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	}
	r = get_each(&state, argv + optind, is_json);
	gp_state_fini(&state);
	return r;
}
