// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Kernels are executed by a program of the guest (cores.h). While nobody has the file open, a kernel takes its time in
 * the model and computes nothing. The model alone says when a dispatch ends; a dispatch whose end has come completes
 * when it was executed too, in the order of its ring.
 */
#include <linux/uaccess.h>
#include "cores.h"
#include "device.h"
#include "memory.h"

/* The dispatch under way, if it is still there. With the lock. */
static struct soft_queue *cores_current(struct soft *soft)
{
	struct soft_cores *cores = &soft->cores;
	struct soft_queue *queue = cores->queue;

	if (queue && queue->mqd && queue->model == cores->model && queue->completed == cores->index)
		return queue;
	return NULL;
}

static int cores_open(struct inode *inode, struct file *file)
{
	struct soft *soft = inode->i_private;
	bool was_open;

	mutex_lock(&soft->lock);
	was_open = soft->cores.is_open;
	soft->cores.is_open = true;
	mutex_unlock(&soft->lock);
	file->private_data = soft;
	return was_open ? -EBUSY : 0;
}

static int cores_release(struct inode *inode, struct file *file)
{
	struct soft *soft = file->private_data;

	mutex_lock(&soft->lock);
	soft->cores.is_open = false;
	soft->cores.queue = NULL;
	mutex_unlock(&soft->lock);
	return 0;
}

/* Takes the next dispatch that waits to be executed. With the lock. */
static bool cores_take(struct soft *soft, u64 *ret_ring)
{
	struct soft_cores *cores = &soft->cores;

	for (u32 i = 0; i < soft->queue_high; i++) {
		struct soft_queue *queue = &soft->queues[i];
		const struct soft_packet *packet = &queue->packets[queue->completed % SOFT_RING];

		if (!queue->mqd || queue->is_copy || queue->completed >= queue->taken || !packet->is_done ||
		    !packet->is_kernel || packet->is_executed)
			continue;
		cores->queue = queue;
		cores->model = queue->model;
		cores->index = queue->completed;
		cores->pasid = queue->pasid;
		*ret_ring = queue->ring + queue->completed % queue->packet_count * 64;
		return true;
	}
	return false;
}

static int cores_access(struct soft *soft, u64 address, void *data, size_t size, bool writes)
{
	struct kfd_process *process = kfd_lookup_process_by_pasid(soft->cores.pasid);
	struct kfd_process_device *pdd;
	int r = -ESRCH;

	if (!process)
		return r;
	pdd = kfd_get_process_device_data(soft->adev.kfd.dev->nodes[0], process);
	if (pdd)
		r = soft_memory_access(pdd, address, data, size, writes);
	kfd_unref_process(process);
	return r;
}

static long cores_next(struct soft *soft, void __user *to)
{
	struct soft_cores_dispatch dispatch = {};
	struct soft_cores *cores = &soft->cores;
	u64 ring = 0;

	for (;;) {
		u64 seen = READ_ONCE(cores->done_count);
		long left;
		bool found;

		mutex_lock(&soft->lock);
		found = cores_take(soft, &ring);
		if (found) {
			dispatch.index = cores->index;
			dispatch.rptr_address = cores->queue->rptr_address;
		}
		mutex_unlock(&soft->lock);
		/* Until the read counter moves the program leaves its packet as it is. */
		if (found && !cores_access(soft, ring, dispatch.packet, sizeof(dispatch.packet), false))
			return copy_to_user(to, &dispatch, sizeof(dispatch)) ? -EFAULT : 0;
		left = wait_event_interruptible_timeout(cores->wait, READ_ONCE(cores->done_count) != seen, HZ / 10);
		if (left < 0)
			return left;
	}
}

static long cores_find(struct soft *soft, void __user *argument)
{
	struct kfd_process *process = kfd_lookup_process_by_pasid(soft->cores.pasid);
	struct soft_cores_piece piece;
	struct kfd_process_device *pdd;
	long r = -ESRCH;

	if (!process)
		return r;
	pdd = kfd_get_process_device_data(soft->adev.kfd.dev->nodes[0], process);
	if (copy_from_user(&piece, argument, sizeof(piece)))
		r = -EFAULT;
	else if (pdd)
		r = soft_memory_find(pdd, piece.address, &piece.base, &piece.size);
	kfd_unref_process(process);
	return r ?: copy_to_user(argument, &piece, sizeof(piece)) ? -EFAULT : 0;
}

static long cores_done(struct soft *soft, u32 __user *argument)
{
	struct soft_queue *queue;
	u32 failed;

	if (get_user(failed, argument))
		return -EFAULT;
	mutex_lock(&soft->lock);
	queue = cores_current(soft);
	if (queue) {
		queue->packets[queue->completed % SOFT_RING].is_executed = true;
		if (failed)
			soft->stats.not_executed++;
		else
			soft->stats.executed++;
	}
	soft->cores.queue = NULL;
	mutex_unlock(&soft->lock);
	return 0; /* one whose process has ended is nobody's any more */
}

static long cores_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct soft *soft = file->private_data;

	switch (command) {
	case SOFT_CORES_NEXT: return cores_next(soft, (void __user *)argument);
	case SOFT_CORES_FIND: return cores_find(soft, (void __user *)argument);
	case SOFT_CORES_DONE: return cores_done(soft, (u32 __user *)argument);
	default: return -ENOTTY;
	}
}

static ssize_t cores_copy(struct soft *soft, u64 address, char __user *user, size_t size, bool writes)
{
	u8 *page = (u8 *)__get_free_page(GFP_KERNEL);
	int r = page ? 0 : -ENOMEM;

	for (size_t done = 0, part; done < size && !r; done += part) {
		part = min_t(size_t, size - done, PAGE_SIZE - ((address + done) & ~PAGE_MASK));
		if (writes && copy_from_user(page, user + done, part))
			r = -EFAULT;
		if (!r)
			r = cores_access(soft, address + done, page, part, writes);
		if (!r && !writes && copy_to_user(user + done, page, part))
			r = -EFAULT;
	}
	free_page((unsigned long)page);
	return r ?: size;
}

static ssize_t cores_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	return cores_copy(file->private_data, *offset, to, size, false);
}

static ssize_t cores_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	return cores_copy(file->private_data, *offset, (char __user *)from, size, true);
}

const struct file_operations soft_cores_fops = {
	.owner = THIS_MODULE,
	.open = cores_open,
	.release = cores_release,
	.read = cores_read,
	.write = cores_write,
	.unlocked_ioctl = cores_ioctl,
	.llseek = default_llseek,
};
