/* SPDX-License-Identifier: MIT */
/*
 * The counters of queues, read from the application's memory, which may have gone. AQL counts packets, SDMA bytes, PM4
 * dwords. A packet that is reserved but not yet written (its type is INVALID) does not count as work; a barrier packet
 * whose signals are not satisfied is work that cannot run.
 */
#include <string.h>
#include "agent/kfd/kfd.h"
#include "agent/sys.h"

/* Layouts of the AQL specification and of AMD's vendor packet. */
#define COUNTERS_TYPE_VENDOR      0u
#define COUNTERS_TYPE_INVALID     1u
#define COUNTERS_TYPE_BARRIER_AND 3u
#define COUNTERS_TYPE_BARRIER_OR  5u
#define COUNTERS_VENDOR_BARRIER   2u /* format byte: wait for a signal's value */
#define COUNTERS_SIGNAL_VALUE     8u /* offset in amd_signal_t */

static bool counters_signal(uint64_t handle, int64_t *ret_value)
{
	int64_t value;
	struct gp_sys_range range = { handle + COUNTERS_SIGNAL_VALUE, &value, sizeof(value), false };

	gp_sys_read(&range, 1);
	if (range.ok)
		*ret_value = value;
	return range.ok;
}

/* A signal that cannot be read counts as satisfied: the queue counts as runnable. */
static bool counters_barrier_waits(const uint8_t packet[64], bool all)
{
	bool waits = false;

	for (uint32_t i = 0; i < 5u; i++) {
		uint64_t handle;
		int64_t value = 0;

		memcpy(&handle, packet + 8u + i * 8u, sizeof(handle));
		if (!handle)
			continue;
		counters_signal(handle, &value);
		if (value == 0 && !all)
			return false;
		waits |= value != 0;
	}
	return waits;
}

static bool counters_value_waits(const uint8_t packet[64])
{
	int64_t signal = 0, value, mask;
	uint64_t handle;
	uint32_t condition;

	memcpy(&handle, packet + 8, sizeof(handle));
	memcpy(&value, packet + 16, sizeof(value));
	memcpy(&mask, packet + 24, sizeof(mask));
	memcpy(&condition, packet + 32, sizeof(condition));
	if (!handle || !counters_signal(handle, &signal))
		return false;
	signal &= mask;
	switch (condition) {
	case 0: return signal != value;
	case 1: return signal == value;
	case 2: return signal >= value;
	case 3: return signal < value;
	default: return false;
	}
}

enum gp_kfd_head gp_kfd_packet_head(const uint8_t packet[64])
{
	bool waits = false;

	switch (packet[0]) {
	case COUNTERS_TYPE_INVALID: return GP_KFD_HEAD_INVALID;
	case COUNTERS_TYPE_BARRIER_AND: waits = counters_barrier_waits(packet, true); break;
	case COUNTERS_TYPE_BARRIER_OR: waits = counters_barrier_waits(packet, false); break;
	case COUNTERS_TYPE_VENDOR: waits = packet[2] == COUNTERS_VENDOR_BARRIER && counters_value_waits(packet); break;
	default: break;
	}
	return waits ? GP_KFD_HEAD_WAITS : GP_KFD_HEAD_RUNS;
}

static void counters_aql_head(struct gp_slot *slot)
{
	uint64_t packets = slot->ring_size / 64u;
	uint8_t packet[64];
	struct gp_sys_range range = { slot->ring + slot->completed % (packets ? packets : 1u) * 64u, packet, 64,
				      false };
	enum gp_kfd_head head;

	gp_sys_read(&range, 1);
	if (!range.ok)
		return;
	head = gp_kfd_packet_head(packet);
	slot->blocked = head == GP_KFD_HEAD_WAITS;
	/* The packet processor may mark a packet invalid as soon as it has taken it: a packet at this place that was
	 * valid at an earlier sample runs. */
	if (head != GP_KFD_HEAD_INVALID)
		slot->valid_head = slot->completed + 1u;
	else if (slot->valid_head != slot->completed + 1u)
		slot->written = slot->completed;
}

static void counters_apply(struct gp_slot *slot, uint64_t write, uint64_t read)
{
	uint64_t dwords = slot->ring_size / 4u;

	slot->blocked = false;
	/* PM4's read pointer is 32 bits, within the ring. Of others the producer may have written between the two
	 * reads: completed must not exceed written. */
	if (slot->format == GP_KFD_PM4)
		read = dwords ? write - ((write - (uint32_t)read) & (dwords - 1u)) : write;
	else if (write < read)
		write = read;
	slot->written = write;
	slot->completed = read;
	if (slot->format == GP_KFD_AQL && write > read)
		counters_aql_head(slot);
}

void gp_kfd_sample(struct gp_slot *const *slots, uint32_t count)
{
	static struct gp_sys_range ranges[2u * GP_WIRE_QUEUE_MAX];
	static uint64_t values[2u * GP_WIRE_QUEUE_MAX];

	/* The read pointer first: packets that complete in between make the queue look busier, never idle too early. */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t read_size = slots[i]->format == GP_KFD_PM4 ? 4u : 8u;

		values[2u * i] = values[2u * i + 1u] = 0;
		ranges[2u * i] = (struct gp_sys_range){ slots[i]->read_pointer, &values[2u * i], read_size, false };
		ranges[2u * i + 1u] = (struct gp_sys_range){ slots[i]->write_pointer, &values[2u * i + 1u], 8, false };
	}
	gp_sys_read(ranges, 2u * count);
	for (uint32_t i = 0; i < count; i++) {
		slots[i]->unreadable = !ranges[2u * i].ok || !ranges[2u * i + 1u].ok;
		if (!slots[i]->unreadable)
			counters_apply(slots[i], values[2u * i + 1u], values[2u * i]);
	}
}
