/* SPDX-License-Identifier: MIT */
/*
 * Computes a client's attributes and ceiling from everything that may set them (program, commands, rules, grants),
 * and passes them to its queues.
 */
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/grant.h"

static const struct gp_wire_attr attr_default = {
	.valid = GP_ATTR_PRIORITY | GP_ATTR_WEIGHT | GP_ATTR_DEADLINE | GP_ATTR_BUDGET | GP_ATTR_GANG | GP_ATTR_SHARE |
		 GP_ATTR_PROTECT,
	.priority = GP_PRIORITY_NORMAL,
	.weight = GP_WEIGHT_DEFAULT,
};

void gp_client_attr_init(struct gp_client *client)
{
	client->attr = attr_default;
	gp_terms_init(&client->by_pid);
	gp_terms_init(&client->terms);
}

void gp_client_forget_attr(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_client **at = &daemon->attr_clients;

	while (client->attr_waits && *at != client)
		at = &(*at)->attr_next;
	if (client->attr_waits)
		*at = client->attr_next;
	client->attr_waits = false;
}

void gp_client_tell_attr(struct gp_client *client)
{
	struct gp_wire_attr_message message = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR_NOW, sizeof(message), 0 },
		.attr = client->attr,
	};

	if (client->peer && client->welcomed)
		gp_peer_send(client->peer, &message, sizeof(message), NULL, 0);
}

void gp_client_cut(const struct gp_client *client, struct gp_wire_attr *attr)
{
	if (attr->priority > client->ceiling)
		attr->priority = client->ceiling;
	if (client->may_raise)
		return;
	attr->weight = attr->weight > GP_WEIGHT_DEFAULT ? GP_WEIGHT_DEFAULT : attr->weight;
	attr->deadline_ns = attr->budget_ns = 0;
	attr->share = 0;
	attr->protect = attr->protect == GP_PROTECT_LATENCY ? GP_PROTECT_DEFAULT : attr->protect;
}

/* Passes the client's attributes to its queues, as many as the portion allows (at least one). gp_client_apply_attrs()
 * does the rest. */
static void attr_apply(struct gp_daemon *daemon, struct gp_client *client)
{
	for (bool any = false; client->attr_at < client->slot_count; client->attr_at++) {
		struct gp_queue_entry *queue = client->slots[client->attr_at].queue;

		if (!queue)
			continue;
		if (any && gp_portion_is_over(daemon))
			break;
		gp_queue_attr(daemon, queue);
		any = true;
	}
	if (client->attr_at >= client->slot_count || client->attr_waits)
		return;
	client->attr_waits = true;
	client->attr_next = daemon->attr_clients;
	daemon->attr_clients = client;
}

void gp_client_reapply(struct gp_daemon *daemon, struct gp_client *client)
{
	client->attr_at = 0;
	attr_apply(daemon, client);
}

void gp_client_apply_attrs(struct gp_daemon *daemon)
{
	struct gp_client *client;

	gp_portion_begin(daemon);
	while ((client = daemon->attr_clients)) {
		daemon->attr_clients = client->attr_next;
		client->attr_waits = false;
		attr_apply(daemon, client);
		if (gp_portion_is_over(daemon))
			return;
	}
}

/* Each of these overrides the one before: the defaults; rules and grants; what the program and its user asked for; what
 * rules and grants force and what root set, except the fields that the program or its user has set since. The ceiling
 * cuts the result. */
void gp_client_make_attr(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_wire_attr now = attr_default, above = client->terms.forced;

	if (client->is_unmanaged)
		now.priority = daemon->config.unmanaged_priority;
	gp_attr_overlay(&above, &client->set);
	above.valid &= ~client->over;
	gp_attr_overlay(&now, &client->terms.attr);
	gp_attr_overlay(&now, &client->own);
	gp_attr_overlay(&now, &above);
	gp_client_cut(client, &now);
	client->attr = now;
	gp_client_reapply(daemon, client);
	gp_together_update(daemon, client);
	gp_client_tell_attr(client);
	gp_metrics_changed(daemon);
	gp_slicing_changed(daemon);
}

void gp_client_set_attr(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_attr *attr,
			bool is_root)
{
	/* Root may set more than the user's ceiling allows. The client's ceiling then stays as high as root set it. */
	if (is_root && attr->valid & GP_ATTR_PRIORITY && attr->priority > client->ceiling)
		client->ceiling = client->granted = attr->priority;
	if (is_root && gp_access_is_raise(attr))
		client->may_raise = client->granted_raise = true;
	gp_attr_overlay(is_root ? &client->set : &client->own, attr);
	client->over = is_root ? client->over & ~attr->valid : client->over | attr->valid;
	gp_client_make_attr(daemon, client);
}

static void attr_lift(struct gp_client *client, const struct gp_wire_attr *attr)
{
	if (attr->valid & GP_ATTR_PRIORITY && attr->priority > client->ceiling)
		client->ceiling = attr->priority;
	client->may_raise |= gp_access_is_raise(attr);
}

/* A ceiling of a rule or grant replaces the user's, whoever the user is. An attribute of a rule or grant raises the
 * ceiling to its own value. */
static void attr_make_ceiling(struct gp_daemon *daemon, struct gp_client *client)
{
	const struct gp_terms *terms = &client->terms;

	if (client->peer) {
		client->ceiling = gp_access_ceiling(&daemon->config, client->peer);
		client->may_raise = gp_access_may_raise(&daemon->config, client->peer);
	}
	if (terms->ceiling >= 0) {
		client->ceiling = terms->ceiling;
		client->may_raise = terms->ceiling > daemon->config.ceiling_default;
	}
	attr_lift(client, &terms->attr);
	attr_lift(client, &terms->forced);
	if (client->granted > client->ceiling)
		client->ceiling = client->granted;
	client->may_raise |= client->granted_raise;
}

void gp_client_refresh(struct gp_daemon *daemon, struct gp_client *client)
{
	gp_terms_find(daemon, client, &client->terms);
	attr_make_ceiling(daemon, client);
	gp_client_make_attr(daemon, client);
}

void gp_client_unset(struct gp_daemon *daemon, pid_t pid)
{
	for (uint32_t i = 0; i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (!client || client->device.pid != pid)
			continue;
		client->set.valid = 0;
		client->granted = 0;
		client->granted_raise = false;
		gp_client_refresh(daemon, client);
	}
}

/* Finds the rules and grants for the client's cgroups and for the process. */
void gp_client_find_terms(struct gp_daemon *daemon, struct gp_client *client)
{
	gp_grant_of_process(daemon, client->identity.lineage, &client->by_pid);
	gp_terms_find(daemon, client, &client->terms);
	attr_make_ceiling(daemon, client);
}

void gp_client_adopted(struct gp_daemon *daemon, struct gp_client *client)
{
	gp_client_find_terms(daemon, client);
	gp_client_make_attr(daemon, client);
}
