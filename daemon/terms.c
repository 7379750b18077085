/* SPDX-License-Identifier: MIT */
/* Owns the order in which rules and grants count, and how a rule is written. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/cgroup.h"
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "lib/units.h"

#define TERMS_WORDS 512u /* bytes of a rule */

void gp_attr_overlay(struct gp_wire_attr *attr, const struct gp_wire_attr *over)
{
	if (over->valid & GP_ATTR_PRIORITY)
		attr->priority = over->priority;
	if (over->valid & GP_ATTR_WEIGHT)
		attr->weight = over->weight;
	if (over->valid & GP_ATTR_SHARE)
		attr->share = over->share;
	if (over->valid & GP_ATTR_DEADLINE)
		attr->deadline_ns = over->deadline_ns;
	if (over->valid & GP_ATTR_BUDGET)
		attr->budget_ns = over->budget_ns;
	if (over->valid & GP_ATTR_PROTECT)
		attr->protect = over->protect;
	if (over->valid & GP_ATTR_GANG)
		memcpy(attr->gang, over->gang, sizeof(attr->gang));
	attr->valid |= over->valid;
}

void gp_terms_init(struct gp_terms *terms)
{
	*terms = (struct gp_terms){ .ceiling = -1 };
}

static void terms_lift(struct gp_terms *terms, const struct gp_wire_attr *attr)
{
	if (terms->ceiling >= 0 && attr->valid & GP_ATTR_PRIORITY && attr->priority > terms->ceiling)
		terms->ceiling = attr->priority;
}

void gp_terms_overlay(struct gp_terms *terms, const struct gp_terms *over)
{
	gp_attr_overlay(&terms->attr, &over->attr);
	gp_attr_overlay(&terms->forced, &over->forced);
	if (over->ceiling >= 0)
		terms->ceiling = over->ceiling;
	/* A rule or grant that gives a priority also allows it, under a lower ceiling that another one set for a larger
	 * group. */
	terms_lift(terms, &over->attr);
	terms_lift(terms, &over->forced);
	if (*over->tag)
		memcpy(terms->tag, over->tag, sizeof(terms->tag));
}

/* Replaces %c by the cgroup's name. If the result is too long, its beginning is cut off: names differ at the end. */
static void terms_expand(char *text, size_t size, const char *name)
{
	char whole[2 * GP_WIRE_NAME_SIZE];
	const char *at = strstr(text, "%c");
	size_t length;

	if (!at)
		return;
	snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(at - text), text, name, at + 2);
	length = strlen(whole);
	memset(text, 0, size);
	memcpy(text, whole + (length < size ? 0 : length - size + 1), length < size ? length : size - 1);
}

void gp_terms_find(const struct gp_daemon *daemon, const struct gp_client *client, struct gp_terms *ret_terms)
{
	const char *cgroups = client->identity.cgroups ? client->identity.cgroups : "";
	char name[GP_WIRE_NAME_SIZE];

	gp_terms_init(ret_terms);
	for (uint32_t i = 0; *cgroups && i < daemon->config.rule_count; i++) {
		const struct gp_cgroup_rule *rule = &daemon->config.rules[i];
		struct gp_terms terms = rule->terms;

		if (!gp_cgroup_matches(cgroups, rule->pattern, name, sizeof(name)))
			continue;
		terms_expand(terms.attr.gang, sizeof(terms.attr.gang), name);
		terms_expand(terms.tag, sizeof(terms.tag), name);
		gp_terms_overlay(ret_terms, &terms);
	}
	gp_grant_overlay(daemon, cgroups, ret_terms);
	gp_terms_overlay(ret_terms, &client->by_pid);
}

static int rule_name(char *field, size_t size, const char *word, const char *value, struct gp_error *error)
{
	if (!*value || strlen(value) >= size)
		return gp_error_set(error, -EINVAL, "%s: a name has 1 to %zu bytes", word, size - 1);
	memset(field, 0, size);
	memcpy(field, value, strlen(value));
	return 0;
}

static int rule_word(struct gp_terms *terms, const char *word, const char *value, struct gp_error *error)
{
	uint64_t number;
	uint32_t share = 0;
	int r;

	if (!strcmp(word, "priority")) {
		terms->attr.valid |= GP_ATTR_PRIORITY;
		return gp_config_priority(word, value, &terms->attr.priority, error);
	}
	if (!strcmp(word, "ceiling"))
		return gp_config_priority(word, value, &terms->ceiling, error);
	if (!strcmp(word, "weight")) {
		r = gp_units_parse_count(value, word, 1, GP_WEIGHT_MAX, &number, error);
		terms->attr.weight = r ? 0 : (uint32_t)number;
		terms->attr.valid |= GP_ATTR_WEIGHT;
		return r;
	}
	if (!strcmp(word, "share")) {
		terms->attr.valid |= GP_ATTR_SHARE;
		r = gp_units_parse_share(value, word, &share, error);
		terms->attr.share = (uint16_t)share;
		return r;
	}
	if (!strcmp(word, "protect")) {
		enum gp_protect protect = GP_PROTECT_DEFAULT;

		r = gp_config_protect(value, &protect, error);
		terms->attr.protect = (uint16_t)protect;
		terms->attr.valid |= GP_ATTR_PROTECT;
		return r;
	}
	if (!strcmp(word, "gang")) {
		terms->attr.valid |= GP_ATTR_GANG;
		return rule_name(terms->attr.gang, sizeof(terms->attr.gang), word, value, error);
	}
	if (!strcmp(word, "tag"))
		return rule_name(terms->tag, sizeof(terms->tag), word, value, error);
	return gp_error_set(error, -EINVAL, "'%s' is not priority, ceiling, share, weight, protect, gang or tag", word);
}

int gp_rule_parse(struct gp_cgroup_rule *rule, const char *pattern, const char *text, struct gp_error *error)
{
	char words[TERMS_WORDS], *rest = words, *part, *value;
	int r;

	gp_terms_init(&rule->terms);
	r = gp_cgroup_pattern(pattern, rule->pattern, sizeof(rule->pattern), &rule->depth, error);
	if (r)
		return r;
	if (strlen(text) >= sizeof(words))
		return gp_error_set(error, -EINVAL, "a rule has at most %u bytes", TERMS_WORDS - 1);
	memcpy(words, text, strlen(text) + 1);
	while ((part = strsep(&rest, ","))) {
		part += strspn(part, " \t");
		value = part + strcspn(part, " \t");
		if (*value)
			*value++ = '\0';
		value += strspn(value, " \t");
		value[strcspn(value, " \t")] = '\0';
		r = rule_word(&rule->terms, part, value, error);
		if (r)
			return r;
	}
	if (rule->terms.ceiling >= 0 && rule->terms.attr.valid & GP_ATTR_PRIORITY &&
	    rule->terms.attr.priority > rule->terms.ceiling)
		return gp_error_set(error, -EINVAL, "priority %d is above the ceiling of %d", rule->terms.attr.priority,
				    rule->terms.ceiling);
	return 0;
}
