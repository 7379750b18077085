/* SPDX-License-Identifier: MIT */
/* Owns the log of one run: what crossed the seams, a line each, for whoever looks into a failing seed. */
#include <stdio.h>
#include "test/sim/checker_known.h"
#include "test/sim/swarm.h"

static void log_plan(const struct gp_plan *plan)
{
	uint32_t i;

	printf("plan %llu device %u:", (unsigned long long)plan->seq, plan->device);
	for (i = 0; i < plan->close_count; i++)
		printf(" close %u (%s)", plan->close[i].queue.index, gp_why_name(plan->close[i].why));
	for (i = 0; i < plan->open_count; i++)
		printf(" open %u (%s)", plan->open[i].queue.index, gp_why_name(plan->open[i].why));
	for (i = 0; i < plan->slice_count; i++)
		printf(" slice %u %llu ns", plan->slice[i].queue.index, (unsigned long long)plan->slice[i].slice_ns);
	printf("%s\n", plan->announce ? " announce" : "");
}

static void log_claim(const struct gp_trace_event *claim)
{
	static const char *const names[] = { "?",
					     "queue added",
					     "queue removed",
					     "attributes",
					     "busy",
					     "idle",
					     "hint",
					     "hint missed",
					     "plan",
					     "close",
					     "open",
					     "closed",
					     "opened",
					     "left open",
					     "inversion",
					     "turn",
					     "quarantine",
					     "order failed",
					     "plan timeout",
					     "device stopped",
					     "device started",
					     "oversubscribed",
					     "gate lost",
					     "stale ack" };

	printf("claim: %s queue %u value %llu (%s)\n",
	       claim->type < sizeof(names) / sizeof(names[0]) ? names[claim->type] : "?", claim->queue.index,
	       (unsigned long long)claim->value, gp_why_name((enum gp_why)claim->why));
}

static void log_gpu(const struct check_event *event)
{
	static const char *const names[] = { "fetch", "start", "stop",           "end",  "killed", "transaction",
					     "halt",  "run",   "oversubscribed", "reset" };
	const struct gp_gpu_event *gpu = event->gpu_event;

	printf("gpu %u: %s queue #%d packet %llu value %llu error %d\n", event->device, names[gpu->type],
	       (int)event->gpu_queue, (unsigned long long)gpu->packet, (unsigned long long)gpu->value, gpu->error);
}

static void log_transact(const struct check_event *event)
{
	uint32_t i;

	printf("transact %llu device %u:", (unsigned long long)event->seq, event->device);
	for (i = 0; i < event->count; i++)
		printf(" %s #%u", event->changes[i].open ? "open" : "close", event->changes[i].queue);
	printf("\n");
}

/* Who is left, at the end. */
void swarm_log_rest(struct known *known)
{
	const struct known_queue *q;
	uint32_t i;

	known_refresh(known);
	for (i = 0; i < known->queue_end; i++) {
		q = &known->queues[i];
		if (q->used && q->has_work)
			printf("left: queue %u = #%llu client %u device %u rank %lld%s gate %d, %llu of %llu packets since %llu ns\n",
			       i, (unsigned long long)q->attr.tag, q->client.index, q->device, (long long)q->rank,
			       q->is_batch ? " (batch)" : "", q->gate, (unsigned long long)q->completed,
			       (unsigned long long)q->written, (unsigned long long)q->busy_since_ns);
	}
}

void swarm_log_event(const struct check_event *event)
{
	if (event->type == CHECK_STEP || event->type == CHECK_SETTLED || event->type == CHECK_QUIET ||
	    event->type == CHECK_COST)
		return;
	/* Claims that only repeat a plan and its end. */
	if (event->type == CHECK_TRACE && event->trace->type >= GP_TRACE_PLAN && event->trace->type <= GP_TRACE_OPENED)
		return;
	printf("%10llu ", (unsigned long long)event->now_ns);
	switch (event->type) {
	case CHECK_QUEUE_ADD:
		printf("core: queue %u = #%llu client %u device %u priority %d gang %u kind %d\n", event->queue.index,
		       (unsigned long long)event->queue_attr->tag, event->client.index, event->device,
		       event->queue_attr->priority, event->queue_attr->gang, event->queue_attr->kind);
		break;
	case CHECK_QUEUE_REMOVE: printf("core: queue %u removed\n", event->queue.index); break;
	case CHECK_ATTR: printf("core: queue %u priority %d\n", event->queue.index, event->queue_attr->priority); break;
	case CHECK_SAMPLE:
		printf("core: queue %u written %llu completed %llu\n", event->queue.index,
		       (unsigned long long)event->written, (unsigned long long)event->completed);
		break;
	case CHECK_GATE_LOST: printf("core: queue %u gate lost\n", event->queue.index); break;
	case CHECK_STOP: printf("core: device %u stops\n", event->device); break;
	case CHECK_START: printf("core: device %u starts\n", event->device); break;
	case CHECK_ACK:
		printf("core: queue %u, order of plan %llu done: %d\n", event->queue.index,
		       (unsigned long long)event->seq, event->result);
		break;
	case CHECK_PLAN: log_plan(event->plan); break;
	case CHECK_TRACE: log_claim(event->trace); break;
	case CHECK_GPU_ADD: printf("gpu %u: queue #%u added\n", event->device, event->gpu_queue); break;
	case CHECK_GPU_REMOVE: printf("gpu %u: queue #%u gone\n", event->device, event->gpu_queue); break;
	case CHECK_SUBMIT:
		printf("gpu %u: queue #%u packet of type %d\n", event->device, event->gpu_queue, event->packet->type);
		break;
	case CHECK_TRANSACT: log_transact(event); break;
	case CHECK_GPU: log_gpu(event); break;
	case CHECK_CALM: printf("--- calm\n"); break;
	case CHECK_END: printf("--- end\n"); break;
	default: printf("event %d\n", event->type); break;
	}
}
