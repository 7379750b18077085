/* SPDX-License-Identifier: MIT */
/* Kernels that vgpud knows by itself: the copies and fills of ROCr and HIP, which every client uses. */
#ifndef GP_VGPU_KERNELS_KNOWN_H
#define GP_VGPU_KERNELS_KNOWN_H

static const struct {
	uint64_t fingerprint, workgroup_ns;
	const char *body;
} kernels_known[] = {
	/* ROCr 5.2.3 (Debian 12) for gfx90a, read from its queues; its blit kernels are assembled, not compiled. */
	{ 0xc9ed7ddde0f282c7ull, 1000, "rocr_copy_aligned" },
	{ 0x7625bfdd9a90794dull, 1000, "rocr_copy_misaligned" },
	{ 0xc3fd25e8e46c95f0ull, 1000, "rocr_fill" },
	/* HIP 5.2.3 (Debian 12) for gfx90a: copyBuffer and fillBufferAligned of its blit program. */
	{ 0xbc312ab105b0bb83ull, 1000, "hip_copy" },
	{ 0xfe94ff10dcd44b17ull, 1000, "hip_fill" },
};

#endif
