/* SPDX-License-Identifier: MIT */
/* Owns the reading of JSON (RFC 8259): tokens, commas, depth. Never allocates and never turns a number into a float. */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "lib/json.h"
#include "lib/utf8.h"

#define JSON_NOT_FINITE \
	"NaN and Infinity are not JSON: put null there (sed -E 's/([:[,] *)-?(NaN|Infinity)/\\1null/gI')"

void gp_json_init(struct gp_json *json, const char *text, size_t text_size, const char *file_name)
{
	memset(json, 0, sizeof(*json));
	json->text = text;
	json->text_size = text_size;
	json->file_name = file_name;
	json->line = 1;
	json->offset = text_size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

static int json_refuse(const struct gp_json *json, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%u: %s", json->file_name, json->line, what);
}

/* Makes want bytes available from the offset on, or as many as there are. Returns how many. */
static size_t json_ensure(struct gp_json *json, size_t want)
{
	if (json->text_size - json->offset < want && json->refill)
		(void)json->refill(json, want);
	return json->text_size - json->offset;
}

/* The byte at the offset; -1 at the end of the text. */
static int json_peek(struct gp_json *json)
{
	if (json->offset >= json->text_size && !json_ensure(json, 1))
		return -1;
	return (unsigned char)json->text[json->offset];
}

static void json_skip_blanks(struct gp_json *json)
{
	for (;; json->offset++) {
		int c = json_peek(json);

		if (c == '\n')
			json->line++;
		else if (c != ' ' && c != '\t' && c != '\r')
			return;
	}
}

static int json_put(struct gp_json *json, size_t *used, const char *bytes, size_t size, struct gp_error *error)
{
	if (*used + size >= sizeof(json->string) && json->cut_long) {
		/* Nothing more fits from here on, or there would be a hole. */
		*used = sizeof(json->string) - 1;
		return 0;
	}
	if (*used + size >= sizeof(json->string))
		return json_refuse(json, error, "a string or number is too long (at most 4095 bytes)");
	memcpy(json->string + *used, bytes, size);
	*used += size;
	json->string[*used] = '\0';
	return 0;
}

/* Four hexadecimal digits; -1 if they are not there. */
static int32_t json_hex4(struct gp_json *json)
{
	int32_t value = 0;

	for (int i = 0; i < 4; i++, json->offset++) {
		int c = json_peek(json);

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
			value = value * 16 + ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

static size_t json_encode(uint32_t code, char bytes[4])
{
	if (code < 0x80) {
		bytes[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		bytes[0] = (char)(0xc0 | code >> 6);
		bytes[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		bytes[0] = (char)(0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	bytes[0] = (char)(0xf0 | code >> 18);
	bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
	bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
	bytes[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Behind "\u": one or two escapes make one character. */
static int json_unicode(struct gp_json *json, size_t *used, struct gp_error *error)
{
	int32_t first = json_hex4(json);
	uint32_t code;
	char bytes[4];

	if (first < 0)
		return json_refuse(json, error, "\\u needs four hexadecimal digits");
	code = (uint32_t)first;
	if (code >= 0xd800 && code < 0xe000) {
		int32_t second = -1;

		if (code < 0xdc00 && json_ensure(json, 2) >= 2 && !memcmp(json->text + json->offset, "\\u", 2)) {
			json->offset += 2;
			second = json_hex4(json);
		}
		if (second < 0xdc00 || second > 0xdfff)
			return json_refuse(json, error, "half of a surrogate pair stands alone");
		code = 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)second - 0xdc00);
	}
	if (!code)
		return json_refuse(json, error, "there is a NUL character in a string");
	return json_put(json, used, bytes, json_encode(code, bytes), error);
}

static int json_escape(struct gp_json *json, size_t *used, struct gp_error *error)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	int c = json_peek(json);
	const char *found = c > 0 ? strchr(names, c) : NULL;

	if (c == 'u') {
		json->offset++;
		return json_unicode(json, used, error);
	}
	if (!found)
		return json_refuse(json, error, "there is an unknown escape in a string");
	json->offset++;
	return json_put(json, used, values + (found - names), 1, error);
}

/* At the opening quote; ends behind the closing one. */
static int json_string(struct gp_json *json, struct gp_error *error)
{
	size_t used = 0;
	int c, r;

	json->string[0] = '\0';
	json->offset++;
	while ((c = json_peek(json)) != '"') {
		if (c < 0)
			return json_refuse(json, error, "the file ends inside a string");
		if (c < 0x20)
			return json_refuse(json, error, "there is a control character or a line end inside a string");
		if (c == '\\') {
			json->offset++;
			r = json_escape(json, &used, error);
		} else {
			size_t left = json_ensure(json, 4), size;
			const char *at = json->text + json->offset;

			for (size = 0; size < left && size < 256; size++)
				if ((unsigned char)at[size] < 0x20 || (unsigned char)at[size] > 0x7e ||
				    at[size] == '"' || at[size] == '\\')
					break;
			size = size ? size : gp_utf8_decode(at, left, NULL);

			if (!size)
				return json_refuse(json, error, "a string is not UTF-8");
			r = json_put(json, &used, at, size, error);
			json->offset += size;
		}
		if (r < 0)
			return r;
	}
	json->offset++;
	return 0;
}

/* What Python and others write for a float that has no digits. */
static bool json_is_not_finite(struct gp_json *json)
{
	return (json_ensure(json, 3) >= 3 && !strncasecmp(json->text + json->offset, "nan", 3)) ||
	       (json_ensure(json, 8) >= 8 && !memcmp(json->text + json->offset, "Infinity", 8));
}

/* Takes digits into the string, at least one. */
static int json_digits(struct gp_json *json, size_t *used, struct gp_error *error)
{
	size_t before = *used;

	while (json_peek(json) >= '0' && json_peek(json) <= '9') {
		int r = json_put(json, used, json->text + json->offset, 1, error);

		if (r < 0)
			return r;
		json->offset++;
	}
	return *used == before ? json_refuse(json, error, "a number lacks a digit") : 0;
}

static bool json_take(struct gp_json *json, size_t *used, const char *choices)
{
	int c = json_peek(json);
	char byte = (char)c;

	if (c <= 0 || !strchr(choices, c) || json_put(json, used, &byte, 1, NULL) < 0)
		return false;
	json->offset++;
	return true;
}

/* Sets is_u64, is_i64 and their values from the digits. */
static void json_whole(struct gp_json *json, const char *digits, bool is_negative)
{
	uint64_t value = 0;

	for (; *digits; digits++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*digits - '0'), &value))
			return;
	json->is_u64 = !is_negative || !value;
	json->is_i64 = is_negative ? value <= (uint64_t)INT64_MAX + 1u : value <= INT64_MAX;
	json->u64 = json->is_u64 ? value : 0;
	json->i64 = !json->is_i64 ? 0 : is_negative ? (int64_t)(0u - value) : (int64_t)value;
}

static int json_number(struct gp_json *json, struct gp_error *error)
{
	size_t used = 0;
	bool is_negative, is_whole = true;
	const char *digits;
	int r;

	json->string[0] = '\0';
	is_negative = json_take(json, &used, "-");
	digits = json->string + used;
	if (is_negative && json_is_not_finite(json))
		return json_refuse(json, error, JSON_NOT_FINITE);
	r = json_digits(json, &used, error);
	if (r < 0)
		return r;
	if (digits[0] == '0' && digits[1])
		return json_refuse(json, error, "a number begins with 0");
	if (json_take(json, &used, ".")) {
		is_whole = false;
		r = json_digits(json, &used, error);
		if (r < 0)
			return r;
	}
	if (json_take(json, &used, "eE")) {
		is_whole = false;
		(void)json_take(json, &used, "+-");
		r = json_digits(json, &used, error);
		if (r < 0)
			return r;
	}
	if (is_whole)
		json_whole(json, digits, is_negative);
	return 0;
}

static int json_word(struct gp_json *json, struct gp_error *error)
{
	static const struct {
		const char *word;
		enum gp_json_type type;
	} words[] = {
		{ "true", GP_JSON_TRUE },
		{ "false", GP_JSON_FALSE },
		{ "null", GP_JSON_NULL },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t length = strlen(words[i].word);

		if (json_ensure(json, length) >= length && !memcmp(json->text + json->offset, words[i].word, length)) {
			json->offset += length;
			json->type = words[i].type;
			return 0;
		}
	}
	if (json_is_not_finite(json))
		return json_refuse(json, error, JSON_NOT_FINITE);
	return json_refuse(json, error, json_peek(json) < 0 ? "the file ends in the middle" : "expected a value");
}

static int json_begin(struct gp_json *json, char bracket, struct gp_error *error)
{
	if (json->depth == GP_JSON_DEPTH_MAX)
		return json_refuse(json, error, "objects and arrays are nested too deeply (at most 64)");
	json->stack[json->depth++] = bracket;
	json->type = bracket == '{' ? GP_JSON_OBJECT_BEGIN : GP_JSON_ARRAY_BEGIN;
	json->need_comma = false;
	json->after_key = false;
	json->offset++;
	return 0;
}

static int json_value(struct gp_json *json, struct gp_error *error)
{
	int c = json_peek(json), r;

	if (c == '{' || c == '[')
		return json_begin(json, (char)c, error);
	if (c == '"') {
		json->type = GP_JSON_STRING;
		r = json_string(json, error);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		json->type = GP_JSON_NUMBER;
		r = json_number(json, error);
	} else {
		r = json_word(json, error);
	}
	json->after_key = false;
	json->need_comma = true;
	return r;
}

static int json_key(struct gp_json *json, struct gp_error *error)
{
	int r;

	if (json_peek(json) != '"')
		return json_refuse(json, error,
				   json_peek(json) < 0 ? "the file ends in the middle" : "expected a key in quotes");
	r = json_string(json, error);
	if (r < 0)
		return r;
	json_skip_blanks(json);
	if (json_peek(json) != ':')
		return json_refuse(json, error,
				   json_peek(json) < 0 ? "the file ends in the middle" : "expected : behind a key");
	json->offset++;
	json->type = GP_JSON_KEY;
	json->after_key = true;
	return 0;
}

static int json_end(struct gp_json *json)
{
	json->type = json->stack[--json->depth] == '{' ? GP_JSON_OBJECT_END : GP_JSON_ARRAY_END;
	json->need_comma = true;
	json->offset++;
	return 0;
}

/* Inside an object or array and not behind a key: its end, or what follows a comma. */
static int json_member(struct gp_json *json, struct gp_error *error)
{
	char bracket = json->stack[json->depth - 1];

	if (json_peek(json) == (bracket == '{' ? '}' : ']'))
		return json_end(json);
	if (json->need_comma) {
		if (json_peek(json) != ',')
			return json_refuse(json, error,
					   json_peek(json) < 0 ? "the file ends in the middle" :
					   bracket == '{'      ? "expected , or }" :
								 "expected , or ]");
		json->offset++;
		json_skip_blanks(json);
	}
	return bracket == '{' ? json_key(json, error) : json_value(json, error);
}

int gp_json_next(struct gp_json *json, struct gp_error *error)
{
	json->is_u64 = json->is_i64 = false;
	json->u64 = 0;
	json->i64 = 0;
	json_skip_blanks(json);
	if (json->after_key)
		return json_value(json, error);
	if (json->depth)
		return json_member(json, error);
	if (!json->done) {
		json->done = true;
		return json_value(json, error);
	}
	if (json_peek(json) >= 0)
		return json_refuse(json, error, "there is text behind the end");
	json->type = GP_JSON_END;
	return 0;
}

int gp_json_skip(struct gp_json *json, struct gp_error *error)
{
	uint32_t depth = json->depth;
	int r;

	if (json->type == GP_JSON_OBJECT_BEGIN || json->type == GP_JSON_ARRAY_BEGIN)
		depth--;
	else if (json->type != GP_JSON_KEY)
		return 0;
	do {
		r = gp_json_next(json, error);
		if (r < 0)
			return r;
	} while (json->depth > depth);
	return 0;
}
