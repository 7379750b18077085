/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Clients, their seats on devices, and their queues come and go. This file checks everything that comes from outside;
 * the rest of the core trusts ids. */
#include "core/calls.h"

static struct gp_core_client *client_find(const struct gp_sched *sched, struct gp_client_id id)
{
	if (id.index >= sched->limits.client_count || !sched->clients[id.index].used ||
	    sched->clients[id.index].generation != id.generation)
		return NULL;
	return &sched->clients[id.index];
}

int gp_sched_client_add(struct gp_sched *sched, const struct gp_client_attr *attr, struct gp_client_id *ret_client)
{
	uint32_t index = sched->client_free;
	struct gp_core_client *client;

	if (index == GP_NONE)
		return -ENOSPC;
	client = &sched->clients[index];
	sched->client_free = client->seat_first;
	client->used = true;
	client->generation++;
	client->attr = *attr;
	client->seat_first = GP_NONE;
	/* The core awaits the answers of a client without a user at once, and those of a user's client from its first
	 * prompt answer on: else each new client of a user could delay the device once. */
	client->distrust = attr->user != 0;
	sched->client_count++;
	*ret_client = (struct gp_client_id){ index, client->generation };
	return 0;
}

static void client_seat_view(struct gp_sched *sched, struct gp_seat *seat)
{
	uint64_t total = sched->devices[seat->device].attr.memory_size;
	uint64_t held = sched->clients[seat->client].attr.memory_size;
	uint32_t i;

	/* Shifted so that the product fits: memory beyond a terabyte loses its lowest bits, not its share. */
	seat->view.memory_ppm = total >> 20 ? (held >> 20) * 1000000 / (total >> 20) : 0;
	if (!seat->weight_is_old) /* a client may have a thousand queues: do not look at all of them for each new one */
		return;
	seat->weight_is_old = false;
	seat->view.weight = 1;
	for (i = seat->queue_first; i != GP_NONE; i = sched->queues[i].seat_next)
		if (sched->queues[i].attr.weight > seat->view.weight)
			seat->view.weight = sched->queues[i].attr.weight;
}

int gp_sched_client_set_attr(struct gp_sched *sched, struct gp_client_id client, const struct gp_client_attr *attr)
{
	struct gp_core_client *c = client_find(sched, client);
	uint32_t i;

	if (!c)
		return -ESTALE;
	if (attr->user != c->attr.user)
		return -EINVAL;
	c->attr = *attr;
	gp_gang_stick_client(sched, client.index);
	for (i = c->seat_first; i != GP_NONE; i = sched->seats[i].client_next)
		client_seat_view(sched, &sched->seats[i]);
	return 0;
}

static uint32_t client_seat(struct gp_sched *sched, uint32_t client, uint32_t device)
{
	struct gp_device *d = &sched->devices[device];
	struct gp_seat *seat;
	uint32_t i;

	for (i = sched->clients[client].seat_first; i != GP_NONE; i = sched->seats[i].client_next)
		if (sched->seats[i].device == device)
			return i;
	i = sched->seat_free;
	seat = &sched->seats[i];
	sched->seat_free = seat->client_next;
	*seat = (struct gp_seat){
		.used = true,
		.client = client,
		.device = device,
		.client_next = sched->clients[client].seat_first,
		.device_next = d->seat_first,
		.device_prev = GP_NONE,
		.queue_first = GP_NONE,
		.check_next = GP_NONE,
		.rank = INT64_MIN,
		.has_turn = d->batch_max == GP_UNLIMITED,
		.mark_ns = sched->now_ns,
		.joined_ns = sched->now_ns,
		.view = { .turn_count = d->turn_clock, .weight = 1, .user_seats = 1, .request_ns = d->param.turn_ns },
	};
	sched->clients[client].seat_first = i;
	if (d->seat_first != GP_NONE)
		sched->seats[d->seat_first].device_prev = i;
	d->seat_first = i;
	d->seat_count++;
	gp_age_join(sched, i);
	gp_turn_join(sched, i);
	return i;
}

static void client_seat_free(struct gp_sched *sched, uint32_t index)
{
	struct gp_seat *seat = &sched->seats[index];
	struct gp_device *device = &sched->devices[seat->device];
	uint32_t *link = &sched->clients[seat->client].seat_first;

	gp_turn_forget(sched, index);
	gp_age_forget(sched, index);
	for (; *link != index; link = &sched->seats[*link].client_next)
		if (GP_NEVER(*link == GP_NONE))
			return;
	*link = seat->client_next;
	if (seat->device_prev != GP_NONE)
		sched->seats[seat->device_prev].device_next = seat->device_next;
	else
		device->seat_first = seat->device_next;
	if (seat->device_next != GP_NONE)
		sched->seats[seat->device_next].device_prev = seat->device_prev;
	device->seat_count--;
	seat->used = false;
	seat->client_next = sched->seat_free;
	sched->seat_free = index;
}

/* With more processes than the firmware has places for, it slices them, whether their gates are open or not: the core
 * traces that. */
static void client_oversubscription(struct gp_sched *sched, uint32_t device)
{
	struct gp_device *d = &sched->devices[device];
	uint64_t processes = (uint64_t)d->seat_count + d->other_process_count;
	bool now = d->attr.process_count_max && processes > d->attr.process_count_max;

	if (now && !d->oversubscribed)
		gp_trace_device(sched, GP_TRACE_OVERSUBSCRIBED, device, GP_WHY_SLOTS, processes);
	d->oversubscribed = now;
}

int gp_sched_device_set_others(struct gp_sched *sched, uint32_t device, uint32_t compute_queue_count,
			       uint32_t process_count, uint64_t now_ns)
{
	struct gp_device *d;

	if (device >= sched->device_count || compute_queue_count > GP_QUEUE_MAX || process_count > GP_CLIENT_MAX)
		return -EINVAL;
	d = &sched->devices[device];
	if (d->other_queue_count == compute_queue_count && d->other_process_count == process_count)
		return 0;
	gp_clock(sched, now_ns);
	d->other_queue_count = compute_queue_count;
	d->other_process_count = process_count;
	client_oversubscription(sched, device);
	d->dirty = true;
	return 0;
}

/* Counts the queue into the device's sums over all queues, or out of them. */
static void client_count_queue(struct gp_sched *sched, uint32_t queue, bool in)
{
	const struct gp_queue_attr *attr = &sched->queues[queue].attr;
	struct gp_device *device = gp_device_of(sched, &sched->queues[queue]);

	gp_rest_count(sched, queue, in);
	if (attr->deadline_ns && attr->budget_ns) {
		uint64_t ppm = attr->budget_ns * 1000000 / attr->deadline_ns;

		device->budget_used_ppm += in ? ppm : -ppm;
	}
}

static bool client_attr_ok(const struct gp_sched *sched, const struct gp_queue_attr *attr)
{
	return attr->priority >= 0 && attr->priority <= GP_PRIORITY_MAX && attr->weight <= GP_WEIGHT_MAX &&
	       attr->deadline_ns <= GP_DURATION_NS_MAX && attr->budget_ns <= GP_DURATION_NS_MAX &&
	       attr->own_slice_ns <= GP_DURATION_NS_MAX && attr->floor_permille < 1000 &&
	       (unsigned int)attr->kind <= GP_KIND_COPY && (unsigned int)attr->protect <= GP_PROTECT_THROUGHPUT &&
	       (!attr->gang || sched->limits.gang_count);
}

static void client_seat_join(struct gp_sched *sched, uint32_t queue)
{
	struct gp_queue *q = &sched->queues[queue];
	struct gp_seat *seat;

	q->seat = client_seat(sched, q->client, q->device);
	seat = &sched->seats[q->seat];
	q->seat_next = seat->queue_first;
	if (seat->queue_first != GP_NONE)
		sched->queues[seat->queue_first].seat_prev = queue;
	seat->queue_first = queue;
	seat->queue_count++;
	sched->shares[seat->share].queue_count++;
	sched->devices[q->device].queue_count++;
	if (q->attr.weight > seat->view.weight)
		seat->view.weight = q->attr.weight;
	client_seat_view(sched, seat);
}

int gp_sched_queue_add(struct gp_sched *sched, struct gp_client_id client, uint32_t device,
		       const struct gp_queue_attr *attr, uint64_t now_ns, struct gp_queue_id *ret_queue)
{
	uint32_t index = sched->queue_free;
	struct gp_device *d;
	struct gp_queue *q;
	struct gp_seat *seat;

	if (!client_find(sched, client))
		return -ESTALE;
	if (device >= sched->device_count || !client_attr_ok(sched, attr))
		return -EINVAL;
	d = &sched->devices[device];
	if (index == GP_NONE || d->queue_count == d->attr.queue_max ||
	    (attr->gang && !gp_gang_can_join(sched, attr->gang)))
		return -ENOSPC;
	/* There are as many seats and shares as queues; each seat has a queue, and each share has a seat. */
	if (GP_NEVER(sched->seat_free == GP_NONE || sched->share_free == GP_NONE))
		return -ENOSPC;
	if ((d->policy->admit && d->policy->admit(attr, d->budget_used_ppm)) ||
	    !gp_floor_admits(sched, &sched->clients[client.index], device, attr->floor_permille))
		return -EDQUOT;
	q = &sched->queues[index];
	sched->queue_free = q->seat_next;
	gp_clock(sched, now_ns);
	*q = (struct gp_queue){
		.generation = q->generation + 1,
		.used = true,
		.client = client.index,
		.device = device,
		.attr = *attr,
		.gang = GP_NONE,
		.gang_next = GP_NONE,
		.idle_next = GP_NONE,
		.idle_prev = GP_NONE,
		.seat_prev = GP_NONE,
		.gate = GP_GATE_CLOSED,
		.mark_ns = sched->now_ns,
		.timer_ns = GP_NEVER_NS,
		.age_next = GP_NONE,
		.age_prev = GP_NONE,
	};
	q->attr.weight = attr->weight ? attr->weight : GP_WEIGHT_DEFAULT;
	client_seat_join(sched, index);
	seat = &sched->seats[q->seat];
	gp_trace(sched, GP_TRACE_QUEUE_ADD, index, GP_WHY_NONE, (uint64_t)attr->priority);
	client_count_queue(sched, index, true);
	if (gp_rest_update(sched, d))
		gp_turn_settle(sched, d);
	gp_work_rerank(sched, index);
	gp_floor_set(sched, q->seat);
	d->closed_unseen_count += gp_gate_is_blind(q);
	gp_work_gate(sched, index, GP_GATE_OPEN);
	q->opened_ns = 0; /* min_open_ns protects gates that the core opened, not those that began open */
	/* Not before seats that wait: else a user would take turn after turn by leaving and coming again. */
	if (q->is_batch && !seat->has_turn && d->turn_count < d->batch_max && gp_heap_top(d, GP_HEAP_TURN) == GP_NONE)
		gp_turn_give(sched, q->seat);
	gp_turn_check(sched, q->seat);
	client_oversubscription(sched, device);
	gp_slice_look(d);
	if (attr->gang) {
		gp_gang_join(sched, index, attr->gang);
		gp_work_rerank(sched, index);
	}
	*ret_queue = gp_queue_id_of(sched, index);
	return 0;
}

int gp_sched_queue_set_attr(struct gp_sched *sched, struct gp_queue_id queue, const struct gp_queue_attr *attr,
			    uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);
	struct gp_device *device;
	uint64_t own_ppm, others_ppm;

	if (!q)
		return -ESTALE;
	if (!client_attr_ok(sched, attr) || attr->kind != q->attr.kind || attr->gang != q->attr.gang)
		return -EINVAL; /* kind and gang are for life */
	device = gp_device_of(sched, q);
	own_ppm = q->attr.deadline_ns ? q->attr.budget_ns * 1000000 / q->attr.deadline_ns : 0;
	others_ppm = device->budget_used_ppm - own_ppm;
	if ((device->policy->admit && device->policy->admit(attr, others_ppm)) ||
	    !gp_floor_admits(sched, &sched->clients[q->client], q->device, attr->floor_permille))
		return -EDQUOT;
	gp_clock(sched, now_ns);
	client_count_queue(sched, queue.index, false);
	device->open_fixed_count -= gp_gate_is_fixed(q);
	device->closed_unseen_count -= gp_gate_is_blind(q);
	sched->seats[q->seat].weight_is_old = true;
	q->attr = *attr;
	q->attr.weight = attr->weight ? attr->weight : GP_WEIGHT_DEFAULT;
	device->open_fixed_count += gp_gate_is_fixed(q);
	device->closed_unseen_count += gp_gate_is_blind(q);
	client_count_queue(sched, queue.index, true);
	client_seat_view(sched, &sched->seats[q->seat]);
	gp_trace(sched, GP_TRACE_ATTR, queue.index, GP_WHY_NONE, (uint64_t)attr->priority);
	if (gp_rest_update(sched, device))
		gp_turn_settle(sched, device);
	gp_slice_look(device);
	gp_work_rerank(sched, queue.index);
	gp_work_refresh(sched, queue.index);
	gp_floor_set(sched, q->seat);
	if (sched->seats[q->seat].batch_count == 0)
		gp_turn_take(sched, q->seat); /* it needs no turn any more, and would keep one from a seat that does */
	return 0;
}

int gp_sched_queue_remove(struct gp_sched *sched, struct gp_queue_id queue, uint64_t now_ns)
{
	struct gp_queue *q = gp_queue_find(sched, queue);
	struct gp_device *device;
	struct gp_seat *seat;

	if (!q)
		return -ESTALE;
	gp_clock(sched, now_ns);
	device = gp_device_of(sched, q);
	seat = &sched->seats[q->seat];
	gp_gang_leave(sched, queue.index);
	gp_apply_forget(sched, queue.index);
	gp_work_account(sched, queue.index);
	q->has_work = q->hinted = q->aged = false;
	q->linger_until_ns = q->hint_from_ns = q->hint_at_ns = q->tail_until_ns = q->hold_until_ns = q->tail_ns = 0;
	q->slice_seq = q->slice_due_ns = q->slice_hold_ns = 0;
	gp_work_gate(sched, queue.index, GP_GATE_CLOSED); /* leaves every heap and list */
	device->closed_unseen_count -= gp_gate_is_blind(q);
	gp_trace(sched, GP_TRACE_QUEUE_REMOVE, queue.index, GP_WHY_NONE, 0);
	if (device->announce == queue.index)
		device->announce = GP_NONE;
	seat->batch_count -= q->is_batch;
	seat->weight_is_old |= q->attr.weight == seat->view.weight;
	if (q->seat_prev != GP_NONE)
		sched->queues[q->seat_prev].seat_next = q->seat_next;
	else
		seat->queue_first = q->seat_next;
	if (q->seat_next != GP_NONE)
		sched->queues[q->seat_next].seat_prev = q->seat_prev;
	GP_ASSERT(device->queue_count && sched->shares[seat->share].queue_count && !q->age_waits);
	device->queue_count--;
	sched->shares[seat->share].queue_count--;
	q->used = false;
	q->seat_next = sched->queue_free;
	sched->queue_free = queue.index;
	client_count_queue(sched, queue.index, false);
	GP_ASSERT(seat->queue_count);
	gp_floor_set(sched, q->seat);
	if (--seat->queue_count == 0)
		client_seat_free(sched, q->seat);
	else if (seat->batch_count == 0)
		gp_turn_take(sched, q->seat);
	if (gp_rest_update(sched, device))
		gp_turn_settle(sched, device);
	client_oversubscription(sched, q->device);
	gp_slice_look(device);
	device->dirty = true;
	return 0;
}

int gp_sched_client_remove(struct gp_sched *sched, struct gp_client_id client, uint64_t now_ns)
{
	struct gp_core_client *c = client_find(sched, client);

	if (!c)
		return -ESTALE;
	while (c->seat_first != GP_NONE) { /* the last queue takes the seat with it */
		uint32_t queue = sched->seats[c->seat_first].queue_first;

		(void)gp_sched_queue_remove(sched, gp_queue_id_of(sched, queue), now_ns);
	}
	c->used = false;
	c->seat_first = sched->client_free;
	sched->client_free = client.index;
	sched->client_count--;
	return 0;
}

int gp_sched_queue_info(const struct gp_sched *sched, struct gp_queue_id queue, struct gp_queue_info *ret_info)
{
	const struct gp_queue *q = gp_queue_find(sched, queue);
	uint64_t open_ns;

	if (!q)
		return -ESTALE;
	/* The core updates the accounts at edges: add the time since the last one. */
	open_ns = q->has_work && gp_gate_lets_through(q->gate) ? sched->now_ns - q->mark_ns : 0;
	*ret_info = (struct gp_queue_info){
		.gate = q->gate,
		.has_work = q->has_work,
		.rank = q->rank,
		.pending = q->written - q->completed,
		.run_ns = q->run_ns + open_ns,
		.wait_ns = q->wait_ns + (q->has_work ? sched->now_ns - q->mark_ns - open_ns : 0),
		.inversions = q->inversions,
		.preemptions = q->preemptions,
		.device = q->device,
		.linger_ns = q->linger_until_ns > sched->now_ns ? q->linger_until_ns - sched->now_ns : 0,
		.client = { q->client, sched->clients[q->client].generation },
		.slice_ns = q->slice_ns,
		.is_slice_known = !q->slice_unknown,
		.is_slice_ordered = q->slice_seq != 0,
		.is_short = gp_slice_is_short_ns(&sched->devices[q->device], q->slice_ns),
		.may_be_short = gp_slice_may_be_short(&sched->devices[q->device], q),
		.slice_failures = q->slice_fails,
		.is_stuck = q->is_stuck,
		.is_following = q->gate == GP_GATE_QUARANTINED && !q->is_stuck,
	};
	return 0;
}

int gp_sched_seat_info(const struct gp_sched *sched, struct gp_client_id client, uint32_t device,
		       struct gp_seat_info *ret_info)
{
	const struct gp_core_client *c = client_find(sched, client);
	uint32_t i = c ? c->seat_first : GP_NONE;
	const struct gp_seat *seat;
	uint64_t since_ns;

	while (i != GP_NONE && sched->seats[i].device != device)
		i = sched->seats[i].client_next;
	if (i == GP_NONE)
		return -ESTALE;
	seat = &sched->seats[i];
	since_ns = sched->now_ns - seat->mark_ns;
	*ret_info = (struct gp_seat_info){
		.compute_ns = seat->view.compute_ns + (seat->running[GP_KIND_COMPUTE] ? since_ns : 0),
		.copy_ns = seat->view.copy_ns + (seat->running[GP_KIND_COPY] ? since_ns : 0),
		.wait_ns = seat->wait_ns,
	};
	if ((seat->busy[GP_KIND_COMPUTE] || seat->busy[GP_KIND_COPY]) && !seat->running[GP_KIND_COMPUTE] &&
	    !seat->running[GP_KIND_COPY])
		ret_info->wait_ns += since_ns;
	return 0;
}

void gp_sched_set_time(struct gp_sched *sched, uint64_t now_ns)
{
	gp_clock(sched, now_ns);
}

int gp_sched_stats(const struct gp_sched *sched, uint32_t device, struct gp_stats *ret_stats)
{
	if (device >= sched->device_count)
		return -EINVAL;
	*ret_stats = sched->devices[device].stats;
	return 0;
}

int gp_sched_priority_top(const struct gp_sched *sched, uint32_t device, int32_t *ret_priority)
{
	struct gp_policy_queue view;
	const struct gp_device *d;

	if (device >= sched->device_count)
		return -EINVAL;
	d = &sched->devices[device];
	view = (struct gp_policy_queue){ .priority = d->priority_top,
					 .priority_top = d->priority_top,
					 .deadline_queue_count = d->deadline_queue_count };
	*ret_priority = d->policy->is_batch && d->policy->is_batch(&view) ? GP_PRIORITY_MAX + 1 : d->priority_top;
	return 0;
}
