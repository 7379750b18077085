/* SPDX-License-Identifier: MIT */
/* Kernels that vgpud knows by itself: the copies and fills of ROCr and HIP, which every client uses. */
#ifndef GP_VGPU_KERNELS_KNOWN_H
#define GP_VGPU_KERNELS_KNOWN_H

#include <stdint.h>

static const struct {
	uint64_t fingerprint, workgroup_ns;
	const char *body;
} kernels_known[] = {
	/* ROCr 5.2.3 (Debian 12) for gfx90a, read from its queues; its blit kernels are assembled, not compiled. */
	{ 0xc9ed7ddde0f282c7ull, 1000, "rocr_copy_aligned" },
	{ 0x7625bfdd9a90794dull, 1000, "rocr_copy_misaligned" },
	{ 0xc3fd25e8e46c95f0ull, 1000, "rocr_fill" },
	/* ROCr 6.1.2 (Debian 13) and 6.4.3 (forky), the same for gfx942. */
	{ 0x0f0b93f302c26e87ull, 1000, "rocr_copy_aligned" },
	{ 0xd4f9895155a5f28dull, 1000, "rocr_copy_misaligned" },
	{ 0xd21be62946838eb0ull, 1000, "rocr_fill" },
	/* HIP 5.2.3 (Debian 12) for gfx90a: copyBuffer and fillBufferAligned of its blit program. */
	{ 0xbc312ab105b0bb83ull, 1000, "hip_copy" },
	{ 0xfe94ff10dcd44b17ull, 1000, "hip_fill" },
	/* HIP 5.7.1 (Debian 13) for gfx942. HIP compiles its blit program when it runs: another compiler, another code.
	 */
	{ 0x60c48b1041f7e594ull, 1000, "hip_copy" },
	{ 0xb5bd6c8316a12c51ull, 1000, "hip_fill" },
	/* HIP 6.4.3 (forky, November 2026) for gfx942. */
	{ 0xef161e53e95011c4ull, 1000, "hip6_copy" },
	{ 0x2f5325808ca9faccull, 1000, "hip6_fill" },
};

#endif
