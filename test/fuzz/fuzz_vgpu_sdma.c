/* SPDX-License-Identifier: MIT */
/* Arbitrary packets in the ring of a copy engine: of known kinds with arbitrary fields, or words as they come; rung by
 * arbitrary doorbells, rewritten while they are being worked on. */
#include <stdlib.h>
#include <string.h>
#include "test/fuzz/vgpu_fixture.h"

#define FUZZ_STEPS       300u
#define FUZZ_TURN_NS     1000u
#define FUZZ_MEMORY_VA   (FUZZ_VA + 0x1000000u)
#define FUZZ_MEMORY_SIZE 0x20000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_sdma {
	struct fuzz_node *node;
	struct fuzz_input input;
	struct fuzz_queue queue;
	uint64_t written; /* bytes, as the client counts them */
};

static uint64_t fuzz_address(struct fuzz_sdma *fuzz)
{
	uint8_t tag = (uint8_t)fuzz_take(&fuzz->input, 1);

	switch (tag % 6u) {
	case 0: return FUZZ_MEMORY_VA + FUZZ_MEMORY_SIZE - fuzz_take(&fuzz->input, 1);
	case 1: return FUZZ_ARENA + fuzz_take(&fuzz->input, 2);
	case 2: return fuzz_take(&fuzz->input, 8);
	case 3: return FUZZ_VA + fuzz_take(&fuzz->input, 2); /* its own ring */
	default: return FUZZ_MEMORY_VA + fuzz_take(&fuzz->input, 2);
	}
}

static void fuzz_put(struct fuzz_sdma *fuzz, uint32_t word)
{
	memcpy(fuzz->queue.ring + fuzz->written % fuzz->queue.ring_size, &word, sizeof(word));
	fuzz->written += sizeof(word);
}

static void fuzz_put_address(struct fuzz_sdma *fuzz)
{
	uint64_t address = fuzz_address(fuzz);

	fuzz_put(fuzz, (uint32_t)address);
	fuzz_put(fuzz, (uint32_t)(address >> 32));
}

/* Layouts: a letter per word or pair of words after the header. */
static void fuzz_packet(struct fuzz_sdma *fuzz)
{
	static const struct {
		uint32_t op;
		const char *layout; /* w: a word, c: a count of bytes, a: an address */
	} packets[] = {
		{ GP_SDMA_NOP, "" },           { GP_SDMA_COPY, "cwaa" },    { GP_SDMA_FENCE, "aw" },
		{ GP_SDMA_TRAP, "w" },         { GP_SDMA_POLL, "awww" },    { GP_SDMA_ATOMIC, "aaaw" },
		{ GP_SDMA_CONST_FILL, "awc" }, { GP_SDMA_TIMESTAMP, "a" },  { GP_SDMA_GCR, "wwww" },
		{ GP_SDMA_WRITE, "aww" },      { GP_SDMA_INDIRECT, "awa" },
	};
	uint32_t header, which = (uint32_t)fuzz_take(&fuzz->input, 1) % (sizeof(packets) / sizeof(packets[0]));

	header = packets[which].op | (uint32_t)fuzz_take(&fuzz->input, 3) << 8;
	fuzz_put(fuzz, header);
	/* A window: both sides with offsets and pitches, then its size. */
	for (const char *field = (header & 0xffffu) == (GP_SDMA_COPY | 4u << 8) ? "acwcacwcwc" : packets[which].layout;
	     *field; field++) {
		if (*field == 'a')
			fuzz_put_address(fuzz);
		else
			fuzz_put(fuzz, (uint32_t)fuzz_take(&fuzz->input, *field == 'c' ? 2 : 4));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_sdma fuzz = { .input = { data, data + size } };
	uint64_t noise;

	fuzz.node = fuzz_node_open(NULL);
	if (!fuzz_node_alloc(fuzz.node, FUZZ_MEMORY_VA, FUZZ_MEMORY_SIZE, KFD_IOC_ALLOC_MEM_FLAGS_VRAM) ||
	    fuzz_node_queue(fuzz.node, FUZZ_VA, KFD_IOC_QUEUE_TYPE_SDMA, &fuzz.queue) < 0)
		abort();
	for (uint32_t i = 0; i < FUZZ_STEPS && fuzz.input.at < fuzz.input.end; i++) {
		uint8_t op = (uint8_t)fuzz_take(&fuzz.input, 1);

		switch (op % 8u) {
		case 0:
		case 1:
		case 2: fuzz_packet(&fuzz); break;
		case 3: fuzz_put(&fuzz, (uint32_t)fuzz_take(&fuzz.input, 4)); break;
		case 4: *fuzz.queue.doorbell = fuzz.written; break;
		case 5: *fuzz.queue.doorbell = fuzz_take(&fuzz.input, op & 128u ? 8 : 2); break;
		case 6:
			noise = fuzz_take(&fuzz.input, 8);
			memcpy(fuzz.queue.ring + fuzz_take(&fuzz.input, 2) % (fuzz.queue.ring_size - 8u), &noise, 8);
			break;
		default: fuzz_node_turn(fuzz.node, FUZZ_TURN_NS << op / 16u); break;
		}
	}
	fuzz_node_close(fuzz.node);
	return 0;
}
