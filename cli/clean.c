/* SPDX-License-Identifier: MIT */
/* Owns what may reach a terminal. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "cli/clean.h"
#include "lib/utf8.h"

static void clean(char *text, bool keep_lines)
{
	size_t left = strlen(text);

	while (left) {
		uint32_t code = 0;
		size_t size = gp_utf8_decode(text, left, &code);
		bool keep = size && (!gp_utf8_is_harmful(code) || (keep_lines && (code == '\n' || code == '\t')));

		size = size ? size : 1;
		if (!keep)
			memset(text, '?', size);
		text += size;
		left -= size;
	}
}

void gp_clean_line(char *text)
{
	clean(text, false);
}

void gp_clean_lines(char *text)
{
	clean(text, true);
}

void gp_clean_copy(char *ret_text, size_t size, const char *text)
{
	size_t length = strnlen(text, size - 1);

	memcpy(ret_text, text, length);
	ret_text[length] = '\0';
	gp_clean_line(ret_text);
}

void gp_clean_json(FILE *stream, const char *text, size_t size)
{
	while (size) {
		uint32_t code = 0;
		size_t taken = gp_utf8_decode(text, size, &code);

		if (!taken)
			fputc('?', stream);
		else if (code >= 0x7f && gp_utf8_is_harmful(code))
			fprintf(stream, "\\u%04x", (unsigned int)code);
		else
			fwrite(text, 1, taken, stream);
		taken = taken ? taken : 1;
		text += taken;
		size -= taken;
	}
}
