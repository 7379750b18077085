/* SPDX-License-Identifier: MIT */
/* `vgpu cdi`: the node around this process as a specification of the Container Device Interface, so that containers get
 * it as they get a GPU. Mounts, not device nodes: the node's files are a file system's. Prints; starts nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "vgpu/command/cdi.h"
#include "vgpu/files/namespace.h"

static void cdi_mount(const char *from, const char *to, const char *options, bool is_first)
{
	printf("%s\n        { \"hostPath\": \"%s\", \"containerPath\": \"%s\", \"options\": [%s] }",
	       is_first ? "" : ",", from, to, options);
}

/* "renderD" and digits: nothing that must be quoted. */
static bool cdi_is_render(const char *name)
{
	size_t digits = strncmp(name, "renderD", 7) != 0 ? 0 : strspn(name + 7, "0123456789");

	return digits && !name[7 + digits] && digits < 8;
}

static void cdi_renders(void)
{
	DIR *folder = opendir("/dev/dri");
	const struct dirent *entry;
	char from[64], to[64];

	while (folder && (entry = readdir(folder))) {
		if (!cdi_is_render(entry->d_name))
			continue;
		(void)snprintf(from, sizeof(from), GP_NAMESPACE_FUSE "/%.20s", entry->d_name);
		(void)snprintf(to, sizeof(to), "/dev/dri/%.20s", entry->d_name);
		cdi_mount(from, to, "\"bind\", \"rw\"", false);
	}
	if (folder)
		closedir(folder);
}

int gp_vgpu_cdi(void)
{
	static const char *const folders[] = { "/sys/devices/virtual", "/sys/class", "/sys/module" };

	if (access(GP_NAMESPACE_FUSE "/kfd", F_OK)) {
		fprintf(stderr, "vgpu: there is no node here: vgpu run [--name NAME] -- vgpu cdi (front end fuse)\n");
		return -ENODEV;
	}
	printf("{\n  \"cdiVersion\": \"0.5.0\",\n  \"kind\": \"gpreempt.dev/vgpu\",\n  \"devices\": [\n"
	       "    { \"name\": \"all\", \"containerEdits\": {\n      \"env\": [\"HSA_USERPTR_FOR_PAGED_MEM=0\"],\n"
	       "      \"mounts\": [");
	cdi_mount(GP_NAMESPACE_FUSE "/kfd", "/dev/kfd", "\"bind\", \"rw\"", true);
	cdi_renders();
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		cdi_mount(folders[i], folders[i], "\"rbind\", \"ro\"", false);
	printf("\n      ] } }\n  ]\n}\n");
	return ferror(stdout) || fflush(stdout) ? -EIO : 0;
}
