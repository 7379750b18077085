/* SPDX-License-Identifier: MIT */
/* What a segment of commands says about its own completion. */
#ifndef GP_AGENT_NVIDIA_SEGMENT_H
#define GP_AGENT_NVIDIA_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#define GP_NVIDIA_MARKER_MAX  4u
#define GP_NVIDIA_ACQUIRE_MAX 4u

/* A word that holds value from when the GPU has taken in a kernel's commands until the kernel has run. */
struct gp_nvidia_marker {
	uint64_t address;
	uint32_t value;
};

/* A word that the GPU waits for before it goes on. */
enum gp_nvidia_until { GP_NVIDIA_EQUAL = 0, GP_NVIDIA_REACHED = 2, GP_NVIDIA_REACHED_ROUND = 3, GP_NVIDIA_ANY_BIT = 4 };
struct gp_nvidia_acquire {
	uint64_t address;
	uint32_t payload, until; /* enum gp_nvidia_until */
};

struct gp_nvidia_segment {
	bool is_exact;     /* the agent understood all of it */
	uint64_t progress; /* of the word that reaches payload when the GPU has taken in the commands; 0: none */
	uint32_t payload;
	uint32_t launches;
	uint32_t marker_count;
	struct gp_nvidia_marker markers[GP_NVIDIA_MARKER_MAX];
	uint32_t acquire_count; /* the first ones, of the kinds above only */
	struct gp_nvidia_acquire acquires[GP_NVIDIA_ACQUIRE_MAX];
};

bool gp_nvidia_acquire_is_met(const struct gp_nvidia_acquire *acquire, uint32_t value);
void gp_nvidia_segment_read(const volatile uint32_t *words, uint32_t count, struct gp_nvidia_segment *ret_segment);

#endif
