/* SPDX-License-Identifier: MIT */
/*
 * Processes that use the GPU without an agent (static, setuid, not started by `gpreempt run`): found in the list that
 * the driver has, if it has one, which another thread reads (scan.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/scan.h"
#include "daemon/unmanaged.h"

#define UNMANAGED_NEW_MAX                                                                           \
	16u /* that are named after one scan: whose they are is asked for; others are with the next \
	     */
#define UNMANAGED_FRESH_NS 20000000ull
#define UNMANAGED_SHARE    50u /* of the time that it takes pass before the next one: it is a processor's time */
#define UNMANAGED_LATE_NS  10000000000ull /* but not longer than this */
#define UNMANAGED_HELLO_NS 2000000000ull  /* an agent says hello after its first queue; chosen, for a busy machine */

struct unmanaged_process {
	pid_t pid;
	uid_t uid;
	uint64_t account; /* gp_owner_account() */
	char name[GP_WIRE_NAME_SIZE];
	char origin[GP_WIRE_NAME_SIZE]; /* together.c; empty: nothing says that it belongs to others */
	bool is_rank;                   /* that this is so of a scheduled client's was said */
	uint32_t queue_count;
	uint64_t devices;         /* bits */
	struct gp_client *client; /* set aside with the others: [unmanaged] action = pause */
	bool seen;                /* in this scan */
	uint64_t found_ns;        /* in the first one */
};

struct gp_unmanaged_set {
	struct gp_scan *scan;
	uint32_t count;
	struct unmanaged_process processes[GP_SCAN_PROCESS_MAX];
};

/* Whether there is a list to look at. */
static bool unmanaged_can_look(const struct gp_daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->driver_count; i++)
		if (daemon->drivers[i].ops->processes)
			return true;
	return false;
}

/* Its queues, counted per device; those of an adopted process are handed on. */
static void unmanaged_queues(struct gp_daemon *daemon, struct unmanaged_process *process,
			     const struct gp_device_queue *queues, uint32_t queue_count)
{
	process->queue_count = queue_count;
	process->devices = 0;
	for (uint32_t i = 0; i < queue_count; i++) {
		struct gp_device_entry *device = gp_device_find(daemon, queues[i].gpu_id);

		if (!device)
			continue;
		device->unmanaged_queues += queues[i].is_compute;
		device->other_queues += queues[i].is_compute && !process->client;
		if (!(process->devices >> (device - daemon->devices) & 1)) {
			device->unmanaged_processes++;
			device->other_processes += !process->client;
		}
		process->devices |= 1ull << (device - daemon->devices);
		if (process->client)
			gp_adopt_queue(daemon, process->client, queues[i].queue_id, queues[i].gpu_id,
				       queues[i].is_compute);
	}
}

static bool unmanaged_is_client(const struct gp_daemon *daemon, pid_t pid)
{
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (daemon->clients[i] && daemon->clients[i]->device.pid == pid && daemon->clients[i]->peer)
			return true;
	return false;
}

/* NULL: too many are new at once. */
static struct unmanaged_process *unmanaged_entry(struct gp_daemon *daemon, const struct gp_scan_process *found,
						 uint32_t *new_count)
{
	struct gp_unmanaged_set *set = daemon->unmanaged;

	for (uint32_t i = 0; i < set->count; i++)
		if (set->processes[i].pid == found->pid)
			return &set->processes[i];
	if (set->count == GP_SCAN_PROCESS_MAX || *new_count == UNMANAGED_NEW_MAX)
		return NULL;
	++*new_count;
	set->processes[set->count] =
		(struct unmanaged_process){ .pid = found->pid, .uid = found->uid, .found_ns = gp_now_ns() };
	memcpy(set->processes[set->count].name, found->name, sizeof(found->name));
	set->processes[set->count].account = gp_process_account(daemon, found->uid, found->pid);
	gp_together_origin(daemon, found->pid, found->uid, set->processes[set->count].origin);
	return &set->processes[set->count++];
}

/* Its peers are put aside and resumed together, without it: as long as they are away its kernels spin. */
static void unmanaged_rank(struct gp_daemon *daemon, struct unmanaged_process *process)
{
	const struct gp_client *peer =
		process->queue_count ? gp_together_client(daemon, process->uid, process->account, process->origin) :
				       NULL;

	if (peer && !process->is_rank)
		gp_log_user(
			daemon, peer->owner,
			"process %d (%s, uid %u) belongs to %s and has no agent: the daemon does not put it aside with process %d (%s), and its kernels may spin meanwhile; start it with gpreempt run",
			process->pid, process->name, process->uid, process->origin, peer->device.pid, peer->name);
	process->is_rank = peer;
}

/* Reading the driver's list takes a while, and longer the more somebody has put there: who asks all the time does not
 * get it read all the time. */
static uint64_t unmanaged_next_ns(const struct gp_daemon *daemon)
{
	uint64_t rest_ns = daemon->scan.took_ns * UNMANAGED_SHARE;

	rest_ns = rest_ns < UNMANAGED_FRESH_NS ? UNMANAGED_FRESH_NS : rest_ns;
	return daemon->scan.at_ns + (rest_ns < UNMANAGED_LATE_NS ? rest_ns : UNMANAGED_LATE_NS);
}

/* Its agent may be about to say hello: then it is looked for once more. */
static bool unmanaged_is_certain(struct gp_daemon *daemon, const struct unmanaged_process *process)
{
	uint64_t certain_ns = process->found_ns + UNMANAGED_HELLO_NS, next_ns = unmanaged_next_ns(daemon);

	if (gp_now_ns() >= certain_ns)
		return true;
	gp_timer_sooner(daemon, &daemon->scan.timer, certain_ns > next_ns ? certain_ns : next_ns);
	return false;
}

/* It has queues on a GPU that this daemon schedules. What runs elsewhere has an agent of another daemon, perhaps. */
static bool unmanaged_is_here(const struct gp_daemon *daemon, const struct unmanaged_process *process)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (process->devices >> i & 1 && !daemon->devices[i].claim.is_left)
			return true;
	return false;
}

static void unmanaged_process(struct gp_daemon *daemon, struct gp_driver_entry *driver,
			      struct unmanaged_process *process, const struct gp_device_queue *queues,
			      uint32_t queue_count)
{
	process->seen = true;
	if (process->client)
		gp_adopt_begin(process->client);
	unmanaged_queues(daemon, process, queues, queue_count);
	if (process->client)
		gp_adopt_end(daemon, process->client);
	if (!unmanaged_is_here(daemon, process) || !unmanaged_is_certain(daemon, process))
		return;
	if (!process->client && process->queue_count && daemon->config.unmanaged == GP_UNMANAGED_PAUSE)
		process->client = gp_adopt(daemon, driver, process->pid, process->uid, process->name);
	unmanaged_rank(daemon, process);
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

/* What was read is compared with what is known. */
static void unmanaged_merge(struct gp_daemon *daemon, const struct gp_scan_result *result)
{
	uint32_t new_count = 0;

	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		device->unmanaged_queues = device->unmanaged_processes = 0;
		device->other_queues = device->other_processes = 0;
	}
	for (uint32_t i = 0; i < result->process_count; i++) {
		const struct gp_scan_process *found = &result->processes[i];
		struct unmanaged_process *process =
			unmanaged_is_client(daemon, found->pid) ? NULL : unmanaged_entry(daemon, found, &new_count);

		if (process)
			unmanaged_process(daemon, &daemon->drivers[found->driver], process,
					  &result->queues[found->queue_first], found->queue_count);
	}
	unmanaged_forget(daemon);
	for (uint32_t i = 0; i < daemon->device_count; i++)
		gp_sched_device_set_others(daemon->sched, daemon->devices[i].core, daemon->devices[i].other_queues,
					   daemon->devices[i].other_processes, gp_daemon_now_ns(daemon));
	daemon->scan.took_ns = result->took_ns;
	if (new_count == UNMANAGED_NEW_MAX)
		gp_unmanaged_want(daemon);
}

void gp_unmanaged_take(struct gp_daemon *daemon)
{
	const struct gp_scan_result *result = daemon->unmanaged ? gp_scan_take(daemon->unmanaged->scan) : NULL;

	if (result && result->is_complete)
		unmanaged_merge(daemon, result);
}

static struct gp_unmanaged_set *unmanaged_set(struct gp_daemon *daemon)
{
	struct gp_unmanaged_set *set = daemon->unmanaged ? daemon->unmanaged : calloc(1, sizeof(*set));

	if (set && !set->scan)
		set->scan = gp_scan_create(daemon->drivers, daemon->driver_count, daemon->inbox.fd);
	if (set && !set->scan) {
		free(set);
		set = NULL;
	}
	daemon->unmanaged = set;
	return set;
}

static bool unmanaged_begin(struct gp_daemon *daemon)
{
	struct gp_unmanaged_set *set = unmanaged_set(daemon);
	pid_t *pids = set ? calloc(daemon->client_top + 1, sizeof(pid_t)) : NULL;
	uint32_t count = 0;
	bool begun;

	if (!pids)
		return false;
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (daemon->clients[i] && daemon->clients[i]->peer)
			pids[count++] = daemon->clients[i]->device.pid;
	begun = gp_scan_begin(set->scan, pids, count);
	free(pids);
	if (begun)
		daemon->scan.at_ns = gp_now_ns();
	return begun;
}

bool gp_unmanaged_is_read(struct gp_daemon *daemon)
{
	return daemon->unmanaged && gp_scan_is_busy(daemon->unmanaged->scan);
}

void gp_unmanaged_refresh(struct gp_daemon *daemon)
{
	if (unmanaged_can_look(daemon) && gp_now_ns() >= unmanaged_next_ns(daemon))
		unmanaged_begin(daemon);
}

/* A queue of ours came: how many slots are left for it? Others that come later are seen with the next one, or when
 * somebody asks; looking all the time would wake an idle node. */
void gp_unmanaged_want(struct gp_daemon *daemon)
{
	uint64_t at_ns = unmanaged_next_ns(daemon);

	gp_timer_sooner(daemon, &daemon->scan.timer, at_ns);
}

void gp_unmanaged_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	bool regular = daemon->config.unmanaged == GP_UNMANAGED_PAUSE;

	if (!unmanaged_can_look(daemon)) {
		gp_timer_set(daemon, &daemon->scan.timer, 0);
		return;
	}
	if (now_ns < daemon->scan.timer.at_ns || (!regular && !daemon->scan.timer.at_ns))
		return;
	/* While one is under way the next waits for its end. */
	if (unmanaged_begin(daemon))
		gp_timer_set(daemon, &daemon->scan.timer, regular ? now_ns + daemon->config.scan_ns : 0);
	else
		gp_timer_set(daemon, &daemon->scan.timer, now_ns + UNMANAGED_FRESH_NS);
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
			gp_text_string(text, "rank_of", process->is_rank ? process->origin : NULL);
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
	if (daemon->unmanaged)
		gp_scan_destroy(daemon->unmanaged->scan);
	free(daemon->unmanaged);
	daemon->unmanaged = NULL;
}
