/* SPDX-License-Identifier: MIT */
/* What the administrator decides: gpreempt.conf(5). The daemon reads it at start and again at SIGHUP; an invalid file
 * changes nothing. */
#ifndef GP_DAEMON_CONFIG_H
#define GP_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <gpreempt/sched.h>
#include <gpreempt/wire.h>
#include "daemon/terms.h"
#include "device/device.h"
#include "lib/error.h"

#define GP_CONFIG_FILE        "/etc/gpreempt/gpreempt.conf"
#define GP_CONFIG_FILE_MAX    64u /* main file and drop-ins */
#define GP_CONFIG_CEILING_MAX 256u
#define GP_CONFIG_NAME_SIZE   48u
#define GP_CONFIG_PATH_SIZE   256u
#define GP_CONFIG_SIZE_MAX    (1u << 20) /* bytes of one file */

struct gp_ceiling {
	bool is_group;
	uint32_t id; /* uid or gid */
	int32_t priority;
	char name[GP_CONFIG_NAME_SIZE]; /* the key as it is written, for messages: group.video */
};

enum gp_unmanaged { GP_UNMANAGED_IGNORE, GP_UNMANAGED_PAUSE };

struct gp_config {
	/* [daemon] */
	char socket[108], backend[32], stream_map[GP_WIRE_NAME_SIZE];
	char metrics_file[GP_CONFIG_PATH_SIZE], state_dir[GP_CONFIG_PATH_SIZE];
	uint32_t socket_mode;
	int64_t socket_gid, see_gid;                                      /* -1: none */
	uint64_t lease_ns, sample_ns, idle_sample_ns, answer_ns, scan_ns; /* real time */
	uint32_t client_max, queue_max, user_max, user_queue_max;
	bool auto_gang;
	/* [policy] */
	char policy[16];
	struct gp_param param;
	/* [ceiling] */
	int32_t ceiling_default;
	struct gp_ceiling ceilings[GP_CONFIG_CEILING_MAX];
	uint32_t ceiling_count;
	/* [cgroup] */
	struct gp_cgroup_rule rules[GP_RULE_MAX];
	uint32_t rule_count;
	/* The sections of the backends, in the order of gp_backends; criu of [unmanaged], and [safety], for each. */
	struct gp_device_config device[GP_BACKEND_MAX];
	/* [unmanaged] */
	enum gp_unmanaged unmanaged;
	int32_t unmanaged_priority;
	/* The files that were read, in order. */
	char files[GP_CONFIG_FILE_MAX][GP_CONFIG_PATH_SIZE];
	uint32_t file_count;
};

void gp_config_init(struct gp_config *config);
/* Reads one text; it overrides what config has. -EINVAL and "file:line: …". */
int gp_config_parse(struct gp_config *config, const char *text, size_t text_size, const char *file_name,
		    struct gp_error *error);
/* Reads path and the *.conf of the conf.d beside it, sorted by byte. A missing file is fine if optional. */
int gp_config_read(struct gp_config *config, const char *path, bool optional, struct gp_error *error);
/* The same for a daemon that runs and must not wait: -EINVAL for a pipe or terminal, which may have no writer. */
int gp_config_read_again(struct gp_config *config, const char *path, bool optional, struct gp_error *error);
/* "[section]\nname", "value", …: they override what config has. GP_CONFIG_MECHANISM: a list of mechanisms of any
 * vendors; a vendor of which it names none keeps its own. */
#define GP_CONFIG_MECHANISM "mechanism"
int gp_config_apply(struct gp_config *config, const char *const *settings, uint32_t count, struct gp_error *error);
/* 0..99 or a name; the error's sentence begins with name. */
int gp_config_priority(const char *name, const char *value, int32_t *ret_priority, struct gp_error *error);
int gp_config_protect(const char *value, enum gp_protect *ret_protect, struct gp_error *error);

#endif
