/* SPDX-License-Identifier: MIT */
/* Owns vgpud's own descriptors of the files handed out, and the order they are kept in. */
#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "vgpu/frontend/seccomp_files.h"

/* 0: the same file; 1, 2: ours before or after theirs, in an order of the kernel's that does not change; negative: no
 * such descriptor, or not allowed to look. */
static int files_compare(int ours, pid_t thread, int theirs)
{
	return (int)syscall(SYS_kcmp, getpid(), thread, KCMP_FILE, (unsigned long)ours, (unsigned long)theirs);
}

int gp_seccomp_files_init(struct gp_error *error)
{
	if (files_compare(STDERR_FILENO, getpid(), STDERR_FILENO) == 0 || errno == EBADF)
		return 0;
	return gp_error_set(error, -errno, "the seccomp front end needs the system call kcmp (CONFIG_KCMP): %s",
			    strerror(errno));
}

/* Where fd of that thread is (*ret_found), or where it would have to be. Negative: there is no such descriptor. */
static int files_search(const struct gp_seccomp_files *files, pid_t thread, int fd, bool *ret_found)
{
	uint32_t low = 0, high = files->count;

	*ret_found = false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2u;
		int order = files_compare(files->sorted[middle]->fd, thread, fd);

		if (order == 0) {
			*ret_found = true;
			return (int)middle;
		}
		if (order == 1)
			low = middle + 1u;
		else if (order == 2)
			high = middle;
		else
			return -EBADF;
	}
	return (int)low;
}

void gp_seccomp_files_fini(struct gp_seccomp_files *files)
{
	for (uint32_t i = 0; i < files->count; i++) {
		close(files->sorted[i]->fd);
		free(files->sorted[i]);
	}
	free(files->sorted);
	*files = (struct gp_seccomp_files){ 0 };
}

/* Half of the descriptors we may have: the rest is for processes, connections, and the files that anybody reads. */
static bool files_is_full(const struct gp_seccomp_files *files)
{
	struct rlimit limit;

	return files->count >= GP_SECCOMP_FILE_MAX ||
	       (!getrlimit(RLIMIT_NOFILE, &limit) && files->count >= limit.rlim_cur / 2u);
}

int gp_seccomp_files_add(struct gp_seccomp_files *files, int fd, enum gp_vfile kind, const struct gp_vproc *process)
{
	struct gp_seccomp_file *file;
	bool found;
	int at;

	if (files_is_full(files))
		return -ENFILE;
	if (files->count == files->capacity) {
		uint32_t capacity = files->capacity ? files->capacity * 2u : 64u;
		struct gp_seccomp_file **sorted = realloc(files->sorted, capacity * sizeof(struct gp_seccomp_file *));

		if (!sorted)
			return -ENOMEM;
		files->sorted = sorted;
		files->capacity = capacity;
	}
	at = files_search(files, getpid(), fd, &found);
	file = at < 0 || found ? NULL : malloc(sizeof(*file));
	if (!file)
		return at < 0 ? at : -ENOMEM;
	*file = (struct gp_seccomp_file){ .fd = fd, .kind = kind, .pid = process->pid, .serial = process->serial };
	memmove(&files->sorted[at + 1], &files->sorted[at],
		(files->count - (uint32_t)at) * sizeof(struct gp_seccomp_file *));
	files->sorted[at] = file;
	files->count++;
	return 0;
}

static void files_remove_at(struct gp_seccomp_files *files, uint32_t at)
{
	struct gp_seccomp_file *file = files->sorted[at];

	for (size_t i = 0; i < GP_SECCOMP_HINT_MAX; i++)
		if (files->hints[i].file == file)
			files->hints[i].file = NULL;
	files->count--;
	memmove(&files->sorted[at], &files->sorted[at + 1u], (files->count - at) * sizeof(struct gp_seccomp_file *));
	close(file->fd);
	free(file);
}

void gp_seccomp_files_remove(struct gp_seccomp_files *files, int fd)
{
	for (uint32_t i = 0; i < files->count; i++)
		if (files->sorted[i]->fd == fd) {
			files_remove_at(files, i);
			return;
		}
}

struct gp_seccomp_file *gp_seccomp_files_find(struct gp_seccomp_files *files, pid_t thread, int fd)
{
	struct gp_seccomp_hint *hint = &files->hints[((uint32_t)thread * 31u + (uint32_t)fd) % GP_SECCOMP_HINT_MAX];
	bool found;
	int at;

	if (hint->file && hint->thread == thread && hint->fd == fd && files_compare(hint->file->fd, thread, fd) == 0)
		return hint->file;
	at = files_search(files, thread, fd, &found);
	if (!found)
		return NULL;
	*hint = (struct gp_seccomp_hint){ thread, fd, files->sorted[at] };
	return hint->file;
}

void gp_seccomp_files_drop(struct gp_seccomp_files *files, uint64_t serial)
{
	for (uint32_t i = files->count; i-- > 0;)
		if (files->sorted[i]->serial == serial)
			files_remove_at(files, i);
}

uint32_t gp_seccomp_files_collect(struct gp_seccomp_files *files, const struct gp_vproc *process)
{
	uint32_t count = 0, closed = 0;
	struct dirent *entry;
	char path[64];
	DIR *directory;

	for (uint32_t i = 0; i < files->count; i++)
		count += files->sorted[i]->serial == process->serial;
	/* At powers of two only: who keeps many open pays for it a few times, not at each open. */
	if (count < GP_SECCOMP_FILE_MANY || (count & (count - 1u)))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", process->pid);
	directory = opendir(path);
	if (!directory)
		return 0;
	for (uint32_t i = 0; i < files->count; i++)
		files->sorted[i]->seen = false;
	while ((entry = readdir(directory))) {
		bool found = false;
		int at = *entry->d_name == '.' ? -1 : files_search(files, process->pid, atoi(entry->d_name), &found);

		if (found)
			files->sorted[at]->seen = true;
	}
	closedir(directory);
	for (uint32_t i = files->count; i-- > 0;)
		if (files->sorted[i]->serial == process->serial && !files->sorted[i]->seen) {
			files_remove_at(files, i);
			closed++;
		}
	return closed;
}
