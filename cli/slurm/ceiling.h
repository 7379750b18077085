/* SPDX-License-Identifier: MIT */
/* What the administrator lets Slurm's jobs have: /etc/slurm/gpreempt.conf. The plugin reads it on every machine, on
 * that of slurmctld gpreempt.lua does. */
#ifndef GP_CLI_SLURM_CEILING_H
#define GP_CLI_SLURM_CEILING_H

#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_SLURM_CONF      "/etc/slurm/gpreempt.conf"
#define GP_SLURM_LINES_MAX 256u
#define GP_SLURM_NAME_SIZE 64u
#define GP_SLURM_PATH_SIZE 256u

struct gp_slurm_line {
	char name[GP_SLURM_NAME_SIZE];
	int is_qos; /* else a partition */
	int32_t priority;
};

struct gp_slurm_conf {
	int32_t fallback; /* priority of jobs that ask for nothing; -1: they are left alone */
	int32_t ceiling;  /* of jobs that no line is about */
	struct gp_slurm_line lines[GP_SLURM_LINES_MAX];
	uint32_t line_count;
	char agent[GP_SLURM_PATH_SIZE], command[GP_SLURM_PATH_SIZE], socket[GP_SLURM_PATH_SIZE]; /* "": as installed */
};

/* -EINVAL and "file:line: …". */
int gp_slurm_conf_parse(const char *text, size_t size, const char *file_name, struct gp_slurm_conf *ret_conf,
			struct gp_error *error);
int gp_slurm_conf_read(const char *path, struct gp_slurm_conf *ret_conf, struct gp_error *error);
/* How urgent a job may be: by its QOS; where no line names that, by its partition; else as everybody. NULL: unknown. */
int32_t gp_slurm_ceiling(const struct gp_slurm_conf *conf, const char *qos, const char *partition);
/* The priority of a job that asks for none: the site's default, but never above what the job may have. -1: none. */
int32_t gp_slurm_default(const struct gp_slurm_conf *conf, int32_t ceiling);

#endif
