/* SPDX-License-Identifier: MIT */
/* Arbitrary sequences of ioctls by two clients of a virtual node, with time passing, doorbells rung and memory written
 * in between. Fields are drawn so that an input can name what it made before: handles, addresses, queues, events. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/node/fault.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"

#define FUZZ_STEPS      200u
#define FUZZ_KNOWN      16u
#define FUZZ_TURN_NS    10000u
#define FUZZ_ARG_SIZE   256u
#define FUZZ_QUEUES_MAX 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Widths of the fields of each argument, in bytes, as <linux/kfd_ioctl.h> and gpreempt/kfd.h have them. */
static const struct {
	uint8_t number;
	const char *fields;
} fuzz_calls[] = {
	{ 0x01, "44" },         { 0x02, "88884444448884444" },
	{ 0x03, "44" },         { 0x04, "884444" },
	{ 0x05, "888844" },     { 0x07, "84444" },
	{ 0x08, "8444444" },    { 0x09, "44" },
	{ 0x0a, "44" },         { 0x0b, "44" },
	{ 0x0c, "84444" },      { 0x11, "844" },
	{ 0x12, "8844444444" }, { 0x13, "8844" },
	{ 0x14, "844" },        { 0x15, "44" },
	{ 0x16, "888844" },     { 0x17, "8" },
	{ 0x18, "8844" },       { 0x19, "8844" },
	{ 0x1a, "448" },        { 0x1b, "848444" },
	{ 0x1c, "88844444" },   { 0x1d, "8844" },
	{ 0x1e, "4444" },       { 0x1f, "44" },
	{ 0x20, "88448888" },   { 0x21, "4" },
	{ 0x22, "888844444" },  { 0x23, "844" },
	{ 0x24, "844" },        { 0x25, "844" },
	{ 0x26, "4488448" },    { 0x26, "448844" },
	{ 0x80, "88448844" },   { 0x81, "88884444" },
};

struct fuzz_ioctl {
	struct fuzz_node *node;
	struct fuzz_input input;
	uint64_t handles[FUZZ_KNOWN], vas[FUZZ_KNOWN];
	uint32_t queues[FUZZ_KNOWN], events[FUZZ_KNOWN];
	struct fuzz_queue made[FUZZ_QUEUES_MAX];
	uint32_t handle_count, queue_count, event_count, made_count;
};

static uint64_t fuzz_field(struct fuzz_ioctl *fuzz)
{
	struct fuzz_input *input = &fuzz->input;
	uint8_t tag = (uint8_t)fuzz_take(input, 1);

	switch (tag % 16u) {
	case 0: return 0;
	case 1: return fuzz_take(input, 1);
	case 2: return fuzz_take(input, 2);
	case 3: return fuzz_take(input, 4);
	case 4: return fuzz_take(input, 8);
	case 5: return fuzz->node->node.gpus[tag / 16u % FUZZ_GPU_COUNT].gpu_id;
	case 6: return FUZZ_ARENA + fuzz_take(input, 2) * 8u;
	case 7: return fuzz->handles[tag / 16u];
	case 8: return fuzz->vas[tag / 16u] + fuzz_take(input, 2);
	case 9: return UINT32_MAX;
	case 10: return UINT64_MAX - tag / 16u;
	case 11: return (uint64_t)(fuzz->node->clients[tag / 16u % 2u] ? fuzz->node->clients[tag / 16u % 2u]->pid : 1);
	case 12: return fuzz->queues[tag / 16u];
	case 13: return fuzz->events[tag / 16u];
	case 14: return FUZZ_VA * 16u + (fuzz_take(input, 2) << 12);
	default: return 1ull << fuzz_take(input, 1) % 64u;
	}
}

static void fuzz_remember(struct fuzz_ioctl *fuzz, uint32_t number, const void *arg)
{
	if (number == 0x02) {
		fuzz->queues[fuzz->queue_count++ % FUZZ_KNOWN] =
			((const struct kfd_ioctl_create_queue_args *)arg)->queue_id;
	} else if (number == 0x08) {
		fuzz->events[fuzz->event_count++ % FUZZ_KNOWN] =
			((const struct kfd_ioctl_create_event_args *)arg)->event_id;
	} else if (number == 0x16) {
		const struct kfd_ioctl_alloc_memory_of_gpu_args *args = arg;

		fuzz->vas[fuzz->handle_count % FUZZ_KNOWN] = args->va_addr;
		fuzz->handles[fuzz->handle_count++ % FUZZ_KNOWN] = args->handle;
	}
}

static void fuzz_call(struct fuzz_ioctl *fuzz, uint32_t client)
{
	_Alignas(8) uint8_t arg[FUZZ_ARG_SIZE] = { 0 };
	uint32_t which = (uint32_t)fuzz_take(&fuzz->input, 1) % (sizeof(fuzz_calls) / sizeof(fuzz_calls[0])), size = 0;
	uint32_t number = fuzz_calls[which].number;

	for (const char *field = fuzz_calls[which].fields; *field; field++) {
		uint64_t value = fuzz_field(fuzz);
		uint32_t width = (uint32_t)(*field - '0');

		memcpy(arg + size, &value, width);
		size += width;
	}
	if (fuzz_node_ioctl(fuzz->node, client, _IOC(_IOC_READ | _IOC_WRITE, 'K', number, size), arg) == 0)
		fuzz_remember(fuzz, number, arg);
}

/* Any command word, on either file, with bytes as they come. */
static void fuzz_raw_call(struct fuzz_ioctl *fuzz, uint32_t client)
{
	_Alignas(8) uint8_t arg[FUZZ_ARG_SIZE] = { 0 };
	uint32_t number = (uint32_t)fuzz_take(&fuzz->input, 1), size = (uint32_t)fuzz_take(&fuzz->input, 1);
	char type = fuzz_take(&fuzz->input, 1) % 2u ? 'd' : 'K';

	for (uint32_t i = 0; i < size; i++)
		arg[i] = (uint8_t)fuzz_take(&fuzz->input, 1);
	fuzz_node_ioctl(fuzz->node, client, _IOC(_IOC_READ | _IOC_WRITE, (uint32_t)type, number, size), arg);
}

static void fuzz_make_queue(struct fuzz_ioctl *fuzz)
{
	uint32_t type = fuzz_take(&fuzz->input, 1) % 2u ? KFD_IOC_QUEUE_TYPE_COMPUTE_AQL : KFD_IOC_QUEUE_TYPE_SDMA;
	struct fuzz_queue *queue = &fuzz->made[fuzz->made_count];

	if (fuzz->made_count == FUZZ_QUEUES_MAX || !fuzz->node->clients[0] ||
	    fuzz_node_queue(fuzz->node, FUZZ_VA + fuzz->made_count * FUZZ_QUEUE_STEP, type, queue) < 0)
		return;
	fuzz->made_count++;
	fuzz->queues[fuzz->queue_count++ % FUZZ_KNOWN] = queue->id;
}

static void fuzz_ring(struct fuzz_ioctl *fuzz)
{
	struct gp_vproc *client = fuzz->node->clients[0];
	uint32_t id = fuzz->queues[fuzz_take(&fuzz->input, 1) % FUZZ_KNOWN];
	struct gp_vqueue *queue = client ? gp_vqueue_find(client, id) : NULL;
	uint64_t value = fuzz_field(fuzz);

	if (queue)
		*queue->doorbell = value;
}

/* A word of a queue's own memory: packets, indices. */
static void fuzz_write(struct fuzz_ioctl *fuzz)
{
	uint32_t which = (uint32_t)fuzz_take(&fuzz->input, 1), offset = (uint32_t)fuzz_take(&fuzz->input, 2) * 8u;
	uint64_t value = fuzz_field(fuzz);

	if (fuzz->made_count)
		memcpy(fuzz->made[which % fuzz->made_count].ring + offset % FUZZ_QUEUE_STEP, &value, sizeof(value));
}

static void fuzz_other(struct fuzz_ioctl *fuzz)
{
	struct fuzz_node *node = fuzz->node;
	char text[32] = { 0 };

	switch (fuzz_take(&fuzz->input, 1) % 7u) {
	case 0: fuzz_node_client_open(node, 1); return;
	case 1:
		if (node->clients[1])
			gp_vproc_close(node->clients[1]);
		node->clients[1] = NULL;
		return;
	case 2: gp_vcall_interrupt(&node->node, node->token - fuzz_take(&fuzz->input, 1) % 8u); return;
	case 3: {
		uint64_t offset = fuzz_take(&fuzz->input, 2) * 8u;

		*(volatile uint64_t *)(FUZZ_ARENA + offset) = fuzz_field(fuzz);
		return;
	}
	case 4:
		for (uint32_t i = 0; i < sizeof(text) - 1u; i++)
			text[i] = (char)fuzz_take(&fuzz->input, 1);
		gp_fault_inject(&node->node, text, &(struct gp_error){ { 0 } });
		return;
	case 5: fuzz_ring(fuzz); return;
	default: fuzz_write(fuzz); return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_ioctl *fuzz = calloc(1, sizeof(*fuzz));

	if (!fuzz)
		return 0;
	fuzz->input = (struct fuzz_input){ data, data + size };
	fuzz->node = fuzz_node_open(NULL);
	for (uint32_t i = 0; i < FUZZ_STEPS && fuzz->input.at < fuzz->input.end; i++) {
		uint8_t op = (uint8_t)fuzz_take(&fuzz->input, 1);

		switch (op % 8u) {
		case 0:
		case 1:
		case 2: fuzz_call(fuzz, op / 8u % 8u == 7u); break;
		case 3: fuzz_raw_call(fuzz, op / 8u % 2u); break;
		case 4: fuzz_make_queue(fuzz); break;
		case 5: fuzz_node_turn(fuzz->node, FUZZ_TURN_NS << op / 8u % 12u); break;
		default: fuzz_other(fuzz); break;
		}
	}
	fuzz_node_close(fuzz->node);
	free(fuzz);
	return 0;
}
