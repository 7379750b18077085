/* SPDX-License-Identifier: MIT */
/* What root says of programs, by rule (gpreempt.conf) or by grant: attributes, a ceiling, a tag. terms.c */
#ifndef GP_DAEMON_TERMS_H
#define GP_DAEMON_TERMS_H

#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/error.h"

struct gp_client;
struct gp_config;
struct gp_daemon;

#define GP_RULE_MAX     128u
#define GP_RULE_PATTERN 256u

struct gp_terms {
	struct gp_wire_attr attr;    /* valid fields: for a program that asks for nothing */
	struct gp_wire_attr forced;  /* valid fields: whatever it asks for */
	int32_t ceiling;             /* -1: none */
	char tag[GP_WIRE_NAME_SIZE]; /* empty: none */
};

/* [cgroup] of the configuration, the shallowest first. In gang and tag %c stands for the cgroup's name. */
struct gp_cgroup_rule {
	char pattern[GP_RULE_PATTERN];
	uint32_t depth;
	struct gp_terms terms;
};

void gp_attr_overlay(struct gp_wire_attr *attr, const struct gp_wire_attr *over); /* valid fields of over win */
void gp_terms_init(struct gp_terms *terms);                                       /* nothing is set */
void gp_terms_overlay(struct gp_terms *terms, const struct gp_terms *over);       /* what over says wins */
/* "priority low, ceiling low, gang %c, tag %c": -EINVAL and a sentence. */
int gp_rule_parse(struct gp_cgroup_rule *rule, const char *pattern, const char *text, struct gp_error *error);
/* Overlays the rules for the client's cgroups, the deepest last, then the grants for them in the same order, then what
 * was granted to the process. */
void gp_terms_find(const struct gp_daemon *daemon, const struct gp_client *client, struct gp_terms *ret_terms);

#endif
