/* SPDX-License-Identifier: MIT */
/*
 * Connections: the socket, who is at the other end (as the kernel says), packets in and out. Nothing here blocks: a
 * peer that does not read is not written to. Never looks inside a message beyond its check.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <gpreempt/control.h>
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "daemon/message.h"
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
#define PEER_READ_MAX    16            /* packets of one peer in a row: the others wait */
#define PEER_ACCEPT_MAX  16            /* connections that are let in between two looks at urgent work */
#define PEER_ACCEPT_WORK 24            /* units each; a handful of calls, three files of /proc */
#define PEER_QUEUE       128           /* newcomers that wait: who comes after a storm waits for as many */
#define PEER_EXPIRE_NS   1000000000ull /* between two looks for connections that say nothing */
#define PEER_SILENT_NS   10000000000ull
#define PEER_FULL_NS     100000000ull
#define PEER_CLOSING_MAX 1024u /* connections that others are to close and have not */
#define PEER_SPARE_FDS   64u   /* connections beyond clients_max: commands; and as many more for root alone */

int gp_peer_send(struct gp_peer *peer, const void *message, size_t size, const int *fds, uint32_t fd_count)
{
	/* What is said is stamped with the version that is spoken with this peer. */
	struct gp_wire_header header = *(const struct gp_wire_header *)message;
	struct iovec parts[] = { { &header, sizeof(header) },
				 { (char *)message + sizeof(header), size - sizeof(header) } };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t sent;

	header.version = peer->version;
	if (fd_count) {
		memset(&control, 0, sizeof(control));
		packet.msg_control = &control;
		packet.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, fd_count * sizeof(int));
	}
	do {
		sent = sendmsg(peer->fd, &packet, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Taking such a packet closes its descriptors, which can be the last of a file. Looking takes nothing: without room for
 * them the kernel says that there are some. */
static int peer_look(int fd, bool *ret_files)
{
	char byte;
	struct iovec part = { &byte, sizeof(byte) };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (recvmsg(fd, &packet, MSG_DONTWAIT | MSG_PEEK) < 0)
		return -errno;
	*ret_files = packet.msg_flags & MSG_CTRUNC;
	return 0;
}

/* An empty packet reads like the end. But where the sender is asked for, every packet says who it was, and the end does
 * not; descriptors find no room behind that. */
static bool peer_has_packet(int fd, bool *ret_files)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr packet = { .msg_control = &control, .msg_controllen = sizeof(control) };

	*ret_files = false;
	if (recvmsg(fd, &packet, MSG_DONTWAIT | MSG_PEEK) < 0 || !packet.msg_controllen)
		return false;
	*ret_files = packet.msg_flags & MSG_CTRUNC;
	return true;
}

/* What lies unread in a socket is closed with it, descriptors of any kind among it, for as long as they like. Where
 * there are none it is closed here: those who hold the other threads up shall keep nobody else's connections open. */
static void peer_hang_up(struct gp_daemon *daemon, int fd, struct gp_owner *owner)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(who);
	bool any = false;
	char byte;

	if (!daemon->listen.no_rights) {
		setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int));
		shutdown(fd, SHUT_RDWR); /* nothing is added any more */
		while (peer_has_packet(fd, &any) && !any)
			recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC);
	}
	if (any) {
		/* Whose rights nobody has looked at is not taken for root. */
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || !who.uid)
			who.uid = (uid_t)-1;
		owner = owner ? gp_owner_hold(owner) : gp_owner_get(daemon, who.uid, who.pid, -1, NULL);
		gp_close_elsewhere(fd, owner->id);
		gp_owner_put(owner);
	} else {
		close(fd);
	}
}

void gp_peer_close(struct gp_daemon *daemon, struct gp_peer *peer, const char *why)
{
	if (peer->closed)
		return;
	if (why)
		gp_log_user(daemon, peer->owner, "process %d (uid %u): connection ended: %s", peer->pid, peer->uid,
			    why);
	gp_fair_remove(daemon, peer);
	gp_control_end(peer);
	peer->closed = true;
	if (peer->client)
		gp_client_remove(daemon, peer->client);
	if (peer->stream)
		gp_events_close(daemon, peer->stream);
	if (peer->kind == GP_PEER_NEW)
		daemon->listen.new_count--;
	if (peer->prev)
		peer->prev->next = peer->next;
	else
		daemon->peers = peer->next;
	if (peer->next)
		peer->next->prev = peer->prev;
	GP_ASSERT(daemon->peer_count && peer->owner->peer_count);
	daemon->peer_count--;
	peer->owner->peer_count--;
	epoll_ctl(daemon->loop.epoll_fd, EPOLL_CTL_DEL, peer->fd, NULL);
	peer_hang_up(daemon, peer->fd, peer->owner);
	gp_daemon_drop(daemon, peer->pidfd);
	peer->fd = peer->pidfd = -1;
	/* Events of this round may still point here. */
	peer->next = daemon->graveyard;
	daemon->graveyard = peer;
}

void gp_peer_bury(struct gp_daemon *daemon)
{
	struct gp_client *client;
	struct gp_peer *peer;

	while ((client = daemon->dead_clients)) {
		daemon->dead_clients = client->next_dead;
		gp_owner_put(client->owner);
		free(client);
	}
	while ((peer = daemon->graveyard)) {
		daemon->graveyard = peer->next;
		peer->owner->backlog_size -= peer->backlog.room;
		gp_owner_put(peer->owner);
		gp_text_fini(&peer->backlog);
		free(peer->groups);
		free(peer);
	}
}

void gp_peer_refuse(struct gp_daemon *daemon, struct gp_peer *peer, const char *why)
{
	daemon->counters.messages_refused++;
	gp_peer_close(daemon, peer, why);
}

/* The newest that both speak. Where there is none it is refused later, in words of its own. */
static uint16_t peer_version(const struct gp_wire_header *header)
{
	uint32_t newest = header->version;

	if (header->type == GP_WIRE_HELLO)
		newest = ((const struct gp_wire_hello *)(const void *)header)->version_max;
	return (uint16_t)(newest < GP_WIRE_VERSION_MIN || newest > GP_WIRE_VERSION ? GP_WIRE_VERSION : newest);
}

static void peer_message(struct gp_daemon *daemon, struct gp_peer *peer, size_t size)
{
	struct gp_error error;
	int type = gp_message_check(daemon->packet, size, &error);

	if (type < 0) {
		gp_peer_refuse(daemon, peer, error.text);
		return;
	}
	daemon->counters.messages++;
	if (peer->kind == GP_PEER_NEW) {
		if (type != GP_WIRE_HELLO && type != GP_WIRE_CONTROL && type != GP_WIRE_GRANT) {
			gp_peer_refuse(daemon, peer, "its first message is neither HELLO nor a command");
			return;
		}
		peer->version = peer_version((const struct gp_wire_header *)daemon->packet);
		peer->kind = type == GP_WIRE_HELLO ? GP_PEER_AGENT : GP_PEER_COMMAND;
		peer->is_late = peer->kind == GP_PEER_COMMAND;
		if (peer->kind == GP_PEER_AGENT)
			gp_user_want(daemon, peer->uid);
		daemon->listen.new_count--;
	}
	if (type == GP_WIRE_CONTROL)
		gp_control_request(daemon, peer, daemon->packet);
	else if (type == GP_WIRE_GRANT)
		gp_grant_request(daemon, peer, daemon->packet);
	else if (peer->kind == GP_PEER_AGENT)
		gp_client_message(daemon, peer, type, daemon->packet, size);
	else
		gp_peer_refuse(daemon, peer, "an agent's message from a command");
}

/* The first message is looked at only: a command waits like the others, though its connection is new. */
static bool peer_is_command(const struct gp_peer *peer)
{
	struct gp_wire_header header;

	return recv(peer->fd, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK) == sizeof(header) &&
	       (header.type == GP_WIRE_CONTROL || header.type == GP_WIRE_GRANT);
}

/* One message each time, more of them while nobody else has to wait for long. */
static bool peer_may_ask(const struct gp_daemon *daemon, const struct gp_peer *peer, int asked)
{
	return !peer->closed && !peer->backlog.size && !peer->job.kind && (!asked || !gp_portion_is_over(daemon));
}

static void peer_read(struct gp_daemon *daemon, struct gp_peer *peer)
{
	bool files = false;
	ssize_t size;

	for (int i = 0; i < (peer->is_late ? 1 : PEER_READ_MAX) && peer_may_ask(daemon, peer, i); i++) {
		/* What comes after a look that found nothing is looked at next time. */
		if (!daemon->listen.no_rights && peer_look(peer->fd, &files) == -EAGAIN)
			return;
		if (files) {
			gp_peer_refuse(daemon, peer, "it sent descriptors");
			return;
		}
		/* MSG_TRUNC: the true size of a packet that does not fit, which is then refused. */
		size = recv(peer->fd, daemon->packet, sizeof(daemon->packet), MSG_DONTWAIT | MSG_TRUNC);
		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (size <= 0) {
			gp_peer_close(daemon, peer, NULL);
			return;
		}
		gp_portion_use(daemon, 1);
		peer_message(daemon, peer, (size_t)size);
	}
}

/* Only noted: it is served when it is its user's turn. The watch has ended with this. */
static void peer_ready(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	(void)events;
	gp_fair_add(daemon, owner);
}

static bool peer_can_go_on(const struct gp_peer *peer)
{
	return !peer->closed && !peer->backlog.size;
}

void gp_peer_serve(struct gp_daemon *daemon, struct gp_peer *peer)
{
	if (peer->ended) {
		gp_portion_use(daemon, peer->client ? peer->client->queue_count : 0);
		gp_peer_close(daemon, peer, NULL);
		return;
	}
	if (peer->backlog.size && !gp_peer_drain(daemon, peer))
		return; /* watched until it has read */
	if (peer->kind == GP_PEER_NEW && !peer->is_late && peer_is_command(peer)) {
		peer->is_late = true;
		gp_fair_add(daemon, peer);
		return;
	}
	if (!peer->job.kind)
		peer_read(daemon, peer);
	if (peer_can_go_on(peer) && peer->job.kind)
		gp_control_go_on(daemon, peer);
	if (peer_can_go_on(peer) && peer->stream)
		gp_events_deliver(daemon, peer);
	if (peer_can_go_on(peer) && peer->wants_status)
		return; /* gp_control_synced() or gp_trees_take() wakes it */
	if (peer_can_go_on(peer) && peer->job.kind)
		gp_fair_add(daemon, peer);
	else
		gp_peer_watch(daemon, peer);
}

/* A descriptor of the process at the other end that cannot come to mean another one. */
static int peer_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t size = sizeof(pidfd);

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size))
		return pidfd;
	/* Older kernels: by number, which is the same process if the connection still stands afterwards, because its
	 * process holds the other end. A number that was passed on to another process is refused by its dead socket. */
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

static void peer_ended(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	struct gp_peer *peer = owner;

	(void)events;
	peer->ended = true;
	gp_fair_add(daemon, peer);
}

/* A client ends with its process, not with its socket: that may have been handed on (to a child that never noticed, or
 * on purpose), and the process's number then comes to mean another. */
void gp_peer_watch_end(struct gp_daemon *daemon, struct gp_peer *peer)
{
	peer->end_source = (struct gp_source){ peer_ended, peer };
	gp_daemon_watch(daemon, peer->pidfd, EPOLLIN | EPOLLONESHOT, &peer->end_source);
}

static void peer_turn_away(struct gp_daemon *daemon, int fd, const char *why)
{
	struct gp_peer peer = { .fd = fd, .version = GP_WIRE_VERSION };
	struct gp_wire_text text = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_REFUSED, sizeof(text), 0 } };

	snprintf(text.text, sizeof(text.text), "%s", why);
	gp_peer_send(&peer, &text, sizeof(text), NULL, 0);
	daemon->counters.peers_refused++;
	peer_hang_up(daemon, fd, NULL);
}

/* As the process has them, not as the system's database has them for its user: a service may have been given some, or
 * have dropped some; and nobody waits for a directory server here. */
static int peer_groups(struct gp_peer *peer, gid_t primary)
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
	uint32_t max = daemon->config.client_max + 2 * PEER_SPARE_FDS;

	return max < daemon->fd_max / GP_PEER_FDS ? max : daemon->fd_max / GP_PEER_FDS;
}

/* Users keep nobody out: not each other, and not who could do something about it. */
static bool peer_is_too_many(const struct gp_daemon *daemon, const struct gp_owner *owner)
{
	uint32_t max = gp_peer_max(daemon), kept;

	kept = PEER_SPARE_FDS < max / 4 ? PEER_SPARE_FDS : max / 4;
	return !gp_owner_may_take(owner, max, kept, daemon->peer_count, owner->peer_count) ||
	       (!gp_owner_is_root(owner) && owner->peer_count >= daemon->config.user_max);
}

/* NULL: it is in place. Otherwise why it cannot be; who and pidfd are as the kernel says. */
static const char *peer_create(struct gp_daemon *daemon, int fd, const struct ucred *who, int pidfd)
{
	uint64_t account;
	struct gp_owner *owner = gp_owner_get(daemon, who->uid, who->pid, pidfd, &account);
	struct gp_peer *peer = peer_is_too_many(daemon, owner) ? NULL : calloc(1, sizeof(*peer));

	gp_notice(daemon, owner, GP_NOTICE_STORM);
	if (!peer) {
		gp_owner_put(owner);
		return "gpreemptd has too many connections (connections_per_user, clients_max)";
	}
	*peer = (struct gp_peer){ .source = { peer_ready, peer },
				  .fd = fd,
				  .pidfd = pidfd,
				  .pid = who->pid,
				  .version = GP_WIRE_VERSION,
				  .uid = who->uid,
				  .rights = gp_rights_read(who->uid, who->pid, pidfd),
				  .account = account,
				  .owner = owner,
				  .connected_ns = gp_now_ns() };
	if (peer_groups(peer, who->gid) || gp_daemon_watch(daemon, fd, EPOLLIN | EPOLLONESHOT, &peer->source)) {
		gp_owner_put(owner);
		free(peer->groups);
		free(peer);
		return "gpreemptd could not identify your process";
	}
	peer->next = daemon->peers;
	if (peer->next)
		peer->next->prev = peer;
	daemon->peers = peer;
	daemon->peer_count++;
	daemon->listen.new_count++;
	gp_timer_sooner(daemon, &daemon->listen.silent_timer, gp_now_ns() + PEER_EXPIRE_NS);
	owner->peer_count++;
	return NULL;
}

static void peer_add(struct gp_daemon *daemon, int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	const char *why = "gpreemptd could not identify your process";
	int pidfd;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || who.pid <= 0) {
		peer_turn_away(daemon, fd, "gpreemptd cannot see your process from its PID namespace");
		return;
	}
	pidfd = peer_pidfd(fd, who.pid);
	if (pidfd >= 0)
		why = peer_create(daemon, fd, &who, pidfd);
	if (!why)
		return;
	peer_turn_away(daemon, fd, why);
	if (pidfd >= 0)
		close(pidfd);
}

static void peer_pause(struct gp_daemon *daemon)
{
	gp_daemon_watch(daemon, daemon->listen.fd, 0, &daemon->listen.source);
	gp_timer_set(daemon, &daemon->listen.timer, gp_now_ns() + PEER_FULL_NS);
}

/* With no descriptor left, one is kept to take the connection and end it: otherwise epoll would never sleep again. If
 * that one is gone too, nobody is let in for a while. */
static bool peer_overflow(struct gp_daemon *daemon)
{
	int fd;

	if (daemon->listen.spare_fd >= 0)
		close(daemon->listen.spare_fd);
	fd = accept4(daemon->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		peer_turn_away(daemon, fd, "gpreemptd has no file descriptors left (LimitNOFILE=)");
	daemon->listen.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE))
		return true;
	peer_pause(daemon);
	return false;
}

static void peer_asked(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	(void)owner;
	(void)events;
	daemon->listen.is_asked = true;
}

void gp_peer_accept(struct gp_daemon *daemon)
{
	int fd;

	daemon->listen.is_asked = false;
	/* Each holds a descriptor of ours: whoever makes them wait keeps newcomers out, not those who are here. */
	if (gp_close_pending() >= PEER_CLOSING_MAX) {
		peer_pause(daemon);
		return;
	}
	gp_portion_begin(daemon);
	for (int i = 0; i < PEER_ACCEPT_MAX && !gp_portion_is_over(daemon); i++) {
		gp_portion_use(daemon, PEER_ACCEPT_WORK);
		fd = accept4(daemon->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			peer_add(daemon, fd);
		} else if (errno == EMFILE || errno == ENFILE) {
			if (!peer_overflow(daemon))
				return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

void gp_peer_listen_again(struct gp_daemon *daemon, uint64_t now_ns)
{
	(void)now_ns;
	gp_daemon_watch(daemon, daemon->listen.fd, EPOLLIN, &daemon->listen.source);
}

/* Who connects and then says nothing holds a place that others may need. */
void gp_peer_expire(struct gp_daemon *daemon, uint64_t now_ns)
{
	struct gp_peer *peer, *next;

	if (daemon->listen.new_count)
		gp_timer_set(daemon, &daemon->listen.silent_timer, now_ns + PEER_EXPIRE_NS);
	for (peer = daemon->listen.new_count ? daemon->peers : NULL; peer; peer = next) {
		next = peer->next;
		if (peer->kind == GP_PEER_NEW && now_ns - peer->connected_ns > PEER_SILENT_NS)
			gp_peer_close(daemon, peer, "it sent no message for 10 s");
	}
}

static int peer_lock(struct gp_daemon *daemon, const char *path, struct gp_error *error)
{
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];

	snprintf(name, sizeof(name), "%s.lock", path);
	daemon->listen.lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (daemon->listen.lock_fd < 0)
		return gp_error_set(error, -errno, "cannot create %s: %s", name, strerror(errno));
	if (flock(daemon->listen.lock_fd, LOCK_EX | LOCK_NB))
		return gp_error_set(error, -EBUSY, "another gpreemptd serves %s already", path);
	return 0;
}

/* Bound beside its name and renamed onto it: a daemon that takes over never leaves a moment without a socket. */
int gp_peer_listen(struct gp_daemon *daemon, struct gp_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = daemon->config.socket;
	int r;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path) >= sizeof(address.sun_path))
		return gp_error_set(error, -ENAMETOOLONG, "%s: a socket's path has at most 103 bytes here", path);
	r = peer_lock(daemon, path, error);
	if (r)
		return r;
	daemon->listen.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	daemon->listen.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Nobody sends us descriptors: the last of a file would be closed inside our recv(), and one that lingers holds
	 * us there. Connections have it from here. Before Linux 6.16 there is no such thing, and we look ourselves. */
	daemon->listen.no_rights = !setsockopt(daemon->listen.fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
	unlink(address.sun_path);
	if (daemon->listen.fd < 0 || bind(daemon->listen.fd, (struct sockaddr *)&address, sizeof(address)) ||
	    chmod(address.sun_path, (mode_t)daemon->config.socket_mode) ||
	    (daemon->config.socket_gid >= 0 && chown(address.sun_path, (uid_t)-1, (gid_t)daemon->config.socket_gid)) ||
	    listen(daemon->listen.fd, PEER_QUEUE) || rename(address.sun_path, path)) {
		r = -errno;
		unlink(address.sun_path);
		return gp_error_set(error, r, "cannot make the socket %s: %s", path, strerror(-r));
	}
	daemon->listen.source = (struct gp_source){ peer_asked, NULL };
	return gp_daemon_watch(daemon, daemon->listen.fd, EPOLLIN, &daemon->listen.source);
}
