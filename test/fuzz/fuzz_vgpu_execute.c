/* SPDX-License-Identifier: MIT */
/* Arbitrary kernel descriptors, arguments, packets and code on a node, with the queue preempted in between and its save
 * area changed meanwhile. */
#include <string.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/queue.h"

#define FUZZ_MEMORY_VA   (FUZZ_VA + 0x1000000u)
#define FUZZ_MEMORY_SIZE 0x10000u
#define FUZZ_AREA_VA     (FUZZ_VA + 0x2000000u)
#define FUZZ_AREA_SIZE   0x200000u
#define FUZZ_STACK_SIZE  0x3000u
#define FUZZ_TURNS       24u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Descriptor at 0, arguments at 256, code at 512. */
static void fuzz_place(struct fuzz_input *input, uint8_t *memory)
{
	struct gp_kernel_descriptor descriptor = { .entry_offset = 512 };

	descriptor.rsrc1 = (uint32_t)fuzz_take(input, 4);
	descriptor.rsrc2 = (uint32_t)fuzz_take(input, 2);
	descriptor.rsrc3 = (uint32_t)fuzz_take(input, 1);
	descriptor.properties = (uint16_t)fuzz_take(input, 1);
	descriptor.preload = (uint16_t)fuzz_take(input, 2);
	descriptor.private_size = (uint32_t)fuzz_take(input, 2);
	memcpy(memory, &descriptor, sizeof(descriptor));
	for (uint32_t i = 0; i < 4u; i++) {
		uint64_t value = FUZZ_MEMORY_VA + fuzz_take(input, 2);

		memcpy(memory + 256 + i * 8u, &value, 8);
	}
	for (uint32_t i = 512; i < 4096u && input->at < input->end; i++)
		memory[i] = (uint8_t)fuzz_take(input, 1);
}

static void fuzz_gate(struct fuzz_node *fuzz, const struct fuzz_queue *queue, uint64_t ring, uint32_t percent)
{
	struct kfd_ioctl_update_queue_args args = { .ring_base_address = ring,
						    .queue_id = queue->id,
						    .ring_size = queue->ring_size,
						    .queue_percentage = percent,
						    .queue_priority = 7 };

	fuzz_node_ioctl(fuzz, 0, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_node *fuzz = fuzz_node_open(NULL);
	struct fuzz_input input = { data, data + size };
	struct fuzz_queue queue;
	union gp_aql_packet packet = { 0 };
	uint8_t *memory = fuzz_node_alloc(fuzz, FUZZ_MEMORY_VA, FUZZ_MEMORY_SIZE, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	uint8_t *area = fuzz_node_alloc(fuzz, FUZZ_AREA_VA, FUZZ_AREA_SIZE, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	struct gp_vqueue *real;

	if (memory && area && fuzz_node_queue(fuzz, FUZZ_VA, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, &queue) >= 0) {
		fuzz_node_turn(fuzz, 1000000);
		real = gp_vqueue_find(fuzz->clients[0], queue.id);
		if (real) {
			real->cwsr = FUZZ_AREA_VA;
			real->cwsr_size = FUZZ_AREA_SIZE;
			real->ctl_stack_size = FUZZ_STACK_SIZE;
		}
		packet.kernel.header = GP_AQL_KERNEL;
		packet.kernel.setup = 1;
		packet.kernel.workgroup_size[0] = (uint16_t)(1u + fuzz_take(&input, 1) * 2u);
		packet.kernel.grid_size[0] = (uint32_t)(1u + fuzz_take(&input, 2));
		packet.kernel.group_size = (uint32_t)fuzz_take(&input, 2);
		packet.kernel.kernel_object = FUZZ_MEMORY_VA;
		packet.kernel.kernarg_address = FUZZ_MEMORY_VA + 256u;
		fuzz_place(&input, memory);
		memcpy(queue.ring, &packet, sizeof(packet));
		*(uint64_t *)(void *)(queue.control + 56) = 1;
		*queue.doorbell = 0;
		for (uint32_t i = 0; i < FUZZ_TURNS; i++) {
			fuzz_node_turn(fuzz, 3000);
			if (i % 4u == 1u)
				fuzz_gate(fuzz, &queue, FUZZ_VA, 0);
			if (i % 8u == 2u)
				area[FUZZ_STACK_SIZE + fuzz_take(&input, 2)] ^= (uint8_t)fuzz_take(&input, 1);
			if (i % 4u == 3u)
				fuzz_gate(fuzz, &queue, FUZZ_VA, 100);
		}
	}
	fuzz_node_close(fuzz);
	return 0;
}
