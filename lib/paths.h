/* SPDX-License-Identifier: MIT */
/* Where the data files are: $GPREEMPT_SHARE_DIR, then ../share/gpreempt beside the program, then the source tree it
 * was built from. */
#ifndef GP_LIB_PATHS_H
#define GP_LIB_PATHS_H

#include <stddef.h>

#define GP_PATHS_NAME_SIZE 64u  /* of a listed name, with its NUL */
#define GP_PATHS_LIST_MAX  256u /* names; what is beyond is left out */

/* The folder of the program that runs, without the trailing slash. -errno: /proc is not there. */
int gp_paths_self(char *ret_folder, size_t size);

/* The first of these places that has `relative` ("devices/mi300x.ini", or a folder). -ENOENT: none has it (or
 * $GPREEMPT_SHARE_DIR is set and does not have it: a tree that was asked for is not mixed with another); -EINVAL:
 * relative is empty, absolute, or has a ".."; -ENAMETOOLONG. */
int gp_paths_share(const char *relative, char *ret_path, size_t path_size);

/* Names of the files in a folder of the data tree that end in suffix, without it, sorted by byte. -ENOENT if there
 * is no such folder. */
struct gp_paths_names {
	unsigned int count;
	char names[GP_PATHS_LIST_MAX][GP_PATHS_NAME_SIZE];
};
int gp_paths_list(const char *relative_dir, const char *suffix, struct gp_paths_names *ret_names);

/* "a, b, c" for "valid names are: …"; returns buffer. A list that does not fit ends in "…". */
const char *gp_paths_join(const struct gp_paths_names *names, char *buffer, size_t buffer_size);

#endif
