/* SPDX-License-Identifier: MIT */
/* Owns the making of refusal sentences. Never prints. */
#include <stdarg.h>
#include <stdio.h>
#include "lib/error.h"

int gp_error_set(struct gp_error *error, int code, const char *format, ...)
{
	if (!error)
		return code;

	va_list arguments;

	va_start(arguments, format);
	/* A sentence that does not fit is cut: its beginning (file:line, what) is the part a person needs. */
	(void)vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return code;
}
