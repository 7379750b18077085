/* SPDX-License-Identifier: MIT */
/*
 * A virtual node inside a fuzzer: no front end, virtual time, and as client a child process that only sleeps, so that
 * whatever the node writes to addresses of the input's choice hits nobody else. Whatever an input does, everything must
 * have come back when its client is gone: fuzz_node_close() aborts otherwise.
 */
#ifndef GP_TEST_FUZZ_VGPU_FIXTURE_H
#define GP_TEST_FUZZ_VGPU_FIXTURE_H

#include "vgpu/packet/abi.h"
#include "vgpu/kfd/call.h"
#include "vgpu/node/node.h"

#define FUZZ_GPU_COUNT    2u
#define FUZZ_CLIENT_COUNT 2u
#define FUZZ_ARENA        0x200000000000ull /* memory of the clients, the same here and there */
#define FUZZ_ARENA_SIZE   0x100000u
#define FUZZ_VA           0x100000000ull /* where the fuzzers put their pieces of GPU memory */

struct fuzz_input {
	const uint8_t *at, *end;
};
uint64_t fuzz_take(struct fuzz_input *input, uint32_t byte_count); /* 0 where the input has ended */

struct fuzz_node {
	struct gp_vnode node;
	struct gp_vproc *clients[FUZZ_CLIENT_COUNT]; /* NULL: not open */
	uint64_t vram_free, gtt_free;
	uint64_t token, kept, answered; /* calls that were kept for later, and later answers */
};

struct fuzz_node *fuzz_node_open(const char *kernels_path); /* with client 0 open; there is one at a time */
pid_t fuzz_node_pid(uint32_t client);
int fuzz_node_client_open(struct fuzz_node *fuzz, uint32_t index);
void fuzz_node_close(struct fuzz_node *fuzz);
void fuzz_node_turn(struct fuzz_node *fuzz, uint64_t ns); /* time passes, then the node has its turn */
/* The result, or GP_VCALL_LATER. The answer is written back to arg. */
int fuzz_node_ioctl(struct fuzz_node *fuzz, uint32_t client, uint32_t command, void *arg);
/* Memory of client 0 on GPU 0, mapped: the pointer is the node's own view of it. NULL: refused. */
uint8_t *fuzz_node_alloc(struct fuzz_node *fuzz, uint64_t va, uint64_t size, uint32_t flags);

/* A queue of client 0 on GPU 0 as a runtime makes it, with its own piece of memory: ring, then amd_queue_t. */
struct fuzz_queue {
	uint32_t id, ring_size;
	uint8_t *ring, *control; /* write index at 56, read index at 128, inactive signal at 192 */
	volatile uint64_t *doorbell;
};
#define FUZZ_QUEUE_RING_SIZE 4096u
#define FUZZ_QUEUE_STEP      0x10000u
int fuzz_node_queue(struct fuzz_node *fuzz, uint64_t va, uint32_t type, struct fuzz_queue *ret_queue);

#endif
