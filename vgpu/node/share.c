/* SPDX-License-Identifier: MIT */
/*
 * Memory that several processes have: exported under a random key (HIP IPC by AMD's kernels) or as a descriptor
 * (dmabuf). It lasts as long as a process has it, or a descriptor of it is open anywhere.
 *
 * A descriptor is the writing end of a pipe whose reading end is the node's: it is told from all others by the pipe's
 * inode, which nobody can make up, and when the last of them is closed the node's end hangs up. That is looked at when
 * memory is asked for or given back. Neither mmap() nor lseek() works on it, as they do on a dmabuf of the driver's.
 */
#include <errno.h>
#include <fcntl.h>
#include <gp_deps.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/node/share.h"

#define SHARE_PIPE_MAX 256u /* descriptors of the node's own; chosen */

struct gp_vshare *gp_vshare_create(struct gp_vnode *node, const struct gp_vbo *bo)
{
	struct gp_vshare *share = calloc(1, sizeof(*share));

	if (!share)
		return NULL;
	*share = (struct gp_vshare){ .refs = 1,
				     .flags = bo->flags,
				     .gpu_index = bo->gpu_index,
				     .size = bo->size,
				     .offset = bo->offset,
				     .pipe = -1,
				     .next = node->shares };
	if (getrandom(share->key, sizeof(share->key), 0) != (ssize_t)sizeof(share->key)) {
		free(share);
		return NULL;
	}
	node->shares = share;
	return share;
}

struct gp_vshare *gp_vshare_by_key(struct gp_vnode *node, const uint32_t key[4])
{
	struct gp_vshare *share = node->shares;

	while (share && memcmp(share->key, key, sizeof(share->key)))
		share = share->next;
	return share;
}

static bool share_is_open(const struct gp_vshare *share)
{
	struct pollfd end = { .fd = share->pipe };

	return share->pipe >= 0 && !(poll(&end, 1, 0) > 0 && end.revents & POLLHUP);
}

static void share_free(struct gp_vnode *node, struct gp_vshare *share)
{
	struct gp_vshare **link = &node->shares;

	for (; *link != share; link = &(*link)->next)
		GP_ASSERT(*link);
	*link = share->next;
	if (share->pipe >= 0)
		close(share->pipe);
	free(share);
}

bool gp_vshare_put(struct gp_vnode *node, struct gp_vshare *share)
{
	GP_ASSERT(share->refs);
	if (--share->refs || share_is_open(share))
		return false;
	share_free(node, share);
	return true;
}

void gp_vshare_sweep(struct gp_vnode *node)
{
	struct gp_vshare *share = node->shares, *next;

	for (; share; share = next) {
		next = share->next;
		if (share->refs || share_is_open(share))
			continue;
		gp_vmemory_release(node, share->flags, share->gpu_index, share->offset, share->size);
		share_free(node, share);
	}
}

void gp_vshare_free_all(struct gp_vnode *node)
{
	while (node->shares)
		share_free(node, node->shares);
}

static int share_pipe(const struct gp_vnode *node, struct gp_vshare *share)
{
	const struct gp_vshare *other;
	uint32_t count = 0;
	char path[64];
	int fds[2], fd;

	if (share->pipe >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", share->pipe);
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
		return fd < 0 ? -errno : fd;
	}
	for (other = node->shares; other; other = other->next)
		count += other->pipe >= 0;
	if (count >= SHARE_PIPE_MAX)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	share->pipe = fds[0];
	return fds[1];
}

int gp_vshare_give(struct gp_vcall *call, struct gp_vshare *share, uint32_t *ret_fd)
{
	struct gp_vnode *node = call->process->node;
	int fd, r;

	if (!node->install_fd)
		return -EOPNOTSUPP;
	fd = share_pipe(node, share);
	if (fd < 0)
		return fd;
	r = node->install_fd(node, call, fd);
	close(fd);
	if (r < 0)
		return r;
	*ret_fd = (uint32_t)r;
	return 0;
}

int gp_vshare_take(struct gp_vproc *process, uint32_t fd, struct gp_vshare **ret_share)
{
	struct gp_vshare *share = process->node->shares;
	struct stat theirs, ours;
	int copy = gp_vproc_getfd(process, (int)fd);
	bool known;

	if (copy < 0)
		return errno == EPERM ? -EPERM : -EBADF;
	known = !fstat(copy, &theirs);
	close(copy);
	for (; known && share; share = share->next)
		if (share->pipe >= 0 && !fstat(share->pipe, &ours) && ours.st_dev == theirs.st_dev &&
		    ours.st_ino == theirs.st_ino)
			break;
	if (!known || !share)
		return -EINVAL;
	*ret_share = share;
	return 0;
}
