/* SPDX-License-Identifier: MIT */
/* Owns the size of SQLite's temporary files: a VFS that hands everything to the system's, and counts what those files
 * grow to. Never touches the database's own file. */
#include "report/trace/scratch.h"

#ifdef GP_HAVE_SQLITE
#include <errno.h>
#include <stddef.h>

#define SCRATCH_KINDS \
	(SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL | SQLITE_OPEN_SUBJOURNAL)

/* Lies behind the system's own file object. Only for temporary files its methods are replaced by these. */
struct scratch_file {
	const sqlite3_io_methods *system;
	sqlite3_io_methods counted;
	struct gp_scratch *scratch;
	uint64_t size;
};

/* The place of our part depends on the system's; the method table in a file is ours, so it leads there. */
static struct scratch_file *scratch_file_of(sqlite3_file *file)
{
	return (struct scratch_file *)((uintptr_t)file->pMethods - offsetof(struct scratch_file, counted));
}

static int scratch_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
	struct scratch_file *own = scratch_file_of(file);
	uint64_t end = (uint64_t)offset + (uint64_t)size;

	if (end > own->size) {
		if (end - own->size > own->scratch->limit - own->scratch->used)
			return SQLITE_FULL;
		own->scratch->used += end - own->size;
		own->size = end;
	}
	return own->system->xWrite(file, bytes, size, offset);
}

static int scratch_close(sqlite3_file *file)
{
	struct scratch_file *own = scratch_file_of(file);

	own->scratch->used -= own->size;
	return own->system->xClose(file);
}

static size_t scratch_system_size(const sqlite3_vfs *system)
{
	size_t align = _Alignof(struct scratch_file);

	return ((size_t)system->szOsFile + align - 1) / align * align;
}

static int scratch_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	struct gp_scratch *scratch = vfs->pAppData;
	struct scratch_file *own = (struct scratch_file *)((char *)file + scratch_system_size(scratch->inner));
	int code = scratch->inner->xOpen(scratch->inner, name, file, flags, ret_flags);

	if (code != SQLITE_OK || !(flags & SCRATCH_KINDS))
		return code;
	own->system = file->pMethods;
	own->counted = *file->pMethods;
	own->counted.iVersion = 1; /* nothing is mapped: what grows is written */
	own->counted.xWrite = scratch_write;
	own->counted.xClose = scratch_close;
	own->scratch = scratch;
	own->size = 0;
	file->pMethods = &own->counted;
	return code;
}

int gp_scratch_init(struct gp_scratch *scratch, uint64_t limit)
{
	sqlite3_vfs *system;

	if (sqlite3_initialize() != SQLITE_OK || !(system = sqlite3_vfs_find(NULL)))
		return -ENOMEM;
	*scratch = (struct gp_scratch){ .vfs = *system, .inner = system, .limit = limit };
	scratch->vfs.szOsFile = (int)(scratch_system_size(system) + sizeof(struct scratch_file));
	scratch->vfs.pNext = NULL;
	scratch->vfs.zName = "gpreempt-scratch";
	scratch->vfs.pAppData = scratch;
	scratch->vfs.xOpen = scratch_open;
	return sqlite3_vfs_register(&scratch->vfs, 0) == SQLITE_OK ? 0 : -ENOMEM;
}

void gp_scratch_fini(struct gp_scratch *scratch)
{
	(void)sqlite3_vfs_unregister(&scratch->vfs);
}
#endif
