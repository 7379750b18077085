/* SPDX-License-Identifier: MIT */
/*
 * Grants: what root sets for a cgroup or a process before a client of it connects. A grant for a process ends with
 * the process: the pidfd tells, and after a restart of the daemon the start time of the process. The number of
 * grants is bounded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "daemon/cgroup.h"
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "daemon/message.h"

static void grant_say(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, int result, const char *text)
{
	int r = gp_peer_answer(daemon, peer, cookie, result, text, strlen(text));

	if (r)
		gp_peer_unanswered(daemon, peer, r);
}

static struct gp_grant *grant_find(const struct gp_daemon *daemon, pid_t pid, const char *cgroup)
{
	struct gp_grant *grant = daemon->grants.first;

	while (grant && (pid ? grant->pid != pid : grant->pid || strcmp(grant->cgroup, cgroup)))
		grant = grant->next;
	return grant;
}

static void grant_set_timer(struct gp_daemon *daemon)
{
	gp_timer_set(daemon, &daemon->grants.timer, 0);
	for (const struct gp_grant *grant = daemon->grants.first; grant; grant = grant->next)
		if (grant->until_ns)
			gp_timer_sooner(daemon, &daemon->grants.timer, grant->until_ns);
}

/* Applies a changed grant to the clients that it covers. named: the fields that root has just set. */
static void grant_tell(struct gp_daemon *daemon, const struct gp_grant *grant, uint32_t named)
{
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (!client || (grant->pid ? client->device.pid != grant->pid :
					     !client->identity.cgroups ||
						     !gp_cgroup_is_within(client->identity.cgroups, grant->cgroup)))
			continue;
		if (grant->pid)
			gp_grant_of_process(daemon, client->identity.lineage, &client->by_pid);
		client->over &= ~named;
		gp_client_refresh(daemon, client);
	}
}

void gp_grant_remove(struct gp_daemon *daemon, struct gp_grant *grant)
{
	struct gp_grant **at = &daemon->grants.first;

	while (*at && *at != grant)
		at = &(*at)->next;
	GP_ASSERT(*at && daemon->grants.count); /* no grant is removed twice */
	*at = grant->next;
	daemon->grants.count--;
	daemon->grants.pid_count -= grant->pid != 0;
	gp_daemon_drop(daemon, grant->pidfd);
	grant_set_timer(daemon);
	grant_tell(daemon, grant, 0);
	/* epoll events of this round may still point here. */
	grant->pidfd = -1;
	grant->next = daemon->grants.dead;
	daemon->grants.dead = grant;
}

/* Saves the grants before the command gets its answer. In each round this holds for the first change; for the others
 * the daemon writes the file again at the end of the round. */
static void grant_changed(struct gp_daemon *daemon)
{
	if (daemon->grants.saved) {
		daemon->grants.dirty = true;
		return;
	}
	daemon->grants.saved = true;
	gp_grant_save(daemon);
}

/* The process of a grant has ended. The daemon writes the file at the end of the round, once for all processes that
 * ended. */
static void grant_ended(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	struct gp_grant *grant = owner;

	(void)events;
	if (grant->pidfd < 0)
		return;
	gp_grant_remove(daemon, grant);
	daemon->grants.dirty = true;
}

/* Takes the process's pidfd. NULL: a cgroup's. */
static struct gp_grant *grant_create(struct gp_daemon *daemon, pid_t pid, struct gp_grant_process *process,
				     const char *cgroup, int *ret_error)
{
	struct gp_grant *grant;

	*ret_error = -ENOSPC;
	if (daemon->grants.count >= GP_GRANT_MAX || (pid && daemon->grants.pid_count >= GP_GRANT_PIDS))
		return NULL;
	*ret_error = -ENOMEM;
	grant = calloc(1, sizeof(*grant));
	if (!grant)
		return NULL;
	grant->pid = pid;
	grant->pidfd = -1;
	gp_terms_init(&grant->terms);
	snprintf(grant->cgroup, sizeof(grant->cgroup), "%s", cgroup);
	grant->source = (struct gp_source){ grant_ended, grant };
	*ret_error = pid ? gp_daemon_watch(daemon, process->pidfd, EPOLLIN | EPOLLONESHOT, &grant->source) : 0;
	if (*ret_error) {
		free(grant);
		return NULL;
	}
	if (pid) {
		grant->pidfd = process->pidfd;
		grant->start = process->start;
		process->pidfd = -1;
	}
	grant->next = daemon->grants.first;
	daemon->grants.first = grant;
	daemon->grants.count++;
	daemon->grants.pid_count += pid != 0;
	return grant;
}

int gp_grant_add(struct gp_daemon *daemon, const struct gp_control_grant *request, struct gp_grant_process *process,
		 struct gp_grant **ret_grant)
{
	struct gp_grant *grant = grant_find(daemon, request->pid, request->cgroup);
	int r = 0;

	if (!grant)
		grant = grant_create(daemon, request->pid, process, request->cgroup, &r);
	if (!grant)
		return r;
	gp_terms_init(&grant->terms);
	if (request->flags & GP_GRANT_FORCE)
		grant->terms.forced = request->attr;
	else
		grant->terms.attr = request->attr;
	grant->terms.ceiling = request->ceiling;
	memcpy(grant->terms.tag, request->tag, sizeof(grant->terms.tag));
	grant->until_ns = request->for_ns ? gp_now_ns() + request->for_ns : 0;
	grant_set_timer(daemon);
	grant_tell(daemon, grant, request->attr.valid);
	*ret_grant = grant;
	return 0;
}

int gp_grant_keep_set(struct gp_daemon *daemon, pid_t pid, struct gp_grant_process *process,
		      const struct gp_wire_attr *attr)
{
	struct gp_grant *grant = grant_find(daemon, pid, "");
	int r = 0;

	if (!grant)
		grant = grant_create(daemon, pid, process, "", &r);
	if (!grant)
		return r;
	gp_attr_overlay(&grant->terms.forced, attr);
	if (attr->valid & GP_ATTR_PRIORITY && grant->terms.ceiling >= 0 && attr->priority > grant->terms.ceiling)
		grant->terms.ceiling = attr->priority;
	grant_changed(daemon);
	return 0;
}

const char *gp_grant_why(int error)
{
	return error == -ENOSPC ? "there are too many grants: 1024, of them 256 for processes (gpreempt grant list)" :
	       error == -ESRCH  ? "there is no such process" :
	       error == -ETIMEDOUT || error == -EBUSY ?
				 "its folder in /proc does not open, because a program holds it; try again" :
	       error == -EAGAIN ? "gpreemptd has no memory or no thread for it" :
				  strerror(-error);
}

/* Whether the grant for path overrides the grant for other. The longer path does: it lies below the shorter one, or in
 * another hierarchy of cgroups. Of equally long paths, which are in different hierarchies, the later in byte order
 * does. */
static bool grant_is_above(const char *path, const char *other)
{
	size_t size = strlen(path), other_size = strlen(other);

	return size != other_size ? size > other_size : strcmp(path, other) > 0;
}

void gp_grant_overlay(const struct gp_daemon *daemon, const char *cgroups, struct gp_terms *terms)
{
	const struct gp_grant *last = NULL, *next;

	do {
		next = NULL;
		for (const struct gp_grant *grant = daemon->grants.first; grant; grant = grant->next)
			if (!grant->pid && (!last || grant_is_above(grant->cgroup, last->cgroup)) &&
			    (!next || grant_is_above(next->cgroup, grant->cgroup)) &&
			    gp_cgroup_is_within(cgroups, grant->cgroup))
				next = grant;
		if (next)
			gp_terms_overlay(terms, &next->terms);
		last = next;
	} while (next);
}

void gp_grant_of_process(struct gp_daemon *daemon, const struct gp_lineage *lineage, struct gp_terms *ret_terms)
{
	const struct gp_grant *grant;

	gp_terms_init(ret_terms);
	for (uint32_t i = 0; lineage && daemon->grants.pid_count && i < lineage->count; i++) {
		grant = grant_find(daemon, lineage->pids[i], "");
		/* A process that was started later has the number of an ancestor that has ended. */
		if (!grant || (i ? grant->start > lineage->start : grant->start != lineage->start))
			continue;
		*ret_terms = grant->terms;
		/* What is set or forced is for that process alone: otherwise, if it were set for process 1, it would be
		 * for all. */
		if (i)
			ret_terms->forced.valid = 0;
		return;
	}
}

static void grant_write_attr(const struct gp_wire_attr *attr, struct gp_text *text)
{
	if (attr->valid & GP_ATTR_PRIORITY)
		gp_text_i64(text, "priority", attr->priority);
	if (attr->valid & GP_ATTR_WEIGHT)
		gp_text_u64(text, "weight", attr->weight);
	if (attr->valid & GP_ATTR_SHARE)
		gp_text_u64(text, "share_permille", attr->share);
	if (attr->valid & GP_ATTR_DEADLINE)
		gp_text_u64(text, "deadline_ns", attr->deadline_ns);
	if (attr->valid & GP_ATTR_BUDGET)
		gp_text_u64(text, "budget_ns", attr->budget_ns);
	if (attr->valid & GP_ATTR_PROTECT)
		gp_text_string(text, "protect", gp_protect_names[attr->protect]);
	if (attr->valid & GP_ATTR_GANG)
		gp_text_string(text, "gang", attr->gang);
}

void gp_grant_write(const struct gp_daemon *daemon, const struct gp_grant *grant, struct gp_text *text)
{
	struct gp_json_writer *json = gp_text_json(text);
	uint64_t now_ns = gp_now_ns();
	uint32_t clients = 0;

	for (uint32_t i = 0; i < daemon->client_top; i++) {
		const struct gp_client *client = daemon->clients[i];

		clients +=
			client && (grant->pid ? client->device.pid == grant->pid :
						client->identity.cgroups &&
							gp_cgroup_is_within(client->identity.cgroups, grant->cgroup));
	}
	gp_text_open(text, NULL, '{');
	gp_text_string(text, "cgroup", grant->pid ? NULL : grant->cgroup);
	gp_json_writer_known(json, "pid", grant->pid, (uint64_t)grant->pid);
	gp_text_bool(text, "forced", grant->terms.forced.valid);
	grant_write_attr(&grant->terms.attr, text);
	grant_write_attr(&grant->terms.forced, text);
	if (grant->terms.ceiling >= 0)
		gp_text_i64(text, "ceiling", grant->terms.ceiling);
	gp_text_string(text, "tag", *grant->terms.tag ? grant->terms.tag : NULL);
	gp_json_writer_known(json, "ends_in_real_ns", grant->until_ns,
			     grant->until_ns > now_ns ? grant->until_ns - now_ns : 0);
	gp_text_u64(text, "clients", clients);
	gp_text_close(text, '}');
}

static void grant_list(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie)
{
	struct gp_text text = { 0 };

	gp_portion_use(daemon, daemon->grants.count * (1 + daemon->client_top / 64));
	gp_text_open(&text, NULL, '{');
	gp_text_u64(&text, "schema", 1);
	gp_text_open(&text, "grants", '[');
	for (const struct gp_grant *grant = daemon->grants.first; grant; grant = grant->next)
		gp_grant_write(daemon, grant, &text);
	gp_text_close(&text, ']');
	gp_text_close(&text, '}');
	gp_text_add(&text, "\n");
	if (text.failed)
		grant_say(daemon, peer, cookie, -ENOMEM, "gpreemptd is out of memory");
	else
		grant_say(daemon, peer, cookie, 0, text.bytes);
	gp_text_fini(&text);
}

static void grant_name(const struct gp_control_grant *request, char *name, size_t size)
{
	if (request->pid)
		snprintf(name, size, "process %d", request->pid);
	else
		snprintf(name, size, "cgroup %s", request->cgroup);
}

static void grant_log(struct gp_daemon *daemon, const struct gp_peer *peer, const struct gp_control_grant *request)
{
	char name[GP_GRANT_CGROUP + 16], priority[32] = "", ceiling[32] = "";

	grant_name(request, name, sizeof(name));
	if (request->attr.valid & GP_ATTR_PRIORITY)
		snprintf(priority, sizeof(priority), ", priority %d", request->attr.priority);
	if (request->ceiling >= 0)
		snprintf(ceiling, sizeof(ceiling), ", ceiling %d", request->ceiling);
	gp_log_user(daemon, peer->owner, "audit: uid %u (process %d) %s %s%s%s%s%s", peer->uid, peer->pid,
		    request->verb == GP_GRANT_ADD ? "granted" : "removed the grant of", name, priority, ceiling,
		    *request->tag ? ", tag " : "", request->tag);
}

/* process: NULL: the request is for a cgroup, or for a process that has a grant. */
static void grant_carry_out(struct gp_daemon *daemon, struct gp_peer *peer, const struct gp_control_grant *request,
			    struct gp_grant_process *process)
{
	uint32_t cookie = request->header.cookie;
	struct gp_grant *grant;
	struct gp_text text = { 0 };
	int r;

	if (request->verb == GP_GRANT_REMOVE) {
		grant = grant_find(daemon, request->pid, request->cgroup);
		if (!grant) {
			grant_say(daemon, peer, cookie, -ENOENT, "there is no such grant (gpreempt grant list)");
			return;
		}
		if (request->pid)
			gp_client_unset(daemon, request->pid);
		gp_grant_remove(daemon, grant);
		grant_changed(daemon);
		grant_log(daemon, peer, request);
		grant_say(daemon, peer, cookie, 0, "{}\n");
		return;
	}
	r = gp_grant_add(daemon, request, process, &grant);
	if (r) {
		grant_say(daemon, peer, cookie, r, gp_grant_why(r));
		return;
	}
	grant_changed(daemon);
	grant_log(daemon, peer, request);
	gp_grant_write(daemon, grant, &text);
	gp_text_add(&text, "\n");
	grant_say(daemon, peer, cookie, text.failed ? -ENOMEM : 0,
		  text.failed ? "gpreemptd is out of memory" : text.bytes);
	gp_text_fini(&text);
}

static void grant_found(struct gp_daemon *daemon, struct gp_peer *peer, const void *asked, int result,
			struct gp_grant_process *process)
{
	const struct gp_control_grant *request = asked;

	if (result)
		grant_say(daemon, peer, request->header.cookie, result, gp_grant_why(result));
	else
		grant_carry_out(daemon, peer, request, process);
}

void gp_grant_request(struct gp_daemon *daemon, struct gp_peer *peer, const void *data)
{
	/* Copied: answering uses the packet's memory. */
	struct gp_control_grant request = *(const struct gp_control_grant *)data;
	uint32_t cookie = request.header.cookie;
	struct gp_error error;

	if (gp_message_check_grant(&request, &error)) {
		grant_say(daemon, peer, cookie, -EINVAL, error.text);
		return;
	}
	if (!gp_access_is_admin(peer)) {
		gp_log_user(daemon, peer->owner, "audit: uid %u (process %d) may not grant anything", peer->uid,
			    peer->pid);
		grant_say(daemon, peer, cookie, -EPERM,
			  "only root may grant (CAP_SYS_ADMIN, outside of user namespaces)");
		return;
	}
	if (request.verb == GP_GRANT_LIST) {
		grant_list(daemon, peer, cookie);
		return;
	}
	if (request.verb == GP_GRANT_ADD && !request.attr.valid && request.ceiling < 0 && !*request.tag) {
		grant_say(daemon, peer, cookie, -EINVAL, "a grant of nothing: give a priority, a ceiling or a tag");
		return;
	}
	if (request.pid && !gp_control_own_space(peer)) {
		grant_say(
			daemon, peer, cookie, -EINVAL,
			"a process is granted something from the daemon's PID namespace; from another one name its cgroup");
		return;
	}
	gp_portion_use(daemon, daemon->client_top / 4);
	if (!request.pid || request.verb == GP_GRANT_REMOVE || grant_find(daemon, request.pid, ""))
		grant_carry_out(daemon, peer, &request, NULL);
	else if (!gp_grant_process_ask(daemon, peer, request.pid, &request, sizeof(request), grant_found))
		grant_say(daemon, peer, cookie, -EAGAIN, gp_grant_why(-EAGAIN));
}

static void grant_bury(struct gp_daemon *daemon)
{
	struct gp_grant *grant;

	while ((grant = daemon->grants.dead)) {
		daemon->grants.dead = grant->next;
		free(grant);
	}
}

void gp_grant_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	bool is_due = gp_timer_expire(daemon, &daemon->grants.timer, now_ns);
	struct gp_grant *grant, *next;

	grant_bury(daemon);
	for (grant = is_due ? daemon->grants.first : NULL; grant; grant = next) {
		next = grant->next;
		if (!grant->until_ns || now_ns < grant->until_ns)
			continue;
		if (grant->pid)
			gp_log("the time of the grant for process %d is over", (int)grant->pid);
		else
			gp_log("the time of the grant for cgroup %s is over", grant->cgroup);
		gp_grant_remove(daemon, grant);
		daemon->grants.dirty = true;
	}
	if (daemon->grants.dirty)
		gp_grant_save(daemon);
	daemon->grants.dirty = daemon->grants.saved = false;
}

void gp_grant_fini(struct gp_daemon *daemon)
{
	struct gp_grant *grant;

	if (daemon->grants.dirty)
		gp_grant_save(daemon);
	daemon->grants.dirty = false;
	while ((grant = daemon->grants.first)) {
		daemon->grants.first = grant->next;
		gp_daemon_drop(daemon, grant->pidfd);
		free(grant);
	}
	grant_bury(daemon);
	daemon->grants.count = daemon->grants.pid_count = 0;
}
