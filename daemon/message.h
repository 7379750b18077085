/* SPDX-License-Identifier: MIT */
/* The boundary: one packet from a peer is a well-formed message of a known type, or the daemon refuses it with a
 * sentence. After this no code checks a size, a count, a string or a range again. Checks that need the daemon's state
 * (does the slot exist, is the generation newer) are made where that state is. */
#ifndef GP_DAEMON_MESSAGE_H
#define GP_DAEMON_MESSAGE_H

#include <stddef.h>
#include <gpreempt/control.h>
#include "lib/error.h"

/* data: aligned for uint64_t, size as received. Returns the type (positive), or -EPROTO, and a sentence. */
int gp_message_check(const void *data, size_t size, struct gp_error *error);
/* 0, or -EINVAL and a sentence: valid fields are in their ranges. */
int gp_message_check_attr(const struct gp_wire_attr *attr, struct gp_error *error);
/* 0, or -EINVAL and a sentence. The code that carries the grant out calls it: a wrong grant is answered and does not
 * end the connection. */
#define GP_GRANT_NS_MAX (10ull * 366 * 86400 * 1000000000)
int gp_message_check_grant(const struct gp_control_grant *grant, struct gp_error *error);

#endif
