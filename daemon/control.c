/* SPDX-License-Identifier: MIT */
/*
 * Carries out commands. The socket tells which user asks; the daemon refuses with a sentence. For STATUS the daemon
 * first asks every agent to look at its counters, so that the numbers are exact, and waits a moment for the answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <gpreempt/control.h>
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "daemon/tree.h"
#include "daemon/unmanaged.h"

#define CONTROL_SYNC_NS      50000000ull
#define CONTROL_FRESH_NS     100000000ull
#define CONTROL_LINES_SIZE   16000u /* bytes of events in one packet */
#define CONTROL_PART_SIZE    14000u /* bytes after which a part of an answer is sent */
#define CONTROL_LOOK_SOME    64u    /* silent clients whose memory is to be read, between two looks at urgent work */
#define CONTROL_METRICS_WORK 128u

static void control_say(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, int result, const char *text)
{
	int r = gp_peer_answer(daemon, peer, cookie, result, text, strlen(text));

	if (r)
		gp_peer_unanswered(daemon, peer, r);
}

static void control_send(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, struct gp_text *text)
{
	int r = 0;

	if (text->failed)
		control_say(daemon, peer, cookie, -ENOMEM, "gpreemptd is out of memory");
	else
		r = gp_peer_answer(daemon, peer, cookie, 0, text->bytes, text->size);
	if (r)
		gp_peer_unanswered(daemon, peer, r);
	gp_text_fini(text);
}

/* Begins an answer that gp_control_go_on() makes and sends in parts. */
static void control_begin(struct gp_peer *peer, enum gp_job_kind kind, uint32_t cookie)
{
	peer->job = (struct gp_job){ .kind = kind, .cookie = cookie };
}

void gp_control_end(struct gp_peer *peer)
{
	gp_text_fini(&peer->job.text);
	gp_tree_drop(peer->job.tree);
	gp_grant_process_forget(peer->job.grant);
	peer->job = (struct gp_job){ .kind = GP_JOB_NONE };
}

static void control_status_answer(struct gp_daemon *daemon, struct gp_peer *peer)
{
	peer->wants_status = false;
	gp_fair_add(daemon, peer);
}

/* The agents that have not answered SYNC by now: has the counters of their clients read from the clients' memory
 * (silence.c), some clients at a time, and waits once more for that. True: that is not over yet. */
static bool control_look(struct gp_daemon *daemon)
{
	uint32_t looked = 0;

	if (daemon->sync.has_looked)
		return false;
	for (; daemon->sync.look_next < daemon->client_top; daemon->sync.look_next++) {
		struct gp_client *client = daemon->clients[daemon->sync.look_next];

		if (!client || !client->sync_wait)
			continue;
		if (looked++ == CONTROL_LOOK_SOME)
			return true;
		gp_portion_use(daemon, 1);
		if (gp_silence_look(daemon, client))
			gp_timer_set(daemon, &daemon->sync.timer, gp_now_ns() + CONTROL_SYNC_NS);
	}
	daemon->sync.has_looked = true;
	return gp_now_ns() < daemon->sync.timer.at_ns;
}

bool gp_control_has_work(const struct gp_daemon *daemon)
{
	return daemon->sync.timer.at_ns &&
	       (daemon->sync.next < daemon->client_top ||
		(!daemon->sync.has_looked && daemon->sync.look_next && daemon->sync.look_next < daemon->client_top));
}

static void control_metrics_synced(struct gp_daemon *daemon)
{
	if (!daemon->sync.metrics_timer.at_ns ||
	    (gp_unmanaged_is_read(daemon) && gp_now_ns() < daemon->sync.metrics_timer.at_ns))
		return;
	gp_timer_set(daemon, &daemon->sync.metrics_timer, 0);
	for (struct gp_peer *peer = daemon->peers; peer; peer = peer->next)
		if (peer->wants_status && peer->job.kind == GP_JOB_METRICS)
			control_status_answer(daemon, peer);
}

void gp_control_synced(struct gp_daemon *daemon)
{
	bool is_over;

	control_metrics_synced(daemon);
	if (!daemon->sync.timer.at_ns)
		return;
	is_over = gp_now_ns() >= daemon->sync.timer.at_ns;
	if (gp_client_sync_some(daemon) && !is_over)
		return;
	if ((daemon->sync.waiting || gp_unmanaged_is_read(daemon)) && !is_over)
		return;
	if (daemon->sync.waiting && control_look(daemon))
		return;
	gp_timer_set(daemon, &daemon->sync.timer, 0);
	daemon->sync.next = daemon->client_top;
	for (struct gp_peer *peer = daemon->peers; peer; peer = peer->next)
		if (peer->wants_status && !peer->job.tree)
			control_status_answer(daemon, peer);
}

static void control_status(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie)
{
	uint64_t now_ns = gp_now_ns();

	control_begin(peer, GP_JOB_STATUS, cookie);
	gp_unmanaged_refresh(daemon);
	/* SYNC wakes every client, so a user who asks all the time gets the last figures. */
	if (!gp_access_is_admin(peer) && !daemon->sync.timer.at_ns && now_ns - daemon->sync.at_ns < CONTROL_FRESH_NS)
		return;
	peer->wants_status = true;
	if (gp_access_is_admin(peer) || !daemon->sync.timer.at_ns) {
		daemon->sync.at_ns = now_ns;
		gp_client_sync(daemon);
	}
	/* A second STATUS does not prolong the wait of the first. */
	if (!daemon->sync.timer.at_ns) {
		gp_timer_set(daemon, &daemon->sync.timer, now_ns + CONTROL_SYNC_NS);
		daemon->sync.has_looked = false;
		daemon->sync.look_next = 0;
	}
}

/* Sends what there is of the answer, if it fills a packet or is complete. */
static void control_send_part(struct gp_daemon *daemon, struct gp_peer *peer, bool is_all)
{
	struct gp_job *job = &peer->job;
	int r = 0;

	if (job->text.failed) {
		control_say(daemon, peer, job->cookie, -ENOMEM, "gpreemptd is out of memory");
		is_all = true;
	} else if (is_all) {
		r = gp_peer_answer(daemon, peer, job->cookie, 0, job->text.bytes ? job->text.bytes : "",
				   job->text.size);
	} else if (job->text.size >= CONTROL_PART_SIZE) {
		r = gp_peer_answer_part(daemon, peer, job->cookie, job->text.bytes, job->text.size);
		gp_text_sent(&job->text);
	}
	if (r)
		gp_peer_unanswered(daemon, peer, r);
	else if (is_all)
		gp_control_end(peer);
}

bool gp_control_own_space(const struct gp_peer *peer)
{
	return peer->identity.pid_space && peer->identity.pid_space == gp_identity_own_pids();
}

/* Finds a client by its pid in the PID namespace of the process that asks. */
static struct gp_client *control_find(struct gp_daemon *daemon, const struct gp_peer *peer, pid_t pid)
{
	ino_t space = peer->identity.pid_space;
	bool direct = gp_control_own_space(peer);

	gp_portion_use(daemon, daemon->client_top / 16);
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (!client || (!client->peer && !client->is_unmanaged))
			continue;
		if (direct ? client->device.pid == pid :
			     space && client->identity.pid_space == space && client->identity.own_pid == pid)
			return client;
	}
	return NULL;
}

static struct gp_queue_entry *control_queue(struct gp_client *client, uint32_t gpu_id, uint32_t queue_id)
{
	for (uint32_t i = 0; i < client->slot_count; i++) {
		struct gp_queue_entry *queue = client->slots[i].queue;

		if (queue && queue->wire.queue_id == queue_id && (!gpu_id || queue->wire.gpu_id == gpu_id))
			return queue;
	}
	return NULL;
}

static void control_set_queue(struct gp_daemon *daemon, struct gp_queue_entry *queue, const struct gp_wire_attr *attr,
			      bool is_root)
{
	if (is_root && gp_access_is_raise(attr))
		queue->client->may_raise = queue->client->granted_raise = true;
	if (is_root && attr->valid & GP_ATTR_PRIORITY && attr->priority > queue->client->ceiling)
		queue->client->ceiling = queue->client->granted = attr->priority;
	gp_attr_overlay(&queue->set, attr);
	gp_queue_attr(daemon, queue);
}

static void control_early_found(struct gp_daemon *daemon, struct gp_peer *peer, const void *asked, int result,
				struct gp_grant_process *process)
{
	const struct gp_control_request *request = asked;
	int r = result ? result : gp_grant_keep_set(daemon, request->pid, process, &request->attr);
	struct gp_text text = { 0 };
	char sentence[200];

	if (r) {
		if (r == -ESRCH)
			snprintf(sentence, sizeof(sentence), "there is no process %d", request->pid);
		else
			snprintf(sentence, sizeof(sentence),
				 "process %d uses no GPU yet, and the daemon cannot remember it: %s", request->pid,
				 gp_grant_why(r));
		control_say(daemon, peer, request->header.cookie, r, sentence);
		return;
	}
	gp_log_user(daemon, peer->owner,
		    "audit: uid %u (process %d) stored settings for process %d, which uses no GPU yet", peer->uid,
		    peer->pid, request->pid);
	gp_text_open(&text, NULL, '{');
	gp_text_i64(&text, "pid", request->pid);
	gp_text_bool(&text, "granted", true);
	gp_text_close(&text, '}');
	gp_text_add(&text, "\n");
	control_send(daemon, peer, request->header.cookie, &text);
}

/* SET for a process that uses no GPU yet: the daemon keeps it as a grant. */
static void control_set_early(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_control_request *request)
{
	if (!gp_grant_process_ask(daemon, peer, request->pid, request, sizeof(*request), control_early_found))
		control_early_found(daemon, peer, request, -EAGAIN, NULL);
}

/* Keeps what root has set for a client's process. */
static void control_keep_set(struct gp_daemon *daemon, const struct gp_client *client, const struct gp_wire_attr *attr)
{
	const struct gp_lineage *lineage = client->identity.lineage;
	struct gp_grant_process process = { .pidfd = fcntl(client->device.pidfd, F_DUPFD_CLOEXEC, 3) };
	int r = process.pidfd < 0 ? -errno : -ENOMEM;

	if (lineage && process.pidfd >= 0) {
		process.start = lineage->start;
		r = gp_grant_keep_set(daemon, client->device.pid, &process, attr);
	}
	gp_grant_process_drop(&process);
	if (r)
		gp_log("what was set for process %d is lost when gpreemptd restarts: %s", client->device.pid,
		       gp_grant_why(r));
}

static void control_set(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_control_request *request)
{
	uint32_t cookie = request->header.cookie;
	struct gp_client *client = control_find(daemon, peer, request->pid);
	struct gp_queue_entry *queue = NULL;
	struct gp_text text = { 0 };
	bool is_above = peer->identity.rights & GP_RIGHT_NICE; /* it may go above the ceilings */
	char sentence[300];

	if (!client && gp_access_is_admin(peer) && request->queue_id == GP_CONTROL_ALL_QUEUES &&
	    gp_control_own_space(peer)) {
		control_set_early(daemon, peer, request);
		return;
	}
	/* The daemon answers about another user's client as if it did not exist. */
	if (!client || !gp_access_may_change(peer, client)) {
		snprintf(sentence, sizeof(sentence), "process %d is not a program of yours that uses the GPU",
			 request->pid);
		control_say(daemon, peer, cookie, -ESRCH, sentence);
		return;
	}
	if (!is_above && request->attr.valid & GP_ATTR_PRIORITY && request->attr.priority > client->ceiling) {
		snprintf(sentence, sizeof(sentence),
			 "priority %d is above your ceiling of %d. The administrator raises it in " GP_CONFIG_FILE
			 ", section [ceiling]: user.NAME = %d, or group.NAME = %d for a group of yours",
			 request->attr.priority, client->ceiling, request->attr.priority, request->attr.priority);
		gp_log_user(daemon, peer->owner,
			    "audit: uid %u may not set process %d (%s) to priority %d: its ceiling is %d", peer->uid,
			    client->device.pid, client->name, request->attr.priority, client->ceiling);
		control_say(daemon, peer, cookie, -EPERM, sentence);
		return;
	}
	if (!is_above && !client->may_raise && gp_access_is_raise(&request->attr)) {
		gp_log_user(daemon, peer->owner, "audit: uid %u may not raise process %d (%s) by weight or deadline",
			    peer->uid, client->device.pid, client->name);
		control_say(
			daemon, peer, cookie, -EPERM,
			"shares, weights above 100 and deadlines need a ceiling above the default priority: " GP_CONFIG_FILE
			", section [ceiling], user.NAME or group.NAME");
		return;
	}
	if (request->queue_id != GP_CONTROL_ALL_QUEUES) {
		queue = control_queue(client, request->gpu_id, request->queue_id);
		if (!queue) {
			control_say(daemon, peer, cookie, -ENOENT, "the process has no such queue");
			return;
		}
		control_set_queue(daemon, queue, &request->attr, is_above);
	} else {
		gp_client_set_attr(daemon, client, &request->attr, is_above);
		if (is_above)
			control_keep_set(daemon, client, &request->attr);
	}
	gp_log_user(
		daemon, peer->owner, "audit: uid %u (process %d) set process %d (%s, uid %u)%s: priority %d, weight %u",
		peer->uid, peer->pid, client->device.pid, client->name, client->uid, queue ? ", one queue" : "",
		queue ? queue->attr.priority : client->attr.priority, queue ? queue->attr.weight : client->attr.weight);
	gp_status_client(daemon, client, gp_now_ns(), &text);
	gp_text_add(&text, "\n");
	control_send(daemon, peer, cookie, &text);
}

static void control_summary(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_control_request *request)
{
	/* A peer in another PID namespace can ask only about its own tree. */
	pid_t pid = gp_control_own_space(peer) ? request->pid : peer->pid;

	gp_portion_use(daemon, daemon->client_top / 16);
	control_begin(peer, GP_JOB_SUMMARY, request->header.cookie);
	peer->job.tree = gp_tree_ask(daemon, peer, pid);
	peer->wants_status = peer->job.tree;
	if (!peer->job.tree) {
		gp_control_end(peer);
		control_say(daemon, peer, request->header.cookie, -EAGAIN,
			    "gpreemptd has no memory or no thread for it, or has yet to read many of your processes");
	}
}

static void control_summary_answer(struct gp_daemon *daemon, struct gp_peer *peer)
{
	const struct gp_tree tree = *peer->job.tree;
	uint32_t cookie = peer->job.cookie;
	struct gp_text text = { 0 };

	gp_control_end(peer);
	if (tree.is_unknown) {
		control_say(daemon, peer, cookie, -EAGAIN,
			    "gpreemptd cannot open /proc/PID of these processes now: a program holds a folder there");
		return;
	}
	gp_text_open(&text, NULL, '{');
	gp_text_u64(&text, "agents", tree.agents);
	gp_text_bool(&text, "opened_gpu", tree.is_listed);
	gp_text_u64(&text, "queues", tree.queues);
	gp_text_close(&text, '}');
	gp_text_add(&text, "\n");
	control_send(daemon, peer, cookie, &text);
}

static void control_pause(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_control_request *request)
{
	const struct gp_device_entry *left = NULL;
	uint32_t cookie = request->header.cookie;
	bool any = false;
	char why[GP_WHY_TEXT];

	if (!gp_access_is_admin(peer)) {
		control_say(daemon, peer, cookie, -EPERM,
			    "only root may pause and resume a GPU (CAP_SYS_ADMIN, outside of user namespaces)");
		return;
	}
	snprintf(why, sizeof(why), "asked for by uid %u, process %d", peer->uid, peer->pid);
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];

		if (request->gpu_id && device->info.gpu_id != request->gpu_id)
			continue;
		any = true;
		if (!(request->flags & GP_CONTROL_PAUSE_END))
			gp_device_stop(daemon, device, why);
		else if (!device->claim.is_left)
			gp_device_start(daemon, device);
		else
			left = device;
	}
	snprintf(why, sizeof(why), "GPU %u is left to another gpreemptd; see gpreempt status",
		 left ? left->info.gpu_id : 0);
	if (left)
		control_say(daemon, peer, cookie, -EBUSY, why);
	else
		control_say(daemon, peer, cookie, any ? 0 : -ENODEV,
			    any ? "{}\n" : "there is no such GPU (gpreempt status shows each gpu_id)");
}

static void control_ping(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie)
{
	struct gp_text text = { 0 };
	char groups[256];

	gp_access_groups_above(&daemon->config, peer, groups, sizeof(groups));
	gp_text_open(&text, NULL, '{');
	gp_text_u64(&text, "schema", 1);
	gp_text_string(&text, "version", GP_VERSION);
	gp_text_i64(&text, "pid", getpid());
	gp_text_i64(&text, "ceiling", gp_access_ceiling(&daemon->config, peer));
	gp_text_string(&text, "ceiling_name", gp_access_ceiling_name(&daemon->config, peer));
	gp_text_string(&text, "ceiling_groups", groups);
	gp_text_string(&text, "config", daemon->start.config_path);
	gp_text_close(&text, '}');
	gp_text_add(&text, "\n");
	control_send(daemon, peer, cookie, &text);
}

static void control_reload(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie)
{
	struct gp_error error;

	if (!gp_access_is_admin(peer) && (!peer->uid || peer->uid != geteuid()))
		control_say(daemon, peer, cookie, -EPERM,
			    "only root may reload the configuration (CAP_SYS_ADMIN, outside of user namespaces)");
	else if (gp_daemon_reload(daemon, &error))
		control_say(daemon, peer, cookie, -EINVAL, error.text);
	else
		control_say(daemon, peer, cookie, 0, "{}\n");
}

/* Each packet holds whole lines. */
static void control_past(struct gp_daemon *daemon, struct gp_peer *peer)
{
	struct gp_job *job = &peer->job;
	struct gp_text text = { 0 };
	uint32_t cookie = job->cookie;
	bool more = gp_events_past(daemon, peer, job, &text);
	size_t size, at = 0;
	int r = 0;

	for (; !r && at < text.size; at += size) {
		size = text.size - at < CONTROL_LINES_SIZE ? text.size - at : CONTROL_LINES_SIZE;
		while (size > 1 && text.bytes[at + size - 1] != '\n')
			size--;
		r = gp_peer_answer_part(daemon, peer, cookie, text.bytes + at, size);
	}
	gp_text_fini(&text);
	if (r) {
		gp_peer_unanswered(daemon, peer, r);
	} else if (!more) {
		gp_control_end(peer);
		control_say(daemon, peer, cookie, 0, "");
	}
}

static void control_metrics_answer(struct gp_daemon *daemon, struct gp_peer *peer)
{
	uint32_t cookie = peer->job.cookie;
	struct gp_text text = { 0 };

	gp_portion_use(daemon, CONTROL_METRICS_WORK + daemon->client_count / 4);
	gp_metrics_write(daemon, &text);
	gp_control_end(peer);
	control_send(daemon, peer, cookie, &text);
}

void gp_control_go_on(struct gp_daemon *daemon, struct gp_peer *peer)
{
	struct gp_job *job = &peer->job;

	if (peer->wants_status)
		return; /* gp_control_synced() or gp_questions_take() continues it */
	if (job->kind == GP_JOB_PAST)
		control_past(daemon, peer);
	else if (job->kind == GP_JOB_STATUS)
		control_send_part(daemon, peer, gp_status_part(daemon, peer, job));
	else if (job->kind == GP_JOB_SUMMARY)
		control_summary_answer(daemon, peer);
	else if (job->kind == GP_JOB_ACCOUNT)
		control_send_part(daemon, peer, gp_account_part(daemon, peer, job));
	else if (job->kind == GP_JOB_METRICS)
		control_metrics_answer(daemon, peer);
}

/* Unmanaged processes count against the slots, so METRICS waits while another thread looks for them. */
static void control_metrics(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie)
{
	control_begin(peer, GP_JOB_METRICS, cookie);
	gp_unmanaged_refresh(daemon);
	if (!gp_unmanaged_is_read(daemon))
		return;
	peer->wants_status = true;
	if (!daemon->sync.metrics_timer.at_ns)
		gp_timer_set(daemon, &daemon->sync.metrics_timer, gp_now_ns() + CONTROL_SYNC_NS);
}

static void control_events(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie)
{
	int r = gp_events_open(daemon, peer, cookie);

	if (r == -EBUSY)
		control_say(daemon, peer, cookie, r, "events are being read on this connection already");
	else if (r == -EDQUOT)
		control_say(daemon, peer, cookie, r, "you read events on too many connections; close some of them");
	else if (r)
		control_say(daemon, peer, cookie, r, "gpreemptd is out of memory");
}

void gp_control_request(struct gp_daemon *daemon, struct gp_peer *peer, const void *data)
{
	/* Copied: answering uses the packet's memory. */
	const struct gp_control_request request = *(const struct gp_control_request *)data;
	uint32_t cookie = request.header.cookie;

	switch (request.verb) {
	case GP_CONTROL_STATUS: control_status(daemon, peer, cookie); break;
	case GP_CONTROL_SET: control_set(daemon, peer, &request); break;
	case GP_CONTROL_EVENTS:
		if (request.flags & GP_CONTROL_EVENTS_PAST) {
			control_begin(peer, GP_JOB_PAST, cookie);
			peer->job.end = gp_events_end(daemon);
			break;
		}
		control_events(daemon, peer, cookie);
		break;
	case GP_CONTROL_METRICS: control_metrics(daemon, peer, cookie); break;
	case GP_CONTROL_PING: control_ping(daemon, peer, cookie); break;
	case GP_CONTROL_RELOAD: control_reload(daemon, peer, cookie); break;
	case GP_CONTROL_SUMMARY: control_summary(daemon, peer, &request); break;
	case GP_CONTROL_PAUSE: control_pause(daemon, peer, &request); break;
	case GP_CONTROL_ACCOUNT: control_begin(peer, GP_JOB_ACCOUNT, cookie); break;
	default: control_say(daemon, peer, cookie, -EOPNOTSUPP, "this gpreemptd does not know that command"); break;
	}
}
