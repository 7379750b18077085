/* SPDX-License-Identifier: MIT */
/* Owns what is known of NVIDIA GPUs: the driver's own files, MPS, who has the devices open, and what nvidia-smi says of
 * modes that no file tells. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/clean.h"
#include "cli/doctor/facts.h"
#include "lib/cleanup.h"
#include "lib/file.h"

#define NVIDIA_PROC      "/proc/driver/nvidia"
#define NVIDIA_FILE_SIZE (16u << 20)
/* Bounded: on a GPU in trouble it may hang. */
#define NVIDIA_SMI \
	"timeout 10 nvidia-smi --query-gpu=pci.bus_id,compute_mode,persistence_mode,mig.mode.current --format=csv,noheader 2>/dev/null"

static char *nvidia_read(const char *root, const char *path)
{
	char full[512], *text = NULL;
	size_t size = 0;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	return gp_file_read(full, NVIDIA_FILE_SIZE, &text, &size, NULL) ? NULL : text;
}

static void nvidia_version(struct gp_facts_nvidia *nvidia, const char *text)
{
	const char *word = strstr(text, "NVRM version:");
	size_t size;

	for (; word && *word && *word != '\n' && !nvidia->version[0]; word += size ? size : 1) {
		size = strcspn(word, " \t\n");
		nvidia->is_open |= size == 4 && !strncmp(word, "Open", 4);
		if (size && isdigit((unsigned char)*word) && strspn(word, "0123456789.") == size &&
		    memchr(word, '.', size) && size < sizeof(nvidia->version))
			memcpy(nvidia->version, word, size);
	}
	nvidia->major = nvidia->version[0] ? strtoull(nvidia->version, NULL, 10) : GP_FACTS_UNKNOWN;
}

static void nvidia_line(const char *text, const char *name, char *ret_value, size_t size)
{
	char line[128];
	size_t length = strlen(name);

	for (; text && *text; text = strchr(text, '\n'), text += text ? 1 : 0) {
		if (strncmp(text, name, length) != 0 || text[length] != ':')
			continue;
		text += length + 1;
		text += strspn(text, " \t");
		(void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
		gp_clean_copy(ret_value, size, line);
		return;
	}
}

static bool nvidia_has_mig(const char *root, uint64_t minor)
{
	struct dirent *entry;
	bool found = false;
	char path[512];
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s" NVIDIA_PROC "/capabilities/gpu%llu/mig", root,
		       (unsigned long long)minor);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		found |= !strncmp(entry->d_name, "gi", 2) && isdigit((unsigned char)entry->d_name[2]);
	if (folder)
		closedir(folder);
	return found;
}

/* A vGPU is named after its profile: "GRID T4-8C", "NVIDIA A40-4Q". */
static bool nvidia_is_vgpu(const char *model)
{
	const char *end = strrchr(model, '-');
	size_t digits = end ? strspn(end + 1, "0123456789") : 0;

	if (!strncmp(model, "GRID ", 5) || !strncmp(model, "NVIDIA GRID ", 12))
		return true;
	end = end ? end + 1 + digits : NULL;
	return digits && *end && strchr("ABCQ", *end) && (!end[1] || (isdigit((unsigned char)end[1]) && !end[2]));
}

static void nvidia_gpu(struct gp_facts_nvidia *nvidia, const char *root, const char *place)
{
	struct gp_facts_nvidia_gpu *gpu = &nvidia->gpus[nvidia->gpu_count];
	GP_AUTO_FREE char *text = NULL;
	unsigned int domain, bus, slot;
	char path[256], minor[16] = "";

	if (nvidia->gpu_count == GP_FACTS_GPU_MAX || sscanf(place, "%8x:%2x:%2x.", &domain, &bus, &slot) != 3)
		return;
	(void)snprintf(path, sizeof(path), NVIDIA_PROC "/gpus/%.32s/information", place);
	text = nvidia_read(root, path);
	if (!text)
		return;
	gpu->gpu_id = (uint64_t)domain << 16 | bus << 8 | slot;
	(void)snprintf(gpu->bdf, sizeof(gpu->bdf), "%04x:%02x:%02x.0", domain & 0xffff, bus, slot);
	nvidia_line(text, "Model", gpu->model, sizeof(gpu->model));
	nvidia_line(text, "Device Minor", minor, sizeof(minor));
	gpu->minor = isdigit((unsigned char)minor[0]) ? strtoull(minor, NULL, 10) : GP_FACTS_UNKNOWN;
	gpu->has_mig = gpu->minor != GP_FACTS_UNKNOWN && nvidia_has_mig(root, gpu->minor);
	gpu->is_vgpu = nvidia_is_vgpu(gpu->model);
	if (gpu->minor != GP_FACTS_UNKNOWN) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia%llu", (unsigned long long)gpu->minor);
		gp_facts_file(&gpu->file, root, path);
	}
	nvidia->gpu_count++;
}

/* "00000000:00:06.0, Default, Disabled, Disabled" */
static void nvidia_smi_line(struct gp_facts_nvidia *nvidia, const char *line)
{
	char compute[32] = "", persistence[32] = "", mig[32] = "";
	unsigned int domain, bus, slot;

	if (sscanf(line, "%8x:%2x:%2x.%*x, %31[^,], %31[^,], %31[^,\n]", &domain, &bus, &slot, compute, persistence,
		   mig) < 4)
		return;
	for (uint32_t i = 0; i < nvidia->gpu_count; i++) {
		struct gp_facts_nvidia_gpu *gpu = &nvidia->gpus[i];

		if (gpu->gpu_id != ((uint64_t)domain << 16 | bus << 8 | slot))
			continue;
		gp_clean_copy(gpu->compute_mode, sizeof(gpu->compute_mode), compute);
		gp_clean_copy(gpu->persistence, sizeof(gpu->persistence), persistence);
		gpu->has_mig |= !strncmp(mig, "Enabled", 7);
	}
}

static void nvidia_smi(struct gp_facts_nvidia *nvidia, const char *root)
{
	char path[512], line[256];
	FILE *stream;

	(void)snprintf(path, sizeof(path), "%s/nvidia_smi", root);
	stream = *root ? fopen(path, "re") : popen(NVIDIA_SMI, "re");
	while (stream && fgets(line, sizeof(line), stream))
		nvidia_smi_line(nvidia, line);
	if (stream && *root)
		fclose(stream);
	else if (stream)
		pclose(stream);
}

/* Has it a GPU's own file open, and CUDA loaded? (nvidia-smi, persistenced and display servers have no libcuda.) */
static bool nvidia_computes(const char *root, const char *pid)
{
	GP_AUTO_FREE char *maps = NULL;
	struct dirent *entry;
	bool found = false;
	char path[512], target[64];
	ssize_t size;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s/proc/%.16s/fd", root, pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		(void)snprintf(path, sizeof(path), "%s/proc/%.16s/fd/%.16s", root, pid, entry->d_name);
		size = readlink(path, target, sizeof(target) - 1);
		target[size > 0 ? size : 0] = '\0';
		found = !strncmp(target, "/dev/nvidia", 11) && isdigit((unsigned char)target[11]);
	}
	if (folder)
		closedir(folder);
	if (!found)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%.16s/maps", pid);
	maps = nvidia_read(root, path);
	return maps && strstr(maps, "libcuda.so");
}

static void nvidia_processes(struct gp_facts *facts, const char *root)
{
	struct gp_facts_nvidia *nvidia = &facts->nvidia;
	struct dirent *entry;
	char path[512];
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s/proc", root);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		GP_AUTO_FREE char *name = NULL;
		uint64_t pid;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		pid = strtoull(entry->d_name, NULL, 10);
		(void)snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
		name = nvidia_read(root, path);
		/* The kernel keeps 15 bytes of a name. */
		if (name && !strncmp(name, "nvidia-cuda-mps", 15))
			nvidia->mps_pid = pid;
		if (facts->process_count < GP_FACTS_PROCESS_MAX && nvidia_computes(root, entry->d_name))
			gp_facts_add_cuda(facts, root, pid);
	}
	if (folder)
		closedir(folder);
}

void gp_facts_add_nvidia(struct gp_facts *facts, const char *root)
{
	struct gp_facts_nvidia *nvidia = &facts->nvidia;
	GP_AUTO_FREE char *text = nvidia_read(root, NVIDIA_PROC "/version");
	struct dirent *entry;
	char path[512];
	DIR *folder;

	if (!text)
		return;
	nvidia->has_driver = true;
	nvidia_version(nvidia, text);
	(void)snprintf(path, sizeof(path), "%s" NVIDIA_PROC "/gpus", root);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			nvidia_gpu(nvidia, root, entry->d_name);
	if (folder)
		closedir(folder);
	gp_facts_file(&nvidia->control, root, "/dev/nvidiactl");
	if (!nvidia->gpu_count)
		return;
	nvidia_smi(nvidia, root);
	nvidia_processes(facts, root);
}
