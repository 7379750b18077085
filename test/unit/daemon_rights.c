/* SPDX-License-Identifier: MIT */
/* Descriptors that a peer sends along: nobody waits for the files behind them, and none is kept. The last of a file is
 * closed by who takes the packet, or closes the socket in which it lies unread, and a socket may linger there for an
 * hour. A daemon that waits fails these tests by never ending them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/closer.h"
#include "test/unit/daemon_world.h"

#define PASSRIGHTS 83 /* SO_PASSRIGHTS, Linux 6.16 */
#define LINGER_S   3600

#define USER       4001u
#define USER_WAITS 64u /* files of one user that wait for a thread */
#define USER_FILES 200

static struct world world;
static struct agent good, bad;
static sem_t go_on;
static bool holds; /* threads that are to end with a descriptor wait */

int unshare(int flags)
{
	while (__atomic_load_n(&holds, __ATOMIC_SEQ_CST) && sem_wait(&go_on)) {}
	return (int)syscall(SYS_unshare, flags);
}

/* Where the kernel can refuse descriptors it is told not to: as before 6.16. */
static int begin_old(void **state)
{
	(void)state;
	world_begin(&world, "[daemon]\nclients_max = 4\n");
	setsockopt(world.daemon.listen.fd, SOL_SOCKET, PASSRIGHTS, &(int){ 1 }, sizeof(int));
	world.daemon.listen.no_rights = false;
	agent_connect(&world, &good, 50);
	agent_connect(&world, &bad, 50);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "[daemon]\nclients_max = 4\n");
	agent_connect(&world, &good, 50);
	agent_connect(&world, &bad, 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_pair(&world, &good, &bad);
	return 0;
}

static ssize_t send_files(int to, const int *fds, size_t count)
{
	struct gp_wire_header synced = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED, sizeof(synced), 0 };
	struct iovec part = { &synced, sizeof(synced) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control = { .head = { CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	assert_true(count <= 4);
	memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	return sendmsg(to, &packet, MSG_NOSIGNAL);
}

/* A connection whose other end does not read: closing it takes an hour. The other end is left in ret_other. */
static int lingerer(int *ret_other)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	struct linger linger = { 1, LINGER_S };
	static const char junk[65536];
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* A larger buffer might yet take all that is sent. */
	assert_int_equal(setsockopt(door, SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int)), 0);
	assert_int_equal(bind(door, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(door, 1), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	*ret_other = accept(door, NULL, NULL);
	assert_true(*ret_other >= 0);
	close(door);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	while (send(fd, junk, sizeof(junk), MSG_DONTWAIT) > 0) {}
	return fd;
}

static void wait_closed(void)
{
	while (gp_close_pending())
		usleep(1000);
}

/* Sends the last reference of a socket that lingers: its sender is hung up on, and somebody else waits. */
static void expect_no_wait(void)
{
	int other, fd = lingerer(&other);

	assert_true(send_files(bad.fd, &fd, 1) > 0);
	close(fd);
	world_step(&world);
	assert_true(world_is_closed(bad.fd));
	assert_int_equal(gp_close_pending(), 1);
	close(other); /* resets it: over at once */
	wait_closed();
}

/* In a packet that the daemon would take. */
static void test_taken(void **state)
{
	(void)state;
	expect_no_wait();
}

/* The same behind a message that ends the connection: it lies unread. */
static void test_unread(void **state)
{
	static const char rubbish[64] = "rubbish";

	(void)state;
	world_send(bad.fd, rubbish, sizeof(rubbish));
	expect_no_wait();
}

/* Behind packets that are empty, which look like the end. */
static void test_behind_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(send(bad.fd, "", 0, 0), 0);
	expect_no_wait();
}

/* The same from those who are turned away before anything of theirs is read, more often than there are threads. */
static void test_turned_away(void **state)
{
	int other[40], fd, count = 0, before;

	(void)state;
	world.daemon.config.client_max = 0; /* with the places kept for commands: */
	world.daemon.peer_count += 1000;
	before = dup(0);
	close(before);
	for (int i = 0; i < 40; i++) {
		int peer = world_connect(&world);

		fd = lingerer(&other[i]);
		count += send_files(peer, &fd, 1) > 0;
		close(fd);
		world_step(&world);
		assert_true(world_is_closed(peer));
		close(peer);
	}
	assert_int_equal(count, 40);
	assert_int_equal(gp_close_pending(), 40);
	/* Who sends none does not wait behind them. */
	fd = world_connect(&world);
	world_step(&world);
	assert_true(world_is_closed(fd));
	close(fd);
	assert_int_equal(gp_close_pending(), 40);
	for (int i = 0; i < 40; i++)
		close(other[i]);
	wait_closed();
	fd = dup(0);
	assert_int_equal(fd, before);
	close(fd);
	world.daemon.peer_count -= 1000;
}

/* Where the sender leaves with an answer unread, the kernel reports that before the packet. */
static void test_reset(void **state)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	int other, peer = world_connect(&world), fd = lingerer(&other);

	(void)state;
	world_send(peer, &ping, sizeof(ping));
	world_step(&world);
	assert_true(send_files(peer, &fd, 1) > 0);
	close(fd);
	close(peer);
	world_step(&world);
	assert_int_equal(gp_close_pending(), 1);
	close(other);
	wait_closed();
}

/* Very many of them, and nobody closes them: then nobody is let in, until some are closed. Who is there goes on. */
static void test_many(void **state)
{
	int other[16], fd, peer;

	(void)state;
	__atomic_store_n(&holds, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 1024; i++) {
		peer = world_connect(&world);
		fd = i < 16 ? lingerer(&other[i]) : dup(0);
		assert_true(send_files(peer, &fd, 1) > 0);
		close(fd);
		world_step(&world);
		close(peer);
	}
	assert_int_equal(gp_close_pending(), 1024);
	peer = world_connect(&world);
	world_step(&world);
	assert_int_not_equal(world.daemon.listen.timer.at_ns, 0);
	assert_int_equal(world.daemon.peer_count, 2);
	__atomic_store_n(&holds, false, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 16; i++) {
		sem_post(&go_on);
		close(other[i]);
	}
	wait_closed();
	while (world.daemon.peer_count < 3)
		world_wait(&world, 10);
	close(peer);
	world_step(&world);
}

/* A process of that user sends so many sockets that linger, one a connection, and stays. The daemon looks at each only
 * when the sender has ended: what the daemon closes is the last reference, however slow the machine is. */
static pid_t begin_sending(uid_t uid, int count)
{
	int talk[2], go[2], other, fd, peer;
	char byte;
	pid_t child;

	assert_int_equal(chmod(world.folder, 0755), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, talk), 0);
	child = fork();
	if (!child) {
		alarm(60);
		close(talk[0]);
		assert_int_equal(setresuid(uid, uid, uid), 0);
		for (int i = 0; i < count; i++) {
			fd = lingerer(&other);
			peer = world_connect(&world);
			assert_int_equal(pipe(go), 0);
			if (!fork()) { /* its end lets nothing linger: only what it has sent does */
				close(go[1]);
				while (read(go[0], &byte, 1)) {} /* until it is the only one that has it */
				send_files(peer, &fd, 1);
				_exit(0);
			}
			close(fd);
			close(go[0]);
			close(go[1]);
			wait(NULL);
			assert_int_equal(write(talk[1], "sent", 1), 1);
			recv(peer, &byte, 1, 0); /* until the daemon hangs up */
			close(peer);
			assert_int_equal(write(talk[1], "over", 1), 1);
		}
		close(talk[1]);
		for (;;)
			pause();
	}
	close(talk[1]);
	while (read(talk[0], &byte, 1) == 1)
		while (recv(talk[0], &byte, 1, MSG_DONTWAIT) < 0)
			world_wait(&world, 1);
	close(talk[0]);
	return child;
}

/* The answer to PING of such a user; 0: refused. */
static size_t ping_as(uid_t uid)
{
	struct gp_control_request ping = world_request(GP_CONTROL_PING);
	_Alignas(8) char text[1024];
	int status;
	pid_t child = fork();

	if (!child) {
		int fd;

		alarm(60);
		assert_int_equal(setresuid(uid, uid, uid), 0);
		fd = world_connect(&world);
		send(fd, &ping, sizeof(ping), MSG_NOSIGNAL);
		_exit(recv(fd, text, sizeof(text), 0) > 0 && ((struct gp_wire_header *)text)->type != GP_WIRE_REFUSED);
	}
	while (!waitpid(child, &status, WNOHANG))
		world_wait(&world, 1);
	return WIFEXITED(status) ? (size_t)WEXITSTATUS(status) : 0;
}

/* Two users send far more of them than may wait: they are turned away, and nobody else is. No more wait than may,
 * though each of them would linger for an hour. */
static void test_two_users(void **state)
{
	pid_t children[2];

	(void)state;
	if (getuid())
		skip();
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t refused = world.daemon.counters.peers_refused;

		children[i] = begin_sending(USER + i, USER_FILES);
		assert_true(world.daemon.counters.peers_refused >= refused + USER_FILES - 2 * USER_WAITS);
	}
	while (gp_close_pending() > 2 * USER_WAITS)
		world_wait(&world, 1); /* hanging is the failure */
	assert_int_equal(ping_as(USER + 2), 1);
	assert_int_equal(ping_as(0), 1);
	for (uint32_t i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	wait_closed();
	assert_int_equal(ping_as(USER), 1);
}

/* None is kept, several in a packet or after others that bring none. */
static void test_none_kept(void **state)
{
	struct gp_wire_header synced = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED, sizeof(synced), 0 };
	int before, after, fds[4] = { 0, 1, 2, good.fd };

	(void)state;
	wait_closed();
	before = dup(0);
	close(before);
	world_send(bad.fd, &synced, sizeof(synced));
	world_step(&world);
	assert_false(world_is_closed(bad.fd));
	assert_true(send_files(bad.fd, fds, 4) > 0);
	world_step(&world);
	wait_closed();
	after = dup(0);
	close(after);
	/* Its socket, its process and its doorbell have gone too. */
	assert_true(after <= before);
	assert_true(world_is_closed(bad.fd));
}

/* Since Linux 6.16 they are not even sent. */
static void test_not_sent(void **state)
{
	int before = dup(0), after;

	(void)state;
	close(before);
	if (!world.daemon.listen.no_rights)
		skip();
	for (int i = 0; i < 100; i++) {
		assert_int_equal(send_files(bad.fd, &good.fd, 1), -1);
		world_step(&world);
	}
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
	assert_false(world_is_closed(bad.fd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_taken, begin_old, end),
		cmocka_unit_test_setup_teardown(test_unread, begin_old, end),
		cmocka_unit_test_setup_teardown(test_behind_nothing, begin_old, end),
		cmocka_unit_test_setup_teardown(test_turned_away, begin_old, end),
		cmocka_unit_test_setup_teardown(test_reset, begin_old, end),
		cmocka_unit_test_setup_teardown(test_many, begin_old, end),
		cmocka_unit_test_setup_teardown(test_two_users, begin_old, end),
		cmocka_unit_test_setup_teardown(test_none_kept, begin_old, end),
		cmocka_unit_test_setup_teardown(test_not_sent, begin, end),
	};

	sem_init(&go_on, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
