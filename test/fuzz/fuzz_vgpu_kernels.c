/* SPDX-License-Identifier: MIT */
/* Feeds arbitrary text to the reader of vgpud's kernels files. What is refused is refused with a sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "vgpu/packet/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("kernels", MFD_CLOEXEC), r;
	struct gp_kernels *kernels;
	struct gp_error error = { "" };
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = gp_kernels_create(path, &kernels, &error);
	if (r == 0)
		gp_kernels_destroy(kernels);
	else if (!*error.text)
		abort();
	close(fd);
	return 0;
}
