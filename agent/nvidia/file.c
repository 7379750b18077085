/* SPDX-License-Identifier: MIT */
/*
 * The files on which RM's clients were created. RM accepts a control only on the very open file of its client, and the
 * application may close or reuse its number at any time, so the agent keeps a duplicate for each client that has
 * channel groups. A client lives as long as its file is open: the agent closes a duplicate that is the file's last
 * descriptor. If the program has no descriptor to spare, the file is *lost* until it has.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include "agent/file.h"
#include "agent/log.h"
#include "agent/nvidia/nvidia.h"
#include "agent/sys.h"

#define FILE_LOST_NS 1000000000ull /* between two attempts at lost files; chosen */
/* Numbers at which a file is looked for if the descriptors cannot be listed: all below the limit, but at least and at
 * most so many. A program may have lowered its limit. Chosen: 0.4 and 7 ms. */
#define FILE_ASKED_MIN 4096u
#define FILE_ASKED_MAX 65536u

#define FILE_ALL ((1u << GP_FD_FILE_MAX) - 1u)

static uint32_t file_taken; /* how many duplicates were made; atomic */
static uint32_t file_due;   /* bits: files of which a descriptor was closed; written without the lock */

static bool file_is_same(int fd, int own)
{
	/* If the kernel does not answer, they do not count as the same file. */
	return gp_sys_file_compare(fd, own) == 0;
}

/* By name: a container may give the device files other numbers, and the files of the tests are no devices. */
static bool file_name_is_rm(const char *name)
{
	if (strncmp(name, "nvidia", 6) != 0)
		return false;
	if (strcmp(name + 6, "ctl") == 0)
		return true;
	return name[6] && strspn(name + 6, "0123456789") == strlen(name + 6);
}

bool gp_nvidia_file_is_rm(int fd)
{
	char path[256], *last;

	gp_sys_file_path(fd, path, sizeof(path));
	last = strrchr(path, '/');
	return last && file_name_is_rm(last + 1);
}

/* A file whose name is not known (no /proc here), or is gone ("nvidiactl (deleted)"), may be the driver's. */
static bool file_is_another(int fd)
{
	char path[256], *last;

	gp_sys_file_path(fd, path, sizeof(path));
	last = strrchr(path, '/');
	return *path && !(last && strncmp(last + 1, "nvidia", 6) == 0);
}

/* How far file_taken has come, for the bits of gp_nvidia_file_closes() that name no file. Never 0. */
static uint32_t file_mark(void)
{
	return ~FILE_ALL & (1u << 31 | __atomic_load_n(&file_taken, __ATOMIC_SEQ_CST) << GP_FD_FILE_MAX);
}

/* Another thread of the program may close fd at any time, and may not have seen the duplicate when it looked for one:
 * - it finds that file_taken has changed when its close is done;
 * - or its close was done before file_taken changed: then fd is no longer that file. */
static bool file_take(uint32_t file, int fd)
{
	long own = gp_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3);

	if (own < 0)
		return false;
	/* The number may be another file's by now, which the agent must not hold open. */
	if (file_is_another((int)own)) {
		gp_sys_close((int)own);
		return false;
	}
	if (gp_fd_take(GP_NVIDIA_FD + file, (int)own) < 0)
		return false;
	__atomic_fetch_add(&file_taken, 1, __ATOMIC_SEQ_CST);
	if (!file_is_same(fd, gp_fd(GP_NVIDIA_FD + file))) {
		__atomic_fetch_or(&file_due, 1u << file, __ATOMIC_RELEASE);
		gp_thread_wake();
	}
	gp_nvidia.lost_files &= ~(1u << file);
	return true;
}

uint32_t gp_nvidia_file_add(int fd, uint32_t client)
{
	uint32_t file = GP_NVIDIA_NONE;

	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++) {
		if (gp_nvidia.file_counts[i] && gp_nvidia.file_clients[i] == client) {
			if (gp_fd_verified(GP_NVIDIA_FD + i) < 0 && gp_fds_are_enough())
				file_take(i, fd);
			gp_nvidia.file_counts[i]++;
			return i;
		}
		if (!gp_nvidia.file_counts[i] && file == GP_NVIDIA_NONE)
			file = i;
	}
	if (file != GP_NVIDIA_NONE) {
		if (!gp_fds_are_enough() || !file_take(file, fd)) {
			gp_nvidia.lost_files |= 1u << file;
			gp_fd_note(GP_NVIDIA_FD + file, fd);
		}
		gp_nvidia.file_clients[file] = client;
		gp_nvidia.file_counts[file] = 1;
	}
	return file;
}

void gp_nvidia_file_release(uint32_t file)
{
	if (file == GP_NVIDIA_NONE || --gp_nvidia.file_counts[file])
		return;
	gp_fd_drop(GP_NVIDIA_FD + file);
	gp_nvidia.lost_files &= ~(1u << file);
}

uint32_t gp_nvidia_file_closes(unsigned first, unsigned last)
{
	uint32_t files = file_mark(); /* before it looks */

	for (uint32_t i = 0; i < GP_FD_FILE_MAX; i++) {
		int own = gp_fd(GP_NVIDIA_FD + i);

		if (own >= 0 && (first != last || file_is_same((int)first, own)))
			files |= 1u << i;
	}
	return gp_agent_is_borrowed() ? 0 : files;
}

void gp_nvidia_file_closed(uint32_t files)
{
	/* A duplicate was made meanwhile, perhaps of a file that was closed. */
	if (files && (files & ~FILE_ALL) != file_mark())
		files = FILE_ALL;
	files &= FILE_ALL;
	if (!files)
		return;
	__atomic_fetch_or(&file_due, files, __ATOMIC_RELEASE);
	gp_thread_wake();
}

typedef bool file_question(int fd, uint32_t what);

/* As file_search(), number by number: without /proc, or without a descriptor to read it by. */
static int file_search_numbers(file_question *is_it, uint32_t what, int why_not_listed)
{
	struct rlimit limit = { FILE_ASKED_MAX, 0 };
	bool is_short;

	gp_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
	is_short = limit.rlim_cur > FILE_ASKED_MAX;
	if (is_short)
		limit.rlim_cur = FILE_ASKED_MAX;
	if (limit.rlim_cur < FILE_ASKED_MIN)
		limit.rlim_cur = FILE_ASKED_MIN;
	for (int fd = 0; (rlim_t)fd < limit.rlim_cur; fd++)
		if (!gp_fd_is_own(fd) && is_it(fd, what))
			return fd;
	/* It may be above, and is found as soon as there is a descriptor again. */
	return is_short && (why_not_listed == -EMFILE || why_not_listed == -ENFILE) ? why_not_listed : -ENOENT;
}

/* The first descriptor of this process for which is_it returns true. -ENOENT: none; other errors: not known. */
static int file_search(file_question *is_it, uint32_t what)
{
	_Alignas(8) uint8_t entries[2048];
	/* Not /proc/self: that is the process's first thread, which may have ended. */
	long folder = gp_sys(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found = -ENOENT;
	long size;

	if (folder < 0)
		return file_search_numbers(is_it, what, (int)folder);

	while (found == -ENOENT && (size = gp_sys(SYS_getdents64, folder, (long)entries, sizeof(entries))) > 0)
		for (long at = 0; at < size && found == -ENOENT;) {
			/* struct linux_dirent64: inode, offset, length of the record, type, name. */
			const char *name = (const char *)entries + at + 19;
			uint16_t length;
			int fd = 0;

			memcpy(&length, entries + at + 16, sizeof(length));
			for (const char *c = name; *c >= '0' && *c <= '9'; c++)
				fd = fd * 10 + (*c - '0');
			if (*name != '.' && !gp_fd_is_own(fd) && is_it(fd, what))
				found = fd;
			at += length;
		}
	gp_sys_close((int)folder);
	return found;
}

static bool file_is_at(int fd, uint32_t own)
{
	return file_is_same(fd, (int)own);
}

/* Whether the application still has this file open. If the kernel cannot compare files, it counts as open. */
static bool file_is_used(int own)
{
	return !file_is_same(own, own) || file_search(file_is_at, (uint32_t)own) != -ENOENT;
}

/* Whether fd reaches the client of this file: RM then answers a question about one of its groups. A driver that is busy
 * or lost does not answer, and it is not known. */
static bool file_is_unsure; /* lock held */
static bool file_reaches(int fd, uint32_t file)
{
	uint32_t number = 0;

	if (!gp_fd_is_like(GP_NVIDIA_FD + file, fd))
		return false;
	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++) {
		const struct gp_nvidia_object *object = &gp_nvidia_objects[i];

		if (object->used && object->class_id == GP_RM_CLASS_GROUP && object->file == file) {
			int r = gp_nvidia_control_on(fd, &(struct gp_nvidia_call){ file, object->client, object->handle,
										   GP_RM_GROUP_INFO, &number,
										   sizeof(number) });

			file_is_unsure |= r == -EBUSY || r == -EIO || r == -ENOMEM;
			return r == 0;
		}
	}
	return false;
}

int gp_nvidia_file_other(uint32_t file)
{
	int fd;

	/* A guard that opens by the numbers alone looks later: the calls of a search may end it. The last one has no
	 * later. */
	if (gp_fds_are_trusted() && !gp_agent.leaving)
		return -EAGAIN;
	file_is_unsure = false;
	fd = file_search(file_reaches, file);
	gp_log2("nvidia: our descriptor is gone: client, another", gp_nvidia.file_clients[file], fd);
	return fd == -ENOENT && file_is_unsure ? -EAGAIN : fd;
}

int gp_nvidia_file_fd(uint32_t file)
{
	int fd = gp_fd_verified(GP_NVIDIA_FD + file);

	if (fd >= 0 || !gp_nvidia.file_counts[file])
		return fd < 0 ? -EBADF : fd;
	/* A file of which the agent never had a duplicate has no closed gate to open. */
	if (gp_nvidia.lost_files >> file & 1 && !gp_fds_are_enough())
		return -EBADF;
	/* The application has closed the agent's duplicate. It has the same file open itself, and the agent needs it to
	 * open gates. */
	fd = gp_nvidia_file_other(file);
	if (fd < 0)
		return fd;
	/* If the program has none to spare, its own is used, this time. */
	return gp_fds_are_enough() && file_take(file, fd) ? gp_fd(GP_NVIDIA_FD + file) : fd;
}

/* Lost files to try again: the agent does not see their end, and the program may have descriptors to spare by now. */
static uint32_t file_lost_due(void)
{
	static uint64_t next_ns;
	uint64_t now_ns = gp_nvidia.lost_files ? gp_sys_now_ns() : 0;

	if (now_ns < next_ns || !gp_nvidia.lost_files)
		return 0;
	next_ns = now_ns + FILE_LOST_NS;
	return gp_nvidia.lost_files;
}

void gp_nvidia_files_tidy(void)
{
	uint32_t due = __atomic_exchange_n(&file_due, 0, __ATOMIC_ACQUIRE) | file_lost_due();

	for (uint32_t i = 0; i < GP_FD_FILE_MAX && due; i++, due >>= 1) {
		int own = due & 1u ? gp_nvidia_file_fd(i) : -EBADF;

		if (own < 0 ? own != -ENOENT : file_is_used(own))
			continue;
		gp_log1("nvidia: its file was closed: client", gp_nvidia.file_clients[i]);
		gp_nvidia_client_gone(gp_nvidia.file_clients[i]);
	}
}
