/* SPDX-License-Identifier: MIT */
/* Owns rocprof v1's database: tables HIP, HSA, COPY, OPS and KERN, of which a file has those that were traced. */
#include "report/trace/database.h"

#ifdef GP_HAVE_SQLITE
#include <errno.h>
#include <string.h>

static int rocprof1_call(struct gp_database *database, sqlite3_stmt *row, uint64_t number, enum gp_layer layer,
			 struct gp_error *error)
{
	struct gp_profile_event event;

	gp_database_event(row, 0, 1, &event, layer);
	event.row = number;
	gp_database_known(row, 3, &event, &event.pid, GP_KNOWN_PID);
	gp_database_known(row, 4, &event, &event.tid, GP_KNOWN_TID);
	return database->sink->event(database->sink->context, &event, error);
}

static int rocprof1_hip(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	return rocprof1_call(database, row, number, GP_LAYER_HIP, error);
}

static int rocprof1_hsa(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	return rocprof1_call(database, row, number, GP_LAYER_HSA, error);
}

static int rocprof1_copy(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	return rocprof1_call(database, row, number, GP_LAYER_COPY, error);
}

static int rocprof1_marker(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	return rocprof1_call(database, row, number, GP_LAYER_MARKER, error);
}

/* Kernels, copies and barriers in one table. */
static int rocprof1_ops(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	enum gp_layer layer = GP_LAYER_KERNEL;
	struct gp_profile_event event;

	if (name && (!strncmp(name, "Copy", 4) || !strncmp(name, "hcMemcpy", 8) || !strncmp(name, "Fill", 4)))
		layer = GP_LAYER_COPY;
	if (name && (strstr(name, "Marker") || strstr(name, "Barrier")))
		layer = GP_LAYER_MARKER;
	gp_database_event(row, 0, 1, &event, layer);
	event.row = number;
	gp_database_known(row, 3, &event, &event.pid, GP_KNOWN_PID);
	gp_database_known(row, 4, &event, &event.tid, GP_KNOWN_TID);
	gp_database_known(row, 5, &event, &event.device, GP_KNOWN_DEVICE);
	gp_database_known(row, 6, &event, &event.device, GP_KNOWN_DEVICE);
	gp_database_known(row, 7, &event, &event.queue, GP_KNOWN_QUEUE);
	gp_database_known(row, 8, &event, &event.stream, GP_KNOWN_STREAM);
	return database->sink->event(database->sink->context, &event, error);
}

static int rocprof1_timed(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	(void)row;
	(void)number;
	(void)error;
	database->has_times = true;
	return 0;
}

/* KERN lists every kernel; its times are there only if they were asked for. */
static bool rocprof1_has_times(struct gp_database *database)
{
	database->has_times = false;
	if (gp_database_has(database, "KERN"))
		(void)gp_database_run(
			database, "SELECT [BeginNs] FROM [KERN] WHERE [BeginNs] > 0 AND [EndNs] >= [BeginNs] LIMIT 1",
			rocprof1_timed, NULL);
	return database->has_times;
}

static int rocprof1_kern(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	uint64_t grid = 0, side = 0;
	struct gp_profile_event event;

	gp_database_event(row, 0, 1, &event, GP_LAYER_KERNEL);
	event.row = number;
	gp_database_known(row, 3, &event, &event.pid, GP_KNOWN_PID);
	gp_database_known(row, 4, &event, &event.tid, GP_KNOWN_TID);
	gp_database_known(row, 5, &event, &event.device, GP_KNOWN_DEVICE);
	gp_database_known(row, 6, &event, &event.queue, GP_KNOWN_QUEUE);
	gp_database_known(row, 7, &event, &event.dispatch_ns, GP_KNOWN_DISPATCH);
	gp_database_known(row, 8, &event, &event.complete_ns, GP_KNOWN_COMPLETE);
	if (gp_database_u64(row, 9, &grid) && gp_database_u64(row, 10, &side) && grid && side &&
	    grid <= UINT64_MAX - side) {
		event.workgroups = (grid + side - 1) / side;
		event.known |= GP_KNOWN_WORKGROUPS;
	}
	return database->sink->event(database->sink->context, &event, error);
}

int gp_read_rocprof1_db(struct gp_database *database, struct gp_error *error)
{
	static const char *const calls[] = { "Name", "BeginNs", "EndNs", "pid", "tid", NULL };
	static const char *const kernels[] = { "KernelName", "BeginNs",    "EndNs",      "pid", "tid", "gpu-id",
					       "queue-id",   "DispatchNs", "CompleteNs", "grd", "wgr", NULL };
	static const char *const operations[] = { "Name",   "BeginNs", "EndNs",    "pid",       "tid",
						  "dev-id", "gpu-id",  "queue-id", "stream-id", NULL };
	struct gp_database_query queries[] = {
		{ "HIP", calls, rocprof1_hip },
		{ "HSA", calls, rocprof1_hsa },
		{ "COPY", calls, rocprof1_copy },
		{ "rocTX", calls, rocprof1_marker },
		{ "KERN", kernels, rocprof1_kern },
		/* The same kernels as KERN, without the packets' times. */
		{ "OPS", operations, rocprof1_ops },
	};
	bool has_times = rocprof1_has_times(database);
	bool has_kernels = has_times || !gp_database_has(database, "OPS");

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		if (queries[i].row == (has_kernels ? rocprof1_ops : rocprof1_kern))
			continue;

		int r = gp_database_select(database, &queries[i], error);

		if (r && r != -ENOENT)
			return r;
	}
	return 0;
}
#endif
