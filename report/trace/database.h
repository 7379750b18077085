/* SPDX-License-Identifier: MIT */
/*
 * What the readers of databases share: queries whose columns are probed first, so that a schema that lacks one gives
 * NULL there and not an error. A database is hostile input: it is opened read-only, and its views may be anything. So
 * each file has limits, which grow with its size: steps, rows, bytes of temporary files; and one of memory. Nothing but
 * the named columns is ever read (rocpd files hold the whole environment of a process).
 */
#ifndef GP_REPORT_TRACE_DATABASE_H
#define GP_REPORT_TRACE_DATABASE_H

#ifdef GP_HAVE_SQLITE
#include <sqlite3.h>
#include "report/trace/readers.h"
#include "report/trace/scratch.h"

struct gp_database {
	bool has_times; /* rocprof1_db.c: what it asked last */
	sqlite3 *handle;
	const char *file_name;
	const struct gp_sink *sink;
	struct gp_scratch scratch;
	/* Of the whole file: millions of steps, rows; and how many are patience. */
	uint64_t steps, steps_max, rows, rows_max;
};

bool gp_database_has(struct gp_database *database, const char *table);
/* Rows of a table or view with these columns, in this order; a column that is not there is NULL. Calls row() for each;
 * -ENOENT without a sentence if there is no such table. */
typedef int (*gp_database_row)(struct gp_database *database, sqlite3_stmt *row, uint64_t number,
			       struct gp_error *error);
struct gp_database_query {
	const char *table, *const *columns; /* ends in NULL */
	gp_database_row row;
};
int gp_database_select(struct gp_database *database, const struct gp_database_query *query, struct gp_error *error);
/* A statement of one's own. */
int gp_database_run(struct gp_database *database, const char *sql, gp_database_row row, struct gp_error *error);

/* A whole number that is not negative; false for NULL and everything else. */
bool gp_database_u64(sqlite3_stmt *row, int column, uint64_t *ret_value);
/* Sets the field and its bit if the column has a number. */
void gp_database_known(sqlite3_stmt *row, int column, struct gp_profile_event *event, uint64_t *field,
		       enum gp_known bit);
/* Name and times of an event from three columns; an event without times is one that is left out (start 0). */
void gp_database_event(sqlite3_stmt *row, int name, int start, struct gp_profile_event *event, enum gp_layer layer);

int gp_read_rocpd(struct gp_database *database, struct gp_error *error);
int gp_read_rpd(struct gp_database *database, struct gp_error *error);
int gp_read_rocprof1_db(struct gp_database *database, struct gp_error *error);
#endif

#endif
