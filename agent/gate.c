/* SPDX-License-Identifier: MIT */
/*
 * Gates: carries out the daemon's orders, keeps leases, and opens every gate when no daemon is there to open it. The
 * caller holds the lock throughout.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/log.h"
#include "agent/sys.h"

#define GATE_DELIVER_TRIES 1000u /* of 1 ms; chosen */

static struct gp_slot *gate_slots[GP_WIRE_QUEUE_MAX];
static int gate_results[GP_WIRE_QUEUE_MAX];

/* Changes those of gate_slots that are not in the wanted state yet; the others need nothing. */
static void gate_change(uint32_t mechanism, uint32_t count, bool open)
{
	uint32_t due = 0;

	for (uint32_t i = 0; i < count; i++)
		if (gate_slots[i]->closed == open)
			gate_slots[due++] = gate_slots[i];
	if (!due)
		return;
	gp_agent.driver->change(mechanism, gate_slots, due, open, gate_results);
	for (uint32_t i = 0; i < due; i++) {
		struct gp_slot *slot = gate_slots[i];

		gp_log3(open ? "gate: open queue, slot, result" : "gate: close queue, slot, result", slot->queue_id,
			gp_slot_index(slot), gate_results[i]);
		if (gate_results[i] < 0)
			continue;
		slot->closed = !open;
		slot->closed_by = (uint8_t)(open ? GP_MECHANISM_NONE : mechanism);
		slot->work_ns = 0;
		gp_page_slot_flags(slot);
	}
}

static struct gp_slot *gate_slot_of(const struct gp_wire_change *change, uint32_t gpu_id, int *ret_why)
{
	struct gp_slot *slot;

	*ret_why = -EINVAL;
	if (change->slot >= GP_WIRE_QUEUE_MAX || change->open > 1u)
		return NULL;
	slot = &gp_slots[change->slot];
	*ret_why = -ESTALE;
	if (!slot->used || slot->dying || !slot->is_announced || slot->generation != change->generation ||
	    slot->gpu_id != gpu_id)
		return NULL;
	*ret_why = 0;
	return slot;
}

/* Changes of one direction. A slot that is named twice is changed once and answered twice. */
static void gate_carry_out(struct gp_wire_applied *applied, bool open)
{
	static int by_slot[GP_WIRE_QUEUE_MAX];
	uint32_t count = 0;
	int why;

	for (uint32_t i = 0; i < applied->count; i++) {
		struct gp_slot *slot = gate_slot_of(&applied->changes[i], applied->gpu_id, &why);
		bool again = false;

		if (applied->changes[i].result || applied->changes[i].open != open || !slot)
			continue;
		for (uint32_t j = 0; j < count; j++)
			again |= gate_slots[j] == slot;
		if (!again)
			gate_slots[count++] = slot;
		/* The daemon closed this gate itself and cannot open it; it did not tell the agent of the close. */
		if (open && gp_mechanism_has(gp_agent.mechanism, GP_AGENT_OPENS)) {
			slot->closed = true;
			slot->closed_by = (uint8_t)gp_agent.mechanism;
		}
		by_slot[gp_slot_index(slot)] = 0;
	}
	memset(gate_results, 0, sizeof(gate_results));
	gate_change(gp_agent.mechanism, count, open);
	for (uint32_t i = 0; i < count; i++)
		if (gate_results[i] < 0)
			by_slot[gp_slot_index(gate_slots[i])] = gate_results[i];
	for (uint32_t i = 0; i < applied->count; i++) {
		struct gp_slot *slot = gate_slot_of(&applied->changes[i], applied->gpu_id, &why);

		if (!applied->changes[i].result && applied->changes[i].open == open && slot)
			applied->changes[i].result = by_slot[gp_slot_index(slot)];
	}
}

/* Whether the order is the newest of its device, or as new as the newest. */
static bool gate_is_current(uint32_t gpu_id, uint64_t seq)
{
	for (uint32_t i = 0; i < gp_agent.order_count; i++)
		if (gp_agent.orders[i].gpu_id == gpu_id) {
			if (seq < gp_agent.orders[i].seq)
				return false;
			gp_agent.orders[i].seq = seq;
			return true;
		}
	if (gp_agent.order_count == GP_AGENT_GPU_MAX)
		return false;
	gp_agent.orders[gp_agent.order_count].gpu_id = gpu_id;
	gp_agent.orders[gp_agent.order_count++].seq = seq;
	return true;
}

void gp_gate_order(const struct gp_wire_order *order)
{
	static union {
		struct gp_wire_applied applied;
		uint8_t bytes[sizeof(struct gp_wire_applied) + GP_WIRE_ORDER_MAX * sizeof(struct gp_wire_change)];
	} answer;
	struct gp_wire_applied *applied = &answer.applied;
	uint32_t size = (uint32_t)(sizeof(*applied) + order->count * sizeof(struct gp_wire_change));
	int refused = 0;

	*applied = (struct gp_wire_applied){
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_APPLIED, size, order->header.cookie },
		.seq = order->seq,
		.gpu_id = order->gpu_id,
		.count = order->count,
		.issue_ns = gp_sys_now_ns(),
	};
	memcpy(applied->changes, order->changes, order->count * sizeof(struct gp_wire_change));
	if (gp_agent.exiting)
		refused = -ESHUTDOWN;
	else if (!gp_gate_takes_orders())
		refused = -EOPNOTSUPP;
	else if (!gate_is_current(order->gpu_id, order->seq))
		refused = -ESTALE;
	for (uint32_t i = 0; i < order->count; i++) {
		int why = refused;

		if (!refused)
			gate_slot_of(&applied->changes[i], order->gpu_id, &why);
		applied->changes[i].result = why;
	}
	if (!refused) {
		gate_carry_out(applied, false);
		gate_carry_out(applied, true);
	}
	applied->done_ns = gp_sys_now_ns();
	gp_link_send(applied, size);
}

static void gate_tell_lost(uint32_t why, uint32_t count)
{
	static union {
		struct gp_wire_lost lost;
		uint8_t bytes[sizeof(struct gp_wire_lost) + GP_WIRE_QUEUE_MAX * sizeof(struct gp_wire_change)];
	} message;
	uint32_t size = (uint32_t)(sizeof(message.lost) + count * sizeof(struct gp_wire_change));

	message.lost = (struct gp_wire_lost){
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_LOST, size, 0 },
		.why = why,
		.count = count,
	};
	for (uint32_t i = 0; i < count; i++)
		message.lost.changes[i] =
			(struct gp_wire_change){ gp_slot_index(gate_slots[i]), gate_slots[i]->generation,
						 !gate_slots[i]->closed, gate_results[i] };
	gp_link_send(&message, size);
}

/* Opens gate_slots by the mechanism each was closed with. */
static void gate_open_listed(uint32_t count, uint32_t why)
{
	static struct gp_slot *listed[GP_WIRE_QUEUE_MAX];

	memcpy(listed, gate_slots, count * sizeof(struct gp_slot *));
	for (uint32_t mechanism = GP_MECHANISM_NONE + 1; mechanism <= GP_MECHANISM_LAST; mechanism++) {
		uint32_t same = 0;

		for (uint32_t i = 0; i < count; i++)
			if (listed[i]->closed && listed[i]->closed_by == mechanism)
				gate_slots[same++] = listed[i];
		gate_change(mechanism, same, true);
	}
	if (!why || !count || gp_agent.link != GP_LINK_UP)
		return;
	memcpy(gate_slots, listed, count * sizeof(struct gp_slot *));
	for (uint32_t i = 0; i < count; i++)
		gate_results[i] = listed[i]->closed ? -EIO : 0;
	gate_tell_lost(why, count);
}

void gp_gates_open(uint32_t why)
{
	uint32_t count = 0;

	if (!gp_agent.driver)
		return;
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used && gp_slots[i].closed)
			gate_slots[count++] = &gp_slots[i];
	gate_open_listed(count, why);
}

int gp_gate_open_slot(struct gp_slot *slot)
{
	if (!slot->closed)
		return 0;
	gate_slots[0] = slot;
	gate_open_listed(1, 0);
	return slot->closed ? -EIO : 0;
}

bool gp_gate_takes_orders(void)
{
	return gp_agent.driver && gp_mechanism_has(gp_agent.mechanism, GP_BY_AGENT | GP_AGENT_OPENS);
}

void gp_gate_mechanism(uint32_t mechanism)
{
	if (mechanism == gp_agent.mechanism)
		return;
	gp_gates_open(0);
	if (gp_agent.driver)
		gp_agent.driver->release();
	gp_log1("gate: mechanism", mechanism);
	gp_agent.mechanism = mechanism;
}

uint32_t gp_gate_closed_count(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		count += gp_slots[i].used && gp_slots[i].closed;
	return count;
}

bool gp_gate_is_closed(const struct gp_slot *slot)
{
	return slot->closed || (gp_mechanism_has(gp_agent.mechanism, GP_AGENT_OPENS) && gp_agent.link == GP_LINK_UP &&
				__atomic_load_n(&gp_page_now->queues[gp_slot_index(slot)].held, __ATOMIC_ACQUIRE));
}

/* The daemon holds this gate closed itself: from now on the agent opens it, and restores its slice with it. */
static void gate_take_over(struct gp_slot *slot)
{
	slot->closed = true;
	slot->closed_by = (uint8_t)gp_agent.mechanism;
	__atomic_store_n(&gp_page_now->queues[gp_slot_index(slot)].held, 0, __ATOMIC_RELEASE);
}

void gp_gate_open_again(struct gp_slot *slot, uint32_t mechanism)
{
	int result = 0;

	if (!gp_gate_takes_orders() || gp_gate_is_closed(slot) || gp_agent.link != GP_LINK_UP)
		return;
	/* Not by the daemon's mechanism: that would restore the slice too. */
	gp_agent.driver->change(mechanism, &slot, 1, true, &result);
	gp_log2("gate: opened again: queue, result", slot->queue_id, result);
	/* The daemon may have closed the gate in between: LOST tells the daemon that the agent has undone that. */
	if (slot->closed || !gp_gate_is_closed(slot))
		return;
	gate_take_over(slot);
	gate_slots[0] = slot;
	gate_open_listed(1, GP_LOST_LEASE);
}

static uint64_t gate_expiry_ns(const struct gp_slot *slot)
{
	uint64_t since = slot->work_ns > gp_agent.renewed_ns ? slot->work_ns : gp_agent.renewed_ns;

	return since + gp_agent.lease_ms * 1000000ull;
}

void gp_gate_leases(uint64_t now_ns)
{
	uint32_t renewals, count = 0;

	if (gp_agent.link != GP_LINK_UP)
		return;
	renewals = __atomic_load_n(&gp_page_now->renewals, __ATOMIC_ACQUIRE);
	if (renewals != gp_agent.renewals)
		gp_agent.renewed_ns = now_ns;
	gp_agent.renewals = renewals;
	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];

		if (!slot->used || !gp_gate_is_closed(slot)) {
			slot->work_ns = 0;
			continue;
		}
		/* The daemon does not count packets behind a packet that waits for a signal as work, and then renews
		 * nothing. */
		/* If the agent cannot read the counters, the queue may have work. */
		if ((!slot->has_work && !slot->unreadable) || slot->blocked)
			slot->work_ns = 0;
		else if (!slot->work_ns)
			slot->work_ns = now_ns;
		else if (now_ns >= gate_expiry_ns(slot))
			gate_slots[count++] = slot;
	}
	if (!count)
		return;
	gp_log1("gate: leases ran out, gates", count);
	for (uint32_t i = 0; i < count; i++)
		if (!gate_slots[i]->closed)
			gate_take_over(gate_slots[i]);
	gate_open_listed(count, GP_LOST_LEASE);
	/* A gate that did not open is tried again a lease later, not at once in an endless loop. */
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used && gp_slots[i].closed && gp_slots[i].work_ns &&
		    now_ns >= gate_expiry_ns(&gp_slots[i]))
			gp_slots[i].work_ns = now_ns;
}

uint64_t gp_gate_lease_due_ns(uint64_t now_ns)
{
	uint64_t due = UINT64_MAX, at;

	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		const struct gp_slot *slot = &gp_slots[i];

		if (!slot->used || !gp_gate_is_closed(slot))
			continue;
		/* The doorbell of an idle queue wakes the agent's thread if it is observed; the thread samples the
		 * other queues. */
		if (slot->work_ns)
			at = gate_expiry_ns(slot);
		else if (slot->has_work || !slot->seen)
			at = now_ns + gp_agent.lease_ms * 500000ull;
		else
			continue;
		due = at < due ? at : due;
	}
	return due;
}

static uint32_t gate_delivering; /* threads in gp_gate_deliver() */

void gp_gate_deliver(void)
{
	__atomic_fetch_add(&gate_delivering, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX && gp_doorbell_store; i++) {
		struct gp_doorbell *doorbell = &gp_doorbells[i];
		uint64_t kept;

		if (!__atomic_load_n(&doorbell->withheld, __ATOMIC_SEQ_CST) ||
		    __atomic_load_n(&doorbell->flags, __ATOMIC_SEQ_CST) & GP_DOORBELL_WITHHELD)
			continue;
		kept = __atomic_exchange_n(&doorbell->withheld, 0, __ATOMIC_SEQ_CST);
		if (kept)
			gp_doorbell_store(doorbell->handle, (int64_t)(kept - 1u));
	}
	__atomic_fetch_sub(&gate_delivering, 1, __ATOMIC_SEQ_CST);
}

/* In a child: the parent's threads do not exist here. */
void gp_gate_forget(void)
{
	__atomic_store_n(&gate_delivering, 0, __ATOMIC_SEQ_CST);
}

void gp_gate_delivered(void)
{
	struct timespec pause = { 0, 1000000 };

	gp_gate_deliver();
	/* The runtime's store is short. If a thread was killed inside it, the count never returns to 0: hence the
	 * limit. */
	for (uint32_t i = 0; i < GATE_DELIVER_TRIES && __atomic_load_n(&gate_delivering, __ATOMIC_SEQ_CST); i++)
		gp_sys(SYS_nanosleep, (long)&pause, 0);
}
