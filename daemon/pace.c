/* SPDX-License-Identifier: MIT */
/*
 * How often a device that switches by itself may do so. With the shortest slice below it, an urgent program gets the
 * device at once and gives it back as soon as it has nothing to run for a moment. One that launches its work piece by
 * piece has such a moment between any two pieces: it gains nothing, since it waits for its own launches, and the
 * switches take the device's time from everybody (measured: docs/decisions/0018). Hence switches are counted, at the
 * queue that is put aside; while they take more of the device than transactions may (overhead), short slices are just
 * so long that they cannot.
 */
#include <errno.h>
#include <string.h>
#include "daemon/daemon.h"

#define PACE_NS          50000000ull /* between two counts, which take 0.12 ms each: within a turn that is usual … */
#define PACE_LEAST_NS    5000000ull  /* … and at least, where turns are shorter than that */
#define PACE_SMOOTH      8u          /* windows: half a second until it is believed */
#define PACE_BACK        4u /* and back when it is so many times less than it may be: far from where it began */
#define PACE_FRESH_NS    2000000000ull /* for how long it counts when nobody is put aside any more */
#define PACE_HOLD_NS     1000000000ull /* how long slices are longer at least; doubled when it was needed again soon */
#define PACE_HOLD_MAX_NS 60000000000ull
#define PACE_CALM_NS     10000000000ull /* not soon */
#define PACE_SAVES_MAX   1000000u       /* in a window */

static uint64_t pace_permille(const struct gp_daemon *daemon)
{
	uint32_t permille = daemon->config.param.overhead_permille;

	return permille ? permille : GP_OVERHEAD_PERMILLE;
}

/* Between two counts: two must fit into a turn. */
static uint64_t pace_gap_ns(const struct gp_daemon *daemon)
{
	uint64_t half_ns = daemon->config.param.turn_ns / 2;

	if (!half_ns || half_ns > PACE_NS)
		return PACE_NS;
	return half_ns > PACE_LEAST_NS ? half_ns : PACE_LEAST_NS;
}

uint64_t gp_pace_short_us(const struct gp_daemon *daemon, const struct gp_queue_entry *queue)
{
	const struct gp_device_entry *device = &daemon->devices[queue->device];
	uint64_t us = device->info.switch_ns / pace_permille(daemon);

	if (!device->pace.slowed || us <= device->info.short_us)
		return device->info.short_us;
	return queue->slice.app_us && us > queue->slice.app_us ? queue->slice.app_us : us;
}

/* Of the device's time, by switches. */
static uint64_t pace_cost_permille(const struct gp_device_entry *device)
{
	return device->pace.per_s_x1000 / 1000 * device->info.switch_ns / 1000000;
}

/* Whether short ones would do again can only be tried: the sooner it went wrong the last time, the later. */
static void pace_slow(struct gp_pace *pace, uint64_t now_ns)
{
	if (pace->back_ns && now_ns - pace->back_ns < PACE_CALM_NS)
		pace->hold_ns = 2 * pace->hold_ns < PACE_HOLD_MAX_NS ? 2 * pace->hold_ns : PACE_HOLD_MAX_NS;
	else
		pace->hold_ns = PACE_HOLD_NS;
	pace->held_until_ns = now_ns + pace->hold_ns;
	pace->slowed = true;
}

static void pace_decide(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	struct gp_pace *pace = &device->pace;
	uint64_t cost = pace_cost_permille(device), limit = pace_permille(daemon), now_ns = gp_now_ns();

	if (pace->slowed ? cost * PACE_BACK >= limit || now_ns < pace->held_until_ns : cost <= limit)
		return;
	daemon->slice_dirty = true;
	if (pace->slowed) {
		pace->slowed = false;
		pace->back_ns = now_ns;
		gp_log("GPU %u: slices are short again", device->info.gpu_id);
		return;
	}
	pace_slow(pace, now_ns);
	gp_log("GPU %u: urgent work comes in pieces, %llu switches a second take %llu %% of it: for %llu s at least slices "
	       "below it are longer",
	       device->info.gpu_id, (unsigned long long)(pace->per_s_x1000 / 1000), (unsigned long long)cost / 10,
	       (unsigned long long)(pace->hold_ns / 1000000000u));
}

static bool pace_is_of(const struct gp_pace *pace, const struct gp_queue_entry *queue)
{
	return pace->tag == queue->client->device.tag && pace->slot == queue->wire.slot &&
	       pace->generation == queue->wire.generation;
}

static void pace_set(struct gp_daemon *daemon, struct gp_device_entry *device, uint64_t per_s_x1000)
{
	device->pace.per_s_x1000 = per_s_x1000;
	pace_decide(daemon, device);
}

/* Nobody is in anybody's way, or nobody tells: what was counted says nothing any more. */
static void pace_forget(struct gp_daemon *daemon, struct gp_device_entry *device, uint64_t now_ns, uint64_t fresh_ns)
{
	struct gp_pace *pace = &device->pace;

	if (!pace->per_s_x1000)
		return;
	if (now_ns < pace->window_ns + fresh_ns) {
		gp_slice_wake(daemon, pace->window_ns + fresh_ns);
		return;
	}
	pace->held_until_ns = 0;
	pace_set(daemon, device, 0);
}

static void pace_ask(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
		     uint64_t now_ns)
{
	struct gp_pace *pace = &device->pace;
	uint64_t gap_ns = pace_gap_ns(daemon), answer_ns = daemon->config.answer_ns;
	struct gp_device_count count = { .slot = queue->wire.slot,
					 .generation = queue->wire.generation,
					 .gpu_id = device->info.gpu_id };
	int r;

	/* Another one has the turn, or the same one again: counted anew, and after a window once more. */
	if (!pace_is_of(pace, queue) || pace->closes != queue->closes) {
		pace->tag = queue->client->device.tag;
		pace->slot = count.slot;
		pace->generation = count.generation;
		pace->closes = queue->closes;
		pace->saves_ns = 0;
		pace->next_ns = now_ns;
	}
	if (now_ns >= pace->next_ns) {
		r = daemon->ops->count(daemon->backend, &queue->client->device, &count);
		pace->counting = !r;
		queue->slice.uncounted = r == -EOPNOTSUPP;
		pace->next_ns = now_ns + (pace->counting && answer_ns > gap_ns ? answer_ns : gap_ns);
	}
}

void gp_pace_update(struct gp_daemon *daemon, struct gp_device_entry *device, struct gp_queue_entry *queue,
		    uint64_t now_ns)
{
	struct gp_pace *pace = &device->pace;
	bool is_limited = pace_permille(daemon) < 1000;

	if (!daemon->ops->count || !device->info.switch_ns)
		return;
	if (!is_limited || !queue || queue->slice.uncounted) {
		pace_forget(daemon, device, now_ns, is_limited ? PACE_FRESH_NS : 0);
		return;
	}
	if (pace->counting && now_ns >= pace->next_ns)
		pace->counting = false; /* whatever became of it */
	if (!pace->counting)
		pace_ask(daemon, device, queue, now_ns);
	gp_slice_wake(daemon, pace->next_ns);
}

static void pace_window(struct gp_daemon *daemon, struct gp_device_entry *device, const struct gp_device_count *count)
{
	struct gp_pace *pace = &device->pace;
	uint64_t saves = count->saves - pace->saves, past = pace->per_s_x1000, now;
	uint64_t most = 1000000000000ull / device->info.switch_ns;

	if (saves > PACE_SAVES_MAX)
		saves = PACE_SAVES_MAX;
	now = saves * 1000000000000ull / (count->at_ns - pace->saves_ns);
	if (now > most)
		now = most; /* no device does more than switch; the driver has begun anew, or lies */
	pace->window_ns = gp_now_ns();
	pace_set(daemon, device, past - past / PACE_SMOOTH + now / PACE_SMOOTH);
}

void gp_pace_counted(struct gp_daemon *daemon, struct gp_client *client, const struct gp_device_count *count)
{
	struct gp_queue_entry *queue = count->slot < client->slot_count ? client->slots[count->slot].queue : NULL;
	struct gp_device_entry *device;
	struct gp_pace *pace;

	if (!queue || queue->wire.generation != count->generation)
		return; /* it is counted no more when its time is up */
	device = &daemon->devices[queue->device];
	pace = &device->pace;
	if (!pace_is_of(pace, queue))
		return;
	pace->counting = false;
	pace->next_ns = gp_now_ns() + pace_gap_ns(daemon);
	gp_slice_wake(daemon, pace->next_ns);
	if (count->result) {
		queue->slice.uncounted = count->result != -ESRCH && count->result != -EBUSY && count->result != -ENOMEM;
		if (queue->slice.uncounted)
			gp_log_user(daemon, client->owner,
				    "process %d (%s): the driver does not tell how often it is put aside (%s)",
				    client->device.pid, client->name, strerror(-count->result));
	} else if (!pace->saves_ns || pace->closes != queue->closes ||
		   count->at_ns >= pace->saves_ns + PACE_LEAST_NS / 2) { /* else two answers came together */
		if (pace->saves_ns && pace->closes == queue->closes)
			pace_window(daemon, device, count);
		pace->saves = count->saves;
		pace->saves_ns = count->at_ns;
		pace->closes = queue->closes;
	}
	/* Of so short turns, or of a driver that does not tell now, nothing may be known for long. */
	pace_forget(daemon, device, gp_now_ns(), PACE_FRESH_NS);
}
