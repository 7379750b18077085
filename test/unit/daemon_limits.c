/* SPDX-License-Identifier: MIT */
/* What one user can take of a daemon that all share: queues, gangs, memory for answers it does not read, other people's
 * waiting time, and sight of other people's processes. Users are told apart by what the daemon has noted of a client.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/process.h"
#include "test/unit/daemon_world.h"

#define GREEDY_UID 12345u
#define OTHER_UID  54321u

static struct world world;
static struct agent agent;

static int begin(void **state)
{
	(void)state;
	world_begin_one(&world, &agent, "[daemon]\nqueues_per_user = 4\n", 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_one(&world, &agent);
	return 0;
}

/* More queues than a user may have are left out; the connection and other users go on. */
static void test_queues(void **state)
{
	struct gp_client *client = world_queue(&world, &agent, 0)->client;
	struct agent other;

	(void)state;
	world_give(&world, client, GREEDY_UID);
	for (uint32_t slot = 1; slot < 7; slot++)
		agent_add_queue(&world, &agent, slot, GP_QUEUE_SEEN);
	assert_int_equal(client->queue_count, 4);
	assert_false(world_is_closed(agent.fd));
	agent_connect(&world, &other, 50);
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	assert_non_null(world_queue(&world, &other, 0));
	agent_leave(&world, &other);
}

/* One user asks for all of a device's queues; another finds room, and root finds what is kept for it. */
static void test_device_table(void **state)
{
	struct gp_client *greedy = world_queue(&world, &agent, 0)->client;
	struct agent other, root;

	(void)state;
	world.daemon.config.user_queue_max = GP_WIRE_QUEUE_MAX;
	world_give(&world, greedy, GREEDY_UID);
	agent_connect(&world, &other, 50);
	agent_connect(&world, &root, 50);
	for (uint32_t slot = 1; slot < 32; slot++)
		agent_add_queue(&world, &agent, slot, GP_QUEUE_SEEN);
	assert_int_equal(greedy->queue_count, 15); /* of 32: half of what is not root's */
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	world_give(&world, world_queue(&world, &other, 0)->client, OTHER_UID);
	for (uint32_t slot = 1; slot < 32; slot++)
		agent_add_queue(&world, &other, slot, GP_QUEUE_SEEN);
	assert_int_equal(world_queue(&world, &other, 0)->client->queue_count, 8);
	agent_add_queue(&world, &root, 0, GP_QUEUE_SEEN);
	world_give(&world, world_queue(&world, &root, 0)->client, 0);
	for (uint32_t slot = 1; slot < 32; slot++)
		agent_add_queue(&world, &root, slot, GP_QUEUE_SEEN);
	assert_int_equal(world_queue(&world, &root, 0)->client->queue_count, 32 - 15 - 8);
	agent_leave(&world, &other);
	agent_leave(&world, &root);
	assert_int_equal(greedy->owner->device_queue_count[0], 15);
}

static int begin_table(void **state)
{
	(void)state;
	world_begin_one(&world, &agent, "[daemon]\nqueues_max = 128\n[null]\ndevices = 4\n", 50);
	return 0;
}

static uint32_t take_places(uid_t first_uid, uint32_t uid_count, struct gp_client **clients)
{
	uint32_t count = 0;

	for (uid_t uid = first_uid; uid < first_uid + uid_count; uid++) {
		struct gp_owner *owner = gp_owner_of_uid(&world.daemon, uid);

		while (!gp_client_create(&world.daemon, owner, &clients[count]))
			count++;
		gp_owner_put(owner);
	}
	return count;
}

/* Client places, with all the uids of a range: half of what is there, and the rest for others; root has its own. */
static void test_client_places(void **state)
{
	static struct gp_client *clients[3][64];
	uint32_t counts[3];

	(void)state;
	world_give(&world, world_queue(&world, &agent, 0)->client, 0);
	counts[0] = take_places(100000, 500, clients[0]);
	counts[1] = take_places(OTHER_UID, 1, clients[1]);
	counts[2] = take_places(0, 1, clients[2]);
	assert_int_equal(counts[0], (64 - 4 - 1 + 1) / 2);
	assert_int_equal(counts[1], (64 - 4 - 1 - 30 + 1) / 2);
	assert_int_equal(counts[0] + counts[1] + counts[2] + 1, 64);
	for (int i = 0; i < 3; i++)
		for (uint32_t k = 0; k < counts[i]; k++)
			gp_client_remove(&world.daemon, clients[i][k]);
	world_step(&world);
	assert_int_equal(world.daemon.client_count, 1);
}

static int begin_range(void **state)
{
	static char path[] = "/tmp/gpreempt-subuid-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%u:100000:65536\n", GREEDY_UID) > 0);
	close(fd);
	gp_subuid_path = path;
	return begin(state);
}

static int end_range(void **state)
{
	unlink(gp_subuid_path);
	return end(state);
}

static uint32_t gang_of(uid_t uid, const char *name)
{
	struct gp_owner *owner = gp_owner_of_uid(&world.daemon, uid);
	uint32_t gang = gp_gang_name_get(&world.daemon, owner, uid, name);

	gp_owner_put(owner);
	return gang;
}

static void test_gangs(void **state)
{
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < world.daemon.gangs.max; i++) {
		snprintf(name, sizeof(name), "gang%u", i);
		gang_of(GREEDY_UID, name);
	}
	assert_int_not_equal(gang_of(OTHER_UID, "mine"), 0);
}

static void set_gang(const char *name)
{
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_GANG },
	};

	snprintf(attr.attr.gang, sizeof(attr.attr.gang), "%s", name);
	world_send(agent.fd, &attr, sizeof(attr));
	world_step(&world);
}

/* Who joins another gang begins anew, with a turn of his own: at once the first time, and then now and then. */
static void test_gangs_at_will(void **state)
{
	const struct gp_queue_entry *queue = world_queue(&world, &agent, 0);
	struct gp_queue_id first;
	uint32_t gang;

	(void)state;
	set_gang("first");
	gang = queue->core_gang;
	first = queue->core;
	assert_true(queue->in_core && gang && gang == queue->attr.gang);
	for (int i = 0; i < 100; i++)
		set_gang(i % 2 ? "even" : "odd");
	assert_memory_equal(&queue->core, &first, sizeof(first));
	assert_int_equal(queue->core_gang, gang);
	/* Its number is nobody else's, though nobody has the name any more. */
	assert_int_not_equal(queue->attr.gang, gang);
	assert_int_not_equal(gang_of(OTHER_UID, "mine"), gang);
	world_wait(&world, 10001);
	assert_int_equal(queue->core_gang, queue->attr.gang);
	assert_int_not_equal(queue->core_gang, gang);
}

/* Not in the middle of an order: what becomes of it is heard first. */
static void test_gang_waits_for_the_order(void **state)
{
	const struct gp_queue_entry *queue = world_queue(&world, &agent, 0);
	uint64_t failures = world.daemon.counters.order_failures;
	struct agent urgent;

	(void)state;
	agent_doorbell(&world, &agent, 0, 5);
	agent.silent = true;
	agent_connect(&world, &urgent, 80);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &urgent, 0, 5);
	assert_int_equal(world_gate(&world, &agent, 0), GP_GATE_CLOSING);
	set_gang("mine");
	world_wait(&world, 20);
	assert_int_equal(queue->core_gang, 0);
	assert_int_equal(world_gate(&world, &agent, 0), GP_GATE_CLOSING);
	agent.silent = false;
	agent_work(&world, &agent);
	world_wait(&world, 20);
	assert_true(queue->core_gang && queue->core_gang == queue->attr.gang);
	assert_int_equal(world.daemon.counters.order_failures, failures);
	agent_leave(&world, &urgent);
}

/* Who asks and does not read is not listened to until it has read; nothing piles up, and nothing is lost. */
static void test_unread_answers(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct gp_control_request request = world_request(GP_CONTROL_METRICS);
	const struct gp_control_answer *answer = (const void *)buffer;
	int fd = world_connect(&world), asked = 0, answered = 0;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		if (send(fd, &request, sizeof(request), MSG_DONTWAIT) > 0)
			asked++;
		world_step(&world);
	}
	assert_true(asked > 10);
	assert_non_null(world.daemon.peers);
	assert_int_not_equal(world.daemon.peers->backlog.size, 0);
	assert_in_range(world.daemon.peers->backlog.size, 1, 2 * GP_WIRE_SIZE_MAX);
	for (int i = 0; i < 20000 && answered < asked; i++) {
		if (world_receive(fd, buffer, sizeof(buffer)))
			answered += !answer->more;
		else
			world_step(&world);
	}
	assert_int_equal(answered, asked);
	assert_int_equal(world.daemon.peers->backlog.size, 0);
	close(fd);
	world_step(&world);
}

/* A client that does not answer delays a question by a moment, however often others ask meanwhile. */
static void test_asking_all_the_time(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	int patient = world_connect(&world), pest = world_connect(&world);
	size_t size = 0;

	(void)state;
	world_send(patient, &request, sizeof(request));
	for (int i = 0; i < 100 && !size; i++) {
		world_send(pest, &request, sizeof(request));
		world_wait(&world, 20); /* takes the question in */
		world_wait(&world, 20); /* lets time pass */
		world_receive(pest, buffer, sizeof(buffer));
		size = world_receive(patient, buffer, sizeof(buffer));
	}
	assert_int_not_equal(size, 0);
	close(patient);
	close(pest);
	world_step(&world);
}

/* Why a queue waited is told to its user; for whom, only to those who see everybody. */
static void test_whom_it_waited_for(void **state)
{
	struct gp_peer other_user = { .uid = OTHER_UID, .identity.account = OTHER_UID },
		       root = { .identity.rights = GP_RIGHT_ADMIN };
	struct gp_text own = { 0 }, all = { 0 };
	struct gp_job own_job = { .end = UINT64_MAX }, all_job = { .end = UINT64_MAX };
	struct agent urgent;

	(void)state;
	world_give(&world, world_queue(&world, &agent, 0)->client, GREEDY_UID);
	agent_doorbell(&world, &agent, 0, 1000);
	agent_connect(&world, &urgent, 90);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	world_give(&world, world_queue(&world, &urgent, 0)->client, OTHER_UID);
	agent_doorbell(&world, &urgent, 0, 1);
	for (int i = 0; i < 1000 && !agent_is_closed(&agent, 0); i++) {
		world_wait(&world, 10);
		agent_work(&world, &agent);
	}
	while (gp_events_past(&world.daemon, &other_user, &own_job, &own)) {}
	while (gp_events_past(&world.daemon, &root, &all_job, &all)) {}
	assert_non_null(strstr(all.bytes, "\"other\":{"));
	assert_non_null(strstr(own.bytes, "\"event\":\"busy\""));
	assert_null(strstr(own.bytes, "\"other\":{"));
	gp_text_fini(&own);
	gp_text_fini(&all);
	agent_leave(&world, &urgent);
}

static uint32_t table_size(void)
{
	FILE *stream = fopen("/proc/self/status", "re");
	unsigned int size = 0;
	char line[256];

	while (stream && fgets(line, sizeof(line), stream))
		sscanf(line, "FDSize: %u", &size);
	assert_non_null(stream);
	fclose(stream);
	return size;
}

/* The kernel's table of our descriptors has its size from the beginning: growing it would hold the daemon up, for
 * seconds on a loaded machine. */
static void test_descriptor_table(void **state)
{
	uint32_t size = table_size();

	(void)state;
	assert_true(size >= gp_peer_max(&world.daemon) * GP_PEER_FDS);
}

/* No descriptor left, not even the spare one: the daemon does not spin, and lets in who waits when there are some. */
static void test_no_descriptors(void **state)
{
	struct pollfd wakes = { .fd = world.daemon.loop.epoll_fd, .events = POLLIN };
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct rlimit limit, none;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	fd = world_connect(&world);
	world_send(fd, &ping, sizeof(ping));
	assert_int_not_equal(world.daemon.listen.spare_fd, -1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	gp_daemon_step(&world.daemon, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(world.daemon.listen.spare_fd, -1); /* its number may be another file's by now */
	assert_int_not_equal(world.daemon.listen.timer.at_ns, 0);
	gp_timer_set(&world.daemon, &world.daemon.listen.timer, gp_now_ns() + 60000000000ull); /* not while we look */
	gp_daemon_step(&world.daemon, 0);
	assert_int_equal(poll(&wakes, 1, 0), 0);
	gp_timer_set(&world.daemon, &world.daemon.listen.timer, GP_TIMER_NOW);
	while (!world_receive(fd, buffer, sizeof(buffer)))
		world_wait(&world, 10);
	assert_int_equal(world.daemon.listen.timer.at_ns, 0);
	close(fd);
	world_step(&world);
}

/* Many questions at once: a doorbell that comes with them is decided on first, and only a few are answered a round. */
static void test_commands_wait(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	int fds[40], answered = 0;

	(void)state;
	for (int i = 0; i < 40; i++) {
		fds[i] = world_connect(&world);
		world_send(fds[i], &ping, sizeof(ping));
	}
	gp_daemon_step(&world.daemon, 0); /* lets them in */
	gp_daemon_step(&world.daemon, 0);
	for (int i = 0; i < 40; i++) /* that its connection is new is no advantage */
		answered += recv(fds[i], buffer, sizeof(buffer), MSG_DONTWAIT | MSG_PEEK) > 0;
	assert_true(answered <= 8);
	answered = 0;
	world_step(&world);
	for (int i = 0; i < 40; i++) {
		assert_true(world_receive(fds[i], buffer, sizeof(buffer)) > 0);
		for (int k = 0; k < 10; k++)
			world_send(fds[i], &ping, sizeof(ping));
	}
	agent.page->queues[0].doorbell = agent.page->queues[0].written = 1;
	__atomic_exchange_n(&agent.page->queues[0].armed, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(write(agent.doorbell_fd, &(uint64_t){ 1 }, 8), 8);
	gp_daemon_step(&world.daemon, 0);
	assert_true(world_queue(&world, &agent, 0)->pending);
	for (int i = 0; i < 40; i++)
		while (world_receive(fds[i], buffer, sizeof(buffer)))
			answered++;
	assert_true(answered > 0 && answered <= 128);
	/* Everybody's turn comes. */
	world_step(&world);
	for (int i = 0; i < 40; i++) {
		int count = 0;

		while (world_receive(fds[i], buffer, sizeof(buffer)))
			count++;
		answered += count;
		close(fds[i]);
	}
	assert_int_equal(answered, 400);
	world_step(&world);
}

/* An agent says much, and each message makes much work: decisions come in between. */
static void test_messages_wait(void **state)
{
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_GANG },
	};
	uint64_t before;

	(void)state;
	world.daemon.config.user_queue_max = GP_WIRE_QUEUE_MAX;
	for (uint32_t slot = 1; slot < GP_WIRE_QUEUE_MAX; slot++)
		agent_add_queue(&world, &agent, slot, GP_QUEUE_SEEN);
	for (int i = 0; i < 60; i++) {
		snprintf(attr.attr.gang, sizeof(attr.attr.gang), "gang%d", i);
		world_send(agent.fd, &attr, sizeof(attr));
	}
	before = world.daemon.counters.messages;
	world_tick(100000); /* a tenth of what a round may take */
	gp_daemon_step(&world.daemon, 0);
	assert_in_range(world.daemon.counters.messages - before, 1, 59);
	world_step(&world);
	assert_int_equal(world.daemon.counters.messages - before, 60);
}

/* What the ring holds is told in parts, with rounds in between; in the end all of it is. */
static void test_past_in_parts(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX + 1];
	const struct gp_control_answer *answer = (const void *)buffer;
	struct gp_control_request request = world_request(GP_CONTROL_EVENTS);
	uint64_t packets = 0, end, lines = 0, rounds = 0;
	size_t size;
	int fd;

	(void)state;
	while ((end = gp_events_end(&world.daemon)) < 1000) {
		agent_doorbell(&world, &agent, 0, ++packets);
		agent_complete(&world, &agent, 0, packets);
	}
	fd = world_connect(&world);
	request.flags = GP_CONTROL_EVENTS_PAST;
	world_send(fd, &request, sizeof(request));
	do {
		gp_daemon_step(&world.daemon, 0);
		rounds++;
		while ((size = world_receive(fd, buffer, sizeof(buffer) - 1))) {
			buffer[size] = '\0';
			for (const char *at = answer->text; (at = strchr(at, '\n')); at++)
				lines++;
			if (!answer->more)
				break;
		}
	} while (!size || answer->more);
	assert_true(rounds > 3);
	assert_true(lines >= end);
	/* And the connection is asked again. */
	request = world_request(GP_CONTROL_PING);
	world_send(fd, &request, sizeof(request));
	world_step(&world);
	assert_true(world_receive(fd, buffer, sizeof(buffer)) > 0);
	close(fd);
	world_step(&world);
}

/* A reader that is always a little behind: what it has read is forgotten. */
static void test_slow_reader(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX], text[16000];
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	int fd = world_connect(&world);
	uint32_t expected = 0;
	struct gp_peer *peer;

	(void)state;
	world_send(fd, &ping, sizeof(ping));
	world_step(&world);
	world_receive(fd, buffer, sizeof(buffer));
	peer = world.daemon.peers;
	peer->uid = 0; /* root's are not limited together */
	for (uint32_t i = 0; i < 2000; i++) {
		memset(text, (int)i, sizeof(text));
		assert_int_equal(gp_peer_answer_part(&world.daemon, peer, 1, text, sizeof(text)), 0);
		if (i < 60)
			continue;
		assert_int_equal(world_receive(fd, buffer, sizeof(buffer)),
				 sizeof(struct gp_control_answer) + sizeof(text));
		assert_int_equal(((struct gp_control_answer *)(void *)buffer)->text[7], (char)expected++);
		world_step(&world);
		assert_true(peer->backlog.size);
	}
	assert_true(peer->backlog.room < 8u << 20);
	close(fd);
	world_step(&world);
}

/* Users have taken every connection there is: root still gets one. */
static void test_root_comes_in(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	uint32_t count = world.daemon.peer_count;
	int fd;

	(void)state;
	if (getuid())
		skip();
	world.daemon.peer_count = world.daemon.config.client_max + 64;
	fd = world_connect(&world);
	world_send(fd, &ping, sizeof(ping));
	world_step(&world);
	assert_true(world_receive(fd, buffer, sizeof(buffer)) > 0);
	assert_int_equal(((struct gp_wire_header *)(void *)buffer)->type, GP_WIRE_CONTROL);
	close(fd);
	world_step(&world);
	world.daemon.peer_count = count;
}

/* A deep tree of processes, asked about from each of them: each is looked at once, and what was seen then is the answer
 * to all of one question, though they end meanwhile. */
static void test_deep_tree(void **state)
{
	static struct gp_ancestry ancestry, later;
	pid_t pids[12], child;
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		alarm(60);
		for (int i = 0; i < 12; i++) {
			pid_t own = getpid();

			if (write(pipes[1], &own, sizeof(own)) != sizeof(own) || i == 11 || fork())
				break;
		}
		pause();
		_exit(0);
	}
	for (int i = 0; i < 12; i++)
		assert_int_equal(read(pipes[0], &pids[i], sizeof(pids[i])), sizeof(pids[i]));
	assert_int_equal(pids[0], child);
	for (int i = 0; i < 12; i++)
		assert_true(gp_process_descends(&ancestry, pids[i], child));
	assert_false(gp_process_descends(&ancestry, getpid(), child));
	for (int i = 0; i < 12; i++)
		kill(pids[i], SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 12; i++)
		assert_true(gp_process_descends(&ancestry, pids[i], child));
	assert_false(gp_process_descends(&later, pids[11], child));
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_descriptors, begin, end),
		cmocka_unit_test_setup_teardown(test_descriptor_table, begin, end),
		cmocka_unit_test_setup_teardown(test_commands_wait, begin, end),
		cmocka_unit_test_setup_teardown(test_queues, begin, end),
		cmocka_unit_test_setup_teardown(test_device_table, begin_table, end),
		cmocka_unit_test_setup_teardown(test_client_places, begin_range, end_range),
		cmocka_unit_test_setup_teardown(test_gangs, begin, end),
		cmocka_unit_test_setup_teardown(test_gangs_at_will, begin, end),
		cmocka_unit_test_setup_teardown(test_gang_waits_for_the_order, begin, end),
		cmocka_unit_test_setup_teardown(test_unread_answers, begin, end),
		cmocka_unit_test_setup_teardown(test_messages_wait, begin, end),
		cmocka_unit_test_setup_teardown(test_past_in_parts, begin, end),
		cmocka_unit_test_setup_teardown(test_deep_tree, begin, end),
		cmocka_unit_test_setup_teardown(test_slow_reader, begin, end),
		cmocka_unit_test_setup_teardown(test_root_comes_in, begin, end),
		cmocka_unit_test_setup_teardown(test_asking_all_the_time, begin, end),
		cmocka_unit_test_setup_teardown(test_whom_it_waited_for, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
