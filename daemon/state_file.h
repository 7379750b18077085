/* SPDX-License-Identifier: MIT */
/* What the daemon keeps in state_dir. */
#ifndef GP_DAEMON_STATE_FILE_H
#define GP_DAEMON_STATE_FILE_H

#include "daemon/daemon.h"
#include "lib/file.h"

/* state_dir is not empty. The caller commits the writer. */
int gp_state_file_open(const struct gp_daemon *daemon, const char *name, struct gp_file_writer *writer,
		       struct gp_error *error);
/* -ENOENT, without a sentence: there is none. The caller frees *ret_text. */
int gp_state_file_read(const struct gp_daemon *daemon, const char *name, size_t size_max, char **ret_text,
		       size_t *ret_size, struct gp_error *error);

/* After each try to write the file of `what` (a plural): the journal gets the first of several failures, and their end.
 */
void gp_state_file_tried(const char *what, int r, const struct gp_error *error, bool *failed);

#endif
