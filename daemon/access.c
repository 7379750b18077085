/* SPDX-License-Identifier: MIT */
/*
 * Decides which priority a user may have, what a user may see and which processes a user may change. The kernel
 * names the user; no message does. A process that acts on other users' processes needs a capability for that
 * (rights.c). uid 0 alone gives no right, since every container has one. The maker of a container chooses the uids
 * and groups in it, so the daemon applies no line for a user or a group there.
 */
#include <stdio.h>
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/identity.h"

static bool access_has_group(const struct gp_peer *peer, int64_t gid)
{
	for (uint32_t i = 0; i < peer->group_count && !gp_identity_is_container(peer->identity.account); i++)
		if ((int64_t)peer->groups[i] == gid)
			return true;
	return false;
}

/* The line that decides: one for the user alone, otherwise the best of the groups. NULL: the default. */
static const struct gp_ceiling *access_line(const struct gp_config *config, const struct gp_peer *peer)
{
	const struct gp_ceiling *best = NULL;

	for (uint32_t i = 0; i < config->ceiling_count && !gp_identity_is_container(peer->identity.account); i++)
		if (!config->ceilings[i].is_group && config->ceilings[i].id == peer->uid)
			return &config->ceilings[i];
	for (uint32_t i = 0; i < config->ceiling_count; i++)
		if (config->ceilings[i].is_group &&
		    config->ceilings[i].priority > (best ? best->priority : config->ceiling_default) &&
		    access_has_group(peer, config->ceilings[i].id))
			best = &config->ceilings[i];
	return best;
}

int32_t gp_access_ceiling(const struct gp_config *config, const struct gp_peer *peer)
{
	const struct gp_ceiling *line = access_line(config, peer);

	if (peer->identity.rights & GP_RIGHT_NICE)
		return GP_PRIORITY_MAX;
	return line ? line->priority : config->ceiling_default;
}

const char *gp_access_ceiling_name(const struct gp_config *config, const struct gp_peer *peer)
{
	const struct gp_ceiling *line = access_line(config, peer);

	return line ? line->name : "default";
}

void gp_access_groups_above(const struct gp_config *config, const struct gp_peer *peer, char *ret_text, size_t size)
{
	const struct gp_ceiling *line = access_line(config, peer);
	int32_t ceiling = gp_access_ceiling(config, peer);
	size_t used = 0;

	ret_text[0] = '\0';
	/* Groups do not count in a container, nor for a user who has a line. */
	if (gp_identity_is_container(peer->identity.account) || (line && !line->is_group))
		return;
	for (uint32_t i = 0; i < config->ceiling_count; i++) {
		const struct gp_ceiling *one = &config->ceilings[i];
		char text[GP_CONFIG_NAME_SIZE + 16];
		int length;

		if (!one->is_group || one->priority <= ceiling)
			continue;
		length = snprintf(text, sizeof(text), "%s%s = %d", used ? ", " : "", one->name, one->priority);
		if (length < 0 || used + (size_t)length >= size)
			return;
		memcpy(ret_text + used, text, (size_t)length + 1);
		used += (size_t)length;
	}
}

/* A guaranteed share, a weight above the default (policy wfq), a deadline (edf) and latency protection give a program
 * more than its priority does. Only users whose ceiling is above the default, and processes with CAP_SYS_NICE, may have
 * them. */
bool gp_access_may_raise(const struct gp_config *config, const struct gp_peer *peer)
{
	return gp_access_ceiling(config, peer) > config->ceiling_default || peer->identity.rights & GP_RIGHT_NICE;
}

bool gp_access_is_raise(const struct gp_wire_attr *attr)
{
	return (attr->valid & GP_ATTR_WEIGHT && attr->weight > GP_WEIGHT_DEFAULT) ||
	       (attr->valid & GP_ATTR_DEADLINE && attr->deadline_ns) || (attr->valid & GP_ATTR_SHARE && attr->share) ||
	       (attr->valid & GP_ATTR_PROTECT && attr->protect == GP_PROTECT_LATENCY);
}

bool gp_access_is_admin(const struct gp_peer *peer)
{
	return peer->identity.rights & GP_RIGHT_ADMIN;
}

bool gp_access_sees_all(const struct gp_daemon *daemon, const struct gp_peer *peer)
{
	return !peer || gp_access_is_admin(peer) ||
	       (daemon->config.see_gid >= 0 && access_has_group(peer, daemon->config.see_gid));
}

bool gp_access_is_same(const struct gp_peer *peer, const struct gp_client *client)
{
	return peer->uid == client->uid && peer->identity.account == client->identity.account;
}

bool gp_access_may_change(const struct gp_peer *peer, const struct gp_client *client)
{
	return gp_access_is_admin(peer) || gp_access_is_same(peer, client);
}
