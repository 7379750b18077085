/* SPDX-License-Identifier: MIT */
/* vgpu: starts or joins a virtual node and runs a program on it; lists and stops nodes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vgpu/command/cdi.h"
#include "vgpu/command/control.h"
#include "vgpu/command/environment.h"
#include "vgpu/packet/kernels.h"
#include "vgpu/files/root.h"
#include "vgpu/frontend/seccomp_calls.h"
#include "vgpu/command/starter.h"
#include "vgpu/command/terminal.h"

#define RUN_FAILED    GP_STARTER_FAILED
#define RUN_NODES_MAX 64u
#define RUN_TRIES     2000u /* of 10 ms */
#define RUN_ANSWER_S  10    /* a node that works answers within milliseconds */

static void run_usage(FILE *stream)
{
	fprintf(stream,
		"Usage: vgpu run [OPTION...] -- COMMAND...   run COMMAND on a virtual node, started if it is not there\n"
		"       vgpu start [OPTION...]               start one that stays until `vgpu stop`\n"
		"       vgpu ls [-v]                         the nodes that run\n"
		"       vgpu stop [--name NAME]              end one\n"
		"       vgpu fault [--name NAME] KIND...     make a fault happen: vm, hang, close-fails, close-hangs PID QUEUE;\n"
		"                                            reset=GPU, ioctl=N, slow=K\n"
		"       vgpu cdi                             the node around it, for containers: vgpu run -- vgpu cdi\n"
		"options:\n"
		"  -d, --device NAME    mi300x (default), mi300x-cpx, mi308x, mi210\n"
		"  -n, --gpus COUNT     1 to 8, default 1\n"
		"      --dilate K       the GPU runs K times slower than the host's clock, default 1\n"
		"  -k, --kernels FILE   names, times and bodies of kernels by fingerprint\n"
		"      --param N=V,…    module parameters of amdgpu, e.g. cwsr_enable=0\n"
		"      --name NAME      default \"default\"\n"
		"      --front FRONT    fuse (root), seccomp (no privilege), auto (default: fuse where it is possible)\n"
		"      --root DIR       run: the command's root, another system that sees the node's /dev and /sys\n"
		"  -v, --verbose        vgpud says what happens; twice: more\n"
		"It models timing and scheduling. Kernels it does not know are executed, instruction by\n"
		"instruction; clients are not protected from each other's memory.\n");
}

static int run_parse(int argc, char **argv, struct gp_starter *ret_options)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "gpus", required_argument, NULL, 'n' },
		{ "dilate", required_argument, NULL, 'D' },
		{ "kernels", required_argument, NULL, 'k' },
		{ "param", required_argument, NULL, 'P' },
		{ "name", required_argument, NULL, 'N' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "root", required_argument, NULL, 'R' },
		{ "front", required_argument, NULL, 'F' },
		{ 0 },
	};
	int option;

	*ret_options = (struct gp_starter){ .name = "default" };
	while ((option = getopt_long(argc, argv, "+d:n:k:vh", options, NULL)) != -1) {
		switch (option) {
		case 'd': ret_options->device = optarg; break;
		case 'n': ret_options->gpus = optarg; break;
		case 'D': ret_options->dilation = optarg; break;
		case 'k': ret_options->kernels = optarg; break;
		case 'P': ret_options->params = optarg; break;
		case 'N': ret_options->name = optarg; break;
		case 'R': ret_options->root = optarg; break;
		case 'F': ret_options->front = optarg; break;
		case 'v': ret_options->verbose++; break;
		case 'h': run_usage(stdout); exit(0);
		default: return -EINVAL;
		}
	}
	if (!gp_control_name_is_valid(ret_options->name)) {
		fprintf(stderr, "vgpu: '%s' is not a name (at most %u letters, digits, '.', '_', '-')\n",
			ret_options->name, GP_CONTROL_NAME_SIZE - 1u);
		return -EINVAL;
	}
	if (ret_options->front && !strcmp(ret_options->front, "auto"))
		ret_options->front = NULL;
	if (ret_options->front && strcmp(ret_options->front, "fuse") != 0 &&
	    strcmp(ret_options->front, "seccomp") != 0) {
		fprintf(stderr, "vgpu: no front end '%s' (fuse, seccomp, auto)\n", ret_options->front);
		return -EINVAL;
	}
	return 0;
}

/* As vgpud prints it: 010 is 10. What is no number is left for vgpud to refuse. */
static bool run_same(const char *asked, const char *value)
{
	char *end;
	unsigned long number = strtoul(asked, &end, 10);

	return !strcmp(asked, value) ||
	       (*asked >= '0' && *asked <= '9' && !*end && number == strtoul(value, NULL, 10) && number != ULONG_MAX);
}

/* The node runs already: what was asked for must be what it is. */
static bool run_matches(const struct gp_starter *options, const char *text)
{
	char kernels[32] = "", value[GP_CONTROL_VALUE_SIZE];
	const struct {
		const char *asked, *name;
	} pairs[] = {
		{ options->device, "device" },     { options->gpus, "gpus" },
		{ options->dilation, "dilation" }, { options->front, "frontend" },
		{ options->params, "params" },     { options->kernels ? kernels : NULL, "kernels" },
	};
	struct gp_error error;

	if (options->kernels && gp_kernels_digest(options->kernels, kernels, sizeof(kernels), &error) < 0) {
		fprintf(stderr, "vgpu: %s\n", error.text);
		return false;
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (!pairs[i].asked || !gp_control_value(text, pairs[i].name, value, sizeof(value)) ||
		    run_same(pairs[i].asked, value))
			continue;
		fprintf(stderr, "vgpu: the node '%s' runs with %s %s, not %s; stop it or use another --name\n",
			options->name, pairs[i].name, strcmp(value, "-") != 0 ? value : "as they come", pairs[i].asked);
		return false;
	}
	return true;
}

static int run_ask_on(int fd, const char *command, char *ret_text, size_t text_size, int *ret_fd)
{
	int r = gp_vgpu_control_send(fd, command, -1);

	return r < 0 ? r : gp_control_receive(fd, ret_text, text_size, ret_fd);
}

/* Connects and joins; starts the node first where there is none. A node that is just ending, or just being started by
 * somebody else, is asked again. */
static int run_join(const struct gp_starter *options, char *ret_text, size_t text_size, int *ret_namespace)
{
	int fd = -1, r = -ECONNREFUSED;

	for (uint32_t i = 0; i < RUN_TRIES && r < 0; i++) {
		if (i)
			poll(NULL, 0, 10);
		fd = gp_control_connect(options->name);
		if (fd == -ECONNREFUSED) {
			r = gp_starter_start(options, false);
			if (r < 0 && r != -EEXIST)
				return r;
			r = -ECONNREFUSED;
			continue;
		}
		if (fd < 0) {
			r = fd;
			break;
		}
		r = run_ask_on(fd, "join\n", ret_text, text_size, ret_namespace);
		if (r < 0)
			close(fd);
	}
	if (r < 0) {
		fprintf(stderr, "vgpu: cannot reach the node '%s': %s\n", options->name, strerror(-r));
		return r;
	}
	if (strncmp(ret_text, "ok ", 3) != 0) {
		fprintf(stderr, "vgpu: the node '%s' refused: %s", options->name, ret_text);
		close(fd);
		return -EPERM;
	}
	if (!run_matches(options, ret_text)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

/* What the command is given when it starts. */
struct run_node {
	char text[GP_CONTROL_TEXT_SIZE]; /* vgpud's description */
	int connection, namespace;
	int started; /* ends when the command has begun, or could not */
	pid_t vgpud;
	bool seccomp;
	sigset_t mask; /* what was blocked when we were called */
};

__attribute__((noreturn)) static void run_refuse(const struct gp_error *error)
{
	fprintf(stderr, "vgpu: %s\n", error->text);
	_exit(RUN_FAILED);
}

static void run_child(const struct gp_starter *options, char **command, const struct run_node *node)
{
	struct gp_error error;
	char directory[PATH_MAX];
	bool here = getcwd(directory, sizeof(directory));
	int r;

	setpgid(0, 0);
	/* Without us nobody would end the command when vgpud dies. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, &node->mask, NULL);
	if (!node->seccomp && setns(node->namespace, CLONE_NEWNS) < 0) {
		gp_error_set(&error, -errno, "cannot enter the node's mount namespace: %s", strerror(errno));
		run_refuse(&error);
	}
	if (options->root && gp_root_enter(options->root, &error) < 0)
		run_refuse(&error);
	if (!node->seccomp && here && chdir(directory) < 0 && !options->root)
		fprintf(stderr, "vgpu: the folder %s is not there inside the node: %s\n", directory, strerror(errno));
	gp_environment_set(node->text);
	if (node->seccomp) {
		if (gp_seccomp_enter(node->connection, node->vgpud, &error) < 0)
			run_refuse(&error);
	}
	execvp(command[0], command);
	r = errno;
	fprintf(stderr, "vgpu: cannot run %s: %s\n", command[0], strerror(r));
	_exit(r == ENOENT ? 127 : 126);
}

/* The command stopped: we stop too, for our shell to see, and go on with it. */
static void run_stopped(pid_t child, bool *terminal)
{
	if (*terminal)
		gp_terminal_take();
	raise(SIGSTOP);
	if (*terminal)
		*terminal = gp_terminal_lend(child);
	kill(-child, SIGCONT);
}

/* Until the command ends, or vgpud does: then nothing would ever wake a command that spins on ring memory. */
static int run_watch(pid_t child, int daemon, int signals, const struct run_node *node, const char *name)
{
	bool terminal = gp_terminal_lend(child);
	int child_fd = (int)syscall(SYS_pidfd_open, child, 0), status;
	/* The connection is the child's until it has become the command. */
	struct pollfd fds[] = { { child_fd, POLLIN, 0 },
				{ daemon, POLLIN, 0 },
				{ signals, POLLIN, 0 },
				{ node->started, POLLIN, 0 },
				{ -1, POLLIN, 0 } };

	for (;;) {
		if (poll(fds, 5, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			break;
		if (fds[1].revents) {
			fprintf(stderr, "vgpu: vgpud of the node '%s' ended; the command is ended too\n", name);
			kill(-child, SIGKILL);
			waitpid(child, &status, 0);
			if (terminal)
				gp_terminal_take();
			return RUN_FAILED;
		}
		if (fds[2].revents) {
			struct signalfd_siginfo info;

			if (read(signals, &info, sizeof(info)) == sizeof(info) && info.ssi_signo != SIGCHLD)
				kill(-child, (int)info.ssi_signo);
			if (gp_terminal_child_stops(child))
				run_stopped(child, &terminal);
		}
		if (fds[3].revents) {
			fds[3].fd = -1;
			fds[4].fd = node->seccomp ? node->connection : -1;
		} else if (fds[4].revents && gp_seccomp_lend(node->connection) < 0) {
			fds[4].fd = -1;
		}
	}
	waitpid(child, &status, 0);
	if (terminal)
		gp_terminal_take();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_run(const struct gp_starter *options, char **command)
{
	struct run_node node = { .namespace = -1 };
	static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD };
	int daemon, signals, started[2];
	char value[32];
	sigset_t set;
	pid_t child;

	if (!command[0]) {
		fprintf(stderr, "vgpu: run what? `vgpu run [OPTION...] -- COMMAND...`\n");
		return RUN_FAILED;
	}
	node.connection = run_join(options, node.text, sizeof(node.text), &node.namespace);
	if (node.connection < 0)
		return RUN_FAILED;
	node.vgpud = gp_control_value(node.text, "pid", value, sizeof(value)) ? atoi(value) : -1;
	node.seccomp = gp_control_value(node.text, "frontend", value, sizeof(value)) && !strcmp(value, "seccomp");
	daemon = node.vgpud > 0 ? (int)syscall(SYS_pidfd_open, node.vgpud, 0) : -1;
	if (daemon < 0 || (node.namespace < 0 && !node.seccomp)) {
		fprintf(stderr, "vgpu: vgpud of the node '%s' ended\n", options->name);
		return RUN_FAILED;
	}
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &node.mask);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (pipe2(started, O_CLOEXEC) < 0)
		started[0] = started[1] = -1;
	node.started = started[0];
	child = fork();
	if (child == 0)
		run_child(options, command, &node);
	close(started[1]);
	if (child < 0) {
		fprintf(stderr, "vgpu: cannot fork: %s\n", strerror(errno));
		return RUN_FAILED;
	}
	setpgid(child, child);
	return run_watch(child, daemon, signals, &node, options->name);
}

/* ls, stop, start. */

/* Names of the nodes that listen: abstract sockets are listed by the kernel. */
static uint32_t run_nodes(char (*ret_names)[GP_CONTROL_NAME_SIZE])
{
	FILE *stream = fopen("/proc/net/unix", "re");
	char line[512];
	uint32_t count = 0;

	if (!stream)
		return 0;
	while (count < RUN_NODES_MAX && fgets(line, sizeof(line), stream)) {
		char *at = strstr(line, "@" GP_CONTROL_PREFIX);
		unsigned int flags, user;
		bool known = false;
		int size = 0;

		/* Flags with the listening bit; accepted connections carry the same name. */
		if (!at || sscanf(line, "%*s %*s %*s %x", &flags) != 1 || !(flags & 0x10000u))
			continue;
		if (sscanf(at, "@" GP_CONTROL_PREFIX "%u/%n", &user, &size) != 1 || !size || user != geteuid())
			continue;
		at += size;
		at[strcspn(at, "\n")] = 0;
		for (uint32_t i = 0; i < count; i++)
			known |= !strcmp(ret_names[i], at);
		if (!known && gp_control_name_is_valid(at))
			snprintf(ret_names[count++], GP_CONTROL_NAME_SIZE, "%.*s", (int)GP_CONTROL_NAME_SIZE - 1, at);
	}
	fclose(stream);
	return count;
}

static int run_ask(const char *name, const char *command, char *ret_text, size_t text_size)
{
	static const struct timeval limit = { .tv_sec = RUN_ANSWER_S };
	int fd = gp_control_connect(name), other = -1, r;

	if (fd < 0)
		return fd;
	/* One that was stopped, or hangs, must not keep the others from being listed. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	r = run_ask_on(fd, command, ret_text, text_size, &other);
	close(fd);
	return r;
}

static int run_ls(const struct gp_starter *options)
{
	static char names[RUN_NODES_MAX][GP_CONTROL_NAME_SIZE];
	static const char *const fields[] = { "name", "pid", "device", "gpus", "dilation", "frontend" };
	uint32_t count = run_nodes(names);
	char text[GP_CONTROL_TEXT_SIZE], value[64];
	int r;

	printf("%-16s %-8s %-12s %-5s %-9s %s\n", "NAME", "PID", "DEVICE", "GPUS", "DILATION", "FRONTEND");
	for (uint32_t i = 0; i < count; i++) {
		static const int widths[] = { 16, 8, 12, 5, 9, 0 };

		r = run_ask(names[i], "status\n", text, sizeof(text));
		if (r == -EAGAIN)
			fprintf(stderr, "vgpu: the node '%s' does not answer\n", names[i]);
		if (r < 0 || strncmp(text, "ok ", 3) != 0)
			continue;
		for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
			printf("%-*s%s", widths[f],
			       gp_control_value(text, fields[f], value, sizeof(value)) ? value : "-",
			       f + 1u < sizeof(fields) / sizeof(fields[0]) ? " " : "\n");
		if (options->verbose)
			printf("%s", strchr(text, '\n') + 1);
	}
	return 0;
}

static int run_no_answer(const char *name, int r)
{
	fprintf(stderr, "vgpu: %s node '%s' %s\n", r == -EAGAIN ? "the" : "no", name,
		r == -EAGAIN ? "does not answer" : "runs");
	return 1;
}

static int run_stop(const struct gp_starter *options)
{
	char text[GP_CONTROL_TEXT_SIZE], pid[32];
	int r = run_ask(options->name, "stop\n", text, sizeof(text)), fd;
	struct pollfd wait;

	if (r < 0)
		return run_no_answer(options->name, r);
	fd = gp_control_value(text, "pid", pid, sizeof(pid)) ? (int)syscall(SYS_pidfd_open, atoi(pid), 0) : -1;
	wait = (struct pollfd){ fd, POLLIN, 0 };
	if (fd >= 0 && poll(&wait, 1, 2 * RUN_ANSWER_S * 1000) == 0) {
		fprintf(stderr, "vgpu: the node '%s' (pid %s) does not end\n", options->name, pid);
		return 1;
	}
	return 0;
}

static int run_start(const struct gp_starter *options)
{
	int r = gp_starter_start(options, true);

	if (r == -EEXIST)
		fprintf(stderr, "vgpu: a node named '%s' is already running\n", options->name);
	return r < 0 ? RUN_FAILED : 0;
}

static int run_fault(const struct gp_starter *options, char **words)
{
	char text[GP_CONTROL_TEXT_SIZE], command[256] = "fault";
	int r;

	if (!words[0]) {
		fprintf(stderr, "vgpu: which fault? `vgpu fault [--name NAME] KIND...`, see vgpu --help\n");
		return RUN_FAILED;
	}
	for (size_t i = 0; words[i] && strlen(command) + strlen(words[i]) + 2u < sizeof(command); i++) {
		strcat(command, " ");
		strcat(command, words[i]);
	}
	r = run_ask(options->name, command, text, sizeof(text));
	if (r < 0)
		return run_no_answer(options->name, r);
	if (!strncmp(text, "ok ", 3))
		return 0;
	fprintf(stderr, "vgpu: %s", text + (strncmp(text, "error ", 6) ? 0 : 6));
	return 1;
}

/* Options and words that the command does not have: without this, "stop -n lab" would end the node "default". */
static bool run_refuses(const struct gp_starter *options, const char *command, const char *word)
{
	bool starts = !strcmp(command, "run") || !strcmp(command, "start");
	bool takes_words = !strcmp(command, "run") || !strcmp(command, "fault");

	if (!takes_words && word)
		fprintf(stderr, "vgpu: %s takes no '%s'; a node is chosen by --name\n", command, word);
	else if (!starts && (options->device || options->gpus || options->dilation || options->kernels ||
			     options->params || options->root || options->front))
		fprintf(stderr, "vgpu: %s takes no option that describes a node; a node is chosen by --name\n",
			command);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	struct gp_starter options;
	char name[64];

	gp_terminal_stdio();
	if (!strcmp(command, "--version") || !strcmp(command, "-V")) {
		printf("vgpu " GP_VERSION "\n");
		return 0;
	}
	if (!strcmp(command, "-h") || !strcmp(command, "--help")) {
		run_usage(stdout);
		return 0;
	}
	if (argc < 2) {
		run_usage(stderr);
		return RUN_FAILED;
	}
	(void)snprintf(name, sizeof(name), "vgpu %s", command);
	argv[1] = name; /* getopt_long() begins its messages with it */
	if (run_parse(argc - 1, argv + 1, &options) < 0) {
		fprintf(stderr, "vgpu: see vgpu --help\n");
		return RUN_FAILED;
	}
	if (run_refuses(&options, command, argv[1 + optind]))
		return RUN_FAILED;
	if (!strcmp(command, "run"))
		return run_run(&options, argv + 1 + optind);
	if (!strcmp(command, "start"))
		return run_start(&options);
	if (!strcmp(command, "ls"))
		return run_ls(&options);
	if (!strcmp(command, "fault"))
		return run_fault(&options, argv + 1 + optind);
	if (!strcmp(command, "cdi"))
		return gp_vgpu_cdi() < 0 ? RUN_FAILED : 0;
	if (!strcmp(command, "stop"))
		return run_stop(&options);
	fprintf(stderr, "vgpu: no command '%s'; see vgpu --help\n", command);
	return RUN_FAILED;
}
