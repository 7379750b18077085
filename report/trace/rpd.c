/* SPDX-License-Identifier: MIT */
/* Owns RPD databases (rocmProfileData): calls in rocpd_api, work in rocpd_op, and which call made which work in
 * rocpd_api_ops. */
#include "report/trace/database.h"

#ifdef GP_HAVE_SQLITE
#include <errno.h>
#include <string.h>

static int rpd_api(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	struct gp_profile_event event;

	(void)number;
	gp_database_event(row, 0, 1, &event, gp_layer_of("", name ? name : ""));
	gp_database_known(row, 3, &event, &event.pid, GP_KNOWN_PID);
	gp_database_known(row, 4, &event, &event.tid, GP_KNOWN_TID);
	gp_database_known(row, 5, &event, &event.correlation, GP_KNOWN_CORRELATION);
	event.row = event.correlation;
	/* RPD keeps the user's ranges, and what it does itself, among the calls. */
	if (event.layer == GP_LAYER_LIBRARY && (!name || (strncmp(name, "nccl", 4) && strncmp(name, "rccl", 4))))
		event.layer = GP_LAYER_MARKER;
	/* "UserMarker" says what it is in its arguments. */
	if (event.layer == GP_LAYER_MARKER && name && !strcmp(name, "UserMarker") && sqlite3_column_bytes(row, 6) > 0) {
		event.name = (const char *)sqlite3_column_text(row, 6);
		event.name_size = (size_t)sqlite3_column_bytes(row, 6);
	}
	return database->sink->event(database->sink->context, &event, error);
}

static int rpd_op(struct gp_database *database, sqlite3_stmt *row, uint64_t number, struct gp_error *error)
{
	const char *type = (const char *)sqlite3_column_text(row, 3), *name = (const char *)sqlite3_column_text(row, 0);
	bool is_copy = type && (!strncmp(type, "Copy", 4) || strstr(type, "emcpy"));
	bool is_barrier = type && (strstr(type, "Barrier") || strstr(type, "Marker"));
	struct gp_profile_event event;

	(void)number;
	gp_database_event(row, name && *name ? 0 : 3, 1, &event, is_copy ? GP_LAYER_COPY : GP_LAYER_KERNEL);
	/* A barrier is a place in line, not work. */
	if (is_barrier)
		event.layer = GP_LAYER_MARKER;
	gp_database_known(row, 4, &event, &event.device, GP_KNOWN_DEVICE);
	gp_database_known(row, 5, &event, &event.queue, GP_KNOWN_QUEUE);
	gp_database_known(row, 6, &event, &event.correlation, GP_KNOWN_CORRELATION);
	gp_database_known(row, 7, &event, &event.pid, GP_KNOWN_PID);
	gp_database_known(row, 8, &event, &event.tid, GP_KNOWN_TID);
	if (is_copy)
		gp_database_known(row, 9, &event, &event.size, GP_KNOWN_SIZE);
	(void)gp_database_u64(row, 10, &event.row);
	return database->sink->event(database->sink->context, &event, error);
}

int gp_read_rpd(struct gp_database *database, struct gp_error *error)
{
	int r = gp_database_run(database,
				"SELECT S.string, A.start, A.\"end\", A.pid, A.tid, A.id, G.string FROM rocpd_api A "
				"LEFT JOIN rocpd_string S ON S.id = A.apiName_id "
				"LEFT JOIN rocpd_string G ON G.id = A.args_id",
				rpd_api, error);

	if (r)
		return r;
	/* One call may make several pieces of work; each is one row. */
	return gp_database_run(
		database,
		"SELECT D.string, O.start, O.\"end\", T.string, O.gpuId, O.queueId, L.api_id, A.pid, A.tid, "
		"C.size, O.id FROM rocpd_op O "
		"LEFT JOIN rocpd_string D ON D.id = O.description_id "
		"LEFT JOIN rocpd_string T ON T.id = O.opType_id "
		"LEFT JOIN (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops GROUP BY op_id) L "
		"ON L.op_id = O.id LEFT JOIN rocpd_api A ON A.id = L.api_id "
		"LEFT JOIN rocpd_copyapi C ON C.api_ptr_id = L.api_id",
		rpd_op, error);
}
#endif
