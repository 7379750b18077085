/* SPDX-License-Identifier: MIT */
/* Owns the folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "test/unit/nvidia_root.h"

void nvidia_root_begin(struct nvidia_root *root)
{
	snprintf(root->path, sizeof(root->path), "/tmp/gpreempt-nvidia-XXXXXX");
	assert_non_null(mkdtemp(root->path));
}

void nvidia_root_end(const struct nvidia_root *root)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root->path);
	assert_int_equal(system(command), 0);
}

void nvidia_root_file(const struct nvidia_root *root, const char *name, const char *text)
{
	char path[200], command[256];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", root->path, name);
	snprintf(command, sizeof(command), "mkdir -p $(dirname %s)", path);
	assert_int_equal(system(command), 0);
	stream = fopen(path, "w");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

void nvidia_root_gpu(const struct nvidia_root *root, const char *place, const char *model, int minor)
{
	char path[128], text[256];

	nvidia_root_file(root, "proc/driver/nvidia/version",
			 "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build  (dvs)\n"
			 "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
	snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", place);
	snprintf(text, sizeof(text),
		 "Model: \t\t %s\nIRQ:   \t\t 33\nGPU UUID: \t GPU-12345678-0000-0000-0000-000000000001\n"
		 "Bus Location: \t %s\nDevice Minor: \t %d\nGPU Excluded:\t No\n",
		 model, place, minor);
	nvidia_root_file(root, path, text);
}
