/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Lays out the caller's memory and adds devices. Checks everything that comes from outside for that. */
#include "core/calls.h"

struct sched_layout {
	size_t devices, clients, queues, seats, shares, share_hash, gangs, trace, heaps, total;
};

static size_t sched_place(size_t *offset, size_t size, size_t count)
{
	size_t at = (*offset + 15u) & ~(size_t)15u;

	*offset = at + size * count;
	return at;
}

static bool sched_layout(const struct gp_limits *limits, struct sched_layout *ret_layout)
{
	size_t offset = sizeof(struct gp_sched);

	if (!limits->device_count || limits->device_count > GP_DEVICE_MAX || !limits->client_count ||
	    limits->client_count > GP_CLIENT_MAX || !limits->queue_count || limits->queue_count > GP_QUEUE_MAX ||
	    limits->gang_count > GP_GANG_MAX || !limits->trace_count || limits->trace_count > GP_TRACE_MAX ||
	    (limits->trace_count & (limits->trace_count - 1)))
		return false;
	ret_layout->devices = sched_place(&offset, sizeof(struct gp_device), limits->device_count);
	ret_layout->clients = sched_place(&offset, sizeof(struct gp_core_client), limits->client_count);
	ret_layout->queues = sched_place(&offset, sizeof(struct gp_queue), limits->queue_count);
	ret_layout->seats =
		sched_place(&offset, sizeof(struct gp_seat), limits->queue_count); /* a seat has at least one queue */
	ret_layout->shares = sched_place(&offset, sizeof(struct gp_share), limits->queue_count);
	ret_layout->share_hash = sched_place(&offset, sizeof(uint32_t), limits->queue_count);
	ret_layout->gangs = sched_place(&offset, sizeof(struct gp_gang), limits->gang_count);
	ret_layout->trace = sched_place(&offset, sizeof(struct gp_trace_event), limits->trace_count);
	ret_layout->heaps = sched_place(&offset, sizeof(uint32_t) * GP_HEAP_COUNT, limits->queue_count);
	ret_layout->total = offset;
	return true;
}

size_t gp_sched_size(const struct gp_limits *limits)
{
	struct sched_layout layout;

	return sched_layout(limits, &layout) ? layout.total : 0;
}

int gp_sched_init(void *memory, size_t size, const struct gp_limits *limits, struct gp_sched **ret_sched)
{
	struct gp_sched *sched = memory;
	struct sched_layout layout;
	char *base = memory;
	uint32_t i;

	if (!sched_layout(limits, &layout) || size < layout.total || ((uintptr_t)memory & 15u))
		return -EINVAL;
	memset(memory, 0, layout.total);
	sched->limits = *limits;
	sched->closed_first = sched->closed_last = sched->given_first = sched->given_last = GP_NONE;
	sched->now_ns = 1; /* in the queues' own times 0 means none, so a driver's time 0 counts as 1 */
	sched->devices = (void *)(base + layout.devices);
	sched->clients = (void *)(base + layout.clients);
	sched->queues = (void *)(base + layout.queues);
	sched->seats = (void *)(base + layout.seats);
	sched->shares = (void *)(base + layout.shares);
	sched->share_hash = (void *)(base + layout.share_hash);
	sched->gangs = (void *)(base + layout.gangs);
	sched->trace = (void *)(base + layout.trace);
	sched->heap_slots = (void *)(base + layout.heaps);
	for (i = 0; i < limits->client_count; i++)
		sched->clients[i].seat_first = i + 1 < limits->client_count ? i + 1 : GP_NONE;
	for (i = 0; i < limits->queue_count; i++) {
		sched->queues[i].seat_next = i + 1 < limits->queue_count ? i + 1 : GP_NONE;
		sched->seats[i].client_next = sched->shares[i].hash_next = sched->queues[i].seat_next;
		sched->share_hash[i] = GP_NONE;
	}
	*ret_sched = sched;
	return 0;
}

static uint64_t sched_default(uint64_t value, uint64_t otherwise)
{
	return value ? value : otherwise;
}

static bool sched_param_ok(const struct gp_param *param)
{
	return param->turn_ns <= GP_DURATION_NS_MAX && param->min_open_ns <= GP_DURATION_NS_MAX &&
	       param->linger_max_ns <= GP_DURATION_NS_MAX && param->age_window_ns <= GP_DURATION_NS_MAX &&
	       param->age_turn_ns <= GP_DURATION_NS_MAX && param->hint_grace_ns <= GP_DURATION_NS_MAX &&
	       param->overhead_permille <= 1000 && param->burst <= GP_BURST_MAX &&
	       param->batch_clients <= GP_BATCH_MAX && param->fail_max <= 1000 && param->age_permille <= 1000 &&
	       param->rest_ns <= GP_DURATION_NS_MAX && (unsigned int)param->protect <= GP_PROTECT_THROUGHPUT &&
	       (param->gather_ns <= GP_DURATION_NS_MAX || param->gather_ns == GP_GATHER_OFF);
}

/* A turn must be longer than the change of turns, in which no client runs: shorter turns would be all overhead. */
#define SCHED_TURN_PAIRS 4u

static void sched_set_turn(struct gp_device *device)
{
	uint64_t least_ns = SCHED_TURN_PAIRS * (device->attr.close_ns + device->attr.open_ns);

	device->param.turn_ns = device->turn_ns > least_ns ? device->turn_ns : least_ns;
}

/* Defaults, with their reasons in struct gp_param. */
static struct gp_param sched_param(const struct gp_param *param, const struct gp_device_attr *attr)
{
	return (struct gp_param){
		.turn_ns = sched_default(param->turn_ns, attr->switch_ns ? 80000000 : 40000000),
		.min_open_ns = sched_default(param->min_open_ns, attr->open_ns),
		.linger_max_ns = sched_default(param->linger_max_ns, 5000000),
		.age_window_ns = sched_default(param->age_window_ns, 1000000000),
		.age_turn_ns = sched_default(param->age_turn_ns, 5000000),
		.hint_grace_ns = sched_default(param->hint_grace_ns, 2000000),
		.overhead_permille = (uint32_t)sched_default(param->overhead_permille, GP_OVERHEAD_PERMILLE),
		.burst = (uint32_t)sched_default(param->burst, 32),
		.batch_clients = param->batch_clients,
		.fail_max = (uint32_t)sched_default(param->fail_max, 3),
		.age_permille = (uint32_t)sched_default(param->age_permille, 100),
		.rest_ns = sched_default(param->rest_ns, 1000000000),
		.protect = param->protect ? param->protect : GP_PROTECT_BALANCED,
		.gather_ns = sched_default(param->gather_ns, 4000000),
	};
}

static uint32_t sched_batch_max(const struct gp_param *param, const struct gp_device_attr *attr,
				const struct gp_policy *policy)
{
	if (!policy->gates)
		return GP_UNLIMITED;
	/* Two short slices open at once make no progress, only switches (measured: 0 %). So the device's limit goes
	 * before the parameter. */
	if (attr->switch_ns && (!param->batch_clients || param->batch_clients > attr->lower_max))
		return attr->lower_max ? attr->lower_max : 1;
	if (param->batch_clients)
		return param->batch_clients;
	return 1; /* measured: turns give batch clients more than running side by side, and leave one client to stop */
}

int gp_sched_device_add(struct gp_sched *sched, const struct gp_device_attr *attr, const char *policy,
			const struct gp_param *param, uint32_t *ret_device)
{
	const struct gp_policy *found = gp_policy_find(policy);
	struct gp_device *device;
	uint32_t i;

	if (!found || !sched_param_ok(param) || (unsigned int)attr->unit > GP_UNIT_QUEUE || !attr->queue_max ||
	    attr->close_ns > GP_DURATION_NS_MAX || attr->open_ns > GP_DURATION_NS_MAX ||
	    attr->ack_timeout_ns > GP_DURATION_NS_MAX || attr->switch_ns > GP_DURATION_NS_MAX ||
	    attr->lower_max > GP_BATCH_MAX || attr->short_ns > GP_DURATION_NS_MAX ||
	    attr->long_ns > GP_DURATION_NS_MAX || attr->slice_ns > GP_DURATION_NS_MAX ||
	    (attr->long_ns && attr->long_ns <= attr->short_ns) || attr->mid_ns > GP_DURATION_NS_MAX ||
	    (attr->mid_ns && (attr->mid_ns <= attr->short_ns || (attr->long_ns && attr->mid_ns >= attr->long_ns))))
		return -EINVAL;
	if (sched->device_count == sched->limits.device_count ||
	    attr->queue_max > sched->limits.queue_count - sched->queue_reserved)
		return -ENOSPC;
	device = &sched->devices[sched->device_count];
	device->attr = *attr;
	device->attr.ack_timeout_ns = sched_default(attr->ack_timeout_ns, 1000000000);
	device->param = sched_param(param, attr);
	device->policy = found;
	device->batch_max = sched_batch_max(param, attr, found);
	for (i = 0; i < GP_HEAP_COUNT; i++)
		device->heaps[i].slots =
			sched->heap_slots + (size_t)sched->queue_reserved * GP_HEAP_COUNT + (size_t)i * attr->queue_max;
	sched->queue_reserved += attr->queue_max;
	device->seat_first = device->idle_first = device->idle_last = device->check_first = GP_NONE;
	device->awaited_first = GP_NONE;
	device->inverted_first = device->aged_seat = device->announce = device->floor_first = GP_NONE;
	device->under_seat = device->under_by = GP_NONE;
	device->aged_from_ns = GP_NEVER_NS;
	device->rest_ns = device->wake_ns = GP_NEVER_NS;
	device->tokens_ns = (int64_t)((attr->close_ns + attr->open_ns) * device->param.burst);
	device->tokens_mark_ns = sched->now_ns;
	device->turn_ns = device->param.turn_ns;
	sched_set_turn(device);
	*ret_device = sched->device_count++;
	return 0;
}

int gp_sched_device_set_cost(struct gp_sched *sched, uint32_t device, uint64_t close_ns, uint64_t open_ns)
{
	if (device >= sched->device_count || close_ns > GP_DURATION_NS_MAX || open_ns > GP_DURATION_NS_MAX)
		return -EINVAL;
	sched->devices[device].attr.close_ns = close_ns;
	sched->devices[device].attr.open_ns = open_ns;
	sched_set_turn(&sched->devices[device]);
	if (sched->devices[device].crowded_ns)
		sched->devices[device].dirty = true; /* slice_grace_ns() depends on the costs */
	return 0;
}
