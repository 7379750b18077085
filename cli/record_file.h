/* SPDX-License-Identifier: MIT */
/* The record: a header line and one event a line (docs/record.md). Whatever happens, what is in the file are whole
 * lines, nobody but its owner can read it, and an earlier record of the same name is replaced by a whole one only. */
#ifndef GP_CLI_RECORD_FILE_H
#define GP_CLI_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/error.h"
#include "view/result.h"

struct gp_record_file {
	int fd;
	bool has_failed;      /* it could not be opened, or a line not be written */
	off_t size;           /* whole lines written */
	const char *kept;     /* after close: where it is; NULL: nothing is left of it */
	char path[4096];      /* where the record goes to */
	char temporary[4128]; /* where it is until then; "": it is written where it goes to */
};

/* "-": standard output. A device or a pipe is written to; otherwise the record is written beside path, as
 * PATH.PID-N.part. */
int gp_record_file_open(struct gp_record_file *file, const char *path, struct gp_error *error);
/* One line; line ends inside it become blanks. After an error (a full disk) the file ends with the line before. */
int gp_record_file_line(struct gp_record_file *file, const char *text, size_t size, struct gp_error *error);
/* A whole record gets its name. One that broke off does so if that name is free, else it keeps the one it was written
 * under; without a line nothing is left of it. *ret_kept_beside: it keeps that one. */
int gp_record_file_close(struct gp_record_file *file, bool is_whole, bool *ret_kept_beside, struct gp_error *error);

/* A record as a result that the views can draw: when each queue's work ran (busy and open), gates, inversions. Times
 * begin at the first event. A last line that was cut off is passed over. The caller frees with fini. */
struct gp_record {
	struct gp_result result;
	struct gp_result_run run;
	uint64_t event_count, lost_count;
	uint64_t skipped; /* lines that are no event */
	char **words;     /* owned: reasons */
	uint32_t word_count;
};
int gp_record_read(struct gp_record *record, const char *text, size_t size, const char *name, struct gp_error *error);
void gp_record_fini(struct gp_record *record);

#endif
