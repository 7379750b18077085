/* SPDX-License-Identifier: MIT */
/*
 * Connections: receives and sends packets until a connection ends. No call here blocks: the daemon does not write to
 * a peer that does not read. This file checks a message and never looks further into it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <gpreempt/control.h>
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "daemon/message.h"
#include "lib/closer.h"

#define PEER_UNKNOWN  (1u << 31) /* in the number of an account that stands for its uid alone */
#define PEER_READ_MAX 16         /* packets of one peer in a row, while the others wait */

int gp_peer_send(struct gp_peer *peer, const void *message, size_t size, const int *fds, uint32_t fd_count)
{
	/* Each message carries the version that the daemon speaks with this peer. */
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

/* If the other end was closed with a message unread, the first call reports that instead of the packets that wait. */
static ssize_t peer_peek(int fd, struct msghdr *packet)
{
	ssize_t size;

	do {
		size = recvmsg(fd, packet, MSG_DONTWAIT | MSG_PEEK);
	} while (size < 0 && (errno == ECONNRESET || errno == EINTR));
	return size;
}

/* Finds out whether the next packet carries descriptors. Receiving it would close them, and one may be the last of its
 * file, which can take long. Peeking takes nothing: there is no room for descriptors, so the kernel reports them by
 * MSG_CTRUNC. */
static int peer_look(int fd, bool *ret_files)
{
	char byte;
	struct iovec part = { &byte, sizeof(byte) };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (peer_peek(fd, &packet) < 0)
		return -errno;
	*ret_files = packet.msg_flags & MSG_CTRUNC;
	return 0;
}

/* An empty packet reads like the end of the connection. But with SO_PASSCRED every packet names its sender, and the end
 * does not. There is no room for descriptors behind the sender, so the kernel reports them by MSG_CTRUNC. */
static bool peer_has_packet(int fd, bool *ret_files)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr packet = { .msg_control = &control, .msg_controllen = sizeof(control) };

	*ret_files = false;
	if (peer_peek(fd, &packet) < 0 || !packet.msg_controllen)
		return false;
	*ret_files = packet.msg_flags & MSG_CTRUNC;
	return true;
}

/* Closing a socket closes the descriptors in its unread packets, which can take as long as their files like; so other
 * threads do that. The daemon closes a socket without such packets itself: a user who holds those threads up must not
 * keep other users' connections open. */
void gp_peer_hang_up(struct gp_daemon *daemon, int fd, struct gp_owner *owner)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(who);
	bool any = false;
	char byte;

	if (!daemon->listen.no_rights) {
		setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int));
		shutdown(fd, SHUT_RDWR); /* the peer can send no more */
		while (peer_has_packet(fd, &any) && !any)
			recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC);
	}
	if (any && owner) {
		gp_close_elsewhere(fd, owner->id);
	} else if (any) {
		/* The daemon has not read the rights of this process, so it does not count as root; nor does it count
		 * as that uid: a container may have any. */
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || !who.uid)
			who.uid = (uid_t)-1;
		owner = gp_owner_of_uid(daemon, who.uid);
		gp_close_elsewhere(fd, owner->id | PEER_UNKNOWN);
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
	gp_peer_hang_up(daemon, peer->fd, peer->owner);
	gp_daemon_drop(daemon, peer->pidfd);
	peer->fd = peer->pidfd = -1;
	/* epoll events of this round may still point here. */
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
		gp_identity_fini(&peer->identity);
		free(peer);
	}
}

void gp_peer_refuse(struct gp_daemon *daemon, struct gp_peer *peer, const char *why)
{
	daemon->counters.messages_refused++;
	gp_peer_close(daemon, peer, why);
}

/* The newest version that both speak. If there is none, the daemon refuses the message later, with a sentence. */
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

/* Peeks at the first message: a command waits like other commands, though its connection is new. */
static bool peer_is_command(const struct gp_peer *peer)
{
	struct gp_wire_header header;

	return recv(peer->fd, &header, sizeof(header), MSG_DONTWAIT | MSG_PEEK) == sizeof(header) &&
	       (header.type == GP_WIRE_CONTROL || header.type == GP_WIRE_GRANT);
}

/* A peer may send one message at a time, and more until the portion is over. */
static bool peer_may_ask(const struct gp_daemon *daemon, const struct gp_peer *peer, int asked)
{
	return !peer->closed && !peer->backlog.size && !peer->job.kind && (!asked || !gp_portion_is_over(daemon));
}

static void peer_read(struct gp_daemon *daemon, struct gp_peer *peer)
{
	bool files = false;
	ssize_t size;

	for (int i = 0; i < (peer->is_late ? 1 : PEER_READ_MAX) && peer_may_ask(daemon, peer, i); i++) {
		/* A packet that arrives after this peek found none is read the next time. */
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

/* Only notes it: the daemon serves the peer when it is its user's turn. EPOLLONESHOT has ended the watch. */
void gp_peer_ready(struct gp_daemon *daemon, void *owner, uint32_t events)
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
		return; /* epoll reports when it has read */
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
		return; /* gp_control_synced() or gp_questions_take() wakes it */
	if (peer_can_go_on(peer) && peer->job.kind)
		gp_fair_add(daemon, peer);
	else
		gp_peer_watch(daemon, peer);
}

static void peer_ended(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	struct gp_peer *peer = owner;

	(void)events;
	peer->ended = true;
	gp_fair_add(daemon, peer);
}

/* A client ends with its process, not with its socket: another process may have the socket (a child that never noticed,
 * or on purpose), and the pid may come to mean another process. */
void gp_peer_watch_end(struct gp_daemon *daemon, struct gp_peer *peer)
{
	peer->end_source = (struct gp_source){ peer_ended, peer };
	gp_daemon_watch(daemon, peer->pidfd, EPOLLIN | EPOLLONESHOT, &peer->end_source);
}
