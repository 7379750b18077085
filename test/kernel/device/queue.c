// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The user's queues: packets from their rings into the model, completions from the model into the program's memory.
 *
 * The device's own checks stand here: each dispatch ends once and with all its workgroups, and a queue that is not
 * mapped makes no progress.
 */
#include <linux/sched/mm.h>
#include "device.h"
#include "kfd_device_queue_manager.h"
#include "soc15_int.h"
#include "memory.h"
#include "packet.h"

#define POLL_NS 100000u /* how often doorbells are looked at: memory does not tell when it is written */

u64 soft_now_ns(void)
{
	return ktime_get_ns();
}

void soft_violation(struct soft *soft, const char *what, u64 value)
{
	soft->stats.violations++;
	pr_err("softgpu: VIOLATION: %s (%llu)\n", what, value);
}

/* Once a preemption has failed, or a reset has begun, the driver sends nothing to the device any more: it frees the
 * MQDs of queues that the device still has, and leaves it to the reset to end them. So does the unpatched driver. */
void soft_stale(struct soft *soft, const char *what, u64 value)
{
	const struct kfd_dev *kfd = soft->adev.kfd.dev;

	if (READ_ONCE(soft->is_resetting) || (kfd && kfd->nodes[0] && READ_ONCE(kfd->nodes[0]->dqm->is_hws_hang)))
		soft->stats.stale++;
	else
		soft_violation(soft, what, value);
}

static int soft_process(struct soft *soft, u32 pasid, u32 *ret_process)
{
	void *entry = xa_load(&soft->process_ids, pasid);
	int r;

	if (entry) {
		*ret_process = xa_to_value(entry);
		return 0;
	}
	r = gp_gpu_process_add(soft->gpu, ret_process);
	if (r)
		return r;
	return xa_err(xa_store(&soft->process_ids, pasid, xa_mk_value(*ret_process), GFP_KERNEL));
}

static void soft_queue_forget(struct soft *soft, struct soft_queue *queue)
{
	if (queue->mqd)
		gp_gpu_queue_remove(soft->gpu, queue->model, soft_now_ns());
	memset(queue, 0, sizeof(*queue));
}

/* The MQD is all the hardware knows. A place in it that the driver clears with each new queue holds our number. */
static u32 *soft_mqd_mark(const struct soft *soft, void *mqd, bool is_copy)
{
	if (soft->adev.enable_mes_kiq)
		return is_copy ? &((struct v11_sdma_mqd *)mqd)->reserved_45 :
				 &((struct v11_compute_mqd *)mqd)->reserved_184;
	if (is_copy)
		return &((struct v9_sdma_mqd *)mqd)->reserved_42;
	return &((struct v9_mqd *)mqd)->reserved_184;
}

static void soft_mqd_read(const struct soft *soft, struct soft_queue *queue)
{
	if (queue->is_copy && soft->adev.enable_mes_kiq) {
		const struct v11_sdma_mqd *m = queue->mqd;

		queue->rptr_address = (u64)m->sdmax_rlcx_rb_rptr_addr_hi << 32 | m->sdmax_rlcx_rb_rptr_addr_lo;
		queue->ring = ((u64)m->sdmax_rlcx_rb_base_hi << 32 | m->sdmax_rlcx_rb_base) << 8;
		queue->ring_size = 4ull << (m->sdmax_rlcx_rb_cntl >> 1 & 0x1f);
		return;
	}
	if (queue->is_copy) {
		const struct v9_sdma_mqd *m = queue->mqd;

		queue->rptr_address = (u64)m->sdmax_rlcx_rb_rptr_addr_hi << 32 | m->sdmax_rlcx_rb_rptr_addr_lo;
		queue->ring = ((u64)m->sdmax_rlcx_rb_base_hi << 32 | m->sdmax_rlcx_rb_base) << 8;
		queue->ring_size = 4ull << (m->sdmax_rlcx_rb_cntl >> 1 & 0x1f);
		return;
	}
	if (soft->adev.enable_mes_kiq) {
		const struct v11_compute_mqd *m = queue->mqd;

		queue->ring = ((u64)m->cp_hqd_pq_base_hi << 32 | m->cp_hqd_pq_base_lo) << 8;
		queue->rptr_address = (u64)m->cp_hqd_pq_rptr_report_addr_hi << 32 | m->cp_hqd_pq_rptr_report_addr_lo;
		queue->wptr_address = (u64)m->cp_hqd_pq_wptr_poll_addr_hi << 32 | m->cp_hqd_pq_wptr_poll_addr_lo;
		queue->packet_count = (2u << (m->cp_hqd_pq_control & 0x3f)) / 16;
	} else {
		const struct v9_mqd *m = queue->mqd;

		queue->ring = ((u64)m->cp_hqd_pq_base_hi << 32 | m->cp_hqd_pq_base_lo) << 8;
		queue->rptr_address = (u64)m->cp_hqd_pq_rptr_report_addr_hi << 32 | m->cp_hqd_pq_rptr_report_addr_lo;
		queue->wptr_address = (u64)m->cp_hqd_pq_wptr_poll_addr_hi << 32 | m->cp_hqd_pq_wptr_poll_addr_lo;
		queue->packet_count = (2u << (m->cp_hqd_pq_control & 0x3f)) / 16;
	}
}

int soft_queue_find(struct soft *soft, u64 mqd_address, u32 pasid, u32 doorbell, bool is_copy, u32 *ret_queue)
{
	struct gp_gpu_queue_attr attr = { .kind = is_copy ? GP_GPU_COPY : GP_GPU_COMPUTE,
					  .ring_size = SOFT_RING,
					  .closed = true };
	void *mqd = soft_gtt(soft, mqd_address);
	struct soft_queue *queue = NULL;
	u32 process, *mark, i;
	int r;

	if (!mqd)
		return -EFAULT;
	mark = soft_mqd_mark(soft, mqd, is_copy);
	i = *mark;
	if (i && i <= SOFT_QUEUE_MAX && soft->queues[i - 1].mqd == mqd && soft->queues[i - 1].pasid == pasid) {
		soft_mqd_read(soft, &soft->queues[i - 1]); /* UPDATE_QUEUE may have changed its ring */
		*ret_queue = i - 1;
		return 0;
	}
	for (i = 0; i < soft->queue_high; i++)
		if (soft->queues[i].mqd == mqd) /* its queue was destroyed, and the memory is another's */
			soft_queue_forget(soft, &soft->queues[i]);
	for (i = 0; i < SOFT_QUEUE_MAX && !queue; i++)
		if (!soft->queues[i].mqd)
			queue = &soft->queues[i];
	if (!queue)
		return -ENOSPC;
	r = soft_process(soft, pasid, &process);
	if (!r)
		r = gp_gpu_queue_add(soft->gpu, process, &attr, soft_now_ns(), &queue->model);
	if (r)
		return r;
	soft->queue_high = max_t(u32, soft->queue_high, queue - soft->queues + 1);
	queue->mqd = mqd;
	queue->mqd_address = mqd_address;
	queue->pasid = pasid;
	queue->doorbell = doorbell;
	queue->is_copy = is_copy;
	soft_mqd_read(soft, queue);
	*mark = queue - soft->queues + 1;
	*ret_queue = queue - soft->queues;
	return 0;
}

/* What firmware writes into the MQD of a queue that it takes off: how far it came, and whether waves were saved. */
static void soft_mqd_write(const struct soft *soft, struct soft_queue *queue)
{
	struct v9_mqd *m = queue->mqd;

	if (queue->is_copy || soft->adev.enable_mes_kiq)
		return;
	m->cp_hqd_active = queue->mapped;
	m->cp_hqd_pq_rptr = (queue->completed % queue->packet_count) * 16;
	m->cp_hqd_pq_wptr_lo = lower_32_bits(queue->taken * 16);
	m->cp_hqd_pq_wptr_hi = upper_32_bits(queue->taken * 16);
	if (!queue->mapped)
		m->cp_hqd_cntl_stack_offset =
			queue->taken == queue->completed ? m->cp_hqd_cntl_stack_size : m->cp_hqd_cntl_stack_size / 2;
}

static int soft_transact(struct soft *soft, struct gp_gpu_change *changes, u32 count)
{
	int r;

	if (!count)
		return 0;
	r = gp_gpu_transact(soft->gpu, changes, count, soft->seq + 1, soft_now_ns());
	if (r)
		pr_err("softgpu: transaction of %u gates: %d\n", count, r);
	else
		soft->seq++;
	return r;
}

int soft_queue_map(struct soft *soft, const u32 *queues, u32 count)
{
	struct gp_gpu_change *changes = kvcalloc(count + 1, sizeof(*changes), GFP_KERNEL);
	struct gp_gpu_counters counters;
	u32 n = 0;
	int r;

	if (!changes)
		return -ENOMEM;
	for (u32 i = 0; i < count; i++) {
		struct soft_queue *queue = &soft->queues[queues[i]];

		if (queue->mapped)
			continue;
		if (queue->was_mapped && !gp_gpu_counters(soft->gpu, queue->model, &counters) &&
		    counters.workgroups_run != queue->run_when_closed)
			soft_violation(soft, "a queue that was not mapped made progress",
				       counters.workgroups_run - queue->run_when_closed);
		queue->mapped = queue->was_mapped = true;
		soft_mqd_write(soft, queue);
		changes[n++] = (struct gp_gpu_change){ .queue = queue->model, .open = true };
	}
	r = soft_transact(soft, changes, n);
	kvfree(changes);
	return r;
}

/* One of so many failures that a test asked for: module parameters, which it writes without our lock. */
static bool soft_take(uint *count)
{
	uint left = READ_ONCE(*count);

	if (left)
		WRITE_ONCE(*count, left - 1);
	return left;
}

/* The firmware gives up on a queue that does not answer. It says which in the HIQ's MQD; MES fails the call. */
static bool soft_queue_ignores(struct soft *soft, struct soft_queue *queue)
{
	struct gp_gpu_counters counters;

	if (gp_gpu_counters(soft->gpu, queue->model, &counters) || counters.fetched == counters.completed ||
	    !soft_take(&soft_close_fails))
		return false;
	soft->stats.faults++;
	queue->is_hung = true;
	if (soft->hiq)
		soft->hiq->queue_doorbell_id0 = queue->doorbell;
	return true;
}

/* Returns false if it stays as it is. */
static bool soft_queue_close(struct soft *soft, struct soft_queue *queue, struct gp_gpu_change *change)
{
	struct gp_gpu_counters counters;

	if (soft_queue_ignores(soft, queue))
		return false;
	if (!gp_gpu_counters(soft->gpu, queue->model, &counters) && counters.fetched > counters.completed) {
		soft->stats.preempted++;
		if (soft_take(&soft_close_hangs)) {
			gp_gpu_set_fault(soft->gpu, queue->model, GP_GPU_FAULT_CLOSE_HANGS);
			soft->stats.faults++;
		}
	}
	queue->mapped = false;
	*change = (struct gp_gpu_change){ .queue = queue->model, .open = false };
	return true;
}

static struct soft_queue *soft_queue_find_hung(struct soft *soft)
{
	for (u32 i = 0; i < soft->queue_high; i++)
		if (soft->queues[i].mqd && soft->queues[i].is_hung)
			return &soft->queues[i];
	return NULL;
}

u64 soft_queue_hung(struct soft *soft)
{
	struct soft_queue *queue;
	u64 ring;

	mutex_lock(&soft->lock);
	queue = soft_queue_find_hung(soft);
	ring = queue ? queue->ring : 0;
	mutex_unlock(&soft->lock);
	return ring;
}

u64 soft_queue_reset_hung(struct soft *soft)
{
	struct soft_queue *queue;
	u64 ring = 0;

	mutex_lock(&soft->lock);
	queue = soft_queue_find_hung(soft);
	if (queue && !soft_take(&soft_reset_fails)) {
		ring = queue->ring;
		soft_queue_forget(soft, queue);
		soft->stats.queue_resets++;
	}
	mutex_unlock(&soft->lock);
	return ring;
}

int soft_queue_unmap(struct soft *soft, u32 pasid)
{
	struct gp_gpu_change *changes = kvcalloc(SOFT_QUEUE_MAX, sizeof(*changes), GFP_KERNEL);
	u32 n = 0;
	int r;

	if (!changes)
		return -ENOMEM;
	for (u32 i = 0; i < soft->queue_high; i++)
		if (soft->queues[i].mapped && (!pasid || soft->queues[i].pasid == pasid))
			n += soft_queue_close(soft, &soft->queues[i], &changes[n]);
	r = soft_transact(soft, changes, n);
	kvfree(changes);
	return r;
}

int soft_queue_unmap_one(struct soft *soft, u32 queue)
{
	struct gp_gpu_change change;

	if (!soft->queues[queue].mapped)
		return -ENOENT;
	if (!soft_queue_close(soft, &soft->queues[queue], &change)) {
		soft->is_resetting = true; /* as after a timeout */
		return -EIO;
	}
	return soft_transact(soft, &change, 1);
}

void soft_queue_process_gone(struct soft *soft, u32 pasid)
{
	void *entry;

	mutex_lock(&soft->lock);
	for (u32 i = 0; i < soft->queue_high; i++)
		if (soft->queues[i].mqd && soft->queues[i].pasid == pasid) {
			if (soft->queues[i].mapped)
				soft_stale(soft, "a process ended and its queue is mapped", pasid);
			soft_queue_forget(soft, &soft->queues[i]);
		}
	entry = xa_erase(&soft->process_ids, pasid);
	if (entry)
		gp_gpu_process_remove(soft->gpu, xa_to_value(entry), soft_now_ns());
	mutex_unlock(&soft->lock);
}

/* ---- rings ---- */

/* The oldest packet of a queue: is it complete, and was it executed where kernels are? */
static bool soft_packet_is_over(const struct soft *soft, const struct soft_queue *queue, u64 index)
{
	const struct soft_packet *packet = &queue->packets[index % SOFT_RING];

	return index < queue->taken && packet->is_done &&
	       (!soft->cores.is_open || !packet->is_kernel || packet->is_executed);
}

/* Takes what lies in the ring of one mapped queue. The program's memory is this thread's. Returns false if a page was
 * not there. */
static bool soft_queue_fetch(struct soft *soft, struct soft_queue *queue)
{
	u64 written, now = soft_now_ns();
	bool any = false;

	if (copy_from_user_nofault(&written, (void __user *)queue->wptr_address, sizeof(written)))
		return false;
	while (queue->taken < written && queue->taken - queue->completed < SOFT_RING - 1) {
		void __user *from = (void __user *)(queue->ring + queue->taken % queue->packet_count * 64);
		struct gp_gpu_packet packet = { .type = GP_GPU_KERNEL, .tag = queue->taken };
		struct soft_packet *mine = &queue->packets[queue->taken % SOFT_RING];
		struct aql_packet aql;
		u8 type;

		if (copy_from_user_nofault(&aql, from, sizeof(aql)))
			return false;
		type = aql.header & 0xff;
		if (type == AQL_INVALID || (type == AQL_VENDOR && !(aql.setup & 0xff)))
			break;
		packet.barrier = aql.header >> 8 & 1;
		if (type == AQL_DISPATCH) {
			soft_packet_kernel(&aql, &packet.kernel);
		} else {
			if (queue->completed != queue->taken || soft_packet_waits(&aql))
				break; /* looked at again, when what is before it is complete */
			packet.type = GP_GPU_BARRIER_AND;
		}
		if (gp_gpu_submit(soft->gpu, queue->model, &packet, now))
			break;
		*mine = (struct soft_packet){ .signal = aql.signal,
					      .workgroups = packet.kernel.workgroups,
					      .is_kernel = type == AQL_DISPATCH && aql.kernel };
		queue->taken++;
		any = true;
	}
	if (any)
		gp_gpu_doorbell(soft->gpu, queue->model, now);
	return true;
}

/* What is needed of a queue to complete packets without the lock: a reset may forget the queue meanwhile. */
struct soft_completion {
	u64 ring, rptr_address, pasid, from, to;
	u32 packet_count, model;
};

/* Completions, in ring order, into the program's memory. Its mm is in use; called without the lock. Returns how many
 * interrupts were sent. */
static u32 soft_queue_retire(struct soft *soft, const struct soft_completion *done)
{
	u32 interrupts = 0;

	for (u64 i = done->from; i < done->to; i++) {
		const struct soft_packet *packet = &soft->retired[i % SOFT_RING];
		u64 slot = done->ring + i % done->packet_count * 64;
		u32 event;

		put_user((u16)AQL_INVALID, (u16 __user *)slot);
		put_user(i + 1, (u64 __user *)done->rptr_address);
		event = soft_signal(packet->signal, packet->end_ns);
		if (event) {
			u32 entry[8] = { SOC15_IH_CLIENTID_GRBM_CP | SOC15_INTSRC_CP_END_OF_PIPE << 8 | 8 << 24 };

			entry[3] = done->pasid;
			entry[4] = event;
			interrupts++;
			kgd2kfd_interrupt(soft->adev.kfd.dev, entry);
		}
	}
	return interrupts;
}

static struct soft_queue *soft_queue_of_model(struct soft *soft, u32 model)
{
	for (u32 i = 0; i < soft->queue_high; i++)
		if (soft->queues[i].mqd && soft->queues[i].model == model)
			return &soft->queues[i];
	return NULL;
}

static void soft_events(struct soft *soft)
{
	struct gp_gpu_event event;

	gp_gpu_advance(soft->gpu, soft_now_ns());
	while (gp_gpu_poll(soft->gpu, &event)) {
		struct soft_queue *queue;
		struct soft_packet *packet;

		if (event.type == GP_GPU_EVENT_TRANSACTION) {
			struct gp_gpu_counters counters;

			soft->seq_done = event.value;
			if (event.error)
				pr_err("softgpu: transaction %llu: %d\n", event.value, event.error);
			for (u32 i = 0; i < soft->queue_high; i++) {
				queue = &soft->queues[i];
				if (!queue->mqd || queue->mapped)
					continue;
				if (!gp_gpu_counters(soft->gpu, queue->model, &counters))
					queue->run_when_closed = counters.workgroups_run;
				soft_mqd_write(soft, queue);
			}
			wake_up_all(&soft->transacted);
			continue;
		}
		if (event.type != GP_GPU_EVENT_END)
			continue;
		queue = soft_queue_of_model(soft, event.queue);
		if (!queue)
			continue;
		if (queue->is_copy) {
			queue->copy_is_done = true;
			continue;
		}
		packet = &queue->packets[event.tag % SOFT_RING];
		if (packet->is_done || event.tag < queue->completed || event.tag >= queue->taken)
			soft_violation(soft, "a packet ended twice or was never taken", event.tag);
		if (packet->workgroups && event.value != packet->workgroups)
			soft_violation(soft, "a dispatch ran another number of workgroups", event.value);
		packet->is_done = true;
		packet->end_ns = event.time_ns;
		soft->stats.dispatches++;
		WRITE_ONCE(soft->cores.done_count, soft->cores.done_count + 1);
		wake_up(&soft->cores.wait);
	}
}

/* One pass over one queue with its program's memory. */
static void soft_queue_serve(struct soft *soft, struct soft_queue *queue)
{
	struct kfd_process *process = kfd_lookup_process_by_pasid(queue->pasid);
	u64 from = queue->completed, to = from;
	bool ok = true;

	if (!process)
		return;
	if (!process->mm || !mmget_not_zero(process->mm)) {
		kfd_unref_process(process);
		return;
	}
	kthread_use_mm(process->mm);
	while (!queue->is_copy && soft_packet_is_over(soft, queue, to))
		to++;
	if (queue->is_copy) {
		soft_copy_serve(soft, queue, process);
		goto out;
	}
	if (to > from) {
		struct soft_completion done = { .ring = queue->ring,
						.rptr_address = queue->rptr_address,
						.pasid = queue->pasid,
						.from = from,
						.to = to,
						.packet_count = queue->packet_count,
						.model = queue->model };
		u32 interrupts;

		for (u64 i = from; i < to; i++)
			soft->retired[i % SOFT_RING] = queue->packets[i % SOFT_RING];
		mutex_unlock(&soft->lock);
		interrupts = soft_queue_retire(soft, &done);
		mutex_lock(&soft->lock);
		soft->stats.interrupts += interrupts;
		if (!queue->mqd || queue->model != done.model)
			goto out; /* it is gone */
		queue->completed = to;
	}
	if (queue->mapped)
		ok = soft_queue_fetch(soft, queue);
	if (!ok) { /* bring the pages in, without the lock: that may go through amdkfd's notifiers */
		u64 w = queue->wptr_address, ring = queue->ring, taken = queue->taken % queue->packet_count;
		u64 scratch;

		mutex_unlock(&soft->lock);
		if (get_user(scratch, (u64 __user *)w) || get_user(scratch, (u64 __user *)(ring + taken * 64)))
			soft_log("queue %td: its ring cannot be read\n", queue - soft->queues);
		mutex_lock(&soft->lock);
	}
out:
	mutex_unlock(&soft->lock);
	kthread_unuse_mm(process->mm);
	/* Of a program that has ended this may be the last reference. What ends with it waits for the DQM lock, whose
	 * holder may wait for this thread. */
	mmput_async(process->mm);
	kfd_unref_process(process);
	mutex_lock(&soft->lock);
}

/* Is there anything to do for a queue now? */
static bool soft_queue_is_due(const struct soft *soft, const struct soft_queue *queue, u64 doorbell)
{
	bool rang = doorbell != queue->doorbell_seen || queue->blocked;

	if (!queue->mqd)
		return false;
	if (queue->is_copy)
		return queue->mapped && (queue->copy_is_done || (rang && !queue->copy_bytes));
	if (soft_packet_is_over(soft, queue, queue->completed))
		return true;
	/* The first packet's number is 0, as a doorbell's that was never rung: until then the ring is read. */
	return queue->mapped && (rang || !queue->taken);
}

u64 soft_queue_run(struct soft *soft)
{
	u64 next;

	soft_events(soft);
	for (u32 i = 0; i < soft->queue_high; i++) {
		struct soft_queue *queue = &soft->queues[i];
		u64 doorbell = queue->mqd ? readq(soft->doorbells + queue->doorbell * 4) : 0;

		if (!soft_queue_is_due(soft, queue, doorbell))
			continue;
		soft_queue_serve(soft, queue);
		queue->doorbell_seen = doorbell;
		/* More than fits, a barrier, or unmapped meanwhile: look again until the ring is empty. */
		if (!queue->is_copy)
			queue->blocked = queue->mqd && queue->taken < doorbell + 1;
	}
	soft_events(soft);
	next = gp_gpu_next_ns(soft->gpu);
	return min(next, soft_now_ns() + POLL_NS);
}

void soft_memory_forget(struct soft *soft, const void *memory, size_t size)
{
	mutex_lock(&soft->lock);
	for (u32 i = 0; i < soft->queue_high; i++) {
		struct soft_queue *queue = &soft->queues[i];

		if (!queue->mqd || queue->mqd < memory || queue->mqd >= memory + size)
			continue;
		if (queue->mapped)
			soft_stale(soft, "the MQD of a mapped queue is freed", queue->pasid);
		soft_queue_forget(soft, queue);
	}
	mutex_unlock(&soft->lock);
}
