/* SPDX-License-Identifier: MIT */
/* Temporary files of SQLite, with an end: what one database may write to $TMPDIR while its views are sorted. */
#ifndef GP_REPORT_TRACE_SCRATCH_H
#define GP_REPORT_TRACE_SCRATCH_H

#ifdef GP_HAVE_SQLITE
#include <sqlite3.h>
#include <stdint.h>

struct gp_scratch {
	sqlite3_vfs vfs; /* its name goes to sqlite3_open_v2() */
	sqlite3_vfs *inner;
	uint64_t used, limit; /* bytes in all temporary files that are open */
};

/* Makes the VFS known to SQLite. limit: more than that in temporary files is SQLITE_FULL. One at a time: the name is
 * the same for all. */
int gp_scratch_init(struct gp_scratch *scratch, uint64_t limit);
/* After the database was closed. */
void gp_scratch_fini(struct gp_scratch *scratch);
#endif

#endif
