/* SPDX-License-Identifier: MIT */
/* Owns rocprof v2's console form: lines of Key(value) pairs between whatever the program itself printed. Ranges of
 * ROCTX come as two lines each and are put together here. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "report/trace/lines.h"
#include "report/trace/readers.h"
#include "report/trace/rows.h"

#define CONSOLE_PAIR_MAX  128u
#define CONSOLE_RANGE_MAX 256u /* open at once */
#define CONSOLE_NAME_SIZE 256u

struct console_pair {
	char *key, *value;
	size_t value_size;
};

struct console_range {
	uint64_t id, start_ns, row;
	char name[CONSOLE_NAME_SIZE];
};

struct console {
	struct gp_lines lines;
	const struct gp_sink *sink;
	uint32_t pair_count;
	struct console_pair pairs[CONSOLE_PAIR_MAX];
	uint32_t range_count;
	struct console_range ranges[CONSOLE_RANGE_MAX];
	uint64_t rows;
};

/* The end of a value: a ')' in front of ", Key(" or of the end of the line. */
static char *console_value_end(char *at)
{
	char *end;

	if (*at == '"') {
		end = strstr(at + 1, "\")");
		if (end)
			return end + 1;
	}
	for (end = strchr(at, ')'); end; end = strchr(end + 1, ')'))
		if (!end[1] || end[1] == ',')
			return end;
	return NULL;
}

/* False: the line is none of ours. */
static bool console_split(struct console *console)
{
	char *at = console->lines.text;

	console->pair_count = 0;
	while (*at) {
		struct console_pair *pair = &console->pairs[console->pair_count];
		size_t length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
		char *end;

		if (!length || at[length] != '(' || console->pair_count == CONSOLE_PAIR_MAX)
			return false;
		end = console_value_end(at + length + 1);
		if (!end)
			return false;
		pair->key = at;
		at[length] = '\0';
		pair->value = at + length + 1;
		pair->value_size = (size_t)(end - pair->value);
		*end = '\0';
		console->pair_count++;
		at = end + 1;
		at += strspn(at, ", ");
	}
	return console->pair_count > 0;
}

static const struct console_pair *console_find(const struct console *console, const char *key, const char *other)
{
	for (uint32_t i = 0; i < console->pair_count; i++)
		if (!strcmp(console->pairs[i].key, key) || (other && !strcmp(console->pairs[i].key, other)))
			return &console->pairs[i];
	return NULL;
}

static bool console_number(const struct console *console, const char *key, const char *other, uint64_t *ret_value)
{
	const struct console_pair *pair = console_find(console, key, other);

	return pair && gp_rows_u64(pair->value, pair->value_size, ret_value);
}

static void console_optional(const struct console *console, const char *key, enum gp_known bit,
			     struct gp_profile_event *event, uint64_t *value)
{
	if (console_number(console, key, NULL, value))
		event->known |= bit;
}

static int console_emit(struct console *console, struct gp_profile_event *event, struct gp_error *error)
{
	event->row = console->lines.line;
	console->rows++;
	return console->sink->event(console->sink->context, event, error);
}

static int console_range_close(struct console *console, uint32_t index, uint64_t end_ns, struct gp_error *error)
{
	struct console_range range = console->ranges[index];
	struct gp_profile_event event;

	memmove(&console->ranges[index], &console->ranges[index + 1],
		(console->range_count - index - 1) * sizeof(range));
	console->range_count--;
	gp_trace_event_init(&event, GP_LAYER_MARKER, range.name, strlen(range.name));
	event.start_ns = range.start_ns;
	event.end_ns = end_ns;
	return console_emit(console, &event, error);
}

/* "ROCTX-MARK: x" is a point; "ROCTX-RANGE: x" opens the innermost range, id 0 without words closes it; other ids
 * open and close by themselves. */
static int console_roctx(struct console *console, struct gp_error *error)
{
	const struct console_pair *message = console_find(console, "ROCTX_Message", NULL);
	struct console_range *range;
	uint64_t time_ns = 0, id = 0;
	struct gp_profile_event event;

	if (!console_number(console, "Timestamp", NULL, &time_ns) || !console_number(console, "ROCTX_ID", NULL, &id))
		return 0;
	if (message && !strncmp(message->value, "ROCTX-MARK: ", 12)) {
		gp_trace_event_init(&event, GP_LAYER_MARKER, message->value + 12, message->value_size - 12);
		event.start_ns = event.end_ns = time_ns;
		return console_emit(console, &event, error);
	}
	for (uint32_t i = console->range_count; i-- > 0 && !message;)
		if (console->ranges[i].id == id)
			return console_range_close(console, i, time_ns, error);
	if (!message || console->range_count == CONSOLE_RANGE_MAX)
		return 0;
	range = &console->ranges[console->range_count++];
	range->id = id;
	range->start_ns = time_ns;
	range->row = console->lines.line;
	(void)snprintf(range->name, sizeof(range->name), "%s",
		       strncmp(message->value, "ROCTX-RANGE: ", 13) ? message->value : message->value + 13);
	return 0;
}

static void console_kernel(const struct console *console, struct gp_profile_event *event)
{
	uint64_t grid = 0, side = 0;

	console_optional(console, "GPU_ID", GP_KNOWN_DEVICE, event, &event->device);
	console_optional(console, "Queue_ID", GP_KNOWN_QUEUE, event, &event->queue);
	if (console_number(console, "Grid_Size", NULL, &grid) &&
	    console_number(console, "Workgroup_Size", NULL, &side) && grid && side && grid <= UINT64_MAX - side) {
		event->workgroups = (grid + side - 1) / side;
		event->known |= GP_KNOWN_WORKGROUPS;
	}
}

static int console_line(struct console *console, struct gp_error *error)
{
	const struct console_pair *domain = console_find(console, "Domain", NULL);
	const struct console_pair *function = console_find(console, "Function", NULL);
	const struct console_pair *operation = console_find(console, "Operation_Name", "Operation");
	const struct console_pair *kernel = console_find(console, "Kernel_Name", NULL), *name;
	enum gp_layer layer;
	struct gp_profile_event event;

	if (domain && !strcmp(domain->value, "ROCTX_DOMAIN"))
		return console_roctx(console, error);
	name = function ? function : kernel && kernel->value_size ? kernel : operation;
	if (!name)
		return 0;
	layer = name == kernel ? GP_LAYER_KERNEL : gp_layer_of(domain ? domain->value : "", name->value);
	if (name == operation && !strcmp(name->value, "COPY"))
		layer = GP_LAYER_COPY;
	gp_trace_event_init(&event, layer, name->value, name->value_size);
	if (!console_number(console, "Start_Timestamp", "Begin_Timestamp", &event.start_ns) ||
	    !console_number(console, "End_Timestamp", "Stop_Timestamp", &event.end_ns))
		return gp_error_set(error, -EINVAL, "%s:%" PRIu64 ": a record without start and end times",
				    console->lines.input->file_name, console->lines.line);
	console_optional(console, "Process_ID", GP_KNOWN_PID, &event, &event.pid);
	console_optional(console, "Thread_ID", GP_KNOWN_TID, &event, &event.tid);
	console_optional(console, "Correlation_ID", GP_KNOWN_CORRELATION, &event, &event.correlation);
	/* Without tracing of calls every dispatch has the correlation 0. */
	if (!event.correlation)
		event.known &= ~(uint32_t)GP_KNOWN_CORRELATION;
	if (layer == GP_LAYER_KERNEL || layer == GP_LAYER_COPY)
		console_kernel(console, &event);
	return console_emit(console, &event, error);
}

int gp_read_console(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	GP_AUTO_FREE struct console *console = calloc(1, sizeof(*console));
	int r;

	if (!console)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	console->sink = sink;
	gp_lines_init(&console->lines, input);
	while ((r = gp_lines_next(&console->lines, error)) > 0) {
		bool is_record = !strncmp(console->lines.text, "Domain(", 7) ||
				 !strncmp(console->lines.text, "Dispatch_ID(", 12);

		if (is_record && !console_split(console))
			r = gp_error_set(error, -EINVAL, "%s:%" PRIu64 ": a record that ends in the middle",
					 input->file_name, console->lines.line);
		else if (is_record)
			r = console_line(console, error);
		if (r < 0)
			return r;
	}
	if (!r && console->range_count) {
		struct gp_fact fact = { .kind = GP_FACT_WARNING, .row = console->ranges[0].row };

		fact.text = "a ROCTX range is never closed; ranges still open at the end are left out";
		r = sink->fact(sink->context, &fact, error);
	}
	return r;
}
