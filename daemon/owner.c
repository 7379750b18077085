/* SPDX-License-Identifier: MIT */
/*
 * Owns the accounts of users. identity.c finds the account that a process belongs to. For a uid alone it is the user
 * who has the uid in a range of /etc/subuid, otherwise the uid itself.
 *
 * An account lives as long as a connection or a client refers to it, ten minutes longer, and as long as its user has a
 * penalty. The daemon forgets no account earlier to make room: users who find no place share one account. So a user
 * cannot get rid of a penalty by connecting again, or by having others connect.
 */
#include <errno.h>
#include <stdlib.h>
#include "daemon/daemon.h"
#include "daemon/identity.h"

#define OWNER_BUCKETS  1024u
#define OWNER_KEEP_NS  600000000000ull /* chosen: several times the longest penalty of a client */
#define OWNER_SWEEP    64u             /* with fewer accounts the daemon does not look for old ones */
#define OWNER_SWEEP_NS 1000000000ull   /* between two such looks */
#define OWNER_ROOT     0u
#define OWNER_CROWD    1u

struct gp_owners {
	struct gp_owner *buckets[OWNER_BUCKETS];
	struct gp_owner root, crowd; /* crowd: of users who find no place */
	struct gp_subuid *subuid;    /* NULL: no memory; then there are no ranges */
	uint32_t count, serial;
	uint64_t sweep_ns; /* not before that */
};

int gp_owner_init(struct gp_daemon *daemon)
{
	struct gp_owners *owners = calloc(1, sizeof(*owners));

	if (!owners)
		return -ENOMEM;
	owners->root = (struct gp_owner){ .id = OWNER_ROOT };
	owners->crowd = (struct gp_owner){ .id = OWNER_CROWD, .uid = (uid_t)-1 };
	owners->serial = OWNER_CROWD;
	owners->subuid = gp_subuid_create(gp_subuid_path, gp_subuid_passwd_path);
	daemon->owners = owners;
	return 0;
}

static bool owner_may_go(const struct gp_owner *owner, uint64_t now_ns)
{
	return !owner->references && now_ns >= owner->keep_until_ns;
}

static void owner_sweep(struct gp_owners *owners, uint64_t now_ns)
{
	for (uint32_t i = 0; i < OWNER_BUCKETS; i++) {
		struct gp_owner **at = &owners->buckets[i], *owner;

		while ((owner = *at)) {
			if (!owner_may_go(owner, now_ns)) {
				at = &owner->next;
				continue;
			}
			*at = owner->next;
			owners->count--;
			free(owner);
		}
	}
	owners->sweep_ns = now_ns + OWNER_SWEEP_NS;
}

/* Adds an account for the user, or returns the one that users without a place share. */
static struct gp_owner *owner_add(struct gp_owners *owners, uint64_t key, uid_t uid)
{
	uint64_t now_ns = gp_now_ns();
	struct gp_owner **bucket = &owners->buckets[key % OWNER_BUCKETS], *owner;

	if (owners->count >= OWNER_SWEEP && now_ns >= owners->sweep_ns)
		owner_sweep(owners, now_ns);
	owner = owners->count < GP_OWNER_MAX ? calloc(1, sizeof(*owner)) : NULL;
	if (!owner)
		return &owners->crowd;
	*owner = (struct gp_owner){ .next = *bucket, .key = key, .id = ++owners->serial, .uid = uid };
	*bucket = owner;
	owners->count++;
	return owner;
}

struct gp_owner *gp_owner_of(struct gp_daemon *daemon, uint64_t account, uid_t uid)
{
	struct gp_owners *owners = daemon->owners;
	struct gp_owner *owner = owners->buckets[account % OWNER_BUCKETS];

	if (!account)
		return gp_owner_hold(&owners->root);
	while (owner && owner->key != account)
		owner = owner->next;
	return gp_owner_hold(owner ? owner : owner_add(owners, account, uid));
}

struct gp_owner *gp_owner_of_uid(struct gp_daemon *daemon, uid_t uid)
{
	const struct gp_owners *owners = daemon->owners;
	uint64_t account = uid ? gp_identity_of_uid(owners->subuid, uid, &uid) : 0;

	return gp_owner_of(daemon, account, uid);
}

struct gp_owner *gp_owner_hold(struct gp_owner *owner)
{
	owner->references++;
	return owner;
}

void gp_owner_put(struct gp_owner *owner)
{
	if (!--owner->references)
		gp_owner_keep(owner, gp_now_ns() + OWNER_KEEP_NS);
}

void gp_owner_keep(struct gp_owner *owner, uint64_t until_ns)
{
	if (until_ns > owner->keep_until_ns)
		owner->keep_until_ns = until_ns;
}

bool gp_owner_is_root(const struct gp_owner *owner)
{
	return owner->id == OWNER_ROOT;
}

bool gp_owner_may_take(const struct gp_owner *owner, uint32_t count, uint32_t kept, uint32_t used, uint32_t own)
{
	uint32_t others = used - own, left;

	if (gp_owner_is_root(owner))
		return used < count;
	kept = kept < count ? kept : count - 1;
	left = count - kept > others ? count - kept - others : 0;
	return own < left && own < (left + 1) / 2;
}

void gp_owner_fini(struct gp_daemon *daemon)
{
	struct gp_owners *owners = daemon->owners;
	struct gp_owner *owner;

	for (uint32_t i = 0; owners && i < OWNER_BUCKETS; i++)
		while ((owner = owners->buckets[i])) {
			owners->buckets[i] = owner->next;
			free(owner);
		}
	if (owners)
		gp_subuid_destroy(owners->subuid);
	free(owners);
	daemon->owners = NULL;
}
