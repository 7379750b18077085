/* SPDX-License-Identifier: MIT */
/* Owns the table of names. Bounded: a trace with a new name in every row cannot fill the memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/utf8.h"
#include "report/trace/names.h"

#define NAMES_SLOTS      (GP_NAMES_MAX * 2u)
#define NAMES_BLOCK_SIZE (64u << 10)

struct names_block {
	struct names_block *next;
	size_t used;
	char bytes[NAMES_BLOCK_SIZE];
};

static const char names_more[] = "(names beyond the first 32767)";

int gp_names_init(struct gp_names *names)
{
	memset(names, 0, sizeof(*names));
	names->texts = calloc(GP_NAMES_MAX, sizeof(*names->texts));
	names->slots = calloc(NAMES_SLOTS, sizeof(*names->slots));
	if (!names->texts || !names->slots) {
		gp_names_fini(names);
		return -ENOMEM;
	}
	return 0;
}

void gp_names_fini(struct gp_names *names)
{
	while (names->blocks) {
		struct names_block *next = names->blocks->next;

		free(names->blocks);
		names->blocks = next;
	}
	free(names->texts);
	free(names->slots);
	memset(names, 0, sizeof(*names));
}

const char *gp_names_get(const struct gp_names *names, uint32_t name)
{
	return name < names->count ? names->texts[name] : "?";
}

/* What tools put around a name says nothing about it: quotes, the suffix of the kernel descriptor. */
static void names_trim(const char **text, size_t *size)
{
	static const char *const suffixes[] = { " [clone .kd]", ".kd" };

	if (*size >= 2 && (*text)[0] == '"' && (*text)[*size - 1] == '"') {
		(*text)++;
		*size -= 2;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t length = strlen(suffixes[i]);

		if (*size > length && !memcmp(*text + *size - length, suffixes[i], length))
			*size -= length;
	}
}

/* How many bytes at the front are ASCII that may be shown. Nearly all names are nothing else, and each row has one. */
static size_t names_plain(const char *text, size_t text_size)
{
	size_t size = 0;

	while (size < text_size && text[size] >= 0x20 && text[size] < 0x7f)
		size++;
	return size;
}

static size_t names_clean(const char *text, size_t text_size, char *to)
{
	size_t used = names_plain(text, text_size < GP_NAMES_SIZE - 1 ? text_size : GP_NAMES_SIZE - 1);

	memcpy(to, text, used);
	text += used;
	text_size -= used;
	while (text_size) {
		uint32_t code = (unsigned char)*text;
		size_t size = code < 0x80 ? 1 : gp_utf8_decode(text, text_size, &code);

		if (used + (size ? size : 1) >= GP_NAMES_SIZE)
			break;
		/* What cannot be shown becomes a question mark, so that no view has to care. */
		if (!size || gp_utf8_is_harmful(code))
			memset(to + used, '?', size ? size : 1);
		else
			memcpy(to + used, text, size);
		size = size ? size : 1;
		used += size;
		text += size;
		text_size -= size;
	}
	to[used] = '\0';
	return used;
}

static uint64_t names_hash(const char *text, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; size >= 8; size -= 8, text += 8) {
		uint64_t word;

		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	for (; size; size--, text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return hash ^ hash >> 32;
}

static int names_store(struct gp_names *names, const char *text, size_t size, const char **ret_text)
{
	struct names_block *block = names->blocks;

	if (!block || NAMES_BLOCK_SIZE - block->used < size + 1) {
		block = malloc(sizeof(*block));
		if (!block)
			return -ENOMEM;
		block->next = names->blocks;
		block->used = 0;
		names->blocks = block;
	}
	memcpy(block->bytes + block->used, text, size + 1);
	*ret_text = block->bytes + block->used;
	block->used += size + 1;
	return 0;
}

int gp_names_add(struct gp_names *names, const char *text, size_t text_size, uint32_t *ret_name)
{
	char clean[GP_NAMES_SIZE];
	const char *stored = names_more;
	size_t size;
	uint32_t slot;

	names_trim(&text, &text_size);
	size = names_clean(text, text_size, clean);
	slot = (uint32_t)(names_hash(clean, size) % NAMES_SLOTS);
	while (names->slots[slot]) {
		uint32_t name = names->slots[slot] - 1;

		if (!strcmp(names->texts[name], clean)) {
			*ret_name = name;
			return 0;
		}
		slot = (slot + 1) % NAMES_SLOTS;
	}
	if (names->count >= GP_NAMES_MAX - 1) {
		names->folded++;
		names->texts[GP_NAMES_MAX - 1] = names_more;
		names->count = GP_NAMES_MAX;
		*ret_name = GP_NAMES_MAX - 1;
		return 0;
	}
	if (names_store(names, clean, size, &stored))
		return -ENOMEM;
	names->texts[names->count] = stored;
	names->slots[slot] = ++names->count;
	*ret_name = names->count - 1;
	return 0;
}
