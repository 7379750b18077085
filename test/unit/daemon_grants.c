/* SPDX-License-Identifier: MIT */
/* What root says of programs: by rule, by grant, by set; which of them counts; what is kept over a restart, and what a
 * file may not make the daemon believe. The cgroup of this process is what the test says. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/cgroup.h"
#include "daemon/grant.h"
#include "test/unit/daemon_world.h"

static struct world world;
static const char *cgroup = "0::/";

size_t __real_gp_process_read_living(pid_t pid, const char *name, char *text, size_t size);
size_t __wrap_gp_process_read_living(pid_t pid, const char *name, char *text, size_t size);
size_t __wrap_gp_process_read_living(pid_t pid, const char *name, char *text, size_t size)
{
	if (strcmp(name, "cgroup"))
		return __real_gp_process_read_living(pid, name, text, size);
	snprintf(text, size, "%s\n", cgroup);
	return strlen(text);
}

static const char config[] = "[ceiling]\ndefault = 40\n"
			     "[cgroup]\n"
			     "/kube/pod* = priority 30, ceiling 60, tag %c, gang g-%c\n"
			     "/kube = priority 5, weight 7\n"
			     "a-b.slice = priority 70\n";

static int begin(void **state)
{
	(void)state;
	if (getuid())
		return 0;
	cgroup = "0::/";
	world_begin(&world, config);
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (!getuid())
		world_end(&world);
	return 0;
}

static struct gp_control_grant make(uint32_t verb, const char *path, pid_t pid, int32_t priority)
{
	struct gp_control_grant grant = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_GRANT, sizeof(grant), 77 },
		.verb = verb,
		.pid = pid,
		.ceiling = GP_GRANT_NO_CEILING,
		.attr = { .valid = priority < 0 ? 0 : GP_ATTR_PRIORITY, .priority = priority < 0 ? 0 : priority },
	};

	snprintf(grant.cgroup, sizeof(grant.cgroup), "%s", path);
	return grant;
}

static int ask(const struct gp_control_grant *grant, char *text, size_t size)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_control_answer *answer = (const void *)buffer;
	int fd = world_connect(&world);
	size_t got = 0;

	world_send(fd, grant, sizeof(*grant));
	for (int i = 0; i < 100 && !got; i++) {
		world_step(&world);
		got = world_receive(fd, buffer, sizeof(buffer));
	}
	assert_true(got >= sizeof(*answer));
	snprintf(text, size, "%.*s", (int)(got - sizeof(*answer)), answer->text);
	close(fd);
	world_step(&world);
	return answer->result;
}

static void expect(struct gp_control_grant grant, int result)
{
	char text[4096];

	assert_int_equal(ask(&grant, text, sizeof(text)), result);
}

static void add(const char *path, pid_t pid, int32_t priority)
{
	expect(make(GP_GRANT_ADD, path, pid, priority), 0);
}

/* As an ordinary user; priority < 0: it asks for nothing. Returns what it has. */
static struct gp_client *come(struct agent *agent, int32_t priority)
{
	struct gp_wire_hello hello = world_hello(priority < 0 ? 0 : priority);
	struct gp_client *client;

	hello.attr.valid = priority < 0 ? 0 : GP_ATTR_PRIORITY;
	agent_hello(&world, agent, &hello);
	agent_add_queue(&world, agent, 0, GP_QUEUE_SEEN);
	client = world_queue(&world, agent, 0)->client;
	world_give(&world, client, 12345);
	gp_client_refresh(&world.daemon, client);
	agent_work(&world, agent);
	return client;
}

static void test_paths(void **state)
{
	char paths[256], name[16], pattern[64];
	struct gp_error error;
	uint32_t depth;

	(void)state;
	gp_cgroup_parse("4:memory:/m:x/y\n1:name=systemd:/a/b\n0::/a/b\nnonsense\n3:cpu:/\n", paths, sizeof(paths));
	assert_string_equal(paths, "/a/b\n/m:x/y\n");
	assert_true(gp_cgroup_is_within(paths, "/a"));
	assert_true(gp_cgroup_is_within(paths, "/a/b"));
	assert_true(gp_cgroup_is_within(paths, "/m:x"));
	assert_false(gp_cgroup_is_within(paths, "/a/b/c"));
	assert_false(gp_cgroup_is_within(paths, "/a/bb"));
	assert_false(gp_cgroup_is_within(paths, "/b"));
	assert_false(gp_cgroup_is_within(paths, "/m"));
	assert_true(gp_cgroup_matches(paths, "/a/?", name, sizeof(name)));
	assert_string_equal(name, "b");
	assert_true(gp_cgroup_matches(paths, "/*:[xz]", name, sizeof(name)));
	assert_false(gp_cgroup_matches(paths, "/b*", name, sizeof(name)));
	assert_false(gp_cgroup_matches(paths, "/*/*/*", name, sizeof(name)));
	assert_false(gp_cgroup_matches(paths, "/a*b", name, sizeof(name))); /* a star ends where a part does */
	assert_true(gp_cgroup_matches("/0123456789abcdefXYZ/deep\n", "/*", name, sizeof(name)));
	assert_string_equal(name, "456789abcdefXYZ");
	assert_int_equal(gp_cgroup_pattern("a-b-c.slice", pattern, sizeof(pattern), &depth, &error), 0);
	assert_string_equal(pattern, "/a.slice/a-b.slice/a-b-c.slice");
	assert_int_equal(depth, 3);
	static const char *const bad[] = { "",  "x",  "a/b.slice", ".slice",  "-.slice",
					   "/", "//", "/a/",       "/a/../b", "/./a" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!gp_cgroup_pattern(bad[i], pattern, sizeof(pattern), &depth, &error))
			fail_msg("'%s' is a pattern", bad[i]);
}

/* The most parts last; %c is the cgroup's name; what a program asks for is cut to the rule's ceiling, not the user's.
 */
static void test_rules(void **state)
{
	struct agent agent;
	struct gp_client *client;

	(void)state;
	if (getuid())
		skip();
	client = come(&agent, -1);
	assert_int_equal(client->attr.priority, 40);
	agent_leave(&world, &agent);
	cgroup = "0::/kube/pod7/container";
	client = come(&agent, -1);
	assert_int_equal(client->attr.priority, 30);
	assert_int_equal(client->attr.weight, 7);
	assert_int_equal(client->ceiling, 60);
	assert_string_equal(client->terms.tag, "pod7");
	assert_string_equal(client->attr.gang, "g-pod7");
	agent_leave(&world, &agent);
	client = come(&agent, 90);
	assert_int_equal(client->attr.priority, 60);
	agent_leave(&world, &agent);
	client = come(&agent, 3);
	assert_int_equal(client->attr.priority, 3);
	agent_leave(&world, &agent);
	/* A priority without a ceiling can be had. */
	cgroup = "4:memory:/a.slice/a-b.slice";
	client = come(&agent, -1);
	assert_int_equal(client->attr.priority, 70);
	agent_leave(&world, &agent);
	/* A name of a user's own choice, deeper down, is not the slice. */
	cgroup = "0::/user.slice/a.slice/a-b.slice";
	client = come(&agent, -1);
	assert_int_equal(client->attr.priority, 40);
	agent_leave(&world, &agent);
}

/* A guaranteed share is for who may raise; a rule or a grant gives it to anybody; more than there is is not promised.
 */
static void test_shares(void **state)
{
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_SHARE, .share = 500 },
	};
	struct gp_control_grant grant = make(GP_GRANT_ADD, "/promised", 0, -1);
	struct agent agent, other;
	struct gp_client *client;

	(void)state;
	if (getuid())
		skip();
	client = come(&agent, -1);
	world_send(agent.fd, &attr, sizeof(attr));
	agent_work(&world, &agent);
	assert_int_equal(client->attr.share, 0);
	agent_leave(&world, &agent);
	cgroup = "0::/promised";
	grant.attr = (struct gp_wire_attr){ .valid = GP_ATTR_SHARE, .share = 400 };
	expect(grant, 0);
	client = come(&agent, -1);
	assert_int_equal(client->attr.share, 400);
	assert_int_equal(world_queue(&world, &agent, 0)->attr.floor_permille, 400);
	come(&other, -1);
	assert_int_equal(world_queue(&world, &other, 0)->attr.floor_permille, 0); /* 800 of 700 */
	agent_leave(&world, &other);
	agent_leave(&world, &agent);
}

/* Each step of the order that gpreempt-grant(1) has. */
static void test_precedence(void **state)
{
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = 12 },
	};
	struct gp_control_grant forced = make(GP_GRANT_ADD, "/kube/pod7/c", 0, 55);
	struct gp_control_request set = world_request(GP_CONTROL_SET);
	struct agent agent;
	struct gp_client *client;
	int result;

	(void)state;
	if (getuid())
		skip();
	cgroup = "0::/kube/pod7/c";
	client = come(&agent, -1);
	assert_int_equal(client->attr.priority, 30); /* rule */
	add("/kube/pod7/c", 0, 45);
	assert_int_equal(client->attr.priority, 45); /* a grant over the rule */
	add("/kube", 0, 65);
	assert_int_equal(client->attr.priority, 45); /* the longer path over the shorter one */
	assert_int_equal(client->ceiling, 65);
	add("", getpid(), 47);
	assert_int_equal(client->attr.priority, 47); /* the process over its cgroup */
	agent_work(&world, &agent);
	assert_int_equal(agent.attr.priority, 47);
	world_send(agent.fd, &attr, sizeof(attr));
	agent_work(&world, &agent);
	assert_int_equal(client->attr.priority, 12); /* what the program asks for */
	forced.flags = GP_GRANT_FORCE;
	expect(forced, 0);
	assert_int_equal(client->attr.priority, 55); /* forced */
	world_send(agent.fd, &attr, sizeof(attr));
	agent_work(&world, &agent);
	assert_int_equal(client->attr.priority, 12); /* it asked after that */
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 90 };
	free(world_ask(&world, &set, &result));
	assert_int_equal(result, 0);
	assert_int_equal(client->attr.priority, 90); /* set, above the ceiling */
	assert_int_equal(client->ceiling, 90);
	expect(make(GP_GRANT_REMOVE, "", getpid(), -1), 0);
	assert_int_equal(client->attr.priority, 55);
	expect(make(GP_GRANT_REMOVE, "/kube/pod7/c", 0, -1), 0);
	assert_int_equal(client->attr.priority, 12);
	expect(make(GP_GRANT_REMOVE, "/kube", 0, -1), 0);
	assert_int_equal(client->ceiling, 60);
	agent_leave(&world, &agent);
	client = come(&agent, -1);
	assert_int_equal(client->attr.priority, 30);
	agent_leave(&world, &agent);
}

static void restart(void)
{
	struct gp_config config_copy = world.daemon.config;
	struct gp_error error = { "" };

	gp_daemon_fini(&world.daemon);
	memset(&world.daemon, 0, sizeof(world.daemon));
	world.daemon.config = config_copy;
	world.daemon.start.config_path = "/nonexistent/gpreempt.conf";
	if (gp_daemon_init(&world.daemon, &error))
		fail_msg("%s", error.text);
}

static pid_t sleeper(void)
{
	pid_t child = fork();

	if (!child) {
		syscall(SYS_close_range, 3, ~0u, 0); /* the daemon's lock */
		alarm(60);
		pause();
		_exit(0);
	}
	return child;
}

static void end_process(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* What root said holds for the next daemon; what root set does, too; what has ended does not. */
static void test_restart(void **state)
{
	struct gp_control_request set = world_request(GP_CONTROL_SET);
	pid_t lives = sleeper(), dies = sleeper(), ends = sleeper();
	struct gp_control_grant grant = make(GP_GRANT_ADD, "/kube/pod7", 0, 80);
	struct gp_control_grant brief = make(GP_GRANT_ADD, "/brief", 0, 80);
	struct gp_client *client;
	struct agent agent;
	int result;

	(void)state;
	if (getuid())
		skip();
	snprintf(grant.tag, sizeof(grant.tag), "job 1");
	grant.ceiling = 85;
	expect(grant, 0);
	brief.for_ns = 1000000000;
	expect(brief, 0);
	add("", lives, 10);
	add("", dies, 10);
	add("", ends, 10);
	end_process(ends); /* while this daemon is there */
	world_step(&world);
	client = come(&agent, 20);
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 90 };
	free(world_ask(&world, &set, &result));
	assert_int_equal(result, 0);
	assert_int_equal(client->attr.priority, 90);
	assert_int_equal(world.daemon.grants.count, 5);
	agent_leave(&world, &agent);
	end_process(dies); /* the next one finds its number free, or another's */
	restart();
	assert_int_equal(world.daemon.grants.count, 4);
	assert_int_equal(world.daemon.grants.pid_count, 2);
	world_wait(&world, 2000);
	assert_int_equal(world.daemon.grants.count, 3); /* its time was over */
	client = come(&agent, 20);
	assert_int_equal(client->attr.priority, 90);
	agent_leave(&world, &agent);
	cgroup = "0::/kube/pod7";
	expect(make(GP_GRANT_REMOVE, "", getpid(), -1), 0);
	client = come(&agent, 99);
	assert_int_equal(client->attr.priority, 85);
	assert_string_equal(client->terms.tag, "job 1");
	agent_leave(&world, &agent);
	end_process(lives);
	world_step(&world);
	assert_int_equal(world.daemon.grants.pid_count, 0);
}

static void write_state(const char *text, mode_t mode)
{
	char path[160];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/grants", world.folder);
	unlink(path);
	stream = fopen(path, "we");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
	chmod(path, mode);
}

/* How often the file was written. */
static uint32_t saves;

void __real_gp_grant_save(struct gp_daemon *daemon);
void __wrap_gp_grant_save(struct gp_daemon *daemon);
void __wrap_gp_grant_save(struct gp_daemon *daemon)
{
	saves++;
	__real_gp_grant_save(daemon);
}

/* Many programs end at once: the file is written once. Who is answered is remembered by then. */
static void test_saves(void **state)
{
	pid_t children[64];

	(void)state;
	if (getuid())
		skip();
	for (uint32_t i = 0; i < 64; i++) {
		children[i] = sleeper();
		saves = 0;
		add("", children[i], 10);
		assert_int_equal(saves, 1);
	}
	assert_int_equal(world.daemon.grants.pid_count, 64);
	for (uint32_t i = 0; i < 64; i++)
		kill(children[i], SIGKILL);
	for (uint32_t i = 0; i < 64; i++)
		waitpid(children[i], NULL, 0);
	saves = 0;
	world_step(&world);
	assert_int_equal(world.daemon.grants.pid_count, 0);
	assert_int_equal(saves, 1);
	world_step(&world);
	assert_int_equal(saves, 1);
	restart();
	assert_int_equal(world.daemon.grants.count, 0);
}

/* What is set is text in a file of lines: nothing in it becomes a line of its own, and it comes back as it went. */
static void test_set_text(void **state)
{
	static const char *const bad[] = { "g\n[grant]\ncgroup = /a\nceiling = 99", "g\r", "\tg", " g", "g ", "g\x7f" };
	static const char *const good[] = { "", "g = h", "[grant]", "; g", "# g", "g\xc3\xa9", "=" };
	struct gp_control_request set = world_request(GP_CONTROL_SET);
	struct gp_client *client;
	struct agent agent;
	int result;

	(void)state;
	if (getuid())
		skip();
	come(&agent, 20);
	set.attr.valid = GP_ATTR_GANG;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char answer[256];
		int fd = world_connect(&world);

		snprintf(set.attr.gang, sizeof(set.attr.gang), "%s", bad[i]);
		world_send(fd, &set, sizeof(set));
		for (int k = 0; k < 10; k++)
			world_step(&world);
		assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), 0); /* it was sent away */
		close(fd);
		world_step(&world);
		assert_int_equal(world.daemon.grants.count, 0);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(set.attr.gang, 0, sizeof(set.attr.gang));
		snprintf(set.attr.gang, sizeof(set.attr.gang), "%s", good[i]);
		free(world_ask(&world, &set, &result));
		assert_int_equal(result, 0);
		agent_leave(&world, &agent);
		restart();
		assert_int_equal(world.daemon.grants.count, 1);
		client = come(&agent, 20);
		assert_true(client->attr.valid & GP_ATTR_GANG);
		assert_string_equal(client->attr.gang, good[i]);
	}
	agent_leave(&world, &agent);
}

/* A process is in groups of several hierarchies: all grants for them count, in whatever order they came. */
static void test_hierarchies(void **state)
{
	(void)state;
	if (getuid())
		skip();
	cgroup = "0::/aaa/x\n1:name=systemd:/bbb/x\n2:memory:/ccc";
	for (int order = 0; order < 2; order++) {
		struct gp_control_grant one = make(GP_GRANT_ADD, "/aaa", 0, 10),
					two = make(GP_GRANT_ADD, "/bbb", 0, 20);
		struct gp_client *client;
		struct agent agent;

		one.attr.valid |= GP_ATTR_WEIGHT;
		one.attr.weight = 33;
		expect(order ? two : one, 0);
		expect(order ? one : two, 0);
		client = come(&agent, -1);
		assert_int_equal(client->attr.weight, 33);
		assert_int_equal(client->attr.priority, 20);
		agent_leave(&world, &agent);
		expect(make(GP_GRANT_REMOVE, "/aaa", 0, -1), 0);
		expect(make(GP_GRANT_REMOVE, "/bbb", 0, -1), 0);
	}
}

/* A file that others could have written, or of another boot, grants nothing; one with a bad line nothing after it. */
static void test_hostile_file(void **state)
{
	char boot[64] = "", text[512], path[160], other[170];
	FILE *stream = fopen("/proc/sys/kernel/random/boot_id", "re");

	(void)state;
	if (getuid())
		skip();
	assert_non_null(stream);
	assert_non_null(fgets(boot, sizeof(boot), stream));
	fclose(stream);
	boot[strcspn(boot, "\n")] = '\0';
	snprintf(text, sizeof(text),
		 "[boot]\nid = %s\n[grant]\ncgroup = /a\npriority = 3\n[grant]\ncgroup = /b\npriority = 300\n", boot);
	write_state(text, 0600);
	restart();
	assert_int_equal(world.daemon.grants.count, 1);
	write_state(text, 0666);
	restart();
	assert_int_equal(world.daemon.grants.count, 0);
	write_state(text, 0600);
	snprintf(path, sizeof(path), "%s/grants", world.folder);
	snprintf(other, sizeof(other), "%s/other", world.folder);
	assert_int_equal(rename(path, other) | symlink(other, path), 0);
	restart();
	assert_int_equal(world.daemon.grants.count, 0);
	unlink(path);
	write_state("[boot]\nid = 0\n[grant]\ncgroup = /a\npriority = 3\n", 0600);
	restart();
	assert_int_equal(world.daemon.grants.count, 0);
	/* A process of that number that was started at another time. */
	snprintf(text, sizeof(text), "[boot]\nid = %s\n[grant]\npid = %d\nstart = 1\npriority = 3\n", boot, getpid());
	write_state(text, 0600);
	restart();
	assert_int_equal(world.daemon.grants.count, 0);
}

/* Nobody but root, nothing malformed, and not without end. */
static void test_refused(void **state)
{
	struct gp_control_grant grant = make(GP_GRANT_ADD, "/a", 0, 50);
	char text[4096], path[32];

	(void)state;
	if (getuid())
		skip();
	expect(make(GP_GRANT_ADD, "/a", getpid(), 50), -EINVAL);
	expect(make(GP_GRANT_ADD, "", 0, 50), -EINVAL);
	expect(make(GP_GRANT_ADD, "a", 0, 50), -EINVAL);
	expect(make(GP_GRANT_ADD, "/a\nb", 0, 50), -EINVAL);
	expect(make(GP_GRANT_ADD, "/a", 0, 100), -EINVAL);
	expect(make(GP_GRANT_ADD, "/a", 0, -1), -EINVAL);
	expect(make(9, "/a", 0, 50), -EINVAL);
	expect(make(GP_GRANT_ADD, "", 0x7ffffff0, 50), -ESRCH);
	expect(make(GP_GRANT_REMOVE, "/a", 0, -1), -ENOENT);
	grant.ceiling = 40;
	expect(grant, -EINVAL);
	grant.ceiling = -1;
	memset(grant.tag, 'x', sizeof(grant.tag));
	expect(grant, -EINVAL);
	memcpy(grant.tag, "a\nb", 4);
	expect(grant, -EINVAL);
	memset(grant.tag, 0, sizeof(grant.tag));
	memset(grant.cgroup, '/', sizeof(grant.cgroup));
	expect(grant, -EINVAL);
	assert_int_equal(world.daemon.grants.count, 0);
	for (uint32_t i = 0; i <= GP_GRANT_MAX; i++) {
		snprintf(path, sizeof(path), "/a/%u", i);
		expect(make(GP_GRANT_ADD, path, 0, 50), i < GP_GRANT_MAX ? 0 : -ENOSPC);
	}
	grant = make(GP_GRANT_LIST, "", 0, -1);
	assert_int_equal(ask(&grant, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\"cgroup\":\"/a/1023\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test_setup_teardown(test_rules, begin, end),
		cmocka_unit_test_setup_teardown(test_shares, begin, end),
		cmocka_unit_test_setup_teardown(test_precedence, begin, end),
		cmocka_unit_test_setup_teardown(test_restart, begin, end),
		cmocka_unit_test_setup_teardown(test_saves, begin, end),
		cmocka_unit_test_setup_teardown(test_set_text, begin, end),
		cmocka_unit_test_setup_teardown(test_hierarchies, begin, end),
		cmocka_unit_test_setup_teardown(test_hostile_file, begin, end),
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
