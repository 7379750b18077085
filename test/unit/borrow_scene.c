/* SPDX-License-Identifier: MIT */
/* The bench of the tests of mechanism borrow. */
#include "test/unit/borrow_scene.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct scene_rm rm = { .lock = PTHREAD_MUTEX_INITIALIZER, .go_on = PTHREAD_COND_INITIALIZER };

static struct context *rm_context(uint32_t client)
{
	for (uint32_t i = 0; i < rm.context_count; i++)
		if (rm.contexts[i].client == client)
			return &rm.contexts[i];
	return NULL;
}

bool context_is_open(const struct context *context)
{
	for (uint32_t i = 0; i < CHANNELS; i++)
		if (context->disabled[i])
			return false;
	return true;
}

static bool context_has_work(const struct context *context)
{
	const struct gp_page_queue *queue = context->queue;

	return queue ? __atomic_load_n(&queue->written, __ATOMIC_SEQ_CST) >
			       __atomic_load_n(&queue->completed, __ATOMIC_SEQ_CST) :
		       context->has_left_work;
}

static bool context_is_in_the_way(const struct context *context)
{
	return context->slice_us < LONG && context_is_open(context) && context_has_work(context);
}

/* Two short ones with work, open at once, make no progress: no call may bring that about. One without work is in
 * nobody's way; when it gets some while another has some, it takes a call to close one of them, and until that has come
 * back both are open. */
static void rm_look(const struct context *changed)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rm.context_count; i++)
		count += context_is_in_the_way(&rm.contexts[i]);
	if (context_is_in_the_way(changed) && count > rm.most_short)
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
	for (uint32_t i = 0; i < params->count && !params->disable; i++)
		rm_look(rm_context(params->clients[i]));
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
	struct gp_rm_ctxsw_stats *stats;

	if (!context || context->file != file)
		return GP_RM_ERR_CLIENT;
	rm.counts += control->command == GP_RM_CTXSW_STATS;
	if (rm.refuse == control->command && (!rm.refuse_client || rm.refuse_client == control->client))
		return rm.status;
	switch (control->command) {
	case GP_RM_SLICE_GET:
		rm.looks++;
		memcpy(params, &context->slice_us, 8);
		break;
	case GP_RM_CTXSW_STATS:
		stats = params;
		if (control->params_size != sizeof(*stats) || stats->object != context->group || stats->flags ||
		    control->object != context->subdevice)
			return GP_RM_ERR_ARGUMENT;
		context->saves += context->saves_step;
		stats->save = context->saves;
		break;
	case GP_RM_SLICE_SET:
		memcpy(&context->slice_us, params, 8);
		rm_look(context);
		break;
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
	pthread_mutex_unlock(&rm.lock);
	return 0;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	if (__atomic_load_n(&rm.no_memory, __ATOMIC_RELAXED) && !pthread_equal(pthread_self(), rm.thread) &&
	    !__atomic_sub_fetch(&rm.no_memory, 1, __ATOMIC_RELAXED))
		return NULL;
	return __real_calloc(count, size);
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

void scene_begin(struct scene *scene, const char *config)
{
	char text[512];

	memset(scene, 0, sizeof(*scene));
	memset(rm.contexts, 0, sizeof(rm.contexts));
	rm.context_count = rm.disables = rm.enables = rm.channels_most = rm.most_short = rm.refuse = rm.status = 0;
	rm.refuse_several = rm.hang = false;
	rm.counts = 0;
	rm.thread = pthread_self();
	rm.refuse_client = 0;
	gp_nvidia_hang_ns = gp_nvidia_end_ns = HOUR_NS;
	nvidia_root_begin(&scene->root);
	nvidia_root_gpu(&scene->root, "0000:00:01.0", "NVIDIA H200", 0);
	/* Nobody's turn ends while a thread waits for a processor: what is done is counted. */
	snprintf(
		text, sizeof(text),
		"[policy]\nturn = 1h\nage_window = 1h\nmin_open = 1us\n[daemon]\nbackend = nvidia\n[nvidia]\nroot = %s\nlong_slice = 0\nmiddle_slice = 0\n%s",
		scene->root.path, config ? config : "");
	world_begin(&scene->world, text);
}

void scene_round(struct scene *scene)
{
	for (uint32_t i = 0; i < AGENTS; i++)
		if (scene->here[i])
			agent_work(&scene->world, &scene->agents[i]);
	world_wait(&scene->world, 1);
	world_step(&scene->world);
}

void scene_leave(struct scene *scene, uint32_t index)
{
	scene->here[index] = false;
	pthread_mutex_lock(&rm.lock);
	rm.contexts[index].has_left_work = context_has_work(&rm.contexts[index]);
	rm.contexts[index].queue = NULL;
	pthread_mutex_unlock(&rm.lock);
	agent_leave(&scene->world, &scene->agents[index]);
}

void scene_end(struct scene *scene)
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

struct gp_wire_group scene_group(const struct scene *scene, uint32_t index)
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

struct agent *scene_hello(struct scene *scene, uint32_t index, int32_t priority)
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
	pthread_mutex_lock(&rm.lock);
	rm.contexts[index].queue = &agent->page->queues[0];
	pthread_mutex_unlock(&rm.lock);
	agent_add_queue(&scene->world, agent, 0, GP_QUEUE_SEEN);
	return agent;
}

struct gp_queue_entry *scene_queue(struct scene *scene, uint32_t index)
{
	return world_queue(&scene->world, &scene->agents[index], 0);
}

struct gp_queue_info scene_info(struct scene *scene, uint32_t index)
{
	return world_info(&scene->world, &scene->agents[index], 0);
}

struct agent *scene_join(struct scene *scene, uint32_t index, int32_t priority)
{
	struct agent *agent = scene_hello(scene, index, priority);
	struct gp_wire_group group = scene_group(scene, index);

	world_send(agent->fd, &group, sizeof(group));
	UNTIL(scene, scene_queue(scene, index)->in_core);
	return agent;
}

uint32_t closed_count(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rm.context_count; i++)
		count += !context_is_open(&rm.contexts[i]);
	return count;
}

void rm_go_on(void)
{
	pthread_mutex_lock(&rm.lock);
	rm.hang = false;
	rm.sticky = 0;
	pthread_cond_broadcast(&rm.go_on);
	pthread_mutex_unlock(&rm.lock);
}

struct scene *scene_three(void)
{
	struct scene *scene = malloc(sizeof(*scene));

	scene_begin(scene, NULL);
	scene_join(scene, 0, GP_PRIORITY_NORMAL);
	/* In this order both stay open: the turn is the lowest's, and one above it that has no work is in nobody's way.
	 */
	scene_join(scene, 2, GP_PRIORITY_LOW);
	scene_join(scene, 1, GP_PRIORITY_NORMAL - 1);
	/* No call that was decided on while nobody had work is under way when somebody gets some. */
	UNTIL(scene, rm.contexts[1].slice_us == SHORT && rm.contexts[2].slice_us == SHORT);
	return scene;
}

void scene_work(struct scene *scene, uint32_t a, uint32_t b)
{
	agent_doorbell(&scene->world, &scene->agents[a], 0, 5);
	agent_doorbell(&scene->world, &scene->agents[b], 0, 5);
}
