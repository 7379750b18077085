/* SPDX-License-Identifier: MIT */
/* A closed queue makes no progress: between the end of the transaction that closed it and the end of the one that opens
 * it, nothing of it is fetched, starts or ends. */
#include "test/sim/checker.h"
#include "test/sim/checker_truth.h"

/* Progress at the very instant a transaction opens the gate may be reported before the transaction's own end. */
struct closed_state {
	uint32_t suspect;
	uint64_t suspect_ns;
	enum gp_gpu_event_type what;
};

static void closed_event(struct checker_run *run, void *data, const struct check_event *event)
{
	static const char *const names[] = { "was fetched", "started", "stopped", "ended" };
	struct closed_state *state = data;
	const struct truth_queue *queue;

	if (event->type == CHECK_STEP && state->suspect_ns) {
		queue = &run->truth->queues[state->suspect];
		if (queue->closed || queue->changed_ns != state->suspect_ns - 1)
			checker_fail(run, &checker_closed,
				     "at %llu ns: a packet of queue %u %s though its gate is closed since %llu ns",
				     (unsigned long long)(state->suspect_ns - 1), state->suspect, names[state->what],
				     (unsigned long long)queue->changed_ns);
		state->suspect_ns = 0;
	}
	if (event->type != CHECK_GPU || event->gpu_queue == CHECKER_NONE ||
	    !run->truth->queues[event->gpu_queue].closed)
		return;
	if (event->gpu_event->type != GP_GPU_EVENT_FETCH && event->gpu_event->type != GP_GPU_EVENT_START &&
	    event->gpu_event->type != GP_GPU_EVENT_END)
		return;
	if (state->suspect_ns)
		return;
	state->suspect = event->gpu_queue;
	state->suspect_ns = event->now_ns + 1;
	state->what = event->gpu_event->type;
}

const struct checker checker_closed = {
	.name = "closed",
	.promise = "a closed queue makes no progress",
	.state_size = sizeof(struct closed_state),
	.event = closed_event,
};
