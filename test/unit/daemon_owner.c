/* SPDX-License-Identifier: MIT */
/* Whose a process is: by uid, by the ranges of subuid(5), by the user namespace it lives in; how long an account is
 * remembered; and what one user may take of what all share. */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/subuid.h"
#include "test/unit/daemon_world.h"

#define SOMEONE 4001u
#define MINUTE  60000u /* ms */

static struct world world;
static char subuid_path[64], passwd_path[64];

static void write_file(const char *path, const char *text)
{
	FILE *stream = fopen(path, "we");

	assert_non_null(stream);
	assert_true(fputs(text, stream) >= 0);
	assert_int_equal(fclose(stream), 0);
}

static int begin(void **state)
{
	(void)state;
	snprintf(subuid_path, sizeof(subuid_path), "/tmp/gpreempt-subuid-%d", getpid());
	snprintf(passwd_path, sizeof(passwd_path), "/tmp/gpreempt-passwd-%d", getpid());
	write_file(subuid_path, "ann:100000:65536\nben:165536:65536\n4003:300000:10\nann:400000:1\nfar:500000:10\n"
				"far:600000:10\nroot:700000:10\n");
	write_file(passwd_path,
		   "root:x:0:0:root:/root:/bin/sh\nann:x:4001:4001::/home/ann:/bin/sh\nben:x:4002:4002::/:/\n");
	gp_subuid_path = subuid_path;
	gp_subuid_passwd_path = passwd_path;
	world_begin(&world, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	unlink(subuid_path);
	unlink(passwd_path);
	return 0;
}

/* Which account a uid is in, without a process. */
static uint32_t account(uid_t uid)
{
	struct gp_owner *owner = gp_owner_of_uid(&world.daemon, uid);
	uint32_t id = owner->id;

	gp_owner_put(owner);
	return id;
}

static void test_ranges(void **state)
{
	(void)state;
	assert_int_equal(account(100000), account(4001));
	assert_int_equal(account(165535), account(4001));
	assert_int_equal(account(400000), account(4001));
	assert_int_equal(account(165536), account(4002));
	assert_int_equal(account(300009), account(4003));
	assert_int_not_equal(account(300010), account(4003));
	assert_int_not_equal(account(4001), account(4002));
	assert_int_equal(account(4001), account(4001));
	/* Somebody whom /etc/passwd does not know is one user all the same. */
	assert_int_equal(account(500001), account(600009));
	assert_int_not_equal(account(500001), account(500010));
	/* A range of root's makes nobody root, and root is nobody else. */
	assert_int_not_equal(account(700000), account(0));
	assert_int_equal(account(700000), account(700009));
	assert_int_equal(account(0), 0);
}

static void test_changes(void **state)
{
	uint32_t ann = account(4001);

	(void)state;
	assert_int_equal(account(100001), ann);
	write_file(subuid_path, "ben:100000:65536\n");
	assert_int_equal(account(100001), account(4002));
	assert_int_equal(account(4001), ann);
	write_file(passwd_path, "ben:x:4009:4002::/:/\n");
	assert_int_equal(account(100001), account(4009));
	unlink(subuid_path);
	assert_int_not_equal(account(100001), account(4009));
}

static uint32_t parse(const char *text, size_t size, struct gp_subuid_range *ranges)
{
	static const char passwd[] = "\n:::\nann\nann:x\nann:x:nine:\nann:x:4001:4001\nann:x:4005:4005\nzero:x:0:0::\n";

	return gp_subuid_parse(text, size, passwd, sizeof(passwd) - 1, ranges, 8);
}

/* Nonsense is passed over, and nothing takes other people's uids along. */
static void test_hostile_file(void **state)
{
	static const char *const nonsense[] = { "",
						"\n\n",
						"::",
						":::",
						"ann",
						"ann:",
						"ann:1",
						"ann:100000",
						"ann:100000:",
						"ann::65536",
						":100000:65536",
						"ann:100000:0",
						"ann:-1:5",
						"ann: 100000:5",
						"ann:0:4294967295",
						"ann:1000:65536",
						"ann:65535:2",
						"ann:100000:4294967295",
						"ann:4294967295:1",
						"ann:99999999999:1",
						"ann:100000:1:1",
						"ann:0x20000:1" };
	struct gp_subuid_range ranges[8];
	char longer[600];

	(void)state;
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
		if (parse(nonsense[i], strlen(nonsense[i]), ranges))
			fail_msg("'%s' is a range", nonsense[i]);
	assert_int_equal(parse("an\0n:100000:5\n", 14, ranges), 0);
	memset(longer, 'a', sizeof(longer));
	memcpy(longer + sizeof(longer) - 9, ":100000:5", 9);
	assert_int_equal(parse(longer, sizeof(longer), ranges), 0);
	/* The last line needs no end; of a name the first line that makes sense counts. */
	assert_int_equal(parse("x\nann:100000:5", 14, ranges), 1);
	assert_true(ranges[0].is_user);
	assert_int_equal(ranges[0].uid, 4001);
	assert_int_equal(parse("zero:100000:5", 13, ranges), 1);
	assert_false(ranges[0].is_user);
	/* More than there is room for. */
	assert_int_equal(
		parse("a:70000:1\nb:70001:1\nc:70002:1\nd:70003:1\ne:70004:1\nf:70005:1\ng:70006:1\nh:70007:1\ni:70008:1\n",
		      90, ranges),
		8);
}

/* In a child: a process with that uid, in a user namespace that maker made; it waits until it is killed. */
static pid_t in_namespace(uid_t maker, uid_t uid)
{
	int ready[2], go[2];
	char path[64], map[64], byte = 'n';
	pid_t child;
	int fd;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (!child) {
		alarm(60);
		if (!setgroups(0, NULL) && !setresuid(maker, maker, maker) && !unshare(CLONE_NEWUSER))
			byte = 'y';
		if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1 || setresuid(0, 0, 0))
			_exit(1);
		if (write(ready[1], "y", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (byte == 'y') {
		snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
		snprintf(map, sizeof(map), "0 %u 1\n", uid);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		assert_int_equal(write(fd, map, strlen(map)), (ssize_t)strlen(map));
		close(fd);
		assert_int_equal(write(go[1], "x", 1), 1);
		assert_int_equal(read(ready[0], &byte, 1), 1);
	}
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	close(go[1]);
	if (byte == 'y')
		return child;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return -1;
}

static struct gp_owner *owner_of(uid_t uid, pid_t pid, int pidfd)
{
	struct gp_process_identity identity;

	assert_int_equal(gp_identity_read(uid, pid, pidfd, 0, &identity), 0);
	gp_identity_fini(&identity);
	return gp_owner_of(&world.daemon, identity.account, identity.uid);
}

static uint32_t account_of(pid_t child, uid_t uid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct gp_owner *owner;
	uint32_t id;

	assert_true(pidfd >= 0);
	owner = owner_of(uid, child, pidfd);
	id = owner->id;
	gp_owner_put(owner);
	close(pidfd);
	return id;
}

/* The same where the process that came has gone, and its number is that of the child by now: all those share one. */
static uint32_t account_of_gone(pid_t child, uid_t uid)
{
	pid_t gone = fork();
	struct gp_owner *owner;
	uint32_t id;
	int pidfd;

	if (!gone)
		_exit(0);
	pidfd = (int)syscall(SYS_pidfd_open, gone, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	owner = owner_of(uid, child, pidfd);
	id = owner->id;
	gp_owner_put(owner);
	close(pidfd);
	return id;
}

/* A uid that no file knows, in a namespace of a user's making, is his; in one of root's making it is a container's,
 * which is an account by itself. */
static void test_namespaces(void **state)
{
	pid_t children[3];
	uint32_t gone;

	(void)state;
	if (getuid())
		skip();
	children[0] = in_namespace(SOMEONE, 900000);
	children[1] = in_namespace(0, 900000);
	children[2] = in_namespace(0, 900000);
	if (children[0] < 0)
		skip(); /* users may make none here */
	assert_int_equal(account_of(children[0], 900000), account(SOMEONE));
	assert_int_not_equal(account_of(children[1], 900000), account(SOMEONE));
	assert_int_not_equal(account_of(children[1], 900000), account(0));
	assert_int_not_equal(account_of(children[1], 900000), account_of(children[2], 900000));
	assert_int_equal(account_of(children[1], 900000), account_of(children[1], 900001));
	gone = account_of_gone(children[0], 900000);
	assert_int_not_equal(gone, account(SOMEONE));
	assert_int_not_equal(gone, account(900000));
	assert_int_equal(account_of_gone(children[1], 900001), gone);
	for (int i = 0; i < 3; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

/* So many minutes later a hundred others come. */
static void later(uint32_t minutes)
{
	static uid_t next = 10000;

	world_wait(&world, minutes * MINUTE);
	for (int i = 0; i < 100; i++)
		account(next++);
}

/* Gone and back within ten minutes: the same account. What is held against him keeps it longer. */
static void test_remembered(void **state)
{
	uint32_t first = account(SOMEONE), debtor = account(SOMEONE + 1);
	struct gp_owner *owner = gp_owner_of_uid(&world.daemon, SOMEONE + 1);

	(void)state;
	gp_owner_keep(owner, gp_now_ns() + 30ull * MINUTE * 1000000);
	gp_owner_put(owner);
	later(9);
	assert_int_equal(account(SOMEONE), first);
	later(11);
	assert_int_not_equal(account(SOMEONE), first);
	assert_int_equal(account(SOMEONE + 1), debtor);
	later(20);
	assert_int_not_equal(account(SOMEONE + 1), debtor);
}

/* However many come: who is remembered stays so, and the rest share one account. */
static void test_crowd(void **state)
{
	uint32_t first = account(SOMEONE), crowd;

	(void)state;
	for (uid_t uid = 10000; uid < 10000 + 2 * GP_OWNER_MAX; uid++)
		account(uid);
	crowd = account(10000 + 2 * GP_OWNER_MAX);
	assert_int_equal(account(10000 + 3 * GP_OWNER_MAX), crowd);
	assert_int_not_equal(crowd, 0);
	assert_int_equal(account(SOMEONE), first);
	assert_int_equal(account(0), 0);
	world_wait(&world, 11 * MINUTE);
	assert_int_not_equal(account(10000 + 2 * GP_OWNER_MAX), crowd);
}

/* Users one after the other who take all they can: each finds something, and root finds what is kept for it. */
static void test_shares(void **state)
{
	struct gp_owner *user = gp_owner_of_uid(&world.daemon, SOMEONE), *root = gp_owner_of_uid(&world.daemon, 0);
	uint32_t used = 0, own, last = 4096;

	(void)state;
	for (int i = 0; i < 12; i++) {
		for (own = 0; gp_owner_may_take(user, 4096, 64, used, own); own++)
			used++;
		assert_in_range(own, 1, last / 2);
		last = own + 1;
	}
	assert_true(used <= 4096 - 64);
	for (own = 0; gp_owner_may_take(root, 4096, 64, used, own); own++)
		used++;
	assert_int_equal(used, 4096);
	assert_true(own >= 64);
	/* The smallest tables there are. */
	assert_true(gp_owner_may_take(user, 1, 0, 0, 0));
	assert_false(gp_owner_may_take(user, 1, 0, 1, 0));
	assert_false(gp_owner_may_take(user, 1, 64, 1, 1));
	gp_owner_put(user);
	gp_owner_put(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ranges, begin, end),
		cmocka_unit_test_setup_teardown(test_changes, begin, end),
		cmocka_unit_test_setup_teardown(test_hostile_file, begin, end),
		cmocka_unit_test_setup_teardown(test_namespaces, begin, end),
		cmocka_unit_test_setup_teardown(test_remembered, begin, end),
		cmocka_unit_test_setup_teardown(test_crowd, begin, end),
		cmocka_unit_test_setup_teardown(test_shares, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
