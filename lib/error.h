/* SPDX-License-Identifier: MIT */
/* A sentence for the person who gave us bad input. Libraries fill it, programs print it. */
#ifndef GP_LIB_ERROR_H
#define GP_LIB_ERROR_H

struct gp_error {
	char text[512];
};

/* Fills error (which may be NULL) and returns code, so that a refusal is one line: return gp_error_set(e, -EINVAL,
 * "…"). */
int gp_error_set(struct gp_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
