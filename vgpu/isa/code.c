/* SPDX-License-Identifier: MIT */
/* Decoded code, in pages by address. A page keeps the words it was made of: gp_isa_code_refresh() compares them. */
#include <stdlib.h>
#include "vgpu/isa/internal.h"

#define CODE_PAGE_WORDS 256u
#define CODE_PAGE_SIZE  (CODE_PAGE_WORDS * 4u)
#define CODE_BUCKETS    256u
#define CODE_PAGE_MAX   1024u /* decoded at once: 1 MiB of code */

struct code_page {
	struct code_page *next;
	uint64_t base;
	uint32_t words[CODE_PAGE_WORDS + 1u]; /* and the next page's first, for what begins in the last */
	struct isa_instruction decoded[CODE_PAGE_WORDS];
};

struct gp_isa_code {
	enum gp_isa_target target;
	uint32_t accum_offset, page_count;
	struct code_page *last;
	struct code_page *buckets[CODE_BUCKETS];
};

struct gp_isa_code *gp_isa_code_create(enum gp_isa_target target, uint32_t accum_offset)
{
	struct gp_isa_code *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	code->target = target;
	code->accum_offset = accum_offset;
	return code;
}

static void code_clear(struct gp_isa_code *code)
{
	for (uint32_t i = 0; i < CODE_BUCKETS; i++)
		while (code->buckets[i]) {
			struct code_page *page = code->buckets[i];

			code->buckets[i] = page->next;
			free(page);
		}
	code->last = NULL;
	code->page_count = 0;
}

void gp_isa_code_destroy(struct gp_isa_code *code)
{
	if (!code)
		return;
	code_clear(code);
	free(code);
}

static int code_read(struct gp_isa_bus *bus, uint64_t base, uint32_t *ret_words)
{
	if (gp_isa_bus_read(bus, base, ret_words, CODE_PAGE_SIZE) < 0)
		return -1;
	if (gp_isa_bus_read(bus, base + CODE_PAGE_SIZE, &ret_words[CODE_PAGE_WORDS], 4) < 0)
		ret_words[CODE_PAGE_WORDS] = 0;
	return 0;
}

void gp_isa_code_refresh(struct gp_isa_code *code, struct gp_isa_bus *bus)
{
	uint32_t words[CODE_PAGE_WORDS + 1u];

	for (uint32_t i = 0; i < CODE_BUCKETS; i++)
		for (struct code_page **link = &code->buckets[i]; *link;) {
			struct code_page *page = *link;

			if (code_read(bus, page->base, words) == 0 && !memcmp(words, page->words, sizeof(words))) {
				link = &page->next;
				continue;
			}
			*link = page->next;
			code->page_count--;
			free(page);
		}
	code->last = NULL;
}

static struct code_page *code_page_at(struct gp_isa_code *code, struct gp_isa_bus *bus, uint64_t base)
{
	struct code_page **bucket = &code->buckets[base / CODE_PAGE_SIZE % CODE_BUCKETS], *page;

	for (page = *bucket; page; page = page->next)
		if (page->base == base)
			return page;
	if (code->page_count == CODE_PAGE_MAX)
		code_clear(code);
	page = malloc(sizeof(*page));
	if (!page)
		return NULL;
	page->base = base;
	if (code_read(bus, base, page->words) < 0) {
		free(page);
		return NULL;
	}
	for (uint32_t i = 0; i < CODE_PAGE_WORDS; i++)
		page->decoded[i].run = NULL;
	page->next = *bucket;
	*bucket = page;
	code->page_count++;
	return page;
}

const struct isa_instruction *gp_isa_fetch(struct gp_isa_code *code, struct gp_isa_bus *bus, uint64_t pc)
{
	uint64_t base = pc & ~(uint64_t)(CODE_PAGE_SIZE - 1u);
	struct code_page *page = code->last;
	struct isa_instruction *in;
	uint32_t index = (uint32_t)(pc - base) / 4u;

	if (!page || page->base != base) {
		page = code_page_at(code, bus, base);
		if (!page)
			return NULL;
		code->last = page;
	}
	in = &page->decoded[index];
	if (!in->run)
		gp_isa_decode(code->target, code->accum_offset, &page->words[index], in);
	return in;
}
