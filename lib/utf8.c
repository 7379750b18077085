/* SPDX-License-Identifier: MIT */
/* Owns the decoding of UTF-8 and the width of a text on a terminal. Independent of the locale. */
#include <stdbool.h>
#include <string.h>
#include "lib/utf8.h"

size_t gp_utf8_decode(const char *text, size_t text_size, uint32_t *ret_code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = (unsigned char)text[0];
	size_t size = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
	uint32_t code = size == 1 ? first : first & (0x7fu >> size);

	if (!size || size > text_size)
		return 0;
	for (size_t i = 1; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];

		if ((byte & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (byte & 0x3f);
	}
	if (code < smallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	if (ret_code)
		*ret_code = code;
	return size;
}

bool gp_utf8_is_harmful(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x200e || code == 0x200f || code == 0x061c ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

struct utf8_range {
	uint32_t first, last;
};

static bool utf8_is_in(uint32_t code, const struct utf8_range *ranges, size_t range_count)
{
	for (size_t i = 0; i < range_count; i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

static size_t utf8_columns(uint32_t code)
{
	/* The blocks that matter for names of programs, from Unicode's EastAsianWidth.txt (W, F) and its combining
	 * blocks. */
	static const struct utf8_range none[] = { { 0x300, 0x36f },
						  { 0x200b, 0x200f },
						  { 0x20d0, 0x20ff },
						  { 0xfe00, 0xfe0f } };
	static const struct utf8_range wide[] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },   { 0xac00, 0xd7a3 },
		{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
		{ 0x1f300, 0x1f64f }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
	};

	if (utf8_is_in(code, none, sizeof(none) / sizeof(none[0])))
		return 0;
	return utf8_is_in(code, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}

size_t gp_utf8_width(const char *text)
{
	size_t left = strlen(text), width = 0;

	while (left) {
		uint32_t code = 0;
		size_t size = gp_utf8_decode(text, left, &code);

		width += size ? utf8_columns(code) : 1;
		size = size ? size : 1;
		text += size;
		left -= size;
	}
	return width;
}
