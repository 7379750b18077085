/* SPDX-License-Identifier: MIT */
/*
 * The work of a group. Each channel is a lane: a ring of entries that the application fills (GP_PUT says how far) and a
 * list of entries that are not done. An entry leads to a segment of commands, whose own words tell when it is done
 * (segment.c). An entry that the agent cannot follow counts as done when the GPU has fetched it (GP_GET), which is
 * earlier; the agent reports a queue with such entries to the daemon (GP_QUEUE_FETCH).
 *
 * written: entries put on the group's channels, ever; completed: those that are done. The two are equal if and only if
 * nothing is left, as far as the agent knows.
 */
#include <string.h>
#include "agent/log.h"
#include "agent/nvidia/nvidia.h"
#include "agent/nvidia/segment.h"
#include "agent/sys.h"

#define WORK_LANE_MAX 512u
#define WORK_OPEN_MAX 64u  /* entries of a lane that are read and not done; the agent reads the rest later */
#define WORK_LOOK_MAX 256u /* entries read in one sample, about 2 µs each, unless the daemon asks for all */
/* An entry whose marker keeps an older value is given up after so long if a later entry of its channel has run; chosen.
 */
#define WORK_OLDER_NS 10000000u
/* And if no later entry has run, after so long in which it could have run; chosen. */
#define WORK_GIVEN_UP_NS 1000000000u
#define WORK_HELD_NS     2000000u /* blocked for longer than copies usually take; chosen */
/* After so many entries that it could follow the agent clears GP_QUEUE_FETCH; chosen. */
#define WORK_EXACT_RUN 16u
#define WORK_UNUSED    2u /* an unused channel has at most so many entries: CUDA's setup */
/* While others work, the agent reads an unused channel at every so many samples: a read costs 1 µs. */
#define WORK_UNUSED_LOOK 8u
#define WORK_ENTRIES_MAX 0x10000u /* of a ring; 1024 in driver 580 */
/* So long without a call of the program's to the driver: setting up has thousands of calls; chosen. */
#define WORK_QUIET_NS  50000000u
#define WORK_SETUP_NS  1000000000u  /* setting up lasts no longer than this after the first kernel; chosen */
#define WORK_START_NS  10000000000u /* and, without a kernel, no longer than this after a call; chosen */
#define WORK_STILL_NS  500000000u   /* open without progress for so long: the agent enables it again; chosen */
#define WORK_STILL_MAX 64000000000u
#define WORK_ENTRY_NS  500u /* no program puts entries faster; a launch takes 3.3 µs on an H200 */

struct work_entry {
	uint64_t number; /* how many entries came before it */
	uint64_t progress, marker;
	uint32_t payload, value;
	uint64_t commands; /* address of the commands; words: how many */
	uint64_t older_ns; /* since when its marker has an older value; 0: it has not */
	uint32_t words;
	bool is_exact;
};
enum work_stage { WORK_WAITS, WORK_RUNS, WORK_DONE };

struct work_lane {
	bool used, broken;
	bool is_unused;                  /* as found at the start of this sample */
	bool get_read;                   /* GP_GET was read in this sample */
	bool has_run;                    /* a kernel of this lane has run */
	uint64_t ran;                    /* number of the last entry whose kernel is known to have run */
	uint32_t client, group, channel; /* handles */
	uint32_t entries;
	uint32_t userd; /* handle of the memory of its registers */
	uint64_t userd_offset, ring;
	uint32_t put;           /* GP_PUT as read last */
	uint64_t looked_ns;     /* when PUT was read last; 0: never */
	uint64_t last;          /* the ring's word of the newest entry that was read */
	uint64_t written, read; /* entries put; entries that the agent has read */
	uint64_t fetched;       /* entries fetched; valid if get_read */
	uint32_t open_count;
	/* runs: an open entry runs, or may; waits: none runs, and the first that waits does so for a word that is not
	 * there yet. */
	bool runs, waits;
	uint32_t ring_map, segment_map, progress_map, marker_map, userd_map; /* hints for gp_nvidia_map_find() */
	struct work_entry open[WORK_OPEN_MAX];
};
static struct work_lane work_lanes[WORK_LANE_MAX];
static uint32_t work_limit;
static bool work_is_closed; /* whether the gate of the sampled queue is closed */

static bool work_read32(uint64_t address, uint32_t *hint, uint32_t *ret_value)
{
	const volatile uint32_t *at = address % 4u ? NULL : gp_nvidia_map_find(address, 4, hint);

	if (!at)
		return false;
	*ret_value = *at;
	return true;
}

/* A marker steps from an older value to the entry's, and by one more when the kernel has run; later kernels that use
 * the word step on. Nothing guarantees that the first step is visible before the progress word's, so an older value
 * does not mean that the kernel has ended. It may belong to a kernel that was put aside before it began: by a closed
 * gate, or by the device for as long as others work. If such an entry counted as done, no gate would be opened for it
 * again. If a word starts over, which no known library does, the agent gives the entry up: soon if a later entry of its
 * channel has run, else after a long while. */
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

/* How many entries the GPU has fetched. PUT was read before GET: entries put and fetched since then make the lane look
 * busier, never idle too early. A read costs a microsecond, so there is one per sample, and only if an entry needs it.
 */
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

/* The progress word comes before the marker, because the marker has an old value until the GPU has taken in the
 * commands. */
static enum work_stage work_stage(struct work_lane *lane, struct work_entry *entry)
{
	enum work_stage stage;
	uint32_t value;

	if (!entry->is_exact)
		return entry->number < work_fetched(lane) ? WORK_DONE : WORK_RUNS;
	if (!work_read32(entry->progress, &lane->progress_map, &value))
		return WORK_DONE; /* its memory no longer exists, so it has no work left */
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

/* Whether an entry waits for a word that does not have the wanted value yet. A word that cannot be read counts as met.
 */
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

/* An entry that is done at its first read is not kept: bursts of short work are longer than the list. */
static void work_note(struct work_lane *lane, struct work_entry *entry)
{
	if (lane->open_count < WORK_OPEN_MAX && work_stage(lane, entry) != WORK_DONE)
		lane->open[lane->open_count++] = *entry;
}

/* How well the agent knows the work of a queue: it tells the daemon when that changes. */
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

/* Reads the ring's entry of a number: address and length of its commands, and what they say. Returns the ring's word.
 */
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

/* Reads the lane's next entry, and the segment it leads to. */
static void work_entry_read(struct gp_slot *slot, struct work_lane *lane)
{
	struct gp_nvidia_segment segment;
	struct work_entry entry;

	lane->last = work_ring_read(lane, lane->read, &entry, &segment);
	/* The channel's progress word counts its entries: a word that does not fit is not the channel's own. */
	entry.is_exact = segment.is_exact &&
			 !((segment.payload - (uint32_t)(lane->read + 1u)) & (lane->entries - 1u)) &&
			 gp_nvidia_map_find(segment.progress, 4, &lane->progress_map);
	entry.progress = segment.progress;
	entry.payload = segment.payload;
	for (uint32_t i = 0; i < segment.marker_count; i++)
		entry.is_exact &= gp_nvidia_map_find(segment.markers[i].address, 4, &lane->marker_map) != NULL;
	work_account(slot, lane, entry.is_exact, entry.words);
	/* The last kernel of a segment ends last in its stream, so its marker decides. */
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
	/* The GPU takes in entries in order: the first one that it has not taken in decides. */
	lane->waits = !lane->runs && first && work_is_held(lane, first);
}

/* CUDA has eight channels for the streams of a context, and most programs use one or two. */
static bool work_is_unused(const struct work_lane *lane)
{
	return lane->looked_ns && lane->written <= WORK_UNUSED && lane->read == lane->written && !lane->open_count;
}

/* PUT counts within the ring, so it does not show whether the program has gone round since the last sample. The payload
 * of the newest entry does: it counts all entries. If the agent cannot follow the newest entry, it sees only whether
 * that is another one than before. */
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

/* False: the lane's registers cannot be read. */
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
	/* Entries that the program has overwritten count as done: the GPU has fetched them. */
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
	/* The work of an ended channel counts as done, so that the sums only grow. */
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

/* is_held: nothing of the queue can run: it waits for its host, or for a copy. The agent does not report short waits:
 * they count as work. */
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

/* A context must not be gated before it has run a kernel and has been without work since, nor while its program still
 * sets it up: that is some fifty small pieces of work one after the other, and each would wait for a turn. A kernel
 * that has run also shows that the group was scheduled: before that, RM does not disable. */
#define WORK_START_MAX_NS 60000000000u /* nor than this in all: a program that calls all the time; chosen */
static void work_start(struct gp_slot *slot, uint64_t now_ns)
{
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);
	uint64_t called_ns = __atomic_load_n(&gp_nvidia.called_ns, __ATOMIC_RELAXED);

	if (!slot->starting)
		return;
	if (group->ran_ns ? now_ns - group->ran_ns < WORK_SETUP_NS &&
				    (now_ns < called_ns + WORK_QUIET_NS || slot->written > slot->completed) :
			    now_ns < (called_ns > group->begun_ns ? called_ns : group->begun_ns) + WORK_START_NS &&
				    now_ns - group->begun_ns < WORK_START_MAX_NS)
		return;
	slot->starting = false;
	gp_log2("nvidia: it has started: queue, us", slot->queue_id, (int64_t)((now_ns - group->begun_ns) / 1000u));
}

/* A channel that the agent cannot observe may have work while the context looks idle: closed, it would wait for ever.
 */
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

/* A queue that is open, has work and makes no progress: perhaps a process has disabled it once more than it enabled it.
 * Then one more enable helps, and otherwise it does no harm. So the agent tries it now and then, each time after twice
 * as long. */
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
		gp_gate_open_again(slot, GP_MECHANISM_CHANNEL); /* mechanism channel: the slice stays as it is */
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

/* The sums over the lanes of a queue. */
struct work_sum {
	uint64_t written, completed;
	bool any, all, held; /* it has lanes; all can be read; each is done or waits for a word */
};

/* Adds up the used channels, or the unused ones. The agent looks at unused channels before it reports that a queue has
 * nothing to run: their first work may be all there is. While other channels work, that can wait. */
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
