/* SPDX-License-Identifier: MIT */
/*
 * A context's memory, which stands for the GPU's and the host's: rings, registers, progress words, markers, commands.
 * Whoever has it plays both sides: the program that submits and the GPU that takes in and runs. The GPU's addresses
 * have 40 bits and are the processor's, as libcuda has them.
 */
#ifndef GP_TEST_NVIDIA_FAKE_GPU_H
#define GP_TEST_NVIDIA_FAKE_GPU_H

#include <stdint.h>

#define FAKE_GPU_CHANNELS 8u
#define FAKE_GPU_ENTRIES  1024u
#define FAKE_GPU_SIZE     0x200000u
/* Where the first one is mapped: beyond 32 bits, within 40. There the address sanitizer has its shadow; it leaves only
 * the first 2 GiB. */
#ifdef __SANITIZE_ADDRESS__
#define FAKE_GPU_FIRST 0x20000000ull
#else
#define FAKE_GPU_FIRST 0x200000000ull
#endif
#define FAKE_GPU_RING(i)   ((i)*0x3000u)
#define FAKE_GPU_USERD(i)  (FAKE_GPU_RING(i) + 0x2000u)
#define FAKE_GPU_HOST_WORD 0x1ff000u

struct fake_gpu {
	uint8_t *memory;
	uint32_t put[FAKE_GPU_CHANNELS], taken[FAKE_GPU_CHANNELS]; /* entries put and taken in, ever */
};

/* What an entry is: a kernel; commands that are done when they are taken in; what nobody can follow; as the second, but
 * waits until the host's word is 1. */
enum fake_gpu_kind { FAKE_GPU_KERNEL, FAKE_GPU_COMMANDS, FAKE_GPU_UNKNOWN, FAKE_GPU_WAIT };

uint32_t *fake_gpu_word(struct fake_gpu *gpu, uint32_t offset);
void fake_gpu_submit(struct fake_gpu *gpu, uint32_t channel, uint32_t kind);
void fake_gpu_take(struct fake_gpu *gpu, uint32_t channel);     /* all that was put: kernels start */
void fake_gpu_progress(struct fake_gpu *gpu, uint32_t channel); /* the progress word alone: markers follow */
void fake_gpu_finish(struct fake_gpu *gpu, uint32_t channel, uint32_t number); /* a kernel has run */
void fake_gpu_many(struct fake_gpu *gpu, uint32_t channel, uint32_t count);    /* kernels, each run at once */

#endif
