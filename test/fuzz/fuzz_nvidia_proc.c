/* SPDX-License-Identifier: MIT */
/* Fuzzer: what the NVIDIA driver writes below /proc/driver/nvidia: the version, and a GPU's folder and information. The
 * first line is the folder's name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/nvidia.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest;
	struct gp_nvidia_driver driver;
	struct gp_nvidia_gpu gpu;
	struct gp_error error;

	memcpy(text, data, size);
	text[size] = '\0';
	if (!gp_nvidia_parse_version(text, &driver, &error))
		must(*driver.version && strlen(driver.version) < sizeof(driver.version));
	rest = text + strcspn(text, "\n");
	if (*rest)
		*rest++ = '\0';
	if (!gp_nvidia_parse_gpu(rest, text, &gpu, &error)) {
		must(*gpu.model && strlen(gpu.model) < sizeof(gpu.model) && strlen(gpu.uuid) < sizeof(gpu.uuid));
		must(strlen(gpu.bdf) >= 12 && gpu.minor < 255);
	}
	free(text);
	return 0;
}
