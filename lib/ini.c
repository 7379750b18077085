/* SPDX-License-Identifier: MIT */
/* Owns the reading of INI text. Knows lines, sections and names, never what they mean. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "lib/ini.h"

struct ini_parser {
	const char *file_name;
	gp_ini_handler handler;
	void *context;
	uint32_t line;
	char section[GP_INI_NAME_SIZE];
};

static bool ini_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts the blanks off both ends, in place. */
static char *ini_trim(char *text)
{
	size_t length;

	while (ini_is_blank(*text))
		text++;
	length = strlen(text);
	while (length && ini_is_blank(text[length - 1]))
		text[--length] = '\0';
	return text;
}

static int ini_refuse(const struct ini_parser *parser, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%u: %s", parser->file_name, parser->line, what);
}

/* Puts file:line in front of what the handler said. */
static int ini_call(const struct ini_parser *parser, const char *name, const char *value, struct gp_error *error)
{
	struct gp_error said = { .text = "refused" };
	int r = parser->handler(parser->context, parser->section, name, value, parser->line, &said);

	if (r < 0)
		return gp_error_set(error, r, "%s:%u: %s", parser->file_name, parser->line, said.text);
	return 0;
}

static int ini_section(struct ini_parser *parser, char *line, struct gp_error *error)
{
	size_t length = strlen(line);
	char *name;

	if (line[length - 1] != ']')
		return ini_refuse(parser, error, "a section line must end with ]");
	line[length - 1] = '\0';
	name = ini_trim(line + 1);
	if (!*name)
		return ini_refuse(parser, error, "a section needs a name");
	if (strlen(name) >= sizeof(parser->section))
		return ini_refuse(parser, error, "the name of the section is too long (at most 127 bytes)");
	memcpy(parser->section, name, strlen(name) + 1);
	return ini_call(parser, NULL, NULL, error);
}

static int ini_line(struct ini_parser *parser, char *line, struct gp_error *error)
{
	char *equals, *name;

	line = ini_trim(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	if (*line == '[')
		return ini_section(parser, line, error);

	equals = strchr(line, '=');
	if (!equals)
		return ini_refuse(parser, error, "expected [section] or name = value");
	*equals = '\0';
	name = ini_trim(line);
	if (!*name)
		return ini_refuse(parser, error, "there is no name before the =");
	if (strlen(name) >= GP_INI_NAME_SIZE)
		return ini_refuse(parser, error, "the name before the = is too long (at most 127 bytes)");
	return ini_call(parser, name, ini_trim(equals + 1), error);
}

int gp_ini_parse(const char *text, size_t text_size, const char *file_name, gp_ini_handler handler, void *context,
		 struct gp_error *error)
{
	struct ini_parser parser = { .file_name = file_name, .handler = handler, .context = context };
	size_t offset = 0;

	if (text_size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		offset = 3;
	while (offset < text_size) {
		const char *end = memchr(text + offset, '\n', text_size - offset);
		size_t length = end ? (size_t)(end - (text + offset)) : text_size - offset;
		char line[GP_INI_LINE_SIZE];
		int r;

		parser.line++;
		if (length >= sizeof(line))
			return ini_refuse(&parser, error, "the line is too long (at most 4095 bytes)");
		if (memchr(text + offset, '\0', length))
			return ini_refuse(&parser, error, "there is a NUL byte in the line");
		memcpy(line, text + offset, length);
		line[length] = '\0';
		r = ini_line(&parser, line, error);
		if (r < 0)
			return r;
		offset += length + 1;
	}
	return 0;
}
