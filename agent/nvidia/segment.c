/* SPDX-License-Identifier: MIT */
/*
 * A segment of commands as the application hands it to the GPU. The agent reads it for two things: the progress word,
 * which the GPU writes when it has taken in the commands, and the marker words, which kernels write when they have run.
 * The agent guesses nothing: a segment that does not end where it says, or launches a kernel without a marker, is not
 * exact.
 *
 * The words are the application's memory and may change while the agent reads them. So it reads each word once, and
 * trusts nothing but their number.
 */
#include "agent/nvidia/segment.h"

/* Headers of methods: type in 31:29, count in 28:16, the method's number / 4 in 11:0. */
#define SEGMENT_INCREASING 1u
#define SEGMENT_CONSTANT   3u
#define SEGMENT_IMMEDIATE  4u
#define SEGMENT_ONCE       5u
/* Methods (open-gpu-doc: host, compute and copy classes of Hopper and before). */
#define SEGMENT_SEMAPHORE    0x5cu      /* lo, hi, payload lo, payload hi, what */
#define SEGMENT_LINE         0x180u     /* length, lines, address hi, address lo: an inline write's */
#define SEGMENT_OFFSET       0x188u     /* … the address alone */
#define SEGMENT_INLINE       0x1b4u     /* … its data */
#define SEGMENT_COPY_RELEASE 0x240u     /* hi, lo, payload */
#define SEGMENT_LAUNCH       0x2b4u     /* SEND_PCAS_A: a kernel starts */
#define SEGMENT_REPORT       0x1b00u    /* hi, lo, payload, what */
#define SEGMENT_RELEASE      1u         /* of SEMAPHORE's what, in 2:0 */
#define SEGMENT_WIDE         (1u << 24) /* … its payload has 64 bits */
#define SEGMENT_HEADERS_MAX  65536u     /* libcuda's have a few dozen; chosen */

struct segment_state {
	uint64_t address; /* of the inline write that is being described */
	uint32_t length;
	uint64_t marker; /* address of the last inline write of a word since the last launch; 0: none */
	uint32_t value;
	bool unmarked; /* the last launch had no marker */
};

static uint64_t segment_address(uint32_t high, uint32_t low)
{
	return (uint64_t)(high & 0x1ffffffu) << 32 | low;
}

static void segment_release(struct gp_nvidia_segment *segment, uint64_t address, uint32_t payload)
{
	segment->progress = address;
	segment->payload = payload;
}

static void segment_launch(struct gp_nvidia_segment *segment, struct segment_state *state)
{
	state->unmarked = !state->marker;
	segment->launches++;
	if (!state->marker)
		return;
	if (segment->marker_count == GP_NVIDIA_MARKER_MAX)
		segment->is_exact = false;
	else
		segment->markers[segment->marker_count++] = (struct gp_nvidia_marker){ state->marker, state->value };
	state->marker = 0;
}

/* data: lo, hi, payload lo, payload hi, what. Left out: those of 64 bits, which no known library uses. */
static void segment_acquire(struct gp_nvidia_segment *segment, const uint32_t data[5])
{
	uint32_t until = data[4] & 7u;

	if (segment->acquire_count == GP_NVIDIA_ACQUIRE_MAX || data[4] & SEGMENT_WIDE ||
	    (until != GP_NVIDIA_EQUAL && until != GP_NVIDIA_REACHED && until != GP_NVIDIA_REACHED_ROUND &&
	     until != GP_NVIDIA_ANY_BIT))
		return;
	segment->acquires[segment->acquire_count++] =
		(struct gp_nvidia_acquire){ segment_address(data[1], data[0]), data[2], until };
}

bool gp_nvidia_acquire_is_met(const struct gp_nvidia_acquire *acquire, uint32_t value)
{
	switch (acquire->until) {
	case GP_NVIDIA_EQUAL: return value == acquire->payload;
	case GP_NVIDIA_REACHED: return value >= acquire->payload;
	case GP_NVIDIA_REACHED_ROUND: return (int32_t)(value - acquire->payload) >= 0;
	default: return value & acquire->payload;
	}
}

/* One method with its data, which the caller has copied out of the words. */
static void segment_method(struct gp_nvidia_segment *segment, struct segment_state *state, uint32_t method,
			   const uint32_t data[5], uint32_t count)
{
	if (method == SEGMENT_LINE && count >= 2u) {
		state->length = data[0];
		if (count >= 4u)
			state->address = segment_address(data[2], data[3]);
	} else if (method == SEGMENT_OFFSET && count >= 2u) {
		state->address = segment_address(data[0], data[1]);
	} else if (method == SEGMENT_INLINE && count == 1u && state->length == 4u && (data[0] & 3u) == 1u) {
		state->marker = state->address;
		state->value = data[0];
	} else if (method == SEGMENT_LAUNCH && count >= 1u) {
		segment_launch(segment, state);
	} else if (method == SEGMENT_REPORT && count >= 4u) {
		segment_release(segment, segment_address(data[0], data[1]), data[2]);
	} else if (method == SEGMENT_COPY_RELEASE && count >= 3u) {
		segment_release(segment, segment_address(data[0], data[1]), data[2]);
	} else if (method == SEGMENT_SEMAPHORE && count >= 5u && (data[4] & 7u) == SEGMENT_RELEASE) {
		segment_release(segment, segment_address(data[1], data[0]), data[2]);
	} else if (method == SEGMENT_SEMAPHORE && count >= 5u) {
		segment_acquire(segment, data);
	}
}

void gp_nvidia_segment_read(const volatile uint32_t *words, uint32_t count, struct gp_nvidia_segment *ret_segment)
{
	struct gp_nvidia_segment segment = { .is_exact = true };
	struct segment_state state = { 0 };
	uint32_t at = 0, headers = 0;

	while (at < count && segment.is_exact) {
		uint32_t header = words[at++], type = header >> 29, data_count = header >> 16 & 0x1fffu;
		uint32_t data[5] = { 0 };

		if (++headers > SEGMENT_HEADERS_MAX)
			segment.is_exact = false;
		if (type == SEGMENT_IMMEDIATE)
			continue;
		if ((type != SEGMENT_INCREASING && type != SEGMENT_CONSTANT && type != SEGMENT_ONCE) ||
		    data_count > count - at) {
			segment.is_exact = false;
			break;
		}
		for (uint32_t i = 0; i < data_count && i < 5u; i++)
			data[i] = words[at + i];
		segment_method(&segment, &state, (header & 0xfffu) << 2, data, data_count);
		at += data_count;
	}
	/* The marker of the last kernel stands for the whole segment. */
	segment.is_exact &= segment.progress && !state.unmarked;
	*ret_segment = segment;
}
