/* SPDX-License-Identifier: MIT */
/* Owns the reading of hqds. A register dump follows each slot's heading: eight words a line from CP_MQD_BASE_ADDR on,
 * so that the third word is CP_HQD_ACTIVE and the fourth CP_HQD_VMID (gfx9 to gfx11: gc_*_offset.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/hqd.h"
#include "lib/cleanup.h"
#include "lib/file.h"

#define HQD_FILE_SIZE   (16u << 20)
#define HQD_LINE_SIZE   512u
#define HQD_WORD_ACTIVE 2u
#define HQD_WORD_VMID   3u

struct hqd_reader {
	struct gp_hqd *hqd;
	uint32_t room, gpu_id, word;
	bool in_slot;
};

static int hqd_add(struct hqd_reader *reader, const struct gp_hqd_slot *slot)
{
	struct gp_hqd *hqd = reader->hqd;
	uint32_t wanted = reader->room ? reader->room * 2 : 256;
	struct gp_hqd_slot *grown;

	if (hqd->slot_count == GP_HQD_SLOT_MAX)
		return -EFBIG;
	if (hqd->slot_count == reader->room) {
		grown = realloc(hqd->slots, wanted * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		hqd->slots = grown;
		reader->room = wanted;
	}
	hqd->slots[hqd->slot_count++] = *slot;
	reader->in_slot = true;
	reader->word = 0;
	return 0;
}

/* "00009144: 00000001 …": words of the slot under way. */
static void hqd_words(struct hqd_reader *reader, const char *line)
{
	struct gp_hqd_slot *slot = &reader->hqd->slots[reader->hqd->slot_count - 1];
	const char *at = strchr(line, ':');
	char *end;

	for (at = at ? at + 1 : NULL; at; at = end, reader->word++) {
		unsigned long word = strtoul(at, &end, 16);

		if (end == at)
			return;
		if (reader->word == HQD_WORD_ACTIVE) {
			slot->is_active = word & 1u;
			slot->is_known = true;
		} else if (reader->word == HQD_WORD_VMID) {
			slot->vmid = (uint32_t)word & 0xfu;
		}
	}
}

static int hqd_line(struct hqd_reader *reader, const char *line)
{
	struct gp_hqd_slot slot = { .gpu_id = reader->gpu_id };
	uint32_t node;
	int used = 0;

	line += strspn(line, " \t");
	if (sscanf(line, "Node %u, gpu_id %x:", &node, &slot.gpu_id) == 2) {
		reader->gpu_id = slot.gpu_id;
		reader->in_slot = false;
		return 0;
	}
	if (sscanf(line, "Inst %u,%n", &slot.instance, &used) == 1 && used)
		line += used + strspn(line + used, " ");
	if (sscanf(line, "CP Pipe %u, Queue %u", &slot.pipe, &slot.queue) == 2) {
		slot.gpu_id = reader->gpu_id;
		return slot.pipe < 64 && slot.queue < 64 ? hqd_add(reader, &slot) : -EINVAL;
	}
	if (reader->in_slot && strspn(line, "0123456789abcdefABCDEF") == 8 && line[8] == ':')
		hqd_words(reader, line);
	else
		reader->in_slot = false; /* HIQ, SDMA, … */
	return 0;
}

int gp_hqd_parse(struct gp_hqd *hqd, const char *text, size_t size, struct gp_error *error)
{
	struct hqd_reader reader = { .hqd = hqd };
	const char *end = text + size;
	char line[HQD_LINE_SIZE];
	int r = 0;

	memset(hqd, 0, sizeof(*hqd));
	while (!r && text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);
		size_t kept = length < sizeof(line) - 1 ? length : sizeof(line) - 1;

		memcpy(line, text, kept);
		line[kept] = '\0';
		r = hqd_line(&reader, line);
		text += length + 1;
	}
	if (!r && !hqd->slot_count)
		r = -ENODATA;
	if (!r)
		return 0;
	gp_hqd_fini(hqd);
	if (r == -ENOMEM)
		return gp_error_set(error, r, "out of memory");
	return gp_error_set(error, -EINVAL, "it has no hardware queues as KFD's debugfs lists them");
}

int gp_hqd_load(struct gp_hqd *hqd, struct gp_error *error)
{
	const char *own = getenv(GP_HQD_PATH_ENV), *path = own && *own ? own : GP_HQD_PATH;
	GP_AUTO_FREE char *text = NULL;
	struct gp_error why;
	size_t size = 0;
	int r = gp_file_read(path, HQD_FILE_SIZE, &text, &size, &why);

	if (r == -EACCES || r == -EPERM)
		return gp_error_set(error, r, "%s: only root may read it", path);
	if (r == -ENOENT)
		return gp_error_set(error, r, "%s is not there: is debugfs mounted, is amdgpu loaded?", path);
	if (r)
		return gp_error_set(error, r, "%s", why.text);
	r = gp_hqd_parse(hqd, text, size, &why);
	return r ? gp_error_set(error, r, "%s: %s", path, why.text) : 0;
}

void gp_hqd_fini(struct gp_hqd *hqd)
{
	free(hqd->slots);
	memset(hqd, 0, sizeof(*hqd));
}

void gp_hqd_count(const struct gp_hqd *hqd, uint32_t gpu_id, uint32_t *ret_active, uint32_t *ret_all)
{
	*ret_active = *ret_all = 0;
	for (uint32_t i = 0; i < hqd->slot_count; i++) {
		if (hqd->slots[i].gpu_id != gpu_id || hqd->slots[i].instance != 0)
			continue;
		*ret_active += hqd->slots[i].is_active;
		(*ret_all)++;
	}
}
