// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What else amdkfd asks of amdgpu: one answer each. */
#include <linux/idr.h>
#include "device.h"
#include "amdgpu_mes.h"
#include "amdgpu_ras.h"
#include "amdgpu_reset.h"
#include "amdgpu_xcp.h"

/* Module parameters that amdgpu_drv.c owns. */
int sched_policy = KFD_SCHED_POLICY_HWS;
module_param(sched_policy, int, 0444);
int hws_max_conc_proc = -1;
module_param(hws_max_conc_proc, int, 0444);
int cwsr_enable = 1;
module_param(cwsr_enable, int, 0444);
int max_num_of_queues_per_device = KFD_MAX_NUM_OF_QUEUES_PER_DEVICE_DEFAULT;
module_param(max_num_of_queues_per_device, int, 0444);
bool debug_evictions;
module_param(debug_evictions, bool, 0644);
int queue_preemption_timeout_ms = 9000;
module_param(queue_preemption_timeout_ms, int, 0644);
int send_sigterm, halt_if_hws_hang, amdgpu_no_queue_eviction_on_vm_fault, amdgpu_use_xgmi_p2p = 1, amdgpu_emu_mode;
bool hws_gws_support;
uint amdgpu_sdma_phase_quantum = 32;
const char *amdgpu_asic_name[CHIP_LAST + 1] = { [CHIP_VEGA20] = "VEGA20", [CHIP_IP_DISCOVERY] = "IP DISCOVERY" };

static DEFINE_IDA(pasids);

int amdgpu_pasid_alloc(unsigned int bits)
{
	return ida_alloc_range(&pasids, 0x8000, 0xffff, GFP_KERNEL);
}

void amdgpu_pasid_free(u32 pasid)
{
	for (u32 i = 0; i < SOFT_GPU_MAX; i++)
		if (soft_gpus[i])
			soft_queue_process_gone(soft_gpus[i], pasid);
	ida_free(&pasids, pasid);
}

/* ---- registers ---- */
static void set_sh_mem(struct amdgpu_device *a, u32 v, u32 c, u32 b, u32 l, u32 s, u32 i)
{
}
static int set_pasid(struct amdgpu_device *a, u32 pasid, unsigned int vmid, u32 i)
{
	return 0;
}
static int init_interrupts(struct amdgpu_device *a, u32 pipe, u32 i)
{
	return 0;
}
static int load_hqd(struct amdgpu_device *a, void *mqd, u32 pipe, u32 queue, u32 __user *wptr, u32 shift, u32 mask,
		    struct mm_struct *mm, u32 i)
{
	return 0;
}

static int load_hiq(struct amdgpu_device *adev, void *mqd, u32 pipe, u32 queue, u32 doorbell, u32 instance)
{
	struct soft *soft = to_soft(adev);

	mutex_lock(&soft->lock);
	soft->hiq_rptr = 0;
	soft->hiq_doorbell = doorbell;
	writeq(0, soft->doorbells + doorbell * 4);
	soft->hiq = mqd;
	mutex_unlock(&soft->lock);
	return 0;
}

static void stop_hiq(struct soft *soft)
{
	mutex_lock(&soft->lock);
	soft->hiq = NULL;
	mutex_unlock(&soft->lock);
}

static int destroy_hqd(struct amdgpu_device *adev, void *mqd, enum kfd_preempt_type type, unsigned int timeout,
		       u32 pipe, u32 queue, u32 instance)
{
	if (mqd == to_soft(adev)->hiq)
		stop_hiq(to_soft(adev));
	return 0;
}

int amdgpu_amdkfd_unmap_hiq(struct amdgpu_device *adev, u32 doorbell, u32 instance)
{
	stop_hiq(to_soft(adev));
	return 0;
}

static int load_sdma(struct amdgpu_device *a, void *mqd, u32 __user *w, struct mm_struct *mm)
{
	return 0;
}
static int dump_nothing(u32 (**dump)[2], u32 *count)
{
	*dump = kcalloc(1, 8, GFP_KERNEL);
	*count = 0;
	return *dump ? 0 : -ENOMEM;
}
static int dump_hqd(struct amdgpu_device *a, u32 p, u32 q, u32 (**d)[2], u32 *n, u32 i)
{
	return dump_nothing(d, n);
}
static int dump_sdma(struct amdgpu_device *a, u32 p, u32 q, u32 (**d)[2], u32 *n)
{
	return dump_nothing(d, n);
}
static bool is_occupied(struct amdgpu_device *a, u64 addr, u32 p, u32 q, u32 i)
{
	return false;
}
static bool is_sdma_occupied(struct amdgpu_device *a, void *mqd)
{
	return false;
}
static int destroy_sdma(struct amdgpu_device *a, void *mqd, unsigned int timeout)
{
	return 0;
}
static int wave_control(struct amdgpu_device *a, u32 g, u32 c, u32 i)
{
	return 0;
}
static bool atc_pasid(struct amdgpu_device *a, u8 vmid, u16 *pasid)
{
	*pasid = 0;
	return false;
}
static void set_page_table(struct amdgpu_device *a, u32 vmid, u64 base)
{
}
static void cu_occupancy(struct amdgpu_device *a, struct kfd_cu_occupancy *w, int *m, u32 i)
{
	*m = 40;
}
static void iq_wait_times(struct amdgpu_device *a, u32 *w, u32 i)
{
	*w = 0x1234;
}
static void grace_period(struct amdgpu_device *a, u32 w, u32 g, u32 *o, u32 *d)
{
	*o = 0x3035;
	*d = w;
}
/* A queue that does not answer is found in the first slot of KFD, and reset there. */
static u64 pq_address(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 instance)
{
	return pipe == 0 && queue == 2 ? soft_queue_hung(to_soft(adev)) : 0;
}
static u64 reset_hqd(struct amdgpu_device *adev, u32 pipe, u32 queue, u32 instance, unsigned int timeout)
{
	return pipe == 0 && queue == 2 ? soft_queue_reset_hung(to_soft(adev)) : 0;
}
static void trap_handler(struct amdgpu_device *a, u32 v, u64 tba, u64 tma, u32 i)
{
}
static u32 debug_on(struct amdgpu_device *a, bool r, u32 v)
{
	return 0;
}
static u32 debug_off(struct amdgpu_device *a, bool k, u32 v)
{
	return 0;
}
static int debug_override_ok(struct amdgpu_device *a, u32 o, u32 *s)
{
	return 0;
}
static u32 debug_override(struct amdgpu_device *a, u32 v, u32 o, u32 b, u32 m, u32 *p, u32 c)
{
	return 0;
}
static u32 debug_launch_mode(struct amdgpu_device *a, u8 m, u32 v)
{
	return 0;
}

#define CALLS                                                                                                         \
	{                                                                                                             \
		.program_sh_mem_settings = set_sh_mem, .set_pasid_vmid_mapping = set_pasid,                           \
		.init_interrupts = init_interrupts, .hqd_load = load_hqd, .hiq_mqd_load = load_hiq,                   \
		.hqd_sdma_load = load_sdma, .hqd_dump = dump_hqd, .hqd_sdma_dump = dump_sdma,                         \
		.hqd_is_occupied = is_occupied, .hqd_destroy = destroy_hqd, .hqd_sdma_is_occupied = is_sdma_occupied, \
		.hqd_sdma_destroy = destroy_sdma, .wave_control_execute = wave_control,                               \
		.get_atc_vmid_pasid_mapping_info = atc_pasid, .set_vm_context_page_table_base = set_page_table,       \
		.get_cu_occupancy = cu_occupancy, .program_trap_handler_settings = trap_handler,                      \
		.get_iq_wait_times = iq_wait_times, .build_grace_period_packet_info = grace_period,                   \
		.hqd_get_pq_addr = pq_address, .hqd_reset = reset_hqd, .enable_debug_trap = debug_on,                 \
		.disable_debug_trap = debug_off, .validate_trap_override_request = debug_override_ok,                 \
		.set_wave_launch_trap_override = debug_override, .set_wave_launch_mode = debug_launch_mode            \
	}
const struct kfd2kgd_calls gfx_v8_kfd2kgd = CALLS, gfx_v9_kfd2kgd = CALLS, arcturus_kfd2kgd = CALLS,
			   aldebaran_kfd2kgd = CALLS, gfx_v10_kfd2kgd = CALLS, gfx_v10_3_kfd2kgd = CALLS,
			   gfx_v11_kfd2kgd = CALLS, gfx_v12_kfd2kgd = CALLS, gc_9_4_3_kfd2kgd = CALLS;

/* ---- figures ---- */
uint32_t amdgpu_amdkfd_get_fw_version(struct amdgpu_device *a, enum kgd_engine_type t)
{
	return 0x1b0;
}
bool amdgpu_amdkfd_have_atomics_support(struct amdgpu_device *a)
{
	return true;
}
void amdgpu_amdkfd_get_local_mem_info(struct amdgpu_device *a, struct kfd_local_mem_info *info, struct amdgpu_xcp *x)
{
	*info = (struct kfd_local_mem_info){ .local_mem_size_public = 1ull << 30,
					     .vram_width = 4096,
					     .mem_clk_max = 1000 };
}
uint64_t amdgpu_amdkfd_get_gpu_clock_counter(struct amdgpu_device *a)
{
	return soft_now_ns() / 10;
}
uint32_t amdgpu_amdkfd_get_max_engine_clock_in_mhz(struct amdgpu_device *a)
{
	return 1725;
}
uint8_t amdgpu_amdkfd_get_xgmi_hops_count(struct amdgpu_device *d, struct amdgpu_device *s)
{
	return 1;
}
int amdgpu_amdkfd_get_xgmi_bandwidth_mbytes(struct amdgpu_device *d, struct amdgpu_device *s, bool m)
{
	return 0;
}
int amdgpu_amdkfd_get_pcie_bandwidth_mbytes(struct amdgpu_device *a, bool m)
{
	return 15754;
}
size_t amdgpu_amdkfd_get_available_memory(struct amdgpu_device *a, uint8_t x)
{
	return 1ull << 30;
}
u64 amdgpu_amdkfd_xcp_memory_size(struct amdgpu_device *a, int x)
{
	return 1ull << 30;
}
int amdgpu_queue_mask_bit_to_set_resource_bit(struct amdgpu_device *a, int bit)
{
	return bit;
}
void amdgpu_queue_mask_bit_to_mec_queue(struct amdgpu_device *a, int bit, int *m, int *p, int *q)
{
	*q = bit % 8;
	*p = bit / 8 % 4;
	*m = bit / 32;
}
int amdgpu_xcp_get_inst_details(struct amdgpu_xcp *x, enum AMDGPU_XCP_IP_BLOCK ip, uint32_t *m)
{
	*m = 1;
	return 0;
}
int amdgpu_xcp_query_partition_mode(struct amdgpu_xcp_mgr *x, u32 f)
{
	return 0;
}
int amdgpu_mes_doorbell_process_slice(struct amdgpu_device *a)
{
	return 8192;
}

/* An entry behind all others in the interrupt ring: amdkfd waits until it comes by. */
int amdgpu_amdkfd_send_close_event_drain_irq(struct amdgpu_device *a, uint32_t *entry)
{
	kgd2kfd_interrupt(a->kfd.dev, entry);
	return 0;
}

/* ---- nothing to do ---- */
int amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu(struct amdgpu_device *a, struct kgd_mem *m, void *d)
{
	return 0;
}
int amdgpu_amdkfd_gpuvm_dmaunmap_mem(struct kgd_mem *mem, void *drm_priv)
{
	return 0;
}
int amdgpu_amdkfd_gpuvm_sync_memory(struct amdgpu_device *a, struct kgd_mem *mem, bool intr)
{
	return 0;
}
void amdgpu_amdkfd_gpuvm_unmap_gtt_bo_from_kernel(struct kgd_mem *mem)
{
}
int amdgpu_amdkfd_gpuvm_set_vm_pasid(struct amdgpu_device *a, struct amdgpu_vm *v, u32 pasid)
{
	return 0;
}
void amdgpu_amdkfd_gpuvm_destroy_cb(struct amdgpu_device *a, struct amdgpu_vm *v)
{
}
void amdgpu_amdkfd_set_compute_idle(struct amdgpu_device *a, bool idle)
{
}
int amdgpu_amdkfd_submit_ib(struct amdgpu_device *a, enum kgd_engine_type e, uint32_t v, uint64_t g, uint32_t *c,
			    uint32_t l)
{
	return 0;
}
int amdgpu_vm_flush_compute_tlb(struct amdgpu_device *a, struct amdgpu_vm *v, uint32_t t, uint32_t x)
{
	return 0;
}
int amdgpu_amdkfd_alloc_gws(struct amdgpu_device *a, size_t size, void **m)
{
	*m = NULL;
	return 0;
}
void amdgpu_amdkfd_free_gws(struct amdgpu_device *a, void *m)
{
}
int amdgpu_amdkfd_remove_gws_from_process(void *i, void *m)
{
	return 0;
}
int amdgpu_amdkfd_get_tile_config(struct amdgpu_device *a, struct tile_config *c)
{
	memset(c, 0, sizeof(*c));
	return 0;
}
void amdgpu_amdkfd_ras_poison_consumption_handler(struct amdgpu_device *a, enum amdgpu_ras_block b, uint32_t r)
{
}
void amdgpu_amdkfd_ras_pasid_poison_consumption_handler(struct amdgpu_device *a, enum amdgpu_ras_block b, uint16_t p,
							pasid_notify f, void *d, uint32_t r)
{
}
bool amdgpu_amdkfd_is_fed(struct amdgpu_device *a)
{
	return false;
}
bool amdgpu_amdkfd_bo_mapped_to_dev(void *d, struct kgd_mem *m)
{
	return true;
}
void amdgpu_amdkfd_debug_mem_fence(struct amdgpu_device *a)
{
}
void amdgpu_device_flush_hdp(struct amdgpu_device *a, struct amdgpu_ring *r)
{
}
void amdgpu_gfx_off_ctrl(struct amdgpu_device *a, bool e)
{
}
int amdgpu_mes_flush_shader_debugger(struct amdgpu_device *a, uint64_t p)
{
	return 0;
}
int amdgpu_mes_set_shader_debugger(struct amdgpu_device *a, uint64_t p, uint32_t s, const uint32_t *t, uint32_t f,
				   bool e)
{
	return 0;
}
int amdgpu_mes_suspend(struct amdgpu_device *a)
{
	return 0;
}
int amdgpu_mes_resume(struct amdgpu_device *a)
{
	return 0;
}
u64 amdgpu_ras_acquire_event_id(struct amdgpu_device *a, enum ras_event_type t)
{
	return 0;
}
void amdgpu_ras_event_log_print(struct amdgpu_device *a, u64 e, const char *f, ...)
{
}
int amdgpu_ras_mark_ras_event_caller(struct amdgpu_device *a, enum ras_event_type t, const void *c)
{
	return 0;
}
void amdgpu_reset_get_desc(struct amdgpu_reset_context *r, char *b, size_t l)
{
}
bool amdgpu_sriov_xnack_support(struct amdgpu_device *a)
{
	return false;
}
struct amdgpu_task_info *amdgpu_vm_get_task_info_pasid(struct amdgpu_device *a, u32 p)
{
	return NULL;
}
void amdgpu_vm_put_task_info(struct amdgpu_task_info *t)
{
}
void amdgpu_amdkfd_block_mmu_notifications(void *p)
{
}
u64 amdgpu_bo_gpu_offset(struct amdgpu_bo *bo)
{
	return 0;
}
uint64_t amdgpu_dpm_get_thermal_throttling_counter(struct amdgpu_device *a)
{
	return 0;
}
int kfd_debugfs_kfd_mem_limits(struct seq_file *m, void *data)
{
	return 0;
}

/* ---- not offered ---- */
int amdgpu_amdkfd_add_gws_to_process(void *i, void *g, struct kgd_mem **m)
{
	return -EOPNOTSUPP;
}
/* Its arguments differ between point releases of 6.12: it is given by its symbol. */
int soft_get_dmabuf_info(void) __asm__("amdgpu_amdkfd_get_dmabuf_info");
int soft_get_dmabuf_info(void)
{
	return -EOPNOTSUPP;
}
int amdgpu_amdkfd_gpuvm_get_vm_fault_info(struct amdgpu_device *a, struct kfd_vm_fault_info *i)
{
	return -ENOENT;
}
int amdgpu_amdkfd_gpuvm_import_dmabuf_fd(struct amdgpu_device *a, int fd, uint64_t va, void *p, struct kgd_mem **m,
					 uint64_t *s, uint64_t *o)
{
	return -EOPNOTSUPP;
}
int amdgpu_amdkfd_gpuvm_export_dmabuf(struct kgd_mem *m, struct dma_buf **d)
{
	return -EOPNOTSUPP;
}
int amdgpu_amdkfd_criu_resume(void *p)
{
	return -EOPNOTSUPP;
}
int amdgpu_ttm_tt_get_userptr(const struct ttm_buffer_object *b, uint64_t *u)
{
	return -EINVAL;
}
