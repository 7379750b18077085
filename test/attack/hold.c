/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of processes. The server has /dev/fuse open, alone: when it ends, the kernel releases everything that
 * waits for it. The holder starts two more for each folder, one that lists and one that changes it; it has the mount,
 * and no file of the server's. The caller says what is to be held, in shared memory. Each dies with its parent.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/attack/hold.h"

#define HOLD_MOUNT     "/tmp" /* in the holder's mount namespace only */
#define HOLD_FILE_SIZE 4096u
#define HOLD_BUFFER    (1u << 18)
#define HOLD_START_MS  5000u
#define HOLD_WAIT_US   20000u /* in which the one that changes the folder has come to wait */

enum hold_state { HOLD_FREE, HOLD_WANTED, HOLD_LISTING, HOLD_READ, HOLD_LOCKED, HOLD_RELEASE };

static struct hold {
	struct hold_slot {
		int state; /* atomic */
		pid_t pid;
		uint32_t file;   /* the number of the file into which the folder is listed */
		uint64_t unique; /* the server's: the request that is not answered; 0: none */
	} slots[HOLD_SLOTS];
	int ready; /* atomic; 1: the mount is there, -1: it cannot be */
	char why[128];
} * hold;

static pid_t hold_holder;

static bool hold_turn(struct hold_slot *slot, int from, int to)
{
	return __atomic_compare_exchange_n(&slot->state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static __attribute__((noreturn)) void hold_fail(const char *what)
{
	snprintf(hold->why, sizeof(hold->why), "%s: %s", what, strerror(errno));
	__atomic_store_n(&hold->ready, -1, __ATOMIC_SEQ_CST);
	_exit(1);
}

static void hold_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

static void hold_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		hold_fail(path);
	close(fd);
}

static void hold_answer(int fd, uint64_t unique, int error, const void *body, size_t size)
{
	struct {
		struct fuse_out_header head;
		char body[256];
	} out = { .head = { .len = (uint32_t)(sizeof(out.head) + size), .error = error, .unique = unique } };

	memcpy(out.body, body, size);
	if (write(fd, &out, out.head.len) < 0)
		return; /* who asked has gone */
}

static struct fuse_attr hold_attr(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = HOLD_FILE_SIZE,
				   .mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
				   .nlink = 1,
				   .blksize = 4096 };
}

/* A page of a file is not answered until its folder is to be released. */
static void hold_read(int fd, const struct fuse_in_header *in)
{
	for (uint32_t i = 0; i < HOLD_SLOTS; i++) {
		struct hold_slot *slot = &hold->slots[i];

		if (slot->file + FUSE_ROOT_ID != in->nodeid)
			continue;
		slot->unique = in->unique;
		if (hold_turn(slot, HOLD_LISTING, HOLD_READ))
			return;
		slot->unique = 0;
	}
	hold_answer(fd, in->unique, -EIO, "", 0);
}

static void hold_serve_one(int fd, const struct fuse_in_header *in, const char *body)
{
	uint64_t node = in->opcode == FUSE_LOOKUP ? FUSE_ROOT_ID + strtoull(body, NULL, 10) : in->nodeid;
	struct fuse_attr attr = hold_attr(node);
	struct fuse_entry_out entry = { .nodeid = node, .attr = attr };
	struct fuse_attr_out attr_out = { .attr = attr };
	struct fuse_open_out opened = { 0 };
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = 31,
				      .max_background = 64,
				      .congestion_threshold = 64,
				      .max_write = 4096 };

	switch (in->opcode) {
	case FUSE_INIT: hold_answer(fd, in->unique, 0, &init, sizeof(init)); break;
	case FUSE_LOOKUP: hold_answer(fd, in->unique, 0, &entry, sizeof(entry)); break;
	case FUSE_GETATTR: hold_answer(fd, in->unique, 0, &attr_out, sizeof(attr_out)); break;
	case FUSE_OPEN:
	case FUSE_OPENDIR: hold_answer(fd, in->unique, 0, &opened, sizeof(opened)); break;
	case FUSE_READ: hold_read(fd, in); break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR: hold_answer(fd, in->unique, 0, "", 0); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	default: hold_answer(fd, in->unique, -ENOSYS, "", 0);
	}
}

static __attribute__((noreturn)) void hold_serve(void)
{
	static _Alignas(8) char buffer[HOLD_BUFFER];
	const char *path = getenv("ATTACK_FUSE");
	char options[96];
	struct pollfd wait = { .events = POLLIN };

	wait.fd = open(path ? path : "/dev/fuse", O_RDWR | O_CLOEXEC);
	if (wait.fd < 0)
		hold_fail("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", wait.fd);
	if (mount("attack", HOLD_MOUNT, "fuse", MS_NOSUID | MS_NODEV, options))
		hold_fail("mount of FUSE");
	__atomic_store_n(&hold->ready, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		ssize_t got = poll(&wait, 1, 1) > 0 ? read(wait.fd, buffer, sizeof(buffer)) : 0;

		if (got >= (ssize_t)sizeof(struct fuse_in_header))
			hold_serve_one(wait.fd, (const void *)buffer, buffer + sizeof(struct fuse_in_header));
		for (uint32_t i = 0; i < HOLD_SLOTS; i++) {
			struct hold_slot *slot = &hold->slots[i];

			if (__atomic_load_n(&slot->state, __ATOMIC_SEQ_CST) != HOLD_RELEASE)
				continue;
			if (slot->unique)
				hold_answer(wait.fd, slot->unique, -EIO, "", 0);
			slot->unique = 0;
			slot->file = 0;
			__atomic_store_n(&slot->state, HOLD_FREE, __ATOMIC_SEQ_CST);
		}
	}
}

static pid_t hold_fork(void)
{
	pid_t parent = getpid(), child = fork();

	if (!child)
		hold_die_with(parent);
	return child;
}

/* The kernel holds the lock while the listing faults the file's page in. */
static __attribute__((noreturn)) void hold_list(pid_t pid, uint32_t number)
{
	char path[64];
	void *memory;
	int folder, file;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), HOLD_MOUNT "/%u", number);
	file = open(path, O_RDONLY | O_CLOEXEC);
	memory = mmap(NULL, HOLD_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	if (folder >= 0 && memory != MAP_FAILED)
		syscall(SYS_getdents64, folder, memory, HOLD_FILE_SIZE);
	_exit(0);
}

static __attribute__((noreturn)) void hold_change(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	_exit(chmod(path, 0555) ? 1 : 0);
}

static void hold_slot_step(struct hold_slot *slot)
{
	static uint32_t files;

	switch (__atomic_load_n(&slot->state, __ATOMIC_SEQ_CST)) {
	case HOLD_WANTED:
		slot->file = ++files;
		if (hold_turn(slot, HOLD_WANTED, HOLD_LISTING) && !hold_fork())
			hold_list(slot->pid, slot->file);
		break;
	case HOLD_READ:
		if (!hold_fork())
			hold_change(slot->pid);
		usleep(HOLD_WAIT_US);
		hold_turn(slot, HOLD_READ, HOLD_LOCKED);
		break;
	default: break;
	}
}

static __attribute__((noreturn)) void hold_run(uid_t uid, gid_t gid)
{
	int nowhere = open("/dev/null", O_RDWR);
	pid_t parent = getppid();
	char text[64];

	/* Nobody who has the other end of a file of the caller's waits for a process that hangs. */
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
		dup2(nowhere, i);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		hold_fail("user namespace");
	hold_die_with(parent);
	hold_write("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", uid);
	hold_write("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1", gid);
	hold_write("/proc/self/gid_map", text);
	if (!hold_fork())
		hold_serve();
	for (;;) {
		for (uint32_t i = 0; i < HOLD_SLOTS; i++)
			hold_slot_step(&hold->slots[i]);
		while (waitpid(-1, NULL, WNOHANG) > 0) {}
		usleep(1000);
	}
}

const char *hold_start(void)
{
	hold = mmap(NULL, sizeof(*hold), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hold == MAP_FAILED)
		return "no memory";
	hold_holder = fork();
	if (!hold_holder)
		hold_run(getuid(), getgid());
	for (uint32_t i = 0; i < HOLD_START_MS && !__atomic_load_n(&hold->ready, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	if (__atomic_load_n(&hold->ready, __ATOMIC_SEQ_CST) == 1)
		return NULL;
	hold_stop();
	return *hold->why ? hold->why : "the mount takes too long";
}

void hold_stop(void)
{
	kill(hold_holder, SIGKILL);
	waitpid(hold_holder, NULL, 0);
}

void hold_lock(uint32_t slot, pid_t pid)
{
	hold->slots[slot].pid = pid;
	hold_turn(&hold->slots[slot], HOLD_FREE, HOLD_WANTED);
}

bool hold_is_locked(uint32_t slot)
{
	return __atomic_load_n(&hold->slots[slot].state, __ATOMIC_SEQ_CST) == HOLD_LOCKED;
}

void hold_release(uint32_t slot)
{
	if (!hold_is_free(slot))
		__atomic_store_n(&hold->slots[slot].state, HOLD_RELEASE, __ATOMIC_SEQ_CST);
}

bool hold_is_free(uint32_t slot)
{
	return __atomic_load_n(&hold->slots[slot].state, __ATOMIC_SEQ_CST) == HOLD_FREE;
}
