/* SPDX-License-Identifier: MIT */
/*
 * The decision thread: sleeps in epoll until a client, a command, a signal, a report or the one timer wakes it. It sets
 * the kernel's timer to the earliest of the daemon's timers (timer.h), and turns it off if none is set, so that nothing
 * wakes an idle machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "daemon/question.h"
#include "daemon/unmanaged.h"

#define LOOP_EVENTS 256
#define LOOP_ROUNDS 32 /* of so many events: more than there are connections */
/* Work that can wait, in turn: agents (false), commands (true), new connections, attributes. */
enum { LOOP_ASKED = 2, LOOP_ATTRS, LOOP_PHASES };
#define LOOP_FDS_OWN  1280u         /* descriptors beside those of connections: of grants, of new connections */
#define LOOP_FDS_MAX  (1u << 20)    /* more are never needed */
#define LOOP_RETRY_NS 50000ull      /* a timer that stays due must not make the loop spin */
#define LOOP_STOP_NS  1000000000ull /* how long agents may take to open their gates when the daemon stops */

uint64_t gp_daemon_now_ns(const struct gp_daemon *daemon)
{
	return gp_running_ns(daemon) / daemon->dilation;
}

uint64_t gp_daemon_real_ns(const struct gp_daemon *daemon, uint64_t device_ns)
{
	return gp_running_at_ns(device_ns * daemon->dilation);
}

int gp_daemon_watch(struct gp_daemon *daemon, int fd, uint32_t events, struct gp_source *source)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (!epoll_ctl(daemon->loop.epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return 0;
	if (errno != EEXIST)
		return -errno;
	return epoll_ctl(daemon->loop.epoll_fd, EPOLL_CTL_MOD, fd, &event) ? -errno : 0;
}

/* close() alone does not end epoll's watch while another process has the same file open: the agent has the doorbell
 * too, and a child that a backend has just forked has all the daemon's descriptors for a moment. A watch must not
 * outlive the object that it points to. */
void gp_daemon_drop(struct gp_daemon *daemon, int fd)
{
	if (fd < 0)
		return;
	epoll_ctl(daemon->loop.epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* ENOENT: it was not watched */
	close(fd);
}

/* sd_notify(3), by hand: one datagram. */
static void loop_notify(struct gp_daemon *daemon, const char *state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t size = daemon->loop.notify_path ? strlen(daemon->loop.notify_path) : 0;
	int fd;

	if (!size || size >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, daemon->loop.notify_path, size);
	if (address.sun_path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
	close(fd);
}

static void loop_stop(struct gp_daemon *daemon)
{
	if (daemon->loop.stopping)
		return;
	loop_notify(daemon, "STOPPING=1");
	gp_log("the daemon ends and opens every gate");
	daemon->loop.stopping = true;
	gp_timer_set(daemon, &daemon->loop.stop_timer, gp_now_ns() + LOOP_STOP_NS);
	for (uint32_t i = 0; i < daemon->device_count; i++)
		gp_sched_device_stop(daemon->sched, daemon->devices[i].core, gp_daemon_now_ns(daemon));
	gp_slicing_changed(daemon);
}

static bool loop_all_open(const struct gp_daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		if (daemon->devices[i].under_way.active)
			return false;
		for (const struct gp_queue_entry *q = daemon->devices[i].queues; q; q = q->device_next)
			if ((q->closed || q->is_ordered) && q->client->answers)
				return false;
	}
	return gp_slicing_are_back(daemon);
}

static int loop_configure(struct gp_daemon *daemon, struct gp_error *error)
{
	struct gp_config *config = malloc(sizeof(*config));
	bool rebuild;
	int r;

	if (!config)
		return gp_error_set(error, -ENOMEM, "no memory for the configuration");
	gp_config_init(config);
	r = gp_config_read_again(config, daemon->start.config_path, !daemon->start.config_required, error);
	if (!r)
		r = gp_config_apply(config, daemon->start.settings, daemon->start.setting_count, error);
	if (r) {
		free(config);
		return r;
	}
	/* A reload does not change what is made only at start: sockets, tables, the backend. */
	memcpy(config->socket, daemon->config.socket, sizeof(config->socket));
	memcpy(config->backend, daemon->config.backend, sizeof(config->backend));
	memcpy(config->device, daemon->config.device, sizeof(config->device));
	config->client_max = daemon->config.client_max;
	config->queue_max = daemon->config.queue_max;
	/* memcmp() compares padding, too, so there must be none. */
	_Static_assert(sizeof(config->param) == 8 * sizeof(uint64_t) + 6 * sizeof(uint32_t), "no padding");
	rebuild = strcmp(config->policy, daemon->config.policy) ||
		  memcmp(&config->param, &daemon->config.param, sizeof(config->param)) ||
		  config->answer_ns != daemon->config.answer_ns;
	daemon->config = *config;
	free(config);
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (daemon->clients[i])
			gp_client_refresh(daemon, daemon->clients[i]);
	if (rebuild)
		r = gp_device_build_core(daemon, error);
	gp_log("configuration read again: %u files, policy %s", daemon->config.file_count, daemon->config.policy);
	return r;
}

/* Makes the daemon's own files again if they were removed, also when the configuration is invalid. */
int gp_daemon_reload(struct gp_daemon *daemon, struct gp_error *error)
{
	int r = loop_configure(daemon, error);

	daemon->loop.refused = r ? *error : (struct gp_error){ "" };
	gp_metrics_changed(daemon);
	gp_claim_all(daemon); /* makes the folder, too */
	gp_peer_restore(daemon);
	return r;
}

static void loop_signal(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	struct signalfd_siginfo info;
	struct gp_error error;

	(void)owner;
	(void)events;
	while (read(daemon->loop.signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
			loop_stop(daemon);
		} else if (info.ssi_signo == SIGHUP) {
			loop_notify(daemon, "RELOADING=1");
			if (gp_daemon_reload(daemon, &error))
				gp_log("the new configuration is invalid, the old settings stay: %s", error.text);
			loop_notify(daemon, "READY=1");
		}
	}
}

static void loop_drain(struct gp_daemon *daemon, void *owner, uint32_t events)
{
	int fd = *(int *)owner;
	uint64_t value;
	ssize_t size = read(fd, &value, sizeof(value));

	(void)size;
	(void)events;
	if (fd == daemon->loop.timer_fd)
		daemon->loop.armed_ns = 0;
}

static void loop_set_timer(struct gp_daemon *daemon)
{
	uint64_t now_ns = gp_now_ns(), core_ns = gp_sched_deadline_ns(daemon->sched), due_ns;
	struct itimerspec when = { 0 };

	gp_timer_set(daemon, &daemon->loop.core_timer,
		     core_ns < UINT64_MAX / 2 / daemon->dilation ? gp_daemon_real_ns(daemon, core_ns + 1) : 0);
	due_ns = gp_timers_next_ns(&daemon->loop.timers);
	if (due_ns && due_ns <= now_ns)
		due_ns = now_ns + LOOP_RETRY_NS;
	if (due_ns == daemon->loop.armed_ns)
		return;
	daemon->loop.armed_ns = due_ns;
	when.it_value.tv_sec = (time_t)(due_ns / 1000000000ull);
	when.it_value.tv_nsec = (long)(due_ns % 1000000000ull);
	timerfd_settime(daemon->loop.timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void loop_watchdog(struct gp_daemon *daemon, uint64_t now_ns)
{
	loop_notify(daemon, "WATCHDOG=1");
	if (daemon->loop.watchdog_ns)
		gp_timer_set(daemon, &daemon->loop.watchdog, now_ns + daemon->loop.watchdog_ns / 2);
}

/* What is due by the clock. */
static void loop_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	gp_timers_run(daemon, now_ns);
	gp_unmanaged_due(daemon, now_ns);
	gp_metrics_file(daemon, now_ns);
	gp_grant_due(daemon, now_ns);
	gp_control_synced(daemon);
}

/* Takes every event that epoll has: doorbells may be among the last. */
static void loop_look(struct gp_daemon *daemon, int timeout_ms)
{
	struct epoll_event events[LOOP_EVENTS];
	int count, rounds = 0;

	do {
		count = epoll_wait(daemon->loop.epoll_fd, events, LOOP_EVENTS, rounds ? 0 : timeout_ms);
		if (timeout_ms && !rounds)
			gp_pause_slept(daemon);
		for (int i = 0; i < count; i++) {
			struct gp_source *source = events[i].data.ptr;

			source->ready(daemon, source->owner, events[i].events);
		}
	} while (count == LOOP_EVENTS && ++rounds < LOOP_ROUNDS);
	gp_portion_look(daemon);
}

static bool loop_has_work(struct gp_daemon *daemon, uint32_t phase)
{
	return phase == LOOP_ASKED ? daemon->listen.is_asked :
	       phase == LOOP_ATTRS ? daemon->attr_clients != NULL :
				     gp_fair_has_work(daemon, phase);
}

bool gp_daemon_has_work(struct gp_daemon *daemon)
{
	return gp_fair_has_rung(daemon) || gp_fair_has_work(daemon, false) || gp_fair_has_work(daemon, true) ||
	       daemon->listen.is_asked || daemon->attr_clients || daemon->questions.answered ||
	       gp_control_has_work(daemon) || gp_carry_has_reports(daemon);
}

/* Does one portion of work that can wait: agents' messages, commands, new connections or attributes, in turn. */
static void loop_serve(struct gp_daemon *daemon)
{
	for (uint32_t i = 0; i < LOOP_PHASES; i++) {
		uint32_t phase = daemon->loop.phase++ % LOOP_PHASES;

		if (!loop_has_work(daemon, phase))
			continue;
		if (phase == LOOP_ASKED)
			gp_peer_accept(daemon);
		else if (phase == LOOP_ATTRS)
			gp_client_apply_attrs(daemon);
		else
			gp_fair_serve(daemon, phase);
		return;
	}
}

void gp_daemon_step(struct gp_daemon *daemon, int timeout_ms)
{
	loop_look(daemon, gp_daemon_has_work(daemon) ? 0 : timeout_ms);
	daemon->counters.wakeups++;
	gp_fair_answer_rings(daemon);
	gp_carry_inbox(daemon);
	gp_silence_take(daemon);
	gp_unmanaged_take(daemon);
	gp_questions_take(daemon);
	gp_carry_decide(daemon); /* first: everything else can wait for an order */
	loop_serve(daemon);
	gp_carry_inbox(daemon);
	loop_due(daemon, gp_now_ns());
	gp_carry_decide(daemon);
	gp_slicing_update(daemon, gp_now_ns());
	gp_sampling_update(daemon, gp_now_ns());
	gp_peer_bury(daemon);
	gp_fair_set_timer(daemon);
	loop_set_timer(daemon);
	(void)gp_running_ns(daemon); /* a pause up to here must not count as a part of the sleep */
}

/* When the descriptor table of a process with threads grows, the kernel waits until every processor has passed a
 * quiescent state, which takes seconds on a loaded machine. So the daemon makes the table as large as it will ever be
 * before it has threads. */
static void loop_make_table(const struct gp_daemon *daemon)
{
	uint32_t need = gp_peer_max(daemon) * GP_PEER_FDS + LOOP_FDS_OWN;
	int fd = fcntl(daemon->loop.epoll_fd, F_DUPFD_CLOEXEC, (need < daemon->fd_max ? need : daemon->fd_max) - 1);

	if (fd >= 0)
		close(fd);
}

static void loop_raise_limits(struct gp_daemon *daemon)
{
	struct rlimit limit = { .rlim_cur = 1024 };

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	daemon->fd_max = limit.rlim_cur < LOOP_FDS_MAX ? (uint32_t)limit.rlim_cur : LOOP_FDS_MAX;
}

static void loop_environment(struct gp_daemon *daemon)
{
	const char *watchdog = getenv("WATCHDOG_USEC");

	daemon->loop.notify_path = getenv("NOTIFY_SOCKET");
	if (watchdog && daemon->loop.notify_path) {
		daemon->loop.watchdog_ns = strtoull(watchdog, NULL, 10) * 1000;
		gp_timer_set(daemon, &daemon->loop.watchdog, gp_now_ns());
	}
}

static void loop_init_timers(struct gp_daemon *daemon)
{
	daemon->loop.watchdog.due = loop_watchdog;
	daemon->channel_group_timer.due = gp_channel_group_due;
	daemon->cost_timer.due = gp_cost_due;
	daemon->claim_timer.due = gp_claim_due;
	daemon->listen.timer.due = gp_peer_listen_again;
	daemon->listen.silent_timer.due = gp_peer_expire;
	daemon->quarantine_timer.due = gp_quarantine_due;
	daemon->gangs.timer.due = gp_queue_gangs_due;
	daemon->entry_timer.due = gp_entry_due;
	daemon->core.pulse.due = gp_pause_pulse;
}

int gp_daemon_init(struct gp_daemon *daemon, struct gp_error *error)
{
	sigset_t signals;
	int r;

	daemon->loop.thread = pthread_self();
	daemon->start.at_ns = gp_now_ns();
	daemon->dilation = 1;
	pthread_mutex_init(&daemon->inbox.lock, NULL);
	daemon->inbox.tail = &daemon->inbox.reports;
	daemon->listen.fd = daemon->listen.lock_fd = daemon->listen.spare_fd = -1;
	loop_init_timers(daemon);
	loop_raise_limits(daemon);
	loop_environment(daemon);
	daemon->clients = calloc(daemon->config.client_max, sizeof(struct gp_client *));
	daemon->core.queues = calloc(daemon->config.queue_max, sizeof(struct gp_queue_entry *));
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	daemon->loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	daemon->loop.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	daemon->loop.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	daemon->inbox.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (gp_owner_init(daemon) || gp_account_init(daemon) || !daemon->clients || !daemon->core.queues ||
	    daemon->loop.epoll_fd < 0 || daemon->loop.timer_fd < 0 || daemon->loop.signal_fd < 0 ||
	    daemon->inbox.fd < 0)
		return gp_error_set(error, -ENOMEM, "cannot start: %s", strerror(errno));
	loop_make_table(daemon);
	daemon->loop.timer_source = (struct gp_source){ loop_drain, &daemon->loop.timer_fd };
	daemon->inbox.source = (struct gp_source){ loop_drain, &daemon->inbox.fd };
	daemon->loop.signal_source = (struct gp_source){ loop_signal, NULL };
	gp_daemon_watch(daemon, daemon->loop.timer_fd, EPOLLIN, &daemon->loop.timer_source);
	gp_daemon_watch(daemon, daemon->inbox.fd, EPOLLIN, &daemon->inbox.source);
	gp_daemon_watch(daemon, daemon->loop.signal_fd, EPOLLIN, &daemon->loop.signal_source);
	r = gp_device_add_all(daemon, error);
	if (!r)
		gp_stopped_load(daemon);
	if (!r)
		gp_grant_load(daemon);
	if (!r)
		r = gp_peer_listen(daemon, error);
	if (!r)
		gp_claim_all(daemon);
	return r;
}

int gp_daemon_run(struct gp_daemon *daemon)
{
	loop_notify(daemon, "READY=1");
	while (!daemon->loop.stopping || (!loop_all_open(daemon) && gp_now_ns() < daemon->loop.stop_timer.at_ns))
		gp_daemon_step(daemon, -1);
	return 0;
}

void gp_daemon_fini(struct gp_daemon *daemon)
{
	while (daemon->peers)
		gp_peer_close(daemon, daemon->peers, NULL);
	gp_user_fini(daemon);
	gp_silence_fini(daemon);
	gp_questions_fini(daemon);
	gp_unmanaged_fini(daemon);
	gp_grant_fini(daemon);
	gp_peer_bury(daemon); /* last: frees the unmanaged clients too */
	if (daemon->device_count)
		gp_cost_save(daemon);
	for (uint32_t i = 0; i < daemon->driver_count; i++)
		daemon->drivers[i].ops->fini(daemon->drivers[i].backend);
	gp_claim_fini(daemon); /* now that every gate is open */
	gp_carry_inbox(daemon);
	gp_metrics_remove(daemon);
	gp_peer_unlisten(daemon);
	if (daemon->core.memory)
		munmap(daemon->core.memory, daemon->core.size);
	gp_owner_fini(daemon);
	gp_account_fini(daemon);
	gp_text_fini(&daemon->events.line);
	free(daemon->devices);
	free(daemon->clients);
	free(daemon->core.queues);
	free(daemon->gangs.names);
	close(daemon->loop.epoll_fd);
	close(daemon->loop.timer_fd);
	close(daemon->loop.signal_fd);
	close(daemon->inbox.fd);
	if (daemon->listen.spare_fd >= 0)
		close(daemon->listen.spare_fd);
	if (daemon->listen.lock_fd >= 0)
		close(daemon->listen.lock_fd);
}
