/* SPDX-License-Identifier: MIT */
/*
 * What a group has to do. Each channel is a lane: a ring of entries that the application fills (GP_PUT says how far)
 * and a list of those that are not done. An entry leads to a segment of commands, whose own words tell when it is done
 * (segment.c). Where they cannot be followed, an entry counts as done when it has been fetched (GP_GET), which is
 * earlier; that the knowledge is of this kind is said, once.
 *
 * written: entries put on the group's channels, ever; completed: those that are done. The two are equal if and only if
 * nothing is left, as far as is known.
 */
#include <string.h>
#include "agent/log.h"
#include "agent/nvidia/nvidia.h"
#include "agent/nvidia/segment.h"
#include "agent/sys.h"

#define WORK_LANE_MAX    512u
#define WORK_OPEN_MAX    64u         /* entries of a lane that are read and not done; the rest waits its turn */
#define WORK_LOOK_MAX    256u        /* entries that are read at one look, about 2 µs each, unless all are wanted */
#define WORK_OLDER_NS    10000000u   /* where the GPU has gone on beyond it; chosen */
#define WORK_GIVEN_UP_NS 1000000000u /* and where it has not, of the time in which it could have; chosen */
#define WORK_HELD_NS     2000000u    /* longer than copies usually take; chosen */
#define WORK_EXACT_RUN   16u         /* after so many that could be followed the knowledge is good again; chosen */
#define WORK_UNUSED      2u          /* entries of a channel that the application has not used yet: CUDA sets it up */
#define WORK_UNUSED_LOOK 8u          /* while others work it is looked at each so many times: a read costs 1 µs */
#define WORK_ENTRIES_MAX 0x10000u    /* of a ring; 1024 in driver 580 */
#define WORK_QUIET_NS    50000000u /* without a call of the program's on the driver: setting up has thousands; chosen */
#define WORK_SETUP_NS    1000000000u  /* after its first kernel it is not setting up for longer than that; chosen */
#define WORK_START_NS    10000000000u /* and one without a kernel is no longer than that starting; chosen */
#define WORK_STILL_NS    500000000u   /* no progress though it is open: the first help; chosen */
#define WORK_STILL_MAX   64000000000u
#define WORK_ENTRY_NS    500u /* nobody puts entries faster; a launch takes 3.3 µs on an H200 */

struct work_entry {
	uint64_t number; /* how many came before it */
	uint64_t progress, marker;
	uint32_t payload, value;
	uint64_t commands; /* where they are, and how many words */
	uint64_t older_ns; /* since when its marker is older than it should be; 0: it is not */
	uint32_t words;
	bool is_exact;
};
/* How far an entry is. */
enum work_stage { WORK_WAITS, WORK_RUNS, WORK_DONE };

struct work_lane {
	bool used, broken;
	bool is_unused;                  /* as this look found it */
	bool get_read;                   /* at this look */
	bool has_run;                    /* a kernel of it has */
	uint64_t ran;                    /* … and the number of the last that is known to */
	uint32_t client, group, channel; /* handles */
	uint32_t entries;
	uint32_t userd; /* memory */
	uint64_t userd_offset, ring;
	uint32_t put;           /* as read last */
	uint64_t looked_ns;     /* when; 0: never */
	uint64_t last;          /* the newest entry that was read, as the ring had it */
	uint64_t written, read; /* entries put; entries read: those in between wait to be read */
	uint64_t fetched;       /* entries fetched, as far as this look knows: GET is read where it is needed */
	uint32_t open_count;
	bool runs, waits; /* an open entry runs, or may; the first that waits does so for a word that is not there */
	uint32_t ring_map, segment_map, progress_map, marker_map, userd_map; /* where they were found last */
	struct work_entry open[WORK_OPEN_MAX];
};
static struct work_lane work_lanes[WORK_LANE_MAX];
static uint32_t work_limit;
static bool work_is_closed; /* the queue that is being looked at */

static bool work_read32(uint64_t address, uint32_t *hint, uint32_t *ret_value)
{
	const volatile uint32_t *at = address % 4u ? NULL : gp_nvidia_map_find(address, 4, hint);

	if (!at)
		return false;
	*ret_value = *at;
	return true;
}

/* A marker steps from an older value to the entry's, and by one when the kernel has run; later kernels that use the
 * word step on. Nothing says that the first step is visible before the progress word's, so an older value is no end.
 * It may be that of a kernel that was put aside before it began: by a closed gate, or by the device for as long as
 * others work. Taken for done, it would never be let in again, because nobody would know of it. Should a word start
 * over, which nothing known does, the entry is given up: soon where a later one of its channel has run, else after a
 * long while. */
static enum work_stage work_marker(struct work_entry *entry, uint32_t value)
{
	uint64_t now;

	if ((int32_t)(value - (entry->value + 1u)) >= 0)
		return WORK_DONE;
	if (value == entry->value) {
		entry->older_ns = 0;
		return WORK_RUNS;
	}
	now = gp_sys_now_ns();
	if (!entry->older_ns || (work_is_closed && now - entry->older_ns >= WORK_OLDER_NS))
		entry->older_ns = now;
	return now - entry->older_ns >= WORK_GIVEN_UP_NS ? WORK_DONE : WORK_RUNS;
}

static uint64_t work_userd(struct work_lane *lane)
{
	return gp_nvidia_map_of(lane->client, lane->userd, lane->userd_offset, GP_RM_USERD_SIZE);
}

/* How many entries have been fetched. PUT was read before: what has been put and fetched since makes the lane look
 * busier, not idle too early. A read costs a microsecond, so one at a look, and only where an entry needs it. */
static uint64_t work_fetched(struct work_lane *lane)
{
	uint32_t get, behind;

	if (lane->get_read)
		return lane->fetched;
	lane->get_read = true;
	lane->fetched = 0;
	if (!work_read32(work_userd(lane) + GP_RM_USERD_GET, &lane->userd_map, &get))
		return 0;
	if (get >= lane->entries) {
		gp_log3("nvidia: registers make no sense: channel, put, get", lane->channel, lane->put, get);
		lane->broken = true;
		return 0;
	}
	behind = (lane->put - get) & (lane->entries - 1u);
	lane->fetched = lane->written < behind ? 0 : lane->written - behind;
	return lane->fetched;
}

/* Which entries are done is asked in this order: taken in first, because a marker has an old value until then. */
static enum work_stage work_stage(struct work_lane *lane, struct work_entry *entry)
{
	enum work_stage stage;
	uint32_t value;

	if (!entry->is_exact)
		return entry->number < work_fetched(lane) ? WORK_DONE : WORK_RUNS;
	if (!work_read32(entry->progress, &lane->progress_map, &value))
		return WORK_DONE; /* its memory is gone, and so is its work */
	if ((int32_t)(value - entry->payload) < 0)
		return WORK_WAITS;
	if (!entry->marker || !work_read32(entry->marker, &lane->marker_map, &value))
		return WORK_DONE;
	stage = work_marker(entry, value);
	lane->has_run |= stage == WORK_DONE;
	if (stage == WORK_DONE && entry->number > lane->ran)
		lane->ran = entry->number;
	return stage;
}

/* Whether an entry waits for a word that is not there yet. What cannot be read is taken for met. */
static bool work_is_held(struct work_lane *lane, const struct work_entry *entry)
{
	const volatile uint32_t *commands =
		gp_nvidia_map_find(entry->commands, entry->words * 4ull, &lane->segment_map);
	struct gp_nvidia_segment segment = { 0 };
	uint32_t value;

	if (commands)
		gp_nvidia_segment_read(commands, entry->words, &segment);
	for (uint32_t i = 0; i < segment.acquire_count; i++)
		if (work_read32(segment.acquires[i].address, &lane->marker_map, &value) &&
		    !gp_nvidia_acquire_is_met(&segment.acquires[i], value))
			return true;
	return false;
}

/* What is done when it is first read is not kept: bursts of short work are longer than the list. */
static void work_note(struct work_lane *lane, struct work_entry *entry)
{
	if (lane->open_count < WORK_OPEN_MAX && work_stage(lane, entry) != WORK_DONE)
		lane->open[lane->open_count++] = *entry;
}

/* How well the work of a queue is known: told to the daemon when it changes. */
static void work_account(struct gp_slot *slot, const struct work_lane *lane, bool is_exact, uint32_t words)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	bool at_fetch = slot->at_fetch;

	if (!is_exact && !group->coarse_count)
		gp_log3("nvidia: an entry cannot be followed: queue, entry, words", slot->queue_id, (int64_t)lane->read,
			words);
	group->exact_count += is_exact;
	group->coarse_count += !is_exact;
	group->exact_run = is_exact ? group->exact_run + 1u : 0;
	if (!is_exact)
		at_fetch = true;
	else if (group->exact_run >= WORK_EXACT_RUN)
		at_fetch = false;
	if (at_fetch != slot->at_fetch)
		gp_log3(at_fetch ? "nvidia: work is known as far as it is fetched: queue, exact, not" :
				   "nvidia: work is known by its markers: queue, exact, not",
			slot->queue_id, (int64_t)group->exact_count, (int64_t)group->coarse_count);
	slot->change_due |= at_fetch != slot->at_fetch && slot->is_announced;
	slot->at_fetch = at_fetch;
}

/* What the ring holds at a number: where the commands are and how many words of them, and what they say. */
static uint64_t work_ring_read(struct work_lane *lane, uint64_t number, struct work_entry *entry,
			       struct gp_nvidia_segment *segment)
{
	const volatile uint64_t *at = gp_nvidia_map_find(lane->ring + number % lane->entries * 8u, 8, &lane->ring_map);
	const volatile uint32_t *commands;
	uint64_t word = at ? *at : 0;

	*segment = (struct gp_nvidia_segment){ 0 };
	*entry = (struct work_entry){ .number = number };
	entry->commands = (word >> 32 & 0xffu) << 32 | (word & 0xfffffffcu);
	entry->words = (uint32_t)(word >> 42) & 0x1fffffu;
	commands = entry->words ? gp_nvidia_map_find(entry->commands, entry->words * 4ull, &lane->segment_map) : NULL;
	if (commands)
		gp_nvidia_segment_read(commands, entry->words, segment);
	return word;
}

/* Reads one entry of the ring, and what it leads to. */
static void work_entry_read(struct gp_slot *slot, struct work_lane *lane)
{
	struct gp_nvidia_segment segment;
	struct work_entry entry;

	lane->last = work_ring_read(lane, lane->read, &entry, &segment);
	/* The progress word counts entries: one that does not is another's. */
	entry.is_exact = segment.is_exact &&
			 !((segment.payload - (uint32_t)(lane->read + 1u)) & (lane->entries - 1u)) &&
			 gp_nvidia_map_find(segment.progress, 4, &lane->progress_map);
	entry.progress = segment.progress;
	entry.payload = segment.payload;
	for (uint32_t i = 0; i < segment.marker_count; i++)
		entry.is_exact &= gp_nvidia_map_find(segment.markers[i].address, 4, &lane->marker_map) != NULL;
	work_account(slot, lane, entry.is_exact, entry.words);
	/* All kernels of a segment but the last are before it in its stream: the last one's marker tells. */
	if (entry.is_exact && segment.marker_count) {
		entry.marker = segment.markers[segment.marker_count - 1u].address;
		entry.value = segment.markers[segment.marker_count - 1u].value;
	}
	lane->read++;
	work_note(lane, &entry);
}

static void work_prune(struct work_lane *lane)
{
	const struct work_entry *first = NULL;
	uint64_t now = gp_sys_now_ns();
	uint32_t kept = 0;

	lane->runs = false;
	for (uint32_t i = 0; i < lane->open_count; i++) {
		enum work_stage stage = work_stage(lane, &lane->open[i]);
		uint64_t older_ns = lane->open[i].older_ns;

		if (stage == WORK_DONE ||
		    (older_ns && now - older_ns >= WORK_OLDER_NS && lane->open[i].number < lane->ran))
			continue;
		lane->runs |= stage == WORK_RUNS;
		lane->open[kept] = lane->open[i];
		if (stage == WORK_WAITS && !first)
			first = &lane->open[kept];
		kept++;
	}
	lane->open_count = kept;
	/* Commands are taken in one after the other: the first that is not decides. */
	lane->waits = !lane->runs && first && work_is_held(lane, first);
}

/* CUDA has eight channels for the streams of a context, and most programs use one or two. */
static bool work_is_unused(const struct work_lane *lane)
{
	return lane->looked_ns && lane->written <= WORK_UNUSED && lane->read == lane->written && !lane->open_count;
}

/* PUT counts within the ring: whether the program has gone round since the last look is told by its newest entry, whose
 * payload counts all of them. One that cannot be followed tells no more than that it is another one. */
static void work_laps(struct work_lane *lane, uint64_t before, uint64_t now_ns)
{
	struct gp_nvidia_segment segment;
	struct work_entry entry;
	uint64_t last;
	uint32_t more;

	if (!lane->written || (!gp_agent.look_all && now_ns - lane->looked_ns < lane->entries * WORK_ENTRY_NS))
		return;
	last = work_ring_read(lane, lane->written - 1u, &entry, &segment);
	more = segment.payload - (uint32_t)lane->written;
	if (segment.is_exact && !(more & (lane->entries - 1u)))
		lane->written += (int32_t)more > 0 ? more : 0;
	else if (lane->written == before && lane->read == before && last != lane->last)
		lane->written += lane->entries;
}

/* False: its registers cannot be read. */
static bool work_look(struct gp_slot *slot, struct work_lane *lane, uint64_t now_ns)
{
	uint64_t userd = work_userd(lane), before = lane->written, oldest;
	uint32_t put, most = gp_agent.look_all ? lane->entries : WORK_LOOK_MAX;

	if (!userd || lane->broken || !work_read32(userd + GP_RM_USERD_PUT, &lane->userd_map, &put))
		return false;
	if (put >= lane->entries) {
		gp_log2("nvidia: registers make no sense: channel, put", lane->channel, put);
		lane->broken = true;
		return false;
	}
	lane->written += (put - lane->put) & (lane->entries - 1u);
	lane->put = put;
	lane->get_read = false;
	work_laps(lane, before, now_ns);
	lane->looked_ns = now_ns;
	/* What the ring does not hold any more was done long ago: it was overwritten. */
	oldest = lane->written < lane->entries ? 0 : lane->written - (lane->entries - 1u);
	if (lane->read < oldest)
		lane->read = oldest;
	work_prune(lane);
	for (uint32_t i = 0; i < most && lane->read < lane->written && lane->open_count < WORK_OPEN_MAX; i++)
		work_entry_read(slot, lane);
	work_prune(lane);
	return !lane->broken;
}

bool gp_nvidia_work_add(const struct gp_nvidia_object *channel)
{
	uint32_t entries = channel->entries;

	for (uint32_t i = 0; i < WORK_LANE_MAX; i++)
		if (!work_lanes[i].used) {
			struct work_lane *lane = &work_lanes[i];

			memset(lane, 0, offsetof(struct work_lane, open));
			lane->used = true;
			/* A ring's size is a power of two. */
			lane->broken = channel->unreadable || !entries || entries > WORK_ENTRIES_MAX ||
				       entries & (entries - 1u);
			lane->client = channel->client;
			lane->group = channel->parent;
			lane->channel = channel->handle;
			lane->entries = entries;
			lane->userd = channel->userd;
			lane->userd_offset = channel->userd_offset;
			lane->ring = channel->ring;
			if (i >= work_limit)
				work_limit = i + 1u;
			return true;
		}
	return false;
}

static struct work_lane *work_find(uint32_t client, uint32_t channel)
{
	for (uint32_t i = 0; i < work_limit; i++)
		if (work_lanes[i].used && work_lanes[i].client == client && work_lanes[i].channel == channel)
			return &work_lanes[i];
	return NULL;
}

void gp_nvidia_work_remove(const struct gp_nvidia_object *channel, struct gp_slot *slot)
{
	struct work_lane *lane = work_find(channel->client, channel->handle);

	if (!lane)
		return;
	/* What it had is done, one way or another: the sums only grow. */
	if (slot)
		gp_nvidia_group_of(slot)->gone += lane->written;
	lane->used = false;
}

void gp_nvidia_work_reset(void)
{
	for (uint32_t i = 0; i < work_limit; i++)
		work_lanes[i].used = false;
	work_limit = 0;
}

/* Nothing of it can run: it waits for its host, or for a copy. Short waits are not told: they are part of its work. */
static void work_block(struct gp_slot *slot, bool is_held)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	uint64_t now = gp_sys_now_ns();

	if (!is_held)
		group->held_ns = 0;
	else if (!group->held_ns)
		group->held_ns = now;
	slot->blocked = group->held_ns && now - group->held_ns >= WORK_HELD_NS;
}

/* A context is not gated before it has run a kernel and has been without work since, nor while its program still sets
 * it up, which is some fifty small pieces of work one after the other: each would wait for a turn. That a kernel has
 * run also says that its group was scheduled: before that, RM does not disable. */
static void work_start(struct gp_slot *slot, uint64_t now_ns)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	uint64_t called_ns = __atomic_load_n(&gp_nvidia.called_ns, __ATOMIC_RELAXED);

	if (!slot->starting)
		return;
	if (group->ran_ns ? now_ns - group->ran_ns < WORK_SETUP_NS &&
				    (now_ns < called_ns + WORK_QUIET_NS || slot->written > slot->completed) :
			    now_ns - group->begun_ns < WORK_START_NS)
		return;
	slot->starting = false;
	gp_log2("nvidia: it has started: queue, us", slot->queue_id, (int64_t)((now_ns - group->begun_ns) / 1000u));
}

/* A channel whose work is not seen may have some while the context looks idle: closed, it would wait for ever. */
static void work_can_be_seen(struct gp_slot *slot, bool can)
{
	bool blind = !can || slot->starting;

	if (slot->unreadable != !can)
		gp_log1(can ? "nvidia: its work can be seen: queue" : "nvidia: work that cannot be seen: queue",
			slot->queue_id);
	slot->unreadable = !can;
	slot->change_due |= slot->blind != blind && slot->is_announced;
	slot->blind = blind;
}

/* One that is open, has work and does not get on: perhaps somebody has disabled it once more than he knows. Then one
 * more enable helps, and otherwise it does no harm; so it is tried now and then, each time after twice as long. */
static void work_watch(struct gp_slot *slot, bool moved, uint64_t now_ns)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);

	if (moved || slot->written <= slot->completed || slot->blocked || gp_gate_is_closed(slot)) {
		group->still_ns = slot->help_ns = 0;
		return;
	}
	if (!group->still_ns) {
		group->still_ns = now_ns;
		group->still_wait_ns = WORK_STILL_NS;
	}
	slot->help_ns = group->still_ns + group->still_wait_ns;
}

void gp_nvidia_help(void)
{
	uint64_t now_ns = gp_sys_now_ns();

	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];
		struct gp_nvidia_group *group = gp_nvidia_group_of(slot);

		if (!slot->used || slot->dying || !slot->help_ns || now_ns < slot->help_ns)
			continue;
		group->still_ns = now_ns;
		if (group->still_wait_ns < WORK_STILL_MAX)
			group->still_wait_ns *= 2u;
		slot->help_ns = now_ns + group->still_wait_ns;
		gp_log2("nvidia: it stands still: queue, completed", slot->queue_id, (int64_t)slot->completed);
		gp_gate_open_again(slot, GP_MECHANISM_CHANNEL); /* its slice stays as it is */
	}
}

void gp_nvidia_look_again(void)
{
	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];

		if (slot->used && !slot->dying && slot->blind)
			gp_nvidia_sample(&slot, 1);
	}
	gp_link_flush();
}

/* What the lanes of a queue sum up to. */
struct work_sum {
	uint64_t written, completed;
	bool any, all, held; /* it has lanes; all can be read; each is done or waits for a word */
};

/* Of the used channels, or of those that are not. An unused one is looked at before a queue is told to have nothing to
 * run: its first work may be all there is. While others work it can wait. */
static void work_add_up(struct gp_slot *slot, bool unused, uint64_t now_ns, struct work_sum *sum)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	bool look = !unused || gp_agent.look_all || sum->held || !(group->looks % WORK_UNUSED_LOOK);

	for (uint32_t i = 0; i < work_limit; i++) {
		struct work_lane *lane = &work_lanes[i];

		if (!lane->used || lane->client != group->client || lane->group != group->group)
			continue;
		if (!unused)
			lane->is_unused = work_is_unused(lane);
		if (lane->is_unused != unused)
			continue;
		sum->any = true;
		if (look)
			sum->all &= work_look(slot, lane, now_ns);
		if (lane->has_run && !group->ran_ns)
			group->ran_ns = now_ns;
		sum->held &= lane->waits || (!lane->open_count && lane->read == lane->written);
		sum->written += lane->written;
		sum->completed += lane->read - lane->open_count;
	}
}

void gp_nvidia_sample(struct gp_slot *const *slots, uint32_t count)
{
	uint64_t now_ns = gp_sys_now_ns();

	for (uint32_t i = 0; i < count; i++) {
		struct gp_slot *slot = slots[i];
		struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
		struct work_sum sum = { group->gone, group->gone, false, !group->is_blind, true };
		uint64_t completed = slot->completed;

		work_is_closed = gp_gate_is_closed(slot);
		work_add_up(slot, false, now_ns, &sum);
		work_add_up(slot, true, now_ns, &sum);
		group->looks++;
		slot->written = sum.written;
		slot->completed = sum.completed > slot->completed ? sum.completed : slot->completed;
		work_start(slot, now_ns);
		work_can_be_seen(slot, sum.any && sum.all);
		work_block(slot, sum.any && sum.all && sum.held && sum.written > sum.completed);
		work_watch(slot, slot->completed != completed, now_ns);
	}
}
