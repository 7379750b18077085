// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The module: probe and remove, the device's thread, reset, and a folder in debugfs for the tests. */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>
#include "device.h"
#include "amdgpu_mes.h"
#include "amdgpu_reset.h"
#include "kfd_device_queue_manager.h"
#include "memory.h"

uint soft_trace, soft_close_hangs, soft_close_fails, soft_reset_fails;
module_param_named(trace, soft_trace, uint, 0644);
module_param_named(close_hangs, soft_close_hangs, uint, 0644);
MODULE_PARM_DESC(close_hangs, "so many preemptions from now on never end, until a reset");
module_param_named(close_fails, soft_close_fails, uint, 0644);
MODULE_PARM_DESC(close_fails, "so many queues with work from now on do not answer a preemption, and run on");
module_param_named(reset_fails, soft_reset_fails, uint, 0644);
MODULE_PARM_DESC(reset_fails, "so many resets of such queues fail");
static bool mes;
module_param(mes, bool, 0444);
MODULE_PARM_DESC(mes, "a gfx11 part, whose queues MES maps, instead of a gfx906 with a HIQ");

struct soft *soft_gpus[SOFT_GPU_MAX];
static struct amdgpu_reset_domain reset_domain;

int64_t gp_desc_get(const struct gp_desc *desc, enum gp_desc_key key)
{
	return desc->values[key].value;
}

static int device_thread(void *argument)
{
	struct soft *soft = argument;

	while (!kthread_should_stop()) {
		u64 next, now;
		/* amdkfd takes the lock under the DQM lock: what is allocated here must not wait for pages to be freed,
		 * which may wait for an eviction. */
		unsigned int flags = memalloc_noreclaim_save();

		mutex_lock(&soft->lock);
		soft_command_run(soft);
		next = soft_queue_run(soft);
		mutex_unlock(&soft->lock);
		memalloc_noreclaim_restore(flags);
		now = soft_now_ns();
		if (next > now + 2000)
			usleep_range((next - now) / 1000, (next - now) / 1000 + 20);
		else
			cond_resched();
	}
	return 0;
}

/* ---- reset ---- */

static void reset_device(struct work_struct *work)
{
	struct soft *soft = container_of(work, struct soft, reset_work);

	mutex_lock(&soft->lock);
	soft->is_resetting = true;
	mutex_unlock(&soft->lock);
	down_write(&reset_domain.sem);
	kgd2kfd_pre_reset(soft->adev.kfd.dev, NULL);
	mutex_lock(&soft->lock);
	gp_gpu_reset(soft->gpu, soft_now_ns());
	memset(soft->queues, 0, SOFT_QUEUE_MAX * sizeof(*soft->queues));
	xa_destroy(&soft->process_ids);
	xa_init(&soft->process_ids);
	soft->seq_done = soft->seq;
	soft->stats.resets++;
	soft->is_resetting = false;
	mutex_unlock(&soft->lock);
	wake_up_all(&soft->transacted);
	kgd2kfd_post_reset(soft->adev.kfd.dev);
	up_write(&reset_domain.sem);
	pr_info("softgpu: reset done\n");
}

void amdgpu_amdkfd_gpu_reset(struct amdgpu_device *adev)
{
	pr_info("softgpu: amdkfd asks for a reset\n");
	queue_work(system_unbound_wq, &to_soft(adev)->reset_work);
}

/* ---- the DRM node ---- */

static int drm_node_open(struct drm_device *drm, struct drm_file *file)
{
	static atomic_t vm_count;
	struct amdgpu_fpriv *private = kzalloc(sizeof(*private), GFP_KERNEL);

	if (!private)
		return -ENOMEM;
	private->vm.last_tlb_flush = dma_fence_get_stub();
	private->vm.root.bo = soft_bo_new(drm_to_adev(drm), atomic_inc_return(&vm_count) * (u64)PAGE_SIZE);
	file->driver_priv = private;
	return 0;
}

static void drm_node_close(struct drm_device *drm, struct drm_file *file)
{
	struct amdgpu_fpriv *private = file->driver_priv;

	dma_fence_put(private->vm.last_tlb_flush);
	amdgpu_bo_unref(&private->vm.root.bo);
	kfree(private);
}

static int drm_node_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct drm_file *drm = file->private_data;

	return soft_memory_mmap(to_soft(drm_to_adev(drm->minor->dev)), vma);
}

static const struct file_operations drm_node_fops = {
	.owner = THIS_MODULE,
	.open = drm_open,
	.release = drm_release,
	.unlocked_ioctl = drm_ioctl,
	.compat_ioctl = drm_compat_ioctl,
	.poll = drm_poll,
	.read = drm_read,
	.mmap = drm_node_mmap,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

static const struct drm_driver drm_node = {
	.driver_features = DRIVER_RENDER | DRIVER_GEM,
	.open = drm_node_open,
	.postclose = drm_node_close,
	.fops = &drm_node_fops,
	.name = "amdgpu",
	.desc = "software GPU",
	.date = "20261116",
	.major = 3,
	.minor = 59,
};

int amdgpu_file_to_fpriv(struct file *file, struct amdgpu_fpriv **private)
{
	if (file->f_op != &drm_node_fops)
		return -EINVAL;
	*private = ((struct drm_file *)file->private_data)->driver_priv;
	return 0;
}

/* ---- debugfs ---- */

static int stats_show(struct seq_file *file, void *data)
{
	struct soft *soft = file->private;
	const struct soft_stats *s = &soft->stats;
	const char *wrong;
	u32 mapped = 0;

	mutex_lock(&soft->lock);
	wrong = gp_gpu_check(soft->gpu);
	if (wrong)
		soft_violation(soft, wrong, 0);
	for (u32 i = 0; i < soft->queue_high; i++)
		mapped += soft->queues[i].mapped;
	seq_printf(file, "runlists=%llu\nmap_queues=%llu\nunmaps=%llu\nfences=%llu\nmes_adds=%llu\nmes_removes=%llu\n",
		   s->runlists, s->map_queues, s->unmaps, s->fences, s->mes_adds, s->mes_removes);
	seq_printf(file,
		   "dispatches=%llu\ninterrupts=%llu\npreempted=%llu\nfaults=%llu\nresets=%llu\nqueue_resets=%llu\n",
		   s->dispatches, s->interrupts, s->preempted, s->faults, s->resets, s->queue_resets);
	seq_printf(file, "mapped=%u\nrunlist_queues_max=%llu\nnotifier_evictions=%d\nviolations=%llu\n", mapped,
		   s->runlist_queues_max, atomic_read(&soft_notifier_evictions), s->violations);
	seq_printf(file, "packet_hash=%llx\npacket_count=%llu\npacket_bytes=%llu\n", s->packet_hash, s->packet_count,
		   s->packet_words * 4);
	/* The driver's own counts: without queues they are 0. They are the DQM lock's, which is taken before ours. */
	if (soft->adev.kfd.init_complete) {
		const struct device_queue_manager *dqm = soft->adev.kfd.dev->nodes[0]->dqm;

		seq_printf(file, "driver_queues=%u\ndriver_compute=%u\ndriver_gws=%u\ndriver_processes=%u\n",
			   READ_ONCE(dqm->active_queue_count), READ_ONCE(dqm->active_cp_queue_count),
			   READ_ONCE(dqm->gws_queue_count), READ_ONCE(dqm->processes_count));
	}
	seq_printf(file, "copies=%llu\ncopies_apart=%llu\nstale=%llu\nexecuted=%llu\nnot_executed=%llu\n", s->copies,
		   s->copies_apart, s->stale, s->executed, s->not_executed);
	seq_printf(file, "left_max=%llu\nleft_processes_max=%llu\nchanged_max=%llu\n", s->left_max,
		   s->left_processes_max, s->changed_max);
	mutex_unlock(&soft->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* What each queue has come to. */
static int queues_show(struct seq_file *file, void *data)
{
	struct soft *soft = file->private;

	mutex_lock(&soft->lock);
	for (u32 i = 0; i < soft->queue_high; i++) {
		const struct soft_queue *queue = &soft->queues[i];

		if (queue->mqd)
			seq_printf(file,
				   "pasid=%#llx copy=%d mapped=%d taken=%llu completed=%llu doorbell=%llu ring=%#llx\n",
				   queue->pasid, queue->is_copy, queue->mapped, queue->taken, queue->completed,
				   readq(soft->doorbells + queue->doorbell * 4), queue->ring);
	}
	mutex_unlock(&soft->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

/* A PID written into evict or restore: what amdgpu does to that process when memory is short. */
static int evict_process(u64 pid, bool evict)
{
	struct pid *id = find_get_pid(pid);
	struct task_struct *task = id ? get_pid_task(id, PIDTYPE_PID) : NULL;
	struct mm_struct *mm = task ? get_task_mm(task) : NULL;
	int r = -ESRCH;

	if (mm) {
		r = evict ? kgd2kfd_quiesce_mm(mm, KFD_QUEUE_EVICTION_TRIGGER_USERPTR) : kgd2kfd_resume_mm(mm);
		mmput(mm);
	}
	if (task)
		put_task_struct(task);
	put_pid(id);
	return r;
}

static int evict_set(void *data, u64 pid)
{
	return evict_process(pid, true);
}

static int restore_set(void *data, u64 pid)
{
	return evict_process(pid, false);
}

static int suspend_set(void *data, u64 suspend)
{
	struct soft *soft = data;

	if (suspend)
		kgd2kfd_suspend(soft->adev.kfd.dev, false);
	else
		return kgd2kfd_resume(soft->adev.kfd.dev, false);
	return 0;
}

static int reset_set(void *data, u64 value)
{
	struct soft *soft = data;

	amdgpu_amdkfd_gpu_reset(&soft->adev);
	flush_work(&soft->reset_work);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(evict_fops, NULL, evict_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(restore_fops, NULL, restore_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(suspend_fops, NULL, suspend_set, "%llu\n");
DEFINE_DEBUGFS_ATTRIBUTE(reset_fops, NULL, reset_set, "%llu\n");

/* ---- life ---- */

static void fill_device(struct soft *soft)
{
	struct amdgpu_device *adev = &soft->adev;

	adev->asic_type = mes ? CHIP_IP_DISCOVERY : CHIP_VEGA20;
	adev->ip_versions[GC_HWIP][0] = mes ? IP_VERSION(11, 0, 0) : IP_VERSION(9, 4, 0);
	adev->ip_versions[SDMA0_HWIP][0] = mes ? IP_VERSION(6, 0, 0) : IP_VERSION(4, 2, 0);
	adev->sdma.num_instances = 2;
	adev->gds.gws_size = 64;
	adev->vm_manager.max_pfn = 1ull << 36;
	adev->gfx.config.max_cu_per_sh = 16;
	adev->gfx.config.max_shader_engines = 4;
	adev->gfx.config.max_sh_per_se = 1;
	adev->gfx.xcc_mask = 1;
	adev->gfx.num_xcc_per_xcp = 1;
	adev->gfx.cu_info = (struct amdgpu_cu_info){ .number = 60,
						     .simd_per_cu = 4,
						     .max_waves_per_simd = 10,
						     .wave_front_size = 64,
						     .max_scratch_slots_per_cu = 32,
						     .lds_size = 64 };
	for (int i = 0; i < 4; i++)
		adev->gfx.cu_info.bitmap[0][i][0] = 0x7fff;
	spin_lock_init(&adev->mman.bdev.lru_lock);
	adev->reset_domain = &reset_domain;
	if (mes) {
		mutex_init(&adev->mes.mutex_hidden);
		adev->mes.funcs = &soft_mes_funcs;
		adev->mes.sched_version = 2 << 12;
		adev->enable_mes_kiq = true;
	}
}

static bool start_kfd(struct soft *soft, struct pci_dev *pci)
{
	struct kgd2kfd_shared_resources resources = {
		.compute_vmid_bitmap = 0xff00,
		.num_pipe_per_mec = 4,
		.num_queue_per_pipe = 8,
		.non_cp_doorbells_start = 0xf0,
		.non_cp_doorbells_end = 0xff,
		.doorbell_start_offset = PAGE_SIZE,
		.gpuvm_size = 1ull << 47,
		.enable_mes = mes,
	};
	struct amdgpu_device *adev = &soft->adev;

	adev->kfd.dev = kgd2kfd_probe(adev, false);
	if (!adev->kfd.dev)
		return false;
	for (int i = 0; i < 32; i++) /* 6 of 8 HQDs of each pipe, as amdgpu leaves to KFD */
		if (i % 8 >= 2)
			set_bit(i, resources.cp_queue_bitmap);
	adev->doorbell_index.sdma_engine[0] = 0xf0;
	adev->doorbell_index.sdma_engine[1] = 0xf5;
	resources.sdma_doorbell_idx = adev->doorbell_index.sdma_engine;
	resources.doorbell_physical_address = pci_resource_start(pci, 2);
	resources.doorbell_aperture_size = soft->doorbells_size;
	resources.drm_render_minor = adev->ddev.render->index;
	adev->kfd.init_complete = kgd2kfd_device_init(adev->kfd.dev, &resources);
	return adev->kfd.init_complete;
}

static int soft_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct gp_gpu_config config = { .desc = &soft_desc };
	struct soft *soft;
	char name[16] = "softgpu";
	u32 index = 0;
	int r;

	while (index < SOFT_GPU_MAX && soft_gpus[index])
		index++;
	if (index == SOFT_GPU_MAX)
		return -EBUSY;
	soft = devm_drm_dev_alloc(&pci->dev, &drm_node, struct soft, adev.ddev);
	if (IS_ERR(soft))
		return PTR_ERR(soft);
	r = pci_enable_device(pci);
	if (r)
		return r;
	soft->index = index;
	INIT_WORK(&soft->reset_work, reset_device);
	soft->adev.dev = &pci->dev;
	soft->adev.pdev = pci;
	fill_device(soft);
	mutex_init(&soft->lock);
	mutex_init(&soft->gtt_lock);
	INIT_LIST_HEAD(&soft->gtt);
	init_waitqueue_head(&soft->transacted);
	init_waitqueue_head(&soft->cores.wait);
	xa_init_flags(&soft->bos, XA_FLAGS_ALLOC1);
	xa_init(&soft->process_ids);
	soft->gtt_next = 0x7f00000000ull;
	soft->queues = kvcalloc(SOFT_QUEUE_MAX, sizeof(*soft->queues), GFP_KERNEL);
	soft->doorbells_size = pci_resource_len(pci, 2);
	soft->doorbells = ioremap(pci_resource_start(pci, 2), soft->doorbells_size);
	if (!soft->queues || !soft->doorbells || gp_gpu_create(&config, &soft->gpu))
		return -ENOMEM;
	soft->adev.doorbell.base = pci_resource_start(pci, 2);
	soft->adev.doorbell.size = soft->doorbells_size;
	pci_set_drvdata(pci, soft);
	r = drm_dev_register(&soft->adev.ddev, 0);
	if (r)
		return r;
	soft_gpus[index] = soft;
	soft->thread = kthread_run(device_thread, soft, "softgpu");
	if (index)
		snprintf(name, sizeof(name), "softgpu.%u", index);
	soft->dir = debugfs_create_dir(name, NULL);
	debugfs_create_file("stats", 0444, soft->dir, soft, &stats_fops);
	debugfs_create_file("queues", 0444, soft->dir, soft, &queues_fops);
	debugfs_create_file("cores", 0600, soft->dir, soft, &soft_cores_fops);
	debugfs_create_file("evict", 0200, soft->dir, soft, &evict_fops);
	debugfs_create_file("restore", 0200, soft->dir, soft, &restore_fops);
	debugfs_create_file("suspend", 0200, soft->dir, soft, &suspend_fops);
	debugfs_create_file("reset", 0200, soft->dir, soft, &reset_fops);
	return start_kfd(soft, pci) ? 0 : -ENODEV;
}

static void soft_remove(struct pci_dev *pci)
{
	struct soft *soft = pci_get_drvdata(pci);

	debugfs_remove_recursive(soft->dir);
	flush_work(&soft->reset_work);
	kgd2kfd_suspend(soft->adev.kfd.dev, false);
	kgd2kfd_device_exit(soft->adev.kfd.dev);
	kthread_stop(soft->thread);
	for (u32 i = 0; i < soft->queue_high; i++)
		if (soft->queues[i].mapped)
			soft_violation(soft, "a queue is mapped after the driver left", i);
	drm_dev_unregister(&soft->adev.ddev);
	gp_gpu_destroy(soft->gpu);
	xa_destroy(&soft->process_ids);
	iounmap(soft->doorbells);
	kvfree(soft->queues);
	soft_gpus[soft->index] = NULL;
}

static const struct pci_device_id soft_ids[] = { { PCI_DEVICE(0x1af4, 0x1110) }, {} };
static struct pci_driver soft_driver = {
	.name = "softgpu",
	.id_table = soft_ids,
	.probe = soft_probe,
	.remove = soft_remove,
};

static int __init soft_init(void)
{
	int r;

	init_rwsem(&reset_domain.sem);
	reset_domain.wq = alloc_ordered_workqueue("softgpu-reset", 0);
	if (!reset_domain.wq)
		return -ENOMEM;
	r = kgd2kfd_init();
	if (r)
		goto no_kfd;
	r = pci_register_driver(&soft_driver);
	if (!r)
		return 0;
	kgd2kfd_exit();
no_kfd:
	destroy_workqueue(reset_domain.wq);
	return r;
}

static void __exit soft_exit(void)
{
	pci_unregister_driver(&soft_driver);
	kgd2kfd_exit();
	destroy_workqueue(reset_domain.wq);
}

module_init(soft_init);
module_exit(soft_exit);
MODULE_DESCRIPTION("amdkfd on a software GPU");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_IMPORT_NS(DMA_BUF);
