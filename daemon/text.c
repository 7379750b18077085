/* SPDX-License-Identifier: MIT */
/* Owns the making of answers: growing text, with JSON in it. Never sends it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/text.h"

void gp_text_fini(struct gp_text *text)
{
	free(text->bytes);
	memset(text, 0, sizeof(*text));
}

void gp_text_clear(struct gp_text *text)
{
	text->size = 0;
	text->json.depth = 0;
	text->json.need_comma = false;
	text->failed = false;
	if (text->bytes)
		text->bytes[0] = '\0';
}

void gp_text_sent(struct gp_text *text)
{
	text->size = 0;
	if (text->bytes)
		text->bytes[0] = '\0';
}

static bool text_reserve(struct gp_text *text, size_t more)
{
	size_t room = text->room ? text->room : 512;
	char *bytes;

	if (text->failed)
		return false;
	if (text->size + more < text->room)
		return true;
	while (room <= text->size + more)
		room *= 2;
	bytes = realloc(text->bytes, room);
	if (!bytes) {
		text->failed = true;
		text->size = 0;
		return false;
	}
	text->bytes = bytes;
	text->room = room;
	return true;
}

static void text_put(struct gp_text *text, const char *bytes, size_t size)
{
	if (!text_reserve(text, size + 1))
		return;
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	text->bytes[text->size] = '\0';
}

void gp_text_add(struct gp_text *text, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (size < 0 || !text_reserve(text, (size_t)size + 1))
		return;
	va_start(arguments, format);
	vsnprintf(text->bytes + text->size, (size_t)size + 1, format, arguments);
	va_end(arguments);
	text->size += (size_t)size;
}

static void text_json_put(void *context, const char *bytes, size_t size)
{
	text_put(context, bytes, size);
}

/* Sets the context each time, because a text moves with the struct that holds it. */
struct gp_json_writer *gp_text_json(struct gp_text *text)
{
	text->json.put = text_json_put;
	text->json.context = text;
	text->json.is_compact = true;
	return &text->json;
}

void gp_text_open(struct gp_text *text, const char *name, char bracket)
{
	gp_json_writer_begin(gp_text_json(text), name, bracket);
}

void gp_text_close(struct gp_text *text, char bracket)
{
	gp_json_writer_end(gp_text_json(text), bracket);
}

void gp_text_string(struct gp_text *text, const char *name, const char *value)
{
	gp_json_writer_string(gp_text_json(text), name, value);
}

void gp_text_u64(struct gp_text *text, const char *name, uint64_t value)
{
	gp_json_writer_u64(gp_text_json(text), name, value);
}

void gp_text_i64(struct gp_text *text, const char *name, int64_t value)
{
	gp_json_writer_i64(gp_text_json(text), name, value);
}

void gp_text_bool(struct gp_text *text, const char *name, bool value)
{
	gp_json_writer_bool(gp_text_json(text), name, value);
}
