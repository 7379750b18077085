/* SPDX-License-Identifier: MIT */
/* The store: a folder of the user's in which the node's files lie while it runs, for the front end that mounts nothing.
 * A process of its own removes it when vgpud has ended, however it ended. */
#ifndef GP_VGPU_STORE_H
#define GP_VGPU_STORE_H

#include <stdint.h>
#include "vgpu/node/node.h"

struct gp_vgpu_store {
	char path[64];
	int fd;   /* the folder, O_PATH */
	int life; /* the remover waits for the other end of it */
};

/* Called before there is anything in this process that the remover must not hold. */
int gp_store_create(struct gp_vgpu_store *store, struct gp_error *error);
int gp_store_fill(struct gp_vgpu_store *store, struct gp_vnode *node, struct gp_error *error);
/* store_open.c: path from the store's root, as gp_vpath_resolve() gives it; links stay inside. A descriptor,
 * close-on-exec; negative: what the same open would say of real files. */
int gp_store_open(const struct gp_vgpu_store *store, const char *path, uint64_t flags);
void gp_store_destroy(struct gp_vgpu_store *store); /* returns when the folder is gone */

#endif
