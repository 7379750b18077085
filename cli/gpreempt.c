/* SPDX-License-Identifier: MIT */
/* The program people type. It owns nothing but the search for the program behind a subcommand, which it then becomes
 * (execv): it starts inside every job, so it links libc alone. It never interprets a subcommand's arguments. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/paths.h"

#define COMMAND_NAME_MAX 32

/* Exit codes of env(1) and timeout(1), so that scripts can tell our failure from the program's. */
enum { EXIT_USAGE = 2, EXIT_CANNOT_EXEC = 126 };

struct command {
	const char *name;
	const char *summary;
};

static const struct command commands[] = {
	{ "run", "run a program with a GPU priority: gpreempt run -p high -- ./serve" },
	{ "set", "change the priority (or weight, deadline, gang) of a running program" },
	{ "get", "show the priority, weight, deadline and gang of a running program" },
	{ "grant", "give cgroups and processes a priority before they use a GPU" },
	{ "status", "show GPUs, mechanism and why, programs, queues, gates and costs" },
	{ "top", "show programs, priorities, shares and waiting, live" },
	{ "account", "show what programs got, also after they ended, by job or user" },
	{ "events", "show each decision of the daemon with its reason, in words" },
	{ "record", "write events to a file, for `gpreempt report` and Perfetto" },
	{ "doctor", "find what is wrong on this machine, and say what to do" },
	{ "bench", "measure gate costs on this machine's GPU, for a device description" },
	{ "metrics", "print the daemon's counters for Prometheus" },
	{ "cdi", "give containers the agent and a priority: write a CDI specification" },
	{ "pause", "open every gate of a GPU and stop scheduling it" },
	{ "resume", "schedule a GPU again after `gpreempt pause`" },
	{ "report", "explain a trace: layers, waits, critical path, findings" },
	{ "lab", "try hypotheses about why several processes are slower than one" },
	{ "sim", "simulate processes, scheduler and GPU in virtual time; compare policies" },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* Lower-case words joined by '-': a name can therefore never leave the folder it is looked up in. */
static bool command_name_is_valid(const char *name)
{
	size_t size = strlen(name);

	return size > 0 && size <= COMMAND_NAME_MAX && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz-") == size;
}

/* Whether this user may start it. *ret_error becomes -EACCES where permissions are the reason why not. */
static bool command_can_start(const char *path, int *ret_error)
{
	if (!access(path, X_OK))
		return true;
	if (errno == EACCES)
		*ret_error = -EACCES;
	return false;
}

/* The search order: the user's own folder, the installed one, the build tree this program was built in. -EACCES: it is
 * not found, and in one of these places permissions hide it from this user. */
static int command_find(const char *name, char *ret_path, size_t size)
{
	const char *own = getenv("GPREEMPT_EXEC_PATH");
	char folder[PATH_MAX];
	int error = -ENOENT;

	if (own && *own) {
		if ((size_t)snprintf(ret_path, size, "%s/%s", own, name) < size && command_can_start(ret_path, &error))
			return 0;
	}
	if (gp_paths_self(folder, sizeof(folder)))
		return -ENOENT;
	if ((size_t)snprintf(ret_path, size, "%s/../" GP_LIBEXEC_FROM_BIN "/%s", folder, name) < size &&
	    command_can_start(ret_path, &error))
		return 0;
	if ((size_t)snprintf(ret_path, size, "%s/../%s/gpreempt-%s", folder, name, name) < size &&
	    command_can_start(ret_path, &error))
		return 0;
	if ((size_t)snprintf(ret_path, size, "%s/gpreempt-%s", folder, name) < size &&
	    command_can_start(ret_path, &error))
		return 0;
	return error;
}

static void command_list(FILE *out)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (!command_find(commands[i].name, path, sizeof(path)))
			fprintf(out, "  %-10s  %s\n", commands[i].name, commands[i].summary);
	}
}

static void command_usage(FILE *out)
{
	fprintf(out, "Usage: gpreempt SUBCOMMAND [ARGUMENT...]\n"
		     "       gpreempt help [SUBCOMMAND]\n"
		     "       gpreempt -V, --version\n"
		     "\n"
		     "Preemptive priorities for GPU compute, across processes, on stock drivers.\n"
		     "\n"
		     "Subcommands:\n");
	command_list(out);
	fprintf(out, "\n"
		     "`gpreempt help SUBCOMMAND` explains one of them.\n");
}

/* How many letters must be changed, added, removed or swapped with their neighbour to make b of a. */
static unsigned int command_distance(const char *a, const char *b)
{
	unsigned int rows[COMMAND_NAME_MAX + 2][COMMAND_NAME_MAX + 2] = { { 0 } };
	size_t a_size = strlen(a), b_size = strlen(b);

	for (size_t i = 0; i <= a_size; i++) {
		for (size_t j = 0; j <= b_size; j++) {
			unsigned int best = (unsigned int)(i > j ? i : j);

			if (i && j) {
				best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
				best = rows[i - 1][j] + 1 < best ? rows[i - 1][j] + 1 : best;
				best = rows[i][j - 1] + 1 < best ? rows[i][j - 1] + 1 : best;
				if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				    rows[i - 2][j - 2] + 1 < best)
					best = rows[i - 2][j - 2] + 1;
			}
			rows[i][j] = best;
		}
	}
	return rows[a_size][b_size];
}

/* What somebody meant who typed this; NULL: no guess is near enough. */
static const char *command_nearest(const char *name)
{
	unsigned int best = 3; /* two slips of the finger */
	const char *nearest = NULL;

	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		unsigned int distance = command_distance(name, commands[i].name);

		if (distance < best && distance < strlen(commands[i].name)) {
			best = distance;
			nearest = commands[i].name;
		}
	}
	return nearest;
}

/* error: from command_find(). */
static int command_refuse(const char *name, int error)
{
	bool is_valid = command_name_is_valid(name);
	const char *nearest = is_valid ? command_nearest(name) : NULL;

	if (nearest && !strcmp(nearest, name) && error == -EACCES) {
		fprintf(stderr,
			"gpreempt: '%s' belongs to gpreempt, but this user may not start it or look into its folder.\n"
			"gpreempt: check the permissions of gpreempt's files\n",
			name);
		return EXIT_CANNOT_EXEC;
	}
	if (nearest && !strcmp(nearest, name)) {
		fprintf(stderr,
			"gpreempt: '%s' belongs to gpreempt, but it was not built or not installed here.\n"
			"gpreempt: in the source tree `make all` builds it%s; see also GPREEMPT_EXEC_PATH in gpreempt(1)\n",
			name, strcmp(name, "top") ? "" : " once libncurses-dev is installed");
	} else if (nearest) {
		fprintf(stderr, "gpreempt: unknown subcommand '%s'. Did you mean `gpreempt %s`? (gpreempt help)\n",
			name, nearest);
	} else {
		fprintf(stderr, "gpreempt: unknown subcommand '%s'; these exist:\n", name);
		command_list(stderr);
	}
	return EXIT_USAGE;
}

/* Becomes the subcommand's program; comes back only when that failed. */
static int command_exec(const char *name, char **argv)
{
	char path[PATH_MAX], title[COMMAND_NAME_MAX + 16];
	int r = command_name_is_valid(name) ? command_find(name, path, sizeof(path)) : -ENOENT;

	if (r)
		return command_refuse(name, r);
	/* By this name the program complains. */
	(void)snprintf(title, sizeof(title), "gpreempt %s", name);
	argv[0] = title;
	execv(path, argv);
	fprintf(stderr, "gpreempt: cannot start %s: %s\n", path, strerror(errno));
	return EXIT_CANNOT_EXEC;
}

/* The exit status after something was printed: a full disk is no success. */
static int command_printed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_SUCCESS;
	fprintf(stderr, "gpreempt: cannot write to standard output: %s\n", strerror(errno));
	return EXIT_FAILURE;
}

static int command_help(const char *name)
{
	char option[] = "--help";
	char *argv[3] = { (char *)name, option, NULL };

	if (name)
		return command_exec(name, argv);
	command_usage(stdout);
	return command_printed();
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		command_usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("gpreempt %s\n", GP_VERSION);
		return command_printed();
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		if (argc > 3) {
			fprintf(stderr, "gpreempt: help takes one subcommand\n");
			return EXIT_USAGE;
		}
		return command_help(argc > 2 ? argv[2] : NULL);
	}
	if (argv[1][0] == '-') {
		fprintf(stderr, "gpreempt: unknown option '%s' (see gpreempt --help)\n", argv[1]);
		return EXIT_USAGE;
	}
	return command_exec(argv[1], argv + 1);
}
