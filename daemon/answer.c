/* SPDX-License-Identifier: MIT */
/*
 * Sends answers to commands in packets. When a reader is slow, the rest of the answer waits here, up to a limit for
 * that reader and a limit for the reader's user.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <gpreempt/control.h>
#include "daemon/daemon.h"

#define ANSWER_BACKLOG_MAX (8u << 20)
#define ANSWER_USER_MAX    (64u << 20) /* of all connections of a user who is not root */
#define ANSWER_PART_SIZE   16384u

void gp_peer_watch(struct gp_daemon *daemon, struct gp_peer *peer)
{
	if (!peer->closed)
		gp_daemon_watch(daemon, peer->fd, (peer->backlog.size ? EPOLLOUT : EPOLLIN) | EPOLLONESHOT,
				&peer->source);
}

bool gp_peer_drain(struct gp_daemon *daemon, struct gp_peer *peer)
{
	uint32_t size;
	int r = 0;

	while (peer->backlog_sent < peer->backlog.size) {
		memcpy(&size, peer->backlog.bytes + peer->backlog_sent, sizeof(size));
		memcpy(daemon->packet, peer->backlog.bytes + peer->backlog_sent + sizeof(size), size);
		r = gp_peer_send(peer, daemon->packet, size, NULL, 0);
		if (r)
			break;
		peer->backlog_sent += sizeof(size) + size;
	}
	if (r && r != -EAGAIN) {
		gp_peer_close(daemon, peer, NULL);
		return false;
	}
	if (!r) {
		peer->owner->backlog_size -= peer->backlog.room;
		gp_text_fini(&peer->backlog);
		peer->backlog_sent = 0;
	}
	gp_peer_watch(daemon, peer);
	return !r;
}

static bool answer_is_too_much(const struct gp_peer *peer, size_t more)
{
	return !gp_owner_is_root(peer->owner) && peer->owner->backlog_size + more > ANSWER_USER_MAX;
}

static int answer_keep(struct gp_peer *peer, const void *packet, uint32_t size)
{
	struct gp_text *backlog = &peer->backlog;
	size_t need;
	char *bytes;

	/* Drops what has been sent. Otherwise the backlog of a reader that is always a little behind would keep
	 * everything that it ever read. */
	if (peer->backlog_sent > backlog->size / 2) {
		backlog->size -= peer->backlog_sent;
		memmove(backlog->bytes, backlog->bytes + peer->backlog_sent, backlog->size);
		peer->backlog_sent = 0;
	}
	need = backlog->size + sizeof(size) + size;
	if (need - peer->backlog_sent > ANSWER_BACKLOG_MAX || (need > backlog->room && answer_is_too_much(peer, need)))
		return -ENOBUFS;
	if (need > backlog->room) {
		bytes = realloc(backlog->bytes, need * 2);
		if (!bytes)
			return -ENOMEM;
		peer->owner->backlog_size += need * 2 - backlog->room;
		backlog->bytes = bytes;
		backlog->room = need * 2;
	}
	memcpy(backlog->bytes + backlog->size, &size, sizeof(size));
	memcpy(backlog->bytes + backlog->size + sizeof(size), packet, size);
	backlog->size = need;
	return 0;
}

static int answer_packet(struct gp_peer *peer, uint32_t cookie, const struct gp_control_answer *head, const char *text,
			 size_t size)
{
	struct {
		struct gp_control_answer head;
		char room[ANSWER_PART_SIZE];
	} packet;
	uint32_t total = (uint32_t)(sizeof(packet.head) + size);
	int r;

	packet.head = *head;
	packet.head.header = (struct gp_wire_header){ GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL, total, cookie };
	memcpy(packet.room, text, size);
	r = peer->backlog.size ? -EAGAIN : gp_peer_send(peer, &packet, total, NULL, 0);
	return r == -EAGAIN ? answer_keep(peer, &packet, total) : r;
}

static int answer_all(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, int result, bool more,
		      const char *text, size_t size)
{
	struct gp_control_answer head = { .result = result };
	bool waited = peer->backlog.size;
	size_t part, at = 0;
	int r;

	do {
		part = size - at < ANSWER_PART_SIZE ? size - at : ANSWER_PART_SIZE;
		head.more = more || at + part < size;
		r = answer_packet(peer, cookie, &head, text + at, part);
		at += part;
	} while (!r && at < size);
	if (!waited && peer->backlog.size)
		gp_peer_watch(daemon, peer);
	return r;
}

int gp_peer_answer(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, int result, const char *text,
		   size_t size)
{
	return answer_all(daemon, peer, cookie, result, false, text, size);
}

int gp_peer_answer_part(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, const char *text, size_t size)
{
	return answer_all(daemon, peer, cookie, 0, true, text, size);
}

void gp_peer_unanswered(struct gp_daemon *daemon, struct gp_peer *peer, int r)
{
	const char *why = r == -ENOBUFS ? "it does not read its answers" :
			  r == -ENOMEM  ? "gpreemptd has no memory for its answer" :
					  NULL;

	gp_peer_close(daemon, peer, why);
}
