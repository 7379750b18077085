/* SPDX-License-Identifier: MIT */
/* Owns the reading of hqds, mqds and rls. In hqds a register dump follows each slot's heading: eight words a line from
 * CP_MQD_BASE_ADDR on, so that the third word is CP_HQD_ACTIVE and the fourth CP_HQD_VMID (gfx9 to gfx11:
 * gc_*_offset.h). In mqds the words of the descriptor follow (v9_structs.h), in rls the packets of the run list. */
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
#define MQD_WORD_ACTIVE 130u /* cp_hqd_active, cp_hqd_pipe_priority, cp_hqd_queue_priority of v9_mqd */
#define MQD_WORD_PIPE   133u
#define MQD_WORD_QUEUE  134u
#define RLS_MAP_PROCESS 0xa1u /* opcodes of type 3 packets */
#define RLS_MAP_QUEUES  0xa2u

enum hqd_place { HQD_NOWHERE, HQD_SLOT, HQD_QUEUE, HQD_LIST };

struct hqd_reader {
	struct gp_hqd *hqd;
	uint32_t room, queue_room, list_room, gpu_id, pid, word;
	uint64_t skip;        /* rls: words of the packet under way */
	enum hqd_place place; /* what the words of the next line belong to */
	bool is_node;         /* the line before named a node */
};

/* Room for one more; NULL: too many, or no memory (ret_error). */
static void *hqd_grow(void **array, uint32_t *count, uint32_t *room, size_t size, int *ret_error)
{
	uint32_t wanted = *room ? *room * 2 : 256;
	void *grown;

	*ret_error = *count == GP_HQD_SLOT_MAX ? -EFBIG : 0;
	if (*ret_error)
		return NULL;
	if (*count == *room) {
		grown = realloc(*array, wanted * size);
		if (!grown) {
			*ret_error = -ENOMEM;
			return NULL;
		}
		*array = grown;
		*room = wanted;
	}
	return (char *)*array + (*count)++ * size;
}

static int hqd_add(struct hqd_reader *reader, const struct gp_hqd_slot *slot)
{
	struct gp_hqd *hqd = reader->hqd;
	struct gp_hqd_slot *to;
	int r;

	to = hqd_grow((void **)&hqd->slots, &hqd->slot_count, &reader->room, sizeof(*to), &r);
	if (!to)
		return r;
	*to = *slot;
	reader->place = HQD_SLOT;
	reader->word = 0;
	return 0;
}

static int hqd_add_queue(struct hqd_reader *reader, uint32_t gpu_id, bool is_compute)
{
	struct gp_hqd *hqd = reader->hqd;
	struct gp_hqd_queue *to;
	int r;

	to = hqd_grow((void **)&hqd->queues, &hqd->queue_count, &reader->queue_room, sizeof(*to), &r);
	if (!to)
		return r;
	*to = (struct gp_hqd_queue){ .pid = reader->pid, .gpu_id = gpu_id, .is_compute = is_compute };
	reader->place = HQD_QUEUE;
	reader->word = 0;
	return 0;
}

static int hqd_add_list(struct hqd_reader *reader)
{
	struct gp_hqd *hqd = reader->hqd;
	struct gp_hqd_list *to;
	int r;

	to = hqd_grow((void **)&hqd->lists, &hqd->list_count, &reader->list_room, sizeof(*to), &r);
	if (!to)
		return r;
	*to = (struct gp_hqd_list){ .gpu_id = reader->gpu_id };
	reader->place = HQD_LIST;
	reader->skip = 0;
	return 0;
}

static void hqd_slot_word(struct gp_hqd_slot *slot, uint32_t at, unsigned long word)
{
	if (at == HQD_WORD_ACTIVE) {
		slot->is_active = word & 1u;
		slot->is_known = true;
	} else if (at == HQD_WORD_VMID) {
		slot->vmid = (uint32_t)word & 0xfu;
	}
}

static void hqd_queue_word(struct gp_hqd_queue *queue, uint32_t at, unsigned long word)
{
	if (at == MQD_WORD_ACTIVE)
		queue->is_active = word & 1u;
	else if (at == MQD_WORD_PIPE)
		queue->pipe_priority = (uint32_t)word;
	else if (at == MQD_WORD_QUEUE)
		queue->queue_priority = (uint32_t)word;
	queue->is_known |= queue->is_compute && at == MQD_WORD_QUEUE;
}

static void hqd_list_word(struct hqd_reader *reader, struct gp_hqd_list *list, unsigned long word)
{
	if (reader->skip) {
		reader->skip--;
		return;
	}
	if (word >> 30 != 3u)
		return; /* filler */
	reader->skip = (word >> 16 & 0x3fffu) + 1u;
	list->process_count += (word >> 8 & 0xffu) == RLS_MAP_PROCESS;
	list->queue_count += (word >> 8 & 0xffu) == RLS_MAP_QUEUES;
}

/* "00009144: 00000001 …": words of what is under way. */
static void hqd_words(struct hqd_reader *reader, const char *line)
{
	struct gp_hqd *hqd = reader->hqd;
	const char *at = strchr(line, ':');
	char *end;

	for (at = at ? at + 1 : NULL; at; at = end, reader->word++) {
		unsigned long word = strtoul(at, &end, 16);

		if (end == at)
			return;
		if (reader->place == HQD_SLOT)
			hqd_slot_word(&hqd->slots[hqd->slot_count - 1], reader->word, word);
		else if (reader->place == HQD_QUEUE)
			hqd_queue_word(&hqd->queues[hqd->queue_count - 1], reader->word, word);
		else if (reader->place == HQD_LIST)
			hqd_list_word(reader, &hqd->lists[hqd->list_count - 1], word);
	}
}

static int hqd_line(struct hqd_reader *reader, const char *line)
{
	struct gp_hqd_slot slot = { .gpu_id = reader->gpu_id };
	char kind[16];
	uint32_t node;
	int used = 0;

	line += strspn(line, " \t");
	if (sscanf(line, "Node %u, gpu_id %x:", &node, &slot.gpu_id) == 2) {
		reader->gpu_id = slot.gpu_id;
		reader->place = HQD_NOWHERE;
		reader->is_node = true;
		return 0;
	}
	if (sscanf(line, "Process %u PASID", &node) == 1) {
		reader->pid = node;
		reader->place = HQD_NOWHERE;
		return 0;
	}
	if (sscanf(line, "%15s queue on device %x", kind, &node) == 2)
		return hqd_add_queue(reader, node, !strcmp(kind, "Compute"));
	if (sscanf(line, "Inst %u,%n", &slot.instance, &used) == 1 && used)
		line += used + strspn(line + used, " ");
	if (sscanf(line, "CP Pipe %u, Queue %u", &slot.pipe, &slot.queue) == 2) {
		slot.gpu_id = reader->gpu_id;
		reader->is_node = false;
		return slot.pipe < 64 && slot.queue < 64 ? hqd_add(reader, &slot) : -EINVAL;
	}
	if (strspn(line, "0123456789abcdefABCDEF") != 8 || line[8] != ':') {
		reader->place = HQD_NOWHERE; /* HIQ, SDMA, … */
		reader->is_node = false;
		return 0;
	}
	/* Words right behind a node's line are its run list. */
	if (reader->place == HQD_NOWHERE && reader->is_node && hqd_add_list(reader))
		return -ENOMEM;
	reader->is_node = false;
	hqd_words(reader, line);
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
	if (!r && !hqd->slot_count && !hqd->queue_count && !hqd->list_count)
		r = -ENODATA;
	if (!r)
		return 0;
	gp_hqd_fini(hqd);
	if (r == -ENOMEM)
		return gp_error_set(error, r, "out of memory");
	return gp_error_set(error, -EINVAL, "it has no hardware queues as KFD's debugfs lists them");
}

int gp_hqd_load(struct gp_hqd *hqd, const char *path, struct gp_error *error)
{
	const char *own = getenv(GP_HQD_PATH_ENV);
	GP_AUTO_FREE char *text = NULL;
	struct gp_error why;
	size_t size = 0;
	int r;

	path = path ? path : own && *own ? own : GP_HQD_PATH;
	r = gp_file_read(path, HQD_FILE_SIZE, &text, &size, &why);

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
	free(hqd->queues);
	free(hqd->lists);
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
