/* SPDX-License-Identifier: MIT */
/* Two daemons on one GPU: the second one leaves it alone, says whose it is, and takes over. The first one is a child of
 * this test that has the GPU's lock. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent urgent, batch;
static pid_t rival;
static char path[128];

/* What the first daemon does, as gpreemptd(8) has it; or a process that may only read the file. */
static void rival_start(bool reads)
{
	struct flock lock = { .l_type = reads ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET };
	int ready[2], fd;
	char byte;

	assert_int_equal(pipe(ready), 0);
	rival = fork();
	if (!rival) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = open(path, (reads ? O_RDONLY : O_RDWR) | O_CREAT, 0600);
		if (fd < 0 || fcntl(fd, F_SETLK, &lock) || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

static void rival_end(void)
{
	kill(rival, SIGKILL);
	assert_int_equal(waitpid(rival, NULL, 0), rival);
	world_wait(&world, 3000);
	world_step(&world);
}

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "[policy]\nmin_open = 1us\nlinger_max = 1us\nage_window = 1h\n");
	snprintf(world.daemon.devices[0].info.identity, GP_DEVICE_NAME_SIZE, "test-gpu");
	snprintf(path, sizeof(path), "%s/test-gpu.lock", world.folder);
	agent_connect(&world, &urgent, 80);
	agent_connect(&world, &batch, 20);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &batch, 0, GP_QUEUE_SEEN);
	return 0;
}

static int end(void **state)
{
	(void)state;
	agent_leave(&world, &urgent);
	agent_leave(&world, &batch);
	world_end(&world);
	return 0;
}

static void expect(uint32_t verb, uint32_t flags, int result, const char *part)
{
	struct gp_control_request request = world_request(verb);
	char *answer;
	int got;

	request.flags = flags;
	answer = world_ask(&world, &request, &got);
	assert_int_equal(got, result);
	if (!strstr(answer, part))
		fail_msg("no '%s' in %s", part, answer);
	free(answer);
}

/* Whether urgent work closes what is below it. */
static void expect_preempts(bool preempts)
{
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	for (int i = 0; i < 10; i++) {
		agent_work(&world, &batch);
		agent_work(&world, &urgent);
		world_wait(&world, 10);
	}
	assert_int_equal(batch.shut[0], preempts);
}

/* Whether another process finds the file locked by this one. */
static bool is_locked(const char *name)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pid_t other = fork();
	int status, fd;

	if (!other) {
		fd = open(name, O_RDWR);
		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) || lock.l_type != F_WRLCK || lock.l_pid != getppid());
	}
	assert_int_equal(waitpid(other, &status, 0), other);
	return !status;
}

/* With nobody else about the GPU is scheduled, and others find it locked; at the end the file goes. */
static void test_alone(void **state)
{
	(void)state;
	gp_claim_all(&world.daemon);
	assert_false(world.daemon.devices[0].stopped);
	assert_true(is_locked(path));
	expect_preempts(true);
	gp_claim_fini(&world.daemon);
	assert_int_equal(access(path, F_OK), -1);
}

/* status names the other one; nothing is closed, though somebody asks for it; when the other ends, everything is. */
static void test_second(void **state)
{
	char who[64];

	(void)state;
	rival_start(false);
	gp_claim_all(&world.daemon);
	snprintf(who, sizeof(who), "another gpreemptd (pid %d) schedules this GPU", (int)rival);
	expect(GP_CONTROL_STATUS, 0, 0, who);
	expect(GP_CONTROL_PAUSE, GP_CONTROL_PAUSE_END, -EBUSY, "left to another gpreemptd");
	world_wait(&world, 3000);
	expect(GP_CONTROL_STATUS, 0, 0, who);
	expect_preempts(false);
	rival_end();
	expect(GP_CONTROL_STATUS, 0, 0, "\"stopped\":false");
	expect_preempts(true);
}

/* Who pauses it by hand meanwhile finds it paused afterwards. Until then status names both reasons, and the daemon that
 * has the GPU now. */
static void test_paused(void **state)
{
	char who[64];

	(void)state;
	rival_start(false);
	gp_claim_all(&world.daemon);
	expect(GP_CONTROL_PAUSE, 0, 0, "");
	expect(GP_CONTROL_STATUS, 0, 0, "asked for by");
	snprintf(who, sizeof(who), "; another gpreemptd (pid %d) schedules this GPU", (int)rival);
	expect(GP_CONTROL_STATUS, 0, 0, who);
	kill(rival, SIGKILL);
	assert_int_equal(waitpid(rival, NULL, 0), rival);
	rival_start(false);
	world_wait(&world, 3000);
	snprintf(who, sizeof(who), "; another gpreemptd (pid %d) schedules this GPU", (int)rival);
	expect(GP_CONTROL_STATUS, 0, 0, who);
	rival_end();
	expect(GP_CONTROL_STATUS, 0, 0, "asked for by");
	expect(GP_CONTROL_PAUSE, GP_CONTROL_PAUSE_END, 0, "");
	expect_preempts(true);
}

/* A file that the one before left behind, or that cannot be had at all, keeps nobody from scheduling. */
static void test_no_file(void **state)
{
	(void)state;
	close(open(path, O_RDWR | O_CREAT, 0600));
	gp_claim_all(&world.daemon);
	assert_true(world.daemon.devices[0].claim.is_taken);
	gp_claim_fini(&world.daemon);
	gp_claim_folder = "/proc/there/is/none";
	gp_claim_all(&world.daemon);
	assert_false(world.daemon.devices[0].claim.is_taken);
	assert_false(world.daemon.devices[0].stopped);
	expect_preempts(true);
}

/* Somebody empties /run/gpreempt: a reload makes the locks anew, though the socket is still there; or removes it. */
static void test_removed(void **state)
{
	char socket_lock[128], command[128];
	struct gp_error error = { "" };

	(void)state;
	snprintf(socket_lock, sizeof(socket_lock), "%s.lock", world.daemon.config.socket);
	gp_claim_all(&world.daemon);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(socket_lock), 0);
	expect(GP_CONTROL_RELOAD, 0, 0, "");
	assert_true(is_locked(path));
	assert_true(is_locked(socket_lock));
	expect(GP_CONTROL_RELOAD, 0, 0, ""); /* which leaves them alone */
	assert_true(is_locked(path));
	assert_true(is_locked(socket_lock));
	expect_preempts(true);
	snprintf(command, sizeof(command), "rm -rf %s", world.folder);
	assert_int_equal(system(command), 0);
	gp_daemon_reload(&world.daemon, &error);
	assert_true(is_locked(path));
	assert_true(is_locked(socket_lock));
	expect(GP_CONTROL_STATUS, 0, 0, "\"stopped\":false");
}

/* And another daemon came before the reload: the GPU is that one's, and so is its file when this one ends. */
static void test_removed_and_taken(void **state)
{
	(void)state;
	gp_claim_all(&world.daemon);
	assert_int_equal(unlink(path), 0);
	rival_start(false);
	expect_preempts(true); /* nobody has told it */
	gp_claim_fini(&world.daemon);
	assert_int_equal(access(path, F_OK), 0);
	gp_claim_all(&world.daemon);
	assert_true(world.daemon.devices[0].stopped);
	rival_end();
	assert_false(world.daemon.devices[0].stopped);
	assert_int_equal(unlink(path), 0);
	rival_start(false);
	expect(GP_CONTROL_RELOAD, 0, 0, "");
	assert_true(world.daemon.devices[0].stopped);
	rival_end();
}

/* For a moment the daemon cannot look at its locks while it reloads. It must not give them up. */
static void test_blind(void **state)
{
	char socket_lock[128], moved[128];

	(void)state;
	snprintf(socket_lock, sizeof(socket_lock), "%s.lock", world.daemon.config.socket);
	snprintf(moved, sizeof(moved), "%s.moved", world.folder);
	gp_claim_all(&world.daemon);
	assert_int_equal(rename(world.folder, moved), 0);
	assert_int_equal(symlink(world.folder, world.folder), 0); /* leads to itself: nothing can be looked at */
	gp_claim_all(&world.daemon);
	gp_peer_restore(&world.daemon);
	assert_int_equal(unlink(world.folder), 0);
	assert_int_equal(rename(moved, world.folder), 0);
	assert_true(is_locked(path));
	assert_true(is_locked(socket_lock));
	expect(GP_CONTROL_RELOAD, 0, 0, "");
	assert_true(is_locked(path));
	assert_true(is_locked(socket_lock));
	gp_claim_fini(&world.daemon);
	assert_int_equal(access(path, F_OK), -1);
}

/* A process that may only read the file can lock it for reading. It keeps no daemon from the GPU. */
static void test_reader(void **state)
{
	(void)state;
	rival_start(true);
	gp_claim_all(&world.daemon);
	assert_false(world.daemon.devices[0].stopped);
	expect_preempts(true);
	rival_end();
}

/* The same for the lock of the socket, whichever lock that process takes: a daemon that starts serves its socket. */
static void test_reader_of_socket(void **state)
{
	struct gp_daemon *second = calloc(1, sizeof(*second));
	struct gp_error error = { "" };
	int fd;

	(void)state;
	assert_non_null(second);
	second->listen.fd = -1;
	second->loop.epoll_fd = world.daemon.loop.epoll_fd;
	snprintf(second->config.socket, sizeof(second->config.socket), "%s/t", world.folder);
	second->config.socket_mode = 0600;
	second->config.socket_gid = -1;
	snprintf(path, sizeof(path), "%s/t.lock", world.folder);
	rival_start(true);
	fd = open(path, O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	if (gp_peer_listen(second, &error))
		fail_msg("%s", error.text);
	gp_peer_unlisten(second);
	close(second->listen.spare_fd);
	close(second->listen.lock_fd);
	close(fd);
	free(second);
	rival_end();
}

/* If the daemon cannot look any more, the other one has not ended. */
static void test_error(void **state)
{
	const char *folder = gp_claim_folder;

	(void)state;
	rival_start(false);
	gp_claim_all(&world.daemon);
	gp_claim_folder = "/proc/there/is/none";
	world_wait(&world, 3000);
	assert_true(world.daemon.devices[0].stopped);
	expect_preempts(false);
	gp_claim_folder = folder;
	rival_end();
	expect_preempts(true);
}

/* The other daemon was killed, and a process that may only read has locked its file: the daemon takes the GPU over. */
static void test_reader_later(void **state)
{
	(void)state;
	rival_start(false);
	gp_claim_all(&world.daemon);
	kill(rival, SIGKILL);
	assert_int_equal(waitpid(rival, NULL, 0), rival);
	rival_start(true);
	world_wait(&world, 3000);
	world_step(&world);
	assert_false(world.daemon.devices[0].stopped);
	rival_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_alone, begin, end),
		cmocka_unit_test_setup_teardown(test_second, begin, end),
		cmocka_unit_test_setup_teardown(test_paused, begin, end),
		cmocka_unit_test_setup_teardown(test_removed, begin, end),
		cmocka_unit_test_setup_teardown(test_removed_and_taken, begin, end),
		cmocka_unit_test_setup_teardown(test_blind, begin, end),
		cmocka_unit_test_setup_teardown(test_reader, begin, end),
		cmocka_unit_test_setup_teardown(test_reader_later, begin, end),
		cmocka_unit_test_setup_teardown(test_reader_of_socket, begin, end),
		cmocka_unit_test_setup_teardown(test_error, begin, end),
		cmocka_unit_test_setup_teardown(test_no_file, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
