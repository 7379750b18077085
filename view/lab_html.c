/* SPDX-License-Identifier: MIT */
/* Owns the lab's report: one HTML file that needs no network. Figures first, each claim next to its evidence. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "view/format.h"
#include "view/html_style.h"
#include "view/lab.h"

static const char lab_html_style[] =
	".seen{fill:var(--r0);opacity:.55}.first{stroke:var(--ink);stroke-width:2}.hoped{fill:none;stroke:var(--c1);"
	"stroke-width:1.8}.band{fill:var(--c0);opacity:.14}.model{fill:none;stroke:var(--c0);"
	"stroke-width:2}.spread{stroke:var(--c0);stroke-width:2}.dotm{fill:var(--c0);stroke:var(--card);stroke-width:1.5}"
	".dotm.hollow{fill:var(--card);stroke:var(--c0);stroke-width:2.4}\n"
	".lab>svg{max-width:820px}.rule{stroke:var(--line)}.key{display:flex;flex-wrap:wrap;gap:.2rem 1.3rem;font-size:.84rem;color:var(--soft);"
	"margin:.2rem 0 .6rem;padding:0;list-style:none}.key svg{display:inline-block;width:22px;height:12px;min-width:22px;"
	"margin-right:.4rem;vertical-align:-1px}\n"
	"section.part{margin-top:3.2rem;border-top:2px solid var(--line);padding-top:.4rem}section.part h2{font-size:1.3rem;"
	"margin:1rem 0 .1rem}.ask{color:var(--soft);margin:.1rem 0 .9rem;max-width:52rem}.say{max-width:48rem;margin:.6rem 0 1rem}\n"
	"table.lab td,table.lab th{text-align:left;vertical-align:top}table.lab td.w{white-space:normal;min-width:10rem}"
	"table.lab tr.note td{border-bottom:1px solid var(--line);color:var(--soft);font-size:.84rem;white-space:normal;"
	"padding-top:0}table.lab tr.has td{border-bottom:0}\n"
	".tag{display:inline-block;border:1px solid var(--line);border-radius:99px;padding:0 .55rem;font-size:.78rem;"
	"color:var(--soft);white-space:nowrap}.tag.good{color:var(--ink);border-color:var(--c2)}.tag.bad{color:var(--bad);"
	"border-color:var(--bad)}.tag.mid{color:var(--ink);border-color:var(--c1)}\n"
	".wrong{border-left:3px solid var(--c1);padding:.1rem 0 .1rem .9rem;margin:1rem 0;max-width:50rem}.wrong b{display:block}\n"
	"ol.claims{padding-left:1.3rem;max-width:54rem}ol.claims li{margin:.5rem 0}ol.claims a{color:inherit;font-weight:600}\n"
	"@media(max-width:640px){.lab>svg .l,.lab>svg .t{font-size:21px}section.part h2{font-size:1.12rem}}\n";

static void lab_html_text(FILE *stream, const char *open, const char *text, const char *close)
{
	fputs(open, stream);
	gp_format_html(stream, text);
	fputs(close, stream);
}

/* What the picture has, and no more. */
static void lab_html_key(FILE *stream, const struct gp_lab_table *table)
{
	bool has_measured = false, has_expected = false, has_predicted = false, has_other = false;

	for (uint32_t i = 0; i < table->row_count; i++) {
		const struct gp_lab_row *row = &table->rows[i];
		bool is_drawn = row->predicted.has && !row->predicted.is_text;

		has_measured |= row->measured.has && !row->measured.is_text;
		has_expected |= row->expected.has && !row->expected.is_text;
		has_predicted |= is_drawn && row->mark == GP_LAB_PREDICTED;
		has_other |= is_drawn && row->mark != GP_LAB_PREDICTED;
	}
	fputs("<ul class=\"key\">", stream);
	if (has_measured)
		fputs("<li><svg viewBox=\"0 0 22 12\"><rect class=\"seen\" x=\"1\" y=\"1\" width=\"20\" height=\"10\"/></svg>"
		      "measured, published range</li>",
		      stream);
	if (has_expected)
		fputs("<li><svg viewBox=\"0 0 22 12\"><rect class=\"hoped\" x=\"2\" y=\"2\" width=\"18\" height=\"8\"/></svg>"
		      "expected by the seed</li>",
		      stream);
	if (has_predicted)
		fputs("<li><svg viewBox=\"0 0 22 12\"><line class=\"spread\" x1=\"1\" y1=\"6\" x2=\"21\" y2=\"6\"/><circle "
		      "class=\"dotm hollow\" cx=\"11\" cy=\"6\" r=\"4\"/></svg>the model, predicted</li>",
		      stream);
	if (has_other)
		fputs("<li><svg viewBox=\"0 0 22 12\"><line class=\"spread\" x1=\"1\" y1=\"6\" x2=\"21\" y2=\"6\"/><circle "
		      "class=\"dotm\" cx=\"11\" cy=\"6\" r=\"4\"/></svg>the model, calibrated, fitted or computed</li>",
		      stream);
	fputs("</ul>\n", stream);
}

static bool lab_html_drawn(const struct gp_lab_table *table)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < table->row_count; i++)
		count += table->rows[i].predicted.has && !table->rows[i].predicted.is_text;
	return count > 1u;
}

static void lab_html_figure(FILE *stream, const struct gp_lab_table *table)
{
	fputs("<figure class=\"card scroll lab\" style=\"margin:.6rem 0 1rem\">", stream);
	lab_html_text(stream, "<h3>", table->title, "");
	if (*table->unit)
		lab_html_text(stream, " <span class=\"caption\">", table->unit, "</span>");
	fputs("</h3>\n", stream);
	lab_html_key(stream, table);
	if (table->is_curve)
		gp_chart_lab_curve(stream, table);
	else
		gp_chart_lab_rows(stream, table);
	fputs("</figure>\n", stream);
}

static void lab_html_cell(FILE *stream, const struct gp_lab_cell *cell)
{
	char text[128];

	fputs(cell->is_text ? "<td class=\"w\">" : "<td>", stream);
	gp_format_html(stream, gp_lab_format(cell, text, sizeof(text)));
	fputs("</td>", stream);
}

static void lab_html_verdict(FILE *stream, enum gp_lab_verdict verdict)
{
	const char *colour = verdict == GP_LAB_INSIDE || verdict == GP_LAB_AGREES   ? "good" :
			     verdict == GP_LAB_OUTSIDE || verdict == GP_LAB_REFUTED ? "bad" :
			     verdict == GP_LAB_TOUCHES                              ? "mid" :
										      "";

	fputs("<td>", stream);
	if (verdict != GP_LAB_UNSCORED)
		fprintf(stream, "<span class=\"tag %s\">%s</span>", colour, gp_lab_verdict_name(verdict));
	fputs("</td>", stream);
}

/* Columns that no row of the table fills are left out. */
struct lab_html_columns {
	bool measured, expected, verdict;
};

static struct lab_html_columns lab_html_columns(const struct gp_lab_table *table)
{
	struct lab_html_columns has = { false, false, false };

	for (uint32_t i = 0; i < table->row_count; i++) {
		has.measured |= table->rows[i].measured.has;
		has.expected |= table->rows[i].expected.has;
		has.verdict |= table->rows[i].verdict != GP_LAB_UNSCORED;
	}
	return has;
}

static void lab_html_row(FILE *stream, const struct gp_lab_row *row, struct lab_html_columns has)
{
	lab_html_text(stream, row->note[0] ? "<tr class=\"has\"><td class=\"w\">" : "<tr><td class=\"w\">", row->label,
		      "</td>");
	if (has.measured)
		lab_html_cell(stream, &row->measured);
	if (has.expected)
		lab_html_cell(stream, &row->expected);
	lab_html_cell(stream, &row->predicted);
	fprintf(stream, "<td><span class=\"tag\" title=\"%s\">%s</span></td>", gp_lab_mark_words(row->mark),
		gp_lab_mark_name(row->mark));
	if (has.verdict)
		lab_html_verdict(stream, row->verdict);
	fputs("</tr>\n", stream);
	if (!row->note[0])
		return;
	fprintf(stream, "<tr class=\"note\"><td colspan=\"%u\">", 3u + has.measured + has.expected + has.verdict);
	lab_html_text(stream, "", row->note, "</td></tr>\n");
}

static void lab_html_table(FILE *stream, const struct gp_lab_table *table)
{
	struct lab_html_columns has = lab_html_columns(table);

	fputs("<div class=\"card scroll\">", stream);
	lab_html_text(stream, "<h3>", table->title, "");
	if (*table->unit)
		lab_html_text(stream, " <span class=\"caption\">", table->unit, "</span>");
	fprintf(stream,
		"</h3>\n<table class=\"lab\"><thead><tr><th></th>%s%s%s%s<th>the model</th><th>mark</th>%s</tr></thead><tbody>\n",
		has.measured ? "<th>" : "", has.measured ? gp_lab_measured_head(table) : "",
		has.measured ? "</th>" : "", has.expected ? "<th>expected by the seed</th>" : "",
		has.verdict ? "<th>verdict</th>" : "");
	for (uint32_t i = 0; i < table->row_count; i++)
		lab_html_row(stream, &table->rows[i], has);
	fputs("</tbody></table>", stream);
	if (table->caption[0])
		lab_html_text(stream, "<p class=\"note\" style=\"margin:.6rem 0 0\">", table->caption, "</p>");
	fputs("</div>\n", stream);
}

static void lab_html_part(FILE *stream, const struct gp_lab *lab, const struct gp_lab_part *part)
{
	bool is_only = lab->part_count == 1u, is_first = part == lab->parts[0];

	fprintf(stream, "<section class=\"part\" id=\"%s\">", part->name);
	if (!is_only)
		lab_html_text(stream, "<h2>", part->title, "</h2>\n");
	lab_html_text(stream, "<p class=\"ask\">", part->question, "</p>\n");
	if (!is_only)
		lab_html_text(stream, "<p>Simulated on ", gp_lab_part_device(lab, part), ".</p>\n");
	/* The first picture of all opens the report already. */
	for (uint32_t i = is_first && !is_only ? 1u : 0; i < part->table_count; i++)
		if (lab_html_drawn(&part->tables[i]))
			lab_html_figure(stream, &part->tables[i]);
	lab_html_text(stream, "<p class=\"say\">", part->answer, "</p>\n");
	for (uint32_t i = 0; i < part->table_count; i++)
		lab_html_table(stream, &part->tables[i]);
	if (part->falsify[0])
		lab_html_text(stream, "<div class=\"wrong\"><b>What would prove this wrong</b>", part->falsify,
			      "</div>\n");
	lab_html_text(stream, "<pre>", part->command, "</pre></section>\n");
}

/* The first sentence of an answer. */
static void lab_html_first(FILE *stream, const char *answer)
{
	const char *end = strstr(answer, ". ");
	char text[900];

	(void)snprintf(text, sizeof(text), "%.*s", end ? (int)(end - answer + 1) : (int)strlen(answer), answer);
	gp_format_html(stream, text);
}

static void lab_html_head(FILE *stream, const struct gp_lab *lab)
{
	bool is_all = lab->part_count > 1u;

	fputs("<header>\n<p class=\"eyebrow\">gpreempt lab · simulated, not measured</p>\n", stream);
	lab_html_text(stream, "<h1>", is_all ? "Why are several processes slower than one?" : lab->parts[0]->title,
		      "</h1>\n");
	if (is_all)
		fputs("<p class=\"lede\">Five documents asked why eight processes on one MI308X are slower than one, and proposed "
		      "fixes. Here each hypothesis is a switch of one model. What was measured stays measured; what was expected and "
		      "what the model says stand beside it.</p>\n",
		      stream);
	fputs("<dl class=\"facts\"><div><dt>device</dt><dd>", stream);
	gp_format_html(stream, gp_lab_device(lab));
	fprintf(stream, "</dd></div><div><dt>random seeds</dt><dd>%" PRIu32 "</dd></div><div><dt>version</dt><dd>",
		lab->seed_count);
	gp_format_html(stream, lab->version);
	fputs("</dd></div></dl>\n</header>\n", stream);
}

static void lab_html_claims(FILE *stream, const struct gp_lab *lab)
{
	if (lab->part_count < 2u)
		return;
	if (lab_html_drawn(&lab->parts[0]->tables[0]))
		lab_html_figure(stream, &lab->parts[0]->tables[0]);
	fputs("<h2>What each experiment says</h2>\n<ol class=\"claims\">\n", stream);
	for (uint32_t i = 0; i < lab->part_count; i++) {
		fprintf(stream, "<li><a href=\"#%s\">", lab->parts[i]->name);
		gp_format_html(stream, lab->parts[i]->title);
		fputs("</a>. ", stream);
		lab_html_first(stream, lab->parts[i]->answer);
		fputs("</li>\n", stream);
	}
	fputs("</ol>\n", stream);
}

static void lab_html_params(FILE *stream, const struct gp_lab *lab)
{
	fputs("<section class=\"part\"><h2>Calibrated is not predicted</h2>\n<p class=\"say\">These numbers were fitted, on these rows. "
	      "Every other row is a prediction and is scored against the published range. The file is share/lab/fit.ini; "
	      "<code>gpreempt lab fit</code> does it again.</p>\n<div class=\"card scroll\"><table class=\"lab\"><thead><tr>"
	      "<th>parameter</th><th>value</th><th>fitted on</th><th>how well determined</th></tr></thead><tbody>\n",
	      stream);
	for (uint32_t i = 0; i < lab->param_count; i++) {
		lab_html_text(stream, "<tr><td>", lab->params[i].name, "</td>");
		lab_html_text(stream, "<td>", lab->params[i].value, "</td>");
		lab_html_text(stream, "<td>", lab->params[i].fitted_on, "</td>");
		lab_html_text(stream, "<td class=\"w\">", lab->params[i].determined, "</td></tr>\n");
	}
	fputs("</tbody></table></div>\n<dl class=\"words\">", stream);
	for (int mark = GP_LAB_PREDICTED; mark <= (int)GP_LAB_NOT_MODELLED; mark++)
		fprintf(stream, "<dt>%s</dt><dd>%s</dd>", gp_lab_mark_name((enum gp_lab_mark)mark),
			gp_lab_mark_words((enum gp_lab_mark)mark));
	fputs("</dl>\n", stream);
	lab_html_text(stream, "<pre>", lab->command, "</pre></section>\n");
}

int gp_view_lab_html(FILE *stream, const struct gp_lab *lab)
{
	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
	      "content=\"width=device-width,initial-scale=1\"><title>gpreempt lab</title>\n<style>\n",
	      stream);
	fputs(gp_html_style, stream);
	fputs(lab_html_style, stream);
	fputs("</style></head>\n<body><main>\n", stream);
	lab_html_head(stream, lab);
	lab_html_claims(stream, lab);
	for (uint32_t i = 0; i < lab->part_count; i++)
		lab_html_part(stream, lab, lab->parts[i]);
	lab_html_params(stream, lab);
	fputs("</main><div id=\"tip\"></div><script>\n", stream);
	fputs(gp_html_script, stream);
	fputs("</script></body></html>\n", stream);
	return ferror(stream) ? -EIO : 0;
}
