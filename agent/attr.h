/* SPDX-License-Identifier: MIT */
/* What the process and its queues want of the scheduler: from the environment, the runtime's priorities, the API. */
#ifndef GP_AGENT_ATTR_H
#define GP_AGENT_ATTR_H

#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>

enum gp_stream_class { GP_STREAM_LOW, GP_STREAM_NORMAL, GP_STREAM_HIGH, GP_STREAM_COUNT };

/* What a priority of the runtime means: relative to the process's priority, or a priority of its own. */
struct gp_stream_map {
	struct {
		int32_t value;
		bool absolute;
	} classes[GP_STREAM_COUNT];
};

#define GP_STREAM_MAP_DEFAULT "low=-10,normal=+0,high=+10"
/* "low=-10,normal=+0,high=90", in any order, each at most once; a class that is left out keeps its value. 0, or
 * -EINVAL: map unchanged. */
int gp_stream_map_parse(struct gp_stream_map *map, const char *text);

/* hw_priority: KFD's, 0..15. */
enum gp_stream_class gp_stream_class_of(uint32_t hw_priority);

/* The queue's priority by the map; false: the queue has the process's priority. */
bool gp_stream_priority(const struct gp_stream_map *map, uint32_t hw_priority, int32_t process_priority,
			int32_t *ret_priority);

/* Reads GPREEMPT_PRIORITY and its like; skips a value that is not a number in range. */
void gp_attr_from_environment(struct gp_wire_attr *ret_attr);

/* Copies a name into a field of GP_WIRE_NAME_SIZE; cut to fit, padded with zeros. */
void gp_attr_name(char *ret_field, const char *text);

#endif
