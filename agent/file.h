/* SPDX-License-Identifier: MIT */
/* What the kernel says about files: their text, and what is behind a descriptor. No lock. */
#ifndef GP_AGENT_FILE_H
#define GP_AGENT_FILE_H

#include <stddef.h>

/* Reads a file's beginning as a string; its length, or -errno. */
long gp_sys_file_read(const char *path, char *ret_text, size_t size);
/* The path of the file behind a descriptor; empty: not known. */
void gp_sys_file_path(int fd, char *ret_path, size_t size);
/* Whether two descriptors of the calling thread are one open file: 0 if they are, more if not, -errno if the kernel
 * does not answer. */
long gp_sys_file_compare(int a, int b);

#endif
