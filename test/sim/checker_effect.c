/* SPDX-License-Identifier: MIT */
/* No plan without effect: each order changes its gate as the checkers know it, names its queue and client once, and the
 * plan costs what it says. Claims that contradict what was said to the core are reported here too. */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

struct effect_state {
	uint32_t stamp[KNOWN_QUEUE_MAX], now;
	uint64_t seq[KNOWN_DEVICE_MAX];
};

static const char *effect_order(struct checker_run *run, struct effect_state *state, const struct gp_plan *plan,
				uint32_t i)
{
	bool opens = i >= plan->close_count;
	const struct gp_order *order = opens ? &plan->open[i - plan->close_count] : &plan->close[i];
	const struct known_queue *queue = known_find(run->known, order->queue);

	if (!queue || queue->device != plan->device)
		return "names a queue that is not there";
	if (queue->client.index != order->client.index || queue->client.generation != order->client.generation)
		return "names another client than its queue's";
	if (state->stamp[order->queue.index] == state->now)
		return "names a queue twice";
	state->stamp[order->queue.index] = state->now;
	if (queue->gate == GP_GATE_QUARANTINED)
		return "orders a queue that is in quarantine";
	if (!opens && queue->gate != GP_GATE_OPEN)
		return "closes a gate that is not open";
	if (opens && queue->gate != GP_GATE_CLOSED && queue->gate != GP_GATE_UNKNOWN)
		return "opens a gate that is not closed";
	if (order->why == GP_WHY_NONE || order->why >= GP_WHY_COUNT)
		return "has an order without a reason";
	return NULL;
}

static const char *effect_plan(struct checker_run *run, struct effect_state *state, const struct gp_plan *plan)
{
	const struct known_device *device = &run->known->devices[plan->device];
	const char *wrong = NULL;
	uint32_t i, cost;

	if (plan->device >= run->known->device_count || plan->close_count > GP_PLAN_MAX ||
	    plan->open_count > GP_PLAN_MAX)
		return "is out of bounds";
	if (!device->gates)
		return "of a policy that has none";
	if (!plan->close_count && !plan->open_count)
		return plan->announce || plan->slice_count ? NULL : "changes nothing";
	if (known_waits(run->known, plan->device))
		return "while another one is under way on its device";
	if (plan->seq <= state->seq[plan->device])
		return "has a number its device has seen already";
	state->seq[plan->device] = plan->seq;
	state->now++;
	for (i = 0; i < plan->close_count + plan->open_count && !wrong; i++)
		wrong = effect_order(run, state, plan, i);
	if (wrong)
		return wrong;
	cost = known_transactions(device, plan->close, plan->close_count);
	if (device->attr.unit != GP_UNIT_DEVICE || !plan->close_count)
		cost += known_transactions(device, plan->open, plan->open_count);
	return plan->transaction_count < cost ? "needs more transactions than it says" : NULL;
}

static void effect_event(struct checker_run *run, void *data, const struct check_event *event)
{
	const char *wrong;

	if (event->type != CHECK_PLAN)
		return;
	wrong = effect_plan(run, data, event->plan);
	if (wrong)
		checker_fail(run, &checker_effect, "at %llu ns: plan %llu of device %u (%u closes, %u opens) %s",
			     (unsigned long long)event->now_ns, (unsigned long long)event->plan->seq,
			     event->plan->device, event->plan->close_count, event->plan->open_count, wrong);
}

const struct checker checker_effect = {
	.name = "effect",
	.promise = "each order of each plan changes its gate, and no claim contradicts what was said",
	.state_size = sizeof(struct effect_state),
	.event = effect_event,
};
