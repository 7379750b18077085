/* SPDX-License-Identifier: MIT */
/*
 * Reading device descriptions. Owns the names, units and limits of all values. A file is outside input: whatever is
 * wrong with it is refused with file, line and what to write instead.
 *
 *   title = AMD Instinct MI300X          the one entry that is not a value
 *   key = VALUE [unit] | kind | source
 *   key = LOW..HIGH unit default VALUE | kind | source
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/file.h"
#include "lib/ini.h"
#include "lib/units.h"
#include "model/desc.h"

#define DESC_FILE_SIZE (256u << 10)

#define CPSCH (1u << GP_SCHEDULER_CPSCH)
#define MES   (1u << GP_SCHEDULER_MES)
#define TSG   (1u << GP_SCHEDULER_TSG)
#define CP    (CPSCH | MES)
#define ALL   (CPSCH | MES | TSG)

#define US  1000ll
#define MS  1000000ll
#define S   1000000000ll
#define KIB (1ll << 10)
#define MIB (1ll << 20)
#define GB  1000000000ll
#define TB  1000000000000ll

struct desc_key {
	const char *name;
	enum gp_desc_unit unit;
	uint32_t schedulers; /* which have it; those must have it, unless is_optional */
	bool is_optional;
	int64_t min, max;
	const char *choices[4];
};

static const struct desc_key desc_keys[GP_DESC_KEY_COUNT] = {
	[GP_DESC_SCHEDULER] = { "scheduler", GP_DESC_CHOICE, ALL, false, 0, 2, { "cpsch", "mes", "tsg" } },
	[GP_DESC_XCC_COUNT] = { "xcc_count", GP_DESC_COUNT, ALL, false, 1, 64 },
	[GP_DESC_SE_COUNT] = { "se_count", GP_DESC_COUNT, ALL, false, 1, 64 },
	[GP_DESC_CU_COUNT] = { "cu_count", GP_DESC_COUNT, ALL, false, 1, 4096 },
	[GP_DESC_WAVES_PER_CU] = { "waves_per_cu", GP_DESC_COUNT, ALL, false, 1, 64 },
	[GP_DESC_VGPR_SIZE] = { "vgpr_size", GP_DESC_BYTES, ALL, false, KIB, 16 * MIB },
	[GP_DESC_LDS_SIZE] = { "lds_size", GP_DESC_BYTES, ALL, false, KIB, 16 * MIB },
	[GP_DESC_SGPR_SIZE] = { "sgpr_size", GP_DESC_BYTES, CP, false, 0, MIB },
	[GP_DESC_HWREG_SIZE] = { "hwreg_size", GP_DESC_BYTES, CP, false, 0, MIB },
	[GP_DESC_CLOCK] = { "clock", GP_DESC_HZ, ALL, true, 1000000, 10 * GB },
	[GP_DESC_MEMORY_SIZE] = { "memory_size", GP_DESC_BYTES, ALL, false, MIB, 64 * TB },
	[GP_DESC_MEMORY_BANDWIDTH] = { "memory_bandwidth", GP_DESC_BYTES_PER_S, ALL, false, GB, 1000 * TB },
	[GP_DESC_SAVE_BANDWIDTH] = { "save_bandwidth", GP_DESC_BYTES_PER_S, CP, false, GB, 1000 * TB },
	[GP_DESC_PIPE_COUNT] = { "pipe_count", GP_DESC_COUNT, CP, false, 1, 64 },
	[GP_DESC_SLOT_COUNT] = { "slot_count", GP_DESC_COUNT, CP, false, 1, 1024 },
	[GP_DESC_PROCESS_COUNT] = { "process_count", GP_DESC_COUNT, CP, false, 1, 1024 },
	[GP_DESC_QUEUE_QUANTUM] = { "queue_quantum", GP_DESC_NS, CP, false, US, S },
	[GP_DESC_PROCESS_QUANTUM] = { "process_quantum", GP_DESC_NS, CP, false, US, 10 * S },
	[GP_DESC_COPY_ENGINE_COUNT] = { "copy_engine_count", GP_DESC_COUNT, ALL, false, 1, 64 },
	[GP_DESC_COPY_QUEUE_COUNT] = { "copy_queue_count", GP_DESC_COUNT, ALL, false, 1, 1024 },
	[GP_DESC_COPY_BANDWIDTH] = { "copy_bandwidth", GP_DESC_BYTES_PER_S, ALL, false, 1000000, 100 * TB },
	[GP_DESC_COPY_LATENCY] = { "copy_latency", GP_DESC_NS, ALL, false, 0, 10 * MS },
	[GP_DESC_PACKET_NS] = { "packet", GP_DESC_NS, ALL, false, 0, MS },
	[GP_DESC_DOORBELL_NS] = { "doorbell", GP_DESC_NS, ALL, false, 0, MS },
	[GP_DESC_SIGNAL_NS] = { "signal", GP_DESC_NS, ALL, false, 0, MS },
	[GP_DESC_GATE_FIXED_NS] = { "gate_fixed", GP_DESC_NS, CP, false, 0, S },
	[GP_DESC_SLICE_LOSS_NS] = { "slice_loss", GP_DESC_NS, CP, false, 0, S },
	[GP_DESC_PIPE_SWITCH_NS] = { "pipe_switch", GP_DESC_NS, CP, false, 0, 10 * MS },
	[GP_DESC_BLOCKED_HEAD] = { "blocked_head", GP_DESC_CHOICE, CP, false, 0, 1, { "hold", "rotate" } },
	[GP_DESC_SLICE_PACKING] = { "slice_packing", GP_DESC_CHOICE, CP, false, 0, 1, { "process", "slots" } },
	[GP_DESC_EMPTY_PROCESS] = { "empty_process", GP_DESC_CHOICE, CP, false, 0, 1, { "skip", "hold" } },
	[GP_DESC_TIMESLICE_NS] = { "timeslice", GP_DESC_NS, TSG, false, US, 10 * S },
	[GP_DESC_SWITCH_OUT_NS] = { "switch_out", GP_DESC_NS, TSG, false, 0, S },
	[GP_DESC_SWITCH_IN_NS] = { "switch_in", GP_DESC_NS, TSG, false, 0, S },
	[GP_DESC_DISABLE_NS] = { "disable", GP_DESC_NS, TSG, false, 0, S },
	[GP_DESC_ENABLE_NS] = { "enable", GP_DESC_NS, TSG, false, 0, S },
	[GP_DESC_DISABLE_STOP_NS] = { "disable_stop", GP_DESC_NS, TSG, false, 0, S },
};

static const char *const desc_kinds[] = { "specified", "measured", "fitted", "assumed" };

struct desc_scale {
	const char *name;
	int64_t scale;
};
static const struct desc_scale desc_ns[] = { { "s", S }, { "ms", MS }, { "us", US }, { "ns", 1 } };
static const struct desc_scale desc_bytes[] = {
	{ "GiB", 1ll << 30 }, { "MiB", MIB },    { "KiB", KIB }, { "TB", TB },
	{ "GB", GB },         { "MB", 1000000 }, { "kB", 1000 }, { "B", 1 },
};
static const struct desc_scale desc_rate[] = {
	{ "TB/s", TB }, { "GB/s", GB }, { "MB/s", 1000000 }, { "kB/s", 1000 }, { "B/s", 1 },
};
static const struct desc_scale desc_hz[] = { { "GHz", 1000000000 }, { "MHz", 1000000 }, { "kHz", 1000 }, { "Hz", 1 } };

struct desc_text {
	char text[128];
};

static struct desc_text desc_format(enum gp_desc_key key, int64_t value)
{
	const struct desc_scale *scales = desc_ns;
	struct desc_text formatted;

	switch (desc_keys[key].unit) {
	case GP_DESC_CHOICE:
		(void)snprintf(formatted.text, sizeof(formatted.text), "%s", desc_keys[key].choices[value]);
		return formatted;
	case GP_DESC_COUNT:
		(void)snprintf(formatted.text, sizeof(formatted.text), "%" PRId64 " count", value);
		return formatted;
	case GP_DESC_NS: scales = desc_ns; break;
	case GP_DESC_BYTES: scales = desc_bytes; break;
	case GP_DESC_BYTES_PER_S: scales = desc_rate; break;
	case GP_DESC_HZ: scales = desc_hz; break;
	}
	/* The largest unit that is exact; the smallest always is. */
	while (scales->scale > 1 && (!value || value % scales->scale))
		scales++;
	(void)snprintf(formatted.text, sizeof(formatted.text), "%" PRId64 " %s", value / scales->scale, scales->name);
	return formatted;
}

static int desc_parse_choice(enum gp_desc_key key, const char *text, int64_t *ret_value, struct gp_error *error)
{
	const struct desc_key *info = &desc_keys[key];
	char names[64] = "";
	size_t used = 0;

	for (int64_t i = 0; i <= info->max; i++) {
		if (!strcmp(text, info->choices[i])) {
			*ret_value = i;
			return 0;
		}
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", info->choices[i]);
	}
	return gp_error_set(error, -EINVAL, "%s: \"%.40s\" is none of: %s", info->name, text, names);
}

static int desc_parse_hz(const char *name, const char *text, uint64_t *ret_value, struct gp_error *error)
{
	char digits[24];
	size_t length = strspn(text, "0123456789");
	const char *unit = text + length + strspn(text + length, " ");
	uint64_t value;
	int r;

	if (!length || length >= sizeof(digits))
		return gp_error_set(error, -EINVAL, "%s: \"%.40s\" is not a frequency; write it like 2100 MHz", name,
				    text);
	memcpy(digits, text, length);
	digits[length] = '\0';
	r = gp_units_parse_count(digits, name, 0, 1000000000000ull, &value, error);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(desc_hz) / sizeof(desc_hz[0]); i++) {
		if (!strcmp(unit, desc_hz[i].name)) {
			if (__builtin_mul_overflow(value, (uint64_t)desc_hz[i].scale, ret_value))
				return gp_error_set(error, -ERANGE, "%s: \"%.40s\" is too large", name, text);
			return 0;
		}
	}
	return gp_error_set(error, -EINVAL, "%s: \"%.40s\" has no known unit; units are: Hz, kHz, MHz, GHz", name,
			    text);
}

/* "304 count": the word is part of the value, so that a number in the wrong place is seen. */
static int desc_parse_count(const char *name, const char *text, uint64_t *ret_value, struct gp_error *error)
{
	char digits[24];
	size_t length = strspn(text, "0123456789");
	const char *unit = text + length + strspn(text + length, " ");

	if (strcmp(unit, "count") || !length || length >= sizeof(digits))
		return gp_error_set(error, -EINVAL, "%s: \"%.40s\" is not a count; write it like 304 count", name,
				    text);
	memcpy(digits, text, length);
	digits[length] = '\0';
	return gp_units_parse_count(digits, name, 0, INT64_MAX, ret_value, error);
}

static int desc_parse_value(enum gp_desc_key key, const char *text, int64_t *ret_value, struct gp_error *error)
{
	const struct desc_key *info = &desc_keys[key];
	uint64_t value = 0;
	int r = 0;

	switch (info->unit) {
	case GP_DESC_CHOICE: return desc_parse_choice(key, text, ret_value, error);
	case GP_DESC_COUNT: r = desc_parse_count(info->name, text, &value, error); break;
	case GP_DESC_BYTES: r = gp_units_parse_size(text, info->name, INT64_MAX, &value, error); break;
	case GP_DESC_NS: r = gp_units_parse_ns(text, info->name, 0, INT64_MAX, &value, error); break;
	case GP_DESC_BYTES_PER_S: r = gp_units_parse_rate(text, info->name, INT64_MAX, &value, error); break;
	case GP_DESC_HZ: r = desc_parse_hz(info->name, text, &value, error); break;
	}
	if (r < 0)
		return r;
	if (value > INT64_MAX || (int64_t)value < info->min || (int64_t)value > info->max)
		return gp_error_set(error, -ERANGE, "%s: \"%.40s\" is outside the limits: from %s to %s", info->name,
				    text, desc_format(key, info->min).text, desc_format(key, info->max).text);
	*ret_value = (int64_t)value;
	return 0;
}

/* "60..500 us default 105": the unit stands once, behind the upper end. */
static int desc_parse_range(enum gp_desc_key key, const char *text, struct gp_desc_value *value, struct gp_error *error)
{
	const char *dots = strstr(text, ".."), *given = strstr(text, " default "), *unit;
	char low[160], high[160], middle[160];
	int r;

	if (desc_keys[key].unit == GP_DESC_CHOICE || !given || given < dots || strlen(text) >= 64)
		return gp_error_set(error, -EINVAL,
				    "%s: \"%.40s\" is not a range; write it like 60..500 us default 105",
				    desc_keys[key].name, text);
	(void)snprintf(high, sizeof(high), "%.*s", (int)(given - dots - 2), dots + 2);
	unit = high + strspn(high, "0123456789. ");
	(void)snprintf(low, sizeof(low), "%.*s %.60s", (int)(dots - text), text, unit);
	(void)snprintf(middle, sizeof(middle), "%s %.60s", given + strlen(" default "), unit);
	r = desc_parse_value(key, low, &value->min, error);
	if (!r)
		r = desc_parse_value(key, high, &value->max, error);
	if (!r)
		r = desc_parse_value(key, middle, &value->value, error);
	if (r < 0)
		return r;
	if (value->min > value->value || value->value > value->max)
		return gp_error_set(error, -EINVAL, "%s: the default must lie within the range", desc_keys[key].name);
	return 0;
}

static char *desc_trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		text[--length] = '\0';
	return text;
}

static int desc_parse_entry(enum gp_desc_key key, const char *text, struct gp_desc_value *ret_value,
			    struct gp_error *error)
{
	const char *name = desc_keys[key].name;
	struct gp_desc_value value = { .present = true };
	char copy[GP_INI_LINE_SIZE], *kind, *source, *given;
	uint32_t i = 0;
	int r;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	kind = strchr(copy, '|');
	source = kind ? strchr(kind + 1, '|') : NULL;
	if (!source)
		return gp_error_set(error, -EINVAL, "%s: write it as VALUE | kind | source", name);
	*kind++ = *source++ = '\0';
	given = desc_trim(copy);
	kind = desc_trim(kind);
	source = desc_trim(source);
	while (i < 4 && strcmp(kind, desc_kinds[i]))
		i++;
	if (i == 4)
		return gp_error_set(error, -EINVAL,
				    "%s: kind \"%.40s\" is none of: specified, measured, fitted, assumed", name, kind);
	value.kind = (enum gp_desc_kind)i;
	if (!*source)
		return gp_error_set(error, -EINVAL, "%s: a value without a source is refused", name);
	if (strlen(source) >= sizeof(value.source))
		return gp_error_set(error, -EINVAL, "%s: the source is too long (at most %zu bytes)", name,
				    sizeof(value.source) - 1u);
	memcpy(value.source, source, strlen(source) + 1u);
	if (strstr(given, "..")) {
		r = desc_parse_range(key, given, &value, error);
	} else {
		r = desc_parse_value(key, given, &value.value, error);
		value.min = value.max = value.value;
	}
	if (r < 0)
		return r;
	*ret_value = value;
	return 0;
}

static int desc_find(const char *name, enum gp_desc_key *ret_key, struct gp_error *error)
{
	for (uint32_t i = 0; i < GP_DESC_KEY_COUNT; i++) {
		if (!strcmp(desc_keys[i].name, name)) {
			*ret_key = (enum gp_desc_key)i;
			return 0;
		}
	}
	return gp_error_set(error, -EINVAL, "unknown key \"%.40s\"", name);
}

static int desc_entry(void *context, const char *section, const char *name, const char *value, uint32_t line,
		      struct gp_error *error)
{
	struct gp_desc *desc = context;
	enum gp_desc_key key = GP_DESC_SCHEDULER;
	int r;

	(void)line;
	if (strcmp(section, "device"))
		return gp_error_set(error, -EINVAL, "the only section is [device]");
	if (!name)
		return 0;
	if (!strcmp(name, "title")) {
		if (!*value || strlen(value) >= sizeof(desc->title))
			return gp_error_set(error, -EINVAL, "title: 1 to %zu bytes", sizeof(desc->title) - 1u);
		if (*desc->title)
			return gp_error_set(error, -EINVAL, "title is given twice");
		memcpy(desc->title, value, strlen(value) + 1u);
		return 0;
	}
	r = desc_find(name, &key, error);
	if (r < 0)
		return r;
	if (desc->values[key].present)
		return gp_error_set(error, -EINVAL, "%s is given twice", name);
	return desc_parse_entry(key, value, &desc->values[key], error);
}

/* What no single value shows. */
static int desc_check(const struct gp_desc *desc, struct gp_error *error)
{
	const char *scheduler;
	uint32_t bit;

	if (!desc->values[GP_DESC_SCHEDULER].present)
		return gp_error_set(error, -EINVAL, "scheduler is missing");
	bit = 1u << gp_desc_get(desc, GP_DESC_SCHEDULER);
	scheduler = desc_keys[GP_DESC_SCHEDULER].choices[gp_desc_get(desc, GP_DESC_SCHEDULER)];
	for (uint32_t i = 0; i < GP_DESC_KEY_COUNT; i++) {
		const struct desc_key *info = &desc_keys[i];

		if (desc->values[i].present && !(info->schedulers & bit))
			return gp_error_set(error, -EINVAL, "%s means nothing with scheduler %s", info->name,
					    scheduler);
		if (!desc->values[i].present && !info->is_optional && (info->schedulers & bit))
			return gp_error_set(error, -EINVAL, "%s is missing; scheduler %s needs it", info->name,
					    scheduler);
	}
	if (gp_desc_get(desc, GP_DESC_CU_COUNT) % gp_desc_get(desc, GP_DESC_XCC_COUNT))
		return gp_error_set(error, -EINVAL, "cu_count must be a multiple of xcc_count");
	if ((bit & CP) && gp_desc_get(desc, GP_DESC_SLOT_COUNT) % gp_desc_get(desc, GP_DESC_PIPE_COUNT))
		return gp_error_set(error, -EINVAL, "slot_count must be a multiple of pipe_count");
	if ((bit & TSG) && gp_desc_get(desc, GP_DESC_DISABLE_STOP_NS) > gp_desc_get(desc, GP_DESC_DISABLE_NS))
		return gp_error_set(error, -EINVAL, "disable_stop cannot be longer than disable");
	return 0;
}

static void desc_set_name(struct gp_desc *desc, const char *file_name)
{
	const char *slash = strrchr(file_name, '/'), *base = slash ? slash + 1 : file_name;
	size_t length = strcspn(base, ".");

	(void)snprintf(desc->name, sizeof(desc->name), "%.*s",
		       length < sizeof(desc->name) ? (int)length : (int)sizeof(desc->name) - 1, base);
}

int gp_desc_parse(const char *text, size_t text_size, const char *file_name, struct gp_desc *ret_desc,
		  struct gp_error *error)
{
	struct gp_desc desc = { 0 };
	struct gp_error said;
	uint32_t line = 1;
	int r = gp_ini_parse(text, text_size, file_name, desc_entry, &desc, error);

	if (r < 0)
		return r;
	r = desc_check(&desc, &said);
	if (r < 0) {
		/* What is missing is missed at the end. */
		for (size_t i = 0; i + 1 < text_size; i++)
			line += text[i] == '\n';
		return gp_error_set(error, r, "%s:%u: %s", file_name, line, said.text);
	}
	desc_set_name(&desc, file_name);
	if (!*desc.title)
		memcpy(desc.title, desc.name, sizeof(desc.name));
	*ret_desc = desc;
	return 0;
}

int gp_desc_load(const char *path, struct gp_desc *ret_desc, struct gp_error *error)
{
	char *text;
	size_t size;
	int r = gp_file_read(path, DESC_FILE_SIZE, &text, &size, error);

	if (r < 0)
		return r;
	r = gp_desc_parse(text, size, path, ret_desc, error);
	free(text);
	return r;
}

int gp_desc_override(struct gp_desc *desc, const char *assignment, struct gp_error *error)
{
	const char *equals = strchr(assignment, '=');
	struct gp_desc changed = *desc;
	struct gp_desc_value *value;
	enum gp_desc_key key = GP_DESC_SCHEDULER;
	char name[64], given[64];
	int64_t number;
	int r;

	if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof(name))
		return gp_error_set(error, -EINVAL, "\"%.60s\" is not of the form key=value", assignment);
	(void)snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
	r = desc_find(name, &key, error);
	if (r < 0)
		return r;
	value = &changed.values[key];
	if (!value->present || key == GP_DESC_SCHEDULER)
		return gp_error_set(error, -EINVAL, "%s cannot be set on %s", name, desc->name);
	/* On a command line a count needs no unit. */
	(void)snprintf(given, sizeof(given), "%.40s%s", equals + 1,
		       desc_keys[key].unit == GP_DESC_COUNT && !strchr(equals + 1, ' ') ? " count" : "");
	r = desc_parse_value(key, given, &number, error);
	if (r < 0)
		return r;
	if (value->min != value->max && (number < value->min || number > value->max))
		return gp_error_set(error, -ERANGE, "%s: %s is outside the range of this device: from %s to %s", name,
				    desc_format(key, number).text, desc_format(key, value->min).text,
				    desc_format(key, value->max).text);
	if (value->min == value->max)
		value->min = value->max = number;
	value->value = number;
	value->kind = GP_DESC_ASSUMED;
	(void)snprintf(value->source, sizeof(value->source), "set by the caller");
	r = desc_check(&changed, error);
	if (r < 0)
		return r;
	*desc = changed;
	return 0;
}

int64_t gp_desc_get(const struct gp_desc *desc, enum gp_desc_key key)
{
	return desc->values[key].value;
}

const char *gp_desc_key_name(enum gp_desc_key key)
{
	return (uint32_t)key < GP_DESC_KEY_COUNT ? desc_keys[key].name : "?";
}

int gp_desc_line(const struct gp_desc *desc, enum gp_desc_key key, char *ret_line, size_t line_size)
{
	const struct gp_desc_value *value = &desc->values[key];
	char range[300] = "";
	int length;

	if (!value->present)
		return -ENOENT;
	if (value->min != value->max)
		(void)snprintf(range, sizeof(range), " (%s to %s)", desc_format(key, value->min).text,
			       desc_format(key, value->max).text);
	length = snprintf(ret_line, line_size, "%s = %s%s | %s | %s", desc_keys[key].name,
			  desc_format(key, value->value).text, range, desc_kinds[value->kind], value->source);
	return length < 0 || (size_t)length >= line_size ? -ENOSPC : 0;
}
