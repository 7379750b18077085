/* SPDX-License-Identifier: MIT */
/*
 * Finds out which process it is: its user, its rights, its PID namespace, its cgroups, its ancestors. The kernel tells
 * the uid. But a user has more than one uid: with limits and penalties by uid alone, a user could have each limit
 * 65,536 times, and leave a penalty behind with its uid. And the maker of a container chooses the uids in it. So the
 * account is, in this order:
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
 * All this is in files of /proc/PID, and any user can hold up whoever opens them. So a helper process reads them
 * (lib/aside.h), while a thread waits for the helper (identify.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/cgroup.h"
#include "daemon/daemon.h"
#include "daemon/process.h"
#include "daemon/rights.h"
#include "daemon/sandbox.h"
#include "lib/aside.h"
#include "lib/cleanup.h"

#define IDENTITY_DEPTH  34           /* user namespaces within each other: the kernel allows 32 */
#define IDENTITY_RANGE  (1ull << 62) /* accounts: a uid, the first of a range, the number of a namespace */
#define IDENTITY_SPACE  (2ull << 62)
#define IDENTITY_PIDS   (3ull << 62)
#define IDENTITY_NUMBER (~(3ull << 62))
#define IDENTITY_ENDED  (IDENTITY_PIDS | 1) /* no namespace has that number */
#define IDENTITY_NONE   (-ENODATA)

/* What a helper reads: memory without pointers. */
struct identity_flat {
	/* The question. */
	pid_t pid;
	uid_t uid;
	/* The answer. */
	struct gp_process_identity identity; /* without its pointers */
	struct gp_process_stat stat;
	uint32_t ancestor_count;
	pid_t ancestors[GP_PROCESS_DEPTH];
	char cgroups[GP_CGROUP_TEXT];
};

/* Of this process; helpers inherit it. */
static struct {
	pthread_once_t once;
	ino_t users, pids;
} identity_own = { .once = PTHREAD_ONCE_INIT };

/* In tests without helpers threads share it. */
static struct {
	pthread_mutex_t lock;
	struct gp_subuid *table; /* lock */
} identity_subuid = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool identity_inode(int fd, ino_t *ret_inode)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*ret_inode = st.st_ino;
	return true;
}

static int identity_open_space(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static ino_t identity_own_space(const char *name)
{
	int fd = identity_open_space(getpid(), name);
	ino_t inode = 0;

	if (fd >= 0) {
		if (!identity_inode(fd, &inode))
			inode = 0;
		close(fd);
	}
	return inode;
}

/* Finds the process's outermost namespace below the daemon's own. Returns its file, and its inode number;
 * IDENTITY_NONE: it is in the daemon's own; another negative errno: not known. */
static int identity_outermost(pid_t pid, const char *name, ino_t own, ino_t *ret_space)
{
	int fd = own ? identity_open_space(pid, name) : -1, parent = -1, r = 0;
	ino_t inode = 0, above = 0;

	if (fd < 0)
		return own ? -errno : IDENTITY_NONE;
	if (!identity_inode(fd, &inode))
		r = -errno;
	for (int i = 0; !r; i++) {
		parent = inode == own || i == IDENTITY_DEPTH ? -1 : ioctl(fd, NS_GET_PARENT);
		if (inode == own)
			r = IDENTITY_NONE;
		else if (parent < 0 || !identity_inode(parent, &above))
			r = i == IDENTITY_DEPTH ? -ELOOP : -errno;
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
static bool identity_space(pid_t pid, int pidfd, ino_t *ret_space, uid_t *ret_maker)
{
	int fd = pidfd >= 0 ? identity_outermost(pid, "user", identity_own.users, ret_space) : -1;
	bool found = fd >= 0 && !ioctl(fd, NS_GET_OWNER_UID, ret_maker);

	if (fd >= 0)
		close(fd);
	return found;
}

/* Finds the process's outermost PID namespace, if it belongs to the daemon's own user namespace: no user made it.
 * False: it does not, or there is none. A negative errno: the daemon lacks what it takes to tell. */
static int identity_container(pid_t pid, int pidfd, ino_t *ret_space)
{
	int fd = pidfd >= 0 ? identity_outermost(pid, "pid", identity_own.pids, ret_space) : IDENTITY_NONE;
	int user = fd >= 0 ? ioctl(fd, NS_GET_USERNS) : -1, failed = fd >= 0 && user < 0 ? -errno : fd;
	ino_t inode = 0;
	bool found = user >= 0 && identity_inode(user, &inode) && inode == identity_own.users;

	if (user >= 0)
		close(user);
	if (fd >= 0)
		close(fd);
	if (failed == -EMFILE || failed == -ENFILE || failed == -ENOMEM)
		return failed;
	return found;
}

int gp_identity_outermost_pids(pid_t pid, ino_t own, ino_t *ret_space)
{
	ino_t space = 0;
	int fd = identity_outermost(pid, "pid", own, &space);

	if (fd >= 0)
		close(fd);
	if (fd < 0 && fd != IDENTITY_NONE)
		return fd;
	*ret_space = space;
	return 0;
}

static void identity_read_own(void)
{
	identity_own.users = identity_own_space("user");
	identity_own.pids = identity_own_space("pid");
}

void gp_identity_prepare(void)
{
	pthread_once(&identity_own.once, identity_read_own);
}

ino_t gp_identity_own_pids(void)
{
	gp_identity_prepare();
	return identity_own.pids;
}

uint64_t gp_identity_of_uid(struct gp_subuid *subuid, uid_t uid, uid_t *ret_uid)
{
	const struct gp_subuid_range *range = subuid ? gp_subuid_find(subuid, uid) : NULL;

	*ret_uid = range ? range->uid : uid;
	return range && !range->is_user ? IDENTITY_RANGE | range->uid : *ret_uid;
}

bool gp_identity_is_container(uint64_t account)
{
	return account >= IDENTITY_SPACE;
}

static enum gp_sandbox identity_sandbox(const struct gp_sandbox_process *process)
{
	return process->uid ? gp_sandbox_find(identity_subuid.table, process) : GP_SANDBOX_CONTAINER;
}

/* Locked: the account of a process without rights. */
static uint64_t identity_find_locked(uid_t uid, pid_t pid, int pidfd, uid_t *ret_uid)
{
	ino_t space = 0;
	int container = identity_container(pid, pidfd, &space);
	uid_t maker;

	*ret_uid = uid;
	if (container) {
		enum gp_sandbox sandbox = container < 0 ? GP_SANDBOX_UNKNOWN :
							  identity_sandbox(&(struct gp_sandbox_process){
								  uid, pid, pidfd, space, identity_own.pids });

		if (sandbox == GP_SANDBOX_UNKNOWN) /* all of them are one: neither a user nor as many as there are */
			return IDENTITY_PIDS;
		if (sandbox == GP_SANDBOX_CONTAINER)
			return IDENTITY_PIDS | (space & IDENTITY_NUMBER);
	}
	if (identity_space(pid, pidfd, &space, &maker)) {
		if (!maker && (!uid || uid >= GP_SUBUID_FIRST))
			return IDENTITY_SPACE | (space & IDENTITY_NUMBER);
		uid = maker ? maker : uid;
	}
	return uid ? gp_identity_of_uid(identity_subuid.table, uid, ret_uid) : IDENTITY_RANGE;
}

static uint64_t identity_find(uid_t uid, pid_t pid, int pidfd, uid_t *ret_uid)
{
	uint64_t account;

	pthread_mutex_lock(&identity_subuid.lock);
	if (!identity_subuid.table)
		identity_subuid.table = gp_subuid_create(gp_subuid_path, gp_subuid_passwd_path);
	account = identity_find_locked(uid, pid, pidfd, ret_uid);
	pthread_mutex_unlock(&identity_subuid.lock);
	return account;
}

/* The innermost number of the process: the one in its own PID namespace. */
static pid_t identity_own_pid(pid_t pid)
{
	char text[GP_RIGHTS_TEXT];
	const char *at;
	size_t size;

	if (!gp_process_read(pid, "status", text, sizeof(text)) || !(at = strstr(text, "\nNSpid:")))
		return 0;
	for (at++, size = strcspn(at, "\n"); size && at[size - 1] != '\t'; size--) {}
	return (pid_t)strtol(at + size, NULL, 10);
}

static void identity_read_space(struct identity_flat *flat)
{
	int fd = identity_open_space(flat->pid, "pid");

	if (fd < 0)
		return;
	if (!identity_inode(fd, &flat->identity.pid_space))
		flat->identity.pid_space = 0;
	close(fd);
	flat->identity.own_pid =
		flat->identity.pid_space == identity_own.pids ? flat->pid : identity_own_pid(flat->pid);
}

static void identity_read_ancestors(struct identity_flat *flat)
{
	struct gp_process_stat stat;
	pid_t pid;

	if (gp_process_stat(flat->pid, &flat->stat))
		return;
	for (pid = flat->stat.parent; pid > 0 && flat->ancestor_count < GP_PROCESS_DEPTH; pid = stat.parent) {
		flat->ancestors[flat->ancestor_count++] = pid;
		if (gp_process_stat(pid, &stat))
			return;
	}
}

/* A helper calls it. */
static void identity_read_flat(void *data)
{
	struct identity_flat *flat = data;
	struct gp_process_identity *identity = &flat->identity;
	int pidfd = (int)syscall(SYS_pidfd_open, flat->pid, 0);
	uint64_t begin_ns = gp_used_ns();

	gp_identity_prepare();
	identity->uid = flat->uid;
	identity->account = IDENTITY_ENDED;
	if (pidfd < 0)
		return;
	identity->rights = gp_rights_read(flat->uid, flat->pid, pidfd, identity_own.users);
	if (flat->uid || !identity->rights)
		identity->account = identity_find(flat->uid, flat->pid, pidfd, &identity->uid);
	else
		identity->account = 0;
	gp_cgroup_read(flat->pid, pidfd, flat->cgroups, sizeof(flat->cgroups));
	identity_read_space(flat);
	identity_read_ancestors(flat);
	close(pidfd);
	identity->cost_ns = gp_used_ns() - begin_ns;
}

static struct gp_lineage *identity_lineage(const struct identity_flat *flat)
{
	struct gp_lineage *lineage = malloc(sizeof(*lineage) + (1 + flat->ancestor_count) * sizeof(pid_t));

	if (!lineage)
		return NULL;
	lineage->start = flat->stat.start;
	lineage->count = 1 + flat->ancestor_count;
	lineage->pids[0] = flat->pid;
	memcpy(lineage->pids + 1, flat->ancestors, flat->ancestor_count * sizeof(pid_t));
	return lineage;
}

struct gp_process_identity gp_identity_nobody(uid_t uid)
{
	return (struct gp_process_identity){ .uid = uid, .account = IDENTITY_ENDED };
}

int gp_identity_read(uid_t uid, pid_t pid, int pidfd, uint64_t blamed, struct gp_process_identity *ret_identity)
{
	GP_AUTO_FREE struct identity_flat *flat = calloc(1, sizeof(*flat));
	int r;

	if (!flat)
		return -ENOMEM;
	flat->pid = pid;
	flat->uid = uid;
	r = gp_aside_call(blamed, identity_read_flat, flat, sizeof(*flat));
	if (r)
		return r;
	*ret_identity = flat->identity;
	/* If the process has not ended, its pid meant the same process all the time. One that has ended no longer shows
	 * its namespaces, so its uid may be a container's: all those share one account. */
	if (!gp_process_is_there(pidfd)) {
		*ret_identity = gp_identity_nobody(uid);
		return 0;
	}
	ret_identity->cgroups = *flat->cgroups ? strdup(flat->cgroups) : NULL;
	ret_identity->lineage = identity_lineage(flat);
	return 0;
}

struct gp_process_identity gp_identity_take(struct gp_process_identity *from)
{
	struct gp_process_identity taken = *from;

	from->cgroups = NULL;
	from->lineage = NULL;
	return taken;
}

struct gp_process_identity gp_identity_copy(const struct gp_process_identity *from)
{
	const struct gp_lineage *lineage = from->lineage;
	struct gp_process_identity copy = *from;
	size_t size = lineage ? sizeof(*lineage) + lineage->count * sizeof(lineage->pids[0]) : 0;

	copy.cgroups = from->cgroups ? strdup(from->cgroups) : NULL;
	copy.lineage = size ? malloc(size) : NULL;
	if (copy.lineage)
		memcpy(copy.lineage, lineage, size);
	return copy;
}

void gp_identity_fini(struct gp_process_identity *identity)
{
	free(identity->cgroups);
	free(identity->lineage);
	identity->cgroups = NULL;
	identity->lineage = NULL;
}
