/* SPDX-License-Identifier: MIT */
/* What clients got, also after they have ended: account.c. */
#ifndef GP_DAEMON_ACCOUNT_H
#define GP_DAEMON_ACCOUNT_H

#include <gpreempt/sched.h>
#include <gpreempt/wire.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/text.h"

struct gp_client;
struct gp_daemon;
struct gp_job;
struct gp_peer;
struct gp_queue_entry;

#define GP_ACCOUNT_MAX      2048u /* clients that have ended and are remembered */
#define GP_ACCOUNT_TAGS     256u
#define GP_ACCOUNT_QUEUES   4096u /* queues that have gone, by the core's number; one place each */
#define GP_ACCOUNT_SENTENCE 400u

/* Device time, over all devices. */
struct gp_spent {
	uint64_t compute_ns, copy_ns, wait_ns, preemptions, inversions;
};

/* The process and the user of a queue that exists, or has gone. */
struct gp_queue_name {
	struct gp_queue_id id;
	bool is_known;
	pid_t pid;
	uid_t uid;
	uint64_t account;
	uint32_t queue_id;
	int32_t priority;
	char name[GP_WIRE_NAME_SIZE];
};

/* A client that has ended. */
struct gp_ended {
	uint64_t serial, ended_ns;               /* ended_ns: device time, as events have it */
	uint64_t started_real_ns, ended_real_ns; /* since 1970 */
	pid_t pid;
	uid_t uid;
	uint64_t account;
	int32_t priority;
	char name[GP_WIRE_NAME_SIZE], tag[GP_WIRE_NAME_SIZE];
	struct gp_spent spent;
};

int gp_account_init(struct gp_daemon *daemon);
void gp_account_fini(struct gp_daemon *daemon);
/* A queue is about to leave the core, and has left it; the core is about to be built anew. */
void gp_account_leave(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_account_left(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_account_rebuild(struct gp_daemon *daemon);
void gp_account_end(struct gp_daemon *daemon, struct gp_client *client); /* the client goes; its queues have gone */
/* Of a queue that exists, or has gone. */
void gp_account_name(const struct gp_daemon *daemon, struct gp_queue_id id, struct gp_queue_name *ret_name);
/* The first that ended with this serial or later; NULL: none. */
const struct gp_ended *gp_account_ended(const struct gp_daemon *daemon, uint64_t serial);
void gp_account_sentence(const struct gp_ended *ended, char *text, size_t size);
bool gp_account_part(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job); /* true: complete */

#endif
