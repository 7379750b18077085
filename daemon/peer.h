/* SPDX-License-Identifier: MIT */
/* Connections: what epoll watches, who is there, packets in and out. */
#ifndef GP_DAEMON_PEER_H
#define GP_DAEMON_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/identity.h"
#include "daemon/owner.h"
#include "daemon/rights.h"
#include "daemon/text.h"
#include "lib/error.h"

struct gp_daemon;
struct gp_tree;
struct gp_grant_question;

/* Something epoll watches. */
struct gp_source {
	void (*ready)(struct gp_daemon *daemon, void *owner, uint32_t events);
	void *owner;
};

#define GP_PEER_FDS 6u /* descriptors of one at most: socket, process, doorbell, page, two of a backend's */

enum gp_peer_kind { GP_PEER_NEW, GP_PEER_AGENT, GP_PEER_COMMAND };

/* A command that is answered in parts, with decisions in between. */
enum gp_job_kind {
	GP_JOB_NONE,
	GP_JOB_STATUS,
	GP_JOB_PAST,
	GP_JOB_SUMMARY,
	GP_JOB_ACCOUNT,
	GP_JOB_METRICS,
	GP_JOB_GRANT
};
struct gp_job {
	enum gp_job_kind kind;
	uint32_t cookie;
	uint32_t stage, index, slot; /* how far it is */
	uint64_t tag;                /* STATUS: of the client whose queues come next; 0: none */
	uint64_t cursor, end;        /* PAST; ACCOUNT: of those that ended */
	uint64_t ended;              /* PAST: the next that ended */
	uint64_t now_ns;
	struct gp_tree *tree;            /* SUMMARY */
	struct gp_grant_question *grant; /* GRANT, and SET for a process without a client: it is looked for */
	struct gp_text text;             /* what is not sent yet */
};

/* A connection. */
struct gp_peer {
	struct gp_source source, end_source; /* the socket; the process behind it */
	struct gp_peer *next, *prev;
	int fd, pidfd;
	pid_t pid;        /* in the daemon's namespace */
	uint16_t version; /* spoken: the newest that both know */
	uid_t uid;
	struct gp_process_identity identity; /* as it was when it connected */
	struct gp_owner *owner;              /* the user who answers for it: limits count for users */
	gid_t *groups;                       /* the process's own when it connected; the first is the primary one */
	uint32_t group_count;
	enum gp_peer_kind kind;
	bool closed; /* in the graveyard */
	uint64_t connected_ns;
	struct gp_client *client; /* of an agent */
	struct gp_stream *stream; /* of a command that reads events */
	struct gp_text backlog;   /* answer packets that did not fit yet: length, bytes, length, bytes */
	size_t backlog_sent;
	bool wants_status; /* waits for the agents' counters, a scan, a tree, or a process that is to get a grant */
	struct gp_job job;
	/* fair.c */
	struct gp_peer *fair_next, *fair_prev;
	bool in_fair, fair_late;
	bool is_late; /* a command */
	bool ended;   /* its process has ended */
};

/* peer.c */
void gp_peer_watch_end(struct gp_daemon *daemon, struct gp_peer *peer);
void gp_peer_close(struct gp_daemon *daemon, struct gp_peer *peer, const char *why); /* why NULL: it hung up */
int gp_peer_send(struct gp_peer *peer, const void *message, size_t size, const int *fds, uint32_t fd_count);
void gp_peer_refuse(struct gp_daemon *daemon, struct gp_peer *peer, const char *why); /* a bad message: counted */
void gp_peer_bury(struct gp_daemon *daemon);
void gp_peer_serve(struct gp_daemon *daemon, struct gp_peer *peer);         /* reads, writes, or goes on with its job */
void gp_peer_ready(struct gp_daemon *daemon, void *owner, uint32_t events); /* of a peer's source */
/* Closes the socket, or has another thread close it; owner NULL: not known yet. */
void gp_peer_hang_up(struct gp_daemon *daemon, int fd, struct gp_owner *owner);

/* listen.c */
int gp_peer_listen(struct gp_daemon *daemon, struct gp_error *error);
/* Makes the socket and its lock again if they were removed; connections stay. */
void gp_peer_restore(struct gp_daemon *daemon);
void gp_peer_unlisten(struct gp_daemon *daemon); /* leaves the socket of another daemon there */
void gp_peer_listen_again(struct gp_daemon *daemon, uint64_t now_ns);
void gp_peer_expire(struct gp_daemon *daemon, uint64_t now_ns);
uint32_t gp_peer_max(const struct gp_daemon *daemon); /* connections at once */
void gp_peer_accept(struct gp_daemon *daemon);        /* a few of the connections that wait */

/* answer.c */
int gp_peer_answer(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, int result, const char *text,
		   size_t size); /* in packets; what does not fit is sent later */
int gp_peer_answer_part(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, const char *text,
			size_t size); /* more follows */
/* The answer could not be sent (r < 0): ends the connection. A command that left before its answer came has done
 * nothing wrong; the journal does not mention it. */
void gp_peer_unanswered(struct gp_daemon *daemon, struct gp_peer *peer, int r);
bool gp_peer_drain(struct gp_daemon *daemon, struct gp_peer *peer); /* sends what waits; true: nothing is left */
/* While answers wait to be sent, the daemon reads no more commands from the peer. */
void gp_peer_watch(struct gp_daemon *daemon, struct gp_peer *peer);

#endif
