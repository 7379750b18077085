/* SPDX-License-Identifier: MIT */
/*
 * Reads what the shared page says about queues. A process that may be hostile writes the page: the daemon reads
 * every value once, and a value that makes no sense can only make that queue look idle or busy, nothing else.
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/daemon.h"

#define PAGE_PENDING_MAX  (1ull << 32) /* packets or bytes: a larger difference makes no sense */
#define PAGE_TRIES        3            /* times to arm again if a value moved meanwhile; later moves come as edges */
#define PAGE_BARRIER_WORK 16u          /* units of work: it interrupts every processor; chosen */

void gp_queue_tell_core(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t now_ns)
{
	if (!queue->client->page) { /* no agent counts its packets: it counts as busy */
		gp_sched_edge(daemon->sched, queue->core, true, now_ns);
		return;
	}
	gp_sched_sample(daemon->sched, queue->core, queue->virtual_written, queue->virtual_completed, now_ns);
}

/* Reads a queue's counters from the page once. The core wants counters that never go back and never overtake each
 * other. */
static void page_read(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t now_ns)
{
	struct gp_page_queue *page = &queue->client->page->queues[queue->wire.slot];
	uint64_t doorbell = gp_page_announced(page);
	uint64_t written = __atomic_load_n(&page->written, __ATOMIC_RELAXED);
	uint64_t completed = __atomic_load_n(&page->completed, __ATOMIC_RELAXED);
	bool blocked = __atomic_load_n(&page->flags, __ATOMIC_RELAXED) & GP_PAGE_BLOCKED;
	uint64_t progress, pending, top;

	if (queue->wire.flags & GP_QUEUE_SEEN && doorbell > written)
		written = doorbell;
	if (queue->looked > completed && queue->looked <= written)
		completed = queue->looked;
	if (written == queue->written && completed == queue->completed && blocked == queue->blocked)
		return;
	progress = completed > queue->completed ? completed - queue->completed : 0;
	pending = written > completed ? written - completed : 0;
	queue->written = written;
	queue->completed = completed;
	queue->blocked = blocked;
	pending = blocked ? 0 : pending < PAGE_PENDING_MAX ? pending : PAGE_PENDING_MAX;
	progress = progress < PAGE_PENDING_MAX ? progress : PAGE_PENDING_MAX;
	top = queue->virtual_completed + progress + pending;
	if (top > queue->virtual_written)
		queue->virtual_written = top;
	queue->virtual_completed = queue->virtual_written - pending;
	gp_queue_set_pending(daemon, queue, pending);
	if (queue->in_core)
		gp_queue_tell_core(daemon, queue, now_ns);
}

bool gp_queue_makes_barriers(void)
{
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return commands > 0 && commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED;
}

/* Makes every thread of the clients that registered for it pass a fence. Without memory the kernel may refuse the fast
 * command; the slow one takes milliseconds and needs none. */
static void page_barrier(struct gp_daemon *daemon)
{
	daemon->barrier_count++;
	gp_portion_use(daemon, PAGE_BARRIER_WORK);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0))
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

/* Reads a queue, and arms it for what the daemon wants to hear of next. If that is new, the queue joins those that are
 * to be read again after a fence. */
static void page_look(struct gp_daemon *daemon, struct gp_queue_entry *queue, struct gp_looks *looks)
{
	struct gp_page_queue *page = &queue->client->page->queues[queue->wire.slot];
	uint32_t want;

	page_read(daemon, queue, gp_daemon_now_ns(daemon));
	want = queue->pending ? GP_ARMED_IDLE : GP_ARMED_BUSY;
	if (__atomic_load_n(&page->armed, __ATOMIC_RELAXED) == want)
		return;
	__atomic_store_n(&page->armed, want, __ATOMIC_RELAXED);
	queue->look_next = looks->first;
	looks->first = queue;
	/* Partner: the fences of the agent's sampling, and of doorbells that make their own (page.h). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (want == GP_ARMED_BUSY && __atomic_load_n(&queue->client->page->plain, __ATOMIC_SEQ_CST))
		looks->is_plain = true;
}

void gp_queue_look(struct gp_daemon *daemon, struct gp_queue_entry *queue, struct gp_looks *looks)
{
	if (queue->client->page)
		page_look(daemon, queue, looks);
}

/* One barrier for all of them: with one for each, a client with a thousand queues made as many system calls. */
void gp_queue_look_again(struct gp_daemon *daemon, struct gp_looks *looks)
{
	for (int i = 1; looks->first; i++) {
		struct gp_queue_entry *queue = looks->first, *next;

		if (looks->is_plain)
			page_barrier(daemon);
		*looks = (struct gp_looks){ NULL, false };
		for (; queue && i < PAGE_TRIES; queue = next) {
			next = queue->look_next;
			page_look(daemon, queue, looks);
		}
	}
}

void gp_queue_sample(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_looks looks = { NULL, false };

	gp_queue_look(daemon, queue, &looks);
	gp_queue_look_again(daemon, &looks);
}

static void page_hint(struct gp_daemon *daemon, struct gp_queue_entry *queue, uint64_t in_real_ns)
{
	uint64_t in_ns = in_real_ns / daemon->dilation;

	if (!queue->in_core)
		return;
	if (in_ns > GP_DURATION_NS_MAX)
		in_ns = GP_DURATION_NS_MAX;
	gp_sched_hint(daemon->sched, queue->core, in_ns, gp_daemon_now_ns(daemon));
}

static void page_hints(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_page *page = client->page;
	uint32_t count, gpu_id = __atomic_load_n(&page->hint_gpu_id, __ATOMIC_RELAXED);
	uint64_t in_ns = __atomic_load_n(&page->hint_ns, __ATOMIC_RELAXED);
	bool all;

	__atomic_store_n(&page->armed, GP_ARMED_BUSY, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	count = __atomic_load_n(&page->hint_count, __ATOMIC_RELAXED);
	all = count != client->hint_count;
	client->hint_count = count;
	for (uint32_t i = 0; i < client->slot_count; i++) {
		struct gp_queue_entry *queue = client->slots[i].queue;

		if (!queue)
			continue;
		count = __atomic_load_n(&page->queues[i].hint_count, __ATOMIC_RELAXED);
		if (count != queue->hint_count) {
			queue->hint_count = count;
			page_hint(daemon, queue, __atomic_load_n(&page->queues[i].hint_ns, __ATOMIC_RELAXED));
		} else if (all && queue->wire.kind == GP_WIRE_COMPUTE && (!gpu_id || gpu_id == queue->wire.gpu_id)) {
			page_hint(daemon, queue, in_ns);
		}
	}
}

void gp_queue_sample_client(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_looks looks = { NULL, false };

	/* Without queues there is nothing to read, and the page is not sealed yet. */
	if (!client->page || !client->queue_count)
		return;
	gp_portion_use(daemon, 1 + client->queue_count);
	page_hints(daemon, client);
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue)
			page_look(daemon, client->slots[i].queue, &looks);
	gp_queue_look_again(daemon, &looks);
}
