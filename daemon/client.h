/* SPDX-License-Identifier: MIT */
/* Clients: processes with queues. Who they are, whether they answer and sample, what they may have. */
#ifndef GP_DAEMON_CLIENT_H
#define GP_DAEMON_CLIENT_H

#include <gpreempt/page.h>
#include <gpreempt/sched.h>
#include <gpreempt/wire.h>
#include "daemon/account.h"
#include "daemon/config.h"
#include "daemon/peer.h"
#include "daemon/terms.h"
#include "device/device.h"

#define GP_WHY_TEXT 200u

struct gp_queue_entry; /* queue.h */

struct gp_client_slot {
	struct gp_queue_entry *queue; /* NULL: free */
	uint32_t generation;          /* the last seen: a replayed QUEUE_ADD is refused */
	bool used;                    /* generation counts */
};

/* Who read a client's counters last: its agent; the daemon, because the agent is silent; or neither of them lately. */
enum gp_counters_by { GP_COUNTERS_AGENT, GP_COUNTERS_DAEMON, GP_COUNTERS_OLD };

/* A process with queues. An unmanaged one has neither peer nor page. */
struct gp_client {
	struct gp_device_client device; /* what backends see; device.tag is the daemon's */
	struct gp_source doorbell_source;
	struct gp_peer *peer;
	uint32_t index; /* in daemon->clients */
	uid_t uid;
	struct gp_process_identity identity; /* as it was when it connected */
	struct gp_owner *owner;              /* its user, as an account */
	char name[GP_WIRE_NAME_SIZE], runtime[GP_WIRE_NAME_SIZE], agent[GP_WIRE_NAME_SIZE];
	struct gp_page *page;
	int page_fd; /* until its first queue: the daemon seals the page then */
	int doorbell_fd;
	uint64_t connected_ns;
	bool in_core, welcomed, is_unmanaged, dead;
	struct gp_client *next_dead;
	struct gp_client_id core;
	struct gp_wire_attr attr; /* in force, all fields */
	struct gp_wire_attr own;  /* valid fields: what the program, or its user, asked for */
	struct gp_wire_attr set;  /* valid fields: what root set */
	uint32_t over;            /* fields that own set last: there it overrides what is forced or set */
	struct gp_terms by_pid;   /* granted to the process, or to an ancestor */
	struct gp_terms terms;    /* of all rules and grants */
	int32_t ceiling;          /* the user's; or what root gave */
	int32_t granted;          /* by root, for as long as the client is there */
	bool may_raise;           /* also shares, weights above the default, deadlines, latency protection */
	bool granted_raise;
	char together[GP_WIRE_NAME_SIZE]; /* together.c: the program or job with all that share; empty: not known */
	char origin[GP_WIRE_NAME_SIZE];   /* origin.c: the program or job it is part of; empty: not known, or not yet */
	struct gp_wire_share *shares;     /* share.c alone: what it shares; NULL: nothing */
	uint32_t share_count;             /* from SHARE_MAX on only the place of the next one */
	uint32_t mates;                   /* clients of its program or job with its priority, and itself */
	struct gp_driver_entry *driver;   /* never NULL: whose devices it may use */
	struct gp_client_slot *slots;     /* of the page; as many as it has used */
	uint32_t slot_count, queue_count;
	uint16_t device_queue_count[GP_DEVICE_MAX];
	uint32_t left_out; /* queues that the daemon does not schedule */
	/* account.c: of queues and devices it has left; what it had of the device that a queue is leaving */
	struct gp_spent spent, leaving;
	bool had_queues;
	uint32_t hint_count;
	/* Sampling. */
	uint64_t sample_ns, sample_until_ns;
	/* Answering. */
	bool answers, sync_wait;
	uint32_t silent_by; /* the mechanism when it last did not answer */
	bool left_silent;   /* quarantine.c alone, as the next three: a quarantined queue went before it answered */
	struct gp_penalty penalty;
	uint64_t owed_ns, back_ns;
	bool is_distrusted;        /* the core does not wait for its answers: quarantine.c */
	struct gp_penalty stuck;   /* quarantine.c alone, as the next: as penalty, for keeping a gang open */
	uint64_t stuck_ns;         /* since when a queue of it in a gang has been stuck; 0: none is */
	bool is_stuck_alone;       /* its gangs do not stay open for its stuck queues */
	uint64_t answer_logged_ns; /* when the journal last said that it does not answer, or does again */
	uint64_t escalated_ns;
	uint32_t orders_open; /* orders sent and not answered */
	uint64_t order_failures, orders, leases_lost;
	uint32_t runtime_cookie;
	bool letting_go; /* RUNTIME_DISABLE waits until the daemon is its debugger no more */
	char mechanism_why[GP_WHY_TEXT];
	uint32_t groups_asked; /* channel_group.c alone: that the backend checks, while it looks for those that wait */
	char doubt_why[GP_WHY_TEXT]; /* channel_group.c alone: why its last channel group was not found */
	uint64_t lease_ns;           /* last renewal */
	uint64_t lease_sent_ns;      /* the lease as WELCOME told its agent */
	bool lease_needed;
	/* silence.c */
	bool watched, looking;
	uint32_t rounds;
	uint64_t rounds_ns; /* when they last changed, or the daemon looked */
	enum gp_counters_by counters;
	/* attr.c: its new attributes have reached the queues before this slot */
	uint32_t attr_at;
	bool attr_waits;
	struct gp_client *attr_next;
	/* fair.c: its doorbell rang */
	bool is_rung, is_deaf; /* is_deaf: its doorbell does not wake the daemon until it is served */
	uint32_t rung_at;
	struct gp_client *rung_next, *rung_prev;
	/* Of sampling.c alone; as of that round. */
	uint64_t sampling_round, busy, need_ns;                       /* busy: devices it has work on */
	struct gp_client *touched_next, *sampled_next, *sampled_prev; /* sampled: sample_ns is not 0 */
};

/* client.c */
void gp_client_message(struct gp_daemon *daemon, struct gp_peer *peer, int type, const void *data, size_t size);
void gp_client_remove(struct gp_daemon *daemon, struct gp_client *client);
struct gp_client *gp_client_find(const struct gp_daemon *daemon, uint64_t tag);
int gp_client_create(struct gp_daemon *daemon, struct gp_owner *owner, struct gp_client **ret_client);
void gp_client_mechanism(struct gp_daemon *daemon, struct gp_client *client, uint32_t mechanism, const char *why);
int gp_client_order(void *daemon, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		    const struct gp_device_change *changes, uint32_t count);
void gp_client_answers(struct gp_daemon *daemon, struct gp_client *client, bool answers);
void gp_client_escalate(struct gp_daemon *daemon, struct gp_client *client); /* after it did not answer */
void gp_client_answered(struct gp_daemon *daemon, struct gp_client *client); /* it answered an order */
void gp_client_applied(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_applied *applied);
void gp_client_lost(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_lost *lost);
/* NULL: the slot has no queue, or another one by now. */
struct gp_queue_entry *gp_client_queue(const struct gp_client *client, uint32_t slot, uint32_t generation);
void gp_client_sync(struct gp_daemon *daemon);      /* begins to ask every agent for its counters */
bool gp_client_sync_some(struct gp_daemon *daemon); /* asks some; false: all were asked */
void gp_client_synced(struct gp_daemon *daemon, struct gp_client *client); /* STATUS waits for it no longer */

/* attr.c */
void gp_client_attr_init(struct gp_client *client);
void gp_client_find_terms(struct gp_daemon *daemon, struct gp_client *client); /* its cgroups, rules and grants */
void gp_client_make_attr(struct gp_daemon *daemon, struct gp_client *client);
void gp_client_refresh(struct gp_daemon *daemon, struct gp_client *client); /* rules, grants or ceilings changed */
void gp_client_adopted(struct gp_daemon *daemon, struct gp_client *client); /* an unmanaged process is a client now */
void gp_client_unset(struct gp_daemon *daemon, pid_t pid);                  /* takes back what root set */
void gp_client_set_attr(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_attr *attr,
			bool is_root);
void gp_client_cut(const struct gp_client *client, struct gp_wire_attr *attr); /* to what its user may have */
void gp_client_apply_attrs(struct gp_daemon *daemon); /* to queues they have not reached: one portion */
void gp_client_forget_attr(struct gp_daemon *daemon, struct gp_client *client);
void gp_client_tell_attr(struct gp_client *client);
void gp_client_reapply(struct gp_daemon *daemon, struct gp_client *client); /* its attributes, to its queues */

/* share.c */
void gp_share_take(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_share *share);

/* together.c */
void gp_together_find(struct gp_daemon *daemon, struct gp_client *client); /* it has just connected */
/* A scheduled client of this account that has the same origin; NULL: there is none. */
const struct gp_client *gp_together_client(const struct gp_daemon *daemon, uid_t uid, uint64_t account,
					   const char *origin);
void gp_together_update(struct gp_daemon *daemon,
			const struct gp_client *client); /* it goes, or its priority changed */
/* The two share something: what belongs to one belongs to the other. */
void gp_together_join(struct gp_daemon *daemon, struct gp_client *client, struct gp_client *other);

/* quarantine.c */
void gp_quarantine_silent(struct gp_daemon *daemon, struct gp_client *client);   /* it does not answer any more */
void gp_quarantine_answered(struct gp_daemon *daemon, struct gp_client *client); /* it answers again */
void gp_quarantine_trust(struct gp_daemon *daemon, struct gp_client *client,
			 uint64_t now_ns);                 /* updates is_distrusted and is_stuck_alone */
bool gp_quarantine_admits(const struct gp_client *client); /* its queues may enter the core now */
/* A queue is about to leave the core, perhaps that of a client that does not answer. */
void gp_quarantine_leave(struct gp_daemon *daemon, const struct gp_queue_entry *queue);
void gp_quarantine_due(struct gp_daemon *daemon, uint64_t now_ns);
/* The core knows what became of an order to the queue: the queue may be stuck now. */
void gp_quarantine_ordered(struct gp_daemon *daemon, const struct gp_queue_entry *queue);

/* sampling.c */
void gp_sampling_changed(struct gp_daemon *daemon); /* work or gates have changed */
void gp_sampling_forget(struct gp_daemon *daemon, struct gp_client *client);
void gp_sampling_update(struct gp_daemon *daemon, uint64_t now_ns);

/* silence.c */
uint64_t gp_silence_check(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns); /* the next check */
bool gp_silence_look(struct gp_daemon *daemon, struct gp_client *client); /* false: its memory cannot be read */
void gp_silence_take(struct gp_daemon *daemon);                           /* what the threads have read */
void gp_silence_fini(struct gp_daemon *daemon);
extern ssize_t (*gp_silence_read)(int fd, void *into, size_t size, off_t at); /* pread(); a test has its own */

/* access.c */
int32_t gp_access_ceiling(const struct gp_config *config, const struct gp_peer *peer);
/* For messages: the key in [ceiling] that decides ("default", "user.anna"), and the groups whose members may have more
 * ("group.video = 80, group.lab = 90"; as many as fit, empty if none would help). */
const char *gp_access_ceiling_name(const struct gp_config *config, const struct gp_peer *peer);
void gp_access_groups_above(const struct gp_config *config, const struct gp_peer *peer, char *ret_text, size_t size);
bool gp_access_may_raise(const struct gp_config *config, const struct gp_peer *peer);
bool gp_access_is_raise(const struct gp_wire_attr *attr); /* other than by its priority */
bool gp_access_is_admin(const struct gp_peer *peer);      /* may do what root does to others */
bool gp_access_is_same(const struct gp_peer *peer, const struct gp_client *client); /* both belong to one user */
bool gp_access_sees_all(const struct gp_daemon *daemon, const struct gp_peer *peer);
bool gp_access_may_change(const struct gp_peer *peer, const struct gp_client *client);

#endif
