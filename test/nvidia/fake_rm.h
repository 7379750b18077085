/* SPDX-License-Identifier: MIT */
/*
 * A resource manager without a GPU: what the tests' fake knows, in a file that every process maps. The folder of
 * GPREEMPT_FAKE_RM holds it, and the files nvidiactl and nvidia0, nvidia1, … that clients open. The library answers the
 * ioctls on them, in whichever process they are called, by the rules of the real one: a client is reached on the open
 * file it was made on alone and lives until that is closed everywhere, sizes must be exact, children go with their
 * parents, disables are counted.
 */
#ifndef GP_TEST_NVIDIA_FAKE_RM_H
#define GP_TEST_NVIDIA_FAKE_RM_H

#include <stdint.h>

#define FAKE_RM_ENV        "GPREEMPT_FAKE_RM"
#define FAKE_RM_STATE      "state"
#define FAKE_RM_MAGIC      0x66616b65u
#define FAKE_RM_OBJECT_MAX 4096u
#define FAKE_RM_CALL_MAX   4096u
#define FAKE_RM_RULE_MAX   16u
#define FAKE_RM_GPU_MAX    4u
#define FAKE_RM_SLICE_US   2048u
/* Of driver 580. */
#define FAKE_RM_EXPORT_SIZE 2128u
#define FAKE_RM_IMPORT_SIZE 652u

struct fake_rm_object {
	uint32_t used, file, client, parent, handle, class_id;
	int32_t pid; /* who made it */
	uint32_t gpu;
	uint32_t disabled;  /* channel: how often; it runs at 0 */
	uint64_t slice_us;  /* group */
	uint32_t saves;     /* group: how often it was put aside */
	uint32_t scheduled; /* group, channel: before that disabling does nothing */
	uint32_t userd;     /* channel: memory handle */
	uint64_t userd_offset;
};

/* A control or another call, as it came. */
struct fake_rm_call {
	int32_t pid;
	uint32_t number, command, client, object, size, status;
	uint32_t value; /* of SLICE_SET: µs; of DISABLE_CHANNELS: the channels, and 0x10000 when they are disabled */
};

/* What is answered instead of the truth: to a command (of CONTROL) or a number of an ioctl. */
enum fake_rm_how {
	FAKE_RM_NOT,    /* no rule */
	FAKE_RM_STATUS, /* with this status, and nothing is done */
	FAKE_RM_ERRNO,  /* the ioctl fails with this errno */
	FAKE_RM_VALUE,  /* done; the answer's first word is this */
	FAKE_RM_SIZE,   /* the parameters have this size here */
	FAKE_RM_HANG,   /* not answered before the rule goes; value: only in this process, 0: in all */
	FAKE_RM_DIE,    /* the process is killed */
	FAKE_RM_PASS,   /* the truth; then the next rule's turn */
};
struct fake_rm_rule {
	uint32_t how, command, value;
	uint32_t count; /* how often; 0: for ever */
};

struct fake_rm_state {
	uint32_t magic, lock;
	uint32_t file_count, handle_count, gpu_count;
	uint32_t gpu_ids[FAKE_RM_GPU_MAX];
	uint32_t cilp;
	uint32_t schedule_keeps; /* scheduling leaves what is disabled disabled */
	uint32_t disabled_most;  /* of all channels, ever */
	uint32_t saves_step;     /* so many more each time somebody asks */
	uint32_t teardown_ms;    /* how long the last close of a client's file takes */
	uint32_t teardown_locks; /* calls of others wait for it */
	uint32_t slow_us;        /* a control takes up to so long, and calls of others wait for it */
	uint64_t busy_until_ns;  /* until then it takes; CLOCK_MONOTONIC */
	uint32_t teardowns;
	uint32_t hanging;    /* calls that are not answered because of a rule */
	uint32_t call_count; /* all so far; the last FAKE_RM_CALL_MAX are in calls */
	struct fake_rm_rule rules[FAKE_RM_RULE_MAX];
	struct fake_rm_object objects[FAKE_RM_OBJECT_MAX];
	struct fake_rm_call calls[FAKE_RM_CALL_MAX];
};

/* How many descriptors refer to the open file of that number, in all processes. */
uint32_t fake_rm_opens(uint32_t file);

#endif
