/* SPDX-License-Identifier: MIT */
/* Owns the opening of databases. */
#include <errno.h>
#include "trace/readers.h"

int gp_read_sqlite(const char *path, const void *bytes, size_t size, const struct gp_sink *sink,
		   const char **ret_format, struct gp_error *error)
{
	(void)bytes;
	(void)size;
	(void)sink;
	*ret_format = "SQLite database";
	return gp_error_set(error, -ENOTSUP, "%s: is a database, and this program was built without SQLite", path);
}
