/* SPDX-License-Identifier: MIT */
/*
 * Calls with a path. One that the node provides is answered from the store, or with a device file; every other is left
 * to the kernel, which reads the path again: a caller that changes it meanwhile gets what its own rights give it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "vgpu/node/process.h"
#include "vgpu/frontend/seccomp_internal.h"
#include "vgpu/files/vpath.h"

#define PATH_PAGE       4096u
#define PATH_PARAMETERS "sys/module/amdgpu/parameters/"
#define PATH_OPEN_FLAGS (O_ACCMODE | O_TRUNC | O_APPEND | O_DIRECTORY | O_NOFOLLOW | O_PATH | O_NONBLOCK)

/* Up to the end of each page: the next may not be there. */
static int path_read(const struct gp_seccomp_ask *ask, uint64_t address, char *ret_path)
{
	size_t size = 0;

	while (size < GP_VPATH_SIZE) {
		size_t step = PATH_PAGE - (size_t)((address + size) % PATH_PAGE);
		int r;

		if (step > GP_VPATH_SIZE - size)
			step = GP_VPATH_SIZE - size;
		r = gp_seccomp_read(ask, address + size, ret_path + size, step);
		if (r < 0)
			return r;
		if (memchr(ret_path + size, 0, step))
			return 0;
		size += step;
	}
	return -ENAMETOOLONG;
}

/* The folder that a relative path starts from; one inside the store stands for what it shows. */
static bool path_base(const struct gp_seccomp_ask *ask, int folder, char *ret_base)
{
	const char *store = ask->seccomp->store->path;
	size_t store_size = strlen(store);
	char link[64];
	ssize_t size;

	if (folder == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/cwd", ask->thread);
	else
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", ask->thread, folder);
	size = readlink(link, ret_base, GP_VPATH_SIZE - 1u);
	if (size <= 0 || *ret_base != '/')
		return false;
	ret_base[size] = 0;
	if (!strncmp(ret_base, store, store_size) && (ret_base[store_size] == '/' || !ret_base[store_size]))
		memmove(ret_base, ret_base + store_size, (size_t)size - store_size + 1u);
	return true;
}

static void path_give(const struct gp_seccomp_ask *ask, int fd, uint64_t flags)
{
	int r = fd < 0 ? fd : gp_seccomp_give(ask, fd, flags & O_CLOEXEC);

	/* From giving it means that the caller is gone. */
	if (r < 0 && (fd < 0 || r != -ENOENT))
		gp_seccomp_answer(ask, r);
	if (fd >= 0)
		close(fd);
}

/* A new open file of the BAR: dup would share it between openers. */
static int path_bar(struct gp_vnode *node, uint64_t flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", node->bar.fd);
	/* Every client is its owner too, and might have changed its mode. */
	fchmod(node->bar.fd, 0600);
	fd = open(path, (int)(flags & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void path_open_device(const struct gp_seccomp_ask *ask, uint32_t number, uint64_t flags)
{
	struct gp_seccomp *seccomp = ask->seccomp;
	struct gp_vproc *process = NULL;
	int fd, r;

	if (flags & O_DIRECTORY || (flags & O_CREAT && flags & O_EXCL)) {
		gp_seccomp_answer(ask, flags & O_DIRECTORY ? -ENOTDIR : -EEXIST);
		return;
	}
	r = fd = path_bar(seccomp->node, flags);
	if (r >= 0)
		r = gp_seccomp_process(seccomp, ask->thread, &process);
	if (r >= 0) {
		r = gp_seccomp_files_add(&seccomp->files, fd, (enum gp_vfile)number, process);
		if (r == 0) {
			r = gp_seccomp_give(ask, fd, flags & O_CLOEXEC);
			if (r < 0)
				gp_seccomp_files_remove(&seccomp->files, fd);
			fd = -1;
		}
		if (r < 0)
			gp_vproc_close(process);
	}
	if (fd >= 0)
		close(fd);
	if (r >= 0) {
		/* The one just opened is among those that are kept, so this never takes the process away. */
		for (uint32_t closed = gp_seccomp_files_collect(&seccomp->files, process); closed; closed--)
			gp_vproc_close(process);
	} else if (gp_seccomp_is_valid(ask)) {
		gp_seccomp_answer(ask, r);
	}
}

/* The driver's files are for reading, but for parameters; which of those may be written, their modes say. */
static bool path_may_be_writable(const char *path)
{
	return !strncmp(path, PATH_PARAMETERS, strlen(PATH_PARAMETERS));
}

static void path_do_open(const struct gp_seccomp_ask *ask, const struct gp_seccomp_call *call, const char *path)
{
	struct open_how how = { .flags = ask->args[call->buffer] };
	uint64_t flags;
	uint32_t number;

	if (call->nr == SYS_openat2) {
		int r = ask->args[call->buffer + 1u] < sizeof(how)                           ? -EINVAL :
			gp_seccomp_read(ask, ask->args[call->buffer], &how, sizeof(how)) < 0 ? -EFAULT :
											       0;

		/* Where the root is not the root, the name says nothing: for the kernel. */
		if (r < 0 || how.resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)) {
			if (r < 0)
				gp_seccomp_answer(ask, r);
			else
				gp_seccomp_pass(ask);
			return;
		}
	}
	flags = how.flags;
	if (!(flags & O_PATH) && gp_vpath_is_device(path, ask->seccomp->node->gpu_count, &number)) {
		path_open_device(ask, number, flags);
		return;
	}
	/* Nobody makes new ones. */
	if (!(flags & O_PATH) && ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC) && !path_may_be_writable(path)) {
		int fd = gp_store_open(ask->seccomp->store, path, O_PATH);

		if (fd >= 0)
			close(fd);
		gp_seccomp_answer(ask, fd < 0 && !(flags & O_CREAT) ? fd : -EACCES);
		return;
	}
	if (flags & O_PATH)
		flags &= ~(uint64_t)(O_ACCMODE | O_TRUNC | O_APPEND);
	path_give(ask, gp_store_open(ask->seccomp->store, path, flags & PATH_OPEN_FLAGS), flags);
}

/* Answers 0, or the error, after the bytes have gone to the caller. */
static void path_answer_bytes(const struct gp_seccomp_ask *ask, int r, uint64_t address, const void *data, size_t size)
{
	if (r >= 0 && !gp_seccomp_is_valid(ask))
		return;
	if (r >= 0 && gp_seccomp_write(ask, address, data, size) < 0)
		r = -EFAULT;
	gp_seccomp_answer(ask, r);
}

static void path_do_stat(const struct gp_seccomp_ask *ask, const struct gp_seccomp_call *call, int fd)
{
	struct stat status = { 0 };
	struct statx extended = { 0 };
	int r = fd;

	if (call->op == GP_SECCOMP_STATX) {
		if (r >= 0)
			r = statx(fd, "", AT_EMPTY_PATH, (unsigned int)ask->args[3], &extended) < 0 ? -errno : 0;
		path_answer_bytes(ask, r, ask->args[call->buffer], &extended, sizeof(extended));
		return;
	}
	if (r >= 0)
		r = fstat(fd, &status) < 0 ? -errno : 0;
	path_answer_bytes(ask, r, ask->args[call->buffer], &status, sizeof(status));
}

/* As the modes in sysfs and /dev would have it: all may read, device files may be written, folders searched. */
static void path_do_access(const struct gp_seccomp_ask *ask, const struct gp_seccomp_call *call, const char *path,
			   int fd)
{
	uint64_t mode = ask->args[call->buffer];
	struct stat status;
	uint32_t number;
	bool writable = gp_vpath_is_device(path, ask->seccomp->node->gpu_count, &number);
	int r = fd < 0 ? fd : fstat(fd, &status) < 0 ? -errno : 0;

	if (r == 0)
		writable |= path_may_be_writable(path) && status.st_mode & S_IWUSR;
	if (r == 0 && mode & ~(uint64_t)(R_OK | W_OK | X_OK))
		r = -EINVAL;
	else if (r == 0 && ((mode & W_OK && !writable) || (mode & X_OK && !S_ISDIR(status.st_mode))))
		r = -EACCES;
	gp_seccomp_answer(ask, r);
}

static void path_do_readlink(const struct gp_seccomp_ask *ask, const struct gp_seccomp_call *call, int fd)
{
	uint64_t room = ask->args[call->buffer + 1u];
	char text[GP_VPATH_SIZE];
	ssize_t size = fd;
	int r;

	if (fd >= 0) {
		size = readlinkat(fd, "", text, sizeof(text));
		/* Not a link; with an empty name that is another error. */
		if (size < 0)
			size = errno == ENOENT ? -EINVAL : -errno;
	}
	if (size >= 0 && ((int64_t)room <= 0 || room > INT32_MAX))
		size = -EINVAL;
	if (size > (ssize_t)room && size > 0)
		size = (ssize_t)room;
	r = (int)size;
	if (r < 0)
		gp_seccomp_answer(ask, r);
	else
		path_answer_bytes(ask, r, ask->args[call->buffer], text, (size_t)size);
}

static void path_do(const struct gp_seccomp_ask *ask, const struct gp_seccomp_call *call, const char *path)
{
	bool nofollow = call->op == GP_SECCOMP_READLINK ||
			(call->at_flags != GP_SECCOMP_NONE && ask->args[call->at_flags] & AT_SYMLINK_NOFOLLOW);
	int fd;

#ifdef SYS_lstat
	nofollow |= call->nr == SYS_lstat;
#endif
	if (call->op == GP_SECCOMP_OPEN) {
		path_do_open(ask, call, path);
		return;
	}
	fd = gp_store_open(ask->seccomp->store, path, nofollow ? O_PATH | O_NOFOLLOW : O_PATH);
	switch (call->op) {
	case GP_SECCOMP_OPEN: break;
	case GP_SECCOMP_STAT:
	case GP_SECCOMP_STATX: path_do_stat(ask, call, fd); break;
	case GP_SECCOMP_ACCESS: path_do_access(ask, call, path, fd); break;
	case GP_SECCOMP_READLINK: path_do_readlink(ask, call, fd); break;
	case GP_SECCOMP_XATTR: gp_seccomp_answer(ask, fd < 0 ? fd : -EOPNOTSUPP); break;
	}
	if (fd >= 0)
		close(fd);
}

void gp_seccomp_path(const struct gp_seccomp_ask *ask, const struct gp_seccomp_call *call)
{
	static char path[GP_VPATH_SIZE], base[GP_VPATH_SIZE], resolved[GP_VPATH_SIZE];
	int folder = call->folder == GP_SECCOMP_NONE ? AT_FDCWD : (int)(uint32_t)ask->args[call->folder];

	base[0] = 0;
	/* A path that cannot be read is for the kernel to refuse. */
	if (path_read(ask, ask->args[call->path], path) < 0 ||
	    (*path != '/' && (!*path || !path_base(ask, folder, base))) || !gp_vpath_resolve(base, path, resolved) ||
	    !gp_seccomp_is_valid(ask)) {
		gp_seccomp_pass(ask);
		return;
	}
	path_do(ask, call, resolved);
}
