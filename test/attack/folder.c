/* SPDX-License-Identifier: MIT */
/* Processes whose folder in /proc nobody can look into: a client, and new ones that connect again and again. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gpreempt/control.h>
#include "test/attack/attack.h"
#include "test/attack/hold.h"

#define FOLDER_CLIENTS  8u
#define FOLDER_SHORT_NS 1000000000ull /* a folder is held so long */
#define FOLDER_LONG_NS  4000000000ull /* that of the client and of one that connects */
#define FOLDER_MORE_S   20u           /* after which the attack ends in any case */

/* What the processes got hold of, together. */
static struct folder {
	uint32_t welcomed, refused;
} * folder;

static struct folder_process {
	pid_t pid; /* 0: none */
	uint64_t until_ns;
	bool was_locked;
} processes[FOLDER_CLIENTS];

/* Says what a client says, with questions about itself, for which the daemon looks at it again. The first one is there
 * before its folder is locked, and never says anything more: the daemon reads its memory. */
static void folder_be_client(uint32_t slot)
{
	static const uint32_t verbs[] = { GP_CONTROL_SET, GP_CONTROL_SUMMARY, GP_CONTROL_STATUS };
	struct gp_control_request request = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL, sizeof(request), 77 },
		.pid = getpid(),
		.queue_id = GP_CONTROL_ALL_QUEUES,
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = 1 },
	};
	struct client *client = &attack.clients[0];
	char buffer[4096];
	int fd;

	while (slot && !hold_is_locked(slot))
		usleep(1000);
	attack_hello(client, 0);
	__atomic_fetch_add(&folder->welcomed, attack.welcomed, __ATOMIC_RELAXED);
	__atomic_fetch_add(&folder->refused, attack.refused, __ATOMIC_RELAXED);
	if (client->fd >= 0)
		attack_add_queue(client, 0, 1);
	fd = attack_dial();
	for (uint32_t i = 0; attack_now_ns() < attack.end_ns; i++) {
		if (slot)
			attack_listen_all(0, 50000);
		request.verb = verbs[i % 3];
		attack_say(fd, &request, sizeof(request));
		while (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0) {}
		usleep(50000);
	}
}

static pid_t folder_fork(void)
{
	pid_t parent = getpid(), child = fork();
	int nowhere;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	nowhere = open("/dev/null", O_RDWR);
	dup2(nowhere, STDOUT_FILENO);
	return 0;
}

/* Whether a process that looks into the folder for the first time hangs. It goes on when the folder is released. */
static bool folder_hangs(pid_t pid)
{
	pid_t looker = folder_fork();
	char path[64], text[256], *state;
	struct stat st;
	ssize_t got;
	int fd;

	if (!looker) {
		snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
		_exit(stat(path, &st) ? 1 : 0);
	}
	usleep(100000);
	kill(looker, SIGKILL);
	usleep(10000);
	snprintf(path, sizeof(path), "/proc/%d/stat", looker);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	state = strrchr(text, ')');
	return state && !strncmp(state, ") D", 3);
}

static void folder_step(uint32_t slot)
{
	struct folder_process *process = &processes[slot];

	if (!process->pid && hold_is_free(slot)) {
		process->pid = folder_fork();
		if (!process->pid) {
			folder_be_client(slot);
			_exit(0);
		}
		process->was_locked = false;
		process->until_ns = attack_now_ns() + (slot < 2 ? FOLDER_LONG_NS : FOLDER_SHORT_NS);
		if (!slot)
			usleep(100000);
		hold_lock(slot, process->pid);
	} else if (process->pid && attack_now_ns() >= process->until_ns) {
		kill(process->pid, SIGKILL);
		hold_release(slot);
		process->pid = 0;
	} else if (process->pid && !process->was_locked && hold_is_locked(slot)) {
		process->was_locked = true;
		attack.queues++;
		attack.answered += slot == 1 && folder_hangs(process->pid);
	}
}

void attack_folder(void)
{
	alarm((unsigned int)((attack.end_ns - attack_now_ns()) / 1000000000ull) + FOLDER_MORE_S);
	folder = mmap(NULL, sizeof(*folder), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	attack.why = folder == MAP_FAILED ? "no memory" : hold_start();
	if (attack.why)
		return;
	while (attack_now_ns() < attack.end_ns) {
		for (uint32_t i = 0; i < FOLDER_CLIENTS; i++)
			folder_step(i);
		while (waitpid(-1, NULL, WNOHANG) > 0) {}
		usleep(5000);
	}
	for (uint32_t i = 0; i < FOLDER_CLIENTS; i++)
		if (processes[i].pid)
			kill(processes[i].pid, SIGKILL);
	hold_stop();
	while (waitpid(-1, NULL, 0) > 0) {}
	attack.welcomed = folder->welcomed;
	attack.refused = folder->refused;
}
