/* SPDX-License-Identifier: MIT */
/*
 * Whose a process is. The kernel says its uid; but a user has more uids than one, and what is limited or held against
 * him by uid alone he takes 65,536 times, or walks away from. So, in this order:
 *
 * - a process in a user namespace below ours: the uid that made the outermost such namespace. One that root made (a
 *   container engine's) is an account of its own, if its uids are a container's;
 * - a uid within a range of /etc/subuid: the user who has that range;
 * - otherwise the uid itself.
 *
 * An account lives as long as somebody refers to it, and ten minutes longer, and for as long as something is held
 * against him. Nobody is forgotten before that to make room for another: who finds no place shares the account of all
 * who find none. So a penalty cannot be washed off by coming again, nor by having others come.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/subuid.h"

#define OWNER_BUCKETS  1024u
#define OWNER_KEEP_NS  600000000000ull /* chosen: several times the longest penalty of a client */
#define OWNER_SWEEP    64u             /* with fewer accounts nobody is looked for who may go */
#define OWNER_SWEEP_NS 1000000000ull   /* between two such looks */
#define OWNER_DEPTH    34              /* user namespaces within each other: the kernel allows 32 */
#define OWNER_RANGE    (1ull << 62)    /* keys: a uid, the first of a range, the number of a namespace */
#define OWNER_SPACE    (2ull << 62)
#define OWNER_ROOT     0u
#define OWNER_CROWD    1u

struct gp_owners {
	struct gp_owner *buckets[OWNER_BUCKETS];
	struct gp_owner root, crowd; /* of those who find no place */
	struct gp_subuid *subuid;    /* NULL: no memory; then there are no ranges */
	uint32_t count, serial;
	uint64_t sweep_ns; /* not before that */
	ino_t own_space;
};

const char *gp_owner_subuid_path = "/etc/subuid", *gp_owner_passwd_path = "/etc/passwd";

static bool owner_inode(int fd, ino_t *ret_inode)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*ret_inode = st.st_ino;
	return true;
}

static int owner_open_space(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static struct gp_owners *owner_table(struct gp_daemon *daemon)
{
	struct gp_owners *owners = daemon->owners;
	int fd;

	if (owners)
		return owners;
	owners = calloc(1, sizeof(*owners));
	if (!owners)
		return NULL;
	owners->root = (struct gp_owner){ .id = OWNER_ROOT };
	owners->crowd = (struct gp_owner){ .id = OWNER_CROWD, .uid = (uid_t)-1 };
	owners->serial = OWNER_CROWD;
	owners->subuid = gp_subuid_create(gp_owner_subuid_path, gp_owner_passwd_path);
	fd = owner_open_space(getpid());
	if (fd >= 0) {
		if (!owner_inode(fd, &owners->own_space))
			owners->own_space = 0;
		close(fd);
	}
	daemon->owners = owners;
	return owners;
}

int gp_owner_init(struct gp_daemon *daemon)
{
	return owner_table(daemon) ? 0 : -ENOMEM;
}

/* The outermost user namespace of a process below ours: its number, and who made it. False: there is none. */
static bool owner_space(const struct gp_owners *owners, pid_t pid, int pidfd, ino_t *ret_space, uid_t *ret_maker)
{
	int fd = pidfd >= 0 && owners->own_space ? owner_open_space(pid) : -1, parent;
	ino_t inode, above = 0;
	bool found = false;

	if (fd < 0)
		return false;
	if (!owner_inode(fd, &inode))
		inode = 0;
	for (int i = 0; inode && inode != owners->own_space && i < OWNER_DEPTH; i++) {
		parent = ioctl(fd, NS_GET_PARENT);
		found = parent >= 0 && owner_inode(parent, &above) && above == owners->own_space;
		if (found) {
			*ret_space = inode;
			found = !ioctl(fd, NS_GET_OWNER_UID, ret_maker);
		}
		if (parent >= 0)
			close(fd);
		fd = parent >= 0 ? parent : fd;
		inode = parent >= 0 ? above : 0;
	}
	close(fd);
	/* The number meant the same process if that is still there. */
	return found && !(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) && errno == ESRCH);
}

static uint64_t owner_key(struct gp_owners *owners, uid_t uid, pid_t pid, int pidfd, uid_t *ret_uid)
{
	const struct gp_subuid_range *range;
	ino_t space;
	uid_t maker;

	*ret_uid = uid;
	if (uid && owner_space(owners, pid, pidfd, &space, &maker)) {
		if (!maker && uid >= GP_SUBUID_FIRST)
			return OWNER_SPACE | (space & ~(3ull << 62));
		uid = maker ? maker : uid;
	}
	range = uid && owners->subuid ? gp_subuid_find(owners->subuid, uid) : NULL;
	if (range)
		uid = range->uid;
	*ret_uid = uid;
	return range && !range->is_user ? OWNER_RANGE | uid : uid;
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

/* An account of his own, or the one of those who have none. */
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

struct gp_owner *gp_owner_get(struct gp_daemon *daemon, uid_t uid, pid_t pid, int pidfd)
{
	struct gp_owners *owners = daemon->owners;
	uint64_t key = owner_key(owners, uid, pid, pidfd, &uid);
	struct gp_owner *owner = owners->buckets[key % OWNER_BUCKETS];

	if (!key)
		return gp_owner_hold(&owners->root);
	while (owner && owner->key != key)
		owner = owner->next;
	return gp_owner_hold(owner ? owner : owner_add(owners, key, uid));
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
