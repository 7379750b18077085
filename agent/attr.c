/* SPDX-License-Identifier: MIT */
/* Attributes: parsing of the environment and of the stream map. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "agent/attr.h"

#define ATTR_PRIORITY_MAX 99
#define ATTR_WEIGHT_MAX   10000u
#define ATTR_SHARE_MAX    999u
#define ATTR_PROTECT_MAX  3u

/* Digits only, at most max; false: the text is something else. */
static bool attr_number(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!text || !*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || value > max / 10u)
			return false;
		value = value * 10u + (uint64_t)(*text - '0');
		if (value > max)
			return false;
	}
	*ret_value = value;
	return true;
}

void gp_attr_name(char *ret_field, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (length > GP_WIRE_NAME_SIZE - 1u)
		length = GP_WIRE_NAME_SIZE - 1u;
	memset(ret_field, 0, GP_WIRE_NAME_SIZE);
	if (length)
		memcpy(ret_field, text, length);
}

void gp_attr_from_environment(struct gp_wire_attr *ret_attr)
{
	struct gp_wire_attr attr = { 0 };
	uint64_t value;

	if (attr_number(getenv("GPREEMPT_PRIORITY"), ATTR_PRIORITY_MAX, &value)) {
		attr.priority = (int32_t)value;
		attr.valid |= GP_ATTR_PRIORITY;
	}
	if (attr_number(getenv("GPREEMPT_WEIGHT"), ATTR_WEIGHT_MAX, &value) && value) {
		attr.weight = (uint32_t)value;
		attr.valid |= GP_ATTR_WEIGHT;
	}
	if (attr_number(getenv("GPREEMPT_SHARE_PERMILLE"), ATTR_SHARE_MAX, &value)) {
		attr.share = (uint16_t)value;
		attr.valid |= GP_ATTR_SHARE;
	}
	if (attr_number(getenv("GPREEMPT_DEADLINE_NS"), GP_WIRE_TIME_MAX, &value)) {
		attr.deadline_ns = value;
		attr.valid |= GP_ATTR_DEADLINE;
	}
	if (attr_number(getenv("GPREEMPT_BUDGET_NS"), GP_WIRE_TIME_MAX, &value)) {
		attr.budget_ns = value;
		attr.valid |= GP_ATTR_BUDGET;
	}
	if (attr_number(getenv("GPREEMPT_PROTECT"), ATTR_PROTECT_MAX, &value) && value) {
		attr.protect = (uint16_t)value;
		attr.valid |= GP_ATTR_PROTECT;
	}
	if (getenv("GPREEMPT_GANG")) {
		gp_attr_name(attr.gang, getenv("GPREEMPT_GANG"));
		attr.valid |= GP_ATTR_GANG;
	}
	*ret_attr = attr;
}

static const char *const attr_class_names[GP_STREAM_COUNT] = { "low", "normal", "high" };

/* One "name=value", up to a comma or the end. */
static int attr_class_parse(struct gp_stream_map *map, uint32_t *seen, const char *text, size_t length)
{
	for (uint32_t i = 0; i < GP_STREAM_COUNT; i++) {
		size_t name = strlen(attr_class_names[i]);
		int32_t value = 0, sign = 0;

		if (length <= name + 1u || strncmp(text, attr_class_names[i], name) != 0 || text[name] != '=')
			continue;
		if (*seen & 1u << i)
			return -EINVAL;
		text += name + 1u;
		length -= name + 1u;
		if (*text == '+' || *text == '-') {
			sign = *text == '-' ? -1 : 1;
			text++;
			length--;
		}
		if (!length || length > 2u)
			return -EINVAL;
		for (; length; length--, text++) {
			if (*text < '0' || *text > '9')
				return -EINVAL;
			value = value * 10 + (*text - '0');
		}
		map->classes[i].value = sign < 0 ? -value : value;
		map->classes[i].absolute = !sign;
		*seen |= 1u << i;
		return 0;
	}
	return -EINVAL;
}

int gp_stream_map_parse(struct gp_stream_map *map, const char *text)
{
	struct gp_stream_map parsed = *map;
	uint32_t seen = 0;

	for (;;) {
		const char *end = text + strcspn(text, ",");

		if (attr_class_parse(&parsed, &seen, text, (size_t)(end - text)) < 0)
			return -EINVAL;
		if (!*end)
			break;
		text = end + 1;
	}
	*map = parsed;
	return 0;
}

enum gp_stream_class gp_stream_class_of(uint32_t hw_priority)
{
	return hw_priority < 7u ? GP_STREAM_LOW : hw_priority < 11u ? GP_STREAM_NORMAL : GP_STREAM_HIGH;
}

bool gp_stream_priority(const struct gp_stream_map *map, uint32_t hw_priority, int32_t process_priority,
			int32_t *ret_priority)
{
	enum gp_stream_class class = gp_stream_class_of(hw_priority);
	int32_t value = map->classes[class].value;

	if (!map->classes[class].absolute) {
		if (!value)
			return false;
		value += process_priority;
	}
	*ret_priority = value < 0 ? 0 : value > ATTR_PRIORITY_MAX ? ATTR_PRIORITY_MAX : value;
	return true;
}
