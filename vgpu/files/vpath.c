/* SPDX-License-Identifier: MIT */
/* Owns the list of what the node provides, where the file system cannot be changed for the clients. */
#include <string.h>
#include "vgpu/files/vpath.h"

#define VPATH_RENDER       "dev/dri/renderD"
#define VPATH_RENDER_MINOR 128u

static const char *const vpath_provided[] = {
	"dev/kfd", "dev/dri", "sys/class/kfd", "sys/devices/virtual/kfd", "sys/module/amdgpu", "sys/kernel/debug/kfd",
};

/* Appends the components of text to path, which has none or ends with one. */
static bool vpath_append(char *path, size_t *size, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "/");

		if (length == 2u && !strncmp(text, "..", 2)) {
			while (*size && path[*size - 1u] != '/')
				(*size)--;
			*size -= *size ? 1u : 0;
		} else if (length && !(length == 1u && *text == '.')) {
			if (*size + length + 2u > GP_VPATH_SIZE)
				return false;
			if (*size)
				path[(*size)++] = '/';
			memcpy(path + *size, text, length);
			*size += length;
		}
		text += length;
		text += *text == '/';
	}
	path[*size] = 0;
	return true;
}

bool gp_vpath_resolve(const char *base, const char *path, char *ret_path)
{
	char joined[GP_VPATH_SIZE];
	size_t size = 0;

	joined[0] = 0;
	if (!*path || (*path != '/' && !vpath_append(joined, &size, base)) || !vpath_append(joined, &size, path))
		return false;
	/* A slash at the end asks for a folder: kept, for whoever opens it to judge. */
	if (path[strlen(path) - 1u] == '/' && size && size + 2u <= GP_VPATH_SIZE) {
		joined[size++] = '/';
		joined[size] = 0;
	}
	for (size_t i = 0; i < sizeof(vpath_provided) / sizeof(vpath_provided[0]); i++) {
		size_t length = strlen(vpath_provided[i]);

		if (!strncmp(joined, vpath_provided[i], length) && (!joined[length] || joined[length] == '/')) {
			memcpy(ret_path, joined, size + 1u);
			return true;
		}
	}
	return false;
}

bool gp_vpath_is_device(const char *path, uint32_t gpu_count, uint32_t *ret_number)
{
	const char *digits = path + strlen(VPATH_RENDER);
	uint32_t minor = 0;

	if (!strcmp(path, "dev/kfd")) {
		*ret_number = 0;
		return true;
	}
	if (strncmp(path, VPATH_RENDER, strlen(VPATH_RENDER)) != 0 || strlen(digits) != 3u)
		return false;
	for (size_t i = 0; i < 3u; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		minor = minor * 10u + (uint32_t)(digits[i] - '0');
	}
	if (minor < VPATH_RENDER_MINOR || minor - VPATH_RENDER_MINOR >= gpu_count)
		return false;
	*ret_number = 1u + minor - VPATH_RENDER_MINOR;
	return true;
}
