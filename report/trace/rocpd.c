/* SPDX-License-Identifier: MIT */
/* Owns rocpd databases (rocprofv3's default output), any 3.x schema, through the plain-named views only. Never looks at
 * rocpd_info_process: it holds the environment of the process, secrets included. */
#include "report/trace/database.h"

#ifdef GP_HAVE_SQLITE
#include <errno.h>
#include <string.h>

enum rocpd_column {
	ROCPD_NAME,
	ROCPD_START,
	ROCPD_END,
	ROCPD_PID,
	ROCPD_TID,
	ROCPD_STACK,
	ROCPD_CORRELATION,
	ROCPD_OWN, /* from here on each view has its own */
};

/* The stack id is the correlation inside the process; the other one is the user's own and often 0. */
static void rocpd_common(sqlite3_stmt *row, struct gp_profile_event *event)
{
	gp_database_known(row, ROCPD_PID, event, &event->pid, GP_KNOWN_PID);
	gp_database_known(row, ROCPD_TID, event, &event->tid, GP_KNOWN_TID);
	if (!gp_database_u64(row, ROCPD_STACK, &event->correlation) || !event->correlation)
		(void)gp_database_u64(row, ROCPD_CORRELATION, &event->correlation);
	event->known |= event->correlation ? GP_KNOWN_CORRELATION : 0;
}

/* The text of a range: {"message": "…"}. Escapes other than of quotes and backslashes stay as they are. */
static size_t rocpd_message(const char *data, char *text, size_t size)
{
	const char *at = data ? strstr(data, "\"message\"") : NULL;
	size_t used = 0;

	if (!at)
		return 0;
	at += strlen("\"message\"");
	at += strspn(at, " \t\n:");
	if (*at++ != '"')
		return 0;
	for (; *at && *at != '"' && used + 1 < size; at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		text[used++] = *at;
	}
	text[used] = '\0';
	return *at == '"' || used + 1 == size ? used : 0;
}

static int rocpd_region(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	const char *category = (const char *)sqlite3_column_text(row, ROCPD_OWN);
	const char *name = (const char *)sqlite3_column_text(row, ROCPD_NAME);
	struct gp_profile_event event;
	char message[1024];
	size_t size;

	gp_database_event(row, ROCPD_NAME, ROCPD_START, &event,
			  gp_layer_of(category ? category : "", name ? name : ""));
	event.row = number;
	rocpd_common(row, &event);
	/* A region that were an engine's would be nonsense: calls stay calls. */
	if (event.layer == GP_LAYER_KERNEL || event.layer == GP_LAYER_COPY)
		event.layer = GP_LAYER_LIBRARY;
	size = event.layer == GP_LAYER_MARKER ?
		       rocpd_message((const char *)sqlite3_column_text(row, ROCPD_OWN + 1), message, sizeof(message)) :
		       0;
	if (size) {
		event.name = message;
		event.name_size = size;
	}
	return database->sink->event(database->sink->context, &event, error);
}

static int rocpd_kernel(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	uint64_t workgroups = 1;
	struct gp_profile_event event;
	bool has_grid = true;

	gp_database_event(row, ROCPD_NAME, ROCPD_START, &event, GP_LAYER_KERNEL);
	event.row = number;
	rocpd_common(row, &event);
	gp_database_known(row, ROCPD_OWN, &event, &event.device, GP_KNOWN_DEVICE);
	gp_database_known(row, ROCPD_OWN + 1, &event, &event.queue, GP_KNOWN_QUEUE);
	gp_database_known(row, ROCPD_OWN + 2, &event, &event.stream, GP_KNOWN_STREAM);
	for (int i = 0; i < 3; i++) {
		uint64_t grid = 0, side = 0;

		has_grid = has_grid && gp_database_u64(row, ROCPD_OWN + 3 + i, &grid) &&
			   gp_database_u64(row, ROCPD_OWN + 6 + i, &side) && grid && side && grid <= UINT32_MAX &&
			   side <= UINT32_MAX &&
			   !__builtin_mul_overflow(workgroups, side ? (grid + side - 1) / side : 0, &workgroups);
	}
	if (has_grid) {
		event.workgroups = workgroups;
		event.known |= GP_KNOWN_WORKGROUPS;
	}
	return database->sink->event(database->sink->context, &event, error);
}

static int rocpd_copy(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	const char *type = (const char *)sqlite3_column_text(row, ROCPD_OWN + 5);
	struct gp_profile_event event;

	gp_database_event(row, ROCPD_NAME, ROCPD_START, &event, GP_LAYER_COPY);
	event.row = number;
	rocpd_common(row, &event);
	gp_database_known(row, ROCPD_OWN, &event, &event.size, GP_KNOWN_SIZE);
	gp_database_known(row, ROCPD_OWN + 1, &event, &event.queue, GP_KNOWN_QUEUE);
	gp_database_known(row, ROCPD_OWN + 2, &event, &event.stream, GP_KNOWN_STREAM);
	/* The engine belongs to the side that is a GPU. */
	gp_database_known(row, type && !strcmp(type, "GPU") ? ROCPD_OWN + 3 : ROCPD_OWN + 4, &event, &event.device,
			  GP_KNOWN_DEVICE);
	return database->sink->event(database->sink->context, &event, error);
}

static int rocpd_allocation(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	struct gp_profile_event event;

	gp_database_event(row, ROCPD_NAME, ROCPD_START, &event, GP_LAYER_MEMORY);
	event.row = number;
	rocpd_common(row, &event);
	return database->sink->event(database->sink->context, &event, error);
}

static int rocpd_agent(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	struct gp_fact fact = { .kind = GP_FACT_CU_COUNT, .text = "", .has_device = true, .row = number };

	if (!gp_database_u64(row, 0, &fact.device) || !gp_database_u64(row, 1, &fact.value))
		return 0;
	return database->sink->fact(database->sink->context, &fact, error);
}

int gp_read_rocpd(struct gp_database *database, struct gp_error *error)
{
	static const char *const regions[] = { "name",     "start",   "end",      "pid",     "tid",
					       "stack_id", "corr_id", "category", "extdata", NULL };
	static const char *const kernels[] = { "name",     "start",       "end",         "pid",
					       "tid",      "stack_id",    "corr_id",     "agent_abs_index",
					       "queue_id", "stream_id",   "grid_x",      "grid_y",
					       "grid_z",   "workgroup_x", "workgroup_y", "workgroup_z",
					       NULL };
	static const char *const copies[] = { "name",
					      "start",
					      "end",
					      "pid",
					      "tid",
					      "stack_id",
					      "corr_id",
					      "size",
					      "queue_id",
					      "stream_id",
					      "src_agent_abs_index",
					      "dst_agent_abs_index",
					      "src_agent_type",
					      NULL };
	static const char *const allocations[] = { "type", "start", "end", "pid", "tid", "stack_id", "corr_id", NULL };
	const struct gp_database_query queries[] = {
		{ "regions", regions, rocpd_region },
		{ "kernels", kernels, rocpd_kernel },
		{ "memory_copies", copies, rocpd_copy },
		{ "memory_allocations", allocations, rocpd_allocation },
	};
	uint32_t missing = 0;

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		int r = gp_database_select(database, &queries[i], error);

		if (r && r != -ENOENT)
			return r;
		missing += r == -ENOENT;
	}
	if (missing == sizeof(queries) / sizeof(queries[0]))
		return gp_error_set(error, -EINVAL,
				    "%s: a rocpd database without its views: this schema is not known (3.x is)",
				    database->file_name);
	/* What is said about devices is welcome, not needed: newer schemas pack it. */
	if (gp_database_has(database, "rocpd_info_agent"))
		(void)gp_database_run(
			database,
			"SELECT absolute_index, json_extract(extdata, '$.cu_count') FROM rocpd_info_agent "
			"WHERE type = 'GPU' AND typeof(extdata) = 'text' AND json_valid(extdata)",
			rocpd_agent, NULL);
	return 0;
}
#endif
