/* SPDX-License-Identifier: MIT */
/* Owns the configuration's names, ranges and defaults. Reads files; touches nothing else. */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "daemon/config.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/ini.h"
#include "lib/stream_map.h"
#include "lib/units.h"

void gp_config_init(struct gp_config *config)
{
	memset(config, 0, sizeof(*config));
	snprintf(config->socket, sizeof(config->socket), "%s", GP_WIRE_SOCKET);
	snprintf(config->backend, sizeof(config->backend), "auto");
	snprintf(config->policy, sizeof(config->policy), "hpf");
	snprintf(config->stream_map, sizeof(config->stream_map), "low=-10,normal=+0,high=+10");
	snprintf(config->state_dir, sizeof(config->state_dir), "/var/lib/gpreempt");
	config->socket_mode = 0666;
	config->socket_gid = config->see_gid = -1;
	config->lease_ns = 200000000;
	config->sample_ns = 250000;
	config->idle_sample_ns = 5000000;
	config->answer_ns = 200000000;
	config->scan_ns = 2000000000;
	config->client_max = 4096;
	config->queue_max = 16384;
	config->user_max = 512;
	config->user_queue_max = 4096;
	config->auto_gang = true;
	config->ceiling_default = GP_PRIORITY_NORMAL;
	for (uint32_t i = 0; gp_backends[i]; i++)
		config->device[i] = gp_backends[i]->defaults;
	config->unmanaged_priority = GP_PRIORITY_LOW;
}

enum config_type {
	CONFIG_TIME,  /* uint64_t, ns; min..max */
	CONFIG_US,    /* the same, and whole microseconds */
	CONFIG_COUNT, /* uint32_t; min..max */
	CONFIG_TEXT,  /* char[max] */
	CONFIG_STREAM_MAP,
	CONFIG_BOOL,
	CONFIG_GROUP,      /* int64_t gid; empty: -1 */
	CONFIG_MODE,       /* uint32_t, octal */
	CONFIG_POLICY,     /* char[max] */
	CONFIG_MECHANISMS, /* uint32_t: a set of the mechanisms of the section's backend */
	CONFIG_COUNTERS,   /* bool: fetch */
	CONFIG_UNMANAGED,
	CONFIG_PRIORITY, /* int32_t */
	CONFIG_PROTECT,
	CONFIG_GATHER, /* uint64_t, ns; min..max, or off */
};

struct config_key {
	const char *section, *name;
	enum config_type type;
	size_t offset;
	uint64_t min, max;
};

/* clang-format off */
#define KEY(section, name, type, field, min, max) { section, name, type, offsetof(struct gp_config, field), min, max }
#define PARAM(name, field) KEY("policy", name, CONFIG_TIME, param.field, 0, GP_DURATION_NS_MAX)
static const struct config_key config_keys[] = {
	KEY("daemon", "socket", CONFIG_TEXT, socket, 1, sizeof(((struct gp_config *)0)->socket)),
	KEY("daemon", "socket_mode", CONFIG_MODE, socket_mode, 0, 0777),
	KEY("daemon", "socket_group", CONFIG_GROUP, socket_gid, 0, 0),
	KEY("daemon", "see_all_group", CONFIG_GROUP, see_gid, 0, 0),
	KEY("daemon", "backend", CONFIG_TEXT, backend, 1, sizeof(((struct gp_config *)0)->backend)),
	KEY("daemon", "stream_map", CONFIG_STREAM_MAP, stream_map, 1, GP_WIRE_NAME_SIZE),
	KEY("daemon", "metrics_file", CONFIG_TEXT, metrics_file, 0, GP_CONFIG_PATH_SIZE),
	KEY("daemon", "state_dir", CONFIG_TEXT, state_dir, 0, GP_CONFIG_PATH_SIZE),
	KEY("daemon", "lease", CONFIG_TIME, lease_ns, 20000000, 60000000000),
	KEY("daemon", "sample", CONFIG_TIME, sample_ns, 20000, 1000000000),
	KEY("daemon", "idle_sample", CONFIG_TIME, idle_sample_ns, 20000, 60000000000),
	KEY("daemon", "answer_timeout", CONFIG_TIME, answer_ns, 1000000, 60000000000),
	KEY("daemon", "clients_max", CONFIG_COUNT, client_max, 1, 65536),
	KEY("daemon", "queues_max", CONFIG_COUNT, queue_max, 1, GP_QUEUE_MAX),
	KEY("daemon", "connections_per_user", CONFIG_COUNT, user_max, 1, 65536),
	KEY("daemon", "queues_per_user", CONFIG_COUNT, user_queue_max, 1, GP_QUEUE_MAX),
	KEY("daemon", "auto_gang", CONFIG_BOOL, auto_gang, 0, 0),
	KEY("policy", "policy", CONFIG_POLICY, policy, 1, 16),
	PARAM("turn", turn_ns), PARAM("min_open", min_open_ns), PARAM("linger_max", linger_max_ns),
	PARAM("age_window", age_window_ns), PARAM("age_turn", age_turn_ns), PARAM("hint_grace", hint_grace_ns),
	PARAM("rest", rest_ns),
	KEY("policy", "gather", CONFIG_GATHER, param.gather_ns, 0, GP_DURATION_NS_MAX),
	KEY("policy", "overhead", CONFIG_COUNT, param.overhead_permille, 1, 1000),
	KEY("policy", "burst", CONFIG_COUNT, param.burst, 1, GP_BURST_MAX),
	KEY("policy", "batch_clients", CONFIG_COUNT, param.batch_clients, 1, GP_BATCH_MAX),
	KEY("policy", "fail_max", CONFIG_COUNT, param.fail_max, 1, 1000),
	KEY("policy", "age_share", CONFIG_COUNT, param.age_permille, 1, 1000),
	KEY("policy", "protect", CONFIG_PROTECT, param.protect, 0, 0),
	KEY("unmanaged", "action", CONFIG_UNMANAGED, unmanaged, 0, 0),
	KEY("unmanaged", "priority", CONFIG_PRIORITY, unmanaged_priority, 0, GP_PRIORITY_MAX),
	KEY("unmanaged", "scan", CONFIG_TIME, scan_ns, 100000000, 3600000000000),
};
/* clang-format on */

/* Parses a list of mechanisms; allowed: those that the backend has. */
static int config_mechanisms(const char *text, uint32_t allowed, uint32_t *ret_mechanisms, struct gp_error *error)
{
	uint32_t mechanisms = 0, i;
	char names[128] = "";
	size_t size, used = 0;

	for (i = 0; i < GP_MECHANISM_COUNT; i++)
		if (allowed & GP_MECHANISM_BIT(i) && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
						 gp_mechanism_name(i));
	for (;; text += size + 1) {
		size = strcspn(text, ",");
		for (i = 0; i < GP_MECHANISM_COUNT; i++)
			if (allowed & GP_MECHANISM_BIT(i) && size == strlen(gp_mechanism_name(i)) &&
			    !strncmp(text, gp_mechanism_name(i), size))
				break;
		if (size == 4 && !strncmp(text, "auto", 4))
			mechanisms |= allowed;
		else if (i == GP_MECHANISM_COUNT)
			return gp_error_set(error, -EINVAL, "mechanism '%.*s': it is a list of %s, or auto", (int)size,
					    text, names);
		else
			mechanisms |= GP_MECHANISM_BIT(i);
		if (!text[size])
			break;
	}
	*ret_mechanisms = mechanisms;
	return 0;
}

static int config_bool(const char *name, const char *value, bool *ret_value, struct gp_error *error)
{
	bool yes = !strcmp(value, "yes") || !strcmp(value, "true") || !strcmp(value, "on");

	if (!yes && strcmp(value, "no") && strcmp(value, "false") && strcmp(value, "off"))
		return gp_error_set(error, -EINVAL, "%s is 'yes' or 'no', not '%s'", name, value);
	*ret_value = yes;
	return 0;
}

static int config_group(const char *value, int64_t *ret_gid, struct gp_error *error)
{
	struct group *group = *value ? getgrnam(value) : NULL;

	if (*value && !group)
		return gp_error_set(error, -EINVAL, "there is no group '%s'", value);
	*ret_gid = group ? (int64_t)group->gr_gid : -1;
	return 0;
}

static int config_policy(const char *value, char *ret_name, size_t size, struct gp_error *error)
{
	for (uint32_t i = 0; gp_policy_names[i]; i++) {
		if (!strcmp(gp_policy_names[i], value)) {
			snprintf(ret_name, size, "%s", value);
			return 0;
		}
	}
	return gp_error_set(error, -EINVAL, "there is no policy '%s' (none, rr, hpf, wfq, edf, drf)", value);
}

int gp_config_priority(const char *name, const char *value, int32_t *ret_priority, struct gp_error *error)
{
	static const struct {
		const char *name;
		int32_t priority;
	} names[] = { { "idle", GP_PRIORITY_IDLE },
		      { "low", GP_PRIORITY_LOW },
		      { "normal", GP_PRIORITY_NORMAL },
		      { "high", GP_PRIORITY_HIGH },
		      { "realtime", GP_PRIORITY_REALTIME } };
	uint64_t number;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i].name, value)) {
			*ret_priority = names[i].priority;
			return 0;
		}
	}
	if (gp_units_parse_count(value, name, 0, GP_PRIORITY_MAX, &number, error))
		return gp_error_set(error, -EINVAL, "%s: '%s' is neither 0..%d nor idle, low, normal, high, realtime",
				    name, value, GP_PRIORITY_MAX);
	*ret_priority = (int32_t)number;
	return 0;
}

static int config_mode(const char *value, uint32_t *ret_mode, struct gp_error *error)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	if (!*value || *end || mode > 0777)
		return gp_error_set(error, -EINVAL, "socket_mode '%s' is not an octal mode such as 0660", value);
	*ret_mode = (uint32_t)mode;
	return 0;
}

int gp_config_protect(const char *value, enum gp_protect *ret_protect, struct gp_error *error)
{
	for (uint32_t i = GP_PROTECT_LATENCY; gp_protect_names[i]; i++) {
		if (!strcmp(gp_protect_names[i], value)) {
			*ret_protect = (enum gp_protect)i;
			return 0;
		}
	}
	return gp_error_set(error, -EINVAL, "protect is latency, balanced or throughput, not '%s'", value);
}

/* 0 means off too; in struct gp_param 0 would mean the default. */
static int config_gather(const char *value, const struct config_key *key, uint64_t *ret_ns, struct gp_error *error)
{
	uint64_t number = 0;
	int r = strcmp(value, "off") ? gp_units_parse_ns(value, key->name, key->min, key->max, &number, error) : 0;

	if (!r)
		*ret_ns = number ? number : GP_GATHER_OFF;
	return r;
}

static int config_set(void *field, const struct config_key *key, const char *value, struct gp_error *error)
{
	uint64_t number;
	int r;

	switch (key->type) {
	case CONFIG_TIME: return gp_units_parse_ns(value, key->name, key->min, key->max, field, error);
	case CONFIG_US:
		r = gp_units_parse_ns(value, key->name, key->min, key->max, &number, error);
		if (!r && number % 1000)
			return gp_error_set(error, -EINVAL, "%s: '%s' is not a number of whole microseconds", key->name,
					    value);
		if (!r)
			*(uint64_t *)field = number;
		return r;
	case CONFIG_COUNT:
		r = gp_units_parse_count(value, key->name, key->min, key->max, &number, error);
		if (!r)
			*(uint32_t *)field = (uint32_t)number;
		return r;
	case CONFIG_STREAM_MAP:
		r = gp_stream_map_check(value, error);
		if (r)
			return r;
		/* fall through */
	case CONFIG_TEXT:
		if (strlen(value) >= key->max || (key->min && !*value))
			return gp_error_set(error, -EINVAL, "%s: empty or longer than %u bytes", key->name,
					    (unsigned int)key->max - 1);
		snprintf(field, key->max, "%s", value);
		return 0;
	case CONFIG_BOOL: return config_bool(key->name, value, field, error);
	case CONFIG_GROUP: return config_group(value, field, error);
	case CONFIG_MODE: return config_mode(value, field, error);
	case CONFIG_POLICY: return config_policy(value, field, key->max, error);
	case CONFIG_MECHANISMS:
		GP_ASSERT(gp_backend_find(key->section)); /* the key is of a backend's section */
		return config_mechanisms(value, gp_backend_find(key->section)->mechanisms, field, error);
	case CONFIG_PRIORITY: return gp_config_priority(key->name, value, field, error);
	case CONFIG_PROTECT: return gp_config_protect(value, field, error);
	case CONFIG_GATHER: return config_gather(value, key, field, error);
	case CONFIG_COUNTERS:
		if (strcmp(value, "completion") && strcmp(value, "fetch"))
			return gp_error_set(error, -EINVAL, "%s is 'completion' or 'fetch', not '%s'", key->name,
					    value);
		*(bool *)field = *value == 'f';
		return 0;
	case CONFIG_UNMANAGED:
		if (strcmp(value, "ignore") && strcmp(value, "pause"))
			return gp_error_set(error, -EINVAL, "action is 'ignore' or 'pause', not '%s'", value);
		*(enum gp_unmanaged *)field = *value == 'p' ? GP_UNMANAGED_PAUSE : GP_UNMANAGED_IGNORE;
		return 0;
	}
	return -EINVAL;
}

static int config_unknown(const char *section, const char *name, struct gp_error *error)
{
	return gp_error_set(error, -EINVAL, "[%s] has no '%s'; gpreempt.conf(5) names what it has", section, name);
}

/* user.NAME, group.NAME (a name or a number), default. A later line for the same user or group replaces the earlier
 * one. */
static int config_ceiling(struct gp_config *config, const char *name, const char *value, struct gp_error *error)
{
	struct gp_ceiling ceiling = { .is_group = !strncmp(name, "group.", 6) };
	const char *who = name + (ceiling.is_group ? 6 : 5);
	char *end = NULL;
	uint32_t i;

	if (!strcmp(name, "default"))
		return gp_config_priority(name, value, &config->ceiling_default, error);
	if (!ceiling.is_group && strncmp(name, "user.", 5))
		return gp_error_set(error, -EINVAL, "'%s' is not default, user.NAME or group.NAME", name);
	if (gp_config_priority(name, value, &ceiling.priority, error))
		return -EINVAL;
	ceiling.id = (uint32_t)strtoul(who, &end, 10);
	if (!*who || *end) {
		struct passwd *user = ceiling.is_group ? NULL : getpwnam(who);
		struct group *group = ceiling.is_group ? getgrnam(who) : NULL;

		if (!user && !group)
			return gp_error_set(error, -EINVAL, "there is no %s '%s'", ceiling.is_group ? "group" : "user",
					    who);
		ceiling.id = user ? user->pw_uid : group->gr_gid;
	}
	for (i = 0; i < config->ceiling_count; i++)
		if (config->ceilings[i].is_group == ceiling.is_group && config->ceilings[i].id == ceiling.id)
			break;
	if (i == GP_CONFIG_CEILING_MAX)
		return gp_error_set(error, -EINVAL, "more than %u ceilings", GP_CONFIG_CEILING_MAX);
	(void)snprintf(ceiling.name, sizeof(ceiling.name), "%s", name);
	config->ceilings[i] = ceiling;
	config->ceiling_count += i == config->ceiling_count;
	return 0;
}

/* Keeps the rules sorted by depth, and rules of equal depth in the order of their lines: a later rule overrides an
 * earlier one. */
static int config_rule(struct gp_config *config, const char *name, const char *value, struct gp_error *error)
{
	struct gp_cgroup_rule rule;
	uint32_t at = config->rule_count;
	int r = gp_rule_parse(&rule, name, value, error);

	if (r)
		return r;
	if (at == GP_RULE_MAX)
		return gp_error_set(error, -EINVAL, "more than %u rules for cgroups", GP_RULE_MAX);
	for (; at && config->rules[at - 1].depth > rule.depth; at--)
		config->rules[at] = config->rules[at - 1];
	config->rules[at] = rule;
	config->rule_count++;
	return 0;
}

/* NAME = the sentence: with it root confirms to have read what may happen. */
static int config_safety(struct gp_config *config, const char *name, const char *value, struct gp_error *error)
{
	if (strcmp(value, GP_SAFETY_SENTENCE))
		return gp_error_set(error, -EINVAL, "to overrule safety/%s, write: %s = " GP_SAFETY_SENTENCE, name,
				    name);
	if (config->device[0].overruled_count == GP_DEVICE_OVERRULED_MAX || strlen(name) >= GP_SAFETY_NAME_SIZE)
		return gp_error_set(error, -EINVAL, "'%s' is no entry of share/safety, or more than %u are overruled",
				    name, GP_DEVICE_OVERRULED_MAX);
	for (uint32_t i = 0; gp_backends[i]; i++)
		snprintf(config->device[i].overruled[config->device[i].overruled_count++], GP_SAFETY_NAME_SIZE, "%s",
			 name);
	return 0;
}

/* The backends that cannot do it ignore it. */
static int config_criu(struct gp_config *config, const char *value, struct gp_error *error)
{
	bool criu;
	int r = config_bool("criu", value, &criu, error);

	for (uint32_t i = 0; !r && gp_backends[i]; i++)
		config->device[i].criu = criu;
	return r;
}

/* [NAME] of a backend. */
static int config_device(struct gp_config *config, uint32_t place, const char *name, const char *value,
			 struct gp_error *error)
{
	static const enum config_type types[] = {
		[GP_DEVICE_KEY_TIME] = CONFIG_TIME,         [GP_DEVICE_KEY_US] = CONFIG_US,
		[GP_DEVICE_KEY_COUNT] = CONFIG_COUNT,       [GP_DEVICE_KEY_TEXT] = CONFIG_TEXT,
		[GP_DEVICE_KEY_COUNTERS] = CONFIG_COUNTERS, [GP_DEVICE_KEY_MECHANISMS] = CONFIG_MECHANISMS,
	};
	const struct gp_device_key *key = gp_backends[place]->keys;
	struct config_key common;

	while (key->name && strcmp(key->name, name))
		key++;
	if (!key->name)
		return config_unknown(gp_backends[place]->name, name, error);
	common = (struct config_key){ gp_backends[place]->name, key->name, types[key->type], 0, key->min, key->max };
	return config_set((char *)&config->device[place] + key->offset, &common, value, error);
}

/* A mechanism belongs to one vendor: the list sets those of each vendor of which it names one. */
static int config_mechanisms_of_all(struct gp_config *config, const char *value, struct gp_error *error)
{
	uint32_t all = 0, chosen;
	int r;

	for (uint32_t i = 0; gp_backends[i]; i++)
		all |= gp_backends[i]->mechanisms;
	r = config_mechanisms(value, all, &chosen, error);
	for (uint32_t i = 0; !r && gp_backends[i]; i++)
		if (chosen & gp_backends[i]->mechanisms)
			config->device[i].mechanisms = chosen & gp_backends[i]->mechanisms;
	return r;
}

static int config_entry(void *context, const char *section, const char *name, const char *value, uint32_t line,
			struct gp_error *error)
{
	static const char *const sections[] = { "daemon", "policy", "ceiling", "cgroup", "unmanaged", "safety" };
	bool known = gp_backend_find(section);

	(void)line;
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		known |= !strcmp(sections[i], section);
	if (!known)
		return gp_error_set(error, -EINVAL,
				    *section ? "there is no section [%s]; gpreempt.conf(5) names them" :
					       "an entry before a section%s",
				    section);
	if (!name)
		return 0;
	if (!strcmp(section, "ceiling"))
		return config_ceiling(context, name, value, error);
	if (!strcmp(section, "safety"))
		return config_safety(context, name, value, error);
	if (!strcmp(section, "unmanaged") && !strcmp(name, "criu"))
		return config_criu(context, value, error);
	if (!strcmp(section, "cgroup"))
		return config_rule(context, name, value, error);
	for (uint32_t i = 0; gp_backends[i]; i++)
		if (!strcmp(gp_backends[i]->name, section))
			return config_device(context, i, name, value, error);
	for (size_t i = 0; i < sizeof(config_keys) / sizeof(config_keys[0]); i++)
		if (!strcmp(config_keys[i].section, section) && !strcmp(config_keys[i].name, name))
			return config_set((char *)context + config_keys[i].offset, &config_keys[i], value, error);
	return config_unknown(section, name, error);
}

int gp_config_parse(struct gp_config *config, const char *text, size_t text_size, const char *file_name,
		    struct gp_error *error)
{
	return gp_ini_parse(text, text_size, file_name, config_entry, config, error);
}

int gp_config_apply(struct gp_config *config, const char *const *settings, uint32_t count, struct gp_error *error)
{
	char text[1024];
	int r = 0;

	for (uint32_t i = 0; !r && i + 1 < count; i += 2) {
		if (!strcmp(settings[i], GP_CONFIG_MECHANISM)) {
			r = config_mechanisms_of_all(config, settings[i + 1], error);
			continue;
		}
		snprintf(text, sizeof(text), "%s = %s\n", settings[i], settings[i + 1]);
		r = gp_config_parse(config, text, strlen(text), "command line", error);
	}
	return r;
}

/* Whether reading the file may block: a pipe (<(…) at the start, a fifo) or a terminal. /dev/null never blocks. */
static bool config_may_wait(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	return S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && st.st_rdev != makedev(1, 3));
}

static int config_file(struct gp_config *config, const char *path, bool is_again, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	size_t size;
	int r;

	if (config->file_count == GP_CONFIG_FILE_MAX)
		return gp_error_set(error, -E2BIG, "%s: more than %u files", path, GP_CONFIG_FILE_MAX);
	if (is_again && config_may_wait(path))
		return gp_error_set(error, -EINVAL, "%s: a pipe or terminal is read at the start only", path);
	r = gp_file_read(path, GP_CONFIG_SIZE_MAX, &text, &size, error);
	if (!r)
		r = gp_config_parse(config, text, size, path, error);
	if (!r)
		snprintf(config->files[config->file_count++], GP_CONFIG_PATH_SIZE, "%s", path);
	return r;
}

static int config_is_drop_in(const struct dirent *entry)
{
	size_t size = strlen(entry->d_name);

	return size > 5 && entry->d_name[0] != '.' && !strcmp(entry->d_name + size - 5, ".conf");
}

static int config_by_byte(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int config_read(struct gp_config *config, const char *path, bool optional, bool is_again, struct gp_error *error)
{
	const char *slash = strrchr(path, '/');
	char folder[GP_CONFIG_PATH_SIZE], file[GP_CONFIG_PATH_SIZE + 256];
	struct dirent **entries;
	int count, r = config_file(config, path, is_again, error);

	if (r == -ENOENT && optional)
		r = 0;
	if (r)
		return r;
	if (snprintf(folder, sizeof(folder), "%.*sconf.d", slash ? (int)(slash - path + 1) : 0, path) >=
	    (int)sizeof(folder))
		return gp_error_set(error, -ENAMETOOLONG, "%s: the path is too long", path);
	count = scandir(folder, &entries, config_is_drop_in, config_by_byte);
	/* A folder that cannot be read does not count as empty: the ceilings in it would be gone. */
	if (count < 0 && errno != ENOENT)
		return gp_error_set(error, -errno, "cannot read %s: %s", folder, strerror(errno));
	for (int i = 0; i < count; i++) {
		if (!r && snprintf(file, sizeof(file), "%s/%s", folder, entries[i]->d_name) >= (int)GP_CONFIG_PATH_SIZE)
			r = gp_error_set(error, -ENAMETOOLONG, "%s: the path is too long", file);
		if (!r)
			r = config_file(config, file, is_again, error);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return r;
}

int gp_config_read(struct gp_config *config, const char *path, bool optional, struct gp_error *error)
{
	return config_read(config, path, optional, false, error);
}

int gp_config_read_again(struct gp_config *config, const char *path, bool optional, struct gp_error *error)
{
	return config_read(config, path, optional, true, error);
}
