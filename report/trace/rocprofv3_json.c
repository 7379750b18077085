/* SPDX-License-Identifier: MIT */
/*
 * Owns rocprofv3's JSON: {"rocprofiler-sdk-tool": [{metadata, agents, strings, kernel_symbols, buffer_records, …}]},
 * one element per process. Records name things by number; the tables of names come before them in the file, as the tool
 * writes it, and a number without a name is shown as one. Numbers go beyond 63 bits.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "report/trace/json_input.h"
#include "report/trace/names.h"
#include "report/trace/readers.h"

#define V3_KIND_MAX      64u
#define V3_OPERATION_MAX 2048u
#define V3_MAP_SLOTS     131072u /* kernels, messages, agents; half of it is used at most */
#define V3_NO_NAME       UINT32_MAX

enum v3_map { V3_KERNELS, V3_MESSAGES, V3_AGENTS, V3_MAP_COUNT };

struct v3_entry {
	uint64_t key;
	uint32_t map, value; /* value + 1; 0: free */
};

struct v3_record {
	uint64_t start_ns, end_ns, correlation, kind, operation, thread, agent, queue, stream, kernel, size, source,
		destination, grid[3], workgroup[3];
	uint32_t seen; /* enum v3_field */
};
enum v3_field {
	V3_START = 1u << 0,
	V3_END = 1u << 1,
	V3_CORRELATION = 1u << 2,
	V3_KIND = 1u << 3,
	V3_OPERATION = 1u << 4,
	V3_THREAD = 1u << 5,
	V3_AGENT = 1u << 6,
	V3_QUEUE = 1u << 7,
	V3_STREAM = 1u << 8,
	V3_KERNEL = 1u << 9,
	V3_SIZE = 1u << 10,
	V3_SOURCE = 1u << 11,
	V3_DESTINATION = 1u << 12,
	V3_GRID = 1u << 13,
	V3_WORKGROUP = 1u << 14,
};

struct v3 {
	struct gp_json_input json;
	const struct gp_sink *sink;
	struct gp_names names;
	uint32_t *operations; /* [kind * V3_OPERATION_MAX + operation], name + 1 */
	uint32_t kind_count, operation_index;
	struct v3_entry *entries;
	uint32_t entry_count, agent_count;
	bool has_pid;
	uint64_t pid, rows, unnamed;
	enum gp_layer layer; /* of the list being read */
	/* the object being read */
	struct v3_record record;
	char parent[64];
	uint64_t key, cu_count;
	uint32_t name, name_rank;
	bool has_key, is_gpu, has_node;
	uint64_t node;
};

static struct v3_entry *v3_find(struct v3 *v3, enum v3_map map, uint64_t key)
{
	uint64_t hash = (key + map) * 0x9e3779b97f4a7c15ull;
	uint32_t slot = (uint32_t)((hash >> 32) % V3_MAP_SLOTS);

	while (v3->entries[slot].value && (v3->entries[slot].key != key || v3->entries[slot].map != map))
		slot = (slot + 1) % V3_MAP_SLOTS;
	return &v3->entries[slot];
}

static void v3_put(struct v3 *v3, enum v3_map map, uint64_t key, uint32_t value)
{
	struct v3_entry *entry = v3_find(v3, map, key);

	if (!entry->value && v3->entry_count >= V3_MAP_SLOTS / 2)
		return;
	v3->entry_count += !entry->value;
	*entry = (struct v3_entry){ key, map, value + 1 };
}

static int v3_intern(struct v3 *v3, const char *text, uint32_t *ret_name, struct gp_error *error)
{
	if (gp_names_add(&v3->names, text, strlen(text), ret_name))
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", v3->json.input->file_name);
	return 0;
}

/* strings.buffer_records[kind].operations[operation] */
static int v3_operation(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct v3 *v3 = context;
	uint32_t name = 0;
	int r;

	if (json->json.type != GP_JSON_STRING)
		return gp_json_input_skip(json, error);
	r = v3_intern(v3, json->json.string, &name, error);
	if (!r && v3->kind_count < V3_KIND_MAX && v3->operation_index < V3_OPERATION_MAX)
		v3->operations[v3->kind_count * V3_OPERATION_MAX + v3->operation_index] = name + 1;
	v3->operation_index++;
	return r;
}

static int v3_kind_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	v3->operation_index = 0;
	if (!strcmp(key, "operations"))
		return gp_json_input_array(json, v3_operation, v3, error);
	return gp_json_input_skip(json, error);
}

static int v3_kind(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_object(json, v3_kind_member, v3, error);

	v3->kind_count++;
	return r;
}

/* {"key": 12, "value": "text"} */
static int v3_message_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (!strcmp(key, "key"))
		v3->has_key = gp_json_input_u64(json, &v3->key);
	if (!strcmp(key, "value") && json->json.type == GP_JSON_STRING)
		return v3_intern(v3, json->json.string, &v3->name, error);
	return gp_json_input_skip(json, error);
}

static int v3_message(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r;

	v3->has_key = false;
	v3->name = V3_NO_NAME;
	r = gp_json_input_object(json, v3_message_member, v3, error);
	if (!r && v3->has_key && v3->name != V3_NO_NAME)
		v3_put(v3, V3_MESSAGES, v3->key, v3->name);
	return r;
}

static int v3_strings_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	v3->kind_count = 0;
	if (!strcmp(key, "buffer_records"))
		return gp_json_input_array(json, v3_kind, v3, error);
	if (!strcmp(key, "marker_api"))
		return gp_json_input_array(json, v3_message, v3, error);
	return gp_json_input_skip(json, error);
}

/* Of the names a kernel has, the most readable one. */
static int v3_symbol_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	static const char *const ranks[] = { "kernel_name", "truncated_kernel_name", "demangled_kernel_name",
					     "formatted_kernel_name" };
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (!strcmp(key, "kernel_id"))
		v3->has_key = gp_json_input_u64(json, &v3->key);
	for (uint32_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		if (!strcmp(key, ranks[i]) && json->json.type == GP_JSON_STRING && json->json.string[0] &&
		    i + 1 > v3->name_rank) {
			v3->name_rank = i + 1;
			return v3_intern(v3, json->json.string, &v3->name, error);
		}
	return gp_json_input_skip(json, error);
}

static int v3_symbol(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r;

	v3->has_key = false;
	v3->name_rank = 0;
	r = gp_json_input_object(json, v3_symbol_member, v3, error);
	if (!r && v3->has_key && v3->name_rank)
		v3_put(v3, V3_KERNELS, v3->key, v3->name);
	return r;
}

static int v3_id_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (!r && !strcmp(key, "handle"))
		v3->has_key = gp_json_input_u64(json, &v3->key);
	return r ? r : gp_json_input_skip(json, error);
}

static int v3_agent_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	uint64_t type = 0;
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (!strcmp(key, "id"))
		return gp_json_input_object(json, v3_id_member, v3, error);
	if (!strcmp(key, "type"))
		v3->is_gpu = gp_json_input_u64(json, &type) && type == 2;
	if (!strcmp(key, "node_id"))
		v3->has_node = gp_json_input_u64(json, &v3->node);
	if (!strcmp(key, "cu_count"))
		(void)gp_json_input_u64(json, &v3->cu_count);
	return gp_json_input_skip(json, error);
}

static int v3_agent(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct gp_fact fact = { .kind = GP_FACT_CU_COUNT, .text = "", .has_device = true };
	struct v3 *v3 = context;
	int r;

	v3->has_key = v3->is_gpu = v3->has_node = false;
	v3->cu_count = 0;
	r = gp_json_input_object(json, v3_agent_member, v3, error);
	if (r)
		return r;
	v3->node = v3->has_node && v3->node < UINT32_MAX ? v3->node : v3->agent_count;
	v3->agent_count++;
	if (v3->has_key)
		v3_put(v3, V3_AGENTS, v3->key, (uint32_t)v3->node);
	if (!v3->is_gpu || !v3->cu_count)
		return 0;
	fact.value = v3->cu_count;
	fact.device = v3->node;
	return v3->sink->fact(v3->sink->context, &fact, error);
}

static int v3_metadata_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (!r && !strcmp(key, "pid"))
		v3->has_pid = gp_json_input_u64(json, &v3->pid);
	return r ? r : gp_json_input_skip(json, error);
}

static void v3_field(struct v3_record *record, enum v3_field field, uint64_t *to, const struct gp_json_input *json)
{
	if (gp_json_input_u64(json, to))
		record->seen |= field;
}

/* A number in a record: by its key, or by its parent's where that is an object. */
static void v3_leaf(struct v3 *v3, const char *key, const struct gp_json_input *json)
{
	const struct {
		const char *parent, *key;
		enum v3_field field;
		uint64_t *to;
	} leaves[] = {
		{ NULL, "start_timestamp", V3_START, &v3->record.start_ns },
		{ NULL, "end_timestamp", V3_END, &v3->record.end_ns },
		{ "correlation_id", "internal", V3_CORRELATION, &v3->record.correlation },
		{ NULL, "kind", V3_KIND, &v3->record.kind },
		{ NULL, "operation", V3_OPERATION, &v3->record.operation },
		{ NULL, "thread_id", V3_THREAD, &v3->record.thread },
		{ "agent_id", "handle", V3_AGENT, &v3->record.agent },
		{ "queue_id", "handle", V3_QUEUE, &v3->record.queue },
		{ "stream_id", "handle", V3_STREAM, &v3->record.stream },
		{ NULL, "kernel_id", V3_KERNEL, &v3->record.kernel },
		{ NULL, "bytes", V3_SIZE, &v3->record.size },
		{ "src_agent_id", "handle", V3_SOURCE, &v3->record.source },
		{ "dst_agent_id", "handle", V3_DESTINATION, &v3->record.destination },
		{ "grid_size", "x", V3_GRID, &v3->record.grid[0] },
		{ "grid_size", "y", V3_GRID, &v3->record.grid[1] },
		{ "grid_size", "z", V3_GRID, &v3->record.grid[2] },
		{ "workgroup_size", "x", V3_WORKGROUP, &v3->record.workgroup[0] },
		{ "workgroup_size", "y", V3_WORKGROUP, &v3->record.workgroup[1] },
		{ "workgroup_size", "z", V3_WORKGROUP, &v3->record.workgroup[2] },
	};

	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++)
		if (!strcmp(key, leaves[i].key) && (!leaves[i].parent || !strcmp(v3->parent, leaves[i].parent)))
			v3_field(&v3->record, leaves[i].field, leaves[i].to, json);
}

static int v3_record_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	char before[sizeof(v3->parent)];
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (json->json.type == GP_JSON_OBJECT_BEGIN) {
		memcpy(before, v3->parent, sizeof(before));
		(void)snprintf(v3->parent, sizeof(v3->parent), "%s", key);
		/* As deep as the tokens go, which is bounded. */
		r = gp_json_input_object(json, v3_record_member, v3, error);
		memcpy(v3->parent, before, sizeof(before));
		return r;
	}
	v3_leaf(v3, key, json);
	return gp_json_input_skip(json, error);
}

static const char *v3_record_name(struct v3 *v3, char *buffer, size_t size)
{
	const struct v3_record *record = &v3->record;
	const struct v3_entry *entry;
	uint32_t name = 0;

	if (v3->layer == GP_LAYER_KERNEL) {
		entry = v3_find(v3, V3_KERNELS, record->kernel);
		if (entry->value)
			return gp_names_get(&v3->names, entry->value - 1);
		v3->unnamed++;
		(void)snprintf(buffer, size, "kernel %" PRIu64, record->kernel);
		return buffer;
	}
	entry = v3->layer == GP_LAYER_MARKER ? v3_find(v3, V3_MESSAGES, record->correlation) : NULL;
	if (entry && entry->value)
		return gp_names_get(&v3->names, entry->value - 1);
	if (record->kind < V3_KIND_MAX && record->operation < V3_OPERATION_MAX)
		name = v3->operations[record->kind * V3_OPERATION_MAX + record->operation];
	if (name)
		return gp_names_get(&v3->names, name - 1);
	v3->unnamed++;
	(void)snprintf(buffer, size, "operation %" PRIu64 " of kind %" PRIu64, record->operation, record->kind);
	return buffer;
}

static void v3_device(struct v3 *v3, uint64_t handle, struct gp_profile_event *event)
{
	const struct v3_entry *entry = v3_find(v3, V3_AGENTS, handle);

	event->device = entry->value ? entry->value - 1 : handle;
	event->known |= GP_KNOWN_DEVICE;
}

static void v3_engine(struct v3 *v3, struct gp_profile_event *event)
{
	const struct v3_record *record = &v3->record;
	uint64_t workgroups = 1;

	if (record->seen & V3_QUEUE) {
		event->queue = record->queue;
		event->known |= GP_KNOWN_QUEUE;
	}
	if (record->seen & V3_STREAM) {
		event->stream = record->stream;
		event->known |= GP_KNOWN_STREAM;
	}
	if (record->seen & V3_AGENT)
		v3_device(v3, record->agent, event);
	else if ((record->seen & V3_SOURCE) && strstr(event->name, "DEVICE_TO_HOST"))
		v3_device(v3, record->source, event);
	else if (record->seen & V3_DESTINATION)
		v3_device(v3, record->destination, event);
	if (event->layer == GP_LAYER_COPY && (record->seen & V3_SIZE)) {
		event->size = record->size;
		event->known |= GP_KNOWN_SIZE;
	}
	if (!(record->seen & V3_GRID) || !(record->seen & V3_WORKGROUP))
		return;
	for (int i = 0; i < 3; i++) {
		if (!record->grid[i] || !record->workgroup[i] || record->grid[i] > UINT32_MAX ||
		    record->workgroup[i] > UINT32_MAX ||
		    __builtin_mul_overflow(workgroups,
					   (record->grid[i] + record->workgroup[i] - 1) / record->workgroup[i],
					   &workgroups))
			return;
	}
	event->workgroups = workgroups;
	event->known |= GP_KNOWN_WORKGROUPS;
}

static int v3_record(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct v3 *v3 = context;
	struct gp_profile_event event;
	char buffer[64];
	const char *name;
	int r;

	if (json->json.type != GP_JSON_OBJECT_BEGIN)
		return gp_error_set(error, -EINVAL, "%s:%" PRIu32 ": a record is not an object", json->input->file_name,
				    json->json.line);
	memset(&v3->record, 0, sizeof(v3->record));
	v3->parent[0] = '\0';
	r = gp_json_input_object(json, v3_record_member, v3, error);
	if (r)
		return r;
	v3->rows++;
	if (!(v3->record.seen & V3_START) || !(v3->record.seen & V3_END))
		return gp_error_set(error, -EINVAL, "%s:%" PRIu32 ": record %" PRIu64 " has no start and end times",
				    json->input->file_name, json->json.line, v3->rows);
	name = v3_record_name(v3, buffer, sizeof(buffer));
	gp_trace_event_init(&event, v3->layer, name, strlen(name));
	event.start_ns = v3->record.start_ns;
	event.end_ns = v3->record.end_ns;
	event.row = v3->rows;
	event.pid = v3->pid;
	event.tid = v3->record.thread;
	event.correlation = v3->record.correlation;
	event.known |= v3->has_pid ? GP_KNOWN_PID : 0;
	event.known |= v3->record.seen & V3_THREAD ? GP_KNOWN_TID : 0;
	event.known |= (v3->record.seen & V3_CORRELATION) && event.correlation ? GP_KNOWN_CORRELATION : 0;
	if (event.layer == GP_LAYER_KERNEL || event.layer == GP_LAYER_COPY)
		v3_engine(v3, &event);
	return v3->sink->event(v3->sink->context, &event, error);
}

static int v3_buffer_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	static const struct {
		const char *key;
		enum gp_layer layer;
	} lists[] = {
		{ "kernel_dispatch", GP_LAYER_KERNEL },
		{ "hip_api", GP_LAYER_HIP },
		{ "hsa_api", GP_LAYER_HSA },
		{ "marker_api", GP_LAYER_MARKER },
		{ "rccl_api", GP_LAYER_LIBRARY },
		{ "rocdecode_api", GP_LAYER_LIBRARY },
		{ "rocdecoder_api", GP_LAYER_LIBRARY },
		{ "rocjpeg_api", GP_LAYER_LIBRARY },
		{ "memory_copy", GP_LAYER_COPY },
		{ "memory_allocation", GP_LAYER_MEMORY },
		{ "scratch_memory", GP_LAYER_MEMORY },
		{ "kfd_events", GP_LAYER_DRIVER },
	};
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	for (size_t i = 0; !r && i < sizeof(lists) / sizeof(lists[0]); i++)
		if (!strcmp(key, lists[i].key)) {
			v3->layer = lists[i].layer;
			return gp_json_input_array(json, v3_record, v3, error);
		}
	return r ? r : gp_json_input_skip(json, error);
}

static int v3_tool_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (!strcmp(key, "metadata"))
		return gp_json_input_object(json, v3_metadata_member, v3, error);
	if (!strcmp(key, "agents"))
		return gp_json_input_array(json, v3_agent, v3, error);
	if (!strcmp(key, "strings"))
		return gp_json_input_object(json, v3_strings_member, v3, error);
	if (!strcmp(key, "kernel_symbols"))
		return gp_json_input_array(json, v3_symbol, v3, error);
	if (!strcmp(key, "buffer_records"))
		return gp_json_input_object(json, v3_buffer_member, v3, error);
	return gp_json_input_skip(json, error);
}

/* One process: its numbers mean nothing in the next one. */
static int v3_tool(void *context, struct gp_json_input *json, struct gp_error *error)
{
	struct v3 *v3 = context;

	memset(v3->operations, 0, V3_KIND_MAX * V3_OPERATION_MAX * sizeof(*v3->operations));
	memset(v3->entries, 0, V3_MAP_SLOTS * sizeof(*v3->entries));
	v3->entry_count = v3->agent_count = 0;
	v3->has_pid = false;
	return gp_json_input_object(json, v3_tool_member, v3, error);
}

static int v3_top_member(void *context, struct gp_json_input *json, const char *key, struct gp_error *error)
{
	struct v3 *v3 = context;
	int r = gp_json_input_next(json, error);

	if (r)
		return r;
	if (!strcmp(key, "rocprofiler-sdk-tool"))
		return gp_json_input_array(json, v3_tool, v3, error);
	return gp_json_input_skip(json, error);
}

static int v3_read(struct v3 *v3, struct gp_error *error)
{
	int r = gp_json_input_next(&v3->json, error);

	if (!r)
		r = gp_json_input_object(&v3->json, v3_top_member, v3, error);
	if (!r)
		r = gp_json_input_next(&v3->json, error);
	if (!r && v3->unnamed) {
		struct gp_fact fact = { .kind = GP_FACT_WARNING,
					.text = "names of kernels or calls are missing in the file, or come behind the "
						"records; they are shown by number" };

		r = v3->sink->fact(v3->sink->context, &fact, error);
	}
	return r;
}

int gp_read_rocprofv3_json(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	GP_AUTO_FREE struct v3 *v3 = calloc(1, sizeof(*v3));
	int r;

	if (!v3)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	v3->sink = sink;
	v3->operations = calloc(V3_KIND_MAX * V3_OPERATION_MAX, sizeof(*v3->operations));
	v3->entries = calloc(V3_MAP_SLOTS, sizeof(*v3->entries));
	if (!v3->operations || !v3->entries || gp_names_init(&v3->names)) {
		r = gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	} else {
		gp_json_input_init(&v3->json, input);
		r = v3_read(v3, error);
	}
	gp_names_fini(&v3->names);
	free(v3->operations);
	free(v3->entries);
	return r;
}
