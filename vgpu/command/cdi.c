/* SPDX-License-Identifier: MIT */
/* `vgpu cdi`: the node around this process as a specification of the Container Device Interface, so that containers get
 * it as they get a GPU. Mounts, not device nodes: the node's files are a file system's. Prints; starts nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/json_writer.h"
#include "vgpu/command/cdi.h"
#include "vgpu/files/namespace.h"

/* bind: "bind" or, with all that is mounted below it, "rbind"; access: "ro" or "rw". */
struct cdi_mount {
	const char *from, *to, *bind, *access;
};

static void cdi_mount(struct gp_json_writer *writer, const struct cdi_mount *mount)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_string(writer, "hostPath", mount->from);
	gp_json_writer_string(writer, "containerPath", mount->to);
	gp_json_writer_begin(writer, "options", '[');
	gp_json_writer_string(writer, NULL, mount->bind);
	gp_json_writer_string(writer, NULL, mount->access);
	gp_json_writer_end(writer, ']');
	gp_json_writer_end(writer, '}');
}

/* "renderD" and digits. */
static bool cdi_is_render(const char *name)
{
	size_t digits = strncmp(name, "renderD", 7) != 0 ? 0 : strspn(name + 7, "0123456789");

	return digits && !name[7 + digits] && digits < 8;
}

static void cdi_renders(struct gp_json_writer *writer)
{
	DIR *folder = opendir("/dev/dri");
	const struct dirent *entry;
	char from[64], to[64];

	while (folder && (entry = readdir(folder))) {
		if (!cdi_is_render(entry->d_name))
			continue;
		(void)snprintf(from, sizeof(from), GP_NAMESPACE_FUSE "/%.20s", entry->d_name);
		(void)snprintf(to, sizeof(to), "/dev/dri/%.20s", entry->d_name);
		cdi_mount(writer, &(struct cdi_mount){ from, to, "bind", "rw" });
	}
	if (folder)
		closedir(folder);
}

int gp_vgpu_cdi(void)
{
	static const char *const folders[] = { "/sys/devices/virtual", "/sys/class", "/sys/module" };
	struct gp_json_writer writer;

	if (access(GP_NAMESPACE_FUSE "/kfd", F_OK)) {
		fprintf(stderr, "vgpu: there is no node here: vgpu run [--name NAME] -- vgpu cdi (front end fuse)\n");
		return -ENODEV;
	}
	gp_json_writer_init(&writer, stdout);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_string(&writer, "cdiVersion", "0.5.0");
	gp_json_writer_string(&writer, "kind", "gpreempt.dev/vgpu");
	gp_json_writer_begin(&writer, "devices", '[');
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_string(&writer, "name", "all");
	gp_json_writer_begin(&writer, "containerEdits", '{');
	gp_json_writer_begin(&writer, "env", '[');
	gp_json_writer_string(&writer, NULL, "HSA_USERPTR_FOR_PAGED_MEM=0");
	gp_json_writer_end(&writer, ']');
	gp_json_writer_begin(&writer, "mounts", '[');
	cdi_mount(&writer, &(struct cdi_mount){ GP_NAMESPACE_FUSE "/kfd", "/dev/kfd", "bind", "rw" });
	cdi_renders(&writer);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		cdi_mount(&writer, &(struct cdi_mount){ folders[i], folders[i], "rbind", "ro" });
	gp_json_writer_end(&writer, ']');
	gp_json_writer_end(&writer, '}');
	gp_json_writer_end(&writer, '}');
	gp_json_writer_end(&writer, ']');
	gp_json_writer_end(&writer, '}');
	return ferror(stdout) || fflush(stdout) ? -EIO : 0;
}
