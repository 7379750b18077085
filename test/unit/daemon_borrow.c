/* SPDX-License-Identifier: MIT */
/*
 * Mechanism borrow: gpreemptd itself calls RM on the clients' files. RM here is an ioctl() of the test's own that knows
 * a few contexts, answers only on the file a client was made on, and keeps a list of what it was told.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <gpreempt/rm.h>
#include "test/unit/daemon_world.h"
#include "test/unit/nvidia_root.h"

#define AGENTS   4u
#define CHANNELS 8u
#define SHORT    1u
#define LONG     2048u
#define ROUNDS   20000 /* of a millisecond: only a way to fail */

struct context {
	ino_t file;
	uint32_t client, group, subdevice, gpu_id;
	uint64_t slice_us;
	bool disabled[CHANNELS];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t go_on;
	struct context contexts[AGENTS];
	uint32_t context_count;
	uint32_t disables, enables; /* calls */
	uint32_t channels_most;     /* in one call */
	uint32_t most_short;        /* open together */
	uint32_t refuse, status;    /* this command gets this status … */
	uint32_t refuse_client;     /* … on this client's file; 0: on all */
	bool refuse_several;        /* DISABLE_CHANNELS of several clients */
	uint32_t looks;             /* SLICE_GET calls */
	bool hang;                  /* DISABLE_CHANNELS does not come back */
	uint32_t hanging;
	ino_t sticky; /* a close() of this file does not come back */
	uint32_t sticking;
} rm = { .lock = PTHREAD_MUTEX_INITIALIZER, .go_on = PTHREAD_COND_INITIALIZER };

static struct context *rm_context(uint32_t client)
{
	for (uint32_t i = 0; i < rm.context_count; i++)
		if (rm.contexts[i].client == client)
			return &rm.contexts[i];
	return NULL;
}

static bool context_is_open(const struct context *context)
{
	for (uint32_t i = 0; i < CHANNELS; i++)
		if (context->disabled[i])
			return false;
	return true;
}

static void rm_look(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rm.context_count; i++)
		count += rm.contexts[i].slice_us == SHORT && context_is_open(&rm.contexts[i]);
	if (count > rm.most_short)
		rm.most_short = count;
}

static uint32_t rm_disable(const struct gp_rm_disable *params)
{
	uint32_t clients = params->count ? 1 : 0;

	for (uint32_t i = 1; i < params->count; i++)
		clients += params->clients[i] != params->clients[i - 1];
	if (rm.refuse_several && clients > 1)
		return GP_RM_ERR_PERMISSIONS;
	while (rm.hang) {
		rm.hanging++;
		pthread_cond_wait(&rm.go_on, &rm.lock);
		rm.hanging--;
	}
	for (uint32_t i = 0; i < params->count; i++) {
		struct context *context = rm_context(params->clients[i]);
		uint32_t channel = params->channels[i] - 0x100;

		if (!context || channel >= CHANNELS)
			return GP_RM_ERR_CHANNEL;
		context->disabled[channel] = params->disable;
	}
	rm.disables += params->disable;
	rm.enables += !params->disable;
	if (params->count > rm.channels_most)
		rm.channels_most = params->count;
	return GP_RM_OK;
}

static uint32_t rm_control(ino_t file, const struct gp_rm_control *control)
{
	struct context *context = rm_context(control->client);
	void *params = (void *)(uintptr_t)control->params;

	if (!context || context->file != file)
		return GP_RM_ERR_CLIENT;
	if (rm.refuse == control->command && (!rm.refuse_client || rm.refuse_client == control->client))
		return rm.status;
	switch (control->command) {
	case GP_RM_SLICE_GET:
		rm.looks++;
		memcpy(params, &context->slice_us, 8);
		break;
	case GP_RM_SLICE_SET: memcpy(&context->slice_us, params, 8); break;
	case GP_RM_GROUP_INFO:
	case GP_RM_GPU_ID: memcpy(params, &context->gpu_id, 4); break;
	case GP_RM_DISABLE_CHANNELS:
		if (control->params_size != sizeof(struct gp_rm_disable))
			return GP_RM_ERR_ARGUMENT;
		return rm_disable(params);
	default: return GP_RM_ERR_SUPPORT;
	}
	return control->object == context->group || control->object == context->subdevice ? GP_RM_OK : GP_RM_ERR_OBJECT;
}

/* Instead of libc's, for the whole test. */
int ioctl(int fd, unsigned long request, ...)
{
	struct gp_rm_control *control;
	struct stat st;
	va_list arguments;

	va_start(arguments, request);
	control = va_arg(arguments, void *);
	va_end(arguments);
	if (request != (GP_RM_REQUEST(GP_RM_CONTROL) | (unsigned long)sizeof(*control) << 16))
		return (int)syscall(SYS_ioctl, fd, request, control);
	if (fstat(fd, &st))
		return -1;
	pthread_mutex_lock(&rm.lock);
	control->status = rm_control(st.st_ino, control);
	rm_look();
	pthread_mutex_unlock(&rm.lock);
	return 0;
}

/* As well: a file of somebody else's may take for ever to close (FUSE, a socket that lingers). */
int close(int fd)
{
	struct stat st;

	pthread_mutex_lock(&rm.lock);
	while (rm.sticky && !fstat(fd, &st) && st.st_ino == rm.sticky) {
		rm.sticking++;
		pthread_cond_wait(&rm.go_on, &rm.lock);
		rm.sticking--;
	}
	pthread_mutex_unlock(&rm.lock);
	return (int)syscall(SYS_close, fd);
}

struct scene {
	struct world world;
	struct nvidia_root root;
	struct agent agents[AGENTS];
	int fds[AGENTS];
	bool here[AGENTS];
};

static void scene_begin(struct scene *scene, const char *config)
{
	char text[512];

	memset(scene, 0, sizeof(*scene));
	memset(rm.contexts, 0, sizeof(rm.contexts));
	rm.context_count = rm.disables = rm.enables = rm.channels_most = rm.most_short = rm.refuse = rm.status = 0;
	rm.refuse_several = rm.hang = false;
	rm.refuse_client = 0;
	nvidia_root_begin(&scene->root);
	nvidia_root_gpu(&scene->root, "0000:00:01.0", "NVIDIA H200", 0);
	snprintf(text, sizeof(text), "[daemon]\nbackend = nvidia\n[nvidia]\nroot = %s\n%s", scene->root.path,
		 config ? config : "");
	world_begin(&scene->world, text);
}

/* Everybody does what there is to do; the daemon's other threads, too. */
static void scene_round(struct scene *scene)
{
	struct pollfd end = { .fd = scene->world.daemon.epoll_fd, .events = POLLIN };

	for (uint32_t i = 0; i < AGENTS; i++)
		if (scene->here[i])
			agent_work(&scene->world, &scene->agents[i]);
	poll(&end, 1, 1);
	world_step(&scene->world);
}

#define UNTIL(scene, condition)                                          \
	do {                                                             \
		bool is_so = false;                                      \
                                                                         \
		for (int round = 0; !is_so && round < ROUNDS; round++) { \
			scene_round(scene);                              \
			pthread_mutex_lock(&rm.lock);                    \
			is_so = (condition);                             \
			pthread_mutex_unlock(&rm.lock);                  \
		}                                                        \
		if (!is_so)                                              \
			fail_msg("never: %s", #condition);               \
	} while (0)

static void scene_leave(struct scene *scene, uint32_t index)
{
	scene->here[index] = false;
	agent_leave(&scene->world, &scene->agents[index]);
}

static void scene_end(struct scene *scene)
{
	for (uint32_t i = 0; i < AGENTS; i++) {
		if (scene->here[i])
			scene_leave(scene, i);
		if (scene->fds[i])
			close(scene->fds[i]);
	}
	world_end(&scene->world);
	/* Whatever was done to them, the daemon's end undoes it. */
	for (uint32_t i = 0; i < rm.context_count; i++) {
		assert_true(context_is_open(&rm.contexts[i]));
		assert_int_equal(rm.contexts[i].slice_us, LONG);
	}
	assert_in_range(rm.most_short, 0, 1);
	nvidia_root_end(&scene->root);
	free(scene);
}

static struct gp_wire_group scene_group(const struct scene *scene, uint32_t index)
{
	const struct context *context = &rm.contexts[index];
	struct gp_wire_group group = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_GROUP, sizeof(group), 0 },
		.generation = 1,
		.fd = scene->fds[index],
		.client = context->client,
		.subdevice = context->subdevice,
		.group = context->group,
		.channel_count = CHANNELS,
		.slice_us = LONG,
	};

	for (uint32_t i = 0; i < CHANNELS; i++)
		group.channels[i] = 0x100 + i;
	return group;
}

static struct agent *scene_hello(struct scene *scene, uint32_t index, int32_t priority)
{
	struct gp_wire_hello hello = world_hello(priority);
	struct agent *agent = &scene->agents[index];
	char path[128];
	struct stat st;

	nvidia_root_file(&scene->root, "dev/x", "");
	snprintf(path, sizeof(path), "%s/dev/nvidiactl.%u", scene->root.path, index);
	scene->fds[index] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fstat(scene->fds[index], &st), 0);
	pthread_mutex_lock(&rm.lock);
	rm.contexts[index] = (struct context){ .file = st.st_ino,
					       .client = 0xc1d00000 + index,
					       .group = 0x5c000010 + index,
					       .subdevice = 0x5c000004,
					       .gpu_id = WORLD_GPU,
					       .slice_us = LONG };
	if (index >= rm.context_count)
		rm.context_count = index + 1;
	pthread_mutex_unlock(&rm.lock);
	hello.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL);
	agent_hello(&scene->world, agent, &hello);
	scene->here[index] = true;
	agent_add_queue(&scene->world, agent, 0, GP_QUEUE_SEEN);
	return agent;
}

static struct gp_queue_entry *scene_queue(struct scene *scene, uint32_t index)
{
	return world_queue(&scene->world, &scene->agents[index], 0);
}

static struct agent *scene_join(struct scene *scene, uint32_t index, int32_t priority)
{
	struct agent *agent = scene_hello(scene, index, priority);
	struct gp_wire_group group = scene_group(scene, index);

	world_send(agent->fd, &group, sizeof(group));
	UNTIL(scene, scene_queue(scene, index)->in_core);
	return agent;
}

static uint32_t closed_count(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rm.context_count; i++)
		count += !context_is_open(&rm.contexts[i]);
	return count;
}

static void test_slices_and_gates(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, NULL);
	assert_int_equal(scene->world.daemon.devices[0].info.mechanism, GP_MECHANISM_BORROW);
	assert_int_equal(scene->world.daemon.devices[0].info.unit, GP_UNIT_DEVICE);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	assert_int_equal(scene->agents[0].welcome.mechanism, GP_MECHANISM_BORROW);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	scene_join(scene, 2, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[1], 0, 5);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, closed_count() == 1 && rm.contexts[1].slice_us == SHORT && rm.contexts[2].slice_us == SHORT);
	/* The agents were not asked for anything. */
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(scene->agents[i].order_count + scene->agents[i].slice_count, 0);
	scene_leave(scene, 0);
	UNTIL(scene, !closed_count() && rm.contexts[1].slice_us == LONG && rm.contexts[2].slice_us == LONG);
	scene_end(scene);
}

/* A plan that closes several closes them in one call. */
static void test_several_in_one_call(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, "[policy]\nbatch_clients = 1\n");
	for (uint32_t i = 1; i < AGENTS; i++) {
		scene_join(scene, i, GP_PRIORITY_LOW);
		agent_doorbell(&scene->world, &scene->agents[i], 0, 5);
	}
	assert_int_equal(rm.disables, 0);
	/* Now they are below somebody: all but one have to close. */
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	UNTIL(scene, closed_count() == AGENTS - 2);
	assert_int_equal(rm.disables, 1);
	assert_int_equal(rm.channels_most, (AGENTS - 2) * CHANNELS);
	scene_end(scene);
}

static void test_one_by_one_where_together_is_refused(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, NULL);
	for (uint32_t i = 1; i < AGENTS; i++) {
		scene_join(scene, i, GP_PRIORITY_LOW);
		agent_doorbell(&scene->world, &scene->agents[i], 0, 5);
	}
	rm.refuse_several = true;
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	UNTIL(scene, closed_count() == AGENTS - 2);
	assert_int_equal(rm.disables, AGENTS - 2);
	assert_int_equal(rm.channels_most, CHANNELS);
	for (uint32_t i = 0; i < AGENTS; i++)
		assert_int_equal(scene->agents[i].mechanism, 0); /* nobody was told another one */
	scene_end(scene);
}

/* Handles that do not answer on the file, another GPU, a file that is none of the driver's: the agent does it. */
static void test_bad_groups(void **state)
{
	static const char *const whys[] = { "does not answer", "another GPU", "no file of the NVIDIA driver",
					    "cannot take its file" };
	int other = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	for (uint32_t kind = 0; kind < 4; kind++) {
		struct scene *scene = malloc(sizeof(*scene));
		struct gp_wire_group group;
		struct agent *agent;

		scene_begin(scene, NULL);
		scene_join(scene, 1, GP_PRIORITY_NORMAL);
		agent = scene_hello(scene, 0, GP_PRIORITY_LOW);
		group = scene_group(scene, 0);
		if (kind == 0)
			group.client = rm.contexts[1].client; /* somebody else's */
		else if (kind == 1)
			rm.contexts[0].gpu_id = 77;
		else
			group.fd = kind == 2 ? other : 100000;
		world_send(agent->fd, &group, sizeof(group));
		UNTIL(scene, agent->mechanism == GP_MECHANISM_CHANNEL && scene_queue(scene, 0)->in_core);
		assert_non_null(strstr(scene_queue(scene, 0)->client->mechanism_why, whys[kind]));
		UNTIL(scene, agent->slice_us[0] == SHORT);
		assert_int_equal(rm.disables, 0);
		assert_int_equal(rm.contexts[1].slice_us, LONG);
		scene_end(scene);
	}
	close(other);
}

/* Refused to us, though it is the client's own: the agent does it, and what we had done is undone before. */
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
	scene_join(scene, 1, GP_PRIORITY_NORMAL);
	scene_join(scene, 2, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[2].slice_us == SHORT);
	assert_false(scene->world.daemon.devices[0].stopped);
	pthread_mutex_lock(&rm.lock);
	rm.sticky = 0;
	pthread_cond_broadcast(&rm.go_on);
	pthread_mutex_unlock(&rm.lock);
	UNTIL(scene, !rm.sticking);
	close(fd);
	scene_end(scene);
}

/* RM disables channels one after the other: when one cannot be, those before it are enabled again. */
static void test_half_a_close(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_group group;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_NORMAL - 1);
	scene_hello(scene, 2, GP_PRIORITY_LOW);
	group = scene_group(scene, 2);
	group.channels[group.channel_count++] = 0x999;
	world_send(scene->agents[2].fd, &group, sizeof(group));
	UNTIL(scene, scene_queue(scene, 2)->in_core);
	agent_doorbell(&scene->world, &scene->agents[1], 0, 5);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, scene->world.daemon.devices[0].order_failures);
	UNTIL(scene, context_is_open(&rm.contexts[2]));
	rm.most_short = 0; /* it could not be closed */
	scene_end(scene);
}

/* Held out by a call that is under way when it is found that nobody sees its work: it does not stay so. */
static void test_blind_while_it_is_closed(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_queue change;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_NORMAL - 1);
	scene_join(scene, 2, GP_PRIORITY_LOW);
	rm.hang = true;
	agent_doorbell(&scene->world, &scene->agents[1], 0, 5);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, rm.hanging);
	change = scene_queue(scene, 2)->wire;
	change.header.type = GP_WIRE_QUEUE_CHANGE;
	change.flags = GP_QUEUE_SEEN | GP_QUEUE_BLIND;
	world_send(scene->agents[2].fd, &change, sizeof(change));
	UNTIL(scene, !scene_queue(scene, 2)->in_core);
	pthread_mutex_lock(&rm.lock);
	rm.hang = false;
	pthread_cond_broadcast(&rm.go_on);
	pthread_mutex_unlock(&rm.lock);
	UNTIL(scene, rm.disables && rm.enables);
	UNTIL(scene, context_is_open(&rm.contexts[2]) && rm.contexts[2].slice_us == LONG);
	rm.most_short = 0;
	scene_end(scene);
}

static void test_refused_later(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	rm.refuse = GP_RM_DISABLE_CHANNELS;
	rm.status = GP_RM_ERR_PERMISSIONS;
	scene_join(scene, 2, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[1], 0, 5);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene,
	      scene->agents[1].mechanism == GP_MECHANISM_CHANNEL || scene->agents[2].mechanism == GP_MECHANISM_CHANNEL);
	UNTIL(scene, scene->agents[1].order_count + scene->agents[2].order_count > 0);
	rm.refuse = 0;
	rm.most_short = 0; /* while neither could be closed both may have been short, for a moment */
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

/* A call that does not come back stops ordering on the GPU, not the daemon; when it does, everything is opened. */
static void test_a_call_that_hangs(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	char *text;
	int result;

	(void)state;
	scene_begin(scene, "[daemon]\nanswer_timeout = 20ms\n");
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[1], 0, 5);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	rm.hang = true;
	scene_join(scene, 2, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, rm.hanging == 1);
	UNTIL(scene, scene->world.daemon.devices[0].stopped);
	assert_non_null(strstr(scene->world.daemon.devices[0].stopped_why, "does not come back"));
	for (uint32_t i = 0; i < 3; i++)
		scene->agents[i].silent = true;
	text = world_ask(&scene->world, &request, &result);
	assert_int_equal(result, 0);
	free(text);
	for (uint32_t i = 0; i < 3; i++)
		scene->agents[i].silent = false;
	pthread_mutex_lock(&rm.lock);
	rm.hang = false;
	pthread_cond_broadcast(&rm.go_on);
	pthread_mutex_unlock(&rm.lock);
	UNTIL(scene, !closed_count() && rm.contexts[1].slice_us == LONG && rm.contexts[2].slice_us == LONG);
	scene_end(scene);
}

/* A client that says the same again and again costs RM no more than one that says it once. */
static void test_many_groups(void **state)
{
	struct scene *scene = malloc(sizeof(*scene));
	struct gp_wire_group group;
	uint32_t looks;

	(void)state;
	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	scene_join(scene, 1, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[1], 0, 5);
	UNTIL(scene, rm.contexts[1].slice_us == SHORT);
	rm.hang = true;
	scene_join(scene, 2, GP_PRIORITY_LOW);
	agent_doorbell(&scene->world, &scene->agents[2], 0, 5);
	UNTIL(scene, rm.hanging == 1);
	looks = rm.looks;
	group = scene_group(scene, 2);
	for (uint32_t i = 0; i < 200; i++) {
		world_send(scene->agents[2].fd, &group, sizeof(group));
		world_step(&scene->world);
	}
	pthread_mutex_lock(&rm.lock);
	rm.hang = false;
	pthread_cond_broadcast(&rm.go_on);
	pthread_mutex_unlock(&rm.lock);
	UNTIL(scene, closed_count() == 1 && rm.looks > looks);
	assert_int_equal(rm.looks, looks + 1);
	assert_int_equal(scene->agents[2].mechanism, 0);
	scene_end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices_and_gates),
		cmocka_unit_test(test_several_in_one_call),
		cmocka_unit_test(test_one_by_one_where_together_is_refused),
		cmocka_unit_test(test_bad_groups),
		cmocka_unit_test(test_a_file_that_does_not_close),
		cmocka_unit_test(test_half_a_close),
		cmocka_unit_test(test_blind_while_it_is_closed),
		cmocka_unit_test(test_refused_later),
		cmocka_unit_test(test_files_are_given_back),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_a_call_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
