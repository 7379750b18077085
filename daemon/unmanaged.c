/* SPDX-License-Identifier: MIT */
/*
 * Processes that use the GPU without an agent (static, setuid, not started by `gpreempt run`): found in the driver's
 * own list, /sys/class/kfd/kfd/proc. What is read there is the kernel's, but a process may end while it is being read.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/unmanaged.h"
#include "lib/kfd.h"

#define UNMANAGED_MAX       1024u
#define UNMANAGED_QUEUE_MAX 1024u
#define UNMANAGED_FRESH_NS  20000000ull
#define UNMANAGED_SHARE     50u /* of the time that it takes pass before the next one: orders wait meanwhile */
#define UNMANAGED_LATE_NS   10000000000ull /* but not longer than this */

struct unmanaged_process {
	pid_t pid;
	uid_t uid;
	uint64_t account; /* gp_owner_account() */
	char name[GP_WIRE_NAME_SIZE];
	uint32_t queue_count;
	uint64_t devices;         /* bits */
	struct gp_client *client; /* set aside with the others: [unmanaged] action = pause */
	bool seen;                /* in this scan */
};

struct gp_unmanaged_set {
	uint32_t count;
	struct unmanaged_process processes[UNMANAGED_MAX];
};

pid_t gp_process_parent(pid_t pid)
{
	char path[64], text[512], *at;
	size_t size;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stream = fopen(path, "re");
	if (!stream)
		return 0;
	size = fread(text, 1, sizeof(text) - 1, stream);
	fclose(stream);
	text[size] = '\0';
	at = strrchr(text, ')'); /* the name may contain anything, also a ')' */
	return at && at[1] ? (pid_t)strtol(at + 4, NULL, 10) : 0;
}

/* Each process of a tree is read once, however many of its descendants are asked about. */
static pid_t unmanaged_known_parent(struct gp_ancestry *ancestry, pid_t pid)
{
	uint32_t place = (uint32_t)pid % GP_ANCESTRY_SIZE;

	if (ancestry->pids[place] != pid) {
		ancestry->parents[place] = gp_process_parent(pid);
		ancestry->pids[place] = pid;
	}
	return ancestry->parents[place];
}

bool gp_process_descends(struct gp_ancestry *ancestry, pid_t pid, pid_t ancestor)
{
	for (int i = 0; i < GP_PROCESS_DEPTH && pid > 0; i++) {
		if (pid == ancestor)
			return true;
		pid = unmanaged_known_parent(ancestry, pid);
	}
	return false;
}

static bool unmanaged_number(const char *text, uint32_t *ret_number)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || number > INT32_MAX)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static uint32_t unmanaged_count_queues(pid_t pid)
{
	char path[160];
	struct dirent *entry;
	uint32_t count = 0, id;
	DIR *folder;

	snprintf(path, sizeof(path), GP_KFD_SYSFS "/proc/%d/queues", pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		count += unmanaged_number(entry->d_name, &id);
	if (folder)
		closedir(folder);
	return count;
}

bool gp_unmanaged_uses_gpu(struct gp_ancestry *ancestry, pid_t pid, uint32_t *ret_queues)
{
	DIR *folder = opendir(GP_KFD_SYSFS "/proc");
	struct dirent *entry;
	bool found = false;
	uint32_t number, queues = 0;

	while (folder && (entry = readdir(folder))) {
		if (!unmanaged_number(entry->d_name, &number) || !gp_process_descends(ancestry, (pid_t)number, pid))
			continue;
		found = true;
		queues += unmanaged_count_queues((pid_t)number);
	}
	if (folder)
		closedir(folder);
	*ret_queues = queues;
	return found;
}

static void unmanaged_name(struct gp_daemon *daemon, struct unmanaged_process *process)
{
	char path[64];
	struct stat st;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d", process->pid);
	if (!stat(path, &st))
		process->uid = st.st_uid;
	process->account = gp_process_account(daemon, process->uid, process->pid);
	snprintf(path, sizeof(path), "/proc/%d/comm", process->pid);
	stream = fopen(path, "re");
	if (stream && fgets(process->name, sizeof(process->name), stream))
		process->name[strcspn(process->name, "\n")] = '\0';
	if (stream)
		fclose(stream);
}

static bool unmanaged_queue_file(pid_t pid, uint32_t id, const char *name, uint64_t *ret_value)
{
	char path[160];

	snprintf(path, sizeof(path), GP_KFD_SYSFS "/proc/%d/queues/%u/%s", pid, id, name);
	return !gp_kfd_read_number(path, ret_value);
}

/* Its queues, counted per device; those of an adopted process are handed on. */
static void unmanaged_queues(struct gp_daemon *daemon, struct unmanaged_process *process)
{
	char path[160];
	struct dirent *entry;
	uint64_t gpu_id, type;
	uint32_t id;
	DIR *folder;

	process->queue_count = 0;
	process->devices = 0;
	snprintf(path, sizeof(path), GP_KFD_SYSFS "/proc/%d/queues", process->pid);
	folder = opendir(path);
	while (folder && process->queue_count < UNMANAGED_QUEUE_MAX && (entry = readdir(folder))) {
		struct gp_device_entry *device;

		if (!unmanaged_number(entry->d_name, &id) ||
		    !unmanaged_queue_file(process->pid, id, "gpuid", &gpu_id) ||
		    !unmanaged_queue_file(process->pid, id, "type", &type))
			continue;
		device = gp_device_find(daemon, (uint32_t)gpu_id);
		process->queue_count++;
		if (!device)
			continue;
		device->unmanaged_queues += gp_kfd_is_compute((uint32_t)type);
		device->other_queues += gp_kfd_is_compute((uint32_t)type) && !process->client;
		if (!(process->devices >> (device - daemon->devices) & 1)) {
			device->unmanaged_processes++;
			device->other_processes += !process->client;
		}
		process->devices |= 1ull << (device - daemon->devices);
		if (process->client)
			gp_adopt_queue(daemon, process->client, id, (uint32_t)gpu_id,
				       gp_kfd_is_compute((uint32_t)type));
	}
	if (folder)
		closedir(folder);
}

static bool unmanaged_is_client(const struct gp_daemon *daemon, pid_t pid)
{
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (daemon->clients[i] && daemon->clients[i]->device.pid == pid && daemon->clients[i]->peer)
			return true;
	return false;
}

static struct unmanaged_process *unmanaged_entry(struct gp_daemon *daemon, pid_t pid)
{
	struct gp_unmanaged_set *set = daemon->unmanaged;

	for (uint32_t i = 0; i < set->count; i++)
		if (set->processes[i].pid == pid)
			return &set->processes[i];
	if (set->count == UNMANAGED_MAX)
		return NULL;
	set->processes[set->count] = (struct unmanaged_process){ .pid = pid };
	unmanaged_name(daemon, &set->processes[set->count]);
	return &set->processes[set->count++];
}

static void unmanaged_process(struct gp_daemon *daemon, pid_t pid)
{
	struct unmanaged_process *process = unmanaged_entry(daemon, pid);

	if (!process)
		return;
	process->seen = true;
	if (process->client)
		gp_adopt_begin(process->client);
	unmanaged_queues(daemon, process);
	if (process->client)
		gp_adopt_end(daemon, process->client);
	else if (process->queue_count && daemon->config.unmanaged == GP_UNMANAGED_PAUSE)
		process->client = gp_adopt(daemon, process->pid, process->uid, process->name);
}

/* Those that were not found this time, and those that hold no queue: the daemon itself, rocminfo. */
static void unmanaged_forget(struct gp_daemon *daemon)
{
	struct gp_unmanaged_set *set = daemon->unmanaged;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		struct unmanaged_process *process = &set->processes[i];
		bool keep = process->seen && process->queue_count;

		if ((!keep || daemon->config.unmanaged != GP_UNMANAGED_PAUSE) && process->client) {
			gp_client_remove(daemon, process->client);
			process->client = NULL;
		}
		process->seen = false;
		if (keep)
			set->processes[kept++] = *process;
	}
	set->count = kept;
}

void gp_unmanaged_scan(struct gp_daemon *daemon)
{
	struct dirent *entry;
	uint32_t pid;
	DIR *folder;

	if (strcmp(daemon->ops->name, "kfd"))
		return;
	if (!daemon->unmanaged)
		daemon->unmanaged = calloc(1, sizeof(*daemon->unmanaged));
	daemon->scanned_ns = gp_now_ns();
	folder = daemon->unmanaged ? opendir(GP_KFD_SYSFS "/proc") : NULL;
	if (!folder)
		return;
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		device->unmanaged_queues = device->unmanaged_processes = 0;
		device->other_queues = device->other_processes = 0;
	}
	while ((entry = readdir(folder)))
		if (unmanaged_number(entry->d_name, &pid) && !unmanaged_is_client(daemon, (pid_t)pid))
			unmanaged_process(daemon, (pid_t)pid);
	closedir(folder);
	unmanaged_forget(daemon);
	for (uint32_t i = 0; i < daemon->device_count; i++)
		gp_sched_device_set_others(daemon->sched, daemon->devices[i].core, daemon->devices[i].other_queues,
					   daemon->devices[i].other_processes, gp_daemon_now_ns(daemon));
	daemon->dirty = true;
	daemon->scan_took_ns = gp_now_ns() - daemon->scanned_ns;
}

/* Reading the driver's list takes a while, and longer the more somebody has put there: who asks all the time does not
 * get it read all the time. */
static uint64_t unmanaged_next_ns(const struct gp_daemon *daemon)
{
	uint64_t rest_ns = daemon->scan_took_ns * UNMANAGED_SHARE;

	rest_ns = rest_ns < UNMANAGED_FRESH_NS ? UNMANAGED_FRESH_NS : rest_ns;
	return daemon->scanned_ns + (rest_ns < UNMANAGED_LATE_NS ? rest_ns : UNMANAGED_LATE_NS);
}

void gp_unmanaged_refresh(struct gp_daemon *daemon)
{
	if (gp_now_ns() >= unmanaged_next_ns(daemon))
		gp_unmanaged_scan(daemon);
}

/* A queue of ours came: how many slots are left for it? Others that come later are seen with the next one, or when
 * somebody asks; looking all the time would wake an idle node. */
void gp_unmanaged_want(struct gp_daemon *daemon)
{
	uint64_t at_ns = unmanaged_next_ns(daemon);

	if (!daemon->scan_next_ns || daemon->scan_next_ns > at_ns)
		daemon->scan_next_ns = at_ns;
}

void gp_unmanaged_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	bool regular = daemon->config.unmanaged == GP_UNMANAGED_PAUSE;

	if (strcmp(daemon->ops->name, "kfd")) {
		daemon->scan_next_ns = 0;
		return;
	}
	if (now_ns < daemon->scan_next_ns || (!regular && !daemon->scan_next_ns))
		return;
	daemon->scan_next_ns = regular ? now_ns + daemon->config.scan_ns : 0;
	gp_unmanaged_scan(daemon);
}

void gp_unmanaged_write(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_text *text)
{
	gp_text_open(text, "unmanaged", '[');
	for (uint32_t i = 0; daemon->unmanaged && i < daemon->unmanaged->count; i++) {
		const struct unmanaged_process *process = &daemon->unmanaged->processes[i];
		bool hidden = peer && (peer->uid != process->uid || peer->account != process->account);

		gp_text_open(text, NULL, '{');
		if (hidden) {
			gp_text_bool(text, "hidden", true);
		} else {
			gp_text_i64(text, "pid", process->pid);
			gp_text_u64(text, "uid", process->uid);
			gp_text_string(text, "name", process->name);
		}
		gp_text_u64(text, "queues", process->queue_count);
		gp_text_open(text, "gpu_ids", '[');
		for (uint32_t k = 0; k < daemon->device_count; k++)
			if (process->devices >> k & 1)
				gp_text_u64(text, NULL, daemon->devices[k].info.gpu_id);
		gp_text_close(text, ']');
		gp_text_bool(text, "paused", process->client && gp_adopt_is_paused(process->client));
		if (process->client) {
			gp_text_i64(text, "priority", process->client->attr.priority);
			gp_text_string(text, "mechanism", gp_mechanism_name(process->client->device.mechanism));
			gp_text_string(text, "mechanism_why", process->client->mechanism_why);
		}
		gp_text_close(text, '}');
	}
	gp_text_close(text, ']');
}

void gp_unmanaged_fini(struct gp_daemon *daemon)
{
	for (uint32_t i = 0; daemon->unmanaged && i < daemon->unmanaged->count; i++)
		if (daemon->unmanaged->processes[i].client)
			gp_client_remove(daemon, daemon->unmanaged->processes[i].client);
	free(daemon->unmanaged);
	daemon->unmanaged = NULL;
}
