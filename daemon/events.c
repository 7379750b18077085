/* SPDX-License-Identifier: MIT */
/*
 * EVENTS: writes the core's trace as lines of JSON, each with a sentence. The daemon makes no line while no reader
 * is connected. It makes each line once, when the event happens, and keeps it for a while for all readers; each
 * reader gets it at the turn of the reader's user (fair.c). A reader that is slower than the events loses some and
 * is told how many; it never slows the daemon.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/daemon.h"
#include "daemon/lines.h"
#include "lib/units.h"

#define EVENTS_BATCH        64u
#define EVENTS_PACKET       16000u
#define EVENTS_USER_STREAMS 64u /* of one user who is not root; chosen */

struct gp_stream {
	struct gp_stream *next;
	struct gp_peer *peer;
	uint32_t cookie;
	uint64_t at, serial; /* of the next line it gets */
	uint64_t lost;
	bool all; /* sees the events of all users */
};

/* The sentence of an event: the queue's process is put in front, and the reason behind, where there are any. */
static const struct {
	const char *name, *says;
} events_words[] = {
	[GP_TRACE_QUEUE_ADD] = { "queue-add", "the daemon schedules it from now on" },
	[GP_TRACE_QUEUE_REMOVE] = { "queue-remove", "is gone" },
	[GP_TRACE_ATTR] = { "attr", "has new attributes" },
	[GP_TRACE_BUSY] = { "busy", "got work" },
	[GP_TRACE_IDLE] = { "idle", "has no work left after %s" },
	[GP_TRACE_HINT] = { "hint", "announced work" },
	[GP_TRACE_HINT_MISSED] = { "hint-missed", "announced work that did not come" },
	[GP_TRACE_PLAN] = { "plan", "the core made a plan" },
	[GP_TRACE_CLOSE] = { "close", "the daemon closes its gate" },
	[GP_TRACE_OPEN] = { "open", "the daemon opens its gate" },
	[GP_TRACE_CLOSED] = { "closed", "its gate is closed, %s after the order" },
	[GP_TRACE_OPENED] = { "opened", "its gate is open, %s after the order" },
	[GP_TRACE_LEFT_OPEN] = { "left-open", "its gate was left open beside more urgent work" },
	[GP_TRACE_INVERSION] = { "inversion", "waited %s for less urgent work" },
	[GP_TRACE_TURN] = { "turn", "its turn begins" },
	[GP_TRACE_QUARANTINE] = { "quarantine", "is in quarantine: the daemon leaves its gate open" },
	[GP_TRACE_ORDER_FAILED] = { "order-failed", "the driver or the agent could not carry out an order" },
	[GP_TRACE_PLAN_TIMEOUT] = { "plan-timeout", "the daemon had no answer to a plan in time" },
	[GP_TRACE_DEVICE_STOPPED] = { "device-stopped", "the daemon stops scheduling the device" },
	[GP_TRACE_DEVICE_STARTED] = { "device-started", "the daemon schedules the device again" },
	[GP_TRACE_OVERSUBSCRIBED] = { "oversubscribed", "the device has more processes than it runs at once" },
	[GP_TRACE_GATE_LOST] = { "gate-lost", "its gate changed without an order" },
	[GP_TRACE_STALE_ACK] = { "stale-ack", "the answer to an order came too late" },
	[GP_TRACE_TOP] = { "top", "programs take turns below another priority from now on" },
	[GP_TRACE_BACK_OFF] = { "back-off", "waits %s for its next turn out of order" },
	[GP_TRACE_SLICE] = { "slice", "its slice is being set" },
	[GP_TRACE_SLICED] = { "sliced", "its slice is set, %s after the order" },
	[GP_TRACE_SLICE_FAILED] = { "slice-failed", "its slice could not be set" },
	[GP_TRACE_SLOWED] = { "slowed", "slices are longer: the device switches by itself too often" },
	[GP_TRACE_FAST] = { "fast", "slices are short again" },
	[GP_TRACE_FLOOR] = { "floor", "goes before every priority from now on" }, /* or see events_sentence() */
};

#define EVENTS_TYPES (sizeof(events_words) / sizeof(events_words[0]))

static const char *events_name(uint32_t type)
{
	return type < EVENTS_TYPES && events_words[type].name ? events_words[type].name : "unknown";
}

static void events_sentence(const struct gp_trace_event *event, const struct gp_queue_name *who_is, char *text,
			    size_t size)
{
	const char *says = event->type < EVENTS_TYPES && events_words[event->type].says ?
				   events_words[event->type].says :
				   "an event without a description";
	bool is_over = event->type == GP_TRACE_FLOOR && !event->value; /* the share is back: no reason is left */
	const char *at, *why = event->why && !is_over ? gp_why_name((enum gp_why)event->why) : NULL;
	char duration[GP_UNITS_TEXT_SIZE] = "", who[160] = "";

	if (is_over)
		says = "has its guaranteed share again";
	at = strstr(says, "%s");
	if (who_is->is_known)
		snprintf(who, sizeof(who), "process %d (%s), queue %u: ", who_is->pid, who_is->name, who_is->queue_id);
	if (at)
		gp_units_format_ns(event->value, duration, sizeof(duration));
	snprintf(text, size, "%s%.*s%s%s%s%s", who, at ? (int)(at - says) : (int)strlen(says), says, duration,
		 at ? at + 2 : "", why ? ": " : "", why ? why : "");
}

/* The process and the queue of an event. */
static void events_who(const struct gp_queue_name *who, struct gp_text *line)
{
	gp_json_writer_known(gp_text_json(line), "pid", who->is_known, (uint64_t)who->pid);
	gp_text_string(line, "name", who->is_known ? who->name : NULL);
	gp_json_writer_known(gp_text_json(line), "queue_id", who->is_known, who->queue_id);
	gp_json_writer_known(gp_text_json(line), "priority", who->is_known, (uint64_t)who->priority);
}

static bool events_is_same(const struct gp_queue_name *a, const struct gp_queue_name *b)
{
	return a->is_known && b->is_known && a->uid == b->uid && a->account == b->account;
}

static uint64_t events_real_ns(const struct gp_daemon *daemon, uint64_t time_ns)
{
	uint64_t age_ns = gp_now_ns() - gp_running_was_ns(time_ns * daemon->dilation);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec - age_ns;
}

/* all: the reader sees the events of all users. Otherwise the line names the other queue only if it is the same user's.
 */
static void events_line(const struct gp_daemon *daemon, const struct gp_trace_event *event,
			const struct gp_queue_name *who, bool all, struct gp_text *line)
{
	struct gp_queue_name other;
	char sentence[512];

	gp_account_name(daemon, event->other, &other);
	if (!all && !events_is_same(&other, who))
		other.is_known = false;
	events_sentence(event, who, sentence, sizeof(sentence));
	gp_text_open(line, NULL, '{');
	gp_text_u64(line, "t_ns", event->time_ns);
	gp_text_u64(line, "real_ns", events_real_ns(daemon, event->time_ns));
	gp_text_u64(line, "gpu_id",
		    event->device < daemon->device_count ? daemon->devices[event->device].info.gpu_id : 0);
	gp_text_string(line, "event", events_name(event->type));
	gp_text_string(line, "why", event->why ? gp_why_name((enum gp_why)event->why) : NULL);
	events_who(who, line);
	if (other.is_known) {
		gp_text_open(line, "other", '{');
		gp_text_i64(line, "pid", other.pid);
		gp_text_u64(line, "queue_id", other.queue_id);
		gp_text_close(line, '}');
	} else {
		gp_text_string(line, "other", NULL);
	}
	gp_text_u64(line, "value", event->value);
	gp_text_string(line, "text", sentence);
	gp_text_close(line, '}');
	gp_text_add(line, "\n");
}

/* The line for a client that has ended, with what it got. It names no device and no queue. */
static void events_ended_line(const struct gp_daemon *daemon, const struct gp_ended *ended, struct gp_text *line)
{
	char sentence[GP_ACCOUNT_SENTENCE];

	gp_account_sentence(ended, sentence, sizeof(sentence));
	gp_text_open(line, NULL, '{');
	gp_text_u64(line, "t_ns", ended->ended_ns);
	gp_text_u64(line, "real_ns", events_real_ns(daemon, ended->ended_ns));
	gp_text_string(line, "gpu_id", NULL);
	gp_text_string(line, "event", "ended");
	gp_text_string(line, "why", NULL);
	gp_text_i64(line, "pid", ended->pid);
	gp_text_string(line, "name", ended->name);
	gp_text_string(line, "queue_id", NULL);
	gp_text_i64(line, "priority", ended->priority);
	gp_text_string(line, "other", NULL);
	gp_text_u64(line, "value", ended->spent.compute_ns);
	gp_text_string(line, "text", sentence);
	gp_text_string(line, "tag", *ended->tag ? ended->tag : NULL);
	gp_text_u64(line, "copy_ns", ended->spent.copy_ns);
	gp_text_u64(line, "wait_ns", ended->spent.wait_ns);
	gp_text_u64(line, "preemptions", ended->spent.preemptions);
	gp_text_u64(line, "inversions", ended->spent.inversions);
	gp_text_close(line, '}');
	gp_text_add(line, "\n");
}

/* Keeps the line in daemon->events.line: all_size bytes for readers who see all users' events, then the text for
 * readers of its own user. */
static void events_keep_line(struct gp_daemon *daemon, uint32_t all_size, uid_t uid, uint64_t account)
{
	struct gp_text *line = &daemon->events.line;
	struct gp_line *kept;

	if (line->failed || !all_size)
		return;
	kept = gp_lines_add(daemon->events.lines, all_size, (uint32_t)line->size - all_size);
	kept->uid = uid;
	kept->account = account;
	memcpy(kept->text, line->bytes, line->size);
}

static void events_keep(struct gp_daemon *daemon, const struct gp_trace_event *event)
{
	struct gp_queue_name who;
	uint32_t all_size;

	gp_account_name(daemon, event->queue, &who);
	gp_text_clear(&daemon->events.line);
	events_line(daemon, event, &who, true, &daemon->events.line);
	all_size = (uint32_t)daemon->events.line.size;
	if (who.is_known)
		events_line(daemon, event, &who, false, &daemon->events.line);
	events_keep_line(daemon, all_size, who.is_known ? who.uid : (uid_t)-1, who.is_known ? who.account : UINT64_MAX);
}

void gp_events_ended(struct gp_daemon *daemon, const struct gp_ended *ended)
{
	uint32_t all_size;

	if (!daemon->events.streams)
		return;
	gp_events_flush(daemon);
	gp_text_clear(&daemon->events.line);
	events_ended_line(daemon, ended, &daemon->events.line);
	all_size = (uint32_t)daemon->events.line.size;
	events_ended_line(daemon, ended, &daemon->events.line);
	events_keep_line(daemon, all_size, ended->uid, ended->account);
	for (struct gp_stream *stream = daemon->events.streams; stream; stream = stream->next)
		if (!stream->peer->backlog.size)
			gp_fair_add(daemon, stream->peer);
}

/* Skips and counts the lines that the reader was too slow for. */
static void events_skip(struct gp_daemon *daemon, struct gp_stream *stream)
{
	const struct gp_event_lines *lines = daemon->events.lines;

	if (stream->at >= lines->begin)
		return;
	stream->lost += lines->begin_serial - stream->serial;
	daemon->counters.events_lost += lines->begin_serial - stream->serial;
	stream->at = lines->begin;
	stream->serial = lines->begin_serial;
}

/* A queue that claims work and completes nothing costs others turns. The journal names its user, also while no reader
 * is connected. */
static void events_back_off(struct gp_daemon *daemon, const struct gp_trace_event *event)
{
	const struct gp_queue_entry *queue = gp_queue_of(daemon, event->queue);
	char duration[GP_UNITS_TEXT_SIZE];

	if (event->type != GP_TRACE_BACK_OFF || !queue)
		return;
	gp_units_format_ns(event->value, duration, sizeof(duration));
	gp_log_user(
		daemon, queue->client->owner,
		"user %u, process %d (%s), queue %u: had the GPU to itself and completed nothing; its next turn out "
		"of order comes after %s of device time",
		queue->client->uid, queue->client->device.pid, queue->client->name, queue->wire.queue_id, duration);
}

/* Reads the trace only when the core has counted back-offs since the last time: a trace without a reader costs nothing.
 */
static void events_watch(struct gp_daemon *daemon)
{
	struct gp_trace_event events[EVENTS_BATCH];
	uint64_t back_offs = 0, end = UINT64_MAX;
	struct gp_stats stats;
	uint32_t count = 0;

	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (!gp_sched_stats(daemon->sched, daemon->devices[i].core, &stats))
			back_offs += stats.back_offs;
	while (back_offs != daemon->events.back_offs &&
	       (count = gp_sched_trace_read(daemon->sched, &daemon->events.watch_cursor, events, EVENTS_BATCH, NULL)))
		for (uint32_t i = 0; i < count; i++)
			events_back_off(daemon, &events[i]);
	daemon->events.back_offs = back_offs;
	gp_sched_trace_read(daemon->sched, &end, NULL, 0, NULL);
	daemon->events.watch_cursor = end;
}

void gp_events_flush(struct gp_daemon *daemon)
{
	struct gp_trace_event events[EVENTS_BATCH];
	uint64_t lost;
	uint32_t count;

	events_watch(daemon);
	if (!daemon->events.streams)
		return;
	do {
		count = gp_sched_trace_read(daemon->sched, &daemon->events.trace_cursor, events, EVENTS_BATCH, &lost);
		for (struct gp_stream *stream = daemon->events.streams; stream && lost; stream = stream->next)
			stream->lost += lost;
		for (uint32_t i = 0; i < count; i++)
			events_keep(daemon, &events[i]);
	} while (count);
	for (struct gp_stream *stream = daemon->events.streams; stream; stream = stream->next) {
		events_skip(daemon, stream);
		if (stream->at != daemon->events.lines->end && !stream->peer->backlog.size)
			gp_fair_add(daemon, stream->peer);
	}
}

/* Tells the reader how many lines it has lost. Without memory it is told in the next packet. */
static size_t events_lost(struct gp_daemon *daemon, struct gp_stream *stream, char *packet)
{
	struct gp_text *line = &daemon->events.line;

	if (!stream->lost)
		return 0;
	gp_text_clear(line);
	gp_text_open(line, NULL, '{');
	gp_text_string(line, "event", "lost");
	gp_text_u64(line, "value", stream->lost);
	gp_text_close(line, '}');
	gp_text_add(line, "\n");
	if (line->failed)
		return 0;
	stream->lost = 0;
	memcpy(packet, line->bytes, line->size);
	return line->size;
}

/* Copies as many lines as fit into a packet. Returns their bytes. */
static size_t events_gather(struct gp_daemon *daemon, struct gp_stream *stream, char *packet)
{
	size_t size = events_lost(daemon, stream, packet);

	while (stream->at < daemon->events.lines->end && !gp_portion_is_over(daemon)) {
		const struct gp_line *kept = gp_line_at(daemon->events.lines, stream->at);
		bool own = stream->peer->uid == kept->uid && stream->peer->identity.account == kept->account;
		uint32_t line_size = stream->all ? kept->all_size : own ? kept->own_size : 0;

		if (size + line_size > EVENTS_PACKET)
			break;
		memcpy(packet + size, kept->text + (stream->all ? 0 : kept->all_size), line_size);
		size += line_size;
		stream->at += kept->size;
		stream->serial += kept->all_size != 0;
		gp_portion_use(daemon, 1);
	}
	return size;
}

void gp_events_deliver(struct gp_daemon *daemon, struct gp_peer *peer)
{
	struct gp_stream *stream = peer->stream;
	char packet[EVENTS_PACKET];
	size_t size;
	int r = 0;

	while (!r && !peer->backlog.size && stream->at < daemon->events.lines->end && !gp_portion_is_over(daemon)) {
		size = events_gather(daemon, stream, packet);
		if (size)
			r = gp_peer_answer_part(daemon, peer, stream->cookie, packet, size);
	}
	if (r)
		gp_peer_close(daemon, peer, NULL);
	else if (stream->at < daemon->events.lines->end && !peer->backlog.size)
		gp_fair_add(daemon, peer);
}

int gp_events_open(struct gp_daemon *daemon, struct gp_peer *peer, uint32_t cookie)
{
	struct gp_trace_event skipped[EVENTS_BATCH];
	struct gp_stream *stream;

	if (peer->stream)
		return -EBUSY;
	if (!gp_owner_is_root(peer->owner) && peer->owner->stream_count >= EVENTS_USER_STREAMS)
		return -EDQUOT;
	if (!daemon->events.lines)
		daemon->events.lines = calloc(1, sizeof(*daemon->events.lines));
	stream = daemon->events.lines ? calloc(1, sizeof(*stream)) : NULL;
	if (!stream)
		return -ENOMEM;
	if (daemon->events.streams)
		gp_events_flush(daemon);
	else /* the first reader gets events from now on, none from before */
		while (gp_sched_trace_read(daemon->sched, &daemon->events.trace_cursor, skipped, EVENTS_BATCH, NULL)) {}
	*stream = (struct gp_stream){ .next = daemon->events.streams,
				      .peer = peer,
				      .cookie = cookie,
				      .at = daemon->events.lines->end,
				      .serial = daemon->events.lines->end_serial,
				      .all = gp_access_sees_all(daemon, peer) };
	daemon->events.streams = peer->stream = stream;
	peer->owner->stream_count++;
	return 0;
}

uint64_t gp_events_end(const struct gp_daemon *daemon)
{
	uint64_t cursor = UINT64_MAX;

	gp_sched_trace_read(daemon->sched, &cursor, NULL, 0, NULL);
	return cursor;
}

static bool events_is_seen(const struct gp_peer *peer, bool all, uid_t uid, uint64_t account)
{
	return all || (peer->uid == uid && peer->identity.account == account);
}

/* Writes the clients that ended up to before_ns and that this reader has not been told of. */
static void events_past_ended(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job,
			      uint64_t before_ns, struct gp_text *text)
{
	bool all = gp_access_sees_all(daemon, peer);
	const struct gp_ended *ended;

	while ((ended = gp_account_ended(daemon, job->ended)) && ended->ended_ns <= before_ns) {
		job->ended = ended->serial + 1;
		gp_portion_use(daemon, 1);
		if (events_is_seen(peer, all, ended->uid, ended->account))
			events_ended_line(daemon, ended, text);
	}
}

/* Writes what the ring still holds, in parts: writing all of it takes longer than an order may wait. */
bool gp_events_past(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job, struct gp_text *text)
{
	struct gp_trace_event events[EVENTS_BATCH];
	bool all = gp_access_sees_all(daemon, peer), is_more;
	uint32_t count = gp_sched_trace_read(daemon->sched, &job->cursor, events, EVENTS_BATCH, NULL);
	struct gp_queue_name who;

	for (uint32_t i = 0; i < count; i++) {
		events_past_ended(daemon, peer, job, events[i].time_ns, text);
		gp_account_name(daemon, events[i].queue, &who);
		gp_portion_use(daemon, 1);
		if (all || (who.is_known && events_is_seen(peer, all, who.uid, who.account)))
			events_line(daemon, &events[i], &who, all, text);
	}
	is_more = count && job->cursor < job->end;
	if (!is_more)
		events_past_ended(daemon, peer, job, UINT64_MAX, text);
	return is_more;
}

void gp_events_close(struct gp_daemon *daemon, struct gp_stream *stream)
{
	struct gp_stream **at = &daemon->events.streams;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	stream->peer->stream = NULL;
	stream->peer->owner->stream_count--;
	free(stream);
	if (!daemon->events.streams) {
		free(daemon->events.lines);
		daemon->events.lines = NULL;
	}
}
