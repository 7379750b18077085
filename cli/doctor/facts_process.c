/* SPDX-License-Identifier: MIT */
/* Owns what is known of the processes that use KFD: their queues (/sys/class/kfd/kfd/proc), environment and HIP
 * version. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/clean.h"
#include "cli/doctor/facts.h"
#include "lib/aside.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/living.h"

#define PROCESS_FOLDER    "/sys/class/kfd/kfd/proc"
#define PROCESS_FILE_SIZE (16u << 20)
#define PROCESS_QUEUES    1024u /* of one process, as KFD has it */

/* KFD's queue types as sysfs prints them. */
static bool process_type_is_compute(uint64_t type)
{
	return type == 0 || type == 2;
}

static struct gp_facts_gpu *process_gpu(struct gp_doctor_facts *facts, uint64_t gpu_id)
{
	for (uint32_t i = 0; i < facts->gpu_count; i++)
		if (facts->gpus[i].gpu_id == gpu_id)
			return &facts->gpus[i];
	return NULL;
}

static void process_queues(struct gp_doctor_facts *facts, const char *root, struct gp_facts_process *process)
{
	bool is_counted[GP_FACTS_GPU_MAX] = { false };
	struct dirent *entry;
	char path[512];
	DIR *folder;
	uint32_t left = PROCESS_QUEUES;

	(void)snprintf(path, sizeof(path), "%s" PROCESS_FOLDER "/%llu/queues", root, (unsigned long long)process->pid);
	folder = opendir(path);
	if (!folder)
		return;
	while (left && (entry = readdir(folder))) {
		struct gp_facts_gpu *gpu;
		char file[256];
		bool is_compute;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		left--;
		(void)snprintf(file, sizeof(file), PROCESS_FOLDER "/%llu/queues/%.16s/gpuid",
			       (unsigned long long)process->pid, entry->d_name);
		gpu = process_gpu(facts, gp_facts_number(root, file));
		(void)snprintf(file, sizeof(file), PROCESS_FOLDER "/%llu/queues/%.16s/type",
			       (unsigned long long)process->pid, entry->d_name);
		is_compute = process_type_is_compute(gp_facts_number(root, file));
		process->compute_count += is_compute;
		if (!gpu)
			continue;
		gpu->compute_count += is_compute;
		gpu->copy_count += !is_compute;
		if (!is_counted[gpu - facts->gpus])
			gpu->process_count++;
		is_counted[gpu - facts->gpus] = true;
	}
	closedir(folder);
}

bool gp_facts_look(struct gp_doctor_facts *facts, void (*function)(void *look), struct gp_facts_look *look, size_t size)
{
	char path[GP_FACTS_PATH_SIZE + 32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/proc/%llu", look->root, (unsigned long long)look->pid);
	/* The user of the process is who may hold helpers up. */
	if (stat(path, &st) || !gp_aside_call(st.st_uid, function, look, size))
		return true;
	facts->locked_pid = facts->locked_count++ ? facts->locked_pid : look->pid;
	return false;
}

void gp_facts_process_path(const char *root, uint64_t pid, const char *name, char ret_path[GP_FACTS_PATH_SIZE])
{
	pid_t thread = gp_living_thread_under(root, (pid_t)pid);

	if (thread && thread != (pid_t)pid)
		(void)snprintf(ret_path, GP_FACTS_PATH_SIZE, "%s/proc/%d/task/%d/%s", root, (pid_t)pid, thread, name);
	else
		(void)snprintf(ret_path, GP_FACTS_PATH_SIZE, "%s/proc/%d/%s", root, (pid_t)pid, name);
}

/* One variable of a process's environment, or NULL. The block is NUL-separated and ends in a NUL of gp_file_read's. */
static const char *process_variable(const char *block, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = block; at < block + size; at += strlen(at) + 1)
		if (!strncmp(at, name, length) && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static void process_environment(struct gp_facts_process *process, const char *root)
{
	GP_AUTO_FREE char *block = NULL;
	const char *value;
	char path[GP_FACTS_PATH_SIZE];
	size_t size = 0;

	gp_facts_process_path(root, process->pid, "environ", path);
	if (gp_file_read(path, PROCESS_FILE_SIZE, &block, &size, NULL))
		return;
	process->is_environment_known = true;
	value = process_variable(block, size, "LD_PRELOAD");
	process->has_agent = value && strstr(value, "libgpreempt-agent");
	value = process_variable(block, size, "GPU_MAX_HW_QUEUES");
	if (value && *value >= '0' && *value <= '9')
		process->hw_queues = strtoull(value, NULL, 10);
	value = process_variable(block, size, "DEBUG_HIP_IGNORE_STREAM_PRIORITY");
	if (value)
		process->ignore_priority = strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

/* "…/libamdhip64.so.7.2.12345": major and minor. */
static void process_hip(struct gp_facts_process *process, const char *root)
{
	GP_AUTO_FREE char *maps = NULL;
	unsigned int major = 0;
	const char *at;
	char path[GP_FACTS_PATH_SIZE];
	size_t size = 0;

	gp_facts_process_path(root, process->pid, "maps", path);
	if (gp_file_read(path, PROCESS_FILE_SIZE, &maps, &size, NULL))
		return;
	at = strstr(maps, "libamdhip64.so.");
	if (at && sscanf(at, "libamdhip64.so.%u", &major) == 1)
		process->hip_major = major;
}

static void process_name(struct gp_facts_process *process, const char *root)
{
	GP_AUTO_FREE char *name = NULL;
	char path[512];
	size_t size = 0;

	(void)snprintf(path, sizeof(path), "%s/proc/%llu/comm", root, (unsigned long long)process->pid);
	if (gp_file_read(path, PROCESS_FILE_SIZE, &name, &size, NULL))
		return;
	name[strcspn(name, "\n")] = '\0';
	gp_clean_copy(process->name, sizeof(process->name), name);
}

struct process_look {
	struct gp_facts_look base;
	struct gp_facts_process process;
};

/* In a helper. */
static void process_look_aside(void *data)
{
	struct process_look *look = data;

	process_environment(&look->process, look->base.root);
	process_hip(&look->process, look->base.root);
	process_name(&look->process, look->base.root);
}

static void process_add(struct gp_doctor_facts *facts, const char *root, const struct gp_facts_process *process)
{
	struct process_look look = { .base.pid = process->pid, .process = *process };

	(void)snprintf(look.base.root, sizeof(look.base.root), "%s", root);
	gp_facts_look(facts, process_look_aside, &look.base, sizeof(look));
	facts->processes[facts->process_count++] = look.process;
}

void gp_facts_add_processes(struct gp_doctor_facts *facts, const char *root)
{
	struct dirent *entry;
	char path[512];
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s" PROCESS_FOLDER, root);
	folder = opendir(path);
	if (!folder)
		return;
	while ((entry = readdir(folder)) && facts->process_count < GP_FACTS_PROCESS_MAX) {
		struct gp_facts_process process = { .hw_queues = GP_FACTS_UNKNOWN,
						    .ignore_priority = GP_FACTS_UNKNOWN,
						    .hip_major = GP_FACTS_UNKNOWN };

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		process.pid = strtoull(entry->d_name, NULL, 10);
		process_queues(facts, root, &process);
		process_add(facts, root, &process);
	}
	closedir(folder);
}

void gp_facts_add_cuda(struct gp_doctor_facts *facts, const char *root, uint64_t pid)
{
	struct gp_facts_process process = { .pid = pid,
					    .is_cuda = true,
					    .hw_queues = GP_FACTS_UNKNOWN,
					    .ignore_priority = GP_FACTS_UNKNOWN,
					    .hip_major = GP_FACTS_UNKNOWN };

	process_add(facts, root, &process);
}
