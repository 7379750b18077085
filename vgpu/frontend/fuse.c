/* SPDX-License-Identifier: MIT */
/*
 * Front end FUSE, on the kernel's protocol itself: libfuse 3.14 (Debian 12) knows no passthrough, and passthrough is
 * the point. A client's mmap then goes straight to the BAR; its ioctls arrive here with exactly the bytes _IOC_SIZE
 * says, which is KFD's own convention. The kernel keeps count of descriptors, dups, forks and exits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "vgpu/kfd/call.h"
#include "vgpu/frontend/fuse.h"
#include "vgpu/node/process.h"

/* Newer than Debian 12's headers (Linux 6.9, include/uapi/linux/fuse.h). */
#define FUSE_FLAG_INIT_EXT     (1u << 30)
#define FUSE_FLAG2_PASSTHROUGH (1u << 5) /* bit 37 of both words together */
#define FUSE_OPEN_PASSTHROUGH  (1u << 7)
struct fuse_backing {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define FUSE_BACKING_OPEN _IOW(229, 1, struct fuse_backing)
struct fuse_init_answer {
	uint32_t major, minor, max_readahead, flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write, time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2, max_stack_depth;
	uint16_t request_timeout, unused[11];
};
struct fuse_open_answer {
	uint64_t fh;
	uint32_t open_flags;
	int32_t backing_id;
};

#define FUSE_BUFFER_SIZE (1u << 17)
#define FUSE_INODE_ROOT  1u
#define FUSE_INODE_KFD   2u /* then one per render node */
#define FUSE_INODE_COUNT (FUSE_INODE_KFD + 1u + GP_VNODE_GPU_MAX)
#define FUSE_VALID_S     3600u
#define FUSE_INIT_MS     20000 /* for the kernel's first request: it is there when the mount returns */
#define FUSE_FILE_MAX    65536u
#define FUSE_ERROR_END   512 /* fs/fuse/dev.c, fuse_dev_do_write() */

/* An open file, by the number given to the kernel. process is NULL once it has exited. */
struct fuse_file {
	struct gp_vproc *process;
	pid_t pid;
	enum gp_vfile kind;
	bool used;
};

struct gp_fuse {
	struct gp_vnode *node;
	int fd;
	int backing[FUSE_INODE_COUNT]; /* kernel's ids, one per inode; 0: none yet */
	struct fuse_file *files;
	uint32_t file_count;
	char dir[256];
	uint8_t *buffer;
};

static struct gp_fuse *fuse_only; /* for the answers that come later: there is one front end per process */

/* The kernel throws away an answer with an error beyond its limits, and the caller would wait for ever, unkillable. 524
 * is the driver's ENOTSUPP. */
static int fuse_error(int error)
{
	if (error == -524)
		return -EOPNOTSUPP;
	return error > 0 || error <= -FUSE_ERROR_END ? -EIO : error;
}

static void fuse_answer(struct gp_fuse *fuse, uint64_t unique, int result, const void *head, size_t head_size,
			const void *tail, size_t tail_size)
{
	int error = fuse_error(result);
	struct fuse_out_header out = { .len = (uint32_t)sizeof(out), .error = error, .unique = unique };
	struct iovec parts[3] = { { &out, sizeof(out) },
				  { (void *)(uintptr_t)head, head_size },
				  { (void *)(uintptr_t)tail, tail_size } };
	int count = error ? 1 : 3;

	if (!error)
		out.len += (uint32_t)(head_size + tail_size);
	/* ENOENT: the caller was killed meanwhile. Anything else would be a wrong answer of ours. */
	if (writev(fuse->fd, parts, count) < 0 && errno != ENOENT)
		gp_vnode_log(fuse->node, 0, "fuse answer of %u bytes: %s", out.len, strerror(errno));
}

static void fuse_answer_ioctl(struct gp_fuse *fuse, uint64_t unique, const struct gp_vcall *call, int result)
{
	struct fuse_ioctl_out out = { .result = result };
	size_t size = _IOC_DIR(call->command) & _IOC_READ ? _IOC_SIZE(call->command) : 0;

	if (result < 0)
		fuse_answer(fuse, unique, result, NULL, 0, NULL, 0);
	else
		fuse_answer(fuse, unique, 0, &out, sizeof(out), call->arg, size);
}

static void fuse_complete(struct gp_vnode *node, struct gp_vcall *call, int result)
{
	(void)node;
	fuse_answer_ioctl(fuse_only, call->token, call, result);
}

static void fuse_attributes(const struct gp_fuse *fuse, uint64_t inode, struct fuse_attr *ret_attr)
{
	*ret_attr = (struct fuse_attr){
		.ino = inode,
		.mode = inode == FUSE_INODE_ROOT ? S_IFDIR | 0755u : S_IFREG | 0666u,
		.nlink = 1,
		.blksize = 4096,
	};
	(void)fuse;
}

static void fuse_init(struct gp_fuse *fuse, const struct fuse_in_header *header)
{
	struct fuse_init_answer answer = {
		.major = 7,
		.minor = 40,
		.max_readahead = 4096,
		.flags = FUSE_FLAG_INIT_EXT,
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = 65536,
		.time_gran = 1,
		.flags2 = FUSE_FLAG2_PASSTHROUGH,
		.max_stack_depth = 1,
	};

	fuse_answer(fuse, header->unique, 0, &answer, sizeof(answer), NULL, 0);
}

static void fuse_lookup(struct gp_fuse *fuse, const struct fuse_in_header *header, const char *name, size_t size)
{
	struct fuse_entry_out entry = { .generation = 1, .entry_valid = FUSE_VALID_S, .attr_valid = FUSE_VALID_S };
	unsigned int minor;

	if (!memchr(name, 0, size)) {
		fuse_answer(fuse, header->unique, -EINVAL, NULL, 0, NULL, 0);
		return;
	}
	if (!strcmp(name, "kfd"))
		entry.nodeid = FUSE_INODE_KFD;
	else if (sscanf(name, "renderD%u", &minor) == 1 && minor >= 128u && minor - 128u < fuse->node->gpu_count)
		entry.nodeid = FUSE_INODE_KFD + 1u + minor - 128u;
	if (!entry.nodeid) {
		fuse_answer(fuse, header->unique, -ENOENT, NULL, 0, NULL, 0);
		return;
	}
	fuse_attributes(fuse, entry.nodeid, &entry.attr);
	fuse_answer(fuse, header->unique, 0, &entry, sizeof(entry), NULL, 0);
}

static int fuse_file_take(struct gp_fuse *fuse, uint32_t *ret_index)
{
	struct fuse_file *files;
	uint32_t count = fuse->file_count ? fuse->file_count * 2u : 64u;

	for (uint32_t i = 0; i < fuse->file_count; i++)
		if (!fuse->files[i].used) {
			*ret_index = i;
			return 0;
		}
	if (count > FUSE_FILE_MAX)
		return -ENFILE;
	files = realloc(fuse->files, count * sizeof(*files));
	if (!files)
		return -ENOMEM;
	memset(files + fuse->file_count, 0, (count - fuse->file_count) * sizeof(*files));
	*ret_index = fuse->file_count;
	fuse->files = files;
	fuse->file_count = count;
	return 0;
}

/* The BAR behind an inode: registered with the kernel once. */
static int fuse_back(struct gp_fuse *fuse, uint64_t inode)
{
	struct fuse_backing backing = { .fd = fuse->node->bar.fd };
	int id;

	if (fuse->backing[inode])
		return 0;
	id = ioctl(fuse->fd, FUSE_BACKING_OPEN, &backing);
	if (id <= 0)
		return id < 0 ? -errno : -EIO;
	fuse->backing[inode] = id;
	return 0;
}

static void fuse_open(struct gp_fuse *fuse, const struct fuse_in_header *header)
{
	struct fuse_open_answer answer = { .open_flags = FUSE_OPEN_PASSTHROUGH };
	uint64_t inode = header->nodeid;
	struct gp_vproc *process;
	uint32_t index;
	int r;

	if (inode < FUSE_INODE_KFD || inode >= FUSE_INODE_KFD + 1u + fuse->node->gpu_count) {
		fuse_answer(fuse, header->unique, -EISDIR, NULL, 0, NULL, 0);
		return;
	}
	if (fuse_back(fuse, inode) < 0) {
		fuse_answer(fuse, header->unique, -EIO, NULL, 0, NULL, 0);
		return;
	}
	r = fuse_file_take(fuse, &index);
	if (r == 0)
		r = gp_vproc_open(fuse->node, gp_vproc_thread_group((pid_t)header->pid), &process);
	if (r < 0) {
		fuse_answer(fuse, header->unique, r, NULL, 0, NULL, 0);
		return;
	}
	fuse->files[index] = (struct fuse_file){
		.process = process,
		.pid = process->pid,
		.kind = (enum gp_vfile)(inode - FUSE_INODE_KFD),
		.used = true,
	};
	answer.fh = index;
	answer.backing_id = fuse->backing[inode];
	fuse_answer(fuse, header->unique, 0, &answer, sizeof(answer), NULL, 0);
}

/* The process behind an open file, if it still lives: a forked child may hold the file longer than its owner. */
static struct fuse_file *fuse_file_at(struct gp_fuse *fuse, uint64_t fh)
{
	struct fuse_file *file = fh < fuse->file_count && fuse->files[fh].used ? &fuse->files[fh] : NULL;
	struct gp_vproc *process;

	if (!file || !file->process)
		return file;
	for (process = fuse->node->processes; process && process != file->process; process = process->next)
		;
	/* The address may have been given to another process since. */
	if (!process || process->pid != file->pid)
		file->process = NULL;
	return file;
}

static void fuse_release(struct gp_fuse *fuse, const struct fuse_in_header *header, const struct fuse_release_in *in)
{
	struct fuse_file *file = fuse_file_at(fuse, in->fh);

	if (file) {
		if (file->process)
			gp_vproc_close(file->process);
		file->used = false;
	}
	fuse_answer(fuse, header->unique, 0, NULL, 0, NULL, 0);
}

/* Whose call it is: the opener's, whoever makes it (KFD then refuses others). A render node serves whoever holds it, so
 * there it is the caller's, who stays known until it exits. */
static struct gp_vproc *fuse_caller(struct gp_fuse *fuse, const struct fuse_file *file, pid_t thread)
{
	struct gp_vproc *process;

	if (file->kind == GP_VFILE_KFD || gp_vproc_has_thread(file->process, thread) ||
	    gp_vproc_open(fuse->node, gp_vproc_thread_group(thread), &process) < 0)
		return file->process;
	return process;
}

static void fuse_ioctl(struct gp_fuse *fuse, const struct fuse_in_header *header, const struct fuse_ioctl_in *in,
		       size_t size)
{
	struct fuse_file *file = fuse_file_at(fuse, in->fh);
	struct gp_vcall *call;
	int r;

	if (!file || !file->process || size < sizeof(*in) || in->in_size > size - sizeof(*in) ||
	    in->in_size > GP_VCALL_ARG_SIZE || _IOC_SIZE(in->cmd) > GP_VCALL_ARG_SIZE) {
		fuse_answer(fuse, header->unique, !file || !file->process ? -EBADF : -EINVAL, NULL, 0, NULL, 0);
		return;
	}
	call = calloc(1, sizeof(*call));
	if (!call) {
		fuse_answer(fuse, header->unique, -ENOMEM, NULL, 0, NULL, 0);
		return;
	}
	call->process = fuse_caller(fuse, file, (pid_t)header->pid);
	call->token = header->unique;
	call->command = in->cmd;
	call->thread = (pid_t)header->pid;
	call->arg_size = in->in_size;
	memcpy(call->arg, in + 1, in->in_size);
	r = gp_vcall_ioctl(&call, file->kind);
	if (!call)
		return;
	fuse_answer_ioctl(fuse, header->unique, call, r);
	gp_vcall_free(call);
}

static void fuse_request(struct gp_fuse *fuse, size_t size)
{
	const struct fuse_in_header *header = (const void *)fuse->buffer;
	const void *in = fuse->buffer + sizeof(*header);
	struct fuse_attr_out attr = { .attr_valid = FUSE_VALID_S };
	struct fuse_open_out directory = { 0 };

	size -= sizeof(*header);
	switch (header->opcode) {
	case FUSE_INIT: fuse_init(fuse, header); return;
	case FUSE_LOOKUP: fuse_lookup(fuse, header, in, size); return;
	case FUSE_GETATTR:
	case FUSE_SETATTR: /* a truncation by the client is answered and changes nothing: device files have no size */
		fuse_attributes(fuse, header->nodeid, &attr.attr);
		fuse_answer(fuse, header->unique, 0, &attr, sizeof(attr), NULL, 0);
		return;
	case FUSE_OPEN: fuse_open(fuse, header); return;
	case FUSE_RELEASE: fuse_release(fuse, header, in); return;
	case FUSE_IOCTL: fuse_ioctl(fuse, header, in, size); return;
	case FUSE_INTERRUPT: gp_vcall_interrupt(fuse->node, ((const struct fuse_interrupt_in *)in)->unique); return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET: return;
	case FUSE_OPENDIR: fuse_answer(fuse, header->unique, 0, &directory, sizeof(directory), NULL, 0); return;
	case FUSE_READDIR:
	case FUSE_RELEASEDIR:
	case FUSE_DESTROY: fuse_answer(fuse, header->unique, 0, NULL, 0, NULL, 0); return;
	default: fuse_answer(fuse, header->unique, -ENOSYS, NULL, 0, NULL, 0);
	}
}

int gp_fuse_serve(struct gp_fuse *fuse)
{
	for (;;) {
		ssize_t size = read(fuse->fd, fuse->buffer, FUSE_BUFFER_SIZE);

		if (size < 0 && errno == EAGAIN)
			return 0;
		if (size < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (size < 0)
			return -errno;
		if ((size_t)size >= sizeof(struct fuse_in_header))
			fuse_request(fuse, (size_t)size);
	}
}

int gp_fuse_fd(const struct gp_fuse *fuse)
{
	return fuse->fd;
}

/* The kernel's first request, and whether it does what we need: better said now than at a client's open. */
static int fuse_begin(struct gp_fuse *fuse, struct gp_error *error)
{
	struct pollfd ready = { fuse->fd, POLLIN, 0 };
	int r = poll(&ready, 1, FUSE_INIT_MS) == 1 ? gp_fuse_serve(fuse) : -ETIMEDOUT;

	if (r == 0)
		r = fuse_back(fuse, FUSE_INODE_KFD);
	return r < 0 ? gp_error_set(
			       error, r,
			       "this kernel does not pass mappings through FUSE: %s (Linux 6.9 or newer is needed)",
			       strerror(-r)) :
		       0;
}

int gp_fuse_create(struct gp_vnode *node, const char *dir, struct gp_fuse **ret_fuse, struct gp_error *error)
{
	struct gp_fuse *fuse = calloc(1, sizeof(*fuse));
	char options[128];
	int r;

	if (!fuse)
		return gp_error_set(error, -ENOMEM, "out of memory");
	fuse->node = node;
	fuse->buffer = malloc(FUSE_BUFFER_SIZE);
	fuse->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fuse->fd < 0 || !fuse->buffer) {
		r = fuse->buffer ? -errno : -ENOMEM;
		gp_error_set(error, r, "cannot open /dev/fuse: %s", strerror(-r));
	} else {
		snprintf(fuse->dir, sizeof(fuse->dir), "%s", dir);
		snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fuse->fd);
		r = mount("vgpu", dir, "fuse", MS_NOSUID, options) < 0 ? -errno : 0;
		if (r < 0)
			gp_error_set(error, r, "cannot mount the device files on %s: %s", dir, strerror(-r));
		else
			r = fuse_begin(fuse, error);
	}
	if (r < 0) {
		gp_fuse_destroy(fuse);
		return r;
	}
	node->complete = fuse_complete;
	fuse_only = fuse;
	*ret_fuse = fuse;
	return 0;
}

void gp_fuse_destroy(struct gp_fuse *fuse)
{
	if (*fuse->dir)
		umount2(fuse->dir, MNT_DETACH);
	if (fuse->fd >= 0)
		close(fuse->fd);
	free(fuse->files);
	free(fuse->buffer);
	free(fuse);
}
