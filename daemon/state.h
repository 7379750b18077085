/* SPDX-License-Identifier: MIT */
/* What each file of the daemon keeps in struct gp_daemon. Only that file writes it, unless a comment says otherwise. */
#ifndef GP_DAEMON_STATE_H
#define GP_DAEMON_STATE_H

#include <pthread.h>
#include "daemon/config.h"
#include "daemon/device.h"
#include "daemon/peer.h"
#include "daemon/text.h"
#include "daemon/timer.h"

/* main.c: what the daemon was started with. */
struct gp_start {
	const char *config_path;
	bool config_required;        /* the command line names it: it must exist */
	const char *const *settings; /* of the command line: override the files at every reading (gp_config_apply()) */
	uint32_t setting_count;
	uint64_t at_ns;
};

/* loop.c */
struct gp_loop {
	int epoll_fd, timer_fd, signal_fd;
	struct gp_source timer_source, signal_source;
	uint64_t armed_ns;       /* what the kernel's timer is set to; 0: off */
	struct gp_timers timers; /* timer.c: those that are set */
	struct gp_timer core_timer, watchdog;
	struct gp_timer stop_timer; /* the daemon waits until then for open gates before it ends */
	uint64_t watchdog_ns;
	const char *notify_path;
	struct gp_error refused; /* why the configuration was refused at the last reload; "": it was not */
	bool stopping;
	uint32_t phase; /* what the next portion is for */
	pthread_t thread;
};

/* listen.c: new connections. */
struct gp_listen {
	dev_t device; /* of the daemon's own socket: it may have been removed and replaced */
	ino_t inode;
	int fd, spare_fd, lock_fd;
	struct gp_source source;
	bool is_asked;                /* a connection waits to be accepted */
	bool is_full;                 /* too many processes are to be identified: no connection is accepted */
	uint32_t asked_count;         /* connections whose process is not identified yet */
	bool no_rights;               /* the kernel refuses descriptors that peers send */
	uint32_t new_count;           /* connections without a message yet */
	struct gp_timer timer;        /* no connection is accepted until then; not set: all are */
	uint64_t debt_ns, spent_ns;   /* thread time used, and when that was true */
	struct gp_timer silent_timer; /* looks for connections without a message */
};

/* plan.c: what other threads report. */
struct gp_inbox {
	int fd; /* also written by the daemon's workers */
	struct gp_source source;
	pthread_mutex_t lock;
	struct gp_device_report *reports, **tail; /* lock; but see gp_carry_has_reports() */
};

/* device.c, plan.c: the core's memory, and what it has decided. */
struct gp_core_state {
	void *memory;
	size_t size;
	uint64_t seq_base; /* last order of the cores before this one: agents take no older order than the last */
	struct gp_queue_entry **queues; /* queue.c: by the core's queue index */
	struct gp_plan plan;
	struct gp_timer timer; /* plan.c: a plan's patience is over, or a call into the driver is to be checked */
	struct gp_timer pulse; /* pause.c: orders are under way, and the daemon looks whether it stood still */
	uint64_t refreshes;    /* plan.c: rounds of reading counters before plans */
};

/* gang.c: a gang's number - 1 is its place. */
struct gp_gangs {
	struct gp_gang_name *names;
	uint32_t max, last;    /* last: the place that was last asked for */
	struct gp_timer timer; /* queue.c: a queue may change its gang */
};

/* events.c */
struct gp_events {
	struct gp_stream *streams;
	struct gp_event_lines *lines; /* while a reader is connected */
	uint64_t trace_cursor;
	uint64_t watch_cursor, back_offs; /* up to where the journal has the back-offs */
	struct gp_text line;
};

/* control.c: commands that wait until the agents have sampled their counters. */
struct gp_sync {
	uint32_t serial;
	struct gp_timer timer;         /* STATUS waits until then at most; not set: none waits */
	struct gp_timer metrics_timer; /* the same for METRICS */
	bool has_looked;               /* clients whose agents did not answer have been looked at */
	uint64_t at_ns;                /* when the agents were last asked */
	uint32_t next, waiting;        /* the client to ask next; agents that have not answered yet */
	uint32_t look_next;            /* the client to look at next */
};

/* unmanaged.c: looking for processes without an agent. */
struct gp_scan_state {
	struct gp_timer timer;
	uint64_t at_ns, took_ns; /* of the last scan */
};

/* question.c */
struct gp_questions {
	struct gp_worker *identities, *worker; /* NULL: no such question was asked yet */
	struct gp_lane *answered;              /* those that the daemon has yet to take */
	uint32_t open_count, identity_count;   /* identity_count: of those, about new connections */
};

/* fair.c */
struct gp_fairness {
	struct gp_fair *owners[2], *owners_tail[2]; /* users with agents, and with commands, to be served */
	struct gp_client *rung[GP_PRIORITY_MAX + 1], *rung_tail[GP_PRIORITY_MAX + 1];
	uint32_t rung_count, portion_work;
	uint64_t portion_by_ns;
	struct gp_timer timer; /* a user who used too much time may go on */
	uint64_t away_work;    /* units since the last look at urgent work */
};

/* grant.c */
struct gp_grants {
	struct gp_grant *first, *dead;
	uint32_t count, pid_count; /* pid_count: of processes */
	struct gp_timer timer;     /* the time of a grant is over */
	bool saved, dirty;         /* in this round: the file was written; it is to be written at the end */
	bool failed;               /* the last try to write it */
};

/* journal.c: lines of all users. */
struct gp_journal {
	uint32_t lines;
	uint64_t at_ns;
};

/* metrics.c: the file. */
struct gp_metrics_state {
	bool failed;
	struct gp_timer timer; /* writes the file */
	uint64_t written_ns;
	char path[GP_CONFIG_PATH_SIZE]; /* of the file that was written last; "": none */
};

/* sampling.c */
struct gp_sampling {
	struct gp_timer timer; /* gp_sampling_update() has something to do */
	struct gp_client *clients;
	uint64_t round;
};

#endif
