/* SPDX-License-Identifier: MIT */
/* Owns the spelling of numbers and the escaping of text. The only place where text from outside meets markup. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "lib/units.h"
#include "lib/utf8.h"
#include "view/format.h"

#define FORMAT_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The bytes of the character at text, which may be shown; 0 if it must be replaced (one byte is then consumed). */
static size_t format_character(const char *text, uint32_t *ret_code)
{
	size_t size = gp_utf8_decode(text, strlen(text), ret_code);

	return size && !gp_utf8_is_harmful(*ret_code) ? size : 0;
}

void gp_format_html(FILE *stream, const char *text)
{
	while (*text) {
		uint32_t code = 0;
		size_t size = format_character(text, &code);

		switch (size ? code : 0) {
		case 0: fputs(FORMAT_REPLACEMENT, stream); break;
		case '&': fputs("&amp;", stream); break;
		case '<': fputs("&lt;", stream); break;
		case '>': fputs("&gt;", stream); break;
		case '"': fputs("&quot;", stream); break;
		case '\'': fputs("&#39;", stream); break;
		default: fwrite(text, 1, size, stream);
		}
		text += size ? size : 1;
	}
}

void gp_format_decimal(FILE *stream, uint64_t value, unsigned int decimals)
{
	uint64_t scale = 1;

	for (unsigned int i = 0; i < decimals; i++)
		scale *= 10u;
	fprintf(stream, "%" PRIu64, value / scale);
	if (decimals)
		fprintf(stream, ".%0*" PRIu64, (int)decimals, value % scale);
}

const char *gp_format_count(uint64_t value, char *buffer, size_t buffer_size)
{
	char digits[GP_FORMAT_TEXT_SIZE];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, value), used = 0;

	for (size_t i = 0; i < length && used + 2 < buffer_size; i++) {
		if (i && (length - i) % 3 == 0)
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = '\0';
	return buffer;
}

const char *gp_format_rate(uint64_t milli, char *buffer, size_t buffer_size)
{
	if (milli < 9995u)
		(void)snprintf(buffer, buffer_size, "%" PRIu64 ".%02" PRIu64, (milli + 5u) / 1000u,
			       (milli + 5u) % 1000u / 10u);
	else if (milli < 99950u)
		(void)snprintf(buffer, buffer_size, "%" PRIu64 ".%" PRIu64, (milli + 50u) / 1000u,
			       (milli + 50u) % 1000u / 100u);
	else
		return gp_format_count(milli / 1000u + (milli % 1000u >= 500u), buffer, buffer_size);
	return buffer;
}

const char *gp_format_share(uint64_t ppm, char *buffer, size_t buffer_size)
{
	uint64_t permille = (ppm + 500u) / 1000u;

	(void)snprintf(buffer, buffer_size, "%" PRIu64 ".%" PRIu64 " %%", permille / 10u, permille % 10u);
	return buffer;
}

const char *gp_format_times(uint64_t value, uint64_t base, char *buffer, size_t buffer_size)
{
	uint64_t whole = value / base, rest = value % base;
	/* The hundredths from a rest that cannot overflow. */
	uint64_t hundredths = base > UINT64_MAX / 200u ? rest / (base / 100u) : (rest * 100u + base / 2u) / base;

	if (hundredths >= 100u) {
		whole++;
		hundredths -= 100u;
	}
	if (whole < 10u)
		(void)snprintf(buffer, buffer_size, "%" PRIu64 ".%02" PRIu64 "×", whole, hundredths);
	else if (whole < 100u)
		(void)snprintf(buffer, buffer_size, "%" PRIu64 ".%" PRIu64 "×", whole, hundredths / 10u);
	else
		(void)snprintf(buffer, buffer_size, "%" PRIu64 "×", whole);
	return buffer;
}

const char *gp_format_tick(uint64_t ns, char *buffer, size_t buffer_size)
{
	char text[GP_UNITS_TEXT_SIZE];
	char *unit, *end;

	if (!ns) {
		(void)snprintf(buffer, buffer_size, "0");
		return buffer;
	}
	(void)gp_units_format_ns(ns, text, sizeof(text));
	unit = strchr(text, ' ');
	end = unit;
	if (memchr(text, '.', (size_t)(unit - text))) {
		while (end[-1] == '0')
			end--;
		if (end[-1] == '.')
			end--;
	}
	(void)snprintf(buffer, buffer_size, "%.*s%s", (int)(end - text), text, unit);
	return buffer;
}

const char *gp_format_cut(const char *text, size_t width, char *buffer, size_t buffer_size)
{
	bool is_cut = gp_utf8_width(text) > width;
	size_t used = 0, columns = 0;

	while (*text) {
		uint32_t code = 0;
		size_t size = format_character(text, &code);
		char one[5] = "?";
		size_t step;

		if (size)
			memcpy(one, text, size);
		step = gp_utf8_width(one);
		if (columns + step > (is_cut ? width - 1 : width) || used + strlen(one) + sizeof("…") > buffer_size)
			break;
		memcpy(buffer + used, one, strlen(one));
		used += strlen(one);
		columns += step;
		text += size ? size : 1;
	}
	(void)snprintf(buffer + used, buffer_size - used, "%s", is_cut ? "…" : "");
	return buffer;
}
