/* SPDX-License-Identifier: MIT */
/*
 * What user space expects of KFD and of the packet processors, beyond the system's <linux/kfd_ioctl.h> (KFD 1.11 in
 * Debian 12): the ioctls that came until Linux 6.12 (KFD 1.17), AQL packets and signals (HSA runtime specification and
 * AMD's amd_hsa_queue.h and amd_hsa_signal.h: offsets only), SDMA packets (Linux, vega10_sdma_pkt_open.h: fields only).
 */
#ifndef GP_VGPU_ABI_H
#define GP_VGPU_ABI_H

#include <linux/kfd_ioctl.h>
#include <stdint.h>

#define GP_KFD_MAJOR 1u
#define GP_KFD_MINOR 17u /* Linux 6.12 */

#define GP_KFD_NR_RUNTIME_ENABLE 0x25u
#define GP_KFD_NR_DBG_TRAP       0x26u

struct gp_kfd_runtime_enable {
	uint64_t r_debug;
	uint32_t mode_mask, capabilities_mask;
};
#define GP_KFD_RUNTIME_MODE_ENABLE 1u
#define GP_KFD_RUNTIME_MODE_TTMP   2u

enum gp_kfd_dbg_op {
	GP_KFD_DBG_ENABLE,
	GP_KFD_DBG_DISABLE,
	GP_KFD_DBG_SEND_RUNTIME_EVENT,
	GP_KFD_DBG_SET_EXCEPTIONS_ENABLED,
	GP_KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE,
	GP_KFD_DBG_SET_WAVE_LAUNCH_MODE,
	GP_KFD_DBG_SUSPEND_QUEUES,
	GP_KFD_DBG_RESUME_QUEUES,
	GP_KFD_DBG_SET_NODE_ADDRESS_WATCH,
	GP_KFD_DBG_CLEAR_NODE_ADDRESS_WATCH,
	GP_KFD_DBG_SET_FLAGS,
	GP_KFD_DBG_QUERY_DEBUG_EVENT,
	GP_KFD_DBG_QUERY_EXCEPTION_INFO,
	GP_KFD_DBG_GET_QUEUE_SNAPSHOT,
	GP_KFD_DBG_GET_DEVICE_SNAPSHOT,
};
#define GP_KFD_EC_QUEUE_NEW       (1ull << 29) /* EC 30 */
#define GP_KFD_EC_PROCESS_RUNTIME (1ull << 47) /* EC 48 */
#define GP_KFD_QUEUE_ERROR        (1u << 30)
#define GP_KFD_QUEUE_INVALID      (1u << 31)

struct gp_kfd_dbg_trap {
	uint32_t pid, op;
	union {
		struct {
			uint64_t exception_mask, rinfo_ptr;
			uint32_t rinfo_size, dbg_fd;
		} enable;
		struct {
			uint64_t exception_mask;
			uint32_t gpu_id, queue_id;
		} send_runtime_event;
		struct {
			uint64_t exception_mask;
		} set_exceptions_enabled;
		struct {
			uint64_t exception_mask, queue_array_ptr;
			uint32_t num_queues, grace_period;
		} suspend;
		struct {
			uint64_t queue_array_ptr;
			uint32_t num_queues, pad;
		} resume;
		struct {
			uint64_t exception_mask;
			uint32_t gpu_id, queue_id;
		} query_event;
		struct {
			uint64_t exception_mask, snapshot_buf_ptr;
			uint32_t num_queues, entry_size;
		} queue_snapshot;
		struct {
			uint64_t exception_mask, snapshot_buf_ptr;
			uint32_t num_devices, entry_size;
		} device_snapshot;
		uint8_t raw[32];
	};
};
struct gp_kfd_runtime_info {
	uint64_t r_debug;
	uint32_t runtime_state, ttmp_setup;
};
struct gp_kfd_queue_snapshot {
	uint64_t exception_status, ring_base_address, write_pointer_address, read_pointer_address,
		ctx_save_restore_address;
	uint32_t queue_id, gpu_id, ring_size, queue_type, ctx_save_restore_area_size, reserved;
};

#define GP_KFD_QUEUE_TYPE_SDMA_BY_ENG_ID 4u
struct gp_kfd_create_queue { /* 88 bytes until 1.16, 96 since */
	struct kfd_ioctl_create_queue_args base;
	uint32_t sdma_engine_id, pad;
};

/* Event data as WAIT_EVENTS has it since 1.14: the first word of the union is the age the caller has seen. */
#define GP_KFD_EVENT_SLOT_UNSIGNALED UINT64_MAX

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
#define GP_AMD_QUEUE_READ_OFFSET     128u /* read_dispatch_id in amd_queue_t */
#define GP_AMD_QUEUE_INACTIVE_OFFSET 192u /* queue_inactive_signal */
/* What the packet processor writes into the inactive signal when it refuses a packet (ROCr amd_aql_queue.cpp reads
 * them). */
enum gp_aql_error {
	GP_AQL_ERROR_DIMENSION = 2,
	GP_AQL_ERROR_GROUP_MEMORY = 4,
	GP_AQL_ERROR_CODE = 8,
	GP_AQL_ERROR_FORMAT = 32,
	GP_AQL_ERROR_GROUP_SIZE = 64,
	GP_AQL_ERROR_VGPRS = 128,
	GP_AQL_ERROR_VENDOR = 256,
};

/* The kernel descriptor of code object v3 and later. */
struct gp_kernel_descriptor {
	uint32_t group_size, private_size, kernarg_size, reserved0;
	int64_t entry_offset;
	uint8_t reserved1[20];
	uint32_t rsrc3, rsrc1, rsrc2;
	uint16_t properties, reserved2;
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
_Static_assert(sizeof(struct gp_kfd_dbg_trap) == 40, "as in Linux 6.12");
_Static_assert(sizeof(struct gp_kfd_queue_snapshot) == 64, "as in Linux 6.12");
_Static_assert(sizeof(struct gp_kfd_create_queue) == 96, "as in Linux 6.12");

#endif
