/* SPDX-License-Identifier: MIT */
/* The daemon's answer to STATUS (docs/status.md) as the commands show it. The answer is not trusted: it is bounded, and
 * every text is fit for a terminal. What is missing, null or of another type is unknown, never 0. */
#ifndef GP_CLI_STATE_H
#define GP_CLI_STATE_H

#include <gpreempt/counters.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_STATE_SCHEMA      1u
#define GP_STATE_UNKNOWN     UINT64_MAX
#define GP_STATE_DEVICE_MAX  64u
#define GP_STATE_CLIENT_MAX  65536u /* managed and unmanaged together */
#define GP_STATE_QUEUE_MAX   262144u
#define GP_STATE_FINDING_MAX 16u /* of one device */
#define GP_STATE_CLIENT_GPUS 16u

/* All numbers; booleans are 0 or 1. */
struct gp_state_cost {
	uint64_t prior, p50, p90, p99, count;
};
struct gp_state_finding {
	char mechanism[24], text[512];
	uint64_t usable;
};
struct gp_state_stats {
#define STATE_COUNTER(field, metric, help, is_time) uint64_t field;
	GP_COUNTER_TABLE(STATE_COUNTER)
#undef STATE_COUNTER
};
struct gp_state_device {
	uint64_t gpu_id, node, cu_count, slot_count, process_count_max, memory_bytes, stops_all, kernel_reopens,
		self_switching, switch_ns, short_slice_us, switches_per_s, slowed;
	uint64_t slots_used, processes, oversubscribed, stopped;
	char backend[24], name[96], driver[48], bdf[24], mechanism[24], unit[16], stopped_why[404], cost_source[64];
	struct gp_state_cost close_ns, open_ns, slice_ns;
	struct gp_state_stats stats;
	uint32_t finding_count;
	struct gp_state_finding findings[GP_STATE_FINDING_MAX];
};
struct gp_state_slice {
	uint64_t now_us, app_us;
};
struct gp_state_queue {
	uint64_t gpu_id, queue_id, slot, seen, priority, has_work, blocked, written, completed, pending, run_ns,
		wait_ns;
	uint64_t preemptions, inversions, closes, opens;
	struct gp_state_slice slice;
	char kind[12], gate[16], quarantine[12], counts[16];
};
struct gp_state_client {
	uint64_t pid, uid, connected_real_ns, priority, ceiling, weight, share_permille, deadline_ns, budget_ns,
		answers, compute_ns, copy_ns, wait_ns;
	uint64_t gpus_scheduled; /* GPUs on which the daemon schedules its queues: the times are sums over them */
	uint64_t managed, hidden, paused, agent_awaited;
	uint64_t unlisted_queue_count; /* of those whose queues are not listed: hidden and unmanaged ones */
	char user[40], name[64], runtime[64], agent[64], gang[64], rank_of[64], tag[64], mechanism[24],
		mechanism_why[256], counters[8], protect[16];
	uint32_t queue_first, queue_count; /* in state->queues */
	uint32_t gpu_count;
	uint64_t gpu_ids[GP_STATE_CLIENT_GPUS];
};
struct gp_state_daemon {
	char version[40], policy[24], config_refused[512];
	uint64_t pid, uptime_real_ns, lease_ms, dilation;
	uint64_t clients_seen, orders, order_failures, leases_lost, messages_refused, wakeups, decisions,
		driver_calls_stuck;
};

struct gp_state {
	uint64_t schema;
	struct gp_state_daemon daemon;
	uint32_t device_count, client_count, queue_count;
	uint32_t left_out; /* beyond the limits above */
	struct gp_state_device *devices;
	struct gp_state_client *clients; /* the managed ones first come first, then unmanaged ones */
	struct gp_state_queue *queues;
};

/* -EPROTO: not JSON, or not such an object; -EPROTONOSUPPORT: of another schema; -ENOMEM. The caller frees with fini.
 */
int gp_state_read(struct gp_state *state, const char *text, size_t size, struct gp_error *error);
void gp_state_fini(struct gp_state *state);
/* One client object, as SET answers; its queues are in state->queues. */
int gp_state_read_client(struct gp_state *state, const char *text, size_t size, struct gp_error *error);

/* Asks the daemon. ret_text (may be NULL): the answer as it came, for --json; the caller frees it. It is set with
 * -EPROTONOSUPPORT too: programs may know a schema that we do not. */
int gp_state_ask(struct gp_state *state, char **ret_text, size_t *ret_size, bool *ret_refused, struct gp_error *error);

/* The number of the mechanism of that name (gpreempt/mechanism.h); GP_MECHANISM_COUNT: there is none. */
uint32_t gp_state_mechanism(const char *name);

#endif
