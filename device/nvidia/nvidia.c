/* SPDX-License-Identifier: MIT */
/*
 * The nvidia device: GPUs through NVIDIA's own driver. A queue is a channel group. Closing it means disabling its
 * channels, which saves running work; the device switches by itself between open groups. The daemon opens no file of
 * the driver.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "device/nvidia/borrow.h"
#include "device/nvidia/nvidia.h"

#define NVIDIA_LOWER_MAX 1u /* two queues with short slices make no progress together (measured) */

/* Tests have GPUs below folders of their own, which the identity must name. */
static void nvidia_identify(const struct gp_backend *backend, struct gp_device_info *info)
{
	struct stat st = { 0 };

	if (!*backend->root)
		snprintf(info->identity, sizeof(info->identity), "nvidia-%s", info->bdf);
	else if (!stat(backend->root, &st))
		snprintf(info->identity, sizeof(info->identity), "nvidia-test-%llx-%llx-%s",
			 (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, info->bdf);
}

static void nvidia_describe(const struct gp_backend *backend, const struct gp_nvidia_gpu *gpu, uint32_t index,
			    struct gp_device_info *info)
{
	*info = (struct gp_device_info){
		.gpu_id = gpu->gpu_id,
		.node = gpu->has_minor ? gpu->minor : index,
		.xcc_count = 1,
		.dilation = 1,
		.fetch_counters = backend->config.fetch_counters,
		.close_ns = backend->config.close_ns,
		.open_ns = backend->config.open_ns,
		.switch_ns = backend->config.switch_ns,
		.lower_max = NVIDIA_LOWER_MAX,
		.short_us = backend->config.short_ns / 1000,
		.mid_us = backend->config.mid_ns / 1000,
		.long_us = backend->config.long_ns / 1000,
	};
	snprintf(info->name, sizeof(info->name), "%s", gpu->model);
	snprintf(info->driver, sizeof(info->driver), "NVIDIA %s", backend->driver.version);
	snprintf(info->bdf, sizeof(info->bdf), "%s", gpu->bdf);
	nvidia_identify(backend, info);
}

static void nvidia_fini(struct gp_backend *backend)
{
	gp_nvidia_borrow_destroy(backend->borrow);
	free(backend);
}

static int nvidia_start(struct gp_backend *backend, struct gp_device_info *infos, uint32_t count,
			struct gp_error *error)
{
	uint32_t gpu_ids[GP_DEVICE_MAX];
	struct gp_nvidia_borrow_config config = { .host = &backend->host,
						  .gpu_ids = gpu_ids,
						  .by_name = *backend->root,
						  .fallback = backend->usable & GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL) ?
								      GP_MECHANISM_CHANNEL :
								      GP_MECHANISM_NONE };

	for (uint32_t i = 0; i < count; i++) {
		infos[i].hands_over = infos[i].mechanism == GP_MECHANISM_BORROW;
		infos[i].fallback = config.fallback;
		if (infos[i].hands_over)
			gpu_ids[config.gpu_count++] = infos[i].gpu_id;
	}
	return config.gpu_count ? gp_nvidia_borrow_create(&config, &backend->borrow, error) : 0;
}

static int nvidia_init(const struct gp_device_host *host, const struct gp_device_config *config,
		       struct gp_device_info *infos, struct gp_backend **ret_backend, struct gp_error *error)
{
	struct gp_nvidia_gpu *gpus = calloc(GP_DEVICE_MAX, sizeof(*gpus));
	struct gp_backend *backend = calloc(1, sizeof(*backend));
	int count = -ENOMEM, r = 0;

	if (gpus && backend) {
		backend->host = *host;
		backend->config = *config;
		snprintf(backend->root, sizeof(backend->root), "%s", config->root);
		count = gp_nvidia_topology(backend->root, &backend->driver, gpus, GP_DEVICE_MAX, error);
	}
	for (int i = 0; i < count; i++)
		nvidia_describe(backend, &gpus[i], (uint32_t)i, &infos[i]);
	if (count > 0) {
		gp_nvidia_probe_driver(backend, gpus, infos, (uint32_t)count);
		r = nvidia_start(backend, infos, (uint32_t)count, error);
	}
	free(gpus);
	if (count <= 0 || r) {
		free(backend);
		return r ? r : count;
	}
	*ret_backend = backend;
	return count;
}

/* The handles of its queues are not known yet: if the daemon cannot borrow a group later, the client falls back to its
 * agent. */
static void nvidia_attach(struct gp_backend *backend, struct gp_device_client *client)
{
	const struct gp_device_host *host = &backend->host;
	bool agent = client->mechanisms & GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL);

	if (!backend->usable)
		host->mechanism(host->daemon, client->tag, GP_MECHANISM_NONE, "none of the GPUs here can be scheduled");
	else if (!agent)
		host->mechanism(host->daemon, client->tag, GP_MECHANISM_NONE,
				"its agent leaves this driver alone: its runtime says why, or is an older one");
	else if (backend->borrow)
		host->mechanism(host->daemon, client->tag, GP_MECHANISM_BORROW,
				"gpreemptd calls the driver itself, on its file");
	else if (backend->usable & GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL))
		host->mechanism(host->daemon, client->tag, GP_MECHANISM_CHANNEL, "its agent disables the channels");
	else
		host->mechanism(host->daemon, client->tag, GP_MECHANISM_NONE,
				"the configuration allows only borrow, which cannot be had here");
}

static void nvidia_detach(struct gp_backend *backend, struct gp_device_client *client, bool gone)
{
	if (backend->borrow)
		gp_nvidia_borrow_forget(backend->borrow, client->tag);
	if (!gone)
		backend->host.mechanism(backend->host.daemon, client->tag, GP_MECHANISM_NONE, "let go");
}

static void nvidia_group(struct gp_backend *backend, struct gp_device_client *client, uint32_t gpu_id,
			 const struct gp_wire_group *group)
{
	if (client->mechanism == GP_MECHANISM_BORROW || client->is_handed_over)
		gp_nvidia_borrow_group(backend->borrow, client, gpu_id, group);
}

static void nvidia_fall_back(struct gp_backend *backend, struct gp_device_client *client, const char *why)
{
	if (client->mechanism == GP_MECHANISM_BORROW)
		gp_nvidia_borrow_fall_back(backend->borrow, client->tag, why);
}

static void nvidia_queue_removed(struct gp_backend *backend, struct gp_device_client *client,
				 const struct gp_device_leaving *queue)
{
	if (backend->borrow)
		gp_nvidia_borrow_remove(backend->borrow, client->tag, queue->gpu_id, queue->slot);
}

static int nvidia_apply(struct gp_backend *backend, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
			const struct gp_device_change *changes, uint32_t count)
{
	int r = -EIO;

	if (client->mechanism == GP_MECHANISM_BORROW)
		r = gp_nvidia_borrow_apply(backend->borrow, client->tag, seq, gpu_id, changes, count);
	/* -EIO: the daemon's own thread hangs in the driver; the agent may still open the gates. */
	if (client->mechanism == GP_MECHANISM_BORROW && (r != -EIO || !changes[0].open))
		return r;
	return backend->host.order(backend->host.daemon, client, seq, gpu_id, changes, count);
}

static void nvidia_commit(struct gp_backend *backend, uint32_t gpu_id)
{
	if (backend->borrow)
		gp_nvidia_borrow_commit(backend->borrow, gpu_id);
}

static int nvidia_slice(struct gp_backend *backend, struct gp_device_client *client,
			const struct gp_device_slice *slice)
{
	switch (client->mechanism) {
	case GP_MECHANISM_BORROW: return gp_nvidia_borrow_slice(backend->borrow, client->tag, slice);
	case GP_MECHANISM_CHANNEL: return backend->host.slice(backend->host.daemon, client, slice);
	default: return -ENOTSUP;
	}
}

/* Without borrow the agents change gates and slices, and nothing counts switches. */
static int nvidia_count(struct gp_backend *backend, struct gp_device_client *client,
			const struct gp_device_count *count)
{
	return client->mechanism == GP_MECHANISM_BORROW ? gp_nvidia_borrow_count(backend->borrow, client->tag, count) :
							  -EOPNOTSUPP;
}

/* clang-format off */
static const struct gp_device_key nvidia_keys[] = {
	GP_DEVICE_KEY("mechanism", MECHANISMS, mechanisms, 0, 0),
	GP_DEVICE_KEY("counters", COUNTERS, fetch_counters, 0, 0),
	GP_DEVICE_KEY("close_cost", TIME, close_ns, 1000, 1000000000),
	GP_DEVICE_KEY("open_cost", TIME, open_ns, 1000, 1000000000),
	GP_DEVICE_KEY("switch_cost", TIME, switch_ns, 1000, 1000000000),
	GP_DEVICE_KEY("short_slice", US, short_ns, 0, 1000000000),
	GP_DEVICE_KEY("middle_slice", US, mid_ns, 0, 1000000000),
	GP_DEVICE_KEY("long_slice", US, long_ns, 0, 10000000000),
	GP_DEVICE_KEY("root", TEXT, root, 0, GP_DEVICE_ROOT_SIZE),
	{ 0 },
};
/* clang-format on */

extern const struct gp_backend_ops gp_backend_nvidia; /* for backends.c alone */
const struct gp_backend_ops gp_backend_nvidia = {
	.name = "nvidia",
	.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_BORROW) | GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL),
	.is_hardware = true,
	.absent = "no NVIDIA driver",
	.keys = nvidia_keys,
	/* Measured on an H200: docs/measurements/h200-2026-11-15.md. */
	.defaults = { .close_ns = 680000,
		      .open_ns = 300000,
		      .switch_ns = 200000,
		      .short_ns = 1000,
		      .mid_ns = 2000000,
		      .long_ns = 50000000 },
	.init = nvidia_init,
	.fini = nvidia_fini,
	.attach = nvidia_attach,
	.detach = nvidia_detach,
	.queue_removed = nvidia_queue_removed,
	.apply = nvidia_apply,
	.commit = nvidia_commit,
	.group = nvidia_group,
	.fall_back = nvidia_fall_back,
	.slice = nvidia_slice,
	.count = nvidia_count,
};
