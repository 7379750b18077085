/* SPDX-License-Identifier: MIT */
/* Owns the making of refusal sentences. Never prints. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "lib/error.h"
#include "lib/utf8.h"

/* Sentences quote files, names and arguments: characters that control a terminal become question marks. */
static void error_clean(char *text)
{
	size_t left = strlen(text);

	while (left) {
		uint32_t code = 0;
		size_t size = gp_utf8_decode(text, left, &code);

		if (!size || gp_utf8_is_harmful(code))
			memset(text, '?', size ? size : 1);
		text += size ? size : 1;
		left -= size ? size : 1;
	}
}

void gp_error_sentence(struct gp_error *error, const char *format, ...)
{
	if (!error)
		return;

	va_list arguments;

	va_start(arguments, format);
	/* A sentence that does not fit is cut: its beginning (file:line, what) is the part a person needs. */
	(void)vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	error_clean(error->text);
}
