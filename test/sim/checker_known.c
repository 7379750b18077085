/* SPDX-License-Identifier: MIT */
/*
 * Owns the record of what the core was told. Written from include/gpreempt/sched.h alone: when a queue has work, what
 * an acknowledgement makes of a gate, what a parameter left at zero means.
 */
#include "test/sim/checker_known.h"

/* For the core time never runs backwards. */
static void known_clock(struct known *known, uint64_t core_ns)
{
	if (core_ns > known->core_ns)
		known->core_ns = core_ns;
	if (!known->core_ns)
		known->core_ns = 1; /* 0 means none in its own times: a driver's time 0 counts as 1 */
}

static bool known_is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static uint64_t known_or(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static const char *known_add_device(struct known *known, const struct check_event *event)
{
	struct known_device *device = &known->devices[event->device];
	const struct gp_param *p = event->param;

	if (event->device >= KNOWN_DEVICE_MAX)
		return "more devices than the record holds";
	*device = (struct known_device){ .attr = *event->attr,
					 .policy = event->policy,
					 .gates = !known_is(event->policy, "none"),
					 .is_edf = known_is(event->policy, "edf"),
					 .ranked = known_is(event->policy, "hpf") || known_is(event->policy, "edf") };
	device->attr.ack_timeout_ns = known_or(event->attr->ack_timeout_ns, 1000000000);
	device->param = (struct gp_param){
		.turn_ns = known_or(p->turn_ns, 40000000),
		.min_open_ns = known_or(p->min_open_ns, event->attr->open_ns),
		.linger_max_ns = known_or(p->linger_max_ns, 5000000),
		.age_window_ns = known_or(p->age_window_ns, 1000000000),
		.age_turn_ns = known_or(p->age_turn_ns, 5000000),
		.hint_grace_ns = known_or(p->hint_grace_ns, 2000000),
		.overhead_permille = (uint32_t)known_or(p->overhead_permille, 200),
		.burst = (uint32_t)known_or(p->burst, 32),
		.batch_clients = p->batch_clients,
		.fail_max = (uint32_t)known_or(p->fail_max, 3),
		.age_permille = (uint32_t)known_or(p->age_permille, 100),
		.rest_ns = known_or(p->rest_ns, 1000000000),
		.protect = p->protect ? p->protect : GP_PROTECT_BALANCED,
		.gather_ns = known_or(p->gather_ns, 4000000),
	};
	if (known->device_count <= event->device)
		known->device_count = event->device + 1;
	return NULL;
}

/* A member of its gang is in quarantine for its own orders: nobody of the gang is put aside then, unless that one is
 * left alone. */
static bool known_must_follow(const struct known *known, const struct known_queue *queue)
{
	uint32_t i;

	for (i = 0; i < known->queue_end && queue->attr.gang && known->devices[queue->device].gates; i++)
		if (known->queues[i].attr.gang == queue->attr.gang && known_keeps_gang(known, &known->queues[i]))
			return true;
	return false;
}

static const char *known_add_queue(struct known *known, const struct check_event *event)
{
	struct known_queue *queue = &known->queues[event->queue.index];

	if (event->queue.index >= KNOWN_QUEUE_MAX)
		return "more queues than the record holds";
	if (queue->used)
		return "a new queue got the place of one that is still there";
	known->members++;
	*queue = (struct known_queue){ .used = true,
				       .generation = event->queue.generation,
				       .device = event->device,
				       .client = event->client,
				       .attr = *event->queue_attr,
				       .gate = GP_GATE_OPEN,
				       .added_ns = known->core_ns };
	if (known->queue_end <= event->queue.index)
		known->queue_end = event->queue.index + 1;
	if (known_must_follow(known, queue))
		queue->gate = GP_GATE_UNKNOWN;
	return NULL;
}

/* A busy period begins. The clock may stand still, so its time does not tell it from the last one. */
static void known_begin(const struct known *known, struct known_queue *queue)
{
	queue->busy_since_ns = known->core_ns;
	queue->short_tried = queue->short_again = false;
}

/* Counters at completion: work is what is not completed. At fetch the last packet may still run, and the core guesses
 * how long: the end of that work is a claim of its own. */
static const char *known_sample(struct known *known, const struct check_event *event)
{
	struct known_queue *queue = known_find(known, event->queue);
	bool had_work;

	if (!queue)
		return "a sample of a queue that is not there was accepted";
	if (event->written < queue->written || event->completed < queue->completed || event->completed > event->written)
		return "a sample that runs backwards was accepted";
	if (event->written == queue->written && event->completed == queue->completed)
		return NULL;
	known_clock(known, event->core_ns);
	had_work = queue->has_work;
	queue->presumed = queue->announced = false;
	if (event->written != queue->written)
		queue->written_ns = known->core_ns;
	queue->written = event->written;
	queue->completed = event->completed;
	queue->has_work = event->written != event->completed || known->devices[queue->device].attr.fetch_counters;
	if (queue->has_work && !had_work)
		known_begin(known, queue);
	if (!queue->has_work) {
		queue->left_why = GP_WHY_NONE;
		if (had_work)
			queue->idle_since_ns = known->core_ns;
	}
	return NULL;
}

/* To be called before its gate changes with count -1, and after that with 1. */
static void known_count_moving(struct known *known, const struct known_queue *queue, int count)
{
	if (!queue->used || !known_moves(queue))
		return;
	known->moving[queue->device] += (uint32_t)count;
	known->moving_count += (uint32_t)count;
}

static void known_gate(struct known *known, struct known_queue *queue, enum gp_gate gate)
{
	if (gate == GP_GATE_OPEN && queue->gate != GP_GATE_OPEN && queue->gate != GP_GATE_CLOSING)
		queue->opened_ns = known->core_ns;
	if (gate == GP_GATE_CLOSED) {
		queue->left_why = GP_WHY_NONE;
		queue->aged = false;
	}
	known_count_moving(known, queue, -1);
	queue->gate = gate;
	known_count_moving(known, queue, 1);
}

/* Its gang got a member that cannot be put aside, or an order of its own ended: an open one is in quarantine by the end
 * of the call, a closed one is ordered open. */
static void known_follow(struct known *known, struct known_queue *queue)
{
	if (!known_must_follow(known, queue))
		return;
	if (queue->gate == GP_GATE_OPEN)
		queue->must_quarantine = true;
	else if (queue->gate == GP_GATE_CLOSED)
		known_gate(known, queue, GP_GATE_UNKNOWN);
}

/* The queue is in quarantine for its own orders now, or not any more: its gang follows. */
static void known_stick(struct known *known, struct known_queue *queue, bool stuck)
{
	uint32_t i;

	if (queue->stuck == stuck)
		return;
	queue->stuck = stuck;
	known->stuck_count = stuck ? known->stuck_count + 1 : known->stuck_count - 1;
	for (i = 0; i < known->queue_end && queue->attr.gang; i++) {
		struct known_queue *peer = &known->queues[i];

		if (!peer->used || peer->attr.gang != queue->attr.gang)
			continue;
		if (stuck)
			known_follow(known, peer);
		else if (peer->gate == GP_GATE_QUARANTINED && !peer->stuck && !known_must_follow(known, peer))
			known_gate(known, peer, GP_GATE_UNKNOWN);
	}
}

/* A queue is quarantined when a close fails too often, or at once with -EIO; if it may have closed it is ordered open
 * first. An open that fails for a known reason is repeated. */
static void known_fail(struct known *known, struct known_queue *queue, bool opens, int result)
{
	const struct known_device *device = &known->devices[queue->device];
	bool often, lost = !result;
	uint32_t shift;

	queue->fail_count++;
	queue->fail_result = result;
	often = queue->fail_count >= device->param.fail_max;
	shift = queue->fail_count < 10 ? queue->fail_count : 10;
	queue->hold_ns = known->core_ns + ((device->attr.close_ns + device->attr.open_ns + 1) << shift);
	if (opens)
		queue->must_quarantine = lost && (often || queue->condemned);
	else if (lost)
		queue->condemned |= often;
	else
		queue->must_quarantine = often || queue->condemned || result == -EIO;
	known_gate(known, queue, opens || lost ? GP_GATE_UNKNOWN : GP_GATE_OPEN);
	queue->fails_alone = queue->must_quarantine;
	queue->must_quarantine |= opens == lost && known_must_follow(known, queue);
	queue->left_why = queue->hold_why = GP_WHY_FAILED;
	known->devices[queue->device].disturbed_ns = known->core_ns;
}

static const char *known_ack(struct known *known, const struct check_event *event)
{
	struct known_queue *queue = known_find(known, event->queue);
	bool opens;

	if (!queue || !known_moves(queue) || queue->order_seq != event->seq)
		return "an acknowledgement was accepted though no such order is under way";
	opens = queue->gate == GP_GATE_OPENING;
	if (event->result || (queue->is_lost && !opens)) { /* one that was opened in its close has failed, too */
		known_fail(known, queue, opens, event->result);
		return NULL;
	}
	if (!opens)
		queue->fail_count = 0;
	if (queue->is_lost) {
		queue->hold_ns = 0;
		known_gate(known, queue, GP_GATE_UNKNOWN);
		return NULL;
	}
	queue->must_quarantine = queue->fails_alone = opens && queue->condemned;
	queue->hold_ns = 0;
	known_gate(known, queue, opens ? GP_GATE_OPEN : GP_GATE_CLOSED);
	known_follow(known, queue);
	return NULL;
}

static void known_sliced(struct known *known, const struct check_event *event)
{
	struct known_queue *queue = known_find(known, event->queue);

	if (queue && queue->slice_seq == event->seq)
		queue->slice_seq = 0;
}

/* What is under way on a device that stops may have been carried out, or not. */
static void known_stop(struct known *known, uint32_t device)
{
	struct known_queue *queue;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		queue = &known->queues[i];
		if (queue->used && queue->device == device && known_moves(queue))
			known_gate(known, queue, GP_GATE_UNKNOWN);
	}
	known->devices[device].stopped = true;
	known->devices[device].disturbed_ns = known->core_ns;
}

static void known_start(struct known *known, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		if (!known->queues[i].used || known->queues[i].device != device)
			continue;
		known->queues[i].fail_count = 0;
		known->queues[i].condemned = false;
		known_stick(known, &known->queues[i], false);
		if (known->queues[i].gate == GP_GATE_QUARANTINED)
			known_gate(known, &known->queues[i], GP_GATE_UNKNOWN);
	}
	known->devices[device].stopped = false;
	known->devices[device].disturbed_ns = known->core_ns;
}

static void known_order(struct known *known, const struct gp_plan *plan, const struct gp_order *order,
			enum gp_gate gate)
{
	struct known_queue *queue = known_find(known, order->queue);

	if (!queue)
		return;
	queue->order_why = order->why;
	queue->order_move = order->move;
	queue->order_seq = plan->seq;
	queue->is_lost = queue->is_own = false;
	queue->order_ns = known->core_ns;
	queue->prompt_until_ns = known->core_ns + 2 * plan->patience_ns;
	queue->is_awaited = order->is_awaited;
	if (order->why == GP_WHY_AGED) {
		queue->aged = true;
		queue->aged_again = queue->aged_ns && queue->completed == queue->aged_completed;
		queue->aged_ns = known->core_ns;
		queue->aged_completed = queue->completed;
	}
	known_gate(known, queue, gate);
}

static void known_plan(struct known *known, const struct gp_plan *plan)
{
	struct known_device *device = &known->devices[plan->device];
	uint32_t i;

	if (plan->device >= known->device_count || plan->close_count > GP_PLAN_MAX || plan->open_count > GP_PLAN_MAX ||
	    plan->slice_count > GP_PLAN_SLICE_MAX)
		return;
	for (i = 0; i < plan->slice_count; i++) {
		struct known_queue *queue = known_find(known, plan->slice[i].queue);

		if (queue) {
			queue->slice_seq = plan->seq;
			queue->slice_ns = known->core_ns;
		}
	}
	if (!(plan->close_count + plan->open_count))
		return;
	for (i = 0; i < plan->close_count; i++)
		known_order(known, plan, &plan->close[i], GP_GATE_CLOSING);
	for (i = 0; i < plan->open_count; i++)
		known_order(known, plan, &plan->open[i], GP_GATE_OPENING);
	device->close_count = plan->close_count;
	device->seq = plan->seq;
}

static const char *known_left_open(const struct known *known, struct known_queue *queue, enum gp_why why)
{
	const struct known_device *device = &known->devices[queue->device];
	bool waits;

	queue->left_why = why;
	if (why == GP_WHY_MIN_OPEN) {
		queue->hold_ns = queue->opened_ns + device->param.min_open_ns;
		queue->hold_why = why;
	}
	if (why == GP_WHY_MIN_OPEN && known->core_ns >= queue->opened_ns + device->param.min_open_ns)
		return "left open because opened a moment ago, which it was not";
	if (why == GP_WHY_SELF && !device->attr.switch_ns)
		return "left open because the device switches by itself, which it does not";
	if ((why == GP_WHY_FAILED || why == GP_WHY_TIMEOUT || why == GP_WHY_LOST) && !queue->fail_count)
		return "left open because an order failed, which none did";
	waits = queue->hold_why == GP_WHY_SHORT && known->core_ns <= queue->hold_ns;
	if (why == GP_WHY_SHORT && queue->short_tried)
		return waits ? NULL : "left open as short twice in one busy period";
	if (why == GP_WHY_SHORT) {
		/* Work that comes while the rest of the last period is waited for may be left open for that, too. */
		queue->short_again = waits && !queue->short_again;
		queue->short_tried = !queue->short_again;
		queue->hold_why = why;
		queue->hold_ns = known->core_ns + device->attr.close_ns + device->attr.close_ns / 4 + 1;
	}
	return NULL;
}

static const char *known_claim(struct known *known, const struct gp_trace_event *claim)
{
	struct known_queue *queue = known_find(known, claim->queue);
	struct known_device *device;

	if (claim->type == GP_TRACE_TOP && claim->device < KNOWN_DEVICE_MAX) {
		known->devices[claim->device].top = (int32_t)(claim->value & (GP_TRACE_TOP_DEADLINE - 1));
		known->devices[claim->device].has_deadline = claim->value & GP_TRACE_TOP_DEADLINE;
	}
	if (!queue)
		return NULL; /* of a queue that goes or is not yet reported */
	device = &known->devices[queue->device];
	switch ((enum gp_trace_type)claim->type) {
	case GP_TRACE_IDLE:
		if (queue->written != queue->completed)
			return "a queue is claimed to be idle though packets are not completed";
		queue->has_work = queue->presumed = false;
		queue->left_why = GP_WHY_NONE;
		queue->idle_since_ns = known->core_ns;
		break;
	case GP_TRACE_HINT: queue->announced = !queue->has_work; break;
	case GP_TRACE_HINT_MISSED: queue->announced = false; break;
	case GP_TRACE_FLOOR:
		known->behind[queue->client.index % KNOWN_CLIENT_MAX][queue->device] =
			claim->value ? ++known->behind_count[queue->device] : 0;
		break;
	case GP_TRACE_BUSY:
		queue->announced = false;
		/* It came and went between two samples; or, with counters at fetch, the core presumes that the last
		 * packet still runs. */
		if (queue->has_work)
			break;
		known_begin(known, queue);
		queue->has_work = true;
		queue->presumed = queue->written == queue->completed && device->attr.fetch_counters;
		break;
	case GP_TRACE_LEFT_OPEN: return known_left_open(known, queue, (enum gp_why)claim->why);
	case GP_TRACE_ORDER_FAILED:
		if (claim->why != GP_WHY_TIMEOUT)
			break; /* as it was told */
		if (!known_moves(queue) || known->core_ns < queue->order_ns + device->attr.ack_timeout_ns)
			return "an order was given up that is not under way, or before its time";
		known_fail(known, queue, queue->gate == GP_GATE_OPENING, 0);
		break;
	case GP_TRACE_SLICE_FAILED: queue->slice_failed_ns = known->core_ns; break;
	case GP_TRACE_QUARANTINE:
		if (!queue->must_quarantine)
			return "quarantined though its orders did not fail often enough, or before it is open";
		if (queue->fails_alone == (claim->why == GP_WHY_QUARANTINE))
			return "quarantined for another member of its gang, or for itself, which is not so";
		known_gate(known, queue, GP_GATE_QUARANTINED);
		queue->left_why = GP_WHY_QUARANTINE;
		known_stick(known, queue, queue->fails_alone);
		queue->must_quarantine = queue->condemned = queue->fails_alone = false;
		break;
	default: break;
	}
	return NULL;
}

static const char *known_settle(struct known *known)
{
	struct known_queue *queue;
	const char *wrong = NULL;
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		queue = &known->queues[i];
		if (!queue->used)
			continue;
		if (queue->must_quarantine)
			wrong = "an order failed too often and the queue is not quarantined";
		queue->must_quarantine = queue->fails_alone = false;
		if (!known->devices[queue->device].attr.fetch_counters &&
		    queue->has_work != (queue->written != queue->completed))
			wrong = "a queue is claimed to be busy though everything is completed, or the other way round";
	}
	return wrong;
}

/* With its last queue on the device a client has left it. */
static void known_forget_behind(struct known *known, const struct known_queue *gone)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++)
		if (known->queues[i].used && known->queues[i].device == gone->device &&
		    known->queues[i].client.index == gone->client.index)
			return;
	known->behind[gone->client.index % KNOWN_CLIENT_MAX][gone->device] = 0;
}

static const char *known_change(struct known *known, const struct check_event *event)
{
	struct known_queue *queue = known_find(known, event->queue);

	if (!queue)
		return "a change to a queue that is not there was accepted";
	switch (event->type) {
	case CHECK_QUEUE_REMOVE:
		known->devices[queue->device].disturbed_ns = known->core_ns;
		known_count_moving(known, queue, -1);
		queue->used = false;
		known->members++;
		known_stick(known, queue, false);
		known_forget_behind(known, queue);
		break;
	case CHECK_ATTR: queue->attr = *event->queue_attr; break;
	case CHECK_GATE_LOST:
		queue->is_lost |= known_moves(queue) && (queue->gate == GP_GATE_OPENING) != event->open;
		queue->is_own |= queue->gate == GP_GATE_CLOSED && event->open;
		if (queue->gate == GP_GATE_OPEN || queue->gate == GP_GATE_CLOSED)
			known_gate(known, queue, event->open ? GP_GATE_OPEN : GP_GATE_CLOSED);
		known->devices[queue->device].disturbed_ns = known->core_ns;
		break;
	default: break;
	}
	return NULL;
}

static void known_set_quiet(struct known *known, bool quiet)
{
	uint32_t i;

	for (i = 0; i < known->device_count; i++)
		known->devices[i].quiet = quiet;
}

const char *known_event(struct known *known, const struct check_event *event)
{
	/* A sample that says nothing new does not even count as a time seen. */
	if (event->type < CHECK_GPU_ADD && event->type != CHECK_SAMPLE)
		known_clock(known, event->core_ns);
	if (event->type <= CHECK_PLAN)
		known_set_quiet(known, false);
	if (event->type <= CHECK_TRACE) {
		known->version++;
		known->stale = true;
	}
	switch (event->type) {
	case CHECK_DEVICE: return known_add_device(known, event);
	case CHECK_CLIENT:
		if (event->client.index < KNOWN_CLIENT_MAX) {
			known->users[event->client.index] = event->user;
			known->members++;
			known->is_alone[event->client.index] = event->is_alone;
		}
		break;
	case CHECK_QUEUE_ADD: return known_add_queue(known, event);
	case CHECK_QUEUE_REMOVE:
	case CHECK_ATTR:
	case CHECK_GATE_LOST: return known_change(known, event);
	case CHECK_SAMPLE: return known_sample(known, event);
	case CHECK_ACK: return known_ack(known, event);
	case CHECK_SLICED: known_sliced(known, event); break;
	case CHECK_TRACE: return known_claim(known, event->trace);
	case CHECK_SETTLED: return known_settle(known);
	case CHECK_STOP: known_stop(known, event->device); break;
	case CHECK_START: known_start(known, event->device); break;
	case CHECK_COST:
		known->devices[event->device].attr.close_ns = event->close_ns;
		known->devices[event->device].attr.open_ns = event->open_ns;
		break;
	case CHECK_PLAN: known_plan(known, event->plan); break;
	case CHECK_QUIET: known_set_quiet(known, true); break;
	default: break;
	}
	return NULL;
}
