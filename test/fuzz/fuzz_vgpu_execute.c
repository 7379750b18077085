/* SPDX-License-Identifier: MIT */
/* Arbitrary kernel descriptors, arguments, packets and code on a node, with the queue preempted in between and its save
 * area changed meanwhile. fuzz_vgpu_descriptor.c and fuzz_vgpu_kernarg.c take this file with code that is a kernel:
 * which uses its arguments as addresses of data, of scalars and of a function. */
#include <string.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/kfd/queue.h"

#define FUZZ_MEMORY_VA   (FUZZ_VA + 0x1000000u)
#define FUZZ_MEMORY_SIZE 0x10000u
#define FUZZ_AREA_VA     (FUZZ_VA + 0x2000000u)
#define FUZZ_AREA_SIZE   0x200000u
#define FUZZ_STACK_SIZE  0x3000u
#define FUZZ_TURNS       24u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* s_load_dwordx8 of its arguments; global_load, s_load, global_store, atomic_add, flat_load, ds_write by them;
 * s_barrier; then a jump to one, unless the word there is 0. */
static const uint32_t fuzz_code[] = { 0xc00e0200, 0x00000000, 0x24020082, 0xbf8cc07f, 0xdc508000,
				      0x02080001, 0xc00a0106, 0x00000008, 0xbf8c0070, 0xdc708000,
				      0x000a0201, 0xdd088000, 0x000e0201, 0x7e08020e, 0x7e0a020f,
				      0xdc500000, 0x06000004, 0xbf8c0f70, 0xd81a0000, 0x00000601,
				      0xbf8a0000, 0xbf078004, 0xbf840001, 0xbe801d0c, 0xbf810000 };

static struct gp_kernel_descriptor fuzz_descriptor(struct fuzz_input *input)
{
	struct gp_kernel_descriptor descriptor = { .entry_offset = 512 };

#ifdef FUZZ_KERNARG
	(void)input;
	descriptor.rsrc1 = 1;
	descriptor.rsrc2 = 2u << 1;
	descriptor.rsrc3 = 3;
	descriptor.properties = 8;
#else
	descriptor.rsrc1 = (uint32_t)fuzz_take(input, 4);
	descriptor.rsrc2 = (uint32_t)fuzz_take(input, 2);
	descriptor.rsrc3 = (uint32_t)fuzz_take(input, 1);
	descriptor.properties = (uint16_t)fuzz_take(input, 1);
	descriptor.preload = (uint16_t)fuzz_take(input, 2);
	descriptor.private_size = (uint32_t)fuzz_take(input, 2);
#ifdef FUZZ_DESCRIPTOR
	descriptor.entry_offset = (int64_t)fuzz_take(input, 2) - 0x100;
#endif
#endif
	return descriptor;
}

static uint64_t fuzz_argument(struct fuzz_input *input)
{
#ifdef FUZZ_KERNARG
	uint8_t tag = (uint8_t)fuzz_take(input, 1);

	if (tag % 4u == 0)
		return fuzz_take(input, 8);
	if (tag % 4u == 1u)
		return FUZZ_AREA_VA + fuzz_take(input, 3); /* its own save area */
	if (tag % 4u == 2u)
		return fuzz_take(input, 4) | 0x1000000000000ull << tag / 128u; /* LDS and private memory */
#endif
	return FUZZ_MEMORY_VA + fuzz_take(input, 2);
}

/* Descriptor at 0, arguments at 256, code at 512. */
static void fuzz_place(struct fuzz_input *input, uint8_t *memory)
{
	struct gp_kernel_descriptor descriptor = fuzz_descriptor(input);

	memcpy(memory, &descriptor, sizeof(descriptor));
	for (uint32_t i = 0; i < 4u; i++) {
		uint64_t value = fuzz_argument(input);

		memcpy(memory + 256 + i * 8u, &value, 8);
	}
#if defined(FUZZ_KERNARG) || defined(FUZZ_DESCRIPTOR)
	memcpy(memory + 512, fuzz_code, sizeof(fuzz_code));
#else
	(void)fuzz_code;
	for (uint32_t i = 512; i < 4096u && input->at < input->end; i++)
		memory[i] = (uint8_t)fuzz_take(input, 1);
#endif
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
