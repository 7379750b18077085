/* SPDX-License-Identifier: MIT */
/* Priorities and the other attributes as people type them: shared by `gpreempt run` and `gpreempt set`. */
#ifndef GP_CLI_ATTR_H
#define GP_CLI_ATTR_H

#include <gpreempt/wire.h>
#include <stddef.h>
#include "lib/error.h"

#define GP_ATTR_PRIORITY_MAX 99
#define GP_ATTR_WEIGHT_MAX   10000u

/* "99 = most urgent" and the names, for help texts. */
extern const char gp_attr_help[];

/* 0..99 or a name; the sentence of a refusal says which way the numbers go. */
int gp_attr_priority(const char *text, int32_t *ret_priority, struct gp_error *error);
/* "80 (high)" for a value that has a name, else the number; returns buffer. 24 bytes suffice. */
const char *gp_attr_priority_text(int32_t priority, char *buffer, size_t buffer_size);
const char *gp_attr_priority_name(unsigned int index, int32_t *ret_priority); /* NULL: no more */

/* The long options of an attribute. */
enum gp_attr_option {
	GP_ATTR_OPTION_WEIGHT = 512,
	GP_ATTR_OPTION_DEADLINE,
	GP_ATTR_OPTION_BUDGET,
	GP_ATTR_OPTION_GANG,
	GP_ATTR_OPTION_SHARE,
	GP_ATTR_OPTION_PROTECT
};
#define GP_ATTR_OPTIONS                                                                                             \
	{ "priority", required_argument, NULL, 'p' }, { "weight", required_argument, NULL, GP_ATTR_OPTION_WEIGHT }, \
		{ "deadline", required_argument, NULL, GP_ATTR_OPTION_DEADLINE },                                   \
		{ "budget", required_argument, NULL, GP_ATTR_OPTION_BUDGET },                                       \
		{ "share", required_argument, NULL, GP_ATTR_OPTION_SHARE },                                         \
		{ "protect", required_argument, NULL, GP_ATTR_OPTION_PROTECT },                                     \
	{                                                                                                           \
		"gang", required_argument, NULL, GP_ATTR_OPTION_GANG                                                \
	}
/* Takes one of them into attr. -ENOENT: not such an option; -EINVAL with a sentence. */
int gp_attr_take(struct gp_wire_attr *attr, int option, const char *value, struct gp_error *error);

#endif
