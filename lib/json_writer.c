/* SPDX-License-Identifier: MIT */
/* Owns the spelling of JSON. Knows nothing of what it says, nor where it goes. */
#include <gp_deps.h>
#include <inttypes.h>
#include <string.h>
#include "lib/json_writer.h"
#include "lib/utf8.h"

#define JSON_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void json_writer_stream(void *context, const char *bytes, size_t size)
{
	fwrite(bytes, 1, size, context);
}

void gp_json_writer_init(struct gp_json_writer *writer, FILE *stream)
{
	*writer = (struct gp_json_writer){ .put = json_writer_stream, .context = stream };
}

void gp_json_writer_init_line(struct gp_json_writer *writer, FILE *stream)
{
	*writer = (struct gp_json_writer){ .put = json_writer_stream, .context = stream, .is_line = true };
}

static void json_writer_text(struct gp_json_writer *writer, const char *text)
{
	writer->put(writer->context, text, strlen(text));
}

static void json_writer_quote(struct gp_json_writer *writer, const char *text)
{
	size_t left = strlen(text), size;
	char escape[8];

	json_writer_text(writer, "\"");
	for (; left; text += size, left -= size) {
		uint32_t code = 0;

		size = gp_utf8_decode(text, left, &code);
		if (!size) {
			size = 1;
			json_writer_text(writer, writer->is_compact ? "?" : JSON_REPLACEMENT);
		} else if (code == '"' || code == '\\') {
			snprintf(escape, sizeof(escape), "\\%c", (char)code);
			json_writer_text(writer, escape);
		} else if (code == '\n' || code == '\t') {
			json_writer_text(writer, code == '\n' ? "\\n" : "\\t");
		} else if (writer->is_compact ? code < 0x20 || code == 0x7f : gp_utf8_is_harmful(code)) {
			snprintf(escape, sizeof(escape), "\\u%04x", (unsigned int)code & 0xffff);
			json_writer_text(writer, escape);
		} else {
			writer->put(writer->context, text, size);
		}
	}
	json_writer_text(writer, "\"");
}

static void json_writer_indent(struct gp_json_writer *writer)
{
	if (writer->is_compact || writer->is_line)
		return;
	json_writer_text(writer, "\n");
	for (uint32_t i = 0; i < writer->depth; i++)
		json_writer_text(writer, "  ");
}

static void json_writer_lead(struct gp_json_writer *writer, const char *key)
{
	if (writer->depth && writer->need_comma)
		json_writer_text(writer, writer->is_line ? ", " : ",");
	if (writer->depth)
		json_writer_indent(writer);
	if (key) {
		json_writer_quote(writer, key);
		json_writer_text(writer, writer->is_compact ? ":" : ": ");
	}
	writer->need_comma = true;
}

void gp_json_writer_begin(struct gp_json_writer *writer, const char *key, char bracket)
{
	json_writer_lead(writer, key);
	writer->put(writer->context, &bracket, 1);
	writer->depth++;
	writer->need_comma = false;
}

void gp_json_writer_end(struct gp_json_writer *writer, char bracket)
{
	GP_ASSERT(writer->depth); /* as many ends as begins */
	writer->depth--;
	/* An empty object or array stays on its line. */
	if (writer->need_comma)
		json_writer_indent(writer);
	writer->put(writer->context, &bracket, 1);
	writer->need_comma = true;
	if (!writer->depth && !writer->is_compact)
		json_writer_text(writer, "\n");
}

void gp_json_writer_string(struct gp_json_writer *writer, const char *key, const char *value)
{
	json_writer_lead(writer, key);
	if (value)
		json_writer_quote(writer, value);
	else
		json_writer_text(writer, "null");
}

void gp_json_writer_u64(struct gp_json_writer *writer, const char *key, uint64_t value)
{
	gp_json_writer_decimal(writer, key, value, 0);
}

void gp_json_writer_known(struct gp_json_writer *writer, const char *key, bool is_known, uint64_t value)
{
	if (is_known)
		gp_json_writer_u64(writer, key, value);
	else
		gp_json_writer_null(writer, key);
}

void gp_json_writer_i64(struct gp_json_writer *writer, const char *key, int64_t value)
{
	char text[32];

	json_writer_lead(writer, key);
	snprintf(text, sizeof(text), "%" PRId64, value);
	json_writer_text(writer, text);
}

void gp_json_writer_decimal(struct gp_json_writer *writer, const char *key, uint64_t value, unsigned int decimals)
{
	uint64_t scale = 1;
	char text[48];
	int size;

	for (unsigned int i = 0; i < decimals; i++)
		scale *= 10u;
	json_writer_lead(writer, key);
	size = snprintf(text, sizeof(text), "%" PRIu64, value / scale);
	if (decimals)
		snprintf(text + size, sizeof(text) - (size_t)size, ".%0*" PRIu64, (int)decimals, value % scale);
	json_writer_text(writer, text);
}

void gp_json_writer_null(struct gp_json_writer *writer, const char *key)
{
	gp_json_writer_string(writer, key, NULL);
}

void gp_json_writer_bool(struct gp_json_writer *writer, const char *key, bool value)
{
	json_writer_lead(writer, key);
	json_writer_text(writer, value ? "true" : "false");
}

void gp_json_writer_figures(struct gp_json_writer *writer, const char *key, const struct gp_json_figure *figures,
			    uint32_t figure_count)
{
	if (!figures) {
		gp_json_writer_null(writer, key);
		return;
	}
	gp_json_writer_begin(writer, key, '{');
	for (uint32_t i = 0; i < figure_count; i++)
		gp_json_writer_u64(writer, figures[i].key, figures[i].value);
	gp_json_writer_end(writer, '}');
}
