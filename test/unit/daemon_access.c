/* SPDX-License-Identifier: MIT */
/* Who may have which priority, see what and change whom, told by the socket: these tests connect as other users, which
 * takes root. What needs no socket is asked directly. */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"
#include "test/unit/welcome.h"

#define HIGH_UID   12345u /* by a line of its own */
#define LOW_UID    12346u /* by a line of its own, in a group that may more */
#define PLAIN_UID  12347u /* the default */
#define MEMBER_UID 12348u /* by its group */
#define HIGH_GID   22345u

static const char config[] = "[ceiling]\ndefault = 40\nuser.12345 = 60\nuser.12346 = 20\ngroup.22345 = 80\n"
			     "user.22347 = 95\n";

static struct world world;
static bool is_slow; /* atomic: the files of LOW_UID's processes take long to open, but they do */

int __real_gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size);
int __wrap_gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size);

int __wrap_gp_aside_call(uint64_t owner, void (*function)(void *data), void *data, size_t size)
{
	while (owner == LOW_UID && __atomic_load_n(&is_slow, __ATOMIC_SEQ_CST))
		usleep(1000);
	return __real_gp_aside_call(owner, function, data, size);
}

static int begin(void **state)
{
	(void)state;
	world_begin(&world, config);
	return chmod(world.folder, 0755);
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

/* The kernel notes who connects as he is at that moment. */
static int connect_as(uid_t uid, gid_t gid)
{
	int fd;

	assert_int_equal(setgroups(1, &gid) | setegid(gid) | seteuid(uid), 0);
	fd = world_connect(&world);
	assert_int_equal(seteuid(0) | setegid(0) | setgroups(0, NULL), 0);
	return fd;
}

static void agent_connect_as(struct agent *agent, uid_t uid, gid_t gid, const struct gp_wire_attr *wanted)
{
	struct gp_wire_hello hello = world_hello(50);

	hello.attr = *wanted;
	memset(agent, 0, sizeof(*agent));
	agent->fd = connect_as(uid, gid);
	world_send(agent->fd, &hello, sizeof(hello));
	world_step(&world);
	assert_null(gp_test_welcome(agent->fd, MSG_DONTWAIT, &agent->welcome, &agent->page, &agent->doorbell_fd));
	agent_work(&world, agent);
}

/* The result of a command of that user's, and its answer in text. */
static int ask_as(uid_t uid, const struct gp_control_request *request, char *text, size_t size)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_control_answer *answer = (const void *)buffer;
	int fd = connect_as(uid, uid);
	size_t got = 0;

	world_send(fd, request, sizeof(*request));
	while (!got) {
		world_wait(&world, 1);
		got = world_receive(fd, buffer, sizeof(buffer));
	}
	assert_true(got >= sizeof(*answer));
	snprintf(text, size, "%.*s", (int)(got - sizeof(*answer)), answer->text);
	close(fd);
	world_step(&world);
	return answer->result;
}

/* A line for a user decides alone, also against a group of his; a line for a number is a user's or a group's, not both.
 */
static void test_ceilings(void **state)
{
	gid_t high = HIGH_GID, plain = 1, user_line = 22347;
	const struct gp_config *have = &world.daemon.config;

	(void)state;
	assert_int_equal(gp_access_ceiling(have, &(struct gp_peer){ .identity.rights = GP_RIGHT_NICE }),
			 GP_PRIORITY_MAX);
	assert_int_equal(gp_access_ceiling(have, &(struct gp_peer){ .uid = 0 }), 40);
	assert_int_equal(gp_access_ceiling(have, &(struct gp_peer){ .uid = HIGH_UID }), 60);
	assert_int_equal(gp_access_ceiling(have, &(struct gp_peer){ .uid = PLAIN_UID }), 40);
	assert_int_equal(
		gp_access_ceiling(have, &(struct gp_peer){ .uid = PLAIN_UID, .groups = &plain, .group_count = 1 }), 40);
	assert_int_equal(
		gp_access_ceiling(have, &(struct gp_peer){ .uid = MEMBER_UID, .groups = &high, .group_count = 1 }), 80);
	assert_int_equal(
		gp_access_ceiling(have, &(struct gp_peer){ .uid = LOW_UID, .groups = &high, .group_count = 1 }), 20);
	assert_int_equal(
		gp_access_ceiling(have, &(struct gp_peer){ .uid = PLAIN_UID, .groups = &user_line, .group_count = 1 }),
		40);
	assert_int_equal(gp_access_ceiling(have, &(struct gp_peer){ .uid = HIGH_GID }), 40);
	assert_false(gp_access_may_raise(have, &(struct gp_peer){ .uid = LOW_UID }));
	assert_true(gp_access_may_raise(have, &(struct gp_peer){ .uid = HIGH_UID }));
}

/* What a message names: the line that decides, and groups that would help. */
static void test_ceiling_names(void **state)
{
	gid_t high = HIGH_GID;
	const struct gp_config *have = &world.daemon.config;
	struct gp_peer plain = { .uid = PLAIN_UID }, low = { .uid = LOW_UID };
	struct gp_peer member = { .uid = MEMBER_UID, .groups = &high, .group_count = 1 };
	char text[64], want[64], cut[4];

	(void)state;
	assert_string_equal(gp_access_ceiling_name(have, &plain), "default");
	(void)snprintf(want, sizeof(want), "user.%u", LOW_UID);
	assert_string_equal(gp_access_ceiling_name(have, &low), want);
	(void)snprintf(want, sizeof(want), "group.%u", HIGH_GID);
	assert_string_equal(gp_access_ceiling_name(have, &member), want);
	gp_access_groups_above(have, &plain, text, sizeof(text));
	(void)snprintf(want, sizeof(want), "group.%u = 80", HIGH_GID);
	assert_string_equal(text, want);
	/* A line for the user decides alone; a member has it already; what does not fit is left out. */
	gp_access_groups_above(have, &low, text, sizeof(text));
	assert_string_equal(text, "");
	gp_access_groups_above(have, &member, text, sizeof(text));
	assert_string_equal(text, "");
	gp_access_groups_above(have, &plain, cut, sizeof(cut));
	assert_string_equal(cut, "");
}

/* Only members of the group see everybody's processes, and nobody does where there is no such group. */
static void test_see_all_group(void **state)
{
	gid_t group = HIGH_GID, other = HIGH_GID + 1;
	struct gp_peer member = { .uid = MEMBER_UID, .groups = &group, .group_count = 1 };
	struct gp_peer stranger = { .uid = PLAIN_UID, .groups = &other, .group_count = 1 };

	(void)state;
	world.daemon.config.see_gid = -1;
	assert_false(gp_access_sees_all(&world.daemon, &member));
	world.daemon.config.see_gid = HIGH_GID;
	assert_true(gp_access_sees_all(&world.daemon, &member));
	assert_false(gp_access_sees_all(&world.daemon, &stranger));
	assert_false(gp_access_sees_all(&world.daemon, &(struct gp_peer){ .uid = 0 }));
	assert_true(
		gp_access_sees_all(&world.daemon, &(struct gp_peer){ .uid = 1, .identity.rights = GP_RIGHT_ADMIN }));
}

/* What a HELLO wants, and what a queue of the process wants of its own, are cut to what its user may. */
static void test_hello(void **state)
{
	const struct gp_wire_attr all = { .valid = GP_ATTR_PRIORITY | GP_ATTR_WEIGHT | GP_ATTR_DEADLINE,
					  .priority = 99,
					  .weight = 5000,
					  .deadline_ns = 1000 };
	static const struct {
		uid_t uid;
		gid_t gid;
		int32_t priority;
		bool may_raise;
	} users[] = { { HIGH_UID, HIGH_UID, 60, true },
		      { LOW_UID, HIGH_GID, 20, false },
		      { PLAIN_UID, PLAIN_UID, 40, false },
		      { MEMBER_UID, HIGH_GID, 80, true } };
	struct agent agent;

	(void)state;
	if (getuid())
		skip();
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		struct gp_wire_queue queue = {
			.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
			.generation = 1,
			.flags = GP_QUEUE_SEEN,
			.gpu_id = WORLD_GPU,
			.attr = all,
		};
		const struct gp_queue_entry *added;

		agent_connect_as(&agent, users[i].uid, users[i].gid, &all);
		assert_int_equal(agent.attr.priority, users[i].priority);
		assert_int_equal(agent.attr.weight, users[i].may_raise ? 5000 : GP_WEIGHT_DEFAULT);
		assert_int_equal(agent.attr.deadline_ns, users[i].may_raise ? 1000 : 0);
		world_send(agent.fd, &queue, sizeof(queue));
		agent_work(&world, &agent);
		added = world_queue(&world, &agent, 0);
		assert_int_equal(added->attr.priority, users[i].priority);
		assert_int_equal(added->attr.weight, users[i].may_raise ? 5000 : GP_WEIGHT_DEFAULT);
		queue.header.type = GP_WIRE_QUEUE_CHANGE;
		world_send(agent.fd, &queue, sizeof(queue));
		agent_work(&world, &agent);
		assert_int_equal(added->attr.priority, users[i].priority);
		agent_leave(&world, &agent);
	}
}

/* SET above his ceiling is refused to a user, in words, for the process and for one queue; nothing has changed. */
static void test_set(void **state)
{
	struct gp_control_request set = world_request(GP_CONTROL_SET);
	const struct gp_queue_entry *queue;
	struct agent agent;
	char text[512];

	(void)state;
	if (getuid())
		skip();
	agent_connect_as(&agent, HIGH_UID, HIGH_UID,
			 &(struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 30 });
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	queue = world_queue(&world, &agent, 0);
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 61 };
	assert_int_equal(ask_as(HIGH_UID, &set, text, sizeof(text)), -EPERM);
	assert_non_null(strstr(text, "ceiling of 60"));
	set.queue_id = 0;
	assert_int_equal(ask_as(HIGH_UID, &set, text, sizeof(text)), -EPERM);
	assert_int_equal(queue->attr.priority, 30);
	assert_int_equal(queue->client->ceiling, 60);
	set.attr.priority = 60;
	assert_int_equal(ask_as(HIGH_UID, &set, text, sizeof(text)), 0);
	assert_int_equal(queue->attr.priority, 60);
	agent_leave(&world, &agent);
}

/* A number means a process of the asker's own PID namespace: from another one nobody outside can be named by it. */
static void test_namespaces(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_control_answer *answer = (const void *)buffer;
	struct gp_control_request set = world_request(GP_CONTROL_SET);
	struct agent agent;
	int status, fd;
	pid_t child;

	(void)state;
	if (getuid())
		skip();
	agent_connect(&world, &agent, 50);
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 7 };
	child = fork();
	if (!child) {
		alarm(60);
		/* Only a child of ours is in the new namespace. */
		if (unshare(CLONE_NEWPID))
			_exit(2);
		child = fork();
		if (child) {
			waitpid(child, &status, 0);
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
		}
		fd = world_connect(&world);
		if (send(fd, &set, sizeof(set), 0) < 0 ||
		    recv(fd, buffer, sizeof(buffer), 0) < (ssize_t)sizeof(*answer))
			_exit(4);
		_exit(answer->result == -ESRCH ? 0 : 5);
	}
	while (!waitpid(child, &status, WNOHANG))
		world_wait(&world, 0);
	assert_int_equal(status, 0);
	assert_int_equal(world_queue(&world, &agent, 0)->attr.priority, 50);
	agent_leave(&world, &agent);
}

/* A driver that lists this process, with three queues. */
static int list_processes(pid_t *pids, uint32_t max)
{
	assert_true(max > 0);
	pids[0] = getpid();
	return 1;
}

static int list_queues(pid_t pid, struct gp_device_queue *queues, uint32_t max)
{
	assert_true(pid == getpid() && max >= 3);
	memset(queues, 0, 3 * sizeof(*queues));
	return 3;
}

/* A user hears of his own processes only. */
static void test_summary(void **state)
{
	struct gp_control_request summary = world_request(GP_CONTROL_SUMMARY);
	static struct gp_backend_ops ops; /* until the daemon ends */
	char text[512];

	(void)state;
	if (getuid())
		skip();
	ops = *world.daemon.drivers[0].ops;
	ops.processes = list_processes;
	ops.process_queues = list_queues;
	world.daemon.drivers[0].ops = &ops;
	assert_int_equal(ask_as(PLAIN_UID, &summary, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\"opened_gpu\":false,\"queues\":0"));
	assert_int_equal(ask_as(0, &summary, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\"opened_gpu\":true,\"queues\":3"));
}

/* Neither a stream of events nor the past tells a user of other people's queues. */
static void test_events(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX + 1];
	struct gp_control_request events = world_request(GP_CONTROL_EVENTS);
	int fds[2];
	size_t sizes[2] = { 0 }, got;
	struct agent agent;

	(void)state;
	if (getuid())
		skip();
	agent_connect_as(&agent, HIGH_UID, HIGH_UID, &(struct gp_wire_attr){ 0 });
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	for (int past = 0; past < 2; past++) {
		events.flags = past ? GP_CONTROL_EVENTS_PAST : 0;
		for (int i = 0; i < 2; i++) {
			fds[i] = connect_as(i ? HIGH_UID : PLAIN_UID, 1);
			world_send(fds[i], &events, sizeof(events));
			sizes[i] = 0;
		}
		world_step(&world);
		agent_doorbell(&world, &agent, 0, past ? 2 : 1);
		agent_complete(&world, &agent, 0, past ? 2 : 1);
		for (int i = 0; i < 2; i++) {
			while ((got = world_receive(fds[i], buffer, sizeof(buffer) - 1)))
				sizes[i] += got - sizeof(struct gp_control_answer);
			close(fds[i]);
		}
		assert_int_equal(sizes[0], 0);
		assert_true(sizes[1] > 0);
		world_step(&world);
	}
	agent_leave(&world, &agent);
}

/* Events of a queue that has gone are not told as those of the queue that has its place in the core now. */
static void test_past_of_a_place(void **state)
{
	struct gp_control_request past = world_request(GP_CONTROL_EVENTS);
	struct agent first, second;
	uint32_t place;
	char text[8192];

	(void)state;
	if (getuid())
		skip();
	agent_connect_as(&first, HIGH_UID, HIGH_UID, &(struct gp_wire_attr){ 0 });
	agent_add_queue(&world, &first, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &first, 0, 1);
	place = world_queue(&world, &first, 0)->core.index;
	agent_leave(&world, &first);
	agent_connect_as(&second, PLAIN_UID, PLAIN_UID, &(struct gp_wire_attr){ 0 });
	agent_add_queue(&world, &second, 0, GP_QUEUE_SEEN);
	assert_int_equal(world_queue(&world, &second, 0)->core.index, place);
	past.flags = GP_CONTROL_EVENTS_PAST;
	assert_int_equal(ask_as(PLAIN_UID, &past, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\"pid\""));
	assert_null(strstr(text, "\"event\":\"busy\""));
	agent_leave(&world, &second);
}

static int begin_few(void **state)
{
	(void)state;
	world_begin(&world, "[daemon]\nclients_max = 1\nconnections_per_user = 3\n");
	return chmod(world.folder, 0755);
}

static bool is_let_in(int fd)
{
	world_step(&world);
	return !world_is_closed(fd);
}

/* Connections: so many for each user, something for everybody, and some that only root can have. */
static void test_connections(void **state)
{
	int fds[512];
	uint32_t count = 0, before;

	(void)state;
	if (getuid())
		skip();
	for (int i = 0; i < 3; i++) {
		fds[count] = connect_as(HIGH_UID, HIGH_UID);
		assert_true(is_let_in(fds[count++]));
	}
	fds[count] = connect_as(HIGH_UID, HIGH_UID);
	assert_false(is_let_in(fds[count++]));
	fds[count] = connect_as(PLAIN_UID, PLAIN_UID);
	assert_true(is_let_in(fds[count++]));
	/* As many users as it takes until nobody is let in any more. */
	do {
		before = world.daemon.peer_count;
		for (int i = 0; i < 3; i++, count++) {
			fds[count] = connect_as(30000 + count, 1);
			world_step(&world);
		}
	} while (world.daemon.peer_count > before && count < 400);
	assert_true(world.daemon.peer_count >= 60);
	for (int i = 0; i < 32; i++, count++) { /* a quarter of a small table */
		fds[count] = connect_as(0, 0);
		assert_true(is_let_in(fds[count]));
	}
	while (count)
		close(fds[--count]);
	world_step(&world);
	assert_int_equal(world.daemon.peer_count, 0);
}

/* A user whose processes take long to identify has a part of the places for such connections. Other users and root are
 * let in meanwhile. */
static void test_slow_newcomers(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const uid_t others[] = { PLAIN_UID, 0 };
	uint32_t count = 0;
	int fds[300];

	(void)state;
	if (getuid())
		skip();
	__atomic_store_n(&is_slow, true, __ATOMIC_SEQ_CST);
	while (count < 300) {
		fds[count++] = connect_as(LOW_UID, LOW_UID);
		world_wait(&world, 1);
	}
	assert_in_range(world.daemon.listen.asked_count, 32, 128);
	for (int i = 0; i < 2; i++) {
		int fd = connect_as(others[i], others[i]);
		ssize_t got = -1;

		world_send(fd, &ping, sizeof(ping));
		for (int k = 0; k < 5000 && got < 0; k++) {
			world_wait(&world, 1);
			got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		}
		assert_true(got > 0);
		assert_int_equal(((const struct gp_wire_header *)(const void *)buffer)->type, GP_WIRE_CONTROL);
		close(fd);
	}
	__atomic_store_n(&is_slow, false, __ATOMIC_SEQ_CST);
	while (count)
		close(fds[--count]);
	world_step(&world);
	assert_int_equal(world.daemon.listen.asked_count, 0);
	assert_int_equal(world.daemon.peer_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ceilings, begin, end),
		cmocka_unit_test_setup_teardown(test_ceiling_names, begin, end),
		cmocka_unit_test_setup_teardown(test_see_all_group, begin, end),
		cmocka_unit_test_setup_teardown(test_hello, begin, end),
		cmocka_unit_test_setup_teardown(test_set, begin, end),
		cmocka_unit_test_setup_teardown(test_namespaces, begin, end),
		cmocka_unit_test_setup_teardown(test_summary, begin, end),
		cmocka_unit_test_setup_teardown(test_events, begin, end),
		cmocka_unit_test_setup_teardown(test_past_of_a_place, begin, end),
		cmocka_unit_test_setup_teardown(test_connections, begin_few, end),
		cmocka_unit_test_setup_teardown(test_slow_newcomers, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
