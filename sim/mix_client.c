/* SPDX-License-Identifier: MIT */
/* Owns the client sections of a mix: their keys, and making clients of them when the section ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <gpreempt/sched.h>
#include "lib/units.h"
#include "sim/mix_state.h"

/* Clients of one name cannot be told apart in any result; nor can NAME-1 of a group and a client called so. */
static int client_is_new(const struct mix_parser *parser, const char *name, struct gp_error *error)
{
	for (uint32_t i = 0; i < parser->workload->client_count; i++)
		if (!strcmp(parser->workload->clients[i].name, name))
			return gp_error_set(error, -EEXIST, "there are two clients \"%.47s\"", name);
	return 0;
}

int gp_mix_client_begin(struct mix_parser *parser, const char *name, uint32_t line, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	int ret = client_is_new(parser, name, error);

	if (ret)
		return ret;

	*client = (struct mix_client){ .own_sequence = UINT32_MAX, .count = 1, .line = line, .speed_milli = 1000 };
	client->work =
		(struct gp_work_client){ .devices = 1, .queue_count = 1, .depth = 2, .priority = GP_PRIORITY_NORMAL };
	snprintf(client->name, sizeof(client->name), "%s", name);
	return 0;
}

static int client_set_priority(struct gp_work_client *work, const char *value, struct gp_error *error)
{
	static const struct {
		const char *name;
		int32_t priority;
	} names[] = {
		{ "idle", GP_PRIORITY_IDLE }, { "low", GP_PRIORITY_LOW },           { "normal", GP_PRIORITY_NORMAL },
		{ "high", GP_PRIORITY_HIGH }, { "realtime", GP_PRIORITY_REALTIME },
	};
	uint64_t number;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(value, names[i].name)) {
			work->priority = names[i].priority;
			return 0;
		}
	}
	if (gp_units_parse_count(value, "priority", 0, GP_PRIORITY_MAX, &number, error))
		return gp_error_set(
			error, -EINVAL,
			"priority is \"%.40s\"; it must be 0 to 99 (99 = most urgent), or idle, low, normal, "
			"high or realtime",
			value);
	work->priority = (int32_t)number;
	return 0;
}

static int client_set_devices(struct mix_parser *parser, const char *value, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	char buffer[MIX_VALUE_SIZE], *rest = NULL, *word;
	uint64_t number, set = 0;
	int ret;

	client->all_devices = !strcmp(value, "all");
	client->one_device_each = !strcmp(value, "each");
	if (client->all_devices || client->one_device_each)
		return 0;
	snprintf(buffer, sizeof(buffer), "%s", value);
	for (word = strtok_r(buffer, ", ", &rest); word; word = strtok_r(NULL, ", ", &rest)) {
		ret = gp_units_parse_count(word, "devices", 0, GP_WORK_DEVICE_MAX - 1, &number, error);
		if (ret)
			return ret;
		set |= 1ull << number;
	}
	if (!set)
		return gp_error_set(error, -EINVAL, "devices must be all, each, or numbers such as 0,1");
	client->work.devices = set;
	return 0;
}

static int client_set_arrival(struct mix_client *client, const char *value, struct gp_error *error)
{
	client->has_arrival = true;
	if (!strcmp(value, "poisson"))
		client->work.arrival = GP_ARRIVAL_POISSON;
	else if (!strcmp(value, "periodic"))
		client->work.arrival = GP_ARRIVAL_PERIODIC;
	else if (!strcmp(value, "closed"))
		client->work.arrival = GP_ARRIVAL_CLOSED;
	else
		return gp_error_set(error, -EINVAL,
				    "arrival is \"%.40s\"; it must be poisson, periodic or closed (or use "
				    "offsets, arrivals or replay)",
				    value);
	return 0;
}

static int client_set_rate(struct mix_client *client, const char *value, struct gp_error *error)
{
	char number[32];
	uint32_t milli;
	size_t size = strlen(value);
	int ret;

	if (size < 3 || size - 2 >= sizeof(number) || strcmp(value + size - 2, "/s"))
		return gp_error_set(error, -EINVAL, "rate is \"%.40s\"; it must be like 150/s", value);
	memcpy(number, value, size - 2);
	number[size - 2] = 0;
	ret = gp_mix_parse_permille(number, "rate", 1000000000u, &milli, error);
	if (!ret)
		client->work.period_ns = 1000000000000ull / milli;
	return ret;
}

static int client_set_offsets(struct mix_client *client, const char *value, struct gp_error *error)
{
	char buffer[MIX_VALUE_SIZE], *words[MIX_WORD_MAX * 4];
	struct gp_work_request *request;
	uint32_t i, count;
	uint64_t offset_ns;
	int ret;

	snprintf(buffer, sizeof(buffer), "%s", value);
	count = gp_mix_split(buffer, words, MIX_WORD_MAX * 4);
	if (!count || count > MIX_WORD_MAX * 4)
		return gp_error_set(error, -EINVAL, "offsets are 1 to %u times in one line (repeat the line for more)",
				    MIX_WORD_MAX * 4);
	for (i = 0; i < count; i++) {
		ret = gp_units_parse_ns(words[i], "offsets", 0, GP_WORK_NS_MAX, &offset_ns, error);
		if (ret)
			return ret;
		request = gp_workload_add_request(&client->work);
		if (!request)
			return gp_error_set(error, -ENOSPC, "more than %u arrivals", GP_WORK_ARRIVAL_MAX);
		request->offset_ns = offset_ns;
	}
	client->work.arrival = GP_ARRIVAL_EXPLICIT;
	client->has_arrival = true;
	return 0;
}

/* Keys that are a duration, a number, or yes and no. */
struct client_key {
	const char *name;
	char type;
	size_t offset;
	uint64_t min, max;
};
#define CLIENT_KEY(name_, type_, field_, min_, max_)                                    \
	{                                                                               \
		name_, type_, __builtin_offsetof(struct mix_client, field_), min_, max_ \
	}
static const struct client_key client_keys[] = {
	CLIENT_KEY("period", 't', work.period_ns, 1000, GP_WORK_NS_MAX),
	CLIENT_KEY("think", 't', work.think_ns, 0, GP_WORK_NS_MAX),
	CLIENT_KEY("pause", 't', work.pause_ns, 0, GP_WORK_NS_MAX),
	CLIENT_KEY("start", 't', work.start_ns, 0, GP_WORK_NS_MAX),
	CLIENT_KEY("stagger", 't', stagger_ns, 0, GP_WORK_NS_MAX),
	CLIENT_KEY("deadline", 't', work.deadline_ns, 1, GP_WORK_NS_MAX),
	CLIENT_KEY("budget", 't', work.budget_ns, 1, GP_WORK_NS_MAX),
	CLIENT_KEY("hint", 't', work.hint_ns, 0, GP_WORK_NS_MAX),
	CLIENT_KEY("warm", 'n', work.warm_count, 0, GP_WORK_ARRIVAL_MAX),
	CLIENT_KEY("burst", 'n', work.burst, 1, GP_WORK_BURST_MAX),
	CLIENT_KEY("session", 'n', work.session, 1, GP_WORK_ARRIVAL_MAX),
	CLIENT_KEY("weight", 'n', work.weight, 1, GP_WEIGHT_MAX),
	CLIENT_KEY("share", 's', work.floor_permille, 0, 0),
	CLIENT_KEY("gang", 'n', work.gang, 0, GP_GANG_MAX - 1),
	CLIENT_KEY("meets", 'n', work.meets, 1, GP_WORK_CLIENT_MAX),
	CLIENT_KEY("queues", 'n', work.queue_count, 1, GP_WORK_QUEUE_MAX),
	CLIENT_KEY("depth", 'n', work.depth, 1, GP_GPU_RING_MAX),
	CLIENT_KEY("ring", 'n', work.ring_size, 4, GP_GPU_RING_MAX),
	CLIENT_KEY("count", 'n', count, 1, GP_WORK_CLIENT_MAX),
	CLIENT_KEY("spread", 'b', work.spread, 0, 0),
	CLIENT_KEY("idempotent", 'b', work.idempotent, 0, 0),
	CLIENT_KEY("unseen", 'b', work.unseen, 0, 0),
	CLIENT_KEY("claims", 'b', work.claims, 0, 0),
};

static int client_set_plain(struct mix_client *client, const char *name, const char *value, struct gp_error *error)
{
	const struct client_key *key;
	uint64_t number;
	void *field;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(client_keys) / sizeof(client_keys[0]); i++) {
		key = &client_keys[i];
		if (strcmp(name, key->name))
			continue;
		field = (char *)client + key->offset;
		if (key->type == 'b')
			return gp_mix_parse_bool(value, name, field, error);
		if (key->type == 's')
			return gp_units_parse_share(value, name, field, error);
		if (key->type == 't')
			return gp_units_parse_ns(value, name, key->min, key->max, field, error);
		ret = gp_units_parse_count(value, name, key->min, key->max, &number, error);
		if (!ret)
			*(uint32_t *)field = (uint32_t)number;
		return ret;
	}
	return gp_error_set(
		error, -EINVAL,
		"\"%.40s\" is not a key of a client; there are kind, priority, arrival, rate, period, "
		"load, burst, think, session, pause, offsets, arrivals, speed, replay, timing, start, stagger, deadline, budget, hint, "
		"weight, share, "
		"gang, meets, devices, queues, spread, depth, ring, warm, memory, idempotent, unseen, claims, user, count, sequence, "
		"step",
		name);
}

static int client_own_step(struct mix_parser *parser, const char *value, struct gp_error *error)
{
	struct mix_client *client = &parser->client;

	if (client->own_sequence == UINT32_MAX)
		client->own_sequence = gp_workload_add_sequence(parser->workload);
	if (client->own_sequence == UINT32_MAX)
		return gp_error_set(error, -ENOSPC, "more than %u sequences", GP_WORK_SEQUENCE_MAX);
	return gp_mix_step_parse(parser, client->own_sequence, value, error);
}

static int client_set_file(struct mix_client *client, char *field, const char *value, struct gp_error *error)
{
	if (!value[0] || strlen(value) >= MIX_VALUE_SIZE)
		return gp_error_set(error, -EINVAL, "the file's name is empty or too long");
	strcpy(field, value);
	client->work.arrival = GP_ARRIVAL_EXPLICIT;
	client->has_arrival = true;
	return 0;
}

/* The scheduler knows users by number only. */
static int client_set_user(struct mix_client *client, const char *value, struct gp_error *error)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	if (!value[0])
		return gp_error_set(error, -EINVAL,
				    "user is empty; it is a name, the same for all clients of one user");
	for (; *value; value++)
		hash = (hash ^ (unsigned char)*value) * 0x100000001b3ull;
	client->work.user = hash ? hash : 1;
	return 0;
}

static int client_refuse_batch(const char *key, struct gp_error *error)
{
	return gp_error_set(error, -EINVAL,
			    "a batch client repeats its steps for ever: \"%s\" is for services (kind = service)", key);
}

static int client_set_kind(struct mix_client *client, const char *value, struct gp_error *error)
{
	if (strcmp(value, "service") && strcmp(value, "batch"))
		return gp_error_set(error, -EINVAL, "kind is \"%.40s\"; it must be service or batch", value);
	client->has_kind = true;
	client->work.kind = value[0] == 's' ? GP_WORK_SERVICE : GP_WORK_BATCH;
	if (client->work.kind == GP_WORK_BATCH && client->service_key[0])
		return client_refuse_batch(client->service_key, error);
	return 0;
}

/* Keys that say when requests come: a batch client has none, and how often is said once. */
static int client_check_key(struct mix_client *client, const char *name, struct gp_error *error)
{
	static const char *const rates[] = { "rate", "period", "load" };
	static const char *const others[] = { "arrival", "burst", "think", "session", "pause", "offsets", "arrivals" };
	bool is_service = false;

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (strcmp(name, rates[i]))
			continue;
		is_service = true;
		if (client->rate_key)
			return gp_error_set(error, -EINVAL,
					    "%s and %s both say how often requests come: give one of them",
					    client->rate_key, name);
		client->rate_key = rates[i];
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		is_service |= !strcmp(name, others[i]);
	if (!is_service)
		return 0;
	if (client->has_kind && client->work.kind == GP_WORK_BATCH)
		return client_refuse_batch(name, error);
	if (!client->service_key[0])
		snprintf(client->service_key, sizeof(client->service_key), "%.15s", name);
	return 0;
}

int gp_mix_client_set(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	int ret = client_check_key(client, name, error);

	if (ret)
		return ret;
	if (!strcmp(name, "kind"))
		return client_set_kind(client, value, error);
	if (!strcmp(name, "priority"))
		return client_set_priority(&client->work, value, error);
	if (!strcmp(name, "step"))
		return client_own_step(parser, value, error);
	if (!strcmp(name, "arrival"))
		return client_set_arrival(client, value, error);
	if (!strcmp(name, "rate"))
		return client_set_rate(client, value, error);
	if (!strcmp(name, "load"))
		return gp_mix_parse_permille(value, "load", 10000, &client->load_permille, error);
	if (!strcmp(name, "offsets"))
		return client_set_offsets(client, value, error);
	if (!strcmp(name, "arrivals"))
		return client_set_file(client, client->arrivals, value, error);
	if (!strcmp(name, "replay"))
		return client_set_file(client, client->replay, value, error);
	if (!strcmp(name, "speed"))
		return gp_mix_parse_permille(value, "speed", 1000000, &client->speed_milli, error);
	if (!strcmp(name, "devices"))
		return client_set_devices(parser, value, error);
	if (!strcmp(name, "memory"))
		return gp_units_parse_size(value, "memory", 1ull << 50, &client->work.memory_size, error);
	if (!strcmp(name, "user"))
		return client_set_user(client, value, error);
	if (!strcmp(name, "timing")) {
		client->back_to_back = !strcmp(value, "back-to-back");
		if (!client->back_to_back && strcmp(value, "kept"))
			return gp_error_set(error, -EINVAL, "timing is \"%.40s\"; it must be kept or back-to-back",
					    value);
		return 0;
	}
	if (!strcmp(name, "sequence")) {
		if (strlen(value) >= sizeof(client->sequence_name))
			return gp_error_set(error, -EINVAL, "the sequence's name is too long");
		strcpy(client->sequence_name, value);
		return 0;
	}
	return client_set_plain(client, name, value, error);
}

static int client_find_sequence(struct mix_parser *parser, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	char known[300] = "";
	size_t used = 0;
	uint32_t i;

	client->work.sequence = client->own_sequence;
	if (!client->sequence_name[0] && client->own_sequence == UINT32_MAX)
		return gp_error_set(error, -EINVAL, "client %s has neither steps nor a sequence", client->name);
	if (client->sequence_name[0] && client->own_sequence != UINT32_MAX)
		return gp_error_set(error, -EINVAL, "client %s has steps and a sequence; one of the two", client->name);
	if (!client->sequence_name[0])
		return 0;
	for (i = 0; i < parser->sequence_count; i++) {
		if (!strcmp(parser->sequences[i].name, client->sequence_name)) {
			client->work.sequence = parser->sequences[i].index;
			return 0;
		}
		if (used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
						 parser->sequences[i].name);
	}
	return gp_error_set(error, -EINVAL, "client %s: there is no sequence \"%s\" above it; there %s%s", client->name,
			    client->sequence_name, known[0] ? "are: " : "is none", known);
}

/* Fills in what depends on the whole section. */
static int client_settle(struct mix_parser *parser, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	struct gp_work_client *work = &client->work;
	uint32_t i, step_count;
	uint64_t request_ns;

	if (!client->has_kind)
		return gp_error_set(error, -EINVAL, "client %s: kind is missing; it is service or batch", client->name);
	if (client->load_permille) {
		request_ns = gp_mix_request_ns(parser->workload, work->sequence, parser->options->desc);
		if (request_ns > 1000 * GP_WORK_NS_MAX)
			return gp_error_set(error, -EINVAL, "client %s: a request is longer than 1000 h", client->name);
		/* The section's load is that of all its clients together. */
		work->period_ns = (uint64_t)((unsigned __int128)request_ns * 1000 * client->count *
					     (work->burst ? work->burst : 1) / client->load_permille);
	}
	if (work->kind == GP_WORK_SERVICE && !client->has_arrival)
		return gp_error_set(error, -EINVAL, "client %s: a service needs arrival, offsets, arrivals or replay",
				    client->name);
	if (work->kind == GP_WORK_SERVICE && !work->period_ns &&
	    (work->arrival == GP_ARRIVAL_POISSON || work->arrival == GP_ARRIVAL_PERIODIC))
		return gp_error_set(error, -EINVAL, "client %s: arrival = %s needs rate, period or load", client->name,
				    work->arrival == GP_ARRIVAL_POISSON ? "poisson" : "periodic");
	step_count = parser->workload->sequences[work->sequence].step_count;
	for (i = 0; i < work->request_count && !client->replay[0]; i++)
		work->requests[i].step_count = step_count;
	if (client->all_devices)
		work->devices = parser->workload->device_count >= 64 ? UINT64_MAX :
								       (1ull << parser->workload->device_count) - 1;
	return 0;
}

static int client_load_files(struct mix_parser *parser, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	struct gp_trace_kernels kernels;
	char path[4096];
	int ret;

	if (client->replay[0]) {
		ret = gp_mix_find_file(parser, client->replay, path, sizeof(path), error);
		if (!ret)
			ret = gp_trace_kernels_load(path, &kernels, error);
		if (ret)
			return ret;
		ret = gp_mix_replay(parser->workload, &client->work, &kernels, parser->options->desc,
				    client->back_to_back, error);
		gp_trace_kernels_fini(&kernels);
		client->has_kind = true;
		return ret;
	}
	ret = client_find_sequence(parser, error);
	if (ret || !client->arrivals[0])
		return ret;
	ret = gp_mix_find_file(parser, client->arrivals, path, sizeof(path), error);
	if (!ret)
		ret = gp_mix_arrivals(&client->work, path, client->speed_milli,
				      parser->workload->sequences[client->work.sequence].step_count, error);
	return ret;
}

static int client_expand(struct mix_parser *parser, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	struct gp_work_client *added;
	uint32_t i, k;

	for (i = 0; i < client->count; i++) {
		char name[sizeof(added->name)];

		if (client->count > 1)
			snprintf(name, sizeof(name), "%.36s-%u", client->name, i + 1);
		else
			snprintf(name, sizeof(name), "%s", client->name);
		if (client_is_new(parser, name, error))
			return -EEXIST;
		added = gp_workload_add_client(parser->workload);
		if (!added)
			return gp_error_set(error, -ENOSPC, "more than %u clients", GP_WORK_CLIENT_MAX);
		*added = client->work;
		added->requests = NULL;
		added->request_count = 0;
		memcpy(added->name, name, sizeof(name));
		added->start_ns += i * client->stagger_ns;
		if (client->one_device_each)
			added->devices = 1ull << i % parser->workload->device_count;
		for (k = 0; k < client->work.request_count; k++) {
			struct gp_work_request *request = gp_workload_add_request(added);

			if (!request)
				return gp_error_set(error, -ENOMEM, "out of memory");
			*request = client->work.requests[k];
		}
	}
	return 0;
}

int gp_mix_client_end(struct mix_parser *parser, struct gp_error *error)
{
	struct mix_client *client = &parser->client;
	int ret;

	ret = client_load_files(parser, error);
	if (!ret)
		ret = client_settle(parser, error);
	if (!ret)
		ret = client_expand(parser, error);
	free(client->work.requests);
	client->work.requests = NULL;
	client->work.request_count = 0;
	return ret;
}
