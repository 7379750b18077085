/* SPDX-License-Identifier: MIT */
/* Owns the environment that carries the agent and the user's wishes into the program. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/run_env.h"
#include "lib/paths.h"

#define ENV_AGENT_NAME "libgpreempt-agent.so"

/* A library that others can write would run their code as us. In a sticky folder they cannot replace what is ours. */
static bool env_is_ours(const char *path)
{
	struct stat st;

	if (stat(path, &st) || (st.st_uid != 0 && st.st_uid != geteuid()))
		return false;
	return !(st.st_mode & S_IWOTH) || (S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX);
}

static int env_check_agent(const char *found, char *ret_path, size_t size, struct gp_error *error)
{
	char real[PATH_MAX], *slash;
	struct stat st;

	if (!realpath(found, real) || stat(real, &st))
		return gp_error_set(error, -ENOENT, "the agent %s cannot be opened: %s", found, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return gp_error_set(error, -EINVAL, "the agent %s is not a file", real);
	if (strpbrk(real, " :\"\\\t\n") || strlen(real) >= size)
		return gp_error_set(error, -EINVAL,
				    "the agent %s: the loader cannot preload a name with blanks, colons or quotes",
				    real);
	if (!env_is_ours(real))
		return gp_error_set(
			error, -EPERM,
			"the agent %s can be written by all users, or belongs to another user: gpreempt does not load it",
			real);
	(void)snprintf(ret_path, size, "%s", real);
	slash = strrchr(real, '/');
	*slash = '\0';
	if (!env_is_ours(*real ? real : "/"))
		return gp_error_set(
			error, -EPERM,
			"the folder of the agent, %s, can be written by all users, or belongs to another user: gpreempt does not load it",
			real);
	return 0;
}

int gp_run_env_agent(char *ret_path, size_t size, struct gp_error *error)
{
	/* As seen from libexec/gpreempt, from the build tree's cli/. */
	static const char *const places[] = { GP_LIB_FROM_LIBEXEC, "../agent" };
	const char *own = getenv("GPREEMPT_AGENT_PATH");
	char folder[PATH_MAX], path[PATH_MAX + 256];

	if (own && *own)
		return env_check_agent(own, ret_path, size, error);
	if (gp_paths_self(folder, sizeof(folder)))
		return gp_error_set(error, -ENOENT, "/proc is needed to find the agent");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s/" ENV_AGENT_NAME, folder, places[i]);
		if (!access(path, F_OK))
			return env_check_agent(path, ret_path, size, error);
	}
	return gp_error_set(error, -ENOENT, "the agent (%s) was not found beside %s; GPREEMPT_AGENT_PATH names it",
			    ENV_AGENT_NAME, folder);
}

/* Whether `list`, separated by any of `separators`, has `item`. */
static bool env_list_has(const char *list, const char *separators, const char *item)
{
	size_t size = strlen(item);

	for (const char *at = list; *at;) {
		size_t part = strcspn(at, separators);

		if (part == size && !memcmp(at, item, size))
			return true;
		at += part;
		at += strspn(at, separators);
	}
	return false;
}

/* Last, so that those who insist on being first (sanitizers) are. LD_PRELOAD is separated by colons or blanks, ROCr
 * separates HSA_TOOLS_LIB by blanks alone and knows quotes; the agent's name needs none. */
static int env_append(const char *name, const char *separators, const char *item, struct gp_error *error)
{
	const char *before = getenv(name);
	char *value = NULL;
	int r;

	if (before && env_list_has(before, separators, item))
		return 0;
	if (!before || !*before) {
		r = setenv(name, item, 1);
	} else {
		if (asprintf(&value, "%s%c%s", before, separators[0], item) < 0)
			return gp_error_set(error, -ENOMEM, "out of memory");
		r = setenv(name, value, 1);
		free(value);
	}
	return r ? gp_error_set(error, -ENOMEM, "%s cannot be set: %s", name, strerror(errno)) : 0;
}

static int env_number(const char *name, uint64_t value, struct gp_error *error)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return setenv(name, text, 1) ? gp_error_set(error, -ENOMEM, "%s cannot be set", name) : 0;
}

/* The program may change its folder before the agent connects. */
static int env_socket(struct gp_error *error)
{
	const char *path = getenv(GP_WIRE_SOCKET_ENV);
	char folder[PATH_MAX], full[2 * PATH_MAX];

	if (!path || !*path || *path == '/' || !getcwd(folder, sizeof(folder)))
		return 0;
	(void)snprintf(full, sizeof(full), "%s/%s", folder, path);
	return setenv(GP_WIRE_SOCKET_ENV, full, 1) ? gp_error_set(error, -ENOMEM, "out of memory") : 0;
}

int gp_run_env_apply(const struct gp_run_env *env, struct gp_error *error)
{
	const struct gp_wire_attr *attr = env->attr;
	int r = env_socket(error);

	if (!r && env->agent_path) {
		r = env_append("LD_PRELOAD", ": ", env->agent_path, error);
		r = r ? r : env_append("HSA_TOOLS_LIB", " ", env->agent_path, error);
		/* HIP drops stream priorities by default since 2026-07; the agent wants to see them. */
		if (!r && setenv("DEBUG_HIP_IGNORE_STREAM_PRIORITY", "0", 0))
			r = gp_error_set(error, -ENOMEM, "out of memory");
	}
	if (!r && attr->valid & GP_ATTR_PRIORITY)
		r = env_number("GPREEMPT_PRIORITY", (uint64_t)attr->priority, error);
	if (!r && attr->valid & GP_ATTR_WEIGHT)
		r = env_number("GPREEMPT_WEIGHT", attr->weight, error);
	if (!r && attr->valid & GP_ATTR_SHARE)
		r = env_number("GPREEMPT_SHARE_PERMILLE", attr->share, error);
	if (!r && attr->valid & GP_ATTR_DEADLINE)
		r = env_number("GPREEMPT_DEADLINE_NS", attr->deadline_ns, error);
	if (!r && attr->valid & GP_ATTR_BUDGET)
		r = env_number("GPREEMPT_BUDGET_NS", attr->budget_ns, error);
	if (!r && attr->valid & GP_ATTR_PROTECT)
		r = env_number("GPREEMPT_PROTECT", attr->protect, error);
	if (!r && attr->valid & GP_ATTR_GANG && setenv("GPREEMPT_GANG", attr->gang, 1))
		r = gp_error_set(error, -ENOMEM, "out of memory");
	if (!r && env->stream_map && setenv("GPREEMPT_STREAM_MAP", env->stream_map, 1))
		r = gp_error_set(error, -ENOMEM, "out of memory");
	if (!r && env->hw_queues)
		r = env_number("GPU_MAX_HW_QUEUES", env->hw_queues, error);
	return r;
}
