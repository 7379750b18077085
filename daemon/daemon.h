/* SPDX-License-Identifier: MIT */
/*
 * gpreemptd: what its files share. The decision thread owns everything here; other threads write only the list of
 * reports (inbox), under its lock.
 *
 *   main.c     the program; config.c: gpreempt.conf              loop.c     epoll, signals, the one thread that decides
 *   listen.c   the socket, new connections                       peer.c     connections: packets in and out
 *   message.c  checks each message where it arrives              client.c   agents: HELLO, queues, counters
 *   order.c    orders to agents, and their answers               queue.c    one queue: attributes, gate, in the core?
 *   page.c     reads the shared page: counters, hints            plan.c     carries out the core's plans
 *   device.c   devices: policy, stop and start; stopped.c: pauses  claim.c  one daemon for each GPU; lockfile.c
 *   learn.c, cost.c  what transactions cost; between runs        slicing.c  sets slices, counts switches
 *   sampling.c which agents sample their counters                silence.c  agents that do not sample any more
 *   channel_group.c  the handles of a queue, if they are needed  attr.c     a client's attributes
 *   quarantine.c  clients that answer again                      gang.c     names of gangs
 *   together.c processes that are one program or job             share.c    processes that share GPU memory or events
 *   origin.c   the program or job of one process                 question.c questions about processes, in threads
 *   identity.c, identify.c  which process it is
 *   access.c   ceilings; who may see and change what             cgroup.c   cgroups of a process
 *   rights.c   capabilities of a process                         owner.c, subuid.c  the user of a process, limits
 *   grant.c, grant_file.c, terms.c  what root sets
 *   control.c  commands; status.c, metrics.c, events.c answer    answer.c   answers to commands, slow readers
 *   lines.c    event lines that are kept for readers             account.c  what clients got, after their end too
 *   unmanaged.c, adopt.c, scan.c  processes without an agent     process.c  what /proc says; tree.c: descendants
 *   journal.c, notice.c  lines for the journal                   user.c     names of users
 *   fair.c     who is served next, and for how long              timer.c    when each file wants to be woken
 *   entry.c    how often queues of one user enter the core
 *   clock.c    the time; pause.c: less when it stood still       state.h    what each file keeps in struct gp_daemon
 *   text.c     text and JSON that grow                           state_file.c  files for the next daemon
 */
#ifndef GP_DAEMON_DAEMON_H
#define GP_DAEMON_DAEMON_H

#include "daemon/account.h"
#include "daemon/state.h"

struct gp_counters {
	uint64_t clients_seen, orders, order_failures, leases_lost, messages_refused, wakeups, decisions, peers_refused,
		events_lost, messages, lines_left_out, away_work_max;
};

struct gp_daemon {
	struct gp_config config;
	struct gp_start start;
	struct gp_loop loop;
	struct gp_inbox inbox;
	/* Backends that have devices here. */
	struct gp_driver_entry drivers[GP_BACKEND_MAX];
	uint32_t driver_count;
	struct gp_device_host host;
	struct gp_device_entry *devices;
	uint32_t device_count, dilation;
	struct gp_timer cost_timer;  /* saves learned costs */
	bool cost_failed;            /* saving failed the last time */
	struct gp_timer claim_timer; /* looks at GPUs that another daemon has */
	struct gp_sched *sched;
	struct gp_core_state core;
	/* Connections. */
	struct gp_listen listen;
	struct gp_peer *peers, *graveyard;
	uint32_t peer_count, fd_max; /* fd_max: descriptors that the daemon may have */
	struct gp_users *users;
	struct gp_owners *owners;
	struct gp_accounts *accounts;
	struct gp_client **clients, *dead_clients;
	uint32_t client_count, client_top, client_hint;
	uint32_t serial;
	struct gp_client *attr_clients; /* clients whose new attributes have not reached all their queues */
	struct gp_counters counters;
	uint64_t barrier_count; /* barriers made for clients whose doorbells have no fence */
	struct gp_gangs gangs;
	struct gp_grants grants;
	struct gp_events events;
	struct gp_journal journal;
	struct gp_metrics_state metrics;
	struct gp_sync sync;
	struct gp_unmanaged_set *unmanaged;
	struct gp_scan_state scan;
	struct gp_worker *silence;
	struct gp_questions questions;
	struct gp_fairness fair;
	struct gp_sampling sampling;
	struct gp_timer quarantine_timer;    /* a client may leave quarantine, or its penalty changes */
	struct gp_timer channel_group_timer; /* a client may have to fall back */
	struct gp_timer slice_timer;         /* gp_slicing_update() has something to do */
	struct gp_entry_line *entry_lines;   /* queues that wait to enter the core */
	struct gp_timer entry_timer;         /* one of them may */
	_Alignas(8) char packet[GP_WIRE_SIZE_MAX + 64];
};

/* loop.c */
int gp_daemon_init(struct gp_daemon *daemon, struct gp_error *error); /* config is set */
int gp_daemon_run(struct gp_daemon *daemon);
void gp_daemon_fini(struct gp_daemon *daemon);
int gp_daemon_reload(struct gp_daemon *daemon, struct gp_error *error);
int gp_daemon_watch(struct gp_daemon *daemon, int fd, uint32_t events, struct gp_source *source);
void gp_daemon_drop(struct gp_daemon *daemon, int fd);         /* ends the watch and closes fd; -1: does nothing */
void gp_daemon_step(struct gp_daemon *daemon, int timeout_ms); /* one round; tests call it too */
bool gp_daemon_has_work(struct gp_daemon *daemon);             /* the next step need not wait */
uint64_t gp_now_ns(void);                                      /* CLOCK_MONOTONIC */
uint64_t gp_used_ns(void);                                     /* processor time of the calling thread */
uint64_t gp_daemon_now_ns(const struct gp_daemon *daemon);     /* device time, without pauses */
uint64_t gp_daemon_real_ns(const struct gp_daemon *daemon, uint64_t device_ns); /* the other way, for timers */

/* pause.c: CLOCK_MONOTONIC without the time in which the daemon stood still. The decision thread only. */
uint64_t gp_running_ns(const struct gp_daemon *daemon);
uint64_t gp_running_at_ns(uint64_t running_ns);                 /* when that will be by gp_now_ns(), or later */
uint64_t gp_running_was_ns(uint64_t running_ns);                /* when that was */
bool gp_pause_since(uint64_t real_ns);                          /* a pause ended after that (gp_now_ns()) */
void gp_pause_ordered(struct gp_daemon *daemon);                /* orders are under way now */
void gp_pause_pulse(struct gp_daemon *daemon, uint64_t now_ns); /* the timer core.pulse */
void gp_pause_slept(const struct gp_daemon *daemon);            /* the loop has waited for an event or its timer */

/* fair.c */
/* Work is counted in units: a queue, a client, a line, a message; reading a file of /proc is eight. */
#define GP_PORTION_PROC 8u
/* The most work between two looks at urgent work: a portion; what one message causes at once; what decisions and timers
 * of the same round look at. The most that a message causes is that all 1,024 queues of a client leave the core and
 * enter it again: 34,816 and, for the gates, 2,048. Decisions look at queues with work: 4,096 of a user at most. That
 * is enough for three such users at once. With more a round may exceed it (41,963 units were seen). */
#define GP_AWAY_WORK_MAX 49152u
void gp_portion_begin(struct gp_daemon *daemon);
void gp_portion_use(struct gp_daemon *daemon, uint32_t units);
bool gp_portion_is_over(const struct gp_daemon *daemon);          /* true: urgent work comes first */
void gp_portion_look(struct gp_daemon *daemon);                   /* the daemon looks at urgent work now */
void gp_fair_add(struct gp_daemon *daemon, struct gp_peer *peer); /* the peer wants to be served */
void gp_fair_remove(struct gp_daemon *daemon, struct gp_peer *peer);
bool gp_fair_has_work(struct gp_daemon *daemon, bool late);
void gp_fair_serve(struct gp_daemon *daemon, bool late);               /* one portion */
void gp_fair_ring(struct gp_daemon *daemon, struct gp_client *client); /* the client's doorbell rang */
void gp_fair_forget(struct gp_daemon *daemon, struct gp_client *client);
bool gp_fair_has_rung(struct gp_daemon *daemon);
void gp_fair_answer_rings(struct gp_daemon *daemon);                /* one portion */
bool gp_fair_may(struct gp_daemon *daemon, struct gp_owner *owner); /* false: the user waits; sets the timer for it */
void gp_fair_set_timer(struct gp_daemon *daemon); /* for the first user of those who wait; not set: none waits */
void gp_fair_charge(struct gp_owner *owner, uint64_t ns, uint64_t now_ns);
void gp_fair_charge_ring(struct gp_owner *owner, uint64_t ns, uint64_t now_ns); /* a doorbell, of which some are free */

/* journal.c */
void gp_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gp_log_user(struct gp_daemon *daemon, struct gp_owner *owner, const char *format, ...)
	__attribute__((format(printf, 3, 4))); /* for what a user can cause: at a limited rate */
void gp_notice(struct gp_daemon *daemon, struct gp_owner *owner, enum gp_notice kind); /* counts it and may log it */
bool gp_journal_may(struct gp_daemon *daemon, struct gp_owner *owner, uint64_t now_ns, uint64_t *ret_left_out);

/* user.c */
const char *gp_user_name(struct gp_daemon *daemon, uid_t uid, char *buffer, size_t size); /* or the uid's number */
void gp_user_want(struct gp_daemon *daemon, uid_t uid);                                   /* the name will be needed */
void gp_user_fini(struct gp_daemon *daemon);
extern bool (*gp_user_ask)(uid_t uid, char *name, size_t size); /* getpwuid_r(); a test has its own */

/* control.c, status.c, metrics.c, events.c */
void gp_control_request(struct gp_daemon *daemon, struct gp_peer *peer, const void *data);
void gp_control_go_on(struct gp_daemon *daemon, struct gp_peer *peer); /* continues the peer's job */
void gp_control_end(struct gp_peer *peer);                             /* ends the peer's job, if it has one */
bool gp_control_own_space(const struct gp_peer *peer);                 /* the peer is in the daemon's PID namespace */
bool gp_control_has_work(const struct gp_daemon *daemon);              /* clients are still to be asked or looked at */
void gp_control_synced(struct gp_daemon *daemon); /* answers STATUS if all agents have sampled, or time is up */
void gp_device_use(const struct gp_device_entry *device, uint32_t *ret_slots, uint32_t *ret_processes);
bool gp_status_part(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job); /* true: complete */
void gp_status_client(struct gp_daemon *daemon, const struct gp_client *client, uint64_t now_ns, struct gp_text *text);
void gp_metrics_write(struct gp_daemon *daemon, struct gp_text *text);
void gp_metrics_changed(struct gp_daemon *daemon); /* one of the figures has changed */
void gp_metrics_file(struct gp_daemon *daemon, uint64_t now_ns);
void gp_metrics_remove(struct gp_daemon *daemon); /* the file: a reader would take it for current */
int gp_events_open(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie);
uint64_t gp_events_end(const struct gp_daemon *daemon); /* the cursor of the next event */
/* Writes some lines from the job's cursor on; false: there are no more before the job's end. */
bool gp_events_past(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job, struct gp_text *text);
void gp_events_ended(struct gp_daemon *daemon, const struct gp_ended *ended); /* a client has ended */
void gp_events_close(struct gp_daemon *daemon, struct gp_stream *stream);
void gp_events_flush(struct gp_daemon *daemon);
void gp_events_deliver(struct gp_daemon *daemon, struct gp_peer *peer); /* sends some lines to a reader */

#endif
