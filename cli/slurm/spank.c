/* SPDX-License-Identifier: MIT */
/*
 * Slurm's plugin: srun, sbatch and salloc get --gpu-priority, and a job's programs get that priority before they start.
 *
 *   plugstack.conf: required /usr/lib/x86_64-linux-gnu/gpreempt/spank_gpreempt.so [conf=FILE]
 *
 * It runs in Slurm's own processes: in commands of users, where it can only be polite (a user may run others), and in
 * slurmstepd as root, where what it decides counts. A daemon that is missing, or too old for grants, never keeps a job
 * from running: the job then runs without what it asked for and a line says so. What a job may not have keeps it from
 * running.
 */
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include "cli/attr.h"
#include "cli/slurm/ceiling.h"

SPANK_PLUGIN(gpreempt, 1);

#define SPANK_VARIABLE \
	"GPREEMPT_PRIORITY" /* gpreempt.lua reads it when a job is submitted, epilogs find it as SPANK_… */
#define SPANK_ENV_SIZE 8192u

static struct gp_slurm_conf conf;
static bool is_configured;
static int32_t asked = -1; /* by the option; -1: not */
static int32_t allowed;    /* in slurmstepd, once decided */
static char job_qos[GP_SLURM_NAME_SIZE], job_partition[GP_SLURM_NAME_SIZE];

static int spank_on_option(int value, const char *text, int remote)
{
	struct gp_error error;

	(void)value, (void)remote;
	if (!text || gp_attr_priority(text, &asked, &error)) {
		slurm_error("--gpu-priority: %s", text ? error.text : "a priority must follow");
		return -1;
	}
	return 0;
}

static struct spank_option spank_priority = {
	(char *)"gpu-priority",
	(char *)"P",
	(char *)"GPU priority: 0..99 or idle, low, normal, high, realtime; 99 is the most urgent",
	1,
	0,
	spank_on_option
};

/* The file once in each process. A file that makes no sense lets nobody above the default. */
static void spank_configure(int ac, char **av)
{
	const char *path = GP_SLURM_CONF;
	struct gp_error error;
	int r;

	if (is_configured)
		return;
	is_configured = true;
	for (int i = 0; i < ac; i++)
		if (!strncmp(av[i], "conf=", 5))
			path = av[i] + 5;
	(void)gp_slurm_conf_parse("", 0, path, &conf, &error);
	r = gp_slurm_conf_read(path, &conf, &error);
	if (r && r != -ENOENT)
		slurm_error("gpreempt: %s; every job has the ceiling %d", error.text, (int)conf.ceiling);
	allowed = conf.ceiling;
}

int slurm_spank_init(spank_t sp, int ac, char **av)
{
	spank_configure(ac, av);
	return spank_option_register(sp, &spank_priority) == ESPANK_SUCCESS ? 0 : -1;
}

/* What slurmctld says of a job. Where it cannot be asked, everybody's ceiling holds. */
static void spank_decide(uint32_t job)
{
	job_info_msg_t *info = NULL;

	if (slurm_load_job(&info, job, 0) || !info || !info->record_count) {
		slurm_error("gpreempt: slurmctld does not tell the QOS of job %u: its ceiling is %d", job,
			    (int)conf.ceiling);
		allowed = conf.ceiling;
	} else {
		const slurm_job_info_t *record = &info->job_array[0];

		(void)snprintf(job_qos, sizeof(job_qos), "%s", record->qos ? record->qos : "");
		(void)snprintf(job_partition, sizeof(job_partition), "%s", record->partition ? record->partition : "");
		allowed = gp_slurm_ceiling(&conf, record->qos, record->partition);
	}
	if (info)
		slurm_free_job_info_msg(info);
}

static int spank_refuse(void)
{
	slurm_error("gpreempt: --gpu-priority=%d is above the ceiling %d of QOS '%s' and partition '%s'; "
		    "ask for at most %d or use another QOS",
		    (int)asked, (int)allowed, job_qos, job_partition, (int)allowed);
	return -1;
}

/* In srun, sbatch and salloc: tells slurmctld, where gpreempt.lua can refuse the job, and the epilog. An srun inside a
 * job makes a step, of which slurmctld is not asked: it is refused here, before there is one. (A step that is refused
 * later keeps its share of the job until the job ends.) */
int slurm_spank_init_post_opt(spank_t sp, int ac, char **av)
{
	const char *job = getenv("SLURM_JOB_ID");
	char text[16];

	(void)ac, (void)av;
	if (asked < 0 || (spank_context() != S_CTX_LOCAL && spank_context() != S_CTX_ALLOCATOR))
		return 0;
	(void)snprintf(text, sizeof(text), "%d", (int)asked);
	(void)spank_job_control_setenv(sp, SPANK_VARIABLE, text, 1);
	if (spank_context() != S_CTX_LOCAL || !job || strtoul(job, NULL, 10) == 0)
		return 0;
	spank_decide((uint32_t)strtoul(job, NULL, 10));
	return asked > allowed ? spank_refuse() : 0;
}

/* In srun, once the job is known and before anything starts, where a site has no gpreempt.lua: its status tells. */
int slurm_spank_local_user_init(spank_t sp, int ac, char **av)
{
	uint32_t job = 0;

	(void)ac, (void)av;
	if (asked < 0 || spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return 0;
	spank_decide(job);
	return asked > allowed ? spank_refuse() : 0;
}

/* In slurmstepd, as the user: slurmctld is asked once for all tasks. A job that asked for nothing is never refused: the
 * site's default is lowered to the ceiling of its QOS. */
int slurm_spank_user_init(spank_t sp, int ac, char **av)
{
	bool is_default = asked < 0;
	uint32_t job = 0;

	(void)ac, (void)av;
	if (is_default && conf.fallback < 0)
		return 0;
	if (spank_get_item(sp, S_JOB_ID, &job) == ESPANK_SUCCESS)
		spank_decide(job);
	if (is_default)
		asked = gp_slurm_default(&conf, allowed);
	return 0;
}

/* Runs a command to its end, silently; its status, or -errno. */
static int spank_run(char *const *argv)
{
	posix_spawn_file_actions_t actions;
	int status = 0, r;
	pid_t pid;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
	r = -posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* The tasks of a step on this node work together: one that is closed would be waited for by the others. */
static bool spank_gang(spank_t sp, char *ret_name, size_t size)
{
	uint32_t job = 0, step = 0, tasks = 0;

	if (spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS || tasks < 2)
		return false;
	(void)snprintf(ret_name, size, "slurm-%u.%u", job, step);
	return true;
}

/* Before the task is a client, and for what it starts: its user's own ceiling in the daemon may be lower. */
static void spank_grant(spank_t sp, uint32_t job)
{
	char priority[16], ceiling[16], tag[48], gang[48], pid[16];
	const char *argv[16] = { conf.command[0] ? conf.command : GP_SLURM_COMMAND,
				 "grant",
				 "add",
				 "-q",
				 "-p",
				 priority,
				 "--ceiling",
				 ceiling,
				 "--tag",
				 tag };
	int count = 10, r;

	(void)snprintf(priority, sizeof(priority), "%d", (int)asked);
	(void)snprintf(ceiling, sizeof(ceiling), "%d", (int)allowed);
	(void)snprintf(tag, sizeof(tag), "slurm-%u", job);
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (spank_gang(sp, gang, sizeof(gang))) {
		argv[count++] = "--gang";
		argv[count++] = gang;
	}
	argv[count] = pid;
	if (conf.socket[0])
		setenv("GPREEMPT_SOCKET", conf.socket, 1);
	r = spank_run((char *const *)argv);
	if (r)
		slurm_error(
			"gpreempt: no grant from the daemon (%s grant: %d): the job runs with its user's own ceiling",
			argv[0], r);
}

/* In each task, still root: what a user gave may have come past srun and sbatch. */
int slurm_spank_task_init_privileged(spank_t sp, int ac, char **av)
{
	uint32_t job = 0;

	(void)ac, (void)av;
	if (asked < 0)
		return 0;
	if (asked > allowed)
		return spank_refuse();
	if (spank_get_item(sp, S_JOB_ID, &job) == ESPANK_SUCCESS)
		spank_grant(sp, job);
	return 0;
}

/* Last in a list of the user's own: LD_PRELOAD has colons, ROCr's HSA_TOOLS_LIB blanks. */
static void spank_join(spank_t sp, const char *name, char separator, const char *item)
{
	char before[SPANK_ENV_SIZE], joined[SPANK_ENV_SIZE + GP_SLURM_PATH_SIZE + 1];
	spank_err_t r = spank_getenv(sp, name, before, sizeof(before));

	if (r == ESPANK_NOSPACE) {
		slurm_error("gpreempt: %s is longer than %u bytes: the agent is not loaded", name, SPANK_ENV_SIZE);
		return;
	}
	if (r != ESPANK_SUCCESS || !*before)
		(void)snprintf(joined, sizeof(joined), "%s", item);
	else if (strstr(before, item))
		return;
	else
		(void)snprintf(joined, sizeof(joined), "%s%c%s", before, separator, item);
	(void)spank_setenv(sp, name, joined, 1);
}

int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
	const char *agent = conf.agent[0] ? conf.agent : GP_SLURM_AGENT;
	char text[16], gang[48];

	(void)ac, (void)av;
	if (asked < 0)
		return 0;
	if (access(agent, R_OK)) {
		slurm_error("gpreempt: the agent %s cannot be read on this node: the job runs without a GPU priority",
			    agent);
		return 0;
	}
	spank_join(sp, "LD_PRELOAD", ':', agent);
	spank_join(sp, "HSA_TOOLS_LIB", ' ', agent);
	(void)snprintf(text, sizeof(text), "%d", (int)asked);
	(void)spank_setenv(sp, "GPREEMPT_PRIORITY", text, 1);
	(void)spank_setenv(sp, "DEBUG_HIP_IGNORE_STREAM_PRIORITY", "0", 0);
	if (spank_gang(sp, gang, sizeof(gang)))
		(void)spank_setenv(sp, "GPREEMPT_GANG", gang, 0); /* the user's own goes before */
	if (conf.socket[0])
		(void)spank_setenv(sp, "GPREEMPT_SOCKET", conf.socket, 1);
	return 0;
}
