/* SPDX-License-Identifier: MIT */
/*
 * What gpreemptd itself costs, on the null device: connections, memory per client, edges and decisions with 1,000
 * clients, wakeups while nothing happens. The daemon runs in a process of its own; CPU time is its own, as the kernel
 * counts it.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <gpreempt/control.h>
#include "bench/hello.h"
#include "daemon/daemon.h"
#include "lib/hist.h"
#include "lib/rng.h"

#define BENCH_CLIENTS 1000u
#define BENCH_EDGES   20000u
#define BENCH_IDLE_S  5u

struct bench_agent {
	int fd, doorbell_fd;
	struct gp_page *page;
	uint64_t packets;
};

static char bench_socket[64];
static struct bench_agent agents[BENCH_CLIENTS];

static uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void bench_must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench daemon: %s failed\n", what);
	exit(1);
}

static void bench_daemon(void)
{
	static struct gp_daemon daemon;
	struct gp_error error = { "" };

	gp_config_init(&daemon.config);
	snprintf(daemon.config.socket, sizeof(daemon.config.socket), "%s", bench_socket);
	snprintf(daemon.config.backend, sizeof(daemon.config.backend), "null");
	daemon.config.state_dir[0] = '\0';
	daemon.start.config_path = "/nonexistent/gpreempt.conf";
	if (gp_daemon_init(&daemon, &error)) {
		fprintf(stderr, "%s\n", error.text);
		_exit(1);
	}
	gp_daemon_run(&daemon);
	gp_daemon_fini(&daemon);
	_exit(0);
}

static int bench_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", bench_socket);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		usleep(1000);
	return fd;
}

static void bench_hello(struct bench_agent *agent, int32_t priority)
{
	const char *failed;

	agent->fd = bench_connect();
	failed = gp_bench_hello(agent->fd, priority, &agent->page, &agent->doorbell_fd);
	bench_must(!failed, failed);
}

/* One number of the daemon's metrics. */
static uint64_t bench_metric(const char *name)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX + 1];
	struct gp_control_request request = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL, sizeof(request), 1 },
		.verb = GP_CONTROL_METRICS,
	};
	struct gp_control_answer *answer = (void *)buffer;
	int fd = bench_connect();
	ssize_t size;
	char *at;

	bench_must(send(fd, &request, sizeof(request), 0) == sizeof(request), "METRICS");
	size = recv(fd, buffer, sizeof(buffer) - 1, 0);
	bench_must(size > (ssize_t)sizeof(*answer), "METRICS");
	buffer[size] = '\0';
	close(fd);
	at = strstr(answer->text, name);
	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static uint64_t bench_status_kib(pid_t pid, const char *name)
{
	char path[64], line[256];
	uint64_t value = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	stream = fopen(path, "re");
	while (stream && fgets(line, sizeof(line), stream))
		if (!strncmp(line, name, strlen(name)))
			value = strtoull(line + strlen(name) + 1, NULL, 10);
	if (stream)
		fclose(stream);
	return value;
}

static uint64_t bench_cpu_ns(pid_t pid)
{
	struct timespec spent;
	clockid_t clock;

	clock_getcpuclockid(pid, &clock);
	clock_gettime(clock, &spent);
	return (uint64_t)spent.tv_sec * 1000000000ull + (uint64_t)spent.tv_nsec;
}

/* The armed flag tells when the daemon has dealt with the last edge. */
static void bench_edge(struct bench_agent *agent, bool busy)
{
	struct gp_page_queue *queue = &agent->page->queues[0];
	uint32_t want = busy ? GP_ARMED_BUSY : GP_ARMED_IDLE;
	uint64_t one = 1;

	while (__atomic_load_n(&queue->armed, __ATOMIC_ACQUIRE) != want)
		sched_yield();
	if (busy)
		__atomic_store_n(&queue->doorbell, ++agent->packets, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(&queue->completed, agent->packets, __ATOMIC_SEQ_CST);
	queue->written = agent->packets;
	if (__atomic_exchange_n(&queue->armed, 0, __ATOMIC_SEQ_CST))
		bench_must(write(agent->doorbell_fd, &one, sizeof(one)) == sizeof(one), "doorbell");
}

static void bench_edges(pid_t pid)
{
	uint64_t begin_ns, cpu_ns, decisions;
	struct gp_rng rng;

	gp_rng_init(&rng, 1);
	decisions = bench_metric("\ngpreempt_decisions_total ");
	cpu_ns = bench_cpu_ns(pid);
	begin_ns = bench_now_ns();
	for (uint32_t i = 0; i < BENCH_EDGES; i++) {
		struct bench_agent *agent = &agents[gp_rng_below(&rng, BENCH_CLIENTS)];

		bench_edge(agent, true);
		bench_edge(agent, false);
	}
	begin_ns = bench_now_ns() - begin_ns;
	cpu_ns = bench_cpu_ns(pid) - cpu_ns;
	decisions = bench_metric("\ngpreempt_decisions_total ") - decisions;
	printf("edges, %u clients: %llu per second; %llu decisions, %llu ns of the daemon's CPU each: %llu per CPU second\n",
	       BENCH_CLIENTS, (unsigned long long)(2ull * BENCH_EDGES * 1000000000ull / begin_ns),
	       (unsigned long long)decisions, (unsigned long long)(cpu_ns / (decisions ? decisions : 1)),
	       (unsigned long long)(decisions * 1000000000ull / (cpu_ns ? cpu_ns : 1)));
}

int main(void)
{
	struct rlimit limit;
	uint64_t begin_ns, memory, after, wakeups, cpu_ns;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 4 * BENCH_CLIENTS) {
		printf("skipped: RLIMIT_NOFILE is %llu\n", (unsigned long long)limit.rlim_max);
		return 77;
	}
	snprintf(bench_socket, sizeof(bench_socket), "/tmp/gpreempt-bench-%d.sock", getpid());
	pid = fork();
	if (!pid)
		bench_daemon();
	bench_metric("x");
	memory = bench_status_kib(pid, "RssAnon:") + bench_status_kib(pid, "RssShmem:");
	printf("memory without clients: %llu KiB\n", (unsigned long long)memory);
	begin_ns = bench_now_ns();
	for (uint32_t i = 0; i < BENCH_CLIENTS; i++)
		bench_hello(&agents[i], (int32_t)(i % 50));
	bench_metric("x");
	begin_ns = bench_now_ns() - begin_ns;
	after = bench_status_kib(pid, "RssAnon:") + bench_status_kib(pid, "RssShmem:");
	printf("connecting, %u clients one after the other: %llu us each\n", BENCH_CLIENTS,
	       (unsigned long long)(begin_ns / BENCH_CLIENTS / 1000));
	printf("memory per client with one queue: %llu bytes\n",
	       (unsigned long long)((after - memory) * 1024 / BENCH_CLIENTS));
	bench_edges(pid);
	sleep(1);
	wakeups = bench_metric("\ngpreempt_wakeups_total ");
	cpu_ns = bench_cpu_ns(pid);
	sleep(BENCH_IDLE_S);
	cpu_ns = bench_cpu_ns(pid) - cpu_ns;
	wakeups = bench_metric("\ngpreempt_wakeups_total ") - wakeups;
	/* Asking wakes it too: once for each connection, request and end. */
	printf("idle for %u s with %u clients: %llu wakeups (asking twice included), %llu us of CPU\n", BENCH_IDLE_S,
	       BENCH_CLIENTS, (unsigned long long)wakeups, (unsigned long long)(cpu_ns / 1000));
	begin_ns = bench_now_ns();
	for (uint32_t i = 0; i < BENCH_CLIENTS; i++)
		close(agents[i].fd);
	while (bench_metric("\ngpreempt_clients "))
		sched_yield();
	printf("leaving, all at once: %llu us each\n",
	       (unsigned long long)((bench_now_ns() - begin_ns) / BENCH_CLIENTS / 1000));
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	return 0;
}
