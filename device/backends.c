/* SPDX-License-Identifier: MIT */
/* The list of backends. A new backend is a line here. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "device/device.h"

extern const struct gp_backend_ops gp_backend_kfd, gp_backend_nvidia, gp_backend_null;

const struct gp_backend_ops *const gp_backends[] = { &gp_backend_kfd, &gp_backend_nvidia, &gp_backend_null, NULL };
_Static_assert(sizeof(gp_backends) / sizeof(gp_backends[0]) <= GP_BACKEND_MAX + 1, "the daemon has room for all");

const struct gp_backend_ops *gp_backend_find(const char *name)
{
	for (uint32_t i = 0; gp_backends[i]; i++)
		if (!strcmp(gp_backends[i]->name, name))
			return gp_backends[i];
	return NULL;
}

void gp_backend_names(char names[GP_BACKEND_NAMES_SIZE])
{
	size_t used = 0;

	for (uint32_t i = 0; gp_backends[i] && used < GP_BACKEND_NAMES_SIZE; i++)
		used += (size_t)snprintf(names + used, GP_BACKEND_NAMES_SIZE - used, "%s%s", i ? ", " : "",
					 gp_backends[i]->name);
}

enum gp_unit gp_device_unit(uint32_t mechanism)
{
	const struct gp_mechanism_info *info = gp_mechanism_info(mechanism);

	switch (info ? info->unit : GP_MECHANISM_UNIT_DEVICE) {
	case GP_MECHANISM_UNIT_QUEUE: return GP_UNIT_QUEUE;
	case GP_MECHANISM_UNIT_PROCESS: return GP_UNIT_PROCESS;
	default: return GP_UNIT_DEVICE;
	}
}
