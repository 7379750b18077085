/* SPDX-License-Identifier: MIT */
/* What KFD says in files: /sys/class/kfd/kfd/topology and the numbers beside it, and what follows from them. The
 * daemon, `doctor` and `bench device` all read it here. Strict: a file that is not what the driver writes is refused
 * with its name, never half understood. */
#ifndef GP_LIB_KFD_H
#define GP_LIB_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_KFD_SYSFS     "/sys/class/kfd/kfd"
#define GP_KFD_NODES_MAX 128u
#define GP_KFD_UNKNOWN   UINT64_MAX /* the driver's file does not have the line */
#define GP_KFD_GFX_9     90000u
#define GP_KFD_GFX_908   90008u
#define GP_KFD_GFX_10    100000u
#define GP_KFD_GFX_11    110000u

struct gp_kfd_node {
	uint32_t node, gpu_id; /* gpu_id 0: a CPU */
	char name[96];         /* as the part is sold, else as the driver calls it, else its gfx version */
	uint64_t simd_count, simd_per_cu, xcc_count, cp_queue_count, gfx_version, firmware, location_id, domain,
		capability, device_id, render_minor, sdma_engine_count, sdma_queues_per_engine;
	uint64_t control_stack_size, save_size; /* of the context save area; in newer kernels only */
	uint64_t memory_size;                   /* bytes, all banks together; 0: unknown */
};

/* The text of one properties file: "name value" lines. Unknown names are skipped. -EINVAL and "file:line: …". */
int gp_kfd_parse_properties(const char *text, size_t size, const char *file_name, struct gp_kfd_node *node,
			    struct gp_error *error);
/* All GPUs below root (GP_KFD_SYSFS), at most count. Returns how many, 0: no driver or no GPU, or -errno. */
int gp_kfd_topology(const char *root, struct gp_kfd_node *nodes, uint32_t count, struct gp_error *error);
int gp_kfd_read_number(const char *path, uint64_t *ret_number); /* 0 or -errno; one decimal number and nothing else */
bool gp_kfd_is_compute(uint32_t type);                          /* as proc/PID/queues/ID/type has it */
uint64_t gp_kfd_cu_count(const struct gp_kfd_node *node);       /* GP_KFD_UNKNOWN where the file does not say */
/* Processes that KFD can run at once before it takes turns among them (VMIDs); GP_KFD_UNKNOWN: gfx version unknown. */
uint64_t gp_kfd_process_max(const struct gp_kfd_node *node);
const char *gp_kfd_part_name(uint64_t device_id); /* as the part is sold; NULL: not in the table */

#endif
