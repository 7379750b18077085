/* SPDX-License-Identifier: MIT */
/*
 * What user space expects of the packet processors (KFD itself: gpreempt/kfd.h):
 * AQL packets and signals (HSA runtime specification and
 * AMD's amd_hsa_queue.h and amd_hsa_signal.h: offsets only), SDMA packets (Linux, vega10_sdma_pkt_open.h: fields only).
 */
#ifndef GP_VGPU_ABI_H
#define GP_VGPU_ABI_H

#include <gpreempt/kfd.h>
#include <stdint.h>

/* Event data as WAIT_EVENTS has it since 1.14: the first word of the union is the age the caller has seen. */
#define GP_KFD_EVENT_SLOT_UNSIGNALED UINT64_MAX

/* Why queues were evicted (KFD_QUEUE_EVICTION_TRIGGERS). */
#define GP_KFD_EVICTION_SUSPEND         3u
#define GP_KFD_EVICTION_CRIU_CHECKPOINT 4u

/* The first words of a context-save area (kfd_context_save_area_header). */
struct gp_kfd_wave_state {
	uint32_t control_stack_offset, control_stack_size, wave_state_offset, wave_state_size;
};

/* Where the head of a queue's context-save area says whom to tell of its errors (kfd_context_save_area_header). */
#define GP_KFD_CSA_ERR_PAYLOAD_OFFSET  24u /* uint64_t: where the mask of exceptions goes */
#define GP_KFD_CSA_ERR_EVENT_ID_OFFSET 32u

/* AQL. */
#define GP_AQL_PACKET_SIZE 64u
enum gp_aql_type { GP_AQL_VENDOR, GP_AQL_INVALID, GP_AQL_KERNEL, GP_AQL_BARRIER_AND, GP_AQL_AGENT, GP_AQL_BARRIER_OR };
#define GP_AQL_HEADER_BARRIER (1u << 8)
struct gp_aql_kernel {
	uint16_t header, setup;
	uint16_t workgroup_size[3], reserved0;
	uint32_t grid_size[3];
	uint32_t private_size, group_size;
	uint64_t kernel_object, kernarg_address, reserved2, completion_signal;
};
struct gp_aql_barrier {
	uint16_t header, reserved0;
	uint32_t reserved1;
	uint64_t deps[5], reserved2, completion_signal;
};
/* AMD's vendor packets: the byte after the header says which. */
enum gp_aql_amd_format { GP_AQL_AMD_PM4_IB = 1, GP_AQL_AMD_BARRIER_VALUE = 2 };
struct gp_aql_barrier_value {
	uint16_t header;
	uint8_t format, reserved0;
	uint32_t reserved1;
	uint64_t signal;
	int64_t value, mask;
	uint32_t condition, reserved2;
	uint64_t reserved3, reserved4, completion_signal;
};
union gp_aql_packet {
	struct gp_aql_kernel kernel;
	struct gp_aql_barrier barrier;
	struct gp_aql_barrier_value value;
	uint8_t bytes[GP_AQL_PACKET_SIZE];
};

struct gp_amd_signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event_id, reserved;
	uint64_t start, end, queue;
};
#define GP_AMD_QUEUE_READ_OFFSET       128u /* read_dispatch_id in amd_queue_t */
#define GP_AMD_QUEUE_RESOURCE_OFFSET   144u /* scratch_resource_descriptor, then where and how large the memory is */
#define GP_AMD_QUEUE_SCRATCH_OFFSET    176u /* scratch_wave64_lane_byte_size */
#define GP_AMD_QUEUE_PROPERTIES_OFFSET 180u /* queue_properties */
#define GP_AMD_QUEUE_INACTIVE_OFFSET   192u /* queue_inactive_signal */
#define GP_AMD_QUEUE_SCRATCH_ONCE      (1u << 4) /* of the properties: the scratch memory is for one dispatch */
/* What the packet processor writes into the inactive signal when it refuses a packet (ROCr amd_aql_queue.cpp reads
 * them). */
enum gp_aql_error {
	GP_AQL_ERROR_SCRATCH = 1, /* not an end: software gives more and sets the signal back to 0 */
	GP_AQL_ERROR_DIMENSION = 2,
	GP_AQL_ERROR_GROUP_MEMORY = 4,
	GP_AQL_ERROR_CODE = 8,
	GP_AQL_ERROR_FORMAT = 32,
	GP_AQL_ERROR_GROUP_SIZE = 64,
	GP_AQL_ERROR_VGPRS = 128,
	GP_AQL_ERROR_VENDOR = 256,
	GP_AQL_SCRATCH_RETURNED = 512, /* no error: what was lent for one dispatch goes back */
};

/* The kernel descriptor of code object v3 and later. */
struct gp_kernel_descriptor {
	uint32_t group_size, private_size, kernarg_size, reserved0;
	int64_t entry_offset;
	uint8_t reserved1[20];
	uint32_t rsrc3, rsrc1, rsrc2;
	uint16_t properties, preload;
	uint32_t reserved3;
};

enum gp_sdma_op {
	GP_SDMA_NOP = 0,
	GP_SDMA_COPY = 1,
	GP_SDMA_WRITE = 2,
	GP_SDMA_INDIRECT = 4,
	GP_SDMA_FENCE = 5,
	GP_SDMA_TRAP = 6,
	GP_SDMA_POLL = 8,
	GP_SDMA_ATOMIC = 10,
	GP_SDMA_CONST_FILL = 11,
	GP_SDMA_TIMESTAMP = 13,
	GP_SDMA_GCR = 17,
};

_Static_assert(sizeof(struct gp_aql_kernel) == GP_AQL_PACKET_SIZE, "AQL packets are 64 bytes");
_Static_assert(sizeof(struct gp_aql_barrier) == GP_AQL_PACKET_SIZE, "AQL packets are 64 bytes");
_Static_assert(sizeof(struct gp_aql_barrier_value) == GP_AQL_PACKET_SIZE, "AQL packets are 64 bytes");
_Static_assert(sizeof(struct gp_kernel_descriptor) == 64, "kernel descriptors are 64 bytes");

#endif
