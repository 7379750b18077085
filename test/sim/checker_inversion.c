/* SPDX-License-Identifier: MIT */
/*
 * Each inversion is in the log with its true length, none is missing. A queue is inverted while it has work and one of
 * lower rank has work and an open gate, as far as the core was told. On a self-switching device the batch client that
 * has the turn does not count, and who has the turn is not known here: there an inversion must be logged if it exists
 * without any such client, and may be if it exists with them.
 */
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"

#define INVERSION_OWED_MAX 16u

struct inversion_span {
	uint64_t from_ns, to_ns;
};

struct inversion_queue {
	uint32_t generation;
	uint64_t must_ns, may_ns;  /* begun, + 1; 0: no */
	struct inversion_span log; /* what the log covers without a gap */
	struct inversion_span
		owed[INVERSION_OWED_MAX]; /* what it must still cover before the queue is free of everybody */
	uint32_t owed_count;
};

struct inversion_state {
	uint64_t version;
	struct inversion_queue queues[KNOWN_QUEUE_MAX];
};

/* The lowest rank that runs on the device: of all, of those whose rank is known, and of those who surely do not step
 * aside by themselves. */
struct inversion_low {
	int64_t any, known, sure;
};

/* What is left of a span when the log covers its beginning or its end. */
static void inversion_cover(struct inversion_span *span, const struct inversion_span *log)
{
	if (log->from_ns <= span->from_ns && log->to_ns > span->from_ns)
		span->from_ns = log->to_ns;
	else if (log->to_ns >= span->to_ns && log->from_ns < span->to_ns)
		span->to_ns = log->from_ns;
}

static void inversion_claim(struct checker_run *run, struct inversion_state *state, const struct gp_trace_event *claim)
{
	struct inversion_queue *queue = &state->queues[claim->queue.index % KNOWN_QUEUE_MAX];
	uint64_t start_ns = claim->time_ns - claim->value;
	uint32_t i;

	if (claim->queue.index >= KNOWN_QUEUE_MAX || queue->generation != claim->queue.generation || !queue->may_ns ||
	    start_ns < queue->may_ns - 1 || claim->value > claim->time_ns || claim->time_ns > run->known->core_ns) {
		checker_fail(run, &checker_inversion,
			     "the log has an inversion of queue %u from %llu to %llu ns; truly inverted since %lld ns",
			     (uint32_t)claim->tag, (unsigned long long)start_ns, (unsigned long long)claim->time_ns,
			     (long long)queue->may_ns - 1);
		return;
	}
	if (start_ns < queue->log.to_ns) {
		checker_fail(run, &checker_inversion, "the log counts the inversion of queue %u from %llu ns twice",
			     (uint32_t)claim->tag, (unsigned long long)start_ns);
		return;
	}
	if (start_ns != queue->log.to_ns)
		queue->log.from_ns = start_ns;
	queue->log.to_ns = claim->time_ns;
	for (i = 0; i < queue->owed_count; i++)
		inversion_cover(&queue->owed[i], &queue->log);
}

static void inversion_owe(struct inversion_queue *queue, struct inversion_span span)
{
	inversion_cover(&span, &queue->log);
	if (span.from_ns < span.to_ns && queue->owed_count < INVERSION_OWED_MAX)
		queue->owed[queue->owed_count++] = span;
}

static void inversion_set(struct checker_run *run, struct inversion_queue *queue, uint32_t index, bool must, bool may)
{
	uint64_t now_ns = run->known->core_ns;
	uint32_t i;

	if (queue->must_ns && !must)
		inversion_owe(queue, (struct inversion_span){ queue->must_ns - 1, now_ns });
	if (must != (queue->must_ns > 0))
		queue->must_ns = must ? now_ns + 1 : 0;
	if (may != (queue->may_ns > 0))
		queue->may_ns = may ? now_ns + 1 : 0;
	for (i = 0; !may && i < queue->owed_count; i++) {
		if (queue->owed[i].from_ns < queue->owed[i].to_ns)
			checker_fail(
				run, &checker_inversion,
				"queue %u was inverted from %llu to %llu ns; the log has nothing of it (its last is from %llu to %llu ns)",
				index, (unsigned long long)queue->owed[i].from_ns,
				(unsigned long long)queue->owed[i].to_ns, (unsigned long long)queue->log.from_ns,
				(unsigned long long)queue->log.to_ns);
	}
	if (!may)
		queue->owed_count = 0;
}

static void inversion_look(struct checker_run *run, struct inversion_state *state)
{
	struct known *known = run->known;
	struct inversion_low low[KNOWN_DEVICE_MAX];
	const struct known_queue *q;
	struct inversion_queue *own;
	uint32_t i;

	known_refresh(known);
	for (i = 0; i < KNOWN_DEVICE_MAX; i++)
		low[i] = (struct inversion_low){ INT64_MAX, INT64_MAX, INT64_MAX };
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (!q->used || !q->has_work || !known_lets_through(q))
			continue;
		if (q->vague)
			low[q->device].any = INT64_MIN;
		if (q->rank < low[q->device].any)
			low[q->device].any = q->rank;
		if (q->rank < low[q->device].known && !q->vague)
			low[q->device].known = q->rank;
		if (q->rank < low[q->device].sure && !q->vague &&
		    !(known->devices[q->device].attr.switch_ns && q->is_batch))
			low[q->device].sure = q->rank;
	}
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		own = &state->queues[i];
		if (!q->used || own->generation != q->generation) {
			inversion_set(run, own, i, false, false);
			*own = (struct inversion_queue){ .generation = q->generation };
		}
		if (!q->used || !known->devices[q->device].gates)
			continue;
		inversion_set(run, own, (uint32_t)q->attr.tag,
			      q->has_work && !q->vague &&
				      (q->is_batch ? low[q->device].known : low[q->device].sure) < q->rank,
			      q->has_work && low[q->device].any < (q->vague ? INT64_MAX : q->rank));
	}
}

static void inversion_event(struct checker_run *run, void *data, const struct check_event *event)
{
	struct inversion_state *state = data;

	if (event->type == CHECK_TRACE && event->trace->type == GP_TRACE_INVERSION)
		inversion_claim(run, state, event->trace);
	if (event->type != CHECK_SETTLED || run->known->version == state->version)
		return;
	state->version = run->known->version;
	inversion_look(run, state);
}

const struct checker checker_inversion = {
	.name = "inversion",
	.promise = "each inversion is in the log with its true length",
	.state_size = sizeof(struct inversion_state),
	.event = inversion_event,
};
