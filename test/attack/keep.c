/* SPDX-License-Identifier: MIT */
/* What stays with the daemon of clients that went: memory of their pages, files in messages that nobody read. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/attack/attack.h"

#define KEEP_PAGES    16384u /* of clients that went */
#define KEEP_QUEUES   16u    /* of each client: one in each 4 KB of its page, which the daemon reads and writes */
#define KEEP_STEP     (GP_WIRE_QUEUE_MAX / KEEP_QUEUES)
#define KEEP_KB       4u
#define KEEP_WAIT_NS  50000000ull
#define KEEP_AFTER_US 2000000u /* the daemon has this long to give back what went last */
#define KEEP_LINGER_S 3600

/* Whether the page's first 4 KB have memory, which the daemon wrote first. Does not touch it: memory belongs to whoever
 * touches it first. */
static bool keep_is_there(const struct gp_page *page)
{
	unsigned char resident = 0;

	return !mincore((void *)page, 1, &resident) && resident & 1;
}

/* Until the daemon has armed the last queue. */
static void keep_wait(const struct gp_page *page)
{
	const struct gp_page_queue *last = &page->queues[(KEEP_QUEUES - 1) * KEEP_STEP + KEEP_STEP / 2];
	uint64_t until_ns = attack_now_ns() + KEEP_WAIT_NS;

	while (!__atomic_load_n(&last->armed, __ATOMIC_RELAXED) && attack_now_ns() < until_ns)
		usleep(500);
}

static bool keep_come(struct client *client)
{
	if (!attack_hello(client, 0)) {
		usleep(10000);
		return false;
	}
	for (uint32_t i = 0; i < KEEP_QUEUES; i++)
		attack_add_queue(client, i * KEEP_STEP + KEEP_STEP / 2, 1);
	keep_wait(client->page);
	return true;
}

/* Goes, and keeps the page. */
static void keep_go(struct client *client)
{
	close(client->fd);
	close(client->doorbell_fd);
	client->fd = -1;
}

/* A client that comes again and again, and keeps the page of each time. */
void attack_pages(void)
{
	struct gp_page **pages = calloc(KEEP_PAGES, sizeof(struct gp_page *));
	uint32_t count = 0;

	while (pages && count < KEEP_PAGES && attack_now_ns() < attack.end_ns) {
		if (!keep_come(&attack.clients[0]))
			continue;
		pages[count++] = attack.clients[0].page;
		keep_go(&attack.clients[0]);
	}
	usleep(KEEP_AFTER_US);
	for (uint32_t i = 0; i < count; i++)
		attack.kept_kb += keep_is_there(pages[i]) ? KEEP_KB : 0;
	free(pages);
}

/* Puts the page's memory into pipes, which keep it. False: no pipe is left. */
static bool keep_pin(struct gp_page *page)
{
	for (size_t done = 0; done < sizeof(*page) / 4096 * 4096;) {
		struct iovec part = { (char *)page + done, sizeof(*page) / 4096 * 4096 - done };
		ssize_t size;
		int ends[2];

		if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
			return false;
		size = vmsplice(ends[1], &part, 1, SPLICE_F_NONBLOCK);
		close(ends[1]);
		if (size <= 0)
			return false;
		done += (size_t)size;
		attack.kept_kb += (uint64_t)size / 1024;
	}
	return true;
}

/* The same with the memory in pipes, so that it stays when the daemon gives the page back. */
void attack_pins(void)
{
	while (attack_now_ns() < attack.end_ns) {
		bool pinned;

		if (!keep_come(&attack.clients[0]))
			continue;
		pinned = keep_pin(attack.clients[0].page);
		attack_leave(&attack.clients[0]);
		if (!pinned)
			break;
	}
	while (attack_now_ns() < attack.end_ns)
		usleep(10000);
}

/* A client that stays, keeps its page's memory in pipes, and makes holes into it, which the daemon fills again. */
void attack_holes(void)
{
	struct client *client = &attack.clients[0];
	uint64_t one = 1;

	while (attack_now_ns() < attack.end_ns && !keep_come(client)) {}
	while (attack_now_ns() < attack.end_ns && keep_pin(client->page)) {
		if (madvise(client->page, sizeof(*client->page), MADV_REMOVE))
			break;
		if (write(client->doorbell_fd, &one, sizeof(one)) < 0)
			break;
		keep_wait(client->page);
	}
	while (attack_now_ns() < attack.end_ns)
		usleep(10000);
}

/* A connection whose other end does not read: closing it takes an hour. */
static int keep_lingerer(int *ret_other)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	struct linger linger = { 1, KEEP_LINGER_S };
	static const char junk[65536];
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(door, SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int));
	*ret_other = -1;
	if (!bind(door, (struct sockaddr *)&address, sizeof(address)) && !listen(door, 1) &&
	    !getsockname(door, (struct sockaddr *)&address, &size) &&
	    !connect(fd, (struct sockaddr *)&address, sizeof(address)))
		*ret_other = accept4(door, NULL, NULL, SOCK_CLOEXEC);
	close(door);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (*ret_other >= 0 && send(fd, junk, sizeof(junk), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {}
	return fd;
}

/* Sends the descriptor to the daemon. */
static bool keep_send(int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	char text[] = "nonsense";
	struct iovec part = { text, sizeof(text) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(sizeof(int)) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return sendmsg(attack_dial(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* Sends the only descriptor of a socket that lingers, one a connection: whoever closes it waits. Not the attacker: what
 * its children have is closed by their end, which lets no socket linger. */
void attack_linger(void)
{
	while (attack_now_ns() < attack.end_ns) {
		int other, go_on[2], status = 1, fd = keep_lingerer(&other);
		pid_t child;
		char byte;

		if (other < 0 || pipe2(go_on, O_CLOEXEC))
			return;
		child = fork();
		if (!child) {
			close(go_on[1]);
			_exit(read(go_on[0], &byte, 1) || !keep_send(fd)); /* 0: nobody else has fd */
		}
		close(fd);
		close(go_on[0]);
		close(go_on[1]);
		waitpid(child, &status, 0);
		attack.sent += !status;
		if (status)
			close(other);
		attack.refused += status != 0;
	}
}
