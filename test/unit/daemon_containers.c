/* SPDX-License-Identifier: MIT */
/* Rights are capabilities in the daemon's user namespace. Each test is a process in the shape of a container: uid 0
 * with few capabilities, uid 0 of a user namespace, any uid in a PID namespace; and those that look like it and have
 * the right. They connect, ask, and end; what they were answered is their exit status. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/cgroup.h"
#include "daemon/sandbox.h"
#include "test/unit/daemon_world.h"

#define USER    12345u
#define LOW     12347u
#define ALL     UINT64_MAX
#define SUBUID  100005u /* of USER's range */
#define DEEP    40      /* more ancestors than the daemon looks at */
#define FAILED  250     /* exit status: the shape cannot be made here */
#define NICE    (1ull << 23)
#define ADMIN   (1ull << 21)
#define DEFAULT 0x800405fbull /* what podman 4.3 leaves a container's root */

static struct world world;
static char subuid_path[64];

static int begin(void **state)
{
	FILE *stream;

	(void)state;
	if (getuid())
		return 0;
	snprintf(subuid_path, sizeof(subuid_path), "/tmp/gpreempt-subuid-%d", getpid());
	stream = fopen(subuid_path, "we");
	if (!stream || fprintf(stream, "%u:100000:65536\n", USER) < 0 || fclose(stream))
		return -1;
	gp_subuid_path = subuid_path;
	world_begin(&world, "[ceiling]\ndefault = 40\nuser.12345 = 60\nuser.12347 = 20\ngroup.22345 = 80\n");
	return chmod(world.folder, 0755);
}

static int end(void **state)
{
	(void)state;
	if (getuid())
		return 0;
	world_end(&world);
	return unlink(subuid_path);
}

struct shape {
	uid_t uid;
	int unshare;
	uint64_t capabilities; /* at most; effective and permitted */
	bool ambient;          /* and handed on to programs */
	bool is_group;         /* member of 22345 */
	bool is_sandbox;       /* a program that is set-user-ID root makes the namespaces for that user */
	uid_t by;              /* … for this one, whose process then takes uid; 0: for uid */
	int depth;             /* so many processes more between the namespace's first and it */
};

static int set_capabilities(uint64_t wanted, bool ambient)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	for (int i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(wanted >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = ambient ? data[i].permitted : 0;
	}
	if (syscall(SYS_capset, &header, data))
		return -1;
	for (unsigned int i = 0; ambient && i < 40; i++)
		if (wanted >> i & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0))
			return -1;
	return 0;
}

static void write_map(const char *path, const char *map)
{
	FILE *stream = fopen(path, "we");

	if (!stream || fputs(map, stream) < 0 || fclose(stream))
		_exit(FAILED);
}

static void take_shape(const struct shape *shape)
{
	gid_t group = shape->is_group ? 22345 : 1;
	pid_t child;
	int status;

	if (setgroups(1, &group) || (shape->is_sandbox && setresuid(shape->by ? shape->by : shape->uid, 0, 0)) ||
	    (shape->unshare && unshare(shape->unshare)))
		_exit(FAILED);
	if (shape->unshare & CLONE_NEWUSER) {
		write_map("/proc/self/setgroups", "deny");
		write_map("/proc/self/uid_map", "0 0 1\n");
	}
	for (int i = shape->unshare & CLONE_NEWPID ? -1 : 0; i < shape->depth; i++) {
		child = fork(); /* only a child is in the new namespace */
		if (child) {
			waitpid(child, &status, 0);
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : FAILED);
		}
	}
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || (shape->uid && setresuid(shape->uid, shape->uid, shape->uid)) ||
	    set_capabilities(shape->capabilities, shape->ambient))
		_exit(FAILED);
}

static int ask(const void *request, size_t size, char *text, size_t text_size)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_control_answer *answer = (const void *)buffer;
	int fd = world_connect(&world);
	ssize_t got;

	do {
		if (send(fd, request, size, 0) < 0)
			_exit(FAILED);
		got = recv(fd, buffer, sizeof(buffer), 0);
	} while (got > 0 && answer->more);
	if (got < (ssize_t)sizeof(*answer))
		_exit(FAILED);
	snprintf(text, text_size, "%.*s", (int)((size_t)got - sizeof(*answer)), answer->text);
	close(fd);
	return -answer->result;
}

/* What such a process is answered: 0 or an errno. -1: there is no such process here. */
static int as(const struct shape *shape, int (*act)(const struct shape *shape))
{
	pid_t child = fork();
	int status;

	if (!child) {
		alarm(60);
		take_shape(shape);
		_exit(act(shape));
	}
	while (!waitpid(child, &status, WNOHANG))
		world_wait(&world, 1);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == FAILED ? -1 : WEXITSTATUS(status);
}

static int pause_all(const struct shape *shape)
{
	struct gp_control_request request = world_request(GP_CONTROL_PAUSE);
	char text[256];

	(void)shape;
	return ask(&request, sizeof(request), text, sizeof(text));
}

static int reload(const struct shape *shape)
{
	struct gp_control_request request = world_request(GP_CONTROL_RELOAD);
	char text[256];

	(void)shape;
	return ask(&request, sizeof(request), text, sizeof(text));
}

/* The ceiling it would have, as its exit status. */
static int ceiling(const struct shape *shape)
{
	struct gp_control_request request = world_request(GP_CONTROL_PING);
	char text[256], *at;

	(void)shape;
	if (ask(&request, sizeof(request), text, sizeof(text)))
		return FAILED;
	at = strstr(text, "\"ceiling\":");
	return at ? atoi(at + 10) : FAILED;
}

/* How many clients it sees by name. */
static int sees(const struct shape *shape)
{
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	static char text[GP_WIRE_SIZE_MAX];
	int count = 0;

	(void)shape;
	if (ask(&request, sizeof(request), text, sizeof(text)))
		return FAILED;
	for (const char *at = text; (at = strstr(at, "\"name\":\"fake\"")); at++)
		count++;
	return count;
}

/* Lowers the client of this test's own process. */
static int lower(const struct shape *shape)
{
	struct gp_control_request request = world_request(GP_CONTROL_SET);
	char text[4096];

	(void)shape;
	request.pid = getppid();
	request.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 3 };
	return ask(&request, sizeof(request), text, sizeof(text));
}

static const struct shape root = { .capabilities = ALL };
static const struct shape container = { .unshare = CLONE_NEWPID, .capabilities = DEFAULT };
static const struct shape rootless = { .unshare = CLONE_NEWUSER | CLONE_NEWPID, .capabilities = ALL };
static const struct shape privileged = { .unshare = CLONE_NEWPID, .capabilities = ALL };
static const struct shape sandbox = { .uid = USER, .unshare = CLONE_NEWPID, .is_sandbox = true };
static const struct shape same = { .uid = USER, .unshare = CLONE_NEWPID }; /* in a container of root's */
static const struct shape weak = { .capabilities = DEFAULT };

static void test_pause(void **state)
{
	static const struct {
		struct shape shape;
		int result;
	} cases[] = {
		{ { .capabilities = ALL }, 0 },
		{ { .capabilities = ADMIN }, 0 },
		{ { .capabilities = ~ADMIN }, EPERM },
		{ { .capabilities = DEFAULT }, EPERM },
		{ { .unshare = CLONE_NEWPID, .capabilities = DEFAULT }, EPERM },
		{ { .unshare = CLONE_NEWPID, .capabilities = ALL }, 0 },
		{ { .unshare = CLONE_NEWUSER, .capabilities = ALL }, EPERM },
		{ { .unshare = CLONE_NEWUSER | CLONE_NEWPID, .capabilities = ALL }, EPERM },
		{ { .uid = USER }, EPERM },
		/* As a program with capabilities in its file has them: the program's, not its caller's. */
		{ { .uid = USER, .capabilities = ADMIN }, EPERM },
		{ { .uid = USER, .capabilities = ADMIN, .ambient = true }, 0 },
		{ { .uid = USER, .capabilities = NICE, .ambient = true }, EPERM },
	};

	(void)state;
	if (getuid())
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = as(&cases[i].shape, pause_all);

		if (got != -1 && got != cases[i].result)
			fail_msg("case %zu: %d instead of %d", i, got, cases[i].result);
		got = as(&cases[i].shape, reload);
		if (got != -1 && got != cases[i].result)
			fail_msg("case %zu, reload: %d instead of %d", i, got, cases[i].result);
	}
}

static void test_ceiling(void **state)
{
	static const struct {
		struct shape shape;
		int ceiling;
	} cases[] = {
		{ { .capabilities = ALL }, 99 },
		{ { .capabilities = ~NICE }, 40 },
		{ { .unshare = CLONE_NEWPID, .capabilities = DEFAULT }, 40 },
		{ { .unshare = CLONE_NEWUSER, .capabilities = ALL }, 40 },
		{ { .uid = USER }, 60 },
		{ { .uid = USER, .capabilities = NICE }, 60 },
		{ { .uid = USER, .capabilities = NICE, .ambient = true }, 99 },
		{ { .uid = USER + 1, .is_group = true }, 80 },
		/* Who makes a container says which uid and which groups its processes have. */
		{ { .uid = USER, .unshare = CLONE_NEWPID }, 40 },
		{ { .uid = USER + 1, .unshare = CLONE_NEWPID, .is_group = true }, 40 },
		/* A user makes no container, and keeps the line that the administrator wrote for him. */
		{ { .uid = USER, .unshare = CLONE_NEWPID, .is_sandbox = true }, 60 },
		{ { .uid = LOW, .unshare = CLONE_NEWPID, .is_sandbox = true }, 20 },
		{ { .uid = LOW, .unshare = CLONE_NEWPID }, 40 },
	};

	(void)state;
	if (getuid())
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = as(&cases[i].shape, ceiling);

		if (got != -1 && got != cases[i].ceiling)
			fail_msg("case %zu: %d instead of %d", i, got, cases[i].ceiling);
	}
}

static void expect(const struct shape *shape, int (*act)(const struct shape *shape), int result)
{
	int got = as(shape, act);

	if (got != -1)
		assert_int_equal(got, result);
}

/* Root's programs are not those of a container's root, though the uid is the same; nor is a user's program one of who
 * has his uid in a container. */
static void test_other_clients(void **state)
{
	const struct shape user = { .uid = USER };
	struct agent agent;

	(void)state;
	if (getuid())
		skip();
	agent_connect(&world, &agent, 50);
	agent_add_queue(&world, &agent, 0, GP_QUEUE_SEEN);
	expect(&root, sees, 1);
	expect(&privileged, sees, 1);
	expect(&container, sees, 0);
	expect(&rootless, sees, 0);
	expect(&weak, sees, 0);
	expect(&weak, lower, ESRCH);
	assert_int_equal(world_queue(&world, &agent, 0)->attr.priority, 50);
	expect(&root, lower, 0);
	world_give(&world, world_queue(&world, &agent, 0)->client, USER);
	expect(&user, sees, 1);
	expect(&same, sees, 0);
	agent_leave(&world, &agent);
}

/* A container's root is nobody's account but the container's: what it takes and owes is not root's. */
static int stay(const struct shape *shape)
{
	char byte;
	int fd = world_connect(&world);

	(void)shape;
	return recv(fd, &byte, 1, 0) < 0; /* until we are told to go */
}

static pid_t begin_staying(const struct shape *shape)
{
	pid_t child = fork();

	if (!child) {
		alarm(60);
		take_shape(shape);
		_exit(stay(shape));
	}
	return child;
}

static void end_staying(pid_t *children, int count)
{
	while (world.daemon.peers)
		gp_peer_close(&world.daemon, world.daemon.peers, NULL);
	world_step(&world);
	for (int i = 0; i < count; i++)
		waitpid(children[i], NULL, 0);
}

/* However many sandboxes a user starts, they are his; and a container's processes with his uid are not. */
static void test_sandboxes(void **state)
{
	uint32_t users = 0, containers = 0;
	pid_t children[5];

	(void)state;
	if (getuid())
		skip();
	for (int i = 0; i < 5; i++)
		children[i] = begin_staying(i < 3 ? &sandbox : &same);
	while (world.daemon.peer_count < 5)
		world_wait(&world, 1);
	for (const struct gp_peer *peer = world.daemon.peers; peer; peer = peer->next) {
		users += peer->identity.account == USER;
		containers += gp_identity_is_container(peer->identity.account);
	}
	end_staying(children, 5);
	assert_int_equal(users, 3);
	assert_int_equal(containers, 2);
}

static uint64_t account_of(const struct shape *shape)
{
	uint64_t account;
	pid_t child = begin_staying(shape);

	while (!world.daemon.peer_count)
		world_wait(&world, 1);
	account = world.daemon.peers->identity.account;
	end_staying(&child, 1);
	return account;
}

/* A sandbox whose process has a uid of its user's range is his. In a container that uid is nobody's. */
static void test_subuid(void **state)
{
	const struct shape ours = { .uid = SUBUID, .unshare = CLONE_NEWPID, .is_sandbox = true, .by = USER };
	const struct shape other = { .uid = SUBUID, .unshare = CLONE_NEWPID };

	(void)state;
	if (getuid())
		skip();
	assert_int_equal(account_of(&ours), USER);
	assert_true(gp_identity_is_container(account_of(&other)));
}

/* All processes with very many ancestors are one account: in their namespaces, too. It is no work of the thread that
 * decides. */
static void test_deep(void **state)
{
	struct shape deep = sandbox, other = same;
	uint64_t account;

	(void)state;
	if (getuid())
		skip();
	deep.depth = DEEP;
	other.depth = DEEP;
	world.daemon.counters.away_work_max = 0;
	account = account_of(&deep);
	assert_int_equal(account_of(&other), account);
	assert_true(gp_identity_is_container(account));
	assert_true(world.daemon.counters.away_work_max <= 8 * GP_PORTION_PROC);
	assert_int_not_equal(account_of(&same), account);
}

/* What the daemon cannot look at, since it has no descriptor left, is not in another namespace because of that; nor is
 * a container's process one of the host's. */
static void test_not_known(void **state)
{
	struct rlimit limit, none;
	ino_t space = 7, own = gp_identity_own_pids();
	struct gp_process_identity identity;
	pid_t child;
	int last;

	(void)state;
	if (getuid())
		skip();
	child = begin_staying(&same);
	while (!world.daemon.peer_count)
		world_wait(&world, 1);
	assert_int_equal(gp_identity_outermost_pids(INT32_MAX, own, &space), -ENOENT);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	close(last = dup(0));
	none = (struct rlimit){ (rlim_t)last + 1, limit.rlim_max }; /* a pidfd is the last that opens */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(gp_identity_read(USER, child, world.daemon.peers->pidfd, 0, &identity), 0);
	last = dup(0);
	assert_int_equal(gp_identity_outermost_pids(getpid(), own, &space), -EMFILE);
	close(last);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	end_staying(&child, 1);
	assert_int_equal(space, 7);
	gp_identity_fini(&identity);
	assert_true(gp_identity_is_container(identity.account));
	assert_int_equal(gp_identity_outermost_pids(getpid(), own, &space), 0);
	assert_int_equal(space, 0);
}

/* By the text of /proc/PID/cgroup: version 1, both, version 2, a daemon in a cgroup namespace of its own. */
static void test_cgroups(void **state)
{
	static const struct {
		const char *text;
		bool is_session;
	} cases[] = {
		{ "0::/user.slice/user-1000.slice/session-3.scope\n", true },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-12.scope\n", true },
		{ "4:memory:/\n1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/\n", true },
		{ "4:memory:/user.slice/user-1000.slice\n0::/\n", true },
		{ "0::/../../user.slice/user-1000.slice/session-3.scope\n", true },
		{ "0::/system.slice/docker-0123.scope\n", false },
		{ "12:pids:/docker/0123\n1:name=systemd:/docker/0123\n0::/\n", false },
		{ "0::/machine.slice/libpod-0123.scope/container\n", false },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice/cri-containerd-2.scope\n",
		  false },
		{ "11:devices:/kubepods/besteffort/pod1/2\n", false },
		{ "0::/../../kubepods/pod1/2\n", false },
		{ "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", false },
		{ "8:freezer:/slurm/uid_1000/job_7/step_0\n", false },
		{ "0::/\n", false },
		{ "", false },
		/* A container may give the groups in it any name. */
		{ "0::/docker/0123/user.slice/user-1000.slice/session-3.scope\n", false },
		{ "0::/user.slicer/x\n", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char paths[GP_CGROUP_TEXT];

		gp_cgroup_parse(cases[i].text, paths, sizeof(paths));
		if (gp_sandbox_is_session(paths) != cases[i].is_session)
			fail_msg("%s", cases[i].text);
	}
}

static void test_account(void **state)
{
	const struct gp_peer *peer;
	pid_t children[2];

	(void)state;
	if (getuid())
		skip();
	for (int i = 0; i < 2; i++)
		children[i] = begin_staying(&container);
	while (world.daemon.peer_count < 2)
		world_wait(&world, 1);
	for (peer = world.daemon.peers; peer; peer = peer->next) {
		assert_false(gp_owner_is_root(peer->owner));
		assert_int_equal(peer->uid, 0);
		assert_true(gp_identity_is_container(peer->identity.account));
	}
	assert_ptr_not_equal(world.daemon.peers->owner, world.daemon.peers->next->owner);
	end_staying(children, 2);
}

/* A container that a user made for himself is his, whatever namespaces it has, and also if no ancestor is his any more.
 */
static void test_rootless(void **state)
{
	pid_t child;
	int status;

	(void)state;
	if (getuid())
		skip();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int is_orphan = 0; is_orphan < 2; is_orphan++) {
		child = fork();
		if (!child) {
			alarm(60);
			if (setgroups(0, NULL) || setresuid(USER, USER, USER) || prctl(PR_SET_DUMPABLE, 1) ||
			    unshare(CLONE_NEWUSER | CLONE_NEWPID))
				_exit(FAILED);
			child = fork();
			if (!child)
				_exit(stay(&rootless));
			_exit(!is_orphan && waitpid(child, &status, 0) < 0);
		}
		if (is_orphan)
			assert_int_equal(waitpid(child, &status, 0), child);
		while (!world.daemon.peer_count && waitpid(-1, &status, WNOHANG) <= 0)
			world_wait(&world, 1);
		if (!world.daemon.peer_count)
			skip(); /* users may make none here */
		assert_int_equal(world.daemon.peers->identity.account, USER);
		child = -1;
		end_staying(&child, 1);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void test_parse(void **state)
{
	static const char good[] = "Name:\tx\nUid:\t7\t7\t7\t7\nCapEff:\t0000000000a00000\nCapAmb:\t0000000000200000\n";
	static const char *const bad[] = {
		"",
		"\n",
		"Uid:\t7\t7\t7\t7\nCapEff:\tffffffffffffffff\nCapAmb:\tffffffffffffffff\n", /* the first line is a name
											     */
		"\nUid:\t7\t0\t0\t0\nCapEff:\tffffffffffffffff\nCapAmb:\tffffffffffffffff\n",
		"\nUid:\t7\t7\t7\nCapEff:\tffffffffffffffff\nCapAmb:\tffffffffffffffff\n",
		"\nUid:\t7\t7\t7\t7\nCapEff:\tffffffffffffffff\n",
		"\nUid:\t7\t7\t7\t7\nCapEff:\t\nCapAmb:\tffffffffffffffff\n",
		"\nUid:\t7\t7\t7\t7\nCapEff:\tffffffffffffffff",
	};

	(void)state;
	assert_int_equal(gp_rights_parse(good, 7), GP_RIGHT_ADMIN);
	assert_int_equal(gp_rights_parse(good, 8), 0);
	assert_int_equal(gp_rights_parse("\nUid:\t0\t0\t0\t0\nCapEff:\t0000000000a00000\nCapAmb:\t0\n", 0),
			 GP_RIGHT_ADMIN | GP_RIGHT_NICE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (gp_rights_parse(bad[i], 7))
			fail_msg("text %zu gives rights", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pause, begin, end),
		cmocka_unit_test_setup_teardown(test_ceiling, begin, end),
		cmocka_unit_test_setup_teardown(test_other_clients, begin, end),
		cmocka_unit_test_setup_teardown(test_account, begin, end),
		cmocka_unit_test_setup_teardown(test_sandboxes, begin, end),
		cmocka_unit_test_setup_teardown(test_subuid, begin, end),
		cmocka_unit_test_setup_teardown(test_deep, begin, end),
		cmocka_unit_test_setup_teardown(test_not_known, begin, end),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test_setup_teardown(test_rootless, begin, end),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
