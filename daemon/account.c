/* SPDX-License-Identifier: MIT */
/*
 * Accounts: what each client got of the devices while it runs, and in all after it has ended; and the same for each
 * tag. The core forgets queues and clients when they go, so the daemon asks it just before. Tables of fixed size keep
 * the clients that have ended, the tags, and the names of queues that have gone. Among the clients that have ended,
 * those of one user can push those of others out of at most half of the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/daemon.h"
#include "lib/units.h"

#define ACCOUNT_PART_SIZE 14000u

struct account_tag {
	char tag[GP_WIRE_NAME_SIZE];
	uint32_t clients; /* that ended; 0: the place is free */
	uint64_t used;    /* serial of the last that ended */
	struct gp_spent spent;
};

struct gp_accounts {
	struct gp_ended ended[GP_ACCOUNT_MAX]; /* by serial, the oldest first */
	uint32_t count;
	uint64_t serial; /* of the next */
	struct account_tag tags[GP_ACCOUNT_TAGS];
	struct gp_queue_name queues[GP_ACCOUNT_QUEUES];
};

int gp_account_init(struct gp_daemon *daemon)
{
	daemon->accounts = calloc(1, sizeof(*daemon->accounts));
	return daemon->accounts ? 0 : -ENOMEM;
}

void gp_account_fini(struct gp_daemon *daemon)
{
	free(daemon->accounts);
	daemon->accounts = NULL;
}

static uint64_t account_real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void account_add(struct gp_spent *sum, const struct gp_spent *more)
{
	sum->compute_ns += more->compute_ns;
	sum->copy_ns += more->copy_ns;
	sum->wait_ns += more->wait_ns;
	sum->preemptions += more->preemptions;
	sum->inversions += more->inversions;
}

static void account_add_queue(struct gp_daemon *daemon, const struct gp_queue_entry *queue, struct gp_spent *sum)
{
	struct gp_queue_info info;

	if (!queue->in_core || gp_sched_queue_info(daemon->sched, queue->core, &info))
		return;
	sum->preemptions += info.preemptions;
	sum->inversions += info.inversions;
}

/* What the client has had of one device since it came there; nothing if it is not there. */
static bool account_seat(struct gp_daemon *daemon, const struct gp_client *client, uint32_t device,
			 struct gp_spent *ret_spent)
{
	struct gp_seat_info info;

	*ret_spent = (struct gp_spent){ 0 };
	if (!client->in_core || gp_sched_seat_info(daemon->sched, client->core, daemon->devices[device].core, &info))
		return false;
	*ret_spent =
		(struct gp_spent){ .compute_ns = info.compute_ns, .copy_ns = info.copy_ns, .wait_ns = info.wait_ns };
	return true;
}

static struct gp_queue_name *account_place(struct gp_accounts *accounts, struct gp_queue_id id)
{
	return &accounts->queues[(id.index + id.generation * 31u) % GP_ACCOUNT_QUEUES];
}

static void account_take_name(const struct gp_queue_entry *queue, struct gp_queue_name *ret_name)
{
	*ret_name = (struct gp_queue_name){ .id = queue->core,
					    .is_known = true,
					    .pid = queue->client->device.pid,
					    .uid = queue->client->uid,
					    .account = queue->client->identity.account,
					    .queue_id = queue->wire.queue_id,
					    .priority = queue->attr.priority };
	memcpy(ret_name->name, queue->client->name, sizeof(ret_name->name));
}

void gp_account_leave(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	gp_sched_set_time(daemon->sched, gp_daemon_now_ns(daemon));
	account_add_queue(daemon, queue, &queue->client->spent);
	account_seat(daemon, queue->client, queue->device, &queue->client->leaving);
	account_take_name(queue, account_place(daemon->accounts, queue->core));
	queue->client->had_queues = true;
}

/* When the client's last queue has left the device, the core has forgotten what the client had there. The daemon then
 * adds what it read before. */
void gp_account_left(struct gp_daemon *daemon, struct gp_queue_entry *queue)
{
	struct gp_client *client = queue->client;
	struct gp_spent now;

	if (!account_seat(daemon, client, queue->device, &now))
		account_add(&client->spent, &client->leaving);
	client->leaving = (struct gp_spent){ 0 };
}

static void account_spent(struct gp_daemon *daemon, const struct gp_client *client, struct gp_spent *ret_spent)
{
	struct gp_spent seat;

	*ret_spent = client->spent;
	for (uint32_t i = 0; i < daemon->device_count; i++)
		if (account_seat(daemon, client, i, &seat))
			account_add(ret_spent, &seat);
	for (uint32_t i = 0; i < client->slot_count; i++)
		if (client->slots[i].queue)
			account_add_queue(daemon, client->slots[i].queue, ret_spent);
}

void gp_account_rebuild(struct gp_daemon *daemon)
{
	struct gp_spent spent;

	if (!daemon->sched)
		return;
	gp_sched_set_time(daemon->sched, gp_daemon_now_ns(daemon));
	for (uint32_t i = 0; i < daemon->client_top; i++)
		if (daemon->clients[i]) {
			account_spent(daemon, daemon->clients[i], &spent);
			daemon->clients[i]->spent = spent;
		}
	/* The new core numbers queues and events from the start. */
	memset(daemon->accounts->queues, 0, sizeof(daemon->accounts->queues));
}

void gp_account_name(const struct gp_daemon *daemon, struct gp_queue_id id, struct gp_queue_name *ret_name)
{
	const struct gp_queue_entry *queue = gp_queue_of(daemon, id);
	const struct gp_queue_name *gone = account_place(daemon->accounts, id);

	if (queue)
		account_take_name(queue, ret_name);
	else if (gone->is_known && gone->id.index == id.index && gone->id.generation == id.generation)
		*ret_name = *gone;
	else
		*ret_name = (struct gp_queue_name){ .id = id };
}

/* Makes room for one client that has ended: drops the oldest of the same user if that user has half of the places, else
 * the oldest of all. */
static void account_make_room(struct gp_accounts *accounts, uint64_t account)
{
	uint32_t own = 0, first = 0;

	if (accounts->count < GP_ACCOUNT_MAX)
		return;
	for (uint32_t i = GP_ACCOUNT_MAX; i-- > 0;)
		if (accounts->ended[i].account == account) {
			own++;
			first = i;
		}
	first = own >= GP_ACCOUNT_MAX / 2 ? first : 0;
	memmove(&accounts->ended[first], &accounts->ended[first + 1],
		(GP_ACCOUNT_MAX - first - 1) * sizeof(accounts->ended[0]));
	accounts->count--;
}

static void account_add_tag(struct gp_accounts *accounts, const struct gp_ended *ended)
{
	struct account_tag *place = &accounts->tags[0];

	for (uint32_t i = 0; i < GP_ACCOUNT_TAGS; i++) {
		struct account_tag *tag = &accounts->tags[i];

		if (tag->clients && !strcmp(tag->tag, ended->tag)) {
			place = tag;
			break;
		}
		if (tag->used < place->used)
			place = tag;
	}
	if (!place->clients || strcmp(place->tag, ended->tag)) {
		*place = (struct account_tag){ 0 };
		memcpy(place->tag, ended->tag, sizeof(place->tag));
	}
	place->clients++;
	place->used = ended->serial + 1;
	account_add(&place->spent, &ended->spent);
}

void gp_account_sentence(const struct gp_ended *ended, char *text, size_t size)
{
	char ran[GP_UNITS_TEXT_SIZE], waited[GP_UNITS_TEXT_SIZE];

	gp_units_format_ns(ended->spent.compute_ns, ran, sizeof(ran));
	gp_units_format_ns(ended->spent.wait_ns, waited, sizeof(waited));
	snprintf(
		text, size,
		"process %d (%s%s%s) has ended: it ran for %s and waited for %s of device time; %llu preemptions, %llu inversions",
		ended->pid, ended->name, *ended->tag ? ", tag " : "", ended->tag, ran, waited,
		(unsigned long long)ended->spent.preemptions, (unsigned long long)ended->spent.inversions);
}

void gp_account_end(struct gp_daemon *daemon, struct gp_client *client)
{
	struct gp_accounts *accounts = daemon->accounts;
	uint64_t now_ns = gp_now_ns(), real_ns = account_real_ns();
	char sentence[GP_ACCOUNT_SENTENCE];
	struct gp_ended *ended;

	if (!client->had_queues)
		return;
	account_make_room(accounts, client->identity.account);
	ended = &accounts->ended[accounts->count++];
	*ended = (struct gp_ended){ .serial = accounts->serial++,
				    .ended_ns = gp_daemon_now_ns(daemon),
				    .started_real_ns = real_ns - (now_ns - client->connected_ns),
				    .ended_real_ns = real_ns,
				    .pid = client->device.pid,
				    .uid = client->uid,
				    .account = client->identity.account,
				    .priority = client->attr.priority,
				    .spent = client->spent };
	memcpy(ended->name, client->name, sizeof(ended->name));
	memcpy(ended->tag, client->terms.tag, sizeof(ended->tag));
	if (*ended->tag)
		account_add_tag(accounts, ended);
	gp_account_sentence(ended, sentence, sizeof(sentence));
	gp_log_user(daemon, client->owner, "account: uid %u, %s", client->uid, sentence);
	gp_events_ended(daemon, ended);
}

const struct gp_ended *gp_account_ended(const struct gp_daemon *daemon, uint64_t serial)
{
	const struct gp_accounts *accounts = daemon->accounts;
	uint32_t low = 0, high = accounts->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (accounts->ended[middle].serial < serial)
			low = middle + 1;
		else
			high = middle;
	}
	return low < accounts->count ? &accounts->ended[low] : NULL;
}

static void account_write_spent(const struct gp_spent *spent, struct gp_text *text)
{
	gp_text_u64(text, "compute_ns", spent->compute_ns);
	gp_text_u64(text, "copy_ns", spent->copy_ns);
	gp_text_u64(text, "wait_ns", spent->wait_ns);
	gp_text_u64(text, "preemptions", spent->preemptions);
	gp_text_u64(text, "inversions", spent->inversions);
}

static void account_write(struct gp_daemon *daemon, const struct gp_ended *ended, struct gp_text *text)
{
	char user[64];

	gp_portion_use(daemon, 1);
	gp_text_open(text, NULL, '{');
	gp_text_i64(text, "pid", ended->pid);
	gp_text_u64(text, "uid", ended->uid);
	gp_text_string(text, "user", gp_user_name(daemon, ended->uid, user, sizeof(user)));
	gp_text_string(text, "name", ended->name);
	gp_text_string(text, "tag", *ended->tag ? ended->tag : NULL);
	gp_text_i64(text, "priority", ended->priority);
	gp_text_u64(text, "started_unix_ns", ended->started_real_ns);
	gp_json_writer_known(gp_text_json(text), "ended_unix_ns", ended->ended_real_ns, ended->ended_real_ns);
	account_write_spent(&ended->spent, text);
	gp_text_close(text, '}');
}

/* A client that has not ended, in the form of one that has. */
static void account_write_client(struct gp_daemon *daemon, const struct gp_client *client, struct gp_text *text)
{
	struct gp_ended now = { .started_real_ns = account_real_ns() - (gp_now_ns() - client->connected_ns),
				.pid = client->device.pid,
				.uid = client->uid,
				.priority = client->attr.priority };

	gp_portion_use(daemon, client->queue_count);
	memcpy(now.name, client->name, sizeof(now.name));
	memcpy(now.tag, client->terms.tag, sizeof(now.tag));
	account_spent(daemon, client, &now.spent);
	account_write(daemon, &now, text);
}

static void account_write_tags(struct gp_daemon *daemon, struct gp_text *text)
{
	gp_text_open(text, "tags", '[');
	for (uint32_t i = 0; i < GP_ACCOUNT_TAGS; i++) {
		const struct account_tag *tag = &daemon->accounts->tags[i];

		if (!tag->clients)
			continue;
		gp_text_open(text, NULL, '{');
		gp_text_string(text, "tag", tag->tag);
		gp_text_u64(text, "ended_clients", tag->clients);
		account_write_spent(&tag->spent, text);
		gp_text_close(text, '}');
	}
	gp_text_close(text, ']');
	gp_portion_use(daemon, GP_ACCOUNT_TAGS / 4);
}

static bool account_is_seen(const struct gp_daemon *daemon, const struct gp_peer *peer, uid_t uid, uint64_t account)
{
	return gp_access_sees_all(daemon, peer) || (peer->uid == uid && peer->identity.account == account);
}

enum { ACCOUNT_BEGIN, ACCOUNT_ENDED, ACCOUNT_CLIENTS, ACCOUNT_END };

static void account_next(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job)
{
	const struct gp_ended *ended;
	const struct gp_client *client;

	switch (job->stage) {
	case ACCOUNT_BEGIN:
		gp_sched_set_time(daemon->sched, gp_daemon_now_ns(daemon));
		gp_text_open(&job->text, NULL, '{');
		gp_text_u64(&job->text, "schema", 1);
		gp_text_open(&job->text, "clients", '[');
		job->stage = ACCOUNT_ENDED;
		return;
	case ACCOUNT_ENDED:
		ended = gp_account_ended(daemon, job->cursor);
		job->stage = ended ? ACCOUNT_ENDED : ACCOUNT_CLIENTS;
		if (!ended)
			return;
		job->cursor = ended->serial + 1;
		if (account_is_seen(daemon, peer, ended->uid, ended->account))
			account_write(daemon, ended, &job->text);
		gp_portion_use(daemon, 1);
		return;
	case ACCOUNT_CLIENTS:
		if (job->index < daemon->client_top) {
			client = daemon->clients[job->index++];
			if (client && !client->is_unmanaged &&
			    account_is_seen(daemon, peer, client->uid, client->identity.account))
				account_write_client(daemon, client, &job->text);
			return;
		}
		gp_text_close(&job->text, ']');
		if (gp_access_sees_all(daemon, peer))
			account_write_tags(daemon, &job->text);
		gp_text_close(&job->text, '}');
		gp_text_add(&job->text, "\n");
		job->stage = ACCOUNT_END;
		return;
	default: return;
	}
}

bool gp_account_part(struct gp_daemon *daemon, const struct gp_peer *peer, struct gp_job *job)
{
	do {
		account_next(daemon, peer, job);
	} while (job->stage != ACCOUNT_END && job->text.size < ACCOUNT_PART_SIZE && !gp_portion_is_over(daemon));
	return job->stage == ACCOUNT_END;
}
