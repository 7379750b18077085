/* SPDX-License-Identifier: MIT */
/*
 * The copy engines' packets: parsed one after the other; copies and fills take the time the model gives them and move
 * real bytes when it is over, the rest (fences, traps, polls, atomics, timestamps) happens at once. Ring content is
 * hostile.
 */
#include <errno.h>
#include <string.h>
#include "vgpu/kfd/event.h"
#include "vgpu/node/memory.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/packet/work.h"

#define SDMA_WORDS        16u
#define SDMA_TURN_MAX     256u
#define SDMA_COUNT_MASK   0x3fffffffu /* 30 bits since SDMA 4.4; the 22 of older ones lie inside */
#define SDMA_ATOMIC_ADD64 47u
#define SDMA_COPY_LINEAR  0u
#define SDMA_COPY_WINDOW  4u /* rows and slices, each with a pitch: what 2D and 3D copies are made of */
#define SDMA_ERROR        1u

struct sdma_packet {
	uint32_t words[SDMA_WORDS];
	uint32_t size;
}; /* size in bytes */

static uint64_t sdma_u64(const struct sdma_packet *packet, uint32_t index)
{
	return (uint64_t)packet->words[index + 1u] << 32 | packet->words[index];
}

static int sdma_read(struct gp_vqueue *queue, uint64_t position, void *ret_data, uint64_t size)
{
	uint64_t at, first;
	int r;

	/* UPDATE_QUEUE may have taken the ring away since. */
	if (!queue->ring_size)
		return -EFAULT;
	at = position % queue->ring_size;
	first = queue->ring_size - at < size ? queue->ring_size - at : size;
	r = gp_vm_read(queue->process, queue->gpu, queue->ring + at, ret_data, first);
	return r < 0 || first == size ?
		       r :
		       gp_vm_read(queue->process, queue->gpu, queue->ring, (uint8_t *)ret_data + first, size - first);
}

static void sdma_advance(struct gp_vqueue *queue, uint32_t size)
{
	queue->read += size;
	queue->packets++;
	gp_vm_write(queue->process, queue->gpu, queue->rptr_va, &queue->read, sizeof(queue->read));
}

/* Size in bytes of a packet by its first words; 0: not one we know. */
static uint32_t sdma_size(const uint32_t *words)
{
	uint32_t op = words[0] & 0xffu, sub = words[0] >> 8 & 0xffu;

	switch (op) {
	case GP_SDMA_NOP: return 4u + (words[0] >> 16 & 0x3fffu) * 4u;
	case GP_SDMA_COPY: return sub == SDMA_COPY_LINEAR ? 28u : sub == SDMA_COPY_WINDOW ? 52u : 0;
	case GP_SDMA_FENCE: return 16u;
	case GP_SDMA_TRAP: return 8u;
	case GP_SDMA_POLL: return 24u;
	case GP_SDMA_ATOMIC: return 32u;
	case GP_SDMA_CONST_FILL: return 20u;
	case GP_SDMA_TIMESTAMP: return 12u;
	case GP_SDMA_GCR: return 20u;
	default: return 0;
	}
}

static bool sdma_poll_met(struct gp_vqueue *queue, const struct sdma_packet *packet)
{
	uint32_t header = packet->words[0], value = 0, reference = packet->words[3];

	/* Register polls and the flush of the host data path: nothing to wait for here. */
	if (header & 1u << 26 || !(header & 1u << 31) ||
	    gp_vm_read(queue->process, queue->gpu, sdma_u64(packet, 1), &value, sizeof(value)) < 0)
		return true;
	value &= packet->words[4];
	switch (header >> 28 & 7u) {
	case 1: return value < reference;
	case 2: return value <= reference;
	case 3: return value == reference;
	case 4: return value != reference;
	case 5: return value >= reference;
	case 6: return value > reference;
	default: return true;
	}
}

/* 1: done, the packet is over; 0: it waits; negative errno: the queue cannot go on. */
static int sdma_immediate(struct gp_vqueue *queue, const struct sdma_packet *packet)
{
	struct gp_vnode *node = queue->gpu->node;
	uint64_t ticks;

	switch (packet->words[0] & 0xffu) {
	case GP_SDMA_FENCE:
		return gp_vm_write(queue->process, queue->gpu, sdma_u64(packet, 1), &packet->words[3], 4) < 0 ?
			       -EFAULT :
			       1;
	case GP_SDMA_TRAP: gp_vevent_interrupt(queue->process, packet->words[1] & 0xfffffffu); return 1;
	case GP_SDMA_POLL: return sdma_poll_met(queue, packet);
	case GP_SDMA_ATOMIC:
		if (packet->words[0] >> 25 != SDMA_ATOMIC_ADD64)
			return -EINVAL;
		return gp_vm_add(queue->process, queue->gpu, sdma_u64(packet, 1), (int64_t)sdma_u64(packet, 3)) < 0 ?
			       -EFAULT :
			       1;
	case GP_SDMA_TIMESTAMP:
		ticks = gp_vnode_ticks(node, gp_vnode_device_ns(node));
		return gp_vm_write(queue->process, queue->gpu, sdma_u64(packet, 1), &ticks, sizeof(ticks)) < 0 ?
			       -EFAULT :
			       1;
	default: return 1;
	}
}

static bool sdma_is_window(const struct sdma_packet *packet)
{
	return (packet->words[0] & 0xffffu) == (GP_SDMA_COPY | SDMA_COPY_WINDOW << 8);
}

/* Elements are 1 to 16 bytes; counts and pitches are one less than they say. */
static uint32_t sdma_element(const struct sdma_packet *packet)
{
	return packet->words[0] >> 29;
}

static uint64_t sdma_bytes(const struct sdma_packet *packet)
{
	if (sdma_is_window(packet))
		return ((packet->words[11] & 0x3fffu) + 1ull) * ((packet->words[11] >> 16 & 0x3fffu) + 1ull) *
			       ((packet->words[12] & 0x7ffu) + 1ull)
		       << sdma_element(packet);
	switch (packet->words[0] & 0xffu) {
	case GP_SDMA_COPY: return (packet->words[1] & SDMA_COUNT_MASK) + 1u;
	case GP_SDMA_CONST_FILL: return (packet->words[4] & SDMA_COUNT_MASK) + 1u;
	default: return 0;
	}
}

/* 1: there is a packet; 0: not yet; negative: none that can be understood. */
static int sdma_fetch(struct gp_vqueue *queue, struct sdma_packet *ret_packet)
{
	uint64_t left = queue->limit - queue->read;

	if (left < 4u)
		return 0;
	memset(ret_packet, 0, sizeof(*ret_packet));
	if (sdma_read(queue, queue->read, ret_packet->words,
		      left < sizeof(ret_packet->words) ? left : sizeof(ret_packet->words)) < 0)
		return -EFAULT;
	ret_packet->size = sdma_size(ret_packet->words);
	if (!ret_packet->size || (sdma_is_window(ret_packet) && sdma_element(ret_packet) > 4u))
		return -EINVAL;
	return ret_packet->size <= left;
}

static int sdma_step(struct gp_vqueue *queue)
{
	struct sdma_packet packet;
	uint64_t bytes;
	int r = sdma_fetch(queue, &packet);

	if (r <= 0)
		return r;
	bytes = sdma_bytes(&packet);
	if (bytes) {
		struct gp_gpu_packet copy = { .type = GP_GPU_COPY_BYTES, .copy_size = bytes, .tag = queue->read };
		uint64_t now_ns = gp_vnode_device_ns(queue->gpu->node);

		r = gp_gpu_submit(queue->gpu->model, queue->model, &copy, now_ns);
		if (r < 0)
			return r;
		gp_gpu_doorbell(queue->gpu->model, queue->model, now_ns);
		queue->copy_size = bytes;
		queue->in_flight = 1;
		return 0;
	}
	r = sdma_immediate(queue, &packet);
	if (r > 0)
		sdma_advance(queue, packet.size);
	return r;
}

bool gp_sdma_turn(struct gp_vqueue *queue)
{
	uint64_t doorbell = *queue->doorbell;
	uint32_t count = 0;
	int r = 0;

	if (!queue->ring)
		return false;
	if (doorbell != queue->doorbell_seen) {
		queue->doorbell_seen = doorbell;
		queue->gpu->node->busy_ns = queue->gpu->node->now_ns;
		if (doorbell > queue->limit)
			queue->limit =
				doorbell - queue->read > queue->ring_size ? queue->read + queue->ring_size : doorbell;
		queue->limit &= ~3ull;
	}
	/* A closed gate stops the engine at a packet's boundary; the copy it is in comes to its end first. */
	while (count < SDMA_TURN_MAX && !queue->copy_size && gp_vqueue_is_active(queue)) {
		r = sdma_step(queue);
		if (r <= 0)
			break;
		count++;
	}
	if (r == -EFAULT)
		gp_vqueue_fault(queue, queue->process->fault_va);
	else if (r < 0)
		gp_vqueue_fail(queue, SDMA_ERROR);
	return count;
}

/* One side of a window: where it begins, in elements of its rows and slices. */
static uint64_t sdma_window_at(const struct sdma_packet *packet, uint32_t at, uint64_t *ret_pitch, uint64_t *ret_slice)
{
	const uint32_t *words = &packet->words[at];
	uint32_t element = sdma_element(packet);

	*ret_pitch = ((words[3] >> 13) + 1ull) << element;
	*ret_slice = ((words[4] & 0xfffffffu) + 1ull) << element;
	return sdma_u64(packet, at) + ((uint64_t)(words[2] & 0x3fffu) << element) +
	       (words[2] >> 16 & 0x3fffu) * *ret_pitch + (words[3] & 0x7ffu) * *ret_slice;
}

static void sdma_window(const struct sdma_packet *packet, struct gp_vcopy *ret_copy)
{
	ret_copy->from = ret_copy->from_row = sdma_window_at(packet, 1, &ret_copy->from_pitch, &ret_copy->from_slice);
	ret_copy->to = ret_copy->to_row = sdma_window_at(packet, 6, &ret_copy->to_pitch, &ret_copy->to_slice);
	ret_copy->left = ret_copy->row_size = ((packet->words[11] & 0x3fffu) + 1ull) << sdma_element(packet);
	ret_copy->slice_rows = (packet->words[11] >> 16 & 0x3fffu) + 1u;
	ret_copy->rows_left = ret_copy->slice_rows * ((packet->words[12] & 0x7ffu) + 1ull) - 1u;
}

static void sdma_next_row(struct gp_vcopy *copy)
{
	if (!copy->rows_left)
		return;
	copy->rows_left--;
	copy->to_row += copy->to_pitch;
	copy->from_row += copy->from_pitch;
	if (++copy->row == copy->slice_rows) {
		copy->row = 0;
		copy->to_row += copy->to_slice - copy->slice_rows * copy->to_pitch;
		copy->from_row += copy->from_slice - copy->slice_rows * copy->from_pitch;
	}
	copy->to = copy->to_row;
	copy->from = copy->from_row;
	copy->left = copy->row_size;
}

void gp_sdma_catch_up(struct gp_vqueue *queue)
{
	uint64_t deadline_ns = gp_work_deadline_ns();
	struct gp_vcopy *copy = &queue->copy;
	struct gp_vnode *node = queue->gpu->node;

	while (copy->left) {
		uint64_t size = copy->left < GP_WORK_PIECE_SIZE ? copy->left : GP_WORK_PIECE_SIZE;
		int r = copy->fills ? gp_vm_fill(queue->process, queue->gpu, copy->to, copy->value, size) :
				      gp_vm_copy(queue->process, queue->gpu, copy->to, copy->from, size);

		if (r < 0) {
			queue->copy_size = 0;
			gp_vqueue_fault(queue, queue->process->fault_va);
			return;
		}
		copy->to += size;
		copy->from += size;
		copy->left -= size;
		if (!copy->left)
			sdma_next_row(copy);
		if (copy->left && gp_work_is_over(deadline_ns)) {
			queue->behind = true;
			return;
		}
	}
	node->counters.copies++;
	node->counters.copy_bytes += queue->copy_size;
	queue->copy_size = 0;
	queue->in_flight = 0;
	sdma_advance(queue, copy->packet_size);
}

void gp_sdma_end(struct gp_vqueue *queue, const struct gp_gpu_event *event)
{
	struct sdma_packet packet;
	bool fills;
	int r;

	if (!queue->copy_size || queue->behind || event->tag != queue->read || queue->error)
		return;
	r = sdma_fetch(queue, &packet);
	/* The client may have written over the packet meanwhile: what is moved is never more than what was paid for. */
	if (r <= 0 || sdma_bytes(&packet) != queue->copy_size) {
		gp_vqueue_fail(queue, SDMA_ERROR);
		return;
	}
	fills = (packet.words[0] & 0xffu) != GP_SDMA_COPY;
	queue->copy = (struct gp_vcopy){
		.to = sdma_u64(&packet, fills ? 1 : 5),
		.from = sdma_u64(&packet, 3),
		.left = queue->copy_size,
		.value = packet.words[3],
		.packet_size = packet.size,
		.fills = fills,
	};
	if (sdma_is_window(&packet))
		sdma_window(&packet, &queue->copy);
	gp_sdma_catch_up(queue);
}
