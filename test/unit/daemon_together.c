/* SPDX-License-Identifier: MIT */
/* Which processes are one program or one job, by the files of the kernel: real processes of this test. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/origin.h"
#include "test/unit/daemon_world.h"

/* A process that waits to be killed. */
static pid_t spawn(const char *const command[], const char *const environment[])
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(ready[0]);
		if (command)
			execve(command[0], (char *const *)command, (char *const *)environment);
		else if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), command ? 0 : 1); /* it runs, or execve() has closed it */
	close(ready[0]);
	return pid;
}

static struct gp_origin look(pid_t pid)
{
	struct gp_owner owner = { 0 };
	struct gp_origin origin = { .question.owner = &owner, .uid = getuid(), .pid = pid };

	gp_origin_read(&origin.question);
	return origin;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_forked_is_the_same_program(void **state)
{
	const char *const command[] = { "/bin/sleep", "1000", NULL }, *const environment[] = { NULL };
	struct gp_origin here = look(getpid()), there;
	pid_t forked = spawn(NULL, NULL), other = spawn(command, environment);

	(void)state;
	there = look(forked);
	assert_true(*here.name);
	assert_string_equal(here.name, there.name);
	there = look(other);
	assert_true(*there.name);
	assert_string_not_equal(here.name, there.name);
	end(forked);
	end(other);
	there = look(other);
	assert_string_equal(there.name, "");
}

/* Python's own form of a worker's command. */
static void test_a_worker_is_its_parents(void **state)
{
	const char *const command[] = { "/bin/sh", "-c", "kill -STOP $$", "--multiprocessing-fork", NULL };
	const char *const environment[] = { "PATH=/bin:/usr/bin", NULL };
	struct gp_origin here = look(getpid()), there;
	pid_t worker = spawn(command, environment);

	(void)state;
	there = look(worker);
	assert_string_equal(here.name, there.name);
	end(worker);
}

static void test_a_job_names_itself(void **state)
{
	const char *const command[] = { "/bin/sleep", "1000", NULL };
	static const struct {
		const char *environment[5];
		const char *name; /* NULL: none */
	} cases[] = {
		{ { "SLURM_JOB_ID=77", "SLURM_STEP_ID=3", "SLURM_STEP_NUM_TASKS=4" }, "Slurm step 77.3" },
		{ { "SLURM_JOB_ID=77", "SLURM_STEP_ID=3", "SLURM_STEP_NUM_TASKS=1" }, NULL },
		{ { "SLURM_JOB_ID=77", "SLURM_STEP_NUM_TASKS=4" }, NULL },
		{ { "PMIX_NAMESPACE=prterun-1@1", "OMPI_COMM_WORLD_SIZE=8" }, "MPI job prterun-1@1" },
		{ { "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500", "WORLD_SIZE=8" }, "torch job 10.0.0.1:29500" },
		{ { "MASTER_ADDR=10.0.0.1\n\033[2J", "MASTER_PORT=29500", "WORLD_SIZE=8" },
		  "torch job 10.0.0.1??[2J:29500" },
		{ { "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500", "WORLD_SIZE=-1" }, NULL },
		{ { "WORLD_SIZE=8" }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t pid = spawn(command, cases[i].environment);
		struct gp_origin origin = look(pid);

		if (cases[i].name)
			assert_string_equal(origin.name, cases[i].name);
		else
			assert_int_equal(strncmp(origin.name, "process ", 8), 0);
		end(pid);
	}
}

/* Of processes that claim one job only those of one user and one priority are together; who goes leaves the others. */
static void test_only_ones_own_are_mates(void **state)
{
	struct gp_owner ours = { .id = 1 }, theirs = { .id = 2 };
	struct gp_client all[5], *table[5];
	struct gp_daemon daemon = { .config.auto_gang = true, .clients = table, .client_top = 5 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 5; i++) {
		all[i] = (struct gp_client){ .uid = 1000,
					     .owner = &ours,
					     .together = "torch job a:1",
					     .mates = 1,
					     .attr = { .priority = 20 },
					     .device = { .pid = 100 + (pid_t)i } };
		table[i] = &all[i];
	}
	all[2].owner = &theirs;
	all[2].uid = 1001;
	all[3].attr.priority = 80;
	all[4].uid = 1002; /* a user of the same account, in a container */
	for (i = 0; i < 5; i++)
		gp_together_update(&daemon, &all[i]);
	assert_int_equal(all[0].mates, 2);
	assert_int_equal(all[1].mates, 2);
	for (i = 2; i < 5; i++)
		assert_int_equal(all[i].mates, 1);
	all[3].attr.priority = 20;
	gp_together_update(&daemon, &all[3]);
	assert_int_equal(all[0].mates, 3);
	all[0].dead = all[1].dead = true;
	gp_together_update(&daemon, &all[0]);
	assert_int_equal(all[3].mates, 1);
	/* One process counts once, however often it connects. */
	all[0].dead = false;
	all[0].device.pid = all[3].device.pid;
	gp_together_update(&daemon, &all[3]);
	assert_int_equal(all[3].mates, 1);
}

static void say(struct gp_daemon *daemon, struct gp_client *client, uint32_t kind, uint64_t key)
{
	const struct gp_wire_share share = { .kind = kind, .key = { key, 0 } };

	gp_share_take(daemon, client, &share);
}

/* Who has named the same thing belongs together, and with them their programs; of one user and one namespace alone. */
/* A process without an agent is a rank of scheduled ones of its own account alone. */
static void test_an_unknown_rank_has_a_peer(void **state)
{
	struct gp_client client = { .uid = 1000, .identity.account = 7, .origin = "torch job a:1" },
			 *table[2] = { NULL, &client };
	struct gp_daemon daemon = { .config.auto_gang = true, .clients = table, .client_top = 2 };

	(void)state;
	assert_ptr_equal(gp_together_client(&daemon, 1000, 7, "torch job a:1"), &client);
	assert_null(gp_together_client(&daemon, 1001, 7, "torch job a:1"));
	assert_null(gp_together_client(&daemon, 1000, 8, "torch job a:1"));
	assert_null(gp_together_client(&daemon, 1000, 7, "torch job a:2"));
	client.is_unmanaged = true;
	assert_null(gp_together_client(&daemon, 1000, 7, "torch job a:1"));
	client.is_unmanaged = false;
	client.dead = true;
	assert_null(gp_together_client(&daemon, 1000, 7, "torch job a:1"));
	client.dead = false;
	client.origin[0] = '\0'; /* nothing is known of either: that is no evidence */
	assert_null(gp_together_client(&daemon, 1000, 7, ""));
}

static void settle(struct gp_daemon *daemon)
{
	while (daemon->questions.open_count) {
		usleep(1000);
		gp_questions_take(daemon);
	}
	gp_questions_fini(daemon);
}

/* The answer finds a client that shares something with another by now: the three belong together. */
static void test_the_origin_comes_later(void **state)
{
	struct gp_owner owner = { .id = 1, .references = 1 };
	struct gp_client all[3], *table[3];
	struct gp_daemon daemon = { .config = { .auto_gang = true, .client_max = 3 },
				    .clients = table,
				    .client_top = 3,
				    .inbox.fd = -1 };
	pid_t forked = spawn(NULL, NULL);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		all[i] = (struct gp_client){ .uid = getuid(),
					     .owner = &owner,
					     .mates = 1,
					     .attr = { .priority = 20 },
					     .device = { .pid = 100, .tag = 1ull << 32 | i << 10 } };
		table[i] = &all[i];
	}
	all[0].device.pid = getpid();
	all[1].device.pid = forked;
	gp_together_find(&daemon, &all[0]);
	gp_together_find(&daemon, &all[1]);
	assert_int_equal(daemon.questions.open_count, 2);
	assert_string_equal(all[1].together, ""); /* the daemon reads no file of theirs */
	say(&daemon, &all[1], GP_SHARE_KFD_IPC, 9);
	say(&daemon, &all[2], GP_SHARE_KFD_IPC, 9);
	assert_int_equal(all[1].mates, 2);
	settle(&daemon);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(all[i].mates, 3);
		assert_string_equal(all[i].together, all[0].together);
	}
	assert_string_equal(all[0].origin, all[1].origin);
	assert_string_equal(all[2].origin, "");
	assert_int_equal(owner.references, 1);
	daemon.config.auto_gang = false;
	gp_together_find(&daemon, &all[2]);
	assert_int_equal(daemon.questions.open_count, 0);
	for (uint32_t i = 0; i < 3; i++)
		free(all[i].shares);
	end(forked);
}

/* A newcomer whose origin is not known yet shares something with a process of a program: it joins, whoever says so
 * last. The gang of the program stays as it is, so that none of its queues changes gangs before the others. */
static void test_a_newcomer_joins_the_program(void **state)
{
	struct gp_owner owner = { .id = 1 };
	struct gp_client all[3], *table[3];
	struct gp_daemon daemon = { .config.auto_gang = true, .clients = table, .client_top = 3 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		all[i] = (struct gp_client){ .owner = &owner, .mates = 1, .device = { .pid = 100 + (pid_t)i } };
		if (i < 2)
			snprintf(all[i].together, sizeof(all[i].together), "torch job a:1");
		table[i] = &all[i];
	}
	gp_together_update(&daemon, &all[0]);
	say(&daemon, &all[2], GP_SHARE_KFD_IPC, 9);
	say(&daemon, &all[0], GP_SHARE_KFD_IPC, 9);
	for (uint32_t i = 0; i < 3; i++) {
		assert_string_equal(all[i].together, "torch job a:1");
		assert_int_equal(all[i].mates, 3);
		free(all[i].shares);
	}
}

static struct gp_client *join_world(struct world *world, struct agent *agent, pid_t pid)
{
	struct gp_client *client;

	agent_connect(world, agent, 20);
	agent_add_queue(world, agent, 0, GP_QUEUE_SEEN);
	client = world_queue(world, agent, 0)->client;
	client->device.pid = pid;
	return client;
}

/* As if the daemon had asked at HELLO. */
static void find(struct world *world, struct gp_client *client)
{
	uint32_t mates = client->mates;

	gp_together_find(&world->daemon, client);
	client->mates = mates;
	while (world->daemon.questions.open_count)
		world_wait(world, 1);
	world_wait(world, 10); /* changes come in portions, and after orders under way */
}

/* Two that share something had a gang of their own until their origins came: they change to their program's at once,
 * though they have changed a moment ago. */
static void test_late_origins_count_at_once(void **state)
{
	pid_t forked[2] = { spawn(NULL, NULL), spawn(NULL, NULL) };
	struct agent agents[3];
	struct gp_client *clients[3];
	struct world world;

	(void)state;
	world_begin(&world, NULL);
	world.daemon.config.auto_gang = false; /* nothing is asked until the test does */
	for (int i = 0; i < 3; i++)
		clients[i] = join_world(&world, &agents[i], i ? forked[i - 1] : getpid());
	world.daemon.config.auto_gang = true;
	find(&world, clients[0]);
	say(&world.daemon, clients[1], GP_SHARE_KFD_IPC, 9);
	say(&world.daemon, clients[2], GP_SHARE_KFD_IPC, 9);
	world_wait(&world, 10);
	assert_int_not_equal(world_queue(&world, &agents[1], 0)->core_gang, 0);
	for (int i = 1; i < 3; i++) {
		find(&world, clients[i]);
		assert_int_not_equal(world_queue(&world, &agents[0], 0)->core_gang, 0);
		assert_int_equal(world_queue(&world, &agents[i], 0)->core_gang,
				 world_queue(&world, &agents[0], 0)->core_gang);
	}
	for (int i = 0; i < 3; i++)
		agent_leave(&world, &agents[i]);
	world_end(&world);
	end(forked[0]);
	end(forked[1]);
}

/* The client has gone, and another one has its place. */
static void test_the_origin_of_who_has_gone(void **state)
{
	struct gp_owner owner = { .id = 1, .references = 1 };
	struct gp_client client = { .owner = &owner, .device = { .pid = getpid(), .tag = 1ull << 32 } },
			 *table[1] = { &client };
	struct gp_daemon daemon = { .config = { .auto_gang = true, .client_max = 1 },
				    .clients = table,
				    .client_top = 1,
				    .inbox.fd = -1 };

	(void)state;
	gp_together_find(&daemon, &client);
	client.device.tag = 2ull << 32;
	settle(&daemon);
	assert_string_equal(client.origin, "");
	gp_together_find(&daemon, &client);
	client.dead = true;
	settle(&daemon);
	assert_string_equal(client.origin, "");
}

static void test_who_shares_belongs_together(void **state)
{
	struct gp_owner ours = { .id = 1 }, theirs = { .id = 2 };
	struct gp_client all[7], *table[7];
	struct gp_daemon daemon = { .config.auto_gang = true, .clients = table, .client_top = 7 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 7; i++) {
		all[i] = (struct gp_client){ .uid = 1000,
					     .owner = &ours,
					     .mates = 1,
					     .identity.pid_space = 7,
					     .attr = { .priority = 20 },
					     .device = { .pid = 100 + (pid_t)i } };
		snprintf(all[i].origin, sizeof(all[i].origin), "process %u at 1", i);
		memcpy(all[i].together, all[i].origin, sizeof(all[i].together));
		table[i] = &all[i];
	}
	memcpy(all[1].origin, all[0].origin, sizeof(all[1].origin)); /* forked from the first */
	memcpy(all[1].together, all[0].origin, sizeof(all[1].together));
	all[4].owner = &theirs;
	all[4].uid = 1001;
	all[5].identity.pid_space = 8;
	for (i = 0; i < 7; i++)
		gp_together_update(&daemon, &all[i]);
	assert_int_equal(all[0].mates, 2);
	/* Everybody says it; only those who can mean the same are joined. */
	for (i = 2; i < 6; i++)
		say(&daemon, &all[i], GP_SHARE_PROCESS, 55);
	assert_int_equal(all[2].mates, 2);
	assert_string_equal(all[2].together, all[3].together);
	assert_int_equal(all[4].mates + all[5].mates, 2);
	say(&daemon, &all[6], GP_SHARE_RM_CLIENT, 55);
	assert_int_equal(all[6].mates, 1);
	/* A program of two processes meets another: four. */
	say(&daemon, &all[0], GP_SHARE_KFD_IPC, 9);
	say(&daemon, &all[2], GP_SHARE_KFD_IPC, 9);
	for (i = 0; i < 4; i++) {
		assert_int_equal(all[i].mates, 4);
		assert_string_equal(all[i].together, all[0].together);
	}
	/* Those who are left stay together, and what is forked later is with them. */
	all[2].dead = true;
	gp_together_update(&daemon, &all[2]);
	assert_int_equal(all[0].mates, 3);
	assert_int_equal(all[3].mates, 3);
	for (i = 0; i < 7; i++)
		free(all[i].shares);
}

/* Names without end, and joining switched off. */
static void test_many_shares_are_bounded(void **state)
{
	struct gp_owner owner = { .id = 1 };
	struct gp_client one = { .owner = &owner, .mates = 1, .device = { .pid = 1 }, .together = "a" },
			 two = { .owner = &owner, .mates = 1, .device = { .pid = 2 }, .together = "b" },
			 *table[] = { &one, &two };
	struct gp_daemon daemon = { .clients = table, .client_top = 2 };

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		say(&daemon, &one, GP_SHARE_KFD_IPC, i);
	say(&daemon, &two, GP_SHARE_KFD_IPC, 999);
	assert_int_equal(one.mates, 1);
	daemon.config.auto_gang = true;
	say(&daemon, &two, GP_SHARE_KFD_IPC, 0); /* forgotten */
	assert_int_equal(one.mates, 1);
	say(&daemon, &two, GP_SHARE_KFD_IPC, 998);
	assert_int_equal(one.mates, 2);
	assert_string_equal(two.together, "a");
	free(one.shares);
	free(two.shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forked_is_the_same_program),  cmocka_unit_test(test_a_worker_is_its_parents),
		cmocka_unit_test(test_a_job_names_itself),          cmocka_unit_test(test_only_ones_own_are_mates),
		cmocka_unit_test(test_who_shares_belongs_together), cmocka_unit_test(test_many_shares_are_bounded),
		cmocka_unit_test(test_an_unknown_rank_has_a_peer),  cmocka_unit_test(test_the_origin_comes_later),
		cmocka_unit_test(test_the_origin_of_who_has_gone),  cmocka_unit_test(test_a_newcomer_joins_the_program),
		cmocka_unit_test(test_late_origins_count_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
