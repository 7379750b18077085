/* SPDX-License-Identifier: MIT */
/* Who may have which priority, see what and change whom. Identities come from the kernel, never from a message. */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include "daemon/daemon.h"

#define ACCESS_GROUP_MAX 256

/* The groups of a user as the system's database has them: what a process dropped or was never given does not count for
 * or against it, since a socket tells the primary group only. */
static int access_groups(uid_t uid, gid_t gid, gid_t *groups)
{
	struct passwd *user = getpwuid(uid);
	int count = ACCESS_GROUP_MAX;

	groups[0] = gid;
	if (!user)
		return 1;
	if (getgrouplist(user->pw_name, gid, groups, &count) < 0)
		return ACCESS_GROUP_MAX;
	return count;
}

int32_t gp_access_ceiling(const struct gp_config *config, uid_t uid, gid_t gid)
{
	gid_t groups[ACCESS_GROUP_MAX];
	int32_t ceiling = config->ceiling_default;
	int count;

	if (!uid)
		return GP_PRIORITY_MAX;
	/* A line for the user decides alone; otherwise the best of the groups. */
	for (uint32_t i = 0; i < config->ceiling_count; i++)
		if (!config->ceilings[i].is_group && config->ceilings[i].id == uid)
			return config->ceilings[i].priority;
	count = access_groups(uid, gid, groups);
	for (uint32_t i = 0; i < config->ceiling_count; i++) {
		if (!config->ceilings[i].is_group)
			continue;
		for (int k = 0; k < count; k++)
			if (config->ceilings[i].id == groups[k] && config->ceilings[i].priority > ceiling)
				ceiling = config->ceilings[i].priority;
	}
	return ceiling;
}

bool gp_access_sees_all(const struct gp_daemon *daemon, const struct gp_peer *peer)
{
	gid_t groups[ACCESS_GROUP_MAX];
	int count;

	if (!peer || !peer->uid)
		return true;
	if (daemon->config.see_gid < 0)
		return false;
	count = access_groups(peer->uid, peer->gid, groups);
	for (int i = 0; i < count; i++)
		if ((int64_t)groups[i] == daemon->config.see_gid)
			return true;
	return false;
}

bool gp_access_may_change(const struct gp_peer *peer, const struct gp_client *client)
{
	return !peer->uid || peer->uid == client->uid;
}

const char *gp_access_user(uid_t uid, char *buffer, size_t size)
{
	struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(buffer, size, "%s", user->pw_name);
	else
		snprintf(buffer, size, "%u", uid);
	return buffer;
}
