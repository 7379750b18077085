/* SPDX-License-Identifier: MIT */
/* Fuzzer: paths of clients of the virtual node: "BASE\0PATH". What is provided has no dots and no double slash, lies
 * below one of the node's folders, and resolving it again changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/files/vpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_check(const char *path)
{
	char absolute[GP_VPATH_SIZE + 1u] = "/", again[GP_VPATH_SIZE];
	uint32_t number;

	if (strlen(path) >= GP_VPATH_SIZE || (strncmp(path, "dev/", 4) && strncmp(path, "sys/", 4)) ||
	    strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../"))
		abort();
	strcpy(absolute + 1, path);
	if (!gp_vpath_resolve("", absolute, again) || strcmp(again, path) != 0)
		abort();
	if (gp_vpath_is_device(path, 8, &number) && number > 8u)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char resolved[GP_VPATH_SIZE], *text = malloc(size + 2u);
	size_t base;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = text[size + 1u] = 0;
	base = strlen(text);
	if (gp_vpath_resolve(text, base < size ? text + base + 1u : text, resolved))
		fuzz_check(resolved);
	free(text);
	return 0;
}
