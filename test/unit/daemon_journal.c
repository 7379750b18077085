/* SPDX-License-Identifier: MIT */
/* What users cause is kept to a rate in the journal, for each user by himself; what was left out is counted. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

#define SECOND  1000000000ull
#define SOMEONE 54321u

static struct world world;

static uint32_t lines(uid_t uid, uint32_t count, uint64_t now_ns, uint64_t *ret_left_out)
{
	struct gp_owner *owner = gp_owner_of_uid(&world.daemon, uid);
	uint32_t written = 0;
	uint64_t left_out;

	*ret_left_out = 0;
	for (uint32_t i = 0; i < count; i++) {
		written += gp_journal_may(&world.daemon, owner, now_ns, &left_out);
		*ret_left_out += left_out;
	}
	gp_owner_put(owner);
	return written;
}

static void test_rate(void **state)
{
	uint64_t left_out;

	(void)state;
	assert_int_equal(lines(SOMEONE, 1000, SECOND, &left_out), 20);
	assert_int_equal(left_out, 0);
	/* Others and root do not feel it. */
	assert_int_equal(lines(SOMEONE + 1, 5, SECOND, &left_out), 5);
	assert_int_equal(lines(0, 1000, SECOND, &left_out), 1000);
	/* One a second, and the first says how many there were. */
	assert_int_equal(lines(SOMEONE, 10, 3 * SECOND, &left_out), 2);
	assert_int_equal(left_out, 980);
	assert_int_equal(lines(SOMEONE, 1000, 1000 * SECOND, &left_out), 20);
	assert_int_equal(left_out, 8);
	assert_int_equal(world.daemon.counters.lines_left_out, 980 + 8 + 980);
}

/* More users than anybody remembers, each within his own rate: the journal has a rate of its own. */
static void test_many_users(void **state)
{
	uint32_t written = 0;
	uint64_t left_out;

	(void)state;
	for (uid_t uid = 1; uid <= 400; uid++)
		written += lines(uid, 20, SECOND, &left_out);
	assert_int_equal(written, 200);
	assert_int_equal(world.daemon.counters.lines_left_out, 400 * 20 - 200);
	assert_int_equal(lines(SOMEONE, 30, 2 * SECOND, &left_out), 10);
	assert_int_equal(lines(0, 1000, 2 * SECOND, &left_out), 1000);
}

/* One user with all the uids of his range: one rate for all of them, and no way to be forgotten. */
static void test_range(void **state)
{
	uint32_t written = 0;
	uint64_t left_out;

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uid_t uid = 100000; uid < 100400; uid++)
			written += lines(uid, 20, SECOND, &left_out);
	assert_int_equal(written, 20);
	assert_int_equal(lines(SOMEONE, 30, SECOND, &left_out), 0);
}

/* What the journal gets from here on; heard() says it and ends that. */
struct listener {
	int pipes[2], saved;
};

static void listen_to(struct listener *listener)
{
	assert_int_equal(pipe2(listener->pipes, O_NONBLOCK), 0);
	fflush(stderr);
	listener->saved = dup(STDERR_FILENO);
	dup2(listener->pipes[1], STDERR_FILENO);
}

static void heard(struct listener *listener, char *ret_lines, size_t size)
{
	ssize_t got;

	fflush(stderr);
	dup2(listener->saved, STDERR_FILENO);
	got = read(listener->pipes[0], ret_lines, size - 1);
	ret_lines[got > 0 ? got : 0] = '\0';
	close(listener->saved);
	close(listener->pipes[0]);
	close(listener->pipes[1]);
}

/* What a name may hold that the journal would not show, or a terminal obey. */
static void test_names(void **state)
{
	struct listener listener;
	char line[128];

	(void)state;
	listen_to(&listener);
	gp_log("process 1 (%s)", "\xc3\xa9 \xff \xc2\x9b \xe2\x80\xae \n");
	heard(&listener, line, sizeof(line));
	assert_string_equal(line, "gpreemptd: process 1 (\xc3\xa9 ? ?? ??? ?)\n");
}

/* Commands that gave up and left before their answer came (a timeout, Ctrl-C) have done nothing wrong. One that stays
 * and does not read is named. */
static void test_gone(void **state)
{
	const uint32_t verbs[] = { GP_CONTROL_PING, GP_CONTROL_METRICS, GP_CONTROL_ACCOUNT };
	struct gp_control_grant grant = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_GRANT, sizeof(grant), 1 },
		.verb = GP_GRANT_LIST,
	};
	struct listener listener;
	char lines[512];
	int fd;

	(void)state;
	listen_to(&listener);
	for (uint32_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct gp_control_request request = world_request(verbs[i]);

		fd = world_connect(&world);
		world_send(fd, &request, sizeof(request));
		close(fd);
		world_step(&world);
	}
	fd = world_connect(&world);
	world_send(fd, &grant, sizeof(grant));
	close(fd);
	world_step(&world);
	heard(&listener, lines, sizeof(lines));
	assert_int_equal(world.daemon.counters.messages, sizeof(verbs) / sizeof(verbs[0]) + 1);
	assert_int_equal(world.daemon.peer_count, 0);
	assert_string_equal(lines, "");

	fd = world_connect(&world);
	world_step(&world);
	listen_to(&listener);
	gp_peer_unanswered(&world.daemon, world.daemon.peers, -ENOBUFS);
	heard(&listener, lines, sizeof(lines));
	assert_non_null(strstr(lines, "connection ended: it does not read its answers"));
	close(fd);
}

/* A user whose every connection ends with a line. */
static void test_flood(void **state)
{
	pid_t child;
	int status;

	(void)state;
	if (getuid())
		skip();
	assert_int_equal(chmod(world.folder, 0755), 0);
	child = fork();
	if (!child) {
		char byte = 0;

		alarm(30);
		if (setgroups(0, NULL) || setgid(SOMEONE) || setuid(SOMEONE))
			_exit(2);
		for (int i = 0; i < 200; i++) {
			int fd = world_connect(&world);

			world_send(fd, "nonsense", 8);
			while (recv(fd, &byte, 1, 0) > 0) {}
			close(fd);
		}
		_exit(0);
	}
	while (!waitpid(child, &status, WNOHANG))
		world_wait(&world, 0);
	assert_int_equal(status, 0);
	assert_int_equal(world.daemon.counters.messages_refused, 200);
	assert_true(world.daemon.counters.lines_left_out >= 100);
}

static int begin(void **state)
{
	(void)state;
	gp_subuid_path = "/nonexistent/subuid";
	world_begin(&world, NULL);
	return 0;
}

static int begin_range(void **state)
{
	static char path[] = "/tmp/gpreempt-subuid-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%u:100000:65536\n", SOMEONE) > 0);
	close(fd);
	gp_subuid_path = path;
	world_begin(&world, NULL);
	return 0;
}

static int end_range(void **state)
{
	(void)state;
	unlink(gp_subuid_path);
	world_end(&world);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rate, begin, end),
		cmocka_unit_test_setup_teardown(test_many_users, begin, end),
		cmocka_unit_test_setup_teardown(test_range, begin_range, end_range),
		cmocka_unit_test_setup_teardown(test_names, begin, end),
		cmocka_unit_test_setup_teardown(test_gone, begin, end),
		cmocka_unit_test_setup_teardown(test_flood, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
