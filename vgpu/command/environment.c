/* SPDX-License-Identifier: MIT */
/* What a command finds in its environment, and what of the host it should know of. Only `vgpu run` uses it: it prints.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "vgpu/command/control.h"
#include "vgpu/command/environment.h"

/* ROCr before 6 ends its table of devices at gfx90c and refuses gfx942. Its version is in its file's name: 1.12 came
 * with 6.0. */
static bool environment_rocr_is_old(char *ret_file, size_t file_size)
{
	static const char *const folders[] = {
		"/opt/rocm/lib",         "/usr/local/lib", "/usr/lib/x86_64-linux-gnu",
		"/lib/x86_64-linux-gnu", "/usr/lib64",     "/usr/lib",
	};
	const char *library_path = getenv("LD_LIBRARY_PATH");
	char path[PATH_MAX + 64], real[PATH_MAX];
	unsigned int major, minor;
	const char *version;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) + 1u; i++) {
		const char *folder = i ? folders[i - 1u] : library_path;

		if (!folder || !*folder)
			continue;
		snprintf(path, sizeof(path), "%.*s/libhsa-runtime64.so.1", (int)strcspn(folder, ":"), folder);
		if (!realpath(path, real))
			continue;
		version = strstr(real, ".so.");
		snprintf(ret_file, file_size, "%s", real);
		return version && sscanf(version, ".so.%u.%u", &major, &minor) == 2 &&
		       (major < 1u || (major == 1u && minor < 12u));
	}
	return false;
}

void gp_environment_set(const char *text)
{
	const char *path = getenv("PATH");
	char value[PATH_MAX], file[PATH_MAX], joined[8192];

	/* Rings and signals then lie in memory shared with the device, where its atomics are real. */
	setenv("HSA_USERPTR_FOR_PAGED_MEM", "0", 1);
	if (gp_control_value(text, "name", value, sizeof(value)))
		setenv("VGPU_NAME", value, 1);
	if (gp_control_value(text, "dilation", value, sizeof(value)))
		setenv("VGPU_DILATION", value, 1);
	if (gp_control_value(text, "bin", value, sizeof(value)) &&
	    snprintf(joined, sizeof(joined), "%s:%s", value,
		     path ? path : "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin") < (int)sizeof(joined))
		setenv("PATH", joined, 1);
	if (gp_control_value(text, "override", value, sizeof(value)) && strcmp(value, "-") != 0 &&
	    !getenv("HSA_OVERRIDE_GFX_VERSION") && environment_rocr_is_old(file, sizeof(file))) {
		setenv("HSA_OVERRIDE_GFX_VERSION", value, 1);
		fprintf(stderr,
			"vgpu: %s is older than ROCm 6 and does not know this device: HSA_OVERRIDE_GFX_VERSION=%s is set\n",
			file, value);
	}
}
