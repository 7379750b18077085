/* SPDX-License-Identifier: MIT */
/*
 * KFD's user interface beyond the system's <linux/kfd_ioctl.h> (KFD 1.11 in Debian 12): the ioctls that came until
 * Linux 6.12 (KFD 1.17). For the agent and the daemon, who call it, and for vgpud, who answers.
 */
#ifndef GPREEMPT_KFD_H
#define GPREEMPT_KFD_H

#include <linux/kfd_ioctl.h>
#include <stdint.h>

#define GP_KFD_MAJOR 1u
#define GP_KFD_MINOR 17u /* Linux 6.12 */

#define GP_KFD_NR_RUNTIME_ENABLE 0x25u
#define GP_KFD_NR_DBG_TRAP       0x26u
#define GP_KFD_NR_SCHED          0x27u /* not in any released kernel: kernel/patches adds it to Linux 6.12 */

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
/* Exceptions, as masks: bit n - 1 for code n. */
#define GP_KFD_EC_MASK(code)              (1ull << ((code)-1u))
#define GP_KFD_EC_QUEUE_NEW               GP_KFD_EC_MASK(31)
#define GP_KFD_EC_DEVICE_QUEUE_DELETE     GP_KFD_EC_MASK(32)
#define GP_KFD_EC_DEVICE_MEMORY_VIOLATION GP_KFD_EC_MASK(33)
#define GP_KFD_EC_PROCESS_RUNTIME         GP_KFD_EC_MASK(48)
#define GP_KFD_EC_QUEUE_ALL               0x60ff803full /* 1..6, 16..23, 30, 31 */
#define GP_KFD_EC_DEVICE_ALL              (0x1full << 31)
#define GP_KFD_EC_PROCESS_ALL             (0x3ull << 47)
#define GP_KFD_QUEUE_ERROR                (1u << 30)
#define GP_KFD_QUEUE_INVALID              (1u << 31)

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
			uint64_t info_ptr;
			uint32_t info_size, source_id, exception_code, clear_exception;
		} exception_info;
		struct {
			uint32_t launch_mode, pad;
		} launch_mode;
		struct {
			uint32_t flags, pad;
		} set_flags;
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

struct gp_kfd_device_snapshot {
	uint64_t exception_status, lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
	uint32_t gpu_id, location_id, vendor_id, device_id, revision_id, subsystem_vendor_id, subsystem_device_id,
		fw_version, gfx_target_version, simd_count, max_waves_per_simd, array_count, simd_arrays_per_engine,
		num_xcc, capability, debug_prop;
};

/* Memory between processes. IPC is AMD's own kernels' and its thunk's; upstream has the export of a dmabuf (1.12). */
#define GP_KFD_NR_EXPORT_DMABUF 0x24u
#define GP_KFD_NR_IPC_IMPORT    0x80u
#define GP_KFD_NR_IPC_EXPORT    0x81u
struct gp_kfd_export_dmabuf {
	uint64_t handle;
	uint32_t flags, fd;
};
struct gp_kfd_ipc_import {
	uint64_t handle, va_addr, mmap_offset; /* va_addr: asked for */
	uint32_t key[4], gpu_id, flags;
};
struct gp_kfd_ipc_export {
	uint64_t handle;
	uint32_t key[4], gpu_id, flags;
};

#define GP_KFD_QUEUE_TYPE_SDMA_BY_ENG_ID 4u
struct gp_kfd_create_queue { /* 88 bytes until 1.16, 96 since; which of them the machine's own header has does not
				matter */
	union {
		struct kfd_ioctl_create_queue_args base;
		struct {
			uint8_t until_1_16[88];
			uint32_t sdma_engine_id, pad;
		};
	};
};

_Static_assert(sizeof(struct gp_kfd_dbg_trap) == 40, "as in Linux 6.12");
_Static_assert(sizeof(struct gp_kfd_queue_snapshot) == 64, "as in Linux 6.12");
_Static_assert(sizeof(struct gp_kfd_device_snapshot) == 120, "as in Linux 6.12");
_Static_assert(sizeof(struct gp_kfd_create_queue) == 96, "as in Linux 6.12");
_Static_assert(sizeof(struct gp_kfd_export_dmabuf) == 16 && sizeof(struct gp_kfd_ipc_import) == 48 &&
		       sizeof(struct gp_kfd_ipc_export) == 32,
	       "as in Linux 6.12 and in AMD's own kernels");

/*
 * AMDKFD_IOC_SCHED of kernel/patches, KFD 1.18 there. Newer kernels of upstream use the same number for something else:
 * before anybody calls it, GP_KFD_SCHED_FILE must be there.
 */
#define GP_KFD_SCHED_FILE       "/sys/module/amdgpu/parameters/kfd_sched_policy"
#define GP_KFD_SCHED_MINOR      18u
#define GP_KFD_SCHED_NORMAL     50u
#define GP_KFD_SCHED_MAX        99u
#define GP_KFD_SCHED_WEIGHT_MAX 10000u
#define GP_KFD_SCHED_GATE_MAX   1024u

enum gp_kfd_sched_op { GP_KFD_SCHED_GATE, GP_KFD_SCHED_SET_PROCESS };

struct gp_kfd_sched_gate {
	uint32_t pid, queue_id, open;
	int32_t result;
};

struct gp_kfd_sched {
	uint32_t op, gpu_id;
	uint64_t gates_ptr;
	uint32_t gate_count, priority, weight, pad;
};

#endif
