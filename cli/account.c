/* SPDX-License-Identifier: MIT */
/* `gpreempt account`: what programs got of the GPUs, also after they ended. Owns its options, sums and table. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/clean.h"
#include "cli/columns.h"
#include "cli/control.h"
#include "cli/field.h"
#include "lib/cleanup.h"
#include "lib/json_writer.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/units.h"

#define ACCOUNT_SINCE_MAX (366ull * 86400 * 1000000000)

/* clang-format off */
static const char account_help[] =
"Usage: gpreempt account [options]\n"
"Shows what programs got of the GPUs, those that run and those that have ended: how long they ran and waited (device\n"
"time), how often they were preempted, and how often they waited for less urgent work. Users see their own programs\n"
"(RIGHTS in gpreemptd(8)). The daemon remembers the last 2048 programs since its start, and the sums of 256 tags.\n"
"\n"
"      --by WHAT        print a line for each client (a program; default), job (the same as tag), tag or user\n"
"      --tag NAME       show only programs with this tag (gpreempt grant, [cgroup] in gpreempt.conf)\n"
"      --user NAME      show only the programs of this user\n"
"      --since T        show only programs that run or ended within this time (90s, 2h)\n"
"      --json           print a JSON object: schema, by, rows\n"
"\n"
"Exit status: 0; 1 refused; 2 wrong usage; 3 no daemon, or it does not answer.\n";
/* clang-format on */

enum { OPTION_BY = 256, OPTION_TAG, OPTION_USER, OPTION_SINCE, OPTION_JSON };
static const struct option account_options[] = {
	{ "by", required_argument, NULL, OPTION_BY },
	{ "tag", required_argument, NULL, OPTION_TAG },
	{ "user", required_argument, NULL, OPTION_USER },
	{ "since", required_argument, NULL, OPTION_SINCE },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

enum account_by { BY_CLIENT, BY_TAG, BY_USER };

struct row {
	char name[64], tag[64], user[40];
	uint64_t pid, uid, started_ns, ended_ns; /* ended_ns 0: it runs */
	uint64_t clients, running;
	uint64_t compute_ns, copy_ns, wait_ns, preemptions, inversions;
	bool is_ended_tag; /* the daemon's sum of a tag */
};

struct account {
	enum account_by by;
	const char *tag, *user;
	uint64_t since_ns;
	bool json;
	struct row *rows;
	size_t count, room;
};

static int account_option(struct account *account, int option, const char *value, struct gp_error *error)
{
	switch (option) {
	case OPTION_BY:
		if (strcmp(value, "client") && strcmp(value, "job") && strcmp(value, "tag") && strcmp(value, "user"))
			return gp_error_set(error, -EINVAL, "--by is client, job, tag or user, not '%.40s'", value);
		account->by = !strcmp(value, "client") ? BY_CLIENT : !strcmp(value, "user") ? BY_USER : BY_TAG;
		return 0;
	case OPTION_TAG: account->tag = value; return 0;
	case OPTION_USER: account->user = value; return 0;
	case OPTION_SINCE: return gp_units_parse_ns(value, "since", 1, ACCOUNT_SINCE_MAX, &account->since_ns, error);
	default: account->json = true; return 0;
	}
}

static void row_take(struct row *row, const char *key, const struct gp_json *json)
{
	static const struct {
		const char *key;
		size_t at;
	} numbers[] = { { "pid", offsetof(struct row, pid) },
			{ "uid", offsetof(struct row, uid) },
			{ "started_unix_ns", offsetof(struct row, started_ns) },
			{ "ended_unix_ns", offsetof(struct row, ended_ns) },
			{ "ended_clients", offsetof(struct row, clients) },
			{ "compute_ns", offsetof(struct row, compute_ns) },
			{ "copy_ns", offsetof(struct row, copy_ns) },
			{ "wait_ns", offsetof(struct row, wait_ns) },
			{ "preemptions", offsetof(struct row, preemptions) },
			{ "inversions", offsetof(struct row, inversions) } };

	if (json->type == GP_JSON_STRING && !strcmp(key, "name"))
		gp_clean_copy(row->name, sizeof(row->name), json->string);
	else if (json->type == GP_JSON_STRING && !strcmp(key, "tag"))
		gp_clean_copy(row->tag, sizeof(row->tag), json->string);
	else if (json->type == GP_JSON_STRING && !strcmp(key, "user"))
		gp_clean_copy(row->user, sizeof(row->user), json->string);
	for (size_t i = 0; json->type == GP_JSON_NUMBER && json->is_u64 && i < sizeof(numbers) / sizeof(numbers[0]);
	     i++)
		if (!strcmp(key, numbers[i].key))
			*(uint64_t *)((char *)row + numbers[i].at) = json->u64;
}

static int account_add(struct account *account, const struct row *row)
{
	struct row *rows = account->rows;

	if (account->count == account->room) {
		account->room = account->room ? account->room * 2 : 256;
		rows = realloc(rows, account->room * sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		account->rows = rows;
	}
	rows[account->count++] = *row;
	return 0;
}

static int account_object(struct account *account, struct gp_json *json, bool is_tag, struct gp_error *error)
{
	struct row row = { .is_ended_tag = is_tag };
	char key[64];
	int r;

	while ((r = gp_field_next(json, key, sizeof(key), error)) > 0)
		row_take(&row, key, json);
	if (r)
		return r;
	row.clients = is_tag ? row.clients : 1;
	row.running = !is_tag && !row.ended_ns;
	return account_add(account, &row) ? gp_error_set(error, -ENOMEM, "out of memory") : 0;
}

static int account_read(struct account *account, const char *text, size_t size, struct gp_error *error)
{
	struct gp_json json;
	bool is_tag = false;
	int r;

	gp_json_init(&json, text, size, "accounts");
	while (!(r = gp_json_next(&json, error)) && json.type != GP_JSON_END) {
		if (json.type == GP_JSON_KEY)
			is_tag = !strcmp(json.string, "tags");
		else if (json.type == GP_JSON_OBJECT_BEGIN && json.depth > 1)
			r = account_object(account, &json, is_tag, error);
		if (r)
			return r;
	}
	return r;
}

/* The daemon's sums of tags reach further back than its clients do: they count where nothing else is asked for. */
static bool account_wants(const struct account *account, const struct row *row, uint64_t now_ns)
{
	bool is_whole = account->by == BY_TAG && !account->user && !account->since_ns;
	char uid[24];

	(void)snprintf(uid, sizeof(uid), "%" PRIu64, row->uid);
	if (account->tag && strcmp(account->tag, row->tag))
		return false;
	if (row->is_ended_tag)
		return is_whole;
	if (is_whole && row->tag[0] && !row->running)
		return false; /* it is in its tag's sum */
	if (account->user && strcmp(account->user, row->user) && strcmp(account->user, uid))
		return false;
	return !account->since_ns || row->running || row->ended_ns + account->since_ns >= now_ns;
}

static bool row_is_same(const struct account *account, const struct row *a, const struct row *b)
{
	return account->by == BY_TAG  ? !strcmp(a->tag, b->tag) :
	       account->by == BY_USER ? a->uid == b->uid && !strcmp(a->user, b->user) :
					false;
}

static void row_sum(struct row *sum, const struct row *row)
{
	sum->clients += row->clients;
	sum->running += row->running;
	sum->compute_ns += row->compute_ns;
	sum->copy_ns += row->copy_ns;
	sum->wait_ns += row->wait_ns;
	sum->preemptions += row->preemptions;
	sum->inversions += row->inversions;
}

/* In place: what is not wanted goes, and what belongs together is summed. */
static void account_sum(struct account *account)
{
	struct timespec now;
	uint64_t now_ns;
	size_t kept = 0, k;

	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	for (size_t i = 0; i < account->count; i++) {
		const struct row row = account->rows[i];

		if (!account_wants(account, &row, now_ns))
			continue;
		for (k = 0; k < kept && !row_is_same(account, &account->rows[k], &row); k++) {}
		if (k < kept)
			row_sum(&account->rows[k], &row);
		else
			account->rows[kept++] = row;
	}
	account->count = kept;
}

static void account_table(const struct account *account)
{
	static const char *const heads[] = { "<WHO",   "<USER",  "<TAG",      "PID",        "CLIENTS", "RAN",
					     "COPIED", "WAITED", "PREEMPTED", "INVERSIONS", "<STATE" };
	struct gp_columns columns;

	gp_columns_init(&columns, heads, sizeof(heads) / sizeof(heads[0]));
	for (size_t i = 0; i < account->count; i++) {
		const struct row *row = &account->rows[i];
		bool is_client = account->by == BY_CLIENT;
		char pid[24];

		gp_columns_add(&columns, is_client             ? row->name :
					 account->by == BY_TAG ? (row->tag[0] ? row->tag : "without a tag") :
								 row->user);
		gp_columns_add(&columns, account->by == BY_TAG ? "–" : row->user);
		gp_columns_add(&columns, account->by != BY_USER && row->tag[0] ? row->tag : "–");
		(void)snprintf(pid, sizeof(pid), "%" PRIu64, row->pid);
		gp_columns_add(&columns, is_client ? pid : "–");
		gp_columns_number(&columns, row->clients);
		gp_columns_ns(&columns, row->compute_ns);
		gp_columns_ns(&columns, row->copy_ns);
		gp_columns_ns(&columns, row->wait_ns);
		gp_columns_number(&columns, row->preemptions);
		gp_columns_number(&columns, row->inversions);
		gp_columns_add(&columns, row->running ? "runs" : "ended");
	}
	if (account->count)
		gp_columns_print(&columns, stdout, "");
	else
		puts("no program to show: none has used a GPU, or none that you may see matches");
	gp_columns_fini(&columns);
}

static void account_json(const struct account *account)
{
	static const char *const names[] = { "client", "tag", "user" };
	struct gp_json_writer json;

	gp_json_writer_init(&json, stdout);
	gp_json_writer_begin(&json, NULL, '{');
	gp_json_writer_u64(&json, "schema", 1);
	gp_json_writer_string(&json, "by", names[account->by]);
	gp_json_writer_begin(&json, "rows", '[');
	for (size_t i = 0; i < account->count; i++) {
		const struct row *row = &account->rows[i];

		gp_json_writer_begin(&json, NULL, '{');
		if (account->by == BY_CLIENT) {
			gp_json_writer_u64(&json, "pid", row->pid);
			gp_json_writer_string(&json, "name", row->name);
			gp_json_writer_u64(&json, "started_unix_ns", row->started_ns);
			if (row->ended_ns)
				gp_json_writer_u64(&json, "ended_unix_ns", row->ended_ns);
			else
				gp_json_writer_null(&json, "ended_unix_ns");
		}
		if (account->by != BY_TAG) {
			gp_json_writer_u64(&json, "uid", row->uid);
			gp_json_writer_string(&json, "user", row->user);
		}
		if (account->by != BY_USER)
			gp_json_writer_string(&json, "tag", row->tag);
		gp_json_writer_u64(&json, "clients", row->clients);
		gp_json_writer_u64(&json, "running", row->running);
		gp_json_writer_u64(&json, "compute_ns", row->compute_ns);
		gp_json_writer_u64(&json, "copy_ns", row->copy_ns);
		gp_json_writer_u64(&json, "wait_ns", row->wait_ns);
		gp_json_writer_u64(&json, "preemptions", row->preemptions);
		gp_json_writer_u64(&json, "inversions", row->inversions);
		gp_json_writer_end(&json, '}');
	}
	gp_json_writer_end(&json, ']');
	gp_json_writer_end(&json, '}');
	putchar('\n');
}

/* Numbers always count. So do names in the daemon's answer: the daemon may know users that this container lacks. */
static bool account_has_user(const struct account *account)
{
	const char *user = account->user;

	if (!user || (*user && !user[strspn(user, "0123456789")]))
		return true;
	for (size_t i = 0; i < account->count; i++)
		if (!strcmp(user, account->rows[i].user))
			return true;
	errno = 0;
	/* An error of the directory of users is no proof that the user is not there. */
	return getpwnam(user) || (errno && errno != ENOENT && errno != ESRCH && errno != EBADF && errno != EPERM);
}

static int account_show(struct account *account)
{
	struct gp_control_request request = { .verb = GP_CONTROL_ACCOUNT };
	GP_AUTO_FREE char *text = NULL;
	bool is_refused = false;
	struct gp_error error;
	size_t size = 0;

	if (gp_control_once(&request, &text, &size, &is_refused, &error) || account_read(account, text, size, &error)) {
		fprintf(stderr, "gpreempt account: %s\n", error.text);
		return is_refused ? GP_CLI_FAILED : GP_CLI_NO_DAEMON;
	}
	if (!account_has_user(account)) {
		fprintf(stderr, "gpreempt account: there is no user '%.40s'\n", account->user);
		return GP_CLI_USAGE;
	}
	account_sum(account);
	if (account->json)
		account_json(account);
	else
		account_table(account);
	return GP_CLI_OK;
}

int main(int argc, char **argv)
{
	struct account account = { 0 };
	struct gp_error error;
	int option, r;

	gp_output_start("gpreempt account", GP_CLI_FAILED);
	gp_plain_stdout();
	while ((option = getopt_long(argc, argv, "hV", account_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(account_help, stdout);
			return GP_CLI_OK;
		}
		if (option == 'V') {
			printf("gpreempt %s\n", GP_VERSION);
			return GP_CLI_OK;
		}
		if (option == '?' || account_option(&account, option, optarg, &error)) {
			fprintf(stderr, "gpreempt account: %s\n",
				option == '?' ? "see gpreempt account --help" : error.text);
			return GP_CLI_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "gpreempt account: takes no argument '%s'\n", argv[optind]);
		return GP_CLI_USAGE;
	}
	r = account_show(&account);
	free(account.rows);
	return r;
}
