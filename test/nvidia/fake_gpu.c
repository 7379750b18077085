/* SPDX-License-Identifier: MIT */
/* The program's side of a context's memory, and the GPU's. */
#include "test/nvidia/fake_gpu.h"
#include <gpreempt/rm.h>
#include <string.h>

#define PROGRESS(i)   (0x80000u + (i)*16u)
#define MARKER(i, n)  (0x90000u + (i)*0x1000u + (n) % 256u * 4u)
#define COMMANDS(i)   (0xa0000u + (i)*COMMAND_MAX * COMMAND_WORDS * 4u)
#define COMMAND_WORDS 16u
#define COMMAND_MAX   1280u /* more than a ring has: an entry that comes round leads elsewhere */

uint32_t *fake_gpu_word(struct fake_gpu *gpu, uint32_t offset)
{
	return (void *)(gpu->memory + offset);
}

/* An entry of the ring and its commands. */
void fake_gpu_submit(struct fake_gpu *gpu, uint32_t i, uint32_t kind)
{
	uint32_t n = gpu->put[i]++, at = COMMANDS(i) + n % COMMAND_MAX * COMMAND_WORDS * 4u, count = 0;
	uint64_t base = (uintptr_t)gpu->memory, progress = base + PROGRESS(i), marker = base + MARKER(i, n);
	const uint32_t words[] = {
		0x20022062,
		(uint32_t)(marker >> 32),
		(uint32_t)marker,
		0x20022060,
		4,
		1,
		0x6001206d,
		n * 4u + 1u,
		0x200120ad,
		7,
		0x200426c0,
		(uint32_t)(progress >> 32),
		(uint32_t)progress,
		n + 1u,
		4,
	};
	const uint32_t wait[] = {
		0x20050017, (uint32_t)(base + FAKE_GPU_HOST_WORD), (uint32_t)((base + FAKE_GPU_HOST_WORD) >> 32), 1, 0,
		3
	};
	uint64_t entry;

	if (kind == FAKE_GPU_WAIT) {
		memcpy(fake_gpu_word(gpu, at), wait, sizeof(wait));
		memcpy(fake_gpu_word(gpu, at) + 6, words + 10, 20);
	} else if (kind == FAKE_GPU_UNKNOWN)
		*fake_gpu_word(gpu, at) = 0xffffffffu;
	else
		memcpy(fake_gpu_word(gpu, at), words + (kind ? 10 : 0), sizeof(words) - (kind ? 40u : 0));
	count = kind == FAKE_GPU_WAIT ? 11 : kind ? 5 : 15;
	entry = (base + at) | (uint64_t)count << 42;
	memcpy(gpu->memory + FAKE_GPU_RING(i) + n % FAKE_GPU_ENTRIES * 8u, &entry, 8);
	__atomic_store_n(fake_gpu_word(gpu, FAKE_GPU_USERD(i) + GP_RM_USERD_PUT), (n + 1u) % FAKE_GPU_ENTRIES,
			 __ATOMIC_RELEASE);
}

void fake_gpu_take(struct fake_gpu *gpu, uint32_t i)
{
	for (; gpu->taken[i] < gpu->put[i]; gpu->taken[i]++)
		*fake_gpu_word(gpu, MARKER(i, gpu->taken[i])) = gpu->taken[i] * 4u + 1u;
	__atomic_store_n(fake_gpu_word(gpu, PROGRESS(i)), gpu->put[i], __ATOMIC_RELEASE);
	__atomic_store_n(fake_gpu_word(gpu, FAKE_GPU_USERD(i) + GP_RM_USERD_GET), gpu->put[i] % FAKE_GPU_ENTRIES,
			 __ATOMIC_RELEASE);
}

void fake_gpu_progress(struct fake_gpu *gpu, uint32_t i)
{
	__atomic_store_n(fake_gpu_word(gpu, PROGRESS(i)), gpu->put[i], __ATOMIC_RELEASE);
}

void fake_gpu_finish(struct fake_gpu *gpu, uint32_t i, uint32_t n)
{
	__atomic_store_n(fake_gpu_word(gpu, MARKER(i, n)), n * 4u + 2u, __ATOMIC_RELEASE);
}

void fake_gpu_many(struct fake_gpu *gpu, uint32_t i, uint32_t count)
{
	while (count--) {
		fake_gpu_submit(gpu, i, FAKE_GPU_KERNEL);
		fake_gpu_take(gpu, i);
		fake_gpu_finish(gpu, i, gpu->put[i] - 1u);
	}
}
