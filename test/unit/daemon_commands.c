/* SPDX-License-Identifier: MIT */
/* Commands: what they answer, who may, and what they change. As root it also asks as another user. */
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/json.h"
#include "test/unit/daemon_world.h"

#define OTHER_UID   65534u
#define OTHER_GROUP 4242u /* which no database gives that user */

static struct world world;
static struct agent agent;

static int begin(void **state)
{
	(void)state;
	world_begin_one(&world, &agent, "[ceiling]\ndefault = 40\nuser.12345 = 60\ngroup.4242 = 45\n", 70);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_one(&world, &agent);
	return 0;
}

static void assert_is_json(const char *text)
{
	static struct gp_json json;
	struct gp_error error = { "" };

	gp_json_init(&json, text, strlen(text), "answer");
	do {
		if (gp_json_next(&json, &error))
			fail_msg("%s in: %s", error.text, text);
	} while (json.type != GP_JSON_END);
}

static char *ask(const struct gp_control_request *request, int want)
{
	int result;
	char *text = world_ask(&world, request, &result);

	if (result != want)
		fail_msg("result %d instead of %d: %s", result, want, text);
	return text;
}

static void expect(const struct gp_control_request *request, int result, const char *part)
{
	char *text = ask(request, result);

	if (!strstr(text, part))
		fail_msg("no %s in: %s", part, text);
	if (!result && request->verb != GP_CONTROL_METRICS && request->verb != GP_CONTROL_EVENTS)
		assert_is_json(text);
	free(text);
}

/* Every number and name is there, and STATUS has the agent look first. */
static void test_status(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	char *text;

	(void)state;
	agent_doorbell(&world, &agent, 0, 12);
	agent.page->queues[0].completed = 5; /* nobody was told of these */
	/* The answer waits for SYNCED; a silent agent is not waited for longer than a moment. */
	text = ask(&request, 0);
	assert_is_json(text);
	assert_non_null(strstr(text, "\"written\":12"));
	free(text);
	agent_work(&world, &agent);
	assert_true(agent.sync_count >= 1);
	expect(&request, 0, "\"completed\":5,\"pending\":7");
	expect(&request, 0, "\"priority\":70");
	expect(&request, 0, "\"gate\":\"open\"");
}

static void test_small_ones(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_PING);

	(void)state;
	expect(&request, 0, "\"version\":");
	expect(&request, 0, "\"ceiling\":99");
	request = world_request(GP_CONTROL_METRICS);
	expect(&request, 0, "gpreempt_clients 1\n");
	expect(&request, 0, "card_series=\"imaginary GPU\",state=\"open\"} 1\n");
	request = world_request(GP_CONTROL_SUMMARY);
	expect(&request, 0, "\"agents\":1");
	request = world_request(4711);
	expect(&request, -EOPNOTSUPP, "does not know");
	request = world_request(GP_CONTROL_RELOAD);
	expect(&request, 0, "{}");
}

static void test_set(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_SET);

	(void)state;
	request.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY | GP_ATTR_WEIGHT, .priority = 33, .weight = 7 };
	expect(&request, 0, "\"priority\":33,\"ceiling\":99,\"weight\":7");
	agent_work(&world, &agent);
	assert_int_equal(agent.attr.priority, 33);
	assert_int_equal(world_queue(&world, &agent, 0)->attr.priority, 33);
	/* One queue. */
	request.queue_id = 0;
	request.attr.priority = 44;
	request.attr.valid = GP_ATTR_PRIORITY;
	free(ask(&request, 0));
	assert_int_equal(world_queue(&world, &agent, 0)->attr.priority, 44);
	request.queue_id = 9;
	expect(&request, -ENOENT, "no such queue");
	request.pid = 1;
	expect(&request, -ESRCH, "not a program of yours");
}

static void test_pause(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_PAUSE), status = world_request(GP_CONTROL_STATUS);

	(void)state;
	expect(&request, 0, "{}");
	expect(&status, 0, "\"stopped\":true,\"stopped_why\":\"asked for");
	request.flags = GP_CONTROL_PAUSE_END;
	request.gpu_id = WORLD_GPU;
	expect(&request, 0, "{}");
	expect(&status, 0, "\"stopped\":false,\"stopped_why\":null");
	request.gpu_id = 4711;
	expect(&request, -ENODEV, "no such GPU");
}

/* Lines as they happen; who reads slowly loses some and is told. */
static void test_events(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct gp_control_request request = world_request(GP_CONTROL_EVENTS);
	struct gp_control_answer *answer = (void *)buffer;
	int fd = world_connect(&world);
	bool busy = false, lost = false;
	uint64_t packets = 0;
	size_t size;

	(void)state;
	world_send(fd, &request, sizeof(request));
	world_step(&world);
	while (!world.daemon.counters.events_lost) {
		agent_doorbell(&world, &agent, 0, ++packets);
		agent_complete(&world, &agent, 0, packets);
	}
	for (int i = 0; i < 100000 && !lost; i++) {
		size = world_receive(fd, buffer, sizeof(buffer) - 1);
		if (!size) {
			agent_doorbell(&world, &agent, 0, ++packets);
			agent_complete(&world, &agent, 0, packets);
			continue;
		}
		buffer[size] = '\0';
		assert_int_equal(answer->more, 1);
		assert_int_equal(buffer[size - 1], '\n');
		busy |= strstr(answer->text, "\"event\":\"busy\"") && strstr(answer->text, "got work");
		lost |= strstr(answer->text, "{\"event\":\"lost\",\"value\":") != NULL;
		world_step(&world);
	}
	assert_true(busy);
	assert_true(lost);
	close(fd);
	world_step(&world);
	assert_null(world.daemon.events.streams);
	request.flags = GP_CONTROL_EVENTS_PAST;
	expect(&request, 0, "\"event\":\"idle\"");
}

/* Another user: a process of its own, because the daemon asks the kernel who is there. */
static void as_other(struct gp_control_request request, int want, const char *part, bool absent)
{
	int pipes[2], status;
	char text[65536];
	ssize_t size;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
		struct gp_control_answer *answer = (void *)buffer;
		int fd;

		alarm(30);
		if (setgroups(1, &(gid_t){ OTHER_GROUP }) || setgid(OTHER_UID) || setuid(OTHER_UID))
			_exit(2);
		fd = world_connect(&world);
		if (send(fd, &request, sizeof(request), 0) < 0)
			_exit(3);
		size = recv(fd, buffer, sizeof(buffer), 0);
		if (size < (ssize_t)sizeof(*answer) ||
		    write(pipes[1], answer->text, (size_t)size - sizeof(*answer)) < 0)
			_exit(4);
		_exit(answer->result == want ? 0 : 5);
	}
	close(pipes[1]);
	/* Time passes while the daemon waits for agents, not while the child does what it has to. */
	while (!waitpid(child, &status, WNOHANG))
		world_wait(&world, world.daemon.sync.timer.at_ns ? 1 : 0);
	size = read(pipes[0], text, sizeof(text) - 1);
	text[size > 0 ? size : 0] = '\0';
	close(pipes[0]);
	assert_int_equal(status, 0);
	if (!strstr(text, part) != absent)
		fail_msg("%s%s in: %s", absent ? "" : "no ", part, text);
	world_step(&world);
}

static void test_rights(void **state)
{
	struct gp_control_request set = world_request(GP_CONTROL_SET);
	uint32_t looks;

	(void)state;
	if (getuid())
		skip();
	assert_int_equal(chmod(world.folder, 0755), 0);
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 1 };
	/* Somebody else's client and no client at all look the same. */
	as_other(set, -ESRCH, "not a program of yours", false);
	set.pid = 1 << 22;
	as_other(set, -ESRCH, "not a program of yours", false);
	assert_int_equal(world_queue(&world, &agent, 0)->attr.priority, 70);
	as_other(world_request(GP_CONTROL_PAUSE), -EPERM, "only root", false);
	as_other(world_request(GP_CONTROL_RELOAD), -EPERM, "only root", false);
	as_other(world_request(GP_CONTROL_STATUS), 0, "\"hidden\":true,\"gpu_ids\":[1],\"queues\":1", false);
	as_other(world_request(GP_CONTROL_STATUS), 0, "\"fake\"", true);
	/* However often he asks, the others are not woken for each. */
	agent_work(&world, &agent);
	looks = agent.sync_count;
	for (int i = 0; i < 20; i++)
		as_other(world_request(GP_CONTROL_STATUS), 0, "\"hidden\":true", false);
	agent_work(&world, &agent);
	assert_true(agent.sync_count - looks < 20);
	as_other(world_request(GP_CONTROL_PING), 0, "\"ceiling\":45", false);
	as_other(world_request(GP_CONTROL_SUMMARY), 0, "\"agents\":0", false);
}

/* The ceiling cuts what an agent asks for, and what it sets later. */
static void test_ceiling(void **state)
{
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = 90 },
	};
	struct gp_client *client = world_queue(&world, &agent, 0)->client;

	(void)state;
	assert_int_equal(gp_access_ceiling(&world.daemon.config, &(struct gp_peer){ .identity.rights = GP_RIGHT_NICE }),
			 99);
	assert_int_equal(gp_access_ceiling(&world.daemon.config, &(struct gp_peer){ .uid = 12345 }), 60);
	assert_int_equal(gp_access_ceiling(&world.daemon.config, &(struct gp_peer){ .uid = 54321 }), 40);
	client->ceiling = 40;
	world_send(agent.fd, &attr, sizeof(attr));
	agent_work(&world, &agent);
	assert_int_equal(agent.attr.priority, 40);
	assert_int_equal(world_queue(&world, &agent, 0)->attr.priority, 40);
	attr.attr.priority = 10;
	world_send(agent.fd, &attr, sizeof(attr));
	agent_work(&world, &agent);
	assert_int_equal(world_queue(&world, &agent, 0)->attr.priority, 10);
}

/* A weight or a deadline goes before others too: only with a right to raise, or from root. */
static void test_raise(void **state)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct gp_wire_attr_message attr = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_ATTR, sizeof(attr), 0 },
		.attr = { .valid = GP_ATTR_WEIGHT | GP_ATTR_DEADLINE | GP_ATTR_PROTECT,
			  .weight = 5000,
			  .deadline_ns = 1000,
			  .protect = GP_PROTECT_LATENCY },
	};
	struct gp_control_request set = world_request(GP_CONTROL_SET);
	struct gp_queue_entry *queue = world_queue(&world, &agent, 0);
	struct gp_client *client = queue->client;

	(void)state;
	assert_true(client->may_raise); /* root's */
	assert_true(gp_access_may_raise(&world.daemon.config, &(struct gp_peer){ .uid = 12345 }));
	assert_false(gp_access_may_raise(&world.daemon.config, &(struct gp_peer){ .uid = 54321 }));
	client->may_raise = false;
	world_send(agent.fd, &attr, sizeof(attr));
	agent_work(&world, &agent);
	assert_int_equal(queue->attr.weight, GP_WEIGHT_DEFAULT);
	assert_int_equal(queue->attr.deadline_ns, 0);
	assert_int_equal(queue->attr.protect, GP_PROTECT_DEFAULT);
	assert_int_equal(agent.attr.weight, GP_WEIGHT_DEFAULT);
	attr.attr.weight = 7;
	attr.attr.protect = GP_PROTECT_THROUGHPUT;
	world_send(agent.fd, &attr, sizeof(attr));
	agent_work(&world, &agent);
	assert_int_equal(queue->attr.weight, 7);
	assert_int_equal(queue->attr.protect, GP_PROTECT_THROUGHPUT);
	client->peer->uid = client->uid = 54321;
	client->peer->identity.rights = 0;
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PROTECT, .protect = GP_PROTECT_LATENCY };
	world_send(agent.fd, &set, sizeof(set));
	world_step(&world);
	assert_true(world_receive(agent.fd, buffer, sizeof(buffer)) > sizeof(struct gp_control_answer));
	assert_int_equal(((struct gp_control_answer *)(void *)buffer)->result, -EPERM);
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_WEIGHT | GP_ATTR_DEADLINE, .weight = 200, .deadline_ns = 9 };
	world_send(agent.fd, &set, sizeof(set)); /* its own user asks */
	world_step(&world);
	assert_true(world_receive(agent.fd, buffer, sizeof(buffer)) > sizeof(struct gp_control_answer));
	assert_int_equal(((struct gp_control_answer *)(void *)buffer)->result, -EPERM);
	expect(&set, 0, "\"weight\":200,\"deadline_ns\":9");
	assert_int_equal(queue->attr.deadline_ns, 9);
	assert_int_equal(queue->attr.weight, 200);
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PROTECT, .protect = GP_PROTECT_LATENCY };
	expect(&set, 0, "\"protect\":\"latency\"");
	assert_int_equal(queue->attr.protect, GP_PROTECT_LATENCY);
}

/* What the command line said and what root gave outlive a reload; a file that was named and is gone changes nothing. */
static void test_reload(void **state)
{
	static const char *const settings[] = { "[policy]\npolicy", "rr" };
	struct gp_control_request reload = world_request(GP_CONTROL_RELOAD), set = world_request(GP_CONTROL_SET),
				  status = world_request(GP_CONTROL_STATUS);
	struct gp_client *client = world_queue(&world, &agent, 0)->client;
	struct gp_job job = { .kind = GP_JOB_STATUS };

	(void)state;
	world.daemon.start.settings = settings;
	world.daemon.start.setting_count = 2;
	client->peer->uid = 54321;
	client->peer->identity.rights = 0;
	client->ceiling = 40;
	set.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 90 };
	expect(&set, 0, "\"priority\":90,\"ceiling\":90");
	expect(&reload, 0, "{}");
	assert_string_equal(world.daemon.config.policy, "rr");
	assert_int_equal(world.daemon.config.ceiling_default, GP_PRIORITY_NORMAL); /* the file is not there */
	assert_int_equal(client->attr.priority, 90);
	world.daemon.config.ceiling_default = 12;
	world.daemon.start.config_required = true;
	expect(&reload, -EINVAL, "/nonexistent/gpreempt.conf");
	assert_int_equal(world.daemon.config.ceiling_default, 12);
	expect(&status, 0, "\"config_refused\":\"/nonexistent/gpreempt.conf");
	while (!gp_status_part(&world.daemon, &(struct gp_peer){ .uid = 54321 }, &job)) {}
	assert_non_null(strstr(job.text.bytes, "\"config_refused\":\"root sees the reason\""));
	gp_text_fini(&job.text);
	world.daemon.start.config_required = false;
	expect(&reload, 0, "{}");
	expect(&status, 0, "\"config_refused\":null");
}

/* A pipe as configuration, <(…) at the start, has no writer any more: the daemon does not wait for one. */
static void test_reload_pipe(void **state)
{
	struct gp_control_request reload = world_request(GP_CONTROL_RELOAD);
	char folder[] = "/tmp/gpreempt-reload-XXXXXX", path[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	world.daemon.start.config_path = path;
	world.daemon.start.config_required = true;
	world.daemon.config.ceiling_default = 12;
	alarm(60);
	expect(&reload, -EINVAL, "a pipe or terminal is read at the start only");
	alarm(0);
	assert_int_equal(world.daemon.config.ceiling_default, 12);
	world.daemon.start.config_path = "/dev/null";
	expect(&reload, 0, "{}");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* A file of metrics that cannot be written is said once, and again when it can. */
static void test_metrics_file(void **state)
{
	struct gp_config *config = &world.daemon.config;

	(void)state;
	snprintf(config->metrics_file, sizeof(config->metrics_file), "/nonexistent/gpreempt.prom");
	gp_metrics_changed(&world.daemon);
	world_step(&world);
	assert_true(world.daemon.metrics.failed);
	snprintf(config->metrics_file, sizeof(config->metrics_file), "%s/gpreempt.prom", world.folder);
	world.daemon.metrics.written_ns = 0;
	world_step(&world);
	assert_false(world.daemon.metrics.failed);
	assert_int_equal(access(config->metrics_file, R_OK), 0);
}

/* It is written again after a while though nothing has changed, and goes when another is named or the daemon ends. */
static void test_metrics_file_lives(void **state)
{
	struct gp_config *config = &world.daemon.config;
	char first[GP_CONFIG_PATH_SIZE];
	uint64_t written_ns;

	(void)state;
	snprintf(config->metrics_file, sizeof(config->metrics_file), "%s/a.prom", world.folder);
	gp_metrics_file(&world.daemon, 1000000000ull);
	written_ns = world.daemon.metrics.written_ns;
	assert_int_equal(written_ns, 1000000000ull);
	gp_metrics_file(&world.daemon, written_ns + 14999999999ull);
	assert_int_equal(world.daemon.metrics.written_ns, written_ns);
	assert_int_equal(world.daemon.metrics.timer.at_ns, written_ns + 15000000000ull); /* it will be woken */
	gp_metrics_file(&world.daemon, written_ns + 15000000000ull);
	assert_int_equal(world.daemon.metrics.written_ns, written_ns + 15000000000ull);
	written_ns = world.daemon.metrics.written_ns;
	gp_metrics_changed(&world.daemon); /* a change does not wait for the heartbeat */
	gp_metrics_file(&world.daemon, written_ns + 10000000000ull);
	assert_int_equal(world.daemon.metrics.written_ns, written_ns + 10000000000ull);

	snprintf(first, sizeof(first), "%s", config->metrics_file);
	snprintf(config->metrics_file, sizeof(config->metrics_file), "%s/b.prom", world.folder);
	gp_metrics_file(&world.daemon, written_ns + 10000000001ull);
	assert_int_equal(access(first, F_OK), -1);
	assert_int_equal(access(config->metrics_file, R_OK), 0);
	gp_metrics_remove(&world.daemon);
	assert_int_equal(access(config->metrics_file, F_OK), -1);
	assert_int_equal(unlink(config->metrics_file), -1);
}

/* The directory of users does not answer. */
static sem_t answered;

static bool ask_slowly(uid_t uid, char *name, size_t size)
{
	(void)uid;
	sem_wait(&answered);
	snprintf(name, size, "somebody");
	return true;
}

static void test_user_names(void **state)
{
	struct gp_control_request status = world_request(GP_CONTROL_STATUS);
	char text[64] = "";

	(void)state;
	sem_init(&answered, 0, 0);
	gp_user_ask = ask_slowly;
	world_queue(&world, &agent, 0)->client->uid = 4000000001u; /* in nobody's /etc/passwd */
	alarm(60);                                                 /* hanging is the failure */
	expect(&status, 0, "\"user\":\"4000000001\"");
	expect(&status, 0, "\"user\":\"4000000001\"");
	sem_post(&answered);
	while (strcmp(gp_user_name(&world.daemon, 4000000001u, text, sizeof(text)), "somebody") != 0)
		usleep(1000);
	alarm(0);
	expect(&status, 0, "\"user\":\"somebody\"");
	assert_string_equal(gp_user_name(&world.daemon, 0, text, sizeof(text)), "root");
}

static bool ask_nobody(uid_t uid, char *name, size_t size)
{
	(void)uid, (void)name, (void)size;
	return false;
}

static uint32_t lines_read;

static int fgetpwent_real(FILE *stream, struct passwd *entry, char *line, size_t size, struct passwd **ret_found)
{
	int (*real)(FILE *, struct passwd *, char *, size_t, struct passwd **) = dlsym(RTLD_NEXT, "fgetpwent_r");

	return real(stream, entry, line, size, ret_found);
}

int fgetpwent_r(FILE *stream, struct passwd *entry, char *line, size_t size, struct passwd **ret_found)
{
	static char name[] = "bob";

	(void)line, (void)size;
	if (gp_user_ask != ask_nobody)
		return fgetpwent_real(stream, entry, line, size, ret_found);
	lines_read++;
	*ret_found = NULL;
	if (fgetc(stream) == EOF)
		return ENOENT;
	*entry = (struct passwd){ .pw_name = name, .pw_uid = (uid_t)(7000 + ftell(stream)) };
	*ret_found = entry;
	return 0;
}

static void write_users(const char *path, const char *lines)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(lines, file);
	fclose(file);
}

/* More uids than names are kept for ask again and again: the file of users is read when it has changed, not each time.
 */
static void test_many_users(void **state)
{
	const char *before = gp_subuid_passwd_path;
	char path[128], text[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/passwd", world.folder);
	write_users(path, "..."); /* each byte is a line of this test's */
	gp_subuid_passwd_path = path;
	gp_user_ask = ask_nobody;
	lines_read = 0;
	for (uint32_t i = 0; i < 3 * 1000; i++)
		gp_user_name(&world.daemon, 100000 + i % 1000, text, sizeof(text));
	assert_in_range(lines_read, 1, 4);
	assert_string_equal(gp_user_name(&world.daemon, 7003, text, sizeof(text)), "bob");
	assert_string_equal(gp_user_name(&world.daemon, 7004, text, sizeof(text)), "7004");
	world_wait(&world, 61000); /* names are asked for again */
	write_users(path, "....");
	assert_string_equal(gp_user_name(&world.daemon, 7004, text, sizeof(text)), "bob");
	assert_in_range(lines_read, 1, 4 + 5);
	gp_subuid_passwd_path = before;
	unlink(path);
}

/* A disk that takes its time is not waited for. */
int __wrap_fsync(int fd); // NOLINT: the linker's name

int __wrap_fsync(int fd) // NOLINT
{
	(void)fd;
	fail_msg("the decision thread waits for the disk");
	return -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_status, begin, end),
		cmocka_unit_test_setup_teardown(test_small_ones, begin, end),
		cmocka_unit_test_setup_teardown(test_set, begin, end),
		cmocka_unit_test_setup_teardown(test_pause, begin, end),
		cmocka_unit_test_setup_teardown(test_events, begin, end),
		cmocka_unit_test_setup_teardown(test_rights, begin, end),
		cmocka_unit_test_setup_teardown(test_ceiling, begin, end),
		cmocka_unit_test_setup_teardown(test_raise, begin, end),
		cmocka_unit_test_setup_teardown(test_reload, begin, end),
		cmocka_unit_test_setup_teardown(test_reload_pipe, begin, end),
		cmocka_unit_test_setup_teardown(test_metrics_file, begin, end),
		cmocka_unit_test_setup_teardown(test_metrics_file_lives, begin, end),
		cmocka_unit_test_setup_teardown(test_user_names, begin, end),
		cmocka_unit_test_setup_teardown(test_many_users, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
