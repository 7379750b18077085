/* SPDX-License-Identifier: MIT */
/* What a device calls itself: the identifiers a driver reads from the hardware and that no timing model needs. The rest
 * of the topology comes from the device description. */
#ifndef GP_VGPU_IDENTITY_H
#define GP_VGPU_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

struct gp_identity {
	const char *device; /* name of the description */
	const char *name;   /* topology's name file */
	const char *gfx;
	const char *override; /* what HSA_OVERRIDE_GFX_VERSION must say for a ROCr older than 6; NULL: it knows the
				 device */
	uint32_t gfx_version; /* as in gfx_target_version */
	uint32_t device_id, revision;
	uint32_t capability;
	uint32_t debug_prop;
	uint32_t fw_version, sdma_fw_version;
	uint32_t xgmi_engine_count;
	uint32_t cu_per_array, array_count, simd_per_cu, waves_per_simd;
	uint32_t l2_size;                    /* KiB */
	uint32_t memory_width, memory_clock; /* bits, MHz */
};

const struct gp_identity *gp_identity_find(const char *device); /* NULL: vgpud cannot be this device */

#endif
