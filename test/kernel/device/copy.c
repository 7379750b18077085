// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The copy engines' queues (SDMA): copies and fills take the time that the model gives them, and move bytes when it is
 * over. The rest (fences, traps, polls, atomics, timestamps) happens at once. All of it in the device's thread, with
 * the program's memory in use and without the lock: the program's pages may have to be brought in.
 */
#include <linux/uaccess.h>
#include "device.h"
#include "memory.h"
#include "soc15_int.h"

#define SDMA_NOP        0u
#define SDMA_COPY       1u
#define SDMA_FENCE      5u
#define SDMA_TRAP       6u
#define SDMA_POLL       8u
#define SDMA_ATOMIC     10u
#define SDMA_FILL       11u
#define SDMA_TIMESTAMP  13u
#define SDMA_GCR        17u
#define SDMA_ADD64      47u
#define SDMA_COUNT_MASK 0x3fffffu
#define SDMA_TURN_MAX   64u
#define SDMA_SIZE_MAX   32u

/* What is executed of one queue, while it may go away. */
struct soft_copy {
	struct soft *soft;
	struct kfd_process_device *pdd;
	u64 ring, ring_size, read, limit, rptr_address, pasid;
	u32 words[SDMA_SIZE_MAX / 4], size;
	u32 copies, interrupts; /* made, for the statistics: they are under the lock */
};

static u64 copy_u64(const struct soft_copy *copy, u32 index)
{
	return (u64)copy->words[index + 1] << 32 | copy->words[index];
}

static u32 copy_size(u32 header)
{
	switch (header & 0xff) {
	case SDMA_NOP: return 4 + (header >> 16 & 0x3fff) * 4;
	case SDMA_COPY: return header >> 8 & 0xff ? 0 : 28; /* linear ones only */
	case SDMA_FENCE: return 16;
	case SDMA_TRAP: return 8;
	case SDMA_POLL: return 24;
	case SDMA_ATOMIC: return header >> 25 == SDMA_ADD64 ? 32 : 0; /* no other is known */
	case SDMA_FILL:
	case SDMA_GCR: return 20;
	case SDMA_TIMESTAMP: return 12;
	default: return 0;
	}
}

/* Returns false if there is no whole packet, or none that can be read. */
static bool copy_fetch(struct soft_copy *copy)
{
	u32 *words = copy->words;

	if (copy->limit - copy->read < 4)
		return false;
	for (u32 i = 0; i < SDMA_SIZE_MAX / 4; i++) {
		u64 at = (copy->read + i * 4) % copy->ring_size;

		words[i] = 0;
		if (copy->read + i * 4 < copy->limit && get_user(words[i], (u32 __user *)(copy->ring + at)))
			return false;
	}
	copy->size = copy_size(words[0]);
	if (!copy->size)
		pr_err("softgpu: packet %#x in an SDMA ring\n", words[0]);
	return copy->size && copy->size <= copy->limit - copy->read;
}

static u64 copy_bytes(const struct soft_copy *copy)
{
	switch (copy->words[0] & 0xff) {
	case SDMA_COPY: return (copy->words[1] & SDMA_COUNT_MASK) + 1;
	case SDMA_FILL: return (copy->words[4] & SDMA_COUNT_MASK) + 1;
	default: return 0;
	}
}

static bool copy_poll_met(const struct soft_copy *copy)
{
	u32 header = copy->words[0], value, reference = copy->words[3];

	if (header & BIT(26) || !(header & BIT(31)) || get_user(value, (u32 __user *)copy_u64(copy, 1)))
		return true; /* a register, or the flush of the host data path: nothing to wait for here */
	value &= copy->words[4];
	switch (header >> 28 & 7) {
	case 1: return value < reference;
	case 2: return value <= reference;
	case 3: return value == reference;
	case 4: return value != reference;
	case 5: return value >= reference;
	case 6: return value > reference;
	default: return true;
	}
}

static void copy_trap(struct soft_copy *copy)
{
	u32 entry[8] = { SOC15_IH_CLIENTID_SDMA0 | SOC15_INTSRC_SDMA_TRAP << 8 | 8 << 24 };

	entry[3] = copy->pasid;
	entry[4] = copy->words[1] & 0xfffffff;
	copy->interrupts++;
	kgd2kfd_interrupt(copy->soft->adev.kfd.dev, entry);
}

/* Returns false if it has to wait. */
static bool copy_immediate(struct soft_copy *copy)
{
	s64 value;

	switch (copy->words[0] & 0xff) {
	case SDMA_FENCE: soft_memory_write(copy->pdd, copy_u64(copy, 1), &copy->words[3], 4); break;
	case SDMA_TRAP: copy_trap(copy); break;
	case SDMA_POLL: return copy_poll_met(copy);
	case SDMA_ATOMIC:
		if (!soft_memory_read(copy->pdd, copy_u64(copy, 1), &value, 8)) {
			value += (s64)copy_u64(copy, 3);
			soft_memory_write(copy->pdd, copy_u64(copy, 1), &value, 8);
		}
		break;
	case SDMA_TIMESTAMP:
		value = soft_now_ns() / 10;
		soft_memory_write(copy->pdd, copy_u64(copy, 1), &value, 8);
		break;
	}
	return true;
}

static int copy_move(struct soft_copy *copy, u64 bytes)
{
	bool fills = (copy->words[0] & 0xff) == SDMA_FILL;
	u64 to = copy_u64(copy, fills ? 1 : 5), from = copy_u64(copy, 3);
	u8 *page = (u8 *)__get_free_page(GFP_KERNEL);
	int r = page ? 0 : -ENOMEM;

	if (fills && page)
		memset32((u32 *)page, copy->words[3], PAGE_SIZE / 4);
	for (u64 done = 0; done < bytes && !r;) {
		u64 size = min_t(u64, bytes - done, PAGE_SIZE);

		if (!fills)
			r = soft_memory_read(copy->pdd, from + done, page, size);
		if (!r)
			r = soft_memory_write(copy->pdd, to + done, page, size);
		done += size;
	}
	free_page((unsigned long)page);
	return r;
}

static void copy_advance(struct soft_copy *copy)
{
	copy->read += copy->size;
	put_user(copy->read, (u64 __user *)copy->rptr_address);
}

/* The packets of one queue, until one takes time. Returns how many bytes that one moves, or 0. */
static u64 copy_run(struct soft_copy *copy, u64 moved)
{
	if (moved && copy_fetch(copy)) { /* what the model had in its engine is through */
		if (copy_bytes(copy) != moved || copy_move(copy, moved))
			pr_err("softgpu: a copy of %llu bytes failed\n", moved);
		copy->copies++;
		copy_advance(copy);
	}
	for (u32 i = 0; i < SDMA_TURN_MAX && copy_fetch(copy); i++) {
		if (copy_bytes(copy))
			return copy_bytes(copy);
		if (!copy_immediate(copy))
			break;
		copy_advance(copy);
	}
	return 0;
}

/* Are the compute queues of this process, and of all others but one, off the device? */
static bool copy_is_apart(const struct soft *soft, u64 pasid)
{
	u32 mapped = 0;

	for (u32 i = 0; i < soft->queue_high; i++) {
		const struct soft_queue *other = &soft->queues[i];

		if (!other->mapped || other->is_copy)
			continue;
		if (other->pasid == pasid)
			return false;
		mapped++;
	}
	return mapped <= 1;
}

void soft_copy_serve(struct soft *soft, struct soft_queue *queue, struct kfd_process *process)
{
	struct soft_copy copy = {
		.soft = soft,
		.pdd = kfd_get_process_device_data(soft->adev.kfd.dev->nodes[0], process),
		.ring = queue->ring,
		.ring_size = queue->ring_size,
		.read = queue->completed,
		.limit = readq(soft->doorbells + queue->doorbell * 4) & ~3ull,
		.rptr_address = queue->rptr_address,
		.pasid = queue->pasid,
	};
	u64 moved = queue->copy_is_done ? queue->copy_bytes : 0, bytes;
	u32 model = queue->model;

	if ((queue->copy_bytes && !queue->copy_is_done) || !copy.pdd || !copy.ring_size || copy.limit < copy.read)
		return;
	if (!queue->mapped)
		return;
	if (moved && copy_is_apart(soft, queue->pasid))
		soft->stats.copies_apart++;
	mutex_unlock(&soft->lock);
	bytes = copy_run(&copy, moved);
	mutex_lock(&soft->lock);
	soft->stats.copies += copy.copies;
	soft->stats.interrupts += copy.interrupts;
	if (!queue->mqd || queue->model != model)
		return; /* it is gone */
	queue->completed = copy.read;
	queue->copy_is_done = false;
	queue->copy_bytes = bytes;
	queue->blocked = copy.read < copy.limit && !bytes; /* a poll that is not met is looked at again */
	if (bytes) {
		struct gp_gpu_packet packet = { .type = GP_GPU_COPY_BYTES, .copy_size = bytes, .tag = copy.read };

		if (gp_gpu_submit(soft->gpu, queue->model, &packet, soft_now_ns()))
			queue->copy_bytes = 0;
		else
			gp_gpu_doorbell(soft->gpu, queue->model, soft_now_ns());
	}
}
