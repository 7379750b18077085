/* SPDX-License-Identifier: MIT */
/* Owns what becomes of characters beyond ASCII on terminals without UTF-8. Never changes what goes to a file. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "lib/plain.h"
#include "lib/utf8.h"

#define PLAIN_CHUNK_SIZE 1024u
#define PLAIN_WIDTH_MIN  40u
#define PLAIN_WIDTH_MAX  1000u

static const struct {
	const char *character;
	char like;
} plain_likes[] = {
	{ "µ", 'u' }, { "×", 'x' }, { "·", '.' }, { "–", '-' }, { "—", '-' }, { "−", '-' }, { "…", '~' },
	{ "→", '>' }, { "✓", '+' }, { "█", '#' }, { "▏", '|' }, { "≥", '>' }, { "≤", '<' }, { "±", '~' },
};

bool gp_plain_is_needed(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	const char *text = NULL;
	bool has_utf8;

	if (locale) {
		has_utf8 = !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
		freelocale(locale);
		return !has_utf8;
	}
	/* A locale that is not installed here: its name says what the terminal can show. */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && (!text || !*text); i++)
		text = getenv(names[i]);
	return !text || !(strstr(text, "UTF-8") || strstr(text, "utf8") || strstr(text, "UTF8"));
}

static char plain_like(const struct gp_plain *plain)
{
	for (size_t i = 0; i < sizeof(plain_likes) / sizeof(plain_likes[0]); i++)
		if (strlen(plain_likes[i].character) == plain->count &&
		    !memcmp(plain_likes[i].character, plain->bytes, plain->count))
			return plain_likes[i].like;
	return '?';
}

size_t gp_plain_text(struct gp_plain *plain, const char *text, size_t text_size, char *to)
{
	size_t used = 0;

	for (size_t i = 0; i < text_size; i++) {
		unsigned char byte = (unsigned char)text[i];

		/* The character before was incomplete. */
		if ((byte < 0x80 || byte >= 0xc0) && plain->count)
			to[used++] = '?';
		if (byte < 0x80) {
			plain->count = 0;
			to[used++] = text[i];
			continue;
		}
		if (byte >= 0xc0) {
			plain->count = 0;
			plain->want = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
		} else if (!plain->count) {
			to[used++] = '?';
			continue;
		}
		plain->bytes[plain->count++] = text[i];
		if (plain->count < plain->want)
			continue;
		to[used++] = plain_like(plain);
		plain->count = 0;
	}
	return used;
}

uint32_t gp_plain_width(uint32_t otherwise)
{
	const char *text = getenv("COLUMNS");
	unsigned long columns = text ? strtoul(text, NULL, 10) : 0;
	struct winsize size;

	if (columns >= PLAIN_WIDTH_MIN && columns <= PLAIN_WIDTH_MAX)
		return (uint32_t)columns;
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= PLAIN_WIDTH_MIN)
		return size.ws_col;
	return otherwise;
}

static ssize_t plain_write(void *context, const char *text, size_t text_size)
{
	char chunk[PLAIN_CHUNK_SIZE + 1u];

	for (size_t at = 0; at < text_size;) {
		size_t part = text_size - at < PLAIN_CHUNK_SIZE ? text_size - at : PLAIN_CHUNK_SIZE;
		size_t size = gp_plain_text(context, text + at, part, chunk);

		at += part;
		for (size_t done = 0; done < size;) {
			ssize_t got = write(STDOUT_FILENO, chunk + done, size - done);

			if (got <= 0)
				return 0;
			done += (size_t)got;
		}
	}
	return (ssize_t)text_size;
}

void gp_plain_stdout(void)
{
	static struct gp_plain plain;
	FILE *stream;

	if (!isatty(STDOUT_FILENO) || !gp_plain_is_needed())
		return;
	stream = fopencookie(&plain, "w", (cookie_io_functions_t){ .write = plain_write });
	if (!stream)
		return;
	(void)setvbuf(stream, NULL, _IOLBF, BUFSIZ);
	(void)fflush(stdout);
	stdout = stream;
}
