/* SPDX-License-Identifier: MIT */
/* Owns rocprof v1's database: tables HIP, HSA, COPY, OPS and KERN, of which a file has those that were traced. */
#include "trace/database.h"

#ifdef GP_HAVE_SQLITE
#include <errno.h>

static int rocprof1_call(struct gp_database *database, sqlite3_stmt *row, uint64_t number, enum gp_layer layer,
			 struct gp_error *error)
{
	struct gp_trace_event event;

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

static int rocprof1_ops(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	return rocprof1_call(database, row, number, GP_LAYER_KERNEL, error);
}

static int rocprof1_kern(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	uint64_t grid = 0, side = 0;
	struct gp_trace_event event;

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
	struct gp_database_query queries[] = {
		{ "HIP", calls, rocprof1_hip },
		{ "HSA", calls, rocprof1_hsa },
		{ "COPY", calls, rocprof1_copy },
		{ "KERN", kernels, rocprof1_kern },
		/* The same kernels as KERN, without the packets' times. */
		{ "OPS", calls, rocprof1_ops },
	};
	size_t count = sizeof(queries) / sizeof(queries[0]) - gp_database_has(database, "KERN");

	for (size_t i = 0; i < count; i++) {
		int r = gp_database_select(database, &queries[i], error);

		if (r && r != -ENOENT)
			return r;
	}
	return 0;
}
#endif
