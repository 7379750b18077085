/* SPDX-License-Identifier: MIT */
/* A sentence for the person who gave bad input. Libraries fill it, programs print it. */
#ifndef GP_LIB_ERROR_H
#define GP_LIB_ERROR_H

struct gp_error {
	char text[512];
};

/* Fills error (which may be NULL) and has the value code, so that a refusal is one line: return gp_error_set(e,
 * -EINVAL, "…"). It is a macro so that an analyzer that looks at one file sees the value; it would assume that a call
 * can return anything, 0 too. */
#define gp_error_set(error, code, ...)                   \
	({                                               \
		int gp_error_code = (code);              \
                                                         \
		gp_error_sentence((error), __VA_ARGS__); \
		gp_error_code;                           \
	})
void gp_error_sentence(struct gp_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
