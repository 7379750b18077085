/* SPDX-License-Identifier: MIT */
/* Owns the reading of gpreempt.conf of Slurm, and who comes before whom in it. Never prints. */
#include "cli/slurm/ceiling.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/attr.h"
#include "lib/file.h"
#include "lib/ini.h"

#define CEILING_FILE_MAX (64u << 10)
#define CEILING_DEFAULT  50 /* normal, as the daemon's */

static int ceiling_line(struct gp_slurm_conf *conf, const char *name, const char *value, struct gp_error *error)
{
	struct gp_slurm_line *line = &conf->lines[conf->line_count];
	const char *dot = strchr(name, '.');
	int is_qos = !strncmp(name, "qos.", 4);

	if (!strcmp(name, "default"))
		return gp_attr_priority(value, &conf->ceiling, error);
	if (!dot || !dot[1] || (!is_qos && strncmp(name, "partition.", 10) != 0))
		return gp_error_set(error, -EINVAL, "'%s' is none of default, qos.NAME, partition.NAME", name);
	if (conf->line_count == GP_SLURM_LINES_MAX)
		return gp_error_set(error, -EINVAL, "there are more than %u lines", GP_SLURM_LINES_MAX);
	if (strlen(dot + 1) >= sizeof(line->name))
		return gp_error_set(error, -EINVAL, "the name is longer than %u bytes", GP_SLURM_NAME_SIZE - 1u);
	line->is_qos = is_qos;
	(void)snprintf(line->name, sizeof(line->name), "%s", dot + 1);
	if (gp_attr_priority(value, &line->priority, error))
		return -EINVAL;
	conf->line_count++;
	return 0;
}

static int ceiling_path(const char *value, char *path, struct gp_error *error)
{
	if (*value != '/' || strlen(value) >= GP_SLURM_PATH_SIZE || strpbrk(value, " :\"\\\t"))
		return gp_error_set(error, -EINVAL,
				    "'%s' must begin with / and have no blanks, colons, quotes or backslashes", value);
	(void)snprintf(path, GP_SLURM_PATH_SIZE, "%s", value);
	return 0;
}

static int ceiling_entry(void *context, const char *section, const char *name, const char *value, uint32_t line,
			 struct gp_error *error)
{
	struct gp_slurm_conf *conf = context;

	(void)line;
	if (strcmp(section, "ceiling") != 0 && strcmp(section, "job") != 0)
		return gp_error_set(error, -EINVAL, "'[%s]' is neither [ceiling] nor [job]", section);
	if (!name)
		return 0;
	if (!strcmp(section, "ceiling"))
		return ceiling_line(conf, name, value, error);
	if (!strcmp(name, "default")) {
		if (!strcmp(value, "none")) {
			conf->fallback = -1;
			return 0;
		}
		return gp_attr_priority(value, &conf->fallback, error);
	}
	if (!strcmp(name, "agent"))
		return ceiling_path(value, conf->agent, error);
	if (!strcmp(name, "command"))
		return ceiling_path(value, conf->command, error);
	if (!strcmp(name, "socket"))
		return ceiling_path(value, conf->socket, error);
	return gp_error_set(error, -EINVAL, "'%s' is none of default, agent, command, socket", name);
}

int gp_slurm_conf_parse(const char *text, size_t size, const char *file_name, struct gp_slurm_conf *ret_conf,
			struct gp_error *error)
{
	struct gp_slurm_conf *conf = calloc(1, sizeof(*conf));
	int r;

	if (!conf)
		return gp_error_set(error, -ENOMEM, "out of memory");
	conf->fallback = -1;
	conf->ceiling = CEILING_DEFAULT;
	r = gp_ini_parse(text, size, file_name, ceiling_entry, conf, error);
	if (!r)
		*ret_conf = *conf;
	free(conf);
	return r;
}

int gp_slurm_conf_read(const char *path, struct gp_slurm_conf *ret_conf, struct gp_error *error)
{
	char *text = NULL;
	size_t size = 0;
	int r = gp_file_read(path, CEILING_FILE_MAX, &text, &size, error);

	if (r)
		return r;
	r = gp_slurm_conf_parse(text, size, path, ret_conf, error);
	free(text);
	return r;
}

int32_t gp_slurm_ceiling(const struct gp_slurm_conf *conf, const char *qos, const char *partition)
{
	const char *const names[] = { partition, qos };

	for (int is_qos = 1; is_qos >= 0; is_qos--)
		for (uint32_t i = conf->line_count; names[is_qos] && i-- > 0;)
			if (conf->lines[i].is_qos == is_qos && !strcmp(conf->lines[i].name, names[is_qos]))
				return conf->lines[i].priority;
	return conf->ceiling;
}

int32_t gp_slurm_default(const struct gp_slurm_conf *conf, int32_t ceiling)
{
	return conf->fallback < ceiling ? conf->fallback : ceiling;
}
