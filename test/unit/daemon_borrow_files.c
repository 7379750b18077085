/* SPDX-License-Identifier: MIT */
/* Mechanism borrow: the files that clients lend, and calls on them that do not come back. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* A call that does not come back stops ordering on the GPU, not the daemon; when it does, everything is opened, and
 * ordering goes on; is_paused: not where somebody has stopped the GPU meanwhile. */
static void a_call_that_hangs(const char *config, uint32_t fallback, bool is_paused)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	char *text;
	int result;

	scene_begin_hanging(scene, config);
	gp_nvidia_hang_ns = 0;
	world_wait(&scene->world, 31000); /* longer than answers are waited for */
	UNTIL(scene, scene->world.daemon.devices[0].stopped);
	gp_nvidia_hang_ns = HOUR_NS;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_does_not_close),
		cmocka_unit_test(test_files_are_given_back),
		cmocka_unit_test(test_a_context_that_takes_long_to_end),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_a_call_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
