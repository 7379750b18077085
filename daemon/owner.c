/* SPDX-License-Identifier: MIT */
/*
 * Finds the user that a process belongs to. The kernel tells its uid. But a user has more than one uid: with limits and
 * penalties by uid alone, a user could have each limit 65,536 times, and leave a penalty behind with its uid. And the
 * maker of a container chooses the uids in it. So, in this order:
 *
 * - uid 0 with a right of rights.c: root;
 * - a process in a PID namespace below the daemon's that belongs to the daemon's user namespace (root's container
 *   engine made it): the outermost such namespace, which is the container, whatever the uid. But if a user
 *   started it (sandbox.c), as sandboxes that are set-user-ID root allow, it is nothing: the next ones count;
 * - uid 0 without a right: one account for all of them, or the container's if it has a user namespace;
 * - a process in a user namespace below the daemon's: the uid that made the outermost such namespace. A namespace that
 *   root made (a container engine's) is an account of its own, if its uids are a container's;
 * - a uid within a range of /etc/subuid: the user who has that range;
 * - otherwise the uid itself.
 *
 * An account lives as long as a connection or a client refers to it, ten minutes longer, and as long as its user has a
 * penalty. The daemon forgets no account earlier to make room: users who find no place share one account. So a user
 * cannot get rid of a penalty by connecting again, or by having others connect.
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
#include "daemon/process.h"
#include "daemon/rights.h"
#include "daemon/sandbox.h"
#include "daemon/subuid.h"

#define OWNER_BUCKETS  1024u
#define OWNER_KEEP_NS  600000000000ull /* chosen: several times the longest penalty of a client */
#define OWNER_SWEEP    64u             /* with fewer accounts the daemon does not look for old ones */
#define OWNER_SWEEP_NS 1000000000ull   /* between two such looks */
#define OWNER_DEPTH    34              /* user namespaces within each other: the kernel allows 32 */
#define OWNER_RANGE    (1ull << 62)    /* keys: a uid, the first of a range, the number of a namespace */
#define OWNER_SPACE    (2ull << 62)
#define OWNER_PIDS     (3ull << 62)
#define OWNER_NUMBER   (~(3ull << 62))
#define OWNER_ENDED    (OWNER_PIDS | 1) /* no namespace has that number */
#define OWNER_NONE     (-ENODATA)
#define OWNER_ROOT     0u
#define OWNER_CROWD    1u

struct gp_owners {
	struct gp_owner *buckets[OWNER_BUCKETS];
	struct gp_owner root, crowd; /* crowd: of users who find no place */
	struct gp_subuid *subuid;    /* NULL: no memory; then there are no ranges */
	uint32_t count, serial;
	uint64_t sweep_ns; /* not before that */
	ino_t own_space, own_pids;
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

static int owner_open_space(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static ino_t owner_own(const char *name)
{
	int fd = owner_open_space(getpid(), name);
	ino_t inode = 0;

	if (fd >= 0) {
		if (!owner_inode(fd, &inode))
			inode = 0;
		close(fd);
	}
	return inode;
}

static struct gp_owners *owner_table(struct gp_daemon *daemon)
{
	struct gp_owners *owners = daemon->owners;

	if (owners)
		return owners;
	owners = calloc(1, sizeof(*owners));
	if (!owners)
		return NULL;
	owners->root = (struct gp_owner){ .id = OWNER_ROOT };
	owners->crowd = (struct gp_owner){ .id = OWNER_CROWD, .uid = (uid_t)-1 };
	owners->serial = OWNER_CROWD;
	owners->subuid = gp_subuid_create(gp_owner_subuid_path, gp_owner_passwd_path);
	owners->own_space = owner_own("user");
	owners->own_pids = owner_own("pid");
	daemon->owners = owners;
	return owners;
}

int gp_owner_init(struct gp_daemon *daemon)
{
	return owner_table(daemon) ? 0 : -ENOMEM;
}

/* Finds the process's outermost namespace below the daemon's own. Returns its file, and its inode number; OWNER_NONE:
 * it is in the daemon's own; another negative errno: not known. */
static int owner_outermost(pid_t pid, const char *name, ino_t own, ino_t *ret_space)
{
	int fd = own ? owner_open_space(pid, name) : -1, parent = -1, r = 0;
	ino_t inode = 0, above = 0;

	if (fd < 0)
		return own ? -errno : OWNER_NONE;
	if (!owner_inode(fd, &inode))
		r = -errno;
	for (int i = 0; !r; i++) {
		parent = inode == own || i == OWNER_DEPTH ? -1 : ioctl(fd, NS_GET_PARENT);
		if (inode == own)
			r = OWNER_NONE;
		else if (parent < 0 || !owner_inode(parent, &above))
			r = i == OWNER_DEPTH ? -ELOOP : -errno;
		if (r || above == own)
			break;
		close(fd);
		fd = parent;
		inode = above;
	}
	if (parent >= 0)
		close(parent);
	if (!r)
		*ret_space = inode;
	else
		close(fd);
	return r ? r : fd;
}

/* Finds the process's outermost user namespace, and the uid that made it. False: there is none. */
static bool owner_space(const struct gp_owners *owners, pid_t pid, int pidfd, ino_t *ret_space, uid_t *ret_maker)
{
	int fd = pidfd >= 0 ? owner_outermost(pid, "user", owners->own_space, ret_space) : -1;
	bool found = fd >= 0 && !ioctl(fd, NS_GET_OWNER_UID, ret_maker);

	if (fd >= 0)
		close(fd);
	return found;
}

/* Finds the process's outermost PID namespace, if it belongs to the daemon's own user namespace: no user made it.
 * False: it does not, or there is none. A negative errno: the daemon lacks what it takes to tell. */
static int owner_container(const struct gp_owners *owners, pid_t pid, int pidfd, ino_t *ret_space)
{
	int fd = pidfd >= 0 ? owner_outermost(pid, "pid", owners->own_pids, ret_space) : OWNER_NONE;
	int user = fd >= 0 ? ioctl(fd, NS_GET_USERNS) : -1, failed = fd >= 0 && user < 0 ? -errno : fd;
	ino_t inode = 0;
	bool found = user >= 0 && owner_inode(user, &inode) && inode == owners->own_space;

	if (user >= 0)
		close(user);
	if (fd >= 0)
		close(fd);
	if (failed == -EMFILE || failed == -ENFILE || failed == -ENOMEM)
		return failed;
	return found;
}

int gp_owner_outermost_pids(pid_t pid, ino_t own, ino_t *ret_space)
{
	ino_t space = 0;
	int fd = owner_outermost(pid, "pid", own, &space);

	if (fd >= 0)
		close(fd);
	if (fd < 0 && fd != OWNER_NONE)
		return fd;
	*ret_space = space;
	return 0;
}

static enum gp_sandbox owner_sandbox(struct gp_daemon *daemon, uid_t uid, pid_t pid, int pidfd, ino_t space)
{
	const struct gp_owners *owners = daemon->owners;

	if (!uid)
		return GP_SANDBOX_CONTAINER;
	return gp_sandbox_find(daemon, owners->subuid,
			       &(struct gp_sandbox_process){ uid, pid, pidfd, space, owners->own_pids });
}

static uint64_t owner_find_key(struct gp_daemon *daemon, uid_t uid, pid_t pid, int pidfd, uid_t *ret_uid)
{
	const struct gp_owners *owners = daemon->owners;
	const struct gp_subuid_range *range;
	int container;
	ino_t space = 0;
	uid_t maker;

	*ret_uid = uid;
	if (!uid && (pidfd < 0 || gp_rights_read(uid, pid, pidfd)))
		return 0;
	container = owner_container(owners, pid, pidfd, &space);
	if (container) {
		enum gp_sandbox sandbox =
			container < 0 ? GP_SANDBOX_UNKNOWN : owner_sandbox(daemon, uid, pid, pidfd, space);

		if (sandbox == GP_SANDBOX_UNKNOWN) /* all of them are one: neither a user nor as many as there are */
			return OWNER_PIDS;
		if (sandbox == GP_SANDBOX_CONTAINER)
			return OWNER_PIDS | (space & OWNER_NUMBER);
	}
	if (owner_space(owners, pid, pidfd, &space, &maker)) {
		if (!maker && (!uid || uid >= GP_SUBUID_FIRST))
			return OWNER_SPACE | (space & OWNER_NUMBER);
		uid = maker ? maker : uid;
	}
	if (!uid)
		return OWNER_RANGE;
	range = uid && owners->subuid ? gp_subuid_find(owners->subuid, uid) : NULL;
	if (range)
		uid = range->uid;
	*ret_uid = uid;
	return range && !range->is_user ? OWNER_RANGE | uid : uid;
}

/* If the process has not ended, its pid meant the same process all the time. One that has ended no longer shows its
 * namespaces, so its uid may be a container's: all those share one account. */
static uint64_t owner_key(struct gp_daemon *daemon, uid_t uid, pid_t pid, int pidfd, uid_t *ret_uid)
{
	uint64_t key = owner_find_key(daemon, uid, pid, pidfd, ret_uid);

	if (!key || pidfd < 0 || gp_process_is_there(pidfd))
		return key;
	*ret_uid = uid;
	return OWNER_ENDED;
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

uint64_t gp_owner_account(struct gp_daemon *daemon, uid_t uid, pid_t pid, int pidfd)
{
	return owner_key(daemon, uid, pid, pidfd, &uid);
}

uint64_t gp_process_account(struct gp_daemon *daemon, uid_t uid, pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t account = pidfd < 0 ? UINT64_MAX : gp_owner_account(daemon, uid, pid, pidfd);

	if (pidfd >= 0)
		close(pidfd);
	return account;
}

bool gp_owner_is_container(uint64_t account)
{
	return account >= OWNER_SPACE;
}

struct gp_owner *gp_owner_get(struct gp_daemon *daemon, uid_t uid, pid_t pid, int pidfd, uint64_t *ret_account)
{
	struct gp_owners *owners = daemon->owners;
	uint64_t key = owner_key(daemon, uid, pid, pidfd, &uid);
	struct gp_owner *owner = owners->buckets[key % OWNER_BUCKETS];

	if (ret_account)
		*ret_account = key;
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
