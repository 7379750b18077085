/* SPDX-License-Identifier: MIT */
/* Arbitrary AQL packets in the rings of two queues, rung by arbitrary doorbells, with gates closed and opened in
 * between. Packets name the node's kernels, so that their bodies meet arbitrary arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/packet/kernels.h"

#define FUZZ_STEPS        300u
#define FUZZ_TURN_NS      1000u
#define FUZZ_MEMORY_VA    (FUZZ_VA + 0x1000000u)
#define FUZZ_MEMORY_SIZE  0x20000u /* small: what a body computes from arbitrary sizes must end soon */
#define FUZZ_KERNEL_STEP  512u
#define FUZZ_KERNEL_ENTRY 256u
#define FUZZ_QUEUES       2u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A kernel for each body: s_nop N, s_endpgm. */
static const char *const fuzz_bodies[] = {
	"rocr_copy_aligned",
	"rocr_copy_misaligned",
	"rocr_fill",
	"hip_copy",
	"hip_fill",
	"hip6_copy",
	"hip6_fill",
	"vector_add",
	"saxpy",
	"reduce",
	"matrix_multiply",
	"count",
	NULL,
};
#define FUZZ_KERNELS (sizeof(fuzz_bodies) / sizeof(fuzz_bodies[0]))

struct fuzz_aql {
	struct fuzz_node *node;
	struct fuzz_input input;
	struct fuzz_queue queues[FUZZ_QUEUES];
	uint8_t *memory;
};

static uint32_t fuzz_nop(uint32_t index)
{
	return 0xbf800000u + index;
}

/* The kernels file, in memory: its path is good for the life of the process. */
static const char *fuzz_kernels_path(void)
{
	static char path[64];
	int fd;

	if (*path)
		return path;
	fd = memfd_create("kernels", 0);
	if (fd < 0)
		abort();
	for (uint32_t i = 0; fuzz_bodies[i]; i++) {
		uint32_t words[2] = { fuzz_nop(i), 0xbf810000u };

		dprintf(fd, "[%016llx]\nname = k%u\nworkgroup_time = %uus\nbody = %s\n",
			(unsigned long long)gp_kernels_fingerprint(words, 2), i, i % 4u * 10u + 1u, fuzz_bodies[i]);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static void fuzz_kernels_place(struct fuzz_aql *fuzz)
{
	for (uint32_t i = 0; i < FUZZ_KERNELS; i++) {
		struct gp_kernel_descriptor descriptor = { .entry_offset = FUZZ_KERNEL_ENTRY };
		uint32_t words[2] = { fuzz_nop(i), 0xbf810000u };

		memcpy(fuzz->memory + i * FUZZ_KERNEL_STEP, &descriptor, sizeof(descriptor));
		memcpy(fuzz->memory + i * FUZZ_KERNEL_STEP + FUZZ_KERNEL_ENTRY, words, sizeof(words));
	}
}

static uint64_t fuzz_address(struct fuzz_aql *fuzz)
{
	uint8_t tag = (uint8_t)fuzz_take(&fuzz->input, 1);

	switch (tag % 8u) {
	case 0: return 0;
	case 1: return FUZZ_ARENA + fuzz_take(&fuzz->input, 2);
	case 2: return fuzz_take(&fuzz->input, 8);
	case 3: return FUZZ_VA + fuzz_take(&fuzz->input, 3);
	case 4: return FUZZ_MEMORY_VA + tag / 8u % FUZZ_KERNELS * FUZZ_KERNEL_STEP;
	case 5: return FUZZ_MEMORY_VA + FUZZ_MEMORY_SIZE - fuzz_take(&fuzz->input, 1);
	default: return FUZZ_MEMORY_VA + (fuzz_take(&fuzz->input, 2) * 8u & (FUZZ_MEMORY_SIZE - 1u));
	}
}

static void fuzz_packet(struct fuzz_aql *fuzz, struct fuzz_queue *queue)
{
	uint32_t slot = (uint32_t)fuzz_take(&fuzz->input, 1) % (queue->ring_size / GP_AQL_PACKET_SIZE);
	union gp_aql_packet packet = { 0 };
	uint8_t kind = (uint8_t)fuzz_take(&fuzz->input, 1);

	packet.kernel.header = (uint16_t)(kind % 8u | (kind & 8u ? GP_AQL_HEADER_BARRIER : 0));
	if (kind % 8u == GP_AQL_KERNEL) {
		packet.kernel.setup = (uint16_t)fuzz_take(&fuzz->input, 1);
		for (uint32_t i = 0; i < 3u; i++) {
			packet.kernel.workgroup_size[i] = (uint16_t)fuzz_take(&fuzz->input, i ? 1 : 2);
			packet.kernel.grid_size[i] = (uint32_t)fuzz_take(&fuzz->input, kind & 16u ? 4 : 2);
		}
		packet.kernel.group_size = (uint32_t)fuzz_take(&fuzz->input, 2);
		packet.kernel.kernel_object = fuzz_address(fuzz);
		packet.kernel.kernarg_address = fuzz_address(fuzz);
		packet.kernel.completion_signal = fuzz_address(fuzz);
	} else if (kind & 16u) {
		for (uint32_t i = 1; i < GP_AQL_PACKET_SIZE / 8u; i++) {
			uint64_t word = fuzz_address(fuzz);

			memcpy(packet.bytes + i * 8u, &word, 8);
		}
		packet.value.format = (uint8_t)(kind >> 5);
	} else {
		for (uint32_t i = 2; i < GP_AQL_PACKET_SIZE; i++)
			packet.bytes[i] = (uint8_t)fuzz_take(&fuzz->input, 1);
	}
	memcpy(queue->ring + slot * GP_AQL_PACKET_SIZE, &packet, sizeof(packet));
}

static void fuzz_update(struct fuzz_aql *fuzz, struct fuzz_queue *queue)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = FUZZ_VA + (uint64_t)(queue - fuzz->queues) * FUZZ_QUEUE_STEP,
		.ring_size = queue->ring_size,
		.queue_id = queue->id,
		.queue_percentage = (uint32_t)(fuzz_take(&fuzz->input, 1) % 2u * 100u),
		.queue_priority = (uint32_t)(fuzz_take(&fuzz->input, 1) % 16u),
	};

	fuzz_node_ioctl(fuzz->node, 0, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

/* Words anywhere in the memory of queues and data: arguments, signals, indices. */
static void fuzz_poke(struct fuzz_aql *fuzz, const struct fuzz_queue *queue)
{
	uint8_t where = (uint8_t)fuzz_take(&fuzz->input, 1);
	uint32_t offset = (uint32_t)fuzz_take(&fuzz->input, 2) * 8u;
	uint64_t value = where & 2u ? fuzz_take(&fuzz->input, 8) : fuzz_address(fuzz);
	uint8_t *base = where & 1u ? fuzz->memory : queue->ring;

	memcpy(base + offset % (where & 1u ? FUZZ_MEMORY_SIZE : FUZZ_QUEUE_STEP), &value, sizeof(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_aql fuzz = { .input = { data, data + size } };

	fuzz.node = fuzz_node_open(fuzz_kernels_path());
	fuzz.memory = fuzz_node_alloc(fuzz.node, FUZZ_MEMORY_VA, FUZZ_MEMORY_SIZE, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	if (!fuzz.memory)
		abort();
	fuzz_kernels_place(&fuzz);
	for (uint32_t i = 0; i < FUZZ_QUEUES; i++)
		if (fuzz_node_queue(fuzz.node, FUZZ_VA + i * FUZZ_QUEUE_STEP, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
				    &fuzz.queues[i]) < 0)
			abort();
	for (uint32_t i = 0; i < FUZZ_STEPS && fuzz.input.at < fuzz.input.end; i++) {
		uint8_t op = (uint8_t)fuzz_take(&fuzz.input, 1);
		struct fuzz_queue *queue = &fuzz.queues[op / 8u % FUZZ_QUEUES];

		switch (op % 8u) {
		case 0:
		case 1:
		case 2: fuzz_packet(&fuzz, queue); break;
		case 3: *queue->doorbell = fuzz_take(&fuzz.input, op & 128u ? 8 : 1); break;
		case 4: fuzz_update(&fuzz, queue); break;
		case 5: fuzz_poke(&fuzz, queue); break;
		default: fuzz_node_turn(fuzz.node, FUZZ_TURN_NS << op / 16u); break;
		}
	}
	fuzz_node_close(fuzz.node);
	return 0;
}
