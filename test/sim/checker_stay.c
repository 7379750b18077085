/* SPDX-License-Identifier: MIT */
/*
 * Self-switching devices: who is held out for a request in pieces comes back when it is over, and who stays open below
 * another does so no longer than is stated.
 *   - A gate closed for pieces (GP_WHY_STAY) is closed while somebody who takes no turns has work, or had some no
 * longer ago than the core may wait for the next piece; and not where the device's setting forbids it.
 *   - A gate is closed for a wait (GP_WHY_WAITS) only if somebody who takes no turns has launched nothing for so long
 *     though his work is not done, or no longer after that than is stated; and not where a setting forbids it.
 *   - When nobody like that has had work for so long it opens, unless another batch client has the turn by then.
 *   - A batch client is left open below one of higher rank with work only until the device's visits to it would have
 *     cost as much as closing and opening it. If the higher one leaves an order unanswered, or is open only because it
 *     was opened a moment ago, the other has the turn, and when it loses that again this begins anew.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

#define STAY_ACT_NS   100000ull /* whenever the core has nothing to order it is decided: its timers are exact */
#define STAY_GAPS     2u        /* pauses shorter than so many switches never end a stretch */
#define STAY_QUIET_NS 500000ull /* who has launched nothing for so long may wait; seen to be over as late as that */
#define STAY_AFTER    2u        /* switches: the second wait that often follows a first is waited for so long */

struct stay_state {
	uint64_t closed_since_ns[KNOWN_QUEUE_MAX]; /* though the stretch is over, + 1; 0: it is not so */
	uint64_t quiet_ns[KNOWN_DEVICE_MAX];       /* somebody was last seen to wait, + 1 */
	uint64_t under_since_ns[KNOWN_DEVICE_MAX]; /* one is open below another, + 1 */
	uint64_t under_ns[KNOWN_DEVICE_MAX];       /* how long that is worth it, by the present costs … */
	uint64_t under_last_ns[KNOWN_DEVICE_MAX];  /* … and when it ends at the latest, if it began until now */
	uint64_t under_until_ns[KNOWN_DEVICE_MAX]; /* of the one that is open so */
};

static uint64_t stay_slack_ns(const struct checker_run *run)
{
	return STAY_ACT_NS + 2 * run->latency_ns;
}

static uint64_t stay_pause_ns(const struct known_device *device)
{
	uint64_t least_ns = STAY_GAPS * device->attr.switch_ns;

	return device->param.linger_max_ns > least_ns ? device->param.linger_max_ns : least_ns;
}

/* Somebody who takes no turns has work, or may have announced some, or had some a moment ago. */
static bool stay_has_upper(const struct known *known, uint32_t device)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != device || q->is_batch)
			continue;
		if (q->has_work || q->announced || q->presumed ||
		    q->idle_since_ns + stay_pause_ns(&known->devices[device]) >= known->core_ns)
			return true;
	}
	return false;
}

/* Another of those who take turns has it, or is about to get or lose it; or something of its own keeps it closed. */
static bool stay_is_excused(const struct known *known, const struct known_queue *queue)
{
	uint32_t i;

	if (queue->hold_ns >= known->core_ns || known_is_sliced(known, queue) || queue->attr.gang || queue->vague)
		return true;
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (!q->used || q->device != queue->device || q == queue)
			continue;
		if (known_moves(q) || q->aged || q->gate == GP_GATE_UNKNOWN ||
		    (q->client.index != queue->client.index && (q->has_work || q->announced) &&
		     q->gate != GP_GATE_CLOSED) ||
		    (q->client.index == queue->client.index && known_is_sliced(known, q)))
			return true;
	}
	return false;
}

static void stay_over(struct checker_run *run, struct stay_state *state, uint32_t index)
{
	const struct known *known = run->known;
	const struct known_queue *q = &known->queues[index];
	const struct known_device *device = &known->devices[q->device];

	if (!q->used || q->gate != GP_GATE_CLOSED || (q->order_why != GP_WHY_STAY && q->order_why != GP_WHY_WAITS) ||
	    !q->has_work || q->presumed || !q->is_batch || device->stopped || known_waits(known, q->device) ||
	    stay_has_upper(known, q->device) || stay_is_excused(known, q)) {
		state->closed_since_ns[index] = 0;
		return;
	}
	if (!state->closed_since_ns[index])
		state->closed_since_ns[index] = known->core_ns + 1;
	else if (known->core_ns - (state->closed_since_ns[index] - 1) > stay_slack_ns(run))
		checker_fail(
			run, &checker_stay,
			"at %llu ns: queue %u is held out for a request in pieces, which has been over since %llu ns",
			(unsigned long long)known->core_ns, (uint32_t)q->attr.tag,
			(unsigned long long)(state->closed_since_ns[index] - 1));
}

static bool stay_runs(const struct known_queue *q, uint32_t device)
{
	return q->used && q->device == device && q->is_batch && q->attr.kind == GP_KIND_COMPUTE && q->has_work &&
	       !q->presumed && !q->vague && !q->attr.gang && !q->aged && q->gate == GP_GATE_OPEN;
}

/* Its client leaves an order unanswered, so its turn is anybody's: nobody is below it until the answer comes. One that
 * is open only because it was opened a moment ago has no turn until that is over. */
static bool stay_is_late(const struct known *known, const struct known_queue *queue)
{
	uint32_t i;

	if (queue->left_why == GP_WHY_MIN_OPEN && known->core_ns < queue->hold_ns)
		return true;
	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];

		if (q->used && q->device == queue->device && q->client.index == queue->client.index && known_moves(q) &&
		    known->core_ns >= q->prompt_until_ns)
			return true;
	}
	return false;
}

/* One that is left to the device below one that takes turns, too. */
static const struct known_queue *stay_find_under(const struct known *known, uint32_t device)
{
	uint32_t i, k;

	for (i = 0; i < known->queue_end; i++)
		for (k = 0; stay_runs(&known->queues[i], device) && known->queues[i].left_why == GP_WHY_SELF &&
			    k < known->queue_end;
		     k++)
			if (stay_runs(&known->queues[k], device) && known->queues[k].rank > known->queues[i].rank &&
			    known->queues[k].client.index != known->queues[i].client.index &&
			    !stay_is_late(known, &known->queues[k]))
				return &known->queues[i];
	return NULL;
}

static uint64_t stay_under_ns(const struct known_device *device)
{
	uint64_t visit_ns = 2 * device->attr.switch_ns;

	return ((device->attr.close_ns + device->attr.open_ns) / visit_ns + 1) * (device->attr.mid_ns + visit_ns);
}

/* The core decides how long by what closing costs when it begins. That may be a while before the checker sees it, and
 * costs may have fallen since: but what began by costs of long ago is over. */
static void stay_cost(const struct known *known, struct stay_state *state, uint32_t index)
{
	uint64_t now_ns = stay_under_ns(&known->devices[index]), *last_ns = &state->under_last_ns[index];
	uint64_t until_ns = known->core_ns + (now_ns > state->under_ns[index] ? now_ns : state->under_ns[index]);

	state->under_ns[index] = now_ns;
	if (until_ns > *last_ns)
		*last_ns = until_ns;
}

static void stay_under(struct checker_run *run, struct stay_state *state, uint32_t index)
{
	const struct known *known = run->known;
	const struct known_device *device = &known->devices[index];
	const struct known_queue *q = stay_find_under(known, index);

	stay_cost(known, state, index);
	if (!q || device->stopped || known_waits(known, index)) {
		state->under_since_ns[index] = 0;
		return;
	}
	if (!state->under_since_ns[index]) {
		state->under_since_ns[index] = known->core_ns + 1;
		state->under_until_ns[index] = state->under_last_ns[index];
	} else if (known->core_ns > state->under_until_ns[index] + stay_slack_ns(run))
		checker_fail(run, &checker_stay,
			     "at %llu ns: queue %u has been open below another batch client with work since %llu ns",
			     (unsigned long long)known->core_ns, (uint32_t)q->attr.tag,
			     (unsigned long long)(state->under_since_ns[index] - 1));
}

/* Somebody whom it is allowed for waits, or was seen to a moment ago. */
static bool stay_has_waiting(const struct checker_run *run, struct stay_state *state, uint32_t index)
{
	const struct known *known = run->known;
	const struct known_device *device = &known->devices[index];
	uint64_t late_ns = STAY_QUIET_NS + STAY_AFTER * device->attr.switch_ns + stay_slack_ns(run);
	uint32_t i;

	for (i = 0; i < known->queue_end; i++) {
		const struct known_queue *q = &known->queues[i];
		enum gp_protect protect = q->attr.protect ? q->attr.protect : device->param.protect;

		if (q->used && q->device == index && !q->is_batch && protect == GP_PROTECT_BALANCED &&
		    q->written != q->completed && known->core_ns - q->written_ns >= STAY_QUIET_NS)
			state->quiet_ns[index] = known->core_ns + 1;
	}
	return state->quiet_ns[index] && known->core_ns - (state->quiet_ns[index] - 1) <= late_ns;
}

static void stay_waits(struct checker_run *run, struct stay_state *state, const struct gp_plan *plan)
{
	const struct known_device *device = &run->known->devices[plan->device];
	bool may = stay_has_waiting(run, state, plan->device) && device->attr.short_ns && device->attr.switch_ns &&
		   device->param.gather_ns != GP_GATHER_OFF;
	uint32_t i;

	for (i = 0; i < plan->close_count; i++)
		if (plan->close[i].why == GP_WHY_WAITS && !may)
			checker_fail(run, &checker_stay,
				     "at %llu ns: plan %llu holds queue %u out for a result that nobody waits for",
				     (unsigned long long)run->known->core_ns, (unsigned long long)plan->seq,
				     plan->close[i].queue.index);
}

static void stay_closes(struct checker_run *run, const struct gp_plan *plan)
{
	const struct known_device *device = &run->known->devices[plan->device];
	uint32_t i;

	for (i = 0; i < plan->close_count; i++)
		if (plan->close[i].why == GP_WHY_STAY &&
		    (!device->attr.short_ns || !device->attr.switch_ns ||
		     device->param.protect == GP_PROTECT_THROUGHPUT || !stay_has_upper(run->known, plan->device)))
			checker_fail(run, &checker_stay,
				     "at %llu ns: plan %llu holds queue %u out for a request that is not there",
				     (unsigned long long)run->known->core_ns, (unsigned long long)plan->seq,
				     plan->close[i].queue.index);
}

static void stay_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct stay_state *state = data;
	uint32_t i;

	if (event->type == CHECK_PLAN && event->plan->device < run->known->device_count) {
		known_refresh(run->known);
		stay_closes(run, event->plan);
		stay_waits(run, state, event->plan);
	}
	if (event->type == CHECK_COST && run->known->devices[event->device].attr.mid_ns)
		stay_cost(run->known, state, event->device);
	if (event->type != CHECK_QUIET)
		return;
	known_refresh(run->known);
	for (i = 0; i < run->known->queue_end; i++)
		if (run->known->devices[run->known->queues[i].device].attr.short_ns)
			stay_over(run, state, i);
	for (i = 0; i < run->known->device_count; i++) {
		if (run->known->devices[i].attr.short_ns)
			(void)stay_has_waiting(run, state, i);
		if (run->known->devices[i].attr.mid_ns)
			stay_under(run, state, i);
	}
}

const struct checker checker_stay = {
	.name = "stay",
	.promise = "who is held out for a request in pieces, or for a wait, comes back when that is over",
	.state_size = sizeof(struct stay_state),
	.event = stay_event,
};
