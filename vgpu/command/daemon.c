/* SPDX-License-Identifier: MIT */
/*
 * vgpud: the process that is the node. One thread turns the machine, serves the front end and the control socket, and
 * sleeps until the earliest of: a request, the exit of a client, the model's next event, the next look at the
 * doorbells.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/units.h"
#include "vgpu/command/control.h"
#include "vgpu/node/fault.h"
#include "vgpu/frontend/fuse.h"
#include "vgpu/frontend/seccomp.h"
#include "vgpu/packet/kernels.h"
#include "vgpu/files/namespace.h"
#include "vgpu/node/process.h"
#include "vgpu/node/report.h"
#include "vgpu/files/store.h"
#include "vgpu/command/terminal.h"

#define DAEMON_CONNECTION_MAX 1024u
#define DAEMON_SPIN_NS        30000u         /* nearer than this is not worth a sleep: waking up costs about as much */
#define DAEMON_ORPHAN_NS      10000000000ull /* started for a user who never came */
#define DAEMON_DILATION_MAX   100000u

struct daemon_connection {
	int fd;
	bool joined;
};

struct daemon {
	struct gp_vnode node;
	struct gp_fuse *fuse; /* one of the front ends, the other is NULL */
	struct gp_seccomp *seccomp;
	struct gp_vgpu_store store;
	int epoll, listener, signals, namespace;
	struct daemon_connection connections[DAEMON_CONNECTION_MAX];
	uint32_t joined_count;
	bool keep, was_joined, stopping;
	const char *name, *device, *params;
	char kernels[32]; /* digest of the kernels file; "-": none */
	uint64_t begin_ns;
	uint64_t watched; /* processes seen when the exits of all were last watched for */
};

static struct daemon daemon_state;

/* What an epoll event is about: kind in the high half, number in the low. */
enum daemon_source {
	DAEMON_FUSE = 1,
	DAEMON_SECCOMP,
	DAEMON_LISTENER,
	DAEMON_SIGNAL,
	DAEMON_CONNECTION,
	DAEMON_PROCESS
};

static int daemon_watch(struct daemon *daemon, int fd, enum daemon_source source, uint32_t number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | number };

	return epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EEXIST ? -errno : 0;
}

/* Control. */

static void daemon_accept(struct daemon *daemon)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || (peer.uid != 0 && peer.uid != geteuid())) {
		gp_vgpu_control_send(fd, "error this device belongs to another user\n", -1);
		close(fd);
		return;
	}
	for (uint32_t i = 0; i < DAEMON_CONNECTION_MAX; i++)
		if (daemon->connections[i].fd < 0) {
			daemon->connections[i] = (struct daemon_connection){ .fd = fd };
			daemon_watch(daemon, fd, DAEMON_CONNECTION, i);
			return;
		}
	gp_vgpu_control_send(fd, "error too many connections\n", -1);
	close(fd);
}

static void daemon_describe(const struct daemon *daemon, char *ret_text, size_t text_size)
{
	const struct gp_vnode *node = &daemon->node;
	const struct gp_identity *identity = node->gpus[0].identity;

	snprintf(
		ret_text, text_size,
		"ok name=%s pid=%d device=%s gpus=%u dilation=%u gfx=%s override=%s frontend=%s bin=%s%s params=%s kernels=%s\n",
		daemon->name, getpid(), daemon->device, node->gpu_count, node->dilation, identity->gfx,
		identity->override ? identity->override : "-", daemon->seccomp ? "seccomp" : "fuse",
		daemon->seccomp ? daemon->store.path : GP_NAMESPACE_DIR, "/bin", daemon->params ? daemon->params : "-",
		daemon->kernels);
}

/* A command is about to run under our filter; what came with it is its listener. */
static void daemon_listen(struct daemon *daemon, const struct daemon_connection *connection, const char *text, int fd)
{
	uint32_t number;

	if (!daemon->seccomp || fd < 0 || gp_seccomp_add(daemon->seccomp, fd, connection->fd, &number) < 0) {
		gp_vgpu_control_send(connection->fd, "error this is no listener, or there are too many\n", -1);
		if (fd >= 0)
			close(fd);
		return;
	}
	daemon_watch(daemon, fd, DAEMON_SECCOMP, number);
	gp_vgpu_control_send(connection->fd, text, -1);
}

static void daemon_command(struct daemon *daemon, struct daemon_connection *connection, const char *command, int fd)
{
	char text[GP_CONTROL_TEXT_SIZE];
	int pid;

	daemon_describe(daemon, text, sizeof(text));
	if (!strcmp(command, "listen\n")) {
		daemon_listen(daemon, connection, text, fd);
		return;
	}
	if (daemon->seccomp && sscanf(command, "memory %d", &pid) == 1) {
		gp_seccomp_lent_take(daemon->seccomp, pid, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (!strcmp(command, "join\n")) {
		if (!connection->joined)
			daemon->joined_count++;
		connection->joined = daemon->was_joined = true;
		gp_vgpu_control_send(connection->fd, text, daemon->namespace);
	} else if (!strcmp(command, "status\n")) {
		gp_report_status(&daemon->node, text + strlen(text), sizeof(text) - strlen(text));
		gp_vgpu_control_send(connection->fd, text, -1);
	} else if (!strcmp(command, "stop\n")) {
		daemon->stopping = true;
		gp_vgpu_control_send(connection->fd, text, -1);
	} else if (!strncmp(command, "fault ", 6)) {
		struct gp_error error = { "" };

		if (gp_fault_inject(&daemon->node, command + 6, &error) < 0)
			snprintf(text, sizeof(text), "error %s\n", error.text);
		gp_vgpu_control_send(connection->fd, text, -1);
	} else {
		gp_vgpu_control_send(connection->fd, "error unknown command\n", -1);
	}
}

static void daemon_connection_serve(struct daemon *daemon, uint32_t index)
{
	struct daemon_connection *connection = &daemon->connections[index];
	char text[256];
	int fd = -1;

	if (connection->fd < 0)
		return;
	if (gp_control_receive(connection->fd, text, sizeof(text), &fd) < 0) {
		daemon->joined_count -= connection->joined;
		if (daemon->seccomp)
			gp_seccomp_lender_gone(daemon->seccomp, connection->fd);
		close(connection->fd);
		connection->fd = -1;
		return;
	}
	daemon_command(daemon, connection, text, fd);
}

/* Clients that exit, whether or not somebody still holds their files. */
static void daemon_watch_processes(struct daemon *daemon)
{
	if (daemon->node.counters.processes_seen == daemon->watched)
		return;
	for (struct gp_vproc *process = daemon->node.processes; process; process = process->next)
		daemon_watch(daemon, process->pidfd, DAEMON_PROCESS, (uint32_t)process->pid);
	daemon->watched = daemon->node.counters.processes_seen;
}

static void daemon_process_exit(struct daemon *daemon, pid_t pid)
{
	struct gp_vproc *process = gp_vproc_find(&daemon->node, pid);
	uint64_t serial = process ? process->serial : 0;

	if (!process)
		return;
	gp_vproc_destroy(process);
	if (daemon->seccomp)
		gp_seccomp_process_exit(daemon->seccomp, serial);
}

static void daemon_event(struct daemon *daemon, const struct epoll_event *event)
{
	uint32_t number = (uint32_t)event->data.u64;

	switch ((enum daemon_source)(event->data.u64 >> 32)) {
	case DAEMON_FUSE:
		if (gp_fuse_serve(daemon->fuse) < 0)
			daemon->stopping = true;
		break;
	case DAEMON_SECCOMP: gp_seccomp_serve(daemon->seccomp, number); break;
	case DAEMON_LISTENER: daemon_accept(daemon); break;
	case DAEMON_SIGNAL: daemon->stopping = true; break;
	case DAEMON_CONNECTION: daemon_connection_serve(daemon, number); break;
	case DAEMON_PROCESS: daemon_process_exit(daemon, (pid_t)number); break;
	}
}

static bool daemon_is_over(const struct daemon *daemon)
{
	if (daemon->stopping)
		return true;
	/* What a command left running under the filter can open no file once we are gone. */
	if (daemon->keep || daemon->joined_count || (daemon->seccomp && gp_seccomp_command_count(daemon->seccomp)))
		return false;
	return daemon->was_joined || daemon->node.now_ns > daemon->begin_ns + DAEMON_ORPHAN_NS;
}

static void daemon_loop(struct daemon *daemon)
{
	struct epoll_event events[64];

	while (!daemon_is_over(daemon)) {
		uint64_t next_ns = gp_vnode_turn(&daemon->node), now_ns = gp_vnode_clock_ns(), wait_ns = 0;
		struct timespec timeout;
		int count;

		if (daemon->seccomp) {
			uint64_t look_ns = gp_seccomp_turn(daemon->seccomp);

			if (look_ns < next_ns)
				next_ns = look_ns;
		}
		daemon_watch_processes(daemon);
		if (next_ns > now_ns + DAEMON_SPIN_NS)
			wait_ns = next_ns - now_ns;
		if (wait_ns > 1000000000u)
			wait_ns = 1000000000u;
		timeout = (struct timespec){ (time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u) };
		count = epoll_pwait2(daemon->epoll, events, 64, &timeout, NULL);
		daemon->node.now_ns = gp_vnode_clock_ns();
		for (int i = 0; i < count; i++)
			daemon_event(daemon, &events[i]);
	}
}

/* Start. */

static int daemon_front_start(struct daemon *daemon, bool fuse, struct gp_error *error)
{
	int r;

	if (!fuse) {
		r = gp_store_fill(&daemon->store, &daemon->node, error);
		return r < 0 ? r : gp_seccomp_create(&daemon->node, &daemon->store, &daemon->seccomp, error);
	}
	r = gp_namespace_enter(&daemon->node, error);
	if (r == 0)
		r = gp_fuse_create(&daemon->node, GP_NAMESPACE_FUSE, &daemon->fuse, error);
	if (r < 0)
		return r;
	daemon->namespace = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return daemon->namespace < 0 ? gp_error_set(error, -errno, "no mount namespace: %s", strerror(errno)) : 0;
}

/* Descriptors: one per process, open file and connection. */
static void daemon_raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int daemon_start(struct daemon *daemon, const struct gp_vnode_config *config, bool fuse, struct gp_error *error)
{
	sigset_t set;
	int r;

	for (uint32_t i = 0; i < DAEMON_CONNECTION_MAX; i++)
		daemon->connections[i].fd = -1;
	daemon->namespace = -1;
	daemon->listener = gp_control_listen(daemon->name, error);
	if (daemon->listener < 0)
		return daemon->listener;
	daemon_raise_limit();
	if (!fuse) {
		r = gp_store_create(&daemon->store, error);
		if (r < 0)
			return r;
	}
	r = gp_vnode_init(&daemon->node, config, error);
	if (r < 0)
		return r;
	r = daemon_front_start(daemon, fuse, error);
	if (r < 0)
		return fuse ? -EOPNOTSUPP : r;
	daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	daemon->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemon->epoll < 0 || daemon->signals < 0)
		return gp_error_set(error, -errno, "cannot start: %s", strerror(errno));
	if (fuse)
		daemon_watch(daemon, gp_fuse_fd(daemon->fuse), DAEMON_FUSE, 0);
	daemon_watch(daemon, daemon->listener, DAEMON_LISTENER, 0);
	daemon_watch(daemon, daemon->signals, DAEMON_SIGNAL, 0);
	signal(SIGPIPE, SIG_IGN);
	/* The default of 50 us would be most of a kernel's time. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	daemon->begin_ns = gp_vnode_clock_ns();
	return 0;
}

static int daemon_count(const char *text, const char *what, uint64_t max, uint32_t *ret_value, struct gp_error *error)
{
	uint64_t value;
	int r = gp_units_parse_count(text, what, 1, max, &value, error);

	if (r == 0)
		*ret_value = (uint32_t)value;
	return r;
}

static int daemon_front(const char *text, bool *ret_fuse, struct gp_error *error)
{
	if (strcmp(text, "fuse") != 0 && strcmp(text, "seccomp") != 0)
		return gp_error_set(error, -EINVAL, "no front end '%s' (fuse, seccomp)", text);
	*ret_fuse = !strcmp(text, "fuse");
	return 0;
}

static const struct option daemon_options[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "gpus", required_argument, NULL, 'n' },
	{ "dilate", required_argument, NULL, 'D' },
	{ "kernels", required_argument, NULL, 'k' },
	{ "param", required_argument, NULL, 'P' },
	{ "name", required_argument, NULL, 'N' },
	{ "front", required_argument, NULL, 'F' },
	{ "ready-fd", required_argument, NULL, 'r' },
	{ "keep", no_argument, NULL, 'K' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

struct daemon_start_options {
	struct gp_vnode_config config;
	uint32_t ready; /* where to say how the start went; 0: nowhere */
	bool fuse;
};

static void daemon_usage(FILE *stream)
{
	fprintf(stream,
		"Usage: vgpud [OPTION...]   a virtual node; it ends when `vgpu stop` says so or no program uses it; `vgpu` starts it\n"
		"  -d, --device NAME    mi300x (default), mi300x-cpx, mi308x, mi210\n"
		"  -n, --gpus COUNT     1 to 8, default 1\n"
		"      --dilate K       the GPU runs K times slower than the host's clock, default 1\n"
		"  -k, --kernels FILE   names, times and bodies of kernels by fingerprint\n"
		"      --param N=V,…    module parameters of amdgpu\n"
		"      --name NAME      default \"default\"\n"
		"      --front FRONT    fuse or seccomp; default: fuse as root\n"
		"      --keep           stay when no program uses the node\n"
		"      --ready-fd FD    says there how its start went\n"
		"  -v, --verbose        says what happens; twice: more\n"
		"      --help, --version\n");
}

static int daemon_parse(struct daemon *daemon, int argc, char **argv, struct daemon_start_options *options,
			struct gp_error *error)
{
	struct gp_vnode_config *config = &options->config;
	int option, r = 0;

	while (r == 0 && (option = getopt_long(argc, argv, "d:n:k:vhV", daemon_options, NULL)) != -1) {
		switch (option) {
		case 'd': config->device = optarg; break;
		case 'n': r = daemon_count(optarg, "GPUs", GP_VNODE_GPU_MAX, &config->gpu_count, error); break;
		case 'D': r = daemon_count(optarg, "dilation", DAEMON_DILATION_MAX, &config->dilation, error); break;
		case 'k': config->kernels_path = optarg; break;
		case 'P': config->params = optarg; break;
		case 'N': daemon->name = optarg; break;
		case 'r': r = daemon_count(optarg, "ready-fd", 1000000, &options->ready, error); break;
		case 'F': r = daemon_front(optarg, &options->fuse, error); break;
		case 'K': daemon->keep = true; break;
		case 'v': config->verbose++; break;
		case 'h': daemon_usage(stdout); exit(0);
		case 'V': printf("vgpud " GP_VERSION "\n"); exit(0);
		default: daemon_usage(stderr); exit(2);
		}
	}
	if (r == 0 && argv[optind]) {
		daemon_usage(stderr);
		exit(2);
	}
	if (r == 0 && !gp_control_name_is_valid(daemon->name))
		r = gp_error_set(error, -EINVAL, "'%s' is not a name (at most %u letters, digits, '.', '_', '-')",
				 daemon->name, GP_CONTROL_NAME_SIZE - 1u);
	daemon->device = config->device;
	daemon->params = config->params;
	snprintf(daemon->kernels, sizeof(daemon->kernels), "-");
	if (r == 0 && config->kernels_path)
		r = gp_kernels_digest(config->kernels_path, daemon->kernels, sizeof(daemon->kernels), error);
	return r;
}

/* Whoever started us hears how it went, after the sentence and when the name is free again; what a taken name or a
 * missing FUSE means is for it to judge. */
static void daemon_answer(const struct daemon *daemon, uint32_t ready, int r)
{
	const char *answer = "ready\n";

	if (r < 0 && daemon->listener > 0)
		close(daemon->listener);
	if (r < 0)
		answer = r == -EADDRINUSE ? "taken\n" : r == -EOPNOTSUPP ? "nofuse\n" : "failed\n";
	if (!ready)
		return;
	(void)!write((int)ready, answer, strlen(answer));
	close((int)ready);
}

/* Lets go of what is the starter's: a pipe that we held would keep its reader waiting as long as the node lives. With a
 * node that stays, that is also true of standard error; a file or a terminal there still gets what we have to say. */
static void daemon_detach(const struct daemon *daemon, bool verbose)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat status;

	(void)!chdir("/");
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (daemon->keep && !verbose && !fstat(STDERR_FILENO, &status) &&
	    (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
		dup2(null, STDERR_FILENO);
	close(null);
}

int main(int argc, char **argv)
{
	struct daemon *daemon = &daemon_state;
	struct daemon_start_options options = { .config = { .device = "mi300x", .gpu_count = 1, .dilation = 1 },
						.fuse = geteuid() == 0 };
	struct gp_error error = { "" };
	int r;

	gp_terminal_stdio();
	daemon->name = "default";
	r = daemon_parse(daemon, argc, argv, &options, &error);
	if (r == 0)
		r = daemon_start(daemon, &options.config, options.fuse, &error);
	if (r < 0 && (!options.ready || r != -EADDRINUSE))
		fprintf(stderr, "vgpud: %s\n", error.text);
	if (r == 0 && options.ready)
		daemon_detach(daemon, options.config.verbose);
	if (r == 0)
		gp_vnode_log(&daemon->node, 1,
			     "a model of %u %s: clients are not protected from each "
			     "other's memory, times are modelled (dilation %u)",
			     daemon->node.gpu_count, daemon->device, daemon->node.dilation);
	daemon_answer(daemon, options.ready, r);
	if (r < 0)
		return 125;
	daemon_loop(daemon);
	/* From here on nobody can join: who tries starts another. */
	close(daemon->listener);
	gp_vnode_fini(&daemon->node);
	if (daemon->fuse)
		gp_fuse_destroy(daemon->fuse);
	if (daemon->seccomp) {
		gp_seccomp_destroy(daemon->seccomp);
		gp_store_destroy(&daemon->store);
	}
	return 0;
}
