/* SPDX-License-Identifier: MIT */
/* What a segment of commands says about its own completion. */
#ifndef GP_AGENT_NVIDIA_SEGMENT_H
#define GP_AGENT_NVIDIA_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#define GP_NVIDIA_MARKER_MAX 4u

/* A word that holds value from when a kernel's commands have been taken in until the kernel has run. */
struct gp_nvidia_marker {
	uint64_t address;
	uint32_t value;
};

struct gp_nvidia_segment {
	bool is_exact;     /* all of it was understood */
	uint64_t progress; /* the word that reaches payload when the commands have been taken in; 0: none */
	uint32_t payload;
	uint32_t launches;
	uint32_t marker_count;
	struct gp_nvidia_marker markers[GP_NVIDIA_MARKER_MAX];
};

void gp_nvidia_segment_read(const volatile uint32_t *words, uint32_t count, struct gp_nvidia_segment *ret_segment);

#endif
