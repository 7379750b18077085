/* SPDX-License-Identifier: MIT */
/* Owns the reading of the driver's files. Never opens a device. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/kfd/topology.h"
#include "lib/cleanup.h"
#include "lib/file.h"

#define TOPOLOGY_FILE_SIZE 65536u
#define TOPOLOGY_VALUE_MAX (1ull << 62)
#define TOPOLOGY_COUNT_MAX 65536u

/* One decimal number, strictly. */
static int topology_number(const char *text, size_t size, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!size || size > 20)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		if (!isdigit((unsigned char)text[i]) || number > (UINT64_MAX - 9) / 10)
			return -EINVAL;
		number = number * 10 + (uint64_t)(text[i] - '0');
	}
	*ret_number = number;
	return 0;
}

int gp_kfd_read_number(const char *path, uint64_t *ret_number)
{
	GP_AUTO_FREE char *text = NULL;
	size_t size;
	int r = gp_file_read(path, 64, &text, &size, NULL);

	if (r)
		return r;
	if (size && text[size - 1] == '\n')
		size--;
	return topology_number(text, size, ret_number);
}

bool gp_kfd_is_compute(uint32_t type)
{
	return type == 0 || type == 2; /* compute, AQL; the others are SDMA */
}

int gp_kfd_parse_properties(const char *text, size_t size, const char *file_name, struct gp_kfd_node *node,
			    struct gp_error *error)
{
	const struct {
		const char *name;
		uint64_t *value;
	} keys[] = {
		{ "simd_count", &node->simd_count },
		{ "simd_per_cu", &node->simd_per_cu },
		{ "num_xcc", &node->xcc_count },
		{ "num_cp_queues", &node->cp_queue_count },
		{ "gfx_target_version", &node->gfx_version },
		{ "fw_version", &node->firmware },
		{ "location_id", &node->location_id },
		{ "domain", &node->domain },
		{ "capability", &node->capability },
		{ "size_in_bytes", &node->memory_size },
	};
	const char *end = text + size, *line_end, *space;
	uint32_t line = 0;
	uint64_t value;

	for (; text < end; text = line_end + 1) {
		line++;
		line_end = memchr(text, '\n', (size_t)(end - text));
		if (!line_end)
			line_end = end;
		if (line_end == text)
			continue;
		space = memchr(text, ' ', (size_t)(line_end - text));
		if (!space)
			return gp_error_set(error, -EINVAL, "%s:%u: not 'name value'", file_name, line);
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			if (strlen(keys[i].name) != (size_t)(space - text) ||
			    strncmp(keys[i].name, text, (size_t)(space - text)) != 0)
				continue;
			if (topology_number(space + 1, (size_t)(line_end - space - 1), &value))
				return gp_error_set(error, -EINVAL, "%s:%u: %s is not a number", file_name, line,
						    keys[i].name);
			*keys[i].value = value;
		}
	}
	return 0;
}

static int topology_properties(const char *path, struct gp_kfd_node *node, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	size_t size;
	int r = gp_file_read(path, TOPOLOGY_FILE_SIZE, &text, &size, error);

	return r ? r : gp_kfd_parse_properties(text, size, path, node, error);
}

static void topology_name(const char *folder, struct gp_kfd_node *node)
{
	GP_AUTO_FREE char *text = NULL;
	char path[512];
	size_t size;

	snprintf(path, sizeof(path), "%s/name", folder);
	if (!gp_file_read(path, 4096, &text, &size, NULL)) {
		text[strcspn(text, "\n")] = '\0';
		snprintf(node->name, sizeof(node->name), "%s", text);
	}
	if (!*node->name)
		snprintf(node->name, sizeof(node->name), "gfx%llu%llu%llx",
			 (unsigned long long)node->gfx_version / 10000,
			 (unsigned long long)node->gfx_version / 100 % 100,
			 (unsigned long long)node->gfx_version % 100);
}

/* The sum of its memory banks. */
static uint64_t topology_memory(const char *folder)
{
	struct gp_kfd_node bank;
	uint64_t total = 0;
	char path[512];

	for (uint32_t i = 0; i < 16; i++) {
		memset(&bank, 0, sizeof(bank));
		snprintf(path, sizeof(path), "%s/mem_banks/%u/properties", folder, i);
		if (topology_properties(path, &bank, NULL))
			break;
		if (bank.memory_size < TOPOLOGY_VALUE_MAX - total)
			total += bank.memory_size;
	}
	return total;
}

static int topology_node(const char *folder, struct gp_kfd_node *node, struct gp_error *error)
{
	char path[512];
	uint64_t gpu_id;
	int r;

	snprintf(path, sizeof(path), "%s/gpu_id", folder);
	r = gp_kfd_read_number(path, &gpu_id);
	if (r == -ENOENT)
		return r;
	if (r || gpu_id > UINT32_MAX)
		return gp_error_set(error, r ? r : -EINVAL, "%s: is not a GPU's number", path);
	node->gpu_id = (uint32_t)gpu_id;
	if (!gpu_id)
		return 0;
	snprintf(path, sizeof(path), "%s/properties", folder);
	r = topology_properties(path, node, error);
	if (r == -EPERM || r == -EACCES) {
		node->gpu_id = 0; /* a device cgroup hides it from us: it is not ours */
		return 0;
	}
	if (r)
		return r;
	if (node->cp_queue_count > TOPOLOGY_COUNT_MAX || node->xcc_count > TOPOLOGY_COUNT_MAX ||
	    node->simd_count > TOPOLOGY_COUNT_MAX || node->simd_per_cu > TOPOLOGY_COUNT_MAX)
		return gp_error_set(error, -EINVAL, "%s: counts beyond %u", path, TOPOLOGY_COUNT_MAX);
	topology_name(folder, node);
	node->memory_size = topology_memory(folder);
	return 0;
}

int gp_kfd_topology(const char *root, struct gp_kfd_node *nodes, uint32_t count, struct gp_error *error)
{
	uint32_t found = 0;
	char folder[256];
	int r;

	for (uint32_t i = 0; i < GP_KFD_NODES_MAX && found < count; i++) {
		struct gp_kfd_node node = { .node = i };

		snprintf(folder, sizeof(folder), "%s/topology/nodes/%u", root, i);
		r = topology_node(folder, &node, error);
		if (r == -ENOENT)
			break;
		if (r)
			return r;
		if (node.gpu_id)
			nodes[found++] = node;
	}
	return (int)found;
}
