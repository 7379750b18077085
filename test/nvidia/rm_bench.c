/* SPDX-License-Identifier: MIT */
/* The bench of the agent's tests on the fake resource manager: what it was told, and what it is told to do. */
#include <errno.h>
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "test/nvidia/rm_bench.h"

struct fake_rm_state *rm;
char rm_folder[] = "/tmp/gp-fake-rm-XXXXXX";

static void rm_file(const char *name, off_t size)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", rm_folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(fd >= 0 && ftruncate(fd, size) == 0);
	if (size)
		rm = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

void rm_start(struct test *test, uint32_t gpus)
{
	static char agent_log[128];

	MUST(mkdtemp(rm_folder) != NULL);
	rm_file("nvidiactl", 0);
	rm_file("nvidia0", 0);
	rm_file(FAKE_RM_STATE, sizeof(*rm));
	MUST(rm != MAP_FAILED);
	rm->magic = FAKE_RM_MAGIC;
	rm->gpu_count = gpus;
	for (uint32_t i = 0; i < gpus; i++)
		rm->gpu_ids[i] = (i + 1u) << 8;
	rm->cilp = GP_RM_PREEMPT_CILP;
	setenv(FAKE_RM_ENV, rm_folder, 1);
	snprintf(agent_log, sizeof(agent_log), "%s/agent.log", rm_folder);
	setenv("GPREEMPT_AGENT_LOG", agent_log, 1);
	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
}

void rm_end(struct test *test)
{
	char command[160];

	CHECK(test_end(test) == 0);
	snprintf(command, sizeof(command), "rm -rf %s", rm_folder);
	CHECK(system(command) == 0);
}

void rm_meet(struct test *test, uint32_t mechanism, uint32_t lease_ms, uint32_t queues)
{
	MUST(fake_accept(&test->fake));
	MUST(fake_welcome(&test->fake, mechanism, lease_ms));
	MUST(fake_until_queues(&test->fake, queues));
}

/* The agent comes again, and says that it leaves this driver alone. */
void rm_refused(struct test *test, const char *why)
{
	int type;

	while ((type = fake_receive(&test->fake, AGENT_WAIT_MS)) > 0)
		;
	MUST(type < 0);
	close(test->fake.socket);
	MUST(fake_accept(&test->fake));
	CHECK(test->fake.hello.mechanisms == 0);
	CHECK(strstr(test->fake.hello.runtime, why));
}

void rm_rule(uint32_t how, uint32_t command, uint32_t value, uint32_t count)
{
	for (uint32_t i = 0; i < FAKE_RM_RULE_MAX; i++)
		if (rm->rules[i].how == FAKE_RM_NOT) {
			rm->rules[i].command = command;
			rm->rules[i].value = value;
			rm->rules[i].count = count;
			__atomic_store_n(&rm->rules[i].how, how, __ATOMIC_RELEASE);
			return;
		}
}

const struct fake_rm_object *rm_object(uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++)
		if (rm->objects[i].used && rm->objects[i].client == client && rm->objects[i].handle == handle)
			return &rm->objects[i];
	return NULL;
}

/* Channels of a queue that the "hardware" has disabled. */
uint32_t rm_disabled(const struct fake_queue *queue)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++)
		count += rm->objects[i].used && rm->objects[i].client == queue->group.client &&
			 rm->objects[i].parent == queue->group.group && rm->objects[i].disabled;
	return count;
}

uint64_t rm_slice(const struct fake_queue *queue)
{
	const struct fake_rm_object *group = rm_object(queue->group.client, queue->group.group);

	return group ? group->slice_us : 0;
}

void rm_set(const struct fake_queue *queue, uint32_t disabled, uint64_t slice_us)
{
	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++) {
		struct fake_rm_object *object = &rm->objects[i];

		if (!object->used || object->client != queue->group.client)
			continue;
		if (object->parent == queue->group.group)
			object->disabled = disabled;
		if (object->handle == queue->group.group)
			object->slice_us = slice_us;
	}
}

bool rm_until_disabled(const struct fake_queue *queue, uint32_t count)
{
	for (int i = 0; i < AGENT_WAIT_MS; i++, usleep(1000))
		if (rm_disabled(queue) == count)
			return true;
	return false;
}

bool rm_until_slice(const struct fake_queue *queue, uint64_t slice_us)
{
	for (int i = 0; i < AGENT_WAIT_MS; i++, usleep(1000))
		if (rm_slice(queue) == slice_us)
			return true;
	return false;
}

uint32_t rm_calls(uint32_t command)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < rm->call_count && i < FAKE_RM_CALL_MAX; i++)
		count += rm->calls[i].command == command;
	return count;
}

/* The next GROUP of a queue. */
bool rm_until_group(struct test *test, const struct fake_queue *queue)
{
	uint32_t before = queue->group_count;

	while (queue->group_count == before)
		if (!fake_until(&test->fake, GP_WIRE_GROUP))
			return false;
	return true;
}

/* The queue whose GROUP has come. */
struct fake_queue *rm_queue(struct test *test, uint32_t index)
{
	struct fake_queue *queue = fake_queue(&test->fake, index);

	MUST(queue);
	if (!queue->group_count)
		MUST(rm_until_group(test, queue));
	return queue;
}

int rm_slice_order(struct test *test, const struct fake_queue *queue, uint64_t slice_us)
{
	struct gp_wire_slice order = { .slot = queue->said.slot,
				       .generation = queue->said.generation,
				       .slice_us = slice_us };
	const struct gp_wire_slice *answer = (const void *)test->fake.message;

	if (!fake_send(&test->fake, GP_WIRE_SLICE, &order.slot,
		       (uint32_t)(sizeof(order) - sizeof(struct gp_wire_header))) ||
	    !fake_until(&test->fake, GP_WIRE_SLICED) || answer->slice_us != slice_us)
		return 1;
	return answer->result;
}

struct fake_queue *rm_start_one(struct test *test, uint32_t mechanism, uint32_t lease_ms)
{
	rm_start(test, 1);
	CHECK(test_number(test, "context", 0) == 0);
	rm_meet(test, mechanism, lease_ms, 1);
	return rm_queue(test, 0);
}
