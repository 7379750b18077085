/* SPDX-License-Identifier: MIT */
/*
 * swarm: random worlds and faults against the checkers.
 *
 * Says which seeds it runs before it runs them; a failing one is printed with what to type to see it again. The same
 * seed gives the same run on every machine.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/sim/swarm.h"

#define SWARM_SEED_MAX 100000000u
#define SWARM_LIST_MAX 4096u

struct swarm_options {
	uint64_t first;
	uint32_t count, process_count, list_count;
	uint64_t *list; /* seeds to replay, instead of first and count */
	const struct plant *plant;
	bool all_plants, verbose, log;
	enum swarm_kind kind;
};

static const char swarm_help[] =
	"usage: swarm [--seeds N] [--first S] [--seed S] [--replay FILE] [--hostile|--self|--floors|--ranks|--alone] [--plant NAME] [--jobs N] [--verbose]\n"
	"  --seeds N       how many worlds (100)\n"
	"  --first S       the first seed (1)\n"
	"  --seed S        only this one, and say what its world is\n"
	"  --replay FILE   the seeds in FILE: one a line, # begins a comment; may be given several times\n"
	"  --hostile       the same worlds with users, and with clients that claim work and complete nothing\n"
	"  --self          the same worlds on devices that switch by themselves\n"
	"  --floors        the same worlds with guaranteed shares\n"
	"  --ranks         the same worlds on several devices, with ranks of jobs that wait for each other\n"
	"  --alone         as --ranks, and stuck queues of half of the clients do not keep their gangs open\n"
	"  --plant NAME    with a bug planted: succeeds when the checker that should see it does, within --seeds; `all`: each in turn\n"
	"  --jobs N        processes at once (one per core)\n"
	"  --verbose       a line for each seed\n"
	"  --log           everything that crosses the seams (long)\n"
	"  --list-plants, --list-checkers\n";

static uint64_t swarm_seed(const struct swarm_options *options, uint32_t item)
{
	return options->list_count ? options->list[item] : options->first + item;
}

static int swarm_one(void *context, uint32_t item)
{
	const struct swarm_options *options = context;
	uint64_t seed = swarm_seed(options, item);
	static struct swarm_world world;
	static struct swarm_outcome outcome;
	struct gp_error error;
	uint32_t i;

	if (swarm_world_init(&world, seed, options->kind, &error)) {
		printf("seed %llu: cannot draw its world: %s\n", (unsigned long long)seed, error.text);
		return 1;
	}
	if (options->verbose) {
		printf("seed %llu: %s\n", (unsigned long long)seed, world.text);
		fflush(stdout);
	}
	swarm_run(&(struct swarm_order){ seed, options->plant, options->log }, &world, &outcome);
	if (options->verbose && !outcome.failed_count && !outcome.error[0])
		printf("seed %llu: ok, %llu steps, %llu ms\n", (unsigned long long)seed,
		       (unsigned long long)outcome.steps, (unsigned long long)(outcome.end_ns / 1000000));
	if (outcome.failed_count && !options->verbose)
		printf("seed %llu: %s\n", (unsigned long long)seed, world.text);
	for (i = 0; i < CHECKER_COUNT; i++) {
		if (outcome.failed[i])
			printf("seed %llu: FAILED %s: %s\n", (unsigned long long)seed, checker_list[i]->name,
			       outcome.text[i]);
	}
	if (outcome.error[0])
		printf("seed %llu: FAILED to run: %s\n", (unsigned long long)seed, outcome.error);
	swarm_world_fini(&world);
	return outcome.failed_count || outcome.error[0];
}

static void swarm_crashed(void *context, uint32_t item, int signal_number)
{
	printf("seed %llu: FAILED: it died of signal %d (%s)\n", (unsigned long long)swarm_seed(context, item),
	       signal_number, strsignal(signal_number));
}

/* Runs one planted bug until its checker sees it. */
static int swarm_plant_one(void *context, uint32_t item)
{
	const struct swarm_options *options = context;
	const struct plant *plant = options->all_plants ? &plant_list[item] : options->plant;
	uint32_t n, i, own = checker_index(plant->caught_by), seeds = options->count;
	bool others[CHECKER_COUNT] = { false };
	static struct swarm_world world;
	static struct swarm_outcome outcome;
	struct gp_error error;

	if (plant->seed_max && plant->seed_max < seeds)
		seeds = plant->seed_max;
	for (n = 0; n < seeds; n++) {
		if (swarm_world_init(&world, options->first + n, plant->kind ? plant->kind : options->kind, &error)) {
			printf("seed %llu: cannot draw its world: %s\n", (unsigned long long)(options->first + n),
			       error.text);
			return 1;
		}
		swarm_run(&(struct swarm_order){ options->first + n, plant, false }, &world, &outcome);
		swarm_world_fini(&world);
		for (i = 0; i < CHECKER_COUNT; i++)
			others[i] |= outcome.failed[i];
		if (!outcome.failed[own])
			continue;
		printf("plant %-10s %-45s caught by %-10s after %3u seeds; also seen by:", plant->name, plant->what,
		       plant->caught_by->name, n + 1);
		for (i = 0; i < CHECKER_COUNT; i++) {
			if (others[i] && i != own)
				printf(" %s", checker_list[i]->name);
		}
		printf("\n");
		if (options->verbose)
			printf("  %s\n", outcome.text[own]);
		return 0;
	}
	printf("plant %-10s %-45s NOT CAUGHT by %s within %u seeds\n", plant->name, plant->what, plant->caught_by->name,
	       seeds);
	return 1;
}

static void swarm_plant_crashed(void *context, uint32_t item, int signal_number)
{
	const struct swarm_options *options = context;
	const struct plant *plant = options->all_plants ? &plant_list[item] : options->plant;

	printf("plant %-10s died of signal %d (%s) before %s could see it\n", plant->name, signal_number,
	       strsignal(signal_number), plant->caught_by->name);
}

static int swarm_go(struct swarm_options *options)
{
	bool plants = options->all_plants || options->plant;
	struct swarm_pool_job job = {
		.item_count = options->list_count ? options->list_count : options->count,
		.process_count = options->process_count,
		.context = options,
		.work = swarm_one,
		.crashed = swarm_crashed,
	};
	uint32_t failed = 0;
	int ret;

	if (plants && options->count > 1) {
		job.item_count = options->all_plants ? plant_count : 1;
		job.work = swarm_plant_one;
		job.crashed = swarm_plant_crashed;
		printf("swarm: %u planted bugs, seeds from %llu, at most %u for each\n", job.item_count,
		       (unsigned long long)options->first, options->count);
	} else if (options->list_count) {
		printf("swarm: %u kept seeds\n", options->list_count);
	} else {
		printf("swarm: seeds %llu to %llu\n", (unsigned long long)options->first,
		       (unsigned long long)(options->first + options->count - 1));
	}
	if (job.process_count > job.item_count)
		job.process_count = job.item_count;
	ret = swarm_pool_run(&job, &failed);
	if (ret) {
		fprintf(stderr, "swarm: cannot start processes: %s\n", strerror(-ret));
		return 1;
	}
	printf("swarm: %u of %u %s failed\n", failed, job.item_count, plants ? "planted bugs" : "seeds");
	if (failed && !plants)
		printf("swarm: to see one again: swarm %s--seed N\n", options->kind == SWARM_HOSTILE ? "--hostile " :
								      options->kind == SWARM_SELF    ? "--self " :
								      options->kind == SWARM_FLOORS  ? "--floors " :
								      options->kind == SWARM_RANKS   ? "--ranks " :
								      options->kind == SWARM_ALONE   ? "--alone " :
												       "");
	return failed > 0;
}

static bool swarm_number(const char *text, uint64_t *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *ret_value <= SWARM_SEED_MAX;
}

static int swarm_read_seeds(struct swarm_options *options, const char *path)
{
	FILE *file = fopen(path, "r");
	char line[512], *text;
	uint32_t number = 0;
	uint64_t seed;

	if (!file) {
		fprintf(stderr, "swarm: %s: %s\n", path, strerror(errno));
		return 2;
	}
	while (fgets(line, sizeof(line), file)) {
		number++;
		line[strcspn(line, "#\n")] = 0;
		text = strtok(line, " \t");
		if (!text)
			continue;
		if (!swarm_number(text, &seed) || options->list_count == SWARM_LIST_MAX) {
			fprintf(stderr, "swarm: %s:%u: not a seed, or more than %u of them\n", path, number,
				SWARM_LIST_MAX);
			fclose(file);
			return 2;
		}
		options->list[options->list_count++] = seed;
	}
	fclose(file);
	return 0;
}

static int swarm_choose_plant(struct swarm_options *options, const char *name)
{
	options->all_plants = !strcmp(name, "all");
	options->plant = plant_find(name);
	if (options->all_plants || options->plant)
		return 0;
	fprintf(stderr, "swarm: there is no planted bug '%s'; --list-plants names them\n", name);
	return 2;
}

static int swarm_list(bool plants)
{
	uint32_t i;

	for (i = 0; i < (plants ? plant_count : CHECKER_COUNT); i++) {
		if (plants)
			printf("%-10s %-45s (for %s)\n", plant_list[i].name, plant_list[i].what,
			       plant_list[i].caught_by->name);
		else
			printf("%-10s %s\n", checker_list[i]->name, checker_list[i]->promise);
	}
	return 0;
}

static int swarm_bad(const char *option, const char *value)
{
	fprintf(stderr, "swarm: %s: '%s' is not a number up to %u\n%s", option, value, SWARM_SEED_MAX, swarm_help);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option table[] = {
		{ "seeds", 1, 0, 'n' },
		{ "first", 1, 0, 'f' },
		{ "seed", 1, 0, 's' },
		{ "replay", 1, 0, 'r' },
		{ "plant", 1, 0, 'p' },
		{ "jobs", 1, 0, 'j' },
		{ "log", 0, 0, 'l' },
		{ "verbose", 0, 0, 'v' },
		{ "list-plants", 0, 0, 'P' },
		{ "list-checkers", 0, 0, 'C' },
		{ "help", 0, 0, 'h' },
		{ "hostile", 0, 0, 'H' },
		{ "self", 0, 0, 'W' },
		{ "floors", 0, 0, 'F' },
		{ "ranks", 0, 0, 'R' },
		{ "alone", 0, 0, 'A' },
		{ 0 },
	};
	static uint64_t list[SWARM_LIST_MAX];
	struct swarm_options options = { .first = 1, .count = 100, .list = list };
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t value = 0;
	int option, ret;

	options.process_count = cores > 0 ? (uint32_t)cores : 1;
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		if (strchr("nfsj", option) && !swarm_number(optarg, &value))
			return swarm_bad(argv[optind - 2], optarg);
		switch (option) {
		case 'n': options.count = (uint32_t)value; break;
		case 'f': options.first = value; break;
		case 's':
			options.first = value;
			options.count = 1;
			options.verbose = true;
			break;
		case 'j': options.process_count = value ? (uint32_t)value : 1; break;
		case 'v': options.verbose = true; break;
		case 'H': options.kind = SWARM_HOSTILE; break;
		case 'W': options.kind = SWARM_SELF; break;
		case 'F': options.kind = SWARM_FLOORS; break;
		case 'R': options.kind = SWARM_RANKS; break;
		case 'A': options.kind = SWARM_ALONE; break;
		case 'l': options.log = true; break;
		case 'P': return swarm_list(true);
		case 'C': return swarm_list(false);
		case 'h': fputs(swarm_help, stdout); return 0;
		case 'r':
			ret = swarm_read_seeds(&options, optarg);
			if (ret)
				return ret;
			break;
		case 'p':
			ret = swarm_choose_plant(&options, optarg);
			if (ret)
				return ret;
			break;
		default: fputs(swarm_help, stderr); return 2;
		}
	}
	if (optind != argc || !options.count) {
		fputs(swarm_help, stderr);
		return 2;
	}
	return swarm_go(&options);
}
