/* SPDX-License-Identifier: MIT */
/*
 * Owns the socket and accepts new connections, a few at a time. The kernel tells which process connected. A thread
 * finds out more about it (identify.c); meanwhile the connection waits. No call here blocks, and the daemon accepts no
 * connection whose process it cannot identify.
 *
 * All new connections together have a part of the thread's time. The kernel hands them out in the order in which they
 * came, so the daemon learns too late whose they are to make only one user's wait. A thread that is always busy with
 * them would lose the processor to others (the kernel keeps a twentieth of it from real-time threads, in one piece).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/identify.h"
#include "daemon/lockfile.h"
#include "daemon/process.h"
#include "lib/closer.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* newer than most headers */
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif
#define LISTEN_ACCEPT_MAX  64            /* connections that are taken between two looks at urgent work */
#define LISTEN_ACCEPT_WORK 2             /* units each; a handful of calls */
#define LISTEN_CREATE_WORK 8             /* more to ask whose a process is, and again for the answer */
#define LISTEN_SHARE       2u            /* new connections have half of the thread's time … */
#define LISTEN_BURST_NS    10000000ull   /* … after this much at once; both chosen */
#define LISTEN_ONE_NS      3000000ull    /* of one step; more is not charged: all may have stood */
#define LISTEN_QUEUE       128           /* connections in the kernel's queue: a new one waits for so many at most */
#define LISTEN_EXPIRE_NS   1000000000ull /* between two looks for connections that say nothing */
#define LISTEN_SILENT_NS   10000000000ull
#define LISTEN_FULL_NS     100000000ull
#define LISTEN_ASKED_MAX   256u  /* connections whose process is not identified yet; chosen */
#define LISTEN_ASKED_ROOT  32u   /* of them only for root */
#define LISTEN_CLOSING_MAX 1024u /* connections that other threads have yet to close */
#define LISTEN_SPARE_FDS   64u   /* connections beyond clients_max: commands; and as many more for root alone */

/* A pidfd of the process at the other end: unlike the pid, it never comes to mean another process. */
static int listen_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t size = sizeof(pidfd);

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size))
		return pidfd;
	/* The process has ended, and another may have its number; or no descriptor is left. */
	if (errno != ENOPROTOOPT)
		return -1;
	/* Older kernels: by pid. It means the same process if the connection still stands afterwards, because its
	 * process holds the other end. If another process has the pid by now, the socket is dead, and the daemon
	 * refuses it. */
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		struct pollfd end = { .fd = fd, .events = POLLRDHUP };

		if (poll(&end, 1, 0) < 0 || end.revents & (POLLHUP | POLLRDHUP)) {
			close(pidfd);
			return -1;
		}
		fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	}
	return pidfd;
}

/* owner: NULL if the daemon does not know it. */
static void listen_turn_away(struct gp_daemon *daemon, int fd, struct gp_owner *owner, const char *why)
{
	struct gp_peer peer = { .fd = fd, .version = GP_WIRE_VERSION };
	struct gp_wire_text text = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_REFUSED, sizeof(text), 0 } };

	snprintf(text.text, sizeof(text.text), "%s", why);
	gp_peer_send(&peer, &text, sizeof(text), NULL, 0);
	daemon->counters.peers_refused++;
	gp_peer_hang_up(daemon, fd, owner);
}

/* Reads the groups that the process has, not those that the system's database has for its user: a service may have been
 * given some, or have dropped some. And the daemon does not wait for a directory server. */
static int listen_groups(struct gp_peer *peer, gid_t primary)
{
	socklen_t size = 0;
	gid_t *groups;

	if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) && errno != ERANGE)
		size = 0; /* an older kernel */
	groups = malloc(sizeof(*groups) + size);
	if (!groups)
		return -ENOMEM;
	groups[0] = primary;
	if (size && getsockopt(peer->fd, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &size))
		size = 0;
	peer->groups = groups;
	peer->group_count = 1 + (uint32_t)(size / sizeof(*groups));
	return 0;
}

uint32_t gp_peer_max(const struct gp_daemon *daemon)
{
	uint32_t max = daemon->config.client_max + 2 * LISTEN_SPARE_FDS;

	return max < daemon->fd_max / GP_PEER_FDS ? max : daemon->fd_max / GP_PEER_FDS;
}

/* No user can keep out other users, or root, who could do something about it. */
static bool listen_is_too_many(const struct gp_daemon *daemon, const struct gp_owner *owner)
{
	uint32_t max = gp_peer_max(daemon), kept;

	kept = LISTEN_SPARE_FDS < max / 4 ? LISTEN_SPARE_FDS : max / 4;
	return !gp_owner_may_take(owner, max, kept, daemon->peer_count, owner->peer_count) ||
	       (!gp_owner_is_root(owner) && owner->peer_count >= daemon->config.user_max);
}

/* Files that a user sent wait to be closed, and hold descriptors: the daemon lets in no more of that user's processes,
 * and those of others. */
static bool listen_is_closing(const struct gp_owner *owner)
{
	return !gp_owner_is_root(owner) && gp_close_pending_of(owner->id) >= GP_CLOSE_USER_MAX;
}

/* Takes the identity and the files out of the answer. Returns NULL, or why the daemon refuses the connection. */
static const char *listen_create(struct gp_daemon *daemon, struct gp_identify *found, struct gp_owner *owner)
{
	struct gp_peer *peer;

	if (listen_is_closing(owner))
		return "gpreemptd has yet to close files that you sent it";
	peer = listen_is_too_many(daemon, owner) ? NULL : calloc(1, sizeof(*peer));
	if (!peer)
		return "gpreemptd has too many connections (connections_per_user, clients_max)";
	*peer = (struct gp_peer){ .source = { gp_peer_ready, peer },
				  .fd = found->fd,
				  .pidfd = found->pidfd,
				  .pid = found->pid,
				  .version = GP_WIRE_VERSION,
				  .uid = found->uid,
				  .owner = owner,
				  .connected_ns = gp_now_ns() };
	if (listen_groups(peer, found->gid) ||
	    gp_daemon_watch(daemon, peer->fd, EPOLLIN | EPOLLONESHOT, &peer->source)) {
		free(peer->groups);
		free(peer);
		return "gpreemptd could not identify your process";
	}
	peer->identity = gp_identity_take(&found->identity);
	found->fd = found->pidfd = -1;
	gp_owner_hold(owner);
	peer->next = daemon->peers;
	if (peer->next)
		peer->next->prev = peer;
	daemon->peers = peer;
	daemon->peer_count++;
	daemon->listen.new_count++;
	gp_timer_sooner(daemon, &daemon->listen.silent_timer, gp_now_ns() + LISTEN_EXPIRE_NS);
	owner->peer_count++;
	return NULL;
}

/* Whether the connection has ended already and left no message: then no process waits for an answer. */
static bool listen_is_over(int fd)
{
	char byte;

	return !recv(fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_PEEK);
}

/* For the journal alone the uid is enough. Uid 0 is not noted: the daemon did not check whether it is root. */
static void listen_note(struct gp_daemon *daemon, uid_t uid)
{
	struct gp_owner *owner;

	if (!uid)
		return;
	owner = gp_owner_of_uid(daemon, uid);
	gp_notice(daemon, owner, GP_NOTICE_STORM);
	gp_owner_put(owner);
}

static void listen_pause(struct gp_daemon *daemon, uint64_t until_ns)
{
	gp_daemon_watch(daemon, daemon->listen.fd, 0, &daemon->listen.source);
	gp_timer_set(daemon, &daemon->listen.timer, until_ns);
}

/* Charges new connections for the time since begin_ns, and for what a helper used. If they have used their part, the
 * next ones wait in the kernel's queue for a while. */
static void listen_charge(struct gp_daemon *daemon, uint64_t begin_ns, uint64_t used_ns)
{
	struct gp_listen *listen = &daemon->listen;
	uint64_t now_ns = gp_now_ns(), paid_ns = (now_ns - listen->spent_ns) / LISTEN_SHARE;
	uint64_t took_ns = now_ns - begin_ns + used_ns;

	listen->debt_ns = (listen->debt_ns > paid_ns ? listen->debt_ns - paid_ns : 0) +
			  (took_ns < LISTEN_ONE_NS ? took_ns : LISTEN_ONE_NS);
	listen->spent_ns = now_ns;
	if (listen->debt_ns > LISTEN_BURST_NS && !listen->timer.at_ns)
		listen_pause(daemon, now_ns + (listen->debt_ns - LISTEN_BURST_NS) * LISTEN_SHARE);
}

/* Why the daemon does not know which process it is. */
static const char *listen_why_unknown(struct gp_daemon *daemon, const struct gp_identify *found)
{
	if (found->result == -ETIMEDOUT)
		gp_log_user(
			daemon, found->question.owner,
			"process %d (uid %u) is refused: /proc/%d does not open, because a program holds that folder",
			found->pid, found->uid, found->pid);
	if (found->result == -ETIMEDOUT)
		return "gpreemptd cannot open /proc/PID of your process: a program holds that folder";
	if (found->result == -EBUSY)
		return "gpreemptd refuses your user for a while: /proc/PID of an earlier process did not open";
	return found->result ? "gpreemptd has no memory, or no process, to identify yours" : NULL;
}

static void listen_arrive(struct gp_daemon *daemon, struct gp_identify *found)
{
	struct gp_owner *owner = gp_owner_of(daemon, found->identity.account, found->identity.uid);
	const char *why;

	gp_notice(daemon, owner, GP_NOTICE_STORM);
	/* It may have handed the socket to another process, which is not what the kernel says of the connection. */
	if (!gp_process_is_there(found->pidfd))
		why = "the process that connected to gpreemptd has ended";
	else
		why = listen_create(daemon, found, owner);
	if (why) {
		listen_turn_away(daemon, found->fd, owner, why);
		found->fd = -1;
	}
	gp_fair_charge(owner, found->identity.cost_ns, gp_now_ns());
	gp_owner_put(owner);
}

static void listen_take(struct gp_daemon *daemon, struct gp_question *asked)
{
	struct gp_identify *found = (struct gp_identify *)asked;
	uint64_t begin_ns = gp_now_ns();
	const char *why = listen_why_unknown(daemon, found);

	GP_ASSERT(daemon->listen.asked_count && asked->owner->asked_count);
	daemon->listen.asked_count--;
	asked->owner->asked_count--;
	gp_portion_use(daemon, LISTEN_CREATE_WORK);
	if (why) {
		listen_turn_away(daemon, found->fd, NULL, why);
		found->fd = -1;
	} else {
		listen_arrive(daemon, found);
	}
	listen_charge(daemon, begin_ns, found->identity.cost_ns);
	if (daemon->listen.is_full && daemon->listen.asked_count <= LISTEN_ASKED_MAX / 2) {
		daemon->listen.is_full = false;
		if (!daemon->listen.timer.at_ns)
			gp_peer_listen_again(daemon, gp_now_ns());
	}
}

/* Processes of one user may take as long to identify as the user likes. Those of others must not wait for them. */
static bool listen_may_ask(const struct gp_daemon *daemon, const struct gp_owner *owner)
{
	return gp_owner_may_take(owner, LISTEN_ASKED_MAX, LISTEN_ASKED_ROOT, daemon->listen.asked_count,
				 owner->asked_count);
}

static void listen_identify(struct gp_daemon *daemon, int fd, const struct ucred *who, int pidfd)
{
	const struct gp_identify about = { .uid = who->uid,
					   .gid = who->gid,
					   .pid = who->pid,
					   .pidfd = pidfd,
					   .fd = fd };
	struct gp_owner *owner = gp_owner_of_uid(daemon, who->uid);
	const char *why = NULL;

	if (!listen_may_ask(daemon, owner))
		why = "gpreemptd has yet to find out which processes of yours have connected before";
	else if (!gp_identify_ask(daemon, owner, &about, listen_take))
		why = "gpreemptd has no memory, or no thread, to identify your process";
	if (why) {
		listen_turn_away(daemon, fd, NULL, why);
		close(pidfd);
	} else {
		daemon->listen.asked_count++;
		owner->asked_count++;
	}
	gp_owner_put(owner);
}

static void listen_add(struct gp_daemon *daemon, int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	int pidfd;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || who.pid <= 0) {
		listen_turn_away(daemon, fd, NULL, "gpreemptd cannot see your process from its PID namespace");
		return;
	}
	if (listen_is_over(fd)) { /* identifying one costs ten times as much; storms are of such connections */
		listen_note(daemon, who.uid);
		gp_peer_hang_up(daemon, fd, NULL);
		return;
	}
	gp_portion_use(daemon, LISTEN_CREATE_WORK);
	pidfd = listen_pidfd(fd, who.pid);
	if (pidfd >= 0)
		listen_identify(daemon, fd, &who, pidfd);
	else
		listen_turn_away(daemon, fd, NULL, "gpreemptd could not identify your process");
}

/* No descriptor is left: the daemon has kept a spare one to accept the connection and end it, because otherwise epoll
 * would never sleep again. If the spare one is gone too, the daemon accepts no connection for a while. */
static bool listen_overflow(struct gp_daemon *daemon)
{
	int fd, failed;

	if (daemon->listen.spare_fd >= 0)
		close(daemon->listen.spare_fd);
	fd = accept4(daemon->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	failed = errno;
	if (fd >= 0)
		listen_turn_away(daemon, fd, NULL, "gpreemptd has no file descriptors left (LimitNOFILE=)");
	daemon->listen.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || (failed != EMFILE && failed != ENFILE))
		return true;
	listen_pause(daemon, gp_now_ns() + LISTEN_FULL_NS);
	return false;
}

static void listen_asked(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	(void)owner;
	(void)events;
	daemon->listen.is_asked = true;
}

/* False: no connection waits, or the daemon cannot accept one now. */
static bool listen_accept_one(struct gp_daemon *daemon)
{
	int fd = accept4(daemon->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	gp_portion_use(daemon, LISTEN_ACCEPT_WORK);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return listen_overflow(daemon);
	if (fd >= 0)
		listen_add(daemon, fd);
	return fd >= 0 || errno == ECONNABORTED || errno == EINTR;
}

void gp_peer_accept(struct gp_daemon *daemon)
{
	uint64_t begin_ns = gp_now_ns();

	daemon->listen.is_asked = false;
	/* Each connection that waits to be closed holds a descriptor of the daemon. If there are too many, new
	 * connections wait; existing ones do not. lib/closer.c keeps the number well below that. */
	if (gp_close_pending() >= LISTEN_CLOSING_MAX) {
		listen_pause(daemon, begin_ns + LISTEN_FULL_NS);
		return;
	}
	if (daemon->listen.asked_count >= LISTEN_ASKED_MAX) {
		daemon->listen.is_full = true;
		gp_daemon_watch(daemon, daemon->listen.fd, 0, &daemon->listen.source);
		return;
	}
	gp_portion_begin(daemon);
	for (int i = 0; i < LISTEN_ACCEPT_MAX && !gp_portion_is_over(daemon) && listen_accept_one(daemon); i++) {}
	listen_charge(daemon, begin_ns, 0);
}

void gp_peer_listen_again(struct gp_daemon *daemon, uint64_t now_ns)
{
	(void)now_ns;
	if (!daemon->listen.is_full)
		gp_daemon_watch(daemon, daemon->listen.fd, EPOLLIN, &daemon->listen.source);
}

/* A connection that sends nothing holds a place that others may need. One whose message waits to be served has sent
 * something. */
void gp_peer_expire(struct gp_daemon *daemon, uint64_t now_ns)
{
	struct gp_peer *peer, *next;

	if (daemon->listen.new_count)
		gp_timer_set(daemon, &daemon->listen.silent_timer, now_ns + LISTEN_EXPIRE_NS);
	for (peer = daemon->listen.new_count ? daemon->peers : NULL; peer; peer = next) {
		next = peer->next;
		if (peer->kind == GP_PEER_NEW && !peer->in_fair && now_ns - peer->connected_ns > LISTEN_SILENT_NS)
			gp_peer_close(daemon, peer, "it sent no message for 10 s");
	}
}

/* The daemon replaces what lies at the path: the socket of a daemon that was killed, and nothing else. */
static int listen_check_old(const char *path, struct gp_error *error)
{
	struct stat old;

	if (!lstat(path, &old) && !S_ISSOCK(old.st_mode))
		return gp_error_set(
			error, -EEXIST,
			"%s is not a socket, so the daemon does not replace it: remove it, or give another path", path);
	return 0;
}

/* Both names fit: that of the socket while it is made, and that of the lock. */
static int listen_check_path(const char *path, struct gp_error *error)
{
	char made[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int r;

	if ((size_t)snprintf(made, sizeof(made), "%s.new", path) >= sizeof(made))
		return gp_error_set(error, -ENAMETOOLONG, "%s: a socket's path has at most 103 bytes here", path);
	r = listen_check_old(path, error);
	return r ? r : listen_check_old(made, error);
}

static void listen_lock_name(const char *path, char *name, size_t size)
{
	snprintf(name, size, "%s.lock", path);
}

static int listen_lock(const char *path, int *ret_fd, struct gp_error *error)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 8], who[GP_LOCKFILE_WHO];
	pid_t holder;
	int fd;

	listen_lock_name(path, name, sizeof(name));
	fd = gp_lockfile_take(name, &holder);
	if (fd == -EBUSY) {
		gp_lockfile_who(holder, who);
		return gp_error_set(
			error, -EBUSY, "another gpreemptd serves %s already (%s)%s", path, who,
			access(path, F_OK) ?
				", but its socket is gone; reload that daemon (SIGHUP), and it makes the socket again" :
				"");
	}
	if (fd < 0)
		return gp_error_set(error, fd, "cannot lock %s: %s", name, strerror(-fd));
	*ret_fd = fd;
	return 0;
}

/* Binds the socket beside its name and renames it onto the name, so that there is always a socket while a daemon takes
 * over. The daemon watches it before that: a socket that no daemon serves would be worse than none. */
static int listen_bind(struct gp_daemon *daemon, int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = daemon->config.socket;
	struct stat made;
	int r;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    chmod(address.sun_path, (mode_t)daemon->config.socket_mode) ||
	    (daemon->config.socket_gid >= 0 && chown(address.sun_path, (uid_t)-1, (gid_t)daemon->config.socket_gid)) ||
	    listen(fd, LISTEN_QUEUE) || lstat(address.sun_path, &made)) {
		r = -errno;
		unlink(address.sun_path);
		return r;
	}
	daemon->listen.source = (struct gp_source){ listen_asked, NULL };
	r = gp_daemon_watch(daemon, fd, EPOLLIN, &daemon->listen.source);
	if (!r && rename(address.sun_path, path))
		r = -errno;
	if (r) {
		unlink(address.sun_path);
		return r;
	}
	daemon->listen.device = made.st_dev;
	daemon->listen.inode = made.st_ino;
	return 0;
}

static int listen_socket(struct gp_daemon *daemon, struct gp_error *error)
{
	bool no_rights;
	int fd, r;

	r = listen_check_path(daemon->config.socket, error);
	if (r)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = fd < 0 ? -errno : 0;
	/* The kernel shall refuse descriptors that peers send: recv() would close the last one of a file, and a socket
	 * that lingers would hold the daemon there. Connections inherit this option. Linux before 6.16 does not have
	 * it; there the daemon looks at each packet itself (peer.c). */
	no_rights = !setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
	if (!r)
		r = listen_bind(daemon, fd);
	if (r) {
		gp_daemon_drop(daemon, fd);
		return gp_error_set(error, r, "cannot make the socket %s: %s", daemon->config.socket, strerror(-r));
	}
	gp_daemon_drop(daemon, daemon->listen.fd);
	daemon->listen.fd = fd;
	daemon->listen.no_rights = no_rights;
	return 0;
}

int gp_peer_listen(struct gp_daemon *daemon, struct gp_error *error)
{
	int r = listen_check_path(daemon->config.socket, error);

	if (!r)
		r = listen_lock(daemon->config.socket, &daemon->listen.lock_fd, error);
	if (r)
		return r;
	gp_close_prepare();
	daemon->listen.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return listen_socket(daemon, error);
}

static bool listen_is_same(const char *path, dev_t device, ino_t inode)
{
	struct stat now;

	return !lstat(path, &now) && now.st_dev == device && now.st_ino == inode;
}

/* If the lock's file was removed, another daemon may have made and locked its own. So the daemon first takes the lock
 * again. */
static int listen_lock_again(struct gp_daemon *daemon, struct gp_error *error)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	int fd, r;

	listen_lock_name(daemon->config.socket, name, sizeof(name));
	if (!gp_lockfile_is_gone(name, daemon->listen.lock_fd))
		return 0;
	r = listen_lock(daemon->config.socket, &fd, error);
	if (r)
		return r;
	close(daemon->listen.lock_fd);
	daemon->listen.lock_fd = fd;
	return 0;
}

void gp_peer_restore(struct gp_daemon *daemon)
{
	bool is_there = listen_is_same(daemon->config.socket, daemon->listen.device, daemon->listen.inode);
	struct gp_error error;

	if (daemon->listen.fd < 0)
		return;
	if (listen_lock_again(daemon, &error) || (!is_there && listen_socket(daemon, &error)))
		gp_log("%s is gone: %s", is_there ? "the lock of the socket" : "the socket", error.text);
	else if (!is_there)
		gp_log("the socket %s was gone; it is there again", daemon->config.socket);
}

void gp_peer_unlisten(struct gp_daemon *daemon)
{
	if (daemon->listen.fd < 0)
		return;
	close(daemon->listen.fd);
	if (listen_is_same(daemon->config.socket, daemon->listen.device, daemon->listen.inode))
		unlink(daemon->config.socket);
}
