/* SPDX-License-Identifier: MIT */
/* Stream maps, "low=-10,normal=+0,high=+10": what a runtime's queue priorities mean. */
#ifndef GP_STREAM_MAP_H
#define GP_STREAM_MAP_H

#include "lib/error.h"

#define GP_STREAM_MAP_SIZE 64u /* with the closing zero */

/* Programs check a map where a person gives it, because the agent that reads it has nowhere to complain. -EINVAL with a
 * sentence. */
int gp_stream_map_check(const char *text, struct gp_error *error);

#endif
