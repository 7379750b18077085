/* SPDX-License-Identifier: MIT */
/*
 * The kfd device: AMD GPUs through the stock driver. A client gets the best mechanism that the probe found and its
 * agent can do. The daemon opens the device only to ask questions and to act as debugger; it owns no queue.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/kfd/debugger.h"
#include "device/kfd/gate.h"
#include "device/kfd/kfd.h"
#include "device/kfd/reset.h"

#define KFD_DEVICE        "/dev/kfd"
#define KFD_SLOTS_ASSUMED 24u

/* A value that the driver's file may lack. */
static uint64_t kfd_or(uint64_t value, uint64_t otherwise)
{
	return value == GP_KFD_UNKNOWN || !value ? otherwise : value;
}

/* A real GPU has the same gpu_id everywhere. The file of a virtual node is in a file system of its own, which names it.
 */
static void kfd_identify(const struct gp_backend *backend, struct gp_device_info *info)
{
	struct stat st;

	if (fstat(backend->fd, &st))
		return;
	if (S_ISCHR(st.st_mode))
		snprintf(info->identity, sizeof(info->identity), "kfd-%u", info->gpu_id);
	else
		snprintf(info->identity, sizeof(info->identity), "kfd-virtual-%llx-%llx-%u",
			 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, info->gpu_id);
}

static void kfd_describe(const struct gp_kfd_node *node, const struct gp_backend *backend, struct gp_device_info *info)
{
	uint64_t location = kfd_or(node->location_id, 0);

	*info = (struct gp_device_info){
		.gpu_id = node->gpu_id,
		.node = node->node,
		.cu_count = (uint32_t)kfd_or(gp_kfd_cu_count(node), 0),
		.xcc_count = (uint32_t)kfd_or(node->xcc_count, 1),
		.slot_count = (uint32_t)kfd_or(node->cp_queue_count, KFD_SLOTS_ASSUMED),
		.process_count_max = (uint32_t)kfd_or(gp_kfd_process_max(node), 0),
		.memory_size = node->memory_size,
		/* Firmware scheduling by runlist stops every queue; MES (gfx11 and later) stops one. */
		.stops_all = kfd_or(node->gfx_version, 0) < GP_KFD_GFX_11,
		.fetch_counters = backend->config.fetch_counters,
		.close_ns = backend->config.close_ns,
		.open_ns = backend->config.open_ns,
	};
	snprintf(info->name, sizeof(info->name), "%s", node->name);
	snprintf(info->driver, sizeof(info->driver), "KFD %u.%u, firmware %llu", backend->version_major,
		 backend->version_minor, (unsigned long long)kfd_or(node->firmware, 0));
	snprintf(info->bdf, sizeof(info->bdf), "%04x:%02x:%02x.%x", (unsigned int)(kfd_or(node->domain, 0) & 0xffff),
		 (unsigned int)(location >> 8 & 0xff), (unsigned int)(location >> 3 & 0x1f),
		 (unsigned int)(location & 7));
	kfd_identify(backend, info);
}

static int kfd_open(struct gp_backend *backend, struct gp_error *error)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	int r;

	backend->fd = open(KFD_DEVICE, O_RDWR | O_CLOEXEC);
	if (backend->fd < 0)
		return gp_error_set(error, -errno, "cannot open " KFD_DEVICE ": %s (group render?)", strerror(errno));
	r = gp_kfd_call(backend->fd, AMDKFD_IOC_GET_VERSION, &version);
	if (r < 0)
		return gp_error_set(error, r, KFD_DEVICE " does not tell its version: %s", strerror(-r));
	backend->version_major = version.major_version;
	backend->version_minor = version.minor_version;
	if (version.major_version != GP_KFD_MAJOR)
		return gp_error_set(error, -EPROTO, "KFD interface %u.%u is not one this program knows",
				    version.major_version, version.minor_version);
	return 0;
}

static void kfd_fini(struct gp_backend *backend)
{
	gp_kfd_reset_destroy(backend->reset);
	if (!gp_kfd_gate_destroy(backend->gate) || !gp_kfd_debugger_destroy(backend->debugger))
		return;
	if (backend->fd >= 0)
		close(backend->fd);
	free(backend);
}

static int kfd_init(const struct gp_device_host *host, const struct gp_device_config *config,
		    struct gp_device_info *infos, struct gp_backend **ret_backend, struct gp_error *error)
{
	struct gp_kfd_node *nodes = calloc(GP_DEVICE_MAX, sizeof(*nodes));
	struct gp_backend *backend = calloc(1, sizeof(*backend));
	int count = nodes && backend ? gp_kfd_topology(GP_KFD_SYSFS, nodes, GP_DEVICE_MAX, error) : -ENOMEM;
	int r = 0;

	if (count > 0) {
		backend->host = *host;
		backend->config = *config;
		r = kfd_open(backend, error);
		for (int i = 0; !r && i < count; i++)
			kfd_describe(&nodes[i], backend, &infos[i]);
		if (!r)
			gp_kfd_safety(backend, nodes, infos, (uint32_t)count);
		if (!r)
			gp_kfd_probe(backend, infos, (uint32_t)count);
		if (!r && backend->usable & GP_MECHANISM_BIT(GP_MECHANISM_KERNEL))
			r = gp_kfd_gate_create(backend, infos, (uint32_t)count, &backend->gate, error);
		else if (!r && backend->usable & GP_MECHANISM_BIT(GP_MECHANISM_DEBUGGER))
			r = gp_kfd_debugger_create(backend, &backend->debugger, error);
	}
	free(nodes);
	if (count <= 0 || r) {
		if (backend && count > 0 && backend->fd >= 0)
			close(backend->fd);
		free(backend);
		return r ? r : count;
	}
	r = gp_kfd_reset_create(backend, infos, (uint32_t)count, &backend->reset);
	for (int i = 0; r && i < count; i++)
		gp_device_say(&infos[i], GP_MECHANISM_NONE, false, "the daemon cannot detect resets of the GPU: %s",
			      strerror(-r));
	*ret_backend = backend;
	return count;
}

/* The best mechanism that the agent can use by itself. */
uint32_t gp_kfd_agent_mechanism(const struct gp_backend *backend, const struct gp_device_client *client)
{
	uint32_t both = backend->usable & client->mechanisms;

	if (both & GP_MECHANISM_BIT(GP_MECHANISM_SELF) && client->flags & GP_HELLO_RUNTIME)
		return GP_MECHANISM_SELF;
	if (both & GP_MECHANISM_BIT(GP_MECHANISM_UPDATE))
		return GP_MECHANISM_UPDATE;
	if (both & GP_MECHANISM_BIT(GP_MECHANISM_SUBMIT))
		return GP_MECHANISM_SUBMIT;
	return GP_MECHANISM_NONE;
}

static void kfd_attach(struct gp_backend *backend, struct gp_device_client *client)
{
	uint32_t mechanism = gp_kfd_agent_mechanism(backend, client);
	const char *why = "the best that the probe found and the agent can do";

	if (client->mechanisms & GP_MECHANISM_BIT(GP_MECHANISM_USERQ)) {
		bool allowed = backend->usable & GP_MECHANISM_BIT(GP_MECHANISM_USERQ);

		backend->host.mechanism(
			backend->host.daemon, client->tag, allowed ? GP_MECHANISM_USERQ : GP_MECHANISM_NONE,
			allowed ?
				"it makes its queues through DRM, not KFD: the driver has no call that stops such a queue" :
				"it makes its queues through DRM, not KFD, and userq is not allowed or not safe here");
		return;
	}
	if (backend->gate) {
		bool attached = !gp_kfd_gate_attach(backend->gate, client);

		backend->host.mechanism(backend->host.daemon, client->tag, attached ? GP_MECHANISM_KERNEL : mechanism,
					attached ? "the driver changes its gates, with those of others" :
						   "gpreemptd is out of memory or descriptors");
		return;
	}
	if (backend->debugger && client->flags & GP_HELLO_RUNTIME) {
		gp_kfd_debugger_attach(backend->debugger, client, mechanism);
		return;
	}
	if (mechanism == GP_MECHANISM_NONE)
		why = "the agent can do none of the mechanisms found here";
	else if (!(client->flags & GP_HELLO_RUNTIME) && backend->usable & GP_MECHANISM_BIT(GP_MECHANISM_SELF))
		why = "its runtime was not enabled before its first queue: DBG_TRAP cannot be used on it";
	backend->host.mechanism(backend->host.daemon, client->tag, mechanism, why);
}

static void kfd_detach(struct gp_backend *backend, struct gp_device_client *client, bool gone)
{
	if (backend->gate && gone)
		gp_kfd_gate_detach(backend->gate, client);
	else if (backend->gate)
		backend->host.mechanism(backend->host.daemon, client->tag, client->mechanism,
					"the driver does not need its runtime");
	else if (client->backend)
		gp_kfd_debugger_detach(backend->debugger, client, gone);
	else if (!gone)
		backend->host.mechanism(backend->host.daemon, client->tag, GP_MECHANISM_NONE,
					"its runtime is disabled");
}

static void kfd_queue_added(struct gp_backend *backend, struct gp_device_client *client, uint32_t gpu_id,
			    uint32_t queue_id)
{
	(void)gpu_id;
	(void)queue_id;
	if (client->backend && backend->debugger)
		gp_kfd_debugger_queue_added(backend->debugger, client);
}

/* The driver destroys a suspended queue only after it is resumed, and the program waits for that. The driver also gives
 * the queue's number to the next queue, which an order still under way would close without the daemon's knowledge. */
static void kfd_queue_removed(struct gp_backend *backend, struct gp_device_client *client,
			      const struct gp_device_leaving *queue)
{
	struct gp_device_change open = { .slot = queue->slot,
					 .gpu_id = queue->gpu_id,
					 .queue_id = queue->queue_id,
					 .open = true,
					 .is_final = true };

	if (!client->backend)
		return;
	if (backend->gate && queue->is_ordered && !gp_kfd_gate_apply(backend->gate, client, 0, queue->gpu_id, &open, 1))
		gp_kfd_gate_commit(backend->gate, queue->gpu_id);
	else if (backend->debugger && (queue->is_closed || queue->is_ordered))
		gp_kfd_debugger_queue_removed(backend->debugger, client, &open);
}

static int kfd_apply(struct gp_backend *backend, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		     const struct gp_device_change *changes, uint32_t count)
{
	if (client->mechanism == GP_MECHANISM_KERNEL)
		return gp_kfd_gate_apply(backend->gate, client, seq, gpu_id, changes, count);
	if (client->mechanism == GP_MECHANISM_DEBUGGER)
		return gp_kfd_debugger_apply(backend->debugger, client, seq, gpu_id, changes, count);
	return backend->host.order(backend->host.daemon, client, seq, gpu_id, changes, count);
}

static void kfd_commit(struct gp_backend *backend, uint32_t gpu_id)
{
	if (backend->gate)
		gp_kfd_gate_commit(backend->gate, gpu_id);
}

static uint32_t kfd_stuck(struct gp_backend *backend, uint32_t gpu_id)
{
	if (backend->gate)
		return gp_kfd_gate_stuck(backend->gate, gpu_id);
	return backend->debugger ? gp_kfd_debugger_stuck(backend->debugger, gpu_id) : 0;
}

/* clang-format off */
static const struct gp_device_key kfd_keys[] = {
	GP_DEVICE_KEY("mechanism", MECHANISMS, mechanisms, 0, 0),
	GP_DEVICE_KEY("rptr", COUNTERS, fetch_counters, 0, 0),
	GP_DEVICE_KEY("grace", COUNT, own[GP_KFD_GRACE].count, 0, 255),
	GP_DEVICE_KEY("close_cost", TIME, close_ns, 1000, 1000000000),
	GP_DEVICE_KEY("open_cost", TIME, open_ns, 1000, 1000000000),
	{ 0 },
};
/* clang-format on */

extern const struct gp_backend_ops gp_backend_kfd; /* for backends.c alone */
const struct gp_backend_ops gp_backend_kfd = {
	.name = "kfd",
	.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_KERNEL) | GP_MECHANISM_BIT(GP_MECHANISM_DEBUGGER) |
		      GP_MECHANISM_BIT(GP_MECHANISM_SELF) | GP_MECHANISM_BIT(GP_MECHANISM_UPDATE) |
		      GP_MECHANISM_BIT(GP_MECHANISM_SUBMIT) | GP_MECHANISM_BIT(GP_MECHANISM_USERQ),
	.is_hardware = true,
	.absent = "no KFD node",
	.keys = kfd_keys,
	/* Assumed until measured: between the bandwidth floor of a full save on an MI300X (35-62 us) and the 10^2 us to
	 * ms that the driver's path around it suggests. */
	.defaults = { .close_ns = 200000, .open_ns = 200000 },
	.init = kfd_init,
	.fini = kfd_fini,
	.attach = kfd_attach,
	.detach = kfd_detach,
	.queue_added = kfd_queue_added,
	.queue_removed = kfd_queue_removed,
	.apply = kfd_apply,
	.commit = kfd_commit,
	.processes = gp_kfd_processes,
	.process_queues = gp_kfd_process_queues,
	.stuck = kfd_stuck,
};
