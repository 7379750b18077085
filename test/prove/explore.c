/* SPDX-License-Identifier: MIT */
/*
 * Runs every sequence of up to K calls on the real core, in each small world (configs.c), and checks every state on the
 * way (world.c). From each state less than K and at most three calls deep it also walks on (walk.c). A state that was
 * reached before with as many calls to go is not gone on from: all that decides is hashed, 64 bits.
 *
 * Owns the search. Looks into the core's state only to leave out of the hash what decides nothing: figures, the trace,
 * stamps.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
#include "core/state.h"
#include "test/prove/world.h"

#define EXPLORE_CHOICES    16u
#define EXPLORE_DEPTH_MAX  8u
#define EXPLORE_WALK_DEPTH 3u
#define EXPLORE_PATIENCE_S 5u /* one call that takes so long does not end */
#define EXPLORE_TABLE_LOG2 25u

struct choices {
	uint32_t value[EXPLORE_CHOICES], bound[EXPLORE_CHOICES], count, at;
};
static struct choices choices, path[EXPLORE_DEPTH_MAX];
static uint32_t depth_now, depth_max;
static bool is_walking;
static enum world_start start_now;
static const char *const start_names[WORLD_START_COUNT] = { "idle", "ordered", "busy" };
static unsigned long long call_count, state_count, walk_count, failure_count;
/* What was seen: the hash, its lowest bits replaced by the calls that were left. */
static uint64_t *table;
static size_t table_size;

uint32_t pick(uint32_t count)
{
	if (choices.at == EXPLORE_CHOICES)
		abort();
	if (choices.at == choices.count) {
		choices.value[choices.at] = 0;
		choices.count++;
	}
	choices.bound[choices.at] = count;
	return choices.value[choices.at++];
}

/* The line of a failure. A handler of signals says it, too, so nothing here calls stdio. */
static struct {
	char text[4096];
	size_t size;
} line;

static void explore_say(const char *text)
{
	while (*text && line.size < sizeof(line.text))
		line.text[line.size++] = *text++;
}

static void explore_say_number(uint32_t number)
{
	char digits[sizeof("4294967295")];
	size_t first = sizeof(digits) - 1;

	digits[first] = 0;
	do
		digits[--first] = (char)('0' + number % 10);
	while (number /= 10);
	explore_say(&digits[first]);
}

static void explore_say_path(void)
{
	uint32_t d, i;

	for (d = 0; d <= depth_now; d++) {
		const struct choices *c = d == depth_now ? &choices : &path[d];

		explore_say(" ");
		for (i = 0; i < c->at; i++) {
			explore_say(i ? "," : "");
			explore_say_number(c->value[i]);
		}
	}
}

void world_fail(const char *what)
{
	if (failure_count++)
		return; /* the first one is the shortest */
	line.size = 0;
	explore_say("FAILED ");
	explore_say(world.config->name);
	explore_say(": ");
	explore_say(what);
	explore_say(is_walking ? " (in a walk from there)" : "");
	explore_say("; again with --config ");
	explore_say(world.config->name);
	explore_say(" --path '");
	explore_say(start_names[start_now]);
	explore_say_path();
	explore_say("'\n");
	if (write(STDOUT_FILENO, line.text, line.size) < 0)
		_exit(2);
}

static void explore_trapped(int number)
{
	world_fail(number == SIGVTALRM ? "a call does not end" : "an assertion of the core, or worse");
	_exit(1);
}

static uint64_t explore_hash_more(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	uint64_t word;

	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	for (; size; size--)
		hash = (hash ^ *at++) * 0x100000001b3ull;
	return hash;
}

/* Parts of the core's memory that decide nothing, in order of place. Everything else is hashed, whatever it is. */
#define EXPLORE_HOLES (3u + WORLD_DEVICES + WORLD_DEVICES * WORLD_QUEUES)
static struct {
	size_t from, to;
} holes[EXPLORE_HOLES];
static uint32_t hole_count;

static void explore_hole(const void *from, size_t size)
{
	size_t place = (size_t)((const unsigned char *)from - world_memory);
	uint32_t i;

	for (i = hole_count++; i && holes[i - 1].from > place; i--)
		holes[i] = holes[i - 1];
	holes[i].from = place;
	holes[i].to = place + size;
}

static void explore_find_holes(void)
{
	uint32_t i;

	hole_count = 0;
	explore_hole(&world_sched->stamp, sizeof(world_sched->stamp));
	explore_hole(&world_sched->trace_count, sizeof(world_sched->trace_count));
	explore_hole(world_sched->trace, sizeof(*world_sched->trace) * world_sched->limits.trace_count);
	for (i = 0; i < world_sched->device_count; i++)
		explore_hole(&world_sched->devices[i].stats, sizeof(world_sched->devices[i].stats));
	for (i = 0; i < world_sched->limits.queue_count; i++)
		explore_hole(&world_sched->seats[i].stamp, sizeof(world_sched->seats[i].stamp));
}

static uint64_t explore_hash(void)
{
	uint64_t hash = explore_hash_more(1, &world, offsetof(struct world, counts));
	size_t from = 0;
	uint32_t i;

	for (i = 0; i < hole_count; i++) {
		hash = explore_hash_more(hash, world_memory + from, holes[i].from - from);
		from = holes[i].to;
	}
	return explore_hash_more(hash, world_memory + from, world_memory_size - from);
}

/* Was it reached before, with no fewer calls to go? */
static bool explore_seen(uint64_t hash, uint32_t left)
{
	uint64_t key = (hash | 8) & ~7ull; /* never 0 */
	size_t i = (hash >> 20) & (table_size - 1);

	while (table[i] && (table[i] & ~7ull) != key)
		i = (i + 1) & (table_size - 1);
	if (table[i] && (table[i] & 7) >= left)
		return true;
	if (!table[i] && ++state_count > table_size / 10 * 9) {
		printf("FAILED %s: more states than the table holds\n", world.config->name);
		exit(1);
	}
	table[i] = key | left;
	return false;
}

/* The next combination of choices, as on an abacus; false: there is none. */
static bool explore_next(struct choices *c)
{
	while (c->at && c->value[c->at - 1] + 1 >= c->bound[c->at - 1])
		c->at--;
	if (!c->at)
		return false;
	c->value[c->at - 1]++;
	c->count = c->at;
	return true;
}

static void explore_walk(const unsigned char *memory, const struct world *was)
{
	is_walking = true;
	walk_count++;
	world_walk();
	is_walking = false;
	memcpy(world_memory, memory, world_memory_size);
	world = *was;
}

static void explore_from(uint32_t depth)
{
	unsigned char *memory = malloc(2 * world_memory_size), *after;
	const struct itimerval patience = { .it_value.tv_sec = EXPLORE_PATIENCE_S };
	struct world before = world, there;

	if (!memory)
		abort();
	after = memory + world_memory_size;
	memcpy(memory, world_memory, world_memory_size);
	choices.count = 0;
	do {
		choices.at = 0;
		depth_now = depth;
		if (!(call_count++ & 0xfff))
			setitimer(ITIMER_VIRTUAL, &patience,
				  NULL); /* of processor time: a loaded machine decides nothing */
		world_step();
		path[depth] = choices;
		if (depth + 1 < depth_max && !failure_count && !explore_seen(explore_hash(), depth_max - depth - 1)) {
			if (depth < EXPLORE_WALK_DEPTH) {
				memcpy(after, world_memory, world_memory_size);
				there = world;
				explore_walk(after, &there);
			}
			explore_from(depth + 1);
		}
		choices = path[depth];
		memcpy(world_memory, memory, world_memory_size);
		world = before;
	} while (!failure_count && explore_next(&choices));
	free(memory);
}

/* Three calls first, so that what is found is short. */
static void explore_config(const struct world_config *config, uint32_t depth)
{
	unsigned long long calls = 0, states = 0, walks = 0;

	for (start_now = 0; start_now < WORLD_START_COUNT; start_now++)
		for (depth_max = depth < 3 ? depth : 3; depth_max <= depth;
		     depth_max += depth_max < depth ? depth - depth_max : 1) {
			call_count = state_count = walk_count = 0;
			memset(table, 0, table_size * sizeof(*table));
			world_start(config, start_now);
			explore_find_holes();
			explore_from(0);
			if (failure_count)
				return;
			calls += call_count;
			states += state_count;
			walks += walk_count;
		}
	printf("%s: every sequence of %u calls: %llu calls, %llu states, %llu walks\n", config->name, depth, calls,
	       states, walks);
	fflush(stdout);
}

/* One sequence again: 'busy 3,0 1,2' is two calls with these choices, from that start. */
static void explore_replay(const struct world_config *config, char *text)
{
	char *call, *save = NULL;

	for (call = strtok_r(text, " ", &save); call; call = strtok_r(NULL, " ", &save)) {
		for (uint32_t i = 0; i < WORLD_START_COUNT; i++)
			if (!strcmp(call, start_names[i]))
				world_start(config, (enum world_start)i);
		if (call == text)
			continue;
		memset(&choices, 0, sizeof(choices));
		for (char *value = call; value && choices.count < EXPLORE_CHOICES;
		     value = strchr(value, ',') ? strchr(value, ',') + 1 : NULL)
			choices.value[choices.count++] = (uint32_t)strtoul(value, NULL, 10);
		world_step();
		printf("%s at %llu ns\n", call, (unsigned long long)world.now_ns);
		fflush(stdout); /* before the line of a failure */
	}
	is_walking = true;
	world_walk();
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "config", required_argument, NULL, 'c' },
						 { "depth", required_argument, NULL, 'd' },
						 { "path", required_argument, NULL, 'p' },
						 { "list", no_argument, NULL, 'l' },
						 { NULL, 0, NULL, 0 } };
	static const int traps[] = { SIGILL, SIGTRAP, SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGVTALRM };
	const char *only = NULL;
	char *replay = NULL;
	uint32_t depth = 3, done = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			for (uint32_t i = 0; world_configs[i].name; i++)
				puts(world_configs[i].name);
		if (option == 'l')
			return 0;
		if (option == '?')
			return 2;
		*(option == 'c' ? &only : (const char **)&replay) = option == 'd' ? replay : optarg;
		if (option == 'd')
			depth = (uint32_t)strtoul(optarg, NULL, 10);
	}
	if (!depth || depth > EXPLORE_DEPTH_MAX - 1)
		return 2;
	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++)
		signal(traps[i], explore_trapped);
	table_size = (size_t)1 << (depth < 4 ? 18u : depth < 6 ? 23u : EXPLORE_TABLE_LOG2);
	table = malloc(table_size * sizeof(*table));
	if (!table)
		return 2;
	for (uint32_t i = 0; world_configs[i].name; i++) {
		if (only && strcmp(only, world_configs[i].name) != 0)
			continue;
		done++;
		failure_count = 0;
		if (replay)
			explore_replay(&world_configs[i], replay);
		else
			explore_config(&world_configs[i], depth);
		if (failure_count)
			return 1;
	}
	return done ? 0 : 2;
}
