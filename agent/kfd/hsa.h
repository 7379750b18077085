/* SPDX-License-Identifier: MIT */
/* The runtime's API tables, described without its headers, which are C++ and describe one version only. */
#ifndef GP_AGENT_KFD_HSA_H
#define GP_AGENT_KFD_HSA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each table begins with its version; minor is its size in bytes. */
struct gp_hsa_table {
	uint32_t major, minor, step, reserved;
	void *functions[];
};
struct gp_hsa_root {
	struct {
		uint32_t major, minor, step, reserved;
	} version;
	struct gp_hsa_table *core, *ext;
};

#define GP_HSA_TABLE_SIZE(count) (16u + 8u * (count))
#define GP_HSA_CORE_COUNT        125u /* the same from ROCr 5.0 to 6.2 */
#define GP_HSA_EXT_COUNT_MIN     48u  /* ROCr 5.0 */
#define GP_HSA_EXT_COUNT_ENGINE  55u  /* ROCr 5.6: copies on a named engine */
#define GP_HSA_NO_SLOT           UINT32_MAX

struct gp_hsa_layout {
	uint32_t system_info, agent_info, queue_create, store_relaxed, store_release, wait_relaxed, wait_acquire, copy,
		copy_on;
};

/* False: the layout of this version is unknown; the agent must hook nothing. */
bool gp_hsa_layout(uint32_t core_major, uint32_t core_minor, uint32_t ext_major, uint32_t ext_minor,
		   struct gp_hsa_layout *ret_layout);

#endif
