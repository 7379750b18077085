/* SPDX-License-Identifier: MIT */
/* Any words as a segment of commands: it is read within its bounds, and what is exact has a progress word. */
#include <stdlib.h>
#include <string.h>
#include "agent/nvidia/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly its size: a sanitizer sees a word beyond it. */
	uint32_t count = (uint32_t)(size / 4u), *words = malloc(count * 4u + 1u);
	struct gp_nvidia_segment segment;

	memcpy(words, data, count * 4u);
	memset(&segment, 0xff, sizeof(segment));
	gp_nvidia_segment_read(words, count, &segment);
	if (segment.marker_count > GP_NVIDIA_MARKER_MAX || segment.marker_count > segment.launches ||
	    segment.acquire_count > GP_NVIDIA_ACQUIRE_MAX || (segment.is_exact && !segment.progress))
		abort();
	free(words);
	return 0;
}
