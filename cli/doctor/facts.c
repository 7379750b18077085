/* SPDX-License-Identifier: MIT */
/* Owns what is known of the machine: kernel, module, devices, topology. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "cli/clean.h"
#include "cli/doctor/facts.h"
#include "lib/cleanup.h"
#include "lib/file.h"

#define FACTS_NODES      "/sys/class/kfd/kfd/topology/nodes"
#define FACTS_PARAMETERS "/sys/module/amdgpu/parameters"
#define FACTS_FILE_SIZE  (1u << 20)

/* AMDKFD_IOC_GET_VERSION; <linux/kfd_ioctl.h> would want libdrm's headers for this one call. */
struct facts_version {
	uint32_t major, minor;
};
#define FACTS_GET_VERSION _IOR('K', 0x01, struct facts_version)

uint64_t gp_facts_number(const char *root, const char *path)
{
	GP_AUTO_FREE char *text = NULL;
	char full[512], *end;
	uint64_t value;
	size_t size = 0;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	if (gp_file_read(full, FACTS_FILE_SIZE, &text, &size, NULL))
		return GP_FACTS_UNKNOWN;
	if (text[0] == 'Y' || text[0] == 'N')
		return text[0] == 'Y';
	/* -1 is "auto" for several parameters. */
	if (text[0] < '0' || text[0] > '9')
		return GP_FACTS_UNKNOWN;
	errno = 0;
	value = strtoull(text, &end, 0);
	return errno ? GP_FACTS_UNKNOWN : value;
}

static void facts_text(const char *root, const char *path, char *ret_text, size_t size)
{
	GP_AUTO_FREE char *text = NULL;
	char full[512];
	size_t length = 0;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	ret_text[0] = '\0';
	if (gp_file_read(full, FACTS_FILE_SIZE, &text, &length, NULL))
		return;
	text[strcspn(text, "\n")] = '\0';
	gp_clean_copy(ret_text, size, text);
}

/* "name value" lines. */
static uint64_t facts_property(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, length) && line[length] == ' ' && line[length + 1] >= '0' &&
		    line[length + 1] <= '9')
			return strtoull(line + length + 1, NULL, 10);
	}
	return GP_FACTS_UNKNOWN;
}

/* VMIDs that KFD may use (kfd.md: first_kfd_vmid): 13 on gfx9 data centre parts, 6 per XCD of a partitioned gfx942, 8
 * else. */
static uint64_t facts_process_max(const struct gp_facts *facts, const struct gp_facts_gpu *gpu)
{
	uint64_t vmids = gpu->gfx_version == GP_FACTS_UNKNOWN                   ? GP_FACTS_UNKNOWN :
			 gpu->gfx_version == 90402 && gpu->xcc_count == 1       ? 6 :
			 gpu->gfx_version >= 90008 && gpu->gfx_version < 100000 ? 13 :
										  8;

	if (facts->hws_max_conc_proc != GP_FACTS_UNKNOWN && facts->hws_max_conc_proc &&
	    facts->hws_max_conc_proc < vmids)
		return facts->hws_max_conc_proc;
	return vmids;
}

static void facts_gpu(struct gp_facts *facts, const char *root, const char *node)
{
	struct gp_facts_gpu gpu = { .node = (uint32_t)strtoul(node, NULL, 10) };
	GP_AUTO_FREE char *text = NULL;
	char path[256], full[512];
	uint64_t simds, per_cu;
	size_t size = 0;

	(void)snprintf(path, sizeof(path), FACTS_NODES "/%.32s/gpu_id", node);
	gpu.gpu_id = gp_facts_number(root, path);
	if (!gpu.gpu_id || gpu.gpu_id == GP_FACTS_UNKNOWN || facts->gpu_count == GP_FACTS_GPU_MAX)
		return; /* a CPU, or one that this container may not use */
	(void)snprintf(full, sizeof(full), "%s" FACTS_NODES "/%.32s/properties", root, node);
	if (gp_file_read(full, FACTS_FILE_SIZE, &text, &size, NULL))
		return;
	(void)snprintf(path, sizeof(path), FACTS_NODES "/%.32s/name", node);
	facts_text(root, path, gpu.name, sizeof(gpu.name));
	simds = facts_property(text, "simd_count");
	per_cu = facts_property(text, "simd_per_cu");
	gpu.cu_count =
		simds != GP_FACTS_UNKNOWN && per_cu && per_cu != GP_FACTS_UNKNOWN ? simds / per_cu : GP_FACTS_UNKNOWN;
	gpu.slot_count = facts_property(text, "num_cp_queues");
	gpu.xcc_count = facts_property(text, "num_xcc");
	gpu.gfx_version = facts_property(text, "gfx_target_version");
	gpu.render_minor = facts_property(text, "drm_render_minor");
	gpu.sdma_queue_count = facts_property(text, "num_sdma_engines");
	per_cu = facts_property(text, "num_sdma_queues_per_engine");
	gpu.sdma_queue_count = gpu.sdma_queue_count != GP_FACTS_UNKNOWN && per_cu != GP_FACTS_UNKNOWN ?
				       gpu.sdma_queue_count * per_cu :
				       GP_FACTS_UNKNOWN;
	gpu.process_max = facts_process_max(facts, &gpu);
	facts->gpus[facts->gpu_count++] = gpu;
}

static void facts_topology(struct gp_facts *facts, const char *root)
{
	struct dirent *entry;
	char path[512];
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s" FACTS_NODES, root);
	folder = opendir(path);
	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			facts_gpu(facts, root, entry->d_name);
	closedir(folder);
}

void gp_facts_file(struct gp_facts_file *file, const char *root, const char *path)
{
	struct group *group;
	char full[512];
	struct stat st;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	(void)snprintf(file->path, sizeof(file->path), "%s", path);
	file->is_there = !stat(full, &st);
	file->is_usable = file->is_there && !access(full, R_OK | W_OK);
	if (!file->is_there)
		return;
	file->mode = st.st_mode & 07777u;
	file->gid = st.st_gid;
	group = getgrgid(st.st_gid);
	if (group)
		gp_clean_copy(file->group, sizeof(file->group), group->gr_name);
}

static void facts_renders(struct gp_facts *facts, const char *root)
{
	struct dirent *entry;
	char path[512];
	DIR *folder;

	(void)snprintf(path, sizeof(path), "%s/dev/dri", root);
	folder = opendir(path);
	if (!folder)
		return;
	while ((entry = readdir(folder))) {
		if (strncmp(entry->d_name, "renderD", 7) != 0 || facts->render_count == GP_FACTS_RENDER_MAX)
			continue;
		(void)snprintf(path, sizeof(path), "/dev/dri/%.40s", entry->d_name);
		gp_facts_file(&facts->renders[facts->render_count++], root, path);
	}
	closedir(folder);
}

/* Asking makes this program a process of KFD's for a moment; it gets no queue. */
static void facts_kfd_version(struct gp_facts *facts, const char *root)
{
	struct facts_version version = { 0 };
	char text[64];
	int fd;

	facts->kfd_major = facts->kfd_minor = GP_FACTS_UNKNOWN;
	if (*root) {
		unsigned int major, minor;

		facts_text(root, "/kfd_version", text, sizeof(text));
		if (sscanf(text, "%u.%u", &major, &minor) == 2) {
			facts->kfd_major = major;
			facts->kfd_minor = minor;
		}
		return;
	}
	fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!ioctl(fd, FACTS_GET_VERSION, &version)) {
		facts->kfd_major = version.major;
		facts->kfd_minor = version.minor;
	}
	close(fd);
}

static void facts_kernel(struct gp_facts *facts, const char *root)
{
	struct utsname machine = { .release = "" };
	unsigned int major = 0, minor = 0;

	facts_text(root, "/proc/sys/kernel/osrelease", facts->kernel, sizeof(facts->kernel));
	if (!facts->kernel[0] && !uname(&machine))
		gp_clean_copy(facts->kernel, sizeof(facts->kernel), machine.release);
	facts->kernel_major = facts->kernel_minor = GP_FACTS_UNKNOWN;
	if (sscanf(facts->kernel, "%u.%u", &major, &minor) == 2) {
		facts->kernel_major = major;
		facts->kernel_minor = minor;
	}
}

int gp_facts_gather(struct gp_facts *facts, struct gp_error *error)
{
	const char *root = getenv(GP_FACTS_ROOT_ENV);
	struct gp_error why = { "" };
	char path[512];
	bool is_refused;

	root = root ? root : "";
	memset(facts, 0, sizeof(*facts));
	facts->processes = calloc(GP_FACTS_PROCESS_MAX, sizeof(*facts->processes));
	if (!facts->processes)
		return gp_error_set(error, -ENOMEM, "out of memory");
	facts_kernel(facts, root);
	(void)snprintf(path, sizeof(path), "%s/sys/module/amdgpu", root);
	facts->has_module = !access(path, F_OK);
	facts->cwsr_enable = gp_facts_number(root, FACTS_PARAMETERS "/cwsr_enable");
	facts->sched_policy = gp_facts_number(root, FACTS_PARAMETERS "/sched_policy");
	facts->num_kcq = gp_facts_number(root, FACTS_PARAMETERS "/num_kcq");
	facts->hws_max_conc_proc = gp_facts_number(root, FACTS_PARAMETERS "/hws_max_conc_proc");
	facts->mes = gp_facts_number(root, FACTS_PARAMETERS "/mes");
	gp_facts_file(&facts->kfd, root, "/dev/kfd");
	facts_renders(facts, root);
	facts_topology(facts, root);
	facts_kfd_version(facts, root);
	gp_facts_add_processes(facts, root);
	gp_facts_add_nvidia(facts, root);
	gp_facts_add_log(facts, root);
	facts->has_daemon = !gp_state_ask(&facts->state, NULL, NULL, &is_refused, &why);
	(void)snprintf(facts->daemon_why, sizeof(facts->daemon_why), "%s", why.text);
	return 0;
}

void gp_facts_fini(struct gp_facts *facts)
{
	free(facts->processes);
	if (facts->has_daemon)
		gp_state_fini(&facts->state);
	memset(facts, 0, sizeof(*facts));
}
