/* SPDX-License-Identifier: MIT */
/* Owns the folder and its removal. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "vgpu/files/static_files.h"
#include "vgpu/files/store.h"

#define STORE_DEPTH 32
#define STORE_ROOM  (4u << 20) /* what a node of eight GPUs writes, several times over */

static int store_remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	/* What cannot be removed is passed over: the rest still goes. */
	(void)!remove(path);
	return 0;
}

/* The remover: a session of its own, no descriptor but its end of the pipe, which ends with vgpud. */
__attribute__((noreturn)) static void store_remover(const char *path, int life)
{
	struct pollfd wait = { STDIN_FILENO, 0, 0 };

	setsid();
	prctl(PR_SET_NAME, "vgpu-remover", 0, 0, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	dup2(life, STDIN_FILENO);
	close_range(STDIN_FILENO + 1u, ~0u, 0);
	(void)!chdir("/");
	while (poll(&wait, 1, -1) < 0 || !wait.revents)
		;
	nftw(path, store_remove_one, STORE_DEPTH, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

/* Programs are run from there (lsmod), so not where nothing may be run; in memory if possible. */
static int store_folder(char *ret_path, size_t path_size)
{
	const char *const places[] = { getenv("XDG_RUNTIME_DIR"), "/dev/shm", getenv("TMPDIR"), "/tmp" };
	int r = -ENOENT;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct statvfs status;

		if (!places[i] || *places[i] != '/' || statvfs(places[i], &status) < 0 || status.f_flag & ST_NOEXEC)
			continue;
		r = -ENOSPC;
		if ((uint64_t)status.f_bavail * status.f_frsize < STORE_ROOM)
			continue;
		if (snprintf(ret_path, path_size, "%s/vgpu-XXXXXX", places[i]) >= (int)path_size)
			continue;
		if (mkdtemp(ret_path))
			return 0;
		r = -errno;
	}
	return r;
}

int gp_store_create(struct gp_vgpu_store *store, struct gp_error *error)
{
	int ends[2], r = store_folder(store->path, sizeof(store->path));
	pid_t child;

	store->fd = store->life = -1;
	if (r < 0)
		return gp_error_set(error, r, "no place for the node's files in XDG_RUNTIME_DIR, /dev/shm, /tmp: %s",
				    strerror(-r));
	if (pipe2(ends, O_CLOEXEC) < 0) {
		r = -errno;
		rmdir(store->path);
		return gp_error_set(error, r, "cannot make a pipe: %s", strerror(-r));
	}
	child = fork();
	if (child == 0) {
		close(ends[1]);
		store_remover(store->path, ends[0]);
	}
	r = child < 0 ? -errno : 0;
	close(ends[0]);
	store->life = ends[1];
	if (r < 0)
		rmdir(store->path);
	else if (chmod(store->path, 0755) < 0 || (store->fd = open(store->path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		r = -errno;
	return r < 0 ? gp_error_set(error, r, "cannot keep the node's files in %s: %s", store->path, strerror(-r)) : 0;
}

/* An empty file stands for each device file: for listings and stat; opening it is answered otherwise. */
static int store_devices(const struct gp_vgpu_store *store, const struct gp_vnode *node)
{
	char path[96];
	int r = 0;

	snprintf(path, sizeof(path), "%s/dev", store->path);
	if (mkdir(path, 0755) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/dev/dri", store->path);
	if (mkdir(path, 0755) < 0)
		return -errno;
	for (uint32_t i = 0; r == 0 && i <= node->gpu_count; i++) {
		int fd;

		if (i)
			snprintf(path, sizeof(path), "%s/dev/dri/renderD%u", store->path, node->gpus[i - 1u].minor);
		else
			snprintf(path, sizeof(path), "%s/dev/kfd", store->path);
		fd = open(path, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 || fchmod(fd, 0666) < 0)
			r = -errno;
		if (fd >= 0)
			close(fd);
	}
	return r;
}

int gp_store_fill(struct gp_vgpu_store *store, struct gp_vnode *node, struct gp_error *error)
{
	char path[96];
	int r = store_devices(store, node);

	snprintf(path, sizeof(path), "%s/bin", store->path);
	if (r == 0)
		r = gp_static_programs_write(path);
	if (r < 0)
		return gp_error_set(error, r, "cannot write into %s: %s", store->path, strerror(-r));
	return gp_static_files_write(node, store->path, error);
}

void gp_store_destroy(struct gp_vgpu_store *store)
{
	/* Not left to the remover: whoever waits for our end may count on the folder being gone. */
	nftw(store->path, store_remove_one, STORE_DEPTH, FTW_DEPTH | FTW_PHYS);
	if (store->fd >= 0)
		close(store->fd);
	if (store->life >= 0)
		close(store->life);
}
