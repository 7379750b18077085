/* SPDX-License-Identifier: MIT */
/*
 * The nvidia device: GPUs through NVIDIA's own driver. A queue is a channel group; closing it is disabling its
 * channels, which saves what runs; the device switches by itself between those that are open. The daemon opens no file
 * of the driver.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/nvidia/nvidia.h"

#define NVIDIA_LOWER_MAX 1u /* two that are short together make no progress (measured) */

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
		.short_us = backend->config.short_us,
	};
	snprintf(info->name, sizeof(info->name), "%s", gpu->model);
	snprintf(info->driver, sizeof(info->driver), "NVIDIA %s", backend->driver.version);
	snprintf(info->bdf, sizeof(info->bdf), "%s", gpu->bdf);
}

static void nvidia_fini(struct gp_backend *backend)
{
	free(backend);
}

static int nvidia_init(const struct gp_device_host *host, const struct gp_device_config *config,
		       struct gp_device_info *infos, struct gp_backend **ret_backend, struct gp_error *error)
{
	struct gp_nvidia_gpu *gpus = calloc(GP_DEVICE_MAX, sizeof(*gpus));
	struct gp_backend *backend = calloc(1, sizeof(*backend));
	int count = -ENOMEM;

	if (gpus && backend) {
		backend->host = *host;
		backend->config = *config;
		snprintf(backend->root, sizeof(backend->root), "%s", config->root ? config->root : "");
		count = gp_nvidia_topology(backend->root, &backend->driver, gpus, GP_DEVICE_MAX, error);
	}
	for (int i = 0; i < count; i++)
		nvidia_describe(backend, &gpus[i], (uint32_t)i, &infos[i]);
	if (count > 0) {
		gp_nvidia_probe(backend, gpus, infos, (uint32_t)count);
		*ret_backend = backend;
	} else {
		free(backend);
	}
	free(gpus);
	return count;
}

static void nvidia_attach(struct gp_backend *backend, struct gp_device_client *client)
{
	const struct gp_device_host *host = &backend->host;
	uint32_t both = backend->usable & client->mechanisms;

	if (both & GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL))
		host->mechanism(host->daemon, client->tag, GP_MECHANISM_CHANNEL, "its agent disables the channels");
	else
		host->mechanism(host->daemon, client->tag, GP_MECHANISM_NONE,
				backend->usable ? "its agent knows nothing of NVIDIA devices (an older library?)" :
						  "none of the GPUs here can be scheduled");
}

static void nvidia_detach(struct gp_backend *backend, struct gp_device_client *client, bool gone)
{
	if (!gone)
		backend->host.mechanism(backend->host.daemon, client->tag, GP_MECHANISM_NONE, "let go");
}

static int nvidia_apply(struct gp_backend *backend, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
			const struct gp_device_change *changes, uint32_t count)
{
	return backend->host.order(backend->host.daemon, client, seq, gpu_id, changes, count);
}

static int nvidia_slice(struct gp_backend *backend, struct gp_device_client *client,
			const struct gp_device_slice *slice)
{
	if (client->mechanism == GP_MECHANISM_NONE)
		return -ENOTSUP;
	return backend->host.slice(backend->host.daemon, client, slice);
}

const struct gp_backend_ops gp_backend_nvidia = {
	.name = "nvidia",
	.init = nvidia_init,
	.fini = nvidia_fini,
	.attach = nvidia_attach,
	.detach = nvidia_detach,
	.apply = nvidia_apply,
	.slice = nvidia_slice,
};
