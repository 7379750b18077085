/* SPDX-License-Identifier: MIT */
/* `gpreempt bench device`: the kit for people who own a card. Owns its options and what has to be in order before. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/bench_measure.h"
#include "cli/control.h"
#include "cli/target_pid.h"
#include "lib/file.h"
#include "lib/output.h"
#include "lib/units.h"

#define BENCH_ROUNDS   20u
#define BENCH_PAUSE_NS 20000000ull /* 50 transactions a second at most: firmware is not to be hurried */
#define BENCH_SECONDS  300u

/* clang-format off */
static const char bench_help[] =
"Usage: gpreempt bench device [-g GPU] [-o FILE] [--base NAME] [--rounds N] [--json]\n"
"Measures on this machine's GPU what closing and opening a gate costs (by mechanism, number of queues and occupancy),\n"
"when the read pointer moves, what a blocked queue does to its neighbours, and from how many queues on the GPU slows down.\n"
"It needs no compiler and no runtime. It stops everything on the GPU for moments: run it on an idle GPU.\n"
"\n"
"  -g, --gpu ID     gpu_id as gpreempt doctor -v shows it; default: the first\n"
"  -o, --output F   write a device description for gpreempt sim --device F\n"
"      --base NAME  the description from which all other values come; default: that of the device\n"
"      --rounds N   repeat each measurement N times; default 20\n"
"      --force      measure even if other processes use the GPU\n"
"      --json       print JSON\n"
"\n"
"It takes a minute or two, at most five. Ctrl-C ends it cleanly. It stops at the first failure.\n"
"Exit status: 0; 1 a measurement failed (the results before it are shown); 2 wrong usage.\n";
/* clang-format on */

enum { OPTION_BASE = 256, OPTION_ROUNDS, OPTION_FORCE, OPTION_JSON };
static const struct option bench_options[] = {
	{ "gpu", required_argument, NULL, 'g' },
	{ "output", required_argument, NULL, 'o' },
	{ "base", required_argument, NULL, OPTION_BASE },
	{ "rounds", required_argument, NULL, OPTION_ROUNDS },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct bench {
	uint32_t gpu_id;
	const char *output, *base;
	uint64_t rounds;
	bool force, json;
};

static volatile int bench_is_stopped;

static void bench_stop(int number)
{
	(void)number;
	bench_is_stopped = 1;
}

/* Somebody else's work would be stopped with ours, and would spoil the numbers. */
static int bench_check_alone(struct gp_error *error)
{
	DIR *folder = opendir("/sys/class/kfd/kfd/proc");
	struct dirent *entry;
	int others = 0;

	if (!folder)
		return 0;
	while ((entry = readdir(folder)))
		others += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && atoi(entry->d_name) != getpid();
	closedir(folder);
	return others ?
		       gp_error_set(
			       error, -EBUSY,
			       "%d other processes use a GPU of this machine: they would be stopped again and again; --force does it all the same",
			       others) :
		       0;
}

static int bench_check_cwsr(struct gp_error *error)
{
	char *text = NULL;
	size_t size = 0;
	bool is_off;

	if (gp_file_read("/sys/module/amdgpu/parameters/cwsr_enable", 64, &text, &size, NULL))
		return 0;
	is_off = text[0] == '0';
	free(text);
	return is_off ?
		       gp_error_set(
			       error, -ENOTSUP,
			       "amdgpu.cwsr_enable=0: running work cannot be saved, stopping it may reset the GPU; not measured") :
		       0;
}

static int bench_write(const struct bench *bench, const struct gp_bench_kfd *kfd, const struct gp_bench_result *result,
		       struct gp_error *error)
{
	const char *base = bench->base ? bench->base : gp_bench_base(kfd);
	struct gp_file_writer writer;
	int r;

	if (!base)
		return gp_error_set(error, -EINVAL,
				    "which description is this device like? give --base (gpreempt sim --list)");
	r = gp_file_open(&writer, bench->output, error);
	if (r)
		return r;
	r = gp_bench_describe(writer.stream, kfd, result, base, error);
	r = r ? r : gp_file_commit(&writer, error);
	gp_file_abandon(&writer);
	return r;
}

static int bench_device(const struct bench *bench)
{
	static struct gp_bench_kfd kfd;
	static struct gp_bench_result result;
	struct gp_bench_limits limits = { .rounds = (uint32_t)bench->rounds,
					  .pause_ns = BENCH_PAUSE_NS,
					  .stop = &bench_is_stopped };
	struct sigaction action = { .sa_handler = bench_stop };
	struct gp_error error;
	int r = bench_check_cwsr(&error), wrote = 0;

	if (!r && !bench->force)
		r = bench_check_alone(&error);
	r = r ? r : gp_bench_kfd_open(&kfd, bench->gpu_id, &error);
	if (r) {
		fprintf(stderr, "gpreempt bench: %s\n", error.text);
		return GP_CLI_FAILED;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	alarm(BENCH_SECONDS);
	r = gp_bench_measure(&kfd, &limits, &result, &error);
	if (r)
		fprintf(stderr, "gpreempt bench: %s\n", error.text);
	if (bench_is_stopped)
		fprintf(stderr, "gpreempt bench: ended early; what is shown was measured until then\n");
	if (bench->json)
		gp_bench_json(stdout, &kfd, &result);
	else
		gp_bench_show(stdout, &kfd, &result);
	if (bench->output)
		wrote = bench_write(bench, &kfd, &result, &error);
	if (wrote)
		fprintf(stderr, "gpreempt bench: %s\n", error.text);
	else if (bench->output && !bench->json)
		printf("\nwritten: %s (gpreempt sim --device %s)\n", bench->output, bench->output);
	gp_bench_kfd_close(&kfd);
	return r || wrote ? GP_CLI_FAILED : GP_CLI_OK;
}

static int bench_option(struct bench *bench, int option, struct gp_error *error)
{
	switch (option) {
	case 'g': return gp_target_gpu(optarg, &bench->gpu_id, error);
	case 'o': bench->output = optarg; return 0;
	case OPTION_BASE: bench->base = optarg; return 0;
	case OPTION_ROUNDS: return gp_units_parse_count(optarg, "rounds", 1, 200, &bench->rounds, error);
	case OPTION_FORCE: bench->force = true; return 0;
	case OPTION_JSON: bench->json = true; return 0;
	default: return gp_error_set(error, -EINVAL, "see gpreempt bench --help");
	}
}

int main(int argc, char **argv)
{
	struct bench bench = { .rounds = BENCH_ROUNDS };
	struct gp_error error;
	int option;

	gp_output_start("gpreempt bench", GP_CLI_FAILED);
	while ((option = getopt_long(argc, argv, "g:o:hV", bench_options, NULL)) != -1) {
		if (option == 'h') {
			fputs(bench_help, stdout);
			return GP_CLI_OK;
		}
		if (option == 'V') {
			printf("gpreempt %s\n", GP_VERSION);
			return GP_CLI_OK;
		}
		if (bench_option(&bench, option, &error)) {
			fprintf(stderr, "gpreempt bench: %s\n", error.text);
			return GP_CLI_USAGE;
		}
	}
	if (optind + 1 != argc || strcmp(argv[optind], "device") != 0) {
		fputs("gpreempt bench: name what to measure: gpreempt bench device (see gpreempt bench --help)\n",
		      stderr);
		return GP_CLI_USAGE;
	}
	return bench_device(&bench);
}
