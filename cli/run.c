/* SPDX-License-Identifier: MIT */
/* `gpreempt run`: prepares the environment and becomes the program. Owns its options and what is said before. Whatever
 * of ours fails, the program still runs, unless --require was given. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/attr.h"
#include "cli/control.h"
#include "cli/field.h"
#include "cli/run_env.h"
#include "cli/run_target.h"
#include "cli/run_watch.h"
#include "lib/json_writer.h"
#include "lib/output.h"
#include "lib/stream_map.h"
#include "lib/units.h"

/* As env(1), timeout(1): ours, not executable, not found. */
enum { RUN_FAILED = 125, RUN_CANNOT_EXEC = 126, RUN_NOT_FOUND = 127 };

#define RUN_HW_QUEUES_MAX 128u
#define RUN_CHECK_MS      2000u

/* clang-format off */
static const char run_help[] =
"Usage: gpreempt run [-p PRIORITY] [options] -- COMMAND [ARGUMENT...]\n"
"Runs a program, unchanged, with a GPU priority. The exit status is the program's own.\n"
"\n"
"  -p, --priority P     0..99 or a name: how urgent its GPU work is; default: the daemon's (normal)\n"
"      --share S        a guaranteed part of the GPU while it has work, whatever others' priorities: 30%\n"
"      --weight N       its share among programs of its priority (policy wfq): 1..10000\n"
"      --deadline T     time in which its work must be done (policy edf): 5ms\n"
"      --budget T       GPU time that each request needs (admission test): 2ms\n"
"      --protect WORD   NVIDIA: latency, balanced or throughput: whether batch programs wait between its pieces\n"
"      --gang NAME      the daemon opens and closes your programs of one gang together\n"
"      --hw-queues N    number of hardware queues that HIP may use per priority (GPU_MAX_HW_QUEUES)\n"
"      --stream-map M   what HIP stream priorities add: low=-10,normal=+0,high=+10\n"
"      --require        do not run the program if its priority would have no effect\n"
"      --check T        time after which run checks that the agent connected; default 2s, 0: never\n"
"  -q, --quiet          no warnings\n"
"  -m, --max            print the range of priorities, your ceiling, and what decides it\n"
"      --json           with -m: print JSON\n"
"\n";

static const char run_help_end[] =
"\n"
"Examples\n"
"  gpreempt run -p high -- ./serve --port 8000\n"
"  gpreempt run -p low --hw-queues 2 -- python3 train.py\n"
"\n"
"Exit status: the program's; 125 gpreempt itself failed, 126 the program cannot be executed, 127 there is no such program.\n";
/* clang-format on */

enum { OPTION_HW_QUEUES = 256, OPTION_STREAM_MAP, OPTION_REQUIRE, OPTION_CHECK, OPTION_JSON };

static const struct option run_options[] = {
	GP_ATTR_OPTIONS,
	{ "hw-queues", required_argument, NULL, OPTION_HW_QUEUES },
	{ "stream-map", required_argument, NULL, OPTION_STREAM_MAP },
	{ "require", no_argument, NULL, OPTION_REQUIRE },
	{ "check", required_argument, NULL, OPTION_CHECK },
	{ "quiet", no_argument, NULL, 'q' },
	{ "max", no_argument, NULL, 'm' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct run {
	struct gp_wire_attr attr;
	const char *stream_map;
	uint64_t hw_queues, check_ns;
	bool require, quiet, max, json;
	char **command;
};

static void run_warn(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void run_warn(const struct run *run, const char *format, ...)
{
	va_list arguments;

	if (run->quiet)
		return;
	fputs("gpreempt: warning: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static int run_option(struct run *run, int option, const char *value, struct gp_error *error)
{
	switch (option) {
	case OPTION_HW_QUEUES:
		return gp_units_parse_count(value, "hw-queues", 1, RUN_HW_QUEUES_MAX, &run->hw_queues, error);
	case OPTION_STREAM_MAP: run->stream_map = value; return gp_stream_map_check(value, error);
	case OPTION_REQUIRE: run->require = true; return 0;
	case OPTION_CHECK: return gp_units_parse_ns(value, "check", 0, 600000000000ull, &run->check_ns, error);
	case OPTION_JSON: run->json = true; return 0;
	case 'q': run->quiet = true; return 0;
	case 'm': run->max = true; return 0;
	default: return gp_attr_take(&run->attr, option, value, error);
	}
}

/* 0: go on; 1: done; or -EINVAL, said. */
static int run_parse(struct run *run, int argc, char **argv)
{
	struct gp_error error;
	int option;

	/* '+': the command's own options are not ours. */
	while ((option = getopt_long(argc, argv, "+p:qmhV", run_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(run_help, stdout);
			fputs(gp_attr_help, stdout);
			fputs(run_help_end, stdout);
			return 1;
		}
		if (option == 'V') {
			printf("gpreempt %s\n", GP_VERSION);
			return 1;
		}
		if (option == '?') {
			fputs("gpreempt run: see gpreempt run --help\n", stderr);
			return -EINVAL;
		}
		if (run_option(run, option, optarg, &error)) {
			fprintf(stderr, "gpreempt run: %s\n", error.text);
			return -EINVAL;
		}
	}
	run->command = argv + optind;
	if (!run->max && !run->command[0]) {
		fputs("gpreempt run: no command: gpreempt run -p high -- COMMAND (see gpreempt run --help)\n", stderr);
		return -EINVAL;
	}
	return 0;
}

/* How high this user may go, and why. Empty texts: the daemon is older and does not say. */
struct run_ceiling {
	bool is_known;
	uint64_t priority;
	char name[64], groups[256], config[256];
};

/* Whether a daemon answers, and the ceiling that it gives this user. */
static int run_ping(struct run_ceiling *ret_ceiling, struct gp_error *error)
{
	struct gp_control_request request = { .verb = GP_CONTROL_PING };
	bool is_refused;
	char *text = NULL;
	size_t size = 0;
	int r = gp_control_once(&request, &text, &size, &is_refused, error);

	if (r)
		return r;
	*ret_ceiling = (struct run_ceiling){ .is_known = false };
	ret_ceiling->is_known = gp_field_u64(text, size, "ceiling", &ret_ceiling->priority) &&
				ret_ceiling->priority <= GP_ATTR_PRIORITY_MAX;
	(void)gp_field_string(text, size, "ceiling_name", ret_ceiling->name, sizeof(ret_ceiling->name));
	(void)gp_field_string(text, size, "ceiling_groups", ret_ceiling->groups, sizeof(ret_ceiling->groups));
	(void)gp_field_string(text, size, "config", ret_ceiling->config, sizeof(ret_ceiling->config));
	free(text);
	return 0;
}

/* Which line of which section of which file decides, and which group has more: what to ask the administrator for. */
static const char *run_ceiling_advice(const struct run_ceiling *ceiling, char *ret_text, size_t size)
{
	if (!ceiling->name[0] || !ceiling->config[0])
		(void)snprintf(ret_text, size,
			       "The administrator raises it in gpreempt.conf, section [ceiling], for your user or a "
			       "group of yours");
	else if (ceiling->groups[0])
		(void)snprintf(ret_text, size,
			       "'%s' in section [ceiling] of %s decides; members of a group get more there: %s",
			       ceiling->name, ceiling->config, ceiling->groups);
	else
		(void)snprintf(ret_text, size,
			       "'%s' in section [ceiling] of %s decides; the administrator raises it there: user.NAME "
			       "or group.NAME = PRIORITY",
			       ceiling->name, ceiling->config);
	return ret_text;
}

static void run_max_json(bool is_known, uint64_t ceiling)
{
	struct gp_json_writer writer;
	const char *name;
	int32_t priority;

	gp_json_writer_init_line(&writer, stdout);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_u64(&writer, "schema", 1);
	gp_json_writer_u64(&writer, "priority_min", 0);
	gp_json_writer_u64(&writer, "priority_max", GP_ATTR_PRIORITY_MAX);
	gp_json_writer_begin(&writer, "names", '{');
	for (unsigned int i = 0; (name = gp_attr_priority_name(i, &priority)); i++)
		gp_json_writer_i64(&writer, name, priority);
	gp_json_writer_end(&writer, '}');
	gp_json_writer_known(&writer, "ceiling", is_known, ceiling);
	gp_json_writer_end(&writer, '}');
}

static int run_show_max(const struct run *run)
{
	struct run_ceiling ceiling = { .is_known = false };
	struct gp_error error;
	int r = run_ping(&ceiling, &error);
	char advice[700];

	if (run->json) {
		run_max_json(!r && ceiling.is_known, ceiling.priority);
		return 0;
	}
	fputs(gp_attr_help, stdout);
	if (!r && ceiling.is_known && ceiling.priority == GP_ATTR_PRIORITY_MAX)
		printf("Your ceiling: %" PRIu64 "; you may ask for any priority.\n", ceiling.priority);
	else if (!r && ceiling.is_known)
		printf("Your ceiling: %" PRIu64 ". If you ask for more, the daemon gives you %" PRIu64 ".\n%s.\n",
		       ceiling.priority, ceiling.priority, run_ceiling_advice(&ceiling, advice, sizeof(advice)));
	else
		printf("Your ceiling is unknown: %s.\n", r ? error.text : "the daemon does not say");
	return 0;
}

/* Whether ROCr is asked to do without KFD. */
static bool run_uses_drm(void)
{
	const char *value = getenv("HSA_ENABLE_DRM_DEBUG");

	return value && !strcmp(value, "1");
}

/* Everything that decides whether the priority will have an effect. 0, or an error that has been said. */
static int run_prepare(const struct run *run, char *agent, size_t agent_size, bool *ret_has_agent, bool *ret_has_daemon)
{
	char path[PATH_MAX], wanted[24], advice[700];
	struct run_ceiling ceiling = { .is_known = false };
	struct gp_error error;
	int r = gp_run_env_agent(agent, agent_size, &error);
	bool is_program = !gp_run_target_find(run->command[0], path, sizeof(path));

	*ret_has_agent = !r;
	if (!r && is_program)
		r = gp_run_target_check(path, &error);
	if (!r) {
		r = run_ping(&ceiling, &error);
		*ret_has_daemon = !r;
	}
	if (r && run->require) {
		fprintf(stderr, "gpreempt run: '%s' was not started (--require): %s\n", run->command[0], error.text);
		return r;
	}
	if (r && is_program) /* otherwise it does not run, and exec says why */
		run_warn(run, "'%s' runs without a GPU priority: %s", run->command[0], error.text);
	if (!r && run_uses_drm())
		run_warn(
			run,
			"HSA_ENABLE_DRM_DEBUG is set: '%s' makes its queues through DRM, and the driver has no call that "
			"stops those. The agent holds back what the program submits, but cannot stop what runs. Unset "
			"HSA_ENABLE_DRM_DEBUG to let gpreempt preempt it",
			run->command[0]);
	if (!r && ceiling.is_known && run->attr.valid & GP_ATTR_PRIORITY &&
	    (uint64_t)run->attr.priority > ceiling.priority)
		run_warn(run, "priority %s is above your ceiling: the program gets %" PRIu64 ". %s (gpreempt run -m)",
			 gp_attr_priority_text(run->attr.priority, wanted, sizeof(wanted)), ceiling.priority,
			 run_ceiling_advice(&ceiling, advice, sizeof(advice)));
	return 0;
}

int main(int argc, char **argv)
{
	struct run run = { .check_ns = RUN_CHECK_MS * 1000000ull };
	bool has_agent = false, has_daemon = false;
	struct gp_run_env env = { .attr = &run.attr };
	struct gp_error error;
	char agent[PATH_MAX];
	int r = run_parse(&run, argc, argv);

	gp_output_start("gpreempt run", RUN_FAILED);
	if (r)
		return r > 0 ? EXIT_SUCCESS : RUN_FAILED;
	if (run.max)
		return run_show_max(&run);
	if (run_prepare(&run, agent, sizeof(agent), &has_agent, &has_daemon))
		return RUN_FAILED;
	env.agent_path = has_agent ? agent : NULL;
	env.stream_map = run.stream_map;
	env.hw_queues = run.hw_queues;
	if (gp_run_env_apply(&env, &error)) {
		fprintf(stderr, "gpreempt run: %s\n", error.text);
		return RUN_FAILED;
	}
	if (has_daemon && has_agent && run.check_ns && !run.quiet)
		gp_run_watch_start(run.command[0], run.check_ns < 1000000u ? 1u : (uint32_t)(run.check_ns / 1000000u));
	execvp(run.command[0], run.command);
	r = errno;
	fprintf(stderr, "gpreempt run: %s: %s\n", run.command[0], strerror(r));
	return r == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_EXEC;
}
