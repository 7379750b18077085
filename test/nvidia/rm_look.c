/* SPDX-License-Identifier: MIT */
/*
 * The fake resource manager from outside: rm-look FOLDER
 *   make GPU_ID...               the files, and as many GPUs
 *   show                         its groups and calls, as JSON
 *   rule HOW COMMAND VALUE COUNT what is answered instead of the truth (fake_rm.h)
 *   saves STEP                   so many more context saves each time somebody asks
 *   clear                        no rules
 *   slow US                      a control takes up to so long
 *   teardown MS LOCKS            how long the last close of a client's file takes, and whether others' calls wait
 *   cilp MODE                    how kernels are stopped
 *   keeps 0|1                    whether scheduling leaves what is disabled disabled
 */
#include <fcntl.h>
#include <gpreempt/rm.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "test/nvidia/fake_rm.h"

static struct fake_rm_state *look_open(const char *folder, bool make)
{
	static const char *const names[] = { "nvidiactl", "nvidia0", FAKE_RM_STATE };
	struct fake_rm_state *rm;
	char path[4200];
	int fd = -1;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (fd >= 0)
			close(fd);
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		fd = open(path, make ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0600);
	}
	if (fd < 0 || (make && ftruncate(fd, sizeof(*rm)) < 0))
		return NULL;
	rm = mmap(NULL, sizeof(*rm), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return rm == MAP_FAILED ? NULL : rm;
}

static void look_groups(const struct fake_rm_state *rm)
{
	const char *comma = "";

	for (uint32_t i = 0; i < FAKE_RM_OBJECT_MAX; i++) {
		const struct fake_rm_object *group = &rm->objects[i];
		uint32_t channels = 0, disabled = 0;

		if (!group->used || group->class_id != GP_RM_CLASS_GROUP)
			continue;
		for (uint32_t k = 0; k < FAKE_RM_OBJECT_MAX; k++) {
			const struct fake_rm_object *channel = &rm->objects[k];
			bool own = channel->used && channel->client == group->client &&
				   channel->parent == group->handle &&
				   (channel->class_id & 0xff) == GP_RM_FAMILY_CHANNEL;

			channels += own;
			disabled += own && channel->disabled;
		}
		printf("%s\n\"%u\": { \"slice\": %llu, \"channels\": %u, \"disabled\": %u }", comma, group->handle,
		       (unsigned long long)group->slice_us, channels, disabled);
		comma = ",";
	}
}

static void look_calls(const struct fake_rm_state *rm)
{
	uint32_t first = rm->call_count > FAKE_RM_CALL_MAX ? rm->call_count - FAKE_RM_CALL_MAX : 0;

	for (uint32_t i = first; i < rm->call_count; i++) {
		const struct fake_rm_call *call = &rm->calls[i % FAKE_RM_CALL_MAX];

		printf("%s\n{ \"pid\": %d, \"number\": %u, \"command\": %u, \"client\": %u, \"object\": %u, \"status\": %u, \"value\": %u }",
		       i == first ? "" : ",", call->pid, call->number, call->command, call->client, call->object,
		       call->status, call->value);
	}
}

int main(int count, char **words)
{
	const char *verb = count > 2 ? words[2] : "";
	struct fake_rm_state *rm = count > 2 ? look_open(words[1], !strcmp(verb, "make")) : NULL;

	if (!rm)
		return 1;
	if (!strcmp(verb, "make")) {
		rm->magic = FAKE_RM_MAGIC;
		rm->cilp = GP_RM_PREEMPT_CILP;
		for (int i = 3; i < count && rm->gpu_count < FAKE_RM_GPU_MAX; i++)
			rm->gpu_ids[rm->gpu_count++] = (uint32_t)strtoul(words[i], NULL, 0);
	} else if (!strcmp(verb, "show")) {
		printf("{ \"groups\": {");
		look_groups(rm);
		printf("\n}, \"calls\": [");
		look_calls(rm);
		printf("\n], \"disabled_most\": %u, \"teardowns\": %u }\n", rm->disabled_most, rm->teardowns);
	} else if (!strcmp(verb, "rule") && count == 7) {
		for (uint32_t i = 0; i < FAKE_RM_RULE_MAX; i++)
			if (rm->rules[i].how == FAKE_RM_NOT) {
				rm->rules[i].command = (uint32_t)strtoul(words[4], NULL, 0);
				rm->rules[i].value = (uint32_t)strtoul(words[5], NULL, 0);
				rm->rules[i].count = (uint32_t)strtoul(words[6], NULL, 0);
				__atomic_store_n(&rm->rules[i].how, (uint32_t)strtoul(words[3], NULL, 0),
						 __ATOMIC_RELEASE);
				break;
			}
	} else if (!strcmp(verb, "saves") && count == 4) {
		__atomic_store_n(&rm->saves_step, (uint32_t)strtoul(words[3], NULL, 0), __ATOMIC_RELAXED);
	} else if (!strcmp(verb, "teardown") && count == 5) {
		rm->teardown_ms = (uint32_t)strtoul(words[3], NULL, 0);
		rm->teardown_locks = (uint32_t)strtoul(words[4], NULL, 0);
	} else if (!strcmp(verb, "slow") && count == 4) {
		rm->slow_us = (uint32_t)strtoul(words[3], NULL, 0);
	} else if (!strcmp(verb, "clear")) {
		for (uint32_t i = 0; i < FAKE_RM_RULE_MAX; i++)
			__atomic_store_n(&rm->rules[i].how, FAKE_RM_NOT, __ATOMIC_RELEASE);
	} else if (!strcmp(verb, "cilp") && count == 4) {
		rm->cilp = (uint32_t)strtoul(words[3], NULL, 0);
	} else if (!strcmp(verb, "keeps") && count == 4) {
		rm->schedule_keeps = (uint32_t)strtoul(words[3], NULL, 0);
	} else {
		return 1;
	}
	return 0;
}
