/* SPDX-License-Identifier: MIT */
/* Standard output of a program that people run: what cannot be written is never lost in silence. */
#ifndef GP_LIB_OUTPUT_H
#define GP_LIB_OUTPUT_H

#include "lib/error.h"

/* Keeps the numbers of standard input, output and error: a socket that is opened later never gets the number of a
 * closed one, so that no line printed reaches the other end of that socket. A program that is executed finds them
 * closed, as before. */
void gp_output_reserve(void);

/* Called first in main(). Reserves the numbers, as above. At exit standard output is flushed. If that fails (a full
 * disk), `program` says so on standard error, and the exit status becomes `status`. */
void gp_output_start(const char *program, int status);

/* Fills the error with the reason why standard output failed and returns its negative errno. It counts as
 * reported. */
int gp_output_refuse(struct gp_error *error);

/* The caller has reported that standard output failed, or given up on it: the exit handler stays silent. */
void gp_output_reported(void);

#endif
