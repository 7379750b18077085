/* SPDX-License-Identifier: MIT */
/*
 * What a hostile user can do to a daemon, against its wire protocol alone: attack NAME SOCKET GPU_ID SECONDS [COUNT].
 * Says at the end, as one line of JSON, what it got hold of. Names are in attacks[] below, each with what it does.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <gpreempt/control.h>
#include "test/attack/attack.h"
#include "test/attack/shape.h"
#include "test/attack/stolen.h"
#include "test/unit/welcome.h"

#define CLIENTS_MAX 4096u
#define PINGS_MAX   100000u
#define LATE_NS     190000000ull
#define GANG_NS     6000000000ull /* a rank that does not answer is stuck after a second or two */

struct attack attack;

uint64_t attack_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

int attack_dial(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", attack.socket);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

bool attack_say(int fd, const void *message, size_t size)
{
	bool ok = send(fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;

	attack.sent += ok;
	return ok;
}

bool attack_hello(struct client *client, int32_t priority)
{
	struct gp_wire_hello message = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_HELLO, sizeof(message), 0 },
		.version_min = GP_WIRE_VERSION_MIN,
		.version_max = GP_WIRE_VERSION,
		.flags = GP_HELLO_DOORBELLS,
		.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_UPDATE) | GP_MECHANISM_BIT(GP_MECHANISM_SUBMIT),
		.pid = getpid(),
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = priority },
		.name = "attack",
	};
	struct gp_wire_welcome welcome;
	struct timeval patience = { .tv_sec = 5 };

	if (attack.gang) {
		message.attr.valid |= GP_ATTR_GANG;
		snprintf(message.attr.gang, sizeof(message.attr.gang), "%s", attack.gang);
	}
	client->answer_ns = 0;
	client->fd = attack_dial();
	setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (client->fd < 0 || !attack_say(client->fd, &message, sizeof(message)) ||
	    gp_test_welcome(client->fd, 0, &welcome, &client->page, &client->doorbell_fd)) {
		attack.refused++;
		if (client->fd >= 0)
			close(client->fd);
		client->fd = -1;
		return false;
	}
	attack.welcomed++;
	return true;
}

void attack_leave(struct client *client)
{
	if (client->fd < 0)
		return;
	close(client->fd);
	close(client->doorbell_fd);
	munmap(client->page, sizeof(*client->page));
	client->fd = -1;
}

void attack_add_queue(const struct client *client, uint32_t slot, uint32_t generation)
{
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
		.slot = slot,
		.generation = generation,
		.flags = GP_QUEUE_SEEN,
		.gpu_id = attack.gpu_id,
		.queue_id = slot,
		.hw_priority = 7,
		.ring_size = 4096,
	};

	client->page->queues[slot].generation = generation; /* the daemon takes no queue whose slot has no memory */
	while (!attack_say(client->fd, &queue, sizeof(queue)) && errno == EAGAIN && attack_now_ns() < attack.end_ns)
		usleep(1000);
	attack.queues++;
}

/* Claims work on a queue; how much of it is done is the page's completed. */
static void claim(const struct client *client, uint32_t slot, uint64_t packets)
{
	uint64_t one = 1;

	client->page->queues[slot].doorbell = client->page->queues[slot].written = packets;
	if (write(client->doorbell_fd, &one, sizeof(one)) < 0)
		return;
}

static void answer(struct client *client, uint64_t took_ns)
{
	const struct gp_wire_order *order = (const void *)client->order;
	static struct {
		struct gp_wire_applied head;
		struct gp_wire_change changes[GP_WIRE_ORDER_MAX];
	} message;
	size_t size = sizeof(message.head) + order->count * sizeof(message.changes[0]);

	message.head = (struct gp_wire_applied){ .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_APPLIED,
							     (uint32_t)size, 0 },
						 .seq = order->seq,
						 .gpu_id = order->gpu_id,
						 .count = order->count,
						 .issue_ns = 1000,
						 .done_ns = 1000 + took_ns };
	memcpy(message.changes, order->changes, order->count * sizeof(message.changes[0]));
	attack_say(client->fd, &message, size);
	client->answer_ns = 0;
	attack.answered++;
}

/* Reads what the daemon said; orders are answered after so long, claiming that they took so long. UINT64_MAX: never. */
void attack_listen_all(uint64_t after_ns, uint64_t took_ns)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_wire_header *header = (const void *)buffer;

	for (uint32_t i = 0; i < attack.count; i++) {
		struct client *client = &attack.clients[i];
		ssize_t size;

		while (client->fd >= 0 && (size = recv(client->fd, buffer, sizeof(buffer), MSG_DONTWAIT)) != -1) {
			if (!size) {
				attack_leave(client);
				break;
			}
			if (header->type == GP_WIRE_ORDER) {
				memcpy(client->order, buffer, (size_t)size);
				client->answer_ns = after_ns == UINT64_MAX ? 0 : attack_now_ns() + after_ns;
			} else if (header->type == GP_WIRE_SYNC) {
				struct gp_wire_header synced = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED,
								 sizeof(synced), header->cookie };

				attack_say(client->fd, &synced, sizeof(synced));
			}
			if (client->answer_ns && after_ns == 0)
				answer(client, took_ns);
		}
		if (client->fd >= 0 && client->answer_ns && attack_now_ns() >= client->answer_ns)
			answer(client, took_ns);
	}
}

static void come(int32_t priority, uint32_t queues)
{
	for (uint32_t i = 0; i < attack.count && attack_now_ns() < attack.end_ns; i++) {
		if (!attack_hello(&attack.clients[i], priority))
			continue;
		for (uint32_t slot = 0; slot < queues; slot++)
			attack_add_queue(&attack.clients[i], slot, 1);
		claim(&attack.clients[i], 0, 1000);
	}
}

/* Clients that have work and get nowhere with it. */
static void attack_claim(void)
{
	come(0, 1);
	while (attack_now_ns() < attack.end_ns) {
		attack_listen_all(0, 50000);
		usleep(500);
	}
}

/* As many clients as there may be, with the other user's batch program as their equal. */
static void attack_crowd(void)
{
	come(20, 1);
	while (attack_now_ns() < attack.end_ns) {
		attack_listen_all(0, 50000);
		usleep(500);
	}
}

/* Connections that say nothing, and such that stop in the middle of HELLO. */
static void attack_halfopen(void)
{
	struct gp_wire_hello message = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_HELLO, sizeof(message),
						     0 } };

	for (uint32_t i = 0; attack_now_ns() < attack.end_ns; i = (i + 1) % attack.count) {
		if (attack.clients[i].fd >= 0)
			close(attack.clients[i].fd);
		attack.clients[i].fd = attack_dial();
		attack.refused += attack.clients[i].fd < 0;
		if (i % 2 && attack.clients[i].fd >= 0)
			attack_say(attack.clients[i].fd, &message, sizeof(message) / 2);
		if (i % 16 == 0)
			usleep(200);
	}
}

/* Clients that never answer, five new ones a second. */
static void attack_silent(void)
{
	for (uint32_t i = 0; attack_now_ns() < attack.end_ns; i = (i + 1) % attack.count) {
		attack_leave(&attack.clients[i]);
		if (attack_hello(&attack.clients[i], 0)) {
			attack_add_queue(&attack.clients[i], 0, 1);
			claim(&attack.clients[i], 0, 1000);
		}
		for (uint64_t until_ns = attack_now_ns() + 200000000;
		     attack_now_ns() < until_ns && attack_now_ns() < attack.end_ns;) {
			attack_listen_all(UINT64_MAX, 0);
			usleep(10000);
		}
	}
}

static void come_one(struct client *client)
{
	if (!attack_hello(client, 0))
		return;
	attack_add_queue(client, 0, 1);
	claim(client, 0, 1000);
}

/* A gang of which one member never answers and comes again and again, so that the others stay open with it. These
 * answer: the daemon could close them. */
static void attack_gang(void)
{
	uint32_t count = attack.count;

	attack.gang = "ring";
	for (uint32_t i = 1; i < count; i++)
		come_one(&attack.clients[i]);
	while (attack_now_ns() < attack.end_ns) {
		uint64_t until_ns = attack_now_ns() + GANG_NS;

		come_one(&attack.clients[0]);
		while (attack_now_ns() < until_ns && attack_now_ns() < attack.end_ns) {
			struct client silent = attack.clients[0];

			attack.clients[0].fd = -1; /* not listened to */
			attack_listen_all(0, 50000);
			attack.clients[0] = silent;
			usleep(1000);
		}
		attack_leave(&attack.clients[0]);
	}
}

/* Clients that answer just before the time is up. */
static void attack_late(void)
{
	come(0, 1);
	while (attack_now_ns() < attack.end_ns) {
		attack_listen_all(LATE_NS, 50000);
		for (uint32_t i = 0; i < attack.count; i++)
			if (attack.clients[i].fd >= 0)
				claim(&attack.clients[i], 0, attack.clients[i].page->queues[0].written + 1);
		usleep(2000);
	}
}

/* Clients that say of each order that it took 20 ms. */
static void attack_cost(void)
{
	come(0, 1);
	for (uint64_t round = 0; attack_now_ns() < attack.end_ns; round++) {
		attack_listen_all(0, 20000000);
		for (uint32_t i = 0; i < attack.count; i++)
			if (attack.clients[i].fd >= 0) {
				attack.clients[i].page->queues[0].completed = attack.clients[i].page->queues[0].written;
				claim(&attack.clients[i], 0, attack.clients[i].page->queues[0].written + 1);
			}
		usleep(500);
	}
}

static void ask_all(const uint32_t *verbs, uint32_t verb_count)
{
	static char buffer[GP_WIRE_SIZE_MAX];
	struct gp_control_request request = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL, sizeof(request), 77 },
		.pid = getpid(),
		.queue_id = GP_CONTROL_ALL_QUEUES,
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = 1 },
	};

	for (uint32_t i = 0; i < attack.count; i++) {
		attack.clients[i].fd = attack_dial();
		attack.refused += attack.clients[i].fd < 0;
	}
	for (uint64_t round = 0; attack_now_ns() < attack.end_ns; round++) {
		for (uint32_t i = 0; i < attack.count; i++) {
			request.verb = verbs[(round + i) % verb_count];
			while (recv(attack.clients[i].fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
				attack.answered++;
			attack_say(attack.clients[i].fd, &request, sizeof(request));
		}
		usleep(100);
	}
}

/* Questions about everything, on all connections, all the time. */
static void attack_status(void)
{
	ask_all((const uint32_t[]){ GP_CONTROL_STATUS }, 1);
}

static void attack_commands(void)
{
	ask_all((const uint32_t[]){ GP_CONTROL_SET, GP_CONTROL_METRICS, GP_CONTROL_SUMMARY, GP_CONTROL_STATUS }, 4);
}

static void attack_streams(void)
{
	ask_all((const uint32_t[]){ GP_CONTROL_EVENTS }, 1);
}

/* A thousand queues each. plain: the daemon makes the fences of their doorbells, and all are to be armed again all the
 * time; otherwise they all have and lose work all the time. */
static void ring_all(bool plain)
{
	come(0, GP_WIRE_QUEUE_MAX);
	for (uint64_t round = 2; attack_now_ns() < attack.end_ns; round++) {
		attack_listen_all(0, 50000);
		for (uint32_t i = 0; i < attack.count; i++) {
			struct client *client = &attack.clients[i];

			if (client->fd < 0)
				continue;
			client->page->plain = plain;
			for (uint32_t k = 1; k < GP_WIRE_QUEUE_MAX; k++) {
				struct gp_page_queue *queue = &client->page->queues[k];

				if (plain) {
					__atomic_store_n(&queue->armed, 0, __ATOMIC_RELAXED);
					continue;
				}
				queue->doorbell = queue->written = round;
				queue->completed = round - round % 2;
			}
			claim(client, 0, round);
		}
		usleep(200);
	}
}

static void attack_doorbells(void)
{
	ring_all(false);
}

static void attack_plain(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
	ring_all(true);
}

/* Connections that come and go. */
static void attack_storm(void)
{
	while (attack_now_ns() < attack.end_ns) {
		int fd = attack_dial();

		attack.welcomed += fd >= 0;
		if (fd >= 0)
			close(fd);
	}
}

/* Each message once queued a job for the debugger. */
static void attack_runtime(void)
{
	struct gp_wire_runtime message = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_RUNTIME, sizeof(message),
						       1 },
					   .enable = 1 };

	come(0, 1);
	while (attack_now_ns() < attack.end_ns) {
		for (uint32_t i = 0; i < attack.count; i++)
			for (int k = 0; k < 64 && attack.clients[i].fd >= 0; k++)
				attack_say(attack.clients[i].fd, &message, sizeof(message));
		attack_listen_all(0, 50000);
	}
}

/* All places there are. */
static void attack_tables(void)
{
	for (uint32_t i = 0; i < attack.count && attack_now_ns() < attack.end_ns; i++) {
		bool is_in = attack_hello(&attack.clients[i], 0);

		for (uint32_t slot = 0; is_in && i < 8 && slot < GP_WIRE_QUEUE_MAX; slot++)
			attack_add_queue(&attack.clients[i], slot, 1);
	}
	while (attack_now_ns() < attack.end_ns) {
		attack_listen_all(0, 50000);
		usleep(10000);
	}
}

/* Messages that end their connection with a line in the journal. */
static void attack_journal(void)
{
	char byte;

	while (attack_now_ns() < attack.end_ns) {
		int fd = attack_dial();

		if (fd < 0)
			continue;
		attack_say(fd, "nonsense", 8);
		while (recv(fd, &byte, 1, 0) > 0) {}
		close(fd);
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

/* No attack on the daemon: it uses the processors, as every attack does. */
static void attack_busy(void)
{
	while (attack_now_ns() < attack.end_ns) {}
}

/* No attack: how long a new connection waits for an answer, fifty times a second; and how long without what the host
 * took meanwhile. */
static void attack_ping(void)
{
	static uint64_t took_ns[PINGS_MAX];
	uint64_t own_max_ns = 0;
	static char buffer[GP_WIRE_SIZE_MAX];
	struct gp_control_request request = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL, sizeof(request), 77 },
		.verb = GP_CONTROL_PING,
	};
	uint32_t count = 0;

	while (attack_now_ns() < attack.end_ns && count < PINGS_MAX) {
		uint64_t begin_ns, took, stolen;
		int fd;

		attack_stolen_ns();
		begin_ns = attack_now_ns();
		fd = attack_dial();
		if (fd >= 0 && attack_say(fd, &request, sizeof(request)) && recv(fd, buffer, sizeof(buffer), 0) > 0) {
			took_ns[count++] = took = attack_now_ns() - begin_ns;
			stolen = attack_stolen_ns();
			if (took > stolen && took - stolen > own_max_ns)
				own_max_ns = took - stolen;
		} else {
			attack.refused++;
		}
		close(fd);
		usleep(20000);
	}
	qsort(took_ns, count, sizeof(took_ns[0]), compare);
	printf("{\"pings\": %u, \"refused\": %u, \"p50_us\": %llu, \"p99_us\": %llu, \"max_us\": %llu, \"own_max_us\": %llu}\n",
	       count, attack.refused, (unsigned long long)(count ? took_ns[count / 2] / 1000 : 0),
	       (unsigned long long)(count ? took_ns[count * 99 / 100] / 1000 : 0),
	       (unsigned long long)(count ? took_ns[count - 1] / 1000 : 0), (unsigned long long)(own_max_ns / 1000));
}

static const struct {
	const char *name;
	void (*run)(void);
	uint32_t count; /* connections, unless told otherwise */
} attacks[] = {
	{ "claim", attack_claim, 200 },     { "silent", attack_silent, 5 },    { "late", attack_late, 30 },
	{ "cost", attack_cost, 10 },        { "status", attack_status, 200 },  { "commands", attack_commands, 200 },
	{ "streams", attack_streams, 500 }, { "storm", attack_storm, 1 },      { "doorbells", attack_doorbells, 4 },
	{ "runtime", attack_runtime, 4 },   { "tables", attack_tables, 4096 }, { "journal", attack_journal, 1 },
	{ "ping", attack_ping, 1 },         { "crowd", attack_crowd, 200 },    { "halfopen", attack_halfopen, 500 },
	{ "gang", attack_gang, 4 },         { "busy", attack_busy, 1 },        { "churn", attack_churn, 1 },
	{ "plain", attack_plain, 1 },       { "lost", attack_lost, 1 },        { "pages", attack_pages, 1 },
	{ "pins", attack_pins, 1 },         { "holes", attack_holes, 1 },      { "linger", attack_linger, 1 },
	{ "sandbox", attack_tables, 100 },  { "locked", attack_locked, 1 },    { "folder", attack_folder, 1 },
};

int main(int argc, char **argv)
{
	struct rlimit limit;

	if (argc > 2 && !strcmp(argv[1], "before-passrights"))
		return shape_before_passrights(argv + 2) ? 1 : 0;
	if (argc > 1 && !strcmp(argv[1], "sandbox") && geteuid()) {
		fprintf(stderr, "attack: a sandbox starts as a set-user-ID program of root's does\n");
		return 1;
	}
	if (shape_sandbox()) {
		perror("attack: no sandbox");
		return 1;
	}
	if (argc < 5) {
		fprintf(stderr, "usage: attack NAME SOCKET GPU_ID SECONDS [COUNT]\n");
		return 2;
	}
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	attack.socket = argv[2];
	attack.gpu_id = (uint32_t)strtoul(argv[3], NULL, 10);
	attack.end_ns = attack_now_ns() + strtoull(argv[4], NULL, 10) * 1000000000ull;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(argv[1], attacks[i].name) != 0)
			continue;
		attack.count = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : attacks[i].count;
		if (!attack.count || attack.count > CLIENTS_MAX)
			attack.count = attacks[i].count;
		/* No more than are used: under MALLOC_PERTURB_ all of it is written, and the attack begins late. */
		attack.clients = calloc(attack.count + 1, sizeof(*attack.clients));
		for (uint32_t k = 0; attack.clients && k < attack.count; k++)
			attack.clients[k].fd = -1;
		if (!attack.clients)
			return 1;
		attacks[i].run();
		printf("{\"attack\": \"%s\", \"welcomed\": %u, \"refused\": %u, \"queues\": %u, \"sent\": %llu, \"answered\": %llu, \"kept_kb\": %llu, \"why\": \"%s\"}\n",
		       attacks[i].name, attack.welcomed, attack.refused, attack.queues, (unsigned long long)attack.sent,
		       (unsigned long long)attack.answered, (unsigned long long)attack.kept_kb,
		       attack.why ? attack.why : "");
		return 0;
	}
	fprintf(stderr, "attack: there is no attack '%s'\n", argv[1]);
	return 2;
}
