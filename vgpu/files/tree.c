/* SPDX-License-Identifier: MIT */
/* The driver's files. Numbers are strict integers: the thunk reads them with scanf and believes what it gets. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu/files/tree.h"

#define TREE_PATH 512u

static int tree_vmake(bool folder, const char *text, const char *format, va_list args)
{
	char path[TREE_PATH];
	FILE *stream;

	if (vsnprintf(path, sizeof(path), format, args) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (folder)
		return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
	stream = fopen(path, "we");
	if (!stream)
		return -errno;
	fputs(text, stream);
	return fclose(stream) ? -EIO : 0;
}

__attribute__((format(printf, 1, 2))) static int tree_folder(const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = tree_vmake(true, NULL, format, args);
	va_end(args);
	return r;
}

__attribute__((format(printf, 2, 3))) static int tree_file(const char *text, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = tree_vmake(false, text, format, args);
	va_end(args);
	return r;
}

/* "name value" lines, collected. */
struct tree_text {
	char text[4096];
	size_t size;
};

static void tree_line(struct tree_text *text, const char *name, uint64_t value)
{
	int size = snprintf(text->text + text->size, sizeof(text->text) - text->size, "%s %" PRIu64 "\n", name, value);

	if (size > 0 && text->size + (size_t)size < sizeof(text->text))
		text->size += (size_t)size;
}

static uint64_t tree_host_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The first processor's APIC id, by which the thunk finds the CPU node's cores. */
static uint64_t tree_apic_id(void)
{
	FILE *stream = fopen("/proc/cpuinfo", "re");
	unsigned int value = 0;
	char line[256];

	if (!stream)
		return 0;
	while (fgets(line, sizeof(line), stream))
		if (sscanf(line, "apicid : %u", &value) == 1)
			break;
	fclose(stream);
	return value;
}

static int tree_link(const char *nodes, uint32_t from, uint32_t index, uint32_t to, bool xgmi)
{
	struct tree_text text = { .size = 0 };
	int r = tree_folder("%s/%u/io_links/%u", nodes, from, index);

	if (r < 0)
		return r;
	tree_line(&text, "type", xgmi ? 11 : 2);
	tree_line(&text, "version_major", 0);
	tree_line(&text, "version_minor", 0);
	tree_line(&text, "node_from", from);
	tree_line(&text, "node_to", to);
	tree_line(&text, "weight", xgmi ? 15 : 20);
	tree_line(&text, "min_latency", 0);
	tree_line(&text, "max_latency", 0);
	tree_line(&text, "min_bandwidth", xgmi ? 50000 : 312);
	tree_line(&text, "max_bandwidth", xgmi ? 50000 : 64000);
	tree_line(&text, "recommended_transfer_size", 0);
	tree_line(&text, "recommended_sdma_engine_id_mask", 0);
	tree_line(&text, "flags", 1);
	return tree_file(text.text, "%s/%u/io_links/%u/properties", nodes, from, index);
}

static void tree_zeros(struct tree_text *text, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		tree_line(text, names[i], 0);
}

static int tree_bank(const char *nodes, uint32_t index, uint32_t heap, uint64_t size, uint32_t width, uint32_t clock)
{
	struct tree_text text = { .size = 0 };
	int r = tree_folder("%s/%u/mem_banks/0", nodes, index);

	if (r < 0)
		return r;
	tree_line(&text, "heap_type", heap);
	tree_line(&text, "size_in_bytes", size);
	tree_line(&text, "flags", 0);
	tree_line(&text, "width", width);
	tree_line(&text, "mem_clk_max", clock);
	return tree_file(text.text, "%s/%u/mem_banks/0/properties", nodes, index);
}

static int tree_node_folders(const char *nodes, uint32_t index)
{
	static const char *const folders[] = { "mem_banks", "caches", "io_links", "p2p_links" };
	int r = tree_folder("%s/%u", nodes, index);

	for (size_t i = 0; r == 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		r = tree_folder("%s/%u/%s", nodes, index, folders[i]);
	return r;
}

static int tree_cpu(const struct gp_vnode *node, const char *nodes)
{
	static const char *const zeros[] = {
		"simd_id_base",
		"max_waves_per_simd",
		"lds_size_in_kb",
		"gds_size_in_kb",
		"num_gws",
		"wave_front_size",
		"array_count",
		"simd_arrays_per_engine",
		"cu_per_simd_array",
		"simd_per_cu",
		"max_slots_scratch_cu",
		"gfx_target_version",
		"vendor_id",
		"device_id",
		"location_id",
		"domain",
		"drm_render_minor",
		"hive_id",
		"num_sdma_engines",
		"num_sdma_xgmi_engines",
		"num_sdma_queues_per_engine",
		"num_cp_queues",
	};
	struct tree_text text = { .size = 0 };
	int r = tree_node_folders(nodes, 0);

	tree_line(&text, "cpu_cores_count", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	tree_line(&text, "simd_count", 0);
	tree_line(&text, "mem_banks_count", 1);
	tree_line(&text, "caches_count", 0);
	tree_line(&text, "io_links_count", node->gpu_count);
	tree_line(&text, "p2p_links_count", 0);
	tree_line(&text, "cpu_core_id_base", tree_apic_id());
	tree_zeros(&text, zeros, sizeof(zeros) / sizeof(zeros[0]));
	tree_line(&text, "max_engine_clk_ccompute", 3000);
	if (r == 0)
		r = tree_file("0\n", "%s/0/gpu_id", nodes);
	if (r == 0)
		r = tree_file("\n", "%s/0/name", nodes);
	if (r == 0)
		r = tree_file(text.text, "%s/0/properties", nodes);
	if (r == 0)
		r = tree_bank(nodes, 0, 0, tree_host_memory(), 64, 3200);
	for (uint32_t i = 0; r == 0 && i < node->gpu_count; i++)
		r = tree_link(nodes, 0, i, i + 1u, false);
	return r;
}

static void tree_gpu_properties(const struct gp_vdev *gpu, struct tree_text *text)
{
	const struct gp_identity *identity = gpu->identity;
	const struct gp_desc *desc = gpu->desc;

	tree_line(text, "cpu_cores_count", 0);
	tree_line(text, "simd_count", (uint64_t)gp_desc_get(desc, GP_DESC_CU_COUNT) * identity->simd_per_cu);
	tree_line(text, "mem_banks_count", 1);
	tree_line(text, "caches_count", 2);
	tree_line(text, "io_links_count", gpu->node->gpu_count);
	tree_line(text, "p2p_links_count", 0);
	tree_line(text, "cpu_core_id_base", 0);
	tree_line(text, "simd_id_base", 2147487744u + gpu->index * 4096u);
	tree_line(text, "max_waves_per_simd", identity->waves_per_simd);
	tree_line(text, "lds_size_in_kb", (uint64_t)gp_desc_get(desc, GP_DESC_LDS_SIZE) / 1024u);
	tree_line(text, "gds_size_in_kb", 0);
	tree_line(text, "num_gws", 64);
	tree_line(text, "wave_front_size", 64);
	tree_line(text, "array_count", identity->array_count);
	tree_line(text, "simd_arrays_per_engine", 1);
	tree_line(text, "cu_per_simd_array", identity->cu_per_array);
	tree_line(text, "simd_per_cu", identity->simd_per_cu);
	tree_line(text, "max_slots_scratch_cu", 32);
	tree_line(text, "gfx_target_version", identity->gfx_version);
	tree_line(text, "vendor_id", 4098);
	tree_line(text, "device_id", identity->device_id);
	tree_line(text, "location_id", (gpu->index + 1u) << 8);
	tree_line(text, "domain", 0);
	tree_line(text, "drm_render_minor", gpu->minor);
	tree_line(text, "hive_id", gpu->node->gpu_count > 1u ? 0x76677075ull : 0);
	tree_line(text, "num_sdma_engines", (uint64_t)gp_desc_get(desc, GP_DESC_COPY_ENGINE_COUNT));
	tree_line(text, "num_sdma_xgmi_engines", identity->xgmi_engine_count);
	tree_line(text, "num_sdma_queues_per_engine", (uint64_t)gp_desc_get(desc, GP_DESC_COPY_QUEUE_COUNT));
	tree_line(text, "num_cp_queues", (uint64_t)gp_desc_get(desc, GP_DESC_SLOT_COUNT));
	tree_line(text, "max_engine_clk_fcompute", (uint64_t)gp_desc_get(desc, GP_DESC_CLOCK) / 1000000u);
	tree_line(text, "local_mem_size", 0);
	tree_line(text, "fw_version", identity->fw_version);
	tree_line(text, "capability", identity->capability);
	tree_line(text, "debug_prop", identity->debug_prop);
	tree_line(text, "sdma_fw_version", identity->sdma_fw_version);
	tree_line(text, "unique_id", 0x5647505500000000ull + gpu->index + 1u);
	tree_line(text, "num_xcc", (uint64_t)gp_desc_get(desc, GP_DESC_XCC_COUNT));
	tree_line(text, "max_engine_clk_ccompute", 3000);
}

static int tree_cache(const char *nodes, const struct gp_vdev *gpu, uint32_t index, uint32_t level, uint32_t size)
{
	struct tree_text text = { .size = 0 };
	uint32_t node = gpu->index + 1u;
	int r = tree_folder("%s/%u/caches/%u", nodes, node, index);

	if (r < 0)
		return r;
	tree_line(&text, "processor_id_low", 2147487744u + gpu->index * 4096u);
	tree_line(&text, "level", level);
	tree_line(&text, "size", size);
	tree_line(&text, "cache_line_size", 128);
	tree_line(&text, "cache_lines_per_tag", 1);
	tree_line(&text, "association", 16);
	tree_line(&text, "latency", 0);
	tree_line(&text, "type", 9);
	text.size += (size_t)snprintf(text.text + text.size, sizeof(text.text) - text.size, "sibling_map 1,0\n");
	return tree_file(text.text, "%s/%u/caches/%u/properties", nodes, node, index);
}

static int tree_gpu(const struct gp_vdev *gpu, const char *nodes)
{
	struct tree_text text = { .size = 0 };
	uint32_t node = gpu->index + 1u, link = 1;
	char id[16];
	int r = tree_node_folders(nodes, node);

	snprintf(id, sizeof(id), "%u\n", gpu->gpu_id);
	tree_gpu_properties(gpu, &text);
	if (r == 0)
		r = tree_file(id, "%s/%u/gpu_id", nodes, node);
	if (r == 0)
		r = tree_file(gpu->identity->name, "%s/%u/name", nodes, node);
	if (r == 0)
		r = tree_file(text.text, "%s/%u/properties", nodes, node);
	if (r == 0)
		r = tree_bank(nodes, node, 1, (uint64_t)gp_desc_get(gpu->desc, GP_DESC_MEMORY_SIZE),
			      gpu->identity->memory_width, gpu->identity->memory_clock);
	if (r == 0)
		r = tree_cache(nodes, gpu, 0, 1, 16);
	if (r == 0)
		r = tree_cache(nodes, gpu, 1, 2, gpu->identity->l2_size);
	if (r == 0)
		r = tree_link(nodes, node, 0, 0, false);
	for (uint32_t i = 0; r == 0 && i < gpu->node->gpu_count; i++)
		if (i != gpu->index)
			r = tree_link(nodes, node, link++, i + 1u, true);
	return r;
}

int gp_tree_topology(const struct gp_vnode *node, const char *dir, struct gp_error *error)
{
	struct tree_text system = { .size = 0 };
	char nodes[TREE_PATH];
	int r = tree_folder("%s/topology", dir);

	tree_line(&system, "platform_oem", 35498446626881ull);
	tree_line(&system, "platform_id", 81985529216486895ull);
	tree_line(&system, "platform_rev", 1);
	snprintf(nodes, sizeof(nodes), "%s/topology/nodes", dir);
	if (r == 0)
		r = tree_folder("%s", nodes);
	if (r == 0)
		r = tree_folder("%s/proc", dir);
	if (r == 0)
		r = tree_file("2\n", "%s/topology/generation_id", dir);
	if (r == 0)
		r = tree_file(system.text, "%s/topology/system_properties", dir);
	if (r == 0)
		r = tree_cpu(node, nodes);
	for (uint32_t i = 0; r == 0 && i < node->gpu_count; i++)
		r = tree_gpu(&node->gpus[i], nodes);
	return r < 0 ? gp_error_set(error, r, "cannot write the topology below %s: %s", dir, strerror(-r)) : 0;
}
