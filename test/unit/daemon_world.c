/* SPDX-License-Identifier: MIT */
/* The world of the daemon's tests. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/worker.h"
#include "test/unit/daemon_world.h"
#include "test/unit/welcome.h"

/* WORLD_BEGIN_NS: far from the kernel's clock, by which the daemon's timer would ring. */
#define WORLD_ROUNDS   1000
#define WORLD_BEGIN_NS 1000000000000000000ull
#define WORLD_STEP_NS  50000u

static uint64_t world_ns = WORLD_BEGIN_NS, world_tick_ns; /* atomic: the daemon's threads look, too */
static uint64_t world_stop_looks, world_stop_ns;          /* the decision thread's */

/* Instead of the daemon's own. */
uint64_t gp_now_ns(void)
{
	if (world_stop_looks && !--world_stop_looks)
		__atomic_fetch_add(&world_ns, world_stop_ns, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&world_ns, world_tick_ns, __ATOMIC_RELAXED);
}

uint64_t gp_used_ns(void)
{
	return 0;
}

static void world_pass(uint64_t ns)
{
	__atomic_fetch_add(&world_ns, ns, __ATOMIC_RELAXED);
}

void world_tick(uint64_t ns)
{
	world_tick_ns = ns;
}

bool world_stop(uint64_t looks, uint64_t ns)
{
	bool is_over = !world_stop_looks;

	world_stop_looks = looks;
	world_stop_ns = ns;
	return is_over;
}

void world_begin(struct world *world, const char *config)
{
	struct gp_error error = { "" };
	char socket_path[80];

	memset(world, 0, sizeof(*world));
	world_tick(0);
	world_stop(0, 0);
	snprintf(world->folder, sizeof(world->folder), "/tmp/gpreempt-test-XXXXXX");
	assert_non_null(mkdtemp(world->folder));
	gp_claim_folder = world->folder;
	gp_config_init(&world->daemon.config);
	snprintf(socket_path, sizeof(socket_path), "%s/s", world->folder);
	snprintf(world->daemon.config.socket, sizeof(world->daemon.config.socket), "%s", socket_path);
	snprintf(world->daemon.config.backend, sizeof(world->daemon.config.backend), "null");
	snprintf(world->daemon.config.state_dir, sizeof(world->daemon.config.state_dir), "%s", world->folder);
	world->daemon.config.client_max = 64;
	world->daemon.config.queue_max = 1024;
	/* Some of those who answer are threads, and time passes while they wait for a processor. */
	world->daemon.config.answer_ns = 30000000000ull;
	if (config && gp_config_parse(&world->daemon.config, config, strlen(config), "test", &error))
		fail_msg("%s", error.text);
	world->daemon.start.config_path = "/nonexistent/gpreempt.conf";
	if (gp_daemon_init(&world->daemon, &error))
		fail_msg("%s", error.text);
}

void world_end(struct world *world)
{
	char command[160];

	assert_null(gp_sched_check(world->daemon.sched));
	gp_daemon_fini(&world->daemon);
	snprintf(command, sizeof(command), "rm -rf %s", world->folder);
	assert_int_equal(system(command), 0);
}

void world_step(struct world *world)
{
	struct pollfd end = { .fd = world->daemon.loop.epoll_fd, .events = POLLIN };

	world_pass(WORLD_STEP_NS);
	for (int i = 0; i < WORLD_ROUNDS; i++) {
		gp_daemon_step(&world->daemon, 0);
		if (world->daemon.questions.identity_count) { /* a thread finds out which process has connected */
			usleep(20);
			i--;
		} else if (poll(&end, 1, 0) <= 0 && !gp_daemon_has_work(&world->daemon)) {
			break;
		}
	}
	assert_null(gp_sched_check(world->daemon.sched));
}

void world_wait(struct world *world, uint32_t ms)
{
	world_pass(ms * 1000000ull);
	gp_daemon_step(&world->daemon, 1);
}

int world_connect(const struct world *world)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", world->daemon.config.socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

void world_send(int fd, const void *message, size_t size)
{
	assert_int_equal(send(fd, message, size, MSG_NOSIGNAL), (ssize_t)size);
}

size_t world_receive(int fd, void *buffer, size_t size)
{
	ssize_t got = recv(fd, buffer, size, MSG_DONTWAIT);

	return got > 0 ? (size_t)got : 0;
}

bool world_is_closed(int fd)
{
	char byte[GP_WIRE_SIZE_MAX];
	ssize_t got;

	while ((got = recv(fd, byte, sizeof(byte), MSG_DONTWAIT)) > 0) {}
	return got == 0 || errno == ECONNRESET;
}

struct gp_wire_hello world_hello(int32_t priority)
{
	struct gp_wire_hello hello = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_HELLO, sizeof(hello), 0 },
		.version_min = GP_WIRE_VERSION,
		.version_max = GP_WIRE_VERSION,
		.flags = GP_HELLO_DOORBELLS | GP_HELLO_RUNTIME,
		.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_SELF),
		.pid = 1,
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = priority },
		.name = "fake",
	};

	return hello;
}

static void agent_take_welcome(struct agent *agent)
{
	const char *wrong =
		gp_test_welcome(agent->fd, MSG_DONTWAIT, &agent->welcome, &agent->page, &agent->doorbell_fd);

	if (wrong)
		fail_msg("%s", wrong);
}

/* A thread reads whose program it is. Afterwards it has no file open and wakes the daemon no more. */
static void world_questions(struct world *world)
{
	while (world->daemon.questions.open_count) {
		usleep(100);
		gp_daemon_step(&world->daemon, 0);
	}
	if (world->daemon.questions.worker) {
		gp_worker_lock(
			world->daemon.questions.worker); /* a thread that ends a job holds it until it has written */
		gp_worker_unlock(world->daemon.questions.worker);
	}
	gp_daemon_step(&world->daemon, 0);
}

void agent_hello(struct world *world, struct agent *agent, const struct gp_wire_hello *hello)
{
	bool is_free = !world->daemon.questions.open_count; /* a test may keep the thread busy */

	memset(agent, 0, sizeof(*agent));
	agent->fd = world_connect(world);
	world_send(agent->fd, hello, sizeof(*hello));
	world_step(world);
	agent_take_welcome(agent);
	agent_work(world, agent);
	if (is_free)
		world_questions(world);
}

void agent_connect(struct world *world, struct agent *agent, int32_t priority)
{
	struct gp_wire_hello hello = world_hello(priority);

	agent_hello(world, agent, &hello);
}

void agent_leave(struct world *world, struct agent *agent)
{
	close(agent->fd);
	close(agent->doorbell_fd);
	munmap(agent->page, sizeof(*agent->page));
	world_step(world);
}

void agent_answer(struct world *world, struct agent *agent)
{
	static struct {
		struct gp_wire_applied head;
		struct gp_wire_change changes[GP_WIRE_ORDER_MAX];
	} message;
	size_t size = sizeof(message.head) + agent->order.count * sizeof(message.changes[0]);

	message.head = (struct gp_wire_applied){
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_APPLIED, (uint32_t)size, 0 },
		.seq = agent->order.seq,
		.gpu_id = agent->order.gpu_id,
		.count = agent->order.count,
		.issue_ns = 1000,
		.done_ns = 51000 + agent->claim_ns,
	};
	for (uint32_t i = 0; i < agent->order.count; i++) {
		message.changes[i] = agent->changes[i];
		message.changes[i].result = agent->changes[i].open ? 0 : agent->fail;
		if (!message.changes[i].result && agent->changes[i].slot < WORLD_SLOTS)
			agent->shut[agent->changes[i].slot] = !agent->changes[i].open;
		if (world->look)
			world->look(world->look_context);
	}
	world_send(agent->fd, &message, size);
	world_step(world);
}

void agent_answer_slice(struct world *world, struct agent *agent)
{
	struct gp_wire_slice answer = agent->slice;

	answer.header.type = GP_WIRE_SLICED;
	answer.result = agent->slice_fail;
	if (!answer.result && answer.slot < WORLD_SLOTS)
		agent->slice_us[answer.slot] = answer.slice_us;
	if (world->look)
		world->look(world->look_context);
	world_send(agent->fd, &answer, sizeof(answer));
	world_step(world);
}

static void agent_message(struct world *world, struct agent *agent, const void *data)
{
	const struct gp_wire_header *header = data;
	const struct gp_wire_order *order = data;
	struct gp_wire_header synced = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED, sizeof(synced),
					 header->cookie };

	switch (header->type) {
	case GP_WIRE_ORDER:
		agent->order = *order;
		memcpy(agent->changes, order->changes, order->count * sizeof(agent->changes[0]));
		agent->order_count++;
		if (!agent->silent)
			agent_answer(world, agent);
		break;
	case GP_WIRE_SLICE:
		agent->slice = *(const struct gp_wire_slice *)data;
		agent->slice_count++;
		if (!agent->slice_silent)
			agent_answer_slice(world, agent);
		break;
	case GP_WIRE_SAMPLE: agent->sample_ns = ((const struct gp_wire_sample *)data)->interval_ns; break;
	case GP_WIRE_SYNC:
		agent->sync_count++;
		if (!agent->silent)
			world_send(agent->fd, &synced, sizeof(synced));
		break;
	case GP_WIRE_MECHANISM: agent->mechanism = ((const struct gp_wire_mechanism *)data)->mechanism; break;
	case GP_WIRE_RUNTIME_OK: agent->runtime_ok_count++; break;
	case GP_WIRE_ATTR_NOW: agent->attr = ((const struct gp_wire_attr_message *)data)->attr; break;
	default: fail_msg("an agent got a message of type %u", header->type);
	}
}

void agent_work(struct world *world, struct agent *agent)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];

	world_step(world);
	while (world_receive(agent->fd, buffer, sizeof(buffer)))
		agent_message(world, agent, buffer);
	world_step(world);
}

void agent_add_queue(struct world *world, struct agent *agent, uint32_t slot, uint32_t flags)
{
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
		.slot = slot,
		.generation = ++agent->generation,
		.flags = flags,
		.gpu_id = WORLD_GPU,
		.queue_id = slot,
		.hw_priority = 7,
		.ring_size = 4096,
	};

	agent->page->queues[slot].generation = queue.generation;
	world_send(agent->fd, &queue, sizeof(queue));
	agent_work(world, agent);
}

void agent_lost(const struct agent *agent, uint32_t slot)
{
	struct {
		struct gp_wire_lost head;
		struct gp_wire_change change;
	} lost = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_LOST, sizeof(lost), 0 },
			     .why = GP_LOST_LEASE,
			     .count = 1 },
		   .change = { .slot = slot, .generation = 1, .open = 1 } };

	world_send(agent->fd, &lost, sizeof(lost));
}

void agent_ring(const struct agent *agent)
{
	uint64_t one = 1;

	assert_int_equal(write(agent->doorbell_fd, &one, sizeof(one)), sizeof(one));
}

/* As page.h has it. */
void agent_doorbell(struct world *world, struct agent *agent, uint32_t slot, uint64_t packets)
{
	struct gp_page_queue *queue = &agent->page->queues[slot];

	queue->doorbell = queue->written = packets;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (queue->armed & GP_ARMED_BUSY && __atomic_exchange_n(&queue->armed, 0, __ATOMIC_SEQ_CST) & GP_ARMED_BUSY)
		agent_ring(agent);
	agent_work(world, agent);
}

void agent_complete(struct world *world, struct agent *agent, uint32_t slot, uint64_t packets)
{
	struct gp_page_queue *queue = &agent->page->queues[slot];

	queue->completed = packets;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (queue->completed >= queue->written && queue->armed & GP_ARMED_IDLE &&
	    __atomic_exchange_n(&queue->armed, 0, __ATOMIC_SEQ_CST) & GP_ARMED_IDLE)
		agent_ring(agent);
	agent_work(world, agent);
}

bool agent_is_closed(const struct agent *agent, uint32_t slot)
{
	for (uint32_t i = 0; i < agent->order.count; i++)
		if (agent->changes[i].slot == slot)
			return !agent->changes[i].open;
	return false;
}

struct gp_control_request world_request(uint32_t verb)
{
	struct gp_control_request request = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL, sizeof(request), 77 },
		.verb = verb,
		.pid = getpid(),
		.queue_id = GP_CONTROL_ALL_QUEUES,
	};

	return request;
}

char *world_ask(struct world *world, const struct gp_control_request *request, int *ret_result)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct gp_control_answer *answer = (void *)buffer;
	int fd = world_connect(world);
	char *text = calloc(1, 1), *longer;
	size_t size = 0, got;

	world_send(fd, request, sizeof(*request));
	answer->more = 1;
	for (int i = 0; answer->more && i < WORLD_ROUNDS * 100; i++) {
		world_step(world);
		got = world_receive(fd, buffer, sizeof(buffer));
		if (!got) {
			world_wait(world, 1); /* it waits for something: its timer is set */
			continue;
		}
		assert_int_equal(answer->header.cookie, request->header.cookie);
		got -= sizeof(*answer);
		longer = realloc(text, size + got + 1);
		assert_non_null(longer);
		text = longer;
		memcpy(text + size, answer->text, got);
		size += got;
		text[size] = '\0';
	}
	assert_int_equal(answer->more, 0);
	*ret_result = answer->result;
	close(fd);
	world_step(world);
	return text;
}

static struct gp_client *world_client(struct world *world, const struct agent *agent)
{
	const uint64_t mark = 0x1234567890abcdefull;
	bool found;

	/* The page is shared: a mark in it finds the client. */
	for (uint32_t i = 0; i < world->daemon.client_top; i++) {
		struct gp_client *client = world->daemon.clients[i];

		if (!client || !client->page)
			continue;
		agent->page->hint_ns = mark;
		found = client->page->hint_ns == mark;
		agent->page->hint_ns = 0;
		if (found)
			return client;
	}
	return NULL;
}

struct gp_queue_entry *world_queue(struct world *world, const struct agent *agent, uint32_t slot)
{
	struct gp_client *client = world_client(world, agent);

	assert_non_null(client);
	return slot < client->slot_count ? client->slots[slot].queue : NULL;
}

struct gp_queue_info world_info(struct world *world, const struct agent *agent, uint32_t slot)
{
	struct gp_queue_entry *queue = world_queue(world, agent, slot);
	struct gp_queue_info info;

	assert_non_null(queue);
	assert_true(queue->in_core);
	assert_int_equal(gp_sched_queue_info(world->daemon.sched, queue->core, &info), 0);
	return info;
}

enum gp_gate world_gate(struct world *world, const struct agent *agent, uint32_t slot)
{
	return world_info(world, agent, slot).gate;
}

static void world_give_queues(struct gp_owner *from, struct gp_owner *to, const struct gp_client *client)
{
	for (uint32_t i = 0; i < client->slot_count; i++) {
		if (!client->slots[i].queue)
			continue;
		from->device_queue_count[client->slots[i].queue->device]--;
		to->device_queue_count[client->slots[i].queue->device]++;
	}
	from->queue_count -= client->queue_count;
	to->queue_count += client->queue_count;
}

void world_give(struct world *world, struct gp_client *client, uid_t uid)
{
	struct gp_owner *from = client->owner, *to = gp_owner_of_uid(&world->daemon, uid);

	client->uid = client->device.uid = client->peer->uid = uid;
	client->identity.account = client->peer->identity.account = uid;
	client->peer->identity.rights = uid ? 0 : GP_RIGHT_NICE | GP_RIGHT_ADMIN;
	client->device.owner = to->id;
	world_give_queues(from, to, client);
	from->client_count--;
	to->client_count++;
	from->peer_count--;
	to->peer_count++;
	client->owner = to;
	client->peer->owner = gp_owner_hold(to);
	gp_owner_put(from);
	gp_owner_put(from);
}

void world_begin_one(struct world *world, struct agent *agent, const char *config, int32_t priority)
{
	world_begin(world, config);
	agent_connect(world, agent, priority);
	agent_add_queue(world, agent, 0, GP_QUEUE_SEEN);
}

void world_end_one(struct world *world, struct agent *agent)
{
	agent_leave(world, agent);
	world_end(world);
}

void world_end_pair(struct world *world, struct agent *good, struct agent *bad)
{
	assert_false(world_is_closed(good->fd));
	agent_leave(world, good);
	agent_leave(world, bad);
	world_end(world);
}
