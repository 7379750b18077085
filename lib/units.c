/* SPDX-License-Identifier: MIT */
/* Owns the units people write and read. Integers only: "2.5ms" is exactly 2,500,000 ns, and what cannot be exact is
 * refused. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "lib/units.h"

struct units_unit {
	const char *name;
	uint64_t scale;
};

static const struct units_unit units_time[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "\xc2\xb5s", 1000 } /* U+00B5 */,
	{ "\xce\xbcs", 1000 } /* U+03BC */,
	{ "ms", 1000000 },
	{ "s", 1000000000ull },
	{ "min", 60000000000ull },
	{ "h", 3600000000000ull },
	{ NULL, 0 },
};

static const struct units_unit units_size[] = {
	{ "B", 1 },
	{ "kB", 1000 },
	{ "KB", 1000 },
	{ "MB", 1000000 },
	{ "GB", 1000000000ull },
	{ "TB", 1000000000000ull },
	{ "KiB", 1ull << 10 },
	{ "MiB", 1ull << 20 },
	{ "GiB", 1ull << 30 },
	{ "TiB", 1ull << 40 },
	{ NULL, 0 },
};

static const struct units_unit units_rate[] = {
	{ "B/s", 1 },
	{ "kB/s", 1000 },
	{ "KB/s", 1000 },
	{ "MB/s", 1000000 },
	{ "GB/s", 1000000000ull },
	{ "TB/s", 1000000000000ull },
	{ "KiB/s", 1ull << 10 },
	{ "MiB/s", 1ull << 20 },
	{ "GiB/s", 1ull << 30 },
	{ "TiB/s", 1ull << 40 },
	{ NULL, 0 },
};

/* What a sentence needs to know about one kind of value. */
struct units_kind {
	const struct units_unit *units;
	const char *example;  /* "150us" */
	const char *choices;  /* "ns, us, ms, s, min, h" */
	const char *smallest; /* "1 ns" */
};

static const struct units_kind units_kind_time = { units_time, "150us or 90s", "ns, us, ms, s, min, h", "1 ns" };
static const struct units_kind units_kind_size = { units_size, "64KiB", "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
						   "1 B" };
static const struct units_kind units_kind_rate = { units_rate, "5.3TB/s",
						   "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s", "1 B/s" };

/* Whole digits into value; false on overflow. Moves *text behind them. */
static bool units_digits(const char **text, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			return false;
	*ret_value = value;
	return true;
}

/* The fraction behind the point, times scale. False if it is not a whole number. */
static bool units_fraction(const char **text, uint64_t scale, uint64_t *ret_value)
{
	uint64_t value = 0, divisor = 1;

	for (; **text >= '0' && **text <= '9'; (*text)++) {
		uint64_t digit = (uint64_t)(**text - '0');

		/* 10^18 of the largest scale cannot be exact in 64 bits; zeros behind are harmless. */
		if (divisor > 100000000000000000ull) {
			if (digit)
				return false;
			continue;
		}
		value = value * 10u + digit;
		divisor *= 10u;
	}
	/* Shorten before multiplying: 0.5 h and 0.500000000 h are the same. */
	while (divisor > 1 && value % 10u == 0) {
		value /= 10u;
		divisor /= 10u;
	}
	if (__builtin_mul_overflow(value, scale, &value) || value % divisor)
		return false;
	*ret_value = value / divisor;
	return true;
}

static const struct units_unit *units_find(const struct units_unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

static int units_parse(const char *text, const char *what, const struct units_kind *kind, uint64_t *ret_value,
		       struct gp_error *error)
{
	const char *at = text, *fraction = NULL;
	uint64_t whole = 0, part = 0, value;
	const struct units_unit *unit;

	if (*at < '0' || *at > '9')
		return gp_error_set(error, -EINVAL, "%s: \"%.40s\" is not a number with a unit; write it like %s", what,
				    text, kind->example);
	if (!units_digits(&at, &whole))
		return gp_error_set(error, -ERANGE, "%s: \"%.40s\" is too large", what, text);
	if (*at == '.') {
		fraction = ++at;
		at += strspn(at, "0123456789");
		if (at == fraction)
			return gp_error_set(error, -EINVAL, "%s: \"%.40s\" has no digit behind the point", what, text);
	}
	at += strspn(at, " ");
	if (!*at && !whole && !fraction) {
		*ret_value = 0;
		return 0;
	}
	unit = units_find(kind->units, at);
	if (!unit)
		return gp_error_set(error, -EINVAL, "%s: \"%.40s\" has %s unit; units are: %s", what, text,
				    *at ? "an unknown" : "no", kind->choices);
	if (fraction && !units_fraction(&fraction, unit->scale, &part))
		return gp_error_set(error, -EINVAL, "%s: \"%.40s\" is finer than %s", what, text, kind->smallest);
	if (__builtin_mul_overflow(whole, unit->scale, &value) || __builtin_add_overflow(value, part, &value))
		return gp_error_set(error, -ERANGE, "%s: \"%.40s\" is too large", what, text);
	*ret_value = value;
	return 0;
}

int gp_units_parse_ns(const char *text, const char *what, uint64_t min_ns, uint64_t max_ns, uint64_t *ret_ns,
		      struct gp_error *error)
{
	char least[GP_UNITS_TEXT_SIZE], most[GP_UNITS_TEXT_SIZE];
	uint64_t value = 0;
	int r = units_parse(text, what, &units_kind_time, &value, error);

	if (r < 0)
		return r;
	if (value < min_ns || value > max_ns)
		return gp_error_set(error, -ERANGE, "%s: \"%.40s\" is outside the limits: from %s to %s", what, text,
				    gp_units_format_ns(min_ns, least, sizeof(least)),
				    gp_units_format_ns(max_ns, most, sizeof(most)));
	*ret_ns = value;
	return 0;
}

static int units_parse_bytes(const char *text, const char *what, const struct units_kind *kind, uint64_t max,
			     uint64_t *ret_value, struct gp_error *error)
{
	char most[GP_UNITS_TEXT_SIZE];
	uint64_t value = 0;
	int r = units_parse(text, what, kind, &value, error);

	if (r < 0)
		return r;
	if (value > max)
		return gp_error_set(error, -ERANGE, "%s: \"%.40s\" is above the limit of %s%s", what, text,
				    gp_units_format_size(max, most, sizeof(most)),
				    kind == &units_kind_rate ? "/s" : "");
	*ret_value = value;
	return 0;
}

int gp_units_parse_size(const char *text, const char *what, uint64_t max_size, uint64_t *ret_size,
			struct gp_error *error)
{
	return units_parse_bytes(text, what, &units_kind_size, max_size, ret_size, error);
}

int gp_units_parse_rate(const char *text, const char *what, uint64_t max_rate, uint64_t *ret_rate,
			struct gp_error *error)
{
	return units_parse_bytes(text, what, &units_kind_rate, max_rate, ret_rate, error);
}

int gp_units_parse_count(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *ret_count,
			 struct gp_error *error)
{
	const char *at = text;
	uint64_t value = 0;
	bool fits = units_digits(&at, &value);

	if (at == text || (fits && *at))
		return gp_error_set(error, -EINVAL, "%s: \"%.40s\" is not a whole number", what, text);
	if (!fits || value < min || value > max)
		return gp_error_set(error, -ERANGE, "%s: \"%.40s\" is outside the limits: from %llu to %llu", what,
				    text, (unsigned long long)min, (unsigned long long)max);
	*ret_count = value;
	return 0;
}

int gp_units_parse_share(const char *text, const char *what, uint32_t *ret_permille, struct gp_error *error)
{
	const char *at = text;
	uint64_t whole = 0;
	bool fits = units_digits(&at, &whole) && at != text;
	uint32_t tenth = 0;

	if (fits && at[0] == '.' && at[1] >= '0' && at[1] <= '9') {
		tenth = (uint32_t)(at[1] - '0');
		at += 2;
	}
	if (!fits || strcmp(at, "%") || whole > 99)
		return gp_error_set(error, -EINVAL, "%s: \"%.40s\" is not a part of the device such as 30%% or 12.5%%",
				    what, text);
	*ret_permille = (uint32_t)whole * 10 + tenth;
	return 0;
}

/* value / scale with three significant digits; false if it rounds up to `limit` units, which belong to the next one. */
static bool units_format(uint64_t value, uint64_t scale, uint64_t limit, const char *name, char *buffer,
			 size_t buffer_size)
{
	uint64_t whole = value / scale, rest = value % scale;
	/* rest < scale <= 2^42, so the products below fit. */
	uint64_t hundredths = whole < 100u ? whole * 100u + (rest * 100u + scale / 2u) / scale : 0;
	uint64_t tenths = whole < 1000u ? whole * 10u + (rest * 10u + scale / 2u) / scale : 0;

	if (whole < 10u && hundredths < 1000u) {
		(void)snprintf(buffer, buffer_size, "%llu.%02llu %s", (unsigned long long)(hundredths / 100u),
			       (unsigned long long)(hundredths % 100u), name);
		return true;
	}
	if (whole < 100u && tenths < 1000u) {
		(void)snprintf(buffer, buffer_size, "%llu.%llu %s", (unsigned long long)(tenths / 10u),
			       (unsigned long long)(tenths % 10u), name);
		return true;
	}
	if (rest >= scale - scale / 2u)
		whole++;
	if (limit && whole >= limit)
		return false;
	(void)snprintf(buffer, buffer_size, "%llu %s", (unsigned long long)whole, name);
	return true;
}

const char *gp_units_format_ns(uint64_t ns, char *buffer, size_t buffer_size)
{
	if (ns < 1000u) {
		(void)snprintf(buffer, buffer_size, "%llu ns", (unsigned long long)ns);
		return buffer;
	}
	if (ns < 1000000u && units_format(ns, 1000u, 1000u, "\xc2\xb5s", buffer, buffer_size))
		return buffer;
	if (ns < 1000000000ull && units_format(ns, 1000000u, 1000u, "ms", buffer, buffer_size))
		return buffer;
	(void)units_format(ns, 1000000000ull, 0, "s", buffer, buffer_size);
	return buffer;
}

const char *gp_units_format_size(uint64_t size, char *buffer, size_t buffer_size)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB" };

	if (size < 1024u) {
		(void)snprintf(buffer, buffer_size, "%llu B", (unsigned long long)size);
		return buffer;
	}
	for (unsigned int i = 1; i < 4; i++) {
		uint64_t scale = 1ull << (10u * i);

		if (size < scale * 1024u && units_format(size, scale, 1024u, names[i], buffer, buffer_size))
			return buffer;
	}
	(void)units_format(size, 1ull << 40, 0, names[4], buffer, buffer_size);
	return buffer;
}
