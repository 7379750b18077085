/* SPDX-License-Identifier: MIT */
/* Owns the spelling of JSON. Knows nothing of what it says. */
#include <inttypes.h>
#include "view/format.h"
#include "view/json_writer.h"

void gp_json_writer_init(struct gp_json_writer *writer, FILE *stream)
{
	*writer = (struct gp_json_writer){ .stream = stream };
}

static void json_writer_indent(const struct gp_json_writer *writer)
{
	fprintf(writer->stream, "\n%*s", (int)writer->depth * 2, "");
}

static void json_writer_lead(struct gp_json_writer *writer, const char *key)
{
	if (writer->need_comma)
		fputc(',', writer->stream);
	if (writer->depth)
		json_writer_indent(writer);
	if (key)
		fprintf(writer->stream, "\"%s\": ", key);
	writer->need_comma = true;
}

void gp_json_writer_begin(struct gp_json_writer *writer, const char *key, char bracket)
{
	json_writer_lead(writer, key);
	fputc(bracket, writer->stream);
	writer->depth++;
	writer->need_comma = false;
}

void gp_json_writer_end(struct gp_json_writer *writer, char bracket)
{
	writer->depth--;
	/* An empty one stays on its line. */
	if (writer->need_comma)
		json_writer_indent(writer);
	fputc(bracket, writer->stream);
	writer->need_comma = true;
	if (!writer->depth)
		fputc('\n', writer->stream);
}

void gp_json_writer_string(struct gp_json_writer *writer, const char *key, const char *value)
{
	json_writer_lead(writer, key);
	gp_format_json(writer->stream, value);
}

void gp_json_writer_u64(struct gp_json_writer *writer, const char *key, uint64_t value)
{
	json_writer_lead(writer, key);
	fprintf(writer->stream, "%" PRIu64, value);
}

void gp_json_writer_i64(struct gp_json_writer *writer, const char *key, int64_t value)
{
	json_writer_lead(writer, key);
	fprintf(writer->stream, "%" PRId64, value);
}

void gp_json_writer_decimal(struct gp_json_writer *writer, const char *key, uint64_t value, unsigned int decimals)
{
	json_writer_lead(writer, key);
	gp_format_decimal(writer->stream, value, decimals);
}

void gp_json_writer_null(struct gp_json_writer *writer, const char *key)
{
	json_writer_lead(writer, key);
	fputs("null", writer->stream);
}

void gp_json_writer_bool(struct gp_json_writer *writer, const char *key, bool value)
{
	json_writer_lead(writer, key);
	fputs(value ? "true" : "false", writer->stream);
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
