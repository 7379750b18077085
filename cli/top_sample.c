/* SPDX-License-Identifier: MIT */
/* Owns the arithmetic between two states. A counter that fell (the program or the daemon is another one) gives no rate.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/status_show.h"
#include "cli/top_sample.h"

const char *const gp_top_sort_names[GP_TOP_SORT_COUNT] = { "pid",     "priority",    "gpu",       "wait",
							   "pending", "preemptions", "inversions" };

void gp_top_init(struct gp_top *top)
{
	memset(top, 0, sizeof(*top));
	top->sort = GP_TOP_PRIORITY;
}

void gp_top_fini(struct gp_top *top)
{
	gp_state_fini(&top->before);
	gp_state_fini(&top->now);
	free(top->rows);
	memset(top, 0, sizeof(*top));
}

/* What grew, times factor, per passed_ns. */
static uint64_t top_rate(uint64_t before, uint64_t now, uint64_t factor, uint64_t passed_ns)
{
	if (before == GP_STATE_UNKNOWN || now == GP_STATE_UNKNOWN || now < before || !passed_ns)
		return GP_TOP_UNKNOWN;
	return (uint64_t)((unsigned __int128)(now - before) * factor / passed_ns);
}

/* The same program: connected for longer now than before. */
static const struct gp_state_client *top_find_client(const struct gp_state *state, const struct gp_state_client *client)
{
	for (uint32_t i = 0; i < state->client_count; i++)
		if (state->clients[i].pid == client->pid &&
		    state->clients[i].connected_real_ns <= client->connected_real_ns)
			return &state->clients[i];
	return NULL;
}

static const struct gp_state_device *top_find_device(const struct gp_state *state, uint64_t gpu_id)
{
	for (uint32_t i = 0; i < state->device_count; i++)
		if (state->devices[i].gpu_id == gpu_id)
			return &state->devices[i];
	return NULL;
}

static void top_row(const struct gp_top *top, const struct gp_state_client *client, struct gp_top_row *ret_row)
{
	const struct gp_state_client *before = top->has_before ? top_find_client(&top->before, client) : NULL;
	uint64_t dilation = top->now.daemon.dilation == GP_STATE_UNKNOWN ? 1 : top->now.daemon.dilation;
	uint64_t passed_ns = top->passed_ns;
	struct gp_status_total now, old;

	gp_status_sum(&top->now, client, &now);
	*ret_row = (struct gp_top_row){ .client = client,
					.open = now.open,
					.queues = now.queues,
					.pending = client->queue_count ? now.pending : GP_TOP_UNKNOWN,
					.gpu_permille = GP_TOP_UNKNOWN,
					.wait_permille = GP_TOP_UNKNOWN,
					.preemptions_milli = GP_TOP_UNKNOWN,
					.inversions_milli = GP_TOP_UNKNOWN };
	if (!before || !client->queue_count || !client->managed)
		return;
	/* run and wait are device time: the host's second is 1/dilation of the device's. Of a program on several GPUs
	 * it is the share of them all. */
	gp_status_sum(&top->before, before, &old);
	if (client->gpus_scheduled != GP_STATE_UNKNOWN && client->gpus_scheduled > 1)
		passed_ns *= client->gpus_scheduled;
	ret_row->gpu_permille = top_rate(old.run_ns, now.run_ns, 1000 * dilation, passed_ns);
	ret_row->wait_permille = top_rate(old.wait_ns, now.wait_ns, 1000 * dilation, passed_ns);
	ret_row->preemptions_milli = top_rate(old.preemptions, now.preemptions, 1000000000000u, top->passed_ns);
	ret_row->inversions_milli = top_rate(old.inversions, now.inversions, 1000000000000u, top->passed_ns);
}

static void top_device(const struct gp_top *top, const struct gp_state_device *device, struct gp_top_device *ret_device)
{
	const struct gp_state_device *before = top->has_before ? top_find_device(&top->before, device->gpu_id) : NULL;

	*ret_device = (struct gp_top_device){ device, GP_TOP_UNKNOWN, GP_TOP_UNKNOWN, GP_TOP_UNKNOWN };
	if (!before)
		return;
	ret_device->preemptions_milli =
		top_rate(before->stats.preemptions, device->stats.preemptions, 1000000000000u, top->passed_ns);
	ret_device->inversions_milli =
		top_rate(before->stats.inversions, device->stats.inversions, 1000000000000u, top->passed_ns);
	ret_device->transactions_milli =
		top_rate(before->stats.transactions, device->stats.transactions, 1000000000000u, top->passed_ns);
}

static uint64_t top_key(const struct gp_top_row *row, enum gp_top_sort sort)
{
	switch (sort) {
	case GP_TOP_PID: return row->client->pid;
	case GP_TOP_PRIORITY: return row->client->priority;
	case GP_TOP_GPU: return row->gpu_permille;
	case GP_TOP_WAIT: return row->wait_permille;
	case GP_TOP_PENDING: return row->pending;
	case GP_TOP_PREEMPTIONS: return row->preemptions_milli;
	case GP_TOP_INVERSIONS: return row->inversions_milli;
	default: return 0;
	}
}

/* Unknown ones come last either way; equals by pid, so that lines do not jump. */
static int top_compare(const void *a, const void *b, void *context)
{
	const struct gp_top *top = context;
	uint64_t x = top_key(a, top->sort), y = top_key(b, top->sort);
	const struct gp_top_row *row_a = a, *row_b = b;

	if (x != y && (x == GP_TOP_UNKNOWN || y == GP_TOP_UNKNOWN))
		return x == GP_TOP_UNKNOWN ? 1 : -1;
	if (x != y)
		return (x < y) == top->ascending ? -1 : 1;
	return row_a->client->pid < row_b->client->pid ? -1 : row_a->client->pid > row_b->client->pid;
}

void gp_top_sort(struct gp_top *top)
{
	if (top->row_count)
		qsort_r(top->rows, top->row_count, sizeof(*top->rows), top_compare, top);
}

int gp_top_take(struct gp_top *top, struct gp_state *state)
{
	uint64_t then_ns, now_ns;
	struct gp_top_row *rows;

	gp_state_fini(&top->before);
	top->before = top->now;
	top->now = *state;
	memset(state, 0, sizeof(*state));
	then_ns = top->before.daemon.uptime_real_ns;
	now_ns = top->now.daemon.uptime_real_ns;
	/* Another daemon, or the first look: nothing to compare with. */
	top->has_before = top->before.schema && top->before.daemon.pid == top->now.daemon.pid && then_ns < now_ns &&
			  now_ns != GP_STATE_UNKNOWN;
	top->passed_ns = top->has_before ? now_ns - then_ns : 0;
	rows = realloc(top->rows, (top->now.client_count + 1u) * sizeof(*rows));
	if (!rows) {
		top->row_count = 0;
		return -ENOMEM;
	}
	top->rows = rows;
	top->row_count = top->now.client_count;
	for (uint32_t i = 0; i < top->row_count; i++)
		top_row(top, &top->now.clients[i], &rows[i]);
	for (uint32_t i = 0; i < top->now.device_count; i++)
		top_device(top, &top->now.devices[i], &top->devices[i]);
	gp_top_sort(top);
	return 0;
}
