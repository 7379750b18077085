/* SPDX-License-Identifier: MIT */
/*
 * Finds processes that use the GPU without an agent (static, setuid, not started by `gpreempt run`) in the driver's
 * list of processes, if it has one. Another thread reads the list (scan.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/identify.h"
#include "daemon/origin.h"
#include "daemon/scan.h"
#include "daemon/unmanaged.h"
#include "lib/aside.h"

#define UNMANAGED_NEW_MAX  16u /* new processes taken from one scan, as their users must be found; more come later */
#define UNMANAGED_FRESH_NS 20000000ull
#define UNMANAGED_SHARE    50u /* the next scan waits so many times as long as one takes: it uses a processor */
#define UNMANAGED_LATE_NS  10000000000ull /* but it does not wait longer than this */
#define UNMANAGED_HELLO_NS 2000000000ull  /* an agent says hello after its first queue; chosen, for a busy machine */
#define UNMANAGED_KEEP_NS  60000000000ull /* a process without a queue is remembered so long; chosen */
#define UNMANAGED_READ_NS  50000000ull    /* the origin of a new process is waited for so long; chosen, as for agents */
#define UNMANAGED_AGAIN_NS 2000000000ull  /* before an identity that could not be read is asked for again; chosen */

struct unmanaged_process {
	pid_t pid;
	uid_t uid;
	uint64_t start;                      /* as in struct gp_scan_process */
	bool is_known;                       /* the identity is */
	struct gp_process_identity identity; /* pid_space and own_pid are not needed */
	char name[GP_WIRE_NAME_SIZE];
	char origin[GP_WIRE_NAME_SIZE]; /* together.c; empty: nothing says that it belongs to others */
	bool is_asked;                  /* a thread reads its identity or origin */
	bool is_hidden;                 /* its files in /proc did not open, and the identity is not known */
	uint64_t asked_ns;              /* when its identity was asked for last */
	bool is_rank, is_named;         /* it belongs to a scheduled client's program; the journal says so */
	uint32_t queue_count;
	uint64_t devices;         /* bits */
	struct gp_client *client; /* as which it is scheduled: [unmanaged] action = pause */
	bool seen;                /* in this scan */
	uint64_t found_ns;        /* when a scan first found it */
	uint64_t seen_ns;         /* when a scan last found it */
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

/* Counts the process's queues per device. If the process is adopted, passes them to adopt.c. */
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

/* Reading the driver's list takes longer the more processes and queues it has. So the daemon does not read it all the
 * time for a user who asks all the time. */
static uint64_t unmanaged_next_ns(const struct gp_daemon *daemon)
{
	uint64_t rest_ns = daemon->scan.took_ns * UNMANAGED_SHARE;

	rest_ns = rest_ns < UNMANAGED_FRESH_NS ? UNMANAGED_FRESH_NS : rest_ns;
	return daemon->scan.at_ns + (rest_ns < UNMANAGED_LATE_NS ? rest_ns : UNMANAGED_LATE_NS);
}

/* Whether the process surely has no agent. If its agent may be about to send HELLO, the daemon scans once more. */
static bool unmanaged_is_certain(struct gp_daemon *daemon, const struct unmanaged_process *process)
{
	uint64_t certain_ns = process->found_ns + UNMANAGED_HELLO_NS, next_ns = unmanaged_next_ns(daemon);

	if (gp_now_ns() >= certain_ns)
		return true;
	gp_timer_sooner(daemon, &daemon->scan.timer, certain_ns > next_ns ? certain_ns : next_ns);
	return false;
}

/* Whether the process has queues on a GPU that this daemon schedules. On other GPUs it may be a client of another
 * daemon. */
static bool unmanaged_is_here(const struct gp_daemon *daemon, const struct unmanaged_process *process)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (process->devices >> i & 1 && !daemon->devices[i].claim.is_left)
			return true;
	return false;
}

static struct unmanaged_process *unmanaged_find(struct gp_daemon *daemon, pid_t pid, uint64_t start)
{
	struct gp_unmanaged_set *set = daemon->unmanaged;

	for (uint32_t i = 0; set && i < set->count; i++)
		if (set->processes[i].pid == pid && set->processes[i].start == start)
			return &set->processes[i];
	return NULL;
}

/* The core closes and opens the clients of its program together, without this process: while they are closed, its
 * kernels spin. STATUS says so at once, the journal when the process surely has no agent. */
static void unmanaged_rank(struct gp_daemon *daemon, struct unmanaged_process *process, const struct gp_client *peer)
{
	bool is_certain;

	if (!unmanaged_is_here(daemon, process))
		return;
	is_certain = unmanaged_is_certain(daemon, process);
	if (peer && is_certain && !process->is_named)
		gp_log_user(
			daemon, peer->owner,
			"process %d (%s, uid %u) belongs to %s and has no agent: the daemon does not put it aside with process %d (%s), and its kernels may spin meanwhile; start it with gpreempt run",
			process->pid, process->name, process->uid, process->origin, peer->device.pid, peer->name);
	process->is_rank = peer;
	process->is_named = peer && is_certain;
}

static void unmanaged_find_rank(struct gp_daemon *daemon, struct unmanaged_process *process)
{
	unmanaged_rank(daemon, process,
		       process->queue_count ?
			       gp_together_client(daemon, process->uid, process->identity.account, process->origin) :
			       NULL);
}

static void unmanaged_take_origin(struct gp_daemon *daemon, struct gp_question *asked)
{
	const struct gp_origin *found = (const struct gp_origin *)asked;
	struct unmanaged_process *process = unmanaged_find(daemon, found->pid, found->about);

	if (!process)
		return;
	process->is_asked = false;
	memcpy(process->origin, found->name, sizeof(process->origin));
	unmanaged_find_rank(daemon, process);
}

void gp_unmanaged_joined(struct gp_daemon *daemon, const struct gp_client *client)
{
	struct gp_unmanaged_set *set = daemon->unmanaged;

	gp_portion_use(daemon, set ? set->count / 16 : 0);
	for (uint32_t i = 0; set && i < set->count; i++) {
		struct unmanaged_process *process = &set->processes[i];

		if (process->queue_count && process->uid == client->uid &&
		    process->identity.account == client->identity.account && !strcmp(process->origin, client->origin))
			unmanaged_rank(daemon, process, client);
	}
}

/* The account is known: it is that account's question to which program the process belongs. A container's process may
 * have any uid, also root's, and would keep that user's questions waiting. */
static void unmanaged_take_identity(struct gp_daemon *daemon, struct gp_question *asked)
{
	struct gp_identify *found = (struct gp_identify *)asked;
	struct unmanaged_process *process = unmanaged_find(daemon, found->pid, found->about);
	const struct gp_origin origin = { .pid = found->pid, .uid = found->uid, .about = found->about };
	struct gp_owner *owner;

	if (!process || process->is_known)
		return;
	process->is_asked = false;
	process->is_hidden = found->result;
	if (found->result)
		return;
	process->identity = gp_identity_take(&found->identity);
	process->is_known = true;
	if (process->client) { /* nobody's so far; the next scan adopts it as what it is */
		gp_client_remove(daemon, process->client);
		process->client = NULL;
		gp_unmanaged_want(daemon);
	}
	owner = gp_owner_of(daemon, process->identity.account, process->identity.uid);
	process->is_asked = gp_origin_ask(daemon, owner, &origin, unmanaged_take_origin);
	gp_owner_put(owner);
}

/* Until the answer comes the process belongs to no client's program, and is not adopted. */
static void unmanaged_identify(struct gp_daemon *daemon, struct unmanaged_process *process)
{
	const struct gp_identify about = { .uid = process->uid,
					   .pid = process->pid,
					   .pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0),
					   .fd = -1,
					   .about = process->start,
					   .blamed = GP_ASIDE_SCAN(process->uid) };
	struct gp_owner *owner = gp_owner_of_uid(daemon, process->uid);

	process->asked_ns = gp_now_ns();
	process->is_asked = about.pidfd >= 0 && gp_identify_ask(daemon, owner, &about, unmanaged_take_identity);
	gp_owner_put(owner);
	if (about.pidfd >= 0 && !process->is_asked)
		close(about.pidfd);
}

/* NULL: the table is full, or too many processes are new at once. */
static struct unmanaged_process *unmanaged_entry(struct gp_daemon *daemon, const struct gp_scan_process *found,
						 uint32_t *new_count)
{
	struct gp_unmanaged_set *set = daemon->unmanaged;
	struct unmanaged_process *process = unmanaged_find(daemon, found->pid, found->start);

	if (process)
		return process;
	if (set->count == GP_SCAN_PROCESS_MAX || *new_count == UNMANAGED_NEW_MAX)
		return NULL;
	++*new_count;
	process = &set->processes[set->count++];
	*process = (struct unmanaged_process){ .pid = found->pid,
					       .uid = found->uid,
					       .start = found->start,
					       .identity = { .account = UINT64_MAX },
					       .found_ns = gp_now_ns() };
	memcpy(process->name, found->name, sizeof(found->name));
	unmanaged_identify(daemon, process);
	return process;
}

/* A process whose user holds its folder in /proc does not get away with it: it is set aside like others, as one of an
 * account for all whose user is not known. */
static struct gp_client *unmanaged_adopt(struct gp_daemon *daemon, struct gp_driver_entry *driver,
					 const struct unmanaged_process *process)
{
	const struct gp_process_identity nobody = gp_identity_nobody(process->uid);

	return gp_adopt(daemon, driver, process->pid, process->uid, process->name,
			process->is_known ? &process->identity : &nobody);
}

static void unmanaged_process(struct gp_daemon *daemon, struct gp_driver_entry *driver,
			      struct unmanaged_process *process, const struct gp_device_queue *queues,
			      uint32_t queue_count)
{
	process->seen = true;
	process->seen_ns = gp_now_ns();
	if (process->client)
		gp_adopt_begin(process->client);
	unmanaged_queues(daemon, process, queues, queue_count);
	if (process->client)
		gp_adopt_end(daemon, process->client);
	if (!process->is_known && !process->is_asked && gp_now_ns() - process->asked_ns >= UNMANAGED_AGAIN_NS)
		unmanaged_identify(daemon, process);
	if (daemon->config.unmanaged == GP_UNMANAGED_PAUSE && !process->client &&
	    (process->is_known || process->is_hidden) && unmanaged_is_here(daemon, process) &&
	    unmanaged_is_certain(daemon, process))
		process->client = unmanaged_adopt(daemon, driver, process);
	unmanaged_find_rank(daemon, process);
}

/* A process without a queue now (scan.c leaves it out) is no client. But the daemon remembers it: the process may
 * create queues that are gone at most scans, and its time to send HELLO must not begin anew. Half of the places are for
 * processes with queues. */
static void unmanaged_forget(struct gp_daemon *daemon)
{
	struct gp_unmanaged_set *set = daemon->unmanaged;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		struct unmanaged_process *process = &set->processes[i];
		bool keep = process->seen ||
			    (kept < GP_SCAN_PROCESS_MAX / 2 && gp_now_ns() - process->seen_ns < UNMANAGED_KEEP_NS);

		if ((!process->seen || daemon->config.unmanaged != GP_UNMANAGED_PAUSE) && process->client) {
			gp_client_remove(daemon, process->client);
			process->client = NULL;
		}
		if (!process->seen)
			process->queue_count = 0;
		process->seen = false;
		if (keep)
			set->processes[kept++] = *process;
		else
			gp_identity_fini(&process->identity);
	}
	set->count = kept;
}

/* Updates what is known by what the thread has read. */
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

/* Whether a thread reads the origin of a process that a scan has just found. A user who keeps the thread waiting delays
 * nobody after that. */
static bool unmanaged_is_asked(const struct gp_unmanaged_set *set)
{
	for (uint32_t i = set->count; i > 0 && gp_now_ns() - set->processes[i - 1].found_ns < UNMANAGED_READ_NS; i--)
		if (set->processes[i - 1].is_asked)
			return true;
	return false;
}

bool gp_unmanaged_is_read(struct gp_daemon *daemon)
{
	const struct gp_unmanaged_set *set = daemon->unmanaged;

	return set && (gp_scan_is_busy(set->scan) || unmanaged_is_asked(set));
}

void gp_unmanaged_refresh(struct gp_daemon *daemon)
{
	if (unmanaged_can_look(daemon) && gp_now_ns() >= unmanaged_next_ns(daemon))
		unmanaged_begin(daemon);
}

/* A client got a queue: the daemon wants to know how many slots are left for it. It finds unmanaged processes that come
 * later with the next queue, or when a user asks: scanning all the time would wake an idle node. */
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
	/* While a scan is under way the next one waits for its end. */
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
		bool hidden =
			peer && (peer->uid != process->uid || peer->identity.account != process->identity.account);

		if (!process->queue_count)
			continue;
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
		gp_text_bool(text, "agent_awaited", gp_now_ns() < process->found_ns + UNMANAGED_HELLO_NS);
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
	for (uint32_t i = 0; daemon->unmanaged && i < daemon->unmanaged->count; i++) {
		if (daemon->unmanaged->processes[i].client)
			gp_client_remove(daemon, daemon->unmanaged->processes[i].client);
		gp_identity_fini(&daemon->unmanaged->processes[i].identity);
	}
	if (daemon->unmanaged)
		gp_scan_destroy(daemon->unmanaged->scan);
	free(daemon->unmanaged);
	daemon->unmanaged = NULL;
}
