/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What a queue's past says about its future: arrival gaps, time per packet, length of busy periods. Integers only. */
#include "core/calls.h"

#define LEARN_GAP_SHIFT 10u   /* the first bucket ends at 2^10 ns */
#define LEARN_GAP_MIN   8u    /* with fewer gaps nothing is known */
#define LEARN_REST_MAX  1024u /* packets: more than this are not done soon */

static uint32_t learn_bucket(uint64_t gap_ns)
{
	uint64_t scaled = gap_ns >> LEARN_GAP_SHIFT;
	uint32_t bucket = scaled ? 64u - (uint32_t)__builtin_clzll(scaled) : 0;

	return bucket < GP_GAP_BUCKETS ? bucket : GP_GAP_BUCKETS - 1;
}

static uint64_t learn_bucket_end_ns(uint32_t bucket)
{
	return 1ull << (bucket + LEARN_GAP_SHIFT);
}

/* New evidence counts for an eighth. */
uint64_t gp_learn_smooth(uint64_t old, uint64_t new)
{
	return old ? old - old / 8 + new / 8 : new;
}

void gp_learn_gap(struct gp_queue *queue, uint64_t gap_ns)
{
	uint32_t i, bucket = learn_bucket(gap_ns);

	if (queue->gaps[bucket] >= 1024) /* halve all counts, so that the core learns a changed rhythm */
		for (i = 0; i < GP_GAP_BUCKETS; i++)
			queue->gaps[i] /= 2;
	queue->gaps[bucket]++;
}

uint64_t gp_learn_gap_ns(const struct gp_queue *queue)
{
	uint64_t total = 0, within = 0;
	uint32_t i;

	for (i = 0; i < GP_GAP_BUCKETS; i++)
		total += queue->gaps[i];
	if (total < LEARN_GAP_MIN)
		return 0;
	for (i = 0; (within += queue->gaps[i]) * 10 < total * 9; i++)
		;
	return learn_bucket_end_ns(i);
}

/*
 * How long to keep the lower gates closed after this queue drained. Lingering for L costs the time up to the next
 * arrival if that comes within L, else L and a whole cycle of opening and closing again. The L with the smallest
 * expected cost over the gaps seen so far is chosen. Memoryless arrivals that are rarer than a cycle give 0, bursts
 * give the burst's inner gap, arrivals denser than a cycle the maximum.
 */
uint64_t gp_learn_linger_ns(const struct gp_queue *queue, uint64_t cycle_ns, uint64_t linger_max_ns)
{
	uint64_t total = 0, within = 0, within_ns = 0, best_ns = 0, best_cost;
	uint32_t i;

	for (i = 0; i < GP_GAP_BUCKETS; i++)
		total += queue->gaps[i];
	if (total < LEARN_GAP_MIN)
		return 0;
	best_cost = total * cycle_ns;
	for (i = 0; i < GP_GAP_BUCKETS; i++) {
		uint64_t end_ns = learn_bucket_end_ns(i);
		uint64_t cost;

		if (end_ns > linger_max_ns)
			break;
		within += queue->gaps[i];
		within_ns += queue->gaps[i] * (end_ns - end_ns / 4); /* the middle of a power-of-two bucket */
		cost = within_ns + (total - within) * (end_ns + cycle_ns);
		if (cost < best_cost) {
			best_cost = cost;
			best_ns = end_ns;
		}
	}
	return best_ns;
}

void gp_learn_done(struct gp_queue *queue, uint64_t done_count, uint64_t now_ns)
{
	if (gp_gate_lets_through(queue->gate) && now_ns > queue->last_done_ns)
		queue->packet_ns = gp_learn_smooth(queue->packet_ns, (now_ns - queue->last_done_ns) / done_count);
	queue->last_done_ns = now_ns;
}

/* A program that waits for each result writes when nothing is left; a program that does not writes on while its older
 * packets wait. If packets were completed between two samples, the core does not know whether something was left. */
void gp_learn_ahead(struct gp_queue *queue, uint64_t written, uint64_t completed)
{
	bool was_idle = queue->written == queue->completed;

	if (written == queue->written || (!was_idle && completed != queue->completed))
		return;
	queue->ahead = queue->ahead - queue->ahead / 16 + (was_idle ? 0 : 1000 / 16);
}

void gp_learn_busy(struct gp_queue *queue, uint64_t busy_ns)
{
	queue->busy_ns = gp_learn_smooth(queue->busy_ns, busy_ns);
}

/* Expected time until the queue's present work is done if it is not interrupted. An estimate already overrun says
 * nothing. */
uint64_t gp_learn_rest_ns(const struct gp_queue *queue, uint64_t now_ns)
{
	uint64_t pending = queue->written - queue->completed;
	uint64_t spent_ns, total_ns;

	if (pending) {
		if (!queue->packet_ns || pending > LEARN_REST_MAX || queue->packet_ns > GP_NS_MAX / LEARN_REST_MAX)
			return GP_NEVER_NS;
		spent_ns = now_ns - queue->last_done_ns;
		total_ns = pending * queue->packet_ns;
	} else {
		spent_ns = now_ns - queue->busy_since_ns;
		total_ns = queue->busy_ns;
	}
	return total_ns > spent_ns ? total_ns - spent_ns : GP_NEVER_NS;
}
