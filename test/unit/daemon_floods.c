/* SPDX-License-Identifier: MIT */
/* Every flood at once, from one user: questions, event streams, doorbells and attributes of thousands of queues,
 * runtimes that come and go, newcomers. Between two looks at urgent work the daemon does a bounded amount of it,
 * counted in units of work; an urgent doorbell is decided on in the very next step; root is answered soon. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

#define GREEDY_UID 12345u
#define FLOODERS   4u
#define QUEUES     GP_WIRE_QUEUE_MAX
#define ASKERS     120u
#define STEPS      96u
#define CROWD      300u /* more than a portion serves */
#define STREAMS    64u  /* of events, for one user who is not root */

static struct world world;
static struct agent urgent, flooders[FLOODERS];
static int askers[ASKERS];
static uint32_t queue_count = QUEUES; /* of each flooder */

static int begin(void **state)
{
	struct rlimit limit;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	world_begin(&world, "[daemon]\nclients_max = 2000\nqueues_max = 16384\nqueues_per_user = 8192\n"
			    "[policy]\noverhead = 1000\nage_window = 1h\nmin_open = 1us\n");
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

static void drain(int fd)
{
	static char buffer[GP_WIRE_SIZE_MAX];

	while (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0) {}
}

/* All but the first, without the world's looks at everything in between. */
static void add_queues(struct agent *agent)
{
	for (uint32_t slot = 1; !agent->silent && slot < queue_count; slot++)
		agent_add_queue(&world, agent, slot, GP_QUEUE_SEEN);
	if (!agent->silent)
		return;
	for (uint32_t slot = 1; slot < queue_count; slot++) {
		struct gp_wire_queue queue = {
			.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
			.slot = slot,
			.generation = ++agent->generation,
			.flags = GP_QUEUE_SEEN,
			.gpu_id = WORLD_GPU,
			.queue_id = slot,
			.hw_priority = 7,
			.ring_size = 4096,
		};

		agent->page->queues[slot].generation = queue.generation;
		world_send(agent->fd, &queue, sizeof(queue));
		gp_daemon_step(&world.daemon, 0);
		drain(agent->fd);
	}
}

/* A connection of another user's. */
static struct gp_peer *connect_as(uint32_t uid, int *ret_fd)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	struct gp_peer *peer;
	struct gp_owner *from;

	*ret_fd = world_connect(&world);
	world_send(*ret_fd, &ping, sizeof(ping));
	world_step(&world);
	drain(*ret_fd);
	peer = world.daemon.peers; /* the newest connection is the first */
	from = peer->owner;
	peer->uid = uid;
	peer->owner = gp_owner_of_uid(&world.daemon, uid);
	from->peer_count--;
	peer->owner->peer_count++;
	gp_owner_put(from);
	return peer;
}

static void come(void)
{

	agent_connect(&world, &urgent, 90);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	for (uint32_t i = 0; i < FLOODERS; i++) {
		agent_connect(&world, &flooders[i], 50);
		agent_add_queue(&world, &flooders[i], 0, GP_QUEUE_SEEN);
		world_give(&world, world_queue(&world, &flooders[i], 0)->client, GREEDY_UID);
		flooders[i].silent = queue_count == QUEUES;
		add_queues(&flooders[i]);
	}
	for (uint32_t i = 0; i < ASKERS; i++)
		connect_as(GREEDY_UID, &askers[i]);
}

/* Whatever fits into the sockets. */
static void flood(uint32_t step)
{
	struct gp_control_request requests[] = { world_request(GP_CONTROL_STATUS), world_request(GP_CONTROL_EVENTS),
						 world_request(GP_CONTROL_SET), world_request(GP_CONTROL_METRICS),
						 world_request(GP_CONTROL_SUMMARY) };
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_GANG | GP_ATTR_PRIORITY, .priority = (int32_t)(step % 50) },
	};
	struct gp_wire_runtime runtime = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_RUNTIME, sizeof(runtime), step },
		.enable = step % 2,
	};

	for (uint32_t i = 0; i < ASKERS; i++) {
		drain(askers[i]);
		send(askers[i], &requests[(i + step) % 5], sizeof(requests[0]), MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	for (uint32_t i = 0; i < FLOODERS; i++) {
		struct agent *agent = &flooders[i];

		drain(agent->fd);
		snprintf(attr.attr.gang, sizeof(attr.attr.gang), "gang%u", step);
		send(agent->fd, &attr, sizeof(attr), MSG_DONTWAIT | MSG_NOSIGNAL);
		send(agent->fd, &runtime, sizeof(runtime), MSG_DONTWAIT | MSG_NOSIGNAL);
		for (uint32_t k = 0; k < queue_count; k++) {
			agent->page->queues[k].doorbell = agent->page->queues[k].written = step + 1;
			agent->page->queues[k].completed = step % 3 ? step : step + 1;
		}
		agent_ring(agent);
	}
	for (int i = 0; i < 2; i++)
		close(world_connect(&world));
}

/* An urgent doorbell among all this: its work is known after one step, and the core has been asked. */
static void check_urgent(uint64_t packets)
{
	struct gp_page_queue *page = &urgent.page->queues[0];

	drain(urgent.fd);
	page->doorbell = page->written = packets;
	agent_ring(&urgent);
	gp_daemon_step(&world.daemon, 0);
	assert_true(world_queue(&world, &urgent, 0)->pending);
	/* The core has decided, or waits for answers (test_decided). */
	assert_true(gp_sched_deadline_ns(world.daemon.sched) > gp_daemon_now_ns(&world.daemon));
	page->completed = packets;
	agent_ring(&urgent);
	gp_daemon_step(&world.daemon, 0);
	assert_false(world_queue(&world, &urgent, 0)->pending);
}

static void test_every_flood(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	int root;

	(void)state;
	come();
	root = world_connect(&world);
	world_send(root, &ping, sizeof(ping));
	world_step(&world);
	drain(root);
	world.daemon.counters.away_work_max = 0;
	for (uint32_t step = 0; step < STEPS; step++) {
		flood(step);
		gp_daemon_step(&world.daemon, 0);
		if (step % 16)
			continue;
		check_urgent(step + 1);
		/* Three kinds of things are done in turn, root's first. */
		world_send(root, &ping, sizeof(ping));
		for (int i = 0; i < 4; i++)
			gp_daemon_step(&world.daemon, 0);
		assert_true(world_receive(root, buffer, sizeof(buffer)) > 0);
	}
	assert_in_range(world.daemon.counters.away_work_max, 1, GP_AWAY_WORK_MAX);
	assert_true(world.daemon.counters.away_work_max > 512); /* it was a flood */
	for (uint32_t i = 0; i < ASKERS; i++)
		close(askers[i]);
	for (uint32_t i = 0; i < FLOODERS; i++)
		agent_leave(&world, &flooders[i]);
	agent_leave(&world, &urgent);
	close(root);
	world_step(&world);
	assert_int_equal(world.daemon.peer_count, 0);
	assert_null(world.daemon.events.lines);
}

/* Of the flooders' queues with work: how many are open. The core orders nothing for one that has left it, so such a one
 * is open unless it was closed before. */
static uint32_t count_open(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < FLOODERS; i++)
		for (uint32_t slot = 0; slot < queue_count; slot++) {
			const struct gp_queue_entry *queue = world_queue(&world, &flooders[i], slot);

			if (queue && queue->pending)
				count += queue->in_core ? world_gate(&world, &flooders[i], slot) == GP_GATE_OPEN :
							  !queue->closed;
		}
	return count;
}

/* With so much work that none of it is almost done. */
static void flood_long(uint32_t step)
{
	flood(step);
	for (uint32_t i = 0; i < FLOODERS; i++)
		for (uint32_t k = 0; k < queue_count; k++)
			flooders[i].page->queues[k].doorbell = flooders[i].page->queues[k].written = 1000000;
}

/* Where the flooders answer their orders, so that the core need not wait: in the step after an urgent doorbell, among
 * the same floods, the core orders all others closed. */
static void test_decided(void **state)
{
	struct gp_page_queue *page;

	(void)state;
	queue_count = 4; /* few enough for the slots */
	come();
	flood_long(1); /* an odd one: the runtimes are there, and all queues have work */
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < FLOODERS; i++)
			agent_work(&world, &flooders[i]);
		agent_work(&world, &urgent);
	}
	assert_true(count_open() > 0);
	flood_long(1);
	page = &urgent.page->queues[0];
	page->doorbell = page->written = 1;
	agent_ring(&urgent);
	gp_daemon_step(&world.daemon, 0);
	assert_true(world_queue(&world, &urgent, 0)->pending);
	assert_int_equal(count_open(), 0);
	for (uint32_t i = 0; i < ASKERS; i++)
		close(askers[i]);
	for (uint32_t i = 0; i < FLOODERS; i++)
		agent_leave(&world, &flooders[i]);
	agent_leave(&world, &urgent);
	queue_count = QUEUES;
}

/* More connections than one portion serves wait, of one user or of as many, then one more comes. While that one waits
 * no more than allowed of the others are served. */
static void check_turn(bool is_one_user, uint32_t uid, uint32_t allowed)
{
	struct gp_peer *crowd[CROWD], *last;
	int fds[CROWD], last_fd;
	uint32_t served;

	for (uint32_t i = 0; i < CROWD; i++)
		crowd[i] = connect_as(GREEDY_UID + (is_one_user ? 0 : i), &fds[i]);
	last = connect_as(uid, &last_fd);
	for (uint32_t i = 0; i < CROWD; i++)
		gp_fair_add(&world.daemon, crowd[i]);
	gp_fair_add(&world.daemon, last);
	do {
		assert_true(last->in_fair);
		gp_fair_serve(&world.daemon, last->is_late);
		served = 0;
		for (uint32_t i = 0; i < CROWD; i++)
			served += !crowd[i]->in_fair;
	} while (last->in_fair && served <= allowed);
	assert_false(last->in_fair);
	for (uint32_t i = 0; i < CROWD; i++)
		close(fds[i]);
	close(last_fd);
	world_step(&world);
}

static void test_turns(void **state)
{
	(void)state;
	check_turn(true, GREEDY_UID + 1, 1);
	check_turn(false, 0, 0);
}

/* One user reads events on as many connections as one may have. */
static void test_streams(void **state)
{
	struct gp_control_request events = world_request(GP_CONTROL_EVENTS);
	int fds[STREAMS + 8];
	struct gp_owner *owner = NULL;

	(void)state;
	for (uint32_t i = 0; i < STREAMS + 8; i++) {
		owner = connect_as(GREEDY_UID, &fds[i])->owner;
		world_send(fds[i], &events, sizeof(events));
		world_step(&world);
	}
	assert_int_equal(owner->stream_count, STREAMS);
	for (uint32_t i = 0; i < STREAMS + 8; i++)
		close(fds[i]);
	world_step(&world);
}

/* One that uses more than his share of the thread waits; others and root do not. */
static void test_share(void **state)
{
	struct gp_owner *greedy = gp_owner_of_uid(&world.daemon, GREEDY_UID);
	struct gp_owner *other = gp_owner_of_uid(&world.daemon, GREEDY_UID + 1);
	struct gp_owner *root = gp_owner_of_uid(&world.daemon, 0);
	uint64_t begin_ns = gp_now_ns();

	(void)state;
	for (int i = 0; i < 200; i++) {
		gp_fair_charge(greedy, 1000000, gp_now_ns());
		gp_fair_charge(root, 1000000, gp_now_ns());
	}
	assert_false(gp_fair_may(&world.daemon, greedy));
	assert_in_range(world.daemon.fair.timer.at_ns, begin_ns + 2000000000, begin_ns + 2500000000);
	assert_true(gp_fair_may(&world.daemon, other));
	assert_true(gp_fair_may(&world.daemon, root));
	world_wait(&world, 2500);
	assert_true(gp_fair_may(&world.daemon, greedy));
	gp_owner_put(greedy);
	gp_owner_put(other);
	gp_owner_put(root);
}

/* Connections that come and go; at most as many as the kernel's queue takes. */
static void storm(uint32_t count)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", world.daemon.config.socket);
	for (uint32_t i = 0; i < count; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		assert_true(!connect(fd, (struct sockaddr *)&address, sizeof(address)) || errno == EAGAIN);
		close(fd);
	}
}

/* Connections that were ended before they were let in cost next to nothing: who comes after sixty is answered at once.
 */
static void test_gone_newcomers(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	int root;

	(void)state;
	storm(60);
	root = world_connect(&world);
	world_send(root, &ping, sizeof(ping));
	for (int i = 0; i < 4 || world.daemon.questions.identity_count; i += !world.daemon.questions.identity_count)
		gp_daemon_step(&world.daemon, 0);
	assert_true(world_receive(root, buffer, sizeof(buffer)) > 0);
	close(root);
	world_step(&world);
	assert_int_equal(world.daemon.peer_count, 0);
}

/* One that left a message was there: what it asked for is done. */
static void test_gone_with_a_message(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	uint64_t messages = world.daemon.counters.messages;
	int fd = world_connect(&world);

	(void)state;
	world_send(fd, &ping, sizeof(ping));
	close(fd);
	world_step(&world);
	assert_int_equal(world.daemon.counters.messages - messages, 1);
}

/* A storm of newcomers that never ends has half of the thread's time. In between the thread sleeps, and the storm
 * does not wake it; who waits is let in afterwards. */
static void test_newcomers_share(void **state)
{
	struct pollfd wakes = { .fd = world.daemon.loop.epoll_fd, .events = POLLIN };
	uint64_t begin_ns = 0, busy_ns = 0, now_ns;

	(void)state;
	for (uint32_t pauses = 0; pauses < 50;) {
		storm(48);
		world_tick(20000);
		now_ns = gp_now_ns();
		gp_peer_accept(&world.daemon);
		busy_ns += gp_now_ns() - now_ns;
		world_tick(0);
		now_ns = gp_now_ns();
		assert_true(pauses || busy_ns < 40000000);
		if (world.daemon.listen.timer.at_ns <= now_ns)
			continue;
		if (!pauses++) /* until then they had what nobody else needed */
			begin_ns = now_ns, busy_ns = 0;
		gp_daemon_step(&world.daemon, 0); /* what was noticed before the pause */
		storm(4);
		assert_int_equal(poll(&wakes, 1, 0), 0);
		assert_false(gp_daemon_has_work(&world.daemon));
		world_wait(&world, (uint32_t)((world.daemon.listen.timer.at_ns - now_ns) / 1000000 + 1));
	}
	assert_in_range(gp_now_ns() - begin_ns, 3 * busy_ns / 2, 3 * busy_ns);
	world_wait(&world, 100);
	world_step(&world);
	assert_int_equal(world.daemon.listen.timer.at_ns, 0);
	assert_int_equal(world.daemon.peer_count, 0);
}

/* The machine stood still while newcomers were let in: that was not their fault, and the next ones do not wait. */
static void test_newcomers_stall(void **state)
{
	(void)state;
	storm(2);
	world_tick(50000000);
	gp_peer_accept(&world.daemon);
	world_tick(0);
	assert_int_equal(world.daemon.listen.timer.at_ns, 0);
	world_step(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_flood, begin, end),
		cmocka_unit_test_setup_teardown(test_decided, begin, end),
		cmocka_unit_test_setup_teardown(test_share, begin, end),
		cmocka_unit_test_setup_teardown(test_turns, begin, end),
		cmocka_unit_test_setup_teardown(test_streams, begin, end),
		cmocka_unit_test_setup_teardown(test_gone_newcomers, begin, end),
		cmocka_unit_test_setup_teardown(test_gone_with_a_message, begin, end),
		cmocka_unit_test_setup_teardown(test_newcomers_share, begin, end),
		cmocka_unit_test_setup_teardown(test_newcomers_stall, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
