/* SPDX-License-Identifier: MIT */
/* Owns what is known of NVIDIA GPUs: what the driver's own files say (lib/nvidia.h), who has the devices open, and what
 * nvidia-smi says of modes that no file tells. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/clean.h"
#include "cli/doctor/facts.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/nvidia.h"

#define NVIDIA_PROC      "/proc/driver/nvidia"
#define NVIDIA_FILE_SIZE (16u << 20)
/* Bounded: on a GPU in trouble it may hang. */
#define NVIDIA_SMI \
	"timeout 10 nvidia-smi --query-gpu=pci.bus_id,compute_mode,persistence_mode,mig.mode.current --format=csv,noheader 2>/dev/null"

static void nvidia_gpu(struct gp_facts_nvidia *nvidia, const char *root, const char *place)
{
	struct gp_facts_nvidia_gpu *gpu = &nvidia->gpus[nvidia->gpu_count];
	struct gp_nvidia_gpu found;
	char path[64];

	if (nvidia->gpu_count == GP_FACTS_GPU_MAX || gp_nvidia_read_gpu(root, place, &found, NULL))
		return;
	gpu->gpu_id = found.gpu_id;
	(void)snprintf(gpu->bdf, sizeof(gpu->bdf), "%s", found.bdf);
	gp_clean_copy(gpu->model, sizeof(gpu->model), found.model);
	gpu->minor = found.has_minor ? found.minor : GP_FACTS_UNKNOWN;
	gpu->has_mig = found.has_mig;
	gpu->is_vgpu = found.is_vgpu;
	if (found.has_minor) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia%u", found.minor);
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

struct nvidia_look {
	struct gp_facts_look base;
	bool computes;
};

/* In a helper. Has it a GPU's own file open, and CUDA loaded? (nvidia-smi, persistenced and display servers have no
 * libcuda.) */
static void nvidia_look_aside(void *data)
{
	struct nvidia_look *look = data;
	const char *root = look->base.root;
	uint64_t pid = look->base.pid;
	GP_AUTO_FREE char *maps = NULL;
	struct dirent *entry;
	bool found = false;
	char path[GP_FACTS_PATH_SIZE], target[64];
	size_t size = 0;
	ssize_t length;
	DIR *folder;

	gp_facts_process_path(root, pid, "fd", path);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = '\0';
		found = !strncmp(target, "/dev/nvidia", 11) && isdigit((unsigned char)target[11]);
	}
	if (folder)
		closedir(folder);
	if (!found)
		return;
	gp_facts_process_path(root, pid, "maps", path);
	look->computes = !gp_file_read(path, NVIDIA_FILE_SIZE, &maps, &size, NULL) && strstr(maps, "libcuda.so");
}

static bool nvidia_computes(struct gp_doctor_facts *facts, const char *root, uint64_t pid)
{
	struct nvidia_look look = { .base.pid = pid };

	(void)snprintf(look.base.root, sizeof(look.base.root), "%s", root);
	return gp_facts_look(facts, nvidia_look_aside, &look.base, sizeof(look)) && look.computes;
}

static void nvidia_processes(struct gp_doctor_facts *facts, const char *root)
{
	struct dirent *entry;
	char path[512];
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s/proc", root);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		uint64_t pid = strtoull(entry->d_name, NULL, 10);

		if (pid && facts->process_count < GP_FACTS_PROCESS_MAX && nvidia_computes(facts, root, pid))
			gp_facts_add_cuda(facts, root, pid);
	}
	if (folder)
		closedir(folder);
}

void gp_facts_add_nvidia(struct gp_doctor_facts *facts, const char *root)
{
	struct gp_facts_nvidia *nvidia = &facts->nvidia;
	struct gp_nvidia_driver driver = { 0 };
	struct dirent *entry;
	char path[512];
	DIR *folder;
	int r = gp_nvidia_read_driver(root, &driver, NULL);

	/* A file that makes no sense is a driver all the same. */
	if (r && r != -EINVAL)
		return;
	nvidia->has_driver = true;
	(void)snprintf(nvidia->version, sizeof(nvidia->version), "%s", driver.version);
	nvidia->major = r ? GP_FACTS_UNKNOWN : driver.major;
	nvidia->is_open = driver.is_open;
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
	nvidia->mps_pid = (uint64_t)gp_nvidia_mps(root);
	nvidia_processes(facts, root);
}
