/* SPDX-License-Identifier: MIT */
/*
 * Owns the helpers. The maker, a process that was forked at the start, forks each helper: so a helper shares no memory
 * with clients, and it does not matter which locks threads hold. Neither the maker nor this process waits for a helper:
 * a helper whose call hangs is left behind, and ends when its call comes back.
 */
#include <gp_deps.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/aside.h"
#include "lib/clock.h"

#define ASIDE_IDLE_MAX 2u            /* helpers that wait for the next call */
#define ASIDE_SLICE_MS 100           /* a pause of the machine counts as one slice of the wait */
#define ASIDE_SLICES   8             /* drivers' workers count a call of a second as hanging: they stop the GPU */
#define ASIDE_SLOW     9             /* after a call for a client no other is made for so many times as long; chosen */
#define ASIDE_BARS     64u           /* owners with a bar; the one whose bar ends first makes room */
#define ASIDE_BAR_NS   1000000000ull /* after a call that hung; then twice as long each time; chosen */
#define ASIDE_BAR_MAX  64000000000ull
#define ASIDE_CALM_NS  600000000000ull /* without such a call the next bar is short again */
#define ASIDE_ROOT_MAX 16u             /* helpers left behind for GP_ASIDE_ROOT, in places of its own */
#define ASIDE_MAKE_MS  2000            /* the maker itself makes no call that can hang */

struct aside_head {
	void (*function)(void *data);
	size_t size;
};

struct aside_left {
	int fd; /* becomes readable when the helper comes back */
	uint64_t owner;
};

struct aside_bar {
	uint64_t owner, until_ns, length_ns;
};

static struct {
	pthread_mutex_t lock;
	bool is_started, is_over; /* is_over: no call is made any more */
	int maker;                /* lock, as all below; -1: none */
	pid_t maker_pid;
	int idle[ASIDE_IDLE_MAX];
	uint32_t idle_count, left_count;
	struct aside_left left[GP_ASIDE_LEFT_MAX];
	struct aside_bar bars[ASIDE_BARS];
} aside = { .lock = PTHREAD_MUTEX_INITIALIZER, .maker = -1 };

/* In a helper: one call after the other, until the caller closes the socket. */
static __attribute__((noreturn)) void aside_help(int fd)
{
	static _Alignas(16) char data[GP_ASIDE_SIZE_MAX];
	struct aside_head head;
	struct iovec parts[] = { { &head, sizeof(head) }, { data, sizeof(data) } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };

	for (;;) {
		ssize_t got = recvmsg(fd, &packet, 0);

		if (got < (ssize_t)sizeof(head) || (size_t)got != sizeof(head) + head.size)
			_exit(0);
		head.function(data);
		if (send(fd, data, head.size, MSG_NOSIGNAL) != (ssize_t)head.size)
			_exit(0);
	}
}

static int aside_send_fd(int socket, int fd)
{
	char byte = 0;
	struct iovec part = { &byte, 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {
		.head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
	};
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.room) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return sendmsg(socket, &packet, MSG_NOSIGNAL) == 1 ? 0 : -errno;
}

static int aside_receive_fd(int socket)
{
	char byte;
	struct iovec part = { &byte, 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.room) };
	int fd = -1;

	if (recvmsg(socket, &packet, MSG_CMSG_CLOEXEC) != 1)
		return -ECHILD;
	if (CMSG_FIRSTHDR(&packet) && control.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd < 0 ? -EMFILE : fd;
}

/* Closes every file but one, and gives the standard streams to nobody: whoever reads the daemon's output must not wait
 * for a helper that hangs. */
static void aside_forget_files(int kept)
{
	int nowhere = open("/dev/null", O_RDWR);

	for (int i = STDIN_FILENO; nowhere >= 0 && i <= STDERR_FILENO; i++)
		dup2(nowhere, i);
	if (kept > STDERR_FILENO + 1)
		syscall(SYS_close_range, STDERR_FILENO + 1, kept - 1, 0);
	syscall(SYS_close_range, kept + 1, ~0u, 0);
}

/* The maker: a helper for each byte, until the socket's other end is closed. */
static __attribute__((noreturn)) void aside_make(int socket)
{
	sigset_t all;
	char byte;

	/* A signal to all processes of the service is meant for the daemon; the end of the socket ends the maker. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGCHLD, SIG_IGN); /* helpers leave no zombies */
	prctl(PR_SET_NAME, "gpreempt-aside");
	aside_forget_files(socket);
	while (recv(socket, &byte, 1, 0) == 1) {
		int pair[2];
		pid_t helper;

		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair)) {
			send(socket, &byte, 1, MSG_NOSIGNAL);
			continue;
		}
		helper = fork();
		if (!helper) {
			close(socket);
			close(pair[0]);
			aside_help(pair[1]);
		}
		if (helper < 0 || aside_send_fd(socket, pair[0]))
			send(socket, &byte, 1, MSG_NOSIGNAL);
		close(pair[0]);
		close(pair[1]);
	}
	_exit(0);
}

/* Forks the maker, which forks helpers as they are needed. */
static int aside_begin(void)
{
	int pair[2];
	pid_t maker;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	maker = fork();
	if (!maker)
		aside_make(pair[1]);
	close(pair[1]);
	if (maker < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	aside.maker = pair[0];
	aside.maker_pid = maker;
	return 0;
}

int gp_aside_start(void)
{
	int r = aside_begin();

	aside.is_started = !r;
	aside.is_over = false;
	return r;
}

/* Locked: the maker has ended, because somebody killed it. */
static void aside_bury_maker(void)
{
	if (aside.maker < 0)
		return;
	close(aside.maker);
	aside.maker = -1;
	kill(aside.maker_pid, SIGKILL);
	waitpid(aside.maker_pid, NULL, 0);
}

/* Locked: a new helper's socket, or a negative errno. A later maker has more of this process's memory than the first.
 */
static int aside_new_helper(void)
{
	struct pollfd end = { .events = POLLIN };
	char byte = 0;
	int fd = -ECHILD;

	for (int i = 0; i < 2 && fd == -ECHILD; i++) {
		if (aside.maker < 0 && aside_begin())
			return -EAGAIN;
		end.fd = aside.maker;
		if (send(aside.maker, &byte, 1, MSG_NOSIGNAL) == 1 && poll(&end, 1, ASIDE_MAKE_MS) == 1)
			fd = aside_receive_fd(aside.maker);
		if (fd == -ECHILD)
			aside_bury_maker();
	}
	return fd;
}

/* Locked: forgets the helpers that have come back. */
static void aside_collect(void)
{
	for (uint32_t i = 0; i < aside.left_count;) {
		struct pollfd end = { .fd = aside.left[i].fd, .events = POLLIN };

		if (poll(&end, 1, 0) <= 0) {
			i++;
			continue;
		}
		close(aside.left[i].fd);
		aside.left[i] = aside.left[--aside.left_count];
	}
}

/* Locked. NULL: there is none. */
static struct aside_bar *aside_find_bar(uint64_t owner)
{
	for (uint32_t i = 0; i < ASIDE_BARS; i++)
		if (aside.bars[i].until_ns && aside.bars[i].owner == owner)
			return &aside.bars[i];
	return NULL;
}

/* Locked: whether the owner's earlier calls forbid another one. */
static bool aside_is_barred(uint64_t owner)
{
	const struct aside_bar *bar = aside_find_bar(owner);
	uint32_t own = 0, root = 0;

	aside_collect();
	for (uint32_t i = 0; i < aside.left_count; i++) {
		own += aside.left[i].owner == owner;
		root += aside.left[i].owner == GP_ASIDE_ROOT;
	}
	if (owner == GP_ASIDE_ROOT)
		return own >= ASIDE_ROOT_MAX;
	return aside.left_count - root >= GP_ASIDE_LEFT_MAX - ASIDE_ROOT_MAX || own >= GP_ASIDE_OWNER_MAX ||
	       (bar && gp_clock_ns() < bar->until_ns);
}

/* Locked: the owner's bar, or a new one, which has no length yet. */
static struct aside_bar *aside_need_bar(uint64_t owner)
{
	struct aside_bar *bar = aside_find_bar(owner);

	if (bar)
		return bar;
	bar = &aside.bars[0];
	for (uint32_t i = 1; i < ASIDE_BARS; i++)
		if (aside.bars[i].until_ns < bar->until_ns)
			bar = &aside.bars[i];
	*bar = (struct aside_bar){ .owner = owner };
	return bar;
}

/* Locked: a call for that owner hung. */
static void aside_bar(uint64_t owner)
{
	struct aside_bar *bar = aside_need_bar(owner);
	uint64_t now_ns = gp_clock_ns();

	if (!bar->length_ns || now_ns > bar->until_ns + ASIDE_CALM_NS)
		bar->length_ns = ASIDE_BAR_NS;
	else if (now_ns >= bar->until_ns && bar->length_ns < ASIDE_BAR_MAX)
		bar->length_ns *= 2;
	bar->until_ns = now_ns + bar->length_ns;
}

/* Threads that change gates make the calls for clients. One that is slow each time but never hangs would keep such
 * a thread for as long as its user likes, and two of them in a row would seem to be a driver that hangs. */
static void aside_note_slow(uint64_t owner, int slices)
{
	struct aside_bar *bar;

	if (!slices || owner >> 40 != GP_ASIDE_CLIENT(0) >> 40)
		return;
	pthread_mutex_lock(&aside.lock);
	bar = aside_need_bar(owner);
	bar->until_ns = gp_clock_ns() + (uint64_t)slices * ASIDE_SLICE_MS * 1000000 * ASIDE_SLOW;
	pthread_mutex_unlock(&aside.lock);
}

static int aside_take(uint64_t owner)
{
	int fd;

	pthread_mutex_lock(&aside.lock);
	if (aside.is_over)
		fd = -ESHUTDOWN;
	else if (aside_is_barred(owner))
		fd = -EBUSY;
	else
		fd = aside.idle_count ? aside.idle[--aside.idle_count] : aside_new_helper();
	pthread_mutex_unlock(&aside.lock);
	return fd;
}

static void aside_give_back(int fd)
{
	pthread_mutex_lock(&aside.lock);
	if (aside.idle_count < ASIDE_IDLE_MAX && !aside.is_over) {
		aside.idle[aside.idle_count++] = fd;
		fd = -1;
	}
	pthread_mutex_unlock(&aside.lock);
	if (fd >= 0)
		close(fd);
}

static void aside_leave(uint64_t owner, int fd)
{
	pthread_mutex_lock(&aside.lock);
	aside_collect();
	aside_bar(owner);
	if (aside.left_count < GP_ASIDE_LEFT_MAX && !aside.is_over) {
		aside.left[aside.left_count++] = (struct aside_left){ fd, owner };
		fd = -1;
	}
	pthread_mutex_unlock(&aside.lock);
	if (fd >= 0)
		close(fd);
}

/* 0, -ETIMEDOUT, or another negative errno: the helper has ended. */
static int aside_exchange(int fd, void (*function)(void *data), void *data, size_t size, int *ret_slices)
{
	struct aside_head head = { function, size };
	struct iovec parts[] = { { &head, sizeof(head) }, { data, size } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	struct pollfd end = { .fd = fd, .events = POLLIN };
	ssize_t got;
	int r = 0, slices = 0;

	if (sendmsg(fd, &packet, MSG_NOSIGNAL) != (ssize_t)(sizeof(head) + size))
		return -EPIPE;
	for (; slices < ASIDE_SLICES && (r = poll(&end, 1, ASIDE_SLICE_MS)) <= 0; slices++) {}
	*ret_slices = slices;
	if (r <= 0)
		return -ETIMEDOUT;
	got = recv(fd, data, size, MSG_DONTWAIT);
	return got == (ssize_t)size ? 0 : -EPIPE;
}

int gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size)
{
	int fd, slices = 0, r = -EPIPE;

	GP_ASSERT(size && size <= GP_ASIDE_SIZE_MAX);
	if (!aside.is_started) {
		function(data);
		return 0;
	}
	/* Idle helpers may have been killed. */
	for (int i = 0; i < 2 + (int)ASIDE_IDLE_MAX && r == -EPIPE; i++) {
		fd = aside_take(owner);
		if (fd < 0)
			return fd;
		r = aside_exchange(fd, function, data, size, &slices);
		if (!r) {
			aside_give_back(fd);
			aside_note_slow(owner, slices);
		} else if (r == -ETIMEDOUT) {
			aside_leave(owner, fd);
		} else {
			close(fd);
		}
	}
	return r;
}

uint32_t gp_aside_left(void)
{
	uint32_t count;

	pthread_mutex_lock(&aside.lock);
	aside_collect();
	count = aside.left_count;
	pthread_mutex_unlock(&aside.lock);
	return count;
}

void gp_aside_stop(void)
{
	pthread_mutex_lock(&aside.lock);
	while (aside.idle_count)
		close(aside.idle[--aside.idle_count]);
	while (aside.left_count)
		close(aside.left[--aside.left_count].fd);
	if (aside.maker >= 0) {
		close(aside.maker);
		waitpid(aside.maker_pid, NULL, 0);
	}
	aside.maker = -1;
	aside.is_over = aside.is_started;
	memset(aside.bars, 0, sizeof(aside.bars));
	pthread_mutex_unlock(&aside.lock);
}
