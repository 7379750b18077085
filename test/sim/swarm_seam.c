/* SPDX-License-Identifier: MIT */
/*
 * Owns the two seams: every call of the simulator into the core and into the model goes through here (linker --wrap),
 * is told to the checkers, and is where planted bugs lie. Without a plant a call passes unchanged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"
#include "test/sim/swarm.h"

#define SEAM_MODEL_MAX 4096u /* queues a model has ever had: numbers are not reused within a run */

/* clang-format off */
int __real_gp_sched_device_add(struct gp_sched *, const struct gp_device_attr *, const char *, const struct gp_param *, uint32_t *);
int __real_gp_sched_device_set_cost(struct gp_sched *, uint32_t, uint64_t, uint64_t);
int __real_gp_sched_device_stop(struct gp_sched *, uint32_t, uint64_t);
int __real_gp_sched_device_start(struct gp_sched *, uint32_t, uint64_t);
int __real_gp_sched_client_add(struct gp_sched *, const struct gp_client_attr *, struct gp_client_id *);
int __real_gp_sched_client_remove(struct gp_sched *, struct gp_client_id, uint64_t);
int __real_gp_sched_queue_add(struct gp_sched *, struct gp_client_id, uint32_t, const struct gp_queue_attr *, uint64_t, struct gp_queue_id *);
int __real_gp_sched_queue_set_attr(struct gp_sched *, struct gp_queue_id, const struct gp_queue_attr *, uint64_t);
int __real_gp_sched_sample(struct gp_sched *, struct gp_queue_id, uint64_t, uint64_t, uint64_t);
int __real_gp_sched_hint(struct gp_sched *, struct gp_queue_id, uint64_t, uint64_t);
int __real_gp_sched_gate_lost(struct gp_sched *, struct gp_queue_id, bool, uint64_t);
bool __real_gp_sched_plan(struct gp_sched *, uint64_t, struct gp_plan *);
int __real_gp_sched_applied(struct gp_sched *, struct gp_queue_id, uint64_t, int, uint64_t);
int __real_gp_sched_sliced(struct gp_sched *, struct gp_queue_id, uint64_t, int, uint64_t);
int __real_gp_sched_switches(struct gp_sched *, struct gp_queue_id, uint32_t, uint64_t, uint64_t);
int __real_gp_gpu_set_timeslice(struct gp_gpu *, uint32_t, uint64_t, uint64_t);
int __real_gp_gpu_create(const struct gp_gpu_config *, struct gp_gpu **);
int __real_gp_gpu_queue_add(struct gp_gpu *, uint32_t, const struct gp_gpu_queue_attr *, uint64_t, uint32_t *);
int __real_gp_gpu_process_remove(struct gp_gpu *, uint32_t, uint64_t);
int __real_gp_gpu_reset(struct gp_gpu *, uint64_t);
int __real_gp_gpu_submit(struct gp_gpu *, uint32_t, const struct gp_gpu_packet *, uint64_t);
int __real_gp_gpu_transact(struct gp_gpu *, const struct gp_gpu_change *, uint32_t, uint64_t, uint64_t);
bool __real_gp_gpu_poll(struct gp_gpu *, struct gp_gpu_event *);

int __wrap_gp_sched_device_add(struct gp_sched *, const struct gp_device_attr *, const char *, const struct gp_param *, uint32_t *);
int __wrap_gp_sched_device_set_cost(struct gp_sched *, uint32_t, uint64_t, uint64_t);
int __wrap_gp_sched_device_stop(struct gp_sched *, uint32_t, uint64_t);
int __wrap_gp_sched_device_start(struct gp_sched *, uint32_t, uint64_t);
int __wrap_gp_sched_client_add(struct gp_sched *, const struct gp_client_attr *, struct gp_client_id *);
int __wrap_gp_sched_client_remove(struct gp_sched *, struct gp_client_id, uint64_t);
int __wrap_gp_sched_queue_add(struct gp_sched *, struct gp_client_id, uint32_t, const struct gp_queue_attr *, uint64_t, struct gp_queue_id *);
int __wrap_gp_sched_queue_set_attr(struct gp_sched *, struct gp_queue_id, const struct gp_queue_attr *, uint64_t);
int __wrap_gp_sched_sample(struct gp_sched *, struct gp_queue_id, uint64_t, uint64_t, uint64_t);
int __wrap_gp_sched_hint(struct gp_sched *, struct gp_queue_id, uint64_t, uint64_t);
int __wrap_gp_sched_gate_lost(struct gp_sched *, struct gp_queue_id, bool, uint64_t);
bool __wrap_gp_sched_plan(struct gp_sched *, uint64_t, struct gp_plan *);
int __wrap_gp_sched_applied(struct gp_sched *, struct gp_queue_id, uint64_t, int, uint64_t);
int __wrap_gp_sched_sliced(struct gp_sched *, struct gp_queue_id, uint64_t, int, uint64_t);
int __wrap_gp_sched_switches(struct gp_sched *, struct gp_queue_id, uint32_t, uint64_t, uint64_t);
int __wrap_gp_gpu_set_timeslice(struct gp_gpu *, uint32_t, uint64_t, uint64_t);
int __wrap_gp_gpu_create(const struct gp_gpu_config *, struct gp_gpu **);
int __wrap_gp_gpu_queue_add(struct gp_gpu *, uint32_t, const struct gp_gpu_queue_attr *, uint64_t, uint32_t *);
int __wrap_gp_gpu_process_remove(struct gp_gpu *, uint32_t, uint64_t);
int __wrap_gp_gpu_reset(struct gp_gpu *, uint64_t);
int __wrap_gp_gpu_submit(struct gp_gpu *, uint32_t, const struct gp_gpu_packet *, uint64_t);
int __wrap_gp_gpu_transact(struct gp_gpu *, const struct gp_gpu_change *, uint32_t, uint64_t, uint64_t);
bool __wrap_gp_gpu_poll(struct gp_gpu *, struct gp_gpu_event *);
/* clang-format on */

struct seam_queue {
	uint32_t device, model, process;
	bool alive;
};

static struct {
	struct checker_run *run;
	const struct plant *plant;
	struct gp_sim *sim;
	struct gp_sched *core;
	uint64_t trace_cursor;
	uint32_t gpu_count, queue_count;
	struct gp_gpu *gpus[SWARM_DEVICE_MAX];
	uint32_t number[SWARM_DEVICE_MAX][SEAM_MODEL_MAX]; /* model's queue → ours */
	struct seam_queue queues[SEAM_MODEL_MAX];
	struct gp_plan made; /* as the core made it, before a plant */
} seam;

void swarm_seam_begin(struct checker_run *run, const struct plant *plant)
{
	memset(&seam, 0, sizeof(seam));
	memset(seam.number, 0xff, sizeof(seam.number));
	seam.run = run;
	seam.plant = plant;
}

void swarm_seam_attach(struct gp_sim *sim)
{
	seam.sim = sim;
	seam.run->sim = sim;
}

void swarm_seam_end(void)
{
	seam.run = NULL;
}

static uint64_t seam_now_ns(void)
{
	return seam.sim ? gp_sim_now_ns(seam.sim) : 0;
}

static void seam_tell(struct check_event *event)
{
	if (!seam.run)
		return;
	if (!event->now_ns)
		event->now_ns = seam_now_ns();
	checker_run_event(seam.run, event);
}

void swarm_seam_tell(enum check_type type)
{
	struct check_event event = { .type = type };

	seam_tell(&event);
}

/* The claims that came with the call. */
static void seam_claims(uint64_t core_ns)
{
	struct gp_trace_event events[64];
	struct check_event event = { .type = CHECK_TRACE, .core_ns = core_ns };
	uint32_t i, count;

	do {
		count = gp_sched_trace_read(seam.core, &seam.trace_cursor, events, 64, NULL);
		for (i = 0; i < count; i++) {
			if (seam.plant && seam.plant->trace && !seam.plant->trace(&events[i]))
				continue;
			event.trace = &events[i];
			seam_tell(&event);
		}
	} while (count == 64);
}

static void seam_settle(uint64_t core_ns)
{
	struct check_event event = { .type = CHECK_SETTLED, .core_ns = core_ns };

	seam_claims(core_ns);
	seam_tell(&event);
}

/* Core. */

int __wrap_gp_sched_device_add(struct gp_sched *sched, const struct gp_device_attr *attr, const char *policy,
			       const struct gp_param *param, uint32_t *ret_device)
{
	struct gp_device_attr given_attr = *attr;
	struct gp_param given_param = *param;
	struct check_event event = { .type = CHECK_DEVICE, .attr = attr, .param = param, .policy = policy };
	int ret;

	if (seam.plant && seam.plant->device)
		seam.plant->device(&given_attr, &given_param);
	ret = __real_gp_sched_device_add(sched, &given_attr, policy, &given_param, ret_device);
	if (ret || !seam.run)
		return ret;
	seam.core = sched;
	seam.run->core = sched;
	event.device = *ret_device;
	seam_tell(&event);
	return 0;
}

int __wrap_gp_sched_device_set_cost(struct gp_sched *sched, uint32_t device, uint64_t close_ns, uint64_t open_ns)
{
	struct check_event event = { .type = CHECK_COST, .device = device, .close_ns = close_ns, .open_ns = open_ns };
	int ret;

	if (seam.plant && seam.plant->cost)
		seam.plant->cost(seam.run, &event, &close_ns, &open_ns);
	ret = __real_gp_sched_device_set_cost(sched, device, close_ns, open_ns);
	if (!ret)
		seam_tell(&event);
	return ret;
}

int __wrap_gp_sched_device_stop(struct gp_sched *sched, uint32_t device, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_STOP, .device = device, .core_ns = now_ns };
	int ret = __real_gp_sched_device_stop(sched, device, now_ns);

	if (!ret && !seam.run->known->devices[device].stopped)
		seam_tell(&event);
	seam_settle(now_ns);
	return ret;
}

int __wrap_gp_sched_device_start(struct gp_sched *sched, uint32_t device, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_START, .device = device, .core_ns = now_ns };
	int ret = __real_gp_sched_device_start(sched, device, now_ns);

	if (!ret && seam.run->known->devices[device].stopped)
		seam_tell(&event);
	seam_settle(now_ns);
	return ret;
}

int __wrap_gp_sched_client_add(struct gp_sched *sched, const struct gp_client_attr *attr,
			       struct gp_client_id *ret_client)
{
	struct gp_client_attr given_attr = *attr;
	struct check_event event = { .type = CHECK_CLIENT,
				     .user = attr->user,
				     .is_alone = attr->is_stuck_alone,
				     .core_ns = seam.run->known->core_ns };
	int ret;

	if (seam.plant && seam.plant->client)
		seam.plant->client(&given_attr);
	ret = __real_gp_sched_client_add(sched, &given_attr, ret_client);
	if (!ret) {
		event.client = *ret_client;
		seam_tell(&event);
	}
	return ret;
}

int __wrap_gp_sched_client_remove(struct gp_sched *sched, struct gp_client_id client, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_QUEUE_REMOVE, .core_ns = now_ns };
	int ret = __real_gp_sched_client_remove(sched, client, now_ns);
	const struct known_queue *queue;
	uint32_t i;

	for (i = 0; !ret && i < seam.run->known->queue_end; i++) {
		queue = &seam.run->known->queues[i];
		if (!queue->used || queue->client.index != client.index ||
		    queue->client.generation != client.generation)
			continue;
		event.queue = (struct gp_queue_id){ i, queue->generation };
		seam_tell(&event);
	}
	seam_settle(now_ns);
	return ret;
}

int __wrap_gp_sched_queue_add(struct gp_sched *sched, struct gp_client_id client, uint32_t device,
			      const struct gp_queue_attr *attr, uint64_t now_ns, struct gp_queue_id *ret_queue)
{
	struct check_event event = { .type = CHECK_QUEUE_ADD,
				     .device = device,
				     .client = client,
				     .queue_attr = attr,
				     .core_ns = now_ns };
	int ret = __real_gp_sched_queue_add(sched, client, device, attr, now_ns, ret_queue);

	if (!ret) {
		event.queue = *ret_queue;
		seam_tell(&event);
		seam_settle(now_ns);
	}
	return ret;
}

int __wrap_gp_sched_queue_set_attr(struct gp_sched *sched, struct gp_queue_id queue, const struct gp_queue_attr *attr,
				   uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_ATTR, .queue = queue, .queue_attr = attr, .core_ns = now_ns };
	int ret = __real_gp_sched_queue_set_attr(sched, queue, attr, now_ns);

	if (!ret) {
		seam_tell(&event);
		seam_settle(now_ns);
	}
	return ret;
}

int __wrap_gp_sched_sample(struct gp_sched *sched, struct gp_queue_id queue, uint64_t written, uint64_t completed,
			   uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_SAMPLE,
				     .queue = queue,
				     .written = written,
				     .completed = completed,
				     .core_ns = now_ns };
	const struct known_queue *known = known_find(seam.run->known, queue);
	bool is_new = known && (known->written != written || known->completed != completed);
	uint64_t said = completed;
	int ret;

	if (known && seam.plant && seam.plant->completed)
		said = seam.plant->completed((uint32_t)known->attr.tag, written, completed);
	seam.run->calls += said != completed;
	ret = __real_gp_sched_sample(sched, queue, written, said, now_ns);
	if (ret || !is_new)
		return ret;
	seam_tell(&event);
	seam_settle(now_ns);
	return ret;
}

int __wrap_gp_sched_hint(struct gp_sched *sched, struct gp_queue_id queue, uint64_t in_ns, uint64_t now_ns)
{
	int ret = __real_gp_sched_hint(sched, queue, in_ns, now_ns);

	if (!ret)
		seam_settle(now_ns);
	return ret;
}

int __wrap_gp_sched_gate_lost(struct gp_sched *sched, struct gp_queue_id queue, bool open, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_GATE_LOST, .queue = queue, .open = open, .core_ns = now_ns };
	int ret = __real_gp_sched_gate_lost(sched, queue, open, now_ns);

	if (!ret) {
		seam_tell(&event);
		seam_settle(now_ns);
	}
	return ret;
}

static void seam_applied(struct gp_sched *sched, struct gp_queue_id queue, uint64_t seq, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_ACK, .queue = queue, .seq = seq, .core_ns = now_ns };

	if (!__real_gp_sched_applied(sched, queue, seq, 0, now_ns))
		seam_tell(&event);
}

/* What is left of the plan after the plant. The core is told that the rest was carried out, too: a lie. */
static void seam_send(struct gp_sched *sched, const struct gp_plan *made, struct gp_plan *sent, uint64_t now_ns)
{
	uint32_t i;

	*sent = *made;
	sent->close_count = sent->open_count = 0;
	for (i = 0; i < made->close_count; i++) {
		if (seam.plant->send(seam.run, made, &made->close[i], false))
			sent->close[sent->close_count++] = made->close[i];
		else
			seam_applied(sched, made->close[i].queue, made->seq, now_ns);
	}
	for (i = 0; i < made->open_count; i++) {
		if (seam.plant->send(seam.run, made, &made->open[i], true))
			sent->open[sent->open_count++] = made->open[i];
		else
			seam_applied(sched, made->open[i].queue, made->seq, now_ns);
	}
}

bool __wrap_gp_sched_plan(struct gp_sched *sched, uint64_t now_ns, struct gp_plan *ret_plan)
{
	bool idles = seam.plant && seam.plant->idles && seam.plant->idles(seam.run);
	bool any = !idles && __real_gp_sched_plan(sched, now_ns, ret_plan);
	struct check_event event = { .type = any ? CHECK_PLAN : CHECK_QUIET, .plan = ret_plan, .core_ns = now_ns };

	seam_claims(now_ns);
	if (any && seam.plant && seam.plant->send)
		seam.made = *ret_plan;
	if (any && seam.plant && seam.plant->make)
		seam.plant->make(seam.run, ret_plan);
	seam_tell(&event);
	if (any && seam.plant && seam.plant->send)
		seam_send(sched, &seam.made, ret_plan, now_ns);
	seam_settle(now_ns);
	return any;
}

int __wrap_gp_sched_applied(struct gp_sched *sched, struct gp_queue_id queue, uint64_t seq, int result, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_ACK,
				     .queue = queue,
				     .seq = seq,
				     .result = result,
				     .core_ns = now_ns };
	int ret = __real_gp_sched_applied(sched, queue, seq, result, now_ns);

	if (!ret)
		seam_tell(&event);
	seam_settle(now_ns);
	return ret;
}

int __wrap_gp_sched_sliced(struct gp_sched *sched, struct gp_queue_id queue, uint64_t seq, int result, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_SLICED,
				     .queue = queue,
				     .seq = seq,
				     .result = result,
				     .core_ns = now_ns };
	int ret = __real_gp_sched_sliced(sched, queue, seq, result, now_ns);

	if (!ret)
		seam_tell(&event);
	seam_settle(now_ns);
	return ret;
}

int __wrap_gp_sched_switches(struct gp_sched *sched, struct gp_queue_id queue, uint32_t count, uint64_t counted_ns,
			     uint64_t now_ns)
{
	int ret = __real_gp_sched_switches(sched, queue, count, counted_ns, now_ns);

	seam_settle(now_ns);
	return ret;
}

/* Model. */

static uint32_t seam_device(const struct gp_gpu *gpu)
{
	uint32_t i = 0;

	while (i < seam.gpu_count && seam.gpus[i] != gpu)
		i++;
	return i;
}

int __wrap_gp_gpu_create(const struct gp_gpu_config *config, struct gp_gpu **ret_gpu)
{
	int ret = __real_gp_gpu_create(config, ret_gpu);

	if (!ret && seam.gpu_count < SWARM_DEVICE_MAX)
		seam.gpus[seam.gpu_count++] = *ret_gpu;
	return ret;
}

int __wrap_gp_gpu_queue_add(struct gp_gpu *gpu, uint32_t process, const struct gp_gpu_queue_attr *attr, uint64_t now_ns,
			    uint32_t *ret_queue)
{
	struct check_event event = { .type = CHECK_GPU_ADD,
				     .device = seam_device(gpu),
				     .kind = attr->kind,
				     .process = process,
				     .gpu_queue = seam.queue_count };
	int ret = __real_gp_gpu_queue_add(gpu, process, attr, now_ns, ret_queue);

	if (ret || *ret_queue >= SEAM_MODEL_MAX || seam.queue_count == SEAM_MODEL_MAX)
		return ret ? ret : -ENOSPC;
	seam.number[event.device][*ret_queue] = seam.queue_count;
	seam.queues[seam.queue_count++] = (struct seam_queue){ event.device, *ret_queue, process, true };
	seam_tell(&event);
	return 0;
}

static void seam_remove(uint32_t device, uint32_t process, bool all)
{
	struct check_event event = { .type = CHECK_GPU_REMOVE, .device = device };
	uint32_t i;

	for (i = 0; i < seam.queue_count; i++) {
		if (!seam.queues[i].alive || seam.queues[i].device != device ||
		    (!all && seam.queues[i].process != process))
			continue;
		seam.queues[i].alive = false;
		event.gpu_queue = i;
		seam_tell(&event);
	}
}

int __wrap_gp_gpu_process_remove(struct gp_gpu *gpu, uint32_t process, uint64_t now_ns)
{
	int ret = __real_gp_gpu_process_remove(gpu, process, now_ns);

	if (!ret)
		seam_remove(seam_device(gpu), process, false);
	return ret;
}

int __wrap_gp_gpu_reset(struct gp_gpu *gpu, uint64_t now_ns)
{
	int ret = __real_gp_gpu_reset(gpu, now_ns);

	if (!ret)
		seam_remove(seam_device(gpu), 0, true);
	return ret;
}

int __wrap_gp_gpu_submit(struct gp_gpu *gpu, uint32_t queue, const struct gp_gpu_packet *packet, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_SUBMIT, .device = seam_device(gpu), .packet = packet };
	int ret = __real_gp_gpu_submit(gpu, queue, packet, now_ns);

	if (ret)
		return ret;
	event.gpu_queue = seam.number[event.device][queue];
	seam_tell(&event);
	return 0;
}

int __wrap_gp_gpu_transact(struct gp_gpu *gpu, const struct gp_gpu_change *changes, uint32_t change_count, uint64_t seq,
			   uint64_t now_ns)
{
	struct gp_gpu_change seen[2 * GP_PLAN_MAX];
	struct check_event event = { .type = CHECK_TRANSACT,
				     .device = seam_device(gpu),
				     .seq = seq,
				     .changes = seen,
				     .count = change_count };
	uint32_t i;
	int ret = __real_gp_gpu_transact(gpu, changes, change_count, seq, now_ns);

	if (ret || seq == PLANT_SEQ)
		return ret;
	for (i = 0; i < change_count; i++)
		seen[i] = (struct gp_gpu_change){ .queue = seam.number[event.device][changes[i].queue],
						  .open = changes[i].open };
	seam_tell(&event);
	return 0;
}

int __wrap_gp_gpu_set_timeslice(struct gp_gpu *gpu, uint32_t process, uint64_t slice_ns, uint64_t now_ns)
{
	struct check_event event = { .type = CHECK_SLICE,
				     .device = seam_device(gpu),
				     .process = process,
				     .slice_ns = slice_ns };
	int ret;

	if (seam.plant && seam.plant->slice && !seam.plant->slice(seam.run, slice_ns))
		return 0;
	ret = __real_gp_gpu_set_timeslice(gpu, process, slice_ns, now_ns);
	if (!ret)
		seam_tell(&event);
	return ret;
}

/* After the checkers know that a transaction closed gates. */
static void seam_plant_closed(struct gp_gpu *gpu, const bool *was_closed, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < seam.queue_count; i++) {
		if (seam.queues[i].alive && seam.gpus[seam.queues[i].device] == gpu &&
		    seam.run->truth->queues[i].closed && !was_closed[i])
			seam.plant->closed(gpu, seam.queues[i].model, now_ns);
	}
}

bool __wrap_gp_gpu_poll(struct gp_gpu *gpu, struct gp_gpu_event *ret_event)
{
	struct check_event event;
	bool plants = seam.plant && seam.plant->closed, was_closed[SEAM_MODEL_MAX];
	uint32_t i;

	do {
		if (!__real_gp_gpu_poll(gpu, ret_event))
			return false;
	} while (plants && (ret_event->type == GP_GPU_EVENT_KILLED ||
			    (ret_event->type == GP_GPU_EVENT_TRANSACTION && ret_event->value == PLANT_SEQ)));
	event = (struct check_event){ .type = CHECK_GPU,
				      .device = seam_device(gpu),
				      .gpu_event = ret_event,
				      .now_ns = ret_event->time_ns };
	event.gpu_queue = ret_event->type <= GP_GPU_EVENT_KILLED && ret_event->queue < SEAM_MODEL_MAX ?
				  seam.number[event.device][ret_event->queue] :
				  CHECKER_NONE;
	for (i = 0; plants && i < seam.queue_count; i++)
		was_closed[i] = seam.run->truth->queues[i].closed;
	seam_tell(&event);
	if (plants && ret_event->type == GP_GPU_EVENT_TRANSACTION)
		seam_plant_closed(gpu, was_closed, seam_now_ns());
	return true;
}
