/* SPDX-License-Identifier: MIT */
/*
 * Limits how often the queues of one user enter the core. A queue that enters has an open gate. If it has work below
 * the top priority the core closes that gate, and pays from the one budget of the device. So a user whose queues leave
 * and come again all the time would use up what protects the others.
 *
 * On each device a user has two buckets of entries: a large one that fills slowly, for programs that start, and a small
 * one that fills so fast that the closes take a fiftieth of the device at most. While both are empty, queues wait in
 * the order in which they came. A queue that waits is as one of a program without an agent: its gate is open and nobody
 * orders it. If it goes before its turn, the core never hears of it. A queue with a closed gate never waits, since only
 * the core opens gates. Root's queues never wait either.
 */
#include <stdlib.h>
#include "daemon/daemon.h"

#define ENTRY_START    256u          /* at once: more than the programs of a user have when they start; chosen … */
#define ENTRY_START_NS 2343750000ull /* … and one more after this: all of them in ten minutes */
#define ENTRY_OFTEN    8u            /* a quarter of what the core's budget has for preemptions at once */
#define ENTRY_OFTEN_NS 50000000ull   /* … and one more after this, 20 a second, or later: see ENTRY_PART */
#define ENTRY_PART     50u           /* closing and opening again take this part of the device at most; chosen */
#define ENTRY_COST_NS  100000000ull  /* between two looks at what a close costs */

/* The queues of one user that wait to enter on one device; there only while one does. */
struct gp_entry_line {
	struct gp_entry_line *next, *prev;
	struct gp_owner *owner;
	uint32_t device;
	struct gp_queue_entry *first, *last;
};

/* Device time between two entries of one user. */
static uint64_t entry_often_ns(struct gp_daemon *daemon, uint32_t index, uint64_t now_ns)
{
	struct gp_device_entry *device = &daemon->devices[index];

	if (!device->entry_often_ns || now_ns - device->entry_looked_ns >= ENTRY_COST_NS) {
		device->entry_often_ns = ENTRY_PART * (gp_cost_ns(device, false) + gp_cost_ns(device, true));
		if (device->entry_often_ns < ENTRY_OFTEN_NS)
			device->entry_often_ns = ENTRY_OFTEN_NS;
		device->entry_looked_ns = now_ns;
	}
	return device->entry_often_ns;
}

/* full_ns: when the bucket of count entries will be full. When it has an entry; 0: now. */
static uint64_t entry_at_ns(uint64_t full_ns, uint64_t every_ns, uint32_t count, uint64_t now_ns)
{
	uint64_t room_ns = every_ns * (count - 1);

	return full_ns > now_ns + room_ns ? full_ns - room_ns : 0;
}

/* An empty bucket stays empty: what nobody could refuse makes no debt. */
static void entry_take(uint64_t *full_ns, uint64_t every_ns, uint32_t count, uint64_t now_ns)
{
	*full_ns = (*full_ns > now_ns ? *full_ns : now_ns) + every_ns;
	if (*full_ns > now_ns + every_ns * count)
		*full_ns = now_ns + every_ns * count;
}

/* Takes one entry of the user's, from the small bucket if that has one. Returns when there will be one; 0: taken. */
static uint64_t entry_pay(struct gp_daemon *daemon, struct gp_owner *owner, uint32_t device)
{
	struct gp_entries *entries = &owner->entries[device];
	uint64_t now_ns = gp_daemon_now_ns(daemon), often_ns = entry_often_ns(daemon, device, now_ns);
	uint64_t often_at_ns = entry_at_ns(entries->often_ns, often_ns, ENTRY_OFTEN, now_ns);
	uint64_t start_at_ns = entry_at_ns(entries->start_ns, ENTRY_START_NS, ENTRY_START, now_ns);

	if (!often_at_ns)
		entry_take(&entries->often_ns, often_ns, ENTRY_OFTEN, now_ns);
	else if (!start_at_ns)
		entry_take(&entries->start_ns, ENTRY_START_NS, ENTRY_START, now_ns);
	else
		return often_at_ns < start_at_ns ? often_at_ns : start_at_ns;
	return 0;
}

static void entry_wake(struct gp_daemon *daemon, uint64_t at_ns)
{
	gp_timer_sooner(daemon, &daemon->entry_timer, gp_daemon_real_ns(daemon, at_ns + 1));
}

static struct gp_entry_line *entry_line(struct gp_daemon *daemon, struct gp_owner *owner, uint32_t device)
{
	struct gp_entry_line *line = owner->entries[device].line;

	if (line)
		return line;
	line = calloc(1, sizeof(*line));
	if (!line)
		return NULL;
	line->owner = owner;
	line->device = device;
	line->next = daemon->entry_lines;
	if (line->next)
		line->next->prev = line;
	daemon->entry_lines = line;
	owner->entries[device].line = line;
	return line;
}

static void entry_line_end(struct gp_daemon *daemon, struct gp_entry_line *line)
{
	if (line->prev)
		line->prev->next = line->next;
	else
		daemon->entry_lines = line->next;
	if (line->next)
		line->next->prev = line->prev;
	line->owner->entries[line->device].line = NULL;
	free(line);
}

bool gp_entry_may(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_owner *owner = queue->client->owner;
	struct gp_entry_line *line = owner->entries[queue->device].line;
	uint64_t at_ns = 0;

	if (gp_owner_is_root(owner) || queue->has_entered)
		return true;
	if (queue->closed) {
		entry_pay(daemon, owner, queue->device);
		gp_entry_forget(daemon, queue);
		return true;
	}
	if (queue->entry_line)
		return false;
	if (!line) {
		at_ns = entry_pay(daemon, owner, queue->device);
		line = at_ns ? entry_line(daemon, owner, queue->device) : NULL;
	}
	if (!line)
		return true; /* or there is no memory */
	queue->entry_line = line;
	queue->entry_next = NULL;
	queue->entry_prev = line->last;
	if (line->last)
		line->last->entry_next = queue;
	else
		line->first = queue;
	line->last = queue;
	gp_notice(daemon, owner, GP_NOTICE_ENTRIES);
	if (at_ns)
		entry_wake(daemon, at_ns);
	return false;
}

bool gp_entry_may_again(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_owner *owner = queue->client->owner;

	return gp_owner_is_root(owner) || !entry_pay(daemon, owner, queue->device);
}

void gp_entry_forget(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_entry_line *line = queue->entry_line;

	if (!line)
		return;
	if (queue->entry_prev)
		queue->entry_prev->entry_next = queue->entry_next;
	else
		line->first = queue->entry_next;
	if (queue->entry_next)
		queue->entry_next->entry_prev = queue->entry_prev;
	else
		line->last = queue->entry_prev;
	queue->entry_line = NULL;
	if (!line->first)
		entry_line_end(daemon, line);
}

/* Lets those of one line enter whose time has come, in this portion. */
static void entry_line_due(struct gp_daemon *daemon, struct gp_entry_line *line)
{
	struct gp_queue_entry *queue;
	struct gp_owner *owner = line->owner;
	uint32_t device = line->device;

	for (; line; line = owner->entries[device].line) { /* the line ends with its last queue */
		bool is_admitted = gp_quarantine_admits(line->first->client);
		uint64_t at_ns = gp_portion_is_over(daemon) ? gp_daemon_now_ns(daemon) :
				 is_admitted                ? entry_pay(daemon, owner, device) :
							      0;

		if (at_ns) {
			entry_wake(daemon, at_ns);
			return;
		}
		queue = line->first;
		gp_entry_forget(daemon, queue);
		if (is_admitted) /* otherwise it enters when its client leaves quarantine */
			gp_queue_enter_now(daemon, queue);
	}
}

void gp_entry_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	struct gp_entry_line *line, *next;

	(void)now_ns;
	gp_portion_begin(daemon);
	for (line = daemon->entry_lines; line; line = next) {
		next = line->next;
		entry_line_due(daemon, line);
	}
}
