/* SPDX-License-Identifier: MIT */
/* The driver's description of its devices, /sys/class/kfd/kfd/topology, and the numbers beside it. Strict: a file that
 * is not what the driver writes is refused with its name, never half understood. */
#ifndef GP_DEVICE_KFD_TOPOLOGY_H
#define GP_DEVICE_KFD_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "device/device.h"
#include "lib/error.h"

#define GP_KFD_SYSFS     "/sys/class/kfd/kfd"
#define GP_KFD_NODES_MAX 128u

struct gp_kfd_node {
	uint32_t node, gpu_id; /* gpu_id 0: a CPU */
	char name[GP_DEVICE_NAME_SIZE];
	uint64_t simd_count, simd_per_cu, xcc_count, cp_queue_count, gfx_version, firmware, location_id, domain,
		memory_size, dilation, capability;
};

/* The text of one properties file: "name value" lines. Unknown names are skipped. -EINVAL and "file:line: …". */
int gp_kfd_parse_properties(const char *text, size_t size, const char *file_name, struct gp_kfd_node *node,
			    struct gp_error *error);
/* All GPUs below root (GP_KFD_SYSFS), at most count. Returns how many, 0: no driver or no GPU, or -errno. */
int gp_kfd_topology(const char *root, struct gp_kfd_node *nodes, uint32_t count, struct gp_error *error);
int gp_kfd_read_number(const char *path, uint64_t *ret_number); /* 0 or -errno; one decimal number and nothing else */
bool gp_kfd_is_compute(uint32_t type);                          /* as proc/PID/queues/ID/type has it */

#endif
