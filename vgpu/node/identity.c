/* SPDX-License-Identifier: MIT */
/*
 * Identifiers of the devices vgpud can be. Sources: sysfs dumps of MI210 and MI308X nodes published with AMD's
 * k8s-device-plugin (gfx version, device id, capability, debug_prop, firmware, engines, arrays), the MI300X dump behind
 * share/devices/mi300x.ini, pci.ids and libdrm's amdgpu.ids (device id to name).
 *
 * Capability is the dumps' 0x2c77a280 less bit 27 (SVM): there is no SVM here, and without the bit no runtime asks for
 * it.
 */
#include <string.h>
#include "vgpu/node/identity.h"

#define IDENTITY_CAPABILITY 0x2477a280u

/* What the parts of gfx942 share: an MI300X whole, in partitions, and the MI308X. */
#define IDENTITY_GFX942                                                                                     \
	.name = "ip discovery", .gfx = "gfx942", .override = "9.0.10", .gfx_version = 90402, .revision = 0, \
	.capability = IDENTITY_CAPABILITY, .debug_prop = 1511, .sdma_fw_version = 19, .cu_per_array = 10,   \
	.simd_per_cu = 4, .waves_per_simd = 8, .l2_size = 4096, .memory_width = 8192, .memory_clock = 1300

static const struct gp_identity identity_table[] = {
	{
		IDENTITY_GFX942,
		.device = "mi300x",
		.device_id = 0x74a1,
		.fw_version = 166,
		.xgmi_engine_count = 14,
		.array_count = 32,
	},
	{
		IDENTITY_GFX942,
		.device = "mi300x-cpx",
		.device_id = 0x74a1,
		.fw_version = 166,
		.xgmi_engine_count = 0,
		.array_count = 4,
	},
	{
		IDENTITY_GFX942,
		.device = "mi308x",
		.device_id = 0x74a2,
		.fw_version = 149,
		.xgmi_engine_count = 14,
		.array_count = 16,
	},
	{
		.device = "mi210",
		.name = "aldebaran",
		.gfx = "gfx90a",
		.gfx_version = 90010,
		.device_id = 0x740f,
		.revision = 2,
		.capability = IDENTITY_CAPABILITY,
		.debug_prop = 470,
		.fw_version = 92,
		.sdma_fw_version = 9,
		.xgmi_engine_count = 3,
		.cu_per_array = 14,
		.array_count = 8,
		.simd_per_cu = 4,
		.waves_per_simd = 8,
		.l2_size = 8192,
		.memory_width = 4096,
		.memory_clock = 1600,
	},
};

const struct gp_identity *gp_identity_find(const char *device)
{
	for (size_t i = 0; i < sizeof(identity_table) / sizeof(identity_table[0]); i++)
		if (!strcmp(identity_table[i].device, device))
			return &identity_table[i];
	return NULL;
}
