/* SPDX-License-Identifier: MIT */
/* `gpreempt grant`: what root says of cgroups and processes before they use a GPU. Owns its options and its table. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/attr.h"
#include "cli/cgroup.h"
#include "cli/clean.h"
#include "cli/columns.h"
#include "cli/control.h"
#include "cli/field.h"
#include "cli/target_pid.h"
#include "lib/cleanup.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/units.h"

#define GRANT_FOR_MAX (10ull * 366 * 86400 * 1000000000)

/* clang-format off */
static const char grant_help[] =
"Usage: gpreempt grant add [options] CGROUP|PID...\n"
"       gpreempt grant list [--json]\n"
"       gpreempt grant remove CGROUP|PID...\n"
"Says what programs get before they use a GPU. It needs root. CGROUP is a path as in /proc/PID/cgroup (/slurm/job_42):\n"
"the grant is for its programs and for those of all cgroups below it. PID: the grant is for that process and for what\n"
"it starts from now on; it ends with the process. Grants survive a restart of the daemon, but not of the machine; for\n"
"permanent rules use [cgroup] in gpreempt.conf. A program that asks for a priority itself gets that, up to the ceiling.\n"
"\n"
"  -p, --priority P     0..99 or a name\n"
"      --ceiling P      the ceiling of the programs, instead of their users'; default: at least the priority\n"
"      --tag NAME       a name that gpreempt get and account show\n"
"      --share S        each of its programs is guaranteed this part of the GPU while it has work: 30%\n"
"      --weight N       share among equals under policy wfq: 1..10000\n"
"      --deadline T     policy edf: time in which the work must be done; 0: no deadline\n"
"      --budget T       GPU time that each request needs; 0 disables the admission test\n"
"      --protect WORD   NVIDIA: latency, balanced or throughput: whether batch programs wait between its pieces\n"
"      --gang NAME      the daemon opens and closes programs of one gang together\n"
"      --for T          the grant ends after this time (90s, 3600s)\n"
"      --force          the grant holds even if the program asks for something else; of a PID: for that process alone\n"
"      --json           print JSON; list: an object; add: the grants, one a line\n"
"  -q, --quiet          print nothing\n"
"\n";
static const char grant_help_end[] =
"Exit status: 0; 1 refused; 2 wrong usage; 3 no daemon, or it does not answer.\n";
/* clang-format on */

enum { OPTION_CEILING = 256, OPTION_TAG, OPTION_FOR, OPTION_FORCE, OPTION_JSON };
static const struct option grant_options[] = {
	GP_ATTR_OPTIONS,
	{ "ceiling", required_argument, NULL, OPTION_CEILING },
	{ "tag", required_argument, NULL, OPTION_TAG },
	{ "for", required_argument, NULL, OPTION_FOR },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct grant {
	struct gp_control_grant request;
	bool json, quiet, any; /* any: an option of add was given */
	pid_t daemon;          /* that has answered */
};

static int grant_tag(struct grant *grant, const char *value, struct gp_error *error)
{
	if (!*value || strlen(value) >= sizeof(grant->request.tag))
		return gp_error_set(error, -EINVAL, "tag: a name has 1 to %zu bytes", sizeof(grant->request.tag) - 1);
	memset(grant->request.tag, 0, sizeof(grant->request.tag));
	memcpy(grant->request.tag, value, strlen(value));
	return 0;
}

static int grant_option(struct grant *grant, int option, const char *value, struct gp_error *error)
{
	grant->any |= option != OPTION_JSON && option != 'q';
	switch (option) {
	case OPTION_CEILING: return gp_attr_priority(value, &grant->request.ceiling, error);
	case OPTION_TAG: return grant_tag(grant, value, error);
	case OPTION_FOR: return gp_units_parse_ns(value, "for", 1, GRANT_FOR_MAX, &grant->request.for_ns, error);
	case OPTION_FORCE: grant->request.flags |= GP_GRANT_FORCE; return 0;
	case OPTION_JSON: grant->json = true; return 0;
	case 'q': grant->quiet = true; return 0;
	default: return gp_attr_take(&grant->request.attr, option, value, error);
	}
}

/* Of systemd, whose units with programs have a cgroup each. */
static bool grant_is_unit(const char *text)
{
	const char *end = strrchr(text, '.');

	return end && (!strcmp(end, ".slice") || !strcmp(end, ".service") || !strcmp(end, ".scope"));
}

static int grant_target(struct gp_control_grant *request, const char *text, struct gp_error *error)
{
	int r;

	request->pid = 0;
	memset(request->cgroup, 0, sizeof(request->cgroup));
	if (text[0] != '/') {
		r = gp_target_pid(text, &request->pid, error);
		if (r == -EINVAL)
			gp_error_set(error, r,
				     "'%.40s' is neither a pid nor the path of a cgroup, which begins with /%s", text,
				     grant_is_unit(text) ? " (systemctl show -P ControlGroup NAME tells a unit's)" :
							   "");
		return r;
	}
	if (strlen(text) >= sizeof(request->cgroup))
		return gp_error_set(error, -EINVAL, "a cgroup's path has at most %zu bytes",
				    sizeof(request->cgroup) - 1);
	memcpy(request->cgroup, text, strlen(text));
	return 0;
}

/* Prints why it fails, after the name if there is one. */
static int grant_ask(struct grant *grant, const char *name, char **ret_text, size_t *ret_size)
{
	struct gp_control control;
	struct gp_error error;
	int r = gp_control_open(&control, &error);
	bool is_refused = false;

	if (!r) {
		r = gp_control_grant(&control, &grant->request, ret_text, ret_size, &error);
		is_refused = control.refused;
		grant->daemon = control.daemon;
		gp_control_close(&control);
	}
	if (!r)
		return GP_CLI_OK;
	fprintf(stderr, "gpreempt grant: %s%s%s\n", name, *name ? ": " : "", error.text);
	return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
}

/* The cgroup may come later. But who has misspelt its path shall not find out when the programs run. */
static void grant_warn(const struct grant *grant, const char *path)
{
	if (grant->quiet || !gp_cgroup_is_missing(grant->daemon, path))
		return;
	fprintf(stderr,
		"gpreempt grant: warning: there is no cgroup %s now; the grant is stored for when there is one%s\n",
		path,
		strpbrk(path, "*?[") ? ". A grant's path is no pattern: for patterns see [cgroup] in gpreempt.conf(5)" :
				       "");
}

static int grant_one(struct grant *grant, const char *argument)
{
	GP_AUTO_FREE char *text = NULL;
	struct gp_error error;
	size_t size = 0;
	int status;

	if (grant_target(&grant->request, argument, &error)) {
		fprintf(stderr, "gpreempt grant: %s\n", error.text);
		return GP_CLI_USAGE;
	}
	status = grant_ask(grant, argument, &text, &size);
	if (!status && grant->json) {
		gp_clean_json(stdout, text, size);
		putchar('\n');
	}
	if (!status && grant->request.verb == GP_GRANT_ADD && *argument == '/')
		grant_warn(grant, argument);
	return status;
}

/* One grant of the list; the cells in the order of the heads. */
struct grant_row {
	char target[1100], tag[64], priority[24], ceiling[24], forced[8];
	uint64_t ends_ns, clients;
};

static void grant_take(struct grant_row *row, const char *key, const struct gp_json *json)
{
	bool is_text = json->type == GP_JSON_STRING, is_number = json->type == GP_JSON_NUMBER;

	if ((!strcmp(key, "cgroup") && is_text) || (!strcmp(key, "pid") && is_number))
		gp_clean_copy(row->target, sizeof(row->target), json->string);
	else if (!strcmp(key, "tag") && is_text)
		gp_clean_copy(row->tag, sizeof(row->tag), json->string);
	else if (!strcmp(key, "priority") && is_number && json->is_i64)
		gp_attr_priority_text((int32_t)json->i64, row->priority, sizeof(row->priority));
	else if (!strcmp(key, "ceiling") && is_number && json->is_i64)
		gp_attr_priority_text((int32_t)json->i64, row->ceiling, sizeof(row->ceiling));
	else if (!strcmp(key, "forced") && json->type == GP_JSON_TRUE)
		(void)snprintf(row->forced, sizeof(row->forced), "yes");
	else if (!strcmp(key, "ends_in_real_ns") && is_number && json->is_u64)
		row->ends_ns = json->u64;
	else if (!strcmp(key, "clients") && is_number && json->is_u64)
		row->clients = json->u64;
}

static int grant_object(struct gp_columns *columns, struct gp_json *json, struct gp_error *error)
{
	struct grant_row row = { .ends_ns = UINT64_MAX };
	char key[64], text[GP_UNITS_TEXT_SIZE];
	int r;

	while ((r = gp_field_next(json, key, sizeof(key), error)) > 0)
		grant_take(&row, key, json);
	if (r)
		return r;
	gp_columns_add(columns, row.target);
	gp_columns_add(columns, row.priority[0] ? row.priority : "–");
	gp_columns_add(columns, row.ceiling[0] ? row.ceiling : "–");
	gp_columns_add(columns, row.forced[0] ? row.forced : "no");
	gp_columns_add(columns, row.tag[0] ? row.tag : "–");
	gp_columns_add(columns, row.ends_ns == UINT64_MAX ? "–" : gp_units_format_ns(row.ends_ns, text, sizeof(text)));
	gp_columns_number(columns, row.clients);
	return 0;
}

static int grant_table(const char *text, size_t size, struct gp_error *error)
{
	static const char *const heads[] = { "<CGROUP OR PID", "<PRIORITY", "<CEILING", "<FORCED",
					     "<TAG",           "ENDS IN",   "CLIENTS" };
	struct gp_columns columns;
	struct gp_json json;
	bool inside = false;
	int r;

	gp_columns_init(&columns, heads, 7);
	gp_json_init(&json, text, size, "grants");
	while (!(r = gp_json_next(&json, error)) && json.type != GP_JSON_END) {
		if (json.type == GP_JSON_ARRAY_BEGIN)
			inside = true;
		else if (json.type == GP_JSON_OBJECT_BEGIN && inside)
			r = grant_object(&columns, &json, error);
		if (r)
			break;
	}
	if (!r && columns.row_count)
		gp_columns_print(&columns, stdout, "");
	else if (!r)
		puts("nothing is granted");
	gp_columns_fini(&columns);
	return r;
}

static int grant_list(struct grant *grant)
{
	GP_AUTO_FREE char *text = NULL;
	struct gp_error error;
	size_t size = 0;
	int status = grant_ask(grant, "", &text, &size);

	if (status)
		return status;
	if (grant->json) {
		gp_clean_json(stdout, text, size);
		putchar('\n');
		return GP_CLI_OK;
	}
	if (grant_table(text, size, &error)) {
		fprintf(stderr, "gpreempt grant: %s\n", error.text);
		return GP_CLI_NO_DAEMON;
	}
	return GP_CLI_OK;
}

static int grant_usage(const char *why)
{
	fprintf(stderr, "gpreempt grant: %s\n", why);
	return GP_CLI_USAGE;
}

/* The words behind the options: what to do, and the cgroups and pids. */
static int grant_do(struct grant *grant, char **words, int count)
{
	int worst = GP_CLI_OK;

	if (!count)
		return grant_usage("say what to do: add, list or remove (gpreempt grant --help)");
	if (!strcmp(words[0], "list")) {
		grant->request.verb = GP_GRANT_LIST;
		return count > 1 || grant->any ? grant_usage("list takes nothing but --json") : grant_list(grant);
	}
	if (strcmp(words[0], "add") && strcmp(words[0], "remove"))
		return grant_usage("say what to do: add, list or remove (gpreempt grant --help)");
	grant->request.verb = words[0][0] == 'a' ? GP_GRANT_ADD : GP_GRANT_REMOVE;
	if (count == 1)
		return grant_usage("name the cgroups or pids");
	if (grant->request.verb == GP_GRANT_REMOVE && grant->any)
		return grant_usage("remove takes no attributes");
	if (grant->request.verb == GP_GRANT_ADD && !grant->request.attr.valid && grant->request.ceiling < 0 &&
	    !grant->request.tag[0])
		return grant_usage(
			"nothing to grant: give -p, --ceiling, --tag, --share, --weight, --deadline, --budget, --protect or --gang");
	for (int i = 1; i < count; i++) {
		int status = grant_one(grant, words[i]);

		worst = status > worst ? status : worst;
	}
	return worst;
}

int main(int argc, char **argv)
{
	struct grant grant = { .request = { .ceiling = GP_GRANT_NO_CEILING } };
	struct gp_error error;
	int option;

	gp_output_start("gpreempt grant", GP_CLI_FAILED);
	gp_plain_stdout();
	while ((option = getopt_long(argc, argv, "p:qhV", grant_options, NULL)) != -1) {
		if (option == 'h') {
			printf("%s%s%s", grant_help, gp_attr_help, grant_help_end);
			return GP_CLI_OK;
		}
		if (option == 'V') {
			printf("gpreempt %s\n", GP_VERSION);
			return GP_CLI_OK;
		}
		if (option == '?' || grant_option(&grant, option, optarg, &error))
			return grant_usage(option == '?' ? "see gpreempt grant --help" : error.text);
	}
	return grant_do(&grant, argv + optind, argc - optind);
}
