/* SPDX-License-Identifier: MIT */
/* Whole files in, whole files out. A file that cannot be written completely leaves nothing behind. */
#ifndef GP_LIB_FILE_H
#define GP_LIB_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "lib/error.h"

/* Reads at most size_max bytes (larger: -EFBIG with a sentence); adds a NUL. The caller frees *ret_text. */
int gp_file_read(const char *path, size_t size_max, char **ret_text, size_t *ret_size, struct gp_error *error);

/* Writes beside path and renames on success. "-" is standard output. */
struct gp_file_writer {
	FILE *stream;
	bool hurried; /* set after open: no fsync; if the machine crashes, the file may be empty */
	char path[4096], temporary[4128];
};
/* Whether a file can be made at path (NULL: there is none to make), before minutes are spent on what goes into it. */
int gp_file_try(const char *path, struct gp_error *error);
int gp_file_open(struct gp_file_writer *writer, const char *path, struct gp_error *error);
int gp_file_commit(struct gp_file_writer *writer, struct gp_error *error); /* flush, check, fsync, rename */
void gp_file_abandon(struct gp_file_writer *writer); /* removes the temporary file; safe after commit */

#endif
