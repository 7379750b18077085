/* SPDX-License-Identifier: MIT */
/* Owns the making of answers: growing text, JSON without floats. Never sends it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/text.h"
#include "lib/utf8.h"

void gp_text_fini(struct gp_text *text)
{
	free(text->bytes);
	memset(text, 0, sizeof(*text));
}

void gp_text_clear(struct gp_text *text)
{
	text->size = 0;
	text->depth = 0;
	text->failed = false;
	memset(text->has_member, 0, sizeof(text->has_member));
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

static void text_quote(struct gp_text *text, const char *value)
{
	size_t left = strlen(value), step;
	char escape[8];

	text_put(text, "\"", 1);
	for (; left; value += step, left -= step) {
		step = gp_utf8_decode(value, left, NULL);
		if (!step) {
			step = 1;
			text_put(text, "?", 1);
		} else if (*value == '"' || *value == '\\') {
			snprintf(escape, sizeof(escape), "\\%c", *value);
			text_put(text, escape, 2);
		} else if ((unsigned char)*value < 0x20 || *value == 0x7f) {
			snprintf(escape, sizeof(escape), "\\u%04x", (unsigned char)*value);
			text_put(text, escape, 6);
		} else {
			text_put(text, value, step);
		}
	}
	text_put(text, "\"", 1);
}

/* The comma before a member and its name. */
static void text_member(struct gp_text *text, const char *name)
{
	bool *has_member = &text->has_member[text->depth < GP_TEXT_DEPTH_MAX ? text->depth : GP_TEXT_DEPTH_MAX - 1];

	if (text->depth && *has_member)
		text_put(text, ",", 1);
	*has_member = true;
	if (name) {
		text_quote(text, name);
		text_put(text, ":", 1);
	}
}

void gp_text_open(struct gp_text *text, const char *name, char bracket)
{
	text_member(text, name);
	text_put(text, &bracket, 1);
	text->depth++;
	if (text->depth < GP_TEXT_DEPTH_MAX)
		text->has_member[text->depth] = false;
}

void gp_text_close(struct gp_text *text, char bracket)
{
	text->depth--;
	text_put(text, &bracket, 1);
}

void gp_text_string(struct gp_text *text, const char *name, const char *value)
{
	text_member(text, name);
	if (value)
		text_quote(text, value);
	else
		text_put(text, "null", 4);
}

void gp_text_u64(struct gp_text *text, const char *name, uint64_t value)
{
	text_member(text, name);
	gp_text_add(text, "%" PRIu64, value);
}

void gp_text_i64(struct gp_text *text, const char *name, int64_t value)
{
	text_member(text, name);
	gp_text_add(text, "%" PRId64, value);
}

void gp_text_bool(struct gp_text *text, const char *name, bool value)
{
	text_member(text, name);
	gp_text_add(text, "%s", value ? "true" : "false");
}

void gp_text_null(struct gp_text *text, const char *name)
{
	gp_text_string(text, name, NULL);
}
