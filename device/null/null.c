/* SPDX-License-Identifier: MIT */
/*
 * The null device: accepts everything and changes nothing. With it gpreempt's own overhead can be measured and every
 * protocol step can be tested without a GPU. It sends orders to agents that say they can carry them out; for other
 * clients it reports orders as done at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "device/device.h"
#include "lib/clock.h"

#define NULL_GPU_ID_FIRST 1u
#define NULL_SLOT_COUNT   24u
#define NULL_PROCESS_MAX  13u

/* Keys of its own, in own[] of the configuration. */
enum null_own { NULL_DEVICES };

struct gp_backend {
	struct gp_device_host host;
};

static int null_init(const struct gp_device_host *host, const struct gp_device_config *config,
		     struct gp_device_info *infos, struct gp_backend **ret_backend, struct gp_error *error)
{
	struct gp_backend *backend = calloc(1, sizeof(*backend));

	if (!backend)
		return gp_error_set(error, -ENOMEM, "null: no memory");
	backend->host = *host;
	for (uint32_t i = 0; i < config->own[NULL_DEVICES].count && i < GP_DEVICE_MAX; i++) {
		infos[i] = (struct gp_device_info){
			.name = "imaginary GPU",
			.driver = "no driver",
			.gpu_id = NULL_GPU_ID_FIRST + i,
			.node = i,
			.slot_count = NULL_SLOT_COUNT,
			.process_count_max = NULL_PROCESS_MAX,
			.dilation = 1,
			.mechanism = GP_MECHANISM_SELF,
			.unit = GP_UNIT_PROCESS,
			.close_ns = config->close_ns,
			.open_ns = config->open_ns,
			.findings = { { GP_MECHANISM_NONE, true,
					"not a device: orders are accepted, nothing is preempted" } },
			.finding_count = 1,
		};
	}
	*ret_backend = backend;
	return (int)config->own[NULL_DEVICES].count;
}

static void null_fini(struct gp_backend *backend)
{
	free(backend);
}

static void null_attach(struct gp_backend *backend, struct gp_device_client *client)
{
	backend->host.mechanism(backend->host.daemon, client->tag, GP_MECHANISM_SELF, "null device");
}

static void null_detach(struct gp_backend *backend, struct gp_device_client *client, bool gone)
{
	if (!gone)
		backend->host.mechanism(backend->host.daemon, client->tag, GP_MECHANISM_NONE, "let go");
}

static int null_apply(struct gp_backend *backend, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		      const struct gp_device_change *changes, uint32_t count)
{
	struct gp_device_done done = { .seq = seq, .gpu_id = gpu_id, .count = count, .changes = changes };

	if (client->mechanisms)
		return backend->host.order(backend->host.daemon, client, seq, gpu_id, changes, count);
	done.issue_ns = done.done_ns = gp_clock_ns();
	backend->host.done(backend->host.daemon, client->tag, &done);
	return 0;
}

/* clang-format off */
static const struct gp_device_key null_keys[] = {
	GP_DEVICE_KEY("devices", COUNT, own[NULL_DEVICES].count, 1, GP_DEVICE_MAX),
	GP_DEVICE_KEY("close_cost", TIME, close_ns, 1000, 1000000000),
	GP_DEVICE_KEY("open_cost", TIME, open_ns, 1000, 1000000000),
	{ 0 },
};
/* clang-format on */

extern const struct gp_backend_ops gp_backend_null; /* for backends.c alone */
const struct gp_backend_ops gp_backend_null = {
	.name = "null",
	.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_SELF),
	.keys = null_keys,
	.defaults = { .own[NULL_DEVICES].count = 1, .close_ns = 200000, .open_ns = 200000 }, /* as on KFD; chosen */
	.init = null_init,
	.fini = null_fini,
	.attach = null_attach,
	.detach = null_detach,
	.apply = null_apply,
};
