/* SPDX-License-Identifier: MIT */
/* Devices: which backend has them, the core that schedules them, what their transactions cost, stop and start. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "daemon/daemon.h"
#include "daemon/unmanaged.h"
#include "lib/units.h"

#define DEVICE_TRACE_COUNT  16384u
#define DEVICE_GANG_COUNT   1024u
#define DEVICE_LEARN_STEP   8u             /* samples, after which the daemon tells the core */
#define DEVICE_KEEP_NS      60000000000ull /* learned costs are saved after a minute, in case the daemon is killed */
#define DEVICE_LEARN_FORGET 4096u          /* samples; the daemon then halves the histogram's counts */
/* The daemon cuts measured times to these bounds: a client may take its time to answer. */
#define DEVICE_COST_MIN_NS 500u
#define DEVICE_COST_MAX_NS 20000000u
#define DEVICE_SLICE_NS    400000u            /* to set a slice (measured, H200, driver 580.159: 386 and 428 us) */
#define DEVICE_ANSWER_NS   DEVICE_COST_MAX_NS /* longest transaction the core waits for, beside answer_timeout */

struct gp_device_entry *gp_device_find(struct gp_daemon *daemon, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (daemon->devices[i].info.gpu_id == gpu_id)
			return &daemon->devices[i];
	return NULL;
}

void gp_device_tell_cost(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	gp_sched_device_set_cost(daemon->sched, device->core, gp_cost_ns(device, false), gp_cost_ns(device, true));
}

static void device_forget_half(struct gp_hist *hist)
{
	hist->count = 0;
	for (uint32_t i = 0; i < GP_HIST_BUCKETS; i++) {
		hist->buckets[i] /= 2;
		hist->count += hist->buckets[i];
	}
	hist->sum /= 2;
}

void gp_device_learn(struct gp_daemon *daemon, struct gp_device_entry *device, const struct gp_client *client,
		     bool open, uint64_t ns)
{
	struct gp_hist *hist = open ? &device->open_hist : &device->close_hist;

	ns /= daemon->dilation;
	ns = ns < DEVICE_COST_MIN_NS ? DEVICE_COST_MIN_NS : ns > DEVICE_COST_MAX_NS ? DEVICE_COST_MAX_NS : ns;
	gp_hist_add(hist, ns);
	gp_cost_add(device, client->owner ? client->owner->id : 0, open, ns);
	if (hist->count >= DEVICE_LEARN_FORGET)
		device_forget_half(hist);
	if (++device->learned % DEVICE_LEARN_STEP == 0)
		gp_device_tell_cost(daemon, device);
	gp_timer_sooner(daemon, &daemon->cost_timer, gp_now_ns() + DEVICE_KEEP_NS);
}

void gp_device_halt(struct gp_daemon *daemon, struct gp_device_entry *device, const char *why)
{
	if (device->stopped && !device->claim.is_why && !device->is_hung)
		return;
	gp_log("GPU %u: the daemon stops scheduling it and opens every gate: %s", device->info.gpu_id, why);
	device->stopped = true;
	device->claim.is_why = false; /* it stays stopped when the other daemon has ended */
	device->is_hung = false;      /* and when a call has come back */
	gp_carry_forget(device);
	snprintf(device->stopped_why, sizeof(device->stopped_why), "%s", why);
	gp_sched_device_stop(daemon->sched, device->core, gp_daemon_now_ns(daemon));
	gp_metrics_changed(daemon);
	gp_slicing_changed(daemon);
}

void gp_device_go_on(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	if (!device->stopped)
		return;
	gp_log("GPU %u: the daemon schedules it again", device->info.gpu_id);
	device->stopped = device->claim.is_why = device->is_hung = false;
	device->stopped_why[0] = '\0';
	gp_sched_device_start(daemon->sched, device->core, gp_daemon_now_ns(daemon));
	gp_metrics_changed(daemon);
	gp_slicing_changed(daemon);
}

/* The middle slice, if it lies between the short and the long one; else 0: none. */
static uint64_t device_mid_ns(const struct gp_device_info *info)
{
	bool has_long = info->long_us > info->short_us;

	return info->short_us && info->mid_us > info->short_us && (!has_long || info->mid_us < info->long_us) ?
		       info->mid_us * 1000 :
		       0;
}

/* The journal names a middle slice that the daemon cannot use, so that the setting is not ignored silently. */
static void device_check_mid(const struct gp_device_info *info)
{
	if (info->short_us && info->mid_us && !device_mid_ns(info))
		gp_log("GPU %u: middle_slice (%" PRIu64 " us) must be longer than short_slice (%" PRIu64
		       " us) and, unless long_slice is 0, shorter than long_slice (%" PRIu64
		       " us); the daemon uses no middle slice (0). Change it in gpreempt.conf",
		       info->gpu_id, info->mid_us, info->short_us, info->long_us);
}

static int device_add_core(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_error *error)
{
	const struct gp_device_info *info = &device->info;
	struct gp_device_attr attr = {
		.unit = info->unit,
		.queue_max = daemon->config.queue_max / daemon->device_count, /* the core reserves room for each */
		.slot_count = info->slot_count,
		.process_count_max = info->process_count_max,
		.memory_size = info->memory_size,
		.close_ns = gp_cost_ns(device, false),
		.open_ns = gp_cost_ns(device, true),
		/* answer_timeout is real time, for agent and daemon. The transaction itself takes device time; a
		 * virtual device may be slow. */
		.ack_timeout_ns = daemon->config.answer_ns / daemon->dilation + DEVICE_ANSWER_NS,
		.fetch_counters = info->fetch_counters,
		.switch_ns = info->switch_ns,
		.lower_max = info->lower_max,
		.short_ns = info->short_us * 1000,
		.long_ns = info->short_us && info->long_us > info->short_us ? info->long_us * 1000 : 0,
		.mid_ns = device_mid_ns(info),
		.slice_ns = info->short_us ? DEVICE_SLICE_NS : 0,
	};
	/* Without a mechanism the core orders nothing: the daemon only watches and shows the queues. */
	const char *policy = info->mechanism == GP_MECHANISM_NONE ? "none" : daemon->config.policy;
	struct gp_param param = daemon->config.param;
	int r;

	if (info->overhead_permille && (!param.overhead_permille || info->overhead_permille < param.overhead_permille))
		param.overhead_permille = info->overhead_permille;
	device_check_mid(info);
	r = gp_sched_device_add(daemon->sched, &attr, policy, &param, &device->core);
	if (r)
		return gp_error_set(error, r, "GPU %u (%s): the scheduler refuses it: %s", info->gpu_id, info->name,
				    strerror(-r));
	if (device->stopped)
		gp_sched_device_stop(daemon->sched, device->core, gp_daemon_now_ns(daemon));
	return 0;
}

/* Builds a core from the present configuration. Queues that the old core knew enter the new one, closed gates as
 * closed. */
int gp_device_build_core(struct gp_daemon *daemon, struct gp_error *error)
{
	struct gp_limits limits = { .device_count = daemon->device_count,
				    .client_count = daemon->config.client_max,
				    .queue_count = daemon->config.queue_max,
				    .gang_count = DEVICE_GANG_COUNT,
				    .trace_count = DEVICE_TRACE_COUNT };
	size_t size = gp_sched_size(&limits);
	void *memory = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	int r;

	if (memory == MAP_FAILED)
		return gp_error_set(error, -ENOMEM, "no memory for %u queues", daemon->config.queue_max);
	if (daemon->config.queue_max < daemon->device_count) {
		munmap(memory, size);
		return gp_error_set(error, -EINVAL, "queues_max is %u, and there are %u GPUs", daemon->config.queue_max,
				    daemon->device_count);
	}
	gp_account_rebuild(daemon);
	if (daemon->core.memory)
		munmap(daemon->core.memory, daemon->core.size);
	daemon->core.memory = memory;
	daemon->core.size = size;
	daemon->gangs.max = DEVICE_GANG_COUNT;
	daemon->events.trace_cursor = daemon->events.watch_cursor = daemon->events.back_offs = 0;
	for (uint32_t i = 0; i < daemon->device_count; i++)
		gp_carry_forget(&daemon->devices[i]);
	memset(daemon->core.queues, 0, daemon->config.queue_max * sizeof(struct gp_queue_entry *));
	r = gp_sched_init(memory, size, &limits, &daemon->sched);
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (daemon->devices[i].under_way.seq > daemon->core.seq_base)
			daemon->core.seq_base = daemon->devices[i].under_way.seq;
	for (uint32_t i = 0; !r && i < daemon->device_count; i++)
		r = device_add_core(daemon, &daemon->devices[i], error);
	for (uint32_t i = 0; !r && i < daemon->client_top; i++) {
		struct gp_client *client = daemon->clients[i];

		if (!client)
			continue;
		client->in_core = false;
		for (uint32_t k = 0; k < client->slot_count; k++) {
			struct gp_queue_entry *queue = client->slots[k].queue;
			bool entered = queue && queue->in_core;

			if (!entered)
				continue;
			/* The daemon does not wait for the answer to an order under way. It takes the gate for closed:
			 * whatever became of the order, the next open repairs it. */
			if (queue->is_ordered)
				gp_queue_gate(daemon, queue, false);
			/* If the daemon may have changed the slice, the new core learns on entry that the slice is not
			 * known. */
			queue->slice.is_owed = daemon->devices[queue->device].info.short_us &&
					       (queue->slice.changes || queue->slice.is_asked);
			queue->in_core = false;
			gp_queue_enter(daemon, queue);
		}
	}
	gp_unmanaged_want(daemon); /* the new core does not know the unmanaged processes */
	gp_slicing_changed(daemon);
	return r;
}

struct gp_driver_entry *gp_driver_for(struct gp_daemon *daemon, uint32_t mechanisms)
{
	for (uint32_t i = 0; i < daemon->driver_count; i++)
		if (daemon->drivers[i].ops->mechanisms & mechanisms)
			return &daemon->drivers[i];
	return &daemon->drivers[0];
}

uint32_t gp_drivers_stuck(struct gp_daemon *daemon, uint32_t gpu_id)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < daemon->driver_count; i++)
		if (daemon->drivers[i].ops->stuck)
			count += daemon->drivers[i].ops->stuck(daemon->drivers[i].backend, gpu_id);
	return count;
}

/* Whether the configuration names the backend, alone or in a list. "auto" means the backends of hardware only. */
static bool device_is_wanted(const char *wanted, const struct gp_backend_ops *ops)
{
	if (!strcmp(wanted, "auto"))
		return ops->is_hardware;
	for (size_t size; *wanted; wanted += size + (wanted[size] == ',')) {
		size = strcspn(wanted, ",");
		if (size == strlen(ops->name) && !strncmp(wanted, ops->name, size))
			return true;
	}
	return false;
}

int gp_drivers_known(const char *wanted, struct gp_error *error)
{
	char name[sizeof(((struct gp_config *)0)->backend)], names[GP_BACKEND_NAMES_SIZE];

	if (!strcmp(wanted, "auto"))
		return 0;
	gp_backend_names(names);
	for (size_t size; *wanted; wanted += size + (wanted[size] == ',')) {
		size = strcspn(wanted, ",");
		snprintf(name, sizeof(name), "%.*s", (int)size, wanted);
		if (!gp_backend_find(name))
			return gp_error_set(error, -EINVAL, "there is no backend '%s' (auto, %s)", name, names);
	}
	return 0;
}

/* Orders name a device by its gpu_id alone, so of two GPUs with the same gpu_id the daemon leaves out the second. */
static uint32_t device_drop_twice(struct gp_device_info *infos, uint32_t before, uint32_t found, const char *backend)
{
	uint32_t kept = before;

	for (uint32_t i = before; i < before + found; i++) {
		bool twice = false;

		for (uint32_t k = 0; k < kept; k++)
			twice |= infos[k].gpu_id == infos[i].gpu_id;
		if (twice)
			gp_log("GPU %u of backend %s is not scheduled: another GPU here has the same number; "
			       "backend = %s alone schedules it",
			       infos[i].gpu_id, backend, backend);
		else if (kept++ != i)
			infos[kept - 1] = infos[i];
	}
	return kept - before;
}

/* Adds the devices of the backend at this place of the list behind the first `before`. Returns how many, or -errno and
 * a sentence. */
static int device_init_backend(struct gp_daemon *daemon, uint32_t place, struct gp_device_entry *first, uint32_t before,
			       struct gp_error *error)
{
	const struct gp_backend_ops *ops = gp_backends[place];
	struct gp_device_info *infos = calloc(GP_DEVICE_MAX + before, sizeof(*infos));
	struct gp_driver_entry *driver = &daemon->drivers[daemon->driver_count];
	int count = -ENOMEM;

	for (uint32_t i = 0; infos && i < before; i++)
		infos[i] = first[i].info;
	if (infos)
		count = ops->init(&daemon->host, &daemon->config.device[place], infos + before, &driver->backend,
				  error);
	if (count > 0) {
		driver->ops = ops;
		daemon->driver_count++;
		count = (int)device_drop_twice(infos, before, (uint32_t)count, ops->name);
		if ((uint32_t)count > GP_DEVICE_MAX - before) {
			gp_log("more than %u GPUs: the last ones are not scheduled", GP_DEVICE_MAX);
			count = (int)(GP_DEVICE_MAX - before);
		}
		for (int i = 0; i < count; i++) {
			first[before + (uint32_t)i].info = infos[before + (uint32_t)i];
			first[before + (uint32_t)i].driver = driver;
		}
	}
	free(infos);
	return count;
}

/* No backend has found a device. */
static int device_none(struct gp_error *error)
{
	char why[128] = "";
	size_t used = 0;

	for (uint32_t i = 0; gp_backends[i] && used < sizeof(why); i++)
		if (gp_backends[i]->absent)
			used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%s", used ? ", " : "",
						 gp_backends[i]->absent);
	return gp_error_set(error, -ENODEV, "there is no GPU here that gpreemptd can schedule (%s)", why);
}

/* Starts all backends that the configuration wants and that have devices here. A backend that fails does not keep the
 * others from working. */
static int device_init_backends(struct gp_daemon *daemon, struct gp_device_entry *devices, struct gp_error *error)
{
	struct gp_error failed = { "" };
	uint32_t count = 0;
	int result = gp_drivers_known(daemon->config.backend, error);

	if (result)
		return result;
	gp_carry_host(daemon, &daemon->host);
	for (uint32_t i = 0; gp_backends[i]; i++) {
		int found;

		if (!device_is_wanted(daemon->config.backend, gp_backends[i]))
			continue;
		found = device_init_backend(daemon, i, devices, count, &failed);
		if (found > 0)
			count += (uint32_t)found;
		if (found >= 0)
			continue;
		result = found;
		*error = failed;
	}
	if (count && result)
		gp_log("%s", error->text);
	if (count)
		return (int)count;
	return result ? result : device_none(error);
}

/* For a device without a mechanism the journal has every reason, because programs run there as they would without the
 * daemon. For other devices it has only what is wrong with the device itself. */
static void device_say_findings(const struct gp_device_info *info)
{
	bool is_refusal = info->mechanism == GP_MECHANISM_NONE;

	for (uint32_t i = 0; i < info->finding_count; i++)
		if (!info->findings[i].usable && (is_refusal || info->findings[i].mechanism == GP_MECHANISM_NONE))
			gp_log("GPU %u (%s): %s%s", info->gpu_id, info->name,
			       is_refusal ? "the daemon cannot schedule it: " : "", info->findings[i].text);
}

int gp_device_add_all(struct gp_daemon *daemon, struct gp_error *error)
{
	struct gp_device_entry *devices = calloc(GP_DEVICE_MAX, sizeof(*devices));
	int count = devices ? device_init_backends(daemon, devices, error) : -ENOMEM;

	daemon->dilation = 1;
	if (count < 0) {
		free(devices);
		return count;
	}
	daemon->devices = devices;
	daemon->device_count = (uint32_t)count;
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		struct gp_device_entry *device = &daemon->devices[i];
		const struct gp_device_info *info = &device->info;

		device_say_findings(info);
		gp_hist_init(&device->close_hist);
		gp_hist_init(&device->open_hist);
		gp_hist_init(&device->slice_hist);
		device->close_prior_ns = info->close_ns;
		device->open_prior_ns = info->open_ns;
		snprintf(device->cost_source, sizeof(device->cost_source),
			 "assumed: close_cost, open_cost of gpreempt.conf");
		if (info->dilation > daemon->dilation)
			daemon->dilation = info->dilation;
	}
	gp_cost_load(daemon);
	return gp_device_build_core(daemon, error);
}
