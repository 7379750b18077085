/* SPDX-License-Identifier: MIT */
/* Owns the opening of databases, their bounds, and the telling apart of their formats. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "trace/database.h"
#include "trace/readers.h"

#ifdef GP_HAVE_SQLITE

#define DATABASE_STEPS_AT_ONCE 1000000
/* Times so many, without a row: a view that runs for ever. What sorts first may take longer with the size. */
#define DATABASE_STEPS_MAX     300u
#define DATABASE_SIZE_PER_STEP 20000u /* bytes */
#define DATABASE_LENGTH_MAX    (16 << 20)

static int database_refuse(const struct gp_database *database, struct gp_error *error)
{
	int code = sqlite3_errcode(database->handle);

	return gp_error_set(error, code == SQLITE_NOMEM ? -ENOMEM : -EINVAL, "%s: %s", database->file_name,
			    code == SQLITE_INTERRUPT ? "a view of this database runs for too long" :
						       sqlite3_errmsg(database->handle));
}

static int database_progress(void *context)
{
	struct gp_database *database = context;

	return ++database->steps > database->steps_max;
}

int gp_database_run(struct gp_database *database, const char *sql, gp_database_row row, struct gp_error *error)
{
	sqlite3_stmt *statement = NULL;
	uint64_t number = 0;
	int r = 0, code;

	if (sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) != SQLITE_OK)
		return database_refuse(database, error);
	database->steps = 0;
	while (!r && (code = sqlite3_step(statement)) != SQLITE_DONE) {
		database->steps = 0;
		if (code != SQLITE_ROW)
			r = database_refuse(database, error);
		else
			r = row(database, statement, ++number, error);
	}
	sqlite3_finalize(statement);
	return r;
}

/* Names of tables and columns are ours; still, nothing goes into a statement unquoted. */
static bool database_has_column(struct gp_database *database, const char *table, const char *column)
{
	sqlite3_stmt *statement = NULL;
	bool has = false;

	if (sqlite3_prepare_v2(database->handle, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", -1, &statement,
			       NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
		sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC);
		has = sqlite3_step(statement) == SQLITE_ROW;
	}
	sqlite3_finalize(statement);
	return has;
}

bool gp_database_has(struct gp_database *database, const char *table)
{
	sqlite3_stmt *statement = NULL;
	bool has = false;

	if (sqlite3_prepare_v2(database->handle,
			       "SELECT 1 FROM sqlite_master WHERE name = ?1 AND type IN ('table', 'view')", -1,
			       &statement, NULL) == SQLITE_OK) {
		sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
		has = sqlite3_step(statement) == SQLITE_ROW;
	}
	sqlite3_finalize(statement);
	return has;
}

int gp_database_select(struct gp_database *database, const struct gp_database_query *query, struct gp_error *error)
{
	char sql[4096];
	size_t used;

	if (!gp_database_has(database, query->table))
		return -ENOENT;
	used = (size_t)snprintf(sql, sizeof(sql), "SELECT ");
	for (uint32_t i = 0; query->columns[i]; i++) {
		bool has = database_has_column(database, query->table, query->columns[i]);

		used += (size_t)snprintf(sql + used, sizeof(sql) - used, "%s%s%s%s", i ? ", " : "", has ? "\"" : "NULL",
					 has ? query->columns[i] : "", has ? "\"" : "");
	}
	(void)snprintf(sql + used, sizeof(sql) - used, " FROM \"%s\"", query->table);
	return gp_database_run(database, sql, query->row, error);
}

bool gp_database_u64(sqlite3_stmt *row, int column, uint64_t *ret_value)
{
	sqlite3_int64 value;

	if (sqlite3_column_type(row, column) != SQLITE_INTEGER)
		return false;
	value = sqlite3_column_int64(row, column);
	if (value < 0)
		return false;
	*ret_value = (uint64_t)value;
	return true;
}

void gp_database_known(sqlite3_stmt *row, int column, struct gp_trace_event *event, uint64_t *field, enum gp_known bit)
{
	if (gp_database_u64(row, column, field))
		event->known |= bit;
}

void gp_database_event(sqlite3_stmt *row, int name, int start, struct gp_trace_event *event, enum gp_layer layer)
{
	const char *text = (const char *)sqlite3_column_text(row, name);

	gp_trace_event_init(event, layer, text ? text : "(no name)",
			    text ? (size_t)sqlite3_column_bytes(row, name) : strlen("(no name)"));
	if (!gp_database_u64(row, start, &event->start_ns) || !gp_database_u64(row, start + 1, &event->end_ns))
		event->start_ns = event->end_ns = 0;
}

static int database_open(struct gp_database *database, const char *path, const void *bytes, size_t size,
			 struct gp_error *error)
{
	int code = sqlite3_open_v2(bytes ? ":memory:" : path, &database->handle,
				   (bytes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX, NULL);

	if (code != SQLITE_OK)
		return database->handle ? database_refuse(database, error) :
					  gp_error_set(error, -ENOMEM, "%s: not enough memory", path);
	sqlite3_db_config(database->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(database->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_limit(database->handle, SQLITE_LIMIT_LENGTH, DATABASE_LENGTH_MAX);
	sqlite3_limit(database->handle, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_progress_handler(database->handle, DATABASE_STEPS_AT_ONCE, database_progress, database);
	if (bytes) {
		code = sqlite3_deserialize(database->handle, "main", (unsigned char *)(uintptr_t)bytes,
					   (sqlite3_int64)size, (sqlite3_int64)size, SQLITE_DESERIALIZE_READONLY);
		if (code != SQLITE_OK)
			return database_refuse(database, error);
	}
	/* The first look at the schema finds out whether this is a database at all. */
	if (sqlite3_exec(database->handle, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) != SQLITE_OK)
		return database_refuse(database, error);
	return 0;
}

static int database_read(struct gp_database *database, const char **ret_format, struct gp_error *error)
{
	/* RPD calls its tables rocpd_* too, and says schema 3 in a table of the same name: only the tables tell. */
	if (gp_database_has(database, "rocpd_api") && gp_database_has(database, "rocpd_op")) {
		*ret_format = "RPD";
		return gp_read_rpd(database, error);
	}
	if (gp_database_has(database, "regions") || gp_database_has(database, "kernels") ||
	    gp_database_has(database, "rocpd_metadata")) {
		*ret_format = "rocpd";
		return gp_read_rocpd(database, error);
	}
	if (gp_database_has(database, "HIP") || gp_database_has(database, "HSA") || gp_database_has(database, "KERN") ||
	    gp_database_has(database, "COPY") || gp_database_has(database, "OPS")) {
		*ret_format = "rocprof v1 database";
		return gp_read_rocprof1_db(database, error);
	}
	return gp_error_set(error, -EINVAL, "%s: a database, but none of rocpd, RPD or rocprof v1",
			    database->file_name);
}

int gp_read_sqlite(const char *path, const void *bytes, size_t size, const struct gp_sink *sink,
		   const char **ret_format, struct gp_error *error)
{
	struct gp_database database = { .file_name = path, .sink = sink };
	struct stat st = { .st_size = 0 };
	int r;

	if (!bytes)
		(void)stat(path, &st);
	database.steps_max = DATABASE_STEPS_MAX + (bytes ? size : (uint64_t)st.st_size) / DATABASE_SIZE_PER_STEP;
	r = database_open(&database, path, bytes, size, error);

	*ret_format = "SQLite database";
	if (!r)
		r = database_read(&database, ret_format, error);
	sqlite3_close(database.handle);
	return r;
}
#else
int gp_read_sqlite(const char *path, const void *bytes, size_t size, const struct gp_sink *sink,
		   const char **ret_format, struct gp_error *error)
{
	(void)bytes;
	(void)size;
	(void)sink;
	*ret_format = "SQLite database";
	return gp_error_set(error, -ENOTSUP, "%s: is a database, and this program was built without SQLite", path);
}
#endif
