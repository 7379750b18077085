/* SPDX-License-Identifier: MIT */
/* A sentence for the person who gave us bad input. Libraries fill it, programs print it. */
#ifndef GP_LIB_ERROR_H
#define GP_LIB_ERROR_H

struct gp_error {
	char text[512];
};

/* Fills error (which may be NULL) and is worth the code, so that a refusal is one line: return gp_error_set(e, -EINVAL,
 * "…"). A macro, because the value is then plain to an analyzer that looks at one file: a call is taken to return
 * anything, 0 too. */
#define gp_error_set(error, code, ...)                   \
	({                                               \
		int gp_error_code = (code);              \
                                                         \
		gp_error_sentence((error), __VA_ARGS__); \
		gp_error_code;                           \
	})
void gp_error_sentence(struct gp_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
