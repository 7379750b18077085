/* SPDX-License-Identifier: MIT */
/* What each noun of the daemon keeps in struct gp_daemon. Its file alone writes it, unless a comment says otherwise. */
#ifndef GP_DAEMON_STATE_H
#define GP_DAEMON_STATE_H

#include <pthread.h>
#include "daemon/config.h"
#include "daemon/device.h"
#include "daemon/peer.h"
#include "daemon/text.h"
#include "daemon/timer.h"

/* main.c: what it was started with. */
struct gp_start {
	const char *config_path;
	bool config_required;        /* it was named: that it is missing is an error */
	const char *const *settings; /* of the command line, over every reading: gp_config_apply() */
	uint32_t setting_count;
	uint64_t at_ns;
};

/* loop.c */
struct gp_loop {
	int epoll_fd, timer_fd, signal_fd;
	struct gp_source timer_source, signal_source;
	uint64_t armed_ns;       /* what the timer of the kernel is set to; 0: not */
	struct gp_timers timers; /* timer.c: of all nouns */
	struct gp_timer core_timer, watchdog;
	struct gp_timer stop_timer; /* the end waits for gates until then */
	uint64_t watchdog_ns;
	const char *notify_path;
	bool stopping;
	uint32_t phase; /* what the next portion is for */
	pthread_t thread;
};

/* listen.c: who comes in. */
struct gp_listen {
	dev_t device; /* of the socket that we made: who removed it may have put another there */
	ino_t inode;
	int fd, spare_fd, lock_fd;
	struct gp_source source;
	bool is_asked;                /* somebody waits to be let in */
	bool no_rights;               /* the kernel lets nobody send us descriptors */
	uint32_t new_count;           /* who have said nothing yet */
	struct gp_timer timer;        /* nobody is let in until then; not set: all are */
	uint64_t debt_ns, spent_ns;   /* of the thread's time, and when that was true */
	struct gp_timer silent_timer; /* silent connections are looked for */
};

/* plan.c: what other threads report. */
struct gp_inbox {
	int fd; /* also written by the daemon's workers */
	struct gp_source source;
	pthread_mutex_t lock;
	struct gp_device_report *reports, **tail; /* lock */
};

/* device.c, plan.c: the core's memory, and what it has decided. */
struct gp_core_state {
	void *memory;
	size_t size;
	uint64_t seq_base; /* orders of the cores before this one: agents take no older one than the last */
	struct gp_queue_entry **queues; /* queue.c: by the core's queue index */
	struct gp_plan plan;
	struct gp_timer timer; /* plan.c: a plan's patience is over, or the driver is to be looked at */
};

/* gang.c: number - 1 is the place. */
struct gp_gangs {
	struct gp_gang_name *names;
	uint32_t max, last;    /* last: the place that was asked for last */
	struct gp_timer timer; /* queue.c: somebody may change his gang */
};

/* events.c */
struct gp_events {
	struct gp_stream *streams;
	struct gp_event_lines *lines; /* while somebody reads them */
	uint64_t trace_cursor;
	uint64_t watch_cursor, back_offs; /* what the journal has been told of */
	struct gp_text line;
};

/* control.c: commands that wait until the agents have looked at their counters. */
struct gp_sync {
	uint32_t serial;
	struct gp_timer timer;         /* STATUS waits until then at most; not set: nobody waits */
	struct gp_timer metrics_timer; /* the same for METRICS */
	bool has_looked;               /* those who did not look in time are looked at */
	uint64_t at_ns;                /* when the agents were last asked to look */
	uint32_t next, waiting;        /* whom to ask next; how many were asked and have not looked */
	uint32_t look_next;            /* whom to look at next */
};

/* unmanaged.c: looking for processes without an agent. */
struct gp_scan_state {
	struct gp_timer timer;
	uint64_t at_ns, took_ns; /* the last time */
};

/* fair.c */
struct gp_fairness {
	struct gp_fair *owners[2], *owners_tail[2]; /* users with agents, with commands that want something */
	struct gp_client *rung[GP_PRIORITY_MAX + 1], *rung_tail[GP_PRIORITY_MAX + 1];
	uint32_t rung_count, portion_work;
	uint64_t portion_by_ns;
	struct gp_timer timer; /* somebody who used too much may go on */
	uint64_t away_work;    /* units since urgent work was last looked at */
};

/* grant.c */
struct gp_grants {
	struct gp_grant *first, *dead;
	uint32_t count, pid_count; /* pid_count: of processes */
	struct gp_timer timer;     /* the time of one is over */
	bool saved, dirty;         /* in this round: the file was written; and is to be, at its end */
};

/* journal.c: lines of all users. */
struct gp_journal {
	uint32_t lines;
	uint64_t at_ns;
};

/* metrics.c: the file. */
struct gp_metrics_state {
	bool failed;
	struct gp_timer timer; /* it is written */
	uint64_t written_ns;
	char path[GP_CONFIG_PATH_SIZE]; /* that was written last; "": none */
};

/* sampling.c */
struct gp_sampling {
	struct gp_timer timer; /* gp_sampling_update() has something to do */
	struct gp_client *clients;
	uint64_t round;
};

#endif
