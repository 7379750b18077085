/* SPDX-License-Identifier: MIT */
/*
 * gpreemptd: what its files share. One decision thread owns everything here; only the list of reports (inbox) is
 * written by other threads, under its lock.
 *
 *   peer.c     connections: who is there, packets in and out       client.c   agents: hello, queues, orders answered
 *   queue.c    one queue: page, counters, the core's view of it    plan.c     the core's plans are carried out
 *   device.c   devices: policy, costs, stop and start              sampling.c which agents look at their counters
 *   control.c  commands; status.c, metrics.c, events.c answer      access.c   ceilings, who may see and change what
 *   loop.c     epoll, timer, signals                               unmanaged.c, adopt.c  processes without an agent
 *   silence.c  agents that do not look any more                    journal.c  lines for the journal
 *   user.c     names of users                                      clock.c    the time
 *   quarantine.c  clients that answer again                        answer.c   answers to commands, slow readers
 */
#ifndef GP_DAEMON_DAEMON_H
#define GP_DAEMON_DAEMON_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <gpreempt/page.h>
#include <gpreempt/sched.h>
#include <gpreempt/wire.h>
#include "daemon/config.h"
#include "daemon/text.h"
#include "device/device.h"
#include "lib/hist.h"

#define GP_NO_PLACE    UINT32_MAX
#define GP_WAITING     1          /* a result that is not there yet: results are 0 or negative */
#define GP_STREAM_SIZE (1u << 20) /* bytes of events kept for a slow reader */
#define GP_WHY_TEXT    200u

struct gp_daemon;

/* Something epoll watches. */
struct gp_source {
	void (*ready)(struct gp_daemon *daemon, void *owner, uint32_t events);
	void *owner;
	bool can_wait; /* a connection: what is not read now is told again in the next round */
	bool is_late;  /* a command: after the decisions, a few at a time */
};

enum gp_peer_kind { GP_PEER_NEW, GP_PEER_AGENT, GP_PEER_COMMAND };

/* A connection. */
struct gp_peer {
	struct gp_source source, end_source; /* the socket; the process behind it */
	struct gp_peer *next, *prev;
	int fd, pidfd;
	pid_t pid;        /* in the daemon's namespace */
	uint16_t version; /* spoken: the newest that both know */
	uid_t uid;
	gid_t *groups; /* the process's own when it connected; the first is the primary one */
	uint32_t group_count;
	enum gp_peer_kind kind;
	bool closed; /* in the graveyard */
	uint64_t connected_ns;
	struct gp_client *client; /* of an agent */
	struct gp_stream *stream; /* of a command that reads events */
	struct gp_text backlog;   /* answer packets that did not fit yet: length, bytes, length, bytes */
	size_t backlog_sent;
	bool wants_status; /* waits for the agents' counters */
	uint32_t status_cookie;
	bool reads_past; /* EVENTS_PAST: a part of it whenever there is room */
	uint32_t past_cookie;
	uint64_t past_cursor, past_end;
};

struct gp_queue_entry; /* below */

struct gp_slot {
	struct gp_queue_entry *queue; /* NULL: free */
	uint32_t generation;          /* the last seen: a replayed QUEUE_ADD is refused */
	bool used;                    /* generation counts */
};

/* Whose look a client's counters are: its agent's, our own because that one is silent, nobody's since then. */
enum gp_counters_by { GP_COUNTERS_AGENT, GP_COUNTERS_DAEMON, GP_COUNTERS_OLD };

/* A process with queues. Unmanaged ones have neither peer nor page. */
struct gp_client {
	struct gp_device_client device; /* what backends see; device.tag is ours */
	struct gp_source doorbell_source;
	struct gp_peer *peer;
	uint32_t index; /* in daemon->clients */
	uid_t uid;
	pid_t own_pid; /* as it says itself */
	char name[GP_WIRE_NAME_SIZE], runtime[GP_WIRE_NAME_SIZE], agent[GP_WIRE_NAME_SIZE];
	struct gp_page *page;
	int doorbell_fd;
	uint64_t connected_ns;
	bool in_core, welcomed, is_unmanaged, dead;
	struct gp_client *next_dead;
	struct gp_client_id core;
	struct gp_wire_attr attr; /* in force, all fields */
	int32_t ceiling;          /* the user's; or what root gave */
	int32_t granted;          /* by root, for as long as the client is there */
	bool may_raise;           /* also weights above the default, and deadlines */
	bool granted_raise;
	uint32_t own_gang;     /* core's gang of its own, for queues on several devices; 0: none */
	struct gp_slot *slots; /* of the page; as many as it has used */
	uint32_t slot_count, queue_count;
	uint32_t left_out; /* queues that were not taken up */
	uint32_t hint_count;
	/* Sampling. */
	uint64_t sample_ns, sample_until_ns;
	/* Answering. */
	bool answers, sync_wait;
	uint32_t silent_by; /* the mechanism in force when it last did not */
	bool left_silent;   /* quarantine.c alone, as the next three: a quarantined queue went before it answered */
	uint64_t penalty_ns, returned_ns, back_ns;
	uint64_t said_ns; /* when that it does not, or does again, was last said */
	uint64_t escalated_ns;
	uint32_t orders_open; /* orders sent and not answered */
	uint64_t order_failures, orders, leases_lost;
	uint32_t runtime_cookie;
	bool letting_go; /* RUNTIME_DISABLE is waiting for our debugger to leave */
	char mechanism_why[GP_WHY_TEXT];
	uint64_t lease_ns;      /* last renewal */
	uint64_t lease_told_ns; /* how long its agent believes a lease to be: as it was when it came */
	bool lease_needed;
	/* silence.c */
	bool watched, looking;
	uint32_t beats;
	uint64_t beats_ns; /* when they last changed, or we looked */
	enum gp_counters_by counters;
	/* Of sampling.c alone; as of that round. */
	uint64_t sampling_round, busy, need_ns;                       /* busy: devices it has work on */
	struct gp_client *touched_next, *sampled_next, *sampled_prev; /* sampled: sample_ns is not 0 */
};

/* How long the device runs a queue before it looks at others, on devices where that can be set. */
enum gp_slice_state { GP_SLICE_LONG, GP_SLICE_SHORT, GP_SLICE_UNKNOWN };
struct gp_slice {
	enum gp_slice_state state; /* as last answered; LONG: as the application has it */
	bool asked, asked_short;   /* an answer is waited for */
	uint64_t asked_us;
	bool opening;    /* an open is about to be ordered, or was and is not answered */
	bool held_back;  /* the last open was not ordered: see gp_slice_holds_back() */
	bool grouped;    /* the backend knows what stands behind the queue */
	bool uncounted;  /* pace.c: the driver does not tell how often it is put aside */
	uint64_t us;     /* while SHORT: how short */
	uint64_t app_us; /* the application's own, as its agent says; 0: unknown */
	uint64_t asked_ns, retry_ns;
	uint32_t failures; /* in a row */
	uint64_t changes;
};

struct gp_queue_entry {
	struct gp_client *client;
	struct gp_queue_entry *device_next, *device_prev;
	struct gp_queue_entry *busy_next, *busy_prev;     /* while it has work */
	struct gp_queue_entry *unseen_next, *unseen_prev; /* while its doorbells are not seen */
	struct gp_queue_id core;
	bool in_core;
	uint32_t core_gang; /* as the core has it */
	uint32_t device;    /* index in daemon->devices */
	struct gp_wire_queue wire;
	struct gp_wire_attr set; /* by a command; valid fields win */
	struct gp_queue_attr attr;
	/* Counters as sampled, and as the core gets them. */
	uint64_t written, completed, virtual_written, virtual_completed;
	uint64_t looked; /* completed, as silence.c read it; 0: not */
	bool pending, blocked;
	uint32_t hint_count;
	/* The order under way. */
	uint64_t order_seq;
	uint32_t order_place;
	bool closed;     /* as last acknowledged */
	bool adopted;    /* of an unmanaged process: seen in the last scan */
	bool has_budget; /* its process's, which counts once on each device */
	uint64_t closes, opens;
	/* Of slice.c alone. */
	struct gp_slice slice;
};

/* How often a device that switches by itself does so: see pace.c. */
struct gp_pace {
	bool slowed;   /* switching took more of its time than it may: slices are longer than they could be */
	bool counting; /* an answer is waited for */
	uint64_t tag;  /* whose queue was counted last … */
	uint32_t slot, generation;
	uint64_t closes; /* … and how often it had been closed */
	uint32_t saves;
	uint64_t saves_ns;               /* when that was, by the backend; 0: never */
	uint64_t next_ns;                /* when to count again, or to give an answer up */
	uint64_t window_ns;              /* when per_s was last true */
	uint64_t hold_ns, held_until_ns; /* how long it is slowed at least, and until when that is */
	uint64_t back_ns;                /* when it was last over */
	uint64_t per_s_x1000;            /* switches, smoothed */
};

/* The plan under way on a device. */
struct gp_under_way {
	bool active, opening;
	uint64_t seq; /* of its orders: the plan's, going on where the core before this one ended */
	uint32_t waiting;
	struct gp_plan plan;
	int results[2 * GP_PLAN_MAX];
};

struct gp_device_entry {
	struct gp_device_info info;
	uint32_t core;
	struct gp_queue_entry *queues, *busy, *unseen;
	uint32_t queue_count, closed_queues;
	struct gp_under_way way;
	struct gp_hist close_hist, open_hist; /* device time, per transaction */
	uint64_t close_prior_ns, open_prior_ns;
	char cost_source[96];
	uint32_t learned;
	bool stopped;
	char stopped_why[GP_WHY_TEXT];
	uint64_t orders, order_failures, timeouts;
	uint32_t unmanaged_queues, unmanaged_processes;
	uint32_t other_queues, other_processes; /* of those: the ones the core does not know */
	uint32_t busy_clients;                  /* sampling.c */
	uint64_t slices, slice_failures;        /* slice.c: set, and not */
	struct gp_hist slice_hist;              /* from asking for one to its answer */
	uint64_t crowded_ns;                    /* slice.c: since when several lower queues with work are open; 0: no */
	struct gp_pace pace;
};

/* What other threads report. */
enum gp_report_kind {
	GP_REPORT_DONE,
	GP_REPORT_MECHANISM,
	GP_REPORT_FAILED,
	GP_REPORT_SLICED,
	GP_REPORT_GROUPED,
	GP_REPORT_COUNTED
};
struct gp_report {
	struct gp_report *next;
	enum gp_report_kind kind;
	uint64_t tag, seq, issue_ns, done_ns;
	uint32_t gpu_id, mechanism, count;
	struct gp_device_slice slice;     /* SLICED */
	struct gp_device_grouped grouped; /* GROUPED */
	struct gp_device_count counted;   /* COUNTED */
	char why[GP_WHY_TEXT];
	const char *found; /* DONE */
	struct gp_device_change changes[];
};

struct gp_counters {
	uint64_t clients_seen, orders, order_failures, leases_lost, messages_refused, wakeups, decisions, peers_refused,
		events_lost, messages, lines_left_out;
};

#define GP_JOURNAL_USERS 32u
struct gp_journal_user {
	bool used;
	uid_t uid;
	uint32_t lines; /* that may still be written */
	uint64_t used_ns, left_out;
};

struct gp_daemon {
	struct gp_config config;
	const char *config_path;
	bool config_required;        /* it was named: that it is missing is an error */
	const char *const *settings; /* of the command line, over every reading: gp_config_apply() */
	uint32_t setting_count;
	int epoll_fd, listen_fd, timer_fd, signal_fd, inbox_fd, spare_fd, lock_fd;
	struct gp_source listen_source, timer_source, signal_source, inbox_source;
	bool stopping, dirty;
	uint64_t started_ns, armed_ns; /* armed_ns: what the timer is set to; 0: not */
	uint64_t listen_next_ns;       /* no descriptors: nobody is let in until then; 0: all are */
	uint64_t watchdog_ns, watchdog_next_ns, scan_next_ns, metrics_next_ns, cost_next_ns, stop_by_ns;
	const char *notify_path;
	/* Backend. */
	const struct gp_backend_ops *ops;
	struct gp_backend *backend;
	struct gp_device_host host;
	struct gp_device_entry *devices;
	uint32_t device_count, dilation;
	/* Core. */
	void *core_memory;
	size_t core_size;
	struct gp_sched *sched;
	uint64_t seq_base; /* orders of the cores before this one: agents take no older one than the last */
	struct gp_queue_entry **by_core; /* by the core's queue index */
	struct gp_plan plan;
	/* Connections. */
	struct gp_peer *peers, *graveyard;
	bool no_rights; /* the kernel lets nobody send us descriptors */
	uint32_t peer_count, new_count;
	struct gp_users *users;
	struct gp_client **clients, *dead_clients;
	uint32_t client_count, client_top, client_hint;
	uint32_t serial;
	struct gp_counters counters;
	/* Reports. */
	pthread_mutex_t inbox_lock;
	struct gp_report *inbox, **inbox_tail; /* inbox_lock */
	pthread_t thread;
	/* Gangs: number - 1 is the place. */
	struct gp_gang_name *gangs;
	uint32_t gang_max;
	/* Events. */
	struct gp_stream *streams;
	uint64_t trace_cursor;
	struct gp_text line;
	struct gp_unmanaged_set *unmanaged;
	uint32_t sync_serial;
	uint64_t barrier_count; /* made for clients whose doorbells have no fence */
	uint64_t scanned_ns;    /* unmanaged processes were looked for */
	uint64_t sync_by_ns;    /* STATUS waits until then at most; 0: nobody waits */
	bool sync_looked;       /* those who did not look in time are looked at */
	uint64_t synced_ns;     /* when the agents were last asked to look */
	uint32_t turn;          /* which of the connections that wait is next */
	uint32_t late_turn;     /* the same of the commands' */
	uint64_t round_by_ns;   /* no further message is taken up after that: orders come first */
	struct gp_silence *silence;
	struct gp_journal_user journal[GP_JOURNAL_USERS];
	bool metrics_dirty, metrics_failed;
	uint64_t metrics_written_ns;
	bool slice_dirty;       /* gates, priorities or slices have changed */
	uint64_t back_next_ns;  /* when somebody is to leave quarantine; 0: nobody */
	uint64_t slice_next_ns; /* when gp_slice_update() wants to be called again; 0: not */
	bool sampling_dirty;    /* who has work or a closed gate has changed */
	struct gp_client *sampled;
	uint64_t sampling_round, sampling_next_ns; /* next: when gp_sampling_update() wants to be called again */
	_Alignas(8) char packet[GP_WIRE_SIZE_MAX + 64];
};

/* loop.c */
int gp_daemon_init(struct gp_daemon *daemon, struct gp_error *error); /* config is set */
int gp_daemon_run(struct gp_daemon *daemon);
void gp_daemon_fini(struct gp_daemon *daemon);
int gp_daemon_reload(struct gp_daemon *daemon, struct gp_error *error);
int gp_daemon_watch(struct gp_daemon *daemon, int fd, uint32_t events, struct gp_source *source);
void gp_daemon_drop(struct gp_daemon *daemon, int fd);         /* not watched any more, and closed; -1: nothing */
void gp_daemon_step(struct gp_daemon *daemon, int timeout_ms); /* one round; for tests */
uint64_t gp_now_ns(void);                                      /* CLOCK_MONOTONIC */
uint64_t gp_daemon_now_ns(const struct gp_daemon *daemon);     /* device time */

/* journal.c */
void gp_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gp_log_user(struct gp_daemon *daemon, uid_t uid, const char *format, ...)
	__attribute__((format(printf, 3, 4))); /* what a user caused: kept to a rate */
bool gp_journal_may(struct gp_daemon *daemon, uid_t uid, uint64_t now_ns, uint64_t *ret_left_out);

/* peer.c */
int gp_peer_listen(struct gp_daemon *daemon, struct gp_error *error);
void gp_peer_watch_end(struct gp_daemon *daemon, struct gp_peer *peer);
void gp_peer_close(struct gp_daemon *daemon, struct gp_peer *peer, const char *why); /* why NULL: it hung up */
int gp_peer_send(struct gp_peer *peer, const void *message, size_t size, const int *fds, uint32_t fd_count);
void gp_peer_refuse(struct gp_daemon *daemon, struct gp_peer *peer, const char *why); /* a bad message: counted */
void gp_peer_bury(struct gp_daemon *daemon);
void gp_peer_expire(struct gp_daemon *daemon, uint64_t now_ns);

/* answer.c */
int gp_peer_answer(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, int result, const char *text,
		   size_t size); /* in packets; what does not fit is sent later */
int gp_peer_answer_part(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie, const char *text,
			size_t size);                               /* more follows */
bool gp_peer_drain(struct gp_daemon *daemon, struct gp_peer *peer); /* sends what waits; true: nothing is left */
/* Who is being written to is not asked for more questions. */
void gp_peer_watch(struct gp_daemon *daemon, struct gp_peer *peer);

/* client.c */
void gp_client_message(struct gp_daemon *daemon, struct gp_peer *peer, int type, const void *data, size_t size);
void gp_client_remove(struct gp_daemon *daemon, struct gp_client *client);
struct gp_client *gp_client_find(const struct gp_daemon *daemon, uint64_t tag);
int gp_client_create(struct gp_daemon *daemon, struct gp_client **ret_client);
void gp_client_mechanism(struct gp_daemon *daemon, struct gp_client *client, uint32_t mechanism, const char *why);
void gp_client_cut(const struct gp_client *client, struct gp_wire_attr *attr); /* to what its user may have */
void gp_client_set_attr(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_attr *attr,
			bool is_root);
int gp_client_order(void *daemon, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		    const struct gp_device_change *changes, uint32_t count);
void gp_client_answers(struct gp_daemon *daemon, struct gp_client *client, bool answers);
void gp_client_escalate(struct gp_daemon *daemon, struct gp_client *client); /* it does not answer */
void gp_client_answered(struct gp_daemon *daemon, struct gp_client *client); /* an order of its was */
/* quarantine.c */
void gp_quarantine_answered(struct gp_daemon *daemon, struct gp_client *client); /* one that did not */
bool gp_quarantine_admits(const struct gp_client *client); /* new queues of his enter; else when he is back */
/* A queue of one that does not answer is about to leave the core. */
void gp_quarantine_leave(struct gp_daemon *daemon, const struct gp_queue_entry *queue);
void gp_quarantine_due(struct gp_daemon *daemon, uint64_t now_ns);
void gp_client_sync(struct gp_daemon *daemon);

/* queue.c */
int gp_queue_add(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_queue *wire);
void gp_queue_remove(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_queue_enter(struct gp_daemon *daemon, struct gp_queue_entry *queue);      /* into the core */
void gp_queue_leave(struct gp_daemon *daemon, struct gp_queue_entry *queue);      /* out of it; still listed */
void gp_queue_reconsider(struct gp_daemon *daemon, struct gp_queue_entry *queue); /* in or out: its flags changed */
void gp_queue_attr(struct gp_daemon *daemon, struct gp_queue_entry *queue);       /* recompute and tell the core */
bool gp_queue_makes_barriers(void);                                               /* for page.barriers */
void gp_queue_sample(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_queue_sample_client(struct gp_daemon *daemon, struct gp_client *client);
void gp_queue_set_pending(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool pending);
void gp_queue_set_seen(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool seen);
void gp_queue_gate(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool open); /* as acknowledged */
/* Before it is ordered closed, and when it is not: where nobody but us knows, its agent can read it on the page. */
void gp_queue_hold(const struct gp_daemon *daemon, const struct gp_queue_entry *queue, bool held);
/* The queue that the core names; NULL: it is gone. */
struct gp_queue_entry *gp_queue_of(const struct gp_daemon *daemon, struct gp_queue_id id);
void gp_queue_lost(struct gp_daemon *daemon, struct gp_queue_entry *queue, bool open);
uint64_t gp_queue_tag(const struct gp_queue_entry *queue);
struct gp_queue_entry *gp_queue_by_tag(const struct gp_daemon *daemon, uint64_t tag);
uint32_t gp_gang_get(struct gp_daemon *daemon, uid_t uid, const char *name);
uint32_t gp_gang_of(struct gp_daemon *daemon, const struct gp_queue_entry *queue,
		    const char *name); /* "": its process's */
void gp_gang_put(struct gp_daemon *daemon, uint32_t gang);

/* device.c */
int gp_device_add_all(struct gp_daemon *daemon, struct gp_error *error); /* backend, core, devices */
int gp_device_build_core(struct gp_daemon *daemon, struct gp_error *error);
struct gp_device_entry *gp_device_find(struct gp_daemon *daemon, uint32_t gpu_id);
void gp_device_learn(struct gp_daemon *daemon, struct gp_device_entry *device, bool open, uint64_t ns);
void gp_device_stop(struct gp_daemon *daemon, struct gp_device_entry *device, const char *why);
void gp_device_start(struct gp_daemon *daemon, struct gp_device_entry *device);

/* cost.c */
void gp_cost_load(struct gp_daemon *daemon);
void gp_cost_save(struct gp_daemon *daemon);

/* plan.c */
void gp_plan_decide(struct gp_daemon *daemon);
void gp_plan_answer(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
		    uint64_t seq, bool open, int result);
void gp_plan_queue_gone(struct gp_daemon *daemon, struct gp_queue_entry *queue);
void gp_plan_inbox(struct gp_daemon *daemon);
void gp_plan_host(struct gp_daemon *daemon, struct gp_device_host *ret_host);

void gp_plan_go_on(struct gp_daemon *daemon, struct gp_device_entry *device); /* slices were answered */

/* slice.c */
void gp_slice_update(struct gp_daemon *daemon, uint64_t now_ns);
bool gp_slice_may_open(struct gp_daemon *daemon, struct gp_device_entry *device); /* what its plan opens next */
/* Then, of one of its orders: it is not to be opened, it would stand in another's way. */
bool gp_slice_holds_back(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue);
void gp_slice_plan_over(struct gp_daemon *daemon, struct gp_device_entry *device);
void gp_slice_answer(struct gp_daemon *daemon, struct gp_client *client, uint32_t slot, uint32_t generation,
		     uint64_t slice_us, int result);
void gp_slice_sliced(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_slice *slice);
void gp_slice_lost(struct gp_daemon *daemon, struct gp_queue_entry *queue); /* its agent has opened it by itself */
void gp_slice_group(struct gp_daemon *daemon, struct gp_client *client, const struct gp_wire_group *group);
void gp_slice_grouped(struct gp_daemon *daemon, struct gp_client *client, const struct gp_device_grouped *grouped);
int gp_slice_ask_agent(void *daemon, struct gp_device_client *client, const struct gp_device_slice *slice);
void gp_slice_wake(struct gp_daemon *daemon, uint64_t at_ns); /* gp_slice_update() wants to be called then */
bool gp_slice_are_back(const struct gp_daemon *daemon);       /* every one as the application has it */

/* pace.c */
uint64_t gp_pace_short_us(const struct gp_daemon *daemon, const struct gp_queue_entry *queue);
/* One that is short, is at work, and may be put aside by the device; NULL: none. */
void gp_pace_update(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
		    uint64_t now_ns);
void gp_pace_counted(struct gp_daemon *daemon, struct gp_client *client, const struct gp_device_count *count);

/* sampling.c */
void gp_sampling_forget(struct gp_daemon *daemon, struct gp_client *client);
void gp_sampling_update(struct gp_daemon *daemon, uint64_t now_ns);

/* silence.c */
uint64_t gp_silence_check(struct gp_daemon *daemon, struct gp_client *client, uint64_t now_ns); /* when again */
bool gp_silence_look(struct gp_daemon *daemon, struct gp_client *client); /* false: nobody may look there */
void gp_silence_take(struct gp_daemon *daemon);                           /* what was seen */
void gp_silence_fini(struct gp_daemon *daemon);
extern ssize_t (*gp_silence_read)(int fd, void *into, size_t size, off_t at); /* pread(); a test has its own */

/* access.c */
int32_t gp_access_ceiling(const struct gp_config *config, const struct gp_peer *peer);
bool gp_access_may_raise(const struct gp_config *config, const struct gp_peer *peer);
bool gp_access_is_raise(const struct gp_wire_attr *attr); /* other than by its priority */
bool gp_access_sees_all(const struct gp_daemon *daemon, const struct gp_peer *peer);
bool gp_access_may_change(const struct gp_peer *peer, const struct gp_client *client);

/* user.c */
const char *gp_user_name(struct gp_daemon *daemon, uid_t uid, char *buffer, size_t size); /* or its number */
void gp_user_want(struct gp_daemon *daemon, uid_t uid);                                   /* somebody will ask for it */
void gp_user_fini(struct gp_daemon *daemon);
extern bool (*gp_user_ask)(uid_t uid, char *name, size_t size); /* getpwuid_r(); a test has its own */

/* control.c, status.c, metrics.c, events.c */
void gp_control_request(struct gp_daemon *daemon, struct gp_peer *peer, const void *data);
void gp_control_past(struct gp_daemon *daemon, struct gp_peer *peer); /* the next part for one that reads it */
void gp_control_synced(struct gp_daemon *daemon); /* answers STATUS if all agents have looked, or time is up */
void gp_device_use(const struct gp_daemon *daemon, const struct gp_device_entry *device, uint32_t *ret_slots,
		   uint32_t *ret_processes);
void gp_status_write(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_text *text);
void gp_status_client(struct gp_daemon *daemon, const struct gp_client *client, uint64_t now_ns, struct gp_text *text);
void gp_metrics_write(struct gp_daemon *daemon, struct gp_text *text);
void gp_metrics_file(struct gp_daemon *daemon, uint64_t now_ns);
int gp_events_open(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie);
uint64_t gp_events_end(const struct gp_daemon *daemon); /* where the next one will be */
/* Some of the lines from the cursor on; false: there are no more before end. */
bool gp_events_past(struct gp_daemon *daemon, const struct gp_peer *peer, uint64_t *cursor, uint64_t end,
		    struct gp_text *text);
void gp_events_close(struct gp_daemon *daemon, struct gp_stream *stream);
void gp_events_flush(struct gp_daemon *daemon);

#endif
