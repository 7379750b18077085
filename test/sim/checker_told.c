/* SPDX-License-Identifier: MIT */
/*
 * Owns the record of what the core was told. Written from include/gpreempt/sched.h alone: when a queue has work, what
 * an acknowledgement makes of a gate, what a parameter left at zero means.
 */
#include "test/sim/checker_told.h"

struct told_queue *told_find(struct told *told, struct gp_queue_id id)
{
	if (id.index >= TOLD_QUEUE_MAX || !told->queues[id.index].used ||
	    told->queues[id.index].generation != id.generation)
		return NULL;
	return &told->queues[id.index];
}

struct told_queue *told_find_tag(struct told *told, uint32_t gpu_queue)
{
	uint32_t i;

	for (i = 0; i < told->queue_end; i++) {
		if (told->queues[i].used && told->queues[i].attr.tag == gpu_queue)
			return &told->queues[i];
	}
	return NULL;
}

bool told_has_slot(const struct told *told, uint32_t device)
{
	const struct told_queue *q;
	uint32_t i, taken = 0, slots = told->devices[device].attr.slot_count;

	for (i = 0; i < told->queue_end; i++) {
		q = &told->queues[i];
		/* On a self-switching device it is a lower context beside the turn holder, for ever: neither gets
		 * anywhere. A clock that jumps makes a plan time out there, too. */
		if (q->used && q->device == device && told->devices[device].attr.switch_ns &&
		    q->gate == GP_GATE_QUARANTINED)
			return false;
		taken += q->used && q->device == device && q->attr.kind == GP_KIND_COMPUTE &&
			 q->gate != GP_GATE_CLOSED &&
			 (q->attr.unseen || q->attr.gang || q->gate == GP_GATE_QUARANTINED);
	}
	return !slots || taken < slots;
}

uint64_t told_user(const struct told *told, const struct told_queue *queue)
{
	uint64_t user = queue->client.index < TOLD_CLIENT_MAX ? told->users[queue->client.index] : 0;

	return user ? user : TOLD_OWN_USER | queue->client.index;
}

uint32_t told_clients_of(const struct told *told, uint64_t user, uint32_t device)
{
	uint64_t seen[TOLD_CLIENT_MAX / 64];
	uint32_t i, count = 0;

	if (user & TOLD_OWN_USER)
		return 1;
	memset(seen, 0, sizeof(seen));
	for (i = 0; i < told->queue_end; i++) {
		const struct told_queue *q = &told->queues[i];
		uint32_t client = q->client.index % TOLD_CLIENT_MAX;

		if (!q->used || q->device != device || told_user(told, q) != user)
			continue;
		count += !(seen[client / 64] >> client % 64 & 1);
		seen[client / 64] |= 1ull << client % 64;
	}
	return count;
}

/* For the core time never runs backwards. */
static void told_clock(struct told *told, uint64_t core_ns)
{
	if (core_ns > told->core_ns)
		told->core_ns = core_ns;
	if (!told->core_ns)
		told->core_ns = 1; /* 0 means none in its own times: a driver's time 0 counts as 1 */
}

static bool told_is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static uint64_t told_or(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static const char *told_add_device(struct told *told, const struct check_event *event)
{
	struct told_device *device = &told->devices[event->device];
	const struct gp_param *p = event->param;

	if (event->device >= TOLD_DEVICE_MAX)
		return "more devices than the record holds";
	*device = (struct told_device){ .attr = *event->attr,
					.policy = event->policy,
					.gates = !told_is(event->policy, "none"),
					.ranked = told_is(event->policy, "hpf") || told_is(event->policy, "edf") };
	device->attr.ack_timeout_ns = told_or(event->attr->ack_timeout_ns, 1000000000);
	device->param = (struct gp_param){
		.turn_ns = told_or(p->turn_ns, 40000000),
		.min_open_ns = told_or(p->min_open_ns, event->attr->open_ns),
		.linger_max_ns = told_or(p->linger_max_ns, 5000000),
		.age_window_ns = told_or(p->age_window_ns, 1000000000),
		.age_turn_ns = told_or(p->age_turn_ns, 5000000),
		.hint_grace_ns = told_or(p->hint_grace_ns, 2000000),
		.overhead_permille = (uint32_t)told_or(p->overhead_permille, 200),
		.burst = (uint32_t)told_or(p->burst, 32),
		.batch_clients = p->batch_clients,
		.fail_max = (uint32_t)told_or(p->fail_max, 3),
		.age_permille = (uint32_t)told_or(p->age_permille, 100),
		.rest_ns = told_or(p->rest_ns, 1000000000),
		.protect = p->protect ? p->protect : GP_PROTECT_BALANCED,
		.gather_ns = told_or(p->gather_ns, 4000000),
	};
	if (told->device_count <= event->device)
		told->device_count = event->device + 1;
	return NULL;
}

bool told_keeps_gang(const struct told *told, const struct told_queue *queue)
{
	return queue->used && queue->attr.gang && queue->stuck &&
	       (queue->client.index >= TOLD_CLIENT_MAX || !told->is_alone[queue->client.index]);
}

/* A member of its gang is in quarantine for its own orders: nobody of the gang is put aside then, unless that one is
 * left alone. */
static bool told_must_follow(const struct told *told, const struct told_queue *queue)
{
	uint32_t i;

	for (i = 0; i < told->queue_end && queue->attr.gang && told->devices[queue->device].gates; i++)
		if (told->queues[i].attr.gang == queue->attr.gang && told_keeps_gang(told, &told->queues[i]))
			return true;
	return false;
}

static const char *told_add_queue(struct told *told, const struct check_event *event)
{
	struct told_queue *queue = &told->queues[event->queue.index];

	if (event->queue.index >= TOLD_QUEUE_MAX)
		return "more queues than the record holds";
	if (queue->used)
		return "a new queue got the place of one that is still there";
	told->members++;
	*queue = (struct told_queue){ .used = true,
				      .generation = event->queue.generation,
				      .device = event->device,
				      .client = event->client,
				      .attr = *event->queue_attr,
				      .gate = GP_GATE_OPEN,
				      .added_ns = told->core_ns };
	if (told->queue_end <= event->queue.index)
		told->queue_end = event->queue.index + 1;
	if (told_must_follow(told, queue))
		queue->gate = GP_GATE_UNKNOWN;
	return NULL;
}

/* A busy period begins. The clock may stand still, so its time does not tell it from the last one. */
static void told_begin(const struct told *told, struct told_queue *queue)
{
	queue->busy_since_ns = told->core_ns;
	queue->short_tried = false;
}

/* Counters at completion: work is what is not completed. At fetch the last packet may still run, and the core guesses
 * how long: the end of that work is a claim of its own. */
static const char *told_sample(struct told *told, const struct check_event *event)
{
	struct told_queue *queue = told_find(told, event->queue);
	bool had_work;

	if (!queue)
		return "a sample of a queue that is not there was accepted";
	if (event->written < queue->written || event->completed < queue->completed || event->completed > event->written)
		return "a sample that runs backwards was accepted";
	if (event->written == queue->written && event->completed == queue->completed)
		return NULL;
	told_clock(told, event->core_ns);
	had_work = queue->has_work;
	queue->presumed = queue->announced = false;
	if (event->written != queue->written)
		queue->written_ns = told->core_ns;
	queue->written = event->written;
	queue->completed = event->completed;
	queue->has_work = event->written != event->completed || told->devices[queue->device].attr.fetch_counters;
	if (queue->has_work && !had_work)
		told_begin(told, queue);
	if (!queue->has_work) {
		queue->left_why = GP_WHY_NONE;
		if (had_work)
			queue->idle_since_ns = told->core_ns;
	}
	return NULL;
}

static void told_gate(struct told *told, struct told_queue *queue, enum gp_gate gate)
{
	if (gate == GP_GATE_OPEN && queue->gate != GP_GATE_OPEN && queue->gate != GP_GATE_CLOSING)
		queue->opened_ns = told->core_ns;
	if (gate == GP_GATE_CLOSED) {
		queue->left_why = GP_WHY_NONE;
		queue->aged = false;
	}
	queue->gate = gate;
}

/* Its gang got a member that cannot be put aside, or an order of its own ended: an open one is in quarantine by the end
 * of the call, a closed one is ordered open. */
static void told_follow(struct told *told, struct told_queue *queue)
{
	if (!told_must_follow(told, queue))
		return;
	if (queue->gate == GP_GATE_OPEN)
		queue->must_quarantine = true;
	else if (queue->gate == GP_GATE_CLOSED)
		told_gate(told, queue, GP_GATE_UNKNOWN);
}

/* The queue is in quarantine for its own orders now, or not any more: its gang follows. */
static void told_stick(struct told *told, struct told_queue *queue, bool stuck)
{
	uint32_t i;

	if (queue->stuck == stuck)
		return;
	queue->stuck = stuck;
	for (i = 0; i < told->queue_end && queue->attr.gang; i++) {
		struct told_queue *peer = &told->queues[i];

		if (!peer->used || peer->attr.gang != queue->attr.gang)
			continue;
		if (stuck)
			told_follow(told, peer);
		else if (peer->gate == GP_GATE_QUARANTINED && !peer->stuck && !told_must_follow(told, peer))
			told_gate(told, peer, GP_GATE_UNKNOWN);
	}
}

/* A queue is quarantined when a close fails too often, or at once with -EIO; if it may have closed it is ordered open
 * first. An open that fails for a known reason is repeated. */
static void told_fail(struct told *told, struct told_queue *queue, bool opens, int result)
{
	const struct told_device *device = &told->devices[queue->device];
	bool often, lost = !result;
	uint32_t shift;

	queue->fail_count++;
	queue->fail_result = result;
	often = queue->fail_count >= device->param.fail_max;
	shift = queue->fail_count < 10 ? queue->fail_count : 10;
	queue->hold_ns = told->core_ns + ((device->attr.close_ns + device->attr.open_ns + 1) << shift);
	if (opens)
		queue->must_quarantine = lost && (often || queue->condemned);
	else if (lost)
		queue->condemned |= often;
	else
		queue->must_quarantine = often || queue->condemned || result == -EIO;
	told_gate(told, queue, opens || lost ? GP_GATE_UNKNOWN : GP_GATE_OPEN);
	queue->fails_alone = queue->must_quarantine;
	queue->must_quarantine |= opens == lost && told_must_follow(told, queue);
	queue->left_why = GP_WHY_FAILED;
	told->devices[queue->device].disturbed_ns = told->core_ns;
}

bool told_moves(const struct told_queue *queue)
{
	return queue->gate == GP_GATE_CLOSING || queue->gate == GP_GATE_OPENING;
}

bool told_is_sliced(const struct told *told, const struct told_queue *queue)
{
	uint64_t timeout_ns = told->devices[queue->device].attr.ack_timeout_ns;

	return (queue->slice_seq && told->core_ns < queue->slice_ns + timeout_ns) ||
	       (queue->slice_failed_ns && told->core_ns < queue->slice_failed_ns + 18 * timeout_ns);
}

bool told_waits(const struct told *told, uint32_t device)
{
	const struct told_queue *q;
	uint32_t i;

	for (i = 0; i < told->queue_end; i++) {
		q = &told->queues[i];
		if (q->used && q->device == device && told_moves(q) && q->is_awaited &&
		    told->core_ns < q->prompt_until_ns)
			return true;
	}
	return false;
}

static const char *told_ack(struct told *told, const struct check_event *event)
{
	struct told_queue *queue = told_find(told, event->queue);
	bool opens;

	if (!queue || !told_moves(queue) || queue->order_seq != event->seq)
		return "an acknowledgement was accepted though no such order is under way";
	opens = queue->gate == GP_GATE_OPENING;
	if (event->result || (queue->is_lost && !opens)) { /* one that was opened in its close has failed, too */
		told_fail(told, queue, opens, event->result);
		return NULL;
	}
	if (!opens)
		queue->fail_count = 0;
	if (queue->is_lost) {
		queue->hold_ns = 0;
		told_gate(told, queue, GP_GATE_UNKNOWN);
		return NULL;
	}
	queue->must_quarantine = queue->fails_alone = opens && queue->condemned;
	queue->hold_ns = 0;
	told_gate(told, queue, opens ? GP_GATE_OPEN : GP_GATE_CLOSED);
	told_follow(told, queue);
	return NULL;
}

static void told_sliced(struct told *told, const struct check_event *event)
{
	struct told_queue *queue = told_find(told, event->queue);

	if (queue && queue->slice_seq == event->seq)
		queue->slice_seq = 0;
}

/* What is under way on a device that stops may have been carried out, or not. */
static void told_stop(struct told *told, uint32_t device)
{
	struct told_queue *queue;
	uint32_t i;

	for (i = 0; i < told->queue_end; i++) {
		queue = &told->queues[i];
		if (queue->used && queue->device == device && told_moves(queue))
			told_gate(told, queue, GP_GATE_UNKNOWN);
	}
	told->devices[device].stopped = true;
	told->devices[device].disturbed_ns = told->core_ns;
}

static void told_start(struct told *told, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < told->queue_end; i++) {
		if (!told->queues[i].used || told->queues[i].device != device)
			continue;
		told->queues[i].fail_count = 0;
		told->queues[i].condemned = false;
		told_stick(told, &told->queues[i], false);
		if (told->queues[i].gate == GP_GATE_QUARANTINED)
			told_gate(told, &told->queues[i], GP_GATE_UNKNOWN);
	}
	told->devices[device].stopped = false;
	told->devices[device].disturbed_ns = told->core_ns;
}

static void told_order(struct told *told, const struct gp_plan *plan, const struct gp_order *order, enum gp_gate gate)
{
	struct told_queue *queue = told_find(told, order->queue);

	if (!queue)
		return;
	queue->order_why = order->why;
	queue->order_move = order->move;
	queue->order_seq = plan->seq;
	queue->is_lost = queue->is_own = false;
	queue->order_ns = told->core_ns;
	queue->prompt_until_ns = told->core_ns + 2 * plan->patience_ns;
	queue->is_awaited = order->is_awaited;
	if (order->why == GP_WHY_AGED) {
		queue->aged = true;
		queue->aged_again = queue->aged_ns && queue->completed == queue->aged_completed;
		queue->aged_ns = told->core_ns;
		queue->aged_completed = queue->completed;
	}
	told_gate(told, queue, gate);
}

static void told_plan(struct told *told, const struct gp_plan *plan)
{
	struct told_device *device = &told->devices[plan->device];
	uint32_t i;

	if (plan->device >= told->device_count || plan->close_count > GP_PLAN_MAX || plan->open_count > GP_PLAN_MAX ||
	    plan->slice_count > GP_PLAN_SLICE_MAX)
		return;
	for (i = 0; i < plan->slice_count; i++) {
		struct told_queue *queue = told_find(told, plan->slice[i].queue);

		if (queue) {
			queue->slice_seq = plan->seq;
			queue->slice_ns = told->core_ns;
		}
	}
	if (!(plan->close_count + plan->open_count))
		return;
	for (i = 0; i < plan->close_count; i++)
		told_order(told, plan, &plan->close[i], GP_GATE_CLOSING);
	for (i = 0; i < plan->open_count; i++)
		told_order(told, plan, &plan->open[i], GP_GATE_OPENING);
	device->close_count = plan->close_count;
	device->seq = plan->seq;
}

static const char *told_left_open(const struct told *told, struct told_queue *queue, enum gp_why why)
{
	const struct told_device *device = &told->devices[queue->device];

	queue->left_why = why;
	if (why == GP_WHY_MIN_OPEN)
		queue->hold_ns = queue->opened_ns + device->param.min_open_ns;
	if (why == GP_WHY_MIN_OPEN && told->core_ns >= queue->opened_ns + device->param.min_open_ns)
		return "left open because opened a moment ago, which it was not";
	if (why == GP_WHY_SELF && !device->attr.switch_ns)
		return "left open because the device switches by itself, which it does not";
	if (why == GP_WHY_SHORT && queue->short_tried)
		return "left open as short twice in one busy period";
	if (why == GP_WHY_SHORT) {
		queue->short_tried = true;
		queue->hold_ns = told->core_ns + device->attr.close_ns + device->attr.close_ns / 4 + 1;
	}
	return NULL;
}

static const char *told_claim(struct told *told, const struct gp_trace_event *claim)
{
	struct told_queue *queue = told_find(told, claim->queue);
	struct told_device *device;

	if (claim->type == GP_TRACE_TOP && claim->device < TOLD_DEVICE_MAX) {
		told->devices[claim->device].top = (int32_t)(claim->value & (GP_TRACE_TOP_DEADLINE - 1));
		told->devices[claim->device].has_deadline = claim->value & GP_TRACE_TOP_DEADLINE;
	}
	if (!queue)
		return NULL; /* of a queue that goes or is not yet reported */
	device = &told->devices[queue->device];
	switch ((enum gp_trace_type)claim->type) {
	case GP_TRACE_IDLE:
		if (queue->written != queue->completed)
			return "a queue is claimed to be idle though packets are not completed";
		queue->has_work = queue->presumed = false;
		queue->left_why = GP_WHY_NONE;
		queue->idle_since_ns = told->core_ns;
		break;
	case GP_TRACE_HINT: queue->announced = !queue->has_work; break;
	case GP_TRACE_HINT_MISSED: queue->announced = false; break;
	case GP_TRACE_FLOOR:
		told->behind[queue->client.index % TOLD_CLIENT_MAX][queue->device] =
			claim->value ? ++told->behind_count[queue->device] : 0;
		break;
	case GP_TRACE_BUSY:
		queue->announced = false;
		/* It came and went between two samples; or, with counters at fetch, the core presumes that the last
		 * packet still runs. */
		if (queue->has_work)
			break;
		told_begin(told, queue);
		queue->has_work = true;
		queue->presumed = queue->written == queue->completed && device->attr.fetch_counters;
		break;
	case GP_TRACE_LEFT_OPEN: return told_left_open(told, queue, (enum gp_why)claim->why);
	case GP_TRACE_ORDER_FAILED:
		if (claim->why != GP_WHY_TIMEOUT)
			break; /* as it was told */
		if (!told_moves(queue) || told->core_ns < queue->order_ns + device->attr.ack_timeout_ns)
			return "an order was given up that is not under way, or before its time";
		told_fail(told, queue, queue->gate == GP_GATE_OPENING, 0);
		break;
	case GP_TRACE_SLICE_FAILED: queue->slice_failed_ns = told->core_ns; break;
	case GP_TRACE_QUARANTINE:
		if (!queue->must_quarantine)
			return "quarantined though its orders did not fail often enough, or before it is open";
		if (queue->fails_alone == (claim->why == GP_WHY_QUARANTINE))
			return "quarantined for another member of its gang, or for itself, which is not so";
		told_gate(told, queue, GP_GATE_QUARANTINED);
		queue->left_why = GP_WHY_QUARANTINE;
		told_stick(told, queue, queue->fails_alone);
		queue->must_quarantine = queue->condemned = queue->fails_alone = false;
		break;
	default: break;
	}
	return NULL;
}

static const char *told_settle(struct told *told)
{
	struct told_queue *queue;
	const char *wrong = NULL;
	uint32_t i;

	for (i = 0; i < told->queue_end; i++) {
		queue = &told->queues[i];
		if (!queue->used)
			continue;
		if (queue->must_quarantine)
			wrong = "an order failed too often and the queue is not quarantined";
		queue->must_quarantine = queue->fails_alone = false;
		if (!told->devices[queue->device].attr.fetch_counters &&
		    queue->has_work != (queue->written != queue->completed))
			wrong = "a queue is claimed to be busy though everything is completed, or the other way round";
	}
	return wrong;
}

/* With its last queue on the device a client has left it. */
static void told_forget_behind(struct told *told, const struct told_queue *gone)
{
	uint32_t i;

	for (i = 0; i < told->queue_end; i++)
		if (told->queues[i].used && told->queues[i].device == gone->device &&
		    told->queues[i].client.index == gone->client.index)
			return;
	told->behind[gone->client.index % TOLD_CLIENT_MAX][gone->device] = 0;
}

static const char *told_change(struct told *told, const struct check_event *event)
{
	struct told_queue *queue = told_find(told, event->queue);

	if (!queue)
		return "a change to a queue that is not there was accepted";
	switch (event->type) {
	case CHECK_QUEUE_REMOVE:
		told->devices[queue->device].disturbed_ns = told->core_ns;
		queue->used = false;
		told->members++;
		told_stick(told, queue, false);
		told_forget_behind(told, queue);
		break;
	case CHECK_ATTR: queue->attr = *event->queue_attr; break;
	case CHECK_GATE_LOST:
		queue->is_lost |= told_moves(queue) && (queue->gate == GP_GATE_OPENING) != event->open;
		queue->is_own |= queue->gate == GP_GATE_CLOSED && event->open;
		if (queue->gate == GP_GATE_OPEN || queue->gate == GP_GATE_CLOSED)
			told_gate(told, queue, event->open ? GP_GATE_OPEN : GP_GATE_CLOSED);
		told->devices[queue->device].disturbed_ns = told->core_ns;
		break;
	default: break;
	}
	return NULL;
}

static void told_set_quiet(struct told *told, bool quiet)
{
	uint32_t i;

	for (i = 0; i < told->device_count; i++)
		told->devices[i].quiet = quiet;
}

const char *told_event(struct told *told, const struct check_event *event)
{
	/* A sample that says nothing new does not even count as a time seen. */
	if (event->type < CHECK_GPU_ADD && event->type != CHECK_SAMPLE)
		told_clock(told, event->core_ns);
	if (event->type <= CHECK_PLAN)
		told_set_quiet(told, false);
	if (event->type <= CHECK_TRACE) {
		told->version++;
		told->stale = true;
	}
	switch (event->type) {
	case CHECK_DEVICE: return told_add_device(told, event);
	case CHECK_CLIENT:
		if (event->client.index < TOLD_CLIENT_MAX) {
			told->users[event->client.index] = event->user;
			told->members++;
			told->is_alone[event->client.index] = event->is_alone;
		}
		break;
	case CHECK_QUEUE_ADD: return told_add_queue(told, event);
	case CHECK_QUEUE_REMOVE:
	case CHECK_ATTR:
	case CHECK_GATE_LOST: return told_change(told, event);
	case CHECK_SAMPLE: return told_sample(told, event);
	case CHECK_ACK: return told_ack(told, event);
	case CHECK_SLICED: told_sliced(told, event); break;
	case CHECK_TRACE: return told_claim(told, event->trace);
	case CHECK_SETTLED: return told_settle(told);
	case CHECK_STOP: told_stop(told, event->device); break;
	case CHECK_START: told_start(told, event->device); break;
	case CHECK_COST:
		told->devices[event->device].attr.close_ns = event->close_ns;
		told->devices[event->device].attr.open_ns = event->open_ns;
		break;
	case CHECK_PLAN: told_plan(told, event->plan); break;
	case CHECK_QUIET: told_set_quiet(told, true); break;
	default: break;
	}
	return NULL;
}
