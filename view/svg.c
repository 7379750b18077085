/* SPDX-License-Identifier: MIT */
/* Owns the spelling of SVG and the scales of axes. Integers only. */
#include <inttypes.h>
#include "lib/log2.h"
#include "view/format.h"
#include "view/svg.h"

__extension__ typedef unsigned __int128 svg_u128;

static void svg_number(FILE *stream, const char *name, uint32_t tenths)
{
	/* Most positions are whole: a report of thousands of shapes stays small. */
	if (tenths % 10u)
		fprintf(stream, " %s=\"%" PRIu32 ".%" PRIu32 "\"", name, tenths / 10u, tenths % 10u);
	else
		fprintf(stream, " %s=\"%" PRIu32 "\"", name, tenths / 10u);
}

void gp_svg_begin(FILE *stream, uint32_t width, uint32_t height, const char *label)
{
	fprintf(stream, "<svg viewBox=\"0 0 %" PRIu32 " %" PRIu32 "\" role=\"img\" aria-label=\"", width, height);
	gp_format_html(stream, label);
	fputs("\">\n", stream);
}

void gp_svg_end(FILE *stream)
{
	fputs("</svg>\n", stream);
}

void gp_svg_rect(FILE *stream, const char *classes, struct gp_svg_box box, bool has_title)
{
	fprintf(stream, "<rect class=\"%s\"", classes);
	svg_number(stream, "x", box.x);
	svg_number(stream, "y", box.y);
	svg_number(stream, "width", box.width);
	svg_number(stream, "height", box.height);
	fputs(has_title ? ">" : "/>\n", stream);
}

void gp_svg_title(FILE *stream, const char *element, const char *text)
{
	fputs("<title>", stream);
	gp_format_html(stream, text);
	fprintf(stream, "</title></%s>\n", element);
}

void gp_svg_line(FILE *stream, const char *classes, struct gp_svg_point from, struct gp_svg_point to)
{
	fprintf(stream, "<line class=\"%s\"", classes);
	svg_number(stream, "x1", from.x);
	svg_number(stream, "y1", from.y);
	svg_number(stream, "x2", to.x);
	svg_number(stream, "y2", to.y);
	fputs("/>\n", stream);
}

void gp_svg_text(FILE *stream, const char *classes, struct gp_svg_point at, const char *text)
{
	fprintf(stream, "<text class=\"%s\"", classes);
	svg_number(stream, "x", at.x);
	svg_number(stream, "y", at.y);
	fputc('>', stream);
	gp_format_html(stream, text);
	fputs("</text>\n", stream);
}

uint64_t gp_svg_step(uint64_t span, uint32_t count_max)
{
	for (uint64_t power = 1; power <= UINT64_MAX / 100u; power *= 10u)
		for (uint64_t factor = 1; factor <= 5; factor += factor == 1 ? 1 : 3)
			if (span / (power * factor) <= count_max)
				return power * factor;
	return span ? span : 1;
}

uint32_t gp_svg_scale(uint64_t value, uint64_t first, uint64_t last, uint32_t width)
{
	if (value <= first || last <= first)
		return 0;
	if (value >= last)
		return width;
	return (uint32_t)((svg_u128)(value - first) * width / (last - first));
}

uint32_t gp_svg_scale_log(uint64_t value, uint64_t first, uint64_t last, uint32_t width)
{
	if (value <= first)
		return 0;
	return gp_svg_scale(gp_log2_q32(value), gp_log2_q32(first), gp_log2_q32(last), width);
}

uint32_t gp_chart_client_colour(uint32_t index)
{
	return index ? 1u + (index - 1u) % (GP_SVG_COLOURS - 1u) : 0;
}

uint32_t gp_chart_run_colour(const struct gp_result *result, uint32_t run)
{
	/* These have a colour of their own, one more than it; the other runs take turns with the rest. */
	static const uint32_t own[GP_RESULT_BASELINE + 1] = {
		[GP_RESULT_ALONE] = 1,
		[GP_RESULT_STOCK] = 2,
		[GP_RESULT_DEFAULT] = 3,
	};
	const uint32_t own_count = 3;
	uint32_t others = 0;

	if (own[result->runs[run].kind])
		return own[result->runs[run].kind] - 1u;
	for (uint32_t i = 0; i < run; i++)
		others += !own[result->runs[i].kind];
	return own_count + others % (GP_SVG_COLOURS - own_count);
}
