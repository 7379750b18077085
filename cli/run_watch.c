/* SPDX-License-Identifier: MIT */
/*
 * Owns the watcher. `gpreempt run` becomes the program, so that its pid, signals, exit status and place in the job are
 * the program's own; what has to be said later is said from here. The watcher is started twice removed: the program
 * must not find a child it did not make.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/control.h"
#include "cli/field.h"
#include "cli/run_watch.h"

#define WATCH_PIDFD       3
#define WATCH_EVENLY      5u     /* questions at the first interval; then it doubles */
#define WATCH_QUESTIONS   20u    /* then the program has opened no GPU, and will say so itself if it does */
#define WATCH_INTERVAL_MS 60000u /* at most */

enum watch_answer { WATCH_UNKNOWN, WATCH_MANAGED, WATCH_UNMANAGED };

/* A runtime opens the GPU long before the first queue, and only then does the agent report. */
static bool watch_has_no_queue(pid_t pid)
{
	struct dirent *entry;
	bool is_empty = true;
	char path[64];
	DIR *folder;

	(void)snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues", (int)pid);
	folder = opendir(path);
	if (!folder)
		return false; /* a descendant's, or another namespace: the daemon knows better */
	while ((entry = readdir(folder)))
		is_empty &= entry->d_name[0] == '.';
	closedir(folder);
	return is_empty;
}

static enum watch_answer watch_ask(pid_t pid)
{
	struct gp_control_request request = { .verb = GP_CONTROL_SUMMARY, .pid = pid };
	enum watch_answer answer = WATCH_UNKNOWN;
	bool is_refused, is_open = false;
	uint64_t agents = 0, queues = 1;
	char *text = NULL;
	size_t size = 0;

	if (gp_control_once(&request, &text, &size, &is_refused, NULL))
		return WATCH_UNKNOWN;
	if (gp_field_u64(text, size, "agents", &agents) && gp_field_bool(text, size, "opened_gpu", &is_open))
		answer = agents ? WATCH_MANAGED : is_open ? WATCH_UNMANAGED : WATCH_UNKNOWN;
	(void)gp_field_u64(text, size, "queues", &queues);
	if (answer == WATCH_UNMANAGED && (!queues || watch_has_no_queue(pid)))
		answer = WATCH_UNKNOWN;
	free(text);
	return answer;
}

/* An agent reports after the first queue, the GPU is open before that: only two answers in a row count. */
static void watch(pid_t pid, const char *command, uint32_t interval_ms)
{
	struct pollfd wait = { .fd = WATCH_PIDFD, .events = POLLIN };
	unsigned int bad = 0;

	for (unsigned int i = 0; i < WATCH_QUESTIONS; i++) {
		enum watch_answer answer;

		if (poll(&wait, 1, (int)interval_ms) != 0)
			return;
		answer = watch_ask(pid);
		if (answer == WATCH_MANAGED)
			return;
		bad = answer == WATCH_UNMANAGED ? bad + 1 : 0;
		if (bad == 2) {
			fprintf(stderr,
				"gpreempt: warning: '%s' (pid %d) uses the GPU, but no agent in it has reported: it runs unmanaged, its "
				"priority has no effect. A static or set-id program below it? A cleared environment? `gpreempt status` lists it\n",
				command, (int)pid);
			return;
		}
		if (i + 1 >= WATCH_EVENLY)
			interval_ms = interval_ms < WATCH_INTERVAL_MS / 2 ? interval_ms * 2 : WATCH_INTERVAL_MS;
	}
}

/* In the watcher: nothing of the program's is kept open but standard error and the pidfd. */
static void watch_become(int pidfd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (pidfd != WATCH_PIDFD)
		dup2(pidfd, WATCH_PIDFD);
	(void)syscall(SYS_close_range, WATCH_PIDFD + 1, ~0u, 0);
	if (chdir("/"))
		return;
}

void gp_run_watch_start(const char *command, uint32_t interval_ms)
{
	pid_t self = getpid(), between;
	int pidfd;

	/* As the first process of a container the program would inherit the watcher after all. */
	if (self == 1)
		return;
	pidfd = (int)syscall(SYS_pidfd_open, self, 0);
	if (pidfd < 0)
		return;
	between = fork();
	if (between == 0) {
		/* Its own session: the terminal's signals are for the program. */
		setsid();
		if (fork() == 0) {
			watch_become(pidfd);
			watch(self, command, interval_ms);
		}
		_exit(0);
	}
	/* ECHILD: SIGCHLD is ignored here, and the kernel has reaped it. */
	if (between > 0)
		while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
			continue;
	close(pidfd);
}
