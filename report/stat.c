/* SPDX-License-Identifier: MIT */
/* Owns the table of what is known by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/stat.h"

#define STAT_SLOTS (GP_STAT_MAX * 2u)

static uint32_t spread_bucket(uint64_t value)
{
	uint32_t exponent, bucket;

	if (value < 2 * GP_STAT_SUB)
		return (uint32_t)value;
	exponent = 63u - (uint32_t)__builtin_clzll(value); /* at least 5 */
	bucket = (exponent - 4u) * GP_STAT_SUB + (uint32_t)(value >> (exponent - 4u));
	return bucket < GP_STAT_BUCKETS ? bucket : GP_STAT_BUCKETS - 1u;
}

/* The middle of a bucket. */
static uint64_t spread_value(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < 2 * GP_STAT_SUB)
		return bucket;
	shift = bucket / GP_STAT_SUB - 1u;
	return ((uint64_t)(bucket % GP_STAT_SUB + GP_STAT_SUB) << shift) + (1ull << shift) / 2u;
}

/* Without memory, or with too many, the histogram has to do. */
static void spread_keep(struct gp_spread *spread, uint64_t value_ns)
{
	uint32_t most = spread->exact_max ? spread->exact_max : GP_SPREAD_EXACT;

	if (spread->count && !spread->values)
		return;
	if (spread->count == most) {
		gp_spread_fini(spread);
		return;
	}
	if (spread->count == spread->value_room) {
		uint32_t larger = spread->value_room ? 2 * spread->value_room : 4;
		uint64_t *moved = realloc(spread->values, larger * sizeof(*moved));

		if (!moved) {
			gp_spread_fini(spread);
			return;
		}
		spread->values = moved;
		spread->value_room = larger;
	}
	spread->values[spread->count] = value_ns;
}

void gp_spread_fini(struct gp_spread *spread)
{
	free(spread->values);
	spread->values = NULL;
}

bool gp_spread_is_exact(const struct gp_spread *spread)
{
	return !spread->count || spread->values;
}

static int spread_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void gp_spread_add(struct gp_spread *spread, uint64_t value_ns)
{
	spread_keep(spread, value_ns);
	if (!spread->count || value_ns < spread->min_ns)
		spread->min_ns = value_ns;
	if (value_ns > spread->max_ns)
		spread->max_ns = value_ns;
	spread->count++;
	spread->sum_ns += value_ns;
	spread->buckets[spread_bucket(value_ns)]++;
}

uint64_t gp_spread_quantile(const struct gp_spread *spread, uint32_t permille)
{
	uint64_t wanted, seen = 0, value = 0;

	if (!spread->count)
		return 0;
	wanted = (spread->count * permille + 999u) / 1000u;
	wanted = wanted ? wanted : 1;
	if (spread->values) {
		qsort(spread->values, spread->count, sizeof(*spread->values), spread_compare);
		return spread->values[wanted - 1];
	}
	for (uint32_t i = 0; i < GP_STAT_BUCKETS; i++) {
		seen += spread->buckets[i];
		if (seen >= wanted) {
			value = spread_value(i);
			break;
		}
	}
	value = value < spread->min_ns ? spread->min_ns : value;
	return value > spread->max_ns ? spread->max_ns : value;
}

uint64_t gp_spread_sum_below(const struct gp_spread *spread, uint64_t limit_ns)
{
	uint64_t sum = 0;

	if (spread->max_ns <= limit_ns)
		return spread->sum_ns;
	for (uint64_t i = 0; spread->values && i < spread->count; i++)
		sum += spread->values[i] <= limit_ns ? spread->values[i] : 0;
	if (spread->values)
		return sum;
	for (uint32_t i = 0; i < GP_STAT_BUCKETS && spread_value(i) <= limit_ns; i++)
		sum += spread->buckets[i] * spread_value(i);
	return sum < spread->sum_ns ? sum : spread->sum_ns;
}

int gp_stats_init(struct gp_report_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->stats = calloc(GP_STAT_MAX, sizeof(struct gp_stat *));
	stats->slots = calloc(STAT_SLOTS, sizeof(*stats->slots));
	if (stats->stats && stats->slots)
		return 0;
	gp_stats_fini(stats);
	return -ENOMEM;
}

void gp_stats_fini(struct gp_report_stats *stats)
{
	for (uint32_t i = 0; i < stats->count; i++) {
		if (stats->stats[i]->later)
			gp_spread_fini(stats->stats[i]->later);
		gp_spread_fini(&stats->stats[i]->spread);
		free(stats->stats[i]->later);
		free(stats->stats[i]);
	}
	free(stats->stats);
	free(stats->slots);
	memset(stats, 0, sizeof(*stats));
}

struct gp_stat *gp_stats_get(struct gp_report_stats *stats, uint32_t name, uint32_t layer, uint32_t process)
{
	uint64_t hash = ((uint64_t)name << 20 ^ (uint64_t)process << 4 ^ layer) * 0x9e3779b97f4a7c15ull;
	uint32_t slot = (uint32_t)((hash >> 32) % STAT_SLOTS);
	struct gp_stat *stat;

	for (; stats->slots[slot]; slot = (slot + 1) % STAT_SLOTS) {
		stat = stats->stats[stats->slots[slot] - 1];
		if (stat->name == name && stat->layer == layer && stat->process == process)
			return stat;
	}
	if (stats->count == GP_STAT_MAX) {
		stats->folded++;
		return stats->stats[GP_STAT_MAX - 1];
	}
	stat = calloc(1, sizeof(*stat));
	if (!stat)
		return NULL;
	stat->name = name;
	stat->layer = layer;
	stat->process = process;
	stats->stats[stats->count] = stat;
	stats->slots[slot] = ++stats->count;
	return stat;
}
