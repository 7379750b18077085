/* SPDX-License-Identifier: MIT */
/* Owns the reading of the daemon's status. Tables say which key goes where; what they do not name is skipped, so that
 * newer daemons can say more. */
#include <errno.h>
#include <gpreempt/mechanism.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/clean.h"
#include "cli/control.h"
#include "cli/state.h"
#include "lib/json.h"

enum state_kind { STATE_NUMBER, STATE_TEXT, STATE_OBJECT, STATE_ARRAY };

struct state_reader {
	struct gp_state *state;
	struct gp_json json;
	struct gp_error *error;
	uint32_t client_room, queue_room;
};

/* At the first token of an element of the array whose owner is `base`. */
typedef int (*state_element)(struct state_reader *reader, void *base);

struct state_field {
	const char *key;
	enum state_kind kind;
	size_t offset, size;              /* size: of a text */
	const struct state_field *fields; /* of an object */
	state_element element;            /* of an array */
};

#define NUMBER(type, member)                                                        \
	{                                                                           \
#member, STATE_NUMBER, offsetof(struct type, member), 0, NULL, NULL \
	}
#define TEXT(type, member)                                                                                         \
	{                                                                                                          \
#member, STATE_TEXT, offsetof(struct type, member), sizeof(((struct type *)0)->member), NULL, NULL \
	}
#define OBJECT(type, member, table)                                                  \
	{                                                                            \
#member, STATE_OBJECT, offsetof(struct type, member), 0, table, NULL \
	}
#define ARRAY(key, element)                           \
	{                                             \
		key, STATE_ARRAY, 0, 0, NULL, element \
	}
#define END                                          \
	{                                            \
		NULL, STATE_NUMBER, 0, 0, NULL, NULL \
	}

static int state_refuse(struct state_reader *reader, const char *what)
{
	return gp_error_set(reader->error, -EPROTO, "the daemon's answer is invalid: %s", what);
}

static int state_next(struct state_reader *reader)
{
	struct gp_error error = { "" };
	int r = gp_json_next(&reader->json, &error);

	gp_clean_line(error.text);
	return r ? state_refuse(reader, error.text) : 0;
}

/* Past the value whose first token has been read. */
static int state_skip(struct state_reader *reader)
{
	enum gp_json_type type = reader->json.type;

	if (type == GP_JSON_OBJECT_BEGIN || type == GP_JSON_ARRAY_BEGIN)
		return gp_json_skip(&reader->json, NULL) ? state_refuse(reader, "it is not JSON") : 0;
	return 0;
}

static void state_unknown(void *base, const struct state_field *fields)
{
	for (; fields->key; fields++) {
		char *at = (char *)base + fields->offset;

		if (fields->kind == STATE_NUMBER)
			*(uint64_t *)(void *)at = GP_STATE_UNKNOWN;
		else if (fields->kind == STATE_OBJECT)
			state_unknown(at, fields->fields);
	}
}

static int state_object(struct state_reader *reader, void *base, const struct state_field *fields);

static int state_value(struct state_reader *reader, void *base, const struct state_field *field)
{
	const struct gp_json *json = &reader->json;
	char *at = (char *)base + field->offset;
	int r = 0;

	if (field->kind == STATE_NUMBER) {
		uint64_t *number = (uint64_t *)(void *)at;

		if (json->type == GP_JSON_NUMBER && json->is_u64)
			*number = json->u64;
		else if (json->type == GP_JSON_TRUE || json->type == GP_JSON_FALSE)
			*number = json->type == GP_JSON_TRUE;
		return state_skip(reader);
	}
	if (field->kind == STATE_TEXT && json->type == GP_JSON_STRING) {
		gp_clean_copy(at, field->size, json->string);
		return 0;
	}
	if (field->kind == STATE_OBJECT && json->type == GP_JSON_OBJECT_BEGIN)
		return state_object(reader, at, field->fields);
	if (field->kind != STATE_ARRAY || json->type != GP_JSON_ARRAY_BEGIN)
		return state_skip(reader);
	while (!(r = state_next(reader)) && json->type != GP_JSON_ARRAY_END) {
		r = field->element(reader, base);
		if (r)
			break;
	}
	return r;
}

/* After OBJECT_BEGIN, up to its end. */
static int state_object(struct state_reader *reader, void *base, const struct state_field *fields)
{
	int r;

	while (!(r = state_next(reader)) && reader->json.type == GP_JSON_KEY) {
		const struct state_field *field = fields;

		while (field->key && strcmp(field->key, reader->json.string) != 0)
			field++;
		r = state_next(reader);
		if (!r)
			r = field->key ? state_value(reader, base, field) : state_skip(reader);
		if (r)
			return r;
	}
	return r;
}

static const struct state_field state_cost_fields[] = {
	NUMBER(gp_state_cost, prior), NUMBER(gp_state_cost, p50),   NUMBER(gp_state_cost, p90),
	NUMBER(gp_state_cost, p99),   NUMBER(gp_state_cost, count), END,
};
static const struct state_field state_stats_fields[] = {
#define STATE_COUNTER(field, metric, help, is_time) NUMBER(gp_state_stats, field),
	GP_COUNTER_TABLE(STATE_COUNTER)
#undef STATE_COUNTER
		END,
};
static const struct state_field state_finding_fields[] = {
	TEXT(gp_state_finding, mechanism),
	TEXT(gp_state_finding, text),
	NUMBER(gp_state_finding, usable),
	END,
};

static int state_finding(struct state_reader *reader, void *base)
{
	struct gp_state_device *device = base;
	struct gp_state_finding *finding = &device->findings[device->finding_count];

	if (reader->json.type != GP_JSON_OBJECT_BEGIN || device->finding_count == GP_STATE_FINDING_MAX)
		return state_skip(reader);
	state_unknown(finding, state_finding_fields);
	device->finding_count++;
	return state_object(reader, finding, state_finding_fields);
}

static const struct state_field state_device_fields[] = {
	NUMBER(gp_state_device, gpu_id),
	NUMBER(gp_state_device, node),
	NUMBER(gp_state_device, cu_count),
	NUMBER(gp_state_device, slot_count),
	NUMBER(gp_state_device, process_count_max),
	NUMBER(gp_state_device, memory_bytes),
	NUMBER(gp_state_device, stops_all),
	NUMBER(gp_state_device, kernel_reopens),
	NUMBER(gp_state_device, self_switching),
	NUMBER(gp_state_device, switch_ns),
	NUMBER(gp_state_device, short_slice_us),
	NUMBER(gp_state_device, switches_per_s),
	NUMBER(gp_state_device, slowed),
	NUMBER(gp_state_device, slots_used),
	NUMBER(gp_state_device, processes),
	NUMBER(gp_state_device, oversubscribed),
	NUMBER(gp_state_device, stopped),
	TEXT(gp_state_device, backend),
	TEXT(gp_state_device, name),
	TEXT(gp_state_device, driver),
	TEXT(gp_state_device, bdf),
	TEXT(gp_state_device, mechanism),
	TEXT(gp_state_device, unit),
	TEXT(gp_state_device, stopped_why),
	TEXT(gp_state_device, cost_source),
	OBJECT(gp_state_device, close_ns, state_cost_fields),
	OBJECT(gp_state_device, open_ns, state_cost_fields),
	OBJECT(gp_state_device, slice_ns, state_cost_fields),
	OBJECT(gp_state_device, stats, state_stats_fields),
	ARRAY("findings", state_finding),
	END,
};

static int state_device(struct state_reader *reader, void *base)
{
	struct gp_state *state = base;
	struct gp_state_device *device;

	if (reader->json.type != GP_JSON_OBJECT_BEGIN || state->device_count == GP_STATE_DEVICE_MAX) {
		state->left_out++;
		return state_skip(reader);
	}
	if (!state->devices) {
		state->devices = calloc(GP_STATE_DEVICE_MAX, sizeof(*state->devices));
		if (!state->devices)
			return gp_error_set(reader->error, -ENOMEM, "out of memory");
	}
	device = &state->devices[state->device_count++];
	state_unknown(device, state_device_fields);
	return state_object(reader, device, state_device_fields);
}

/* Room for one more; the new element is zero. */
static void *state_grow(void **array, uint32_t *room, uint32_t count, size_t size)
{
	uint32_t wanted = *room ? *room * 2 : 16;
	char *grown;

	if (count >= *room) {
		grown = realloc(*array, wanted * size);
		if (!grown)
			return NULL;
		*array = grown;
		*room = wanted;
	}
	return memset((char *)*array + count * size, 0, size);
}

static const struct state_field state_slice_fields[] = {
	NUMBER(gp_state_slice, now_us),
	NUMBER(gp_state_slice, app_us),
	END,
};
static const struct state_field state_queue_fields[] = {
	NUMBER(gp_state_queue, gpu_id),
	NUMBER(gp_state_queue, queue_id),
	NUMBER(gp_state_queue, slot),
	NUMBER(gp_state_queue, seen),
	NUMBER(gp_state_queue, priority),
	NUMBER(gp_state_queue, has_work),
	NUMBER(gp_state_queue, blocked),
	NUMBER(gp_state_queue, written),
	NUMBER(gp_state_queue, completed),
	NUMBER(gp_state_queue, pending),
	NUMBER(gp_state_queue, run_ns),
	NUMBER(gp_state_queue, wait_ns),
	NUMBER(gp_state_queue, preemptions),
	NUMBER(gp_state_queue, inversions),
	NUMBER(gp_state_queue, closes),
	NUMBER(gp_state_queue, opens),
	TEXT(gp_state_queue, kind),
	TEXT(gp_state_queue, gate),
	TEXT(gp_state_queue, quarantine),
	TEXT(gp_state_queue, counts),
	OBJECT(gp_state_queue, slice, state_slice_fields),
	END,
};

static int state_queue(struct state_reader *reader, void *base)
{
	struct gp_state *state = reader->state;
	struct gp_state_client *client = base;
	struct gp_state_queue *queue;

	if (reader->json.type != GP_JSON_OBJECT_BEGIN || state->queue_count == GP_STATE_QUEUE_MAX) {
		state->left_out++;
		return state_skip(reader);
	}
	queue = state_grow((void **)&state->queues, &reader->queue_room, state->queue_count, sizeof(*queue));
	if (!queue)
		return gp_error_set(reader->error, -ENOMEM, "out of memory");
	state->queue_count++;
	client->queue_count++;
	state_unknown(queue, state_queue_fields);
	return state_object(reader, queue, state_queue_fields);
}

static int state_gpu(struct state_reader *reader, void *base)
{
	struct gp_state_client *client = base;

	if (reader->json.type == GP_JSON_NUMBER && reader->json.is_u64 && client->gpu_count < GP_STATE_CLIENT_GPUS)
		client->gpu_ids[client->gpu_count++] = reader->json.u64;
	return state_skip(reader);
}

static const struct state_field state_client_fields[] = {
	NUMBER(gp_state_client, pid),
	NUMBER(gp_state_client, uid),
	NUMBER(gp_state_client, connected_real_ns),
	NUMBER(gp_state_client, priority),
	NUMBER(gp_state_client, ceiling),
	NUMBER(gp_state_client, weight),
	NUMBER(gp_state_client, share_permille),
	NUMBER(gp_state_client, deadline_ns),
	NUMBER(gp_state_client, budget_ns),
	NUMBER(gp_state_client, answers),
	NUMBER(gp_state_client, compute_ns),
	NUMBER(gp_state_client, copy_ns),
	NUMBER(gp_state_client, wait_ns),
	{ "gpu_count", STATE_NUMBER, offsetof(struct gp_state_client, gpus_scheduled), 0, NULL, NULL },
	NUMBER(gp_state_client, managed),
	NUMBER(gp_state_client, hidden),
	NUMBER(gp_state_client, paused),
	NUMBER(gp_state_client, agent_awaited),
	TEXT(gp_state_client, user),
	TEXT(gp_state_client, counters),
	TEXT(gp_state_client, name),
	TEXT(gp_state_client, runtime),
	TEXT(gp_state_client, agent),
	TEXT(gp_state_client, gang),
	TEXT(gp_state_client, rank_of),
	TEXT(gp_state_client, protect),
	TEXT(gp_state_client, tag),
	TEXT(gp_state_client, mechanism),
	TEXT(gp_state_client, mechanism_why),
	ARRAY("queues", state_queue),
	ARRAY("gpu_ids", state_gpu),
	END,
};
/* The same, where "queues" is how many there are. */
static const struct state_field state_count_fields[] = {
	{ "queues", STATE_NUMBER, offsetof(struct gp_state_client, unlisted_queue_count), 0, NULL, NULL },
	END
};

/* A list that is a number (hidden, unmanaged) is read again by the other table: the key decides nothing by itself. */
static int state_client_fill(struct state_reader *reader, struct gp_state_client *client)
{
	struct gp_json start = reader->json;
	int r;

	state_unknown(client, state_client_fields);
	client->unlisted_queue_count = GP_STATE_UNKNOWN;
	client->queue_first = reader->state->queue_count;
	r = state_object(reader, client, state_client_fields);
	if (!r && !client->queue_count) {
		reader->json = start;
		r = state_object(reader, client, state_count_fields);
	}
	return r;
}

static int state_client(struct state_reader *reader, void *base)
{
	struct gp_state *state = base;
	struct gp_state_client client = { 0 }, *place;
	int r;

	if (reader->json.type != GP_JSON_OBJECT_BEGIN || state->client_count == GP_STATE_CLIENT_MAX) {
		state->left_out++;
		return state_skip(reader);
	}
	r = state_client_fill(reader, &client);
	if (r)
		return r;
	place = state_grow((void **)&state->clients, &reader->client_room, state->client_count, sizeof(*place));
	if (!place)
		return gp_error_set(reader->error, -ENOMEM, "out of memory");
	if (client.managed == GP_STATE_UNKNOWN)
		client.managed = 1;
	*place = client;
	state->client_count++;
	return 0;
}

static int state_unmanaged(struct state_reader *reader, void *base)
{
	struct gp_state *state = base;
	uint32_t before = state->client_count;
	int r = state_client(reader, base);

	if (!r && state->client_count > before)
		state->clients[before].managed = 0;
	return r;
}

static const struct state_field state_counter_fields[] = {
	NUMBER(gp_state_daemon, clients_seen),
	NUMBER(gp_state_daemon, orders),
	NUMBER(gp_state_daemon, order_failures),
	NUMBER(gp_state_daemon, leases_lost),
	NUMBER(gp_state_daemon, messages_refused),
	NUMBER(gp_state_daemon, wakeups),
	NUMBER(gp_state_daemon, decisions),
	NUMBER(gp_state_daemon, driver_calls_stuck),
	END,
};
static const struct state_field state_daemon_fields[] = {
	TEXT(gp_state_daemon, version),
	TEXT(gp_state_daemon, policy),
	TEXT(gp_state_daemon, config_refused),
	NUMBER(gp_state_daemon, pid),
	NUMBER(gp_state_daemon, uptime_real_ns),
	NUMBER(gp_state_daemon, lease_ms),
	NUMBER(gp_state_daemon, dilation),
	{ "counters", STATE_OBJECT, 0, 0, state_counter_fields, NULL },
	END,
};
static const struct state_field state_fields[] = {
	NUMBER(gp_state, schema),       OBJECT(gp_state, daemon, state_daemon_fields), ARRAY("devices", state_device),
	ARRAY("clients", state_client), ARRAY("unmanaged", state_unmanaged),           END,
};

static int state_read(struct gp_state *state, const char *text, size_t size, bool is_client, struct gp_error *error)
{
	struct state_reader reader = { .state = state, .error = error };
	int r;

	memset(state, 0, sizeof(*state));
	state_unknown(state, state_fields);
	gp_json_init(&reader.json, text, size, "answer");
	r = state_next(&reader);
	if (!r && reader.json.type != GP_JSON_OBJECT_BEGIN)
		r = state_refuse(&reader, "it is not an object");
	if (!r)
		r = is_client ? state_client(&reader, state) : state_object(&reader, state, state_fields);
	r = r ? r : state_next(&reader);
	if (!r && reader.json.type != GP_JSON_END)
		r = state_refuse(&reader, "something follows it");
	if (!r && !is_client && state->schema != GP_STATE_SCHEMA)
		r = gp_error_set(
			error, -EPROTONOSUPPORT,
			"the daemon's status is not of schema %u: use the commands that came with it (--json prints it as it is)",
			GP_STATE_SCHEMA);
	if (r)
		gp_state_fini(state);
	return r;
}

int gp_state_read(struct gp_state *state, const char *text, size_t size, struct gp_error *error)
{
	return state_read(state, text, size, false, error);
}

int gp_state_read_client(struct gp_state *state, const char *text, size_t size, struct gp_error *error)
{
	return state_read(state, text, size, true, error);
}

void gp_state_fini(struct gp_state *state)
{
	free(state->devices);
	free(state->clients);
	free(state->queues);
	memset(state, 0, sizeof(*state));
}

int gp_state_ask(struct gp_state *state, char **ret_text, size_t *ret_size, bool *ret_refused, struct gp_error *error)
{
	struct gp_control_request request = { .verb = GP_CONTROL_STATUS };
	char *text = NULL;
	size_t size = 0;
	int r;

	r = gp_control_once(&request, &text, &size, ret_refused, error);
	if (r)
		return r;
	r = gp_state_read(state, text, size, error);
	if ((r && r != -EPROTONOSUPPORT) || !ret_text) {
		free(text);
		return r;
	}
	*ret_text = text;
	*ret_size = size;
	return r;
}

uint32_t gp_state_mechanism(const char *name)
{
	for (uint32_t i = 0; i < GP_MECHANISM_COUNT; i++)
		if (!strcmp(name, gp_mechanism_name(i)))
			return i;
	return GP_MECHANISM_COUNT;
}
