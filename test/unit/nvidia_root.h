/* SPDX-License-Identifier: MIT */
/* A folder that looks like a machine with the NVIDIA driver. */
#ifndef TEST_NVIDIA_ROOT_H
#define TEST_NVIDIA_ROOT_H

struct nvidia_root {
	char path[64];
};

void nvidia_root_begin(struct nvidia_root *root); /* empty */
void nvidia_root_end(const struct nvidia_root *root);
void nvidia_root_file(const struct nvidia_root *root, const char *name, const char *text);
/* The driver (580.159.03, open) and a GPU at this place: "0000:00:01.0". */
void nvidia_root_gpu(const struct nvidia_root *root, const char *place, const char *model, int minor);

#endif
