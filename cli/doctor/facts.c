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
#include "lib/kfd.h"

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

/* VMIDs, or fewer where the module's parameter says so. */
static uint64_t facts_process_max(const struct gp_doctor_facts *facts, const struct gp_kfd_node *node)
{
	uint64_t vmids = gp_kfd_process_max(node);

	if (facts->hws_max_conc_proc != GP_FACTS_UNKNOWN && facts->hws_max_conc_proc &&
	    facts->hws_max_conc_proc < vmids)
		return facts->hws_max_conc_proc;
	return vmids;
}

static void facts_gpu(struct gp_doctor_facts *facts, const char *root, const struct gp_kfd_node *node)
{
	struct gp_facts_gpu *gpu = &facts->gpus[facts->gpu_count++];
	char sysfs[512];

	*gpu = (struct gp_facts_gpu){
		.node = node->node,
		.gpu_id = node->gpu_id,
		.cu_count = gp_kfd_cu_count(node),
		.slot_count = node->cp_queue_count,
		.xcc_count = node->xcc_count,
		.gfx_version = node->gfx_version,
		.render_minor = node->render_minor,
		.sdma_queue_count =
			node->sdma_engine_count != GP_KFD_UNKNOWN && node->sdma_queues_per_engine != GP_KFD_UNKNOWN ?
				node->sdma_engine_count * node->sdma_queues_per_engine :
				GP_FACTS_UNKNOWN,
		.process_max = facts_process_max(facts, node),
	};
	gp_clean_copy(gpu->name, sizeof(gpu->name), node->name);
	(void)snprintf(sysfs, sizeof(sysfs), "%s/sys", root);
	gp_safety_look(node, sysfs, &gpu->part);
	if (facts->kernel_major != GP_FACTS_UNKNOWN && facts->kernel_minor != GP_FACTS_UNKNOWN)
		gpu->part.kernel = 1000 * facts->kernel_major + facts->kernel_minor;
}

static void facts_topology(struct gp_doctor_facts *facts, const char *root)
{
	struct gp_kfd_node nodes[GP_FACTS_GPU_MAX];
	char path[512];
	int count;

	(void)snprintf(path, sizeof(path), "%s" GP_KFD_SYSFS, root);
	count = gp_kfd_topology(path, nodes, GP_FACTS_GPU_MAX, NULL);
	for (int i = 0; i < count; i++)
		facts_gpu(facts, root, &nodes[i]);
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

static void facts_renders(struct gp_doctor_facts *facts, const char *root)
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
static void facts_kfd_version(struct gp_doctor_facts *facts, const char *root)
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

static void facts_kernel(struct gp_doctor_facts *facts, const char *root)
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

int gp_facts_gather(struct gp_doctor_facts *facts, struct gp_error *error)
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
	facts->daemon_error = gp_state_ask(&facts->state, NULL, NULL, &is_refused, &why);
	facts->has_daemon = !facts->daemon_error;
	(void)snprintf(facts->daemon_why, sizeof(facts->daemon_why), "%s", why.text);
	return 0;
}

void gp_facts_fini(struct gp_doctor_facts *facts)
{
	free(facts->processes);
	if (facts->has_daemon)
		gp_state_fini(&facts->state);
	memset(facts, 0, sizeof(*facts));
}
