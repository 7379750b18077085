/* SPDX-License-Identifier: MIT */
/* Owns the reading of /proc/driver/nvidia. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/aside.h"
#include "lib/nvidia.h"
#include "lib/cleanup.h"
#include "lib/file.h"

#define NVIDIA_PROC      "/proc/driver/nvidia"
#define NVIDIA_FILE_SIZE 65536u
#define NVIDIA_PATH_SIZE 512u

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build …", or without "Open": the first
 * word of numbers with dots. */
int gp_nvidia_parse_version(const char *text, struct gp_nvidia_driver *ret_driver, struct gp_error *error)
{
	struct gp_nvidia_driver driver = { 0 };
	const char *line = strstr(text, "NVRM version:"), *word;
	size_t size, line_size = line ? strcspn(line, "\n") : 0;

	for (word = line; line && word < line + line_size; word += size ? size : 1) {
		size = strcspn(word, " \t\n");
		if (size == 4 && !strncmp(word, "Open", 4))
			driver.is_open = true;
		if (!size || !isdigit((unsigned char)*word) || strspn(word, "0123456789.") != size ||
		    !memchr(word, '.', size) || size >= sizeof(driver.version))
			continue;
		memcpy(driver.version, word, size);
		driver.major = (uint32_t)strtoul(driver.version, NULL, 10);
		*ret_driver = driver;
		return 0;
	}
	return gp_error_set(error, -EINVAL, NVIDIA_PROC "/version tells no version of the driver");
}

static bool nvidia_line(const char *text, const char *name, char *value, size_t value_size)
{
	size_t name_size = strlen(name), size;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (strncmp(text, name, name_size) != 0 || text[name_size] != ':')
			continue;
		text += name_size + 1;
		text += strspn(text, " \t");
		size = strcspn(text, "\n");
		while (size && isspace((unsigned char)text[size - 1]))
			size--;
		if (size >= value_size)
			size = value_size - 1;
		memcpy(value, text, size);
		value[size] = '\0';
		return true;
	}
	return false;
}

/* A vGPU is named after its profile: "GRID T4-8C", "NVIDIA A40-4Q", "NVIDIA A100-4-20C". */
static bool nvidia_is_vgpu(const char *model)
{
	const char *dash = strrchr(model, '-');
	size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
	const char *end = dash ? dash + 1 + digits : NULL;

	if (!strncmp(model, "GRID ", 5) || !strncmp(model, "NVIDIA GRID ", 12))
		return true;
	return digits && *end && strchr("ABCQ", *end) && (!end[1] || (isdigit((unsigned char)end[1]) && !end[2]));
}

int gp_nvidia_parse_gpu(const char *text, const char *folder, struct gp_nvidia_gpu *ret_gpu, struct gp_error *error)
{
	struct gp_nvidia_gpu gpu = { 0 };
	unsigned int domain, bus, slot, function;
	char value[64], *end;
	int used = 0;

	if (sscanf(folder, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &used) != 4 || folder[used] ||
	    domain > 0xffff || slot > 0x1f)
		return gp_error_set(error, -EINVAL, NVIDIA_PROC "/gpus/%.32s is not a place on the bus", folder);
	gpu.gpu_id = domain << 16 | bus << 8 | slot;
	snprintf(gpu.bdf, sizeof(gpu.bdf), "%04x:%02x:%02x.%x", domain, bus, slot, function);
	if (!nvidia_line(text, "Model", gpu.model, sizeof(gpu.model)) || !*gpu.model)
		snprintf(gpu.model, sizeof(gpu.model), "NVIDIA GPU");
	nvidia_line(text, "GPU UUID", gpu.uuid, sizeof(gpu.uuid));
	if (nvidia_line(text, "Device Minor", value, sizeof(value))) {
		unsigned long minor = strtoul(value, &end, 10);

		gpu.has_minor = isdigit((unsigned char)*value) && !*end && minor < 255;
		gpu.minor = gpu.has_minor ? (uint32_t)minor : 0;
	}
	gpu.is_excluded = nvidia_line(text, "GPU Excluded", value, sizeof(value)) && !strcmp(value, "Yes");
	gpu.is_vgpu = nvidia_is_vgpu(gpu.model);
	*ret_gpu = gpu;
	return 0;
}

/* MIG instances have folders here. A GPU with MIG on and without instances offers nothing to compute on. */
static bool nvidia_has_mig(const char *root, const struct gp_nvidia_gpu *gpu)
{
	char path[NVIDIA_PATH_SIZE];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "%s" NVIDIA_PROC "/capabilities/gpu%u/mig", root, gpu->minor);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		found |= !strncmp(entry->d_name, "gi", 2) && isdigit((unsigned char)entry->d_name[2]);
	if (folder)
		closedir(folder);
	return found;
}

static int nvidia_by_place(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int nvidia_is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int gp_nvidia_read_gpu(const char *root, const char *folder, struct gp_nvidia_gpu *ret_gpu, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	char path[NVIDIA_PATH_SIZE];
	size_t size;
	int r;

	*ret_gpu = (struct gp_nvidia_gpu){ 0 };
	snprintf(path, sizeof(path), "%s" NVIDIA_PROC "/gpus/%.32s/information", root, folder);
	r = gp_file_read(path, NVIDIA_FILE_SIZE, &text, &size, error);
	if (!r)
		r = gp_nvidia_parse_gpu(text, folder, ret_gpu, error);
	if (!r)
		ret_gpu->has_mig = nvidia_has_mig(root, ret_gpu);
	return r;
}

int gp_nvidia_read_driver(const char *root, struct gp_nvidia_driver *ret_driver, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	char path[NVIDIA_PATH_SIZE];
	size_t size;
	int r;

	snprintf(path, sizeof(path), "%s" NVIDIA_PROC "/version", root);
	r = gp_file_read(path, NVIDIA_FILE_SIZE, &text, &size, error);
	return r ? r : gp_nvidia_parse_version(text, ret_driver, error);
}

int gp_nvidia_topology(const char *root, struct gp_nvidia_driver *ret_driver, struct gp_nvidia_gpu *gpus,
		       uint32_t count, struct gp_error *error)
{
	char path[NVIDIA_PATH_SIZE];
	struct dirent **entries = NULL;
	uint32_t found = 0;
	int r, entry_count;

	r = gp_nvidia_read_driver(root, ret_driver, error);
	if (r)
		return r == -ENOENT ? 0 : r;
	snprintf(path, sizeof(path), "%s" NVIDIA_PROC "/gpus", root);
	entry_count = scandir(path, &entries, nvidia_is_name, nvidia_by_place);
	for (int i = 0; i < entry_count; i++) {
		if (!r && found < count)
			r = gp_nvidia_read_gpu(root, entries[i]->d_name, &gpus[found], error);
		found += !r && found < count && !gpus[found].is_excluded;
		free(entries[i]);
	}
	free(entries);
	return r ? r : (int)found;
}

struct nvidia_look {
	char folder[NVIDIA_PATH_SIZE], name[32]; /* of a process */
};

/* In a helper. */
static void nvidia_look(void *data)
{
	struct nvidia_look *look = data;
	char path[NVIDIA_PATH_SIZE + 8];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/comm", look->folder);
	stream = fopen(path, "re");
	if (stream && !fgets(look->name, sizeof(look->name), stream))
		*look->name = '\0';
	if (stream)
		fclose(stream);
}

pid_t gp_nvidia_mps(const char *root)
{
	char path[NVIDIA_PATH_SIZE];
	struct dirent *entry;
	pid_t found = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/proc", root);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		struct nvidia_look look = { .name = "" };
		struct stat st;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(look.folder, sizeof(look.folder), "%s/proc/%.16s", root, entry->d_name);
		/* The kernel keeps 15 bytes of a name: of nvidia-cuda-mps-server and -control these. */
		if (!stat(look.folder, &st) &&
		    !gp_aside_call(GP_ASIDE_MPS(st.st_uid), nvidia_look, &look, sizeof(look)) &&
		    !strncmp(look.name, "nvidia-cuda-mps", 15))
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (folder)
		closedir(folder);
	return found;
}
