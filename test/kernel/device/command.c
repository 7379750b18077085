// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The command processor: what amdkfd puts into the HIQ, and what it asks of MES. */
#include "device.h"
#include "amdgpu_mes.h"
#include "mes_v11_api_def.h"
#include "kfd_pm4_headers_ai.h"
#include "kfd_pm4_opcodes.h"

#define IT_WRITE_DATA 0x37 /* amdgpu's name for it is PACKET3_WRITE_DATA */

static uint stall_ms;
module_param(stall_ms, uint, 0644);
MODULE_PARM_DESC(stall_ms, "the command processor sleeps so long before each unmap");

/* A running sum over every word of every packet: two drivers that send the same bytes have the same sum. Addresses are
 * part of it: the device gives out the same ones in each run, and the guest is booted without random ones. */
static void soft_sum(struct soft *soft, const u32 *packet, u32 length)
{
	for (u32 i = 0; i < length; i++)
		soft->stats.packet_hash = (soft->stats.packet_hash ^ packet[i]) * 0x100000001b3ull;
	soft->stats.packet_count++;
	soft->stats.packet_words += length;
}

static u32 packet_length(u32 header)
{
	return (header >> 16 & 0x3fff) + 2;
}

/* A runlist replaces the one before: which queues does it leave out, which does it bring in? Queues that were destroyed
 * in between are not counted, their places are free. */
static void soft_runlist_compare(struct soft *soft, const u32 *queues, u32 count)
{
	u32 left = 0, joined = 0, processes = 0;
	u64 pasids[32];

	for (u32 i = 0; i < count; i++) {
		joined += !soft->queues[queues[i]].in_runlist;
		soft->queues[queues[i]].in_runlist = false; /* what remains set was left out */
	}
	for (u32 i = 0; i < soft->queue_high; i++) {
		u32 k = 0;

		if (!soft->queues[i].mqd || !soft->queues[i].in_runlist)
			continue;
		soft->queues[i].in_runlist = false;
		left++;
		while (k < processes && pasids[k] != soft->queues[i].pasid)
			k++;
		if (k == processes && processes < ARRAY_SIZE(pasids))
			pasids[processes++] = soft->queues[i].pasid;
	}
	for (u32 i = 0; i < count; i++)
		soft->queues[queues[i]].in_runlist = true;
	if (left > soft->stats.left_max ||
	    (left == soft->stats.left_max && processes > soft->stats.left_processes_max)) {
		soft->stats.left_max = left;
		soft->stats.left_processes_max = processes;
	}
	soft->stats.changed_max = max_t(u64, soft->stats.changed_max, left + joined);
}

static void soft_runlist(struct soft *soft, const u32 *ib, u32 length)
{
	u32 *queues = kvcalloc(SOFT_QUEUE_MAX, sizeof(*queues), GFP_KERNEL);
	u32 count = 0, pasid = 0, position = 0;

	if (!queues)
		return;
	while (position < length) {
		u32 op = ib[position] >> 8 & 0xff, size = packet_length(ib[position]);

		soft_sum(soft, &ib[position], min(size, length - position));
		if (op == IT_MAP_PROCESS) {
			const struct pm4_mes_map_process *p = (const void *)&ib[position];

			pasid = p->bitfields2.pasid;
			soft_log("  MAP_PROCESS pasid %#x quantum %u queues %u\n", pasid, p->bitfields2.process_quantum,
				 p->bitfields14.num_queues);
		} else if (op == IT_MAP_QUEUES) {
			const struct pm4_mes_map_queues *p = (const void *)&ib[position];
			bool is_copy = p->bitfields2.engine_sel != engine_sel__mes_map_queues__compute_vi;
			u64 mqd = (u64)p->mqd_addr_hi << 32 | p->mqd_addr_lo;
			int r = count < SOFT_QUEUE_MAX ?
					soft_queue_find(soft, mqd, pasid, p->bitfields3.doorbell_offset, is_copy,
							&queues[count]) :
					-ENOSPC;

			if (r)
				pr_err("softgpu: MAP_QUEUES mqd %#llx: %d\n", mqd, r);
			else
				count++;
			soft->stats.map_queues++;
		} else if (op != IT_RUN_LIST) { /* at its end: oversubscribed, it begins again */
			pr_err("softgpu: packet %#x in a runlist\n", op);
			break;
		}
		position += size;
	}
	soft->stats.runlist_queues_max = max_t(u64, soft->stats.runlist_queues_max, count);
	soft_runlist_compare(soft, queues, count);
	soft_queue_map(soft, queues, count);
	kvfree(queues);
}

/* One packet of the HIQ. Returns false if it has to wait. */
static bool soft_packet_run(struct soft *soft, u32 *packet)
{
	u32 op = packet[0] >> 8 & 0xff;

	switch (op) {
	case IT_NOP:
	case IT_SET_RESOURCES:
	case IT_WRITE_DATA: break; /* the last sets how long a dequeue waits: the model's are not that fine */
	case IT_RUN_LIST: {
		const struct pm4_mes_runlist *p = (const void *)packet;
		const u32 *ib = soft_gtt(soft, (u64)p->ib_base_hi << 32 | p->ordinal2);

		soft->stats.runlists++;
		soft_log("RUN_LIST %u dwords\n", p->bitfields4.ib_size);
		if (ib)
			soft_runlist(soft, ib, p->bitfields4.ib_size);
		break;
	}
	case IT_UNMAP_QUEUES: {
		const struct pm4_mes_unmap_queues *p = (const void *)packet;
		bool one = p->bitfields2.queue_sel == queue_sel__mes_unmap_queues__perform_request_on_pasid_queues;

		soft->stats.unmaps++;
		soft_log("UNMAP_QUEUES selection %u\n", p->bitfields2.queue_sel);
		soft_queue_unmap(soft, one ? p->bitfields3a.pasid : 0);
		break;
	}
	case IT_QUERY_STATUS: {
		const struct pm4_mes_query_status *p = (const void *)packet;
		u64 *fence = soft_gtt(soft, (u64)p->addr_hi << 32 | p->addr_lo);

		if (soft->seq_done < soft->seq)
			return false; /* what was asked for before is not through */
		soft->stats.fences++;
		if (fence)
			WRITE_ONCE(*fence, (u64)p->data_hi << 32 | p->data_lo);
		break;
	}
	default:
		pr_err("softgpu: unknown packet %#x in the HIQ: the command processor hangs\n", op);
		soft->hiq = NULL;
		return false;
	}
	return true;
}

void soft_command_run(struct soft *soft)
{
	const struct v9_mqd *hiq = soft->hiq;
	u32 size, *ring, *report, written;

	if (!hiq)
		return;
	size = 2u << (hiq->cp_hqd_pq_control & 0x3f);
	ring = soft_gtt(soft, ((u64)hiq->cp_hqd_pq_base_hi << 32 | hiq->cp_hqd_pq_base_lo) << 8);
	report = soft_gtt(soft, (u64)hiq->cp_hqd_pq_rptr_report_addr_hi << 32 | hiq->cp_hqd_pq_rptr_report_addr_lo);
	written = readl(soft->doorbells + soft->hiq_doorbell * 4) % size;
	if (!ring || !report)
		return;
	while (soft->hiq_rptr != written) {
		u32 *packet = ring + soft->hiq_rptr, length = packet_length(packet[0]);

		if ((packet[0] >> 8 & 0xff) == IT_NOP && (packet[0] >> 16 & 0x3fff) == 0x3fff)
			length = 1;
		if ((packet[0] >> 8 & 0xff) == IT_UNMAP_QUEUES && stall_ms) {
			mutex_unlock(&soft->lock);
			msleep(stall_ms);
			mutex_lock(&soft->lock);
			if (!soft->hiq)
				return;
		}
		if (!soft_packet_run(soft, packet))
			return;
		if (length > 1) /* the rest is padding at the ring's end */
			soft_sum(soft, packet, length);
		soft->hiq_rptr = (soft->hiq_rptr + length) % size;
		WRITE_ONCE(*report, soft->hiq_rptr);
	}
}

/* ---- MES: one call for one queue; the caller waits until it is through ---- */

/* A machine with much to do may not run the device's thread for a second: that is no failure of MES. */
static uint mes_timeout_ms = 30000;
module_param(mes_timeout_ms, uint, 0644);
MODULE_PARM_DESC(mes_timeout_ms, "how long the driver waits for MES");

static int mes_wait(struct soft *soft, u64 seq)
{
	if (!wait_event_timeout(soft->transacted, READ_ONCE(soft->seq_done) >= seq, msecs_to_jiffies(mes_timeout_ms))) {
		WRITE_ONCE(soft->is_resetting, true); /* the driver gives up on the device, and resets it */
		return -ETIMEDOUT;
	}
	return 0;
}

static int mes_add(struct amdgpu_mes *mes, struct mes_add_queue_input *input)
{
	struct soft *soft = to_soft(container_of(mes, struct amdgpu_device, mes));
	u32 queue;
	u64 seq;
	int r;

	mutex_lock(&soft->lock);
	soft->stats.mes_adds++;
	r = soft_queue_find(soft, input->mqd_addr, input->process_id, input->doorbell_offset,
			    input->queue_type == MES_QUEUE_TYPE_SDMA, &queue);
	if (!r)
		r = soft_queue_map(soft, &queue, 1);
	seq = soft->seq;
	mutex_unlock(&soft->lock);
	return r ?: mes_wait(soft, seq);
}

static int mes_remove(struct amdgpu_mes *mes, struct mes_remove_queue_input *input)
{
	struct soft *soft = to_soft(container_of(mes, struct amdgpu_device, mes));
	int r = -ENOENT;
	u64 seq;

	mutex_lock(&soft->lock);
	soft->stats.mes_removes++;
	for (u32 i = 0; i < soft->queue_high; i++)
		if (soft->queues[i].mapped && soft->queues[i].doorbell == input->doorbell_offset)
			r = soft_queue_unmap_one(soft, i);
	if (r == -ENOENT)
		soft_violation(soft, "MES is asked to remove a queue that it does not have", input->doorbell_offset);
	seq = soft->seq;
	mutex_unlock(&soft->lock);
	return r ?: mes_wait(soft, seq);
}

const struct amdgpu_mes_funcs soft_mes_funcs = { .add_hw_queue = mes_add, .remove_hw_queue = mes_remove };
