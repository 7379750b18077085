/* SPDX-License-Identifier: MIT */
/* Owns the opening of databases, their bounds, and the telling apart of their formats. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "report/trace/database.h"
#include "report/trace/readers.h"

#ifdef GP_HAVE_SQLITE

#define DATABASE_STEPS_AT_ONCE 1000000
/* Times so many: a view that runs for ever. A larger file has more to do. */
#define DATABASE_STEPS_MAX     300u
#define DATABASE_SIZE_PER_STEP 20000u /* bytes */
/* A row has two times of day: a file of so many bytes for each row cannot hold more, only a view can make them up. */
#define DATABASE_ROWS_MAX     65536u
#define DATABASE_SIZE_PER_ROW 8u
/* What is sorted comes from the file. */
#define DATABASE_SCRATCH_MAX   (64u << 20)
#define DATABASE_SCRATCH_RATIO 4u
#define DATABASE_HEAP_MAX      (256 << 20) /* SQLite's own memory: caches, and a few values of the greatest length */
#define DATABASE_LENGTH_MAX    (16 << 20)

static int database_refuse(const struct gp_database *database, struct gp_error *error)
{
	int code = sqlite3_errcode(database->handle);
	const char *says = code == SQLITE_INTERRUPT ? "a view of this database runs for too long" :
			   code == SQLITE_FULL      ? "a view of this database sorts more than the file can hold" :
			   code == SQLITE_NOMEM     ? "reading this database takes too much memory" :
						      sqlite3_errmsg(database->handle);

	return gp_error_set(error, code == SQLITE_NOMEM ? -ENOMEM : -EINVAL, "%s: %s", database->file_name, says);
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
	while (!r && (code = sqlite3_step(statement)) != SQLITE_DONE) {
		if (code != SQLITE_ROW)
			r = database_refuse(database, error);
		else if (++database->rows > database->rows_max)
			r = gp_error_set(error, -EINVAL,
					 "%s: a view of this database gives more rows than the file can hold",
					 database->file_name);
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

void gp_database_known(sqlite3_stmt *row, int column, struct gp_profile_event *event, uint64_t *field,
		       enum gp_known bit)
{
	if (gp_database_u64(row, column, field))
		event->known |= bit;
}

void gp_database_event(sqlite3_stmt *row, int name, int start, struct gp_profile_event *event, enum gp_layer layer)
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
				   (bytes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX,
				   database->scratch.vfs.zName);

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
	return gp_error_set(error, -ENOMSG, "%s: a database, but none of rocpd, RPD or rocprof v1",
			    database->file_name);
}

/* With its log: a profiler that was killed leaves most rows there. */
static uint64_t database_file_size(const char *path)
{
	char log_path[PATH_MAX];
	struct stat st;
	uint64_t size = stat(path, &st) ? 0 : (uint64_t)st.st_size;

	if (snprintf(log_path, sizeof(log_path), "%s-wal", path) < (int)sizeof(log_path) && !stat(log_path, &st))
		size += (uint64_t)st.st_size;
	return size;
}

int gp_read_sqlite(const char *path, const void *bytes, size_t size, const struct gp_sink *sink,
		   const char **ret_format, struct gp_error *error)
{
	struct gp_database database = { .file_name = path, .sink = sink };
	uint64_t file_size = bytes ? size : database_file_size(path);
	sqlite3_int64 heap_was;
	int r;

	database.steps_max = DATABASE_STEPS_MAX + file_size / DATABASE_SIZE_PER_STEP;
	database.rows_max = DATABASE_ROWS_MAX + file_size / DATABASE_SIZE_PER_ROW;
	*ret_format = "SQLite database";
	if (gp_scratch_init(&database.scratch, DATABASE_SCRATCH_MAX + file_size * DATABASE_SCRATCH_RATIO))
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", path);
	heap_was = sqlite3_hard_heap_limit64(DATABASE_HEAP_MAX);
	r = database_open(&database, path, bytes, size, error);
	if (!r)
		r = database_read(&database, ret_format, error);
	sqlite3_close(database.handle);
	sqlite3_hard_heap_limit64(heap_was);
	gp_scratch_fini(&database.scratch);
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
