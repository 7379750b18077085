/* SPDX-License-Identifier: MIT */
/* Mechanism borrow: the files that clients lend, and calls on them that do not come back. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/closer.h"
#include "test/unit/borrow_scene.h"

/* What a client lends need not be the driver's, and need not be easy to get rid of: others do not wait for it. */
static void test_a_file_that_does_not_close(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_group group;
	char path[128];
	struct stat st;
	int fd;

	(void)state;
	scene_begin(scene, NULL);
	scene_hello(scene, 0, GP_PRIORITY_LOW);
	snprintf(path, sizeof(path), "%s/dev/x", scene->root.path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	pthread_mutex_lock(&rm.lock);
	rm.sticky = st.st_ino;
	pthread_mutex_unlock(&rm.lock);
	group = scene_group(scene, 0);
	group.fd = fd;
	world_send(scene->agents[0].fd, &group, sizeof(group));
	UNTIL(scene, rm.sticking);
	for (int i = 0; i < 300; i++) /* and what another user has sent */
		gp_close_elsewhere(dup(fd), getuid() + 1);
	scene_join(scene, 1, GP_PRIORITY_NORMAL);
	scene_join(scene, 2, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[2].slice_us == SHORT);
	assert_int_equal(scene->agents[1].mechanism + scene->agents[2].mechanism, 0); /* nobody was told another one */
	assert_false(scene->world.daemon.devices[0].stopped);
	rm_go_on();
	UNTIL(scene, !rm.sticking && !gp_close_pending());
	close(fd);
	scene_end(scene);
}

/* The queue goes, then the client: our duplicates with them, or the context would outlive its process. */
static void test_files_are_given_back(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_slot gone = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(gone),
						 0 },
				     .generation = 1 };
	char path[64], target[128];
	uint32_t count = 0;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	world_send(scene->agents[0].fd, &gone, sizeof(gone));
	scene_leave(scene, 1);
	for (int round = 0; round < ROUNDS; round++) {
		count = 0;
		for (int fd = 0; fd < 256; fd++) {
			ssize_t size;

			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
			size = readlink(path, target, sizeof(target) - 1);
			target[size > 0 ? size : 0] = '\0';
			count += strstr(target, "nvidiactl") != NULL;
		}
		if (count == 2) /* the test's own */
			break;
		scene_round(scene);
	}
	assert_int_equal(count, 2);
	assert_int_equal(rm.contexts[1].slice_us, LONG);
	scene_end(scene);
}

/* A program was killed, and our duplicate of its file is the last: closing it takes as long as RM takes to end all that
 * the program had. Others are scheduled meanwhile. */
static void test_a_context_that_takes_long_to_end(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct stat st;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	assert_int_equal(fstat(scene->fds[1], &st), 0);
	pthread_mutex_lock(&rm.lock);
	rm.sticky = st.st_ino;
	pthread_mutex_unlock(&rm.lock);
	scene_leave(scene, 1);
	UNTIL(scene, rm.sticking);
	scene_join(scene, 2, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[2].slice_us == SHORT);
	assert_false(scene->world.daemon.devices[0].stopped);
	rm_go_on();
	UNTIL(scene, !rm.sticking && !gp_close_pending());
	scene_end(scene);
}

/* A large program of the same user was killed, and RM needs time for each of its files: a program that starts meanwhile
 * is not scheduled before, and then it is, with all of its groups. Others do not wait. The daemon asks less and less
 * often, because the files may never close. */
static void test_files_that_take_long_to_close(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_group group;
	struct gp_client *client;
	struct stat st;

	(void)state;
	scene_begin(scene, "mechanism = borrow\n");
	scene_join(scene, 1, GP_PRIORITY_NORMAL);
	scene_hello(scene, 0, GP_PRIORITY_LOW);
	client = scene_queue(scene, 0)->client;
	assert_int_equal(fstat(scene->fds[1], &st), 0);
	pthread_mutex_lock(&rm.lock);
	rm.sticky = st.st_ino;
	pthread_mutex_unlock(&rm.lock);
	for (int i = 0; i < 64; i++)
		gp_close_elsewhere(dup(scene->fds[1]), client->device.owner);
	group = scene_group(scene, 0);
	world_send(scene->agents[0].fd, &group, sizeof(group));
	for (uint64_t i = 0; i < 8; i++) {
		uint64_t wait_ns = (i < 5 ? 1ull << i : 32) * 1000000000;

		UNTIL(scene, scene_queue(scene, 0)->group.again_ns);
		assert_in_range(scene_queue(scene, 0)->group.again_ns - gp_now_ns(), wait_ns / 2, wait_ns);
		assert_false(scene_queue(scene, 0)->in_core);
		assert_int_equal(client->device.mechanism, GP_MECHANISM_BORROW);
		world_wait(&scene->world, (uint32_t)(wait_ns / 1000000));
	}
	rm_go_on();
	UNTIL(scene, gp_close_pending() < 64);
	world_wait(&scene->world, 33000);
	UNTIL(scene, scene_queue(scene, 0)->in_core && rm.contexts[0].slice_us == SHORT);
	assert_int_equal(scene->agents[0].mechanism, 0); /* it was told no other one */
	UNTIL(scene, !gp_close_pending());
	scene_end(scene);
}

/* A client has a thousand groups that wait: to ask again takes work that grows with them, not with their square. */
static void test_many_groups_that_wait(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct world *world = &scene->world;

	(void)state;
	scene_begin(scene, "mechanism = borrow\n");
	scene_hello(scene, 0, GP_PRIORITY_LOW);
	for (uint32_t slot = 1; slot < GP_WIRE_QUEUE_MAX; slot++)
		agent_add_queue(world, &scene->agents[0], slot, GP_QUEUE_SEEN);
	for (uint32_t slot = 1; slot < GP_WIRE_QUEUE_MAX; slot++) {
		struct gp_channel_group *group = &world_queue(world, &scene->agents[0], slot)->group;

		group->is_asked = slot <= 16; /* no more at once */
		group->again_ns = 1;
	}
	world->daemon.fair.away_work = 0;
	gp_channel_group_due(&world->daemon, gp_now_ns());
	assert_in_range(world->daemon.fair.away_work, 1, 100);
	for (uint32_t slot = 17; slot < GP_WIRE_QUEUE_MAX; slot++)
		assert_true(world_queue(world, &scene->agents[0], slot)->group.again_ns > gp_now_ns());
	scene_end(scene);
}

/* Clients that have one queue each, in the last slot there may be: their empty slots take no work. */
static void test_groups_in_far_slots(void **state)
{
	static struct agent agents[40];
	struct scene *scene = malloc(sizeof(*scene));
	struct world *world = &scene->world;

	(void)state;
	scene_begin(scene, "mechanism = borrow\n");
	for (uint32_t i = 0; i < 40; i++) {
		struct gp_queue_entry *queue;

		agent_connect(world, &agents[i], GP_PRIORITY_LOW);
		agent_add_queue(world, &agents[i], GP_WIRE_QUEUE_MAX - 1, GP_QUEUE_SEEN);
		queue = world_queue(world, &agents[i], GP_WIRE_QUEUE_MAX - 1);
		queue->client->device.is_handed_over = true;
		queue->group.again_ns = gp_now_ns() + 1000000000;
	}
	world->daemon.fair.away_work = 0;
	gp_channel_group_due(&world->daemon, gp_now_ns());
	assert_in_range(world->daemon.fair.away_work, 1, 40);
	for (uint32_t i = 0; i < 40; i++)
		agent_leave(world, &agents[i]);
	scene_end(scene);
}

/* One of two batch clients is to be closed, and the call does not come back. */
static void scene_begin_hanging(struct scene *scene, const char *config)
{
	scene_begin(scene, config);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[1], 0, 5);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	rm.hang = true;
	scene_join(scene, 2, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, rm.hanging == 1);
}

/* A client that says the same again and again costs RM no more than one that says it once. */
static void test_many_groups(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_group group;
	uint32_t looks;

	(void)state;
	scene_begin_hanging(scene, NULL);
	looks = rm.looks;
	group = scene_group(scene, 2);
	for (uint32_t i = 0; i < 200; i++) {
		world_send(scene->agents[2].fd, &group, sizeof(group));
		world_step(&scene->world);
	}
	rm_go_on();
	UNTIL(scene, closed_count() == 1 && rm.looks > looks);
	assert_int_equal(rm.looks, looks + 1);
	assert_int_equal(scene->agents[2].mechanism, 0);
	scene_end(scene);
}

static void until_stopped(struct scene *scene)
{
	gp_nvidia_hang_ns = 0;
	world_wait(&scene->world, 31000); /* longer than answers are waited for */
	UNTIL(scene, scene->world.daemon.devices[0].stopped);
	gp_nvidia_hang_ns = HOUR_NS;
}

/* A call that does not come back stops ordering on the GPU, not the daemon; when it does, everything is opened, and
 * ordering goes on; is_paused: not where somebody has stopped the GPU meanwhile, and status says who. */
static void a_call_that_hangs(const char *config, uint32_t fallback, bool is_paused)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	char *text;
	int result;

	scene_begin_hanging(scene, config);
	until_stopped(scene);
	assert_non_null(strstr(scene->world.daemon.devices[0].stopped_why, "does not come back"));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(scene_queue(scene, i)->client->device.mechanism, fallback);
	for (uint32_t i = 0; i < 3; i++)
		scene->agents[i].silent = true;
	text = world_ask(&scene->world, &request, &result);
	assert_int_equal(result, 0);
	free(text);
	for (uint32_t i = 0; i < 3; i++)
		scene->agents[i].silent = false;
	if (is_paused)
		gp_device_stop(&scene->world.daemon, &scene->world.daemon.devices[0], "a person wants it");
	rm_go_on();
	for (uint32_t i = 0; i < 3; i++)
		UNTIL(scene, scene_queue(scene, i)->client->device.mechanism == GP_MECHANISM_BORROW);
	assert_int_equal(scene->world.daemon.devices[0].stopped, is_paused);
	assert_string_equal(scene->world.daemon.devices[0].stopped_why,
			    is_paused ? scene->world.daemon.devices[0].paused_why : "");
	if (is_paused)
		UNTIL(scene, !closed_count() && rm.contexts[1].slice_us == LONG && rm.contexts[2].slice_us == LONG);
	else
		UNTIL(scene,
		      closed_count() == 1 && rm.contexts[1].slice_us == SHORT && rm.contexts[2].slice_us == SHORT);
	scene_end(scene);
}

static void test_a_call_that_hangs(void **state)
{
	(void)state;
	a_call_that_hangs(NULL, GP_MECHANISM_CHANNEL, false);
	a_call_that_hangs("mechanism = borrow\n", GP_MECHANISM_NONE, false);
	a_call_that_hangs(NULL, GP_MECHANISM_CHANNEL, true);
}

/* Another daemon: it has the lock of the GPU. */
static pid_t rival_start(struct scene *scene)
{
	struct gp_device_entry *device = &scene->world.daemon.devices[0];
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[128], byte;
	int ready[2], fd;
	pid_t rival;

	snprintf(device->info.identity, GP_DEVICE_NAME_SIZE, "test-gpu");
	snprintf(path, sizeof(path), "%s/test-gpu.lock", scene->world.folder);
	assert_int_equal(pipe(ready), 0);
	rival = fork();
	if (!rival) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || fcntl(fd, F_SETLK, &lock) || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	gp_claim_all(&scene->world.daemon);
	assert_true(device->claim.is_left);
	return rival;
}

static void rival_end(struct scene *scene, pid_t rival)
{
	kill(rival, SIGKILL);
	assert_int_equal(waitpid(rival, NULL, 0), rival);
	world_wait(&scene->world, 3000);
	UNTIL(scene, !scene->world.daemon.devices[0].claim.is_left);
}

static void expect_status(struct scene *scene, const char *first, const char *second)
{
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	char *text;
	int result;

	for (uint32_t i = 0; i < 3; i++)
		scene->agents[i].silent = true;
	text = world_ask(&scene->world, &request, &result);
	for (uint32_t i = 0; i < 3; i++)
		scene->agents[i].silent = false;
	if (!strstr(text, first) || !strstr(text, second))
		fail_msg("no '%s' and '%s' in %s", first, second, text);
	free(text);
}

/* A call hangs, and another daemon has the GPU, whichever comes first. status names both, and the daemon schedules the
 * GPU again once both have ended, whichever ends first. */
static void a_call_that_hangs_and_another_daemon(bool hangs_first, bool is_back_first)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_device_entry *device;
	pid_t rival;

	scene_begin_hanging(scene, "mechanism = borrow\n");
	device = &scene->world.daemon.devices[0];
	if (hangs_first)
		until_stopped(scene);
	gp_nvidia_hang_ns = 0; /* the next call finds that the one before hangs */
	rival = rival_start(scene);
	UNTIL(scene, scene_queue(scene, 0)->client->device.mechanism == GP_MECHANISM_NONE);
	gp_nvidia_hang_ns = HOUR_NS;
	expect_status(scene, "does not come back; another gpreemptd", "\"stopped\":true");
	if (!is_back_first) {
		rival_end(scene, rival);
		expect_status(scene, "does not come back", "\"stopped\":true");
	}
	rm_go_on();
	for (uint32_t i = 0; i < 3; i++)
		UNTIL(scene, scene_queue(scene, i)->client->device.mechanism == GP_MECHANISM_BORROW);
	assert_int_equal(device->stopped, is_back_first);
	if (is_back_first) {
		expect_status(scene, "\"stopped_why\":\"another gpreemptd", "\"stopped\":true");
		rival_end(scene, rival);
	}
	UNTIL(scene, !device->stopped);
	scene_end(scene);
}

static void test_a_call_that_hangs_and_another_daemon(void **state)
{
	(void)state;
	a_call_that_hangs_and_another_daemon(true, true);
	a_call_that_hangs_and_another_daemon(true, false);
	a_call_that_hangs_and_another_daemon(false, true);
	a_call_that_hangs_and_another_daemon(false, false);
}

/* A person pauses the GPU before the daemon finds that a call hangs. The clients get their mechanism back when the call
 * comes back, or with borrow alone they would not be scheduled after the pause. */
static void test_a_pause_before_a_call_hangs(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_device_entry *device;

	(void)state;
	scene_begin_hanging(scene, "mechanism = borrow\n");
	device = &scene->world.daemon.devices[0];
	gp_nvidia_hang_ns = 0;
	gp_device_stop(&scene->world.daemon, device, "a person wants it");
	UNTIL(scene, scene_queue(scene, 0)->client->device.mechanism == GP_MECHANISM_NONE);
	gp_nvidia_hang_ns = HOUR_NS;
	rm_go_on();
	for (uint32_t i = 0; i < 3; i++)
		UNTIL(scene, scene_queue(scene, i)->client->device.mechanism == GP_MECHANISM_BORROW);
	assert_string_equal(device->stopped_why, device->paused_why);
	gp_device_start(&scene->world.daemon, device);
	UNTIL(scene, closed_count() == 1);
	scene_end(scene);
}

/* Root resumes a GPU while the call still hangs: the next call for it finds that again. */
static void test_a_resume_while_a_call_hangs(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_daemon *daemon = &scene->world.daemon;

	(void)state;
	scene_begin_hanging(scene, NULL);
	until_stopped(scene);
	for (uint32_t i = 0; i < 3; i++)
		gp_client_mechanism(daemon, scene_queue(scene, i)->client, GP_MECHANISM_BORROW, "a test");
	gp_device_start(daemon, &daemon->devices[0]);
	UNTIL(scene, daemon->devices[0].stopped);
	assert_non_null(strstr(daemon->devices[0].stopped_why, "does not come back"));
	rm_go_on();
	UNTIL(scene, !daemon->devices[0].stopped && closed_count() == 1);
	scene_end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_does_not_close),
		cmocka_unit_test(test_files_are_given_back),
		cmocka_unit_test(test_a_context_that_takes_long_to_end),
		cmocka_unit_test(test_files_that_take_long_to_close),
		cmocka_unit_test(test_many_groups_that_wait),
		cmocka_unit_test(test_groups_in_far_slots),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_a_call_that_hangs),
		cmocka_unit_test(test_a_call_that_hangs_and_another_daemon),
		cmocka_unit_test(test_a_pause_before_a_call_hangs),
		cmocka_unit_test(test_a_resume_while_a_call_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
