/* SPDX-License-Identifier: MIT */
/* Owns the CSV files of rocprof v1, v2 and v3 and of `rocpd convert`. Columns are found by name; what a file does not
 * have stays unknown. A time that is not a number is refused with its line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "report/trace/readers.h"
#include "report/trace/rows.h"

#define CSV_NAMES_MAX 5

enum csv_column {
	CSV_KERNEL_NAME,
	CSV_FUNCTION,
	CSV_NAME,
	CSV_DOMAIN,
	CSV_KIND,
	CSV_OPERATION,
	CSV_DIRECTION,
	CSV_START,
	CSV_END,
	CSV_DISPATCH,
	CSV_COMPLETE,
	CSV_PID,
	CSV_TID,
	CSV_DEVICE,
	CSV_QUEUE,
	CSV_STREAM,
	CSV_CORRELATION,
	CSV_SIZE,
	CSV_ALLOCATION,
	CSV_ALLOC_FLAGS,
	CSV_SOURCE,
	CSV_DESTINATION,
	CSV_GRID,
	CSV_WORKGROUP,
	CSV_GRID_X,
	CSV_GRID_Y,
	CSV_GRID_Z,
	CSV_WORKGROUP_X,
	CSV_WORKGROUP_Y,
	CSV_WORKGROUP_Z,
	CSV_CALLS,
	CSV_TOTAL,
	CSV_COUNTER,
	CSV_DISPATCH_ID,
	CSV_PRIORITY,
	CSV_CU_COUNT,
	CSV_NODE,
	CSV_AGENT_TYPE,
	/* Only one tool writes these. */
	CSV_ONLY_V1,
	CSV_ONLY_V2,
	CSV_ONLY_V3,
	CSV_COLUMN_COUNT
};

static const char *const csv_names[CSV_COLUMN_COUNT][CSV_NAMES_MAX] = {
	[CSV_KERNEL_NAME] = { "Kernel_Name", "KernelName" },
	[CSV_FUNCTION] = { "Function" },
	[CSV_NAME] = { "Name" },
	[CSV_DOMAIN] = { "Domain" },
	[CSV_KIND] = { "Kind" },
	[CSV_OPERATION] = { "Operation", "Operation_Name" },
	[CSV_DIRECTION] = { "Direction" },
	[CSV_START] = { "Start_Timestamp", "BeginNs", "Begin_Timestamp" },
	[CSV_END] = { "End_Timestamp", "EndNs", "Stop_Timestamp" },
	[CSV_DISPATCH] = { "DispatchNs" },
	[CSV_COMPLETE] = { "CompleteNs" },
	[CSV_PID] = { "Process_Id", "PID" },
	[CSV_TID] = { "Thread_Id", "TID" },
	[CSV_DEVICE] = { "Agent_Id", "GPU_ID" },
	[CSV_QUEUE] = { "Queue_Id" },
	[CSV_STREAM] = { "Stream_Id" },
	[CSV_CORRELATION] = { "Correlation_Id" },
	[CSV_SIZE] = { "Size", "Bytes", "Copy_Size", "Size_Bytes" },
	[CSV_ALLOCATION] = { "Allocation_Size" },
	[CSV_ALLOC_FLAGS] = { "Alloc_Flags" },
	[CSV_SOURCE] = { "Source_Agent_Id" },
	[CSV_DESTINATION] = { "Destination_Agent_Id" },
	[CSV_GRID] = { "Grid_Size", "grd" },
	[CSV_WORKGROUP] = { "Workgroup_Size", "wgr" },
	[CSV_GRID_X] = { "Grid_Size_X" },
	[CSV_GRID_Y] = { "Grid_Size_Y" },
	[CSV_GRID_Z] = { "Grid_Size_Z" },
	[CSV_WORKGROUP_X] = { "Workgroup_Size_X" },
	[CSV_WORKGROUP_Y] = { "Workgroup_Size_Y" },
	[CSV_WORKGROUP_Z] = { "Workgroup_Size_Z" },
	[CSV_CALLS] = { "Calls" },
	[CSV_TOTAL] = { "TotalDurationNs" },
	[CSV_COUNTER] = { "Counter_Name" },
	[CSV_DISPATCH_ID] = { "Dispatch_Id" },
	[CSV_PRIORITY] = { "Priority" },
	[CSV_CU_COUNT] = { "Cu_Count" },
	[CSV_NODE] = { "Node_Id" },
	[CSV_AGENT_TYPE] = { "Agent_Type" },
	[CSV_ONLY_V1] = { "KernelName", "BeginNs" },
	[CSV_ONLY_V2] = { "Stop_Timestamp", "Begin_Timestamp", "PID" },
	[CSV_ONLY_V3] = { "Kind", "Process_Id", "Agent_Id", "MinNs" },
};

struct csv_reader {
	struct gp_rows rows;
	const struct gp_sink *sink;
	uint32_t header_count;
	int columns[CSV_COLUMN_COUNT]; /* -1: not in this file */
	int (*row)(struct csv_reader *reader, struct gp_error *error);
	uint64_t last_dispatch, last_start; /* counters repeat a dispatch, one row per counter */
	bool has_last;
};

static int csv_refuse(const struct csv_reader *reader, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%" PRIu64 ": %s", reader->rows.input->file_name, reader->rows.line,
			    what);
}

static bool csv_has(const struct csv_reader *reader, enum csv_column column)
{
	return reader->columns[column] >= 0;
}

static const char *csv_text(const struct csv_reader *reader, enum csv_column column)
{
	return csv_has(reader, column) ? reader->rows.fields[reader->columns[column]] : "";
}

static size_t csv_size(const struct csv_reader *reader, enum csv_column column)
{
	return csv_has(reader, column) ? reader->rows.sizes[reader->columns[column]] : 0;
}

/* Digits, "Agent 4", "0x1f": false if there is nothing to read. */
static bool csv_number(const struct csv_reader *reader, enum csv_column column, uint64_t *ret_value)
{
	const char *text = csv_text(reader, column);
	size_t size = csv_size(reader, column);

	if (gp_rows_u64(text, size, ret_value))
		return true;
	if (!strncmp(text, "Agent ", 6))
		return gp_rows_u64(text + 6, size - 6, ret_value);
	if (!strncmp(text, "0x", 2) && size > 2 && size <= 18 &&
	    strspn(text + 2, "0123456789abcdefABCDEF") == size - 2) {
		*ret_value = strtoull(text, NULL, 16);
		return true;
	}
	return false;
}

/* A time that must be there. */
static int csv_time(const struct csv_reader *reader, enum csv_column column, uint64_t *ret_ns, struct gp_error *error)
{
	if (gp_rows_u64(csv_text(reader, column), csv_size(reader, column), ret_ns))
		return 0;
	return gp_error_set(error, -EINVAL, "%s:%" PRIu64 ": %s \"%.40s\" is not a whole number of nanoseconds",
			    reader->rows.input->file_name, reader->rows.line, csv_names[column][0],
			    csv_text(reader, column));
}

static void csv_optional(const struct csv_reader *reader, enum csv_column column, enum gp_known bit,
			 struct gp_profile_event *event, uint64_t *value)
{
	if (csv_has(reader, column) && csv_number(reader, column, value))
		event->known |= bit;
}

/* What all rows with times share. */
static int csv_event(const struct csv_reader *reader, enum gp_layer layer, enum csv_column name,
		     struct gp_profile_event *event, struct gp_error *error)
{
	int r;

	gp_trace_event_init(event, layer, csv_text(reader, name), csv_size(reader, name));
	event->row = reader->rows.line;
	r = csv_time(reader, CSV_START, &event->start_ns, error);
	if (!r)
		r = csv_time(reader, CSV_END, &event->end_ns, error);
	if (r)
		return r;
	csv_optional(reader, CSV_PID, GP_KNOWN_PID, event, &event->pid);
	csv_optional(reader, CSV_TID, GP_KNOWN_TID, event, &event->tid);
	csv_optional(reader, CSV_CORRELATION, GP_KNOWN_CORRELATION, event, &event->correlation);
	if (!event->name_size) {
		event->name = "(no name)";
		event->name_size = strlen(event->name);
	}
	return 0;
}

static void csv_place(const struct csv_reader *reader, struct gp_profile_event *event)
{
	uint64_t priority = 0;

	csv_optional(reader, CSV_DEVICE, GP_KNOWN_DEVICE, event, &event->device);
	csv_optional(reader, CSV_QUEUE, GP_KNOWN_QUEUE, event, &event->queue);
	csv_optional(reader, CSV_STREAM, GP_KNOWN_STREAM, event, &event->stream);
	if (csv_has(reader, CSV_PRIORITY) && csv_number(reader, CSV_PRIORITY, &priority) && priority <= INT32_MAX) {
		event->priority = (int64_t)priority;
		event->known |= GP_KNOWN_PRIORITY;
	}
}

/* The grid is in work-items; a last partial workgroup counts as one. */
static void csv_workgroups(const struct csv_reader *reader, struct gp_profile_event *event)
{
	uint64_t workgroups = 1;

	if (csv_has(reader, CSV_GRID_X) && csv_has(reader, CSV_WORKGROUP_X)) {
		for (int i = 0; i < 3; i++) {
			uint64_t grid = 0, side = 0;

			if (!csv_number(reader, (enum csv_column)(CSV_GRID_X + i), &grid) ||
			    !csv_number(reader, (enum csv_column)(CSV_WORKGROUP_X + i), &side) || !side || !grid ||
			    grid > UINT32_MAX || side > UINT32_MAX)
				return;
			if (__builtin_mul_overflow(workgroups, (grid + side - 1) / side, &workgroups))
				return;
		}
	} else {
		uint64_t grid = 0, side = 0;

		if (!csv_number(reader, CSV_GRID, &grid) || !csv_number(reader, CSV_WORKGROUP, &side) || !side ||
		    !grid || grid > UINT64_MAX - side)
			return;
		workgroups = (grid + side - 1) / side;
	}
	event->workgroups = workgroups;
	event->known |= GP_KNOWN_WORKGROUPS;
}

static int csv_row_kernel(struct csv_reader *reader, struct gp_error *error)
{
	struct gp_profile_event event;
	uint64_t dispatch = 0;
	int r = csv_event(reader, GP_LAYER_KERNEL, CSV_KERNEL_NAME, &event, error);

	if (r)
		return r;
	if (csv_has(reader, CSV_COUNTER) && csv_number(reader, CSV_DISPATCH_ID, &dispatch)) {
		bool is_same =
			reader->has_last && reader->last_dispatch == dispatch && reader->last_start == event.start_ns;

		reader->has_last = true;
		reader->last_dispatch = dispatch;
		reader->last_start = event.start_ns;
		if (is_same)
			return 0;
	}
	csv_place(reader, &event);
	csv_workgroups(reader, &event);
	csv_optional(reader, CSV_DISPATCH, GP_KNOWN_DISPATCH, &event, &event.dispatch_ns);
	csv_optional(reader, CSV_COMPLETE, GP_KNOWN_COMPLETE, &event, &event.complete_ns);
	return reader->sink->event(reader->sink->context, &event, error);
}

static int csv_row_api(struct csv_reader *reader, struct gp_error *error)
{
	struct gp_profile_event event;
	int r = csv_event(reader, gp_layer_of(csv_text(reader, CSV_DOMAIN), csv_text(reader, CSV_FUNCTION)),
			  CSV_FUNCTION, &event, error);

	/* rocprofv3 writes thread 0 for ranges that no thread owns. */
	if (event.layer == GP_LAYER_MARKER && (event.known & GP_KNOWN_TID) && !event.tid)
		event.known &= ~(uint32_t)GP_KNOWN_TID;
	return r ? r : reader->sink->event(reader->sink->context, &event, error);
}

static int csv_row_copy(struct csv_reader *reader, struct gp_error *error)
{
	const char *direction = csv_text(reader, CSV_DIRECTION);
	struct gp_profile_event event;
	int r = csv_event(reader, GP_LAYER_COPY, CSV_DIRECTION, &event, error);

	if (r)
		return r;
	csv_place(reader, &event);
	csv_optional(reader, CSV_SIZE, GP_KNOWN_SIZE, &event, &event.size);
	if (!(event.known & GP_KNOWN_DEVICE))
		csv_optional(reader, strstr(direction, "DEVICE_TO_HOST") ? CSV_SOURCE : CSV_DESTINATION,
			     GP_KNOWN_DEVICE, &event, &event.device);
	return reader->sink->event(reader->sink->context, &event, error);
}

/* rocprof v2 lists copies and kernels in one file. */
static int csv_row_operation(struct csv_reader *reader, struct gp_error *error)
{
	bool is_kernel = csv_size(reader, CSV_KERNEL_NAME) > 0;
	enum gp_layer layer = is_kernel ? GP_LAYER_KERNEL : gp_layer_of(csv_text(reader, CSV_DOMAIN), "");
	struct gp_profile_event event;
	int r;

	if (!is_kernel && strstr(csv_text(reader, CSV_OPERATION), "COPY"))
		layer = GP_LAYER_COPY;
	r = csv_event(reader, layer, is_kernel ? CSV_KERNEL_NAME : CSV_OPERATION, &event, error);
	if (r)
		return r;
	csv_place(reader, &event);
	return reader->sink->event(reader->sink->context, &event, error);
}

static int csv_row_memory(struct csv_reader *reader, struct gp_error *error)
{
	struct gp_profile_event event;
	int r = csv_event(reader, GP_LAYER_MEMORY, CSV_OPERATION, &event, error);

	return r ? r : reader->sink->event(reader->sink->context, &event, error);
}

static int csv_row_summary(struct csv_reader *reader, struct gp_error *error)
{
	struct gp_fact fact = { .kind = GP_FACT_SUMMARY, .text = csv_text(reader, CSV_NAME) };

	fact.row = reader->rows.line;
	if (!csv_number(reader, CSV_CALLS, &fact.calls) || !csv_number(reader, CSV_TOTAL, &fact.value))
		return csv_refuse(reader, error, "Calls or TotalDurationNs is not a whole number");
	return reader->sink->fact(reader->sink->context, &fact, error);
}

static int csv_row_agent(struct csv_reader *reader, struct gp_error *error)
{
	struct gp_fact fact = { .kind = GP_FACT_CU_COUNT, .text = "", .has_device = true };

	fact.row = reader->rows.line;
	if (strcmp(csv_text(reader, CSV_AGENT_TYPE), "GPU") || !csv_number(reader, CSV_CU_COUNT, &fact.value) ||
	    !csv_number(reader, CSV_NODE, &fact.device))
		return 0;
	return reader->sink->fact(reader->sink->context, &fact, error);
}

/* Whose file this is, from its columns. The names are those of docs/report.md. A file that is several in one keeps the
 * name of the last. */
static const char *csv_format(const struct csv_reader *reader)
{
	if (reader->row == csv_row_agent)
		return "rocprofv3 agent_info CSV";
	if (csv_has(reader, CSV_ONLY_V1))
		return "rocprof v1 CSV";
	if (csv_has(reader, CSV_ONLY_V3))
		return "rocprofv3 CSV";
	if (reader->row == csv_row_summary)
		return "rocprof v1 CSV";
	/* What is left of what tools write is rocprof v2's calls, which name neither process nor thread. */
	return csv_has(reader, CSV_ONLY_V2) || csv_has(reader, CSV_DOMAIN) ? "rocprof v2 CSV" : "CSV";
}

/* Which kind of file this is, from its columns. */
static int csv_kind(struct csv_reader *reader, struct gp_error *error)
{
	for (int i = 0; i < CSV_COLUMN_COUNT; i++)
		reader->columns[i] = gp_rows_column(&reader->rows, csv_names[i]);
	reader->header_count = reader->rows.field_count;
	if (csv_has(reader, CSV_NAME) && csv_has(reader, CSV_CALLS) && csv_has(reader, CSV_TOTAL)) {
		reader->row = csv_row_summary;
		return 0;
	}
	if (csv_has(reader, CSV_CU_COUNT) && csv_has(reader, CSV_NODE)) {
		reader->row = csv_row_agent;
		return 0;
	}
	if (!csv_has(reader, CSV_START) || !csv_has(reader, CSV_END))
		return csv_refuse(reader, error,
				  csv_has(reader, CSV_KERNEL_NAME) ?
					  "the kernels have no times: record with --timestamp on or --stats" :
					  "not a trace: there is no column with start and end times");
	if (csv_has(reader, CSV_FUNCTION))
		reader->row = csv_row_api;
	else if (csv_has(reader, CSV_KERNEL_NAME))
		reader->row = csv_has(reader, CSV_OPERATION) ? csv_row_operation : csv_row_kernel;
	else if (csv_has(reader, CSV_DIRECTION))
		reader->row = csv_row_copy;
	else if (csv_has(reader, CSV_OPERATION))
		reader->row = csv_has(reader, CSV_ALLOCATION) || csv_has(reader, CSV_ALLOC_FLAGS) ||
					      !csv_has(reader, CSV_DOMAIN) ?
				      csv_row_memory :
				      csv_row_operation;
	else
		return csv_refuse(reader, error,
				  "not a trace: there are times but no Function, Kernel_Name, "
				  "Direction or Operation");
	return 0;
}

static int csv_header(struct csv_reader *reader, struct gp_error *error)
{
	int r = csv_kind(reader, error);

	if (!r)
		reader->rows.input->format = csv_format(reader);
	return r;
}

/* Files that were put one behind the other bring their headers along. */
static bool csv_is_header(const struct csv_reader *reader)
{
	int start = reader->columns[CSV_START];

	/* Only a row without a number where the start should be is worth the closer look. */
	if (start >= 0 && (uint32_t)start < reader->rows.field_count &&
	    (unsigned int)(reader->rows.fields[start][0] - '0') <= 9)
		return false;
	return start >= 0 && gp_rows_column(&reader->rows, csv_names[CSV_START]) >= 0 &&
	       gp_rows_column(&reader->rows, csv_names[CSV_END]) >= 0;
}

int gp_read_csv(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	GP_AUTO_FREE struct csv_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	reader->sink = sink;
	gp_rows_init(&reader->rows, input);
	r = gp_rows_next(&reader->rows, error);
	if (r == 0)
		return gp_error_set(error, -EINVAL, "%s: the file is empty", input->file_name);
	if (r > 0)
		r = csv_header(reader, error);
	while (r >= 0) {
		r = gp_rows_next(&reader->rows, error);
		if (r <= 0)
			break;
		if (csv_is_header(reader)) {
			r = csv_header(reader, error);
			continue;
		}
		if (reader->rows.field_count != reader->header_count)
			return gp_error_set(error, -EINVAL,
					    "%s:%" PRIu64 ": the row has %u columns and the header %u: the file is "
					    "truncated or damaged",
					    input->file_name, reader->rows.line, reader->rows.field_count,
					    reader->header_count);
		r = reader->row(reader, error);
	}
	return r;
}
