/* SPDX-License-Identifier: MIT */
/*
 * Users as accounts: what all connections and clients of one user have together, and the user's penalties. A user is
 * more than a uid: a user also has the uids of the user's ranges in /etc/subuid, and those of the user namespaces that
 * the user made.
 */
#ifndef GP_DAEMON_OWNER_H
#define GP_DAEMON_OWNER_H

#include <gpreempt/sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gp_daemon;
struct gp_peer;

#define GP_OWNER_MAX 4096u /* accounts; users who find no place share one */

/* fair.c: connections of one user that want something; one list for agents, one for commands. */
struct gp_fair {
	struct gp_fair *next, *prev; /* of other users with such connections */
	struct gp_owner *owner;
	struct gp_peer *first, *last;
	bool is_in;
};

/* The penalty of a user or a client for orders that were not answered; of quarantine.c alone. */
struct gp_penalty {
	uint64_t penalty_ns, calm_ns; /* calm_ns: since when it halves */
	bool is_logged;
};

/* notice.c: what the journal says about a user, once in a while. */
enum gp_notice {
	GP_NOTICE_TIME,    /* has used a user's share of the daemon's time */
	GP_NOTICE_LATE,    /* an answer came late */
	GP_NOTICE_COST,    /* an answer states a longer time than the daemon measured */
	GP_NOTICE_CROWD,   /* has many clients */
	GP_NOTICE_STORM,   /* has connected once more */
	GP_NOTICE_RUNTIME, /* sent RUNTIME */
	GP_NOTICE_ENTRIES, /* one more queue waits to enter the core */
	GP_NOTICE_COUNT
};
struct gp_noticed {
	uint32_t count;
	uint64_t since_ns, logged_ns; /* begin of the window; last line, 0: never */
};

/* entry.c: how often the user's queues enter the core, on one device. Device time. */
struct gp_entries {
	uint64_t often_ns, start_ns; /* when the small and the large bucket are full again */
	struct gp_entry_line *line;  /* queues that wait to enter; NULL: none */
};

struct gp_owner {
	struct gp_owner *next;  /* owner.c: in its bucket */
	uint64_t key;           /* the account's number */
	uint32_t id;            /* of this account, never given again; 0: root, 1: shared by those without a place */
	uid_t uid;              /* for the journal */
	uint32_t references;    /* peers and clients */
	uint64_t keep_until_ns; /* not forgotten before that */
	/* What the peers and clients have now. */
	uint32_t peer_count, client_count, queue_count, stream_count;
	uint32_t device_queue_count[GP_DEVICE_MAX];
	struct gp_entries entries[GP_DEVICE_MAX];
	uint32_t question_count; /* question.c: open ones */
	uint32_t asked_count;    /* listen.c: connections as that uid whose process is not identified yet */
	uint64_t heads_ns;       /* client.c: when as many clients of the user may come at once as at the start */
	size_t backlog_size;     /* bytes of answers that wait for their readers */
	struct gp_fair fair[2];
	uint64_t debt_ns, spent_ns; /* fair.c: thread time used, and when that was true */
	uint64_t rings_ns;          /* fair.c: when the user may ring for nothing as often as at the start */
	bool rang_last; /* fair.c: a doorbell was the last thing of the user that was served, and put him in debt */
	/* plan.c: queues read before the plan of that round; the next user with many */
	uint64_t refresh_round;
	uint32_t refreshed;
	bool refresh_waits; /* the user has used too much time: the further ones are not read */
	struct gp_owner *refresh_next;
	struct gp_penalty penalty, stuck; /* for not answering; for keeping gangs open */
	/* journal.c */
	uint32_t lines; /* that may still be written */
	uint64_t lines_ns, left_out;
	struct gp_noticed noticed[GP_NOTICE_COUNT]; /* notice.c */
};

/* The account of that number, with one reference more; uid: for the journal. Never fails. */
struct gp_owner *gp_owner_of(struct gp_daemon *daemon, uint64_t account, uid_t uid);
/* The same where nothing but the uid is known; uid 0: root's. */
struct gp_owner *gp_owner_of_uid(struct gp_daemon *daemon, uid_t uid);
struct gp_owner *gp_owner_hold(struct gp_owner *owner); /* one reference more */
/* One less. Without any the account is kept for ten minutes, and for as long as gp_owner_keep() says. */
void gp_owner_put(struct gp_owner *owner);
void gp_owner_keep(struct gp_owner *owner, uint64_t until_ns); /* keeps the account until then */
bool gp_owner_is_root(const struct gp_owner *owner);           /* uid 0, with a right of rights.c */
/* Whether the user may take one more place of a table of count places, of which used are taken, own of these by this
 * user. A user gets half of what the others leave, and the last kept places are root's alone. */
bool gp_owner_may_take(const struct gp_owner *owner, uint32_t count, uint32_t kept, uint32_t used, uint32_t own);
int gp_owner_init(struct gp_daemon *daemon);
void gp_owner_fini(struct gp_daemon *daemon);

#endif
