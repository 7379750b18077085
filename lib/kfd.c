/* SPDX-License-Identifier: MIT */
/* Owns the reading of KFD's files, and the limits that follow from them. Never opens a device. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/kfd.h"

#define KFD_FILE_SIZE 65536u
#define KFD_VALUE_MAX (1ull << 62)
#define KFD_COUNT_MAX 65536u
#define KFD_GFX_940   90400u

/* Until a file says otherwise. */
static const struct gp_kfd_node kfd_node_unknown = {
	.simd_count = GP_KFD_UNKNOWN,
	.simd_per_cu = GP_KFD_UNKNOWN,
	.xcc_count = GP_KFD_UNKNOWN,
	.cp_queue_count = GP_KFD_UNKNOWN,
	.gfx_version = GP_KFD_UNKNOWN,
	.firmware = GP_KFD_UNKNOWN,
	.location_id = GP_KFD_UNKNOWN,
	.domain = GP_KFD_UNKNOWN,
	.capability = GP_KFD_UNKNOWN,
	.device_id = GP_KFD_UNKNOWN,
	.render_minor = GP_KFD_UNKNOWN,
	.sdma_engine_count = GP_KFD_UNKNOWN,
	.sdma_queues_per_engine = GP_KFD_UNKNOWN,
	.control_stack_size = GP_KFD_UNKNOWN,
	.save_size = GP_KFD_UNKNOWN,
};

static bool kfd_is_absurd(uint64_t count)
{
	return count > KFD_COUNT_MAX && count != GP_KFD_UNKNOWN;
}

/* One decimal number, strictly. */
static int kfd_number(const char *text, size_t size, uint64_t *ret_number)
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
	return kfd_number(text, size, ret_number);
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
		{ "device_id", &node->device_id },
		{ "drm_render_minor", &node->render_minor },
		{ "num_sdma_engines", &node->sdma_engine_count },
		{ "num_sdma_queues_per_engine", &node->sdma_queues_per_engine },
		{ "ctl_stack_size", &node->control_stack_size },
		{ "cwsr_size", &node->save_size },
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
			if (kfd_number(space + 1, (size_t)(line_end - space - 1), &value))
				return gp_error_set(error, -EINVAL, "%s:%u: %s is not a number", file_name, line,
						    keys[i].name);
			*keys[i].value = value;
		}
	}
	return 0;
}

static int kfd_properties(const char *path, struct gp_kfd_node *node, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	size_t size;
	int r = gp_file_read(path, KFD_FILE_SIZE, &text, &size, error);

	return r ? r : gp_kfd_parse_properties(text, size, path, node, error);
}

/* Names as sold, by PCI device id: libdrm's amdgpu.ids and pci.ids. Drivers since gfx9.4.3 call every part "ip
 * discovery". */
const char *gp_kfd_part_name(uint64_t device_id)
{
	static const struct {
		uint16_t device_id;
		const char *name;
	} parts[] = {
		{ 0x66a0, "AMD Instinct MI50" },   { 0x66a1, "AMD Instinct MI60 / MI50" },
		{ 0x738c, "AMD Instinct MI100" },  { 0x738e, "AMD Instinct MI100" },
		{ 0x7408, "AMD Instinct MI250X" }, { 0x740c, "AMD Instinct MI250X / MI250" },
		{ 0x740f, "AMD Instinct MI210" },  { 0x74a0, "AMD Instinct MI300A" },
		{ 0x74a1, "AMD Instinct MI300X" }, { 0x74a2, "AMD Instinct MI308X" },
		{ 0x74a5, "AMD Instinct MI325X" }, { 0x75a0, "AMD Instinct MI350X" },
		{ 0x75a3, "AMD Instinct MI355X" },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].device_id == device_id)
			return parts[i].name;
	return NULL;
}

static void kfd_name(const char *folder, struct gp_kfd_node *node)
{
	const char *part = gp_kfd_part_name(node->device_id);
	GP_AUTO_FREE char *text = NULL;
	char path[512];
	size_t size;

	snprintf(path, sizeof(path), "%s/name", folder);
	if (part) {
		snprintf(node->name, sizeof(node->name), "%s", part);
	} else if (!gp_file_read(path, 4096, &text, &size, NULL)) {
		text[strcspn(text, "\n")] = '\0';
		snprintf(node->name, sizeof(node->name), "%s", text);
	}
	if (!*node->name && node->gfx_version != GP_KFD_UNKNOWN)
		snprintf(node->name, sizeof(node->name), "gfx%llu%llu%llx",
			 (unsigned long long)node->gfx_version / 10000,
			 (unsigned long long)node->gfx_version / 100 % 100,
			 (unsigned long long)node->gfx_version % 100);
}

uint64_t gp_kfd_cu_count(const struct gp_kfd_node *node)
{
	if (node->simd_count == GP_KFD_UNKNOWN || node->simd_per_cu == GP_KFD_UNKNOWN || !node->simd_per_cu)
		return GP_KFD_UNKNOWN;
	return node->simd_count / node->simd_per_cu;
}

/* VMIDs of KFD (Linux 6.12, gmc_v9_0.c and kfd_device.c): 3 to 15 on GC 9.4.1, 9.4.2 and the parts of several dies
 * (gfx908, gfx90a, gfx942); 8 to 15 on every other part, an MI50 (GC 9.4.0) among them. Two neighbouring XCCs of a
 * gfx942 share the 12 from 4 on: a node of one XCC has 6. */
#define KFD_VMIDS     13u
#define KFD_VMIDS_CPX 6u
#define KFD_VMIDS_OLD 8u

uint64_t gp_kfd_process_max(const struct gp_kfd_node *node)
{
	if (node->gfx_version == GP_KFD_UNKNOWN)
		return GP_KFD_UNKNOWN;
	if (node->gfx_version < GP_KFD_GFX_908 || node->gfx_version >= GP_KFD_GFX_10)
		return KFD_VMIDS_OLD;
	return node->gfx_version >= KFD_GFX_940 && node->xcc_count == 1 ? KFD_VMIDS_CPX : KFD_VMIDS;
}

/* The sum of its memory banks. */
static uint64_t kfd_memory(const char *folder)
{
	struct gp_kfd_node bank;
	uint64_t total = 0;
	char path[512];

	for (uint32_t i = 0; i < 16; i++) {
		memset(&bank, 0, sizeof(bank));
		snprintf(path, sizeof(path), "%s/mem_banks/%u/properties", folder, i);
		if (kfd_properties(path, &bank, NULL))
			break;
		if (bank.memory_size < KFD_VALUE_MAX - total)
			total += bank.memory_size;
	}
	return total;
}

static int kfd_node(const char *folder, struct gp_kfd_node *node, struct gp_error *error)
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
	r = kfd_properties(path, node, error);
	if (r == -EPERM || r == -EACCES) {
		node->gpu_id = 0; /* a device cgroup hides the GPU from this process */
		return 0;
	}
	if (r)
		return r;
	if (kfd_is_absurd(node->cp_queue_count) || kfd_is_absurd(node->xcc_count) || kfd_is_absurd(node->simd_count) ||
	    kfd_is_absurd(node->simd_per_cu) || kfd_is_absurd(node->sdma_engine_count) ||
	    kfd_is_absurd(node->sdma_queues_per_engine) || kfd_is_absurd(node->render_minor))
		return gp_error_set(error, -EINVAL, "%s: counts beyond %u", path, KFD_COUNT_MAX);
	kfd_name(folder, node);
	node->memory_size = kfd_memory(folder);
	return 0;
}

int gp_kfd_topology(const char *root, struct gp_kfd_node *nodes, uint32_t count, struct gp_error *error)
{
	uint32_t found = 0;
	char folder[256];
	int r;

	for (uint32_t i = 0; i < GP_KFD_NODES_MAX && found < count; i++) {
		struct gp_kfd_node node = kfd_node_unknown;

		node.node = i;
		snprintf(folder, sizeof(folder), "%s/topology/nodes/%u", root, i);
		r = kfd_node(folder, &node, error);
		if (r == -ENOENT)
			break;
		if (r)
			return r;
		if (node.gpu_id)
			nodes[found++] = node;
	}
	return (int)found;
}
