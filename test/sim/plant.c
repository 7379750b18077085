/* SPDX-License-Identifier: MIT */
/* Owns the planted bugs. Each is a lie small enough that one checker must see it. */
#include <string.h>
#include "test/sim/checker_known.h"
#include "test/sim/plant.h"

/* The context save loses what was saved: the kernel runs again from its first workgroup. */
static void plant_rerun(struct gp_gpu *gpu, uint32_t queue, uint64_t now_ns)
{
	(void)gp_gpu_kill(gpu, queue, now_ns);
}

/* The gate opens again by itself, and nobody is told. */
static void plant_leak(struct gp_gpu *gpu, uint32_t queue, uint64_t now_ns)
{
	struct gp_gpu_change change = { .queue = queue, .open = true };

	(void)gp_gpu_transact(gpu, &change, 1, PLANT_SEQ, now_ns);
}

static bool plant_send_no_idle_close(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order,
				     bool opens)
{
	return opens || order->why != GP_WHY_IDLE;
}

/* A gate that is open already is ordered open once more. */
static void plant_make_again(struct checker_run *run, struct gp_plan *plan)
{
	const struct known_queue *queue;
	uint32_t i;

	for (i = 0; i < run->known->queue_end && plan->open_count && plan->open_count < GP_PLAN_MAX; i++) {
		queue = &run->known->queues[i];
		if (!queue->used || queue->device != plan->device || queue->gate != GP_GATE_OPEN)
			continue;
		plan->open[plan->open_count++] = (struct gp_order){ .queue = { i, queue->generation },
								    .client = queue->client,
								    .why = GP_WHY_WORK };
		return;
	}
}

static uint64_t plant_completed_all(uint32_t gpu_queue, uint64_t written, uint64_t completed)
{
	return gpu_queue % 2 ? completed : written;
}

static void plant_device_slots(struct gp_device_attr *attr, struct gp_param *param)
{
	attr->slot_count = 0;
}

static void plant_device_crowd(struct gp_device_attr *attr, struct gp_param *param)
{
	param->batch_clients = 8;
}

static bool plant_trace_drop(struct gp_trace_event *event)
{
	return event->type != GP_TRACE_INVERSION || event->time_ns % 8;
}

static bool plant_trace_shorten(struct gp_trace_event *event)
{
	if (event->type == GP_TRACE_INVERSION && event->time_ns % 8 == 0)
		event->value /= 2;
	return true;
}

static bool plant_send_no_aged(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order,
			       bool opens)
{
	return !opens || order->why != GP_WHY_AGED;
}

static bool plant_send_no_floor(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order,
				bool opens)
{
	return !opens || order->why != GP_WHY_FLOOR;
}

static bool plant_send_no_open(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order,
			       bool opens)
{
	const struct known_queue *queue = known_find(run->known, order->queue);

	return !opens || !queue || queue->attr.tag % 3 || run->now_ns < 20000000;
}

static bool plant_send_apart(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order,
			     bool opens)
{
	return !opens || order->why != GP_WHY_GANG || plan->device == 0;
}

static void plant_make_own_move(struct checker_run *run, struct gp_plan *plan)
{
	uint32_t i;

	/* Only a number nobody else has; nobody but a checker reads it. */
	for (i = 0; i < plan->open_count; i++)
		plan->open[i].move += (uint64_t)(plan->device + 1) << 40;
}

#define PLANT_GANG_MAX 1024u /* numbers of gangs are below */

static bool plant_is_all_open(const struct known *known, uint32_t gang)
{
	uint32_t i;

	for (i = 0; i < known->queue_end; i++)
		if (known->queues[i].used && known->queues[i].attr.gang == gang &&
		    known->queues[i].gate != GP_GATE_OPEN)
			return false;
	return true;
}

/* The same, only for a gang that a stuck member kept open, when it opens for the first time after that. */
static void plant_make_first_move(struct checker_run *run, struct gp_plan *plan)
{
	static uint64_t now_ns;
	static bool was_kept[PLANT_GANG_MAX];
	const struct known_queue *q;
	uint32_t i, gang;

	if (run->now_ns < now_ns) /* another world */
		memset(was_kept, 0, sizeof(was_kept));
	now_ns = run->now_ns;
	for (i = 0; i < run->known->queue_end; i++) {
		q = &run->known->queues[i];
		gang = q->attr.gang;
		if (gang && gang < PLANT_GANG_MAX && q->used)
			was_kept[gang] = known_keeps_gang(run->known, q) ||
					 (was_kept[gang] && !plant_is_all_open(run->known, gang));
	}
	for (i = 0; i < plan->open_count; i++) {
		q = known_find(run->known, plan->open[i].queue);
		if (q && plan->open[i].why == GP_WHY_GANG && q->attr.gang < PLANT_GANG_MAX && was_kept[q->attr.gang])
			plan->open[i].move += (uint64_t)(plan->device + 1) << 40;
	}
}

static void plant_device_spend(struct gp_device_attr *attr, struct gp_param *param)
{
	param->overhead_permille = 1000;
}

/* As if a device had one plan at a time, which is over when everybody has answered. */
static bool plant_idles_until_answered(struct checker_run *run)
{
	const struct known_queue *q;
	uint32_t i;

	for (i = 0; i < run->known->queue_end; i++) {
		q = &run->known->queues[i];
		if (q->used && known_moves(q) &&
		    run->now_ns < q->order_ns + run->known->devices[q->device].attr.ack_timeout_ns)
			return true;
	}
	return false;
}

static void plant_make_patient(struct checker_run *run, struct gp_plan *plan)
{
	plan->patience_ns *= 64;
}

/* Whoever is to be left alone keeps the others of its gang. */
static void plant_client_keeps(struct gp_client_attr *attr)
{
	attr->is_stuck_alone = false;
}

/* The core does not know whose a client is. */
static void plant_client_own(struct gp_client_attr *attr)
{
	attr->user = 0;
}

static void plant_device_restless(struct gp_device_attr *attr, struct gp_param *param)
{
	param->rest_ns = GP_DURATION_NS_MAX;
}

static void plant_device_dozes(struct gp_device_attr *attr, struct gp_param *param)
{
	param->rest_ns = 100000;
}

/* A switch seems so dear that the next piece is waited for far longer than it may be: a stay outlives its request. */
static void plant_device_lingers(struct gp_device_attr *attr, struct gp_param *param)
{
	attr->switch_ns *= 50;
}

/* Closing seems to be worth far more visits than it is. */
static void plant_device_below(struct gp_device_attr *attr, struct gp_param *param)
{
	attr->mid_ns *= 50;
}

/* Closing was dear at first. The core does not hear that it is not any more. */
static void plant_cost_dear(struct checker_run *run, struct check_event *cost, uint64_t *close_ns, uint64_t *open_ns)
{
	*close_ns *= 8;
	*open_ns *= 8;
	if (run->now_ns < 20000000) {
		cost->close_ns = *close_ns;
		cost->open_ns = *open_ns;
	}
}

/* The core does not know what is protected. */
static void plant_device_eager(struct gp_device_attr *attr, struct gp_param *param)
{
	param->protect = GP_PROTECT_BALANCED;
}

static void plant_device_age(struct gp_device_attr *attr, struct gp_param *param)
{
	param->age_permille = 1000;
}

/* The core believes that it may preempt far less than it may. */
static void plant_device_miser(struct gp_device_attr *attr, struct gp_param *param)
{
	param->overhead_permille = 10;
	param->burst = 1;
}

int __real_gp_sched_sample(struct gp_sched *, struct gp_queue_id, uint64_t, uint64_t, uint64_t);

/* Whoever claims very much work is believed to have completed some of it in each aged turn for which others yield. */
static void plant_make_credit(struct checker_run *run, struct gp_plan *plan)
{
	static uint64_t credit;
	const struct known_queue *queue;
	bool yields = false;
	uint32_t i;

	for (i = 0; i < plan->close_count; i++)
		yields |= plan->close[i].why == GP_WHY_YIELD;
	for (i = 0; yields && i < plan->open_count; i++) {
		queue = known_find(run->known, plan->open[i].queue);
		if (plan->open[i].why == GP_WHY_AGED && queue && queue->written >= 1000000)
			(void)__real_gp_sched_sample((struct gp_sched *)run->core, plan->open[i].queue, queue->written,
						     queue->completed + ++credit, run->known->core_ns);
	}
}

/* Whose turn is over stays open, beside the next one. */
static bool plant_send_no_turn_end(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order,
				   bool opens)
{
	return opens || order->why != GP_WHY_TURN || !run->known->devices[plan->device].attr.short_ns;
}

static bool plant_slice_only_short(struct checker_run *run, uint64_t slice_ns)
{
	return slice_ns < (uint64_t)gp_desc_get(run->desc, GP_DESC_TIMESLICE_NS);
}

/* Nothing says that the ranks of a job belong together. */
static void plant_world_loners(struct gp_workload *workload)
{
	uint32_t i;

	for (i = 0; i < workload->client_count; i++)
		if (workload->clients[i].meets)
			workload->clients[i].gang = 0;
}

/* The peers of a rank that cannot be put aside stay so. */
static bool plant_send_no_company(struct checker_run *run, const struct gp_plan *plan, const struct gp_order *order,
				  bool opens)
{
	return !opens || order->why != GP_WHY_QUARANTINE;
}

/* Nor that a client's queues on several devices do. */
static void plant_world_halves(struct gp_workload *workload)
{
	uint32_t i;

	for (i = 0; i < workload->client_count; i++)
		if (!workload->clients[i].meets && __builtin_popcountll(workload->clients[i].devices) > 1)
			workload->clients[i].gang = 0;
}

/* Whose turn is over is said to be held out for a request, though nobody above has one. */
static void plant_make_false_stay(struct checker_run *run, struct gp_plan *plan)
{
	uint32_t i;

	(void)run;
	for (i = 0; i < plan->close_count; i++)
		if (plan->close[i].why == GP_WHY_TURN)
			plan->close[i].why = GP_WHY_STAY;
}

/* Nor waits anybody. */
static void plant_make_false_wait(struct checker_run *run, struct gp_plan *plan)
{
	uint32_t i;

	(void)run;
	for (i = 0; i < plan->close_count; i++)
		if (plan->close[i].why == GP_WHY_TURN)
			plan->close[i].why = GP_WHY_WAITS;
}

const struct plant plant_list[] = {
	{ .name = "rerun",
	  .caught_by = &checker_once,
	  .closed = plant_rerun,
	  .what = "a closed queue loses its saved progress" },
	{ .name = "leak",
	  .caught_by = &checker_closed,
	  .closed = plant_leak,
	  .what = "a closed gate opens again by itself" },
	{ .name = "late",
	  .caught_by = &checker_late,
	  .send = plant_send_no_idle_close,
	  .what = "idle lower gates are not closed" },
	{ .name = "again",
	  .caught_by = &checker_effect,
	  .make = plant_make_again,
	  .what = "an open gate is ordered open" },
	{ .name = "blind",
	  .caught_by = &checker_effect,
	  .completed = plant_completed_all,
	  .what = "work is declared done that is not" },
	{ .name = "slots",
	  .caught_by = &checker_limits,
	  .device = plant_device_slots,
	  .what = "the core knows of no slot limit" },
	{ .name = "crowd",
	  .caught_by = &checker_limits,
	  .device = plant_device_crowd,
	  .what = "eight batch clients are open at once" },
	{ .name = "unlogged",
	  .caught_by = &checker_inversion,
	  .trace = plant_trace_drop,
	  .what = "some inversions are not logged" },
	{ .name = "shorter",
	  .caught_by = &checker_inversion,
	  .trace = plant_trace_shorten,
	  .what = "some inversions are logged too short" },
	{ .name = "forever",
	  .caught_by = &checker_starvation,
	  .send = plant_send_no_aged,
	  .what = "an aged queue is not opened" },
	{ .name = "stuck",
	  .caught_by = &checker_drain,
	  .send = plant_send_no_open,
	  .what = "some gates never open again" },
	{ .name = "apart",
	  .caught_by = &checker_gang,
	  .send = plant_send_apart,
	  .what = "a gang opens on one device only" },
	{ .name = "strangers",
	  .caught_by = &checker_gang,
	  .make = plant_make_own_move,
	  .what = "a gang's orders share no move number" },
	{ .name = "shaken",
	  .caught_by = &checker_gang,
	  .kind = SWARM_RANKS,
	  .make = plant_make_first_move,
	  .what = "the same, after a stuck member kept it open" },
	{ .name = "loners",
	  .caught_by = &checker_spin,
	  .kind = SWARM_RANKS,
	  .world = plant_world_loners,
	  .what = "the ranks of a job are not known as a gang" },
	{ .name = "deserted",
	  .caught_by = &checker_spin,
	  .kind = SWARM_RANKS,
	  .send = plant_send_no_company,
	  .what = "a rank in quarantine spins for the others" },
	{ .name = "company",
	  .caught_by = &checker_effect,
	  .kind = SWARM_ALONE,
	  .client = plant_client_keeps,
	  .what = "a rank that is to be left alone in quarantine keeps its gang open" },
	{ .name = "halves",
	  .caught_by = &checker_spin,
	  .world = plant_world_halves,
	  .what = "a client on several devices is no gang" },
	{ .name = "pretext",
	  .caught_by = &checker_stay,
	  .kind = SWARM_SELF,
	  .make = plant_make_false_stay,
	  .what = "a turn ends for a request that is not there" },
	{ .name = "waits",
	  .caught_by = &checker_stay,
	  .kind = SWARM_SELF,
	  .make = plant_make_false_wait,
	  .what = "a turn ends for a result that nobody waits for" },
	{ .name = "eager",
	  .caught_by = &checker_stay,
	  .kind = SWARM_SELF,
	  .device = plant_device_eager,
	  .what = "who asks for throughput holds others out" },
	{ .name = "many",
	  .caught_by = &checker_age,
	  .kind = SWARM_HOSTILE,
	  .client = plant_client_own,
	  .what = "each client ages for itself, whoever owns it" },
	{ .name = "flood",
	  .caught_by = &checker_age,
	  .kind = SWARM_HOSTILE,
	  .device = plant_device_age,
	  .what = "ageing may take the whole device" },
	{ .name = "miser",
	  .caught_by = &checker_age,
	  .kind = SWARM_HOSTILE,
	  .device = plant_device_miser,
	  .what = "aged turns go on for a budget that is not used up" },
	{ .name = "credit",
	  .caught_by = &checker_age,
	  .kind = SWARM_HOSTILE,
	  .make = plant_make_credit,
	  .what = "who completes nothing does not back off" },
	{ .name = "twins",
	  .seed_max = 200,
	  .caught_by = &checker_slice,
	  .kind = SWARM_SELF,
	  .send = plant_send_no_turn_end,
	  .what = "two short slices are open at once" },
	{ .name = "keep",
	  .seed_max = 200,
	  .caught_by = &checker_slice,
	  .kind = SWARM_SELF,
	  .slice = plant_slice_only_short,
	  .what = "a short slice is never given back" },
	{ .name = "lingers",
	  .caught_by = &checker_stay,
	  .kind = SWARM_SELF,
	  .device = plant_device_lingers,
	  .what = "who is held out for a request is held out after it" },
	{ .name = "below",
	  .caught_by = &checker_stay,
	  .kind = SWARM_SELF,
	  .device = plant_device_below,
	  .what = "who stays open below another does so for ever" },
	{ .name = "dear",
	  .caught_by = &checker_stay,
	  .kind = SWARM_SELF,
	  .cost = plant_cost_dear,
	  .what = "who stays open below another does so by old costs" },
	{ .name = "beggar",
	  .caught_by = &checker_floor,
	  .kind = SWARM_FLOORS,
	  .send = plant_send_no_floor,
	  .what = "who is behind its share is not opened" },
	{ .name = "spend",
	  .caught_by = &checker_budget,
	  .device = plant_device_spend,
	  .what = "preemption has no budget" },
	{ .name = "hostage",
	  .caught_by = &checker_owed,
	  .idles = plant_idles_until_answered,
	  .what = "nothing is planned until everybody answered" },
	{ .name = "patient",
	  .caught_by = &checker_owed,
	  .make = plant_make_patient,
	  .what = "plans wait far too long for an answer" },
	{ .name = "restless",
	  .caught_by = &checker_rest,
	  .device = plant_device_restless,
	  .what = "others are held out for those who have no work" },
	{ .name = "dozes",
	  .caught_by = &checker_rest,
	  .device = plant_device_dozes,
	  .what = "a priority counts as at rest too soon" },
};

const uint32_t plant_count = sizeof(plant_list) / sizeof(plant_list[0]);

const struct plant *plant_find(const char *name)
{
	uint32_t i;

	for (i = 0; i < plant_count; i++) {
		if (!strcmp(plant_list[i].name, name))
			return &plant_list[i];
	}
	return NULL;
}
