/* SPDX-License-Identifier: MIT */
/* Owns the spelling of priorities and attributes on the command line. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/attr.h"
#include "lib/units.h"

#define ATTR_NS_MAX 3600000000000ull /* one hour: as the core has it */

const char gp_attr_help[] =
	"Priorities are 0 to 99; 99 = MOST URGENT, as with chrt (HIP and nice count the other way).\n"
	"Names: idle=0 low=20 normal=50 high=80 realtime=99.\n";

static const struct {
	const char *name;
	int32_t priority;
} attr_names[] = { { "idle", 0 }, { "low", 20 }, { "normal", 50 }, { "high", 80 }, { "realtime", 99 } };

#define ATTR_NAME_COUNT (sizeof(attr_names) / sizeof(attr_names[0]))

const char *gp_attr_priority_name(unsigned int index, int32_t *ret_priority)
{
	if (index >= ATTR_NAME_COUNT)
		return NULL;
	*ret_priority = attr_names[index].priority;
	return attr_names[index].name;
}

/* A whole number and nothing after it. */
static bool attr_number(const char *text, long min, long max, long *ret_value)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || *end || errno || value < min || value > max || text[0] == ' ')
		return false;
	*ret_value = value;
	return true;
}

int gp_attr_priority(const char *text, int32_t *ret_priority, struct gp_error *error)
{
	long value;

	for (size_t i = 0; i < ATTR_NAME_COUNT; i++) {
		if (!strcmp(text, attr_names[i].name)) {
			*ret_priority = attr_names[i].priority;
			return 0;
		}
	}
	if (!attr_number(text, 0, GP_ATTR_PRIORITY_MAX, &value))
		return gp_error_set(
			error, -EINVAL,
			"priority '%.40s': give 0 to 99 (99 = most urgent) or idle, low, normal, high, realtime", text);
	*ret_priority = (int32_t)value;
	return 0;
}

const char *gp_attr_priority_text(int32_t priority, char *buffer, size_t buffer_size)
{
	(void)snprintf(buffer, buffer_size, "%" PRId32, priority);
	for (size_t i = 0; i < ATTR_NAME_COUNT; i++)
		if (priority == attr_names[i].priority)
			(void)snprintf(buffer, buffer_size, "%" PRId32 " (%s)", priority, attr_names[i].name);
	return buffer;
}

static int attr_gang(struct gp_wire_attr *attr, const char *value, struct gp_error *error)
{
	if (strlen(value) >= sizeof(attr->gang))
		return gp_error_set(error, -EINVAL, "gang: a name has at most %zu bytes", sizeof(attr->gang) - 1);
	for (const char *at = value; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return gp_error_set(error, -EINVAL, "gang: a name has no control characters");
	if (*value == ' ' || (*value && value[strlen(value) - 1] == ' '))
		return gp_error_set(error, -EINVAL, "gang: a name does not begin or end with a blank");
	memset(attr->gang, 0, sizeof(attr->gang));
	memcpy(attr->gang, value, strlen(value));
	attr->valid |= GP_ATTR_GANG;
	return 0;
}

/* By enum gp_protect. */
static int attr_protect(struct gp_wire_attr *attr, const char *value, struct gp_error *error)
{
	static const char *const names[] = { "default", "latency", "balanced", "throughput" };

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]))
			continue;
		attr->protect = (uint16_t)i;
		attr->valid |= GP_ATTR_PROTECT;
		return 0;
	}
	return gp_error_set(error, -EINVAL, "protect: '%.40s' is not latency, balanced, throughput or default", value);
}

int gp_attr_take(struct gp_wire_attr *attr, int option, const char *value, struct gp_error *error)
{
	uint64_t number = 0;
	uint32_t share = 0;
	int r;

	switch (option) {
	case 'p':
		r = gp_attr_priority(value, &attr->priority, error);
		attr->valid |= r ? 0 : GP_ATTR_PRIORITY;
		return r;
	case GP_ATTR_OPTION_WEIGHT:
		r = gp_units_parse_count(value, "weight", 1, GP_ATTR_WEIGHT_MAX, &number, error);
		attr->weight = r ? attr->weight : (uint32_t)number;
		attr->valid |= r ? 0 : GP_ATTR_WEIGHT;
		return r;
	case GP_ATTR_OPTION_DEADLINE:
		r = gp_units_parse_ns(value, "deadline", 0, ATTR_NS_MAX, &attr->deadline_ns, error);
		attr->valid |= r ? 0 : GP_ATTR_DEADLINE;
		return r;
	case GP_ATTR_OPTION_BUDGET:
		r = gp_units_parse_ns(value, "budget", 0, ATTR_NS_MAX, &attr->budget_ns, error);
		attr->valid |= r ? 0 : GP_ATTR_BUDGET;
		return r;
	case GP_ATTR_OPTION_SHARE:
		r = gp_units_parse_share(value, "share", &share, error);
		attr->share = r ? attr->share : (uint16_t)share;
		attr->valid |= r ? 0 : GP_ATTR_SHARE;
		return r;
	case GP_ATTR_OPTION_PROTECT: return attr_protect(attr, value, error);
	case GP_ATTR_OPTION_GANG: return attr_gang(attr, value, error);
	default: return -ENOENT;
	}
}
